//! Pseudo-terminals and control of terminals, as Linux answers the same calls.

use super::{OWN, World};
use crate::errno::{EAGAIN, EIO, ENOENT, ENOSPC, ENOTTY, ENXIO, EPERM, Result};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::process::Status;
use crate::terminal::Window;
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::*;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Place of the argument of `ioctl`.
const ARGUMENT: u64 = OWN + 256;

impl World {
    /// Asks something of a terminal: a number goes there and back.
    fn ask(&mut self, tid: Tid, fd: u64, request: u32, value: u32) -> Result<u32> {
        self.put(tid, ARGUMENT, &value.to_le_bytes());
        self.now(tid, __NR_ioctl, &[fd, request.into(), ARGUMENT])?;
        Ok(self.number(tid, ARGUMENT))
    }

    /// A master whose slave can be opened, and the name of that.
    fn pair(&mut self, tid: Tid) -> (u64, String) {
        let master = self.open(tid, "/dev/ptmx", O_RDWR).unwrap();
        self.ask(tid, master, TIOCSPTLCK, 0).unwrap();
        let number = self.ask(tid, master, TIOCGPTN, 0).unwrap();
        (master, format!("/dev/pts/{number}"))
    }

    /// Readiness of a descriptor, as `poll` says it.
    fn poll(&mut self, tid: Tid, fd: u64) -> u32 {
        let entry = fd | 0x7ff << 32;
        self.put(tid, ARGUMENT, &entry.to_le_bytes());
        self.now(tid, __NR_poll, &[ARGUMENT, 1, 0]).unwrap();
        self.number(tid, ARGUMENT + 4) >> 16
    }

    fn close(&mut self, tid: Tid, fd: u64) {
        self.now(tid, __NR_close, &[fd]).unwrap();
    }

    /// A child that leads a session at a pseudo-terminal of the first process: the child, the master, and the child's slave.
    fn session(&mut self) -> (Tid, u64, u64) {
        let (master, name) = self.pair(1);
        let child = self.fork(1);
        self.close(child, master);
        self.now(child, __NR_setsid, &[]).unwrap();
        let slave = self.open(child, &name, O_RDWR).unwrap();
        (child, master, slave)
    }

    fn open_now(&mut self, tid: Tid, path: &str) -> u64 {
        self.open(tid, path, O_RDWR | O_NOCTTY | O_NONBLOCK).unwrap()
    }
}

