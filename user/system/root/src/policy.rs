//! Rights of programs, as `root` grants them: priorities, memory, devices, authority. One table, in which each entry knows its line, so that a
//! mistake in it ([`Policy::mistake`]) is told with the place where it is mended.
//!
//! Priorities: 63 σ0, 62 `root` (its keeper thread 61), then what others wait for, then programs. A server runs
//! on its caller's time, but at its own priority it starts, and handles interrupts.
//!
//! A task that is made of modules may do what its modules may together ([`together`]).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;
use rt::api::{Name, calendar, clock, console};
use rt::sys::Fpage;

/// Where a policy stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// A path in the checkout, or a file of the boot archive.
    pub file: &'static str,
    /// From 1 on.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

/// Rights and limits of a program.
#[derive(Debug)]
pub struct Policy {
    /// Where this stands: the last line of the entry.
    pub place: Place,
    /// Its name.
    pub program: &'static str,
    /// Its file in the archive, if that has another name.
    pub file: Option<&'static str>,
    /// The names that it serves, which it finds in its arguments. `root` starts such a program by itself, and again when it crashes;
    /// nobody else may register the names.
    pub serves: &'static [&'static str],
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
    ..usual()
};

/// The PC's clock. Its time is read by the server; its periodic interrupt is there for tests and measurements.
const CLOCK_PORTS: Fpage = Fpage::ports(0x70, 1);
const CLOCK_INTERRUPT: Fpage = Fpage::interrupt(8);

/// Firmware shows its progress at this port; writing there is harmless.
const PROGRESS_PORT: Fpage = Fpage::ports(0x80, 0);

/// The boot server that starts before all others.
pub static CONSOLE: Policy = Policy {
    program: "console",
    serves: &[console::NAME],
    priority: 56,
    priority_max: 56,
    kernel_share: 4,
    pages_max: 4 * MIB,
    resources: &[Fpage::ports(0x3f8, 3), Fpage::interrupt(4)],
    ..usual()
};

/// The file of tasks that are made of modules.
pub const MODULES_FILE: &str = "modules";

/// Rights of each module, wherever it is.
static MODULES: &[Policy] = &[
    Policy { program: clock::NAME, serves: &[clock::NAME], resources: &[CLOCK_PORTS], ..usual_module() },
    Policy { program: calendar::NAME, serves: &[calendar::NAME], ..usual_module() },
];

/// Most modules.
#[track_caller]
const fn usual_module() -> Policy {
    Policy {
        file: Some(MODULES_FILE),
        priority: 54,
        priority_max: 54,
        kernel_share: 4,
        pages_max: 4 * MIB,
        ..usual()
    }
}

/// The module of a name.
pub fn module(name: &str) -> Option<&'static Policy> {
    MODULES.iter().find(|policy| policy.program == name)
}

/// Rights of a task that is made of these modules, as a file says at this place. It lives as long as `root`, like all policies.
pub fn together(place: Place, name: &str, modules: &[&str]) -> &'static Policy {
    let modules: Vec<_> = modules.iter().filter_map(|name| module(name)).collect();
    let most = |of: fn(&Policy) -> u8| modules.iter().map(|module| of(module)).max().unwrap_or(0);
    let sum = |of: fn(&Policy) -> u64| modules.iter().map(|module| of(module)).sum();
    Box::leak(Box::new(Policy {
        place,
        program: String::from(name).leak(),
        serves: modules.iter().flat_map(|module| module.serves).copied().collect::<Vec<_>>().leak(),
        priority: most(|module| module.priority),
        priority_max: most(|module| module.priority_max),
        kernel_share: sum(|module| module.kernel_share),
        pages_max: sum(|module| module.pages_max),
        resources: modules.iter().flat_map(|module| module.resources).copied().collect::<Vec<_>>().leak(),
        blocks_max: sum(|module| module.blocks_max),
        ..usual_module()
    }))
}

/// Programs that need other limits than the usual ones, and those that serve names from the start. One line makes a program a server of
/// the system: `Policy { program: "counter", serves: &["counter"], ..usual() },`.
static SPECIAL: &[Policy] = &[
    // The shell stays above what it starts, so that a program that loops cannot lock the user out.
    Policy {
        program: "shell",
        priority: 40,
        priority_max: 40,
        kernel_share: 8,
        pages_max: 16 * MIB,
        is_operator: true,
        ..usual()
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
        ..usual()
    },
    // They start themselves, as the servers that they test.
    Policy { program: "stub-test", kernel_share: 32, is_operator: true, ..usual() },
    Policy { program: "door-test", kernel_share: 32, is_operator: true, ..usual() },
    Policy {
        program: "bench",
        priority: 32,
        priority_max: 50,
        kernel_share: 128,
        pages_max: 64 * MIB,
        resources: &[CLOCK_PORTS, CLOCK_INTERRUPT],
        blocks_max: 2 << 20,
        // It starts the programs in C that are measured.
        is_operator: true,
        ..usual()
    },
];

