//! Time since the kernel started, read from the processor without a system call, and sleep.
#![allow(unsafe_code)]

use core::time::Duration;
use sys::abi::{INFO_PAGE, boot::InfoPage};

/// Time since the kernel started.
pub fn now() -> Duration {
    Duration::from_nanos(now_ns())
}

/// Nanoseconds since the kernel started.
pub fn now_ns() -> u64 {
    let info = info();
    // SAFETY: every x86-64 processor has the instruction, and the kernel allows it.
    let tsc = unsafe { core::arch::x86_64::_rdtsc() };
    ((tsc.wrapping_sub(info.tsc_start) as u128 * info.tsc_to_ns as u128) >> 32) as u64
}

/// The kernel's information page.
pub fn info() -> &'static InfoPage {
    // SAFETY: the kernel shows the page, read-only and unchanging, in every task.
    unsafe { &*core::ptr::with_exposed_provenance(INFO_PAGE as usize) }
}

/// Sleeps.
pub fn sleep(time: Duration) {
    let end = now() + time;
    // Somebody may end a sleep early by aborting the thread's ipc.
    while let Some(left) = end.checked_sub(now()).filter(|left| !left.is_zero()) {
        let _ = sys::sleep_us(left.as_micros() as u64 + 1);
    }
}
