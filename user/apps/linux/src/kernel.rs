//! The machine below: processes are tasks, whose handler and pager this program is, and threads make foreign calls.

use crate::helpers::Timer;
use crate::telling::Telling;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Arguments;
use linux::calls::niceness::USUAL_SHARE;
use linux::errno::{EAGAIN, ENOMEM, Errno, Result};
use linux::machine::{Machine, Registers, Space, Tid};
use linux::marks::Marks;
use rt::random::Generator;
use rt::sys::abi::ThreadState;
use rt::sys::abi::call::RESUME_AS_IS;
use rt::sys::abi::state::{REGISTERS, register};
use rt::sys::extended::Extended;
use rt::sys::{self, TaskId, Timeout, Uid, foreign};
use rt::{eprintln, io, time};

/// Kernel memory of a process in frames, to begin with, and how much it gets more if that is not enough.
const QUOTA: u64 = 24;
/// See [`QUOTA`].
const QUOTA_MORE: u64 = 16;
/// Most kernel memory of a process, in frames: nodes of mappings and tables for some 2 GiB in small pages. 63 nodes are a frame, and two more are tables for 512 pages.
const QUOTA_MAX: u64 = (512 << 10) / 63 + 2 * 1024;

/// How much later than it says a time may come, in nanoseconds: Linux's slack for ordinary threads. Times that are close together come at once, and a process that
/// waits for a few microseconds at a time leaves some to others.
const SLACK_NS: u64 = 50_000;

/// Microseconds of a usual turn of a thread that computes, and of the shortest and the longest.
const SLICE_US: u64 = 10_000;
/// See [`SLICE_US`].
const SLICES_US: [u64; 2] = [100, 200_000];

#[derive(Clone, Copy, Debug)]
struct Thread {
    uid: Uid,
    space: Space,
    /// It never ran. Otherwise it runs, or waits for the answer to a call, a fault or an exception.
    is_new: bool,
    is_paused: bool,
}

/// The thread whose fault or exception is being dealt with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// There is none.
    Nobody,
    /// It stands still.
    Still(Uid),
    /// It is to go on with the registers that it has, together with the next wait.
    GoesOn(Uid),
}

/// The kernel, and what this program has there.
#[derive(Debug)]
pub struct Kernel {
    threads: BTreeMap<Tid, Thread>,
    numbers: BTreeMap<Uid, Tid>,
    quotas: BTreeMap<Space, u64>,
    own: Uid,
    priority: u8,
    timer: Timer,
    generator: Generator,
    extended: Extended,
    standing: Standing,
    /// Nanoseconds since 1970 when the machine began.
    zero: u64,
    /// Where it goes that is told of calls.
    pub telling: Telling,
    marks: Marks,
}

fn errno(error: sys::Error) -> Errno {
    match error {
        sys::Error::NoMemory => ENOMEM,
        _ => EAGAIN,
    }
}

impl Kernel {
    /// No processes. Threads have this priority.
    pub fn new(priority: u8, timer: Timer, generator: Generator, zero: u64) -> Kernel {
        let (own, telling) = (sys::myself(), Telling::Console);
        let (extended, marks) = (Extended::of_processor(), Marks::default());
        let standing = Standing::Nobody;
        let (threads, numbers, quotas) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Kernel {
            threads,
            numbers,
            quotas,
            own,
            priority,
            timer,
            generator,
            extended,
            standing,
            zero,
            telling,
            marks,
        }
    }

    /// A thread stands still in a fault or an exception, which is going to be dealt with.
    pub fn stands_still(&mut self, thread: Uid) {
        self.standing = Standing::Still(thread);
    }

    /// That was dealt with. Gives the thread back if it is to go on with the next wait, with the registers that it has; if not, it was answered, or stands still.
    pub fn goes_on(&mut self) -> Option<Uid> {
        match core::mem::replace(&mut self.standing, Standing::Nobody) {
            Standing::GoesOn(thread) => Some(thread),
            Standing::Still(_) | Standing::Nobody => None,
        }
    }

    /// Number of the thread that has sent a message.
    pub fn number(&self, uid: Uid) -> Option<Tid> {
        self.numbers.get(&uid).copied()
    }

    /// Gives a thread's process more kernel memory. Whether there is more.
    pub fn grow(&mut self, tid: Tid) -> bool {
        let space = self.threads.get(&tid).map(|thread| thread.space);
        space.is_some_and(|space| self.enlarge(space))
    }

