//! How signals arrive: what becomes of each, and how a handler begins and returns.

use crate::again::{NOT_MADE_AGAIN, is_made_again, may_be_made_again};
use crate::errno::{EAGAIN, EFAULT, EINVAL, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::process::{Event, SIGNALS, Status};
use crate::sessions::Loss;
use crate::signal::{self, Action, Cause, Frame, Set, Signal, Usual};
use crate::system::{Next, System};
use abi::ThreadState;
use abi::state::register;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linux_raw_sys::general::{self, SIGCHLD, SIGCONT, SIGKILL, SIGSEGV, SIGSTOP};
use vfs::FileSystem;

/// Effect of the next signal of a thread.
#[derive(Debug)]
enum Effect {
    /// There is none.
    Nothing,
    /// The process is gone, or ends when what goes on now is over.
    Ended,
    /// A handler is to begin.
    Handler(Signal, Cause, Action),
}

/// Where a thread is when a handler begins.
#[derive(Debug)]
enum Place {
    /// It waits for the end of a call, whose registers these are; the call may be made again, if this is its number.
    Call(Registers, Option<u64>),
    /// It stands still after an exception: address, error code and vector.
    Exception([u64; 3]),
    /// It returns from another handler, and has other vector registers than it had there.
    Handler,
    /// It was interrupted in its own code.
    Code,
}

/// Bytes of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;

/// Signals that stop a process, if it says nothing of them.
const STOPPING: [Signal; 4] = [SIGSTOP, general::SIGTSTP, general::SIGTTIN, general::SIGTTOU];

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Whether a signal waits that a thread does not block.
    pub fn has_signal(&self, tid: Tid) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        let process = self.processes.get(&thread.process).map_or(Set(0), |process| process.pending.set());
        (process.0 | thread.pending.set().0) & !thread.mask.0 != 0
    }

    /// Sends a signal to a process.
    pub fn send(&mut self, pid: Tid, signal: Signal, cause: Cause) -> Result<()> {
        if !self.processes.contains_key(&pid) {
            return Err(ESRCH);
        }
        if !self.forget_opposite(pid, signal) {
            return Ok(());
        }
        let process = self.processes.get(&pid).ok_or(ESRCH)?;
        let is_taken = |tid: &Tid| self.threads.get(tid).is_some_and(|thread| !thread.mask.has(signal));
        let taker = process.threads.iter().copied().find(is_taken);
        let sent = self.send_by(pid, signal, cause, taker, false);
        self.take_if_continued(pid, signal);
        sent
    }

    /// A process that goes on takes what has come while it stood still, together with the signal that lets it.
    fn take_if_continued(&mut self, pid: Tid, signal: Signal) {
        if signal != SIGCONT {
            return;
        }
        let threads = self.processes.get(&pid).map(|process| process.threads.clone());
        for tid in threads.unwrap_or_default() {
            self.notify_if_needed(tid);
        }
    }

    /// A signal that lets a process go on takes back those that stop it, and the other way round, whoever blocks them. Whether the process has not ended.
    fn forget_opposite(&mut self, pid: Tid, signal: Signal) -> bool {
        let is_there = |system: &Self| system.processes.get(&pid).is_some_and(|found| found.ended.is_none());
        if signal == SIGCONT && is_there(self) {
            STOPPING.into_iter().for_each(|stopping| self.forget_signal(pid, stopping));
            self.let_go_on(pid);
        } else if STOPPING.contains(&signal) {
            self.forget_signal(pid, SIGCONT);
        }
        is_there(self)
    }

    /// A signal does not wait any more, for a process or a thread of it.
    pub(crate) fn forget_signal(&mut self, pid: Tid, signal: Signal) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.pending.forget(signal);
        for tid in &process.threads {
            if let Some(thread) = self.threads.get_mut(tid) {
                thread.pending.forget(signal);
            }
        }
    }

    /// Signals wait for a process, and the thread that was to take them has ended, or blocks them now: others take them.
    pub(crate) fn hand_on(&mut self, pid: Tid) {
        let Some(process) = self.processes.get(&pid).filter(|found| found.pending.set() != Set(0)) else {
            return;
        };
        let takers: Vec<Tid> = process.threads.iter().copied().filter(|tid| self.has_signal(*tid)).collect();
        self.losses.extend(takers.into_iter().map(Loss::Signal));
    }

    /// Sends a signal to a thread.
    pub fn send_to_thread(&mut self, tid: Tid, signal: Signal, cause: Cause) -> Result<()> {
        let pid = self.pid(tid)?;
        if !self.forget_opposite(pid, signal) {
            return Ok(());
        }
        let thread = self.threads.get_mut(&tid).ok_or(ESRCH)?;
        let sent = if thread.mask.has(signal) {
            let is_added = thread.pending.add(signal, cause);
            self.tell(Event::Signal(pid));
            if is_added { Ok(()) } else { Err(EAGAIN) }
        } else {
            self.send_by(pid, signal, cause, Some(tid), true)
        };
        self.take_if_continued(pid, signal);
        sent
    }

    fn send_by(
        &mut self,
        pid: Tid,
        signal: Signal,
        cause: Cause,
        taker: Option<Tid>,
        is_own: bool,
    ) -> Result<()> {
        if signal == SIGKILL {
            // A call that is made holds what its process has open, and nobody could close that: the process ends behind it.
            if self.is_making && self.current.and_then(|tid| self.pid(tid).ok()) == Some(pid) {
                self.losses.push(Loss::End(pid, SIGKILL));
            } else {
                self.end_by_signal(pid, SIGKILL);
            }
            return Ok(());
        }
        let process = self.processes.get_mut(&pid).ok_or(ESRCH)?;
        let index = signal as usize - 1;
        let action = *process.actions.get(index).ok_or(EINVAL)?;
        if let Some(tid) = taker.filter(|_| action.ignores(signal)) {
            self.trace_signal(tid, signal, &cause);
            return Ok(());
        }
        let is_added = match taker.filter(|_| is_own).and_then(|tid| self.threads.get_mut(&tid)) {
            Some(thread) => thread.pending.add(signal, cause),
            None => self.processes.get_mut(&pid).is_some_and(|process| process.pending.add(signal, cause)),
        };
        self.tell(Event::Signal(pid));
        if let Some(tid) = taker {
            self.notify(tid);
        }
        if is_added { Ok(()) } else { Err(EAGAIN) }
    }

    /// Whether the process of a thread ends when its call is over.
    pub(crate) fn is_killed(&self, tid: Tid) -> bool {
        let ends = |loss: &Loss, pid| matches!(loss, Loss::End(ended, _) if *ended == pid);
        self.pid(tid).is_ok_and(|pid| self.losses.iter().any(|loss| ends(loss, pid)))
    }

    /// A thread that may have a signal takes it.
    pub(crate) fn notify_if_needed(&mut self, tid: Tid) {
        if self.has_signal(tid) {
            self.notify(tid);
        }
    }

    /// A thread has a signal that it does not block.
    pub(crate) fn notify(&mut self, tid: Tid) {
        // It may end the process, and what that has open is held by the call.
        if self.is_making
            && self.current != Some(tid)
            && self.current.map(|tid| self.pid(tid)) == Some(self.pid(tid))
        {
            self.losses.push(Loss::Signal(tid));
            return;
        }
        if self.current == Some(tid) || self.process(tid).is_ok_and(|process| process.stopped.is_some()) {
            return;
        }
        if self.threads.get(&tid).is_some_and(|thread| thread.blocked.is_some()) {
            return self.interrupt_wait(tid);
        }
        // A thread that is just making a call takes the signal at its end.
        let mut state = self.room_for_state();
        if self.machine.interrupt(tid, &mut state) {
            match self.effect(tid) {
                Effect::Nothing => self.machine.return_from(tid, &state),
                Effect::Ended => {}
                Effect::Handler(signal, cause, action) => {
                    self.begin_handler(tid, &mut state, Place::Code, (signal, cause, action));
                }
            }
        }
        self.spare_state = Some(state);
    }

    /// Room for the state of a thread, to be given back as `spare_state`.
    pub(crate) fn room_for_state(&mut self) -> Box<ThreadState> {
        self.spare_state.take().unwrap_or_else(|| Box::new(ThreadState::ZERO))
    }

    /// Takes signals of a thread until one has an effect on it.
    fn effect(&mut self, tid: Tid) -> Effect {
        loop {
            let Some(thread) = self.threads.get_mut(&tid) else { return Effect::Ended };
            let (mask, pid) = (thread.mask, thread.process);
            let own = thread.pending.take(mask);
            let Some(process) = self.processes.get_mut(&pid) else { return Effect::Ended };
            let Some((signal, cause)) = own.or_else(|| process.pending.take(mask)) else {
                return Effect::Nothing;
            };
            let action = process.actions.get(signal as usize - 1).copied().unwrap_or_default();
            let group = process.group;
            self.trace_signal(tid, signal, &cause);
            match action.handler {
                0 => match signal::usual(signal) {
                    Usual::End => {
                        self.end_by_signal(pid, signal);
                        return Effect::Ended;
                    }
                    // Nobody could continue it.
                    Usual::Stop if signal != SIGSTOP && self.is_orphaned(group) => {}
                    Usual::Stop => {
                        self.stop(pid, signal);
                        return Effect::Nothing;
                    }
                    Usual::Continue | Usual::Nothing => {}
                },
                1 => {}
                _ => return Effect::Handler(signal, cause, action),
            }
        }
    }

    /// Ends the wait of a thread if a signal ends its process, or has a handler.
    pub fn interrupt_wait(&mut self, tid: Tid) {
        let is_stopped = self.process(tid).is_ok_and(|process| process.stopped.is_some());
        // A call whose event has come ends by it, and the signal comes behind it.
        let is_woken = self.threads.get(&tid).is_some_and(|thread| thread.is_woken);
        if is_stopped || is_woken || !self.has_signal(tid) {
            return;
        }
        if self.waits_for_vfork(tid) {
            return self.end_if_fatal(tid);
        }
        if self.has_polled_closed(tid) && self.end_closed_poll(tid) {
            return;
        }
        // Only a signal with a handler ends the wait.
        let Effect::Handler(signal, cause, action) = self.effect(tid) else {
            return self.trace_later(|of| of == tid);
        };
        let Some(blocked) = self.unblock(tid) else { return };
        self.tell_rest(tid, &blocked);
        self.give_up_opening(tid);
        self.let_held_go(tid);
        let mut registers = blocked.registers;
        let number = registers.rax;
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let done = thread.done;
        thread.forget_call();
        registers.rax = if done > 0 { done } else { crate::errno::EINTR.result() };
        let again = (done == 0 && may_be_made_again(&blocked)).then_some(number);
        self.trace_interrupted(tid, done, NOT_MADE_AGAIN.iter().all(|call| u64::from(*call) != number));
        let mut state = self.room_for_state();
        if self.machine.state(tid, &mut state) {
            self.begin_handler(tid, &mut state, Place::Call(registers, again), (signal, cause, action));
        }
        self.spare_state = Some(state);
    }

    /// Whether a thread waits for one that has its memory until then.
    fn waits_for_vfork(&self, tid: Tid) -> bool {
        let blocked = self.threads.get(&tid).and_then(|thread| thread.blocked.as_ref());
        blocked.is_some_and(|blocked| blocked.on.contains(&Event::Vfork(tid)))
    }

    /// Ends the process of a thread if a signal waits that does so. Others go on waiting.
    fn end_if_fatal(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let pid = thread.process;
        let Some(process) = self.processes.get(&pid) else { return };
        let waiting = Set((process.pending.set().0 | thread.pending.set().0) & !thread.mask.0);
        let is_fatal = |signal: &Signal| {
            let action = process.actions.get(*signal as usize - 1);
            let is_usual = action.is_some_and(|action| action.handler == 0);
            waiting.has(*signal) && is_usual && matches!(signal::usual(*signal), Usual::End)
        };
        if let Some(signal) = (1..=SIGNALS as Signal).find(is_fatal) {
            self.end_by_signal(pid, signal);
        }
    }

    /// Ends a call with registers, of a thread for which a signal may wait.
    pub fn handle(&mut self, tid: Tid, registers: Registers) {
        match self.effect(tid) {
            Effect::Ended => {}
            Effect::Nothing if self.unblocks_signal(tid) => self.handle(tid, registers),
            Effect::Nothing => self.machine.answer(tid, &registers),
            Effect::Handler(signal, cause, action) => {
                let mut state = self.room_for_state();
                if self.machine.state(tid, &mut state) {
                    self.begin_handler(
                        tid,
                        &mut state,
                        Place::Call(registers, None),
                        (signal, cause, action),
                    );
                }
                self.spare_state = Some(state);
            }
        }
    }

    /// Ends the call that came last, of a thread for which a signal waits.
    pub(crate) fn end_with_signal(&mut self, tid: Tid, registers: &mut Registers) -> Next {
        let (signal, cause, action) = match self.effect(tid) {
            Effect::Ended => return Next::Nothing,
            Effect::Nothing if self.unblocks_signal(tid) => return self.end_with_signal(tid, registers),
            Effect::Nothing => {
                self.machine.answer(tid, registers);
                return Next::Nothing;
            }
            Effect::Handler(signal, cause, action) => (signal, cause, action),
        };
        let mut state = self.room_for_state();
        let mut next = Next::Nothing;
        if self.machine.state_in_call(tid, &mut state) {
            registers.put(&mut state);
            let begun = match self.prepare_handlers(tid, &mut state, [0; 3], (signal, cause, action)) {
                Ok(true) => self.machine.end_call(tid, &state, registers, false),
                ended => ended,
            };
            match begun {
                Ok(true) => next = Next::Answer,
                Ok(false) => {}
                Err(_) => self.end_by_bad_stack(tid),
            }
        }
        self.spare_state = Some(state);
        next
    }

    /// A thread does what it cannot. Its process handles the signal, or ends by it.
    pub fn exception(&mut self, tid: Tid, signal: Signal, cause: Cause, fault: [u64; 3]) {
        let Ok(process) = self.process(tid) else { return };
        let action = process.actions.get(signal as usize - 1).copied().unwrap_or_default();
        let is_blocked = self.threads.get(&tid).is_some_and(|thread| thread.mask.has(signal));
        self.trace_signal(tid, signal, &cause);
        let mut state = self.room_for_state();
        if action.handler > 1 && !is_blocked && self.machine.state_in_fault(tid, &mut state) {
            self.begin_handler(tid, &mut state, Place::Exception(fault), (signal, cause, action));
        } else if let Ok(pid) = self.pid(tid) {
            self.end_process(pid, Status::killed(signal));
        }
        self.spare_state = Some(state);
        // A call that is made settles at its end: until then there are signals that wait for it.
        if !self.is_making {
            self.settle();
        }
    }

    /// Begins a handler.
    fn begin_handler(
        &mut self,
        tid: Tid,
        state: &mut ThreadState,
        place: Place,
        of: (Signal, Cause, Action),
    ) {
        let mut fault = [0; 3];
        let go_on: fn(&mut M, Tid, &ThreadState) -> Result<()> = match place {
            Place::Code => |machine, tid, state| {
                machine.return_from(tid, state);
                Ok(())
            },
            Place::Handler => M::go_on,
            Place::Call(..) | Place::Exception(_) => M::go_on_elsewhere,
        };
        match place {
            Place::Call(mut registers, again) => {
                if let Some(number) = again
                    && is_made_again(number, &registers, of.2)
                {
                    registers.rax = number;
                    let ip = &mut state.registers[register::RIP];
                    *ip = ip.wrapping_sub(SYSCALL_BYTES);
                }
                registers.put(state);
            }
            Place::Exception(at) => fault = at,
            Place::Code | Place::Handler => {}
        }
        let begun = match self.prepare_handlers(tid, state, fault, of) {
            Ok(true) => go_on(&mut self.machine, tid, state),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if begun.is_err() {
            self.end_by_bad_stack(tid);
        }
    }

    /// A handler cannot begin, and ends its process: behind the end of the child of which it was to hear, or a row of them would be as many ends, each in the other.
    fn end_by_bad_stack(&mut self, tid: Tid) {
        if let Ok(pid) = self.pid(tid) {
            self.losses.push(Loss::End(pid, SIGSEGV));
        }
    }

    /// Writes frames to the stack of a thread whose state is given, and makes it the state with which handlers begin. As in Linux, each signal that waits has its frame
    /// before any of the handlers runs, unless those before it block it: so the handler of the last one begins, and returns to the beginning of the one before.
    /// False if the process has ended by one of the signals.
    fn prepare_handlers(
        &mut self,
        tid: Tid,
        state: &mut ThreadState,
        fault: [u64; 3],
        of: (Signal, Cause, Action),
    ) -> Result<bool> {
        self.prepare_handler(tid, state, fault, of)?;
        while self.has_signal(tid) && !self.stands_still(tid) {
            match self.effect(tid) {
                Effect::Ended => return Ok(false),
                Effect::Nothing => {}
                Effect::Handler(signal, cause, action) => {
                    self.prepare_handler(tid, state, [0; 3], (signal, cause, action))?;
                }
            }
        }
        Ok(true)
    }

    /// Does so for one signal.
    fn prepare_handler(
        &mut self,
        tid: Tid,
        state: &mut ThreadState,
        fault: [u64; 3],
        (signal, cause, action): (Signal, Cause, Action),
    ) -> Result<()> {
        let mut frame = self.room_for_frame();
        let thread = self.thread(tid)?;
        let before = thread.mask_before.take().unwrap_or(thread.mask);
        let stack = &thread.stack;
        let address = signal::frame(&mut frame, state, &action, (signal, &cause), stack, before, fault)?;
        let own = if action.has(general::SA_NODEFER) { Set(0) } else { Set::of(signal) };
        thread.mask = Set(thread.mask.0 | action.mask.0 | own.0).as_mask();
        let pid = thread.process;
        if action.has(general::SA_RESETHAND)
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.actions[signal as usize - 1] = Action::default();
        }
        let written = self.write(tid, address, &frame.0);
        self.spare_frame = Some(frame);
        written
    }

    /// Room for a frame, to be given back as `spare_frame`.
    fn room_for_frame(&mut self) -> Box<Frame> {
        self.spare_frame.take().unwrap_or_else(|| Box::new(Frame::EMPTY))
    }

    /// A handler has returned: its thread goes on where it was. True if its call is to be answered, with [`System::registers`].
    pub fn return_from_handler(&mut self, tid: Tid) -> Result<bool> {
        let mut state = self.room_for_state();
        let result = if self.machine.state_in_call(tid, &mut state) {
            self.go_on_behind_handler(tid, &mut state)
        } else {
            Err(ESRCH)
        };
        self.spare_state = Some(state);
        result
    }

    fn go_on_behind_handler(&mut self, tid: Tid, state: &mut ThreadState) -> Result<bool> {
        let at = state.registers[register::RSP];
        let mut frame = self.room_for_frame();
        self.read(tid, at, frame.restored())?;
        let (mask, stack, vector_at) = signal::restore(frame.restored(), state)?;
        if vector_at != 0 {
            self.read(tid, vector_at, frame.vector())?;
            signal::restore_vector(frame.vector(), state);
        }
        self.spare_frame = Some(frame);
        let thread = self.thread(tid)?;
        thread.mask = mask;
        let sp = state.registers[register::RSP];
        if !thread.stack.has(sp) || thread.stack.len == 0 {
            thread.stack = stack;
        }
        match self.effect_unless_none(tid) {
            Some(Effect::Handler(signal, cause, action)) => {
                self.begin_handler(tid, state, Place::Handler, (signal, cause, action));
                Ok(false)
            }
            Some(_) => Ok(false),
            None => {
                let mut registers = Registers::of(state);
                let ended = self.machine.end_call(tid, state, &mut registers, true);
                self.registers = registers;
                ended.map_err(|_| EFAULT)
            }
        }
    }

    fn effect_unless_none(&mut self, tid: Tid) -> Option<Effect> {
        if !self.has_signal(tid) {
            return None;
        }
        match self.effect(tid) {
            Effect::Nothing => None,
            effect => Some(effect),
        }
    }

    /// A process stands still.
    fn stop(&mut self, pid: Tid, signal: Signal) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.stopped = Some(signal);
        process.news = Some(Status::stopped(signal));
        let threads = process.threads.clone();
        for tid in threads {
            self.trace_stop(tid, signal);
            self.machine.pause(tid, true);
        }
        self.tell_parent(pid, Status::stopped(signal));
    }

    /// A process goes on that stands still.
    fn let_go_on(&mut self, pid: Tid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.stopped.take().is_none() {
            return;
        }
        process.news = Some(Status::CONTINUED);
        self.tell(Event::Continued(pid));
        let Some(process) = self.processes.get(&pid) else { return };
        for tid in process.threads.clone() {
            self.machine.pause(tid, false);
        }
        self.tell_parent(pid, Status::CONTINUED);
    }

    fn tell_parent(&mut self, pid: Tid, status: Status) {
        let Some(process) = self.processes.get(&pid) else { return };
        let (parent, owner) = (process.parent, process.owners.owner[0]);
        let Some(process) = self.processes.get(&parent) else { return };
        if !process.actions[SIGCHLD as usize - 1].has(general::SA_NOCLDSTOP) {
            let (code, value) = status.told();
            let _ = self.send(parent, SIGCHLD, Cause { code, sender: (pid, owner), value: value.into() });
        }
        self.tell(Event::Child(parent));
    }

    /// Processes of a group.
    pub fn members(&self, group: Tid) -> Vec<Tid> {
        let is_in = |process: &crate::process::Process| process.group == group && process.ended.is_none();
        self.processes.iter().filter(|(_, process)| is_in(process)).map(|(pid, _)| *pid).collect()
    }

    /// Sends a signal to a process group.
    pub fn send_to_group(&mut self, group: Tid, signal: Signal, cause: Cause) {
        for pid in self.members(group) {
            let _ = self.send(pid, signal, cause);
        }
    }
}

const _: () = assert!(SIGNALS == 64);
