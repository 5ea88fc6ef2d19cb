//! Invariants of the kernel: all that can be checked without a history.
//!
//! Tests on the simulated machine call [`Kernel::check`] after every operation; the booted kernel does so where the boot option `check=`
//! asks for it ([`checked`](crate::checked)), and never otherwise. They allocate nothing, and assert. A *name* here is the uid as it stays
//! with a thread that is being ended, so that half-ended threads are covered too.

mod queues;
mod states;

use crate::arch::pte;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Words};
use crate::mem::{doors, space, table};
use crate::object::door::thread_at;
use crate::object::mapping::{Node, NodeTable};
use crate::object::thread::{Frame as Registers, NEVER, Operation, State, Wait, special};
use crate::object::{TaskRef, ThreadRef};
use crate::processor;
use abi::Uid;
use abi::call::PRIORITIES;

/// Counts of a walk through a task's tables.
#[derive(Default)]
struct Counts {
    frames: u32,
    pages: u32,
    in_full_slabs: usize,
    elsewhere: usize,
    /// Records of large pages and of doors among the nodes in slabs.
    records: usize,
    in_trees: usize,
}

impl Counts {
    fn add(&mut self, node: &'static Node) {
        self.add_to_slabs(node);
        self.in_trees += node.count_tree();
    }

    fn add_to_slabs(&mut self, node: &'static Node) {
        if node.is_slab_full() { self.in_full_slabs += 1 } else { self.elsewhere += 1 }
    }
}

impl Kernel {
    /// Checks everything. Returns how many frames the tasks own.
    pub fn check(&self) -> usize {
        self.check_threads();
        self.check_memory()
    }

    /// Checks threads, shuttles and queues.
    pub fn check_threads(&self) {
        for slot in 1..self.thread_slots.high_water() {
            if let Some(thread) = present(slot) {
                self.check_thread(thread, slot);
            }
        }
        self.check_queues();
        self.check_queueing();
        if let Some(owner) = self.loaded.get() {
            assert!(owner.name.get() != Uid::NIL, "the processor holds the state of a thread that is gone");
        }
        let domain = processor::domain_of(processor::current());
        assert_eq!(self.domain.get(), domain, "the processor predicts by what another domain taught it");
    }

    /// Checks spaces and accounts. Returns how many frames the tasks own.
    pub fn check_memory(&self) -> usize {
        let (mut frames, mut nodes, mut in_trees) = (0, 0, 0);
        let mut tags = [0u64; 64];
        for number in 1..self.task_slots.high_water() {
            let frame = self.task_frame(number as u16);
            if frame.0 != 0 {
                let task = TaskRef::at(&self.pool, frame);
                assert_eq!(task.id.get().number() as u32, number, "a task in the wrong place");
                let counts = self.check_task(task);
                self.check_tag(task, &mut tags);
                frames += counts.frames as usize;
                nodes += counts.in_full_slabs + counts.elsewhere - counts.records;
                in_trees += counts.in_trees;
            }
        }
        assert_eq!(nodes, in_trees, "a mapping list is a cycle, or not all of it is in tables");
        frames
    }

    /// Checks that a tag has one owner, and that all threads of a task know the one that it has.
    fn check_tag(&self, task: TaskRef, owned: &mut [u64; 64]) {
        if let Some(tag) = processor::space::tag_of(task) {
            let (word, bit) = (&mut owned[tag as usize / 64], 1 << (tag % 64));
            assert!(!self.tags.is_free(tag) && *word & bit == 0, "{task:?} has somebody else's tag");
            *word |= bit;
        }
        for thread in members(task.threads.first(), |thread| task.threads.after(thread)) {
            assert_eq!(thread.hot.space.get(), task.space.get(), "{thread:?} has not the space of its task");
        }
    }

