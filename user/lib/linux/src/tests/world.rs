//! A sandbox on a machine that only notes what it is told: tests begin processes in it, and make their calls by number.
//!
//! Programs do not run. A thread is in its own code until the test makes a call for it, and again when the call is answered.

use crate::errno::{ENOMEM, Errno};
use crate::frames::{Bytes, Frame, PAGE};
use crate::machine::{Machine, Registers, Space, Tid};
use crate::store::Store;
use crate::system::{Next, System};
use abi::ThreadState;
use abi::state::register;
use core::cell::Cell;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{How, Ram, Volume};

/// Bytes of frames, and how many bytes were read and written in them.
#[derive(Debug)]
pub struct Memory {
    frames: Vec<Vec<u8>>,
    count: u32,
    /// Work that was done here: bytes, and [`Memory::OPERATION`] for each request.
    pub work: Cell<u64>,
}

impl Memory {
    /// Bytes that a request counts for, whatever it is.
    const OPERATION: u64 = 64;

    fn worked(&self, bytes: usize) {
        self.work.set(self.work.get() + bytes as u64 + Memory::OPERATION);
    }
}

impl Bytes for Memory {
    fn count(&self) -> u32 {
        self.count
    }
    fn make(&mut self, frame: Frame) -> bool {
        assert_eq!(frame.0 as usize, self.frames.len());
        self.frames.push(vec![0xee; PAGE as usize]);
        true
    }
    fn clear(&mut self, frame: Frame) {
        self.worked(PAGE as usize);
        self.frames[frame.0 as usize].fill(0);
    }
    fn copy(&mut self, from: Frame, to: Frame) {
        self.worked(PAGE as usize);
        self.frames[to.0 as usize] = self.frames[from.0 as usize].clone();
    }
    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize) {
        let bytes = self.frames[from.0.0 as usize][from.1..from.1 + len].to_vec();
        self.write(to.0, to.1, &bytes);
    }
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        self.worked(to.len());
        to.copy_from_slice(&self.frames[frame.0 as usize][at..at + to.len()]);
    }
    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.worked(from.len());
        self.frames[frame.0 as usize][at..at + from.len()].copy_from_slice(from);
    }
    fn protect(&mut self, _: Frame) {
        self.worked(0);
    }
    fn withdraw(&mut self, _: Frame) {
        self.worked(0);
    }
}

/// Place of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// It has never run.
    New,
    /// It runs its own code.
    Code,
    /// It is in a call.
    Call,
    /// It was stopped in its own code.
    Stopped,
}

/// A thread of the machine.
#[derive(Debug)]
pub struct Held {
    space: Space,
    /// Its registers.
    pub state: Box<ThreadState>,
    /// Where it is.
    pub place: Place,
}

/// The machine.
#[derive(Debug, Default)]
pub struct Below {
    spaces: BTreeSet<u64>,
    space_next: u64,
    /// Its threads.
    pub threads: BTreeMap<Tid, Held>,
    /// Nanoseconds since it began.
    pub now: u64,
    /// Bytes that were printed.
    pub printed: Vec<u8>,
    /// Most bytes that were printed at once.
    pub printed_max: usize,
    /// When [`System::time`] is to be called.
    pub wake: Option<u64>,
}

