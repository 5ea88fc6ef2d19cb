//! What a walk is made of: operations, and how they are drawn.
//!
//! An operation holds numbers, and what a number means (the how-manieth thread that waits for the current one, say) is found out when it is
//! performed. So any part of a program is a program, which is what makes short ones of those that fail.

use crate::random::Random;
use abi::call::{
    ALERT_CLEAR, ALERT_POLL, ALERT_SET, DOORS_LOG2, FOREIGN_RETURN, RESUME, RESUME_AS_IS, door_op, task_op,
    thread_op,
};
use abi::op;
use abi::{Dope, Fpage, Rights, StringPart, ThreadState, USER_END};

/// Where pages and windows lie.
pub const BASE: u64 = 0x4000_0000;

/// The line by which the driver intrudes.
pub const LINE: u8 = 3;

/// Which threads a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whom {
    /// All that there ever were, mostly those that live.
    Any,
    /// Oneself.
    Self_,
    /// Whom the acting thread may control: those of its own task, and of the tasks that it made.
    Controlled,
    /// Of those, whoever waits for the thread that was current, or has to do with what it is in the middle of.
    Partner,
    /// Of those, whoever is in the middle of something, and so neither runs nor waits for a message.
    Busy,
    /// Of those, whoever is stopped.
    Stopped,
}

/// A call of `thread_control`.
#[derive(Clone, Debug)]
pub struct Control {
    pub operation: u32,
    pub whom: Whom,
    pub target: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub r10: u64,
}

/// A general ipc.
#[derive(Clone, Debug)]
pub struct Ipc {
    pub dest: u64,
    /// In the upper half how it is meant.
    pub from: u64,
    pub timeouts: u64,
    pub window: u64,
    /// Those that do not depend on what is sent.
    pub flags: u32,
    /// Whom a message is shown to come from.
    pub shown: u64,
    pub item: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub enum Op {
    /// Does what a good program would: answers what has come, or waits for something to do. `long`: with pages, or a block.
    React {
        number: u64,
        long: u64,
    },
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
    /// A chief answers somebody of its clan, or from outside of it, as the one for whom that one waits: whoever got the message.
    AnswerShown(Ipc),
    Ipc(Ipc),
    /// A message with a block, in one of the forms.
    Long {
        form: u64,
        ipc: Ipc,
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
    /// By whoever runs.
    Thread(Control),
    /// An interrupt comes, whatever the processor is in the middle of, and its driver does something to somebody. It may also be
    /// that it only runs, and takes part in ipc.
    Intrude(Option<Control>),
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
        2 => Fpage::interrupt(random.pick(&[LINE, 20])),
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
        10 => Op::Window { window: if random.one_in(3) { page(random) } else { doors(random, Rights::RW) } },
        11 | 12 => Op::Flush { page: doors(random, Rights::RW), own: true },
        0..5 => {
            let takes = takes(random) | if random.one_in(4) { op::ALERTABLE } else { 0 };
            Op::DoorCall { number: door_number(random), takes, item: door_item(random) }
        }
        5..8 => Op::DoorReturn { item: door_item(random) },
        8 => Op::MakeDoor { number: door_number(random), datum: random.next() },
        9 => Op::Serve { operation: if random.one_in(6) { door_op::SHORTAGE } else { door_op::SERVE } },
        // One is handed on.
        _ => {
            let rights = random.pick(&[Rights::RW, Rights::RW, Rights::R]);
            Op::Answer { label: 0, item: doors(random, rights) }
        }
    }
}

/// What an answer may bring beside words.
fn takes(random: &mut Random) -> u32 {
    random.pick(&[0, 0, op::TAKES_BLOCK, op::TAKES_ITEM, op::TAKES])
}

fn timeouts(random: &mut Random) -> u64 {
    let one = |random: &mut Random| {
        random.pick(&[0, 0, 50, 1000, 3000, 1 << 31 | 20, u32::MAX, u32::MAX, u32::MAX])
    };
    (one(random) as u64) << 32 | one(random) as u64
}

fn ipc(random: &mut Random) -> Ipc {
    let mut flags = random.pick(&[0, 0, op::SHOWN]);
    if random.one_in(5) {
        flags |= op::ALERTABLE;
    }
    if random.one_in(8) {
        flags |= op::ABSOLUTE;
    }
    if random.one_in(2) {
        flags |= op::TAKES_BLOCK;
    }
    if random.one_in(4) {
        flags |= op::TAKES_FOREIGN;
    }
    Ipc {
        dest: if random.one_in(3) { 0 } else { who(random) },
        from: random.pick(&[0, 1, 1, 2, 3]) << 32 | who(random) & 0xffff_ffff,
        timeouts: timeouts(random),
        window: if random.one_in(2) { page(random) } else { 0 },
        flags,
        shown: who(random),
        item: random.one_in(3).then(|| (page(random), BASE + random.below(1 << 18))),
    }
}

/// An address among the pages that come and go, for a block or string.
fn place(random: &mut Random) -> u64 {
    if random.one_in(40) {
        return USER_END - 4080;
    }
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
            patience: random.pick(&[0, 1000, 3000, u32::MAX, u32::MAX]),
        },
        2 => Op::Describe { address: place(random), words: descriptor(random) },
        _ => Op::Long {
            form: random.below(5),
            ipc: ipc(random),
            dope: parts(random).0 | if random.one_in(30) { 1 << random.below(64) } else { 0 },
            address: place(random),
        },
    }
}

