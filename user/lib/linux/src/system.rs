//! All processes of a sandbox: how calls are made, wait, and are made again. How processes end is in [`ending`](crate::ending).

use crate::budget::Budget;
use crate::calls;
use crate::calls::sockets::Sockets;
use crate::calls::timers::Known;
use crate::epoll::Watches;
use crate::errno::{ENOMEM, ESRCH, Result};
use crate::frames::Bytes;
use crate::kept::Kept;
use crate::locks::Locks;
use crate::machine::{Machine, Registers, Tid};
use crate::open::{Object, Open};
use crate::pipe::End;
use crate::process::{Blocked, EVENTS_FREE, Event, Process, Shared, Status, Thread};
use crate::sessions::Loss;
use crate::signal::{Cause, Frame};
use crate::store::Store;
use crate::table::Table;
use crate::terminals::Terminals;
use crate::timer::Timers;
use crate::trace::Trace;
use abi::ThreadState;
use abi::state::register;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;
use vfs::FileSystem;

/// Processes and threads of a sandbox.
#[derive(Debug)]
pub struct System<M, B, F> {
    /// The machine below.
    pub machine: M,
    /// Frames and files.
    pub store: Store<B, F>,
    /// Processes, by the numbers of their first threads.
    pub processes: Table<Process>,
    /// Threads.
    pub threads: Table<Thread>,
    /// Whether a call is being made: it may hold what its process has open, which nobody closes meanwhile.
    pub(crate) is_making: bool,
    /// Terminals.
    pub terminals: Terminals,
    /// The thread whose call is made.
    pub current: Option<Tid>,
    /// Registers with which it was made.
    pub registers: Registers,
    /// Events since calls were made again last.
    events: Vec<Event>,
    /// Room for events and threads while calls are made again: no memory is asked for then.
    spare: (Vec<Event>, Vec<Tid>),
    /// Processes that are to hear of the loss of a terminal.
    pub(crate) losses: Vec<Loss>,
    /// Room for the state of a thread.
    pub(crate) spare_state: Option<Box<ThreadState>>,
    /// Room for a frame of a handler, which is kept: see [`Frame`].
    pub(crate) spare_frame: Option<Box<Frame>>,
    /// Times at which threads wait no longer.
    pub timeouts: BTreeSet<(u64, Tid)>,
    /// When files get what was written to them, if there is something.
    pub(crate) late_at: Option<u64>,
    /// Whether the time for which the machine was asked to wake this may be another one now.
    pub(crate) times_changed: bool,
    /// Calls that are not there, each told once.
    pub unknown: BTreeSet<u64>,
    /// Number that the next thread gets.
    pub(crate) next: Tid,
    /// Number that the next pipe, or the like, gets.
    pub(crate) next_ring: u64,
    /// Turns of waits that were given so far.
    pub(crate) turns: u64,
    /// Memory that processes make this program keep: that of [`Frames`](crate::frames::Frames), too.
    pub budget: Budget,
    /// Entries of lists of open files.
    pub watches: Watches,
    /// Timers behind descriptors.
    pub timers: Timers,
    /// Signals that there were, for whoever reads them.
    pub known: Known,
    /// Locks of files.
    pub locks: Locks,
    /// Processes of whose locks threads wait. An entry counts only while its thread waits.
    pub waiting: BTreeMap<Tid, Tid>,
    /// Sockets.
    pub sockets: Sockets,
    /// Tables of calls that few programs make.
    pub kept: Kept,
    /// Most processes and threads.
    pub threads_max: usize,
    /// How the first process has ended.
    pub ended: Option<Status>,
    /// Whether somebody is being told of the end of a process.
    pub(crate) tells_end: bool,
    /// Whether a thread has given up calls, or one that it comes from: then each is looked at before it is made.
    pub(crate) restricts: bool,
    /// Lines and counts of all calls, if somebody wants them.
    pub trace: Option<Box<Trace>>,
}

/// Outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// It is done, with this result.
    Value(u64),
    /// It is made again when something has happened, or at a time.
    Wait(Vec<Event>, Option<u64>),
    /// The thread is gone, or goes on elsewhere.
    Gone,
    /// It is done, and leaves [`System::registers`] to the thread.
    Registers,
}

impl From<u64> for Outcome {
    fn from(value: u64) -> Outcome {
        Outcome::Value(value)
    }
}

/// Result of a call.
pub type Answer = Result<Outcome>;

/// Done, without a value.
pub const DONE: Answer = Ok(Outcome::Value(0));

/// Duty of the caller of [`System::call`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Answers the call with its registers.
    Answer,
    /// Nothing: the thread waits, goes on elsewhere, or is gone.
    Nothing,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// No processes.
    pub fn new(machine: M, store: Store<B, F>, threads_max: usize) -> System<M, B, F> {
        let budget = store.frames.budget.clone();
        let began = machine.date().saturating_sub(machine.now());
        System {
            machine,
            store,
            processes: Table::new(),
            threads: Table::new(),
            is_making: false,
            terminals: Terminals::default(),
            current: None,
            registers: Registers::default(),
            events: Vec::new(),
            spare: (Vec::new(), Vec::new()),
            losses: Vec::new(),
            spare_state: None,
            spare_frame: None,
            timeouts: BTreeSet::new(),
            late_at: None,
            times_changed: false,
            unknown: BTreeSet::new(),
            next: 0,
            next_ring: 0,
            turns: 0,
            watches: Watches::default(),
            timers: Timers::default(),
            known: Known::default(),
            locks: Locks::default(),
            waiting: BTreeMap::new(),
            sockets: Sockets::within(&budget),
            budget,
            kept: Kept { began, ..Kept::default() },
            threads_max,
            ended: None,
            tells_end: false,
            restricts: false,
            trace: None,
        }
    }

    /// A number for a thread.
    pub fn number(&mut self) -> Tid {
        loop {
            self.next = if self.next >= crate::process::NUMBER_MAX { 2 } else { self.next + 1 };
            let used = self.threads.contains_key(&self.next) || self.processes.contains_key(&self.next);
            let has_it = |process: &Process| process.group == self.next || process.session == self.next;
            let is_group = self.processes.values().any(has_it) || self.terminals.know(self.next);
            if !used && !is_group {
                return self.next;
            }
        }
    }

    /// A number for a pipe, or something like that.
    pub fn ring(&mut self) -> u64 {
        self.next_ring += 1;
        self.next_ring
    }

    /// A thread.
    pub fn thread(&mut self, tid: Tid) -> Result<&mut Thread> {
        self.threads.get_mut(&tid).ok_or(ESRCH)
    }

    /// Number of a thread's process.
    pub fn pid(&self, tid: Tid) -> Result<Tid> {
        self.threads.get(&tid).map(|thread| thread.process).ok_or(ESRCH)
    }

    /// A thread's process.
    pub fn process(&mut self, tid: Tid) -> Result<&mut Process> {
        let pid = self.pid(tid)?;
        self.processes.get_mut(&pid).ok_or(ESRCH)
    }

    /// Memory of a thread.
    pub fn room(&mut self, tid: Tid) -> Result<Shared> {
        self.process(tid).map(|process| process.room.clone())
    }

    /// Reads memory of a thread.
    pub fn read(&mut self, tid: Tid, address: u64, to: &mut [u8]) -> Result<()> {
        let room = self.room(tid)?;
        self.store.read(&mut room.borrow_mut().memory, address, to)
    }

    /// Writes memory of a thread.
    pub fn write(&mut self, tid: Tid, address: u64, from: &[u8]) -> Result<()> {
        let room = self.room(tid)?;
        self.store.write(&mut room.borrow_mut().memory, address, from)
    }

    /// Reads words of a thread.
    pub fn words<const N: usize>(&mut self, tid: Tid, address: u64) -> Result<[u64; N]> {
        let room = self.room(tid)?;
        self.store.words(&mut room.borrow_mut().memory, address)
    }

    /// Writes words to a thread.
    pub fn write_words<const N: usize>(&mut self, tid: Tid, address: u64, words: &[u64; N]) -> Result<()> {
        self.write(tid, address, words.map(u64::to_le_bytes).as_flattened())
    }

    /// Writes a list of words to a thread.
    pub fn write_list(&mut self, tid: Tid, address: u64, words: &[u64]) -> Result<()> {
        let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
        self.write(tid, address, bytes.as_flattened())
    }

    /// A call of a thread. The result is in its registers if it is to be answered.
    pub fn call(&mut self, tid: Tid, registers: &mut Registers) -> Next {
        // A number has 32 bits, whatever stands in front of them.
        let number = registers.rax as u32;
        if let Some(value) = self.says_who(tid, number) {
            registers.rax = value;
            return Next::Answer;
        }
        registers.rax = number.into();
        self.do_call(tid, registers)
    }

    /// A call with a negative number, which the machine takes for an exception of the thread. As in Linux there is none such, and the thread goes on behind it, unless a
    /// filter has something else to say. If that ends it, or its process, others may have waited for it.
    pub fn negative_call(&mut self, tid: Tid, number: u32) {
        let mut state = self.room_for_state();
        if self.machine.state(tid, &mut state) {
            let mut registers = Registers { rax: number.into(), ..Registers::of(&state) };
            // It is told of as all calls that are not there, and never waits.
            if self.attempt(tid, &mut registers) == Some(true) {
                state.registers[register::RAX] = registers.rax;
                let _ = self.machine.go_on(tid, &state);
            }
        }
        self.spare_state = Some(state);
        self.after_fault(tid);
        self.settle();
    }

    /// Makes a call of any kind.
    fn do_call(&mut self, tid: Tid, registers: &mut Registers) -> Next {
        let next = match self.attempt(tid, registers) {
            Some(true) if self.has_signal(tid) => self.end_with_signal(tid, registers),
            // Signals that were blocked for the time of the call come behind it.
            Some(true) if self.unblocks_signal(tid) => self.end_with_signal(tid, registers),
            Some(true) => Next::Answer,
            Some(false) => {
                self.interrupt_wait(tid);
                Next::Nothing
            }
            // One that goes on elsewhere already takes a signal there that has come before.
            None => {
                self.notify_if_needed(tid);
                Next::Nothing
            }
        };
        self.look_at_files();
        let is_quiet = self.events.is_empty() && self.losses.is_empty() && !self.sockets.is_due.get();
        if is_quiet && !self.times_changed && self.known.lists == 0 {
            return next;
        }
        // A signal that comes now is taken below: the registers of the thread are here, and not where a handler of a signal would find them.
        let before = self.current.replace(tid);
        self.settle();
        self.current = before;
        // If it waits, or goes on already, nobody else will tell it.
        if next == Next::Nothing {
            self.notify_if_needed(tid);
        }
        if next == Next::Answer && self.has_signal(tid) {
            self.complete(tid, *registers);
            return Next::Nothing;
        }
        // Events meanwhile may have ended the thread.
        if next == Next::Answer && !self.threads.contains_key(&tid) { Next::Nothing } else { next }
    }

    /// Makes a call. Says whether it is done; nothing if its thread is gone.
    pub(crate) fn attempt(&mut self, tid: Tid, registers: &mut Registers) -> Option<bool> {
        self.store.volume.begin();
        let pid = self.pid(tid).ok()?;
        {
            let mut view = self.store.view.borrow_mut();
            (view.own, view.thread) = (pid, tid);
        }
        self.budget.serve(pid);
        let before = self.current.replace(tid);
        self.registers = *registers;
        let was_making = core::mem::replace(&mut self.is_making, true);
        let outcome = calls::run(self, tid, registers);
        (self.current, self.is_making) = (before, was_making);
        self.take_cut_pages();
        match outcome {
            Ok(Outcome::Value(value)) => registers.rax = value,
            Err(error) => registers.rax = error.result(),
            Ok(Outcome::Gone) => return None,
            Ok(Outcome::Registers) => *registers = self.registers,
            Ok(Outcome::Wait(on, until)) => {
                let thread = self.threads.get_mut(&tid)?;
                let bits = core::mem::replace(&mut thread.bits, u32::MAX);
                let mut share = None;
                if on.len() > EVENTS_FREE {
                    share = self.budget.take(on.capacity() * size_of::<Event>());
                    if share.is_none() {
                        registers.rax = ENOMEM.result();
                        thread.forget_call();
                        return Some(true);
                    }
                }
                if thread.until.is_none() {
                    self.turns += 1;
                    thread.turn = self.turns;
                }
                thread.blocked = Some(Blocked { registers: *registers, on, until, bits, share });
                thread.until = Some(until);
                if let Some(until) = until {
                    self.timeouts.insert((until, tid));
                    self.times_changed = true;
                }
                return Some(false);
            }
        }
        self.threads.get_mut(&tid)?.end_call();
        Some(true)
    }

    /// Takes a thread out of its wait, with the registers of its call.
    pub fn unblock(&mut self, tid: Tid) -> Option<Blocked> {
        let blocked = self.threads.get_mut(&tid)?.blocked.take()?;
        if let Some(until) = blocked.until {
            self.timeouts.remove(&(until, tid));
            self.times_changed = true;
        }
        Some(blocked)
    }

    /// Whether the process of a thread stands still. Its calls are not made again before it goes on.
    pub(crate) fn stands_still(&self, tid: Tid) -> bool {
        let process = self.threads.get(&tid).and_then(|thread| self.processes.get(&thread.process));
        process.is_some_and(|process| process.stopped.is_some())
    }

    /// Makes a call again whose thread waits.
    fn again(&mut self, tid: Tid) {
        if self.stands_still(tid) {
            return;
        }
        let Some(Blocked { mut registers, .. }) = self.unblock(tid) else { return };
        let has_held = self.threads.get(&tid).is_some_and(|thread| !thread.held.is_empty());
        let made = if has_held {
            self.attempt_with_held(tid, &mut registers)
        } else {
            self.attempt(tid, &mut registers)
        };
        match made {
            Some(true) => self.complete(tid, registers),
            Some(false) => self.interrupt_wait(tid),
            None => {}
        }
    }

    /// Says that something has happened.
    pub fn tell(&mut self, event: Event) {
        if self.events.last() != Some(&event) {
            self.events.push(event);
        }
    }

    /// Makes calls again that wait for what has happened, until nothing more happens.
    pub fn settle(&mut self) {
        // A call that is made again may wake others, but each does something first.
        self.look_at_signals();
        while self.hear_network() || self.tell_loss() || !self.events.is_empty() {
            let (spare, mut woken) = core::mem::take(&mut self.spare);
            let mut events = core::mem::replace(&mut self.events, spare);
            if events.len() > 1 {
                events.sort_unstable();
                events.dedup();
            }
            let has = |event: &Event| match events.as_slice() {
                [one] => one == event,
                all => all.binary_search(event).is_ok(),
            };
            let waits = |thread: &Thread| {
                let goes_on = || has(&Event::Continued(thread.process));
                let has_happened = |blocked: &Blocked| blocked.on.iter().any(has);
                thread.blocked.as_ref().is_some_and(|blocked| has_happened(blocked) || goes_on())
            };
            woken.extend(self.threads.iter().filter(|(_, thread)| waits(thread)).map(|(tid, _)| *tid));
            if woken.len() > 1 {
                woken.sort_unstable_by_key(|tid| self.threads.get(tid).map(|thread| thread.turn));
            }
            for tid in woken.drain(..) {
                self.again(tid);
            }
            events.clear();
            self.spare = (events, woken);
            self.look_at_files();
            self.look_at_signals();
        }
        self.take_cut_pages();
        if !core::mem::take(&mut self.times_changed) {
            return;
        }
        let next = self.timeouts.first().map(|(at, _)| *at);
        let alarms = self.processes.values().filter_map(|process| process.alarm.0);
        let next = alarms.chain(next).chain(self.late_at).chain(self.timers.next()).min();
        self.machine.wake_at(next);
    }

    /// Some time has come.
    pub fn time(&mut self) {
        self.store.volume.begin();
        let now = self.machine.now();
        self.times_changed = true;
        // Each once: a call that waits until a time that is over comes again at the next time.
        let due: Vec<(u64, Tid)> = self.timeouts.iter().take_while(|(at, _)| *at <= now).copied().collect();
        for (at, tid) in due {
            self.timeouts.remove(&(at, tid));
            self.again(tid);
        }
        if self.late_at.is_some_and(|at| at <= now) {
            self.late_at = None;
            for file in self.store.late_files() {
                if self.store.write_late(file).is_err() {
                    self.late_at = Some(now + calls::files::LATE_NS);
                }
            }
        }
        let due: Vec<Tid> = self
            .processes
            .iter()
            .filter(|(_, process)| process.alarm.0.is_some_and(|at| at <= now))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in due {
            if let Some(process) = self.processes.get_mut(&pid) {
                let (_, again) = process.alarm;
                process.alarm.0 = (again > 0).then(|| now.saturating_add(again));
            }
            let _ = self.send(pid, linux_raw_sys::general::SIGALRM, Cause::KERNEL);
        }
        self.expire_timers();
        self.settle();
    }

    /// Closes what one descriptor has led to.
    pub fn close(&mut self, open: Rc<Open>) {
        let (owner, address) = (calls::locks::owner_of(&open), Rc::as_ptr(&open) as usize);
        let open = match Rc::try_unwrap(open) {
            Ok(open) => open,
            Err(open) => return self.left_open(open),
        };
        self.forget_locks(owner);
        self.forget_unopened(&open.object);
        self.forget_watches(address, &open.object);
        self.noticed_close(&open);
        match open.object {
            Object::File { inode, .. } | Object::Directory { inode, .. } => {
                let _ = self.store.write_late(inode);
                let _ = self.store.volume.close(inode);
                if self.store.has_lost_name(inode) {
                    self.let_removed_files_go();
                }
            }
            Object::Link(link) if Store::<B, F>::is_own(link.found.inode) => {
                let _ = self.store.volume.close(link.found.inode);
            }
            Object::Reader(ends) => {
                ends.pipe.borrow_mut().close(End::Read);
                self.happened(ends.number, u32::MAX);
            }
            Object::Writer(ends) => {
                ends.pipe.borrow_mut().close(End::Write);
                self.happened(ends.number, u32::MAX);
            }
            Object::Fifo(fifo) => self.close_fifo(&fifo),
            Object::Terminal { number, .. } => self.close_slave(number),
            Object::Master { number, .. } => self.close_master(number),
            Object::Socket(socket) => self.close_socket(&socket),
            Object::Inet(inet) => self.close_inet(&inet),
            Object::Netlink(socket) => self.close_netlink(&socket),
            Object::Timer(timer) => {
                self.timers.forget(timer.number);
                self.times_changed = true;
            }
            Object::Signals(_) => self.close_signals(),
            Object::Inotify(list) => self.close_inotify(&list),
            Object::Memory(file) => self.store.frames.leave_object(file.object),
            _ => {}
        }
    }

    /// Ends a call with registers: the thread goes on, or a signal comes first.
    pub fn complete(&mut self, tid: Tid, registers: Registers) {
        if self.has_signal(tid) || self.unblocks_signal(tid) {
            self.handle(tid, registers);
        } else {
            self.machine.answer(tid, &registers);
        }
    }

    /// A thread blocks again what it blocked before a call. Whether a signal waits that only the call has blocked.
    pub(crate) fn unblocks_signal(&mut self, tid: Tid) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let Some(mask) = thread.mask_before.take() else { return false };
        thread.mask = mask;
        self.has_signal(tid) && !self.stands_still(tid)
    }
}
