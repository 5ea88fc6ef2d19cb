//! Registers beside a message, filled and looked at by assembly. The compiler knows nothing of them in this program.

use core::arch::asm;
use core::arch::x86_64::__cpuid_count;

/// Words that the program in C has in its vector registers, and nobody else is to find (`tests/guest/registers-c/registers.h`).
pub const SECRET: u64 = 0x5ec4_e75e_c4e7_5ec4;

/// Words of an image of FXSAVE; in it, and where registers begin, which are two words apart: see the processor's manual.
const IMAGE: usize = 64;
const MXCSR: usize = 3;
const ST0: usize = 4;
const XMM0: usize = 20;

/// CPUID leaf 1, ECX: AVX, and a system that has turned it on.
const AVX: u32 = 3 << 27;

/// Contents of all registers beside those of a message.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    image: [u64; IMAGE],
    /// Upper halves of the YMM registers.
    upper: [u64; 32],
    bases: [u64; 2],
}

/// Contents that are to be there.
pub type Paint = Seen;

impl Seen {
    const NOTHING: Seen = Seen { image: [0; IMAGE], upper: [0; 32], bases: [0; 2] };

    /// Whatever harms a program that takes it for its own: no exception is masked, those of x87 are pending, results have few bits and are rounded
    /// towards zero, and all registers are in use.
    pub const HOSTILE: Paint = Seen::full(0x0c40, 0x8081, 0x603f, 0xbad0_bad0_bad0_bad0);

    /// Something that a thread may well have, and nobody else: it rounds down.
    pub const OWN: Paint = Seen::full(0x077f, 0, 0x3f80, 0x0123_4567_89ab_cdef);

    const fn full(control: u64, status: u64, mxcsr: u64, word: u64) -> Paint {
        let mut paint = Paint::NOTHING;
        paint.image[0] = control | status << 16 | 0xff << 32;
        paint.image[MXCSR] = mxcsr;
        let mut register = 0;
        while register < 8 {
            paint.image[ST0 + 2 * register] = word | 1 << 63;
            paint.image[ST0 + 2 * register + 1] = 0x3ff0 + register as u64;
            register += 1;
        }
        let mut half = 0;
        while half < 32 {
            paint.image[XMM0 + half] = word + half as u64;
            paint.upper[half] = !word + half as u64;
            half += 1;
        }
        paint.bases = [0x6660_0000_0000, 0x6661_0000_0000];
        paint
    }

    fn vectors(&self) -> impl Iterator<Item = u64> {
        self.image[XMM0..XMM0 + 32].iter().chain(&self.upper).copied()
    }

    /// Whether a word is in a vector register.
    pub fn has(&self, word: u64) -> bool {
        self.vectors().any(|found| found == word)
    }

    /// Whether the vector registers say nothing.
    pub fn vectors_are_zero(&self) -> bool {
        self.vectors().all(|found| found == 0)
    }

    /// Whether the x87 registers have nothing in their mantissas.
    pub fn x87_is_zero(&self) -> bool {
        (0..8).all(|register| self.image[ST0 + 2 * register] == 0)
    }

    /// Parts in which this differs from another one; nothing of where an x87 instruction was.
    pub fn differences(&self, other: &Seen) -> [(&'static str, bool); 6] {
        let differs = |at: core::ops::Range<usize>| self.image[at.clone()] != other.image[at];
        let x87 = (0..8).any(|register| {
            let at = ST0 + 2 * register;
            (self.image[at], self.image[at + 1] as u16) != (other.image[at], other.image[at + 1] as u16)
        });
        [
            ("x87's control and status", (self.image[0] ^ other.image[0]) << 24 >> 24 != 0),
            ("MXCSR", self.image[MXCSR] as u32 != other.image[MXCSR] as u32),
            ("x87", x87),
            ("XMM", differs(XMM0..XMM0 + 32)),
            ("YMM", has_avx() && self.upper != other.upper),
            ("the bases", has_bases() && self.bases != other.bases),
        ]
    }
}

fn has_avx() -> bool {
    __cpuid_count(1, 0).ecx & AVX == AVX
}

/// Whether users set FS and GS base by instructions.
fn has_bases() -> bool {
    __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).ebx & 1 != 0
}

/// Fills all registers. An x87 exception that is pending then waits for the next instruction of x87.
#[inline(never)]
pub fn paint(paint: &Paint) {
    let (image, upper) = (paint.image.as_ptr(), paint.upper.as_ptr());
    // SAFETY: both are as long as the instructions want, the image is aligned, and its MXCSR has no reserved bits; each instruction is there
    // where it is used, and bases are canonical.
    unsafe {
        asm!("fxrstor64 [{}]", in(reg) image, options(nostack));
        if has_avx() {
            asm!(
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vinsertf128 ymm\\n, ymm\\n, [{at} + 16 * \\n], 1",
                ".endr",
                at = in(reg) upper,
                options(nostack),
            );
        }
        if has_bases() {
            asm!("wrfsbase {}", "wrgsbase {}", in(reg) paint.bases[0], in(reg) paint.bases[1], options(nostack));
        }
    }
}

/// The contents of all registers.
#[inline(never)]
pub fn look() -> Seen {
    let mut seen = Seen::NOTHING;
    // SAFETY: as in `paint`.
    unsafe {
        asm!("fxsave64 [{}]", in(reg) seen.image.as_mut_ptr(), options(nostack));
        if has_avx() {
            asm!(
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vextractf128 [{at} + 16 * \\n], ymm\\n, 1",
                ".endr",
                at = in(reg) seen.upper.as_mut_ptr(),
                options(nostack),
            );
        }
        if has_bases() {
            asm!("rdfsbase {}", "rdgsbase {}", out(reg) seen.bases[0], out(reg) seen.bases[1], options(nostack));
        }
    }
    seen
}
