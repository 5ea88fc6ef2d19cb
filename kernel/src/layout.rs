//! The kernel half of every address space.
//!
//! ```text
//! ffff_8000_0000_0000  pool       the kernel's own memory: tables, tasks, mapping nodes (writable, not executable)
//! ffff_8080_0000_0000  window     another task's memory, while a message is copied to it (one top-level slot)
//! ffff_8200_0000_0000  doors      the running task's door identifiers, one word each; most are one shared page (one top-level slot)
//! ffff_ff00_0000_0000  info       one page that users may read: version, clock
//! ffff_ffff_8000_0000  image      the kernel's program: physical address + this; text, constants, data apart
//! ffff_ffff_bfe0_0000  devices    local APIC, I/O APIC, HPET (uncached)
//! ffff_ffff_bfff_c000  per CPU    one page: task state segment, descriptor tables, current thread
//! ffff_ffff_bfff_d000  ports      two pages: the running task's I/O permission bitmap, then one page of ones
//! ffff_ffff_c000_0000  threads    virtual array of control blocks, 4 KiB each; holes are one shared page of zeroes
//! ```
//!
//! All of it but the window and the doors is the same in every task: a task's top-level table copies the kernel half once,
//! and no other entry of it changes after boot. User memory has no other address in the kernel half than the window.
//! Under page-table isolation users run on other tables, which show of all this only the image's text, devices to port bitmap, and info.

/// The kernel's memory pool; physical address minus [`pool start`](crate::mem) plus this.
pub const POOL: u64 = 0xffff_8000_0000_0000;

/// The page of [`abi::boot::InfoPage`].
pub const INFO: u64 = abi::INFO_PAGE;

/// Offset between the virtual and the physical address of the kernel's image.
pub const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// Device registers that the kernel uses.
pub const DEVICES: u64 = 0xffff_ffff_bfe0_0000;

/// The per-CPU page. In the top 2 GiB, so that a 32-bit displacement reaches it without a base register and
/// without SWAPGS.
pub const PER_CPU: u64 = 0xffff_ffff_bfff_c000;

/// I/O permission bitmap of the running task: 8 KiB, followed by at least one byte of ones.
pub const PORT_BITMAP: u64 = PER_CPU + 0x1000;

/// The communication window: 512 GiB of another task, as one top-level entry without the user bit.
pub const WINDOW: u64 = 0xffff_8080_0000_0000;

/// Size of the window: as much as one top-level entry covers.
pub const WINDOW_SIZE: u64 = 1 << 39;

/// The running task's door identifiers: for each 32-bit number the address of the door's node, or
/// [`NO_DOOR`](crate::object::door::NO_DOOR). Numbers that a task cannot have are there too, so that no number needs a check.
pub const DOORS: u64 = 0xffff_8200_0000_0000;

/// The array of thread control blocks; it reaches to the end of the address space.
pub const TCBS: u64 = 0xffff_ffff_c000_0000;

/// First address of the kernel half.
pub const KERNEL_HALF: u64 = 0xffff_8000_0000_0000;

/// Addresses of which one lies in each top-level slot of the kernel half that is ever used. All other slots stay empty.
pub const PARTS: [u64; 5] = [POOL, WINDOW, DOORS, INFO, IMAGE];

const _: () = assert!(TCBS.wrapping_add((crate::param::TCB_MAX << crate::param::TCB_SHIFT) as u64) == 0);

/// Where σ0's own program lies; it cannot be handed on. Below it, σ0's addresses are physical addresses.
pub const SIGMA0_PROGRAM: u64 = 0x7000_0000_0000;
