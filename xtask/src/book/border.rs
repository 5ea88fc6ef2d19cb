//! The border between the kernel and the machine: what the floor imports, what is used of it, and which names portable code may say.

use super::text;
use crate::paths;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What files below `kernel/src/arch` may import of the kernel.
const BELOW: [&str; 4] = ["arch", "kprintln", "layout", "param"];

/// What belongs to a machine, or is for tests of the simulated one: it may use all of its machine.
const MACHINES: [&str; 3] = ["arch/", "entry/", "sim.rs"];

/// Rust files of the kernel with their paths below `kernel/src`, and their text without comments and tests.
fn sources() -> Vec<(String, String)> {
    let root = paths::root().join("kernel/src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.sort();
    assert!(found.len() > 50, "the kernel has moved");
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.push((name, code(&fs::read_to_string(&path).unwrap())));
        }
    }
}

/// A text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.map(|line| format!("{line}\n")).collect()
}

/// The words after a path such as `crate::`, wherever it stands: the first of each, and all of a list in braces.
fn after(code: &str, path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(path) {
        let is_whole =
            !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
        if is_whole {
            found.extend(heads(&code[at + path.len()..]));
        }
    }
    found
}

/// The first names of what follows a path: one name, or those of a list.
fn heads(rest: &str) -> Vec<String> {
    let name = |part: &str| -> String {
        part.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(list) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                found.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty() && name != "self");
    found
}

#[test]
fn the_machine_imports_nothing_of_the_kernel() {
    let below: BTreeSet<String> = BELOW.map(String::from).into();
    for (name, code) in sources().iter().filter(|(name, _)| name.starts_with("arch/")) {
        let imports = after(code, "crate::");
        let more: Vec<_> = imports.difference(&below).cloned().collect();
        assert!(
            more.is_empty(),
            "kernel/src/{name} imports {more:?}; the machine is given words, tables and pointers"
        );
    }
}

#[test]
fn nothing_but_a_machines_own_code_calls_its_entries() {
    for (name, code) in sources().iter().filter(|(name, _)| !name.starts_with("entry/")) {
        assert!(!after(code, "crate::").contains("entry"), "kernel/src/{name} calls up into the entries");
    }
}

/// Names in links of the list, `[`name`]`.
fn listed(page: &str) -> BTreeSet<String> {
    let list = page.split("# What the kernel uses").nth(1).expect("the list of names");
    let items = list.lines().skip(1).take_while(|line| line.starts_with("//!"));
    let items = items.filter_map(|line| line.strip_prefix("//! * [`")?.split("`]: ").next());
    items.map(String::from).collect()
}

#[test]
fn the_list_of_what_the_kernel_uses_of_the_machine_is_complete() {
    let listed = listed(&text("kernel/src/arch/mod.rs"));
    assert!(listed.len() > 20, "{listed:?}");
    let mut used = BTreeSet::new();
    for (name, code) in sources() {
        if !MACHINES.iter().any(|machine| name.starts_with(machine)) {
            used.extend(after(&code, "crate::arch::"));
            used.extend(after(&code, "arch::"));
        }
    }
    // Of what is for people, the macros are used.
    used.insert("print".into());
    super::lists::same("kernel/src/arch/mod.rs", &listed, &used);
}

/// Registers of x86-64 by name, in code that is not of a machine.
#[test]
fn portable_code_names_no_register() {
    let registers = "rax rbx rcx rdx rsi rdi rbp rsp rip rflags eax r8 r9 r10 r11 r12 r13 r14 r15 cr3";
    let registers: BTreeSet<String> =
        registers.split(' ').flat_map(|name| [name.to_string(), name.to_uppercase()]).collect();
    for (name, code) in sources() {
        if MACHINES.iter().any(|machine| name.starts_with(machine)) {
            continue;
        }
        let words = |line: &str| {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').map(String::from);
            words.any(|word| registers.contains(&word))
        };
        let lines: Vec<_> = code.lines().filter(|line| words(line)).collect();
        assert!(lines.is_empty(), "kernel/src/{name} names registers: {lines:#?}");
    }
}

#[test]
fn names_after_a_path_are_found() {
    let names = |code: &str| after(code, "crate::").into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names("use crate::{arch::{a, b}, layout};\nlet x = crate::sched::Next;"), "arch layout sched");
    assert_eq!(names("$crate::arch::print"), "");
    assert_eq!(
        after("arch::four_level::x; core::arch::asm!()", "arch::").into_iter().next().unwrap(),
        "four_level"
    );
}
