//! How processes and threads begin, are waited for, and end.

use super::segments::Change;
use super::time::SECOND;
use super::{done, number};
use crate::budget::Share;
use crate::errno::{EAGAIN, ECHILD, EFAULT, EINVAL, ENOMEM, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::Descriptors;
use crate::process::{
    Event, LIMITS, PROCESS_BYTES, PROCESSES_MAX, Process, Room, SIGNALS, Status, THREAD_BYTES, Thread,
};
use crate::signal::{self, Action, Cause, Pending, Stack};
use crate::start::FIRST;
use crate::system::{Answer, DONE, Outcome, System};
use abi::ThreadState;
use abi::state::{STATE_GS, register};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    self, CAP_SYS_RESOURCE, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_DETACHED, CLONE_FS, CLONE_PARENT,
    CLONE_PARENT_SETTID, CLONE_PIDFD, CLONE_SETTLS, CLONE_SIGHAND, CLONE_THREAD, CLONE_VFORK, CLONE_VM,
    CSIGNAL, SIGCHLD, WCONTINUED, WEXITED, WNOHANG, WNOWAIT, WSTOPPED, WUNTRACED,
};
use vfs::FileSystem;

/// Flags of `clone` that name spaces of their own: nobody here may have one.
const NAMESPACES: u32 = general::CLONE_NEWNS
    | general::CLONE_NEWCGROUP
    | general::CLONE_NEWUTS
    | general::CLONE_NEWIPC
    | general::CLONE_NEWUSER
    | general::CLONE_NEWPID
    | general::CLONE_NEWNET;

/// Numbers of `arch_prctl`.
const ARCH_SET_GS: u64 = 0x1001;
/// See [`ARCH_SET_GS`].
const ARCH_SET_FS: u64 = 0x1002;
/// See [`ARCH_SET_GS`].
const ARCH_GET_FS: u64 = 0x1003;
/// See [`ARCH_SET_GS`].
const ARCH_GET_GS: u64 = 0x1004;

/// Bytes of queues of messages of a user, as Linux has them if nobody says anything else.
const QUEUES_BYTES: u64 = 819_200;

/// Bytes of `struct rusage`.
const USAGE_BYTES: usize = 144;

