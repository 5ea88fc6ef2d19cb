//! The smallest Rust program.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::println;

rt::entry!(main);

fn main() -> i32 {
    println!("Hello from Rust");
    0
}