#[test]
fn a_pair_has_two_sides_and_a_name() {
    let mut world = World::new();
    let master = world.open(1, "/dev/ptmx", O_RDWR | O_NONBLOCK).unwrap();
    assert_eq!(world.ask(1, master, TIOCGPTN, 0), Ok(1));
    assert_eq!(world.open(1, "/dev/pts/1", O_RDWR), Err(EIO), "it is locked");
    let flags = u64::from(O_RDWR | O_NOCTTY | O_NONBLOCK);
    assert_eq!(world.now(1, __NR_ioctl, &[master, TIOCGPTPEER.into(), flags]), Err(EIO));
    assert_eq!(world.ask(1, master, TIOCGPTLCK, 0), Ok(1));
    assert_eq!((world.poll(1, master), world.read(1, master, 10)), (0x104, Some(Err(EAGAIN))));
    world.ask(1, master, TIOCSPTLCK, 0).unwrap();
    // Bytes are typed before anybody reads them.
    assert_eq!(world.write(1, master, b"hi\n"), Some(Ok(3)));
    assert_eq!(world.poll(1, master), 0x145);
    assert_eq!(world.read(1, master, 10), Some(Ok(b"hi\r\n".to_vec())));
    let slave = world.open_now(1, "/dev/pts/1");
    assert_eq!(world.poll(1, slave), 0x145);
    assert_eq!(world.read(1, slave, 10), Some(Ok(b"hi\n".to_vec())));
    assert_eq!((world.poll(1, slave), world.read(1, slave, 10)), (0x104, Some(Err(EAGAIN))));
    assert_eq!(world.ask(1, slave, TIOCGPTN, 0), Err(ENOTTY));
    let peer = world.now(1, __NR_ioctl, &[master, TIOCGPTPEER.into(), flags]).unwrap();
    assert_eq!(world.write(1, peer, b"x\n"), Some(Ok(2)));
    assert_eq!(world.read(1, master, 10), Some(Ok(b"x\r\n".to_vec())));
    assert_eq!(world.ask(1, master, FIONREAD, 9), Ok(0));
    // A name leads to what the descriptor leads to.
    for fd in [slave, peer] {
        world.now(1, __NR_fstat, &[fd, OWN + 1024]).unwrap();
        world.by_path(1, __NR_stat, "/dev/pts/1", &[OWN + 2048]).unwrap();
        let stat =
            |world: &mut World, at| (0..12).map(|word| world.number(1, at + 4 * word)).collect::<Vec<_>>();
        assert_eq!(stat(&mut world, OWN + 1024), stat(&mut world, OWN + 2048));
        assert_eq!((world.number(1, OWN + 1024 + 24), world.number(1, OWN + 1024 + 40)), (0o20620, 0x8801));
    }
    let other = world.open(1, "/dev/ptmx", O_RDWR).unwrap();
    assert_eq!(world.ask(1, other, TIOCGPTN, 0), Ok(2));
    let directory = world.open(1, "/dev/pts", O_RDONLY | O_DIRECTORY).unwrap();
    let count = world.now(1, __NR_getdents64, &[directory, OWN + PAGE, 1024]).unwrap();
    assert_eq!(count, 5 * 24, "., .., 0, 1 and 2");
    world.close(1, other);
    assert_eq!(world.open(1, "/dev/pts/2", O_RDWR), Err(ENOENT));
}

#[test]
fn pairs_are_counted() {
    let mut world = World::new();
    let all: Vec<u64> = (0..64).map(|_| world.open(1, "/dev/ptmx", O_RDWR).unwrap()).collect();
    assert_eq!(world.open(1, "/dev/ptmx", O_RDWR), Err(ENOSPC));
    world.close(1, all[5]);
    let again = world.open(1, "/dev/ptmx", O_RDWR).unwrap();
    assert_eq!(world.ask(1, again, TIOCGPTN, 0), Ok(6));
}

#[test]
fn output_waits_for_the_reader_of_the_master() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    let slave = world.open_now(1, &name);
    assert_eq!(world.write(1, slave, &[b'x'; 6000]), Some(Ok(4096)));
    assert_eq!((world.write(1, slave, b"y"), world.poll(1, slave)), (Some(Err(EAGAIN)), 0));
    let child = world.fork(1);
    world.now(child, __NR_fcntl, &[slave, F_SETFL.into(), 0]).unwrap();
    assert_eq!(world.write(child, slave, &[b'z'; 5000]), None, "it waits");
    assert_eq!(world.read(1, master, 5000).unwrap().unwrap().len(), 4096);
    assert_eq!(world.answer(child), None, "904 bytes are left");
    assert_eq!(world.read(1, master, 5000), Some(Ok(vec![b'z'; 4096])));
    assert_eq!(world.answer(child), Some(Ok(5000)));
    assert_eq!(world.read(1, master, 5000), Some(Ok(vec![b'z'; 904])));
    // A byte that becomes several has room, or waits whole.
    world.write(1, slave, &[b'x'; 4095]);
    world.now(child, __NR_fcntl, &[slave, F_SETFL.into(), O_NONBLOCK.into()]).unwrap();
    assert_eq!((world.write(1, slave, b"\n"), world.poll(1, slave)), (Some(Err(EAGAIN)), 0));
}

#[test]
fn who_types_waits_for_the_reader_of_the_slave() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    let slave = world.open_now(1, &name);
    let mut raw = [0u8; 36];
    raw[17 + VMIN as usize] = 1;
    world.put(1, ARGUMENT, &raw);
    world.now(1, __NR_ioctl, &[slave, TCSETS.into(), ARGUMENT]).unwrap();
    let child = world.fork(1);
    assert_eq!(world.write(child, master, &[b'x'; 5000]), None);
    assert_eq!(world.poll(1, master), 0);
    assert_eq!(world.read(1, slave, 4096).unwrap().unwrap().len(), 4096);
    assert_eq!(world.answer(child), Some(Ok(5000)));
    assert_eq!(world.read(1, slave, 4096).unwrap().unwrap().len(), 904);
}

