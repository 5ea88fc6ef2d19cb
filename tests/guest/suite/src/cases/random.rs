//! Random system calls: several tasks that call the kernel with whatever comes to mind, fight over the same memory,
//! threads and quota, and end each other. Nothing they do may matter to anybody else.
//!
//! Arguments are half-way plausible: uids that exist, existed or nearly exist, flexpages of memory that is there,
//! descriptors that fit or nearly fit, timeouts at their limits. Buffers lie in memory that is not there yet, is
//! taken away again while a message is copied, or comes from a pager that refuses, dawdles and dies.
//!
//! Doors are made, called with whatever words, blocks and items, handed on and revoked; some of the threads that the players make serve
//! them, and return at once.
//!
//! So that messages arrive, and not only errors, there are threads that answer whoever sends: some in the players' tasks, which
//! the players may end in the middle of a message, and one in a clan of its own, behind a chief that passes on what
//! crosses the border. What they receive into is put in order again from time to time.
//!
//! The players run the suite's own code in its own memory, so some things they do not do: nothing is ever mapped
//! or received over that memory, apart from what [`ARENA`] is; registers are changed and single steps
//! ordered only for [`Player::echoes`], which have no memory; and no thread starts at a made-up address.

use super::redirected::{self, Redirected};
use super::warden::{self, Wards};
use crate::kit::{Agent, Child, Frame, Outcome, Random, guarded, image, pager};
use crate::{check, check_eq};
use core::mem::offset_of;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};
use rt::println;
use sys::abi::call::{
    ABSOLUTE_END, Call, DOOR_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN,
    DOOR_RETURN, DOORS_LOG2, DOORS_MAX, FLUSH_SELF, FOREIGN_RETURN, IPC_LONG_REPLY_WAIT, IPC_REPLY_WAIT,
    NO_BLOCK, NOT_DIVERTED, NULL, REFUSE, RESUME_AS_IS, door_op, task_op, thread_op, timeouts, vector,
};
use sys::abi::op::{self, Form, Op};
use sys::abi::state::{IMAGE_HEADER, IMAGE_MXCSR};
use sys::abi::{INFO_PAGE, USER_END};
use sys::thread_state::{BUSY, READY, RECEIVING, SENDING};
use sys::{Dope, Fpage, Kind, Message, Rights, StringPart, TaskId, ThreadState, Timeout, Uid};

/// Threads that make random calls.
const PLAYERS: usize = 6;
/// Tasks that they are in.
const TASKS: usize = 3;
/// Threads that answer them, in the same tasks.
const STANDS: usize = 4;

/// Who makes fewer calls in so many milliseconds is replaced.
const REVIEW_CALLS_MIN: u64 = 64;
/// See [`REVIEW_CALLS_MIN`].
const REVIEW_ROUNDS: u64 = 16;

/// Rounds of a millisecond in which nobody makes a call, until it is clear that nobody will.
const STILL_ROUNDS: u64 = 3000;

/// Uids and tasks that the players know. New ones replace old ones.
static KNOWN: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];
/// Threads that answer whoever sends to them: first those that are made anew when they are gone, then the players' own.
static ECHOES: [AtomicU64; STANDS + 4] = [const { AtomicU64::new(0) }; STANDS + 4];
/// One more, in another clan.
static HIDDEN: AtomicU64 = AtomicU64::new(0);
/// The pager that cannot be relied on.
static FICKLE: AtomicU64 = AtomicU64::new(0);
/// Calls made so far, by each player.
static MADE: [AtomicU64; PLAYERS] = [const { AtomicU64::new(0) }; PLAYERS];
/// Calls that succeeded, by their number (ipc with a block: 0), of all players.
static FINE: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
/// Calls through doors that came back, and all.
static DOORS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Attempts at ipc with a block, and at any other.
static TRIED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Whole states that players got, and set.
static STATES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static SEED: AtomicU64 = AtomicU64::new(1);

/// Whom the warden stops, and worse.
static WARDS: Wards = Wards { spared: &SPARED, others: &ECHOES, pager: &FICKLE };
static SPARED: [&[AtomicU64]; 5] = [
    KNOWN.split_at(PLAYERS).0,
    KNOWN.split_at(PLAYERS).0,
    core::slice::from_ref(&FICKLE),
    &redirected::NAMES,
    &redirected::DOERS,
];
// `suite_end` ends its own thread, `suite_echo` answers whoever sends.
unsafe extern "C" {
    fn suite_end();
    fn suite_echo();
    fn suite_server();
    fn suite_door_nothing();
}

/// Where players let pages in.
const WINDOW: u64 = 0xa0_0000_0000;
/// Where the fickle pager shows the ground.
const SHOWN: u64 = 0xa8_0000_0000;

const GROUND_LOG2: u32 = 18;
const GROUND_LEN: u64 = 1 << GROUND_LOG2;

/// Memory that everybody writes to.
#[repr(C, align(262144))]
struct Ground([AtomicU64; GROUND_LEN as usize / 8]);

const WORDS: usize = 1024;

/// A player's blocks. Their contents are noise, sizes, and addresses that [`Player::place`] made, never anything of
/// the program's: whatever a block is taken for, no buffer in it lies elsewhere.
#[repr(C, align(4096))]
struct Book {
    send: [AtomicU64; WORDS],
    receive: [AtomicU64; WORDS],
}

/// Index in the image of the first vector register.
const IMAGE_VECTORS: usize = 20;

/// How long who answers waits for the other side's pager.
const STAND_PATIENCE: Timeout = Timeout::from_us(5000);

/// What everybody who answers has room for.
const ROOM: Dope = Dope::room(513, 4, 2);

/// Longer than any string and any block: whatever begins in front of it ends in it at the latest, and nobody has a page
/// there.
const FENCE_LEN: usize = StringPart::MAX as usize + 0x1_0000;

/// A block to receive into.
#[repr(C, align(4096))]
struct Stand([AtomicU64; WORDS]);

#[repr(C)]
struct Arena {
    ground: Ground,
    books: [Book; PLAYERS],
    /// Blocks of those who answer; the last is the hidden one's, then its chief's.
    stands: [Stand; STANDS + 2],
    fence: [u8; FENCE_LEN],
}

static ARENA: Arena = Arena {
    ground: Ground([const { AtomicU64::new(0) }; GROUND_LEN as usize / 8]),
    books: [const {
        Book { send: [const { AtomicU64::new(0) }; WORDS], receive: [const { AtomicU64::new(0) }; WORDS] }
    }; PLAYERS],
    stands: [const { Stand([const { AtomicU64::new(0) }; WORDS]) }; STANDS + 2],
    fence: [0; FENCE_LEN],
};

