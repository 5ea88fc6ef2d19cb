//! How `root` itself prints: to the console server while there is one, else to the serial port through σ0.
//!
//! `root` must not wait for its own servers, so the console gets a time limit per message.

use core::sync::atomic::{AtomicU64, Ordering};
use rt::api::console;
use rt::start::Hooks;
use rt::sys::Uid;

/// How long the console may take for a part of a line, in µs. A real serial line needs 5 ms for it.
const PATIENCE_US: u64 = 200_000;

/// How long all buffered output may take at the end, in µs.
const DRAIN_PATIENCE_US: u64 = 5_000_000;

static CONSOLE: AtomicU64 = AtomicU64::new(0);

/// Makes printing and panics of this program work.
pub fn install_hooks() {
    static HOOKS: Hooks = Hooks { write, exit: end };
    rt::set_hooks(&HOOKS);
}

/// Sets the console server; nil: there is none.
pub fn use_console(server: Uid) {
    CONSOLE.store(server.0, Ordering::Relaxed);
}

fn write(bytes: &[u8]) {
    let server = Uid(CONSOLE.load(Ordering::Relaxed));
    if server.is_nil() || console::write_within(server, bytes, PATIENCE_US).is_err() {
        // σ0 is the last resort: if it cannot print, nobody can.
        let _ = console::write(rt::home(), bytes);
    }
}

/// Switches the machine off when everything is printed.
pub fn end(status: i32) -> ! {
    let server = Uid(CONSOLE.load(Ordering::Relaxed));
    if !server.is_nil() {
        // A console that cannot drain must not keep the machine on.
        let _ = console::drain(server, DRAIN_PATIENCE_US);
    }
    let _ = rt::api::sigma0::power_off(rt::home(), status);
    loop {
        rt::time::sleep(core::time::Duration::from_secs(3600));
    }
}
