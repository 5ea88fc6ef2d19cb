//! A client and a server in Rust that count how often they read, write and ask the heap. The interface stands in `sockets.rs`.

mod stubs {
    include!("desk.rs");
}
mod expected;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::net::UnixStream;

use stubs::Desk;
use stubs::rt::{self, Failure};

thread_local! {
    /// Reads, writes and pieces of the heap of this thread.
    static COUNTS: Cell<[i32; 3]> = const { Cell::new([0; 3]) };
}

fn count(which: usize) {
    COUNTS.with(|counts| {
        let mut all = counts.get();
        all[which] += 1;
        counts.set(all);
    });
}

fn counts() -> [i32; 3] {
    COUNTS.with(Cell::get)
}

fn since(before: [i32; 3], now: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|which| now[which] - before[which])
}

/// The heap, which counts what it is asked for.
struct Counted;

// SAFETY: everything is the system's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(2);
        // SAFETY: what the caller promises is what is promised here.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(2);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static HEAP: Counted = Counted;

/// A connection that counts reads and writes.
struct Counting(UnixStream);

impl Read for Counting {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        count(0);
        self.0.read(bytes)
    }
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        count(1);
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers with what it was given. What it asks the heap for itself is not the stubs'.
#[derive(Default)]
struct Clerk {
    noted: i32,
    own: i32,
}

impl Clerk {
    fn own<T>(&mut self, make: impl FnOnce() -> T) -> Result<T, Failure> {
        let before = counts()[2];
        let made = make();
        self.own += counts()[2] - before;
        Ok(made)
    }
}

impl Desk::Server for Clerk {
    fn add(&mut self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok(a + b + self.noted)
    }
    fn echo(&mut self, s: &str) -> Result<String, Failure> {
        self.own(|| s.to_owned())
    }
    fn turn(&mut self, b: &[u8]) -> Result<Vec<u8>, Failure> {
        self.own(|| b.to_vec())
    }
    fn both(&mut self, n: &[String]) -> Result<Vec<String>, Failure> {
        self.own(|| n.to_vec())
    }
    fn note(&mut self, a: i32) -> Result<(), Failure> {
        self.noted += a;
        Ok(())
    }
    fn spent(&mut self) -> Result<(i32, i32, i32), Failure> {
        let [reads, writes, pieces] = counts();
        Ok((writes, reads, pieces - self.own))
    }
}

type Client = Desk::Client<Counting>;

/// A client, and the thread of its server.
fn served() -> (Client, std::thread::JoinHandle<()>) {
    let (near, far) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || {
        let mut clerk = Clerk::default();
        rt::serve(&mut Counting(far), |label, body| Desk::dispatch(&mut clerk, label, body)).unwrap();
    });
    (Desk::Client { transport: Counting(near) }, server)
}

/// Counts of the server's thread.
fn spent(client: &mut Client) -> [i32; 3] {
    let (writes, reads, pieces) = client.spent().unwrap();
    [reads, writes, pieces]
}

/// A call is one write and one read on both sides, and so many pieces of the heap.
fn asks<T>(client: &mut Client, name: &str, [own, servers]: [i32; 2], call: impl FnOnce(&mut Client) -> T) -> T {
    let server = spent(client);
    let before = counts();
    let result = call(client);
    assert_eq!(since(before, counts()), [1, 1, own], "{name}: the client");
    // The first of the two that ask is answered between them, with a body and a message of its own.
    assert_eq!(since(server, spent(client)), [2, 2, 2 + servers], "{name}: the server");
    result
}

fn calls_are_counted() {
    let (mut client, server) = served();
    let names = ["a", "bc", "def"].map(String::from);
    assert_eq!(asks(&mut client, "add", expected::ADD, |client| client.add(3, 4).unwrap()), 7);
    let text = "a text of some length";
    assert_eq!(asks(&mut client, "echo", expected::ECHO, |client| client.echo(text).unwrap()), text);
    let few = [7; 100];
    assert_eq!(asks(&mut client, "turn", expected::TURN, |client| client.turn(&few).unwrap()), few);
    assert_eq!(asks(&mut client, "both", expected::BOTH, |client| client.both(&names).unwrap()), names);
    drop(client);
    server.join().unwrap();
}

fn long_messages_arrive() {
    let (mut client, server) = served();
    let bytes: Vec<u8> = (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect();
    for length in (480..520).chain(4190..4230).chain([0, 20_000, 200_000]) {
        assert_eq!(client.turn(&bytes[..length]).unwrap(), &bytes[..length]);
    }
    drop(client);
    server.join().unwrap();
}

/// A request as a server sees it: label, length, body.
fn request(label: u32, numbers: &[i32]) -> Vec<u8> {
    let body = numbers.iter().flat_map(|number| number.to_le_bytes());
    let header = [label, 4 * numbers.len() as u32];
    header.into_iter().flat_map(u32::to_le_bytes).chain(body).collect()
}

/// Requests are told apart wherever the connection cuts them: many at once, and byte by byte.
fn requests_are_told_apart() {
    let (client, server) = served();
    let mut stream = client.transport.0;
    // A body is padded to words of eight bytes.
    let mut sent = request(4, &[1, 0]).repeat(800);
    sent.extend(request(0, &[10, 20]));
    for turn in 1..=2i32 {
        match turn {
            1 => stream.write_all(&sent).unwrap(),
            _ => sent.chunks(1).for_each(|byte| stream.write_all(byte).unwrap()),
        }
        let (label, body) = rt::read_message(&mut stream).unwrap().unwrap();
        assert_eq!((label, body), (0, i64::from(30 + 800 * turn).to_le_bytes().to_vec()));
    }
    drop(stream);
    server.join().unwrap();
}

/// A connection with what somebody answers to anything.
struct Answered(Cursor<Vec<u8>>);

impl Read for Answered {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Answered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server that answers more than was asked, or not enough, is not believed.
fn replies_are_one_message() {
    let whole = request(0, &[7, 0]);
    for length in 0..whole.len() + 4 {
        let mut reply = whole.clone();
        reply.resize(length, 0);
        let mut client = Desk::Client { transport: Answered(Cursor::new(reply)) };
        match client.add(3, 4) {
            Ok(sum) => assert!(length == whole.len() && sum == 7),
            Err(Failure::Io(_)) => assert_eq!(length, 0),
            Err(failure) => {
                assert!(length != whole.len() && matches!(failure, Failure::Malformed), "{length}: {failure}");
            }
        }
    }
}

fn main() {
    calls_are_counted();
    long_messages_arrive();
    requests_are_told_apart();
    replies_are_one_message();
}