    /// Gives a process more kernel memory. Whether there is more.
    fn enlarge(&mut self, space: Space) -> bool {
        let Some(quota) = self.quotas.get_mut(&space) else { return false };
        if *quota >= QUOTA_MAX || sys::task_set_quota(TaskId(space.0), *quota + QUOTA_MORE).is_err() {
            return false;
        }
        *quota += QUOTA_MORE;
        true
    }

    /// Writes down what the processor holds of the thread whose message came last, beside its general registers.
    fn save_extended(&self, thread: Uid, to: &mut ThreadState) -> bool {
        self.extended.save(to);
        if !self.extended.has_bases() {
            let Ok([.., base, _]) = sys::thread_registers(thread, 4) else { return false };
            to.fs_base = base;
        }
        true
    }

    /// Lets a thread go on that waits for an answer, as it is.
    pub fn resume(&self, tid: Tid) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        sys::send(thread.uid, RESUME_AS_IS, [0; 8], Timeout::ZERO).is_ok()
    }
}

impl Machine for Kernel {
    fn make_space(&mut self) -> Result<Space> {
        let task = sys::task_create(QUOTA, self.priority).map_err(errno)?;
        let space = Space(task.0);
        self.quotas.insert(space, QUOTA);
        Ok(space)
    }

    fn end_space(&mut self, space: Space) {
        if self.quotas.remove(&space).is_none() {
            return;
        }
        self.threads.retain(|_, thread| thread.space != space);
        self.numbers.retain(|_, tid| self.threads.contains_key(tid));
        let _ = sys::task_destroy(TaskId(space.0));
    }

    fn make_thread(&mut self, space: Space, tid: Tid) -> Result<()> {
        self.end_thread(tid);
        let (priority, own) = (self.priority, self.own);
        let make = || sys::thread_create(TaskId(space.0), priority, own, own);
        let mut made = make();
        while made == Err(sys::Error::NoMemory) && self.enlarge(space) {
            made = make();
        }
        let uid = made.map_err(errno)?;
        if let Err(error) = foreign::thread_redirect(uid, tid) {
            let _ = sys::thread_destroy(uid);
            return Err(errno(error));
        }
        self.threads.insert(tid, Thread { uid, space, is_new: true, is_paused: false });
        self.numbers.insert(uid, tid);
        Ok(())
    }

