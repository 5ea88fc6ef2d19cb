//! The system description: what runs on a machine, and what it may do.
//!
//! A person writes it as a TOML file in `systems`. When an image is built, that is checked, and packed into the boot archive in the form that is
//! defined here. `root` unpacks it and starts what it says. So nothing on the machine reads what a person wrote, and a mistake is
//! told before anything boots.

#![no_std]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Its name in the boot archive.
pub const FILE: &str = "system";

/// First bytes of the packed form. The last of them counts the forms that there have been.
const MAGIC: &[u8] = b"tern system 5";

/// The memory manager's program. It starts first, and gets its memory from σ0.
pub const MEMORY_MANAGER: &str = "mm";

/// The program of the console, the server that starts before all others.
pub const CONSOLE: &str = "console";

/// The program of all tasks that are made of modules.
pub const MODULES: &str = "modules";

/// Parts of which the kernel memory of `root` consists: see [`Program::kernel_share`].
pub const KERNEL_SHARES: u64 = 256;

/// Most colours of a program's pages: see [`Program::colours`].
pub const COLOURS_MAX: u16 = 256;

/// The highest priority of a program: above are the keeper of `root`, `root` and σ0.
pub const PRIORITY_MAX: u8 = 60;

/// Classes of devices that a description has words for, with the numbers that PCI gives them. Sources of random numbers are among those that have no class,
/// and serial lines among those for communication.
pub const CLASSES: [(&str, u8); 6] =
    [("block", 1), ("network", 2), ("display", 3), ("sound", 4), ("communication", 7), ("unclassified", 0)];

/// Programs that run, and what each may do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct System {
    /// The file that a person wrote, as a path in the checkout.
    pub source: String,
    /// Programs of which more is said than of all others. Those that serve names start at boot, in this order.
    pub programs: Vec<Program>,
    /// Rights of all programs that are not among them. It has no name.
    pub usual: Program,
}

/// A program, or a task that is made of modules, with its rights and limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Line of the source where it begins, from 1 on.
    pub line: u32,
    /// Its name.
    pub name: String,
    /// Its file in the boot archive.
    pub file: String,
    /// Arguments with which it is started at boot.
    pub arguments: String,
    /// The names that it serves. Nobody else may register them.
    pub serves: Vec<String>,
    /// The programs that may ask for what it serves; `None`: all.
    pub clients: Option<Vec<String>>,
    /// The program that starts in its place if this machine has nothing for it. That one serves the same names, and comes later in the description.
    pub otherwise: Option<String>,
    /// How often it may end within ten seconds and be started again, if it serves names.
    pub restarts: u8,
    /// The names that it may ask for; `None`: all.
    pub uses: Option<Vec<String>>,
    /// Names that it asks for, each with the one that it finds in its place: that of a monitor, or of another console. Programs that it starts find the same, unless
    /// they have such names of their own.
    pub instead: Vec<(String, String)>,
    /// Priority of its first thread.
    pub priority: u8,
    /// Highest priority of its threads.
    pub priority_max: u8,
    /// Kernel memory, in parts of [`KERNEL_SHARES`] of what `root` starts with: tables, threads, mappings.
    pub kernel_share: u64,
    /// Memory, in pages.
    pub pages_max: u64,
    /// Colours of the cache for which its pages get their frames, a power of two; 0: they get them as they come.
    pub colours: u16,
    /// Ports and interrupts that it may have.
    pub devices: Vec<Device>,
    /// Classes of devices that it may drive, of those that the bus server hands out: bits, by their numbers.
    pub classes: u32,
    /// Whether it is the bus server, which may have all devices that no other program has.
    pub is_bus: bool,
    /// Whether it may read the boot archive.
    pub reads_archive: bool,
    /// Contiguous memory that it may have besides, in bytes. It learns where that lies.
    pub contiguous_max: u64,
    /// Whether it may start programs, and end programs that it did not start.
    pub is_operator: bool,
    /// Whether it may mount and unmount file systems.
    pub may_mount: bool,
}

/// Part of a device that is handed to its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Device {
    /// `1 << log2` I/O ports, of which the first is a multiple of their number.
    Ports {
        /// The first one.
        first: u16,
        /// Logarithm of their number.
        log2: u8,
    },
    /// An interrupt line.
    Interrupt(u8),
}

impl Device {
    /// Whether both have something in common.
    pub fn overlaps(self, other: Device) -> bool {
        match (self, other) {
            (Device::Ports { first, log2 }, Device::Ports { first: other, log2: other_log2 }) => {
                let shift = u32::from(log2.max(other_log2));
                u32::from(first) >> shift == u32::from(other) >> shift
            }
            (Device::Interrupt(line), Device::Interrupt(other)) => line == other,
            _ => false,
        }
    }
}

impl System {
    /// The packed form.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = MAGIC.to_vec();
        packed.extend(
            postcard::to_allocvec(self).expect("memory is there, and nothing in it is without a form"),
        );
        packed
    }

    /// Unpacks a description. `None` if these bytes are none.
    pub fn unpack(bytes: &[u8]) -> Option<System> {
        let (system, rest) = postcard::take_from_bytes(bytes.strip_prefix(MAGIC)?).ok()?;
        rest.is_empty().then_some(system)
    }

    /// Rights of a program.
    pub fn program(&self, name: &str) -> &Program {
        self.programs.iter().find(|program| program.name == name).unwrap_or(&self.usual)
    }
}

