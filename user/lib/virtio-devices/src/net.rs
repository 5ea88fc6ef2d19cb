//! A network card, frame by frame, without waiting.
//!
//! Everything that the device says is checked: that it is done with a buffer which it has, and that it wrote no more than fits. One that says anything else is
//! [`Broken`].
#![allow(unsafe_code)]

use crate::pci::{Pci, Registers};
use crate::{Broken, Refusal};
use alloc::boxed::Box;
use alloc::vec::Vec;
use virtio_drivers::Hal;
use virtio_drivers::device::net::VirtIONetRaw;

/// Buffers that the device has at most, each way.
pub const QUEUE: usize = 16;

/// Bytes of a buffer: a frame, and the device's header before it.
const BUFFER_BYTES: usize = 2048;

/// Bytes of a frame, at most: the header of Ethernet and 1,500 bytes.
pub const FRAME_MAX: usize = 1514;

/// Bytes of a frame, at least: the header of Ethernet.
pub const FRAME_MIN: usize = 14;

type Buffer = Box<[u8; BUFFER_BYTES]>;

/// A network card.
pub struct Card<R: Registers, H: Hal> {
    device: VirtIONetRaw<H, Pci<R>, QUEUE>,
    /// Buffers that the device fills, by token.
    receiving: [Option<Buffer>; QUEUE],
    /// Buffers that the device sends, by token, and their bytes.
    sending: [Option<(Buffer, usize)>; QUEUE],
    free: Vec<Buffer>,
}

impl<R: Registers, H: Hal> Card<R, H> {
    /// Starts it.
    pub fn new(way: Pci<R>) -> Result<Self, Refusal> {
        let device = VirtIONetRaw::new(way)?;
        let free = (0..QUEUE).map(|_| Box::new([0; BUFFER_BYTES])).collect();
        let (receiving, sending) = ([const { None }; QUEUE], [const { None }; QUEUE]);
        let mut card = Card { device, receiving, sending, free };
        for _ in 0..QUEUE {
            let offered = card.offer(Box::new([0; BUFFER_BYTES]));
            offered.map_err(|Broken| Refusal::Start(virtio_drivers::Error::NotReady))?;
        }
        Ok(card)
    }

    /// Its hardware address.
    pub fn address(&self) -> [u8; 6] {
        self.device.mac_address()
    }

    /// Takes its interrupt back. To be called before looking at what has come.
    pub fn quiet(&mut self) {
        self.device.ack_interrupt();
    }

    /// Lets the device fill a buffer.
    fn offer(&mut self, mut buffer: Buffer) -> Result<(), Broken> {
        // It may say that it has written more than it has, and what came before is for nobody who comes later.
        buffer.fill(0);
        // SAFETY: the buffer is kept, and used by nobody, until the device is done with it, or for ever if it is broken. The device itself has a
        // copy.
        let token = unsafe { self.device.receive_begin(&mut buffer[..]) }.map_err(|_| Broken)?;
        let place = self.receiving.get_mut(usize::from(token)).ok_or(Broken)?;
        *place = Some(buffer);
        Ok(())
    }

    /// Hands a frame that has come to `take`; false if there is none. What is no frame is dropped.
    pub fn receive(&mut self, take: impl FnOnce(&[u8])) -> Result<bool, Broken> {
        let Some(token) = self.device.poll_receive() else { return Ok(false) };
        let mut buffer = self.receiving.get_mut(usize::from(token)).and_then(Option::take).ok_or(Broken)?;
        // SAFETY: it is the buffer that `offer` gave for this token.
        let done = unsafe { self.device.receive_complete(token, &mut buffer[..]) };
        let (header, len) = done.map_err(|_| Broken)?;
        let end = header.checked_add(len).ok_or(Broken)?;
        let frame = buffer.get(header..end).ok_or(Broken)?;
        if (FRAME_MIN..=FRAME_MAX).contains(&len) {
            take(frame);
        }
        self.offer(buffer)?;
        Ok(true)
    }

    /// Takes back what the device has sent.
    pub fn reap(&mut self) -> Result<(), Broken> {
        // No more than it had: a device must not keep its driver here.
        for _ in 0..QUEUE {
            let Some(token) = self.device.poll_transmit() else { return Ok(()) };
            let place = self.sending.get_mut(usize::from(token)).and_then(Option::take);
            let (buffer, len) = place.ok_or(Broken)?;
            // SAFETY: they are the bytes that `send` gave for this token.
            unsafe { self.device.transmit_complete(token, &buffer[..len]) }.map_err(|_| Broken)?;
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Whether another frame can be sent now.
    pub fn can_send(&self) -> bool {
        !self.free.is_empty()
    }

    /// Begins to send a frame. One that is none, or too long, or for which there is no buffer, is dropped.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), Broken> {
        if !(FRAME_MIN..=FRAME_MAX).contains(&frame.len()) {
            return Ok(());
        }
        let Some(mut buffer) = self.free.pop() else { return Ok(()) };
        let header = self.device.fill_buffer_header(&mut buffer[..]).map_err(|_| Broken)?;
        let end = header + frame.len();
        buffer[header..end].copy_from_slice(frame);
        // SAFETY: as in `offer`.
        let token = unsafe { self.device.transmit_begin(&buffer[..end]) }.map_err(|_| Broken)?;
        let place = self.sending.get_mut(usize::from(token)).ok_or(Broken)?;
        *place = Some((buffer, end));
        Ok(())
    }
}