/// Room for states of others, which name places of the program: nobody takes it for a block.
static LOOKED_AT: [Stand; PLAYERS] = [const { Stand([const { AtomicU64::new(0) }; WORDS]) }; PLAYERS];

fn ground() -> u64 {
    addr_of!(ARENA.ground) as u64
}

/// Which stands are the hidden thread's and its chief's.
const HIDDEN_ONE: usize = STANDS;
const CHIEF: usize = STANDS + 1;

fn stand(index: usize) -> u64 {
    ARENA.stands[index].0.as_ptr() as u64
}

/// Where those who answer let pages in.
const ANSWERING_WINDOW: Fpage = Fpage::memory(WINDOW, 24, Rights::RWX);

fn echo() -> u64 {
    suite_echo as *const () as usize as u64
}

struct Player {
    random: Random,
    index: usize,
    /// A thread that was just made, and what is to be done with it.
    made: Option<(u64, u32)>,
}

impl Player {
    fn known(&mut self) -> u64 {
        match self.random.below(16) {
            0..4 => return self.echoes(),
            4 => return redirected::anybody(&mut self.random),
            _ => {}
        }
        let value = KNOWN[self.random.below(KNOWN.len() as u64) as usize].load(Ordering::Relaxed);
        match self.random.below(16) {
            0 => value ^ 1 << self.random.below(64),
            1 => self.random.next(),
            2 => Uid::interrupt(self.random.next() as u8).0,
            3 => 0,
            4 => u64::MAX,
            _ => value,
        }
    }

    /// A thread that has no memory of its own, or 0.
    fn echoes(&mut self) -> u64 {
        self.random.pick(&ECHOES.each_ref()).load(Ordering::Relaxed)
    }

    fn learn(&mut self, value: u64) {
        KNOWN[8 + self.random.below(KNOWN.len() as u64 - 8) as usize].store(value, Ordering::Relaxed);
    }

    /// Whom to send to: mostly somebody who will answer.
    fn partner(&mut self) -> u64 {
        match self.random.below(32) {
            0 => KNOWN[self.random.below(PLAYERS as u64) as usize].load(Ordering::Relaxed),
            1 | 2 => self.known(),
            3 | 4 => self.echoes(),
            5..10 => HIDDEN.load(Ordering::Relaxed),
            10 | 11 => redirected::partner(&mut self.random),
            _ => ECHOES[self.random.below(STANDS as u64) as usize].load(Ordering::Relaxed),
        }
    }

    /// Where a string or its buffer lies: mostly in memory that comes and goes.
    fn buffer(&mut self) -> u64 {
        match self.random.below(64) {
            0 => self.place(),
            1 => WINDOW + self.random.below(1 << 24),
            2..6 => addr_of!(ARENA.books[self.index]) as u64 + self.random.below(size_of::<Book>() as u64),
            // Some have a pager that shows the ground elsewhere, and some one that shows it where it is.
            _ if self.index < TASKS => ground() + self.random.below(GROUND_LEN),
            _ => SHOWN + self.random.below(GROUND_LEN),
        }
    }

    /// An address of no meaning for the program.
    fn place(&mut self) -> u64 {
        let align = self.random.pick(&[!0, !7, !7, !0xfff]);
        let address = match self.random.below(16) {
            0 => self.random.pick(&[
                0,
                INFO_PAGE,
                USER_END - 8,
                USER_END,
                (1 << 47) - 1,
                1 << 47,
                0xffff_8000_0000_0000,
                0xffff_8080_0000_0000 + SHOWN,
                0xffff_ffff_ffff_fff8,
            ]),
            1 => self.random.next() | 1 << 46,
            2 | 3 => addr_of!(ARENA.books[self.index]) as u64 + self.random.below(size_of::<Book>() as u64),
            4 | 5 => ground() + self.random.below(GROUND_LEN),
            6..9 => WINDOW + self.random.below(1 << 24),
            9 => WINDOW + self.random.below(1 << 40),
            _ => SHOWN + self.random.below(GROUND_LEN + 0x2000),
        };
        address & align
    }

    /// An address of a place, or one of the program's, which is only looked at.
    fn address(&mut self) -> u64 {
        let (start, end) = image();
        if self.random.below(4) == 0 { start + self.random.below(end - start) } else { self.place() }
    }

    /// A flexpage to be handed on.
    fn item(&mut self) -> Fpage {
        let rights = Rights(self.random.next() as u8 & 15);
        match self.random.below(16) {
            0 => Fpage(self.random.next() | 1 << 46),
            1 => Fpage::ports(self.random.next() as u16, self.random.below(17) as u32),
            2 => Fpage::interrupt(self.random.next() as u8),
            3 => Fpage::NIL,
            4 => Fpage::memory(WINDOW, 39, rights),
            5 => self.doors(rights),
            6..9 => Fpage::memory(ground(), GROUND_LOG2, rights),
            _ => {
                let log2 = 12 + self.random.below(4) as u32 * self.random.below(3) as u32;
                Fpage::memory(self.place(), log2, rights)
            }
        }
    }

    /// A few door identifiers, at times all that there can be.
    fn doors(&mut self, rights: Rights) -> Fpage {
        match self.random.below(16) {
            0 => Fpage::doors(0, DOORS_LOG2, rights),
            1 => Fpage::doors(self.random.next() as u32 & (DOORS_MAX - 1), 0, rights),
            _ => Fpage::doors(self.random.below(8) as u32, self.random.below(3) as u32, rights),
        }
    }

    /// A call through a door, a return from one, a new door.
    fn door(&mut self) -> Frame {
        let mut frame = self.noise();
        frame.rdx = if self.random.below(16) == 0 { self.random.next() } else { self.random.below(8) };
        let operation = match self.random.below(16) {
            0..5 => DOOR_CALL,
            5..8 => {
                (frame.rdi, frame.rsi) = self.block();
                self.random.pick(&[DOOR_LONG_CALL, DOOR_LONG_CALL, DOOR_LONG_RETURN])
            }
            8..11 => {
                (frame.r13, frame.r14) = (self.item().0, self.address());
                self.random.pick(&[DOOR_ITEM_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN])
            }
            11 => DOOR_RETURN,
            12 if self.random.below(16) == 0 => {
                return self.control(Call::DoorControl as u32 | door_op::SHORTAGE << 8, [0; 6]);
            }
            _ => {
                let entry = suite_door_nothing as *const () as usize as u64;
                let (number, datum) = (self.random.below(9), self.random.next());
                return self.control(Call::DoorControl as u32, [number, entry, datum, 0, 0, 0]);
            }
        };
        let is_call = Op(operation).is_door_call();
        let alertable = if is_call && self.random.below(4) == 0 { op::ALERTABLE } else { 0 };
        let taking =
            if is_call { self.random.pick(&[0, op::TAKES_BLOCK, op::TAKES_ITEM, op::TAKES]) } else { 0 };
        frame.rax = Op(operation).with(alertable | taking).0 as u64 | self.random.next() << 32;
        frame
    }