/// What may be done to any thread in any state. Whoever stops others has to let them go on, too.
const OFTEN: [u32; 17] = [
    thread_op::STOP,
    thread_op::STOP,
    thread_op::RESUME,
    thread_op::RESUME,
    thread_op::RESUME,
    thread_op::ABORT,
    thread_op::ABORT,
    thread_op::ABORT,
    thread_op::ABORT,
    thread_op::SET_PRIORITY,
    thread_op::SET_PAGER,
    thread_op::ALERT,
    thread_op::STEP,
    thread_op::SET_BLOCK,
    thread_op::GET_STATE,
    thread_op::SET_STATE,
    thread_op::FOREIGN_RETURN,
];

/// Offsets in a page at which states are got, and others at which they are set: a state that was got is set nowhere, so that it is known what
/// was set. Some cross into the next page.
const GOT: [u64; 3] = [0, 0x400, 0xfc0];
const SET: [u64; 3] = [0x800, 0x840, 0xe00];

fn control(random: &mut Random) -> Control {
    let operation = match random.below(16) {
        0 => thread_op::DESTROY,
        1 => random.below(thread_op::COUNT as u64) as u32,
        2 if random.one_in(10) => 200,
        _ => random.pick(&OFTEN),
    };
    let whom = match operation {
        thread_op::RESUME if random.below(4) != 0 => Whom::Stopped,
        _ => random.pick(&[
            Whom::Any,
            Whom::Self_,
            Whom::Controlled,
            Whom::Partner,
            Whom::Partner,
            Whom::Partner,
            Whom::Busy,
            Whom::Busy,
        ]),
    };
    let rsi = match operation {
        thread_op::STEP | thread_op::DENY_NATIVE => random.pick(&[0, 0, 1]),
        thread_op::SET_PRIORITY => random.pick(&[1, 2, 2, 3, 3, 63]),
        thread_op::ALERT => random.pick(&[ALERT_CLEAR, ALERT_SET, ALERT_SET, ALERT_POLL]),
        thread_op::SET_PAGER => who(random),
        thread_op::SET_BLOCK => place(random),
        thread_op::GET_STATE => random.pick(&GOT) + BASE + random.below(64) * 4096,
        thread_op::SET_STATE => random.pick(&SET) + BASE + random.below(64) * 4096,
        thread_op::FOREIGN_RETURN => random.pick(&[0, 8, 0xfc0]) + BASE + random.below(64) * 4096,
        _ if random.one_in(9) => page(random),
        _ => random.pick(&[0, 1, 2, 3, 64, 0x1000, 1 << 46, 1 << 63]),
    };
    let rdx = match operation {
        thread_op::SET_PAGER => who(random),
        thread_op::SET_BLOCK => parts(random).0 << 32,
        thread_op::GET_STATE | thread_op::SET_STATE => {
            let (whole, short) = (ThreadState::LEN_BYTES, ThreadState::GENERAL_BYTES);
            if random.one_in(20) { whole - 1 } else { random.pick(&[whole, whole, whole, short]) }
        }
        _ => random.pick(&[0, 0, 0x8000, 200]),
    };
    let r10 = match operation {
        thread_op::SET_BLOCK => random.pick(&[0, 1000, u64::from(u32::MAX)]),
        _ => random.below(100),
    };
    Control { operation, whom, target: who(random), rsi, rdx, r10 }
}

