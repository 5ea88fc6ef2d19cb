//! Sessions at their terminals: who gets control of one and loses it, and process groups that nobody can continue any more.
//!
//! Processes hear of a loss when the call that causes it is over: each of them may end by it, and cause another one.

use crate::errno::Result;
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::{Event, PROCESSES_MAX, Process, Status};
use crate::signal::{Cause, Signal};
use crate::start::FIRST;
use crate::system::System;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use linux_raw_sys::general::{SIGCHLD, SIGCONT, SIGHUP};
use vfs::FileSystem;

/// Processes that are to hear that their terminal, or their session, is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// A process: it goes on, too.
    Process(Tid),
    /// All of a process group: they go on, too.
    Group(Tid),
    /// All of a process group: whoever stands still stays so.
    GroupInFront(Tid),
    /// No loss: a thread has a signal that came by a call of its own process.
    Signal(Tid),
    /// No loss: a process ends by a signal, when what goes on now is over: it was making a call, or it hears of the end of another one, which hears of another one.
    End(Tid, Signal),
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Gives the session of a process control of a terminal, with its group in front.
    pub fn take_control(&mut self, pid: Tid, number: u32) -> Result<()> {
        let line = self.terminals.line(number)?;
        if let Some(process) = self.processes.get_mut(&pid) {
            (line.session, line.foreground) = (process.session, process.group);
            (process.terminal, process.left_group) = (Some(number), 0);
        }
        Ok(())
    }

    /// Takes control of a terminal from its session. Gives back the session, and the group that was in front.
    pub fn take_from_session(&mut self, number: u32) -> (Tid, Tid) {
        let Ok(line) = self.terminals.line(number) else { return (0, 0) };
        let lost = (line.session, line.foreground);
        (line.session, line.foreground) = (0, 0);
        for process in self.processes.values_mut().filter(|process| process.terminal == Some(number)) {
            process.terminal = None;
        }
        lost
    }

    /// Nobody is at the other side of a terminal any more.
    pub fn lose_terminal(&mut self, number: u32) {
        let (session, foreground) = self.take_from_session(number);
        if let Some(leader) = self.processes.get_mut(&session).filter(|leader| leader.ended.is_none()) {
            leader.left_group = foreground;
            self.losses.push(Loss::Process(session));
        }
    }

    /// The leader of a session ends, which gives its terminal up.
    pub fn end_session(&mut self, pid: Tid) {
        let Some(leader) = self.processes.get_mut(&pid).filter(|process| process.session == pid) else {
            return;
        };
        let left = core::mem::take(&mut leader.left_group);
        if let Some(number) = leader.terminal {
            let (_, foreground) = self.take_from_session(number);
            self.losses.push(Loss::GroupInFront(foreground));
        } else if left != 0 {
            self.losses.push(Loss::Group(left));
        }
    }

    /// Tells the next of those who have lost something. Whether there was one.
    pub fn tell_loss(&mut self) -> bool {
        match self.losses.pop() {
            None => return false,
            Some(Loss::Process(pid)) => {
                let _ = self.send(pid, SIGHUP, Cause::KERNEL);
                let _ = self.send(pid, SIGCONT, Cause::KERNEL);
            }
            Some(Loss::Group(group)) => {
                self.send_to_group(group, SIGHUP, Cause::KERNEL);
                self.send_to_group(group, SIGCONT, Cause::KERNEL);
            }
            Some(Loss::Signal(tid)) => self.notify(tid),
            Some(Loss::End(pid, signal)) => self.end_process(pid, Status::killed(signal)),
            Some(Loss::GroupInFront(group)) => self.send_to_group(group, SIGHUP, Cause::KERNEL),
        }
        true
    }

    /// Whether nobody can continue a process group: no process of it has a parent of its session in another group.
    pub fn is_orphaned(&self, group: Tid) -> bool {
        let mut members =
            self.processes.values().filter(|process| process.group == group && process.ended.is_none());
        !members.any(|process| self.is_connection(process, process.parent))
    }

    /// Whether a parent can continue the group of a process. One that was given the process cares for none of its jobs.
    fn is_connection(&self, process: &Process, parent: Tid) -> bool {
        let parent = self.processes.get(&parent).filter(|_| !process.is_adopted);
        parent.is_some_and(|parent| parent.group != process.group && parent.session == process.session)
    }

    /// Tells a process group that stands still, at least in part, if nobody can continue it.
    fn orphan(&mut self, group: Tid) {
        let mut members = self.processes.values().filter(|process| process.group == group);
        let stands_still = members.any(|process| process.stopped.is_some() && process.ended.is_none());
        if stands_still && self.is_orphaned(group) {
            self.losses.push(Loss::Group(group));
        }
    }

    /// A process has ended that may have been the one whose parent could continue its group.
    pub(crate) fn orphan_by(&mut self, pid: Tid, parent: Tid, group: Tid) {
        // One that nobody waits for is forgotten already.
        let was_connection =
            self.processes.get(&pid).is_none_or(|process| self.is_connection(process, parent));
        if was_connection {
            self.orphan(group);
        }
    }

    /// The next process above one that takes children whose parents end.
    fn reaper_above(&self, pid: Tid) -> Tid {
        let above = |pid: &Tid| self.processes.get(pid).map(|process| process.parent);
        let mut all = core::iter::successors(above(&pid), above).take(PROCESSES_MAX);
        all.find(|pid| self.processes.get(pid).is_some_and(|found| found.is_reaper && found.ended.is_none()))
            .unwrap_or(FIRST)
    }

    /// Children of a process that ends become those of the first one, or of one between that wants them.
    pub(crate) fn leave_children(&mut self, pid: Tid) {
        let Some(own) = self.processes.get(&pid) else { return };
        let (group, session, owner) = (own.group, own.session, own.owners.owner[0]);
        let reaper = self.reaper_above(pid);
        let (mut groups, mut ended, mut told) = (BTreeSet::new(), Vec::new(), Vec::new());
        for (child, process) in self.processes.iter_mut() {
            if process.parent != pid || *child == pid {
                continue;
            }
            (process.parent, process.is_adopted, process.exit_signal) = (reaper, reaper == FIRST, SIGCHLD);
            match process.ended {
                Some(status) => ended.push((*child, status)),
                None if process.death_signal != 0 => told.push((*child, process.death_signal)),
                None => {}
            }
            if process.group != group && process.session == session {
                groups.insert(process.group);
            }
        }
        self.tell(Event::Child(reaper));
        for (child, signal) in told {
            self.send_at_end(child, signal, Cause::process(pid, owner));
        }
        for (child, status) in ended {
            self.tell_end(child, status);
        }
        for group in groups {
            self.orphan(group);
        }
    }
}
