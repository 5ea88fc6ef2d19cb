//! A panic ends the program: one line, then exit status 101, as in the standard library.

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that panicked.
const STATUS: i32 = 101;

#[cfg_attr(target_os = "none", panic_handler)]
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
fn panic(info: &PanicInfo) -> ! {
    static PANICKING: AtomicBool = AtomicBool::new(false);
    // A panic while printing a panic ends the program without further words.
    if !PANICKING.swap(true, Ordering::Relaxed) {
        crate::println!("{}: {info}", crate::start::name());
    }
    crate::exit(STATUS)
}