/// Time passes: mostly a little, so that what is timed is ended in the middle of something else.
fn advance(random: &mut Random) -> Op {
    Op::Advance { us: random.pick(&[1, 40, 60, 500, 1000, 2000, 4000, 11_000, 20_000, 1_000_000]) }
}

/// Draws an operation.
pub fn operation(random: &mut Random) -> Op {
    match random.below(30) {
        0..5 => return long_operation(random),
        5..10 => return door_operation(random),
        10 | 11 => return Op::Thread(control(random)),
        12..15 => return Op::Intrude((!random.one_in(8)).then(|| control(random))),
        15 if random.one_in(2) => return advance(random),
        15 => return Op::Describe { address: place(random), words: descriptor(random) },
        16 => return Op::AnswerShown(ipc(random)),
        17..24 => return Op::React { number: who(random), long: random.below(8) },
        _ => {}
    }
    match random.below(100) {
        0..11 => Op::Call { dest: who(random), takes: takes(random) },
        11..16 => Op::Converse { dest: who(random) },
        16..25 => Op::ReplyWait { dest: who(random), label: 0 },
        25..44 => Op::Answer {
            label: random.pick(&[0, RESUME, RESUME_AS_IS, RESUME, u32::MAX]),
            item: if random.one_in(3) { page(random) } else { 0 },
        },
        44..62 => Op::Ipc(ipc(random)),
        62..65 => Op::Flush { page: page(random), own: random.one_in(2) },
        65..71 => {
            Op::Spawn { task: who(random), priority: random.pick(&[1, 1, 2, 2, 3]), pager: who(random) }
        }
        71..74 => Op::Task {
            operation: random.pick(&[2, 2, 3, 3, 3, 4, 5, 6, 7, 9]),
            target: who(random),
            rsi: random.below(200),
        },
        74 => Op::Task { operation: task_op::DESTROY, target: who(random), rsi: 0 },
        75..78 => Op::NewTask {
            quota: random.pick(&[0, 1, 2, 10, 40, 40, 60]),
            priority: random.pick(&[3, 3, 63, 64]),
        },
        78 | 79 => Op::Switch { to: who(random) },
        80 if random.one_in(2) => {
            let foreign = [39, 0x7fff_ffff, 0x1_0000_00fe, FOREIGN_RETURN.into(), FOREIGN_RETURN.into()];
            Op::Garbage { rax: random.pick(&foreign), rdx: random.next(), words: random.next() }
        }
        80 => {
            Op::Garbage { rax: random.next() >> random.below(64), rdx: random.next(), words: random.next() }
        }
        81..86 => Op::Fault { address: BASE + random.below(1 << 18), rights: random.pick(&[1, 2, 4]) },
        86 | 87 => Op::Exception { vector: random.pick(&[0, 1, 6, 13]) },
        88 => Op::Touch { address: BASE + random.below(1 << 18), write: random.one_in(2) },
        89 | 90 => Op::Interrupt { line: random.pick(&[LINE, 20, 20, 5]) },
        91 => Op::Deny { first: 1 + random.below(8), count: random.pick(&[1, 1, 2, 20]) },
        92..95 => advance(random),
        _ => Op::GoOn,
    }
}
