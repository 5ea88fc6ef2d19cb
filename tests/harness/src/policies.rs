//! Mistakes in `root`'s table of policies: a copy of the tree has some, and what is told of each says its line.

use crate::guides::{copy_tree, in_copy};
use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;
use std::fs;

/// The table, as `root` calls it.
const TABLE: &str = "user/system/root/src/policy.rs";

/// Entries with a mistake, and what is told of them behind their lines.
const ENTRIES: [(&str, &str); 9] = [
    (
        r#"Policy { program: "hello-c", kernel_share: 99999, ..usual() },"#,
        "hello-c: kernel_share 99999: expected 1 to 256, which is all",
    ),
    (
        r#"Policy { program: "hello-rust", priority: 99, ..usual() },"#,
        "hello-rust: priority 99: expected 1 to 36, its priority_max",
    ),
    (
        r#"Policy { program: "crash-c", priority_max: 99, ..usual() },"#,
        "crash-c: priority_max 99: expected 1 to 60",
    ),
    (
        r#"Policy { program: "crash", serves: &["crash"], kernel_share: 0, ..usual() },"#,
        "crash: kernel_share 0: expected 1 to 256, which is all",
    ),
    (
        r#"Policy { program: "c-test", pages_max: 0, ..usual() },"#,
        "c-test: pages_max 0: no program runs without memory",
    ),
    (
        r#"Policy { program: "local", serves: &["local server"], ..usual() },"#,
        r#"local: "local server" is no name, which has 1 to 16 printable characters"#,
    ),
    (
        r#"Policy { program: "second", serves: &["console"], ..usual() },"#,
        r#"second: the name "console" is served by console, see user/system/root/src/policy.rs, line "#,
    ),
    (
        r#"Policy { program: "missing", serves: &["missing"], ..usual() },"#,
        "missing: there is no such program in the boot archive",
    ),
    (
        r#"Policy { program: "hello-c", ..usual() },"#,
        "hello-c: it has an entry already, which counts: user/system/root/src/policy.rs, line ",
    ),
];

/// A module that has a policy and is not in the program of the modules.
const MODULE: &str = r#"Policy { program: "weekday", serves: &["weekday"], ..usual_module() },"#;

/// What the shell then says of programs.
const SCRIPT: &str = "run nosuch\nrun missing\nrun hello-rust\ndate\nexit 0\n";

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 1] = [("mistakes_are_told_with_their_lines", mistakes_are_told_with_their_lines)];
    Vec::from(trials.map(|(name, verdict)| world.trial("input", format!("policies::{name}"), verdict)))
}

fn mistakes_are_told_with_their_lines(world: &'static World) -> Verdict {
    let tree = copy_tree(world)?;
    let table = tree.0.join(TABLE);
    let entries: String = ENTRIES.iter().map(|(entry, _)| format!("    {entry}\n")).collect();
    let text = fs::read_to_string(&table)?;
    let text = behind(&text, "static SPECIAL: &[Policy] = &[\n", &entries)?;
    let text = behind(&text, "static MODULES: &[Policy] = &[\n", &format!("    {MODULE}\n"))?;
    fs::write(&table, &text)?;
    fs::write(tree.0.join("user/system/data/clusters"), "services: clock calendar\nmore: weekday\n")?;

    let reply = in_copy(&tree.0, "./tern run", SCRIPT)?;
    reply.check_code(0)?;
    for (entry, told) in ENTRIES {
        let line = text.lines().position(|line| line.trim() == entry).ok_or("the entry is not there")? + 1;
        reply.check_contains(&format!("root: {TABLE}, line {line}: {told}"))?;
    }
    // Nothing of that is called a crash, and all else runs.
    if reply.out.contains("crashed") {
        return Err(reply.failed("a mistake is told as a crash"));
    }
    for told in [
        "modules: weekday: this program has no such module",
        "root: more (clusters, line 2) ends too often and stays down",
        "run: there is no program nosuch",
        "run: there is no program missing",
        "run: hello-rust: not allowed",
        " UTC",
    ] {
        reply.check_contains(told)?;
    }
    Ok(())
}

/// The text with more behind one of its lines.
fn behind(text: &str, line: &str, more: &str) -> Result<String, String> {
    let (before, after) = text.split_once(line).ok_or(format!("there is no {line}"))?;
    Ok(format!("{before}{line}{more}{after}"))
}
