//! Bytes that go to and fro: pipes, the terminal, memory that ends in the middle; and paths and signals that ask for much.

use super::world::{DATA, DATA_BYTES, Did, World};
use crate::errno::{EAGAIN, EFAULT, EINVAL, ENAMETOOLONG, ENFILE, EPERM};
use crate::frames::PAGE;
use crate::open::OPEN_BYTES;
use crate::pipe;
use linux_raw_sys::general as nr;
use std::vec;
use std::vec::Vec;

fn world() -> World {
    World::new(2048, 16)
}

/// End of the data of a process, behind which is nothing.
const END: u64 = DATA + DATA_BYTES;

/// Makes a pipe: the end that reads, and the one that writes.
fn pipe(world: &mut World, tid: u32, flags: u32) -> (u64, u64) {
    world.good(tid, nr::__NR_pipe2, &[DATA, flags.into()]);
    let [both] = world.system.words(tid, DATA).unwrap();
    (both & 0xffff_ffff, both >> 32)
}

fn bytes<const N: usize>(world: &mut World, tid: u32, at: u64) -> [u8; N] {
    let mut bytes = [0; N];
    world.system.read(tid, at, &mut bytes).unwrap();
    bytes
}

#[test]
fn pipes_have_a_budget_together() {
    let mut world = world();
    world.system.budget.set_max(8 << 20);
    let mut count = [0; 2];
    let (first, _) = pipe(&mut world, 1, 0);
    let before = world.system.budget.used();
    loop {
        match world.call(1, nr::__NR_pipe2, &[DATA, 0]) {
            Did::Value(0) => {
                let [both] = world.system.words(1, DATA).unwrap();
                let size = world.good(1, nr::__NR_fcntl, &[both >> 32, nr::F_GETPIPE_SZ.into()]);
                count[usize::from(size == PAGE)] += 1;
            }
            other => {
                assert_eq!(other, Did::Value(-i64::from(ENFILE.0)));
                break;
            }
        }
        assert!(count[0] + count[1] < 5000, "no end");
    }
    // One process has half of all. When there is not so much left, pipes are small.
    let bytes = count[0] * pipe::SIZE + count[1] * PAGE as usize;
    let descriptors = (count[0] + count[1]) * 2 * OPEN_BYTES;
    assert!(bytes + descriptors <= (4 << 20) - before + PAGE as usize, "{bytes} bytes");
    assert!(count[0] > 50 && (1..16).contains(&count[1]), "{count:?}");
    assert_eq!(world.bad(1, nr::__NR_fcntl, &[first, nr::F_SETPIPE_SZ.into(), 1 << 20]), EPERM);
    // Pipes that are closed give back what they had.
    world.good(1, nr::__NR_close_range, &[3, u32::MAX.into(), 0]);
    let (_, writer) = pipe(&mut world, 1, 0);
    assert_eq!(world.good(1, nr::__NR_fcntl, &[writer, nr::F_SETPIPE_SZ.into(), 1 << 20]), 1 << 20);
    world.check();
}

#[test]
fn a_larger_pipe_wakes_who_writes() {
    let mut world = world();
    let (reader, writer) = pipe(&mut world, 1, 0);
    world.good(1, nr::__NR_fcntl, &[writer, nr::F_SETPIPE_SZ.into(), PAGE]);
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    assert_eq!(world.call(child, nr::__NR_write, &[writer, DATA, 3 * PAGE]), Did::Waits);
    world.good(1, nr::__NR_fcntl, &[reader, nr::F_SETPIPE_SZ.into(), 4 * PAGE]);
    assert_eq!(world.outcome(child), Did::Value(3 * PAGE as i64));
}

