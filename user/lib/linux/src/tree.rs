//! Files of `/sys`, `/proc/sys`, `/proc/sysvipc` and `/proc/net` that programs read: what libraries ask for, and nothing that can be changed.

use crate::inet::{Family, Protocol};
use Content::{Directory, Text, Told};

/// Contents of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Entries that name it.
    Directory,
    /// A text that never changes.
    Text(&'static str),
    /// A text that somebody tells.
    Told(Teller),
}

/// Texts that are not always the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Teller {
    /// Name of the sandbox.
    HostName,
    /// A number that each reader gets anew.
    Uuid,
    /// A number that stays until the machine ends.
    BootId,
    /// Pages that segments of shared memory may have together.
    SegmentPages,
    /// Segments of shared memory.
    Segments,
    /// Sets of semaphores.
    Semaphores,
    /// Queues of messages.
    Queues,
    /// Interfaces of the network.
    Interfaces,
    /// Ways to other networks of IPv4.
    Routes,
    /// Sockets of a protocol and a family.
    Inet(Protocol, Family),
    /// Sockets of `AF_UNIX`.
    Unix,
}

/// An entry: number of its directory, name, contents.
#[derive(Clone, Copy, Debug)]
struct Entry(usize, &'static str, Content);

/// Number of `/sys`.
pub const SYSTEM: usize = 0;
/// Number of `/proc/sys`.
pub const CHOICES: usize = 1;
/// Number of `/proc/sysvipc`.
pub const IPC: usize = 58;
/// Number of `/proc/PID/net`, which is the same for all processes.
pub const NET: usize = 75;

/// All entries, by number. A directory stands in front of what is in it.
static ALL: [Entry; 85] = [
    Entry(SYSTEM, "", Directory),
    Entry(CHOICES, "", Directory),
    // /sys
    Entry(SYSTEM, "devices", Directory),
    Entry(2, "system", Directory),
    Entry(3, "cpu", Directory),
    Entry(4, "online", Text("0\n")),
    Entry(4, "possible", Text("0\n")),
    Entry(4, "present", Text("0\n")),
    Entry(4, "kernel_max", Text("0\n")),
    Entry(4, "cpu0", Directory),
    Entry(SYSTEM, "kernel", Directory),
    Entry(10, "mm", Directory),
    Entry(11, "transparent_hugepage", Directory),
    Entry(12, "enabled", Text("always madvise [never]\n")),
    Entry(12, "defrag", Text("always defer defer+madvise madvise [never]\n")),
    Entry(SYSTEM, "fs", Directory),
    Entry(15, "cgroup", Directory),
    Entry(SYSTEM, "class", Directory),
    Entry(17, "net", Directory),
    Entry(17, "tty", Directory),
    Entry(SYSTEM, "block", Directory),
    Entry(3, "node", Directory),
    Entry(21, "online", Text("0\n")),
    Entry(21, "possible", Text("0\n")),
    // /proc/sys
    Entry(CHOICES, "kernel", Directory),
    Entry(24, "ostype", Text("Linux\n")),
    Entry(24, "osrelease", Text("6.1.0-tern\n")),
    Entry(24, "version", Text("#1 Tern\n")),
    Entry(24, "hostname", Told(Teller::HostName)),
    Entry(24, "domainname", Text("(none)\n")),
    Entry(24, "pid_max", Text("32768\n")),
    Entry(24, "threads-max", Text("32768\n")),
    Entry(24, "cap_last_cap", Text("40\n")),
    Entry(24, "ngroups_max", Text("64\n")),
    Entry(24, "core_pattern", Text("core\n")),
    Entry(24, "overflowuid", Text("65534\n")),
    Entry(24, "overflowgid", Text("65534\n")),
    Entry(24, "randomize_va_space", Text("0\n")),
    Entry(24, "sched_rt_runtime_us", Text("950000\n")),
    Entry(24, "random", Directory),
    Entry(39, "uuid", Told(Teller::Uuid)),
    Entry(39, "boot_id", Told(Teller::BootId)),
    Entry(39, "entropy_avail", Text("256\n")),
    Entry(CHOICES, "vm", Directory),
    Entry(43, "overcommit_memory", Text("1\n")),
    Entry(43, "max_map_count", Text("65530\n")),
    Entry(43, "mmap_min_addr", Text("65536\n")),
    Entry(43, "swappiness", Text("0\n")),
    Entry(CHOICES, "fs", Directory),
    Entry(48, "file-max", Text("65536\n")),
    Entry(48, "nr_open", Text("4096\n")),
    Entry(48, "pipe-max-size", Text("1048576\n")),
    Entry(48, "inotify", Directory),
    Entry(52, "max_user_watches", Text("4096\n")),
    Entry(52, "max_user_instances", Text("128\n")),
    Entry(52, "max_queued_events", Text("16384\n")),
    Entry(CHOICES, "net", Directory),
    Entry(56, "unix", Directory),
    // /proc/sysvipc
    Entry(IPC, "", Directory),
    Entry(IPC, "shm", Told(Teller::Segments)),
    Entry(IPC, "sem", Told(Teller::Semaphores)),
    Entry(IPC, "msg", Told(Teller::Queues)),
    // /proc/sys/kernel: limits of what is in there
    Entry(24, "shmmax", Text("18446744073692774399\n")),
    Entry(24, "shmall", Told(Teller::SegmentPages)),
    Entry(24, "shmmni", Text("1024\n")),
    Entry(24, "sem", Text("32000\t256000\t500\t1024\n")),
    Entry(24, "msgmax", Text("8192\n")),
    Entry(24, "msgmnb", Text("16384\n")),
    Entry(24, "msgmni", Text("1024\n")),
    Entry(48, "mqueue", Directory),
    Entry(69, "queues_max", Text("256\n")),
    Entry(69, "msg_max", Text("10\n")),
    Entry(69, "msgsize_max", Text("8192\n")),
    Entry(69, "msg_default", Text("10\n")),
    Entry(69, "msgsize_default", Text("8192\n")),
    // /proc/net
    Entry(NET, "", Directory),
    Entry(NET, "dev", Told(Teller::Interfaces)),
    Entry(NET, "route", Told(Teller::Routes)),
    Entry(NET, "tcp", Told(Teller::Inet(Protocol::Tcp, Family::Four))),
    Entry(NET, "tcp6", Told(Teller::Inet(Protocol::Tcp, Family::Six))),
    Entry(NET, "udp", Told(Teller::Inet(Protocol::Udp, Family::Four))),
    Entry(NET, "udp6", Told(Teller::Inet(Protocol::Udp, Family::Six))),
    Entry(NET, "unix", Told(Teller::Unix)),
    Entry(NET, "udplite", Told(Teller::Inet(Protocol::Lite, Family::Four))),
    Entry(NET, "udplite6", Told(Teller::Inet(Protocol::Lite, Family::Six))),
];

/// Entries of a directory with their numbers.
fn entries(directory: usize) -> impl Iterator<Item = (usize, &'static str)> {
    let inner = ALL.iter().enumerate().filter(move |(_, entry)| entry.0 == directory && !entry.1.is_empty());
    inner.map(|(number, entry)| (number, entry.1))
}

/// Number of an entry of a directory.
pub fn find(directory: usize, name: &str) -> Option<usize> {
    entries(directory).find(|(_, known)| *known == name).map(|(number, _)| number)
}

/// Names in a directory.
pub fn names(directory: usize) -> impl Iterator<Item = &'static str> {
    entries(directory).map(|(_, name)| name)
}

