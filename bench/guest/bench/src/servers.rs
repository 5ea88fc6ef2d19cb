//! Calls of servers as programs make them, results used.

use crate::{Chief, Failure, ITERATIONS, Result, mark};
use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;
use files::{Directory, File, Mapped};
use rt::api;
use vfs::How;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Runs an operation as often as a row wants.
fn measure<const REGION: u8, T>(mut run: impl FnMut() -> api::Result<T>) -> Result<()> {
    for _ in 0..ITERATIONS {
        mark::<1, REGION>();
        let value = run();
        black_box(&value);
        mark::<2, REGION>();
        value.map_err(Failure::Server)?;
    }
    Ok(())
}

impl Chief {
    /// All rows of the suite `servers`.
    pub fn servers_suite(&self) -> Result<()> {
        let root = Directory::root().map_err(Failure::Server)?;
        root.mkdir("/bench").map_err(Failure::Server)?;
        root.write("/bench/file", &[7; 2 * PAGE]).map_err(Failure::Server)?;
        let file = root.open("/bench/file", How::default()).map_err(Failure::Server)?;
        measure::<180, _>(|| file.stat())?;
        files::reading(|inbox| {
            Ok(measure::<181, _>(|| file.read(inbox, 0, 8, first))
                .and_then(|()| measure::<182, _>(|| file.read(inbox, 0, PAGE, ends))))
        })
        .map_err(Failure::Server)??;
        measure::<183, _>(|| file.write_at(0, &[9; 8]))?;
        measure::<184, _>(|| file.write_at(0, &[9; PAGE]))?;
        measure::<185, _>(|| root.open("/bench/file", How::default()))?;
        measure::<186, _>(|| root.stat("/bench/file", true))?;
        let own = Directory::of("ram").map_err(Failure::Server)?;
        measure::<187, _>(|| own.stat("/bench/file", true))?;
        measure::<188, _>(|| open_and_read(&own))?;
        let mapped = file.map(0, 1, false).map_err(Failure::Server)?;
        measure::<189, _>(|| reread(&file, &mapped))?;
        measure::<190, _>(|| file.map(0, 1, false))
    }
}

/// The first word: something of what was read is used.
fn first(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The first word and the last.
fn ends(bytes: &[u8]) -> u64 {
    first(bytes).wrapping_add(bytes.last_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
}

fn open_and_read(directory: &Directory) -> api::Result<u64> {
    let file = directory.open("/bench/file", How::default())?;
    files::reading(|inbox| file.read(inbox, 0, 8, first))
}

/// The first word of a page that is mapped and the last, after the file was asked how long it is.
fn reread(file: &File, mapped: &Mapped) -> api::Result<u64> {
    let (end, words) = (file.len()?, mapped.words());
    let word = |at: usize| words.get(at).map_or(0, |word| word.load(Relaxed));
    Ok(if end >= PAGE as u64 { word(0).wrapping_add(word(PAGE / 8 - 1)) } else { 0 })
}
