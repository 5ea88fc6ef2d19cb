//! Tests objects behind doors in the booted system: several tasks make objects, call those of others, hand references on and
//! drop them, and each object must be dropped once, when nobody refers to it any more.
//!
//! Prints a line for each test: `DOOR name ... ok` or `DOOR name ... FAILED: reason`, and at the end `DOOR-END ran=N failed=M`.
//! The program starts itself as other tasks: `door-test NAME` is a [`desk`] of that name. Tests are in [`cases`].

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod cases;
mod desk;
mod objects;

use rt::println;

rt::entry!(main);

fn main() -> i32 {
    if let [name] = &rt::arguments()[..] {
        return desk::run(name);
    }
    let (mut ran, mut failed) = (0, 0);
    for (name, case) in cases::ALL {
        ran += 1;
        match case() {
            Ok(()) => println!("DOOR {name} ... ok"),
            Err(failure) => {
                failed += 1;
                println!("DOOR {name} ... FAILED: {failure}");
            }
        }
    }
    println!("DOOR-END ran={ran} failed={failed}");
    failed.min(1)
}
