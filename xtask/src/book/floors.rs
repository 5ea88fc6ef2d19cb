//! Rooms that stand on each other: imports go only downwards, and what runs in a circle is small.

use super::imports::{self, File};
use super::{names, text};
use std::collections::{BTreeMap, BTreeSet};

const IPC: &str = "kernel/src/ipc";

/// The rooms of ipc, from the ground up: the table in the head of `mod.rs`.
fn floors() -> Vec<String> {
    let head = text(&format!("{IPC}/mod.rs"));
    let rows =
        head.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").nth(1).map(String::from));
    rows.flat_map(|rooms| rooms.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()).collect()
}

/// Rooms of ipc that a file imports or names.
fn imported(file: &File, rooms: &[String]) -> BTreeSet<String> {
    let imports = file.imports();
    let names = imports.iter().filter_map(|path| path.strip_prefix("ipc::")?.split("::").next());
    names.filter(|name| rooms.iter().any(|room| room == name)).map(String::from).collect()
}

#[test]
fn the_table_of_ipc_names_each_room() {
    let mut listed = floors();
    listed.sort();
    let rooms: Vec<String> = names(IPC, ".rs").into_iter().filter(|name| name != "mod").collect();
    assert_eq!(listed, rooms, "the table in {IPC}/mod.rs lists the rooms");
}

#[test]
fn rooms_of_ipc_import_only_what_is_below() {
    let floors = floors();
    let (mut wrong, mut arrows) = (Vec::new(), 0);
    for (floor, room) in floors.iter().enumerate() {
        let file = File::new(&format!("ipc/{room}.rs"), &text(&format!("{IPC}/{room}.rs")));
        for other in imported(&file, &floors).iter().filter(|other| *other != room) {
            arrows += 1;
            if floors.iter().position(|name| name == other) > Some(floor) {
                wrong.push(format!("{IPC}/{room}.rs imports {other}, which stands above it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Half of the arrows that rooms without a circle could have.
    let most = floors.len() * (floors.len() - 1) / 4;
    assert!(arrows <= most, "{arrows} arrows between the rooms of ipc; {most} are the most");
}

/// Modules by the modules that they import, both as paths from the root of the crate.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Most files that may import each other in one circle.
const CIRCLE_MAX: usize = 6;

/// Modules at the top that are of a machine, or for tests: the rest of the kernel is portable.
const NOT_PORTABLE: [&str; 4] = ["arch", "entry", "sim", "check"];

/// Arrows between the files of a list. An import leads to the file of the longest module that its path begins with.
fn arrows(files: &[File]) -> Arrows {
    let modules: BTreeSet<String> = files.iter().map(|file| file.module.join("::")).collect();
    let module = |path: &String| {
        let ends = path.match_indices("::").map(|(end, _)| end).chain([path.len()]);
        ends.map(|end| path[..end].to_string()).filter(|start| modules.contains(start)).last()
    };
    let arrows = files.iter().map(|file| {
        let own = file.module.join("::");
        let others = file.imports().iter().filter_map(module).filter(|other| *other != own).collect();
        (own, others)
    });
    arrows.collect()
}

/// Modules that can be reached from one along the arrows.
fn reached<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(arrows[module].iter().filter(|other| found.insert(*other)).map(String::as_str));
    }
    found
}

/// The most modules that all reach each other, in the order of their names; empty if there is no circle.
fn largest_circle(arrows: &Arrows) -> Vec<&String> {
    let reached: BTreeMap<&String, _> =
        arrows.keys().map(|module| (module, reached(arrows, module))).collect();
    let circle = |module: &String| {
        let back = |other: &&String| reached[other].contains(module);
        reached[module].iter().copied().filter(back).collect::<Vec<_>>()
    };
    arrows.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn portable_files_import_each_other_in_small_circles_only() {
    let is_portable = |file: &File| {
        let is_test = file.module.last().is_some_and(|name| name.ends_with("tests"));
        !is_test && file.module.first().is_some_and(|top| !NOT_PORTABLE.contains(&top.as_str()))
    };
    let files: Vec<File> = imports::kernel().into_iter().filter(is_portable).collect();
    assert!(files.len() > 50, "only {} files are portable", files.len());
    let arrows = arrows(&files);
    let circle = largest_circle(&arrows);
    assert!(circle.len() <= CIRCLE_MAX, "{} files import each other in a circle: {circle:#?}", circle.len());
    const PAGE: &str = "docs/decisions/0076-rooms-of-the-kernel.md";
    let page = text(PAGE);
    let row = page.lines().find_map(|line| line.strip_prefix("| files in the largest circle | "));
    let said: usize =
        row.and_then(|row| row.trim_end_matches(" |").split(" | ").last()?.parse().ok()).expect(PAGE);
    assert_eq!(said, circle.len(), "{PAGE}: files in the largest circle: {circle:?}");
}

#[test]
fn a_circle_is_found() {
    let files = [
        ("a.rs", "use crate::b::f;"),
        ("b.rs", "use crate::c::{Data, g};"),
        ("c/mod.rs", "use super::a;"),
        ("c/d.rs", "use super::Data; use crate::b;"),
        ("lib.rs", "mod a;"),
    ];
    let files = files.map(|(name, text)| File::new(name, text));
    assert_eq!(largest_circle(&arrows(&files)), ["a", "b", "c"]);
    assert_eq!(largest_circle(&arrows(&files[1..])), [""; 0]);
}
