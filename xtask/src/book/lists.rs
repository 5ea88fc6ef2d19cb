//! Lists of the book, against the code and the directories.

use super::{names, pages, text};
use crate::paths;
use std::collections::BTreeSet;

/// Names in backquotes in the first column of the tables of a page, without a slash at their end.
fn first_column(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let names = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(|name| name.trim_end_matches('/').to_string()).collect()
}

/// Targets of the links of a page.
fn links(page: &str) -> BTreeSet<String> {
    page.split("](").skip(1).filter_map(|rest| Some(rest.split([')', '#']).next()?.to_string())).collect()
}

/// Fails with the names that only one side has.
pub fn same(page: &str, listed: &BTreeSet<String>, there: &BTreeSet<String>) {
    let missing: Vec<_> = there.difference(listed).collect();
    let gone: Vec<_> = listed.difference(there).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "{page}: not in the list: {missing:?}; not there: {gone:?}"
    );
}

/// Folders of the tree, by path from the root, hidden ones and what is built left out.
fn folders(of: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(paths::root().join(of)).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.') && !["target", "out"].contains(&name.as_str())).collect()
}

#[test]
fn the_map_shows_each_top_folder() {
    let page = text("README.md");
    let map = page.split("\n## ").find(|part| part.starts_with("The map\n")).expect("The map");
    same("README.md, The map", &first_column(map), &folders(""));
}

/// Commands that programs of Linux carry out as on Linux, by the lists of the tests.
#[test]
fn commands_of_linux_are_counted() {
    let page = text("docs/guide/linux.md");
    let section = page.split("\n## ").find(|part| part.starts_with("What works\n")).expect("What works");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows = cells.filter_map(|(list, rest)| Some((list.strip_suffix(".txt")?, rest.split_once(" |")?.0)));
    let listed = rows.map(|(list, count)| format!("{list} {count}")).collect();
    // The list of Python's own tests has names of modules.
    let lists = names("tests/linux", ".txt").into_iter().filter(|list| list != "python");
    let count = |list: &String| {
        let text = text(&format!("tests/linux/{list}.txt"));
        text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '>'])).count()
    };
    let there: BTreeSet<String> = lists.map(|list| format!("{list} {}", count(&list))).collect();
    assert!(there.len() > 4, "{there:?}");
    same("docs/guide/linux.md, What works", &listed, &there);
}

/// Objects of the kernel that programs name: each has a module, and a page of the specification.
#[test]
fn the_kernels_objects_are_listed() {
    // Parts of an object of another module.
    let parts = ["block", "breakpoint", "queue"];
    let code = text("kernel/src/object/mod.rs");
    let modules = code.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let objects: BTreeSet<&str> = modules.filter(|module| !parts.contains(module)).collect();
    assert!(objects.len() > 4, "{objects:?}");
    let spec = text("docs/spec/README.md");
    let listed = spec.split("\n\n").find_map(|part| part.strip_prefix("Objects: ")).expect("Objects: …");
    let listed = links(listed);
    let there = objects.iter().map(|object| format!("{object}.md")).collect();
    same("docs/spec/README.md, Objects", &listed, &there);
    for (page, begin) in [("README.md", "The kernel knows "), ("kernel/README.md", "The microkernel: ")] {
        let text = text(page).replace('\n', " ");
        let sentence = text.split(begin).nth(1).expect(begin).split('.').next().unwrap();
        for object in &objects {
            assert!(sentence.contains(&format!("{object}s")), "{page}: {begin:?} does not name {object}s");
        }
    }
}

#[test]
fn the_specification_lists_its_pages() {
    let there = names("docs/spec", ".md").into_iter().filter(|name| name != "README");
    let there: BTreeSet<String> = there.map(|name| format!("{name}.md")).collect();
    let listed = links(&text("docs/spec/README.md"));
    let listed = listed.into_iter().filter(|link| link.ends_with(".md") && !link.contains('/')).collect();
    same("docs/spec/README.md", &listed, &there);
}

