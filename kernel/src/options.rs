//! Boot options: the words of the command line.
//!
//! | word | meaning |
//! |---|---|
//! | `fastpath=on`, `fastpath=off` | whether short ipc takes the assembly path; on by default |
//! | `pti=on`, `pti=off` | whether page tables are isolated, which turns the fast path off; by default as the processor needs it |
//! | `verw=on`, `verw=off` | whether the processor's buffers are cleared at each exit; by default as the processor needs it |
//! | `ibrs=on`, `ibrs=off` | whether predictions of branches are kept apart: from the kernel's, and between prediction domains; where that is offered; on by default |
//! | `check=SEED` | the kernel checks itself at each exit that is not the fast path's, and all of itself at intervals that follow from the number; for tests |
//! | `exhaust=on`, `exhaust=off` | whether programs may order that kernel memory runs out, for tests; off by default |
//! | `kmem=SIZE` | the kernel's own memory, in bytes or with K, M or G; by default a share of all memory |
//! | `tags=N` | how many tasks have a tag of address spaces for themselves, on a processor that has tags; for tests |
//! | `init=NAME` | for the first user programs, which read the command line themselves |
//! | `args=TEXT` | likewise |
//! | `env=TEXT` | likewise |
//! | `seed=N` | likewise, and checked to be a number |
//!
//! A word that the kernel does not know stops the boot: a misspelt option must not pass unnoticed.

use crate::util::tags::TAG_MAX;
use core::fmt;

/// Options that the command line sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options<'a> {
    /// Whether short ipc takes the assembly path.
    pub fast_path: bool,
    /// Whether page tables are isolated; `None`: as the processor needs it.
    pub pti: Option<bool>,
    /// Whether buffers are cleared at each exit; `None`: as the processor needs it.
    pub verw: Option<bool>,
    /// Whether predictions of branches are kept apart; `None`: where the processor offers it.
    pub ibrs: Option<bool>,
    /// Seed of the intervals between the large checks; `None`: the kernel does not check itself.
    pub check: Option<u64>,
    /// Whether programs may make allocations of the kernel fail.
    pub exhaust: bool,
    /// Size of the kernel's own memory, in bytes.
    pub pool_bytes: Option<u64>,
    /// Number of tags of address spaces that tasks have for themselves, at most.
    pub tags: u16,
    /// Value of `init=`, empty if absent.
    pub init: &'a str,
    /// Value of `args=`, empty if absent.
    pub args: &'a str,
    /// Value of `seed=`.
    pub seed: Option<u64>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            fast_path: true,
            pti: None,
            verw: None,
            ibrs: None,
            check: None,
            exhaust: false,
            pool_bytes: None,
            tags: TAG_MAX,
            init: "",
            args: "",
            seed: None,
        }
    }
}

/// A word that is no option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadOption<'a> {
    /// No option has this name.
    Unknown(&'a str),
    /// The option exists, the value makes no sense.
    Value(&'a str),
}

impl fmt::Display for BadOption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            BadOption::Unknown(word) => write!(f, "unknown boot option {word:?}"),
            BadOption::Value(word) => write!(f, "boot option {word:?} has a value that makes no sense"),
        }
    }
}

/// Reads a command line.
pub fn parse(command_line: &str) -> Result<Options<'_>, BadOption<'_>> {
    let mut options = Options::default();
    for word in command_line.split_ascii_whitespace() {
        let (key, value) = word.split_once('=').ok_or(BadOption::Unknown(word))?;
        let bad = BadOption::Value(word);
        match key {
            "fastpath" => options.fast_path = switch(value).ok_or(bad)?,
            "pti" => options.pti = Some(switch(value).ok_or(bad)?),
            "verw" => options.verw = Some(switch(value).ok_or(bad)?),
            "ibrs" => options.ibrs = Some(switch(value).ok_or(bad)?),
            "check" => options.check = Some(number(value).ok_or(bad)?),
            "exhaust" => options.exhaust = switch(value).ok_or(bad)?,
            "kmem" => options.pool_bytes = Some(size(value).ok_or(bad)?),
            "tags" => options.tags = tags(value).ok_or(bad)?,
            "init" => options.init = value,
            "args" => options.args = value,
            // An option of `root`, which reads it by itself.
            "env" => {}
            "seed" => options.seed = Some(number(value).ok_or(bad)?),
            _ => return Err(BadOption::Unknown(word)),
        }
    }
    Ok(options)
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Decimal digits only: `parse` alone would also take a sign.
fn number(value: &str) -> Option<u64> {
    if value.bytes().all(|byte| byte.is_ascii_digit()) { value.parse().ok() } else { None }
}

fn tags(value: &str) -> Option<u16> {
    let tags = number(value)?.try_into().ok()?;
    (1..=TAG_MAX).contains(&tags).then_some(tags)
}

fn size(value: &str) -> Option<u64> {
    let (digits, shift) = match value.as_bytes().last()? {
        b'K' | b'k' => (&value[..value.len() - 1], 10),
        b'M' | b'm' => (&value[..value.len() - 1], 20),
        b'G' | b'g' => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    number(digits)?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_options() {
        let options =
            parse(" fastpath=off  pti=off verw=on ibrs=off check=5 exhaust=on kmem=16M tags=7\tinit=shell args=a,b=c env=A=b seed=18446744073709551615\n")
                .unwrap();
        let expected = Options {
            fast_path: false,
            pti: Some(false),
            verw: Some(true),
            ibrs: Some(false),
            check: Some(5),
            exhaust: true,
            pool_bytes: Some(16 << 20),
            tags: 7,
            init: "shell",
            args: "a,b=c",
            seed: Some(u64::MAX),
        };
        assert_eq!(options, expected);
        assert_eq!(parse(""), Ok(Options::default()));
    }

    #[test]
    fn sizes() {
        let expected =
            [("4096", 4096), ("8K", 8192), ("8k", 8192), ("3m", 3 << 20), ("2G", 2 << 30), ("0", 0)];
        for (text, bytes) in expected {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in
            ["", "K", "1T", "-1", "+1", "1 M", "1MM", "99999999999999999999", "18446744073709551615K", "1é"]
        {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn words_that_are_no_options() {
        for word in ["quiet", "fpu=lazy", "Fastpath=on", "=", "=x", "kmemx=1", "\u{fe}=1"] {
            assert_eq!(parse(word), Err(BadOption::Unknown(word)));
        }
        for word in [
            "fastpath=",
            "fastpath=yes",
            "pti=",
            "verw=1",
            "ibrs=",
            "check=on",
            "kmem=",
            "kmem=all",
            "tags=0",
            "tags=4095",
            "tags=70000",
            "seed=x",
            "seed=",
            "seed=-1",
        ] {
            assert_eq!(parse(word), Err(BadOption::Value(word)));
        }
        assert_eq!(std::format!("{}", parse("seed=1 foo").unwrap_err()), "unknown boot option \"foo\"");
    }
}
