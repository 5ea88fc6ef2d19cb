//! The list of security checks that can be taken out: `tests/checks.toml`.
//!
//! Each entry names a text of the source that is there exactly once, and what stands in its place when the check is
//! gone. So an entry whose check has been changed or moved is found at once, and not when somebody asks for it.

use crate::{Context, Error, Result, paths};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the list is, relative to the checkout.
pub const LIST: &str = "tests/checks.toml";

/// A check, and how it is taken out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Few words, none of them used twice.
    pub name: String,
    /// The file, relative to the checkout.
    pub file: PathBuf,
    /// Text that is taken out, as it stands in the file.
    pub take: String,
    /// Text in its place.
    #[serde(default)]
    pub put: String,
    /// Harm that could be done without it, in half a sentence.
    pub protects: String,
    /// Part of the names of the guest's tests that should catch it, which are tried first.
    pub guest: Option<String>,
    /// Part of the names of the tests on the host that should catch it.
    pub host: Option<String>,
    /// Why no test can catch it.
    pub survives: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    check: Vec<Check>,
}

impl Check {
    /// The source without the check. The text to be taken out has to be there exactly once.
    pub fn apply(&self, source: &str) -> Result<String> {
        match source.matches(&self.take).count() {
            1 if self.take.is_empty() || self.take == self.put => Err(self.wrong("nothing is taken out")),
            1 => Ok(source.replacen(&self.take, &self.put, 1)),
            count => Err(self.wrong(&format!(
                "the text to be taken out is {count} times in {}, and should be once",
                self.file.display()
            ))),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(format!("{LIST}: {:?}: {what}", self.name))
    }
}

/// Reads the list of a checkout, and holds each entry against the source.
pub fn read(root: &Path) -> Result<Vec<Check>> {
    let text = String::from_utf8_lossy(&paths::read(&root.join(LIST))?).into_owned();
    let List { check: checks } = toml::from_str(&text).context(|| format!("read {LIST}"))?;
    let mut names = BTreeSet::new();
    for check in &checks {
        if !names.insert(&check.name) {
            return Err(check.wrong("the name is used twice"));
        }
        let source = fs::read_to_string(root.join(&check.file))
            .map_err(|error| check.wrong(&format!("{}: {error}", check.file.display())))?;
        check.apply(&source)?;
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer entries than this are no list of the kernel's checks.
    const CHECKS_MIN: usize = 60;

    fn check(take: &str) -> Check {
        let entry = format!("name = 'a'\nfile = 'b'\ntake = '{take}'\nprotects = 'c'");
        toml::from_str(&entry).expect("an entry")
    }

    #[test]
    fn each_security_check_is_found_exactly_once() {
        let checks = read(&paths::root()).unwrap_or_else(|error| panic!("{}", error.message));
        assert!(checks.len() >= CHECKS_MIN, "{} security checks", checks.len());
    }

    #[test]
    fn what_is_taken_out_is_unambiguous() {
        assert_eq!(check("two").apply("one two three").unwrap(), "one  three");
        for take in ["four", "e", ""] {
            assert!(check(take).apply("one two three").is_err(), "{take}");
        }
    }
}
