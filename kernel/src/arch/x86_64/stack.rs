//! Stacks of the kernel that are no thread's, each with a page below that is never mapped.

/// A kernel stack of `SIZE` bytes, under which a page is never mapped.
#[repr(C, align(4096))]
pub struct Stack<const SIZE: usize> {
    guard: [u8; 4096],
    bytes: [u8; SIZE],
}

impl<const SIZE: usize> Stack<SIZE> {
    /// An empty stack.
    pub const EMPTY: Stack<SIZE> = Stack { guard: [0; 4096], bytes: [0; SIZE] };

    /// Ends of a stack: its guard page, and the address behind it.
    pub const fn bounds(stack: *const Stack<SIZE>) -> StackBounds {
        StackBounds { guard: stack.cast(), top: stack.wrapping_add(1).cast() }
    }
}

/// The two ends of a [`Stack`].
pub struct StackBounds {
    /// The guard page below.
    pub guard: *const u8,
    /// Address behind the stack, from which it grows downwards.
    pub top: *const u8,
}

/// Bytes of [`BOOT_STACK`].
pub const BOOT_STACK_SIZE: usize = 0x10000;

/// Stack of all that runs from the first instruction to the first thread.
pub static mut BOOT_STACK: Stack<BOOT_STACK_SIZE> = Stack::EMPTY;
