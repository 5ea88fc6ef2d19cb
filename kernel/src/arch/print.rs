//! The kernel's own output: [`kprint!`](crate::kprint) and [`kprintln!`](crate::kprintln).
//!
//! For boot and for panics. A line for people starts with `tern: ` and a topic in ten columns. There is no lock:
//! only one CPU prints, and a panic must never wait.

use core::fmt::{Arguments, Write};

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

#[cfg(target_os = "none")]
use super::serial::write;

/// On the host the kernel is silent: its tests look at state, not at text.
#[cfg(not(target_os = "none"))]
fn write(_: &[u8]) {}

/// Prints formatted text; the macros call it.
pub fn print(arguments: Arguments) {
    // The console never fails; a `Display` implementation that does has printed what it could.
    let _ = Console.write_fmt(arguments);
}

/// Prints to the kernel's console.
#[macro_export]
macro_rules! kprint {
    ($($argument:tt)*) => { $crate::arch::print::print(core::format_args!($($argument)*)) };
}

/// Prints a line to the kernel's console.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => { $crate::arch::print::print(core::format_args!("{}\n", core::format_args!($($argument)*))) };
}
