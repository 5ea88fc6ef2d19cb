//! The list of installed packages: a file of the root, as dpkg has it, so that apt reads it, and dpkg itself where it runs.
//!
//! It is a sequence of stanzas with blank lines between them, each of which is what a package says of itself, and that it is installed.

use super::apt::field;
use std::collections::BTreeMap;

/// Where it is, from the root of Linux on.
pub const PATH: &str = "var/lib/dpkg/status";

/// The stanzas of a list, by package.
fn stanzas(list: &str) -> BTreeMap<&str, &str> {
    let stanzas = list.split("\n\n").map(str::trim).filter(|stanza| !stanza.is_empty());
    stanzas.filter_map(|stanza| Some((field(stanza, "Package")?, stanza))).collect()
}

/// Names and versions of the packages in a list, in alphabetical order.
pub fn installed(list: &str) -> Vec<(String, String)> {
    let version = |stanza| field(stanza, "Version").unwrap_or("unknown").to_string();
    stanzas(list).into_iter().map(|(name, stanza)| (name.to_string(), version(stanza))).collect()
}

/// Whether a package is in a list.
pub fn has(list: &str, name: &str) -> bool {
    stanzas(list).contains_key(name)
}

/// A list with these packages, too. Each is what the package says of itself, and replaces what is there of that name.
pub fn with(list: &str, packages: &[String]) -> String {
    let mut all: BTreeMap<String, String> =
        stanzas(list).into_iter().map(|(name, stanza)| (name.to_string(), stanza.to_string())).collect();
    for stanza in packages {
        let Some(name) = field(stanza, "Package") else { continue };
        let others = stanza.trim().lines().filter(|line| !line.starts_with("Package:"));
        let lines: Vec<&str> = others.collect();
        let whole = format!("Package: {name}\nStatus: install ok installed\n{}", lines.join("\n"));
        all.insert(name.to_string(), whole);
    }
    all.into_values().map(|stanza| stanza + "\n\n").collect()
}