#[test]
fn a_wait_for_bytes_makes_no_large_buffers() {
    let mut world = world();
    let (reader, writer) = pipe(&mut world, 1, 0);
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    world.system.store.frames.bytes.work.set(0);
    assert_eq!(world.call(child, nr::__NR_read, &[reader, DATA, 1 << 20]), Did::Waits);
    assert_eq!(world.system.store.frames.bytes.work.get(), 0);
    world.good(1, nr::__NR_write, &[writer, DATA, 5]);
    assert_eq!(world.outcome(child), Did::Value(5));
    // Nor does one for room.
    world.good(1, nr::__NR_write, &[writer, DATA, pipe::SIZE as u64]);
    world.system.store.frames.bytes.work.set(0);
    assert_eq!(world.call(child, nr::__NR_write, &[writer, DATA, DATA_BYTES]), Did::Waits);
    assert!(world.system.store.frames.bytes.work.get() < 3 * PAGE);
}

#[test]
fn bytes_of_a_pipe_are_not_lost_at_bad_memory() {
    let mut world = world();
    let (reader, writer) = pipe(&mut world, 1, 0);
    let text = world.put(1, 100, b"0123456789");
    world.good(1, nr::__NR_write, &[writer, text, 10]);
    assert_eq!(world.bad(1, nr::__NR_read, &[reader, END, 10]), EFAULT);
    assert_eq!(world.good(1, nr::__NR_read, &[reader, END - 4, 10]), 4);
    assert_eq!(&bytes::<4>(&mut world, 1, END - 4), b"0123");
    let pieces = world.put_words(1, 0, &[DATA + 200, 2, 8, 5, DATA + 300, 5]);
    assert_eq!(world.good(1, nr::__NR_readv, &[reader, pieces, 3]), 2);
    assert_eq!(world.good(1, nr::__NR_read, &[reader, DATA + 300, 10]), 4);
    assert_eq!(&bytes::<4>(&mut world, 1, DATA + 300), b"6789");
    let counter = world.good(1, nr::__NR_eventfd2, &[5, 0]);
    assert_eq!(world.bad(1, nr::__NR_read, &[counter, END - 4, 8]), EFAULT);
    assert_eq!(world.good(1, nr::__NR_read, &[counter, DATA, 8]), 8);
    assert_eq!(world.system.words(1, DATA), Ok([5]));
}

#[test]
fn a_file_stands_behind_what_was_read() {
    let mut world = world();
    let path = world.put(1, 0, b"/file");
    let fd = world.good(1, nr::__NR_open, &[path, 2, 0]);
    assert_eq!(world.bad(1, nr::__NR_read, &[fd, END, 100]), EFAULT);
    assert_eq!(world.good(1, nr::__NR_lseek, &[fd, 0, 1]), 0);
    assert_eq!(world.good(1, nr::__NR_read, &[fd, END - 30, 100]), 30);
    assert_eq!(world.good(1, nr::__NR_lseek, &[fd, 0, 1]), 30);
    assert_eq!(world.good(1, nr::__NR_write, &[fd, END - 40, 100]), 40);
    assert_eq!(world.good(1, nr::__NR_lseek, &[fd, 0, 1]), 70);
    assert_eq!(world.bad(1, nr::__NR_write, &[fd, END, 100]), EFAULT);
}

#[test]
fn a_write_to_a_pipe_ends_at_bad_memory() {
    let mut world = world();
    let (reader, writer) = pipe(&mut world, 1, 0);
    assert_eq!(world.good(1, nr::__NR_write, &[writer, END - 100, 200]), 100);
    assert_eq!(world.good(1, nr::__NR_write, &[writer, END - 2 * PAGE, 3 * PAGE]), 2 * PAGE);
    assert_eq!(world.good(1, nr::__NR_read, &[reader, DATA, 4 * PAGE]), 2 * PAGE + 100);
    // Also when it had to wait before.
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    world.good(1, nr::__NR_write, &[writer, DATA, pipe::SIZE as u64 - PAGE]);
    assert_eq!(world.call(child, nr::__NR_write, &[writer, END - 2 * PAGE, 3 * PAGE]), Did::Waits);
    world.good(1, nr::__NR_read, &[reader, DATA, 4 * PAGE]);
    assert_eq!(world.outcome(child), Did::Value(2 * PAGE as i64));
}