    /// Checks a thread and those around it: its partner, its server or caller, the owner of the shuttle that it is on, the carrier of that
    /// and of its own shuttle, and the queues of the two.
    pub fn check_around(&self, thread: ThreadRef) {
        let owner = self.owner(thread.hot.shuttle.get());
        let waits_for = match thread.wait() {
            Wait::Closed(from) | Wait::Answer(from) | Wait::Return(from) | Wait::Foreign(from) => {
                self.named(from)
            }
            _ => None,
        };
        let others = [
            self.named(thread.partner.get()),
            waits_for,
            thread_at(thread.server.caller.get()),
            owner,
            owner.and_then(|owner| owner.home.carrier.get()),
            thread.home.carrier.get(),
        ];
        for thread in core::iter::once(thread).chain(others.into_iter().flatten()) {
            // A carrier or caller of long ago may be gone.
            if !thread.name.get().is_nil() {
                self.check_thread(thread, thread.name.get().slot());
            }
        }
        for owner in [Some(thread), owner].into_iter().flatten() {
            self.check_queue(owner.home.effective.get() as usize);
        }
    }

    /// A thread by its name, also while it is being ended.
    pub(crate) fn named(&self, name: Uid) -> Option<ThreadRef> {
        ThreadRef::named(name).filter(|_| !name.is_nil())
    }

    fn check_thread(&self, thread: ThreadRef, slot: u32) {
        thread.check();
        thread.context.breakpoints.check();
        assert_eq!(thread.name.get().slot(), slot, "a control block in the wrong place");
        let ending = thread.hot.uid.get() == 0;
        assert!(ending || thread.uid() == thread.name.get(), "a thread with two names");
        let current = processor::current() == thread;
        for sender in members(thread.senders.first(), |sender| thread.senders.after(sender)) {
            assert_eq!(sender.state.get(), State::Sending, "in a queue without sending");
            assert_eq!(sender.partner.get(), thread.name.get(), "in somebody else's queue");
        }
        states::check(thread);
        self.check_wait(thread, current);
        let pending = thread.timeout.is_pending();
        let waits = matches!(thread.state.get(), State::Sending | State::Receiving)
            && thread.hot.accept.get() == NEVER;
        let waits = waits || matches!(thread.state.get(), State::Stalled | State::Taking);
        assert!(!pending || waits, "{thread:?} has a timeout but does not wait");
        let stopped = thread.is_stopped();
        if thread.is_ready() && !stopped && !current {
            let owner = self.owner(thread.hot.shuttle.get()).unwrap_or(thread);
            assert!(owner.home.link.is_linked(), "{thread:?} is ready, but its shuttle is in no queue");
            assert_eq!(
                owner.home.carrier.get(),
                Some(thread),
                "another thread is on the shuttle of {thread:?}"
            );
        }
        if let Some(line) = thread.line.get().checked_sub(1) {
            assert!(
                space::holds_interrupt(self, thread.task(), line as u8),
                "attached to a line that it has not"
            );
        }
    }

    /// Checks that the thread or line for which a thread waits exists, and takes part in that.
    fn check_wait(&self, thread: ThreadRef, current: bool) {
        let partner = thread.partner.get();
        match thread.wait() {
            Wait::Closed(from) | Wait::Answer(from) | Wait::Return(from) | Wait::Foreign(from) => {
                assert!(!current, "{thread:?} runs and waits");
                let exists = from.as_interrupt().is_some() || self.named(from).is_some();
                assert!(exists, "{thread:?} waits for {from:?}, which has ended");
            }
            Wait::Open => assert!(!current, "{thread:?} runs and waits"),
            Wait::Idle => {
                assert!(!current, "{thread:?} runs and waits");
                assert!(thread.server.pool.get().is_some(), "{thread:?} waits for calls and is no server");
            }
            Wait::No => match thread.state.get() {
                State::Sending => {
                    assert!(self.named(partner).is_some(), "{thread:?} sends to {partner:?}, which has ended")
                }
                State::Taking => {
                    // There is a sender: one that ends ends this wait, too.
                    let sender = self.thread(partner).expect("somebody maps");
                    let sends = matches!(
                        sender.operation.get(),
                        Operation::Map { to, .. } | Operation::Transfer { to, .. } if to == thread.uid()
                    );
                    assert!(sends, "{thread:?} takes a message from {partner:?}, which does not send");
                }
                _ => {}
            },
        }
        if let Operation::Map { to, .. } = thread.operation.get()
            && let Some(receiver) = self.thread(to)
        {
            assert_eq!(
                (receiver.state.get(), receiver.partner.get()),
                (State::Taking, thread.name.get()),
                "{thread:?} maps to {receiver:?}, which does not wait for that"
            );
        }
        if let Operation::Taken { from, .. } = thread.operation.get() {
            let sender = self.thread(from).expect("somebody sends");
            assert_eq!(
                sender.state.get(),
                State::Stalled,
                "{thread:?} faults for {sender:?}, which does not wait"
            );
            // Taking: its pager's answer is being mapped.
            assert!(matches!(thread.state.get(), State::Faulting | State::Sending | State::Taking));
        } else if thread.operation.get() != Operation::None && thread.state.get() != State::Inactive {
            let faults = matches!(thread.operation.get(), Operation::Transfer { .. } | Operation::CopyState);
            assert!(thread.is_ready() || faults, "{thread:?} is busy and waits");
            let busy = thread.frame.mode.get() & Registers::BUSY != 0;
            assert!(busy, "{thread:?} has an operation that it will not continue");
        }
    }