/// Arguments with which a thread is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct New {
    /// Flags, without the signal.
    pub flags: u32,
    /// Signal to the parent when it ends.
    pub exit_signal: u32,
    /// Stack pointer; 0: that of the caller.
    pub stack: u64,
    /// Where its number is written for its maker.
    pub parent_tid: u64,
    /// Where its number is written for itself.
    pub child_tid: u64,
    /// Base of its own data.
    pub fs_base: u64,
    /// Where a descriptor of the process is written, if there is to be one.
    pub pidfd: Option<u64>,
    /// Whether its signals have no handlers.
    pub clears_handlers: bool,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_fork(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        self.sys_clone(tid, [SIGCHLD.into(), 0, 0, 0, 0, 0])
    }

    pub(crate) fn sys_vfork(&mut self, tid: Tid, _: [u64; 6]) -> Answer {
        self.sys_clone(tid, [(CLONE_VM | CLONE_VFORK | SIGCHLD).into(), 0, 0, 0, 0, 0])
    }

    pub(crate) fn sys_clone(
        &mut self,
        tid: Tid,
        [flags, stack, parent_tid, child_tid, fs_base, _]: [u64; 6],
    ) -> Answer {
        let flags = flags as u32;
        if let Some(answer) = self.goes_on_behind_vfork(tid)? {
            return answer;
        }
        let (exit_signal, flags) = (flags & CSIGNAL, flags & !CSIGNAL);
        let pidfd = (flags & CLONE_PIDFD != 0).then_some(parent_tid);
        // Both would be written to one place.
        if pidfd.is_some() && flags & (CLONE_PARENT_SETTID | CLONE_DETACHED) != 0 {
            return Err(EINVAL);
        }
        let clears_handlers = false;
        self.make(
            tid,
            New { flags, exit_signal, stack, parent_tid, child_tid, fs_base, pidfd, clears_handlers },
        )
    }

    /// Answer of a call that has made a child by `vfork` before: that has begun a program, or ended, or the wait goes on. None if it has made none.
    pub(super) fn goes_on_behind_vfork(&mut self, tid: Tid) -> Result<Option<Answer>> {
        let made = self.thread(tid)?.done;
        let answer = || if self.has_vforked(tid) { Ok(wait_for_vfork(tid)) } else { number(Ok(made)) };
        Ok((made > 0).then(answer))
    }

    /// Makes a thread or a process.
    pub(super) fn make(&mut self, tid: Tid, new: New) -> Answer {
        let flags = new.flags;
        // A sibling of the first process would be nobody's child.
        if flags & CLONE_PARENT != 0 && self.pid(tid)? == FIRST {
            return Err(EINVAL);
        }
        if flags & NAMESPACES != 0 {
            return Err(EPERM);
        }
        let is_thread = flags & CLONE_THREAD != 0;
        if is_thread && (flags & CLONE_SIGHAND == 0 || flags & CLONE_VM == 0) {
            return Err(EINVAL);
        }
        // Memory is shared with a thread, or with a child that has it until it begins a program.
        if !is_thread && flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0 {
            return Err(EINVAL);
        }
        if new.exit_signal > SIGNALS as u32 || is_thread && new.pidfd.is_some() {
            return Err(EINVAL);
        }
        if self.threads.len() >= self.threads_max || !is_thread && self.processes.len() >= PROCESSES_MAX {
            return Err(EAGAIN);
        }
        if let Some(at) = new.pidfd {
            self.check_pidfd(tid, at)?;
        }
        let child = if is_thread { self.make_thread(tid, new)? } else { self.make_process(tid, new)? };
        if let Some(at) = new.pidfd
            && let Err(error) = self.tell_new_pidfd(tid, child, at)
        {
            self.unmake_process(child);
            return Err(error);
        }
        if flags & CLONE_VFORK != 0 {
            self.thread(tid)?.done = child.into();
            self.thread(child)?.vfork = Some(tid);
            return Ok(wait_for_vfork(tid));
        }
        number(Ok(child.into()))
    }

    /// Whether a thread that this one has made by `vfork` still has its memory.
    fn has_vforked(&self, tid: Tid) -> bool {
        self.threads.values().any(|thread| thread.vfork == Some(tid))
    }

    fn make_thread(&mut self, tid: Tid, new: New) -> Result<Tid> {
        let pid = self.pid(tid)?;
        let space = self.room(tid)?.borrow().space;
        let child = self.number();
        let share = self.budget.take(THREAD_BYTES).ok_or(ENOMEM)?;
        self.machine.make_thread(space, child)?;
        let mask = self.thread(tid)?.mask;
        let pending = Pending::within(self.budget.empty());
        let maker = self.thread(tid)?;
        let thread = Thread {
            share: Some(share),
            pending,
            restriction: maker.restriction.clone(),
            capabilities: maker.capabilities,
            wishes: maker.wishes.inherited(),
            slack_ns: [maker.slack_ns[0]; 2],
            ..Thread::new(pid, mask)
        };
        self.threads.insert(child, thread);
        self.process(tid)?.threads.push(child);
        if let Err(error) = self.begin_thread(tid, child, new) {
            self.machine.end_thread(child);
            self.threads.remove(&child);
            self.process(tid)?.threads.retain(|thread| *thread != child);
            return Err(error);
        }
        Ok(child)
    }

    /// Makes a process that is a copy. Everything that it has is charged to the process that is served.
    pub(super) fn copy_process(&mut self, tid: Tid, child: Tid, new: New) -> Result<Tid> {
        let pid = self.pid(tid)?;
        let shares = new.flags & CLONE_VM != 0;
        let share = self.budget.take(PROCESS_BYTES[0]).ok_or(ENOMEM)?;
        let descriptors = self.other(pid)?.descriptors.copy(&self.budget)?;
        let room = match shares {
            true => self.room(tid)?,
            false => {
                let space = self.machine.make_space()?;
                let copy = self.room(tid)?.borrow().memory.copy(&mut self.store.frames);
                let memory = match copy {
                    Ok(memory) => memory,
                    Err(error) => {
                        self.machine.end_space(space);
                        return Err(error);
                    }
                };
                self.segments_change(pid, &memory, Change::Attached);
                Rc::new(RefCell::new(Room { space, memory }))
            }
        };
        let space = room.borrow().space;
        let now = self.machine.now();
        let maker = self.other(pid)?;
        let is_sibling = new.flags & CLONE_PARENT != 0;
        let parent = if is_sibling { maker.parent } else { pid };
        let mut process = maker.copy(parent, (room, descriptors, share), now);
        process.is_adopted = is_sibling && maker.is_adopted;
        process.exit_signal = if is_sibling { maker.exit_signal } else { new.exit_signal };
        process.pending = Pending::within(self.budget.empty());
        if new.flags & CLONE_FS != 0 {
            process.filesystem = self.other(pid)?.filesystem.clone();
        }
        if new.clears_handlers {
            process
                .actions
                .iter_mut()
                .filter(|action| action.handler > 1)
                .for_each(|action| *action = Action::default());
        }
        process.threads = Vec::from([child]);
        let mut thread = Thread::new(child, self.thread(tid)?.mask);
        thread.pending = Pending::within(self.budget.empty());
        let maker = self.thread(tid)?;
        (thread.restriction, thread.capabilities) = (maker.restriction.clone(), maker.capabilities);
        thread.wishes = maker.wishes.inherited();
        thread.slack_ns = [maker.slack_ns[0]; 2];
        thread.stack = if shares { Stack::NONE } else { maker.stack };
        self.processes.insert(child, process);
        self.threads.insert(child, thread);
        self.store.view.borrow_mut().processes.insert(child, Default::default());
        let made = self.machine.make_thread(space, child).and_then(|()| self.begin_thread(tid, child, new));
        if let Err(error) = made {
            self.unmake_process(child);
            return Err(error);
        }
        Ok(child)
    }

    /// Takes a process back that was just made, so that nobody hears of it.
    fn unmake_process(&mut self, child: Tid) {
        if let Some(process) = self.processes.get_mut(&child) {
            process.exit_signal = 0;
        }
        self.end_process(child, Status::exited(0));
        self.forget_pidfd(child);
        self.processes.remove(&child);
    }

    /// Lets a new thread begin where its maker's call ends.
    fn begin_thread(&mut self, tid: Tid, child: Tid, new: New) -> Result<()> {
        let mut state = self.room_for_state();
        let begun = match self.machine.state_in_call(tid, &mut state) {
            true => self.begin_with_state(tid, child, new, &mut state),
            false => Err(ESRCH),
        };
        self.spare_state = Some(state);
        begun
    }

    fn begin_with_state(&mut self, tid: Tid, child: Tid, new: New, state: &mut ThreadState) -> Result<()> {
        let mut registers = self.registers;
        registers.rax = 0;
        registers.put(state);
        if new.stack != 0 {
            state.registers[register::RSP] = new.stack;
        }
        if new.flags & CLONE_SETTLS != 0 {
            if new.fs_base >= crate::memory::END {
                return Err(EPERM);
            }
            state.fs_base = new.fs_base;
        }
        self.share_out(child);
        let number = child.to_le_bytes();
        if new.flags & CLONE_PARENT_SETTID != 0 {
            self.write(tid, new.parent_tid, &number)?;
        }
        if new.flags & CLONE_CHILD_SETTID != 0 {
            self.write(child, new.child_tid, &number)?;
        }
        if new.flags & CLONE_CHILD_CLEARTID != 0 {
            self.thread(child)?.clear = new.child_tid;
        }
        self.machine.go_on(child, state)
    }

    pub(crate) fn sys_exit(&mut self, tid: Tid, [code, ..]: [u64; 6]) -> Answer {
        self.end_thread(tid, Status::exited(code as u32));
        Ok(Outcome::Gone)
    }

    pub(crate) fn sys_exit_group(&mut self, tid: Tid, [code, ..]: [u64; 6]) -> Answer {
        let pid = self.pid(tid)?;
        self.end_process(pid, Status::exited(code as u32));
        Ok(Outcome::Gone)
    }

    /// Children that a wait is for, as `waitpid` names them.
    fn children(&self, own: Tid, pid: i32) -> Vec<Tid> {
        let group = self.processes.get(&own).map_or(0, |process| process.group);
        let is_meant = |(child, process): &(&Tid, &Process)| {
            process.parent == own
                && **child != own
                && match pid {
                    -1 => true,
                    0 => process.group == group,
                    pid if pid < 0 => process.group == pid.unsigned_abs(),
                    pid => **child == pid as u32,
                }
        };
        self.processes.iter().filter(is_meant).map(|(child, _)| *child).collect()
    }

    /// The first news of children that a wait is for.
    fn news(&self, children: &[Tid], options: u32) -> Option<(Tid, Status)> {
        children.iter().find_map(|child| {
            let process = self.processes.get(child)?;
            let status = process.ended.filter(|_| options & WEXITED != 0).or_else(|| {
                process.news.filter(|news| match *news {
                    Status::CONTINUED => options & WCONTINUED != 0,
                    _ => options & WSTOPPED != 0,
                })
            })?;
            Some((*child, status))
        })
    }

    /// Takes note of the news of a child, and gives back what it has used.
    fn take_news(&mut self, child: Tid, options: u32) -> u64 {
        let Some(process) = self.processes.get_mut(&child) else { return 0 };
        let used = process.used[0] + process.used[1];
        if options & WNOWAIT == 0 {
            if process.ended.is_some() {
                self.reap(child);
            } else {
                process.news = None;
            }
        }
        used
    }

    pub(crate) fn sys_wait4(&mut self, tid: Tid, [pid, status, options, usage, ..]: [u64; 6]) -> Answer {
        let options = options as u32;
        if options & !(WNOHANG | WUNTRACED | WCONTINUED | general::__WALL | general::__WNOTHREAD) != 0 {
            return Err(EINVAL);
        }
        let own = self.pid(tid)?;
        let children = self.children(own, pid as i32);
        if children.is_empty() {
            return Err(ECHILD);
        }
        let Some((child, found)) = self.news(&children, options | WEXITED) else {
            return self.wait_for_child(own, options);
        };
        if status != 0 {
            self.write(tid, status, &found.0.to_le_bytes())?;
        }
        let used = self.take_news(child, options);
        if usage != 0 {
            self.write(tid, usage, &usage_bytes(used))?;
        }
        number(Ok(child.into()))
    }

    fn wait_for_child(&self, own: Tid, options: u32) -> Answer {
        if options & WNOHANG != 0 {
            return DONE;
        }
        Ok(Outcome::Wait(Vec::from([Event::Child(own)]), None))
    }

    pub(crate) fn sys_waitid(&mut self, tid: Tid, [kind, pid, info, options, usage, _]: [u64; 6]) -> Answer {
        let options = options as u32;
        if options & (WEXITED | WSTOPPED | WCONTINUED) == 0 {
            return Err(EINVAL);
        }
        let own = self.pid(tid)?;
        let (pid, mut has_no_time) = (pid as i32, false);
        let meant = match kind as u32 {
            general::P_ALL => -1,
            general::P_PID if pid > 0 => pid,
            general::P_PIDFD => {
                let (meant, is_quick) = self.process_of(tid, u64::from(pid as u32))?;
                has_no_time = is_quick;
                meant.ok_or(ECHILD)? as i32
            }
            general::P_PGID if pid == 0 => 0,
            general::P_PGID if pid > 1 => -pid,
            _ => return Err(EINVAL),
        };
        let children = self.children(own, meant);
        if children.is_empty() {
            return Err(ECHILD);
        }
        let Some((child, found)) = self.news(&children, options) else {
            if options & WNOHANG != 0 && info != 0 {
                self.write(tid, info, &[0; signal::INFO_BYTES])?;
            }
            if options & WNOHANG == 0 && has_no_time {
                return Err(EAGAIN);
            }
            return self.wait_for_child(own, options);
        };
        if info != 0 {
            let (code, value) = found.told();
            let owner = self.other(child)?.owners.owner[0];
            let cause = Cause { code, sender: (child, owner), value: value.into() };
            self.write(tid, info, &signal::info(SIGCHLD, &cause))?;
        }
        let used = self.take_news(child, options);
        if usage != 0 {
            self.write(tid, usage, &usage_bytes(used))?;
        }
        DONE
    }

    pub(crate) fn sys_arch_prctl(&mut self, tid: Tid, [code, address, ..]: [u64; 6]) -> Answer {
        let mut state = ThreadState::ZERO;
        if !self.machine.state_in_call(tid, &mut state) {
            return Err(ESRCH);
        }
        match code {
            ARCH_SET_FS | ARCH_SET_GS if address >= crate::memory::END => return Err(EPERM),
            ARCH_SET_FS => state.fs_base = address,
            ARCH_SET_GS if state.parts & STATE_GS == 0 => return Err(EINVAL),
            ARCH_SET_GS => state.gs_base = address,
            ARCH_GET_FS => return done(self.write(tid, address, &state.fs_base.to_le_bytes())),
            ARCH_GET_GS => return done(self.write(tid, address, &state.gs_base.to_le_bytes())),
            _ => return Err(EINVAL),
        }
        let mut registers = self.registers;
        registers.rax = 0;
        registers.put(&mut state);
        self.machine.go_on(tid, &state).map_err(|_| EFAULT)?;
        Ok(Outcome::Gone)
    }

    pub(crate) fn sys_set_tid_address(&mut self, tid: Tid, [address, ..]: [u64; 6]) -> Answer {
        self.thread(tid)?.clear = address;
        number(Ok(tid.into()))
    }

    pub(crate) fn sys_set_robust_list(&mut self, tid: Tid, [head, len, ..]: [u64; 6]) -> Answer {
        if len != 24 {
            return Err(EINVAL);
        }
        self.thread(tid)?.robust = (head, len);
        DONE
    }

    pub(crate) fn sys_get_robust_list(&mut self, tid: Tid, [thread, head, len, ..]: [u64; 6]) -> Answer {
        let thread = if thread as u32 == 0 { tid } else { thread as u32 };
        if self.pid(thread)? != self.pid(tid)? {
            return Err(EPERM);
        }
        let robust = self.thread(thread)?.robust;
        self.write_words(tid, len, &[24])?;
        done(self.write_words(tid, head, &[robust.0]))
    }

    /// CPU time of a process in nanoseconds: its own, and that of children that were waited for.
    pub fn used(&self, pid: Tid) -> [u64; 2] {
        let Some(process) = self.processes.get(&pid) else { return [0; 2] };
        let running: u64 = process.threads.iter().map(|thread| self.machine.used(*thread)).sum();
        [process.used[0] + running, process.used[1]]
    }

    pub(crate) fn sys_getrusage(&mut self, tid: Tid, [who, to, ..]: [u64; 6]) -> Answer {
        let used = self.used(self.pid(tid)?);
        let used = match who as i32 {
            0 => used[0],
            1 => self.machine.used(tid),
            -1 => used[1],
            _ => return Err(EINVAL),
        };
        done(self.write(tid, to, &usage_bytes(used)))
    }

    pub(crate) fn sys_getrlimit(&mut self, tid: Tid, [kind, to, ..]: [u64; 6]) -> Answer {
        self.sys_prlimit(tid, [0, kind, 0, to, 0, 0])
    }

    pub(crate) fn sys_setrlimit(&mut self, tid: Tid, [kind, from, ..]: [u64; 6]) -> Answer {
        self.sys_prlimit(tid, [0, kind, from, 0, 0, 0])
    }

    pub(crate) fn sys_prlimit(&mut self, tid: Tid, [pid, kind, from, to, ..]: [u64; 6]) -> Answer {
        let pid = if pid == 0 { self.pid(tid)? } else { pid as u32 };
        let index = usize::try_from(kind).ok().filter(|kind| *kind < LIMITS).ok_or(EINVAL)?;
        let new = if from == 0 { None } else { Some(self.words::<2>(tid, from)?) };
        let is_all = self.can(tid, CAP_SYS_RESOURCE);
        if !self.processes.contains_key(&pid) {
            return Err(ESRCH);
        }
        if !is_all {
            self.may_inspect(tid, pid).map_err(|_| EPERM)?;
        }
        let process = self.processes.get_mut(&pid).ok_or(ESRCH)?;
        let before = process.limits[index];
        if let Some(new) = new {
            if new[0] > new[1] {
                return Err(EINVAL);
            }
            if new[1] > before[1] && !is_all || kind as u32 == general::RLIMIT_NOFILE && new[1] > FILES_MAX {
                return Err(EPERM);
            }
            process.limits[index] = new;
        }
        if to != 0 {
            self.write_words(tid, to, &before)?;
        }
        DONE
    }
}

