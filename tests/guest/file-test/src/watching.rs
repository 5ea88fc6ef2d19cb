//! `file-test watching DIRECTORY`: what happens to a directory and its files, as somebody hears of it who watches them. `file-test hoard ROUND` opens all
//! watches that it can, and takes nothing from them, while `file-test modest ROUND` works. `file-test boot DIRECTORY`: files that do not change.

use crate::{TOO_MANY, check, wait_for};
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use files::{Directory, Watch};
use rt::api::{Failure, Result, Status};
use rt::page::PAGE;
use rt::{sys, thread, time};
use vfs::How;
use vfs::watch::{Change, Event};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// How long to wait for what comes at once: somebody waits so long only if it does not come.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
/// How long to wait for what does not come.
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

/// Directories that are made and removed while nobody looks: more than a watch keeps.
const MANY: usize = 60;

/// The watch tells these, and nothing more.
pub fn expect(watch: &mut Watch, expected: &[(Change, &str)]) -> Result<()> {
    let mut told: Vec<Event> = Vec::new();
    loop {
        match watch.take() {
            Ok(events) if events.is_empty() => break,
            Err(Failure::Refused(Status::NotFound)) => break,
            events => told.extend(events?),
        }
    }
    let equals = |(event, (change, name)): (&Event, &(Change, &str))| {
        event.change == *change && event.name == name.as_bytes()
    };
    let is_so = told.len() == expected.len() && told.iter().zip(expected).all(equals);
    check(is_so, &format!("expected {expected:?}, not {told:?}"))
}

fn add(directory: &Directory, path: &str) -> Result<()> {
    directory.open(path, CREATE)?.append(b"text").map(drop)
}

/// Watches a directory of that one in all ways.
pub fn all(directory: &str) -> Result<()> {
    let base = Directory::root()?.enter(directory)?;
    base.mkdir("watched")?;
    base.mkdir("other")?;
    let mut watch = base.watch("watched")?;
    check(watch.wait(SHORT)?.is_empty(), "something has happened to a new directory")?;
    check(base.watch("nowhere").err() == Some(Failure::Refused(Status::NotFound)), "nothing is watched")?;
    names(&base, &mut watch)?;
    pages(&base, &mut watch)?;
    sleeper(&base, directory, &mut watch)?;
    for number in 0..MANY {
        base.mkdir(format!("watched/{number}"))?;
        base.rmdir(format!("watched/{number}"))?;
    }
    expect(&mut watch, &[(Change::Lost, "")])?;
    base.mkdir("watched/last")?;
    base.rmdir("watched/last")?;
    base.rmdir("watched")?;
    expect(&mut watch, &[(Change::Made, "last"), (Change::Removed, "last"), (Change::Gone, "")])?;
    check(watch.wait(None).err() == Some(Failure::Refused(Status::NotFound)), "the watch is not over")?;
    base.unlink("other/mapped")?;
    base.rmdir("other")
}

fn names(base: &Directory, watch: &mut Watch) -> Result<()> {
    use Change::*;
    add(base, "watched/a")?;
    expect(watch, &[(Made, "a"), (Contents, "a")])?;
    let mut of_file = base.watch("watched/a")?;
    // By another name, in another directory.
    base.link("watched/a", "other/b")?;
    add(base, "other/b")?;
    base.open("other/b", How::default())?.truncate(1)?;
    expect(watch, &[(Contents, "a")])?;
    expect(&mut of_file, &[(Attributes, ""), (Contents, "")])?;
    base.rename("watched/a", "watched/c")?;
    let told = watch.wait(LONG)?;
    let is_pair = told.len() == 2 && told[0].pair == told[1].pair && told[0].pair != 0;
    check(is_pair && told[0].name == b"a" && told[1].name == b"c", &format!("a move is {told:?}"))?;
    expect(&mut of_file, &[(Moved, "")])?;
    // Over a name that is watched.
    add(base, "other/d")?;
    base.rename("other/d", "watched/c")?;
    expect(watch, &[(MovedTo, "c")])?;
    expect(&mut of_file, &[(Attributes, "")])?;
    base.unlink("other/b")?;
    expect(&mut of_file, &[(Gone, "")])?;
    base.unlink("watched/c")?;
    expect(watch, &[(Removed, "c")])
}

