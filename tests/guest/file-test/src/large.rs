//! `file-test large DIRECTORY`: a file of more than 5 GiB, with holes, is written, read, mapped and cut off on both sides of 4 GiB. It leaves the file `far` there, with
//! [`TEXT`] at 4 GiB - 3, at 5 GiB and by way of a page 1,000 bytes behind, and the file `cut`, which ends behind the first three bytes of it.

use crate::{CREATE, check};
use core::sync::atomic::Ordering::Relaxed;
use files::{Directory, File, reading};
use rt::api::Result;
use rt::page::PAGE;

const GIB: u64 = 1 << 30;

/// Bytes that are written.
const TEXT: &[u8; 8] = b"far away";

/// Places at which they are written.
const PLACES: [u64; 4] = [0, 2 * GIB - 3, 4 * GIB - 3, 5 * GIB];

/// Tries all of it.
pub fn all(directory: &str) -> Result<()> {
    let directory = Directory::root()?.enter(directory)?;
    let [far, cut] = ["far", "cut"].map(|name| directory.open(name, CREATE));
    let (far, cut) = (far?, cut?);
    for file in [&far, &cut] {
        for at in PLACES {
            file.write_at(at, TEXT)?;
        }
        check(file.len()? == 5 * GIB + 8 && file.stat()?.len == 5 * GIB + 8, "the length is another")?;
        for at in PLACES {
            check(read(file, at)? == *TEXT, "other bytes are read")?;
            check(read(file, at + 100)? == [0; 8] || at == 5 * GIB, "a hole has bytes")?;
        }
        let mapped = file.map(4 * GIB, 1, false)?;
        check(mapped.words()[0].load(Relaxed).to_le_bytes() == *b" away\0\0\0", "other bytes are mapped")?;
        let mapped = file.map(5 * GIB, 1, false)?;
        check(mapped.words()[0].load(Relaxed).to_le_bytes() == *TEXT, "other bytes are mapped")?;
        check(file.map(5 * GIB + PAGE as u64, 1, false).is_err(), "a page behind the end is mapped")?;
    }
    for end in [4 * GIB + 1, 4 * GIB] {
        cut.truncate(end)?;
        check(cut.len()? == end && read(&cut, end)? == [0; 8], "the end is another")?;
        cut.truncate(5 * GIB + 8)?;
        check(read(&cut, 5 * GIB)? == [0; 8], "bytes that were cut off came back")?;
    }
    cut.truncate(4 * GIB)?;
    check(read(&cut, 4 * GIB - 3)? == *b"far\0\0\0\0\0", "other bytes are left")?;
    far.truncate(5 * GIB + 2000)?;
    let mapped = far.map(5 * GIB, 1, true)?;
    mapped.words()[125].store(u64::from_le_bytes(*TEXT), Relaxed);
    far.sync()?;
    check(read(&far, 5 * GIB + 1000)? == *TEXT, "what is written to a page is not read")?;
    drop(mapped);
    directory.sync()
}

/// Eight bytes, with zeros behind the end.
fn read(file: &File, at: u64) -> Result<[u8; 8]> {
    let padded = |bytes: &[u8]| core::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0));
    reading(|inbox| file.read(inbox, at, 8, padded))
}
