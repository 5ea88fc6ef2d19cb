//! Calls of servers as programs make them, results used.

use crate::{Chief, Failure, ITERATIONS, Result, mark};
use Shown::Pages::Client;
use alloc::boxed::Box;
use core::hint::black_box;
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::Ordering::Relaxed;
use files::{Directory, File, Mapped};
use net::link;
use net::sockets::{self, Net};
use pagers::mapped::Mapping;
use pagers::policy::First;
use pipe::Pipe;
use rt::api::pipe::End;
use rt::api::stub::Inbox;
use rt::api::{self, Name, block, bus, calendar, clock, console, names, offers, process};
use rt::door::{Door, Room};
use rt::module::Service;
use rt::offer::Buffer;
use rt::stream::{Closed, Reader, Writer};
use rt::sys::Uid;
use vfs::How;

rt::interface!(door, "../bench-partner/src/pages.idl");

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
        measure::<190, _>(|| file.map(0, 1, false))?;
        faults(&file)?;
        plain_files().map_err(Failure::Server)??;
        pipes().map_err(Failure::Server)??;
        network().map_err(Failure::Network)??;
        null_calls(&file)?;
        shown_pages().map_err(Failure::Server)??;
        more_null_calls(&root)
    }

    /// Rows of the suite `servers` for which the machine has a disk with a file system.
    pub fn disk_suite(&self) -> Result<()> {
        let root = Directory::root().map_err(Failure::Server)?;
        root.write("/disk/file", &[7; PAGE]).map_err(Failure::Server)?;
        let file = root.open("/disk/file", How::default()).map_err(Failure::Server)?;
        measure::<212, _>(|| file.len())?;
        files::reading(|inbox| Ok(measure::<216, _>(|| file.read(inbox, 0, PAGE, ends))))
            .map_err(Failure::Server)??;
        let mapped = file.map(0, 1, false).map_err(Failure::Server)?;
        measure::<217, _>(|| reread(&file, &mapped))
    }

    /// Rows of the suite `servers` for which there are file systems over another one.
    pub fn stacked_suite(&self) -> Result<()> {
        let root = Directory::root().map_err(Failure::Server)?;
        let file = |path: &str| {
            root.write(path, &[7; PAGE])
                .and_then(|()| root.open(path, How::default()))
                .map_err(Failure::Server)
        };
        let (merged, secret) = (file("/merged/file")?, file("/secret/file")?);
        measure::<218, _>(|| merged.len())?;
        measure::<219, _>(|| secret.len())
    }

    /// Rows of the suite `servers` for which the machine has a disk behind which there is nothing, and a network card.
    pub fn block_suite(&self) -> Result<()> {
        let disk = server(block::NAME).map_err(Failure::Server)?;
        measure::<213, _>(|| block::info(disk))?;
        let card = server(link::NAME).map_err(Failure::Server)?;
        measure::<214, _>(|| link::info(card))?;
        let sector_bytes = block::info(disk).map_err(Failure::Server)?.sector_bytes;
        let count = (PAGE as u32).checked_div(sector_bytes).unwrap_or(0);
        let mut replies = Box::new(block::Replies::new());
        let client = block::Client { server: disk };
        Inbox::open(&mut *replies, |inbox| {
            measure::<215, _>(|| Ok(client.read(inbox, 0, count).map(ends)?))
        })
        .map_err(|failure| Failure::Server(failure.into()))?
    }
}

