//! Performs the operations of a [program](super::program) on a machine.
//!
//! Two threads are special. The *first thread* has the lowest priority and never blocks: when nobody else can run, it is there to
//! let stopped ones go on, and to abort, end and make others. The *driver*, of the first task too, is the most urgent at first,
//! and waits for an interrupt; whoever intrudes does so as this thread.
//! Names are numbers of a list of all that ever were, so a program means something without its history.

use super::history::History;
use super::program::{BASE, Control, Ipc, LINE, Op, Whom};
use crate::fast_path::Machine;
use crate::world::Caches;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, FLAGS,
    FLUSH_SELF, FOREIGN_RETURN, IPC_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_REPLY_WAIT, NOT_DIVERTED,
    NULL, RESUME_AS_IS, door_op, task_op, thread_op,
};
use abi::op;
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_SSE};
use abi::{Call, Dope, Fpage, Kind, Rights, StringPart, TaskId, ThreadState, Timeout, USER_END, Uid};
use kernel::arch;
use kernel::arch::extended::IMAGE_WORD;
use kernel::ipc::foreign;
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Progress};
use kernel::object::thread::{Frame, NO_STACK, Operation, Place, State, WORDS, Wait, special};
use kernel::object::{TaskRef, ThreadRef, door};
use kernel::processor;
use kernel::sim;
use std::iter::successors;
use std::mem::offset_of;

/// More than anything takes.
const STEPS_MAX: usize = 100_000;

/// A machine with the names of all that ever was on it.
pub struct Walk {
    /// The machine.
    pub machine: Machine,
    /// The first thread.
    root: Uid,
    driver: Uid,
    /// All threads that there ever were and whose names their makers learnt.
    pub threads: Vec<Uid>,
    tasks: Vec<TaskId>,
    /// What has to be so because of what was before.
    pub history: History,
}

impl Walk {
    /// A few tasks, some in clans of others.
    pub fn new(fast: bool, caches: Caches) -> Walk {
        let machine = Machine::new(1024, fast, caches);
        let root = machine.world.root.uid();
        let sigma0 = machine.world.sigma0.id.get();
        let mut walk = Walk {
            machine,
            root,
            driver: Uid::NIL,
            threads: vec![root],
            tasks: vec![sigma0],
            history: History::default(),
        };
        walk.control(Call::ThreadControl, thread_op::SET_PRIORITY, [0, 0, 0, 0]);
        walk.control(Call::ThreadControl, thread_op::SET_BLOCK, [0, 0, 0, 0]);
        walk.spawn(TaskId::NIL, 63, root);
        walk.driver = walk.machine.world.current().uid();
        assert_ne!(walk.driver, root);
        walk.wait_for_line();
        for i in 0..3 {
            walk.new_task(150, 63);
            walk.spawn(walk.tasks[i], 2, root);
            walk.spawn(walk.tasks[i + 1], 2, root);
        }
        walk.nest(2);
        walk.open_door(1);
        walk.open_door(2);
        walk
    }

    /// A thread of the task with this index makes a door and becomes a server, and all tasks know the door by this number.
    fn open_door(&mut self, index: usize) {
        let at = self.tasks[index];
        let is_there = |it: ThreadRef| it.task().id.get() == at && it.is_ready();
        let server = self.nth(0, is_there).expect("each task has threads");
        self.control(Call::ThreadSwitch, 0, [server.0, 0, 0, 0]);
        assert_eq!(self.current(), server);
        self.control(Call::DoorControl, door_op::CREATE, [index as u64, 0x2000, 7, 0]);
        self.settle();
        let k = &self.machine.world.k;
        let page = Fpage::doors(index as u32, 0, Rights::RW);
        let plan = Plan::fit(page, 0, page).expect("it fits");
        for task in k.tasks().filter(|task| task.id.get() != at) {
            let (mut progress, from) = (Progress::START, k.task(at).expect("just used"));
            while space::map(k, plan, from, task, &mut progress, &mut 100).is_err() {}
        }
        self.control(Call::DoorControl, door_op::SERVE, [0; 4]);
    }

    /// A thread of the task with this index makes a clan, so that messages cross borders.
    fn nest(&mut self, index: usize) {
        let k = &self.machine.world.k;
        let is_there = |uid: &&Uid| k.thread(**uid).is_some_and(|it| it.task().id.get() == self.tasks[index]);
        let chief = *self.threads.iter().find(is_there).expect("each task has threads");
        self.control(Call::ThreadSwitch, 0, [chief.0, 0, 0, 0]);
        assert_eq!(self.machine.world.current().uid(), chief);
        self.new_task(60, 63);
        let inner = *self.tasks.last().expect("just made");
        self.spawn(inner, 2, self.root);
        self.spawn(inner, 2, chief);
    }

    /// The thread with a number, counted among those that satisfy something.
    fn nth(&self, number: u64, which: impl Fn(ThreadRef) -> bool) -> Option<Uid> {
        let k = &self.machine.world.k;
        let is = |uid: &&Uid| k.thread(**uid).is_some_and(&which);
        let count = self.threads.iter().filter(is).count();
        if count == 0 {
            return None;
        }
        self.threads.iter().filter(is).nth(number as usize % count).copied()
    }

    fn thread(&self, number: u64) -> Uid {
        let any = self.threads[(number >> 3) as usize % self.threads.len()];
        if number & 7 == 0 { any } else { self.nth(number >> 3, |_| true).unwrap_or(any) }
    }

    /// Whom to send to: mostly somebody who waits for the current thread.
    fn partner(&self, number: u64) -> Uid {
        let me = self.machine.world.current().uid();
        let waits = |thread: ThreadRef| match thread.wait() {
            Wait::Open => true,
            Wait::Closed(from) | Wait::Answer(from) => from == me,
            _ => false,
        };
        let found = if number.is_multiple_of(16) { None } else { self.nth(number / 16, waits) };
        found.unwrap_or_else(|| self.thread(number / 16))
    }