/// Bytes that are much work each, and for which there is always room: a long line is shown again and again. Others have their turn meanwhile.
#[test]
fn who_types_much_lets_others_have_their_turn() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    world.open_now(1, &name);
    let child = world.fork(1);
    assert_eq!(world.write(child, master, &[b'x'; 4000]), Some(Ok(4000)));
    world.put(child, OWN + PAGE, &[0x12; 10_000]);
    assert_eq!(world.call(child, __NR_write, &[master, OWN + PAGE, 10_000]), None);
    for _ in 0..2 {
        assert_eq!(world.answer(child), None);
        world.wait(1);
    }
    assert_eq!(world.answer(child), Some(Ok(10_000)));
    world.now(child, __NR_fcntl, &[master, F_SETFL.into(), O_NONBLOCK.into()]).unwrap();
    assert_eq!(world.call(child, __NR_write, &[master, OWN + PAGE, 10_000]), Some(Ok(4096)));
}

#[test]
fn the_master_sees_that_slaves_are_gone() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    let child = world.fork(1);
    assert_eq!(world.read(child, master, 10), None, "the slave was never open");
    let slave = world.open_now(1, &name);
    world.write(1, slave, b"rest");
    assert_eq!(world.answer(child), Some(Ok(4)));
    world.write(1, slave, b"rest");
    world.close(1, slave);
    assert_eq!(world.poll(1, master), 0x155);
    assert_eq!(world.read(1, master, 10), Some(Ok(b"rest".to_vec())));
    assert_eq!((world.poll(1, master), world.read(1, master, 10)), (0x114, Some(Err(EIO))));
    // A slave that is opened again reads what was typed meanwhile.
    assert_eq!(world.write(1, master, b"zz\n"), Some(Ok(3)));
    let slave = world.open_now(1, &name);
    assert_eq!(world.read(1, slave, 10), Some(Ok(b"zz\n".to_vec())));
    assert_eq!((world.read(1, master, 10), world.poll(1, master)), (Some(Ok(b"zz\r\n".to_vec())), 0x104));
    assert_eq!(world.read(child, master, 10), None);
    world.close(1, slave);
    assert_eq!(world.answer(child), Some(Err(EIO)));
}

#[test]
fn slaves_see_that_the_master_is_gone() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    let slave = world.open(1, &name, O_RDWR | O_NOCTTY).unwrap();
    let child = world.fork(1);
    world.close(child, master);
    world.write(1, master, b"pending\n");
    world.read(1, slave, 10);
    assert_eq!(world.read(child, slave, 10), None);
    world.write(1, slave, b"nobody reads it");
    world.close(1, master);
    assert_eq!(world.answer(child), Some(Ok(0)));
    assert_eq!(world.poll(1, slave), 0x15d);
    assert_eq!((world.read(1, slave, 10), world.write(1, slave, b"x")), (Some(Ok(vec![])), Some(Err(EIO))));
    for request in [TCGETS, TIOCGWINSZ, FIONREAD, TIOCGPGRP] {
        assert_eq!(world.ask(1, slave, request, 0), Err(EIO));
    }
    assert_eq!(world.ask(1, slave, TIOCSPGRP, 1), Err(ENOTTY));
    assert_eq!(world.open(1, &name, O_RDWR), Err(ENOENT));
    let other = world.open(1, "/dev/ptmx", O_RDWR).unwrap();
    assert_eq!(world.ask(1, other, TIOCGPTN, 0), Ok(2), "the number is still used");
    world.close(1, slave);
    world.close(child, slave);
    let other = world.open(1, "/dev/ptmx", O_RDWR).unwrap();
    assert_eq!(world.ask(1, other, TIOCGPTN, 0), Ok(1));
}

