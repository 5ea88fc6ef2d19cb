//! Connections whose bytes go through memory: one that ends while bytes are on their way, both directions at once, and programs that mean no good.

use crate::{BYTES, PATIENCE_MS, byte, check, local};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use net::memory::Memory;
use net::sockets::{ANYWHERE, Entrance, Error, NAME, Net, Result, Sockets, Stream, endpoint};
use rt::api::stub::{Failure as Fault, View};
use rt::api::{Failure, Name, names};
use rt::door::Reference;
use rt::sys::Uid;
use rt::thread::{Handle, spawn};

type Shared = Reference<Sockets::SharedStream::Client<View>>;

/// Bytes each way of a connection that both ends write to all the time.
const BOTH_WAYS: usize = 300_000;

/// Connections that two threads of each end use, one after the other.
const ROUNDS: usize = 8;

/// Connections of one program that have memory, at most.
const OWN_MAX: usize = 16;

/// Connections of before that may still have theirs.
const SLACK: usize = 6;

/// All of it.
pub fn all() -> Result<()> {
    let net = Net::open()?;
    ends_early(&net)?;
    both_ways(&net)?;
    two_threads()?;
    limits(&net)?;
    nonsense(&net)
}

/// All bytes that are written are there, and no others. Without a limit it waits for the end.
fn expect_all(stream: &Stream, len: usize) -> Result<()> {
    let mut read = 0;
    loop {
        let bytes = stream.read(3000, PATIENCE_MS)?;
        check(bytes.iter().enumerate().all(|(at, &has)| has == byte(read + at)), "other bytes arrived")?;
        read += bytes.len();
        if bytes.is_empty() || read >= len {
            return check(read == len.min(BYTES), "bytes are missing");
        }
    }
}

fn joined<T>(thread: Handle<Result<T>>) -> Result<T> {
    thread.join().ok_or(Error::Bad)?
}

/// A program closes a connection when its bytes are in memory, and not yet sent. They arrive.
fn ends_early(net: &Net) -> Result<()> {
    let listener = net.listen(local(5004), 1)?;
    let sender = spawn(32, || -> Result<()> {
        let net = Net::open()?;
        let stream = net.connect(local(5004), PATIENCE_MS)?;
        stream.write(&(0..BYTES).map(byte).collect::<Vec<u8>>())
    });
    let sender = sender.map_err(Failure::Kernel)?;
    let stream = listener.accept(PATIENCE_MS)?;
    expect_all(&stream, BYTES)?;
    check(stream.read(8, PATIENCE_MS)?.is_empty(), "more has come than was written")?;
    joined(sender)
}

/// Two threads of each end use one connection, one for each direction.
fn both_ways(net: &Net) -> Result<()> {
    let listener = net.listen(local(5005), 1)?;
    let other = spawn(32, || -> Result<()> {
        let net = Net::open()?;
        exchange(&net.connect(local(5005), PATIENCE_MS)?)
    });
    let other = other.map_err(Failure::Kernel)?;
    exchange(&listener.accept(PATIENCE_MS)?)?;
    joined(other)
}