/// All others, and what an entry does not say: it stands where this is called.
#[track_caller]
const fn usual() -> Policy {
    let here = Location::caller();
    Policy {
        place: Place { file: here.file(), line: here.line() },
        program: "",
        file: None,
        serves: &[],
        priority: 32,
        priority_max: 36,
        kernel_share: 16,
        pages_max: 64 * MIB,
        resources: &[],
        blocks_max: 0,
        is_operator: false,
    }
}

/// The highest priority of a program: above are `root`'s keeper, `root` and σ0.
const PRIORITY_MAX: u8 = 60;

/// All kernel memory; see [`Policy::kernel_share`].
const KERNEL_SHARES: u64 = 256;

/// Mistake in a policy.
#[derive(Clone, Copy, Debug)]
pub enum Mistake {
    /// This is no name: empty, too long, or not printable ASCII.
    Name(&'static str),
    /// The first thread's priority is out of range: from 1 to this.
    Priority(u8, u8),
    /// The highest priority is out of range: from 1 to [`PRIORITY_MAX`].
    PriorityMax(u8),
    /// It has no kernel memory, or more than there is.
    KernelShare(u64),
    /// It has no memory.
    NoPages,
    /// The program has an entry here already, which counts.
    Twice(Place),
    /// This name is served by another program already.
    Served(&'static str, &'static Policy),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Mistake::Name(name) => {
                write!(f, "{name:?} is no name, which has 1 to {} printable characters", Name::LEN_MAX)
            }
            Mistake::Priority(priority, most) => {
                write!(f, "priority {priority}: expected 1 to {most}, its priority_max")
            }
            Mistake::PriorityMax(priority) => {
                write!(f, "priority_max {priority}: expected 1 to {PRIORITY_MAX}")
            }
            Mistake::KernelShare(share) => {
                write!(f, "kernel_share {share}: expected 1 to {KERNEL_SHARES}, which is all")
            }
            Mistake::NoPages => f.write_str("pages_max 0: no program runs without memory"),
            Mistake::Twice(place) => write!(f, "it has an entry already, which counts: {place}"),
            Mistake::Served(name, other) => {
                write!(f, "the name {name:?} is served by {}, see {}", other.program, other.place)
            }
        }
    }
}

impl Policy {
    /// The first mistake in its values, if there is one.
    pub fn mistake(&self) -> Option<Mistake> {
        // The usual policy is for all names.
        let program = (!self.program.is_empty()).then_some(self.program);
        let mut names = program.into_iter().chain(self.file).chain(self.serves.iter().copied());
        if let Some(name) = names.find(|name| Name::new(name).is_none()) {
            return Some(Mistake::Name(name));
        }
        if !(1..=PRIORITY_MAX).contains(&self.priority_max) {
            return Some(Mistake::PriorityMax(self.priority_max));
        }
        if !(1..=self.priority_max).contains(&self.priority) {
            return Some(Mistake::Priority(self.priority, self.priority_max));
        }
        if !(1..=KERNEL_SHARES).contains(&self.kernel_share) {
            return Some(Mistake::KernelShare(self.kernel_share));
        }
        (self.pages_max == 0).then_some(Mistake::NoPages)
    }

    /// The name that another one of these serves too.
    pub fn conflict(&self, others: &[&'static Policy]) -> Option<Mistake> {
        let other = |name: &&str| others.iter().find(|other| other.serves.contains(name)).copied();
        self.serves.iter().find_map(|name| Some(Mistake::Served(name, other(name)?)))
    }
}

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

/// The servers that `root` starts after the console, in this order: all programs that serve names.
pub fn servers() -> impl Iterator<Item = &'static Policy> {
    SPECIAL.iter().filter(|policy| !policy.serves.is_empty())
}

/// Policy of a program that is not made of modules.
pub fn of(program: &str) -> &'static Policy {
    let mut all = SPECIAL.iter().chain([&CONSOLE, &MEMORY_MANAGER]);
    all.find(|policy| policy.program == program).unwrap_or(&USUAL)
}

static USUAL: Policy = usual();

/// Mistakes in the entries of the table that are no servers: the servers are looked at when they are to start.
pub fn mistakes() -> impl Iterator<Item = (&'static Policy, Mistake)> {
    let named = [&CONSOLE, &MEMORY_MANAGER].into_iter().chain(SPECIAL);
    let twice = SPECIAL.iter().filter_map(move |policy| {
        let first = named.clone().find(|other| other.program == policy.program)?;
        (!core::ptr::eq(first, policy)).then_some((policy, Mistake::Twice(first.place)))
    });
    let others =
        [&MEMORY_MANAGER, &USUAL].into_iter().chain(SPECIAL).filter(|policy| policy.serves.is_empty());
    others.chain(MODULES).filter_map(|policy| Some((policy, policy.mistake()?))).chain(twice)
}
