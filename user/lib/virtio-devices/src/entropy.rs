//! A source of random bytes, one request at a time.
//!
//! Bytes that a device says it has written and has not are zeroes, since that is what is put there before. So an answer of zeroes alone is none.
#![allow(unsafe_code)]

use crate::pci::{Pci, Registers};
use crate::{Broken, Line, Refusal, wait_for};
use alloc::boxed::Box;
use virtio_drivers::Hal;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;

/// Bytes that one request brings, at most.
pub const BYTES_MAX: usize = 4096;

/// Bytes of one answer all of which are zeroes by chance only once in 2^128 times.
const ZEROES_MAX: usize = 16;

const QUEUE: u16 = 0;
const QUEUE_SIZE: usize = 8;

/// The device has no features of its own; the crate wants a type for them that has what all devices may have.
type Features = virtio_drivers::device::common::Feature;

/// A source of random bytes.
pub struct Entropy<R: Registers, H: Hal, L> {
    line: L,
    way: Pci<R>,
    queue: VirtQueue<H, QUEUE_SIZE>,
    data: Box<[u8; BYTES_MAX]>,
    /// Set when a request went wrong, of which the device may still have the buffer.
    is_broken: bool,
}

impl<R: Registers, H: Hal, L: Line> Entropy<R, H, L> {
    /// Starts it.
    pub fn new(mut way: Pci<R>, line: L) -> Result<Self, Refusal> {
        way.begin_init(Features::VERSION_1);
        let queue = VirtQueue::new(&mut way, QUEUE, false, false)?;
        way.finish_init();
        Ok(Entropy { line, way, queue, data: Box::new([0; BYTES_MAX]), is_broken: false })
    }

    /// Takes back an interrupt for which nobody waits.
    pub fn quiet(&mut self) {
        self.way.ack_interrupt();
    }

    /// Asks for random bytes: one at least, and no more than `wanted` or [`BYTES_MAX`]. A device may have fewer at the moment.
    pub fn read(&mut self, wanted: usize) -> Result<&[u8], Broken> {
        let wanted = wanted.clamp(1, BYTES_MAX);
        if self.is_broken {
            return Err(Broken);
        }
        let outcome = self.try_read(wanted);
        self.is_broken = outcome.is_err();
        outcome.map(|len| &self.data[..len])
    }

    fn try_read(&mut self, wanted: usize) -> Result<usize, Broken> {
        let Entropy { line, way, queue, data, .. } = self;
        let buffer = &mut data[..wanted];
        buffer.fill(0);
        // SAFETY: the buffer is used by nobody until the request is complete, or for ever if the device is broken: `self.is_broken` says so. The
        // device itself has a copy.
        let token = unsafe { queue.add(&[], &mut [buffer]) }.map_err(|_| Broken)?;
        if queue.should_notify() {
            way.notify(QUEUE);
        }
        wait_for(token, line, || {
            way.ack_interrupt();
            queue.peek_used()
        })?;
        // SAFETY: it is the same.
        let len = unsafe { queue.pop_used(token, &[], &mut [&mut data[..wanted]]) }.map_err(|_| Broken)?;
        let len = usize::try_from(len).map_err(|_| Broken)?;
        let is_nothing = len >= ZEROES_MAX && self.data.iter().take(len).all(|&byte| byte == 0);
        if len == 0 || len > wanted || is_nothing { Err(Broken) } else { Ok(len) }
    }
}
