//! The first serial port, polled: where the kernel prints.
//!
//! The kernel never reads from it and never uses its interrupt; both belong to a driver outside. 16550 data
//! sheet, "register summary".

use super::instructions::{inb, outb};
use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

const COM1: u16 = 0x3f8;
const INTERRUPTS: u16 = 1;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;
const SCRATCH: u16 = 7;

const DIVISOR_ACCESS: u8 = 0x80;
const EIGHT_BITS: u8 = 3;
const CAN_SEND: u8 = 0x20;
const ALL_SENT: u8 = 0x40;

/// How often a status is polled before the port is taken to be stuck. About a tenth of a second.
const PATIENCE: u32 = 100_000;

/// The port in use, 0 before [`init`] or if there is none.
static PORT: AtomicU16 = AtomicU16::new(0);

/// Finds the port and sets it to 115,200 baud, 8 bits, no parity.
pub fn init() {
    let write = |register: u16, value: u8| {
        // SAFETY: on every PC these ports are the first UART or nothing; the kernel is its only user now.
        unsafe { outb(COM1 + register, value) }
    };
    // Some models start with 5 data bits, so the format comes first.
    write(LINE_CONTROL, EIGHT_BITS);
    for probe in [0x5a, 0xa5] {
        write(SCRATCH, probe);
        // SAFETY: as above; the scratch register has no meaning to the device.
        if unsafe { inb(COM1 + SCRATCH) } != probe {
            return;
        }
    }
    write(INTERRUPTS, 0);
    write(LINE_CONTROL, DIVISOR_ACCESS | EIGHT_BITS);
    write(0, 1);
    write(1, 0);
    write(LINE_CONTROL, EIGHT_BITS);
    write(FIFO_CONTROL, 0x07);
    write(MODEM_CONTROL, 0x03);
    PORT.store(COM1, Relaxed);
}

/// The I/O port in use, 0 if none.
pub fn port() -> u16 {
    PORT.load(Relaxed)
}

fn wait_for(status: u8) {
    for _ in 0..PATIENCE {
        // SAFETY: `port` is a UART; reading its line status disturbs no receiver that anybody uses yet.
        if unsafe { inb(port() + LINE_STATUS) } & status != 0 {
            return;
        }
    }
}

/// Prints bytes; a line feed gets its carriage return.
pub fn write(bytes: &[u8]) {
    if port() == 0 {
        return;
    }
    for &byte in bytes {
        if byte == b'\n' {
            send(b'\r');
        }
        send(byte);
    }
}

fn send(byte: u8) {
    wait_for(CAN_SEND);
    // SAFETY: `port` is a UART, and sending is what it is for.
    unsafe { outb(port(), byte) }
}

/// Waits until the last byte has left the port: a machine that stops earlier loses it.
pub fn drain() {
    if port() != 0 {
        wait_for(ALL_SENT);
    }
}