#[test]
fn the_terminal_takes_a_page_at_once() {
    let mut world = world();
    assert_eq!(world.good(1, nr::__NR_write, &[1, DATA, DATA_BYTES]), 4096);
    let pieces = world.put_words(1, 0, &[DATA, 4000, DATA, 4000]);
    assert_eq!(world.good(1, nr::__NR_writev, &[1, pieces, 2]), 4096);
    let path = world.put(1, 0, b"/file");
    let fd = world.good(1, nr::__NR_open, &[path, 0, 0]);
    assert_eq!(world.good(1, nr::__NR_sendfile, &[1, fd, 0, 1 << 20]), 4096);
    assert!(world.system.machine.printed_max <= 2 * 4096);
}

#[test]
fn a_counter_has_a_highest_value() {
    let mut world = world();
    let counter = world.good(1, nr::__NR_eventfd2, &[0, nr::EFD_NONBLOCK.into()]);
    let value = world.put_words(1, 0, &[u64::MAX, u64::MAX - 1, 1]);
    assert_eq!(world.bad(1, nr::__NR_write, &[counter, value, 8]), EINVAL);
    assert_eq!(world.good(1, nr::__NR_write, &[counter, value + 8, 8]), 8);
    assert_eq!(world.bad(1, nr::__NR_write, &[counter, value + 16, 8]), EAGAIN);
}

#[test]
fn paths_of_directories_are_walked_once() {
    let mut world = world();
    let long = [b"/tmp".as_slice(), &b"/.".repeat(1000), &b"/../tmp".repeat(200), b"/"].concat();
    let path = world.put(1, 0, &long);
    world.good(1, nr::__NR_chdir, &[path]);
    assert_eq!(world.good(1, nr::__NR_getcwd, &[DATA, 100]), 5);
    let too_long = world.put(1, 0, &b"/tmp/..".repeat(1000));
    assert_eq!(world.bad(1, nr::__NR_chdir, &[too_long]), ENAMETOOLONG);
    // No directory has a longer path than a call can say.
    let name = [b'd'; 200];
    let (mut depth, path) = (0, world.put(1, 0, &name));
    while world.call(1, nr::__NR_mkdir, &[path, 0o777]) == Did::Value(0)
        && world.call(1, nr::__NR_chdir, &[path]) == Did::Value(0)
    {
        depth += 1;
    }
    assert_eq!(depth, 4091 / 201);
    let path = world.put(1, 0, b"..");
    world.good(1, nr::__NR_chdir, &[path]);
    assert_eq!(world.good(1, nr::__NR_getcwd, &[DATA, 8192]), 5 + 201 * (depth - 1));
    let path = world.put(1, 0, b"/proc/self/fd/../../..");
    world.good(1, nr::__NR_chdir, &[path]);
    assert_eq!(world.good(1, nr::__NR_getcwd, &[DATA, 100]), 2);
}

