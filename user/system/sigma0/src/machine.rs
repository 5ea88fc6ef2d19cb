//! The machine itself: the serial port, written by polling until the console server takes over, and the ways to
//! switch off.

use core::sync::atomic::{AtomicU16, Ordering};
use rt::device::Port;
use rt::start::Hooks;
use rt::{print, println};

static SERIAL: AtomicU16 = AtomicU16::new(0);

/// Offset of the line status register, and its bit "the transmitter takes a byte".
const LINE_STATUS: u16 = 5;
const CAN_SEND: u8 = 1 << 5;

/// How often the status is read before a byte is given up: a missing device must not hang the system.
const POLLS_MAX: u32 = 1_000_000;

/// Makes printing and panics of this program work.
pub fn install_hooks() {
    static HOOKS: Hooks = Hooks { write, exit: |_| stop("sigma0 panicked") };
    rt::set_hooks(&HOOKS);
}

/// Chooses the serial port; 0: none.
pub fn use_serial(port: u64) {
    SERIAL.store(port as u16, Ordering::Relaxed);
}

/// Prints bytes. Lines end as a terminal wants it.
pub fn write(bytes: &[u8]) {
    for &byte in bytes {
        if byte == b'\n' {
            write_byte(b'\r');
        }
        write_byte(byte);
    }
}

fn write_byte(byte: u8) {
    let serial = Port(SERIAL.load(Ordering::Relaxed));
    if serial != Port(0) && (0..POLLS_MAX).any(|_| serial.at(LINE_STATUS).read() & CAN_SEND != 0) {
        serial.write(byte);
    }
}

/// Value for the emulator's exit port.
const EXIT_ORDERLY: u32 = 0x10;
const EXIT_STOPPED: u32 = 0x11;

/// Ends the machine because the system cannot start or go on.
pub fn stop(reason: &str) -> ! {
    println!("tern: {reason}");
    switch_off(EXIT_STOPPED)
}

/// Ends the machine in order. Whoever watches the serial line learns the status.
pub fn power_off(status: i32) -> ! {
    print!("\x1b]tern;exit={status}\x07");
    switch_off(EXIT_ORDERLY)
}

/// Tries one way after another; a real machine without any of them sleeps.
fn switch_off(code: u32) -> ! {
    Port(0xf4).write_u32(code); // QEMU: isa-debug-exit
    b"Shutdown".iter().for_each(|&byte| Port(0x8900).write(byte)); // Bochs
    Port(0x604).write_u16(0x2000); // QEMU: ACPI power management of pc and q35
    Port(0xb004).write_u16(0x2000); // older QEMU and Bochs
    loop {
        rt::time::sleep(core::time::Duration::from_secs(3600));
    }
}
