//! A random walk: threads of several tasks make system calls with good and bad arguments, fault, are interrupted and
//! ended in every state, and after each step all of the kernel's invariants hold.
//!
//! The same program runs with the fast path (see [`crate::fast_path`]) on and off, and every step must look the same
//! to every user. At the end everything is ended, and all frames must be back.
//!
//! The first thread has the lowest priority and never blocks: when nobody else can run, it is there to abort, end and
//! make others. Names are numbers of a list of all that ever were, so a program means something without its history.

use crate::fast_path::Machine;
use crate::random::{Random, amount, programs};
use crate::world::Caches;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, DOORS_LOG2,
    FLUSH_SELF, IPC_CALL, IPC_LONG, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_MAP, IPC_REPLY_WAIT, IPC_SHOWN,
    IPC_TAKE, NOT_DIVERTED, NULL, RESUME, TAKES_NO_BLOCK, TAKES_NO_ITEM, WORDS_ONLY, door_op, task_op,
    thread_op,
};
use abi::{Call, Dope, Fpage, Kind, Rights, StringPart, TaskId, Timeout, Uid};
use kernel::arch::{self, tlb};
use kernel::object::TaskRef;
use kernel::object::thread::{Frame, WORDS, Wait};

/// Where pages and windows lie.
const BASE: u64 = 0x4000_0000;

#[derive(Clone, Debug)]
enum Op {
    Call {
        dest: u64,
        takes: u32,
    },
    ReplyWait {
        dest: u64,
        label: u32,
    },
    /// Calls to somebody in another clan, which a chief who gets one answers as the one who was meant.
    Converse {
        dest: u64,
    },
    /// Reply to whom the last message was from, if registers still say so.
    Answer {
        label: u32,
        item: u64,
    },
    Ipc {
        dest: u64,
        from: u64,
        timeouts: u64,
        window: u64,
        takes: u32,
        item: Option<(u64, u64)>,
    },
    /// A message with a block, in one of the forms.
    Long {
        form: u64,
        takes: u32,
        dest: u64,
        timeouts: u64,
        dope: u64,
        address: u64,
    },
    /// Registers a block to receive into.
    SetBlock {
        target: u64,
        room: u64,
        address: u64,
        patience: u32,
    },
    /// Writes a descriptor of a string or item, if there is memory.
    Describe {
        address: u64,
        words: [u64; 2],
    },
    /// Sets one's own standing window.
    Window {
        window: u64,
    },
    /// Calls through a door identifier.
    DoorCall {
        number: u64,
        takes: u32,
        item: u64,
    },
    DoorReturn {
        item: u64,
    },
    MakeDoor {
        number: u64,
        datum: u64,
    },
    /// Becomes a server, or waits for a shortage of them.
    Serve {
        operation: u32,
    },
    Flush {
        page: u64,
        own: bool,
    },
    Thread {
        operation: u32,
        target: u64,
        rsi: u64,
        rdx: u64,
        r10: u64,
    },
    Spawn {
        task: u64,
        priority: u64,
        pager: u64,
    },
    Task {
        operation: u32,
        target: u64,
        rsi: u64,
    },
    NewTask {
        quota: u64,
        priority: u64,
    },
    Switch {
        to: u64,
    },
    Garbage {
        rax: u64,
        rdx: u64,
        words: u64,
    },
    Fault {
        address: u64,
        rights: u8,
    },
    Exception {
        vector: u64,
    },
    Touch {
        address: u64,
        write: bool,
    },
    Interrupt {
        line: u8,
    },
    Advance {
        us: u64,
    },
    /// Kernel memory runs out for everybody, for a while.
    Deny {
        first: u64,
        count: u64,
    },
    GoOn,
}

/// Whom a number names: mostly a recent thread.
fn who(random: &mut Random) -> u64 {
    random.next() >> 8
}