#[test]
fn paths_of_open_files_have_a_budget() {
    let mut world = world();
    world.system.budget.set_max(4 << 20);
    let limit = world.put_words(1, 0, &[4096, 4096]);
    world.good(1, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    let path = world.put(1, 0, &[b'd'; 200]);
    // With one directory more, the budget would end where the table of descriptors grows.
    for _ in 0..18 {
        world.good(1, nr::__NR_mkdir, &[path, 0o777]);
        world.good(1, nr::__NR_chdir, &[path]);
    }
    let path = world.put(1, 0, b"file");
    world.good(1, nr::__NR_creat, &[path, 0o666]);
    let open = world.system.store.volume.open_count();
    let mut count = 1;
    while let Did::Value(0..) = world.call(1, nr::__NR_open, &[path, 0, 0]) {
        count += 1;
    }
    assert_eq!(world.bad(1, nr::__NR_open, &[path, 0, 0]), ENFILE);
    let had = count * (18 * 201 + 5 + OPEN_BYTES);
    assert!(had < 2 << 20 && had > (2 << 20) * 3 / 4, "{count} files");
    world.good(1, nr::__NR_close_range, &[4, u32::MAX.into(), 0]);
    assert_eq!(world.system.store.volume.open_count(), open);
    world.good(1, nr::__NR_open, &[path, 0, 0]);
}

#[test]
fn links_of_processes_lead_where_they_do() {
    let mut world = world();
    let path = world.put(1, 0, b"/file");
    let fd = world.good(1, nr::__NR_open, &[path, 0, 0]);
    let child = world.good(1, nr::__NR_fork, &[]);
    let path = world.put(child as u32, 0, b"/tmp");
    world.good(child as u32, nr::__NR_chdir, &[path]);
    let links = [
        (std::format!("/proc/self/fd/{fd}"), "/file"),
        (std::format!("/proc/{child}/fd/{fd}"), "/file"),
        (std::format!("/dev/fd/{fd}"), "/file"),
        (std::format!("//proc/./1/fd/../fd/{fd}"), "/file"),
        (std::format!("/proc/{child}/cwd"), "/tmp"),
        ("/proc/self/exe".into(), "/program"),
        ("/dev/stdin".into(), "/dev/pts/0"),
    ];
    for (link, target) in links {
        if link.starts_with("//") {
            continue;
        }
        let path = world.put(1, 0, link.as_bytes());
        assert_eq!(world.good(1, nr::__NR_readlink, &[path, DATA + 512, 100]), target.len() as u64, "{link}");
        let mut found = vec![0; target.len()];
        world.system.read(1, DATA + 512, &mut found).unwrap();
        assert_eq!(found, target.as_bytes());
    }
    let path = world.put(1, 0, b"/proc/self/fd");
    let directory = world.good(1, nr::__NR_open, &[path, nr::O_DIRECTORY.into(), 0]);
    // Two of each directory, and four, and this one.
    assert_eq!(world.good(1, nr::__NR_getdents64, &[directory, DATA, PAGE]), 2 * 24 + 5 * 24);
}

#[test]
fn a_wait_for_signals_gets_them() {
    let mut world = world();
    let set = |signals: &[u32]| signals.iter().fold(0, |set, signal| set | 1u64 << (signal - 1));
    let wait = |world: &mut World, signals: &[u32]| {
        let at = world.put_words(2, 0, &[set(signals)]);
        world.call(2, nr::__NR_rt_sigtimedwait, &[at, DATA + 64, 0, 8])
    };
    world.good(1, nr::__NR_fork, &[]);
    // One that ends the process, one that is ignored, and one of which it says that it is ignored.
    let ignore = world.put_words(2, 0, &[1, 0, 0, 0]);
    world.good(2, nr::__NR_rt_sigaction, &[nr::SIGUSR2.into(), ignore, 0, 8]);
    for signal in [nr::SIGUSR1, nr::SIGCHLD, nr::SIGUSR2, 40] {
        assert_eq!(wait(&mut world, &[nr::SIGUSR1, nr::SIGCHLD, nr::SIGUSR2, 40]), Did::Waits);
        let kill = if signal == 40 { nr::__NR_tkill } else { nr::__NR_kill };
        world.good(1, kill, &[2, signal.into()]);
        assert_eq!(world.outcome(2), Did::Value(signal.into()));
        assert_eq!(bytes::<1>(&mut world, 2, DATA + 64), [signal as u8]);
        assert_eq!(world.system.threads[&2].mask.0, 0, "nothing is blocked any more");
    }
    // One that waits already, and time that is over.
    let mask = world.put_words(2, 0, &[set(&[nr::SIGUSR1])]);
    world.good(2, nr::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    world.good(1, nr::__NR_kill, &[2, nr::SIGUSR1.into()]);
    assert_eq!(wait(&mut world, &[nr::SIGUSR1]), Did::Value(nr::SIGUSR1.into()));
    let at = world.put_words(2, 0, &[set(&[nr::SIGUSR1]), 1, 0]);
    assert_eq!(world.call(2, nr::__NR_rt_sigtimedwait, &[at, 0, at + 8, 8]), Did::Waits);
    world.pass(1_000_000_000);
    assert_eq!(world.outcome(2), Did::Value(-11));
    assert_eq!(world.system.threads[&2].mask.0, set(&[nr::SIGUSR1]));
    // Others do what they always do.
    assert_eq!(wait(&mut world, &[nr::SIGUSR1]), Did::Waits);
    world.good(1, nr::__NR_kill, &[2, nr::SIGTERM.into()]);
    assert_eq!(world.outcome(2), Did::Gone);
}

/// Objects without a path count, too: descriptors of many processes do not fill the memory of this program.
#[test]
fn everything_open_has_a_budget() {
    let mut world = world();
    world.system.budget.set_max(2 << 20);
    let limit = world.put_words(1, 0, &[4096, 4096]);
    world.good(1, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    let mut count = 0;
    while let Did::Value(0..) = world.call(1, nr::__NR_eventfd2, &[0, 0]) {
        count += 1;
    }
    assert_eq!(world.bad(1, nr::__NR_eventfd2, &[0, 0]), ENFILE);
    assert!(count > 3000 && count < (1 << 20) / OPEN_BYTES, "{count}");
    world.good(1, nr::__NR_close_range, &[3, u32::MAX.into(), 0]);
    world.good(1, nr::__NR_eventfd2, &[0, 0]);
}

/// Descriptors of other processes that somebody looks at are not kept: those of all processes would be more than this program has memory for.
#[test]
fn descriptors_are_listed_of_one_process_at_a_time() {
    let mut world = world();
    let limit = world.put_words(1, 0, &[4096, 4096]);
    world.good(1, nr::__NR_setrlimit, &[nr::RLIMIT_NOFILE.into(), limit]);
    for _ in 0..1000 {
        world.good(1, nr::__NR_dup, &[0]);
    }
    let children: Vec<u64> = (0..4).map(|_| world.good(1, nr::__NR_fork, &[])).collect();
    let mut listed = Vec::new();
    for child in &children {
        let path = world.put(1, 0, std::format!("/proc/{child}/fd").as_bytes());
        listed.push(world.good(1, nr::__NR_open, &[path, nr::O_DIRECTORY.into(), 0]));
        let path = world.put(1, 0, std::format!("/proc/{child}/fd/7").as_bytes());
        assert_eq!(world.good(1, nr::__NR_readlink, &[path, DATA + 512, 100]), 10);
        let view = world.system.store.view.borrow();
        let kept: usize = view.processes.values().map(|paths| paths.descriptors.len()).sum();
        assert!(kept <= 1003, "{kept}");
    }
    for fd in listed {
        let mut bytes = 0;
        loop {
            match world.good(1, nr::__NR_getdents64, &[fd, DATA, PAGE]) {
                0 => break,
                count => bytes += count,
            }
        }
        assert_eq!(bytes, 1005 * 24);
    }
}

/// Descriptors that are closed while they are listed, as programs do that close all of them, keep none of the others from being listed.
#[test]
fn descriptors_are_closed_while_they_are_listed() {
    let mut world = world();
    for _ in 0..300 {
        world.good(1, nr::__NR_dup, &[0]);
    }
    let path = world.put(1, 0, b"/proc/self/fd");
    let directory = world.good(1, nr::__NR_open, &[path, nr::O_DIRECTORY.into(), 0]);
    let mut listed = 0;
    loop {
        let count = world.good(1, nr::__NR_getdents64, &[directory, DATA, 512]);
        if count == 0 {
            break;
        }
        for at in (0..count).step_by(24) {
            let name = bytes::<5>(&mut world, 1, DATA + at + 19);
            let name = std::string::String::from_utf8_lossy(&name);
            let Ok(fd) = name.trim_end_matches('\0').parse::<u64>() else { continue };
            listed += 1;
            if fd != directory {
                world.good(1, nr::__NR_close, &[fd]);
            }
        }
    }
    assert_eq!(listed, 304);
}
