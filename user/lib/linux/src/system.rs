//! All processes of a sandbox: how calls are made, wait, and are made again, and how processes end.

use crate::budget::Budget;
use crate::calls;
use crate::calls::sockets::Sockets;
use crate::calls::timers::Known;
use crate::epoll::Watches;
use crate::errno::{ESRCH, Result};
use crate::frames::Bytes;
use crate::kept::Kept;
use crate::locks::{Locks, Owner};
use crate::machine::{Machine, Registers, Space, Tid};
use crate::memory::{END, Fault, FileNumber, Memory, Rights};
use crate::open::{Object, Open, PATHS_MAX};
use crate::pipe::{self, End};
use crate::process::{Blocked, Event, Process, Room, Shared, Status, Thread};
use crate::sessions::Loss;
use crate::signal::Cause;
use crate::store::Store;
use crate::table::Table;
use crate::terminals::Terminals;
use crate::timer::Timers;
use crate::trace::Trace;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{SIGCHLD, SIGKILL};
use vfs::{FileSystem, Inode};

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
    next_ring: u64,
    /// Bytes of pipes.
    pub pipes: Budget,
    /// Bytes of paths of what is open.
    pub paths: Budget,
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
        System {
            machine,
            store,
            processes: Table::new(),
            threads: Table::new(),
            terminals: Terminals::default(),
            current: None,
            registers: Registers::default(),
            events: Vec::new(),
            spare: (Vec::new(), Vec::new()),
            losses: Vec::new(),
            timeouts: BTreeSet::new(),
            late_at: None,
            times_changed: false,
            unknown: BTreeSet::new(),
            next: 0,
            next_ring: 0,
            pipes: Budget::new(pipe::ALL_MAX),
            paths: Budget::new(PATHS_MAX),
            watches: Watches::default(),
            timers: Timers::default(),
            known: Known::default(),
            locks: Locks::default(),
            waiting: BTreeMap::new(),
            sockets: Sockets::default(),
            kept: Kept::default(),
            threads_max,
            ended: None,
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
    pub fn write_words(&mut self, tid: Tid, address: u64, words: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(tid, address, &bytes)
    }

    /// A call of a thread. The result is in its registers if it is to be answered.
    pub fn call(&mut self, tid: Tid, registers: &mut Registers) -> Next {
        let next = match self.attempt(tid, registers) {
            Some(true) if self.has_signal(tid) => {
                self.complete(tid, *registers);
                Next::Nothing
            }
            Some(true) => {
                self.restore_mask(tid);
                Next::Answer
            }
            Some(false) => {
                self.interrupt_wait(tid);
                Next::Nothing
            }
            None => Next::Nothing,
        };
        self.look_at_files();
        let is_quiet = self.events.is_empty() && self.losses.is_empty();
        if is_quiet && !self.times_changed && self.known.lists == 0 {
            return next;
        }
        // A signal that comes now is taken below: the registers of the thread are here, and not where a handler of a signal would find them.
        let before = self.current.replace(tid);
        self.settle();
        self.current = before;
        // If it waits, nobody else will tell it.
        if self.threads.get(&tid).is_some_and(|thread| thread.blocked.is_some()) {
            self.interrupt_wait(tid);
        }
        if next == Next::Answer && self.has_signal(tid) {
            self.complete(tid, *registers);
            return Next::Nothing;
        }
        // Events meanwhile may have ended the thread.
        if next == Next::Answer && !self.threads.contains_key(&tid) { Next::Nothing } else { next }
    }

    /// Makes a call. Says whether it is done; nothing if its thread is gone.
    fn attempt(&mut self, tid: Tid, registers: &mut Registers) -> Option<bool> {
        self.store.volume.begin();
        self.store.view.borrow_mut().own = self.pid(tid).ok()?;
        let before = self.current.replace(tid);
        self.registers = *registers;
        let outcome = calls::run(self, tid, registers);
        self.current = before;
        match outcome {
            Ok(Outcome::Value(value)) => registers.rax = value,
            Err(error) => registers.rax = error.result(),
            Ok(Outcome::Gone) => return None,
            Ok(Outcome::Wait(on, until)) => {
                let thread = self.threads.get_mut(&tid)?;
                let bits = core::mem::replace(&mut thread.bits, u32::MAX);
                thread.blocked = Some(Blocked { registers: *registers, on, until, bits });
                thread.until = Some(until);
                if let Some(until) = until {
                    self.timeouts.insert((until, tid));
                    self.times_changed = true;
                }
                return Some(false);
            }
        }
        let thread = self.threads.get_mut(&tid)?;
        thread.forget_call();
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
    fn stands_still(&self, tid: Tid) -> bool {
        let process = self.threads.get(&tid).and_then(|thread| self.processes.get(&thread.process));
        process.is_some_and(|process| process.stopped.is_some())
    }

    /// Makes a call again whose thread waits.
    fn again(&mut self, tid: Tid) {
        if self.stands_still(tid) {
            return;
        }
        let Some(Blocked { mut registers, .. }) = self.unblock(tid) else { return };
        match self.attempt(tid, &mut registers) {
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
        while self.tell_loss() || !self.events.is_empty() {
            let (spare, mut woken) = core::mem::take(&mut self.spare);
            let mut events = core::mem::replace(&mut self.events, spare);
            events.sort_unstable();
            events.dedup();
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
            for tid in woken.drain(..) {
                self.again(tid);
            }
            events.clear();
            self.spare = (events, woken);
            self.look_at_files();
            self.look_at_signals();
        }
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
                let _ = self.store.write_late(file);
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

    /// A thread accesses a page that it has not. The frame to map, and what may be done there; an error has to become an [`System::exception`].
    pub fn fault(
        &mut self,
        tid: Tid,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(crate::frames::Frame, Rights), Fault> {
        self.store.volume.begin();
        let room = self.room(tid).map_err(|_| Fault::Nothing)?;
        self.store.page(&mut room.borrow_mut().memory, address, wanted)
    }

    /// Closes what one descriptor has led to.
    pub fn close(&mut self, open: Rc<Open>) {
        let owner = calls::locks::owner_of(&open);
        let Ok(open) = Rc::try_unwrap(open) else { return };
        self.forget_locks(owner);
        self.forget_unopened(&open.object);
        self.forget_watches(&open.object);
        self.noticed_close(&open);
        match open.object {
            Object::File { inode, .. } | Object::Directory { inode, .. } => {
                let _ = self.store.write_late(inode);
                let _ = self.store.volume.close(inode);
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

    /// A thread ends. With the last one its process does.
    pub fn end_thread(&mut self, tid: Tid, status: Status) {
        let Ok(pid) = self.pid(tid) else { return };
        let count = self.processes.get(&pid).map_or(0, |process| process.threads.len());
        if count <= 1 {
            return self.end_process(pid, status);
        }
        self.trace_end(&[tid], status);
        self.leave(tid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.retain(|thread| *thread != tid);
        }
        self.machine.end_thread(tid);
        self.threads.remove(&tid);
    }

    /// Words in memory that others look at, as a thread leaves them.
    pub(crate) fn leave(&mut self, tid: Tid) {
        self.unblock(tid);
        self.give_up_opening(tid);
        self.leave_locks(tid);
        let clear = self.threads.get(&tid).map_or(0, |thread| thread.clear);
        if clear != 0 && self.write(tid, clear, &[0; 4]).is_ok() {
            let _ = self.wake_at(tid, clear, 1);
        }
        if let Some(maker) = self.threads.get_mut(&tid).and_then(|thread| thread.vfork.take()) {
            self.tell(Event::Vfork(maker));
        }
        // Nobody tells a thread that is gone.
        for thread in self.threads.values_mut().filter(|thread| thread.vfork == Some(tid)) {
            thread.vfork = None;
        }
        let used = self.machine.used(tid);
        if let Ok(process) = self.process(tid) {
            process.used[0] += used;
        }
    }

    /// A process ends, with all of its threads.
    pub fn end_process(&mut self, pid: Tid, status: Status) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.ended.is_some() {
            return;
        }
        process.ended = Some(status);
        let threads = core::mem::take(&mut process.threads);
        self.trace_end(&threads, status);
        for &tid in &threads {
            self.leave(tid);
            self.machine.end_thread(tid);
            self.threads.remove(&tid);
        }
        self.give_memory_back(pid);
        let nowhere = Room { space: Space(0), memory: Memory::default() };
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.room = Rc::new(RefCell::new(nowhere));
        self.let_mapped_files_go();
        let Some(process) = self.processes.get_mut(&pid) else { return };
        // Children that nobody waits for take little.
        (process.arguments, process.program, process.directory) = Default::default();
        process.pending = Default::default();
        let descriptors = process.descriptors.take_all();
        let (parent, group) = (process.parent, process.group);
        process.alarm.0 = None;
        self.times_changed = true;
        for descriptor in descriptors {
            self.close(descriptor.open);
        }
        self.end_session(pid);
        self.forget_locks(Owner::Process(pid));
        self.store.view.borrow_mut().processes.remove(&pid);
        self.process_ended(pid);
        if pid == 1 {
            return self.end_all(status);
        }
        self.leave_children(pid);
        self.tell_end(pid, status);
        self.orphan_by(pid, parent, group);
    }

    /// Tells the parent of a process that it has ended, which is forgotten if its parent does not care.
    pub(crate) fn tell_end(&mut self, pid: Tid, status: Status) {
        let Some(process) = self.processes.get(&pid) else { return };
        let (parent, signal) = (process.parent, process.exit_signal);
        let ignores = self.processes.get(&parent).is_none_or(|parent| {
            let action = parent.actions[SIGCHLD as usize - 1];
            action.handler == 1 || action.has(linux_raw_sys::general::SA_NOCLDWAIT)
        });
        if ignores {
            self.reap(pid);
        }
        if signal != 0 {
            let (code, value) = status.told();
            let _ = self.send(parent, signal, Cause { code, sender: (pid, 0), value: value.into() });
        }
        self.tell(Event::Child(parent));
    }

    /// The first process has ended, so all do.
    fn end_all(&mut self, status: Status) {
        self.ended = Some(status);
        let all: Vec<Tid> = self.processes.keys().copied().filter(|pid| *pid != 1).collect();
        for pid in all {
            self.end_process(pid, Status::killed(SIGKILL));
        }
        for file in self.store.written_files() {
            let _ = self.store.write_back_all(file);
        }
    }

    /// Gives back memory and address space of a process, unless its parent has them, too.
    pub fn give_memory_back(&mut self, pid: Tid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if Rc::strong_count(&process.room) > 1 {
            return;
        }
        let mut room = process.room.borrow_mut();
        self.machine.end_space(room.space);
        let written = room.memory.shared_files(0..END);
        room.memory.clear(&mut self.store.frames);
        drop(room);
        for file in written {
            let _ = self.store.write_back_all(Inode(file.0));
        }
    }

    /// Closes files of which nothing is mapped any more, if they are many. All memories are those of processes when it is called.
    pub fn let_mapped_files_go(&mut self) {
        if !self.store.has_many_mapped() {
            return;
        }
        let rooms = self.processes.values().map(|process| &process.room);
        let used: BTreeSet<FileNumber> = rooms.flat_map(|room| room.borrow().memory.files()).collect();
        self.store.keep_mapped(&used);
    }

    /// A process is forgotten. What it and its children have used is its parent's.
    pub fn reap(&mut self, pid: Tid) {
        let Some(process) = self.processes.remove(&pid) else { return };
        self.forget_pidfd(pid);
        if let Some(parent) = self.processes.get_mut(&process.parent) {
            parent.used[1] += process.used[0] + process.used[1];
        }
    }

    /// Ends a call with registers: the thread goes on, or a signal comes first.
    pub fn complete(&mut self, tid: Tid, registers: Registers) {
        if self.has_signal(tid) {
            self.handle(tid, registers);
        } else {
            self.restore_mask(tid);
            self.machine.answer(tid, &registers);
        }
    }

    /// A thread blocks again what it blocked before a call.
    pub fn restore_mask(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && let Some(mask) = thread.mask_before.take()
        {
            thread.mask = mask;
        }
    }
}
