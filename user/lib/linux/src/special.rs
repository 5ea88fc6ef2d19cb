//! Names in `/dev` and `/proc`: which there are, and what each is. Their inodes have numbers of their own, far above those of a file system.

use crate::tree::{self, Content};
use alloc::format;
use alloc::vec::Vec;
use vfs::Inode;

/// Bit that inodes of special files have, and no others.
const MARK: u64 = 1 << 63;

/// A file that is no file of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// `/dev`.
    Devices,
    /// A device.
    Device(Device),
    /// `/dev/pts`.
    Terminals,
    /// A pseudo-terminal there.
    Terminal(u32),
    /// `/proc`.
    Processes,
    /// A file of `/proc` about all.
    About(About),
    /// `/proc/PID`.
    Process(u32),
    /// A file of `/proc/PID`.
    OfProcess(u32, OfProcess),
    /// `/proc/PID/fd`.
    Descriptors(u32),
    /// A descriptor there.
    Descriptor(u32, u32),
    /// An entry of `/sys`, `/proc/sys`, `/proc/sysvipc` or `/proc/PID/net`, by its number.
    Tree(usize),
    /// A symbolic link, such as `/proc/self` or `/dev/fd`.
    Link(Link),
    /// `/proc/PID/task`.
    Tasks(u32),
    /// The directory of a thread there: process and thread.
    Task(u32, u32),
    /// A file there that is about the thread.
    OfTask(u32, OfProcess),
    /// Code that processes call in place of system calls. It has no name.
    Vdso,
}

/// Devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Device {
    /// Nothing to read, and room for everything.
    Null,
    /// Zeros.
    Zero,
    /// Zeros, and no room.
    Full,
    /// Random bytes.
    Random,
    /// Another name for [`Device::Random`].
    Urandom,
    /// The terminal of the process.
    Tty,
    /// The terminal of the system.
    Console,
    /// Masters of pseudo-terminals: each open makes one.
    Ptmx,
}

/// Files about the whole system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum About {
    /// Memory.
    Meminfo,
    /// Processors.
    Cpuinfo,
    /// Seconds since the beginning.
    Uptime,
    /// Processes that run.
    Loadavg,
    /// Times.
    Stat,
    /// Name of the system.
    Version,
    /// File systems that there can be.
    Filesystems,
    /// Options with which the system began.
    Cmdline,
    /// Places for pages that are paged out.
    Swaps,
    /// Disks.
    Partitions,
    /// Requests that disks have done.
    Diskstats,
    /// Pages that were moved.
    Vmstat,
}

/// Files about a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum OfProcess {
    /// In one line.
    Stat,
    /// In words.
    Status,
    /// Pages of memory.
    Statm,
    /// Regions of memory.
    Maps,
    /// Arguments.
    Cmdline,
    /// Environment at the beginning.
    Environ,
    /// Name of the program.
    Comm,
    /// Limits.
    Limits,
    /// File systems that it sees.
    Mounts,
    /// The program: a symbolic link.
    Exe,
    /// The working directory: a symbolic link.
    Cwd,
    /// The root: a symbolic link.
    Root,
    /// File systems that it sees, in the longer form.
    Mountinfo,
    /// Its group of resources.
    Cgroup,
    /// How soon it ends for want of memory.
    OomScore,
    /// By how much that is changed.
    OomScoreAdj,
    /// Bytes that it has read and written.
    Io,
    /// The place at which it waits.
    Wchan,
    /// Facts that its program has found on its stack when it began.
    Auxv,
    /// Regions of memory, and how much of each is there.
    Smaps,
    /// How much of all memory is there.
    SmapsRollup,
}

impl OfProcess {
    /// Whether only those may open it who may look into the process.
    pub const fn is_private(self) -> bool {
        use OfProcess::{Auxv, Environ, Io, Maps, Smaps, SmapsRollup};
        matches!(self, Auxv | Environ | Io | Maps | Smaps | SmapsRollup)
    }
}

/// Symbolic links whose target depends on who looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Link {
    /// `/proc/self`.
    Own,
    /// `/proc/thread-self`.
    Thread,
    /// `/proc/mounts`.
    Mounts,
    /// `/dev/fd`.
    Descriptors,
    /// `/dev/shm`, where the C library makes files that processes share.
    Shared,
    /// `/proc/net`.
    Net,
}

/// Names in `/dev`.
const DEVICES: [(&str, Device); 8] = [
    ("null", Device::Null),
    ("zero", Device::Zero),
    ("full", Device::Full),
    ("random", Device::Random),
    ("urandom", Device::Urandom),
    ("tty", Device::Tty),
    ("console", Device::Console),
    ("ptmx", Device::Ptmx),
];