fn exchange(stream: &Stream) -> Result<()> {
    let all: Vec<u8> = (0..BOTH_WAYS).map(byte).collect();
    let mut written = 0;
    let mut read = 0;
    // Never waits where the other end could wait for this one.
    while written < all.len() || read < all.len() {
        if written < all.len() {
            match stream.write_some(&all[written..], 1) {
                Ok(len) => written += len,
                Err(Error::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        match stream.read(5000, u64::from(written == all.len()) * PATIENCE_MS) {
            Ok(bytes) => {
                let is_so = bytes.iter().enumerate().all(|(at, &has)| has == byte(read + at));
                check(is_so && !bytes.is_empty(), "other bytes arrived")?;
                read += bytes.len();
            }
            Err(Error::TimedOut) if written < all.len() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One thread of a program writes to a connection, and another one reads from it: each may be in the middle of a call when the other one's bytes begin to go through memory.
fn two_threads() -> Result<()> {
    let net: &'static Net = Box::leak(Box::new(Net::open()?));
    let listener = net.listen(local(5008), 1)?;
    for _ in 0..ROUNDS {
        let near = Arc::new(net.connect(local(5008), PATIENCE_MS)?);
        let far = Arc::new(listener.accept(PATIENCE_MS)?);
        let mut threads = Vec::new();
        for stream in [near, far] {
            let theirs = stream.clone();
            let write = move || {
                theirs.write(&(0..BYTES).map(byte).collect::<Vec<u8>>())?;
                theirs.shutdown()
            };
            threads.push(spawn(32, write).map_err(Failure::Kernel)?);
            threads.push(spawn(32, move || expect_all(&stream, usize::MAX)).map_err(Failure::Kernel)?);
        }
        threads.into_iter().try_for_each(joined)?;
    }
    Ok(())
}

fn server() -> Result<Uid> {
    Ok(names::resolve(rt::home(), &Name::new(NAME).ok_or(Error::Bad)?)?)
}

/// A connection that asks for memory by itself.
fn connect(net: &Net, port: u16) -> Result<Shared> {
    let stream = net.host().open_stream()?;
    stream.connect(&endpoint(local(port)), &endpoint(ANYWHERE))?;
    Entrance::Client { server: server()? }.wait(stream.ticket()?, Sockets::WRITABLE, PATIENCE_MS)?;
    stream.narrow().map_err(|_| Error::Bad)
}

fn memory() -> Result<Memory> {
    Memory::new().ok_or(Error::Limit)
}

/// Memory is given once to a connection that is there, and to so many of a program.
fn limits(net: &Net) -> Result<()> {
    let listener = net.listen(local(5006), 1)?;
    let closed: Shared = net.host().open_stream()?.narrow().map_err(|_| Error::Bad)?;
    let memory = memory()?;
    let window = memory.region().fpage();
    check(closed.share(window) == Err(Fault::Refused(Sockets::CLOSED)), "there is no connection")?;
    let mut all = Vec::new();
    for made in 0..=OWN_MAX {
        let stream = connect(net, 5006)?;
        // The other end goes, so that there are sockets for all.
        drop(listener.accept(PATIENCE_MS)?);
        match stream.share(window) {
            Ok(arrived) => check(memory.region().is(arrived), "it is not whole")?,
            Err(Fault::Refused(Sockets::LIMIT)) => {
                memory.region().clear();
                // Connections that have just been closed may not have sent everything yet.
                return check(made + SLACK >= OWN_MAX, "it has less than it may have");
            }
            Err(fault) => return Err(fault.into()),
        }
        check(stream.share(window) == Err(Fault::Refused(Sockets::IN_USE)), "it was given twice")?;
        let is_clean = memory.region().words().iter().all(|word| word.load(Ordering::Relaxed) == 0);
        check(is_clean, "it is not clean")?;
        memory.begun().store(1, Ordering::Release);
        memory.region().write(memory.region().size() / 2, &[0x5a; 999]);
        all.push(stream);
    }
    check(false, "there is no limit")
}

/// A program writes nonsense to the memory of its connection, at every word, and asks for turns. Its connection may end; that of another goes on.
fn nonsense(net: &Net) -> Result<()> {
    let listener = net.listen(local(5007), 2)?;
    let well = net.connect(local(5007), PATIENCE_MS)?;
    let others = listener.accept(PATIENCE_MS)?;
    let memory = memory()?;
    for value in [1, 5000, u64::MAX / 2, u64::MAX] {
        let stream = connect(net, 5007)?;
        let peer = listener.accept(PATIENCE_MS)?;
        stream.share(memory.region().fpage())?;
        memory.begun().store(1, Ordering::Release);
        for word in memory.to_send().0.iter().chain(memory.received().0) {
            word.store(value, Ordering::Release);
            Entrance::Client { server: server()? }.poke()?;
        }
        peer.write(b"to somebody who lies")?;
        well.write(b"all is well")?;
        check(others.read(100, PATIENCE_MS)? == b"all is well", "another connection suffers")?;
        drop((stream, peer));
        memory.region().clear();
    }
    Ok(())
}
