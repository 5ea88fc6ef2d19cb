//! A sandbox without a machine for tests of calls: a process with memory, whose calls are made as a thread makes them.

use super::HERE;
use crate::errno::Result;
use crate::frames::{Bytes, Frame, PAGE};
use crate::machine::{Machine, Registers, Space, Tid};
use crate::signal::Signal;
use crate::store::Store;
use crate::system::{Next, System};
use abi::ThreadState;
use abi::state::register;
use core::cell::Cell;
use linux_raw_sys::general::{self as nr, O_CREAT, O_RDWR};
use std::collections::BTreeMap;
use std::string::String;
use std::vec;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{How, Ram};

/// Where a process has memory to read and write.
pub const DATA: u64 = 0x40_0000;

/// Bytes there.
const DATA_BYTES: u64 = 4 << 20;

/// The first process.
pub const FIRST: Tid = 1;

/// Frames of a machine.
#[derive(Debug)]
pub struct Frames(Vec<Vec<u8>>);

impl Bytes for Frames {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn make(&mut self, frame: Frame) -> bool {
        self.0[frame.0 as usize] = vec![0; PAGE as usize];
        true
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

/// A machine that does nothing but note it.
#[derive(Debug, Default)]
pub struct Fake {
    /// Nanoseconds since the beginning.
    pub now: u64,
    /// When it is to wake up.
    pub wake: Option<u64>,
    /// Results of calls that have waited.
    pub answers: BTreeMap<Tid, u64>,
    /// Threads whose calls were answered behind others.
    pub behind: Vec<Tid>,
    /// Shares of threads that are not as nice as most.
    pub shares: BTreeMap<Tid, u32>,
    /// Lines for whoever looks after the machine.
    pub logged: Vec<String>,
    spaces: u64,
    /// Whether time goes on by itself: from one look at the clock to the next it is longer each time.
    pub runs: bool,
    looks: Cell<u64>,
}

impl Fake {
    fn look(&self) -> u64 {
        let looks = self.looks.get() + u64::from(self.runs);
        self.looks.set(looks);
        self.now + looks * looks
    }
}

fn state() -> ThreadState {
    let mut state = ThreadState::ZERO;
    state.registers[register::RSP] = DATA + DATA_BYTES - 64;
    state.registers[register::RIP] = DATA;
    state
}

impl Machine for Fake {
    fn make_space(&mut self) -> Result<Space> {
        self.spaces += 1;
        Ok(Space(self.spaces))
    }
    fn end_space(&mut self, _: Space) {}
    fn make_thread(&mut self, _: Space, _: Tid) -> Result<()> {
        Ok(())
    }
    fn end_thread(&mut self, _: Tid) {}
    fn state(&mut self, _: Tid, to: &mut ThreadState) -> bool {
        *to = state();
        true
    }
    fn go_on(&mut self, thread: Tid, state: &ThreadState) -> Result<()> {
        self.answers.insert(thread, state.registers[register::RAX]);
        Ok(())
    }
    fn answer(&mut self, thread: Tid, registers: &Registers) {
        self.answers.insert(thread, registers.rax);
    }
    fn answer_behind_others(&mut self, thread: Tid, registers: &Registers) {
        self.behind.push(thread);
        self.answer(thread, registers);
    }
    fn interrupt(&mut self, _: Tid, to: &mut ThreadState) -> bool {
        *to = state();
        true
    }
    fn return_from(&mut self, _: Tid, _: &ThreadState) {}
    fn pause(&mut self, _: Tid, _: bool) {}
    fn set_share(&mut self, thread: Tid, share: u32) {
        self.shares.insert(thread, share);
    }
    fn features(&self) -> u64 {
        0
    }
    fn now(&self) -> u64 {
        self.look()
    }
    fn date(&self) -> u64 {
        self.look() + 1_700_000_000_000_000_000
    }
    fn used(&self, _: Tid) -> u64 {
        0
    }
    fn random(&mut self, to: &mut [u8]) {
        to.fill(7);
    }
    fn print(&mut self, _: &[u8]) {}
    fn log(&mut self, text: core::fmt::Arguments) {
        self.logged.push(std::format!("{text}"));
    }
    fn wake_at(&mut self, at: Option<u64>) {
        self.wake = at;
    }
}

/// A sandbox.
pub struct Rig {
    /// All of it.
    pub system: System<Fake, Frames, Ram<Plain>>,
    /// The first byte of [`DATA`] that no test has used.
    pub free: u64,
}

/// An executable that is nothing but memory.
fn program() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([DATA, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([64u16, 56, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend([1u32, 6].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend([0, DATA, DATA, 0, DATA_BYTES, PAGE].iter().flat_map(|word: &u64| word.to_le_bytes()));
    bytes
}

impl Rig {
    /// A sandbox with one process, that has descriptors 0 to 2, and directories `/tmp` and `/bin`.
    pub fn begun() -> Rig {
        let mut store = Store::new(Frames(vec![Vec::new(); 4096]), Ram::new(64 << 20, || 0));
        let root = store.root;
        for directory in ["/tmp", "/bin"] {
            store.volume.mkdir(root, directory.as_bytes(), 0o755).unwrap();
        }
        let how = How { create: true, exclusive: true, truncate: false };
        let file = store.volume.open(root, b"/bin/test", how, 0o755).unwrap();
        store.volume.write(file, 0, &program()).unwrap();
        store.volume.close(file).unwrap();
        let mut system = System::new(Fake { now: 1000, ..Fake::default() }, store, 64);
        system.begin(b"/bin/test", vec![b"test".to_vec()], &[], b"/tmp").unwrap();
        system.machine.answers.clear();
        Rig { system, free: DATA + PAGE }
    }

    /// Room for bytes.
    pub fn room(&mut self, len: usize) -> u64 {
        let at = self.free;
        self.free = (self.free + len as u64).next_multiple_of(16);
        assert!(self.free < DATA + DATA_BYTES - PAGE);
        at
    }

    /// Puts bytes into memory of all processes that are copied later.
    pub fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.room(bytes.len());
        self.system.write(FIRST, at, bytes).unwrap();
        at
    }

    /// Bytes of a thread's memory.
    pub fn get(&mut self, tid: Tid, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.system.read(tid, at, &mut bytes).unwrap();
        bytes
    }

    /// A number of 32 bits in memory of the first process.
    pub fn half(&mut self, at: u64) -> u32 {
        u32::from_le_bytes(self.get(FIRST, at, 4).try_into().unwrap())
    }

    /// Makes a call. None: it waits.
    pub fn try_by(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> Option<i64> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let [rdi, rsi, rdx, r10, r8, r9] = all;
        let rax = number.into();
        let mut registers = Registers { rdi, rsi, rdx, r10, r8, r9, rax, ..Registers::default() };
        self.system.machine.answers.remove(&tid);
        match self.system.call(tid, &mut registers) {
            Next::Answer => Some(registers.rax as i64),
            Next::Nothing => self.answer(tid),
        }
    }

    /// Makes a call of the first process that does not wait.
    pub fn call(&mut self, number: u32, arguments: &[u64]) -> i64 {
        self.try_by(FIRST, number, arguments).expect("the call waits")
    }

    /// Makes a call of a thread that does not wait.
    pub fn call_by(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> i64 {
        self.try_by(tid, number, arguments).expect("the call waits")
    }

    /// Result of a call that has waited, if it is done.
    pub fn answer(&mut self, tid: Tid) -> Option<i64> {
        self.system.machine.answers.remove(&tid).map(|value| value as i64)
    }

    /// Another process, a copy of the first.
    pub fn fork(&mut self) -> Tid {
        self.call(nr::__NR_fork, &[]) as Tid
    }

    /// Another thread of the first process.
    pub fn thread(&mut self) -> Tid {
        let flags = nr::CLONE_VM | nr::CLONE_SIGHAND | nr::CLONE_THREAD;
        self.call(nr::__NR_clone, &[flags.into(), DATA + DATA_BYTES - PAGE]) as Tid
    }

    /// Lets time pass.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.system.machine.now += nanoseconds;
        self.system.time();
    }

    /// Descriptors of a call that makes two.
    pub fn two(&mut self, number: u32, arguments: &[u64], to: usize) -> [u64; 2] {
        let at = self.room(8);
        let mut all = arguments.to_vec();
        all.insert(to, at);
        assert_eq!(self.call(number, &all), 0);
        [self.half(at).into(), self.half(at + 4).into()]
    }

    /// Writes bytes to a descriptor.
    pub fn write(&mut self, fd: u64, bytes: &[u8]) -> i64 {
        let before = self.free;
        let at = self.put(bytes);
        let outcome = self.call(nr::__NR_write, &[fd, at, bytes.len() as u64]);
        self.free = before;
        outcome
    }

    /// Reads bytes of a descriptor; or an error.
    pub fn read(&mut self, fd: u64, len: usize) -> core::result::Result<Vec<u8>, i64> {
        let before = self.free;
        let at = self.room(len);
        let outcome = self.call(nr::__NR_read, &[fd, at, len as u64]);
        self.free = before;
        if outcome < 0 { Err(outcome) } else { Ok(self.get(FIRST, at, outcome as usize)) }
    }

    /// An option of a socket, of 32 bits, or the error.
    pub fn option(&mut self, fd: u64, level: u32, name: u32) -> core::result::Result<u32, i64> {
        let (at, len) = (self.room(16), self.put(&4u32.to_le_bytes()));
        let outcome = self.call(nr::__NR_getsockopt, &[fd, level.into(), name.into(), at, len]);
        if outcome < 0 { Err(outcome) } else { Ok(self.half(at)) }
    }

    /// Sets such an option.
    pub fn set_option(&mut self, fd: u64, level: u32, name: u32, value: u32) -> i64 {
        let at = self.put(&value.to_le_bytes());
        self.call(nr::__NR_setsockopt, &[fd, level.into(), name.into(), at, 4])
    }

    /// Readiness of a descriptor: bits of `poll`.
    pub fn poll(&mut self, fd: u64) -> u32 {
        let before = self.free;
        let at = self.put(&[&(fd as u32).to_le_bytes()[..], &[0xdf, 0xff, 0, 0]].concat());
        assert!(self.call(nr::__NR_poll, &[at, 1, 0]) >= 0);
        self.free = before;
        self.half(at + 4) >> 16
    }

    /// A signal is ignored by the first process.
    pub fn ignore(&mut self, signal: Signal) {
        let action = self.put(&[1u64, 0, 0, 0].map(u64::to_le_bytes).concat());
        assert_eq!(self.call(nr::__NR_rt_sigaction, &[signal.into(), action, 0, 8]), 0);
    }

    /// Opens a file of a path.
    pub fn open(&mut self, path: &str) -> i64 {
        let at = self.put(&[path.as_bytes(), &[0]].concat());
        self.call(nr::__NR_openat, &[HERE, at, (O_RDWR | O_CREAT).into(), 0o644])
    }
}