#[test]
fn the_book_lists_its_pages_and_guides() {
    let of = |folder: &str, before: &str| -> BTreeSet<String> {
        names(folder, ".md").into_iter().map(|name| format!("{before}{name}.md")).collect()
    };
    let mut there = of("docs", "");
    there.extend(of("docs/guide", "guide/"));
    there.remove("README.md");
    let listed = links(&text("docs/README.md"));
    let own = |link: &String| link.ends_with(".md") && (!link.contains('/') || link.starts_with("guide/"));
    same("docs/README.md", &listed.into_iter().filter(own).collect(), &there);
}

#[test]
fn decisions_are_listed_with_their_titles() {
    let index = text("docs/decisions/README.md");
    let mut lines = BTreeSet::new();
    for name in names("docs/decisions", ".md").into_iter().filter(|name| name != "README") {
        let page = text(&format!("docs/decisions/{name}.md"));
        let number = &name[..4];
        let title = page.lines().next().unwrap().trim_start_matches("# ").trim_start_matches(number);
        let title = title.trim_start_matches([' ', '.', ':', '—']);
        lines.insert(format!("| [{number}]({name}.md) | {title} |"));
    }
    let listed = index.lines().filter(|line| line.starts_with("| [")).map(str::to_string).collect();
    same("docs/decisions/README.md", &listed, &lines);
}

#[test]
fn boot_options_are_listed() {
    let code = text("kernel/src/options.rs");
    let table = code.lines().filter_map(|line| line.strip_prefix("//! | `")?.split('=').next());
    let body = code.split("match key {").nth(1).unwrap().split("_ =>").next().unwrap();
    let read = body.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    same("kernel/src/options.rs", &table.map(str::to_string).collect(), &read.map(str::to_string).collect());
}

/// Each row says whether the technique is there; a row that is not wholly there says what is missing.
#[test]
fn techniques_say_whether_they_work() {
    let page = text("docs/techniques.md");
    let mut count = 0;
    for line in page
        .lines()
        .filter(|line| line.starts_with("| C") || line.starts_with("| P") || line.starts_with("| D"))
    {
        let state = line.split(" | ").nth(2).unwrap_or("").trim();
        let missing = state.strip_prefix("in part: ").or_else(|| state.strip_prefix("not built: "));
        assert!(state == "works" || missing.is_some_and(|what| what.len() > 5), "{state:?} in {line}");
        count += 1;
    }
    assert!(count > 60, "{count} rows");
    let part = |row: &str| page.lines().any(|line| line.starts_with(&format!("| {row} |")));
    let rows = (1..=24).map(|n| format!("C{n}")).chain((1..=23).map(|n| format!("P{n}")));
    let missing: Vec<String> = rows.filter(|row| !part(row)).collect();
    assert!(missing.is_empty(), "no rows for {missing:?}");
}

