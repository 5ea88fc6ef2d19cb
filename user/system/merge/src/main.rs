//! One file system over another that stays as it is: `merge UPPER LOWER [NAME]`. Upper and lower are servers of files, behind whose names a directory may stand,
//! such as `ram` and `disk/base`. What is written goes to the upper one. It is served under the name `merge`, or the one that is given.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use files::{Below, OwnPage};
use rt::api::Status;
use rt::println;
use vfs::remote::Remote;
use vfs::{Cached, Error, Merge, Result};

rt::entry!(main);

/// Files and directories that are open, of all clients: fewer than the servers below let one have that is a client of theirs six times.
const OBJECTS_MAX: usize = 400;

/// Pages of files that clients have mapped, at most: 4 MiB.
const PAGES_MAX: usize = 1024;

fn main() -> i32 {
    let arguments = rt::arguments();
    let mut words = arguments.iter().map(|argument| argument.as_str());
    let (Some(upper), Some(lower), name, None) =
        (words.next(), words.next(), words.next().unwrap_or("merge"), words.next())
    else {
        println!("merge: usage: merge UPPER[/PATH] LOWER[/PATH] [NAME]");
        return 2;
    };
    let failure = match files::begin(|| merge(upper, lower), |begun| matches!(begun, Err(Error::Io))) {
        Ok(merge) => files::serve_at_most(name, Cached::<_, OwnPage>::new(merge, PAGES_MAX), OBJECTS_MAX),
        Err(error) => {
            let status: Status = files::wire::status(error);
            println!("merge: {upper} over {lower}: {}", status.describe());
            files::hand_out(name, |_| Err(status))
        }
    };
    println!("merge: {failure}");
    1
}

fn merge(upper: &str, lower: &str) -> Result<Merge<Remote<Below>, Remote<Below>>> {
    Merge::new(Remote::new(Below::new(upper))?, Remote::new(Below::new(lower))?)
}
