//! The machine: mechanisms of the processor and the devices around it. This is the floor: nothing here knows an object of the kernel, and
//! of the crate it imports [`layout`](crate::layout) and [`param`](crate::param) alone. It is given words, tables and pointers.
//!
//! `x86_64` is the real machine; `host` is a simulated one, on which the whole kernel above runs as an ordinary library under unit tests,
//! property tests and Miri. Both have the same names. [`four_level`], [`frame`] and [`image`] serve both. Boot, entries and exits are no
//! mechanisms: they call up, and live in `entry`.
//!
//! # What the kernel uses
//!
//! Every name that is used from above, with its promise. Entries and boot are the machine's own, and use more of it; so do tests of the
//! simulated machine (`sim.rs`).
//!
//! **Thread**
//! * [`frame`]: a thread's registers, by their use.
//! * [`current_line`]: where the hot line of the current thread is; null before there is one. One load.
//! * [`set_current_line`]: makes a thread the current one; the entries find its block by it.
//! * [`slot_block`]: the control block in a slot of the array; a slot without one shows zeroes, or nothing.
//! * [`map_slot`]: puts a frame behind a slot, and asks for at most one frame for a table.
//! * [`unmap_slot`]: takes it out.
//! * [`load_fs`]: the user's thread pointer is this address from now on, where [`extended`] does not load it.
//! * [`ports_on`]: user mode may use the ports of a bitmap in these two frames.
//! * [`ports_off`]: user mode may use no port.
//! * [`extended`]: saves and loads the registers beside those of a message.
//! * [`forget_predictions`]: branches of programs are predicted by nothing that was learned before.
//! * [`forgets_predictions`]: whether the processor can do that, and is meant to.
//! * [`image`]: the form in which users see these registers.
//!
//! **Space**
//! * [`space`]: the word that selects a space, with its tag; loads one, and forgets translations.
//! * [`doors`]: tables that show a task's identifiers to the fast path.
//! * [`SHOWS_DOORS`]: whether [`shown_word`] can be used.
//! * [`shown_word`]: the word that the running task's tables show for an identifier.
//!
//! **Copy**
//! * [`copy`]: copies from the loaded space to another one, through a window; a fault ends it, and says where.
//! * [`CopyFault`]: how a copy ended early.
//! * [`COPIES_OPENLY`]: whether a copy can let interrupts in.
//! * [`copy_at_once`]: number of bytes that a copy with interrupts let in does at once.
//!
//! **Interrupts**
//! * [`irq_mask`]: keeps a line from interrupting.
//! * [`irq_unmask`]: lets a line interrupt.
//! * [`irq_is_level`]: whether a line stays asserted until its device is served.
//! * [`irq_message`]: where a device writes what to fire a line that has no wire.
//! * [`irq_acknowledge`]: tells the controller that the interrupt being served was taken; once for each.
//!
//! **Time**
//! * [`now_ns`]: nanoseconds since the kernel started; never goes back.
//! * [`arm_timer`]: sets the alarm, an interrupt at a point of that time, or at once if it has passed. There is one; a new one replaces it.
//!
//! **Debug**
//! * [`debug`]: breakpoints of the current thread, on and off.
//! * [`print`]: the kernel's own output.
//! * [`frame_pointer`]: where a backtrace of the caller starts.
//! * [`read_mapped`]: a word of kernel memory, if it is mapped.
//! * [`registers_at_panic`]: more registers that a panic prints.
//! * [`end_of_machine`]: ends the machine, as a failure.
//!
//! **Start**
//! * [`view`]: temporary views of physical memory, gone before the first user runs.
//! * [`kernel_space`]: the word of a space that maps nothing for users, for idling.
//! * [`physical_bits`]: width of a physical address.
//! * [`ELF_MACHINE`]: which programs run here.
//!
//! **Page tables**
//! * [`pte`]: the form of an entry, as functions on words.
//! * [`Table`]: a table of any level, 512 cells.
//! * [`has_gib_pages`]: whether there are pages of 1 GiB.

pub mod four_level;
pub mod frame;
pub mod image;
#[cfg(target_os = "none")]
#[path = "x86_64/mod.rs"]
mod isa;
#[cfg(not(target_os = "none"))]
#[path = "host/mod.rs"]
mod isa;
pub mod print;

pub use four_level::window::{self as copy, copy_at_once};
pub use four_level::{Table, doors, pte, space};
pub use isa::*;

/// Early end of a copy between two tasks, by a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyFault {
    /// Bytes copied before the fault.
    pub done: u64,
    /// The address that faults, in its task's space.
    pub address: u64,
    /// Whether the address belongs to the target of the copy, and not to its source.
    pub at_target: bool,
}
