//! `file-test paging DIRECTORY`: a file that is mapped and of which few pages are there at a time. `file-test lost DIRECTORY` looks at one whose server has
//! ended, which ends it, too.

use crate::{CREATE, check};
use alloc::format;
use alloc::vec;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use files::{Directory, reading};
use pagers::mapped::{Look, Mapping};
use pagers::policy::{First, Last, Policy, SecondChance};
use rt::api::Result;
use rt::heap;
use rt::page::PAGE;
use rt::println;
use rt::time::sleep;
use vfs::How;

/// Pages of the file that is scanned, and those that are there at a time.
const SCANNED: usize = 24;
const RESIDENT: usize = 16;

/// Pages of a file of which no client gets all at once.
const MANY: usize = 700;

/// Words of a page.
const WORDS: usize = PAGE / 8;

/// Accesses at random.
const ACCESSES: usize = 2000;

/// Looks at files of that directory.
pub fn all(directory: &str) -> Result<()> {
    let directory = Directory::root()?.enter(directory)?;
    directory.write("paged", &[7; SCANNED * PAGE])?;
    let (first, again) = (scan(&directory, First::default())?, scan(&directory, SecondChance::default())?);
    let last = scan(&directory, Last::default())?;
    check((first, again, last) == (240, 240, 105), &format!("{first}, {again} and {last} faults"))?;
    what_is_written_is_there(&directory)?;
    the_heap_is_locked(&directory, First::default())?;
    the_heap_is_locked(&directory, Last::default())?;
    the_heap_is_locked(&directory, SecondChance::default())?;
    more_than_a_client_gets(&directory)?;
    directory.unlink("paged")
}

fn word(look: &Look, at: usize) -> u64 {
    look.words().get(at).map_or(0, |word| word.load(Relaxed))
}

/// Faults of ten scans.
fn scan(directory: &Directory, policy: impl Policy + Send + 'static) -> Result<u64> {
    let file = directory.open("paged", How::default())?;
    let mapping = Mapping::new(&file, SCANNED, RESIDENT, policy)?;
    let look = mapping.enter()?;
    for page in (0..10).flat_map(|_| 0..SCANNED) {
        check(word(&look, page * WORDS) == u64::from_le_bytes([7; 8]), "a page has other bytes")?;
    }
    drop(look);
    Ok(mapping.counts().faults)
}

/// Accesses at random, against a copy; and what the file has afterwards.
fn what_is_written_is_there(directory: &Directory) -> Result<()> {
    let file = directory.open("paged", How::default())?;
    let mapping = Mapping::new(&file, SCANNED, 5, SecondChance::default())?;
    let look = mapping.enter()?;
    let mut copy = vec![u64::from_le_bytes([7; 8]); SCANNED * WORDS];
    let mut state = 1u64;
    for number in 0..ACCESSES {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let at = (state >> 33) as usize % copy.len();
        check(word(&look, at) == copy[at], "a word is not what was written")?;
        if state >> 62 == 0 {
            copy[at] = number as u64;
            look.words()[at].store(copy[at], Relaxed);
        }
    }
    drop(look);
    let counts = mapping.counts();
    check(counts.replaced > ACCESSES as u64 / 2, "hardly a page had to go")?;
    drop(mapping);
    drop(file);
    let file = directory.open("paged", How::default())?;
    for (page, expected) in copy.chunks(WORDS).enumerate() {
        let is_alike = |bytes: &[u8]| {
            let words = bytes.as_chunks::<8>().0;
            words.len() == WORDS
                && words.iter().zip(expected).all(|(bytes, word)| bytes == &word.to_le_bytes())
        };
        let is_alike = reading(|inbox| file.read(inbox, (page * PAGE) as u64, PAGE, is_alike))?;
        check(is_alike, "the file has other bytes")?;
    }
    Ok(())
}

/// A thread that has the heap's lock has its faults like any other.
fn the_heap_is_locked(directory: &Directory, policy: impl Policy + Send + 'static) -> Result<()> {
    let file = directory.open("paged", How::default())?;
    let mapping = Mapping::new(&file, SCANNED, 5, policy)?;
    let look = mapping.enter()?;
    let count = heap::hold(|| {
        for page in (0..3).flat_map(|_| 0..SCANNED) {
            look.words()[page * WORDS].fetch_add(1, Relaxed);
        }
        mapping.counts().replaced
    });
    check(count >= SCANNED as u64, "hardly a page had to go")
}

/// Each page of a large file, of which a client gets an eighth at most.
fn more_than_a_client_gets(directory: &Directory) -> Result<()> {
    let file = directory.open("many", CREATE)?;
    for part in 1..=4 {
        file.truncate((MANY * PAGE / 4 * part) as u64)?;
    }
    let mapping = Mapping::new(&file, MANY, RESIDENT, First::default())?;
    let look = mapping.enter()?;
    for page in 0..MANY {
        check(word(&look, page * WORDS) == 0, "a hole has bytes")?;
    }
    drop(look);
    check(mapping.counts().replaced == (MANY - RESIDENT) as u64, "other pages are there")?;
    drop(mapping);
    drop(file);
    directory.unlink("many")
}

/// Looks at a page when the file system's server has ended.
pub fn lost(directory: &str) -> Result<()> {
    let directory = Directory::root()?.enter(directory)?;
    directory.write("lost", &[7; 2 * PAGE])?;
    let file = directory.open("lost", How::default())?;
    let mapping = Mapping::new(&file, 2, 2, First::default())?;
    let look = mapping.enter()?;
    check(word(&look, 0) > 0, "a page has other bytes")?;
    println!("file-test: it is mapped");
    while file.len().is_ok() {
        sleep(Duration::from_millis(10));
    }
    let read = word(&look, 0);
    check(false, &format!("{read:x} was read of a page that is gone"))
}
