//! Files, as many as a client gets. `file-test greedy ROUND` opens all that it can, by all the roots that it gets, and keeps it; `file-test modest ROUND` works
//! meanwhile as if nobody else were there. Each waits for directories that the other one makes, named after what has come to pass. Files that are
//! mapped: [`mapped`]; of which few pages are there at a time: [`paging`]; files that are watched: [`watching`]; files that are not this program's: [`stranger`]; numbers
//! that nobody gave it: [`handles`]; memory that vanishes: [`vanish`]; names, paths and files as large as they may be: [`names`], [`large`]; file systems that are mounted
//! while others use files: [`mounting`].

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod handles;
mod large;
mod mapped;
mod mounting;
mod names;
mod paging;
mod stranger;
mod vanish;
mod watching;

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use files::{Directory, File};
use rt::api::{Failure, Result, Status};
use rt::println;
use rt::time::sleep;
use vfs::How;

rt::entry!(main);

/// How often the greedy client asks for a root, and opens all that it can there.
const ROOTS: usize = 8;

/// Files of the modest client.
const FEW: usize = 40;

/// Refusal of one who has too many.
const TOO_MANY: Failure = Failure::Refused(Status::TooManyOpen);

const CREATE: How = How { create: true, exclusive: false, truncate: false };

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let outcome = match words[..] {
        ["greedy", round] => greedy(round),
        ["modest", round] => modest(round),
        ["boot", directory] => {
            watching::nothing_happens(directory).map(|()| println!("file-test: all is well"))
        }
        ["hoard", round] => watching::hoard(round),
        ["watching", directory] => watching::all(directory).map(|()| println!("file-test: all is well")),
        ["stranger"] => stranger::all().map(|()| println!("file-test: all is well")),
        ["handles"] => handles::all().map(|()| println!("file-test: all is well")),
        ["names", directory] => names::all(directory).map(|()| println!("file-test: all is well")),
        ["large", directory] => large::all(directory).map(|()| println!("file-test: all is well")),
        ["vanish", kind, directory] => {
            vanish::all(kind, directory).map(|()| println!("file-test: all is well"))
        }
        ["mounting"] => mounting::all().map(|()| println!("file-test: all is well")),
        ["not-mounting"] => mounting::refused().map(|()| println!("file-test: all is well")),
        ["mounting", count] => mounting::killed(count).map(|()| println!("file-test: all is well")),
        ["child"] => stranger::child().map(|()| println!("file-test: all is well")),
        ["paging", directory] => paging::all(directory).map(|()| println!("file-test: all is well")),
        ["lost", directory] => paging::lost(directory),
        ["mapped", directory] => mapped::all(directory).map(|()| println!("file-test: all is well")),
        _ => {
            println!(
                "usage: file-test greedy ROUND | hoard ROUND | modest ROUND | mapped DIRECTORY | \
                 paging DIRECTORY | lost DIRECTORY | watching DIRECTORY | boot DIRECTORY | stranger | child | \
                 handles | names DIRECTORY | large DIRECTORY | vanish KIND DIRECTORY | mounting [COUNT] | not-mounting"
            );
            return 2;
        }
    };
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            println!("file-test: {failure}");
            1
        }
    }
}

fn check(is_so: bool, what: &str) -> Result<()> {
    if is_so {
        return Ok(());
    }
    println!("file-test: {what}");
    Err(Failure::Garbled)
}

/// Waits until something has come to pass, or the other program has most likely ended.
fn wait_for(root: &Directory, what: &str, round: &str) -> Result<()> {
    let path = format!("/{what}-{round}");
    for _ in 0..6000 {
        if root.stat(&path, true).is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(10));
    }
    check(false, &format!("{path} has not come to pass"))
}

/// Opens a file until that is refused as it should be.
fn all_of(root: &Directory, to: &mut Vec<File>) -> Result<()> {
    loop {
        match root.open("/file", CREATE) {
            Ok(file) => to.push(file),
            Err(TOO_MANY) => return Ok(()),
            Err(failure) => {
                println!("file-test: {} files are open", to.len());
                return Err(failure);
            }
        }
    }
}

fn greedy(round: &str) -> Result<()> {
    let mut open = Vec::new();
    // However often it asks: it is one client, also if it gives back by what it has got all else.
    let mut root = Directory::root()?;
    for _ in 0..ROOTS {
        all_of(&root, &mut open)?;
        root = Directory::root()?;
    }
    check((50..200).contains(&open.len()), &format!("it has {} files open", open.len()))?;
    let mut roots = Vec::new();
    let refusal = loop {
        match Directory::root() {
            Ok(root) => roots.push(root),
            Err(failure) => break failure,
        }
    };
    check(refusal == TOO_MANY && (20..200).contains(&roots.len()), &format!("it has {} roots", roots.len()))?;
    // Calls that open nothing go on.
    root.mkdir(format!("/taken-{round}"))?;
    wait_for(&root, "over", round)?;
    drop((open, roots));
    root.mkdir(format!("/left-{round}"))
}

fn modest(round: &str) -> Result<()> {
    let root = Directory::root()?;
    wait_for(&root, "taken", round)?;
    let open: Vec<File> = (0..FEW).map(|_| root.open("/modest", CREATE)).collect::<Result<_>>()?;
    for (number, file) in open.iter().enumerate() {
        file.write_at(number as u64, &[number as u8])?;
    }
    drop(open);
    let mut watch = root.watch("/modest")?;
    root.open("/modest", CREATE)?.write_at(0, &[0])?;
    check(watch.take()?.len() == 1, "nothing has happened to a file that was written")?;
    let all = root.read("/modest", FEW)?;
    check(all.iter().enumerate().all(|(number, &byte)| byte == number as u8), "other bytes were there")?;
    root.mkdir(format!("/over-{round}"))?;
    wait_for(&root, "left", round)?;
    println!("file-test: all is well");
    Ok(())
}
