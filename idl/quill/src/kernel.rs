//! Kernel parts: what carries a message, as far as the layout has to know it.
//!
//! A kernel part is a value that implements [`KernelPart`]. The layout asks it how much travels in registers and how
//! much may follow in memory; everything else about a kernel belongs to the emitter that speaks its language. To add
//! one, implement the trait and list it in [`ALL`].

/// What the layout must know of a kernel.
pub trait KernelPart: Sync {
    /// The name for `--kernel`.
    fn name(&self) -> &'static str;
    /// Message registers for the caller's use, each [`KernelPart::word_bytes`] wide.
    fn registers(&self) -> u32;
    /// Width of a message register.
    fn word_bytes(&self) -> u32;
    /// Bytes that may follow in memory; 0 when a message is registers only.
    fn memory_bytes_max(&self) -> u64;
    /// Where a label travels that costs no register, in words for a reader.
    fn label(&self) -> &'static str;
}

/// Messages over Unix-domain stream sockets: no registers, up to 16 MiB in memory behind a header.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl KernelPart for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }
    fn registers(&self) -> u32 {
        0
    }
    fn word_bytes(&self) -> u32 {
        8
    }
    fn memory_bytes_max(&self) -> u64 {
        16 << 20
    }
    fn label(&self) -> &'static str {
        "header"
    }
}

/// Tern's short ipc: eleven registers of 64 bits, and a label of 32 bits that costs none of them. Its messages have no
/// part in memory, so what does not fit is refused.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl KernelPart for TernIpc {
    fn name(&self) -> &'static str {
        "tern-ipc"
    }
    fn registers(&self) -> u32 {
        11
    }
    fn word_bytes(&self) -> u32 {
        8
    }
    fn memory_bytes_max(&self) -> u64 {
        0
    }
    fn label(&self) -> &'static str {
        "upper half of rax"
    }
}

/// All kernel parts.
pub const ALL: [&dyn KernelPart; 2] = [&Linux, &TernIpc];

/// The kernel part of that name.
pub fn find(name: &str) -> Option<&'static dyn KernelPart> {
    ALL.into_iter().find(|k| k.name() == name)
}