    fn window(&mut self) -> Fpage {
        match self.random.below(8) {
            0 => Fpage(self.random.next() & !0xfff | 0x3f << 4),
            1 => Fpage::ports(0, 16),
            2 => self.doors(Rights::RW),
            3 => Fpage::NIL,
            _ => Fpage::memory(
                WINDOW + self.random.below(1 << 24),
                12 + self.random.below(12) as u32,
                Rights::RWX,
            ),
        }
    }

    /// As long as an answer takes, as a rule.
    fn patience(&mut self) -> Timeout {
        if self.random.below(8) == 0 {
            self.timeout()
        } else {
            Timeout::from_us(200 + self.random.below(800))
        }
    }

    /// Short as a rule; one in a thousand waits until somebody ends it.
    fn timeout(&mut self) -> Timeout {
        match self.random.below(1024) {
            0 => self.random.pick(&[Timeout::NEVER, Timeout(0x7fff_ffff), Timeout(1 << 31), Timeout(!1)]),
            1..100 => Timeout::from_us(self.random.below(50)),
            _ => Timeout::ZERO,
        }
    }

    fn point(&mut self) -> u64 {
        let now = sys::clock();
        match self.random.below(64) {
            0 => self.random.pick(&[ABSOLUTE_END - 1, ABSOLUTE_END, u64::MAX, 1 << 63]),
            1 => 0,
            _ => (now + self.random.below(100_000)).saturating_sub(50_000),
        }
    }

    fn label(&mut self) -> u64 {
        // Not 1: that would resume a thread at an address of our making.
        self.random.pick(&[0, 2, 0xffff_ffff, 0x8000_0000]) << 32
    }

    fn ipc(&mut self) -> Frame {
        let mut frame = self.noise();
        let flags = match self.random.below(64) {
            0 => self.random.next() as u32 & 0x7fff_ff00,
            1..20 => op::ITEM,
            20..36 => op::BLOCK,
            36 => op::BLOCK | op::ITEM,
            _ => 0,
        };
        // Whatever it carries, it may be shown as somebody else's, end by an alert, or at a point in time.
        let flags = flags
            | self.random.pick(&[0, 0, 0, 0, 0, 0, op::TAKES_FOREIGN, op::SHOWN])
            | self.random.pick(&[0, 0, 0, op::ALERTABLE])
            | self.random.pick(&[0, 0, 0, 0, 0, 0, 0, op::ABSOLUTE])
            | self.random.pick(&[0, op::TAKES_BLOCK]);
        frame.rax = self.label() | (Call::Ipc as u32 | flags) as u64;
        let (to, other) = (self.partner(), self.known());
        (frame.rdx, frame.rbx, frame.r15) = match self.random.below(8) {
            // A call, a send, anything.
            0..4 => (to, to, timeouts(self.patience(), self.patience())),
            4..7 => (to, 0, timeouts(self.patience(), Timeout::ZERO)),
            _ => (to, other, timeouts(self.timeout(), self.timeout())),
        };
        frame.rbp = self.window().0;
        if flags & op::ITEM != 0 {
            (frame.r13, frame.r14) = (self.item().0, self.place());
        }
        if flags & op::BLOCK != 0 {
            (frame.rdi, frame.rsi) = self.block();
        }
        if flags & op::SHOWN != 0 {
            frame.r12 = self.known();
        }
        if flags & op::ABSOLUTE != 0 {
            frame.r15 = self.point();
        }
        frame
    }

    fn short(&mut self) -> Frame {
        let mut frame = self.noise();
        // These wait forever if nobody answers.
        let to = if self.random.below(16) == 0 { self.random.next() } else { self.partner() };
        let waits = self.random.below(256) == 0;
        let is_long = self.random.below(2) == 0;
        let taking = self.random.pick(&[0, op::TAKES_BLOCK, op::TAKES_ITEM, op::TAKES]);
        let operation = match (waits, is_long) {
            (false, false) => Op::CALL.with(taking).0,
            (false, true) => Op::CALL.with(op::BLOCK | taking).0,
            (true, false) => IPC_REPLY_WAIT,
            (true, true) => IPC_LONG_REPLY_WAIT,
        };
        frame.rax = self.label() | operation as u64;
        frame.rdx = to;
        if is_long {
            (frame.rdi, frame.rsi) = self.block();
        }
        frame
    }

    /// Dope and address of a block to send.
    fn block(&mut self) -> (u64, u64) {
        let words = self.random.pick(&[0, 0, 1, 8, 100, 512, 513]);
        let strings = self.random.below(4);
        let items = self.random.pick(&[0, 0, 0, 1, 2]);
        let mut dope = Dope::used(words, strings, items);
        if self.random.below(2) == 0 {
            dope = Dope(dope.0 | Dope::room(self.random.below(128), self.random.below(8), 2).0);
        }
        self.describe(&ARENA.books[self.index].send, dope);
        let flips = self.random.below(16) == 0;
        let dope = if flips { dope.0 ^ 1 << self.random.below(64) } else { dope.0 };
        let elsewhere = self.random.below(16) == 0;
        let address = if elsewhere { self.place() } else { addr_of!(ARENA.books[self.index].send) as u64 };
        (dope, address)
    }

    /// Writes what a dope announces, as far as there is room for it.
    fn describe(&mut self, block: &[AtomicU64; WORDS], dope: Dope) {
        let (strings, items) = (dope.strings_offset() as usize / 8, dope.items_offset() as usize / 8);
        let write = |at: usize, [first, second]: [u64; 2]| {
            if at + 1 < WORDS {
                block[at].store(first, Ordering::Relaxed);
                block[at + 1].store(second, Ordering::Relaxed);
            }
        };
        for i in 0..dope.strings().max(dope.room_as_used().strings()) as usize {
            let string = self.string();
            write(strings + 2 * i, [string.address, string.sizes()]);
        }
        for i in 0..dope.items().max(dope.room_as_used().items()) as usize {
            let (item, window) = (self.item(), self.window());
            let of_use = if self.random.below(2) == 0 { item } else { window };
            write(items + 2 * i, [of_use.0, self.place()]);
        }
    }

