//! Rooms that stand on each other: imports go only downwards.

use super::{names, text};

const IPC: &str = "kernel/src/ipc";

/// The rooms of ipc, from the ground up: the table in the head of `mod.rs`.
fn floors() -> Vec<String> {
    let head = text(&format!("{IPC}/mod.rs"));
    let rows =
        head.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").nth(1).map(String::from));
    rows.flat_map(|rooms| rooms.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()).collect()
}

/// Rooms of the folder that a file imports or names, by `super::` or by their path.
fn imported(source: &str, rooms: &[String]) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for start in ["super::", "ipc::"] {
        for (at, _) in code.match_indices(start) {
            let rest = &code[at + start.len()..];
            // A group is the text up to its closing brace; nested groups close later, which names rooms all the same.
            let end = if rest.starts_with('{') { rest.find("};") } else { rest.find(|c: char| !is_name(c)) };
            let words = rest[..end.unwrap_or(rest.len())].split(|c: char| !is_name(c));
            found.extend(words.filter(|word| rooms.iter().any(|room| room == word)).map(String::from));
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
        let mut below = imported(&text(&format!("{IPC}/{room}.rs")), &floors);
        below.sort();
        below.dedup();
        for other in below.iter().filter(|other| *other != room) {
            arrows += 1;
            if floors.iter().position(|name| name == other) > Some(floor) {
                wrong.push(format!("{IPC}/{room}.rs imports {other}, which stands above it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Half of what rooms without a circle could have.
    let most = floors.len() * (floors.len() - 1) / 4;
    assert!(arrows <= most, "{arrows} arrows between the rooms of ipc; {most} are the most");
}

#[test]
fn imports_are_found_in_all_their_forms() {
    let rooms: Vec<String> = ["wait", "item", "end"].map(String::from).into();
    let source =
        "use super::wait::{self, Sent};\nuse super::{\n    item,\n    end::abort,\n};\n// super::item";
    assert_eq!(imported(source, &rooms), ["wait", "item", "end"]);
    assert_eq!(imported("crate::ipc::end::abort(k)", &rooms), ["end"]);
    assert!(imported("use crate::lend::Sent;\nlet wait = 1;", &rooms).is_empty());
}
