//! The guest's suite on a kernel in which a check is missing: until the first test fails, or the machine ends otherwise.

use super::tree::Tree;
use crate::build::{self, System};
use crate::guest::{End, Guest};
use crate::machine::Machine;
use crate::{Error, Result, paths};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time without a line of the suite's, of which the longest tests take a tenth on an idle host.
const LIMIT: Duration = Duration::from_secs(400);

/// Counts of what is random: small at first, since most is caught by less.
const FEW: &str = "calls=100000,kills=2000";
const MANY: &str = "calls=1000000,kills=10000";

/// How the suite is booted, one after the other: the name for the table, counts, and options of the kernel.
const BOOTS: [(&str, &str, &str); 6] = [
    ("fastpath-on", FEW, "fastpath=on"),
    ("fastpath-off", FEW, "fastpath=off"),
    ("checked-on", FEW, "fastpath=on check=2"),
    ("checked-off", FEW, "fastpath=off check=1"),
    ("fastpath-on", MANY, "fastpath=on"),
    ("fastpath-off", MANY, "fastpath=off"),
];

/// So many of them are for tests that are asked by name.
const NAMED: usize = 3;

/// System that boots: the copy's kernel, with the programs of the checkout.
pub struct Boots {
    system: System,
}

impl Boots {
    /// Builds the kernel of a copy.
    pub fn build(tree: &Tree, archive: PathBuf) -> Result<Boots> {
        let out = tree.target.join("tern");
        fs::create_dir_all(&out).map_err(|error| Error::new(error.to_string()))?;
        // A name that only the check has used is unused now.
        let flags = [&build::KERNEL_FLAGS[..], &["-Awarnings"]].concat();
        let kernel = build::kernel_of(&tree.root, &tree.target.join("kernel"), &out, &flags)?;
        Ok(Boots { system: System { kernel, archive } })
    }

    /// The kernel's file.
    pub fn kernel(&self) -> Result<Vec<u8>> {
        paths::read(&self.system.kernel)
    }

    /// Runs the tests whose names contain the text, or all. Says which one failed, or how the machine ended.
    pub fn run(&self, filter: Option<&str>) -> Result<Option<String>> {
        let boots = if filter.is_some() { &BOOTS[..NAMED] } else { &BOOTS };
        for (name, counts, options) in boots {
            let words = format!("untimed,{counts},{}", filter.unwrap_or(""));
            if let Some(caught) = self.boot(&format!("init=suite args={words} {options} exhaust=on"))? {
                return Ok(Some(format!("{name}::{caught}")));
            }
        }
        Ok(None)
    }

    fn boot(&self, options: &str) -> Result<Option<String>> {
        let mut guest = Guest::start(&Machine::new(&self.system).with(options))?;
        let mut seen = 0;
        guest.limit(Some(LIMIT));
        while guest.next_event().is_some() {
            guest.limit(Some(LIMIT));
            let text = String::from_utf8_lossy(&guest.transcript[seen..]).into_owned();
            if let Some(name) = text.lines().find_map(failed) {
                return Ok(Some(name));
            }
            // A line may come in parts.
            seen += text.rfind('\n').map_or(0, |end| end + 1);
        }
        let end = guest.finish();
        if guest.text().contains("SUITE-END ran=0") {
            return Err(Error::new(format!("no test of the guest's was asked: {options}")));
        }
        Ok(match end {
            End::Orderly(0) => None,
            End::Orderly(code) => Some(format!("the suite ended with {code}")),
            End::Stopped(reason) => Some(reason),
            End::Broken(reason) => Some(reason),
        })
    }
}

/// Reads "TEST name ... FAILED: reason".
fn failed(line: &str) -> Option<String> {
    let (name, reason) = line.strip_prefix("TEST ")?.split_once(" ... FAILED: ")?;
    eprintln!("tern: {name}: {reason}");
    Some(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        assert_eq!(failed("TEST map.flush ... FAILED: because").as_deref(), Some("map.flush"));
        assert_eq!(failed("TEST map.flush ... ok"), None);
    }
}