#[test]
fn leaders_of_sessions_get_control() {
    let mut world = World::new();
    let (master, name) = world.pair(1);
    let (_, other_name) = world.pair(1);
    let child = world.fork(1);
    let in_front = |world: &mut World, fd| world.ask(child, fd, TIOCGPGRP, 7);
    assert_eq!(in_front(&mut world, 0), Ok(1));
    world.now(child, __NR_setsid, &[]).unwrap();
    assert_eq!(world.open(child, "/dev/tty", O_RDWR), Err(ENXIO));
    assert_eq!((in_front(&mut world, 0), in_front(&mut world, master)), (Err(ENOTTY), Ok(0)));
    world.open(child, &name, O_WRONLY).unwrap();
    let slave = world.open(child, &name, O_RDWR | O_NOCTTY).unwrap();
    assert_eq!((in_front(&mut world, slave), world.ask(1, master, TIOCGSID, 0)), (Err(ENOTTY), Err(ENOTTY)));
    world.open(child, &name, O_RDWR).unwrap();
    assert_eq!((in_front(&mut world, slave), in_front(&mut world, master)), (Ok(child), Ok(child)));
    assert_eq!(
        (world.ask(child, slave, TIOCGSID, 0), world.ask(1, master, TIOCGSID, 0)),
        (Ok(child), Ok(child))
    );
    let tty = world.open(child, "/dev/tty", O_RDWR).unwrap();
    world.write(child, tty, b"me");
    assert_eq!(world.read(1, master, 10), Some(Ok(b"me".to_vec())));
    // One terminal is enough, and one session has it.
    let second = world.open(child, &other_name, O_RDWR).unwrap();
    assert_eq!(
        (in_front(&mut world, second), world.ask(child, second, TIOCSPGRP, child)),
        (Err(ENOTTY), Err(ENOTTY))
    );
    assert_eq!(
        (world.ask(child, second, TIOCSCTTY, 0), world.ask(child, slave, TIOCSCTTY, 0)),
        (Err(EPERM), Ok(0))
    );
    assert_eq!(world.ask(1, 0, TIOCSCTTY, 0), Ok(0));
    let thief = world.fork(1);
    world.now(thief, __NR_setsid, &[]).unwrap();
    let at = world.open(thief, &name, O_RDWR).unwrap();
    assert_eq!(world.ask(thief, at, TIOCGPGRP, 0), Err(ENOTTY));
    assert_eq!(world.now(thief, __NR_ioctl, &[at, TIOCSCTTY.into(), 0]), Err(EPERM));
    assert_eq!(world.now(thief, __NR_ioctl, &[at, TIOCSCTTY.into(), 1]), Ok(0), "root may take it");
    assert_eq!((world.ask(thief, at, TIOCGPGRP, 0), in_front(&mut world, slave)), (Ok(thief), Err(ENOTTY)));
}

#[test]
fn signals_go_to_the_group_in_front() {
    let mut world = World::new();
    let (child, master, slave) = world.session();
    let job = world.fork(child);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    for tid in [child, job] {
        world.action(tid, SIGINT, super::HANDLER);
        world.action(tid, SIGWINCH, super::HANDLER);
        world.handles(tid);
    }
    world.write(1, master, b"\x03");
    assert_eq!((world.handles(child), world.handles(job)), (true, false));
    world.ask(child, slave, TIOCSPGRP, job).unwrap();
    world.write(1, master, b"\x03");
    assert_eq!((world.handles(child), world.handles(job)), (false, true));
    let size = 30 | 90 << 16;
    world.put(1, ARGUMENT + 4, &[0; 4]);
    world.ask(1, master, TIOCSWINSZ, size).unwrap();
    assert!(world.handles(job));
    world.ask(1, master, TIOCSWINSZ, size).unwrap();
    assert!(!world.handles(job), "it is the same size");
    assert_eq!(world.ask(child, slave, TIOCGWINSZ, 0), Ok(size));
    assert_eq!(world.ask(1, 0, TIOCGWINSZ, 0), Ok(24 | 80 << 16), "the system's has its own");
}

