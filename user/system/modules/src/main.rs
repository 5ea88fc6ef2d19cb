//! The program of all tasks that are made of modules. It holds every module, and runs those that its arguments name; what the
//! others would need is never loaded, since pages come when they are touched.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::module::{self, Module};

rt::entry!(main);

/// All modules.
static MODULES: &[&Module] = &[&rtc::MODULE, &calendar::MODULE];

fn main() -> i32 {
    module::run(MODULES)
}
