//! Commands that read what the one before them in a pipe has printed, or files.

use crate::shell::{STATUS_USAGE, Shell};
use alloc::vec::Vec;
use files::Directory;
use rt::println;

/// Bytes of a file, at most.
const LEN_MAX: usize = 1 << 20;

/// Lines that `head` shows if nobody says how many.
const HEAD: usize = 10;

/// Input of a command: from the pipe, or from files. If there is none, the status.
fn input(shell: &mut Shell, name: &str, paths: &[&str]) -> Result<Vec<u8>, i32> {
    if paths.is_empty() {
        return shell.input.take().ok_or_else(|| {
            println!("{name}: expected a pipe or a file to read from");
            STATUS_USAGE
        });
    }
    let mut all = Vec::new();
    for path in paths {
        let text = Directory::root().and_then(|root| root.read(shell.place.path_of(path), LEN_MAX));
        all.extend(text.map_err(|failure| {
            println!("{name}: {path}: {failure}");
            1
        })?);
    }
    Ok(all)
}

/// Lines without their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.strip_suffix(b"\n").unwrap_or(text).split(|&byte| byte == b'\n').filter(|_| !text.is_empty())
}

fn show<'a>(lines: impl Iterator<Item = &'a [u8]>) {
    let mut all: Vec<u8> = Vec::new();
    for line in lines {
        all.extend_from_slice(line);
        all.push(b'\n');
    }
    rt::io::write(&all);
}

/// `grep`.
pub fn find(shell: &mut Shell, words: &[&str]) -> i32 {
    let [wanted, paths @ ..] = words else {
        println!("usage: grep TEXT [PATH...]");
        return STATUS_USAGE;
    };
    let text = match input(shell, "grep", paths) {
        Ok(text) => text,
        Err(status) => return status,
    };
    let has = |line: &&[u8]| line.windows(wanted.len()).any(|part| part == wanted.as_bytes());
    show(lines(&text).filter(has));
    i32::from(!lines(&text).any(|line| has(&line)))
}

/// `head`.
pub fn begin(shell: &mut Shell, words: &[&str]) -> i32 {
    let (count, paths) = match words {
        [first, paths @ ..] if first.parse::<usize>().is_ok() => (first.parse().unwrap_or(HEAD), paths),
        paths => (HEAD, paths),
    };
    input(shell, "head", paths).map_or_else(
        |status| status,
        |text| {
            show(lines(&text).take(count));
            0
        },
    )
}

/// `sort`.
pub fn sort(shell: &mut Shell, words: &[&str]) -> i32 {
    input(shell, "sort", words).map_or_else(
        |status| status,
        |text| {
            let mut all: Vec<&[u8]> = lines(&text).collect();
            all.sort_unstable();
            show(all.into_iter());
            0
        },
    )
}

/// `wc`.
pub fn count(shell: &mut Shell, words: &[&str]) -> i32 {
    input(shell, "wc", words).map_or_else(
        |status| status,
        |text| {
            let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
            println!("{} lines, {words} words, {} bytes", lines(&text).count(), text.len());
            0
        },
    )
}