#[test]
fn the_background_stops() {
    let mut world = World::new();
    let (child, master, slave) = world.session();
    let job = world.fork(child);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    world.action(job, SIGTTIN, 1);
    assert_eq!(world.read(job, slave, 9), Some(Err(EIO)), "it ignores the signal");
    world.action(job, SIGTTIN, 0);
    assert_eq!(world.write(job, slave, b"x"), Some(Ok(1)));
    assert_eq!(world.read(job, slave, 9), None);
    assert_eq!(world.status(child, job), Some(Status::stopped(SIGTTIN).0));
    world.ask(child, slave, TIOCSPGRP, job).unwrap();
    world.write(1, master, b"hello\n");
    assert_eq!(world.answer(job), None, "it stands still");
    world.now(child, __NR_kill, &[job.into(), SIGCONT.into()]).unwrap();
    assert_eq!(world.answer(job), Some(Ok(6)));
    assert_eq!(world.bytes_read(job, 6), b"hello\n");
    // Now the shell is in the background, and may change nothing.
    assert_eq!(
        world.call(child, __NR_ioctl, &[slave, TIOCSPGRP.into(), ARGUMENT]),
        Some(Err(ENOTTY)),
        "an orphan"
    );
    world.action(child, SIGTTOU, 1);
    world.ask(child, slave, TIOCSPGRP, child).unwrap();
    // With `TOSTOP` writers stop, too.
    let mut settings = crate::terminal::Settings::default();
    settings.local |= TOSTOP;
    world.put(child, ARGUMENT, &settings.bytes());
    world.now(child, __NR_ioctl, &[slave, TCSETS.into(), ARGUMENT]).unwrap();
    assert_eq!(world.write(job, slave, b"x"), None);
    assert_eq!(world.status(child, job), Some(Status::stopped(SIGTTOU).0));
}

#[test]
fn sessions_lose_their_terminals() {
    let mut world = World::new();
    let (child, master, slave) = world.session();
    let job = world.fork(child);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    world.ask(child, slave, TIOCSPGRP, job).unwrap();
    world.action(child, SIGHUP, super::HANDLER);
    world.handles(child);
    world.close(1, master);
    assert!(world.handles(child));
    assert_eq!(world.status(child, job), None, "only the leader hears of it");
    assert_eq!(world.open(job, "/dev/tty", O_RDWR), Err(ENXIO));
    world.exit(child);
    assert_eq!(world.system.processes.get(&job).and_then(|job| job.ended), Some(Status::killed(SIGHUP)));
}

#[test]
fn a_leader_gives_its_terminal_up() {
    let mut world = World::new();
    let (child, _, slave) = world.session();
    let job = world.fork(child);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    assert_eq!(world.ask(job, slave, TIOCNOTTY, 0), Ok(0));
    assert_eq!(world.ask(job, slave, TIOCNOTTY, 0), Err(ENOTTY));
    world.action(child, SIGHUP, super::HANDLER);
    world.handles(child);
    assert_eq!(world.call(child, __NR_ioctl, &[slave, TIOCNOTTY.into()]), None);
    assert!(world.handles(child), "its own group was in front");
    assert_eq!(world.open(child, "/dev/tty", O_RDWR), Err(ENXIO));
    assert_eq!(world.ask(child, slave, TIOCSCTTY, 0), Ok(0));
    let job = world.fork(child);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    // It was made by a handler.
    world.action(job, SIGHUP, 0);
    world.put(job, ARGUMENT, &[0; 8]);
    world.now(job, __NR_rt_sigprocmask, &[SIG_SETMASK.into(), ARGUMENT, 0, 8]).unwrap();
    world.ask(child, slave, TIOCSPGRP, job).unwrap();
    world.exit(child);
    assert_eq!(world.system.processes.get(&job).and_then(|job| job.ended), Some(Status::killed(SIGHUP)));
}