    fn check_queues(&self) {
        (0..PRIORITIES).for_each(|priority| self.check_queue(priority));
    }

    /// Checks that every queued shuttle has a carrier that can run and holds a valid reference to it.
    fn check_queue(&self, priority: usize) {
        let queue = &self.sched.queues[priority];
        let occupied = self.sched.occupied.get() >> priority & 1 != 0;
        assert_eq!(occupied, !queue.is_empty(), "priority {priority} and its bit differ");
        for owner in members(queue.first(), |owner| queue.after(owner)) {
            assert_eq!(owner.home.effective.get() as usize, priority, "{owner:?} is in the wrong queue");
            let carrier = owner.home.carrier.get().expect("a queued shuttle has a carrier");
            assert!(carrier.is_ready(), "the carrier {carrier:?} of a queued shuttle waits");
            assert_eq!(carrier.special.get() & special::STOPPED, 0, "{carrier:?} is stopped and queued");
            assert_ne!(carrier, processor::current(), "the running shuttle is in a queue");
            let holds = self.owner(carrier.hot.shuttle.get()).unwrap_or(carrier);
            assert_eq!(holds, owner, "the carrier {carrier:?} is on another shuttle");
        }
    }

    fn check_task(&self, task: TaskRef) -> Counts {
        let mut counts = Counts { frames: 1 + processor::space::space_frames(), ..Counts::default() };
        for entry in &self.pool.at::<Words>(Frame(task.top.get())).0[..256] {
            self.check_table(task, entry.get(), 2, &mut counts);
        }
        if !task.is_sigma0.get() {
            assert_eq!(task.pages.get(), counts.pages, "{task:?} counts its pages wrongly");
        }
        self.check_small(task, &mut counts);
        self.check_doors(task, &mut counts);
        let (slabs, others) = match task.is_dying() {
            true => (&task.state().closed_slabs, &task.state().slabs),
            false => (&task.state().slabs, &task.state().closed_slabs),
        };
        assert_eq!(others.check(0, 0), 0, "{task:?} could get nodes while it is being ended");
        counts.frames += slabs.check(counts.in_full_slabs, counts.elsewhere);
        let mut threads = 0;
        for thread in members(task.threads.first(), |thread| task.threads.after(thread)) {
            assert_eq!(thread.task.get(), Some(task), "a thread of another task");
            threads += 1;
            counts.frames += 1;
        }
        assert_eq!(threads, task.thread_count.get());
        if self.zombie.get().is_some_and(|zombie| zombie.task() == task) {
            counts.frames += 1;
        }
        let mut given = 0;
        let mut child = task.child.get();
        while let Some(this) = child {
            assert_eq!(this.chief.get(), Some(task), "a child of another chief");
            given += this.quota.get();
            child = this.sibling_next.get();
        }
        assert_eq!(
            task.used.get(),
            counts.frames + given + task.worn.get(),
            "{task:?} pays for other than it has"
        );
        assert!(task.used.get() <= task.quota.get(), "{task:?} exceeds its quota");
        counts
    }

