//! Extended state of the simulated machine: one word, which stands for all of the registers.

use std::cell::Cell;

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
