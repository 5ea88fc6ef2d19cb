//! A sandbox on the host: its calls are made by tests, its files and frames are in memory, and its threads do nothing by themselves.

mod futexes;
mod open_places;
mod owners;
mod roots;
mod sandboxes;
mod signals;
mod stops;
mod terminals;
mod waits;

use crate::errno::{Errno, Result};
use crate::frames::{Bytes, Frame, PAGE};
use crate::machine::{Machine, Registers, Space, Tid};
use crate::memory::{Kind, Rights};
use crate::store::Store;
use crate::system::{Next, System};
use abi::ThreadState;
use abi::state::register;
use linux_raw_sys::general::{self, CLONE_SIGHAND, CLONE_THREAD, CLONE_VM};
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{FileSystem, How, Ram};

/// Memory that each process of a test has to itself.
pub const OWN: u64 = 0x1000_0000;

/// Memory that all processes of a test share, if they are copies of the first.
pub const COMMON: u64 = 0x2000_0000;

/// Address of a handler.
pub const HANDLER: u64 = 0x40_1000;

/// The machine: results of calls, by their threads.
#[derive(Default, Debug)]
pub struct Host {
    threads: BTreeMap<Tid, Space>,
    spaces: u64,
    paused: BTreeSet<Tid>,
    /// Results of calls that have waited.
    answers: BTreeMap<Tid, u64>,
    /// States with which threads went on.
    states: BTreeMap<Tid, ThreadState>,
    now: u64,
    printed: Vec<u8>,
    /// Lines about calls.
    pub traced: Vec<u8>,
}

impl Machine for Host {
    fn make_space(&mut self) -> Result<Space> {
        self.spaces += 1;
        Ok(Space(self.spaces))
    }
    fn end_space(&mut self, space: Space) {
        self.threads.retain(|_, of| *of != space);
    }
    fn make_thread(&mut self, space: Space, thread: Tid) -> Result<()> {
        self.threads.insert(thread, space);
        Ok(())
    }
    fn end_thread(&mut self, thread: Tid) {
        self.threads.remove(&thread);
    }
    fn state(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        if !self.threads.contains_key(&thread) {
            return false;
        }
        *to = self.states.get(&thread).copied().unwrap_or_else(|| {
            let mut state = ThreadState::ZERO;
            state.len_bytes = ThreadState::LEN_BYTES;
            state.registers[register::RSP] = OWN + 15 * PAGE;
            state
        });
        true
    }
    fn go_on(&mut self, thread: Tid, state: &ThreadState) -> Result<()> {
        self.states.insert(thread, *state);
        Ok(())
    }
    fn answer(&mut self, thread: Tid, registers: &Registers) {
        self.answers.insert(thread, registers.rax);
    }
    fn interrupt(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        self.state(thread, to)
    }
    fn return_from(&mut self, thread: Tid, state: &ThreadState) {
        self.states.insert(thread, *state);
    }
    fn pause(&mut self, thread: Tid, is_paused: bool) {
        if is_paused {
            self.paused.insert(thread);
        } else {
            self.paused.remove(&thread);
        }
    }
    fn features(&self) -> u64 {
        0
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn date(&self) -> u64 {
        self.now + 1_000_000_000_000
    }
    fn used(&self, _: Tid) -> u64 {
        0
    }
    fn random(&mut self, to: &mut [u8]) {
        to.fill(4);
    }
    fn print(&mut self, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
    }
    fn log(&mut self, _: core::fmt::Arguments) {}
    fn trace(&mut self, bytes: &[u8]) {
        self.traced.extend_from_slice(bytes);
    }
    fn wake_at(&mut self, _: Option<u64>) {}
}

/// Frames, each of which has its bytes, and how many the machine has memory for, if fewer than there may be.
#[derive(Default, Debug)]
pub struct Pages(Vec<Vec<u8>>, pub Option<u32>);

impl Bytes for Pages {
    fn count(&self) -> u32 {
        1000
    }
    fn make(&mut self, frame: Frame) -> bool {
        self.0.resize(self.0.len().max(frame.0 as usize + 1), vec![0; PAGE as usize]);
        self.1.is_none_or(|most| frame.0 < most)
    }
    fn clear(&mut self, frame: Frame) {
        self.0[frame.0 as usize].fill(0);
    }
    fn copy(&mut self, from: Frame, to: Frame) {
        self.0[to.0 as usize] = self.0[from.0 as usize].clone();
    }
    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize) {
        let mut bytes = vec![0; len];
        self.read(from.0, from.1, &mut bytes);
        self.write(to.0, to.1, &bytes);
    }
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0[frame.0 as usize][at..at + to.len()]);
    }
    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.0[frame.0 as usize][at..at + from.len()].copy_from_slice(from);
    }
    fn protect(&mut self, _: Frame) {}
    fn withdraw(&mut self, _: Frame) {}
}

