//! A file system that keeps its files encrypted in a directory of another one: `crypt DIRECTORY PASSPHRASE [NAME [KIB]]`. The directory is a server of files, behind whose
//! name a path may stand, such as `disk/vault`; if it is empty it is given new keys, and to try a passphrase for these takes so many KiB of memory. It is served under the
//! name `crypt`, or the one that is given.
//!
//! The passphrase is in the boot archive, so it is no secret from anybody who may read that.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use crypt::{Cost, Crypt, Refusal};
use files::{Below, OwnPage};
use rt::api::Status;
use rt::{println, random};
use vfs::remote::Remote;
use vfs::{Cached, Error};

rt::entry!(main);

/// Files and directories that are open, of all clients: fewer than the server below lets one have that is a client of its six times.
const OBJECTS_MAX: usize = 400;

/// Pages of files that clients have mapped, at most: 4 MiB.
const PAGES_MAX: usize = 1024;

fn main() -> i32 {
    let arguments = rt::arguments();
    let mut words = arguments.iter().map(|argument| argument.as_str());
    let (Some(directory), Some(passphrase), name, cost, None) = (
        words.next(),
        words.next(),
        words.next().unwrap_or("crypt"),
        words.next().map_or(Some(Cost::USUAL), Cost::of_memory),
        words.next(),
    ) else {
        println!("crypt: usage: crypt SERVER[/PATH] PASSPHRASE [NAME [KIB]]");
        return 2;
    };
    let Some(cost) = cost else {
        println!(
            "crypt: a passphrase is tried with {} to {} KiB",
            Cost::MEMORY_KIB.start(),
            Cost::MEMORY_KIB.end()
        );
        return 2;
    };
    if let Err(reason) = random::generator() {
        // Before there is a key.
        println!("crypt: {reason}, and whatever others can guess is no key");
        println!("crypt: {}", files::hand_out(name, |_| Err(Status::Unsupported)));
        return 1;
    }
    let begun = files::begin(
        || crypt(directory, passphrase, cost),
        |begun| matches!(begun, Err(Refusal::Files(Error::Io))),
    );
    let failure = match begun {
        Ok(crypt) => files::serve_at_most(name, Cached::<_, OwnPage>::new(crypt, PAGES_MAX), OBJECTS_MAX),
        Err(refusal) => {
            let status = status(refusal);
            match refusal {
                Refusal::Files(_) => println!("crypt: {directory}: {}", status.describe()),
                _ => println!("crypt: {directory}: {refusal}"),
            }
            files::hand_out(name, |_| Err(status))
        }
    };
    println!("crypt: {failure}");
    1
}

fn crypt(directory: &str, passphrase: &str, cost: Cost) -> Result<Crypt<Remote<Below>>, Refusal> {
    let below = Remote::new(Below::new(directory))?;
    Crypt::new(below, passphrase.as_bytes(), cost, fill)
}

/// Fills bytes with what nobody can guess. The generator was there before there was a key, and stays.
fn fill(bytes: &mut [u8]) {
    if let Ok(generator) = random::generator() {
        generator.fill(bytes);
    }
}

/// Status that everybody gets who asks for the files.
fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Files(error) => files::wire::status(error),
        Refusal::WrongPassphrase => Status::Denied,
        Refusal::NoKeys | Refusal::NotEmpty => Status::Damaged,
        Refusal::NoMemory => Status::Exhausted,
    }
}
