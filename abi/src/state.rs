//! State of a thread: all of its registers at once, in memory of whoever asks for them or sets them (row C8).
//!
//! The block has a header of two words, then the registers of a message and of user mode, then the image of all others in the standard
//! format of XSAVE (Intel SDM volume 1, 13.4), which is not compacted. Its length is always the same; what a processor lacks is zero.
//!
//! A short block has the general registers alone, without a header: those of [`ThreadState::registers`], in their order.

/// State of a thread that stands still, as `GET_STATE` gives it and `SET_STATE` takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct ThreadState {
    /// Length of the block in bytes: [`ThreadState::LEN_BYTES`].
    pub len_bytes: u64,
    /// Things that are in the block, beside the general registers and the FS base: [`STATE_X87`] and its like.
    pub parts: u64,
    /// Registers in the order of [`REGISTERS`](crate::call::REGISTERS), by their numbers in [`register`]. The instruction pointer is that of
    /// the next instruction.
    pub registers: [u64; REGISTERS],
    /// FS base.
    pub fs_base: u64,
    /// GS base; 0 where [`STATE_GS`] is not among the parts.
    pub gs_base: u64,
    /// Zero.
    pub reserved: [u64; 2],
    /// Image of the other registers, as words.
    pub image: [u64; IMAGE_WORDS],
}

/// Number of registers in [`ThreadState::registers`].
pub const REGISTERS: usize = 18;

/// Words of the image: 512 bytes as FXSAVE writes them, the header of 64 bytes, and 256 bytes for the upper halves of the vector registers.
pub const IMAGE_WORDS: usize = 104;

/// Index in the image of XSTATE_BV, the word that says which parts are not in their initial state.
pub const IMAGE_HEADER: usize = 64;

/// Index in the image of the word with MXCSR in its lower half, and in its upper one the bits that MXCSR may have.
pub const IMAGE_MXCSR: usize = 3;

/// Part of a state: x87 registers. By the same number in XSTATE_BV, like the next two.
pub const STATE_X87: u64 = 1 << 0;
/// Part of a state: the registers XMM0 to XMM15, and MXCSR.
pub const STATE_SSE: u64 = 1 << 1;
/// Part of a state: the upper halves of YMM0 to YMM15.
pub const STATE_AVX: u64 = 1 << 2;
/// Part of a state: the GS base.
pub const STATE_GS: u64 = 1 << 8;

/// Index of each register in [`ThreadState::registers`].
pub mod register {
    macro_rules! indices {
        ($($name:ident = $index:literal, $text:literal;)*) => {
            $(#[doc = concat!("Index of `", $text, "`.")] pub const $name: usize = $index;)*

            /// Names of the registers, by their indices.
            pub const NAMES: [&str; super::REGISTERS] = [$($text),*];
        };
    }

    indices! {
        RIP = 0, "rip";
        RSP = 1, "rsp";
        RFLAGS = 2, "rflags";
        RAX = 3, "rax";
        RBX = 4, "rbx";
        RCX = 5, "rcx";
        RDX = 6, "rdx";
        RSI = 7, "rsi";
        RDI = 8, "rdi";
        RBP = 9, "rbp";
        R8 = 10, "r8";
        R9 = 11, "r9";
        R10 = 12, "r10";
        R11 = 13, "r11";
        R12 = 14, "r12";
        R13 = 15, "r13";
        R14 = 16, "r14";
        R15 = 17, "r15";
    }
}

impl ThreadState {
    /// Length of a block in bytes.
    pub const LEN_BYTES: u64 = size_of::<ThreadState>() as u64;

    /// Length in bytes of a short block, with the general registers alone.
    pub const GENERAL_BYTES: u64 = 8 * REGISTERS as u64;

    /// A block of zeroes, to be filled by `GET_STATE`.
    pub const ZERO: ThreadState = ThreadState {
        len_bytes: 0,
        parts: 0,
        registers: [0; REGISTERS],
        fs_base: 0,
        gs_base: 0,
        reserved: [0; 2],
        image: [0; IMAGE_WORDS],
    };
}

const _: () = assert!(size_of::<ThreadState>() == 1024);
const _: () = assert!(core::mem::offset_of!(ThreadState, fs_base) == 160);
const _: () = assert!(core::mem::offset_of!(ThreadState, image) == 192);
