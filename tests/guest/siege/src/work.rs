//! Works, each of which uses a server again and again. One that was broken off is begun anew; what comes to its end has the right outcome.

use crate::{HAS_FAILED, IS_OVER, PAUSE, TRIES, check};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};
use files::{Directory, reading};
use net::sockets::{Error, Net};
use rt::api::{Failure, Name, Result, Status, clock, console, entropy, names};
use rt::module::Service;
use rt::sync::Mutex;
use rt::time::sleep;
use rt::{home, println};
use vfs::How;

/// One round of a work.
type Once = fn() -> Result<()>;

/// Works, by the program that each uses.
pub const ALL: [(&str, Once); 9] = [
    ("bootfs", boot),
    ("console", lines),
    ("httpd", page),
    ("network", stream),
    ("ramfs", memory),
    ("services", time),
    ("virtio-console", second_console),
    ("virtio-entropy", bytes),
    ("virtio-net", echo),
];

/// How long to wait for somebody on the network, in milliseconds.
const PATIENCE_MS: u64 = 1000;

/// Does a work until all is over, and then once more.
pub fn go_on(name: &str, once: Once) -> Result<()> {
    let (mut rounds, mut again, mut left) = (0, 0, TRIES);
    while !HAS_FAILED.load(Ordering::Relaxed) {
        let is_last = IS_OVER.load(Ordering::Relaxed);
        match once() {
            Ok(()) if is_last => break,
            Ok(()) => rounds += 1,
            // Something was there that should not have been.
            Err(Failure::Garbled) => return Err(Failure::Garbled),
            Err(failure) if is_last && left == 0 => return Err(failure),
            Err(_) => {
                left -= usize::from(is_last);
                again += 1;
            }
        }
        sleep(PAUSE);
    }
    println!("siege: {name}: {rounds} rounds, {again} more that were broken off");
    check(rounds > 0, "a work has never been done")
}

/// Failure of the network. All of them pass, but for bytes that are others.
fn failed(error: Error) -> Failure {
    match error {
        Error::Server(Failure::Garbled) => Failure::Garbled,
        _ => Failure::Refused(Status::Busy),
    }
}

fn named(name: &str) -> Result<rt::sys::Uid> {
    names::resolve(home(), &Name::new(name).ok_or(Failure::Garbled)?)
}

/// A file that came with the boot is what it was the first time.
fn boot() -> Result<()> {
    static FIRST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let file = Directory::root()?.open("/boot/siege", How::default())?;
    let found = reading(|inbox| file.read(inbox, 8192, 4096, <[u8]>::to_vec))?;
    let mut first = FIRST.lock();
    if first.is_empty() {
        first.clone_from(&found);
    }
    check(!found.is_empty() && *first == found, "a file of the boot archive is another")
}

fn lines() -> Result<()> {
    console::write(named(console::NAME)?, b".\n")
}

fn second_console() -> Result<()> {
    console::write(named("console-2")?, b"it is there\n")
}

/// A file in memory is as it was written, or is gone with its server.
fn memory() -> Result<()> {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    let content = [ROUND.fetch_add(1, Ordering::Relaxed) as u8; 5000];
    let root = Directory::root()?;
    root.write("/besieged", &content)?;
    check(root.read("/besieged", content.len())? == content, "a file in memory is another")
}

/// The time of day goes on, by as much as the kernel's does, whoever says it.
fn time() -> Result<()> {
    static CLOCK: Service = Service::new(clock::NAME);
    // Bounds of the time of day at which the kernel's begins. Each answer makes them narrower.
    static BOUNDS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(u64::MAX)];
    let before = rt::time::now_ns();
    let now = clock::now(&CLOCK)?;
    let (first, last) = (now.saturating_sub(rt::time::now_ns()), now.saturating_sub(before));
    let first = BOUNDS[0].fetch_max(first, Ordering::Relaxed).max(first);
    let last = BOUNDS[1].fetch_min(last, Ordering::Relaxed).min(last);
    check(first <= last, "the time of day jumps")
}

fn bytes() -> Result<()> {
    let server = named(entropy::NAME)?;
    let mut replies = Box::new(entropy::Replies::new());
    let mut found = [[0; 16]; 2];
    for bytes in &mut found {
        let len = entropy::read(server, &mut replies, bytes)?;
        check(len == bytes.len(), "fewer random bytes came")?;
    }
    check(found[0] != found[1], "random bytes are equal")
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Both ends of a connection.
fn stream() -> Result<()> {
    let outcome = Net::open().and_then(|net| {
        let listener = net.listen(local(5100), 1)?;
        let near = net.connect(local(5100), PATIENCE_MS)?;
        let far = listener.accept(PATIENCE_MS)?;
        near.write(&[7; 3000])?;
        near.shutdown()?;
        let mut all = Vec::new();
        loop {
            let more = far.read(4096, PATIENCE_MS)?;
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    });
    let all = outcome.map_err(failed)?;
    check(all == [7; 3000], "other bytes came by the network")
}

/// The machine at the other end of the card's wire answers.
fn echo() -> Result<()> {
    let outcome = Net::open().and_then(|net| {
        let echo = net.echo()?;
        let to = IpAddr::from([10, 0, 2, 2]);
        echo.ask(to, 1, PAGE)?;
        Ok(echo.answer(PATIENCE_MS)? == (to, 1, PAGE.to_vec()))
    });
    check(outcome.map_err(failed)?, "another answer came")
}

/// Contents of the page.
const PAGE: &[u8] = b"whoever is killed\n";

/// A page of the server of files comes whole, or does not come.
fn page() -> Result<()> {
    let request = b"GET /page HTTP/1.1\r\nHost: tern\r\nConnection: close\r\n\r\n";
    let outcome = Net::open().and_then(|net| {
        let stream = net.connect(local(80), PATIENCE_MS)?;
        stream.write(request)?;
        let mut all = Vec::new();
        loop {
            let more = stream.read(4096, PATIENCE_MS)?;
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    });
    let all = outcome.map_err(failed)?;
    let head = all.windows(4).position(|part| part == b"\r\n\r\n");
    let body = head.map_or(&[][..], |at| &all[at + 4..]);
    match all.get(..12) {
        Some(b"HTTP/1.1 200") if body == PAGE => Ok(()),
        // It was broken off, or the server's own servers were gone.
        Some(b"HTTP/1.1 200") if body.len() < PAGE.len() => Err(Failure::Refused(Status::Busy)),
        Some(status) if status.starts_with(b"HTTP/1.1 5") => Err(Failure::Refused(Status::Busy)),
        None => Err(Failure::Refused(Status::Busy)),
        Some(_) => {
            let own = Directory::root().and_then(|root| root.stat("/disk/www/page", true));
            check(false, &format!("the server of files says {}, and finds {own:?}", all.escape_ascii()))
        }
    }
}