/// Names in `/dev` of descriptors.
const STREAMS: [&str; 3] = ["stdin", "stdout", "stderr"];

/// Names in `/proc` about all.
const ABOUT: [(&str, About); 12] = [
    ("meminfo", About::Meminfo),
    ("cpuinfo", About::Cpuinfo),
    ("uptime", About::Uptime),
    ("loadavg", About::Loadavg),
    ("stat", About::Stat),
    ("version", About::Version),
    ("filesystems", About::Filesystems),
    ("cmdline", About::Cmdline),
    ("swaps", About::Swaps),
    ("partitions", About::Partitions),
    ("diskstats", About::Diskstats),
    ("vmstat", About::Vmstat),
];

/// Names in `/proc/PID`.
const OF_PROCESS: [(&str, OfProcess); 21] = [
    ("stat", OfProcess::Stat),
    ("status", OfProcess::Status),
    ("statm", OfProcess::Statm),
    ("maps", OfProcess::Maps),
    ("cmdline", OfProcess::Cmdline),
    ("environ", OfProcess::Environ),
    ("comm", OfProcess::Comm),
    ("limits", OfProcess::Limits),
    ("mounts", OfProcess::Mounts),
    ("exe", OfProcess::Exe),
    ("cwd", OfProcess::Cwd),
    ("root", OfProcess::Root),
    ("mountinfo", OfProcess::Mountinfo),
    ("cgroup", OfProcess::Cgroup),
    ("oom_score", OfProcess::OomScore),
    ("oom_score_adj", OfProcess::OomScoreAdj),
    ("io", OfProcess::Io),
    ("wchan", OfProcess::Wchan),
    ("auxv", OfProcess::Auxv),
    ("smaps", OfProcess::Smaps),
    ("smaps_rollup", OfProcess::SmapsRollup),
];

impl Special {
    /// Number of its inode.
    pub fn inode(self) -> Inode {
        let (class, process, item) = match self {
            Special::Devices => (1, 0, 0),
            Special::Device(device) => (2, 0, device as u32),
            Special::Terminals => (3, 0, 0),
            Special::Processes => (4, 0, 0),
            Special::About(about) => (5, 0, about as u32),
            Special::Process(process) => (6, process, 0),
            Special::OfProcess(process, of) => (7, process, of as u32),
            Special::Descriptors(process) => (8, process, 0),
            Special::Descriptor(process, number) => (9, process, number),
            Special::Link(link) => (10, 0, link as u32),
            Special::Terminal(number) => (11, 0, number),
            Special::Tree(number) => (12, 0, number as u32),
            Special::Vdso => (13, 0, 0),
            Special::Tasks(process) => (14, process, 0),
            Special::Task(process, thread) => (15, process, thread),
            Special::OfTask(thread, of) => (16, thread, of as u32),
        };
        Inode(MARK | class << 56 | u64::from(process) << 24 | u64::from(item))
    }

    /// The special file of an inode, if it is one.
    pub fn of(Inode(number): Inode) -> Option<Special> {
        let (class, process, item) =
            (number >> 56 & 0x7f, (number >> 24) as u32, (number & 0xff_ffff) as u32);
        let found = match class {
            _ if number & MARK == 0 => return None,
            1 => Special::Devices,
            2 => Special::Device(DEVICES.get(item as usize)?.1),
            3 => Special::Terminals,
            4 => Special::Processes,
            5 => Special::About(ABOUT.get(item as usize)?.1),
            6 => Special::Process(process),
            7 => Special::OfProcess(process, OF_PROCESS.get(item as usize)?.1),
            8 => Special::Descriptors(process),
            9 => Special::Descriptor(process, item),
            10 => Special::Link(
                [Link::Own, Link::Thread, Link::Mounts, Link::Descriptors, Link::Shared, Link::Net]
                    .get(item as usize)
                    .copied()?,
            ),
            11 => Special::Terminal(item),
            12 => tree::content(item as usize).map(|_| Special::Tree(item as usize))?,
            13 => Special::Vdso,
            14 => Special::Tasks(process),
            15 => Special::Task(process, item),
            16 => Special::OfTask(process, OF_PROCESS.get(item as usize)?.1),
            _ => return None,
        };
        Some(found)
    }

