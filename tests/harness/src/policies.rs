//! Mistakes in a system description: a copy of the tree has some, and what is told of each says its line.

use crate::copies::{copy_tree, in_copy};
use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;
use std::fs;

/// The description.
const DESCRIPTION: &str = "systems/default.toml";

/// Entries with a mistake, and what is told of them behind their lines.
const ENTRIES: [(&str, &str); 3] = [
    (
        "[[program]]\nname = \"hello-c\"\nkernel-share = 99999\n",
        "kernel-share 99999: expected 1 to 256, which is all",
    ),
    (
        "[[program]]\nname = \"second\"\nserves = [\"console\"]\n",
        "the name \"console\" is served by console already",
    ),
    ("[[program]]\nname = \"missing\"\n", "missing: there is no program missing in the boot archive"),
];

/// A module that has an entry and is not in the program of the modules. It works before the shell does.
const MODULE: &str = r#"[[module]]
name = "weekday"
serves = ["weekday"]
priority = 54
priority-max = 54

[[task]]
name = "more"
modules = ["weekday"]
"#;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 1] = [("mistakes_are_told_with_their_lines", mistakes_are_told_with_their_lines)];
    Vec::from(trials.map(|(name, verdict)| world.trial("input", format!("policies::{name}"), verdict)))
}

fn mistakes_are_told_with_their_lines(world: &'static World) -> Verdict {
    let tree = copy_tree(world)?;
    let file = tree.0.join(DESCRIPTION);
    let good = fs::read_to_string(&file)?;
    let entries: Vec<&str> = ENTRIES.iter().map(|(entry, _)| *entry).collect();
    let bad = format!("{good}\n{}", entries.join("\n"));
    fs::write(&file, &bad)?;
    let reply = in_copy(&tree.0, "./tern run", "exit 0\n")?;
    reply.check_code(1)?;
    for (entry, told) in ENTRIES {
        let before = bad.split(entry).next().ok_or("the entry is not there")?;
        let line = before.lines().count() + 1;
        reply.check_error(&format!("{DESCRIPTION}, line {line}: {told}"))?;
    }

    // What only the machine finds out is told there, with the line; all else runs.
    fs::write(&file, format!("{good}\n{MODULE}"))?;
    let line = good.lines().count() + 8;
    let reply = in_copy(&tree.0, "./tern run", "run nosuch\ndate\nexit 0\n")?;
    reply.check_code(0)?;
    for told in [
        "modules: weekday: this program has no such module",
        &format!("root: more ({DESCRIPTION}, line {line}) ends too often and stays down"),
        "run: there is no program nosuch",
        " UTC",
    ] {
        reply.check_contains(told)?;
    }
    Ok(())
}
