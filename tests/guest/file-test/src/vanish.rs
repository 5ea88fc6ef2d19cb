//! `file-test vanish KIND DIRECTORY`: memory of this program that vanishes while a server reads from it, writes to it, or maps something there. What is refused is told,
//! and the file system is of use afterwards. A kind may end this program itself, whose memory it is, and nobody else.

use crate::{CREATE, check};
use alloc::format;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use files::stubs::Files::{Directory as directory, File as file, PagedFile as paged};
use files::wire::{BYTES_MAX, how_to_bits, not_narrowed};
use files::{Directory, File, reading};
use rt::api::stub::door::Block;
use rt::api::stub::{Callee, Failure as Fault, Interface, Pages, View, Words};
use rt::api::{Failure, Result, Status};
use rt::door::Reference;
use rt::page::{PAGE, Window};
use rt::println;
use rt::region::Region;
use rt::sys::{self, Dope, Timeout, Uid};
use rt::{thread, time};

/// How often something is done while memory vanishes.
const TIMES: usize = 2000;

/// Pause between two times that memory vanishes.
const PAUSE: Duration = Duration::from_micros(20);

/// An object that is called with a part in memory at another address than the caller's.
#[derive(Clone, Copy)]
struct Elsewhere {
    object: View,
    at: u64,
}

impl Callee for Elsewhere {
    const REPLY: sys::Kind = View::REPLY;
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        self.object.call::<IN, TAKES>(label, words)
    }
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, mut words: Words) -> (u64, Words) {
        words[1] = self.at;
        self.object.call_long::<IN, TAKES>(label, words)
    }
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words) {
        self.object.call_pages(label, words, pages)
    }
    fn send(self, label: u32, words: Words) -> core::result::Result<(), Fault> {
        self.object.send(label, words)
    }
    fn send_long(self, label: u32, words: Words) -> core::result::Result<(), Fault> {
        self.object.send_long(label, words)
    }
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> core::result::Result<(), Fault> {
        self.object.send_pages(label, words, pages)
    }
}

/// References as stubs have them, to a directory and to a file in it.
struct Opened {
    _directory: Reference<directory::Client<View>>,
    file: Reference<file::Client<View>>,
}

impl Opened {
    fn new(place: &str) -> Result<Opened> {
        let directory = Directory::root()?.enter(place)?.into_reference();
        let file = directory.open(b"vanishing", how_to_bits(CREATE), 0o644)?;
        Ok(Opened { _directory: directory, file })
    }

    /// Writes a page from memory at an address.
    fn write_from(&self, at: u64) -> core::result::Result<u32, Fault> {
        let server = Elsewhere { object: self.file.view(), at };
        file::Client { server }.write(0, &[1; BYTES_MAX])
    }

    fn pages(&self) -> Result<Reference<paged::Client<View>>> {
        let copy = self.file.duplicate().map_err(Failure::Kernel)?;
        copy.narrow().map_err(not_narrowed)
    }

    /// Reads a page, which is to arrive at an address.
    fn read_to(&self, at: u64) -> Result<()> {
        let mut replies = alloc::boxed::Box::new(file::Replies::new());
        let outcome = rt::api::stub::Inbox::open(&mut *replies, |inbox| {
            let room = Dope(Block::dope(0, 0));
            let before = sys::thread_set_block(Uid::NIL, at, room, Timeout::NEVER).map_err(Fault::Kernel)?;
            let outcome = self.file.read(inbox, 0, BYTES_MAX as u32).map(|_| ());
            sys::thread_set_block(Uid::NIL, before.address, before.room, before.patience)
                .map_err(Fault::Kernel)?;
            outcome
        });
        outcome.and_then(|outcome| outcome).map_err(Failure::from)
    }
}

/// No address space is left.
const NO_ROOM: Failure = Failure::Refused(Status::Exhausted);

fn window() -> Result<Window> {
    Window::new(PAGE.ilog2()).ok_or(NO_ROOM)
}

