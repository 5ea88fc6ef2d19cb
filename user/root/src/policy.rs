//! What `root` allows whom: priorities, memory, devices, authority. One table.
//!
//! Priorities: 63 σ0, 62 `root` (its keeper thread 61), then what others wait for, then programs. A server runs
//! on its caller's time, but at its own priority it starts, and handles interrupts.

use rt::api::{clock, console};
use rt::sys::Fpage;

/// What a program may do.
#[derive(Debug)]
pub struct Policy {
    /// Name in the archive.
    pub program: &'static str,
    /// The name that it serves. `root` starts such a program by itself, and again when it crashes; nobody else may
    /// register the name.
    pub serves: Option<&'static str>,
    /// Priority of its first thread.
    pub priority: u8,
    /// Highest priority of its threads.
    pub priority_max: u8,
    /// Kernel memory, in parts of 256 of what `root` starts with: tables, threads, mappings.
    pub kernel_share: u64,
    /// Memory, in pages.
    pub pages_max: u64,
    /// Ports, interrupts and device memory that it may have.
    pub resources: &'static [Fpage],
    /// Contiguous memory that it may have besides, in bytes. It learns where that lies.
    pub blocks_max: u64,
    /// Whether it may start programs, and end programs that it did not start.
    pub is_operator: bool,
}

/// Pages per MiB.
const MIB: u64 = 256;

/// The memory manager. It pays for the mappings of all memory that it manages: 1 frame in 50.
pub static MEMORY_MANAGER: Policy = Policy {
    program: "mm",
    priority: 58,
    priority_max: 58,
    kernel_share: 64,
    pages_max: 64 * MIB,
    ..PROGRAM
};

/// The PC's clock. Its time is read by the server; its periodic interrupt is there for tests and measurements.
const CLOCK_PORTS: Fpage = Fpage::ports(0x70, 1);
const CLOCK_INTERRUPT: Fpage = Fpage::interrupt(8);

/// Firmware shows its progress at this port; writing there is harmless.
const PROGRESS_PORT: Fpage = Fpage::ports(0x80, 0);

/// Boot servers, in the order in which they start.
pub static SERVERS: [Policy; 2] = [
    Policy {
        program: "console",
        serves: Some(console::NAME),
        priority: 56,
        priority_max: 56,
        kernel_share: 4,
        pages_max: 4 * MIB,
        resources: &[Fpage::ports(0x3f8, 3), Fpage::interrupt(4)],
        ..PROGRAM
    },
    Policy {
        program: "rtc",
        serves: Some(clock::NAME),
        priority: 54,
        priority_max: 54,
        kernel_share: 4,
        pages_max: 4 * MIB,
        resources: &[CLOCK_PORTS],
        ..PROGRAM
    },
];

/// Programs that need other limits than the usual ones.
static SPECIAL: [Policy; 5] = [
    // The shell stays above what it starts, so that a program that loops cannot lock the user out.
    Policy {
        program: "shell",
        priority: 40,
        priority_max: 40,
        kernel_share: 8,
        pages_max: 16 * MIB,
        is_operator: true,
        ..PROGRAM
    },
    // Tests and measurements make tasks of their own and need to be undisturbed.
    Policy {
        program: "suite",
        priority: 32,
        priority_max: 50,
        kernel_share: 96,
        pages_max: 64 * MIB,
        resources: &[PROGRESS_PORT, CLOCK_PORTS, CLOCK_INTERRUPT],
        // Among them a gibibyte, if there is one.
        blocks_max: (8 << 20) + (1 << 30),
        ..PROGRAM
    },
    // They start themselves, as the servers that they test.
    Policy { program: "stub-test", kernel_share: 32, is_operator: true, ..PROGRAM },
    Policy { program: "door-test", kernel_share: 32, is_operator: true, ..PROGRAM },
    Policy {
        program: "bench",
        priority: 32,
        priority_max: 50,
        kernel_share: 128,
        pages_max: 64 * MIB,
        resources: &[CLOCK_PORTS, CLOCK_INTERRUPT],
        blocks_max: 2 << 20,
        ..PROGRAM
    },
];

/// All others.
const PROGRAM: Policy = Policy {
    program: "",
    serves: None,
    priority: 32,
    priority_max: 36,
    kernel_share: 16,
    pages_max: 64 * MIB,
    resources: &[],
    blocks_max: 0,
    is_operator: false,
};

/// Least kernel memory with which a program can run, in frames.
pub const KERNEL_FRAMES_MIN: u64 = 32;

/// Programs at the same time.
pub const PROGRAMS_MAX: usize = 64;

/// How many names, pieces of arguments, unanswered requests and ended children are kept for one program (of each).
pub const KEPT_MAX: usize = 64;

/// A server that crashes more often than [`RESTARTS_MAX`] times within [`RESTARTS_NS`] stays down.
pub const RESTARTS_MAX: usize = 5;
/// See [`RESTARTS_MAX`].
pub const RESTARTS_NS: u64 = 10_000_000_000;

/// What holds for a program.
pub fn of(program: &str) -> &'static Policy {
    static USUAL: Policy = PROGRAM;
    let mut all = SERVERS.iter().chain(&SPECIAL).chain([&MEMORY_MANAGER]);
    all.find(|policy| policy.program == program).unwrap_or(&USUAL)
}
