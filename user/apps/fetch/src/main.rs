//! Gets a page and prints it: `fetch URL`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use http::reply::{Fault, Reply};
use http::url::Url;
use net::sockets::{self, NAME_PATIENCE_MS, Net};
use rt::{eprintln, io};

rt::entry!(main);

/// How long to wait for a connection or for the next bytes, in milliseconds.
const PATIENCE_MS: u64 = 10_000;

/// Bytes that are read at a time.
const LEN_MAX: usize = 4096;

/// Reason why there is no page.
enum Failure {
    Address,
    Net(sockets::Error),
    Answer(Fault),
    Status(u16),
}

impl From<sockets::Error> for Failure {
    fn from(error: sockets::Error) -> Failure {
        Failure::Net(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Address => f.write_str("expected http://HOST[:PORT]/PATH"),
            Failure::Net(error) => error.fmt(f),
            Failure::Answer(Fault::Malformed) => f.write_str("the answer is not HTTP"),
            Failure::Answer(Fault::TooLong) => f.write_str("the answer's head is too long"),
            Failure::Answer(Fault::Cut) => f.write_str("the answer ends too early"),
            Failure::Status(code) => write!(f, "the server answers {code}"),
        }
    }
}

fn main() -> i32 {
    let arguments = rt::arguments();
    let [address] = &arguments[..] else {
        eprintln!("usage: fetch URL");
        return 2;
    };
    match fetch(address) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("fetch: {address}: {failure}");
            1
        }
    }
}

fn fetch(address: &str) -> Result<(), Failure> {
    let url = Url::parse(address).ok_or(Failure::Address)?;
    let net = Net::open()?;
    let to = SocketAddr::new(net.resolve(&url.host, NAME_PATIENCE_MS)?, url.port);
    let stream = net.connect(to, PATIENCE_MS)?;
    stream.write(&url.request())?;
    let (mut reply, mut body) = (Reply::default(), Vec::new());
    while !reply.is_over() {
        let bytes = stream.read(LEN_MAX, PATIENCE_MS)?;
        if bytes.is_empty() {
            break;
        }
        reply.push(&bytes, &mut body).map_err(Failure::Answer)?;
        match reply.code() {
            Some(200..300) => {
                io::write(&body);
                body.clear();
            }
            Some(code) => return Err(Failure::Status(code)),
            None => {}
        }
    }
    reply.end().map_err(Failure::Answer)
}