    /// A string, or a buffer.
    fn string(&mut self) -> StringPart {
        let mut len = || match self.random.below(8) {
            0 => match self.random.below(8) {
                0 => self.random.pick(&[StringPart::MAX, StringPart::MAX + 1, u32::MAX]),
                _ => self.random.below(2) as u32,
            },
            1 | 2 => self.random.pick(&[7, 8, 4095, 4096, 4097, 32768, 32769]),
            3 => self.random.below(GROUND_LEN / 4) as u32,
            _ => self.random.below(10_000) as u32,
        };
        let (len, capacity) = (len(), len());
        let capacity = if self.random.below(8) == 0 { capacity } else { GROUND_LEN as u32 };
        StringPart { address: self.buffer(), len, capacity }
    }

    /// Arguments of *set block* after the thread: address, room, patience.
    fn set_block(&mut self) -> [u64; 3] {
        let patience = match self.random.below(64) {
            0 => Timeout::NEVER,
            1..56 => Timeout::from_us(self.random.below(2000)),
            _ => Timeout::ZERO,
        };
        let room =
            Dope::room(self.random.pick(&[0, 8, 100, 512, 513]), self.random.below(5), self.random.below(3));
        let room = if self.random.below(2) == 0 { ROOM } else { room };
        let own = self.random.below(4) != 0;
        if own {
            self.describe(&ARENA.books[self.index].receive, room);
        }
        let address = if own { addr_of!(ARENA.books[self.index].receive) as u64 } else { self.place() };
        let room = if self.random.below(16) == 0 { room.0 ^ 1 << self.random.below(64) } else { room.0 };
        [address, room, patience.0 as u64]
    }

    /// A frame of noise.
    fn noise(&mut self) -> Frame {
        let mut frame = Frame::call(Uid::NIL, 0, core::array::from_fn(|_| self.random.next()));
        frame.flags |= self.random.next() & 0x4_0cd5;
        frame
    }

    fn control(&mut self, eax: u32, arguments: [u64; 6]) -> Frame {
        let high = if self.random.below(64) == 0 { self.random.next() << 32 } else { 0 };
        let mut frame = Frame::control(eax, arguments);
        frame.rax |= high;
        frame.flags |= self.random.next() & 0x4_0cd5;
        frame
    }

    fn thread(&mut self) -> Frame {
        let op = self.random.below(thread_op::COUNT as u64 + 1) as u32;
        let target = match self.random.below(4) {
            0 => 0,
            1 => self.echoes(),
            _ => self.known(),
        };
        let is_echo = target != 0 && ECHOES.iter().any(|echo| echo.load(Ordering::Relaxed) == target);
        // A player that ends itself has to be made again: not too often.
        let kills = matches!(op, thread_op::DESTROY | thread_op::STOP | thread_op::SET_PAGER);
        let spared = kills && self.random.below(if is_echo { 4 } else { 64 }) != 0;
        let upsets = matches!(
            op,
            thread_op::SET_REGISTERS | thread_op::SET_STATE | thread_op::STEP | thread_op::BREAKPOINT
        );
        let op = if spared || upsets && !is_echo { thread_op::INFO } else { op };
        // A thread in a foreign call stands still, so that it has a state.
        let looks = op == thread_op::GET_STATE && self.random.below(2) == 0;
        let target = if looks { redirected::anybody(&mut self.random) } else { target };
        let [mut second, mut third, fourth, fifth, sixth] = self.thread_arguments(op);
        if op == thread_op::GET_STATE && (target == 0 || redirected::is_one(target)) {
            second = LOOKED_AT[self.index].0.as_ptr() as u64;
            third = third.max(ThreadState::LEN_BYTES);
        }
        self.control(Call::ThreadControl as u32 | op << 8, [target, second, third, fourth, fifth, sixth])
    }

    fn thread_arguments(&mut self, op: u32) -> [u64; 5] {
        let noise = [self.random.next(), self.random.next(), self.random.next()];
        let fickle = FICKLE.load(Ordering::Relaxed);
        let pager = if self.random.below(2) == 0 { fickle } else { self.known() };
        let [first, second, third] = match op {
            thread_op::CREATE => {
                self.made = Some((0, 0));
                // Mostly as urgent as a player: whoever is less urgent hardly ever runs.
                let priority = u64::from(pager::priority()) - 1;
                let priority = if self.random.below(4) == 0 { self.random.below(4) } else { priority };
                [priority, pager, fickle]
            }
            thread_op::START => [self.start(), self.place(), noise[0]],
            thread_op::SET_PAGER => [pager, self.known(), noise[0]],
            thread_op::SET_PRIORITY => [self.random.below(70), self.random.below(20_000), noise[0]],
            thread_op::DENY_NATIVE => [self.random.below(3), redirected::label(&mut self.random), noise[0]],
            thread_op::STEP | thread_op::TRACE | thread_op::ALERT => {
                [self.random.below(3), noise[0], noise[1]]
            }
            thread_op::SET_WINDOW => [self.window().0, noise[0], noise[1]],
            thread_op::SET_BLOCK => self.set_block(),
            thread_op::GET_REGISTERS => [self.random.below(6), noise[0], noise[1]],
            thread_op::SET_REGISTERS => match self.random.below(6) {
                0 => [0, self.start(), self.place()],
                group => [group, self.place(), self.place()],
            },
            thread_op::GET_STATE => {
                [self.place() & !63, self.random.pick(&[1024, 1024, 2000, 144, 8]), noise[0]]
            }
            // General registers alone stand behind the header of a whole state.
            thread_op::SET_STATE if self.random.below(4) == 0 => [
                self.state() + offset_of!(ThreadState, registers) as u64,
                ThreadState::GENERAL_BYTES,
                noise[0],
            ],
            thread_op::SET_STATE => [self.state(), 1024, noise[0]],
            thread_op::BREAKPOINT => [self.random.below(5), self.place(), self.random.below(5)],
            thread_op::NEXT | thread_op::INFO => [self.known(), noise[0], noise[1]],
            _ => [self.place(), noise[0], noise[1]],
        };
        let fourth = if op == thread_op::BREAKPOINT { 1 << self.random.below(5) } else { noise[1] };
        [first, second, third, fourth, noise[2]]
    }

