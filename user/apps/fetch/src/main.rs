//! Gets a page: `fetch URL` shows it, `fetch URL > FILE` keeps it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use files::{Directory, File};
use http::reply::{Fault, Reply};
use http::url::Url;
use net::sockets::{self, Net};
use rt::{api, io, println};
use vfs::How;

rt::entry!(main);

/// How long to wait for a connection or for the next bytes, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// Bytes that are read at a time.
const LEN_MAX: usize = 4096;

/// Reason why there is no page.
enum Failure {
    Address,
    Net(sockets::Error),
    File(api::Failure),
    Answer(Fault),
    Status(u16),
}

impl From<sockets::Error> for Failure {
    fn from(error: sockets::Error) -> Failure {
        Failure::Net(error)
    }
}

impl From<api::Failure> for Failure {
    fn from(failure: api::Failure) -> Failure {
        Failure::File(failure)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Address => f.write_str("expected http://HOST[:PORT]/PATH"),
            Failure::Net(error) => error.fmt(f),
            Failure::File(failure) => failure.fmt(f),
            Failure::Answer(Fault::Malformed) => f.write_str("the answer is not HTTP"),
            Failure::Answer(Fault::TooLong) => f.write_str("the answer's head is too long"),
            Failure::Answer(Fault::Cut) => f.write_str("the answer ends too early"),
            Failure::Status(code) => write!(f, "the server answers {code}"),
        }
    }
}

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let (address, file) = match words[..] {
        [address] => (address, None),
        [address, ">", file] => (address, Some(file)),
        _ => {
            println!("usage: fetch URL [> FILE]");
            return 2;
        }
    };
    match fetch(address, file) {
        Ok(()) => 0,
        Err(failure) => {
            println!("fetch: {address}: {failure}");
            1
        }
    }
}

/// Place for a page: a file and how long that is, or the console.
struct Target(Option<(File, u64)>);

impl Target {
    fn of(file: Option<&str>) -> Result<Target, Failure> {
        let Some(path) = file else { return Ok(Target(None)) };
        let how = How { create: true, truncate: true, ..How::default() };
        Ok(Target(Some((Directory::root()?.open(path, how)?, 0))))
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.0 {
            None => io::write(bytes),
            Some((file, len)) => {
                file.write_at(*len, bytes)?;
                *len += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |(file, _)| Ok(file.sync()?))
    }
}

fn fetch(address: &str, file: Option<&str>) -> Result<(), Failure> {
    let url = Url::parse(address).ok_or(Failure::Address)?;
    let net = Net::open()?;
    let to = SocketAddr::new(net.resolve(&url.host, PATIENCE_MS)?, url.port);
    let stream = net.connect(to, PATIENCE_MS)?;
    stream.write(&url.request())?;
    let (mut reply, mut body, mut target) = (Reply::default(), Vec::new(), None);
    while !reply.is_over() {
        let bytes = stream.read(LEN_MAX, PATIENCE_MS)?;
        if bytes.is_empty() {
            break;
        }
        reply.push(&bytes, &mut body).map_err(Failure::Answer)?;
        match reply.code() {
            // A file is not touched before there is something for it.
            Some(200..300) => {
                let mut place = target.take().map_or_else(|| Target::of(file), Ok)?;
                place.add(&body)?;
                target = Some(place);
                body.clear();
            }
            Some(code) => return Err(Failure::Status(code)),
            None => {}
        }
    }
    reply.end().map_err(Failure::Answer)?;
    target.map_or(Ok(()), Target::end)
}
