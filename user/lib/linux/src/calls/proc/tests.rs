//! Files of `/proc` and `/sys`, as `ps`, `top`, `nproc` and C libraries read them.

use crate::calls::rig::{FIRST, Rig};
use linux_raw_sys::general::*;
use std::string::String;
use std::vec::Vec;

fn text(rig: &mut Rig, path: &str) -> String {
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    let fd = rig.call(__NR_open, &[at, O_RDONLY.into(), 0]);
    assert!(fd >= 0, "{path}: {fd}");
    let mut all = Vec::new();
    loop {
        let bytes = rig.read(fd as u64, 4096).unwrap();
        if bytes.is_empty() {
            break;
        }
        all.extend(bytes);
    }
    rig.call(__NR_close, &[fd as u64]);
    String::from_utf8(all).unwrap()
}

#[test]
fn there_is_one_processor() {
    let mut rig = Rig::begun();
    for file in ["online", "possible", "present"] {
        assert_eq!(text(&mut rig, &["/sys/devices/system/cpu/", file].concat()), "0\n");
    }
    assert!(text(&mut rig, "/sys/kernel/mm/transparent_hugepage/enabled").contains("[never]"));
    assert_eq!(text(&mut rig, "/proc/sys/kernel/osrelease"), "6.1.0-tern\n");
    assert_eq!(text(&mut rig, "/proc/sys/vm/overcommit_memory"), "1\n");
    let name = rig.put(b"box");
    assert_eq!(text(&mut rig, "/proc/sys/kernel/hostname"), "tern\n");
    assert_eq!(rig.call(__NR_sethostname, &[name, 3]), 0);
    assert_eq!(text(&mut rig, "/proc/sys/kernel/hostname"), "box\n");
    let (first, second) =
        (text(&mut rig, "/proc/sys/kernel/random/uuid"), text(&mut rig, "/proc/sys/kernel/random/boot_id"));
    for id in [&first, &second] {
        let lens: Vec<usize> = id.trim_end().split('-').map(str::len).collect();
        assert_eq!(lens, [8, 4, 4, 4, 12], "{id}");
    }
    rig.pass(5);
    assert_ne!(text(&mut rig, "/proc/sys/kernel/random/uuid"), first);
    assert_eq!(text(&mut rig, "/proc/sys/kernel/random/boot_id"), second);
}

/// Entries of a directory, as `getdents64` writes them.
fn listing(rig: &mut Rig, path: &str) -> Vec<u8> {
    let at = rig.put(&[path.as_bytes(), b"\0"].concat());
    let fd = rig.call(__NR_open, &[at, (O_RDONLY | O_DIRECTORY).into(), 0]);
    assert!(fd >= 0, "{path}: {fd}");
    let to = rig.room(4096);
    let count = rig.call(__NR_getdents64, &[fd as u64, to, 4096]) as usize;
    rig.call(__NR_close, &[fd as u64]);
    rig.get(FIRST, to, count)
}

#[test]
fn directories_have_entries() {
    let mut rig = Rig::begun();
    let names = |rig: &mut Rig, path: &str| String::from_utf8_lossy(&listing(rig, path)).into_owned();
    for (path, name) in
        [("/", "sys"), ("/sys", "devices"), ("/sys/devices/system/cpu", "online"), ("/proc", "sys")]
    {
        assert!(names(&mut rig, path).contains(name), "{path}");
    }
    let at = rig.put(b"/sys/nothing\0/sys/kernel\0");
    assert_eq!(rig.call(__NR_open, &[at, 0, 0]), -2);
    assert!(rig.call(__NR_mkdir, &[at, 0o755]) < 0);
    assert!(rig.call(__NR_rmdir, &[at + 13]) < 0);
}

#[test]
fn a_process_says_what_it_is() {
    let mut rig = Rig::begun();
    rig.ignore(SIGUSR1);
    let status = text(&mut rig, "/proc/self/status");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split('\t').nth(1).unwrap_or_default().trim()
    };
    assert_eq!((field("Name:"), field("Pid:"), field("Threads:")), ("test", "1", "1"));
    assert_eq!((field("SigIgn:"), field("CapEff:")), ("0000000000000200", "000001ffffffffff"));
    assert!(field("VmRSS:").ends_with("kB") && field("Cpus_allowed_list:") == "0");
    assert!(status.ends_with('\n') && status.lines().all(|line| line.contains(":\t")), "{status}");
    assert_eq!(text(&mut rig, "/proc/self/cgroup"), "0::/\n");
    assert_eq!(text(&mut rig, "/proc/self/oom_score_adj"), "0\n");
    let at = rig.put(b"/proc/self/oom_score_adj\0/proc/self/maps\0");
    for (at, outcome) in [(at, 4), (at + 25, -22)] {
        let fd = rig.call(__NR_open, &[at, O_RDWR.into(), 0]) as u64;
        assert_eq!(rig.write(fd, b"-999"), outcome);
    }
    for line in text(&mut rig, "/proc/self/mountinfo").lines() {
        assert!(line.split(' ').count() == 10 && line.contains(" - "), "{line}");
    }
    assert_eq!(text(&mut rig, "/proc/self/limits").lines().count(), 17);
    assert_eq!(text(&mut rig, "/proc/self/stat").split(' ').count(), 52);
    for file in [
        "cmdline",
        "swaps",
        "partitions",
        "vmstat",
        "filesystems",
        "stat",
        "meminfo",
        "uptime",
        "loadavg",
        "version",
    ] {
        assert!(!text(&mut rig, &["/proc/", file].concat()).is_empty(), "{file}");
    }
    assert!(text(&mut rig, "/proc/diskstats").is_empty());
}

