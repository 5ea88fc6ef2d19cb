//! Input and output of commands on lines, which are those of the library `lines`: from files, or from a pipe if there are none, to wherever the program prints.

use crate::told;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;
use files::{Directory, File, path_of};
use lines::{Fault, Filter};
use rt::api::{Failure, Result};
use rt::start::name;
use rt::{eprintln, io};
use vfs::How;

/// Bytes that are read from a pipe at once.
const PIECE: usize = 16 << 10;

/// Bytes that are printed at once, of which one more would be too many. What comes of one piece of the input is not kept longer than that.
const PRINTED: usize = 4 << 10;

/// Path that stands for the pipe.
const PIPE: &str = "-";

/// Bytes that are to be printed.
#[derive(Default)]
struct Printer(Vec<u8>);

impl Printer {
    fn add(&mut self, bytes: &[u8]) {
        if self.0.len() + bytes.len() > PRINTED {
            self.flush();
        }
        if bytes.len() > PRINTED {
            io::write(bytes);
        } else {
            self.0.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) {
        if !self.0.is_empty() {
            io::write(&self.0);
            self.0.clear();
        }
    }
}

/// Reason why not all of a file was taken.
enum Trouble {
    /// It cannot be read, or not to its end.
    File(Failure),
    /// The filter cannot go on.
    Filter(Fault),
}

/// A filter, and what it prints.
struct Reading<'a, F> {
    filter: &'a mut F,
    printer: Printer,
    fault: Option<Fault>,
}

impl<F: Filter> Reading<'_, F> {
    /// Takes a piece. Breaks if no more is wanted.
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        let Reading { filter, printer, fault } = self;
        let taken = filter.take(piece, &mut |bytes| printer.add(bytes));
        printer.flush();
        taken.unwrap_or_else(|found| {
            *fault = Some(found);
            ControlFlow::Break(())
        })
    }

    /// Takes all of a file, or of the pipe.
    fn all(&mut self, typed: &str, name: Option<&str>) -> core::result::Result<(), Trouble> {
        let file = match typed {
            PIPE => None,
            typed => Some(Directory::root().and_then(|root| root.open(path_of(typed), How::default()))),
        };
        let file = file.transpose().map_err(Trouble::File)?;
        let Reading { filter, printer, .. } = self;
        filter.begin(name, &mut |bytes| printer.add(bytes));
        let read = match file {
            Some(file) => self.file(&file),
            None => self.pipe(),
        };
        let Reading { filter, printer, fault } = self;
        let ended = match (read, *fault) {
            (_, Some(fault)) => Err(Trouble::Filter(fault)),
            (Err(failure), None) => Err(Trouble::File(failure)),
            (Ok(()), None) => filter.end(&mut |bytes| printer.add(bytes)).map_err(Trouble::Filter),
        };
        printer.flush();
        ended
    }

    fn pipe(&mut self) -> Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = io::read(&mut piece)?;
            if count == 0 || self.take(&piece[..count]).is_break() {
                return Ok(());
            }
        }
    }

    fn file(&mut self, file: &File) -> Result<()> {
        let mut is_over = false;
        let outcome = file.pieces(|_, piece| {
            is_over = self.take(piece).is_break();
            if is_over { Err(Failure::Garbled) } else { Ok(()) }
        });
        if is_over { Ok(()) } else { outcome }
    }
}

/// Lets a filter read files, or the pipe if there are none, and print what comes of each; not what comes of all ([`finish`]). A file that cannot be read is told, and the status `failed` is
/// given back in the end. The error is a status of which it is told why, and with which the program should end.
pub fn read(filter: &mut impl Filter, paths: &[String], failed: i32) -> core::result::Result<i32, i32> {
    let pipe = [String::from(PIPE)];
    let paths = if paths.is_empty() { &pipe } else { paths };
    let mut reading = Reading { filter, printer: Printer::default(), fault: None };
    let mut status = 0;
    for typed in paths {
        if typed == PIPE && !io::is_input_piped() {
            eprintln!("{}: expected a pipe or a file to read from", name());
            return Err(2);
        }
        let name_of = (paths.len() > 1).then_some(&**typed);
        match reading.all(typed, name_of) {
            Ok(()) => {}
            Err(Trouble::File(failure)) => {
                told(typed, Err(failure));
                status = failed;
            }
            Err(Trouble::Filter(fault)) => {
                eprintln!("{}: {typed}: {fault}", name());
                return Err(failed);
            }
        }
    }
    Ok(status)
}

/// Lets a filter print what comes of all that it has read.
pub fn finish(filter: &mut impl Filter, failed: i32) -> i32 {
    let mut printer = Printer::default();
    let finished = filter.finish(&mut |bytes| printer.add(bytes));
    printer.flush();
    match finished {
        Ok(()) => 0,
        Err(fault) => {
            eprintln!("{}: {fault}", name());
            failed
        }
    }
}

/// Does both.
pub fn run(filter: &mut impl Filter, paths: &[String], failed: i32) -> i32 {
    match read(filter, paths, failed) {
        Ok(status) => status.max(finish(filter, failed)),
        Err(status) => status,
    }
}
