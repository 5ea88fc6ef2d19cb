//! Extended state: the registers beside those of a message: x87, SSE and AVX registers, FS base and GS base. Saved and loaded here; above,
//! `processor/extended.rs` decides whose they are.
//!
//! Users change the two bases by instructions of their own where the processor has these (FSGSBASE). Where it has not, the kernel loads
//! the FS base of each thread that has one ([`load_fs`](super::load_fs)), and there is no GS base.
//!
//! On some processors a load leaves the x87 error pointers as they are. There they are first set to values that say nothing
//! (decision 0053). Intel SDM volume 1, 13; volume 3, 2.5.

use super::cpu::features;
use crate::arch::image::{self, FCW, Image, MXCSR};
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, IMAGE_WORDS, STATE_SSE, STATE_X87};
use core::arch::asm;
use core::cell::Cell;

/// Words of the area of XSAVE for x87, SSE and AVX registers.
const AREA_WORDS: usize = IMAGE_WORDS;

/// Words of the part that FXSAVE writes.
const LEGACY_WORDS: usize = 64;

/// Words of the header behind that, which says what is not in its initial state.
const HEADER_WORDS: usize = 8;

const _: () = assert!(LEGACY_WORDS == IMAGE_HEADER);

/// Bytes of the area.
pub const AREA_BYTES: usize = AREA_WORDS * 8;

/// Extended state in memory.
#[repr(C, align(64))]
pub struct Extended {
    area: [Cell<u64>; AREA_WORDS],
    /// FS base.
    pub fs_base: Cell<u64>,
    /// GS base.
    pub gs_base: Cell<u64>,
}

/// Copies words of a state.
fn copy(to: &[Cell<u64>; AREA_WORDS], from: &[Cell<u64>; AREA_WORDS]) {
    // SAFETY: both are that long, and words in cells may change; an area is no image, since no user sees it.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr().cast_mut(), AREA_WORDS) };
}

impl Extended {
    /// Makes this the initial state.
    pub fn init(&self) {
        let (legacy, rest) = self.area.split_at(LEGACY_WORDS);
        // Parts that the header denies are not loaded; without XSAVE there is no header, and all are.
        if !features().xsave {
            legacy.iter().for_each(|word| word.set(0));
        }
        rest[..HEADER_WORDS].iter().for_each(|word| word.set(0));
        // A save may leave the x87 error pointers as they are in memory, too.
        legacy[1..IMAGE_MXCSR].iter().for_each(|word| word.set(0));
        self.area[0].set(FCW);
        self.area[IMAGE_MXCSR].set(MXCSR);
        self.fs_base.set(0);
        self.gs_base.set(0);
    }

    /// Makes this a copy of another state, which is in memory too.
    pub fn copy_from(&self, other: &Extended) {
        copy(&self.area, &other.area);
        self.fs_base.set(other.fs_base.get());
        self.gs_base.set(other.gs_base.get());
    }

    /// Gives an image of this state, which is in memory.
    pub fn read(&self, image: &Image) {
        copy(image, &self.area);
        if !features().xsave {
            // There is no header.
            image[LEGACY_WORDS..].iter().for_each(|word| word.set(0));
            image[IMAGE_HEADER].set(parts());
        }
        image::complete(image, features().mxcsr_mask);
    }

    /// Makes this the state of an image that is [fit](is_fit). The image is completed.
    pub fn write(&self, image: &Image) {
        image::complete(image, features().mxcsr_mask);
        copy(&self.area, image);
    }

    /// Saves the registers here, and loads those of `next`.
    #[inline(always)]
    pub fn exchange(&self, next: &Extended) {
        if features().exchanges {
            self.save_quickly();
            if features().x87_pointers_leak {
                set_pointers();
            }
            next.load_quickly();
        } else {
            self.save();
            next.load();
        }
    }

    /// Saves the registers. State that is initial, or has not changed since it was loaded from here, is left out where the processor can.
    pub fn save(&self) {
        if features().exchanges { self.save_quickly() } else { self.save_plainly() }
    }

    /// Loads the registers.
    pub fn load(&self) {
        if features().x87_pointers_leak {
            set_pointers();
        }
        if features().exchanges { self.load_quickly() } else { self.load_plainly() }
    }

