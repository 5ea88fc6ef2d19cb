//! Where it goes that is told of calls: to the console, to the tool that has booted the machine, to a file, or to a monitor.

use alloc::string::String;
use alloc::vec::Vec;
use files::{Directory, File};
use rt::api::{Name, console, names};
use rt::sys::Uid;
use rt::{eprintln, io};
use vfs::How;

/// Bytes that a file gets at once, at least, unless it is the end.
const PIECE: usize = 4096;

/// Begin and end of a piece that is for the tool at the other end of the serial line, and bytes in between.
const MARKS: (&[u8], &[u8]) = (b"\x1b]tern;trace ", b"\x07");
/// See [`MARKS`].
const MARKED: usize = 160;

/// A place for it.
#[derive(Debug)]
pub enum Telling {
    /// The console.
    Console,
    /// The tool at the other end of the serial line, which takes it out of what is printed.
    Tool,
    /// A file, and what it has not got yet.
    File(File, Vec<u8>),
    /// A monitor: a server that takes what is printed, as the console does, by its name.
    Monitor(Name, Option<Uid>),
    /// Nowhere, since the file cannot be written to.
    Nowhere,
}

impl Telling {
    /// A file, which is made anew.
    pub fn file(path: &str) -> Result<Telling, String> {
        let how = How { create: true, truncate: true, ..How::default() };
        let opened = Directory::root().and_then(|root| root.open(path.trim_start_matches('/'), how));
        opened
            .map(|file| Telling::File(file, Vec::new()))
            .map_err(|failure| alloc::format!("{path}: {failure}"))
    }

    /// A monitor.
    pub fn monitor(name: &str) -> Result<Telling, String> {
        let name = Name::new(name).ok_or_else(|| alloc::format!("{name} is no name of a server"))?;
        Ok(Telling::Monitor(name, None))
    }

    /// Tells something.
    pub fn tell(&mut self, text: &[u8]) {
        match self {
            Telling::Console => io::complain(text),
            Telling::Tool => {
                for piece in text.chunks(MARKED) {
                    io::complain(&[MARKS.0, piece, MARKS.1].concat());
                }
            }
            Telling::File(_, bytes) => {
                bytes.extend_from_slice(text);
                if bytes.len() >= PIECE {
                    self.flush();
                }
            }
            Telling::Monitor(name, server) => {
                // One that has ended may have begun again.
                for _ in 0..2 {
                    let found = server.or_else(|| names::resolve(rt::home(), name).ok());
                    *server = found.filter(|found| console::write(*found, text).is_ok());
                    if server.is_some() {
                        return;
                    }
                }
                // Nothing is done that it does not hear of.
                eprintln!("linux: the monitor does not answer");
                rt::exit(1);
            }
            Telling::Nowhere => {}
        }
    }

    /// Gives a file what it has not got yet.
    pub fn flush(&mut self) {
        let Telling::File(file, bytes) = self else { return };
        for piece in bytes.chunks(PIECE) {
            if let Err(failure) = file.append(piece) {
                eprintln!("linux: nothing more is told of calls: {failure}");
                *self = Telling::Nowhere;
                return;
            }
        }
        bytes.clear();
    }
}