/// Contents of an entry, if there is one of that number.
pub fn content(number: usize) -> Option<Content> {
    ALL.get(number).map(|entry| entry.2)
}

#[cfg(test)]
mod tests {
    use super::{ALL, CHOICES, Content, IPC, NET, SYSTEM, content, find, names};

    #[test]
    fn each_entry_has_a_directory_and_a_name() {
        for (number, entry) in ALL.iter().enumerate() {
            if [SYSTEM, CHOICES, IPC, NET].contains(&number) {
                assert_eq!((entry.0, entry.1), (number, ""));
                continue;
            }
            assert!(entry.0 < number && content(entry.0) == Some(Content::Directory), "{entry:?}");
            assert_eq!(find(entry.0, entry.1), Some(number));
        }
        let path = ["kernel", "mm", "transparent_hugepage", "enabled"];
        let found = path.iter().try_fold(SYSTEM, |directory, name| find(directory, name));
        assert!(found.and_then(content).is_some_and(|found| matches!(found, Content::Text(_))));
        assert_eq!(names(IPC).collect::<std::vec::Vec<_>>(), ["shm", "sem", "msg"]);
        assert_eq!(names(CHOICES).collect::<std::vec::Vec<_>>(), ["kernel", "vm", "fs", "net"]);
    }
}