/// A program that does nothing, since its threads do not run: an executable of one page.
fn program() -> Vec<u8> {
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([2u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([0x40_0000u64, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([64u16, 56, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend([1u32, 5].iter().flat_map(|half| half.to_le_bytes()));
    let words = [0u64, 0x40_0000, 0x40_0000, 120, 120, 4096];
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// A system with its tests' memory.
pub struct World<F: FileSystem = Ram<Plain>> {
    /// The system.
    pub system: System<Host, Pages, F>,
}

impl World {
    /// The first process, of `root`, at the system's terminal, whose group is in front.
    pub fn new() -> World {
        World::on(Ram::new(1 << 24, || 7))
    }
}

impl<F: FileSystem> World<F> {
    /// That process, with these files.
    pub fn on(files: F) -> World<F> {
        let store = Store::new(Pages::default(), files);
        let mut world = World { system: System::new(Host::default(), store, 64) };
        world.file(b"/program", &program(), 0o755);
        world.system.begin(b"/program", vec![b"program".to_vec()], &[], b"").unwrap();
        world.lay_out(1);
        world
    }

    /// Maps the memory that tests use.
    pub fn lay_out(&mut self, tid: Tid) {
        let room = self.system.room(tid).unwrap();
        let frames = &mut self.system.store.frames;
        let private = Kind::private(Rights::READ_WRITE);
        let shared = Kind { is_shared: true, ..private };
        for (at, len, kind) in [(OWN, 16 * PAGE, private), (COMMON, PAGE, shared)] {
            room.borrow_mut().memory.map(frames, Some(at), len, kind, false).unwrap();
        }
        // A page of shared memory is everybody's only when it is there.
        self.system.write(tid, COMMON, &[0; 4]).unwrap();
    }

    /// Makes a file of `root`.
    pub fn file(&mut self, path: &[u8], bytes: &[u8], permissions: u16) {
        let volume = &mut self.system.store.volume;
        let root = volume.root();
        let how = How { create: true, ..How::default() };
        let inode = volume.open(root, path, how, permissions).unwrap();
        let mut done = 0;
        while done < bytes.len() {
            done += volume.write(inode, done as u64, &bytes[done..]).unwrap();
        }
        volume.close(inode).unwrap();
    }

    /// Makes a call. None if it waits, or does not come back.
    pub fn call(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        let mut registers = Registers { rax: number.into(), ..Registers::default() };
        let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
        (registers.rdi, registers.rsi, registers.rdx) = (at(0), at(1), at(2));
        (registers.r10, registers.r8, registers.r9) = (at(3), at(4), at(5));
        self.system.machine.answers.remove(&tid);
        match self.system.call(tid, &mut registers) {
            Next::Answer => Some(result(registers.rax)),
            Next::Nothing => self.answer(tid),
        }
    }

    /// Makes a call that has a result at once.
    pub fn now(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> Result<u64> {
        self.call(tid, number, arguments).expect("the call waits")
    }

    /// Result of a call that has waited, if it waits no longer.
    pub fn answer(&mut self, tid: Tid) -> Option<Result<u64>> {
        self.system.machine.answers.remove(&tid).map(result)
    }

    /// Whether a thread has begun a handler since it was asked last.
    pub fn handles(&mut self, tid: Tid) -> bool {
        let state = self.system.machine.states.remove(&tid);
        state.is_some_and(|state| state.registers[register::RIP] == HANDLER)
    }

    /// Makes a call whose first argument is a path.
    pub fn by_path(&mut self, tid: Tid, number: u32, path: &str, more: &[u64]) -> Result<u64> {
        self.put(tid, OWN, &[path.as_bytes(), b"\0"].concat());
        self.now(tid, number, &[&[OWN], more].concat())
    }

    /// Opens a path.
    pub fn open(&mut self, tid: Tid, path: &str, flags: u32) -> Result<u64> {
        self.by_path(tid, general::__NR_open, path, &[flags.into(), 0o644])
    }

    /// Writes to memory of a process.
    pub fn put(&mut self, tid: Tid, at: u64, bytes: &[u8]) {
        self.system.write(tid, at, bytes).unwrap();
    }

    /// Reads a number from memory of a process.
    pub fn number(&mut self, tid: Tid, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.system.read(tid, at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    /// Writes to a descriptor.
    pub fn write(&mut self, tid: Tid, fd: u64, bytes: &[u8]) -> Option<Result<u64>> {
        self.put(tid, OWN + PAGE, bytes);
        self.call(tid, general::__NR_write, &[fd, OWN + PAGE, bytes.len() as u64])
    }

    /// Reads from a descriptor.
    pub fn read(&mut self, tid: Tid, fd: u64, len: u64) -> Option<Result<Vec<u8>>> {
        let count = self.call(tid, general::__NR_read, &[fd, OWN + 8 * PAGE, len])?;
        Some(count.map(|count| self.bytes_read(tid, count)))
    }

    /// Bytes that a read has brought.
    pub fn bytes_read(&mut self, tid: Tid, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        self.system.read(tid, OWN + 8 * PAGE, &mut bytes).unwrap();
        bytes
    }

    /// Makes a child.
    pub fn fork(&mut self, tid: Tid) -> Tid {
        self.now(tid, general::__NR_fork, &[]).unwrap() as Tid
    }

    /// Makes a thread.
    pub fn thread(&mut self, tid: Tid) -> Tid {
        let flags = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
        self.now(tid, general::__NR_clone, &[flags.into()]).unwrap() as Tid
    }

    /// Gives a signal a handler, or an action that is a number.
    pub fn action(&mut self, tid: Tid, signal: u32, handler: u64) {
        let words = [handler, u64::from(general::SA_RESTORER), HANDLER + 64, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(tid, OWN, &bytes);
        self.now(tid, general::__NR_rt_sigaction, &[signal.into(), OWN, 0, 8]).unwrap();
    }

    /// Lets time pass.
    pub fn wait(&mut self, nanoseconds: u64) {
        self.system.machine.now += nanoseconds;
        self.system.time();
    }

    /// News of a child, as `waitpid` says it without waiting.
    pub fn status(&mut self, tid: Tid, child: Tid) -> Option<u32> {
        let options = general::WNOHANG | general::WUNTRACED | general::WCONTINUED;
        let found = self.now(tid, general::__NR_wait4, &[child.into(), OWN, options.into(), 0]).unwrap();
        (found != 0).then(|| self.number(tid, OWN))
    }

    /// Ends a process.
    pub fn exit(&mut self, tid: Tid) {
        assert_eq!(self.call(tid, general::__NR_exit_group, &[0]), None);
    }
}

fn result(value: u64) -> Result<u64> {
    let error = (value as i64).wrapping_neg();
    if (1..4096).contains(&error) { Err(Errno(error as u16)) } else { Ok(value) }
}

#[test]
fn a_world_runs() {
    let mut world = World::new();
    assert_eq!(world.now(1, general::__NR_getpid, &[]), Ok(1));
    let child = world.fork(1);
    assert_eq!(world.now(child, general::__NR_getppid, &[]), Ok(1));
    let waits = world.call(1, general::__NR_wait4, &[child.into(), OWN, 0, 0]);
    assert_eq!(waits, None);
    world.exit(child);
    assert_eq!(world.answer(1), Some(Ok(child.into())));
}
