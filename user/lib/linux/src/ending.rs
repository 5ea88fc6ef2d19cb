//! How threads and processes end, and what is given back then.

use crate::calls::segments::Change;
use crate::frames::Bytes;
use crate::locks::Owner;
use crate::machine::{Machine, Space, Tid};
use crate::memory::{END, FileNumber, Memory};
use crate::open::Object;
use crate::process::{Event, PROCESS_BYTES, Room, Status};
use crate::sessions::Loss;
use crate::signal::{Cause, Signal};
use crate::system::System;
use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{SIGCHLD, SIGKILL};
use vfs::{FileSystem, Inode};

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
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
        self.hand_on(pid);
    }

    /// Words in memory that others look at, as a thread leaves them.
    pub(crate) fn leave(&mut self, tid: Tid) {
        self.unblock(tid);
        self.give_up_opening(tid);
        self.let_held_go(tid);
        self.leave_locks(tid);
        self.waiting.remove(&tid);
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
        (process.arguments, process.program, process.image) = Default::default();
        (process.auxiliary, process.arguments_share) = Default::default();
        process.share.set(PROCESS_BYTES[1]);
        process.pending = Default::default();
        let descriptors = process.descriptors.take_all();
        let filesystem = core::mem::take(&mut process.filesystem);
        let (parent, group) = (process.parent, process.group);
        process.alarm.0 = None;
        self.times_changed = true;
        self.leave_filesystem(filesystem);
        for descriptor in descriptors {
            if let Object::Queue(queue) = &descriptor.open.object {
                self.forget_notice(queue, pid);
            }
            self.close(descriptor.open);
        }
        self.budget.end(pid);
        self.end_session(pid);
        self.forget_locks(Owner::Process(pid));
        self.undo_operations(pid);
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
        let (parent, signal, owner) = (process.parent, process.exit_signal, process.owners.owner[0]);
        let ignores = self.processes.get(&parent).is_none_or(|parent| {
            let action = parent.actions[SIGCHLD as usize - 1];
            action.handler == 1 || action.has(linux_raw_sys::general::SA_NOCLDWAIT)
        });
        if ignores {
            self.reap(pid);
        }
        if signal != 0 {
            let (code, value) = status.told();
            self.send_at_end(parent, signal, Cause { code, sender: (pid, owner), value: value.into() });
        }
        self.tell(Event::Child(parent));
    }

    /// Sends a signal that the end of another process brings. If it ends its receiver, that end comes behind the first one.
    pub(crate) fn send_at_end(&mut self, pid: Tid, signal: Signal, cause: Cause) {
        let before = core::mem::replace(&mut self.tells_end, true);
        let _ = self.send(pid, signal, cause);
        self.tells_end = before;
    }

    /// A signal ends a process: at once, or behind the end that has brought the signal, since a row of processes would otherwise be as many ends, each in the other.
    pub(crate) fn end_by_signal(&mut self, pid: Tid, signal: Signal) {
        if self.tells_end {
            self.losses.push(Loss::End(pid, signal));
        } else {
            self.end_process(pid, Status::killed(signal));
        }
    }

    /// The first process has ended, so all do.
    fn end_all(&mut self, status: Status) {
        self.ended = Some(status);
        let all: Vec<Tid> = self.processes.keys().copied().filter(|pid| *pid != 1).collect();
        for pid in all {
            self.end_process(pid, Status::killed(SIGKILL));
        }
        self.forget_ipc();
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
        let shared = process.room.clone();
        self.segments_change(pid, &shared.borrow().memory, Change::Detached);
        let mut room = shared.borrow_mut();
        self.machine.end_space(room.space);
        let written = room.memory.shared_files(0..END);
        room.memory.clear(&mut self.store.frames);
        drop(room);
        for file in written {
            let _ = self.store.write_back_all(Inode(file.0));
        }
        self.let_removed_files_go();
        self.let_removed_segments_go();
    }

    /// Files of which something is mapped. All memories are those of processes when it is called.
    fn files_in_use(&self) -> BTreeSet<FileNumber> {
        let rooms = self.processes.values().map(|process| &process.room);
        rooms.flat_map(|room| room.borrow().memory.files()).collect()
    }

    /// Closes files without names that nobody uses any more. All memories are those of processes when it is called.
    pub fn let_removed_files_go(&mut self) {
        if self.store.has_removed() {
            let used = self.files_in_use();
            self.store.let_removed_go(&used);
        }
    }

    /// Takes pages from processes that lie behind the end of a file which was cut off: an access is an error from now on.
    #[inline]
    pub(crate) fn take_cut_pages(&mut self) {
        if !self.store.cut.is_empty() {
            self.take_pages();
        }
    }

    #[cold]
    fn take_pages(&mut self) {
        for source in self.store.take_cut() {
            for process in self.processes.values() {
                process.room.borrow_mut().memory.forget_source(&mut self.store.frames, source);
            }
        }
    }

    /// Closes files of which nothing is mapped any more, if they are many. All memories are those of processes when it is called.
    pub fn let_mapped_files_go(&mut self) {
        if !self.store.has_many_mapped() {
            return;
        }
        let used = self.files_in_use();
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
}
