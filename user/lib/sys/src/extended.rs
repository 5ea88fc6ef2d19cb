//! Extended state that the processor holds: FS and GS base, x87 and vector registers.
//!
//! A foreign call changes none of it, and the handler runs with what its thread has left there, as it does itself if it is compiled without
//! them (see [`foreign`](crate::foreign)). So while the handler has not waited since, it saves and loads the thread's with instructions of its
//! own, where `GET_STATE` and `SET_STATE` cost a thousand. General registers are none of this.

use abi::ThreadState;
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, IMAGE_WORDS, STATE_AVX, STATE_GS, STATE_SSE, STATE_X87};
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;

/// Bits that MXCSR may have where a processor says nothing of them: all but the one for denormals that are zeroes.
const MXCSR_MASK: u64 = 0xffbf;

/// CPUID leaf 1, ECX: XSAVE is there and the system uses it.
const OSXSAVE: u32 = 1 << 27;

/// CPUID leaf 7, EBX: the bases are set by instructions. The kernel lets users do so on each processor that has them.
const FSGSBASE: u32 = 1 << 0;

/// The processor, as far as its extended state is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Extended {
    has_xsave: bool,
    has_bases: bool,
    parts: u64,
    /// Bits that MXCSR may have.
    mxcsr_mask: u64,
}

impl Extended {
    /// This processor's.
    pub fn of_processor() -> Extended {
        let has_xsave = __cpuid_count(1, 0).ecx & OSXSAVE != 0;
        let has_bases = __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).ebx & FSGSBASE != 0;
        let mut parts = STATE_X87 | STATE_SSE;
        if has_xsave {
            let (low, _high): (u32, u32);
            // SAFETY: the system has enabled XSAVE, which brings the instruction; it reads a register.
            unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _high, options(nomem, nostack)) };
            parts = u64::from(low) & (STATE_X87 | STATE_SSE | STATE_AVX);
        }
        let mut processor = Extended { has_xsave, has_bases, parts, mxcsr_mask: MXCSR_MASK };
        let mut state = ThreadState::ZERO;
        processor.save(&mut state);
        processor.mxcsr_mask = state.image[IMAGE_MXCSR] >> 32;
        processor
    }

    /// Whether [`Extended::save`] finds the bases: on a processor without instructions for them, `thread_registers` tells the FS base.
    pub const fn has_bases(&self) -> bool {
        self.has_bases
    }

    /// Writes down what the processor holds, as `GET_STATE` would; the general registers of the state stay as they are. Whatever a processor
    /// without instructions for the bases has there is shown as zero.
    pub fn save(&self, state: &mut ThreadState) {
        state.len_bytes = ThreadState::LEN_BYTES;
        state.parts = self.parts;
        (state.fs_base, state.gs_base) = (0, 0);
        if self.has_bases {
            state.parts |= STATE_GS;
            // SAFETY: the processor has these, and they read registers.
            unsafe {
                asm!("rdfsbase {}", "rdgsbase {}", out(reg) state.fs_base, out(reg) state.gs_base, options(nomem, nostack));
            }
        }
        state.image[IMAGE_HEADER..IMAGE_HEADER + 8].fill(0);
        let image = state.image.as_mut_ptr();
        // SAFETY: the image is aligned to 64 bytes by its type, and long enough for these parts.
        unsafe {
            match self.has_xsave {
                true => {
                    asm!("xsave64 [{}]", in(reg) image, in("eax") self.parts as u32, in("edx") 0, options(nostack))
                }
                false => asm!("fxsave64 [{}]", in(reg) image, options(nostack)),
            }
        }
        if !self.has_xsave {
            state.image[IMAGE_HEADER] = self.parts;
        }
        if state.image[IMAGE_MXCSR] >> 32 == 0 {
            state.image[IMAGE_MXCSR] |= MXCSR_MASK << 32;
        }
    }

    /// Makes the processor hold the x87 and vector registers of a state. False, and nothing has changed, if it cannot: `SET_STATE` would refuse
    /// such an image.
    #[must_use]
    pub fn load_vectors(&self, state: &ThreadState) -> bool {
        if !is_fit(&state.image, self.parts, self.mxcsr_mask) {
            return false;
        }
        let image = state.image.as_ptr();
        // SAFETY: the image is one that the processor loads without a fault, and this program is compiled without these registers.
        unsafe {
            match self.has_xsave {
                true => {
                    asm!("xrstor64 [{}]", in(reg) image, in("eax") self.parts as u32, in("edx") 0, options(nostack))
                }
                false => asm!("fxrstor64 [{}]", in(reg) image, options(nostack)),
            }
        }
        true
    }
}

/// Whether a processor with these parts loads an image without a fault; `allowed` has the bits that MXCSR may have.
fn is_fit(image: &[u64; IMAGE_WORDS], parts: u64, allowed: u64) -> bool {
    let header = &image[IMAGE_HEADER..IMAGE_HEADER + 8];
    let has_parts = header[0] & !parts == 0;
    let is_plain = header[1..].iter().all(|word| *word == 0);
    has_parts && is_plain && image[IMAGE_MXCSR] & 0xffff_ffff & !allowed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_on_which_a_load_faults_are_refused() {
        let processor = Extended::of_processor();
        let mut state = ThreadState::ZERO;
        processor.save(&mut state);
        state.image[IMAGE_HEADER] = 0;
        let with = |at: usize, word: u64| {
            let mut state = state;
            state.image[at] |= word;
            is_fit(&state.image, STATE_X87 | STATE_SSE, 0xffff)
        };
        for bit in 0..64 {
            assert_eq!(with(IMAGE_HEADER, 1 << bit), bit < 2, "XSTATE_BV {bit}");
            assert_eq!(with(IMAGE_MXCSR, 1 << bit), !(16..32).contains(&bit), "MXCSR {bit}");
            assert!((1..8).all(|at| !with(IMAGE_HEADER + at, 1 << bit)), "header {bit}");
        }
    }

    #[test]
    fn what_is_saved_is_what_the_processor_holds() {
        let processor = Extended::of_processor();
        let mut state = ThreadState::ZERO;
        processor.save(&mut state);
        assert_eq!(state.len_bytes, ThreadState::LEN_BYTES);
        assert_eq!(state.parts & (STATE_X87 | STATE_SSE), STATE_X87 | STATE_SSE);
        assert_eq!(state.image[IMAGE_MXCSR] & 0x1f80, 0x1f80, "exceptions are masked");
        assert!(!processor.has_bases() || state.fs_base != 0, "this thread has thread-local storage");
        assert!(is_fit(&state.image, processor.parts, processor.mxcsr_mask));
    }
}
