//! `file-test mapped DIRECTORY`: a file that is mapped, as somebody sees it who maps it and somebody who reads and writes as before. It leaves the file `mapped`
//! there, of 6,000 bytes, the last of which is a 9.

use crate::check;
use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use files::{Directory, File, Mapped, Pages, reading};
use rt::api::{Failure, Result, Status};
use rt::page::{PAGE, Window};
use rt::sys;
use rt::thread::{self, Handle};
use rt::time::sleep;
use vfs::How;

/// Length of the file, with a second page that is not whole.
const LEN: usize = 6000;

const CREATE: How = How { create: true, exclusive: false, truncate: true };

/// More pages than a client gets, of any file system here.
const MANY: usize = 2000;

/// No address space is left.
const NO_WINDOW: Failure = Failure::Refused(Status::Exhausted);

/// Maps a file of that directory in all ways.
pub fn all(directory: &str) -> Result<()> {
    let directory = Directory::root()?.enter(directory)?;
    directory.write("mapped", &[7; LEN])?;
    let file = directory.open("mapped", How::default())?;
    wrong_pages(&file)?;
    let mapped = file.map(0, 2, true)?;
    each_sees_the_other(&file, &mapped)?;
    the_end_moves(&file, &mapped)?;
    // Pages that were mapped stay when the file is gone.
    directory.write("other", &[5; LEN])?;
    let other = directory.open("other", How::default())?.map(0, 1, false)?;
    directory.unlink("other")?;
    check(word(&other, 0) == filled(5), "the page of a file that is gone has changed")?;
    drop(mapped);
    what_is_given_back_is_gone(&directory)?;
    what_is_closed_is_gone(&directory)?;
    too_many(&directory)?;
    // Bytes that are written are in the file for whoever opens it later.
    let mapped = directory.open("mapped", How::default())?.map(PAGE as u64, 1, true)?;
    drop(file);
    mapped.words()[(LEN - PAGE) / 8 - 1].store(filled(9), Relaxed);
    drop(mapped);
    directory.sync()?;
    let content = directory.read("mapped", LEN)?;
    check(content.len() == LEN && content[LEN - 8..] == [9; 8], "what was written last is not there")
}