/// Links between files lead to a file or a folder.
#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = paths::root().join(&page).parent().unwrap().to_path_buf();
        // No link stands in code.
        let whole = text(&page);
        let prose: String = whole.split('`').step_by(2).collect();
        let links = links(&prose).into_iter().filter(|link| !link.contains("://"));
        broken.extend(links.filter(|link| !folder.join(link).exists()).map(|link| format!("{page}: {link}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Starts of paths that pages name and that are not there: programs that the guides write, and a machine that nobody has ported to.
const NOT_THERE: [(&str, &str); 4] = [
    ("README.md", "user/apps/NAME"),
    ("docs/guide/", "user/apps/"),
    ("docs/porting.md", "kernel/src/arch/aarch64"),
    ("docs/porting.md", "kernel/src/entry/aarch64"),
];

/// Paths from the root that stand in backquotes in a page, outside of fenced blocks.
fn quoted_paths<'a>(page: &'a str, tops: &BTreeSet<String>) -> Vec<&'a str> {
    let prose = page.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    let is_path = |quoted: &&str| {
        let names = quoted.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
        names && quoted.split_once('/').is_some_and(|(top, _)| tops.contains(top))
    };
    prose.filter(is_path).collect()
}

#[test]
fn files_that_pages_name_exist() {
    let (tops, mut gone, mut count) = (folders(""), Vec::new(), 0);
    for page in pages() {
        for path in quoted_paths(&text(&page), &tops) {
            let is_meant =
                NOT_THERE.iter().any(|(pages, start)| page.starts_with(pages) && path.starts_with(start));
            count += 1;
            if !is_meant && !paths::root().join(path).exists() {
                gone.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(gone.is_empty(), "named, and not there:\n{}", gone.join("\n"));
    assert!(count > 100, "only {count} paths were found in the book");
}

#[test]
fn paths_in_backquotes_are_found() {
    let tops = BTreeSet::from(["kernel".to_string()]);
    let page = "`kernel/src/gone.rs` and `kernel/*`, `src/a.rs`\n```\n`kernel/b`\n```\n[`kernel/c.s`](x)";
    assert_eq!(quoted_paths(page, &tops), ["kernel/src/gone.rs", "kernel/c.s"]);
}

/// Folders below one, and the READMEs on the way to them. A room is a folder of crates, and what it holds is looked at instead.
fn programs(folder: &str, found: &mut BTreeSet<String>, readmes: &mut String) {
    if paths::root().join(folder).join("README.md").exists() {
        readmes.push_str(&text(&format!("{folder}/README.md")));
    }
    for name in folders(folder) {
        let inside = format!("{folder}/{name}");
        let is_crate = |folder: &str| paths::root().join(folder).join("Cargo.toml").exists();
        if !is_crate(&inside) && folders(&inside).iter().any(|name| is_crate(&format!("{inside}/{name}"))) {
            programs(&inside, found, readmes);
        } else {
            found.insert(name);
        }
    }
}

#[test]
fn programs_and_libraries_are_listed() {
    let (mut there, mut readmes) = (BTreeSet::new(), String::new());
    programs("user", &mut there, &mut readmes);
    assert!(there.len() > 10, "{there:?}");
    // A table may name a room's folder before the program's: `apps/shell`.
    let listed = first_column(&readmes).into_iter();
    let listed: BTreeSet<String> =
        listed.map(|name| name.rsplit('/').next().unwrap_or(&name).to_string()).collect();
    same("the READMEs of user/", &listed, &there);
}

/// A row of the states of threads: state, errand, and the operations in alphabetical order.
fn state(state: &str, errand: &str, operations: Vec<&str>) -> String {
    let mut operations = operations;
    operations.sort_unstable();
    format!("{state}, {errand}: {}", operations.join(" "))
}

#[test]
fn the_states_of_threads_are_those_that_the_kernel_asserts() {
    const PAGE: &str = "docs/spec/thread.md";
    let page = text(PAGE);
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    let page: &'static str = page.leak();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")).map(|rest| {
        let cells: Vec<&'static str> = rest.split(" | ").collect();
        let operations = match quoted(cells[2]) {
            all if cells[2].starts_with("any but") => {
                all.into_iter().map(|it| it.trim()).chain(["but"]).collect()
            }
            none if none.is_empty() => vec!["any"],
            some => some,
        };
        state(cells[0].trim_end_matches('`'), cells[1].trim_matches('`'), operations)
    });
    let listed: BTreeSet<String> = rows.collect();
    let code = text("kernel/src/check/states.rs");
    let arms = code.lines().filter_map(|line| line.trim().strip_prefix("(State::")?.strip_suffix(','));
    let there = arms.map(|arm| {
        let (pair, fits) = arm.split_once(") => ").unwrap();
        let (name, errand) = pair.split_once(", ").unwrap();
        let mut operations: Vec<&str> = match fits.split_once("(operation, ") {
            None => vec!["any"],
            Some((_, names)) => {
                names.split(" | ").map(|name| name.split([' ', ')']).next().unwrap()).collect()
            }
        };
        if fits.starts_with('!') {
            operations.push("but");
        }
        state(name, errand.strip_prefix("Errand::").unwrap_or("any"), operations)
    });
    same(PAGE, &listed, &there.collect());
}