    /// A state: mostly one that a thread may have but for a bit or two, in the player's book or anywhere.
    fn state(&mut self) -> u64 {
        let book = &ARENA.books[self.index].send;
        for word in book.iter().take(size_of::<ThreadState>() / 8) {
            word.store(self.random.next(), Ordering::Relaxed);
        }
        let header =
            [ThreadState::LEN_BYTES, self.random.below(8), self.start(), self.place(), self.random.next()];
        let bases = [self.place(), 0, 0, 0];
        let image = offset_of!(ThreadState, image) / 8;
        let xsave = [self.random.below(8), 0, 0, 0, 0, 0, 0, 0];
        let bases_at = offset_of!(ThreadState, fs_base) / 8;
        for (at, words) in [(0, &header[..]), (bases_at, &bases[..]), (image + IMAGE_HEADER, &xsave[..])] {
            book[at..].iter().zip(words).for_each(|(cell, word)| cell.store(*word, Ordering::Relaxed));
        }
        let vector = self.random.next() & !0xff | u64::from(redirected::MARKED);
        book[image + IMAGE_VECTORS].store(vector, Ordering::Relaxed);
        book[image + IMAGE_MXCSR].store(0x1f80 | self.random.next() & 0x603f, Ordering::Relaxed);
        if self.random.below(3) == 0 {
            let word =
                self.random.pick(&[0, 1, 2, 3, 20, 21, 22, image + IMAGE_MXCSR, image + IMAGE_HEADER + 1]);
            book[word].fetch_xor(1 << self.random.below(64), Ordering::Relaxed);
        }
        if self.random.below(8) == 0 { self.place() & !63 } else { book.as_ptr() as u64 }
    }

    /// Where a thread may start: what it does there harms nobody.
    fn start(&mut self) -> u64 {
        let end = suite_end as *const () as usize as u64;
        self.random.pick(&[end, echo(), echo(), 0, 0x1000, 1 << 47, 0xffff_ffff_8000_0000, INFO_PAGE])
    }

    fn task(&mut self) -> Frame {
        let op = self.random.below(task_op::COUNT as u64 + 1) as u32;
        // When memory runs out is not the players' affair: it would run out for the suite, too.
        let op = if op == task_op::EXHAUST { task_op::INFO } else { op };
        let arguments = match op {
            task_op::CREATE => [self.random.below(12), self.random.below(70), 1, 2, 3, 4],
            _ => [self.known(), self.random.below(20), 1, 2, 3, 4],
        };
        self.control(Call::TaskControl as u32 | op << 8, arguments)
    }

    fn flush(&mut self) -> Frame {
        let fpage = match self.random.below(16) {
            0 => Fpage::WHOLE,
            1 => Fpage::memory(self.address(), 12, Rights::RWX),
            _ => self.item(),
        };
        let flags = if self.random.below(8) == 0 { FLUSH_SELF } else { self.random.below(4) & 2 };
        let rights = self.random.pick(&[Rights::NONE, Rights::W, Rights::X, Rights::RWX]);
        self.control(Call::Flush as u32, [fpage.with_rights(rights).0, flags, 0, 0, 0, 0])
    }

    /// A thread that was just made gets a block, and starts; or it gets a whole state, which is looked at, and goes on with that.
    fn raise(&mut self, thread: u64, step: u32) -> Frame {
        let room = LOOKED_AT[self.index].0.as_ptr() as u64;
        let (op, [second, third, fourth]) = match step {
            1 => (thread_op::SET_BLOCK, self.set_block()),
            2 => (thread_op::START, [self.beginning(thread), SHOWN, 0]),
            3 => (thread_op::SET_STATE, [self.state(), ThreadState::LEN_BYTES, 0]),
            4 => (thread_op::GET_STATE, [room, ThreadState::LEN_BYTES, 0]),
            _ => {
                self.beginning(thread);
                (thread_op::RESUME, [0; 3])
            }
        };
        self.control(Call::ThreadControl as u32 | op << 8, [thread, second, third, fourth, 0, 0])
    }

    /// Where a thread that was just made starts: to serve, or to answer, which others learn.
    fn beginning(&mut self, thread: u64) -> u64 {
        let place = STANDS + self.random.below((ECHOES.len() - STANDS) as u64) as usize;
        if self.random.below(3) == 0 {
            return suite_server as *const () as usize as u64;
        }
        ECHOES[place].store(thread, Ordering::Relaxed);
        echo()
    }

    fn frame(&mut self) -> Frame {
        if let Some((thread, step @ 1..)) = self.made {
            self.made = match step {
                1 if self.random.below(2) == 0 => Some((thread, 3)),
                1 | 3 | 4 => Some((thread, step + 1)),
                _ => None,
            };
            return self.raise(thread, step);
        }
        match self.random.below(36) {
            32.. => self.door(),
            0..10 => self.ipc(),
            10..17 => self.short(),
            17..20 => self.flush(),
            20..25 => self.thread(),
            25..28 => self.task(),
            28 => {
                let to = self.known();
                self.control(Call::ThreadSwitch as u32, [to, 1, 2, 3, 4, 5])
            }
            29 if self.random.below(2) == 0 => self.control(NULL, [0, 1, 2, 3, 4, 5]),
            // Of whose call, depends on who made one to whom.
            29 => Frame { rax: FOREIGN_RETURN.into(), ..self.noise() },
            30 => self.control(Call::Clock as u32, [0, 1, 2, 3, 4, 5]),
            _ => {
                // Any number but those that the branches above choose with care.
                let number = (self.random.next() as u32 & !0x8000_0000) | self.random.pick(&[0, 0x8000_0000]);
                let number = if number & 0x8000_0000 != 0 { number & 0xffff_ff00 | 0x40 } else { number };
                self.control(number, [0, 1, 2, 3, 4, 5])
            }
        }
    }

    /// A player begins with room for what others answer.
    fn set_own_block(&mut self) -> Frame {
        let block = &ARENA.books[self.index].receive;
        self.describe(block, ROOM);
        let patience = self.patience().0 as u64;
        self.control(
            Call::ThreadControl as u32 | thread_op::SET_BLOCK << 8,
            [0, block.as_ptr() as u64, ROOM.0, patience, 0, 0],
        )
    }