fn page(random: &mut Random) -> u64 {
    let rights = random.pick(&[Rights::RWX, Rights::RW, Rights::R, Rights::NONE]);
    let rights = if random.one_in(6) { rights.or(Rights::GRANT) } else { rights };
    let page = match random.below(14) {
        0 => Fpage::WHOLE,
        1 => Fpage::ports(random.below(8) as u16 * 64, random.pick(&[0, 3, 8])),
        2 => Fpage::interrupt(random.pick(&[3, 20])),
        3 => Fpage::interrupts(),
        4 => Fpage(random.next()),
        5 | 6 => return doors(random, rights),
        _ => Fpage::memory(BASE + random.below(64) * 4096, random.pick(&[12, 12, 12, 14, 18, 21]), rights),
    };
    if page == Fpage::WHOLE || random.one_in(3) { page.0 } else { page.with_rights(rights).0 }
}

/// A few identifiers, or all that there can be.
fn doors(random: &mut Random, rights: Rights) -> u64 {
    match random.below(4) {
        0 => Fpage::doors(0, DOORS_LOG2, rights),
        _ => Fpage::doors(door_number(random) as u32, random.pick(&[0, 0, 0, 2]), rights),
    }
    .0
}

fn door_number(random: &mut Random) -> u64 {
    if random.one_in(8) { random.pick(&[511, 512, 1024, 1 << 17, 1 << 18, 1 << 31]) } else { random.below(6) }
}

/// An item of a call or return; mostly there is none.
fn door_item(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => page(random),
        1 => doors(random, Rights::RW),
        _ => 0,
    }
}

fn door_operation(random: &mut Random) -> Op {
    match random.below(14) {
        10 => Op::Window { window: doors(random, Rights::RW) },
        11..14 => Op::Flush { page: doors(random, Rights::RW), own: true },
        0..4 => {
            let takes = takes(random);
            Op::DoorCall { number: door_number(random), takes, item: door_item(random) }
        }
        4..7 => Op::DoorReturn { item: door_item(random) },
        7 => Op::MakeDoor { number: door_number(random), datum: random.next() },
        8 => Op::Serve { operation: if random.one_in(6) { door_op::SHORTAGE } else { door_op::SERVE } },
        // One is handed on.
        _ => {
            let rights = random.pick(&[Rights::RW, Rights::RW, Rights::R]);
            Op::Answer { label: 0, item: doors(random, rights) }
        }
    }
}

/// What an answer may bring beside words.
fn takes(random: &mut Random) -> u32 {
    random.pick(&[0, 0, TAKES_NO_BLOCK, TAKES_NO_ITEM, WORDS_ONLY])
}

/// A call whose answer may bring that.
fn call_form(call: u32, takes: u32) -> u32 {
    call & !takes
}

/// The same of a general form, whose items depend on its window.
fn general_form(takes: u32) -> u32 {
    if takes & TAKES_NO_BLOCK != 0 { IPC_TAKE } else { 0 }
}

fn timeouts(random: &mut Random) -> u64 {
    let one = |random: &mut Random| random.pick(&[0, 50, 3000, 1 << 31 | 20, u32::MAX, u32::MAX, u32::MAX]);
    (one(random) as u64) << 32 | one(random) as u64
}

/// An address among the pages that come and go, for a block or string.
fn place(random: &mut Random) -> u64 {
    BASE + random.below(64) * 4096 + random.pick(&[0, 0, 8, 4088])
}

/// Mostly small: what a dope says of the parts of a block.
fn parts(random: &mut Random) -> Dope {
    let words = random.pick(&[0, 1, 2, 600, 4095]);
    Dope::used(words, random.pick(&[0, 0, 1, 2]), random.pick(&[0, 0, 0, 1]))
}

fn descriptor(random: &mut Random) -> [u64; 2] {
    if random.one_in(2) {
        return [page(random), BASE + random.below(1 << 18)];
    }
    let len = random.pick(&[0, 1, 4096, 40_000]) as u32;
    let string = StringPart { address: place(random), len, capacity: len };
    [string.address, string.sizes()]
}

