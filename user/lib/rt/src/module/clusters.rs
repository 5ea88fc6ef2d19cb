//! The file that says which modules share a task. `root` reads it at every boot.
//!
//! A line is a task's name, a colon and its modules' names. `#` begins a comment.

use alloc::vec::Vec;
use api::Name;

/// Its name in the boot archive.
pub const FILE: &str = "clusters";

/// A task that is made of modules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster<'a> {
    /// The task's name.
    pub name: &'a str,
    /// Its modules.
    pub modules: Vec<&'a str>,
}

/// Mistake in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake<'a> {
    /// There is no name before a colon.
    NoTask,
    /// There is no module behind it.
    NoModule,
    /// This is no name: too long, or not printable ASCII.
    BadName(&'a str),
    /// This name was used before: of tasks and of modules each name is there once.
    Twice(&'a str),
    /// The task's name is that of a file, so it could be taken for the program.
    File(&'a str),
    /// There is no such module.
    Unknown(&'a str),
}

/// Modules and names that there are besides.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Whether the boot archive has a file of this name.
    pub is_file: &'a dyn Fn(&str) -> bool,
    /// Whether there is a module of this name.
    pub is_module: &'a dyn Fn(&str) -> bool,
}

impl core::fmt::Display for Mistake<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Mistake::NoTask => f.write_str("expected a task's name and a colon"),
            Mistake::NoModule => f.write_str("no module behind the colon"),
            Mistake::BadName(name) => write!(f, "{name} is no name"),
            Mistake::Twice(name) => write!(f, "{name} is there twice"),
            Mistake::File(name) => write!(f, "{name} is the name of a file"),
            Mistake::Unknown(name) => write!(f, "there is no module {name}"),
        }
    }
}

/// The clusters, each with the number of its line. A line with a mistake is none.
pub fn clusters<'a>(text: &'a str, known: Known) -> Vec<(usize, Result<Cluster<'a>, Mistake<'a>>)> {
    let mut clusters: Vec<(usize, Result<Cluster, Mistake>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let earlier: Vec<&Cluster> =
                clusters.iter().filter_map(|(_, cluster)| cluster.as_ref().ok()).collect();
            let cluster = cluster(line, &earlier, known);
            clusters.push((index + 1, cluster));
        }
    }
    clusters
}

fn cluster<'a>(line: &'a str, earlier: &[&Cluster], known: Known) -> Result<Cluster<'a>, Mistake<'a>> {
    let (name, rest) = line.split_once(':').ok_or(Mistake::NoTask)?;
    let name = name.trim();
    if name.is_empty() {
        return Err(Mistake::NoTask);
    }
    Name::new(name).ok_or(Mistake::BadName(name))?;
    if (known.is_file)(name) {
        return Err(Mistake::File(name));
    }
    let mut modules = Vec::new();
    for module in rest.split_whitespace() {
        if !(known.is_module)(module) {
            return Err(Mistake::Unknown(module));
        }
        if modules.contains(&module) || earlier.iter().any(|other| other.modules.contains(&module)) {
            return Err(Mistake::Twice(module));
        }
        modules.push(module);
    }
    if modules.is_empty() {
        return Err(Mistake::NoModule);
    }
    if earlier.iter().any(|other| other.name == name) {
        return Err(Mistake::Twice(name));
    }
    Ok(Cluster { name, modules })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// There are three modules and a shell.
    fn parse(text: &str) -> Vec<(usize, Result<Cluster<'_>, Mistake<'_>>)> {
        let is_module = |name: &str| ["clock", "calendar", "disk"].contains(&name);
        clusters(text, Known { is_file: &|name| name == "shell", is_module: &is_module })
    }

    #[test]
    fn lines_are_clusters() {
        let text = "# all of them\n\n one: clock  calendar # here\ntwo:disk\n";
        let one = Cluster { name: "one", modules: vec!["clock", "calendar"] };
        let two = Cluster { name: "two", modules: vec!["disk"] };
        assert_eq!(parse(text), [(3, Ok(one)), (4, Ok(two))]);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, mistake) in [
            ("clock", Mistake::NoTask),
            (": clock", Mistake::NoTask),
            ("one: # clock", Mistake::NoModule),
            ("o n e: clock", Mistake::BadName("o n e")),
            ("seventeen-bytes--: clock", Mistake::BadName("seventeen-bytes--")),
            ("shell: clock", Mistake::File("shell")),
            ("one: clock nosuch", Mistake::Unknown("nosuch")),
            ("one: clock clock", Mistake::Twice("clock")),
        ] {
            assert_eq!(parse(text), [(1, Err(mistake))], "{text}");
        }
        assert_eq!(parse("one: clock\ntwo: clock")[1], (2, Err(Mistake::Twice("clock"))));
        assert_eq!(parse("one: clock\none: disk")[1], (2, Err(Mistake::Twice("one"))));
        // A program that was refused has no name, and no modules.
        assert!(parse("one: disk clock clock\none: clock disk")[1].1.is_ok());
    }
}