    /// Counts what succeeded, and learns names.
    fn learn_from(&mut self, call: u64, frame: &Frame) {
        let eax = call as u32;
        if frame.kind() == Some(Kind::DoorReturn) {
            DOORS[0].fetch_add(1, Ordering::Relaxed);
        }
        let form = ipc_form(eax);
        let fine = if form.is_some() { frame.error().is_none() } else { frame.rax == 0 };
        if !fine {
            return;
        }
        let counter = form.unwrap_or((eax & 0xff) as usize);
        if let Some(counter) = FINE.get(counter) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        for (op, counter) in [thread_op::GET_STATE, thread_op::SET_STATE].into_iter().zip(&STATES) {
            counter.fetch_add(u64::from(eax == Call::ThreadControl as u32 | op << 8), Ordering::Relaxed);
        }
        let creates =
            [Call::ThreadControl, Call::TaskControl].map(|call| call as u32).contains(&(eax & !0xff00));
        if creates && frame.rax == 0 {
            self.learn(frame.rdi);
            if let Some((made @ 0, step)) = &mut self.made {
                (*made, *step) = (frame.rdi, 1);
            }
        }
    }
}

/// 0 for ipc with a block, 1 for any other, nothing for all other calls.
fn ipc_form(eax: u32) -> Option<usize> {
    let is_ipc = matches!(Op(eax).number(), Some(Form::Call | Form::ReplyWait | Form::General));
    is_ipc.then_some(usize::from(!Op(eax).is_long()))
}

fn count_attempt(eax: u32) {
    if Op(eax).is_door_call() {
        DOORS[1].fetch_add(1, Ordering::Relaxed);
    }
    if let Some(form) = ipc_form(eax) {
        TRIED[form].fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of a player; its mailbox is `index`.
extern "C" fn play(argument: u64) -> u64 {
    let (player, mailbox) = ((argument & 0xff) as usize, (argument >> 8) as usize);
    let made = &MADE[player];
    let seed = SEED.load(Ordering::Relaxed) ^ (player as u64) << 56 ^ made.load(Ordering::Relaxed) << 20;
    let mut it = Player { random: Random::new(seed), index: player, made: None };
    let mut first = Some(it.set_own_block());
    loop {
        let mut frame = first.take().unwrap_or_else(|| it.frame());
        let call = frame.rax;
        made.fetch_add(1, Ordering::Relaxed);
        count_attempt(call as u32);
        redirected::mark_vectors();
        // SAFETY: the module's text says why nothing that the suite needs is taken away.
        if unsafe { guarded(mailbox, &mut frame) } {
            it.learn_from(call, &frame);
        }
        it.made = it.made.filter(|(thread, _)| *thread != 0);
    }
}

/// Somebody who answers whoever sends.
pub fn answerer(random: &mut Random) -> u64 {
    ECHOES[random.below(STANDS as u64) as usize].load(Ordering::Relaxed)
}

/// Puts what those who answer receive into in order.
fn describe_stands(random: &mut Random) {
    let (strings, items) = (ROOM.strings_offset() as usize / 8, ROOM.items_offset() as usize / 8);
    for (index, Stand(block)) in ARENA.stands.iter().enumerate() {
        let write = |at: usize, words: [u64; 2]| {
            block[at].store(words[0], Ordering::Relaxed);
            block[at + 1].store(words[1], Ordering::Relaxed);
        };
        // The chief is paged by the suite, all others by the fickle pager.
        let base = if index == CHIEF { ground() } else { SHOWN };
        for i in 0..ROOM.room_as_used().strings() as usize {
            let buffer = StringPart::room(base + random.below(GROUND_LEN / 2), GROUND_LEN as u32 / 2);
            write(strings + 2 * i, [buffer.address, buffer.sizes()]);
        }
        for i in 0..ROOM.room_as_used().items() as usize {
            write(items + 2 * i, [Fpage::memory(WINDOW, 24, Rights::RWX).0, 0]);
        }
    }
}

/// The chief of a clan in which one thread answers: passes on what crosses the border, as from its sender.
extern "C" fn preside(mailbox: u64) -> u64 {
    let open = Frame::reply_wait(Uid::NIL, 0, [0; 11]);
    let mut frame = open;
    loop {
        // SAFETY: it sends what it got, and receives into its own stand.
        let fine = unsafe { guarded(mailbox as usize, &mut frame) };
        let diverted = frame.rax as u32 & NOT_DIVERTED == 0;
        frame = if fine && frame.error().is_none() && diverted { pass(&frame) } else { open };
    }
}

/// Passes a message on to whom it was meant for; then the next one is taken.
fn pass(got: &Frame) -> Frame {
    let to = Uid(got.r15);
    let mut frame = Frame::ipc(to, Uid::ANY, Timeout::ZERO, Timeout::NEVER).label(got.received_label());
    let long = if got.rax as u32 & NO_BLOCK == 0 { op::BLOCK } else { 0 };
    frame.rax |= (op::SHOWN | op::TAKES_BLOCK | long) as u64;
    (frame.rdi, frame.rsi, frame.r8, frame.r9, frame.r10) = (got.rdi, got.rsi, got.r8, got.r9, got.r10);
    frame.r12 = got.sender().0;
    frame
}

/// A pager that gives what it has of the program, and of the ground what it feels like.
extern "C" fn page(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut message = sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]);
    loop {
        message = match message {
            Ok(message) => page_in(&mut random, message),
            Err(_) => sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]),
        }
    }
}

fn page_in(random: &mut Random, message: Message) -> sys::Result<Message> {
    let to = message.sender;
    if message.kind == Kind::Exception && message.words[0] == vector::SYSCALL {
        // A thread that was denied native calls would make the denied one again, for ever.
        return sys::receive(Uid::ANY, Timeout::NEVER);
    }
    if message.kind != Kind::Fault {
        let label = if message.kind == Kind::Exception { RESUME_AS_IS } else { 0 };
        return sys::ipc_reply_wait(to, label, [0; 8]);
    }
    let page = message.words[0] & !0xfff;
    let access = Rights(message.words[0] as u8 & 7);
    if access.has(Rights::W) && pager::is_constant(page) {
        return sys::ipc_reply_wait(to, REFUSE, [0; 8]);
    }
    if pager::is_mine(page) {
        pager::touch(page, access);
        return sys::reply_item_wait(to, 0, [0; 8], (Fpage::memory(page, 12, Rights::RWX), page));
    }
    let offset = page.wrapping_sub(SHOWN);
    let choice = random.below(256);
    if offset >= GROUND_LEN || choice == 0 {
        return sys::ipc_reply_wait(to, REFUSE, [0; 8]);
    }
    let rights = random.pick(&[Rights::R, Rights::RW, Rights::RW, Rights::RWX]);
    let log2 = random.pick(&[12, 12, 12, 14, 14, 18]);
    let given = Fpage::memory(ground() + offset, log2, rights);
    pager::touch(ground() + offset, Rights::RW);
    match choice {
        1..8 => sys::ipc_reply_wait(to, 0, [0; 8]),
        8..16 => {
            let _ = sys::flush(Fpage::memory(ground(), GROUND_LOG2, random.pick(&[Rights::W, Rights::RWX])));
            sys::reply_item_wait(to, 0, [0; 8], (given, page))
        }
        16..24 => {
            let _ = sys::sleep_us(random.below(200));
            sys::reply_item_wait(to, 0, [0; 8], (given, page))
        }
        24..32 => {
            let granted = given.with_rights(rights.or(Rights::GRANT));
            sys::reply_item_wait(to, 0, [0; 8], (granted, page))
        }
        _ => sys::reply_item_wait(to, 0, [0; 8], (given, page)),
    }
}