impl Machine for Below {
    fn make_space(&mut self) -> Result<Space, Errno> {
        if self.spaces.len() >= 1000 {
            return Err(ENOMEM);
        }
        self.space_next += 1;
        self.spaces.insert(self.space_next);
        Ok(Space(self.space_next))
    }
    fn end_space(&mut self, space: Space) {
        self.spaces.remove(&space.0);
        self.threads.retain(|_, held| held.space != space);
    }
    fn make_thread(&mut self, space: Space, thread: Tid) -> Result<(), Errno> {
        assert!(self.spaces.contains(&space.0), "a thread without a space");
        let state = Box::new(ThreadState::ZERO);
        self.threads.insert(thread, Held { space, state, place: Place::New });
        Ok(())
    }
    fn end_thread(&mut self, thread: Tid) {
        self.threads.remove(&thread);
    }
    fn state(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        let Some(held) = self.threads.get(&thread).filter(|held| held.place != Place::Code) else {
            return false;
        };
        *to = *held.state;
        true
    }
    fn end_call(
        &mut self,
        thread: Tid,
        state: &ThreadState,
        registers: &mut Registers,
        is_whole: bool,
    ) -> Result<bool, Errno> {
        let held = self.threads.get_mut(&thread).ok_or(ENOMEM)?;
        assert_eq!(held.place, Place::Call, "no call waits for an answer");
        for at in [register::RIP, register::RSP, register::RFLAGS] {
            held.state.registers[at] = state.registers[at];
        }
        if is_whole {
            held.state.image = state.image;
            for at in [register::RCX, register::R11] {
                held.state.registers[at] = state.registers[at];
            }
        }
        *registers = Registers::of(state);
        Ok(true)
    }
    fn go_on(&mut self, thread: Tid, state: &ThreadState) -> Result<(), Errno> {
        let held = self.threads.get_mut(&thread).ok_or(ENOMEM)?;
        (held.place, *held.state) = (Place::Code, *state);
        Ok(())
    }
    fn go_on_elsewhere(&mut self, thread: Tid, state: &ThreadState) -> Result<(), Errno> {
        let held = self.threads.get(&thread).ok_or(ENOMEM)?;
        assert_eq!(held.state.image, state.image, "vector registers that would be lost");
        assert_eq!((held.state.fs_base, held.state.gs_base), (state.fs_base, state.gs_base));
        self.go_on(thread, state)
    }
    fn answer(&mut self, thread: Tid, registers: &Registers) {
        if let Some(held) = self.threads.get_mut(&thread) {
            assert_eq!(held.place, Place::Call, "no call waits for an answer");
            registers.put(&mut held.state);
            held.place = Place::Code;
        }
    }
    fn interrupt(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        let Some(held) = self.threads.get_mut(&thread).filter(|held| held.place == Place::Code) else {
            return false;
        };
        held.place = Place::Stopped;
        *to = *held.state;
        true
    }
    fn return_from(&mut self, thread: Tid, state: &ThreadState) {
        let _ = self.go_on_elsewhere(thread, state);
    }
    fn pause(&mut self, _: Tid, _: bool) {}
    fn features(&self) -> u64 {
        0
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn date(&self) -> u64 {
        self.now + 1_700_000_000_000_000_000
    }
    fn used(&self, _: Tid) -> u64 {
        1_000_000
    }
    fn random(&mut self, to: &mut [u8]) {
        to.fill(4);
    }
    fn print(&mut self, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
        self.printed_max = self.printed_max.max(bytes.len());
    }
    fn log(&mut self, _: core::fmt::Arguments) {}
    fn wake_at(&mut self, at: Option<u64>) {
        self.wake = at;
    }
}

/// Outcome of a call of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// It is done, with this result.
    Value(i64),
    /// It waits.
    Waits,
    /// Its thread is gone, or went on elsewhere.
    Gone,
}

/// A sandbox.
#[derive(Debug)]
pub struct World {
    /// Its system.
    pub system: System<Below, Memory, Ram<Plain>>,
}

/// First address of the code of the program that each world has as `/program`.
pub const CODE: u64 = 0x40_0000;
/// First address of its data, which are [`DATA_BYTES`] of zeros.
pub const DATA: u64 = 0x50_0000;
/// Bytes of its data.
pub const DATA_BYTES: u64 = 16 * PAGE;

/// A segment of an executable: flags, offset, address, bytes in the file, bytes in memory.
pub type Segment = (u32, u64, u64, u64, u64);

/// An executable of two pages. `kind`: 2 for one that has its place, 3 for one that may be anywhere.
pub fn executable(kind: u16, entry: u64, segments: &[Segment]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let mut half = |value: u16| bytes.extend(value.to_le_bytes());
    [kind, 62, 1, 0].into_iter().for_each(&mut half);
    let mut word = |value: u64| bytes.extend(value.to_le_bytes());
    [entry, 64, 0].into_iter().for_each(&mut word);
    let mut half = |value: u16| bytes.extend(value.to_le_bytes());
    [0, 0, 64, 56, segments.len() as u16, 0, 0, 0].into_iter().for_each(&mut half);
    for (flags, offset, address, file_bytes, memory_bytes) in segments {
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for value in [*offset, *address, 0, *file_bytes, *memory_bytes, PAGE] {
            bytes.extend(value.to_le_bytes());
        }
    }
    bytes.resize(2 * PAGE as usize, 0x90);
    bytes
}

impl World {
    /// A world with so many frames and threads, whose first process has begun `/program`.
    pub fn new(frames: u32, threads_max: usize) -> World {
        let mut volume = Volume::new(Ram::new(8 << 20, || 0));
        let root = volume.root();
        let program = executable(2, CODE, &[(5, 0, CODE, 2 * PAGE, 2 * PAGE), (6, 0, DATA, 0, DATA_BYTES)]);
        for (path, bytes) in [("/program", program), ("/file", vec![b'f'; 3 * PAGE as usize + 100])] {
            let how = How { create: true, exclusive: true, truncate: false };
            let file = volume.open(root, path.as_bytes(), how, 0o755).unwrap();
            assert_eq!(volume.write(file, 0, &bytes), Ok(bytes.len()));
            volume.close(file).unwrap();
        }
        volume.mkdir(root, b"/tmp", 0o777).unwrap();
        volume.symlink(root, b"/tmp/link", b"/tmp/link").unwrap();
        let memory = Memory { frames: Vec::new(), count: frames, work: Cell::new(0) };
        let store = Store::new(memory, volume.into_inner());
        let mut system = System::new(Below::default(), store, threads_max);
        system.begin(b"/program", Vec::from([b"program".to_vec()]), &[], b"").unwrap();
        World { system }
    }