    /// Checks the table of `level` that `entry` leads to. The depth is 3 at most.
    fn check_table(&self, task: TaskRef, entry: u64, level: usize, counts: &mut Counts) {
        if !pte::is_present(entry) || (level < 2 && pte::is_large(entry)) {
            return;
        }
        let frame = Frame(pte::address(entry));
        counts.frames += 1;
        if level > 0 {
            for below in &self.pool.at::<Words>(frame).0 {
                self.check_table(task, below.get(), level - 1, counts);
            }
            if level == 1 {
                self.check_large(task, frame, counts);
            }
            if level == 2 {
                self.check_fused(task, frame, counts);
            }
            return;
        }
        counts.frames += 1;
        let is_split = pte::is_large_or_split(entry);
        let shadow = self.pool.at::<NodeTable>(Frame(self.pool.note(frame)));
        for (entry, slot) in self.pool.at::<Words>(frame).0.iter().zip(&shadow.0) {
            let present = pte::is_present(entry.get());
            assert!(present || entry.get() == 0, "an absent entry holds an address");
            counts.pages += present as u32;
            let is_part = pte::is_part(entry.get());
            match slot.get() {
                Some(node) => {
                    assert!(present && !is_part, "a node of an absent page, or of a part of a large one");
                    assert!(node.large().is_none(), "the node of a large page at a small one");
                    node.check(task, slot, Some(entry));
                    counts.add(node);
                }
                None if is_part => assert!(is_split, "a part of nothing"),
                None => assert!(!present || task.is_sigma0.get(), "a page without a node"),
            }
        }
    }

    /// Checks the directories that are fused in the table above them.
    fn check_fused(&self, task: TaskRef, table: Frame, counts: &mut Counts) {
        let Some(names) = table::fused_of(&self.pool, table) else { return };
        counts.frames += 1;
        for (name, entry) in
            names.0.iter().zip(&self.pool.at::<Words>(table).0).filter(|(name, _)| name.get() != 0)
        {
            let (directory, seen) = (Frame(name.get()), pte::without_status(entry.get()));
            assert!(pte::is_large(seen), "a directory that is fused in nothing");
            counts.frames += 1;
            for (i, word) in self.pool.at::<Words>(directory).0.iter().enumerate() {
                let part = pte::part(seen, i as u64, table::PARTS * abi::PAGE_SIZE, false);
                assert_eq!(
                    pte::without_status(word.get()),
                    part,
                    "it shows something else than what it is fused of"
                );
            }
            self.check_large(task, directory, counts);
        }
    }

    /// Checks the large pages of a directory, and the parts that are left of split ones.
    fn check_large(&self, task: TaskRef, directory: Frame, counts: &mut Counts) {
        let shadow = table::shadow(&self.pool, directory);
        counts.frames += shadow.is_some() as u32;
        for (i, entry) in self.pool.at::<Words>(directory).0.iter().enumerate() {
            let value = entry.get();
            let Some(node) = shadow.and_then(|shadow| shadow.0[i].get()) else {
                let has_node = pte::is_large_or_split(value) && !task.is_sigma0.get();
                assert!(!has_node, "a large page without a node");
                continue;
            };
            assert!(pte::is_large_or_split(value), "the node of an absent large page");
            let slot = &shadow.expect("it has a node").0[i];
            let large = node.large().expect("a node of a directory is that of a large page");
            assert!(core::ptr::eq(large.cell(), entry), "a node does not know its entry");
            let record = large.check(task, slot);
            counts.add(node);
            counts.add_to_slabs(record);
            counts.records += 1;
            counts.frames += large.index().is_some() as u32;
            for border in large.check_index(&self.pool) {
                counts.add_to_slabs(border);
                counts.records += 1;
            }
            if pte::is_large(value) {
                assert_eq!((large.parts(), large.frame()), (0, pte::address(value)));
                counts.pages += table::PARTS as u32;
                continue;
            }
            let parts = table::parts(&self.pool, entry).iter().enumerate();
            let mut left = 0;
            for (i, part) in parts.filter(|(_, part)| pte::is_part(part.get())) {
                let frame = large.frame() + i as u64 * abi::PAGE_SIZE;
                assert_eq!(pte::address(part.get()), frame, "a part of another large page");
                left += 1;
            }
            assert!(left != 0 && left == large.parts(), "the parts of a large page are counted wrongly");
        }
    }

