//! A server of files, by HTTP/1.1: `httpd [PORT [DIRECTORY [write]]]`. With the last word, clients keep files there, and delete them.
//!
//! Reading order: [`desk`], where connections come from; [`connection`], one of them from its beginning to its end; [`site`], the files. What requests mean and what is
//! answered, the library `http` knows.
//!
//! **Some threads, each with a connection.** No client can keep one for long by doing nothing: who is slow has seconds, and less when all threads are busy and
//! somebody else waits.
//!
//! **Servers end, and this one goes on.** Files are opened anew, where they were; when the network server ends the connections end with it, and there is a new listener.
//! A file system or the network that is started again is found again.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod connection;
mod desk;
mod site;

use alloc::sync::Arc;
use core::net::SocketAddr;
use desk::Desk;
use net::sockets::Error;
use rt::api::{Failure, Name, Status, names};
use rt::{eprintln, println, server, sys, thread};

rt::entry!(main);

/// The name under which it registers. Nobody has anything to ask there; but what serves a name is started by the system, and started again.
const NAME: &str = "web";

/// Connections at the same time. With those that wait they are fewer than the sockets that a program may have.
const THREADS: usize = 16;

/// The port and the directory of who does not say others.
const PORT: &str = "80";
/// See [`PORT`].
const DIRECTORY: &str = "/";

fn main() -> i32 {
    let arguments = rt::arguments();
    let word = |place: usize, usual| arguments.get(place).map_or(usual, |word| word.as_str());
    let (port, directory) = (word(0, PORT), word(1, DIRECTORY));
    let is_writable = arguments.len() == 3 && word(2, "") == "write";
    let (Ok(number @ 1..), true) = (port.parse::<u16>(), is_writable || arguments.len() <= 2) else {
        eprintln!("usage: httpd [PORT [DIRECTORY [write]]]");
        return 2;
    };
    match begin(SocketAddr::from(([0, 0, 0, 0], number)), directory, is_writable) {
        Ok(()) => {
            println!("httpd: {directory} is served at port {number}");
            server::serve(|_| Some(Status::BadRequest.into()))
        }
        Err(error) => {
            eprintln!("httpd: port {number}: {error}");
            1
        }
    }
}

/// Listens, and starts as many threads as there can be.
fn begin(at: SocketAddr, directory: &str, is_writable: bool) -> Result<(), Error> {
    let desk = Arc::new(Desk::open(at, directory, is_writable)?);
    if let Some(name) = Name::new(NAME) {
        // A second one, for another port, has no name.
        let _ = names::register(rt::home(), &name);
    }
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    for number in 0..THREADS {
        let theirs = desk.clone();
        match thread::spawn(priority, move || -> () { theirs.work(number) }) {
            Ok(thread) => thread.detach(),
            Err(error) if number == 0 => return Err(Failure::Kernel(error).into()),
            Err(_) => break,
        }
    }
    Ok(())
}
