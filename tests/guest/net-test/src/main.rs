//! The network, as its clients see it. `net-test` connects two ends of this program over loopback, and sends more than any buffer holds; `net-test greedy`
//! takes all the sockets that it may have, waits with many threads, and ends in the middle of it; `net-test many` has a thousand connections at once; `net-test stranger` asks the card's driver for what is the network
//! server's; `net-test hold ADDRESS:PORT` keeps a connection until it is lost; `net-test apart NAME PORT OTHER ADDRESS:PORT` uses the card beside another program, which has the port `OTHER`; `net-test clock ADDRESS:PORT` tells another machine the time for ever; `net-test rest SECONDS` does nothing.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod memory;

use alloc::vec::Vec;
use core::hint::black_box;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use net::link;
use net::sockets::{Entrance, Error, FOREVER, NAME, Net, Result};
use rt::api::{Failure, Name, Status, names};
use rt::door::Room;
use rt::println;
use rt::sys::{Fpage, Rights};
use rt::thread::spawn;
use rt::time::{now_ns, sleep};

rt::entry!(main);

/// Sockets that a program gets while others have few. Those of one that has just ended may still be there.
const OWN_LEAST: usize = 40;
/// See [`OWN_LEAST`].
const OWN_MAX: usize = 65;

/// Threads of a greedy program: more than the server has.
const THREADS: usize = 24;

/// Bytes that are sent.
const BYTES: usize = 200_000;

/// How long to wait, in milliseconds.
const PATIENCE_MS: u64 = 20_000;