    /// Whom a control is about. `first` was current before the acting thread intruded.
    fn target(&self, whom: Whom, number: u64, first: ThreadRef) -> Uid {
        let by = self.machine.world.current().task();
        let mine = |it: ThreadRef| it.task() == by || by.is_chief_of(it.task());
        let near = first.hot.uid.get();
        let is_partner = |it: ThreadRef| {
            let waits_for = partner_of(it).is_some_and(|partner| partner.0 == near);
            let goes_to = match first.operation.get() {
                Operation::Map { to, .. } | Operation::Transfer { to, .. } => to == it.uid(),
                Operation::Taken { from, .. } => from == it.uid(),
                _ => false,
            };
            waits_for || goes_to
        };
        let is_busy = |it: ThreadRef| {
            it.operation.get() != Operation::None || !it.is_ready() && it.wait() != Wait::Open
        };
        let sends = matches!(first.operation.get(), Operation::Map { .. } | Operation::Transfer { .. });
        let found = match whom {
            // Who gets a message in steps is the one whom all of this is about.
            _ if sends && number.is_multiple_of(2) => self.nth(number / 2, |it| mine(it) && is_partner(it)),
            Whom::Any => None,
            Whom::Self_ => Some(Uid::NIL),
            Whom::Controlled => self.nth(number, mine),
            Whom::Partner => self.nth(number, |it| mine(it) && is_partner(it)),
            Whom::Busy => self.nth(number, |it| mine(it) && is_busy(it)),
            Whom::Stopped => self.nth(number, |it| mine(it) && it.is_stopped()),
        };
        found.or_else(|| self.nth(number, mine)).unwrap_or_else(|| self.thread(number))
    }

    fn task(&self, number: u64) -> TaskId {
        let any = self.tasks[(number >> 2) as usize % self.tasks.len()];
        match number % 4 {
            0 => TaskId::NIL,
            1 => self.child(number >> 2).unwrap_or(any),
            _ => any,
        }
    }

    /// The identifier with a number; or, if the current thread has any, one of a door whose task is being ended.
    fn door(&self, number: u64) -> u64 {
        let (k, task) = (&self.machine.world.k, self.machine.world.current().task());
        let is_ending = |number: &u64| {
            kernel::mem::doors::find(k, task, *number)
                .is_some_and(|it| it.door().task().is_ending() && it.door().task() != task)
        };
        (0..6).find(is_ending).filter(|_| number < 6).unwrap_or(number)
    }

    /// One of those that the current thread's task made.
    fn child(&self, number: u64) -> Option<TaskId> {
        let (k, chief) = (&self.machine.world.k, self.machine.world.current().task());
        let children = || k.tasks().filter(|task| chief.is_chief_of(*task));
        let count = children().count().max(1);
        children().nth(number as usize % count).map(|task| task.id.get())
    }

    fn call(&mut self, rax: u64, rdx: u64, w: [u64; WORDS]) {
        self.history.calls(self.machine.world.current(), rax, w[Frame::R15]);
        let live = &mut self.machine.live;
        (live.rax, live.rdx, live.w) = (rax, rdx, w);
        self.machine.system_call();
    }