fn made() -> u64 {
    MADE.iter().map(|made| made.load(Ordering::Relaxed)).sum()
}

/// A clan in which one thread answers. What comes first ends first.
struct Clan {
    _chief: Agent,
    _task: Child,
}

impl Clan {
    fn new() -> Outcome<Clan> {
        let task = Child::with_quota(128)?;
        let priority = pager::priority() - 1;
        // As urgent as who waits for it, until it is on its own.
        let mut chief = Agent::new(task.0)?;
        let create = Call::TaskControl as u32 | task_op::CREATE << 8;
        let (_, [inner, ..]) = chief.control(create, [64, priority.into(), 0, 0, 0, 0])?;
        let fickle = FICKLE.load(Ordering::Relaxed);
        let [thread, block, window, start] =
            [thread_op::CREATE, thread_op::SET_BLOCK, thread_op::SET_WINDOW, thread_op::START]
                .map(|op| Call::ThreadControl as u32 | op << 8);
        let (_, [hidden, ..]) =
            chief.control(thread, [inner, priority.into(), fickle, pager::uid().0, 0, 0])?;
        let never = Timeout::NEVER.0 as u64;
        for (call, arguments) in [
            (block, [hidden, stand(HIDDEN_ONE), ROOM.0, never, 0, 0]),
            (window, [hidden, ANSWERING_WINDOW.0, 0, 0, 0, 0]),
            (start, [hidden, echo(), SHOWN, 0, 0, 0]),
        ] {
            check_eq!(chief.control(call, arguments)?.0, 0);
        }
        sys::thread_set_block(chief.uid, stand(CHIEF), ROOM, STAND_PATIENCE)?;
        sys::thread_set_priority(chief.uid, priority, 0)?;
        chief.start_apply(preside, chief.mailbox_index() as u64);
        HIDDEN.store(hidden, Ordering::Relaxed);
        Ok(Clan { _chief: chief, _task: task })
    }
}

/// The fickle pager, its players and their tasks. What comes first ends first.
struct Troupe {
    _warden: Agent,
    redirected: Redirected,
    players: [Agent; PLAYERS],
    clan: Clan,
    pager: Agent,
    tasks: [Child; TASKS],
    pager_task: Child,
}

impl Troupe {
    fn new() -> Outcome<Troupe> {
        let priority = pager::priority() - 1;
        let quotas = [64, 48, 32];
        let [first, second, third] = quotas.map(|quota| sys::task_create(quota, priority).map(Child));
        let tasks = [first?, second?, third?];
        let pager_task = Child::with_quota(64)?;
        let pager = Troupe::pager(&pager_task)?;
        let fixed =
            [pager::uid().0, sys::myself().0, tasks[0].0.0, tasks[1].0.0, FICKLE.load(Ordering::Relaxed)];
        for (known, value) in KNOWN[PLAYERS..].iter().zip(fixed) {
            known.store(value, Ordering::Relaxed);
        }
        ECHOES.iter().for_each(|echo| echo.store(0, Ordering::Relaxed));
        let player = |index| Troupe::player(&tasks, index);
        (0..STANDS).for_each(|index| Troupe::answerer(&tasks, index));
        let clan = Clan::new()?;
        let players = [player(0)?, player(1)?, player(2)?, player(3)?, player(4)?, player(5)?];
        let seed = SEED.load(Ordering::Relaxed) ^ made();
        let redirected = Redirected::new([tasks[0].0, tasks[1].0], seed)?;
        let _warden = warden::new(&WARDS, seed)?;
        Ok(Troupe { _warden, redirected, players, clan, pager, tasks, pager_task })
    }

    /// Makes somebody who answers, as far as the task can pay for that.
    fn answerer(tasks: &[Child; TASKS], index: usize) {
        let priority = pager::priority() - 1;
        let fickle = Uid(FICKLE.load(Ordering::Relaxed));
        let Ok(uid) = sys::thread_create(tasks[index % TASKS].0, priority, fickle, pager::uid()) else {
            return;
        };
        let _ = sys::thread_set_block(uid, stand(index), ROOM, STAND_PATIENCE);
        let _ = sys::thread_set_window(uid, ANSWERING_WINDOW);
        // SAFETY: it has no memory of its own, and answers.
        let _ = unsafe { sys::thread_start(uid, echo(), SHOWN, 0) };
        ECHOES[index].store(uid.0, Ordering::Relaxed);
    }

    /// Looks after those who answer: who is gone or hangs is made anew.
    fn review_answerers(&self) {
        for (index, echo) in ECHOES[..STANDS].iter().enumerate() {
            let uid = Uid(echo.load(Ordering::Relaxed));
            // Receiving, or on its way there.
            if !matches!(sys::thread_info(uid).map(|info| info.state), Ok(READY | RECEIVING | BUSY)) {
                let _ = sys::thread_destroy(uid);
                Troupe::answerer(&self.tasks, index);
            }
        }
    }

    /// Another clan in the place of the old one, in the middle of whatever its threads do.
    fn replace_clan(&mut self) -> Outcome {
        self.clan = Clan::new()?;
        Ok(())
    }

    /// Takes memory away every few rounds, and replaces whoever is gone, hangs or is in the middle of anything.
    fn tend(&mut self, round: u64, random: &mut Random) -> Outcome {
        if round.is_multiple_of(8) {
            let rights = if round.is_multiple_of(16) { Rights::W } else { Rights::RWX };
            sys::flush(Fpage::memory(ground(), GROUND_LOG2, rights))?;
        }
        if round.is_multiple_of(4) {
            describe_stands(random);
            self.review_answerers();
            self.redirected.review()?;
        }
        if round.is_multiple_of(100) {
            self.replace_pager()?;
        }
        if round % 100 == 50 {
            self.replace_clan()?;
        }
        if round % 100 == 75 {
            self.redirected.replace_handler()?;
        }
        Ok(())
    }