#[test]
fn chains_of_terminals_end_one_after_the_other() {
    let mut world = World::new();
    let (first, master, _) = world.session();
    let mut last = first;
    for _ in 0..25 {
        let (_, name) = world.pair(last);
        let next = world.fork(last);
        for fd in 3..32 {
            let _ = world.now(next, __NR_close, &[fd]);
        }
        world.now(next, __NR_setsid, &[]).unwrap();
        world.open(next, &name, O_RDWR).unwrap();
        last = next;
    }
    world.close(1, master);
    assert_eq!(world.system.processes.get(&last).and_then(|last| last.ended), Some(Status::killed(SIGHUP)));
}

/// A process that ends by what its own thread types gives its terminals back.
#[test]
fn a_call_that_ends_its_process_keeps_nothing() {
    let mut world = World::new();
    let child = world.fork(1);
    world.now(child, __NR_setsid, &[]).unwrap();
    let (master, name) = world.pair(child);
    world.open(child, &name, O_RDWR).unwrap();
    // The first thread takes the signal; the second one types, and blocks it.
    let typing = world.thread(child);
    world.put(typing, OWN, &(1u64 << (SIGINT - 1)).to_le_bytes());
    world.now(typing, __NR_rt_sigprocmask, &[SIG_BLOCK.into(), OWN, 0, 8]).unwrap();
    world.put(typing, OWN + PAGE, &[3]);
    let _ = world.call(typing, __NR_write, &[master, OWN + PAGE, 1]);
    assert_eq!(world.status(1, child), Some(Status::killed(SIGINT).0));
    assert!(world.system.terminals.get(1).is_none());
}

/// A read that does not wait leaves nothing to the next one, whose time begins with it.
#[test]
fn each_read_has_its_own_time() {
    let mut world = World::new();
    let (_, name) = world.pair(1);
    let slave = world.open_now(1, &name);
    world.now(1, __NR_ioctl, &[slave, TCGETS.into(), ARGUMENT]).unwrap();
    let mut settings = [0; 36];
    world.system.read(1, ARGUMENT, &mut settings).unwrap();
    // No lines: whatever there is after a second.
    settings[12..16].fill(0);
    (settings[17 + VTIME as usize], settings[17 + VMIN as usize]) = (10, 0);
    world.put(1, ARGUMENT, &settings);
    world.now(1, __NR_ioctl, &[slave, TCSETS.into(), ARGUMENT]).unwrap();
    assert_eq!(world.read(1, slave, 9), Some(Err(EAGAIN)));
    world.wait(500_000_000);
    world.now(1, __NR_fcntl, &[slave, F_SETFL.into(), O_RDWR.into()]).unwrap();
    assert_eq!(world.read(1, slave, 9), None);
    world.wait(900_000_000);
    assert_eq!(world.answer(1), None);
    world.wait(100_000_000);
    assert_eq!(world.answer(1), Some(Ok(0)));
}

/// The group in front hears of a size that the machine's terminal has told.
#[test]
fn the_machine_may_tell_another_size() {
    let mut world = World::new();
    let terminal = world.open_now(1, "/dev/tty");
    assert_eq!(world.ask(1, terminal, TIOCGWINSZ, 0), Ok(24 | 80 << 16));
    world.put(1, OWN, &(1u64 << (SIGWINCH - 1)).to_le_bytes());
    world.now(1, __NR_rt_sigprocmask, &[SIG_BLOCK.into(), OWN, 0, 8]).unwrap();
    for pending in [1 << (SIGWINCH - 1), 0] {
        world.system.resize(Window { rows: 30, columns: 100, pixels: (0, 0) });
        assert_eq!(world.ask(1, terminal, TIOCGWINSZ, 0), Ok(30 | 100 << 16));
        world.now(1, __NR_rt_sigpending, &[OWN, 8]).unwrap();
        assert_eq!(world.number(1, OWN), pending);
        // It is taken, and the next time it is no other size.
        world.put(1, OWN, &(1u64 << (SIGWINCH - 1)).to_le_bytes());
        world.put(1, OWN + 64, &[0; 16]);
        let _ = world.now(1, __NR_rt_sigtimedwait, &[OWN, 0, OWN + 64, 8]);
    }
}