fn long_operation(random: &mut Random) -> Op {
    match random.below(8) {
        0 | 1 => Op::SetBlock {
            target: if random.one_in(2) { u64::MAX } else { who(random) },
            room: parts(random).0 << 32 | if random.one_in(20) { 1 << random.below(64) } else { 0 },
            address: place(random),
            patience: random.pick(&[0, 1000, u32::MAX, u32::MAX]),
        },
        2 => Op::Describe { address: place(random), words: descriptor(random) },
        _ => Op::Long {
            form: random.below(5),
            takes: takes(random),
            dest: who(random),
            timeouts: timeouts(random),
            dope: parts(random).0 | if random.one_in(30) { 1 << random.below(64) } else { 0 },
            address: place(random),
        },
    }
}

fn operation(random: &mut Random) -> Op {
    if random.one_in(6) {
        return long_operation(random);
    }
    if random.one_in(5) {
        return door_operation(random);
    }
    match random.below(100) {
        0..10 => Op::Call { dest: who(random), takes: takes(random) },
        10..14 => Op::Converse { dest: who(random) },
        14..22 => Op::ReplyWait { dest: who(random), label: 0 },
        22..40 => Op::Answer {
            label: random.pick(&[0, RESUME, RESUME, u32::MAX]),
            item: if random.one_in(3) { page(random) } else { 0 },
        },
        40..56 => Op::Ipc {
            dest: if random.one_in(3) { 0 } else { who(random) },
            from: random.pick(&[0, 1, 2, 3]) << 32 | who(random) & 0xffff_ffff,
            timeouts: timeouts(random),
            window: if random.one_in(2) { page(random) } else { 0 },
            takes: takes(random),
            item: random.one_in(3).then(|| (page(random), BASE + random.below(1 << 18))),
        },
        56..59 => Op::Flush { page: page(random), own: random.one_in(2) },
        59..70 => Op::Thread {
            operation: if random.one_in(20) { 200 } else { random.below(thread_op::COUNT as u64) as u32 },
            target: if random.one_in(5) { u64::MAX } else { who(random) },
            rsi: if random.one_in(9) {
                page(random)
            } else {
                random.pick(&[0, 1, 2, 3, 64, 0x1000, 1 << 46, 1 << 63])
            },
            rdx: random.pick(&[0, 0, 0x8000, 200]),
            r10: random.below(100),
        },
        70..75 => Op::Spawn { task: who(random), priority: 1 + random.below(3), pager: who(random) },
        75..78 => Op::Task {
            operation: random.pick(&[1, 2, 2, 3, 4, 5, 6, 9]),
            target: who(random),
            rsi: random.below(200),
        },
        78..80 => {
            Op::NewTask { quota: random.pick(&[0, 1, 2, 10, 40, 60]), priority: random.pick(&[3, 3, 63, 64]) }
        }
        80..83 => Op::Switch { to: who(random) },
        83 => {
            Op::Garbage { rax: random.next() >> random.below(64), rdx: random.next(), words: random.next() }
        }
        84..88 => Op::Fault { address: BASE + random.below(1 << 18), rights: random.pick(&[1, 2, 4]) },
        88 => Op::Exception { vector: random.pick(&[0, 6, 13]) },
        89 => Op::Touch { address: BASE + random.below(1 << 18), write: random.one_in(2) },
        90..92 => Op::Interrupt { line: random.pick(&[3, 3, 20, 20, 5]) },
        92 => Op::Deny { first: 1 + random.below(8), count: random.pick(&[1, 1, 2, 20]) },
        93..97 => Op::Advance { us: random.pick(&[1, 60, 2000, 20_000, 1_000_000]) },
        _ => Op::GoOn,
    }
}

struct Walk {
    machine: Machine,
    root: Uid,
    threads: Vec<Uid>,
    tasks: Vec<TaskId>,
}