fn main() -> i32 {
    let arguments = rt::arguments();
    let outcome = match arguments.first().map(|word| word.as_str()) {
        Some("greedy") => greedy(),
        Some("many") => many(),
        Some("stranger") => stranger(),
        Some("clock") => clock(arguments.get(1).map_or("", |word| word.as_str())),
        Some("hold") => hold(arguments.get(1).map_or("", |word| word.as_str())),
        Some("apart") => apart(&arguments[1..].iter().map(|word| word.as_str()).collect::<Vec<_>>()),
        Some("rest") => rest(arguments.get(1).map_or("", |word| word.as_str())),
        _ => stream()
            .and_then(|()| datagrams())
            .and_then(|()| groups())
            .and_then(|()| refusals())
            .and_then(|()| tickets())
            .and_then(|()| memory::all()),
    };
    match outcome {
        Ok(()) => {
            println!("net-test: all is well");
            0
        }
        Err(error) => {
            println!("net-test: {error}");
            1
        }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn check(is_so: bool, what: &str) -> Result<()> {
    if is_so {
        return Ok(());
    }
    println!("net-test: {what}");
    Err(Error::Bad)
}

fn byte(at: usize) -> u8 {
    ((at * 31) >> 4) as u8
}

/// More bytes than any buffer holds, from one thread to another, and how many there were back.
fn stream() -> Result<()> {
    let net = Net::open()?;
    let listener = net.listen(local(5000), 1)?;
    let sender = spawn(32, || -> Result<usize> {
        let net = Net::open()?;
        let stream = net.connect(local(5000), PATIENCE_MS)?;
        let all: Vec<u8> = (0..BYTES).map(byte).collect();
        stream.write(&all)?;
        stream.shutdown()?;
        let answer = stream.read(8, PATIENCE_MS)?;
        Ok(usize::from_le_bytes(answer.try_into().map_err(|_| Error::Bad)?))
    });
    let sender = sender.map_err(Failure::Kernel)?;
    let stream = listener.accept(PATIENCE_MS)?;
    let mut read = 0;
    loop {
        let bytes = stream.read(4096, PATIENCE_MS)?;
        if bytes.is_empty() {
            break;
        }
        check(bytes.iter().enumerate().all(|(at, &has)| has == byte(read + at)), "other bytes arrived")?;
        read += bytes.len();
    }
    stream.write(&read.to_le_bytes())?;
    let told = sender.join().ok_or(Error::Bad)??;
    check(read == BYTES && told == BYTES, "bytes are missing")
}

fn datagrams() -> Result<()> {
    let net = Net::open()?;
    let (one, other) = (net.datagrams(None)?, net.datagrams(Some(local(5001)))?);
    for number in 0..40u8 {
        one.send(local(5001), &[number; 100])?;
        let (from, bytes) = other.receive(PATIENCE_MS)?;
        check(bytes == [number; 100], "another datagram arrived")?;
        other.send(from, &bytes[..usize::from(number)])?;
        let (from, bytes) = one.receive(PATIENCE_MS)?;
        check(from == local(5001) && bytes.len() == usize::from(number), "another answer arrived")?;
    }
    one.connect(Some(local(5997)))?;
    one.send(local(5997), b"to nobody")?;
    check(one.receive(PATIENCE_MS) == Err(Error::Refused), "nobody takes it")?;
    other.send(local(5997), b"to nobody")?;
    check(other.receive(100) == Err(Error::TimedOut), "it is connected to nobody")?;
    let echo = net.echo()?;
    echo.ask(local(0).ip(), 7, b"these bytes")?;
    check(echo.answer(PATIENCE_MS)? == (local(0).ip(), 7, b"these bytes".to_vec()), "they come back")
}

/// Two sockets of one port have what is sent to a group, and one that has not joined it has nothing.
fn groups() -> Result<()> {
    let net = Net::open()?;
    let (group, any) = (IpAddr::from([239, 7, 7, 7]), SocketAddr::from(([0, 0, 0, 0], 5004)));
    let all = [net.shared_datagrams(any)?, net.shared_datagrams(any)?, net.shared_datagrams(any)?];
    for member in &all[..2] {
        member.join(group)?;
    }
    all[2].set_sending(local(0).ip(), 1, true)?;
    all[2].send(SocketAddr::new(group, 5004), b"to all")?;
    for member in &all[..2] {
        check(member.receive(PATIENCE_MS)? == (local(5004), b"to all".to_vec()), "a member has nothing")?;
    }
    check(all[2].receive(100) == Err(Error::TimedOut), "it has not joined the group")?;
    check(all[0].join(group) == Err(Error::InUse), "it is a member")?;
    all[0].leave(group)?;
    check(all[0].leave(group) == Err(Error::NotFound), "it is no member")
}

fn refusals() -> Result<()> {
    let net = Net::open()?;
    check(net.connect(local(5999), PATIENCE_MS).err() == Some(Error::Closed), "nobody listens there")?;
    let listener = net.listen(local(5002), 1)?;
    check(net.listen(local(5002), 1).err() == Some(Error::InUse), "the port is in use")?;
    check(listener.accept(10).err() == Some(Error::TimedOut), "nobody came")?;
    drop(listener);
    // Its end comes by the kernel's message to the server.
    let mut tries = 0;
    while net.listen(local(5002), 1).is_err() {
        tries += 1;
        check(tries < 100, "the port is free again")?;
        sleep(Duration::from_millis(10));
    }
    let origin = local(5998);
    let listener = net.listen(local(5010), 2)?;
    let near = net.connect_from(origin, local(5010), PATIENCE_MS)?;
    check(near.local()? == origin && listener.accept(PATIENCE_MS)?.peer()? == origin, "it begins there")?;
    let again = net.connect_from(origin, local(5010), PATIENCE_MS).err();
    check(again == Some(Error::InUse), "there is a connection between these ends")?;
    let far = SocketAddr::from(([127, 0, 0, 1], 0));
    check(net.connect(far, PATIENCE_MS).err() == Some(Error::Bad), "no port")?;
    check(net.resolve("localhost", 0).ok() == Some(local(0).ip()), "localhost")
}

/// A ticket that is nobody's is ready for everything, and tells nothing.
fn tickets() -> Result<()> {
    let server = names::resolve(rt::home(), &Name::new(NAME).ok_or(Error::Bad)?)?;
    for ticket in [0, 1, u64::MAX] {
        let ready = Entrance::Client { server }.wait(ticket, 3, FOREVER)?;
        check(ready == 3, "it is ready")?;
    }
    Ok(())
}

/// The driver has a client, and nobody else gets frames, whatever he hands over.
fn stranger() -> Result<()> {
    let driver = names::resolve(rt::home(), &Name::new(link::NAME).ok_or(Error::Bad)?)?;
    let region = link::region().ok_or(Error::Bad)?;
    let room = Room::new().map_err(Failure::Kernel)?;
    let page = Fpage::memory(region.fpage().base(), 12, Rights::RW);
    for rings in [region.fpage(), page, region.fpage().with_rights(Rights::R)] {
        let outcome = link::attach(driver, rings, room.window());
        check(outcome == Err(Failure::Refused(Status::Taken)), "there is a client")?;
        let _ = rt::sys::flush(region.fpage());
    }
    check(link::wait(driver) == Err(Failure::Refused(Status::Denied)), "it is not the client")?;
    for _ in 0..100 {
        link::kick(driver)?;
    }
    let net = Net::open()?;
    let echo = net.echo()?;
    echo.ask(IpAddr::from([10, 0, 2, 2]), 1, &[0; 56])?;
    echo.answer(PATIENCE_MS)?;
    Ok(())
}

/// Connections at once, in a system whose network server allows as many.
const MANY: usize = 1000;

/// How often a port is asked for that a program which has ended may still have.
const TRIES: usize = 500;

/// Both ends of many connections, each of which is used when all are there.
fn many() -> Result<()> {
    let net = Net::open()?;
    // The sockets of a program that has just ended go one after the other, and its port with the last.
    let listener = (0..TRIES)
        .find_map(|_| match net.listen(local(5003), 8) {
            Err(Error::InUse) => {
                sleep(Duration::from_millis(20));
                None
            }
            outcome => Some(outcome),
        })
        .unwrap_or(Err(Error::InUse))?;
    let mut pairs = Vec::new();
    for _ in 0..MANY {
        let near = net.connect(local(5003), PATIENCE_MS)?;
        pairs.push((near, listener.accept(PATIENCE_MS)?));
    }
    for (at, (near, far)) in pairs.iter().enumerate() {
        near.write(&at.to_le_bytes())?;
        far.write(&(!at).to_le_bytes())?;
    }
    for (at, (near, far)) in pairs.iter().enumerate() {
        check(far.read(8, PATIENCE_MS)? == at.to_le_bytes(), "it arrives")?;
        check(near.read(8, PATIENCE_MS)? == (!at).to_le_bytes(), "and the answer")?;
    }
    Ok(())
}

/// Time between two words of the clock.
const TICK: Duration = Duration::from_millis(20);

/// Priority of the clock: below all that has something to do.
const CLOCK_PRIORITY: u8 = 1;

/// Steps of a loop that keeps the processor busy, between two looks for an answer, and looks before the clock says again what it has said.
const BUSY: usize = 10_000;
/// See [`BUSY`].
const LOOKS: usize = 1000;

/// Tells another machine the time, in nanoseconds, and each time waits for that machine to say it back.
///
/// It is meant for an emulator whose time is what the machine executes, and leaps to the next timer while nobody runs. While this waits it keeps the processor
/// busy, so that no time is skipped until the other machine has done what it had to do at this moment.
fn clock(at: &str) -> Result<()> {
    let to: SocketAddr = at.parse().map_err(|_| Error::Bad)?;
    spawn(CLOCK_PRIORITY, move || tell(to)).map_err(Failure::Kernel)?.join().ok_or(Error::Bad)?
}

fn tell(to: SocketAddr) -> Result<()> {
    let net = Net::open()?;
    let socket = net.datagrams(None)?;
    loop {
        let now = now_ns().to_le_bytes();
        let mut looks = 0;
        loop {
            if looks % LOOKS == 0 {
                socket.send(to, &now)?;
            }
            looks += 1;
            match socket.receive(0) {
                Ok((_, bytes)) if bytes == now => break,
                Ok(_) => {}
                Err(Error::TimedOut) => (0..BUSY).for_each(|step| _ = black_box(step)),
                Err(error) => return Err(error),
            }
        }
        sleep(TICK);
    }
}

/// Keeps a connection until somebody ends it.
fn hold(at: &str) -> Result<()> {
    let net = Net::open()?;
    let stream = net.connect(at.parse().map_err(|_| Error::Bad)?, PATIENCE_MS)?;
    stream.write(b"hold me")?;
    println!("net-test: it holds a connection");
    loop {
        match stream.read(64, FOREVER) {
            Ok(bytes) => check(!bytes.is_empty(), "the other end has closed it")?,
            Err(error) => {
                println!("net-test: the connection is lost: {error}");
                return Ok(());
            }
        }
    }
}

/// Datagrams of each of two programs that use the card at once.
const ROUNDS: usize = 200;

/// Sends datagrams, and asks for echoes, each of which says whose it is, while another program does the same.
fn apart(words: &[&str]) -> Result<()> {
    let [name, own, other, to] = words[..] else { return Err(Error::Bad) };
    let (Ok(name), Ok(own), Ok(other), Ok(to)) =
        (name.parse::<u8>(), own.parse(), other.parse(), to.parse::<SocketAddr>())
    else {
        return Err(Error::Bad);
    };
    let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
    let net = Net::open()?;
    let (socket, echo) = (net.datagrams(Some(any(own)))?, net.echo()?);
    let mut tries = 0;
    // The other one has its port, and nobody else gets it.
    while net.datagrams(Some(any(other))).map(drop) != Err(Error::InUse) {
        tries += 1;
        check(tries < TRIES, "the other program is not there")?;
        sleep(Duration::from_millis(10));
    }
    let own = [name; 40];
    for round in 0..ROUNDS {
        // Both ask with the same numbers.
        echo.ask(to.ip(), round as u16, &own)?;
        socket.send(to, &[name; 100][..50 + round % 50])?;
        let (from, bytes) = socket.receive(PATIENCE_MS)?;
        check(from == to && bytes.len() == 50 + round % 50, "another datagram arrived")?;
        check(bytes.iter().all(|&byte| byte == name), "a datagram of the other program arrived")?;
        let answer = echo.answer(PATIENCE_MS)?;
        check(answer == (to.ip(), round as u16, own.to_vec()), "an echo of the other program arrived")?;
    }
    // The other one goes on meanwhile, and is not heard here.
    check(socket.receive(2000) == Err(Error::TimedOut), "one more datagram arrived")?;
    check(echo.answer(10) == Err(Error::TimedOut), "one more echo arrived")?;
    println!("net-test: {name} has its own alone");
    Ok(())
}

fn rest(seconds: &str) -> Result<()> {
    sleep(Duration::from_secs(seconds.parse().map_err(|_| Error::Bad)?));
    Ok(())
}

/// Takes what it can, and ends while threads of it wait.
fn greedy() -> Result<()> {
    let net = Net::open()?;
    let mut all = Vec::new();
    loop {
        match net.datagrams(None) {
            Ok(socket) => all.push(socket),
            Err(Error::Limit) => break,
            Err(error) => return Err(error),
        }
    }
    check((OWN_LEAST..=OWN_MAX).contains(&all.len()), "it has as many sockets as it gets")?;
    check(net.datagrams(None).err() == Some(Error::Limit), "and no more")?;
    // Those that wait keep nobody of the server's busy.
    let server = names::resolve(rt::home(), &Name::new(NAME).ok_or(Error::Bad)?)?;
    let ticket = all[0].ticket();
    for _ in 0..THREADS {
        let wait = move || Entrance::Client { server }.wait(ticket, 1, FOREVER).is_ok();
        spawn(32, wait).map_err(Failure::Kernel)?.detach();
    }
    sleep(Duration::from_millis(20));
    // The last two are of use yet.
    let (Some(one), Some(other)) = (all.pop(), all.pop()) else { return Err(Error::Bad) };
    one.send(local(9), b"to nobody")?;
    drop((one, other));
    Ok(())
}