/// A word of equal bytes.
fn filled(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

fn word(mapped: &Mapped, byte: usize) -> u64 {
    mapped.words().get(byte / 8).map_or(0, |word| word.load(Relaxed))
}

fn read(file: &File, offset: usize) -> Result<u64> {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    reading(|inbox| file.read(inbox, offset as u64, 8, word))
}

fn wrong_pages(file: &File) -> Result<()> {
    const BAD: Failure = Failure::Refused(Status::BadRequest);
    for (offset, pages) in [(8, 1), (2 * PAGE as u64, 1), (0, 3), (u64::MAX - 4095, 1), (1 << 63, 1)] {
        check(file.map(offset, pages, false).err() == Some(BAD), "a page that is not there is mapped")?;
    }
    let most = file.map(0, usize::MAX, false).err();
    check(most == Some(Failure::Refused(Status::TooLarge)), "there is no end of pages")?;
    check(file.map(0, 0, false)?.words().is_empty(), "no pages have words")
}

fn each_sees_the_other(file: &File, mapped: &Mapped) -> Result<()> {
    check(mapped.words().len() == 2 * PAGE / 8, "two pages have other words")?;
    check(word(mapped, 0) == filled(7) && word(mapped, LEN - 8) == filled(7), "other bytes are mapped")?;
    check(word(mapped, LEN) == 0, "there is something behind the end")?;
    mapped.words()[PAGE / 8 - 1].store(filled(1), Relaxed);
    check(read(file, PAGE - 8)? == filled(1), "what is written to a page is not read")?;
    file.write_at(PAGE as u64 - 4, &[2; 8])?;
    check(
        word(mapped, PAGE) == u64::from_le_bytes([2, 2, 2, 2, 7, 7, 7, 7]),
        "what is written is not mapped",
    )?;
    // Mapped twice it is one page.
    let again = file.map(PAGE as u64, 1, false)?;
    again.words()[0].load(Relaxed);
    mapped.words()[PAGE / 8].store(filled(3), Relaxed);
    check(word(&again, 0) == filled(3), "one page is two")
}

fn the_end_moves(file: &File, mapped: &Mapped) -> Result<()> {
    mapped.words()[LEN / 8].store(filled(4), Relaxed);
    file.truncate(2 * PAGE as u64)?;
    check(read(file, LEN)? == 0, "what was written behind the end came with a longer file")?;
    file.truncate(100)?;
    check(word(mapped, PAGE) == filled(3), "a page that was cut off has changed")?;
    check(word(mapped, 104) == 0, "there is something behind the end")?;
    file.truncate(LEN as u64)?;
    mapped.words()[PAGE / 8].store(filled(6), Relaxed);
    check(read(file, PAGE)? == 0, "a page that was cut off came back")?;
    check(file.len()? == LEN as u64, "the length is another")
}

/// A page that was given back is mapped no more, although the thread of the server that has mapped it has not answered with another one since.
fn what_is_given_back_is_gone(directory: &Directory) -> Result<()> {
    directory.write("given", &[7; PAGE])?;
    let pages = directory.open("given", How::default())?.pages()?;
    let window = Window::new(PAGE.ilog2()).ok_or(NO_WINDOW)?;
    let write = || window.words(1)[0].store(filled(8), Relaxed);
    for _ in 0..2 {
        pages.map(window.page(0), 0, true)?;
        write();
        check(window.was_accessed(0), "an access is not seen")?;
        write();
        pages.unmap(0)?;
        check(!window.was_accessed(0), "a page that was given back is there")?;
    }
    drop(pages);
    directory.unlink("given")
}

/// The file of a client, and where its page is.
type OwnPage = (Pages, Window);

/// Clients that map, each a page of a file of its own.
const MAPPERS: usize = 8;

/// Pages of files that were closed are mapped no more, whichever threads of the server have mapped them and have closed the files.
fn what_is_closed_is_gone(directory: &Directory) -> Result<()> {
    let mut open = Vec::new();
    let space = directory.space()?.free;
    for number in 0..MAPPERS {
        let name = format!("closed-{number}");
        directory.write(&name, &[7; PAGE])?;
        let window = Window::new(PAGE.ilog2()).ok_or(NO_WINDOW)?;
        open.push((directory.open(&name, How::default())?.pages()?, window));
    }
    // Files without a name: their space is free when they are closed.
    (0..MAPPERS).try_for_each(|number| directory.unlink(format!("closed-{number}")))?;
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    let busy = directory.enter(".")?;
    let mut threads: Vec<Handle<Result<Option<OwnPage>>>> = Vec::new();
    // While a call has the file system, the others wait, each in a thread of the server.
    let sync = move || (0..MAPPERS).try_for_each(|_| busy.sync());
    threads.push(thread::spawn(priority, move || sync().map(|()| None)).map_err(Failure::Kernel)?);
    for (pages, window) in open {
        let map = move || -> Result<_> {
            pages.map(window.page(0), 0, true)?;
            window.words(1)[0].store(filled(8), Relaxed);
            Ok(Some((pages, window)))
        };
        threads.push(thread::spawn(priority, map).map_err(Failure::Kernel)?);
    }
    let mut windows = Vec::new();
    for thread in threads {
        let mapped = thread.join().ok_or(Failure::Garbled)??;
        windows.extend(mapped.map(|(_, window)| window));
    }
    for _ in 0..6000 {
        if directory.space()?.free >= space {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    check(directory.space()?.free >= space, "files without a name are not closed")?;
    for window in windows {
        check(!window.was_accessed(0), "a page of a file that is closed is there")?;
    }
    Ok(())
}

/// One client has an eighth of the pages that are free, and all of them again when it has let go.
fn too_many(directory: &Directory) -> Result<()> {
    let file = directory.open("large", CREATE)?;
    // A file system without holes writes zeros, and not very many at once.
    for part in 1..=4 {
        file.truncate((MANY * PAGE / 4 * part) as u64)?;
    }
    for _ in 0..2 {
        let refusal = file.map(0, MANY, false).err();
        let is_refused = matches!(refusal, Some(Failure::Refused(Status::TooManyOpen | Status::Full)));
        check(is_refused, "one client has all pages")?;
    }
    drop(file);
    let file = directory.open("large", How::default())?;
    check(word(&file.map(0, 32, false)?, 31 * PAGE) == 0, "a hole has bytes")?;
    drop(file);
    directory.unlink("large")
}