/// Runs of the machine are told apart by a number that is the same whenever it is read.
#[test]
fn a_run_of_the_machine_has_one_number() {
    let mut rig = Rig::begun();
    let first = text(&mut rig, "/proc/sys/kernel/random/boot_id");
    rig.system.machine.runs = true;
    for _ in 0..3 {
        assert_eq!(text(&mut rig, "/proc/sys/kernel/random/boot_id"), first);
    }
    let stat = text(&mut rig, "/proc/stat");
    assert!(stat.contains("\nbtime 1700000000\n"), "{stat}");
}

/// Threads have directories, with names of their own in them.
#[test]
fn a_process_has_threads() {
    let mut rig = Rig::begun();
    let entries = |rig: &mut Rig, path: &str| {
        let (bytes, mut names) = (listing(rig, path), Vec::new());
        let mut left = &bytes[..];
        while let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, low, high, ..] = left {
            let (entry, rest) = left.split_at(u16::from_le_bytes([*low, *high]).into());
            let name = entry[19..].split(|byte| *byte == 0).next().unwrap();
            names.push(String::from_utf8(name.to_vec()).unwrap());
            left = rest;
        }
        names
    };
    assert_eq!(entries(&mut rig, "/proc/self/task"), [".", "..", "1"]);
    let thread = rig.thread();
    let own = std::format!("/proc/1/task/{thread}");
    let name = std::format!("{thread}");
    assert_eq!(entries(&mut rig, "/proc/self/task"), [".", "..", "1", &name]);
    assert!(entries(&mut rig, &own).contains(&"stat".into()));
    let named = rig.put(b"worker with a long name\0");
    assert_eq!(rig.call_by(thread, __NR_prctl, &[15, named]), 0);
    assert_eq!(text(&mut rig, &[&own, "/comm"].concat()), "worker with a l\n");
    assert_eq!(text(&mut rig, "/proc/self/comm"), "test\n");
    assert!(
        text(&mut rig, &[&own, "/stat"].concat()).starts_with(&std::format!("{thread} (worker with a l) R "))
    );
    let status = text(&mut rig, &[&own, "/status"].concat());
    assert!(status.contains("Tgid:\t1\nPid:\t2\n") && status.contains("Threads:\t2\n"), "{status}");
    assert_eq!(text(&mut rig, &[&own, "/cgroup"].concat()), "0::/\n");
    let fd = rig.open("/tmp/file");
    let link = rig.put(std::format!("{own}/fd/{fd}\0").as_bytes());
    let to = rig.room(64);
    let len = rig.call(__NR_readlink, &[link, to, 64]);
    assert_eq!(rig.get(FIRST, to, len as usize), b"/tmp/file");
    let link = rig.put(b"/proc/thread-self\0");
    let len = rig.call_by(thread, __NR_readlink, &[link, to, 64]);
    assert_eq!(rig.get(FIRST, to, len as usize), own.trim_start_matches("/proc/").as_bytes());
    let status = text(&mut rig, "/proc/thread-self/status");
    assert!(status.contains("Pid:\t1\n"), "{status}");
    // One of the same process may give a thread a name, and others not.
    let comm = rig.put(&[own.as_bytes(), b"/comm\0"].concat());
    let fd = rig.call(__NR_open, &[comm, O_RDWR.into(), 0]) as u64;
    assert_eq!(rig.write(fd, b"painter\n"), 8);
    assert_eq!(text(&mut rig, &[&own, "/comm"].concat()), "painter\n");
    let child = rig.fork();
    let other = rig.put(std::format!("/proc/{child}/comm\0").as_bytes());
    let fd = rig.call(__NR_open, &[other, O_RDWR.into(), 0]) as u64;
    assert_eq!(rig.write(fd, b"painter\n"), -22);
    // One that has ended, and one of another process.
    for path in [std::format!("/proc/1/task/{child}"), std::format!("/proc/{child}/task/{thread}")] {
        let at = rig.put(&[path.as_bytes(), b"/stat\0"].concat());
        assert_eq!(rig.call(__NR_open, &[at, 0, 0]), -2, "{path}");
    }
    rig.try_by(thread, __NR_exit, &[0]);
    assert_eq!(entries(&mut rig, "/proc/self/task"), [".", "..", "1"]);
    assert_eq!(rig.call(__NR_open, &[comm, 0, 0]), -2);
}
