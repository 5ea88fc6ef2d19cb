//! Rights of programs, as the [system description](description) of the boot archive grants them: priorities, memory, devices, authority.
//!
//! The description is checked when the archive is made, so nothing is checked here but that there is one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use description::{COLOURS_MAX, CONSOLE, Device, FILE, MEMORY_MANAGER, Program, System};
use rt::frames::Colours;
use rt::sys::Fpage;
use rt::sys::abi::{Space, archive};

pub use description::MODULES;

const _: () = assert!(
    COLOURS_MAX as u64 == Colours::MAX,
    "the memory manager has all colours that a description may ask for"
);

/// Rights and limits of a program.
#[derive(Debug)]
pub struct Policy {
    /// Its entry in the description.
    pub says: &'static Program,
    /// Ports and interrupts that it may have.
    pub resources: Vec<Fpage>,
}

impl core::ops::Deref for Policy {
    type Target = Program;

    fn deref(&self) -> &Program {
        self.says
    }
}

impl Policy {
    fn new(says: &'static Program) -> Policy {
        let resource = |device: &Device| match *device {
            Device::Ports { first, log2 } => Fpage::ports(first, log2.into()),
            Device::Interrupt(line) => Fpage::interrupt(line),
        };
        Policy { says, resources: says.devices.iter().map(resource).collect() }
    }

    /// Arguments with which it starts at boot: the names that it serves, unless the description has others.
    pub fn arguments_at_boot(&self) -> String {
        if self.arguments.is_empty() { self.serves.join(" ") } else { self.arguments.clone() }
    }

    /// Its file in the boot archive, if `name` is its name. A program of which nothing is said has a file of its name.
    pub fn file_of<'a>(&'a self, name: &'a str) -> &'a str {
        if self.file.is_empty() { name } else { &self.file }
    }

    /// Whether it serves this name.
    pub fn serves_name(&self, name: &str) -> bool {
        self.serves.iter().any(|served| served == name)
    }

    /// Whether it has something of a part of a device.
    fn has_of(&self, wanted: Fpage) -> bool {
        let end = |part: Fpage| (part.base() >> 12) + (1 << part.log2());
        self.resources.iter().any(|part| {
            part.space() == wanted.space()
                && part.base() >> 12 < end(wanted)
                && wanted.base() >> 12 < end(*part)
        })
    }

    /// Whether this is the memory manager.
    pub fn is_manager(&self) -> bool {
        self.name == MEMORY_MANAGER
    }

    /// Whether both serve a name, so that one of them runs.
    pub fn is_alternative_to(&self, other: &Policy) -> bool {
        self.serves.iter().any(|name| other.serves_name(name))
    }

    /// Whether the system restarts the program.
    pub fn is_vital(&self) -> bool {
        !self.serves.is_empty() || self.is_manager()
    }
}

/// The policies of all programs. They live as long as `root`.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// The file that a person wrote.
    pub source: &'static str,
    named: &'static [Policy],
    usual: &'static Policy,
}

impl Policies {
    /// Reads those of a boot archive. `None` if it has no description, or one of another version.
    pub fn read(archive: &'static [u8]) -> Option<Policies> {
        let system: &'static System =
            Box::leak(Box::new(System::unpack(archive::find(archive, FILE)?.data)?));
        let named: Vec<Policy> = system.programs.iter().map(Policy::new).collect();
        Some(Policies {
            source: &system.source,
            named: named.leak(),
            usual: Box::leak(Box::new(Policy::new(&system.usual))),
        })
    }

    /// Policy of a program.
    pub fn of(&self, program: &str) -> &'static Policy {
        self.named.iter().find(|policy| policy.name == program).unwrap_or(self.usual)
    }

    /// Whether the bus server may have a part of a device: all but what the description gives to others. Whether memory is a device's,
    /// σ0 knows.
    pub fn is_for_bus(&self, wanted: Fpage) -> bool {
        wanted.space() == Space::Memory
            || !self.named.iter().any(|policy| !policy.is_bus && policy.has_of(wanted))
    }

    /// The program that starts in the place of one for which this machine has nothing.
    pub fn otherwise(&self, policy: &Policy) -> Option<&'static Policy> {
        let other = policy.otherwise.as_deref()?;
        self.named.iter().find(|policy| policy.name == other)
    }

    /// Whether a program starts at boot: all that serve names, but those that are there in the place of others.
    pub fn starts_at_boot(&self, policy: &Policy) -> bool {
        let is_other = |first: &Policy| first.otherwise.as_deref() == Some(&policy.name);
        !policy.serves.is_empty() && !self.named.iter().any(is_other)
    }

    /// Policy of the memory manager.
    pub fn manager(&self) -> &'static Policy {
        self.of(MEMORY_MANAGER)
    }

    /// The servers, in the order in which `root` starts them: the console, then all other programs that serve names. Not all start at boot.
    pub fn servers(&self) -> impl Iterator<Item = &'static Policy> {
        let is_first = |policy: &&Policy| policy.name == CONSOLE;
        let servers = self.named.iter().filter(|policy| !policy.serves.is_empty());
        servers.clone().filter(is_first).chain(servers.filter(move |policy| !is_first(policy)))
    }
}

/// Least kernel memory with which a program can run, in frames.
pub const KERNEL_FRAMES_MIN: u64 = 32;

/// Pages for whose mappings one frame of kernel memory pays: of nodes there are 63 in a frame, and each 2 MiB of memory have a page table and its shadow.
pub const MAPPED_PER_FRAME: u64 = 50;

/// Frames that a server gets at a time when it has used up its own. One page needs fewer: a table of each level, a shadow, and a slab of nodes.
pub const KERNEL_FRAMES_STEP: u64 = 16;

/// Programs at the same time.
pub const PROGRAMS_MAX: usize = 64;

/// How many names, unanswered requests and ended children are kept for one program (of each).
pub const KEPT_MAX: usize = 64;

/// Long texts that are kept at once, as arguments of programs that run and of those that are to be started: each has memory of its own, of
/// [`rt::api::process::ARGUMENTS_LEN_MAX`] bytes.
pub const LONG_TEXTS_MAX: usize = 32;

/// Those of one program, and of programs that it has started.
pub const LONG_TEXTS_OF_ONE: usize = 8;

/// Contiguous memory that a bus server has, and that is kept from those before it since devices may still write there: so often what one may have, together.
pub const BUS_BLOCKS: u64 = 2;

/// A server that ends more often than its description allows within this time stays down.
pub const RESTARTS_NS: u64 = 10_000_000_000;
