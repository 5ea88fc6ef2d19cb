//! A device with one frame: by it the stack, or an interface that is made for it, gets that frame alone, and what it answers is not sent.

use crate::wire::{Received, capabilities};
use alloc::vec;
use alloc::vec::Vec;
use smoltcp::phy::{Device, DeviceCapabilities, TxToken};
use smoltcp::time::Instant;

/// The device.
pub(crate) struct Once(Option<Vec<u8>>);

impl Once {
    /// One with this frame.
    pub fn new(frame: Vec<u8>) -> Once {
        Once(Some(frame))
    }
}

/// A place for a frame that is not sent.
pub(crate) struct Unsent;

impl TxToken for Unsent {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        fill(&mut vec![0; len])
    }
}

impl Device for Once {
    type RxToken<'a> = Received;
    type TxToken<'a> = Unsent;

    fn receive(&mut self, _: Instant) -> Option<(Received, Unsent)> {
        self.0.take().map(|frame| (Received::new(frame), Unsent))
    }

    fn transmit(&mut self, _: Instant) -> Option<Unsent> {
        None
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities()
    }
}