/// Sixteen pages that a call shows to another task, which looks at one word of each.
fn shown_pages() -> api::Result<Result<()>> {
    let program = Name::new("bench-partner").ok_or(api::Failure::Garbled)?;
    let task = process::start(rt::home(), &program, "object")?;
    let door = object()?;
    let client = Client { server: &door };
    let mut data = Buffer::zeroed(16).ok_or(api::Failure::Garbled)?;
    let failed = api::Failure::from;
    let measured = measure::<200, _>(|| client.look(&data).map_err(failed))
        .and_then(|()| measure::<201, _>(|| client.copied(&data).map_err(failed)))
        .and_then(|()| {
            measure::<202, _>(|| {
                data[8] = data[8].wrapping_add(1);
                client.look(&data).map_err(failed)
            })
        })
        .and_then(|()| {
            measure::<203, _>(|| {
                data.chunks_mut(PAGE).for_each(|page| page[8] = page[8].wrapping_add(1));
                client.look(&data).map_err(failed)
            })
        });
    process::kill(rt::home(), task)?;
    Ok(measured)
}

/// 4 KiB of a file, by a client, a file system and all file systems together whose stubs optimise nothing.
fn plain_files() -> api::Result<Result<()>> {
    let program = Name::new("bench-files").ok_or(api::Failure::Garbled)?;
    let start = |what, name| {
        let task = process::start(rt::home(), &program, what)?;
        wait_for(name).map(|_| task)
    };
    let tasks = [start("ram", plain::RAM)?, start("mounts", plain::NAME)?];
    let root = plain::Directory::root()?;
    root.write("/file", &[7; 2 * PAGE])?;
    let file = root.open("/file", How::default())?;
    let measured = plain::reading(|inbox| Ok(measure::<205, _>(|| file.read(inbox, 0, PAGE, ends))))?;
    tasks.into_iter().try_for_each(|task| process::kill(rt::home(), task))?;
    Ok(measured)
}

/// The server of that name, which takes a moment to be there.
fn wait_for(name: &str) -> api::Result<Uid> {
    let name = Name::new(name).ok_or(api::Failure::Garbled)?;
    let mut looks = 0;
    loop {
        match names::resolve(rt::home(), &name) {
            Ok(server) => return Ok(server),
            Err(failure) if looks == LOOKS => return Err(failure),
            Err(_) => looks += 1,
        }
        rt::time::sleep(PAUSE);
    }
}

/// A reference to the object of the program that was started last.
fn object() -> api::Result<Door> {
    let server = wait_for("bench-object")?;
    let room = Room::new().map_err(api::Failure::Kernel)?;
    sys::call_item(server, 0, [0; 8], room.window()).map_err(api::Failure::Kernel)?;
    Ok(room.into_door())
}

/// How often to look whether a program is ready, and the pause in between.
const LOOKS: u32 = 1000;
const PAUSE: core::time::Duration = core::time::Duration::from_millis(10);

/// Pages of a mapped file in turn, of which one is there at a time.
fn faults(file: &File) -> Result<()> {
    let mapping = Mapping::new(file, 2, 1, First::default()).map_err(Failure::Server)?;
    let look = mapping.enter().map_err(Failure::Server)?;
    let mut at = 0;
    measure::<204, _>(|| {
        at ^= PAGE / 8;
        Ok(look.words().get(at).map_or(0, |word| word.load(Relaxed)))
    })
}

/// Datagrams and a connection by loopback, both ends of which are this program's.
fn network() -> sockets::Result<Result<()>> {
    let net = Net::open()?;
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (one, other) = (net.datagrams(Some(at(7001)))?, net.datagrams(Some(at(7002)))?);
    let echo = measure_net::<194, _>(|| {
        one.send(at(7002), &[5; 64])?;
        let (from, bytes) = other.receive(PATIENCE_MS)?;
        other.send(from, &bytes)?;
        one.receive(PATIENCE_MS)
    });
    let listener = net.listen(at(7003), 1)?;
    let there = net.connect(at(7003), PATIENCE_MS)?;
    let back = listener.accept(PATIENCE_MS)?;
    Ok(echo.and_then(|()| {
        measure_net::<195, _>(|| {
            let mut sum = 0u64;
            for _ in 0..TRANSFER / PAGE {
                there.write(&[6; PAGE])?;
                let mut left = PAGE;
                while left > 0 {
                    let bytes = back.read(left, PATIENCE_MS)?;
                    sum = sum.wrapping_add(ends(&bytes));
                    left -= bytes.len();
                    if bytes.is_empty() {
                        return Err(sockets::Error::Closed);
                    }
                }
            }
            Ok(sum)
        })
    }))
}

