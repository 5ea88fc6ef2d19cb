//! Connects, listens, and sends texts: `nc HOST PORT [TEXT...]`, and other words.
//!
//! `nc HOST PORT [TEXT...]` connects, sends a line, and shows what comes. `nc listen PORT [COUNT]` shows what comes by so many connections, `nc echo PORT [COUNT]` sends it
//! back. `nc udp HOST PORT TEXT...` sends a datagram and shows the answer, `nc udp-echo PORT [COUNT]` sends datagrams back.
//!
//! To see how fast a connection is: `nc send HOST PORT BYTES` sends so many, which `nc discard PORT [COUNT]` takes by so many connections;
//! `nc chargen PORT BYTES` sends them to who connects, which `nc count HOST PORT` does. Each says how many bytes there were, and how long they took.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use net::sockets::{Error, FOREVER, NAME_PATIENCE_MS, Net, Result, Stream};
use rt::{eprintln, println, time};

rt::entry!(main);

/// How long to wait for a connection or an answer, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// How often a program is called that is not there yet, and the pause before the next time.
const DIALS: usize = 50;
/// See [`DIALS`].
const PAUSE: Duration = Duration::from_millis(20);

/// How long to wait for the answer to a datagram before it is sent again, in milliseconds.
const AGAIN_MS: u64 = 1_000;

/// Bytes that are read at a time.
const LEN_MAX: usize = 4096;

/// Connections that nobody has accepted yet.
const BACKLOG: u16 = 4;

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let outcome = match words[..] {
        ["listen", port] => listen(port, "1", show),
        ["listen", port, count] => listen(port, count, show),
        ["echo", port] => listen(port, "1", echo),
        ["echo", port, count] => listen(port, count, echo),
        ["discard", port] => listen(port, "1", count),
        ["discard", port, connections] => listen(port, connections, count),
        ["chargen", port, bytes] => generate(port, bytes),
        ["send", host, port, bytes] => send(host, port, bytes),
        ["count", host, port] => Net::open().and_then(|net| count(&dial(&net, host, port)?)),
        ["udp-echo", port] => echo_datagrams(port, "1"),
        ["udp-echo", port, count] => echo_datagrams(port, count),
        ["udp", host, port, ref text @ ..] if !text.is_empty() => datagram(host, port, &text.join(" ")),
        [host, port, ref text @ ..] => connect(host, port, text),
        _ => {
            eprintln!("usage: nc HOST PORT [TEXT...] | listen PORT [COUNT] | echo PORT [COUNT]");
            println!("          | udp HOST PORT TEXT... | udp-echo PORT [COUNT]");
            println!(
                "          | send HOST PORT BYTES | discard PORT [COUNT] | chargen PORT BYTES | count HOST PORT"
            );
            return 2;
        }
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("nc: {error}");
            1
        }
    }
}

fn number(text: &str) -> Result<u16> {
    text.parse().map_err(|_| Error::Bad)
}

/// All addresses, with a port.
fn everywhere(port: &str) -> Result<SocketAddr> {
    Ok(SocketAddr::from(([0, 0, 0, 0], number(port)?)))
}

fn find(net: &Net, host: &str, port: &str) -> Result<SocketAddr> {
    Ok(SocketAddr::new(net.resolve(host, NAME_PATIENCE_MS)?, number(port)?))
}

/// Connects to a program that may be about to start: one that is not there after a second is not waited for.
fn dial<'a>(net: &'a Net, host: &str, port: &str) -> Result<Stream<'a>> {
    let address = find(net, host, port)?;
    for _ in 0..DIALS {
        match net.connect(address, PATIENCE_MS) {
            Err(Error::Closed) => time::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    net.connect(address, PATIENCE_MS)
}

fn connect(host: &str, port: &str, text: &[&str]) -> Result<()> {
    let net = Net::open()?;
    let stream = dial(&net, host, port)?;
    if !text.is_empty() {
        stream.write((text.join(" ") + "\n").as_bytes())?;
    }
    stream.shutdown()?;
    show(&stream)
}

/// Shows what comes, to its end.
fn show(stream: &Stream) -> Result<()> {
    loop {
        let bytes = stream.read(LEN_MAX, FOREVER)?;
        if bytes.is_empty() {
            return Ok(());
        }
        rt::print!("{}", String::from_utf8_lossy(&bytes));
    }
}

/// Sends back what comes, to its end.
fn echo(stream: &Stream) -> Result<()> {
    loop {
        let bytes = stream.read(LEN_MAX, FOREVER)?;
        if bytes.is_empty() {
            return Ok(());
        }
        stream.write(&bytes)?;
    }
}

/// Says how many bytes there were, and how long they took.
fn tell(bytes: u64, since: Duration) {
    let us = (time::now() - since).as_micros().max(1);
    println!("{bytes} bytes in {} ms, {} KiB/s", us / 1000, u128::from(bytes) * 1_000_000 / 1024 / us);
}

/// Counts what comes, to its end.
fn count(stream: &Stream) -> Result<()> {
    let (mut bytes, since) = (0, time::now());
    loop {
        match stream.read(LEN_MAX, FOREVER)?.len() {
            0 => break,
            len => bytes += len as u64,
        }
    }
    tell(bytes, since);
    Ok(())
}

/// Sends so many bytes. The other side has had them all when it closes the connection, too.
fn produce(stream: &Stream, bytes: u64) -> Result<()> {
    let (mut left, since) = (bytes, time::now());
    let text: Vec<u8> = (0..LEN_MAX).map(|at| b'a' + (at % 26) as u8).collect();
    while left > 0 {
        let len = left.min(LEN_MAX as u64);
        stream.write(&text[..len as usize])?;
        left -= len;
    }
    stream.shutdown()?;
    while !stream.read(LEN_MAX, FOREVER)?.is_empty() {}
    tell(bytes, since);
    Ok(())
}

fn send(host: &str, port: &str, bytes: &str) -> Result<()> {
    let bytes = bytes.parse().map_err(|_| Error::Bad)?;
    let net = Net::open()?;
    produce(&dial(&net, host, port)?, bytes)
}

fn generate(port: &str, bytes: &str) -> Result<()> {
    let bytes = bytes.parse().map_err(|_| Error::Bad)?;
    listen(port, "1", |stream| produce(stream, bytes))
}

fn listen(port: &str, count: &str, serve: impl Fn(&Stream) -> Result<()>) -> Result<()> {
    let net = Net::open()?;
    let listener = net.listen(everywhere(port)?, BACKLOG)?;
    for _ in 0..number(count)? {
        let stream = listener.accept(FOREVER)?;
        // One that breaks off is over, and others may come.
        match serve(&stream) {
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn datagram(host: &str, port: &str, text: &str) -> Result<()> {
    let net = Net::open()?;
    let socket = net.datagrams(None)?;
    let to = find(&net, host, port)?;
    let mut left = PATIENCE_MS / AGAIN_MS;
    let (from, bytes) = loop {
        socket.send(to, text.as_bytes())?;
        left -= 1;
        match socket.receive(AGAIN_MS) {
            // A datagram may be lost, and the other side may be about to begin.
            Err(Error::TimedOut) if left > 0 => {}
            outcome => break outcome?,
        }
    };
    println!("{from}: {}", String::from_utf8_lossy(&bytes));
    Ok(())
}

fn echo_datagrams(port: &str, count: &str) -> Result<()> {
    let net = Net::open()?;
    let socket = net.datagrams(Some(everywhere(port)?))?;
    for _ in 0..number(count)? {
        let (from, bytes) = socket.receive(FOREVER)?;
        socket.send(from, &bytes)?;
    }
    Ok(())
}