impl Program {
    /// Whether a program may ask for what it serves. One of which nothing is said has no name here.
    pub fn has_client(&self, program: &str) -> bool {
        self.clients.as_ref().is_none_or(|clients| clients.iter().any(|client| client == program))
    }

    /// The name that it finds when it asks for this one; `None` if it may not ask.
    pub fn finds<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.finds_with(&self.instead, name)
    }

    /// Does that with names that stand in the place of others by somebody else's word.
    pub fn finds_with<'a>(&'a self, instead: &'a [(String, String)], name: &'a str) -> Option<&'a str> {
        let may_ask = self.uses.as_ref().is_none_or(|uses| uses.iter().any(|used| used == name));
        let other = instead.iter().find(|(asked, _)| asked == name);
        may_ask.then_some(other.map_or(name, |(_, found)| found))
    }

    /// Whether there is a name for which it finds this one, with names that stand in the place of others by somebody else's word.
    pub fn reaches_with(&self, instead: &[(String, String)], served: &str) -> bool {
        let asked = instead.iter().map(|(asked, _)| asked.as_str());
        asked.chain([served]).any(|name| self.finds_with(instead, name) == Some(served))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn system() -> System {
        let usual = Program {
            line: 3,
            name: String::new(),
            file: String::new(),
            arguments: String::new(),
            serves: vec![],
            clients: None,
            otherwise: None,
            restarts: 5,
            uses: None,
            instead: vec![],
            priority: 32,
            priority_max: 36,
            kernel_share: 16,
            pages_max: 16384,
            colours: 0,
            devices: vec![],
            classes: 0,
            is_bus: false,
            reads_archive: false,
            contiguous_max: 0,
            is_operator: false,
            may_mount: false,
        };
        let console = Program {
            name: CONSOLE.into(),
            file: CONSOLE.into(),
            serves: vec![CONSOLE.into()],
            devices: vec![Device::Ports { first: 0x3f8, log2: 3 }, Device::Interrupt(4)],
            ..usual.clone()
        };
        System { source: "systems/default.toml".into(), programs: vec![console], usual }
    }

    #[test]
    fn is_unpacked_as_it_was_packed() {
        let packed = system().pack();
        assert_eq!(System::unpack(&packed), Some(system()));
        assert_eq!(system().program("console").devices.len(), 2);
        assert_eq!(system().program("hello"), &system().usual);
    }

    #[test]
    fn names_that_are_found() {
        let mut program = system().usual;
        assert_eq!(program.finds("clock"), Some("clock"));
        program.instead = vec![("clock".into(), "slow-clock".into())];
        assert_eq!(program.finds("clock"), Some("slow-clock"));
        program.uses = Some(vec!["clock".into()]);
        assert_eq!(program.finds("clock"), Some("slow-clock"));
        assert_eq!(program.finds("slow-clock"), None);
        let instead = vec![("clock".into(), "late-clock".into()), ("console".into(), "other".into())];
        assert_eq!(program.finds_with(&instead, "clock"), Some("late-clock"));
        assert_eq!(program.finds_with(&[], "clock"), Some("clock"));
        assert_eq!(program.finds_with(&instead, "console"), None, "it may not ask for that");
        program.uses = Some(vec![]);
        assert_eq!(program.finds("clock"), None);
    }

    #[test]
    fn names_that_are_reached() {
        let mut program = system().usual;
        let late = vec![("clock".into(), "late-clock".into())];
        assert!(program.reaches_with(&[], "clock") && program.reaches_with(&[], "late-clock"));
        // Another one stands before it.
        assert!(!program.reaches_with(&late, "clock") && program.reaches_with(&late, "late-clock"));
        program.uses = Some(vec!["clock".into()]);
        assert!(program.reaches_with(&[], "clock") && !program.reaches_with(&[], "late-clock"));
        assert!(!program.reaches_with(&late, "clock") && program.reaches_with(&late, "late-clock"));
        program.uses = Some(vec![]);
        assert!(!program.reaches_with(&late, "clock") && !program.reaches_with(&late, "late-clock"));
    }

    #[test]
    fn clients_that_are_named() {
        let mut server = system().programs[0].clone();
        assert!(server.has_client("shell") && server.has_client(""));
        server.clients = Some(vec!["shell".into()]);
        assert!(server.has_client("shell") && !server.has_client("hello") && !server.has_client(""));
    }

    #[test]
    fn other_bytes_are_none() {
        let packed = system().pack();
        for len in 0..packed.len() {
            assert_eq!(System::unpack(&packed[..len]), None, "{len} bytes of {}", packed.len());
        }
        assert_eq!(System::unpack(&[&packed[..], &[0]].concat()), None);
        // Whatever a byte is changed to, nothing but an answer comes of it.
        for at in 0..packed.len() {
            for byte in 0..=255 {
                let mut wrong = packed.clone();
                wrong[at] = byte;
                let _ = System::unpack(&wrong);
            }
        }
    }

    #[test]
    fn devices_that_overlap() {
        let ports = |first, log2| Device::Ports { first, log2 };
        for (one, other, wanted) in [
            (ports(0x70, 1), ports(0x70, 1), true),
            (ports(0x70, 1), ports(0x71, 0), true),
            (ports(0x70, 1), ports(0x72, 1), false),
            (ports(0x0, 7), ports(0x70, 1), true),
            (Device::Interrupt(4), Device::Interrupt(4), true),
            (Device::Interrupt(4), ports(4, 0), false),
        ] {
            assert_eq!(one.overlaps(other), wanted, "{one:?} {other:?}");
            assert_eq!(other.overlaps(one), wanted, "{other:?} {one:?}");
        }
    }
}