    /// The special file of a name in it. `own` is the process that looks; `is_there` knows the numbers in it, of processes or
    /// pseudo-terminals.
    pub fn lookup(self, name: &[u8], own: u32, is_there: impl Fn(u32) -> bool) -> Option<Special> {
        let name = core::str::from_utf8(name).ok()?;
        let number =
            || name.parse::<u32>().ok().filter(|number| format!("{number}") == name && *number < 1 << 24);
        match self {
            Special::Devices => match name {
                "pts" => Some(Special::Terminals),
                "fd" => Some(Special::Link(Link::Descriptors)),
                "shm" => Some(Special::Link(Link::Shared)),
                _ => STREAMS
                    .iter()
                    .position(|stream| *stream == name)
                    .map(|number| Special::Descriptor(own, number as u32))
                    .or_else(|| of_name(&DEVICES, name).map(Special::Device)),
            },
            Special::Terminals if name == "0" => Some(Special::Device(Device::Console)),
            Special::Terminals => number().filter(|number| is_there(*number)).map(Special::Terminal),
            Special::Processes => match name {
                "self" => Some(Special::Link(Link::Own)),
                "thread-self" => Some(Special::Link(Link::Thread)),
                "mounts" => Some(Special::Link(Link::Mounts)),
                "net" => Some(Special::Link(Link::Net)),
                "sys" => Some(Special::Tree(tree::CHOICES)),
                "sysvipc" => Some(Special::Tree(tree::IPC)),
                _ => number()
                    .filter(|number| is_there(*number))
                    .map(Special::Process)
                    .or_else(|| of_name(&ABOUT, name).map(Special::About)),
            },
            Special::Process(process) => match name {
                "fd" => Some(Special::Descriptors(process)),
                "task" => Some(Special::Tasks(process)),
                "net" => Some(Special::Tree(tree::NET)),
                _ => of_name(&OF_PROCESS, name).map(|of| Special::OfProcess(process, of)),
            },
            Special::Tasks(process) => {
                number().filter(|number| is_there(*number)).map(|thread| Special::Task(process, thread))
            }
            Special::Task(process, _) if name == "fd" => Some(Special::Descriptors(process)),
            Special::Task(..) if name == "net" => Some(Special::Tree(tree::NET)),
            Special::Task(process, thread) => of_name(&OF_PROCESS, name).map(|of| match of {
                OfProcess::Stat | OfProcess::Status | OfProcess::Comm => Special::OfTask(thread, of),
                // Threads share all else.
                of => Special::OfProcess(process, of),
            }),
            Special::Tree(directory) => tree::find(directory, name).map(Special::Tree),
            Special::Descriptors(process) => number().map(|number| Special::Descriptor(process, number)),
            _ => None,
        }
    }

    /// Names in it that do not depend on processes.
    pub fn names(self) -> Vec<&'static str> {
        match self {
            Special::Devices => {
                DEVICES.iter().map(|(name, _)| *name).chain(STREAMS).chain(["pts", "fd", "shm"]).collect()
            }
            Special::Terminals => Vec::from(["0"]),
            Special::Processes => {
                let others = ["self", "thread-self", "mounts", "net", "sys", "sysvipc"];
                ABOUT.iter().map(|(name, _)| *name).chain(others).collect()
            }
            Special::Process(_) => {
                OF_PROCESS.iter().map(|(name, _)| *name).chain(["fd", "task", "net"]).collect()
            }
            Special::Task(..) => OF_PROCESS.iter().map(|(name, _)| *name).chain(["fd", "net"]).collect(),
            Special::Tree(directory) => tree::names(directory).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(self) -> bool {
        use Special::{Descriptors, Devices, Process, Processes, Task, Tasks, Terminals, Tree};
        match self {
            Tree(number) => tree::content(number) == Some(Content::Directory),
            Devices | Terminals | Processes | Process(_) | Descriptors(_) | Tasks(_) | Task(..) => true,
            _ => false,
        }
    }

    /// Whether it is a symbolic link.
    pub fn is_link(self) -> bool {
        use OfProcess::{Cwd, Exe, Root};
        matches!(self, Special::Link(_) | Special::Descriptor(..) | Special::OfProcess(_, Exe | Cwd | Root))
    }

    /// Number of its device, as `st_rdev` says it.
    pub fn device_number(self) -> u64 {
        let (major, minor) = match self {
            Special::Device(Device::Null) => (1, 3),
            Special::Device(Device::Zero) => (1, 5),
            Special::Device(Device::Full) => (1, 7),
            Special::Device(Device::Random) => (1, 8),
            Special::Device(Device::Urandom) => (1, 9),
            Special::Device(Device::Tty) => (5, 0),
            Special::Device(Device::Console) => (136, 0),
            Special::Device(Device::Ptmx) => (5, 2),
            Special::Terminal(number) => (136, number.into()),
            _ => return 0,
        };
        major << 8 | minor
    }
}

fn of_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
}