    /// A call but ipc. Its first result, if the caller still runs and there was no error.
    fn control(&mut self, call: Call, operation: u32, [rdi, rsi, rdx, r10]: [u64; 4]) -> Option<u64> {
        let caller = self.machine.world.current();
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI], w[Frame::R10]) = (rdi, rsi, r10);
        self.call(call as u64 | (operation as u64) << 8, rdx, w);
        let back = self.machine.in_user_mode() && self.machine.world.current() == caller;
        (back && self.machine.live.rax == 0).then(|| self.machine.live.w[Frame::RDI])
    }

    fn new_task(&mut self, quota: u64, priority: u64) {
        if let Some(id) = self.control(Call::TaskControl, task_op::CREATE, [quota, priority, 0, 0]) {
            self.tasks.push(TaskId(id));
            // Few tasks are in a domain of their own, since their messages are all on the general path.
            if quota == 60 && self.tasks.len().is_multiple_of(4) {
                self.control(Call::TaskControl, task_op::SET_DOMAIN, [id, 0, 0, 0]);
            }
        }
    }

    fn spawn(&mut self, task: TaskId, priority: u64, pager: Uid) {
        if let Some(uid) = self.create(task, priority, pager) {
            self.control(Call::ThreadControl, thread_op::START, [uid.0, 0x1000, 0x8000, 0]);
        }
    }

    /// Makes a thread that does not run yet.
    fn create(&mut self, task: TaskId, priority: u64, pager: Uid) -> Option<Uid> {
        let arguments = [task.0, priority, pager.0, pager.0];
        let uid = self.control(Call::ThreadControl, thread_op::CREATE, arguments)?;
        self.machine.world.k.thread(Uid(uid)).map(|_| {
            self.threads.push(Uid(uid));
            // It has room for a block and for items, at first.
            let (room, patience) =
                (Dope::room(600, 1, 1).0, if uid.is_multiple_of(3) { 2000 } else { u32::MAX });
            let place = BASE + ((uid % 64) << 12);
            self.control(Call::ThreadControl, thread_op::SET_BLOCK, [uid, place, room, patience.into()]);
            let window = if uid.is_multiple_of(2) {
                Fpage::memory(BASE, 24, Rights::RWX)
            } else {
                Fpage::doors(0, 2, Rights::RW)
            };
            self.control(Call::ThreadControl, thread_op::SET_WINDOW, [uid, window.0, 0, 0]);
            Uid(uid)
        })
    }

    fn current(&self) -> Uid {
        Uid(self.machine.world.current().hot.uid.get())
    }

    /// Lets the current thread finish what it is in the middle of.
    fn settle(&mut self) {
        let mut steps = 0;
        while self.machine.world.is_busy() {
            self.machine.go_on();
            steps += 1;
            assert!(steps < STEPS_MAX, "{:?} makes no progress", self.machine.world.current());
        }
    }

    fn is_any(&self, is_one: impl Fn(ThreadRef) -> bool) -> bool {
        self.threads.iter().filter_map(|&uid| self.machine.world.k.thread(uid)).any(is_one)
    }

    /// Makes a foreign call by a thread to which native calls are denied, or returns from one. False if the operation is not one that stands
    /// for that.
    fn perform_foreign(&mut self, op: &Op) -> bool {
        let current = self.machine.world.current();
        if self.return_late(op) {
            return true;
        }
        let has_call = |thread: ThreadRef| waits_for_return(thread, current.uid());
        let takes = |it: ThreadRef| it.wait() == Wait::Open && it.takes_foreign();
        // Mostly one that gets more than exceptions from it.
        let taker = self.nth(0, |it| takes(it) && it.may_do_calls_of(current)).or_else(|| self.nth(0, takes));
        let rax = match *op {
            _ if current.uid() == self.root => return false,
            Op::React { number, .. } if number % 8 == 0 && current.special.get() == 0 => {
                let mut w = [0; WORDS];
                (w[Frame::RBX], w[Frame::R15]) = (Uid::ANY.0, timeouts_of(Timeout::ZERO, Timeout::NEVER));
                self.call((Call::Ipc as u32 | op::TAKES_BLOCK | op::TAKES_FOREIGN).into(), 0, w);
                return true;
            }
            Op::React { number, .. } if number % 8 < 3 && taker.is_some() && current.special.get() == 0 => {
                let (pager, handler) = (current.fault.pager.get(), taker.unwrap_or(Uid::NIL));
                self.control(Call::ThreadControl, thread_op::SET_PAGER, [0, pager.0, handler.0, 0]);
                if self.machine.world.current() == current {
                    self.control(Call::ThreadControl, thread_op::DENY_NATIVE, [0, 1, number % 100, 0]);
                }
                return true;
            }
            Op::Call { dest: number, .. } | Op::Exception { vector: number } | Op::React { number, .. }
                if current.special.get() & special::DENY_NATIVE != 0 =>
            {
                39 + number % 3
            }
            Op::React { .. } | Op::ReplyWait { .. }
                if current.foreign.stack.get() != NO_STACK && self.is_any(has_call) =>
            {
                FOREIGN_RETURN.into()
            }
            _ => return false,
        };
        self.call(rax, 9, [5; WORDS]);
        true
    }

    /// Returns late from a foreign call that the current thread does, or has left unanswered. False if the operation does not stand for that.
    fn return_late(&mut self, op: &Op) -> bool {
        let handler = self.machine.world.current();
        let may = handler.special.get() & special::DENY_NATIVE == 0;
        match *op {
            Op::React { number, long }
                if number % 4 == 3 && may && self.is_any(|it| has_called(it, handler)) =>
            {
                let place = [0, 8, 0xfc0][long as usize % 3];
                let rsi = BASE + number / 8 % 64 * 4096 + place;
                let (operation, whom) = (thread_op::FOREIGN_RETURN, Whom::Any);
                let control = Control { operation, whom, target: number / 8, rsi, rdx: 0, r10: 0 };
                self.thread_control(&control, handler);
                true
            }
            _ => false,
        }
    }

    /// Performs an operation, and whatever the current thread has to do before that.
    pub fn perform(&mut self, op: &Op) {
        match *op {
            Op::Interrupt { line } => return self.machine.interrupt(line),
            Op::Advance { us } => return self.machine.advance(us * 1000),
            Op::Deny { first, count } => return self.deny(first, count),
            Op::Intrude(ref control) => return self.intrude(control.as_ref()),
            Op::GoOn | Op::React { .. } | Op::Call { .. } if self.machine.world.is_busy() => {
                return self.machine.go_on();
            }
            Op::Describe { words, .. } if self.machine.world.is_busy() => {
                return self.describe_meanwhile(words);
            }
            Op::Ipc(Ipc { dest, .. }) if self.maps_an_item() => {
                let page = match dest % 4 {
                    0 => Fpage::ports(0, 8),
                    size => Fpage::memory(BASE, 11 + 2 * size as u32, Rights::RW),
                };
                return self.describe_meanwhile([page.0, BASE + dest / 4 % 64 * 4096]);
            }
            // Somebody does that while the current thread is in the middle of something.
            Op::Thread(ref control) if self.machine.world.is_busy() => return self.intrude(Some(control)),
            _ => {}
        }
        self.settle();
        if self.machine.world.is_idle() {
            return;
        }
        if self.perform_foreign(op) {
            return;
        }
        match self.current() {
            uid if uid == self.root => self.perform_as_first(op),
            uid if uid == self.driver => self.wait_for_line(),
            _ => self.perform_as_any(op),
        }
    }

    /// Whether the current thread is in the middle of an item of a block.
    fn maps_an_item(&self) -> bool {
        let current = self.machine.world.current();
        matches!(current.operation.get(), Operation::Transfer { at: Place { begun: true, .. }, .. })
    }

    /// Others of their tasks write to the blocks of a transfer, of which the current thread is in the middle: what is just under way becomes
    /// something else.
    fn describe_meanwhile(&self, words: [u64; 2]) {
        let (k, sender) = (&self.machine.world.k, self.machine.world.current());
        let Operation::Transfer { to, at } = sender.operation.get() else { return };
        let (Some(receiver), Some(number)) = (k.thread(to), (at.part as u64).checked_sub(1)) else { return };
        let used = Dope(sender.frame.w[0].get());
        let place = |dope: Dope| match number.checked_sub(used.strings()) {
            None => dope.strings_offset() + 16 * number,
            Some(item) => dope.items_offset() + 16 * item,
        };
        let room = receiver.block.room().with_used(used);
        // One of them or both.
        let both = [
            (sender, sender.frame.w[1].get() + place(used)),
            (receiver, receiver.block.address.get() + place(room)),
        ];
        for (thread, address) in both.into_iter().skip((words[1] & 1) as usize) {
            // Without memory there, nothing is written.
            let _ = processor::copy::write_words(k, sender.task(), (thread.task(), address), words);
        }
    }

    /// The first thread does what does not block, and wakes somebody instead of all else.
    fn perform_as_first(&mut self, op: &Op) {
        match *op {
            Op::Call { dest, .. }
            | Op::Converse { dest }
            | Op::ReplyWait { dest, .. }
            | Op::DoorCall { number: dest, .. } => self.rouse(dest),
            Op::React { .. }
            | Op::Answer { .. }
            | Op::AnswerShown(_)
            | Op::Fault { .. }
            | Op::Exception { .. }
            | Op::Garbage { .. }
            | Op::Serve { .. }
            | Op::DoorReturn { .. } => self.rouse(0),
            Op::Ipc(ref ipc) => self.ipc(&self.at_once(ipc)),
            Op::Long { ref ipc, dope, address, .. } => {
                let ipc = self.at_once(ipc);
                self.long(2, &ipc, (dope, address));
            }
            _ => self.perform_as_any(op),
        }
    }

    /// What does not wait, neither to send nor to receive.
    fn at_once(&self, ipc: &Ipc) -> Ipc {
        Ipc {
            dest: ipc.dest | 1,
            from: 0,
            timeouts: 0,
            flags: ipc.flags & !op::ABSOLUTE,
            window: 0,
            ..ipc.clone()
        }
    }

    fn perform_as_any(&mut self, op: &Op) {
        match *op {
            Op::React { number, long } => self.react(number, long),
            Op::Call { .. }
            | Op::ReplyWait { .. }
            | Op::Converse { .. }
            | Op::Answer { .. }
            | Op::AnswerShown(_)
            | Op::Ipc(_)
            | Op::Long { .. } => self.perform_ipc(op),
            Op::Window { .. }
            | Op::DoorCall { .. }
            | Op::DoorReturn { .. }
            | Op::MakeDoor { .. }
            | Op::Serve { .. } => self.perform_by_door(op),
            Op::SetBlock { target, room, address, patience } => {
                let target = if target == u64::MAX { Uid::NIL } else { self.thread(target) };
                let root = target == self.root || self.current() == self.root && target.is_nil();
                let patience = if root { 0 } else { patience as u64 };
                let arguments = [target.0, address, room, patience];
                self.control(Call::ThreadControl, thread_op::SET_BLOCK, arguments);
            }
            Op::Describe { address, words } => {
                let world = &self.machine.world;
                let task = world.current().task();
                // Without memory there, nothing is written.
                let _ = processor::copy::write_words(&world.k, task, (task, address), words);
            }
            Op::Flush { page, own } => {
                self.control(Call::Flush, 0, [page, if own { FLUSH_SELF } else { 0 }, 0, 0]);
            }
            Op::Thread(ref control) => self.thread_control(control, self.machine.world.current()),
            Op::Spawn { task, priority, pager } => {
                let (task, pager) = (self.task(task), self.thread(pager));
                // Some wait for somebody to start them.
                if priority == 3 {
                    self.create(task, priority, pager);
                } else {
                    self.spawn(task, priority, pager);
                }
            }
            Op::Task { operation, target, rsi } => {
                self.control(Call::TaskControl, operation, [self.task(target).0, rsi, 0, 0]);
            }
            Op::NewTask { quota, priority } => self.new_task(quota, priority),
            Op::Switch { to } => {
                let to = if to.is_multiple_of(3) { Uid::NIL } else { self.thread(to) };
                self.control(Call::ThreadSwitch, 0, [to.0, 0, 0, 0]);
            }
            Op::Garbage { rax, rdx, words } => self.call(rax, rdx, [words; WORDS]),
            Op::Fault { address, rights } if self.choose_pager(address) => {
                self.machine.page_fault(address, Rights(rights));
            }
            Op::Exception { vector } if self.choose_pager(vector) => self.machine.exception(vector),
            Op::Fault { .. } | Op::Exception { .. } => {}
            Op::Touch { address, write } => {
                let world = &self.machine.world;
                sim::touch(&world.k.pool, world.current().task(), address, write);
            }
            Op::GoOn => self.call(NULL as u64, 0, [0; WORDS]),
            Op::Interrupt { .. } | Op::Advance { .. } | Op::Deny { .. } | Op::Intrude(_) => {
                unreachable!("done before anything that takes a thread in user mode")
            }
        }
    }

    fn perform_ipc(&mut self, op: &Op) {
        match *op {
            Op::Call { dest, takes } => {
                let rax = (IPC_CALL & !takes) as u64 | 7 << 32;
                self.call(rax, self.partner(dest).0, [dest; WORDS])
            }
            Op::Converse { dest } => self.converse(dest),
            Op::ReplyWait { dest, label } => self.reply(self.partner(dest), label),
            Op::Answer { label, item } => self.answer(label, item),
            Op::AnswerShown(ref ipc) => self.answer_shown(ipc),
            Op::Ipc(ref ipc) => self.ipc(ipc),
            Op::Long { form, ref ipc, dope, address } => self.long(form, ipc, (dope, address)),
            _ => unreachable!("no ipc: {op:?}"),
        }
    }

    fn perform_by_door(&mut self, op: &Op) {
        match *op {
            Op::Window { window } => {
                self.control(Call::ThreadControl, thread_op::SET_WINDOW, [0, window, 0, 0]);
            }
            Op::DoorCall { number, takes, item: 0 } => {
                self.call((DOOR_CALL & !takes) as u64 | 7 << 32, self.door(number), [number; WORDS])
            }
            Op::DoorReturn { item: 0 } => self.call(DOOR_RETURN as u64 | 8 << 32, 9, [4; WORDS]),
            Op::DoorCall { number, takes, item } => {
                self.door_item(DOOR_ITEM_CALL & !takes, self.door(number), item)
            }
            Op::DoorReturn { item } => self.door_item(DOOR_ITEM_RETURN, 9, item),
            Op::MakeDoor { number, datum } => {
                self.control(Call::DoorControl, door_op::CREATE, [number, 0x2000, datum, 0]);
            }
            Op::Serve { operation } => {
                self.control(Call::DoorControl, operation, [0; 4]);
            }
            _ => unreachable!("it has to do with no door: {op:?}"),
        }
    }

    /// Mostly the current thread's pager and handler becomes one who waits. False if that was an exception already.
    fn choose_pager(&mut self, number: u64) -> bool {
        if number.is_multiple_of(4) {
            return true;
        }
        let [pager, handler] = [number, number + 16].map(|number| self.partner(number).0);
        self.control(Call::ThreadControl, thread_op::SET_PAGER, [0, pager, handler, 0]).is_some()
    }

    /// Of what anybody asks for from now on, some is denied.
    fn deny(&self, first: u64, count: u64) {
        let k = &self.machine.world.k;
        k.tasks().for_each(|task| task.set_counted(true));
        k.pool.deny(first, count);
    }

    fn thread_control(&mut self, control: &Control, first: ThreadRef) {
        let Control { operation, whom, target, rsi, rdx, r10 } = *control;
        let (acting, handler) = (self.current(), self.machine.world.current());
        let target = match operation {
            thread_op::FOREIGN_RETURN => self
                .nth(target, |it| has_called(it, handler))
                .or_else(|| self.nth(target, |it| waits_for_return(it, acting))),
            _ => None,
        }
        .unwrap_or_else(|| self.target(whom, target, first));
        let whose = if target.is_nil() { acting } else { target };
        let harmful = !matches!(operation, thread_op::INFO | thread_op::NEXT);
        // The driver only gets another priority.
        let spared = whose == self.root || whose == self.driver && operation != thread_op::SET_PRIORITY;
        if operation == thread_op::CREATE || harmful && spared {
            return;
        }
        let (rsi, rdx) = match operation {
            // Often one who calls it, or whom it calls.
            thread_op::SET_PAGER if rsi % 2 == 0 => {
                let near = self.machine.world.k.thread(whose).and_then(partner_of).unwrap_or(Uid::NIL);
                (near.0, self.thread(rdx).0)
            }
            thread_op::SET_PAGER => (self.thread(rsi).0, self.thread(rdx).0),
            _ => (rsi, rdx),
        };
        if operation == thread_op::SET_STATE {
            self.write_state(rsi, r10);
        }
        if let Some(thread) = self.machine.world.k.thread(whose) {
            self.history.controls(operation, thread);
        }
        let caller = self.machine.world.k.thread(whose);
        let caller = caller.filter(|&it| operation == thread_op::FOREIGN_RETURN && has_called(it, handler));
        let is_on_its_shuttle = caller.is_some_and(|it| it.hot.shuttle.get() == handler.hot.shuttle.get());
        self.control(Call::ThreadControl, operation, [target.0, rsi, rdx, r10]);
        if caller.is_some_and(|it| it.wait() == Wait::No) {
            self.history.late[usize::from(is_on_its_shuttle)] += 1;
        }
    }

    /// Writes a state that is to be set into the current thread's memory, if there is memory. Some states are none.
    fn write_state(&mut self, address: u64, number: u64) {
        let mut words = [number; size_of::<ThreadState>() / 8];
        let (registers, image) = (offset_of!(ThreadState, registers) / 8, offset_of!(ThreadState, image) / 8);
        (words[0], words[1]) = (ThreadState::LEN_BYTES, 7);
        let ip = if number.is_multiple_of(16) { USER_END } else { 0x1000 };
        words[registers..registers + 3].copy_from_slice(&[ip, 0x8000, FLAGS]);
        words[offset_of!(ThreadState, gs_base) / 8..].fill(0);
        words[image + IMAGE_MXCSR] = 0x1f80;
        words[image + IMAGE_HEADER] = STATE_SSE | 1 << (number % 4);
        words[image + IMAGE_WORD] = self.machine.owners.give();
        let (world, task) = (&self.machine.world, self.machine.world.current().task());
        let _ = processor::copy::write_words(&world.k, task, (task, address), words);
    }

    /// The driver waits for its interrupt. If that cannot come any more, it stops.
    fn wait_for_line(&mut self) {
        let mut w = [0; WORDS];
        (w[Frame::RBX], w[Frame::R15]) = (Uid::interrupt(LINE).0, timeouts_of(Timeout::ZERO, Timeout::NEVER));
        self.call(Call::Ipc as u64, 0, w);
        let failed = self.machine.in_user_mode() && Kind::from_eax(self.machine.live.rax as u32).is_none();
        if failed && self.current() == self.driver {
            self.control(Call::ThreadControl, thread_op::STOP, [0; 4]);
        }
    }

    /// Whatever the processor is in the middle of, an interrupt comes; if its driver runs, it does something.
    fn intrude(&mut self, control: Option<&Control>) {
        let first = self.machine.world.current();
        self.machine.interrupt(LINE);
        if self.current() != self.driver || self.machine.world.is_busy() {
            return;
        }
        if let Some(control) = control {
            self.thread_control(control, first);
        }
        // What takes several steps goes on some other time.
        if self.current() == self.driver && self.machine.in_user_mode() {
            self.wait_for_line();
        }
    }

    /// The first thread lets somebody go on whom it controls, from `number` on.
    fn rouse(&mut self, number: u64) {
        let count = self.threads.len();
        for i in 0..count {
            let uid = self.threads[(number as usize % count + i) % count];
            let Some(thread) = self.machine.world.k.thread(uid).filter(|_| uid != self.root) else {
                continue;
            };
            let operation = if thread.is_stopped() { thread_op::RESUME } else { thread_op::ABORT };
            if uid != self.driver || operation == thread_op::RESUME {
                self.history.controls(operation, thread);
                self.control(Call::ThreadControl, operation, [uid.0, 0, 0, 0]);
            }
            if self.machine.world.is_busy() || self.current() != self.root {
                return;
            }
        }
    }

    /// What a program does that means well.
    fn react(&mut self, number: u64, long: u64) {
        let live = &self.machine.live;
        let (from, address) = (Uid(live.rdx), live.w[0] & !0xfff);
        match Kind::from_eax(live.rax as u32) {
            Some(Kind::Fault) => {
                // Most are resolved by a page, some by so many that it takes several steps.
                let log2 = if long < 2 { 20 } else { 12 };
                self.reply_item(from, Fpage::memory(address >> log2 << log2, log2, Rights::RWX).0, address);
            }
            Some(Kind::Exception) => self.reply(from, RESUME_AS_IS),
            // It returns first to who called it through a door, and is on the shuttle of who called it by ipc.
            Some(Kind::Request) if long >= 4 && self.serves() => self.return_at_length(long, from),
            Some(Kind::Request) if long == 0 => {
                self.reply_item(from, Fpage::memory(BASE, 20, Rights::RWX).0, BASE)
            }
            Some(Kind::Request) if long == 1 => self.reply_block(IPC_LONG_REPLY_WAIT, from),
            Some(Kind::Request) if self.was_diverted() => self.reply_shown(from, Uid(live.w[Frame::R15])),
            Some(Kind::Request) => self.reply(from, 0),
            Some(Kind::DoorCall | Kind::Unreferenced) => match long {
                0 | 1 => self.return_at_length(long, from),
                // It takes a call by ipc first.
                2..4 => self.reply(Uid::NIL, 0),
                _ => self.call(DOOR_RETURN as u64 | 8 << 32, 9, [4; WORDS]),
            },
            _ if number.is_multiple_of(4) => self.reply(Uid::NIL, 0),
            _ if number.is_multiple_of(3) => {
                let rax = if long < 3 { DOOR_ITEM_CALL } else { DOOR_CALL };
                self.door_item(
                    rax & !((number >> 8) as u32 & op::TAKES),
                    self.door(number % 6),
                    Fpage::memory(BASE, 20, Rights::RWX).0,
                )
            }
            _ => self.call(
                (IPC_CALL & !(number as u32 & op::TAKES)) as u64,
                self.partner(number).0,
                [7; WORDS],
            ),
        }
    }

    /// Whether somebody waits for the current thread's return.
    fn serves(&self) -> bool {
        let me = self.machine.world.current();
        let caller = door::thread_at(me.server.caller.get());
        me.server.pool.get().is_some() && caller.is_some_and(|it| it.wait() == Wait::Return(me.uid()))
    }

    /// Returns with many pages, or a block.
    fn return_at_length(&mut self, long: u64, from: Uid) {
        if long.is_multiple_of(2) {
            self.door_item(DOOR_ITEM_RETURN, 9, Fpage::memory(BASE, 20, Rights::RWX).0);
        } else {
            self.reply_block(DOOR_LONG_RETURN, from);
        }
    }

    fn reply_block(&mut self, form: u32, dest: Uid) {
        let mut w = [5; WORDS];
        let used = Dope::used(600, 0, dest.0 >> 4 & 1);
        (w[0], w[1], w[Frame::R15]) = (used.0, BASE, 0);
        self.describe(self.machine.world.current(), BASE, used, 2);
        self.call(form.into(), dest.0, w);
    }

    fn reply(&mut self, dest: Uid, label: u32) {
        self.call(IPC_REPLY_WAIT as u64 | (label as u64) << 32, dest.0, [5; WORDS]);
    }

    /// Answers whoever sent last, with an item or without.
    fn answer(&mut self, label: u32, item: u64) {
        let sender = Uid(self.machine.live.rdx);
        let dest = if sender.is_nil() || self.machine.world.k.thread(sender).is_some() {
            sender
        } else {
            self.partner(7)
        };
        if self.was_diverted() && item == 0 {
            return self.reply_shown(dest, Uid(self.machine.live.w[Frame::R15]));
        }
        if item == 0 {
            return self.reply(dest, label);
        }
        self.reply_item(dest, item, BASE);
    }

    fn reply_item(&mut self, dest: Uid, item: u64, hot_spot: u64) {
        let mut w = [9; WORDS];
        (w[6], w[7]) = (item, hot_spot);
        (w[Frame::RBX], w[Frame::RBP]) = (Uid::ANY.0, 0);
        w[Frame::R15] = timeouts_of(Timeout::ZERO, Timeout::NEVER);
        self.call((Call::Ipc as u32 | op::ITEM | op::TAKES_BLOCK) as u64, dest.0, w);
    }

    /// Whether the current thread has in its registers a request that it got as a chief.
    fn was_diverted(&self) -> bool {
        let kind = self.machine.live.rax as u32;
        kind | NOT_DIVERTED == Kind::Request as u32 && kind & NOT_DIVERTED == 0
    }

    fn converse(&mut self, number: u64) {
        let caller = self.current();
        let Some(dest) = self.nth(number, |it| it.uid().clan() != caller.clan()) else { return };
        for round in 0..3 {
            self.call(IPC_CALL as u64, dest.0, [8; WORDS]);
            if self.machine.in_user_mode() && self.was_diverted() && Uid(self.machine.live.rdx) == caller {
                let shown = Uid(self.machine.live.w[Frame::R15]);
                if number.is_multiple_of(2) {
                    self.reply_shown(caller, shown);
                } else {
                    self.delegate(caller, shown, round == 2);
                }
            }
            if !self.machine.in_user_mode() || self.current() != caller {
                return;
            }
        }
    }

    /// The current thread, a chief's, calls another thread of its task, which answers the caller as the one who was meant. Then, unless that
    /// is the `last` time, both wait again, and the caller goes on.
    fn delegate(&mut self, caller: Uid, shown: Uid, last: bool) {
        let chief = self.machine.world.current();
        let waits = |it: ThreadRef| it != chief && it.task() == chief.task() && it.wait() == Wait::Open;
        let chief = chief.uid();
        let Some(mate) = self.nth(0, waits) else { return self.reply_shown(caller, shown) };
        self.call(IPC_CALL as u64, mate.0, [8; WORDS]);
        if self.current() != mate || !self.machine.in_user_mode() {
            return;
        }
        if last {
            return self.reply_shown(caller, shown);
        }
        let mut w = [9; WORDS];
        (w[5], w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (shown.0, 0, 0, 0);
        self.call((Call::Ipc as u32 | op::SHOWN).into(), caller.0, w);
        for (who, to) in [(mate, chief), (chief, Uid::NIL)] {
            self.switch_to(who);
            if self.current() == who && self.machine.in_user_mode() {
                self.reply(to, 0);
            }
        }
        self.switch_to(caller);
    }

    /// Whoever runs lets another run, if that can.
    fn switch_to(&mut self, to: Uid) {
        if self.current() != to && self.machine.in_user_mode() {
            self.control(Call::ThreadSwitch, 0, [to.0, 0, 0, 0]);
        }
    }

    /// Answers as the one who was meant.
    fn reply_shown(&mut self, dest: Uid, shown: Uid) {
        let mut w = [9; WORDS];
        w[5] = shown.0;
        (w[Frame::RBX], w[Frame::RBP]) = (Uid::ANY.0, 0);
        w[Frame::R15] = timeouts_of(Timeout::ZERO, Timeout::NEVER);
        self.call((Call::Ipc as u32 | op::SHOWN | op::TAKES_BLOCK) as u64, dest.0, w);
    }

    /// A chief's thread answers somebody who waits for one on the other side of the border, whoever got the message.
    fn answer_shown(&mut self, ipc: &Ipc) {
        let (k, chief) = (&self.machine.world.k, self.machine.world.current().task());
        let waits_for = |it: ThreadRef| match it.wait() {
            Wait::Closed(from) | Wait::Answer(from) => k.thread(from),
            _ => None,
        };
        let may = |it: ThreadRef| {
            waits_for(it).is_some_and(|from| {
                let (to, from) = (it.task(), from.task());
                to != chief && from != chief && is_inside(to, chief) != is_inside(from, chief)
            })
        };
        let Some(dest) = self.nth(ipc.dest, may) else { return self.answer(0, 0) };
        let shown = k.thread(dest).and_then(waits_for).expect("just found").uid();
        let flags = ipc.flags | op::SHOWN;
        self.general(dest, self.from(ipc.from, dest), shown, &Ipc { flags, ..ipc.clone() });
    }

    fn from(&self, from: u64, dest: Uid) -> Uid {
        match from >> 32 {
            0 => Uid::NIL,
            1 => dest,
            2 => Uid::ANY,
            _ if from.is_multiple_of(5) => Uid::interrupt(if from.is_multiple_of(2) { LINE } else { 20 }),
            _ => self.thread(from),
        }
    }

    fn ipc(&mut self, ipc: &Ipc) {
        let dest = if ipc.dest == 0 { Uid::NIL } else { self.partner(ipc.dest) };
        self.general(dest, self.from(ipc.from, dest), self.thread(ipc.shown), ipc);
    }

    fn general(&mut self, dest: Uid, from: Uid, shown: Uid, ipc: &Ipc) {
        let mut w = [9; WORDS];
        w[5] = shown.0;
        (w[6], w[7]) = ipc.item.unwrap_or((0, 0));
        (w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (from.0, ipc.window, self.until(ipc));
        let flag = if ipc.item.is_some() { op::ITEM } else { 0 };
        self.call((Call::Ipc as u32 | flag | ipc.flags) as u64, dest.0, w);
    }

    /// The timeouts, or the point in time.
    fn until(&self, ipc: &Ipc) -> u64 {
        if ipc.flags & op::ABSOLUTE == 0 {
            return ipc.timeouts;
        }
        Timeout(ipc.timeouts as u32).us().map_or(u64::MAX, |us| arch::now_ns() + us * 1000)
    }

    /// Long strings, and items of many pages or ports, stand in a thread's block, if there is memory.
    fn describe(&self, thread: ThreadRef, address: u64, dope: Dope, number: u64) {
        let world = &self.machine.world;
        let write = |offset: u64, words| {
            let at = (thread.task(), address.wrapping_add(offset));
            let is_there = at.1 < USER_END - 16;
            let _ =
                is_there.then(|| processor::copy::write_words(&world.k, world.current().task(), at, words));
        };
        let string = StringPart { address: BASE + 0x8000, len: 40_000, capacity: 40_000 };
        for i in 0..dope.strings() {
            write(dope.strings_offset() + 16 * i, [string.address, string.sizes()]);
        }
        let item = match number % 5 {
            0 => Fpage::ports(0, 8),
            1 => Fpage::memory(BASE, 20, Rights::RW),
            _ => Fpage::memory(BASE, 18, Rights::RWX),
        };
        for i in 0..dope.items() {
            write(dope.items_offset() + 16 * i, [item.0, 0]);
        }
    }

    fn door_item(&mut self, operation: u32, number: u64, item: u64) {
        let mut w = [3; WORDS];
        (w[6], w[7]) = (item, BASE + number * 4096);
        self.call(operation as u64 | 9 << 32, number, w);
    }

    fn long(&mut self, form: u64, ipc: &Ipc, (dope, address): (u64, u64)) {
        let mut w = [9; WORDS];
        (w[0], w[1]) = (dope, address);
        // The short forms lose it, on the fast path earlier than on the slow one.
        w[Frame::R15] = 0;
        let dest = self.partner(ipc.dest);
        let takes = (ipc.shown as u32) & op::TAKES;
        self.describe(self.machine.world.current(), address, Dope(dope), ipc.dest);
        if let Some(receiver) = self.machine.world.k.thread(dest) {
            let room = receiver.block.room().with_used(Dope(dope));
            self.describe(receiver, receiver.block.address.get(), room, ipc.from);
        }
        let (rax, to) = match form {
            0 => (IPC_LONG_CALL & !takes, dest),
            1 => (IPC_LONG_REPLY_WAIT, dest),
            3 => (DOOR_LONG_CALL & !takes, Uid(ipc.dest % 6)),
            4 => (DOOR_LONG_RETURN, dest),
            _ => {
                let from = self.from(ipc.from, dest);
                w[5] = self.thread(ipc.shown).0;
                (w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (from.0, ipc.window, self.until(ipc));
                (Call::Ipc as u32 | op::BLOCK | ipc.flags, dest)
            }
        };
        self.call(rax as u64 | 7 << 32, to.0, w);
    }

    /// Prints what every thread does, for whoever looks for a bug.
    pub fn print(&self, step: usize, op: &Op) {
        let world = &self.machine.world;
        let current = world.current().name.get();
        eprintln!("{step}: {current:?} runs, busy {}, after {op:?}", world.is_busy());
        for thread in self.threads.iter().filter_map(|&uid| world.k.thread(uid)) {
            let (shuttle, mine) = (thread.hot.shuttle.get().0, thread.home_ref().0);
            let (state, wait, special) = (thread.state.get(), thread.wait(), thread.special.get());
            let (on, does) = (thread.task(), thread.operation.get());
            eprintln!(
                "  {thread:?} of {on:?} {state:?} {wait:?} {does:?} special {special:x} on {shuttle:x}, own {mine:x}"
            );
        }
    }

    /// Ends everything but the first thread.
    pub fn end(&mut self) {
        self.deny(0, 0);
        for _ in 0..10_000 {
            self.settle();
            if self.current() == self.root {
                break;
            }
            // Whoever may make no calls is stopped by the exception, since its handler is gone, or waits for an answer.
            self.control(Call::ThreadControl, thread_op::STOP, [0; 4]);
        }
        assert_eq!(self.current(), self.root, "the first thread cannot be reached");
        while let Some(task) =
            self.control(Call::TaskControl, task_op::NEXT, [0; 4]).filter(|&task| task != 0)
        {
            self.until_done(Call::TaskControl, task_op::DESTROY, task);
        }
        // Not all of them are in the list: who made one may have been interrupted before it learnt the name.
        let sigma0 = self.machine.world.sigma0;
        loop {
            let mut all = successors(sigma0.threads.first(), |&thread| sigma0.threads.after(thread));
            let Some(other) = all.find(|thread| thread.uid() != self.root && !thread.uid().is_nil()) else {
                break;
            };
            self.until_done(Call::ThreadControl, thread_op::DESTROY, other.uid().0);
        }
        self.until_done(Call::ThreadSwitch, 0, 0);
        let world = &self.machine.world;
        world.check();
        assert_eq!(world.k.tasks().count(), 1, "a task was not ended");
        assert_eq!(world.sigma0.thread_count.get(), 1, "a thread was not ended");
    }

    fn until_done(&mut self, call: Call, operation: u32, rdi: u64) {
        self.control(call, operation, [rdi, 0, 0, 0]);
        let mut steps = 0;
        while self.machine.world.is_busy() || self.current() != self.root {
            steps += 1;
            assert!(steps < STEPS_MAX, "the end of {rdi:x} makes no progress");
            if self.machine.world.is_busy() {
                self.machine.go_on();
            } else {
                // Somebody woke up from what was ended.
                self.control(Call::ThreadControl, thread_op::STOP, [0; 4]);
            }
        }
    }
}

/// For whom a thread waits, in whatever way.
fn partner_of(thread: ThreadRef) -> Option<Uid> {
    match (thread.wait(), thread.state.get()) {
        (Wait::Closed(from) | Wait::Answer(from) | Wait::Return(from), _) => Some(from),
        (Wait::No, State::Sending | State::Taking | State::Stalled) => Some(thread.partner.get()),
        _ => None,
    }
}

/// Whether a thread waits for another to return from its foreign call, or to answer anything else.
fn waits_for_return(thread: ThreadRef, handler: Uid) -> bool {
    [Wait::Foreign(handler), Wait::Answer(handler)].contains(&thread.wait())
}

/// Whether a thread waits for another to return from its foreign call.
fn has_called(thread: ThreadRef, handler: ThreadRef) -> bool {
    thread.wait() == Wait::Foreign(handler.uid()) || foreign::waits_for(handler, thread)
}

fn is_inside(task: TaskRef, chief: TaskRef) -> bool {
    successors(task.chief.get(), |above| above.chief.get()).any(|above| above == chief)
}

fn timeouts_of(send: Timeout, receive: Timeout) -> u64 {
    abi::call::timeouts(send, receive)
}