impl Walk {
    fn new(fast: bool, caches: Caches) -> Walk {
        let machine = Machine::new(1024, fast, caches);
        let root = machine.world.root.uid();
        let sigma0 = machine.world.sigma0.id.get();
        let mut walk = Walk { machine, root, threads: vec![root], tasks: vec![sigma0] };
        walk.control(Call::ThreadControl, thread_op::SET_PRIORITY, [0, 0, 0, 0]);
        walk.control(Call::ThreadControl, thread_op::SET_BLOCK, [0, 0, 0, 0]);
        for i in 0..3 {
            walk.new_task(150, 63);
            walk.spawn(walk.tasks[i], 2, root);
            walk.spawn(walk.tasks[i + 1], 2, root);
        }
        walk.nest(2);
        walk
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

    fn thread(&self, number: u64) -> Uid {
        let any = self.threads[(number >> 3) as usize % self.threads.len()];
        let lives = |uid: &&Uid| self.machine.world.k.thread(**uid).is_some();
        let living = self.threads.iter().filter(lives).count();
        if number & 7 == 0 || living == 0 {
            return any;
        }
        self.threads.iter().filter(lives).nth((number >> 3) as usize % living).copied().unwrap_or(any)
    }

    /// Whom to send to: mostly somebody who waits for the current thread.
    fn partner(&self, number: u64) -> Uid {
        let k = &self.machine.world.k;
        let me = self.machine.world.current().uid();
        let waits = |uid: &&Uid| match k.thread(**uid).map(|thread| thread.wait()) {
            Some(Wait::Open) => true,
            Some(Wait::Closed(from) | Wait::Answer(from)) => from == me,
            _ => false,
        };
        let count = self.threads.iter().filter(waits).count();
        if number.is_multiple_of(5) || count == 0 {
            return self.thread(number / 5);
        }
        *self.threads.iter().filter(waits).nth(number as usize / 5 % count).expect("counted")
    }

    fn task(&self, number: u64) -> TaskId {
        if number.is_multiple_of(4) {
            TaskId::NIL
        } else {
            self.tasks[(number >> 2) as usize % self.tasks.len()]
        }
    }

    fn call(&mut self, rax: u64, rdx: u64, w: [u64; WORDS]) {
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
        }
    }