/// Bytes that are written to a page that is mapped are not told.
fn pages(base: &Directory, watch: &mut Watch) -> Result<()> {
    base.write("watched/mapped", &[1; PAGE])?;
    expect(watch, &[(Change::Made, "mapped"), (Change::Contents, "mapped")])?;
    let file = base.open("watched/mapped", How::default())?;
    let mapped = file.map(0, 1, true)?;
    mapped.words()[0].store(2, core::sync::atomic::Ordering::Relaxed);
    file.sync()?;
    expect(watch, &[])?;
    base.rename("watched/mapped", "other/mapped")?;
    expect(watch, &[(Change::MovedFrom, "mapped")])
}

/// One who sleeps is woken, each time.
fn sleeper(base: &Directory, directory: &str, watch: &mut Watch) -> Result<()> {
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    let base_of_other = Directory::root()?.enter(directory)?;
    let other = thread::spawn(priority, move || -> Result<()> {
        for _ in 0..10 {
            time::sleep(Duration::from_millis(5));
            add(&base_of_other, "watched/a")?;
        }
        Ok(())
    });
    let other = other.map_err(Failure::Kernel)?;
    let file = base.open("watched/a", CREATE)?;
    while file.len()? < 40 {
        check(!watch.wait(LONG)?.is_empty(), "nobody has woken the one who waits")?;
    }
    other.join().unwrap_or(Err(Failure::Garbled))?;
    base.unlink("watched/a")?;
    while !watch.wait(LONG)?.iter().any(|event| event.change == Change::Removed) {}
    Ok(())
}

/// Files that do not change can be watched, and mapped to be read.
pub fn nothing_happens(directory: &str) -> Result<()> {
    const READ_ONLY: Failure = Failure::Refused(Status::ReadOnly);
    let directory = Directory::root()?.enter(directory)?;
    let mut watch = directory.watch("etc")?;
    let file = directory.open("etc/motd", How::default())?;
    check(file.map(0, 1, true).err() == Some(READ_ONLY), "a page that is not to be written can be")?;
    let mapped = file.map(0, 2, false)?;
    let begin = mapped.words().first().map(|word| word.load(core::sync::atomic::Ordering::Relaxed));
    check(begin == Some(u64::from_le_bytes(*b"line 0 c")), &format!("it begins with {begin:x?}"))?;
    check(file.append(b"x").err() == Some(READ_ONLY), "a file is written to")?;
    check(file.truncate(0).err() == Some(READ_ONLY), "a file is cut off")?;
    check(watch.wait(SHORT)?.is_empty(), "something has happened")
}

/// Opens watches until that is refused as it should be.
fn all_of(root: &Directory) -> Result<Vec<Watch>> {
    let mut watches = Vec::new();
    loop {
        match root.watch("/") {
            Ok(watch) => watches.push(watch),
            Err(TOO_MANY) => return Ok(watches),
            Err(failure) => return Err(failure),
        }
    }
}

/// Keeps all watches that it gets, and never reads one, while somebody else works.
pub fn hoard(round: &str) -> Result<()> {
    let root = Directory::root()?;
    let watches = all_of(&root)?;
    let count = watches.len();
    check((10..50).contains(&count), &format!("it has {count} watches"))?;
    for number in 0..MANY {
        root.mkdir(format!("/{round}-{number}"))?;
        root.rmdir(format!("/{round}-{number}"))?;
    }
    root.mkdir(format!("/taken-{round}"))?;
    wait_for(&root, "over", round)?;
    drop(watches);
    let again = all_of(&root)?.len();
    check(again == count, &format!("it has {again} watches, and had {count} before"))?;
    root.mkdir(format!("/left-{round}"))
}
