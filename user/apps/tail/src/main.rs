//! Shows the last lines of a file: `tail [-f] [-n LINES] PATH`. With `-f` it goes on with what is added, until the file has no name any more or it is
//! interrupted.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::time::Duration;
use files::wire::BYTES_MAX;
use files::{Directory, File, Watch, path_of, reading};
use rt::api::{Failure, Result, Status};
use rt::{eprintln, io, time};
use vfs::How;
use vfs::watch::Change;

rt::entry!(main);

/// Lines, if nothing else is said.
const LINES: usize = 10;

/// How often a server that has ended is looked for again, and how long to wait in between.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let (follows, words) = match &words[..] {
        ["-f", words @ ..] => (true, words),
        words => (false, words),
    };
    let (lines, path) = match words {
        ["-n", lines, path] => (lines.parse().ok(), *path),
        [path] if !path.starts_with('-') => (Some(LINES), *path),
        _ => (None, ""),
    };
    let Some(lines) = lines else {
        eprintln!("usage: tail [-f] [-n LINES] PATH");
        return 2;
    };
    match tail(path, lines, follows) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("tail: {path}: {failure}");
            1
        }
    }
}

fn tail(typed: &str, lines: usize, follows: bool) -> Result<()> {
    let path = path_of(typed);
    let root = Directory::root()?;
    let file = root.open(&path, How::default())?;
    // Whatever is added after this is told.
    let watch = if follows { Some(root.watch(&path)?) } else { None };
    let begin = begin_of_lines(&file, lines)?;
    match watch {
        Some(watch) => follow(root, &path, file, watch, begin),
        None => show(&file, begin).map(drop),
    }
}

/// Where the last lines of a file begin.
fn begin_of_lines(file: &File, lines: usize) -> Result<u64> {
    let mut end = file.len()?;
    // The end of the last line is no other line's.
    let mut left = lines;
    let mut is_last = true;
    reading(|inbox| {
        while end > 0 && left > 0 {
            let begin = end.saturating_sub(BYTES_MAX as u64);
            let piece = file.read(inbox, begin, (end - begin) as usize, <[u8]>::to_vec)?;
            for (at, byte) in piece.iter().enumerate().rev() {
                if *byte == b'\n' && !is_last {
                    left -= 1;
                    if left == 0 {
                        return Ok(begin + at as u64 + 1);
                    }
                }
                is_last = false;
            }
            end = begin;
        }
        Ok(if left == 0 { end } else { 0 })
    })
}

/// Shows a file from an offset on. Gives back where it ends.
fn show(file: &File, mut offset: u64) -> Result<u64> {
    reading(|inbox| {
        loop {
            let len = file.read(inbox, offset, BYTES_MAX, |piece| {
                io::write(piece);
                piece.len() as u64
            })?;
            if len == 0 {
                return Ok(offset);
            }
            offset += len;
        }
    })
}

/// Shows a file from an offset on, and what is added to it.
fn follow(mut root: Directory, path: &str, mut file: File, mut watch: Watch, mut offset: u64) -> Result<()> {
    let (mut is_first, mut is_stale, mut failed) = (true, false, 0);
    loop {
        let mut step = || {
            let mut is_gone = false;
            if !is_stale && !is_first {
                let events = watch.wait(None)?;
                let has = |change| events.iter().any(|event| event.change == change);
                is_gone = has(Change::Gone);
                // The server may be another one.
                is_stale = has(Change::Lost) && !is_gone;
            }
            if is_stale {
                file = root.open(path, How::default())?;
                is_stale = false;
            }
            if file.len()? < offset {
                eprintln!("tail: {path} was cut off");
                offset = 0;
            }
            offset = show(&file, offset)?;
            is_first = false;
            Ok(is_gone)
        };
        match step() {
            Ok(true) | Err(Failure::Refused(Status::NotFound)) => return Ok(()),
            Ok(false) => failed = 0,
            Err(_) if failed < TRIES => {
                (is_stale, failed) = (true, failed + 1);
                time::sleep(PAUSE);
                // The directory itself may be one of a server that has ended.
                let again = Directory::root().and_then(|root| root.watch(path).map(|watch| (root, watch)));
                if let Ok(again) = again {
                    (root, watch) = again;
                }
            }
            Err(failure) => return Err(failure),
        }
    }
}