    fn spawn(&mut self, task: TaskId, priority: u64, pager: Uid) {
        let arguments = [task.0, priority, pager.0, pager.0];
        let Some(uid) = self.control(Call::ThreadControl, thread_op::CREATE, arguments) else { return };
        if self.machine.world.k.thread(Uid(uid)).is_some() {
            self.threads.push(Uid(uid));
            self.control(Call::ThreadControl, thread_op::START, [uid, 0x1000, 0x8000, 0]);
        }
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Interrupt { line } => return self.machine.interrupt(line),
            Op::Advance { us } => return self.machine.advance(us * 1000),
            Op::Deny { first, count } => return self.deny(first, count),
            Op::GoOn if self.machine.world.is_busy() => return self.machine.go_on(),
            _ => {}
        }
        while self.machine.world.is_busy() {
            self.machine.go_on();
        }
        if self.machine.world.is_idle() {
            return;
        }
        let root = self.machine.world.current().uid() == self.root;
        match *op {
            Op::Call { dest, .. }
            | Op::Converse { dest }
            | Op::ReplyWait { dest, .. }
            | Op::DoorCall { number: dest, .. }
                if root =>
            {
                self.abort(dest)
            }
            Op::Answer { .. }
            | Op::Fault { .. }
            | Op::Exception { .. }
            | Op::Garbage { .. }
            | Op::Serve { .. }
                if root =>
            {
                self.abort(0)
            }
            Op::Ipc { dest, timeouts, item, .. } if root => {
                self.ipc(self.partner(dest), Uid::NIL, timeouts >> 32 << 32, 0, item, 0)
            }
            Op::Call { dest, takes } => {
                let rax = call_form(IPC_CALL, takes) as u64 | 7 << 32;
                self.call(rax, self.partner(dest).0, [dest; WORDS])
            }
            Op::Converse { dest } => self.converse(dest),
            Op::ReplyWait { dest, label } => self.reply(self.partner(dest), label),
            Op::Answer { label, item } => self.answer(label, item),
            Op::Ipc { dest, from, timeouts, window, takes, item } => {
                let dest = if dest == 0 { Uid::NIL } else { self.partner(dest) };
                let from = match from >> 32 {
                    0 => Uid::NIL,
                    1 => dest,
                    2 => Uid::ANY,
                    _ if from % 5 == 0 => Uid::interrupt(if from % 2 == 0 { 3 } else { 20 }),
                    _ => self.thread(from),
                };
                self.ipc(dest, from, timeouts, window, item, general_form(takes));
            }
            Op::Long { form, takes, dest, timeouts, dope, address } => {
                let dest = self.partner(dest);
                // The first thread never waits for long.
                let (form, from, timeouts) =
                    if root { (2, Uid::NIL, timeouts >> 32 << 32) } else { (form, dest, timeouts) };
                self.long(form, takes, dest, from, timeouts, (dope, address));
            }
            Op::SetBlock { target, room, address, patience } => {
                let target = if target == u64::MAX { Uid::NIL } else { self.thread(target) };
                let is_root = target == self.root || root && target.is_nil();
                let patience = if is_root { 0 } else { patience as u64 };
                let arguments = [target.0, address, room, patience];
                self.control(Call::ThreadControl, thread_op::SET_BLOCK, arguments);
            }
            Op::Describe { address, words } => {
                let world = &self.machine.world;
                let task = world.current().task();
                // Without memory there, nothing is written.
                let _ = arch::write_words(&world.k, task, (task, address), words);
            }
            Op::Window { window } => {
                self.control(Call::ThreadControl, thread_op::SET_WINDOW, [0, window, 0, 0]);
            }
            Op::DoorCall { number, takes, item: 0 } => {
                self.call(call_form(DOOR_CALL, takes) as u64 | 7 << 32, number, [number; WORDS])
            }
            Op::DoorReturn { item: 0 } => self.call(DOOR_RETURN as u64 | 8 << 32, 9, [4; WORDS]),
            Op::DoorCall { number, takes, item } => {
                self.door_item(call_form(DOOR_ITEM_CALL, takes), number, item)
            }
            Op::DoorReturn { item } => self.door_item(DOOR_ITEM_RETURN, 9, item),
            Op::MakeDoor { number, datum } => {
                self.control(Call::DoorControl, door_op::CREATE, [number, 0x2000, datum, 0]);
            }
            Op::Serve { operation } => {
                self.control(Call::DoorControl, operation, [0; 4]);
            }
            Op::Flush { page, own } => {
                self.control(Call::Flush, 0, [page, if own { FLUSH_SELF } else { 0 }, 0, 0]);
            }
            Op::Thread { operation, target, rsi, rdx, r10 } => {
                self.thread_control(root, operation, target, [rsi, rdx, r10])
            }
            Op::Spawn { task, priority, pager } => self.spawn(self.task(task), priority, self.thread(pager)),
            Op::Task { operation, target, rsi } => {
                self.control(Call::TaskControl, operation, [self.task(target).0, rsi, 0, 0]);
            }
            Op::NewTask { quota, priority } => self.new_task(quota, priority),
            Op::Switch { to } => {
                let to = if to.is_multiple_of(3) { Uid::NIL } else { self.thread(to) };
                self.control(Call::ThreadSwitch, 0, [to.0, 0, 0, 0]);
            }
            Op::Garbage { rax, rdx, words } => self.call(rax, rdx, [words; WORDS]),
            Op::Fault { address, rights } => self.machine.page_fault(address, Rights(rights)),
            Op::Exception { vector } => self.machine.exception(vector),
            Op::Touch { address, write } => {
                let world = &self.machine.world;
                arch::touch(&world.k.pool, world.current().task(), address, write);
            }
            Op::GoOn => self.call(NULL as u64, 0, [0; WORDS]),
            Op::Interrupt { .. } | Op::Advance { .. } | Op::Deny { .. } => unreachable!("done above"),
        }
    }

    /// Of what anybody asks for from now on, some is denied.
    fn deny(&self, first: u64, count: u64) {
        let k = &self.machine.world.k;
        for number in 1..k.task_slots.high_water() as u16 {
            let frame = k.task_frame(number);
            if frame.0 != 0 {
                TaskRef::at(&k.pool, frame).set_counted(true);
            }
        }
        k.pool.deny(first, count);
    }

    fn thread_control(&mut self, root: bool, operation: u32, target: u64, [rsi, rdx, r10]: [u64; 3]) {
        let target = if target == u64::MAX { Uid::NIL } else { self.thread(target) };
        let harmful = !matches!(operation, thread_op::SET_PAGER | thread_op::INFO | thread_op::NEXT);
        if harmful && (target == self.root || (root && target.is_nil())) {
            return;
        }
        let (rsi, rdx) = match operation {
            thread_op::SET_PAGER => (self.thread(rsi).0, self.thread(rdx).0),
            thread_op::CREATE => return,
            _ => (rsi, rdx),
        };
        self.control(Call::ThreadControl, operation, [target.0, rsi, rdx, r10]);
    }

    /// The first thread wakes somebody whom it controls, from `number` on.
    fn abort(&mut self, number: u64) {
        let count = self.threads.len();
        for i in 0..count {
            let uid = self.threads[(number as usize % count + i) % count];
            if self.machine.world.k.thread(uid).is_none() || uid == self.root {
                continue;
            }
            self.control(Call::ThreadControl, thread_op::ABORT, [uid.0, 0, 0, 0]);
            if self.machine.world.is_busy() || self.machine.world.current().uid() != self.root {
                return;
            }
        }
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
        self.ipc(dest, Uid::ANY, timeouts_of(Timeout::ZERO, Timeout::NEVER), 0, Some((item, BASE)), IPC_TAKE);
    }

    /// Whether the current thread has in its registers a request that it got as a chief.
    fn was_diverted(&self) -> bool {
        let kind = self.machine.live.rax as u32;
        kind | NOT_DIVERTED == Kind::Request as u32 && kind & NOT_DIVERTED == 0
    }

    fn converse(&mut self, number: u64) {
        let caller = self.machine.world.current().uid();
        let is_far = |uid: &&Uid| uid.clan() != caller.clan() && self.machine.world.k.thread(**uid).is_some();
        let count = self.threads.iter().filter(is_far).count();
        if count == 0 {
            return;
        }
        let dest = *self.threads.iter().filter(is_far).nth(number as usize % count).expect("counted");
        for _ in 0..3 {
            self.call(IPC_CALL as u64, dest.0, [8; WORDS]);
            if self.machine.in_user_mode() && self.was_diverted() && Uid(self.machine.live.rdx) == caller {
                self.reply_shown(caller, Uid(self.machine.live.w[Frame::R15]));
            }
            if !self.machine.in_user_mode() || self.machine.world.current().uid() != caller {
                return;
            }
        }
    }

    /// Answers as the one who was meant.
    fn reply_shown(&mut self, dest: Uid, shown: Uid) {
        let mut w = [9; WORDS];
        w[5] = shown.0;
        (w[Frame::RBX], w[Frame::RBP]) = (Uid::ANY.0, 0);
        w[Frame::R15] = timeouts_of(Timeout::ZERO, Timeout::NEVER);
        self.call((Call::Ipc as u32 | IPC_SHOWN | IPC_TAKE) as u64, dest.0, w);
    }

    fn ipc(
        &mut self,
        dest: Uid,
        from: Uid,
        timeouts: u64,
        window: u64,
        item: Option<(u64, u64)>,
        flags: u32,
    ) {
        let mut w = [9; WORDS];
        (w[6], w[7]) = item.unwrap_or((0, 0));
        (w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (from.0, window, timeouts);
        let flag = if item.is_some() { IPC_MAP } else { 0 };
        self.call((Call::Ipc as u32 | flag | flags) as u64, dest.0, w);
    }

    fn door_item(&mut self, operation: u32, number: u64, item: u64) {
        let mut w = [3; WORDS];
        (w[6], w[7]) = (item, BASE + number * 4096);
        self.call(operation as u64 | 9 << 32, number, w);
    }

    fn long(
        &mut self,
        form: u64,
        takes: u32,
        dest: Uid,
        from: Uid,
        timeouts: u64,
        (dope, address): (u64, u64),
    ) {
        let mut w = [9; WORDS];
        (w[0], w[1]) = (dope, address);
        // The short forms lose it, on the fast path earlier than on the slow one.
        w[Frame::R15] = 0;
        let dest = if form == 3 { Uid(dest.slot() as u64 % 6) } else { dest };
        let rax = match form {
            0 => call_form(IPC_LONG_CALL, takes),
            1 => IPC_LONG_REPLY_WAIT,
            3 => call_form(DOOR_LONG_CALL, takes),
            4 => DOOR_LONG_RETURN,
            _ => {
                (w[Frame::RBX], w[Frame::RBP], w[Frame::R15]) = (from.0, 0, timeouts);
                Call::Ipc as u32 | IPC_LONG | general_form(takes)
            }
        };
        self.call(rax as u64 | 7 << 32, dest.0, w);
    }

    /// Prints what every thread does, for whoever looks for a bug.
    fn print(&self, step: usize, op: &Op) {
        let world = &self.machine.world;
        let now = format_args!("{step}: {:?} runs, busy {}, after {op:?}", world.current(), world.is_busy())
            .to_string();
        eprintln!("{now}");
        for thread in self.threads.iter().filter_map(|&uid| world.k.thread(uid)) {
            let (shuttle, mine) = (thread.hot.shuttle.get().0, thread.home_ref().0);
            let (state, wait, special) = (thread.state.get(), thread.wait(), thread.special.get());
            let on = thread.task();
            eprintln!(
                "  {thread:?} of {on:?} {state:?} {wait:?} special {special:x} on {shuttle:x}, own {mine:x}"
            );
        }
    }

    /// Ends everything but the first thread.
    fn end(&mut self) {
        self.deny(0, 0);
        for _ in 0..10_000 {
            while self.machine.world.is_busy() {
                self.machine.go_on();
            }
            let current = self.machine.world.current();
            if current.uid() == self.root {
                break;
            }
            // Whoever may make no calls is stopped by the exception, since its handler is gone, or waits for an answer.
            self.control(Call::ThreadControl, thread_op::STOP, [0; 4]);
        }
        assert_eq!(self.machine.world.current().uid(), self.root, "the first thread cannot be reached");
        while let Some(task) =
            self.control(Call::TaskControl, task_op::NEXT, [0; 4]).filter(|&task| task != 0)
        {
            self.until_done(Call::TaskControl, task_op::DESTROY, task);
        }
        // Not all of them are in the list: who made one may have been interrupted before it learnt the name.
        let sigma0 = self.machine.world.sigma0;
        loop {
            let mut all =
                std::iter::successors(sigma0.threads.first(), |&thread| sigma0.threads.after(thread));
            let Some(other) = all.find(|thread| thread.uid() != self.root && !thread.uid().is_nil()) else {
                break;
            };
            self.until_done(Call::ThreadControl, thread_op::DESTROY, other.uid().0);
        }
        self.until_done(Call::ThreadSwitch, 0, 0);
        let world = &self.machine.world;
        world.check();
        assert_eq!(
            world.k.task_slots.high_water() as usize,
            1 + live_tasks(world).0,
            "task numbers are lost"
        );
        assert_eq!(live_tasks(world).1, 1, "a task was not ended");
        assert_eq!(world.sigma0.thread_count.get(), 1, "a thread was not ended");
    }

    fn until_done(&mut self, call: Call, operation: u32, rdi: u64) {
        self.control(call, operation, [rdi, 0, 0, 0]);
        while self.machine.world.is_busy() || self.machine.world.current().uid() != self.root {
            if self.machine.world.is_busy() {
                self.machine.go_on();
            } else {
                // Somebody woke up from what was ended.
                self.control(Call::ThreadControl, thread_op::STOP, [0; 4]);
            }
        }
    }
}