    #[inline(always)]
    fn save_quickly(&self) {
        let (area, all) = (self.area.as_ptr(), u32::MAX);
        let (fs, gs): (u64, u64);
        // SAFETY: the area is as large as what XCR0 turns on (asserted by `check`), nobody else writes to it, and the instructions are
        // turned on.
        unsafe {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, preserves_flags));
            asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack, preserves_flags));
        }
        self.fs_base.set(fs);
        self.gs_base.set(gs);
    }

    #[inline(always)]
    fn load_quickly(&self) {
        let (area, all) = (self.area.as_ptr(), u32::MAX);
        // SAFETY: the area was written by `init`, by a save, by a copy of one, or by `write`; its reserved bits are zero.
        unsafe {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, readonly, preserves_flags));
        }
        self.load_bases();
    }

    #[inline(always)]
    fn load_bases(&self) {
        let (fs, gs) = (self.fs_base.get(), self.gs_base.get());
        // SAFETY: canonical addresses: they were read from the registers, or checked when they were set.
        unsafe {
            asm!("wrfsbase {}", "wrgsbase {}", in(reg) fs, in(reg) gs, options(nomem, nostack, preserves_flags));
        }
    }

    /// Saves the registers of a processor that lacks one of the instructions.
    #[cold]
    fn save_plainly(&self) {
        let (area, all) = (self.area.as_ptr(), u32::MAX);
        // SAFETY: as in `save_quickly`; each instruction is there.
        unsafe {
            if features().xsave {
                asm!("xsave64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack));
            } else {
                asm!("fxsave64 [{}]", in(reg) area, options(nostack));
            }
        }
        if features().fsgsbase {
            let (fs, gs): (u64, u64);
            // SAFETY: the instructions are turned on.
            unsafe { asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack)) };
            self.fs_base.set(fs);
            self.gs_base.set(gs);
        }
    }

    /// Loads the registers of such a processor.
    #[cold]
    fn load_plainly(&self) {
        let (area, all) = (self.area.as_ptr(), u32::MAX);
        // SAFETY: as in `load_quickly`; each instruction is there.
        unsafe {
            if features().xsave {
                asm!("xrstor64 [{}]", in(reg) area, in("eax") all, in("edx") all, options(nostack, readonly));
            } else {
                asm!("fxrstor64 [{}]", in(reg) area, options(nostack, readonly));
            }
        }
        if features().fsgsbase {
            self.load_bases();
        }
    }
}

/// Bits that MXCSR may have on this processor, once FXSAVE is turned on.
pub fn mxcsr_mask() -> u32 {
    /// Value that a processor means which says nothing: all bits but the one for denormals that are zeroes.
    const OLD: u32 = 0xffbf;
    let area =
        Extended { area: [const { Cell::new(0) }; AREA_WORDS], fs_base: Cell::new(0), gs_base: Cell::new(0) };
    // SAFETY: FXSAVE is required, and the area is large enough.
    unsafe { asm!("fxsave64 [{}]", in(reg) area.area.as_ptr(), options(nostack)) };
    match (area.area[IMAGE_MXCSR].get() >> 32) as u32 {
        0 => OLD,
        mask => mask,
    }
}

/// Checks that the processor's extended state fits into an area.
pub fn check() {
    assert!(features().fpu_area_bytes as usize <= AREA_BYTES, "extended state is larger than its area");
}

/// Parts of an image that the processor has.
pub fn parts() -> u64 {
    if features().xsave { features().xsave_mask } else { STATE_X87 | STATE_SSE }
}

/// Whether the processor loads an image without a fault.
pub fn is_fit(image: &Image) -> bool {
    image::is_fit(image, parts(), features().mxcsr_mask)
}

/// Whether users set the FS base and the GS base by instructions, so that they pass with the other registers.
pub fn has_bases() -> bool {
    features().fsgsbase
}

/// Sets the x87 error pointers, which a load leaves as they are on some processors, to values that say nothing of the last user: an
/// address in the kernel's program, and one of its constants. The registers are replaced right after.
#[inline(always)]
fn set_pointers() {
    static ANYTHING: u32 = 0;
    // SAFETY: no exception is pending after the first, no register in use after the second, and the third reads a constant.
    unsafe {
        asm!("fnclex", "emms", "fild dword ptr [{}]", in(reg) &raw const ANYTHING, options(nostack, readonly))
    };
}
