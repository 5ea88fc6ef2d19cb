//! Interrupts as messages, of which the crate knows nothing: each queue is told which message it sends (virtio 1.2, 4.1.5.1.2).
//!
//! All queues send one message, since one thread drives them all. Where messages are on, the device does not say in its status that it has
//! interrupted, and nothing has to be taken back.
#![allow(unsafe_code)]

use crate::function::MESSAGE;
use crate::memory;
use core::ptr::with_exposed_provenance_mut;
use rt::api::bus;
use rt::sys::Uid;

/// First capability in byte 0.
const CAPABILITIES: u8 = 0x34;
/// Capabilities begin here.
const HEADER_END: u8 = 0x40;
/// No list can be longer.
const CAPABILITIES_MAX: usize = 48;

/// Identifier of capabilities of the vendor's own.
const OF_VENDOR: u8 = 0x09;
/// Identifier of the capability that tells where the table of messages is.
const TABLE: u8 = 0x11;
/// Kind of those that tell where the common configuration is.
const COMMON: u8 = 1;

/// Registers of the common configuration, by their offsets: the queue that the others are about, and the message that it sends.
const QUEUE: u64 = 22;
/// See [`QUEUE`].
const QUEUE_MESSAGE: u64 = 26;
/// Bytes of the common configuration up to these.
const BYTES: u64 = 28;

/// Registers by which queues are told what to send.
#[derive(Debug)]
pub struct Vectors {
    address: u64,
}

/// Where the common configuration is, as the device knows it. `None` if there is none; or if the device has no table of messages, or has it where
/// something else is that a driver needs: who takes a message does not get the memory with the table.
pub fn common(bus: Uid, place: u32) -> Option<u64> {
    let read = |at: u8| bus::read(bus, place, at).ok();
    let (mut common, mut table, mut parts) = (None, None, 0u8);
    let mut at = read(CAPABILITIES)? as u8 & !3;
    for _ in 0..CAPABILITIES_MAX {
        if !(HEADER_END..=u8::MAX - 11).contains(&at) {
            break;
        }
        let [id, next, _, kind] = read(at)?.to_le_bytes();
        match id {
            TABLE => table = Some(read(at + 4)? & 7),
            OF_VENDOR => {
                let bar = read(at + 4)? & 7;
                parts |= 1 << bar;
                if kind == COMMON && common.is_none() {
                    common = Some((bar as u8, read(at + 8)?));
                }
            }
            _ => {}
        }
        at = next & !3;
    }
    let (bar, offset) = common?;
    if parts >> table? & 1 != 0 {
        return None;
    }
    let (_, base, _) = bus::bar(bus, place, bar).ok()?;
    base.checked_add(offset.into())
}

impl Vectors {
    /// Those of a common configuration. `None` if that has not been mapped.
    pub fn of(common: u64) -> Option<Vectors> {
        let address = memory::mapped(common, BYTES)?;
        address.is_multiple_of(4).then_some(Vectors { address })
    }

    /// Has a queue send the message. False if the device has no room for that.
    pub fn set(&mut self, queue: u16) -> bool {
        self.write(QUEUE, queue);
        self.write(QUEUE_MESSAGE, MESSAGE);
        self.read(QUEUE_MESSAGE) == MESSAGE
    }

    fn register(&self, at: u64) -> *mut u16 {
        with_exposed_provenance_mut((self.address + at) as usize)
    }

    fn write(&mut self, at: u64, value: u16) {
        // SAFETY: the register lies in a window onto the device's memory, which is no object of this program's, and is aligned.
        unsafe { self.register(at).write_volatile(value) };
    }

    fn read(&self, at: u64) -> u16 {
        // SAFETY: as in `write`.
        unsafe { self.register(at).read_volatile() }
    }
}