    fn pager(task: &Child) -> Outcome<Agent> {
        let mut agent = Agent::with_priority(task.0, pager::priority() - 1)?;
        FICKLE.store(agent.uid.0, Ordering::Relaxed);
        agent.start_apply(page, agent.uid.0);
        Ok(agent)
    }

    fn player(tasks: &[Child; TASKS], index: usize) -> Outcome<Agent> {
        let mut agent = Agent::create(tasks[index % TASKS].0, pager::priority() - 1)?;
        KNOWN[index].store(agent.uid.0, Ordering::Relaxed);
        // Short slices, so that they meet in the middle of each other's calls.
        sys::thread_set_priority(agent.uid, pager::priority() - 1, 100)?;
        if index >= TASKS {
            sys::thread_set_pager(agent.uid, Uid(FICKLE.load(Ordering::Relaxed)), pager::uid())?;
        }
        agent.begin()?;
        agent.start_apply(play, index as u64 | (agent.mailbox_index() as u64) << 8);
        Ok(agent)
    }

    /// Puts another player in the place of one that is gone or stuck. False if its task cannot pay for it.
    fn replace(&mut self, index: usize) -> bool {
        let _ = sys::thread_destroy(self.players[index].uid);
        let Ok(player) = Troupe::player(&self.tasks, index) else { return false };
        self.players[index] = player;
        true
    }

    /// Another pager in the place of the old one, whose clients are left alone with their faults.
    fn replace_pager(&mut self) -> Outcome {
        let _ = sys::thread_destroy(self.pager.uid);
        self.pager = Troupe::pager(&self.pager_task)?;
        Ok(())
    }
}

/// Watches the players until they made `calls` calls: ends what waits for ever, replaces who is gone.
fn supervise(calls: u64, seed: u64) -> Outcome {
    SEED.store(seed, Ordering::Relaxed);
    MADE.iter()
        .chain(&FINE)
        .chain(&TRIED)
        .chain(&DOORS)
        .chain(&STATES)
        .for_each(|count| count.store(0, Ordering::Relaxed));
    pager::fence(addr_of!(ARENA.fence) as u64, FENCE_LEN as u64);
    let mut random = Random::new(seed);
    describe_stands(&mut random);
    let mut troupe = Troupe::new()?;
    let (mut before, mut at_last_review) = ([0; PLAYERS], [0; PLAYERS]);
    let (mut round, mut last, mut still) = (0, 0, 0);
    let may_exhaust = super::exhaust::is_allowed();
    while made() < calls {
        sys::sleep_us(1000)?;
        crate::kit::progress();
        round += 1;
        if may_exhaust {
            // Somebody's memory runs out, for a frame or two; not for what is made here.
            sys::task_exhaust(TaskId::NIL, 0, 0)?;
        }
        let all = made();
        still = if all == last { still + 1 } else { 0 };
        last = all;
        check!(still < STILL_ROUNDS, "nobody makes calls any more, after {all}");
        troupe.tend(round, &mut random)?;
        for index in 0..PLAYERS {
            let now = MADE[index].load(Ordering::Relaxed);
            let state = sys::thread_info(troupe.players[index].uid).map(|info| info.state);
            if now == before[index] && matches!(state, Ok(RECEIVING | SENDING)) {
                let _ = sys::thread_abort(troupe.players[index].uid);
            }
            before[index] = now;
            // They end, stop and hinder each other, or lose pager and handler. Who is slow is replaced.
            let is_slow = round % REVIEW_ROUNDS == 0 && now - at_last_review[index] < REVIEW_CALLS_MIN;
            if !(state.is_err() || is_slow) || troupe.replace(index) {
                continue;
            }
            // They used up their quota, and their children cannot be taken from them one by one.
            drop(troupe);
            troupe = Troupe::new()?;
            break;
        }
        if round % REVIEW_ROUNDS == 0 {
            at_last_review = before;
        }
        if may_exhaust && round % 2 == 0 {
            let task = troupe.tasks[random.below(TASKS as u64) as usize].0;
            sys::task_exhaust(task, 1 + random.below(4), 1 + random.below(2))?;
        }
    }
    if may_exhaust {
        sys::task_exhaust(TaskId::NIL, 0, 0)?;
    }
    check!(made() >= calls);
    Ok(())
}

/// Random calls, and then a look whether the system is what it was.
pub fn random_system_calls() -> Outcome {
    // The first time this program's own pages come in, and are paid for.
    supervise(1000, 0)?;
    let before = sys::task_info(TaskId::NIL)?;
    let (calls, seed) = (crate::random_calls(), crate::random_seed());
    let since = sys::clock();
    warden::forget();
    redirected::forget();
    supervise(calls, seed)?;
    let [long, ipc, flush, thread, task, switch, _] =
        FINE.each_ref().map(|counter| counter.load(Ordering::Relaxed));
    let [door, door_tried] = DOORS.each_ref().map(|counter| counter.load(Ordering::Relaxed));
    let [long_tried, ipc_tried] = TRIED.each_ref().map(|counter| counter.load(Ordering::Relaxed));
    println!(
        "RANDOM seed={seed} calls={calls} ms={} fine: ipc={ipc}/{ipc_tried} ipc_with_block={long}/{long_tried} flush={flush} \
         thread_control={thread} task_control={task} thread_switch={switch} door={door}/{door_tried}",
        (sys::clock() - since) / 1_000_000
    );
    let [got, set] = STATES.each_ref().map(|counter| counter.load(Ordering::Relaxed));
    println!("STATES got={got} set={set}");
    redirected::tell();
    let warded = warden::tell();
    redirected::judge(calls)?;
    check!(got > calls / 50_000, "players got next to no whole states: {got}");
    check!(warded > calls / 1000, "the warden did next to nothing: {warded}");
    let after = sys::task_info(TaskId::NIL)?;
    check_eq!((after.quota, after.threads), (before.quota, before.threads));
    // Pages of its own that this program touched for the first time may have cost something.
    let new_pages = after.pages - before.pages;
    check!(after.used - before.used <= new_pages, "{before:?}, then {after:?}");
    // The system still answers.
    super::ipc::words_and_label_between_tasks()?;
    super::map::mapped_page_is_shared()?;
    super::task::everything_comes_back()?;
    let served = pager::served();
    check!(served > 0);
    Ok(())
}