/// How long to wait for what is sent by loopback, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// Bytes of the transfer by TCP.
const TRANSFER: usize = 64 << 10;

/// [`measure`] for what the network fails with.
fn measure_net<const REGION: u8, T>(mut run: impl FnMut() -> sockets::Result<T>) -> Result<()> {
    let mut outcome = Ok(());
    measure::<REGION, _>(|| match run() {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            outcome = Err(Failure::Network(error));
            Ok(None)
        }
    })?;
    outcome
}

/// The server of that name.
fn server(name: &str) -> api::Result<Uid> {
    Name::new(name).ok_or(api::Failure::Garbled).and_then(|name| names::resolve(rt::home(), &name))
}

/// The least that servers do: those that are there on every machine, but the ones of [`more_null_calls`].
fn null_calls(file: &File) -> Result<()> {
    measure::<196, _>(|| file.len())?;
    let net = Net::open().map_err(Failure::Network)?;
    let stream = net.host().open_stream().map_err(|_| Failure::Server(api::Failure::Garbled))?;
    measure::<197, _>(|| stream.phase().map_err(api::Failure::from))?;
    let own = sys::myself();
    measure::<198, _>(|| process::task_of(rt::home(), own))?;
    let console = server(console::NAME).map_err(Failure::Server)?;
    measure::<199, _>(|| console::drain(console, u64::MAX))
}

/// The least that the memory manager, the bus, file systems and modules do.
fn more_null_calls(root: &Directory) -> Result<()> {
    static CLOCK: Service = Service::new(clock::NAME);
    static CALENDAR: Service = Service::new(calendar::NAME);
    let manager = rt::own_pager();
    measure::<206, _>(|| offers::key(manager))?;
    let bus = server(bus::NAME).map_err(Failure::Server)?;
    measure::<207, _>(|| bus::device(bus, 0))?;
    measure::<208, _>(|| root.changes())?;
    let file = root.open("/boot/bench", How::default()).map_err(Failure::Server)?;
    measure::<209, _>(|| file.len())?;
    measure::<210, _>(|| clock::now(&CLOCK))?;
    measure::<211, _>(|| calendar::now(&CALENDAR))
}

/// Bytes to another program, and an answer.
fn pipes() -> api::Result<Result<()>> {
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let name = Name::new("bench-partner").ok_or(api::Failure::Garbled)?;
    let task = pipe::start(&name, "", Some(&there), Some(&back))?;
    let mut pair = Pair { there: there.writer()?, back: back.reader()? };
    let measured = measure::<191, _>(|| pair.send(&[], 0))
        .and_then(|()| measure::<192, _>(|| pair.send(&[3; 64], STREAM / 64)))
        .and_then(|()| measure::<193, _>(|| pair.send(&[3; PAGE], STREAM / PAGE)));
    there.close(End::WRITER);
    process::wait(rt::home(), task, u64::MAX)?;
    Ok(measured)
}

/// Bytes of a stream: several times what a pipe holds.
const STREAM: usize = 256 << 10;

/// Both ends of this program's side.
struct Pair {
    there: Writer,
    back: Reader,
}

impl Pair {
    /// Says how many bytes come, sends them piece by piece, and waits for what the partner makes of them.
    fn send(&mut self, piece: &[u8], count: usize) -> api::Result<u64> {
        let closed = |Closed| api::Failure::Garbled;
        self.there.write(&((piece.len() * count) as u64).to_le_bytes()).map_err(closed)?;
        for _ in 0..count {
            self.there.write(piece).map_err(closed)?;
        }
        let mut answer = [0; 8];
        let len = self.back.read(&mut answer);
        (len == answer.len()).then(|| u64::from_le_bytes(answer)).ok_or(api::Failure::Garbled)
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