    /// Adds a file with these bytes.
    pub fn file(&mut self, path: &[u8], bytes: &[u8]) {
        let how = How { create: true, exclusive: false, truncate: true };
        let (root, volume) = (self.system.store.root, &mut self.system.store.volume);
        let file = volume.open(root, path, how, 0o755).unwrap();
        assert_eq!(volume.write(file, 0, bytes), Ok(bytes.len()));
        volume.close(file).unwrap();
    }

    /// Makes a call for a thread that is in its own code.
    pub fn call(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> Did {
        let held = self.system.machine.threads.get_mut(&tid).expect("a thread");
        assert_eq!(held.place, Place::Code, "thread {tid} makes no calls now");
        held.place = Place::Call;
        let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
        let [rdi, rsi, rdx, r10, r8, r9] = [at(0), at(1), at(2), at(3), at(4), at(5)];
        let mut registers =
            Registers { rdi, rsi, rdx, r10, r8, r9, rax: number.into(), ..Registers::default() };
        // Registers that its handler has are not in the state.
        registers.put(&mut held.state);
        Registers::default().put(&mut held.state);
        let next = self.system.call(tid, &mut registers);
        if next == Next::Answer {
            self.system.machine.answer(tid, &registers);
            return Did::Value(registers.rax as i64);
        }
        self.outcome(tid)
    }

    /// Outcome of the last call of a thread.
    pub fn outcome(&self, tid: Tid) -> Did {
        match self.system.machine.threads.get(&tid) {
            Some(held) if held.place == Place::Call => Did::Waits,
            Some(held) if self.system.threads.contains_key(&tid) => {
                Did::Value(held.state.registers[register::RAX] as i64)
            }
            _ => Did::Gone,
        }
    }

    /// Makes a call that gives a number that is no error.
    pub fn good(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> u64 {
        match self.call(tid, number, arguments) {
            Did::Value(value) if value >= 0 => value as u64,
            other => panic!("call {number} of {tid}: {other:?}"),
        }
    }

    /// Makes a call that fails.
    pub fn bad(&mut self, tid: Tid, number: u32, arguments: &[u64]) -> Errno {
        match self.call(tid, number, arguments) {
            Did::Value(value) if (-4095..0).contains(&value) => Errno(-value as u16),
            other => panic!("call {number} of {tid}: {other:?}"),
        }
    }

    /// Writes bytes, with a zero behind them, to the data of a process. The address follows from the place.
    pub fn put(&mut self, tid: Tid, place: u64, bytes: &[u8]) -> u64 {
        let all = [bytes, b"\0"].concat();
        self.system.write(tid, DATA + place, &all).expect("memory of the process");
        DATA + place
    }

    /// Writes words to the data of a process.
    pub fn put_words(&mut self, tid: Tid, place: u64, words: &[u64]) -> u64 {
        self.system.write_list(tid, DATA + place, words).expect("memory of the process");
        DATA + place
    }

    /// Lets time pass.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.system.machine.now += nanoseconds;
        if self.system.machine.wake.is_some_and(|at| at <= self.system.machine.now) {
            self.system.time();
        }
    }

    /// Threads that are in their own code.
    pub fn running(&self) -> Vec<Tid> {
        let threads = &self.system.machine.threads;
        threads.iter().filter(|(_, held)| held.place == Place::Code).map(|(tid, _)| *tid).collect()
    }

    /// Panics where tables contradict each other.
    pub fn check(&self) {
        let System { processes, threads, machine, .. } = &self.system;
        for (tid, thread) in threads.iter() {
            let process = processes.get(&thread.process).expect("a thread has a process");
            assert!(process.threads.contains(tid), "thread {tid} is not in its process");
            assert!(machine.threads.contains_key(tid), "thread {tid} is not in the machine");
        }
        for (pid, process) in processes.iter() {
            assert!(process.threads.iter().all(|tid| threads.contains_key(tid)), "threads of {pid}");
            assert_eq!(process.threads.is_empty(), process.ended.is_some(), "process {pid}");
        }
        assert_eq!(self.held(), self.system.budget.used(), "bytes that are held, and bytes that are charged");
        assert_eq!(machine.threads.len(), threads.len(), "the machine has threads that nobody knows");
        assert_eq!(machine.spaces.len(), {
            let spaces = processes.values().filter(|process| process.ended.is_none());
            spaces.map(|process| process.room.borrow().space).collect::<BTreeSet<_>>().len()
        });
    }
}
