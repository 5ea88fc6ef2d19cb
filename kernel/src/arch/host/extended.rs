//! Extended state of the simulated machine: one word, which stands for all of the registers. In an image it is the lower half of XMM0.

use crate::arch::image::{self, Image, MXCSR};
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_AVX, STATE_SSE, STATE_X87};
use std::cell::Cell;

/// Index of the word in an image.
pub const IMAGE_WORD: usize = 20;

/// Bits that MXCSR may have.
const MXCSR_MASK: u32 = 0xffff;

thread_local! {
    static REGISTERS: Cell<u64> = const { Cell::new(0) };
}

/// Extended state in memory.
#[repr(C, align(64))]
pub struct Extended {
    word: Cell<u64>,
    /// FS base.
    pub fs_base: Cell<u64>,
    /// GS base.
    pub gs_base: Cell<u64>,
}

impl Extended {
    /// Makes this the initial state.
    pub fn init(&self) {
        self.word.set(0);
        self.fs_base.set(0);
        self.gs_base.set(0);
    }

    /// Makes this a copy of another state.
    pub fn copy_from(&self, other: &Extended) {
        self.word.set(other.word.get());
        self.fs_base.set(other.fs_base.get());
        self.gs_base.set(other.gs_base.get());
    }

    /// Gives an image of this state, which is in memory.
    pub fn read(&self, image: &Image) {
        image.iter().for_each(|word| word.set(0));
        image[IMAGE_WORD].set(self.word.get());
        image[IMAGE_MXCSR].set(MXCSR);
        image[IMAGE_HEADER].set(STATE_SSE);
        image::complete(image, MXCSR_MASK);
    }

    /// Makes this the state of an image that is [fit](is_fit).
    pub fn write(&self, image: &Image) {
        image::complete(image, MXCSR_MASK);
        self.word.set(image[IMAGE_WORD].get());
    }

    /// Saves the registers here, and loads those of `next`.
    pub fn exchange(&self, next: &Extended) {
        self.save();
        next.load();
    }

    /// Saves the registers.
    pub fn save(&self) {
        self.word.set(registers());
    }

    /// Loads the registers.
    pub fn load(&self) {
        set_registers(self.word.get());
    }
}

/// Parts of an image that the processor has.
pub fn parts() -> u64 {
    STATE_X87 | STATE_SSE | STATE_AVX
}

/// Whether the processor loads an image without a fault.
pub fn is_fit(image: &Image) -> bool {
    image::is_fit(image, parts(), MXCSR_MASK)
}

/// Whether users set the FS base by an instruction.
pub fn has_bases() -> bool {
    true
}

/// Contents of the registers.
pub fn registers() -> u64 {
    REGISTERS.get()
}

/// A user fills its registers.
pub fn set_registers(word: u64) {
    REGISTERS.set(word);
}