/// Lets one kind of memory vanish, and then looks whether the file system is of use.
pub fn all(kind: &str, place: &str) -> Result<()> {
    let opened = Opened::new(place)?;
    opened.file.write(0, &[7; BYTES_MAX])?;
    let outcome = match kind {
        // There never was any.
        "write-nothing" => opened.write_from(window()?.begin()).map(drop).map_err(Failure::from),
        "read-nothing" => opened.read_to(window()?.begin()),
        "write-kernel" => opened.write_from(1 << 63).map(drop).map_err(Failure::from),
        "write-end" => opened.write_from(u64::MAX - 7).map(drop).map_err(Failure::from),
        // The memory manager gives another page each time.
        "write" => flushed(|region| opened.write_from(region.address()).map(drop).map_err(Failure::from)),
        "read" => flushed(|region| opened.read_to(region.address())),
        "map" => {
            let pages = opened.pages()?;
            flushed(|region| pages.map(region.fpage(), 0, true).map(drop).map_err(Failure::from))
        }
        "mapped" => mapped(&opened),
        _ => Err(Failure::Refused(Status::BadRequest)),
    };
    println!(
        "file-test: {kind}: {}",
        outcome.map_or_else(|failure| format!("{failure}"), |()| "done".into())
    );
    drop(opened);
    is_of_use(place)
}

/// Does something again and again while another thread takes the memory away. Gives back the last failure.
fn flushed(mut run: impl FnMut(Region) -> Result<()>) -> Result<()> {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let region = Region::new(PAGE.ilog2()).ok_or(NO_ROOM)?;
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    let clear = move || {
        while !IS_OVER.load(Ordering::Relaxed) {
            region.clear();
            // The other thread's next attempt begins meanwhile.
            time::sleep(PAUSE);
        }
    };
    let thread = thread::spawn(priority, clear).map_err(Failure::Kernel)?;
    let mut outcome = Ok(());
    for _ in 0..TIMES {
        outcome = run(region).and(outcome);
    }
    IS_OVER.store(true, Ordering::Relaxed);
    thread.join();
    outcome
}

/// Memory from which the server reads, and to which it writes, is the server's own page, mapped here, and goes meanwhile.
fn mapped(opened: &Opened) -> Result<()> {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let (pages, others, window) = (opened.pages()?, opened.pages()?, window()?);
    let (at, fpage) = (window.begin(), window.page(0));
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    let remap = move || {
        while !IS_OVER.load(Ordering::Relaxed) {
            let _ = pages.unmap(0);
            let _ = pages.map(fpage, 0, true);
            time::sleep(PAUSE);
        }
    };
    others.map(window.page(0), 0, true)?;
    let thread = thread::spawn(priority, remap).map_err(Failure::Kernel)?;
    let mut outcome = Ok(());
    for number in 0..TIMES {
        let done = match number % 2 {
            0 => opened.write_from(at).map(drop).map_err(Failure::from),
            _ => opened.read_to(at),
        };
        outcome = done.and(outcome);
    }
    IS_OVER.store(true, Ordering::Relaxed);
    thread.join();
    outcome
}

/// Another file is kept, and the one that was tried goes.
pub fn is_of_use(place: &str) -> Result<()> {
    let directory = Directory::root()?.enter(place)?;
    directory.write("kept", b"it is there")?;
    check(directory.read("kept", 99)? == b"it is there", "a file is lost")?;
    let file: File = directory.open("vanishing", CREATE)?;
    file.write_at(0, &[3; 5000])?;
    let first = reading(|inbox| file.read(inbox, 0, BYTES_MAX, |bytes| bytes.iter().all(|&byte| byte == 3)))?;
    check(first, "other bytes are read")?;
    directory.unlink("vanishing")?;
    directory.unlink("kept")?;
    check(directory.stat("kept", false).is_err(), "a file is there that was removed")
}