/// How many task numbers were given out, and how many of them name a task.
fn live_tasks(world: &crate::world::World) -> (usize, usize) {
    let numbers = 1..world.k.task_slots.high_water();
    (numbers.len(), numbers.filter(|&number| world.k.task_frame(number as u16).0 != 0).count())
}

fn timeouts_of(send: Timeout, receive: Timeout) -> u64 {
    abi::call::timeouts(send, receive)
}

/// Returns how often the fast path accepted, and how often a known way across a border was taken.
fn walk(program: &[Op], fast: bool, caches: Caches, mut each: impl FnMut(usize, Vec<u64>)) -> [usize; 2] {
    let trace = std::env::var_os("TERN_TRACE").is_some();
    let mut walk = Walk::new(fast, caches);
    walk.machine.world.check();
    for (i, op) in program.iter().enumerate() {
        walk.perform(op);
        if trace {
            walk.print(i, op);
        }
        walk.machine.world.check();
        if let Err(what) = tlb::audit(&walk.machine.world.k) {
            panic!("step {i}: {what}, after {op:?}");
        }
        each(i, walk.machine.observe(&walk.threads));
    }
    walk.end();
    [walk.machine.accepted, walk.machine.crossed]
}

/// The program with the fast path on, then off: every step looks the same.
fn run(program: &[Op], accepted: &mut [usize; 2]) {
    let mut seen = Vec::with_capacity(program.len());
    let counts = walk(program, true, Caches::None, |_, all| seen.push(all));
    accepted.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    walk(program, false, Caches::None, |i, all| {
        let differs = seen[i].iter().zip(&all).position(|(with, without)| with != without);
        if let Some(at) = differs {
            let around = at.saturating_sub(30)..(at + 4).min(all.len());
            let (with, without) = (&seen[i][around.clone()], &all[around]);
            panic!(
                "step {i} differs with the fast path and without:\n{with:x?}\n{without:x?}\n{:?}",
                program[i]
            );
        }
        assert_eq!(seen[i].len(), all.len());
    });
}

