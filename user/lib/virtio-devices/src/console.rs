//! A console with one port: bytes both ways, without waiting.
//!
//! The device has at most one buffer each way. It gets one to fill only when somebody wants bytes, and that is no longer than they want: so the rest stays on the
//! other side of the line, and outlives this driver. Several ports would need the device's control messages; a driver that does not accept them has
//! port 0 (virtio 1.2, 5.3).
//!
//! A device that says that it has written nothing, or more than it was asked for, is [`Broken`]. One that takes no bytes for long is not: whoever reads them on the
//! other side may be slow.
#![allow(unsafe_code)]

use crate::pci::{Pci, Registers};
use crate::{Broken, Refusal};
use alloc::boxed::Box;
use virtio_drivers::Hal;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;

/// Bytes that one buffer brings, at most.
pub const INPUT_MAX: usize = 256;

/// Bytes that are sent at once, at most.
pub const OUTPUT_MAX: usize = 1024;

const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;
const QUEUE_SIZE: usize = 8;

/// Features that this driver accepts: those of all devices. Of the console's own, one is its size, which nobody asks for, one is several ports, and one a byte
/// in an emergency.
type Features = virtio_drivers::device::common::Feature;

/// A buffer that the device has.
#[derive(Clone, Copy, Debug)]
struct Lent {
    token: u16,
    len: usize,
}

/// A console.
pub struct Console<R: Registers, H: Hal> {
    way: Pci<R>,
    receiving: VirtQueue<H, QUEUE_SIZE>,
    sending: VirtQueue<H, QUEUE_SIZE>,
    input: Box<[u8; INPUT_MAX]>,
    output: Box<[u8; OUTPUT_MAX]>,
    /// Part of `input` that the device fills.
    filled: Option<Lent>,
    /// Part of `output` that the device sends.
    sent: Option<Lent>,
    /// Set when the device did what it must not. It may still have the buffers.
    is_broken: bool,
}

impl<R: Registers, H: Hal> Console<R, H> {
    /// Starts it.
    pub fn new(mut way: Pci<R>) -> Result<Self, Refusal> {
        way.begin_init(Features::VERSION_1);
        let receiving = VirtQueue::new(&mut way, RECEIVE, false, false)?;
        let sending = VirtQueue::new(&mut way, TRANSMIT, false, false)?;
        way.finish_init();
        let (input, output) = (Box::new([0; INPUT_MAX]), Box::new([0; OUTPUT_MAX]));
        Ok(Console { way, receiving, sending, input, output, filled: None, sent: None, is_broken: false })
    }

    /// Takes its interrupt back. To be called before looking at what the device has done.
    pub fn quiet(&mut self) {
        self.way.ack_interrupt();
    }

    /// Whether the device has done something that nobody has looked at.
    pub fn is_pending(&self) -> bool {
        self.filled.is_some() && self.receiving.can_pop() || self.sent.is_some() && self.sending.can_pop()
    }

    /// Lets the device bring `len` bytes, or [`INPUT_MAX`] if that is less. Nothing if it may bring some already.
    pub fn want(&mut self, len: usize) -> Result<(), Broken> {
        self.check()?;
        if self.filled.is_some() || len == 0 {
            return Ok(());
        }
        let outcome = self.try_want(len.min(INPUT_MAX));
        self.judge(outcome)
    }

    fn try_want(&mut self, len: usize) -> Result<(), Broken> {
        let Console { way, receiving, input, filled, .. } = self;
        let buffer = &mut input[..len];
        // The device may say that it has written more than it has, and what came before is for nobody who comes later.
        buffer.fill(0);
        // SAFETY: the buffer is used by nobody until the device is done with it, or for ever if it is broken: `filled` and `is_broken` say so. The
        // device itself has a copy.
        let token = unsafe { receiving.add(&[], &mut [buffer]) }.map_err(|_| Broken)?;
        *filled = Some(Lent { token, len });
        if receiving.should_notify() {
            way.notify(RECEIVE);
        }
        Ok(())
    }

    /// Bytes that have come: `None` if none have.
    pub fn receive(&mut self) -> Result<Option<&[u8]>, Broken> {
        self.check()?;
        let outcome = self.try_receive();
        let came = self.judge(outcome)?;
        Ok(came.map(|len| &self.input[..len]))
    }

    fn try_receive(&mut self) -> Result<Option<usize>, Broken> {
        let (Some(Lent { token, len }), true) = (self.filled, self.receiving.can_pop()) else {
            return Ok(None);
        };
        // SAFETY: it is the buffer that `try_want` gave for this token.
        let done = unsafe { self.receiving.pop_used(token, &[], &mut [&mut self.input[..len]]) };
        let came = usize::try_from(done.map_err(|_| Broken)?).map_err(|_| Broken)?;
        self.filled = None;
        if (1..=len).contains(&came) { Ok(Some(came)) } else { Err(Broken) }
    }

    /// Whether it is sending.
    pub fn is_sending(&self) -> bool {
        self.sent.is_some()
    }

    /// Begins to send bytes, as many as fit: how many of them. None if it is sending already.
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        self.check()?;
        let len = bytes.len().min(OUTPUT_MAX);
        if self.sent.is_some() || len == 0 {
            return Ok(0);
        }
        self.output[..len].copy_from_slice(&bytes[..len]);
        let outcome = self.try_send(len);
        self.judge(outcome)?;
        Ok(len)
    }

    fn try_send(&mut self, len: usize) -> Result<(), Broken> {
        let Console { way, sending, output, sent, .. } = self;
        // SAFETY: as in `try_want`, with `sent`.
        let token = unsafe { sending.add(&[&output[..len]], &mut []) }.map_err(|_| Broken)?;
        *sent = Some(Lent { token, len });
        if sending.should_notify() {
            way.notify(TRANSMIT);
        }
        Ok(())
    }

    /// Takes back what the device has sent: whether there was something.
    pub fn reap(&mut self) -> Result<bool, Broken> {
        self.check()?;
        let outcome = self.try_reap();
        self.judge(outcome)
    }

    fn try_reap(&mut self) -> Result<bool, Broken> {
        let (Some(Lent { token, len }), true) = (self.sent, self.sending.can_pop()) else { return Ok(false) };
        // SAFETY: they are the bytes that `try_send` gave for this token.
        unsafe { self.sending.pop_used(token, &[&self.output[..len]], &mut []) }.map_err(|_| Broken)?;
        self.sent = None;
        Ok(true)
    }

    fn check(&self) -> Result<(), Broken> {
        if self.is_broken { Err(Broken) } else { Ok(()) }
    }

    /// Notes for ever that the device is broken.
    fn judge<T>(&mut self, outcome: Result<T, Broken>) -> Result<T, Broken> {
        self.is_broken |= outcome.is_err();
        outcome
    }
}
