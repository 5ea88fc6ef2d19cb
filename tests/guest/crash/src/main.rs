//! A program that misbehaves on request: `crash KIND`. Without a kind it writes to an address that is not its own.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod misdeeds;

use misdeeds::MISDEEDS;
use rt::{print, println};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let kind = arguments.first().map_or("fault", |kind| kind.as_str());
    match MISDEEDS.iter().find(|(name, _)| *name == kind) {
        Some((_, misdeed)) => {
            misdeed();
            println!("crash: {kind} had no consequences");
            1
        }
        None => {
            print!("crash: no such kind: {kind}; there are:");
            MISDEEDS.iter().for_each(|(name, _)| print!(" {name}"));
            println!();
            2
        }
    }
}