#[test]
fn random_system_calls_keep_every_invariant_on_both_paths() {
    let mut accepted = [0; 2];
    let steps = amount(150_000);
    programs("random walk", steps, 500, operation, |program| run(program, &mut accepted));
    let [accepted, crossed] = accepted;
    assert!(accepted > steps / 200, "the fast path accepted next to nothing: {accepted} of {steps}");
    assert!(crossed > steps / 2000, "next to nothing took a known way: {crossed} of {steps}");
}

#[test]
fn miri_random_system_calls_keep_every_invariant() {
    let (steps, len) = if cfg!(miri) { (12, 12) } else { (1000, 500) };
    programs("random walk, small", steps, len, operation, |program| run(program, &mut [0; 2]));
}

#[test]
fn nothing_stale_is_left_without_tags() {
    programs("hostile caches", amount(8_000), 500, operation, |program| {
        walk(program, true, Caches::Untagged, |_, _| ());
    });
}

#[test]
fn nothing_stale_is_left_under_tags() {
    programs("hostile tagged caches", amount(8_000), 500, operation, |program| {
        walk(program, true, Caches::Tagged, |_, _| ());
    });
}

#[test]
fn nothing_stale_is_left_where_tags_change_hands() {
    programs("hostile caches, few tags", amount(8_000), 500, operation, |program| {
        walk(program, true, Caches::FewTags, |_, _| ());
    });
}
