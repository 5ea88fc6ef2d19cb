//! Interface files of other projects, which are not part of this one: verdicts against `EXPECT.tsv`, where
//! `../shared/idl-corpus` lies beside the repository.

use std::path::{Path, PathBuf};

use quill::driver;
use quill::session::Options;

/// The directory of the corpus, and its rows: path and verdict.
fn corpus() -> Option<(PathBuf, Vec<(String, String)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let dir = root.join("../shared/idl-corpus");
    let Ok(table) = std::fs::read_to_string(dir.join("EXPECT.tsv")) else {
        println!("{} is absent: nothing to check", dir.display());
        return None;
    };
    let rows = table.lines().filter(|l| !l.starts_with('#')).filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    Some((dir, rows.collect()))
}

fn options(dir: &Path, file: &str) -> Options {
    let dirs: &[&str] = match file {
        f if f.starts_with("corba/omniorb") => &["corba/omniorb", "corba/omniorb/COS"],
        f if f.starts_with("dce/freedce") => &["dce/freedce/include", "dce/freedce"],
        f if f.starts_with("dce/wine") => &["dce/wine"],
        _ => &[],
    };
    Options { include_dirs: dirs.iter().map(|d| dir.join(d)).collect(), ..Options::default() }
}

#[test]
fn verdicts() {
    let Some((dir, rows)) = corpus() else { return };
    let mut wrong = Vec::new();
    // By the first two parts of the path: rows, accepted, rejected.
    let mut table: Vec<(String, [usize; 3])> = Vec::new();
    for (file, verdict) in &rows {
        let out = driver::compile(&dir.join(file), options(&dir, file)).unwrap();
        let found = if out.accepted() { "accept" } else { "reject" };
        if found != verdict {
            wrong.push(format!("{file}: {verdict} expected\n{}", out.messages()));
        }
        let group: Vec<&str> = file.split('/').take(2).collect();
        let group = group.join("/");
        if table.last().is_none_or(|(g, _)| *g != group) {
            table.push((group, [0; 3]));
        }
        let counts = &mut table.last_mut().unwrap().1;
        counts[0] += 1;
        counts[if out.accepted() { 1 } else { 2 }] += 1;
    }
    println!("{:<20} {:>6} {:>9} {:>9}", "origin", "files", "accepted", "rejected");
    for (group, [files, accepted, rejected]) in &table {
        println!("{group:<20} {files:>6} {accepted:>9} {rejected:>9}");
    }
    println!("{:<20} {:>6} mismatches", "", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