fn wait_for_vfork(tid: Tid) -> Outcome {
    Outcome::Wait(Vec::from([Event::Vfork(tid)]), None)
}

/// Most descriptors of a process.
pub const FILES_MAX: u64 = 4096;

/// Limits with which the first process begins.
pub fn limits() -> [[u64; 2]; LIMITS] {
    let mut limits = [[u64::MAX; 2]; LIMITS];
    limits[general::RLIMIT_STACK as usize] = [crate::memory::STACK_MAX, u64::MAX];
    limits[general::RLIMIT_CORE as usize] = [0, u64::MAX];
    limits[general::RLIMIT_NOFILE as usize] = [1024, FILES_MAX];
    limits[general::RLIMIT_MSGQUEUE as usize] = [QUEUES_BYTES; 2];
    // Nobody gets less nice, or comes before all others, but by a capability.
    limits[general::RLIMIT_NICE as usize] = [0; 2];
    limits[general::RLIMIT_RTPRIO as usize] = [0; 2];
    limits
}

/// `struct rusage` of a CPU time in nanoseconds.
fn usage_bytes(used: u64) -> [u8; USAGE_BYTES] {
    let mut bytes = [0; USAGE_BYTES];
    bytes[..8].copy_from_slice(&(used / SECOND).to_le_bytes());
    bytes[8..16].copy_from_slice(&(used % SECOND / 1000).to_le_bytes());
    bytes
}

impl Process {
    /// A copy as a child of a process.
    fn copy(
        &self,
        parent: Tid,
        (room, descriptors, share): (crate::process::Shared, Descriptors, Share),
        now: u64,
    ) -> Process {
        Process {
            parent,
            group: self.group,
            session: self.session,
            threads: Vec::new(),
            room,
            descriptors,
            filesystem: Rc::new(RefCell::new(self.filesystem.borrow().clone())),
            actions: self.actions,
            pending: Pending::default(),
            owners: self.owners.clone(),
            has_no_new_rights: self.has_no_new_rights,
            choices: self.choices,
            limits: self.limits,
            name: self.name.clone(),
            program: self.program.clone(),
            image: self.image,
            arguments: self.arguments.clone(),
            auxiliary: self.auxiliary.clone(),
            arguments_share: self.arguments_share.clone(),
            share,
            ended: None,
            stopped: None,
            news: None,
            exit_signal: SIGCHLD,
            is_adopted: false,
            is_reaper: false,
            terminal: self.terminal,
            left_group: 0,
            has_begun: false,
            programs: 0,
            death_signal: 0,
            alarm: (None, 0),
            used: [0; 2],
            since: now,
        }
    }
}

#[cfg(test)]
mod tests;