    /// Checks the space of doors, and the servers of the task's own doors.
    fn check_doors(&self, task: TaskRef, counts: &mut Counts) {
        counts.frames += doors::check(self, task, |node, slot, door| {
            node.check(task, slot, None);
            counts.add(node);
            if let Some(door) = door {
                counts.add_to_slabs(door);
                counts.records += 1;
            }
        });
        let servers = &task.doors.servers;
        servers.callers.check();
        for caller in members(servers.callers.first(), |caller| servers.callers.after(caller)) {
            assert_eq!(caller.state.get(), State::Queueing, "{caller:?} waits for a server and does not");
            assert_eq!(caller.queueing_at.get(), Some(task), "{caller:?} waits elsewhere");
        }
        let idle =
            servers.each().filter(|server| server.wait() == Wait::Idle && !server.is_stopped()).count();
        if !task.is_dying() {
            assert!(idle == 0 || servers.callers.is_empty(), "callers and servers wait for each other");
            assert!(
                idle == 0 || servers.unreferenced.get().is_none(),
                "a server waits, and a door has no reference"
            );
        }
        assert_eq!(servers.each().count(), servers.count.get() as usize);
        for server in servers.each() {
            assert!(server.task() == task && server.server.pool.get().is_some());
        }
        if let Some(watcher) = servers.watcher.get() {
            assert!(watcher.task() == task && watcher.state.get() == State::Watching);
        }
        if let Some(maker) = servers.maker.get() {
            assert!(
                maker.task() == task && maker.state.get() != State::Inactive,
                "{maker:?} makes no server"
            );
        }
    }

    /// Checks the spaces of ports and interrupt lines.
    fn check_small(&self, task: TaskRef, counts: &mut Counts) {
        let mut ports = 0;
        let table = |frame: u64, first: u64, counts: &mut Counts| {
            counts.frames += 1;
            let mut nodes = 0;
            for (i, slot) in self.pool.at::<NodeTable>(Frame(frame)).0.iter().enumerate() {
                let Some(node) = slot.get() else { continue };
                assert_eq!(node.address(), first + i as u64, "a port or line is not where it belongs");
                node.check(task, slot, None);
                counts.add(node);
                nodes += 1;
            }
            nodes
        };
        if task.ports.get() != 0 {
            counts.frames += 1;
            for (i, frame) in self.pool.at::<Words>(Frame(task.ports.get())).0.iter().enumerate() {
                if frame.get() != 0 {
                    ports += table(frame.get(), i as u64 * 512, counts);
                }
            }
        }
        if task.interrupts.get() != 0 {
            table(task.interrupts.get(), 0, counts);
        }
        for half in &task.port_bitmap {
            counts.frames += (half.get() != 0) as u32;
        }
        if task.has_ports() && !task.is_sigma0.get() {
            let words = task.port_bitmap.iter().flat_map(|half| &self.pool.at::<Words>(Frame(half.get())).0);
            let allowed: u32 = words.map(|word| word.get().count_zeros()).sum();
            assert_eq!(allowed, ports, "{task:?} may use other ports than it has");
        }
    }
}

/// The thread of a slot, if there is one. A slot without a thread shows zeroes on some machines.
pub(crate) fn present(slot: u32) -> Option<ThreadRef> {
    ThreadRef::in_slot(slot).filter(|thread| !thread.name.get().is_nil())
}

/// Walks a list, and asserts that it is no longer than there can be threads.
pub(crate) fn members(
    first: Option<ThreadRef>,
    mut after: impl FnMut(ThreadRef) -> Option<ThreadRef>,
) -> impl Iterator<Item = ThreadRef> {
    let mut left = crate::param::TCB_MAX;
    core::iter::successors(first, move |&thread| {
        left -= 1;
        assert_ne!(left, 0, "a list is a ring");
        after(thread)
    })
}