    fn end_thread(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.numbers.remove(&thread.uid);
            let _ = sys::thread_destroy(thread.uid);
        }
    }

    fn state(&mut self, tid: Tid, to: &mut ThreadState) -> bool {
        self.threads.get(&tid).is_some_and(|thread| sys::thread_get_state(thread.uid, to).is_ok())
    }

    fn state_in_call(&mut self, tid: Tid, to: &mut ThreadState) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        let Ok([ip, sp, flags, _]) = sys::thread_registers(thread.uid, 0) else { return false };
        to.registers = [0; REGISTERS];
        (to.registers[register::RIP], to.registers[register::RSP]) = (ip, sp);
        to.registers[register::RFLAGS] = flags;
        self.save_extended(thread.uid, to)
    }

    fn state_in_fault(&mut self, tid: Tid, to: &mut ThreadState) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        sys::thread_get_general(thread.uid, &mut to.registers).is_ok() && self.save_extended(thread.uid, to)
    }

    fn end_call(
        &mut self,
        tid: Tid,
        state: &ThreadState,
        registers: &mut Registers,
        is_whole: bool,
    ) -> Result<bool> {
        let thread = self.threads.get(&tid).ok_or(linux::errno::ESRCH)?;
        let all = &state.registers;
        let [ip, sp, flags] = [register::RIP, register::RSP, register::RFLAGS].map(|at| all[at]);
        // The others come with the answer, but for two that an instruction for calls overwrites, as the answer to it does.
        if is_whole && [all[register::RCX], all[register::R11]] != [ip, flags] {
            sys::thread_set_general(thread.uid, all).map_err(errno)?;
        } else {
            sys::thread_set_registers(thread.uid, 0, [ip, sp, flags, 0]).map_err(errno)?;
        }
        if is_whole && !self.extended.load_vectors(state) {
            return Err(linux::errno::EINVAL);
        }
        *registers = Registers::of(state);
        Ok(true)
    }

    fn go_on(&mut self, tid: Tid, state: &ThreadState) -> Result<()> {
        let thread = self.threads.get_mut(&tid).ok_or(linux::errno::ESRCH)?;
        sys::thread_set_state(thread.uid, state).map_err(errno)?;
        match core::mem::take(&mut thread.is_new) {
            true if thread.is_paused => Ok(()),
            true => sys::thread_resume(thread.uid).map_err(errno),
            false => sys::send(thread.uid, RESUME_AS_IS, [0; 8], Timeout::ZERO).map_err(errno),
        }
    }

    fn go_on_elsewhere(&mut self, tid: Tid, state: &ThreadState) -> Result<()> {
        let thread = self.threads.get(&tid).ok_or(linux::errno::ESRCH)?;
        sys::thread_set_general(thread.uid, &state.registers).map_err(errno)?;
        if self.standing == Standing::Still(thread.uid) {
            self.standing = Standing::GoesOn(thread.uid);
            return Ok(());
        }
        sys::send(thread.uid, RESUME_AS_IS, [0; 8], Timeout::ZERO).map_err(errno)
    }

    fn answer(&mut self, tid: Tid, registers: &Registers) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let _ = foreign::answer_later(thread.uid, registers);
    }

    fn answer_behind_others(&mut self, tid: Tid, registers: &Registers) {
        let Some(Thread { uid, is_paused, .. }) = self.threads.get(&tid).copied() else { return };
        // This program does the call on the thread's shuttle, which it gives back with the answer: the thread would go on at once. One that is stopped does not, and
        // comes behind all others of its priority when it is resumed.
        let is_stopped = !is_paused && sys::thread_stop(uid).is_ok();
        self.answer(tid, registers);
        if is_stopped {
            let _ = sys::thread_resume(uid);
        }
    }

    fn interrupt(&mut self, tid: Tid, to: &mut ThreadState) -> bool {
        let Some(thread) = self.threads.get(&tid).copied() else { return false };
        if sys::thread_stop(thread.uid).is_err() {
            return false;
        }
        // In the middle of a call its registers are those of the call, which is still to be taken.
        let stands_still = sys::thread_info(thread.uid).is_ok_and(|info| !info.is_in_call);
        let is_known = stands_still && self.state(tid, to);
        if !is_known && !thread.is_paused {
            let _ = sys::thread_resume(thread.uid);
        }
        is_known
    }

    fn return_from(&mut self, tid: Tid, state: &ThreadState) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let _ = sys::thread_set_general(thread.uid, &state.registers);
        if !thread.is_paused {
            let _ = sys::thread_resume(thread.uid);
        }
    }

    fn pause(&mut self, tid: Tid, is_paused: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.is_paused = is_paused;
        let _ = if is_paused { sys::thread_stop(thread.uid) } else { sys::thread_resume(thread.uid) };
    }

    fn set_share(&mut self, tid: Tid, share: u32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let slice = SLICE_US * u64::from(share) / u64::from(USUAL_SHARE);
        let slice = slice.clamp(SLICES_US[0], SLICES_US[1]);
        let _ = sys::thread_set_priority(thread.uid, self.priority, slice);
    }

    fn features(&self) -> u64 {
        // Abilities of every processor with 64 bits: x87, SSE and SSE2 among them.
        0x078b_fbff
    }

    fn now(&self) -> u64 {
        time::now_ns()
    }

    fn date(&self) -> u64 {
        self.zero.saturating_add(time::now_ns())
    }

    fn used(&self, tid: Tid) -> u64 {
        let info = self.threads.get(&tid).map(|thread| sys::thread_info(thread.uid));
        info.and_then(sys::Result::ok).map_or(0, |info| info.cpu_ns)
    }

    fn random(&mut self, to: &mut [u8]) {
        self.generator.fill(to);
    }

    fn print(&mut self, bytes: &[u8]) {
        // The console puts a carriage return in front of each new line itself.
        let mut left: Vec<u8> = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if *byte == b'\n' && left.last() == Some(&b'\r') {
                left.pop();
            }
            left.push(*byte);
        }
        io::write(&self.marks.printed(&left));
    }

    fn log(&mut self, text: Arguments) {
        let text: String = alloc::fmt::format(text);
        eprintln!("linux: {text}");
    }

    fn trace(&mut self, text: &[u8]) {
        self.telling.tell(text);
    }

    fn wake_at(&mut self, at: Option<u64>) {
        self.timer.set(at.map(|at| at.saturating_add(SLACK_NS)));
    }
}
