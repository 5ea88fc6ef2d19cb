//! Waits that the fast path may end, as it sees them: the folded words.

use super::{Errand, Frame, State, Tcb, ThreadRef, special};
use crate::lend::word::Stake;
use abi::call::{FLAGS, vector};
use abi::op;
use abi::uid::{CLAN_SHIFT, STATION_SHIFT};
use abi::{Fpage, Uid};

/// `accept` of a thread that no sender can satisfy on the fast path, and of an absent block.
pub const NEVER: u64 = 0;

/// A key that matches no `accept` word: neither an open key nor a key has these low bits.
pub(super) const POISON: u64 = 0xe;

/// Low bits of an open key, which no key has.
const OPEN_MARK: u64 = 0xf;

/// Low bits of an open key that tell it from all other keys.
const OPEN: u64 = OPEN_MARK & !TAKES_ITEM;

/// Low bits of `accept` of a caller through a door; the others are from the key of its server.
const DOOR_MARK: u64 = 1;

/// Low bit of `accept`: the thread takes a block. An open key has it.
pub const TAKES_BLOCK: u64 = 2;

/// Low bit of `accept`: the thread takes an item into its standing window. An open key has it, and [`IDLE`].
pub const TAKES_ITEM: u64 = 8;

/// Low bits of `accept` for everything beside words.
pub const TAKING: u64 = TAKES_BLOCK | TAKES_ITEM;

/// Bit of [`Receiving::takes`]: the thread takes foreign calls.
pub const TAKES_FOREIGN: u64 = 4;

/// Low bits of `accept` of a handler that takes foreign calls, with its own key, and of a thread that waits for the return from such a
/// call, with its handler's.
pub const FOREIGN_MARK: u64 = TAKING | TAKES_FOREIGN;

/// Things that a call takes, by its flags; of [`TAKING`].
#[inline(always)]
pub fn taken_by(flags: op::Flags) -> u64 {
    (flags.takes() >> 8) as u64
}

const _: () = assert!((op::TAKES >> 8) as u64 == TAKING);

/// `accept` of a server that waits for a call through a door, and that the fast path may take.
pub const IDLE: u64 = CPU << STATION_SHIFT | 0xd;

/// A thread's wait, as the slow path sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It does not wait to receive.
    No,
    /// It takes a message from anybody.
    Open,
    /// It takes a message from one thread or interrupt.
    Closed(Uid),
    /// It takes an answer to a fault or exception.
    Answer(Uid),
    /// It takes the return from a foreign call, of this handler, in a way that the fast path may end.
    Foreign(Uid),
    /// It waits for a server to return from a call through a door.
    Return(Uid),
    /// It is a server and waits for a call through a door.
    Idle,
}

impl ThreadRef {
    /// Sets and clears bits of [`special`], and folds again.
    pub fn set_special(self, set: u32, clear: u32) {
        let before = self.special.get();
        let special = before & !clear | set;
        let wait = if self.hot.accept.get() == NEVER && self.state.get() != State::Idle {
            Wait::No
        } else {
            self.wait()
        };
        match wait {
            Wait::Idle => {
                let servers = &self.task().state().doors.servers;
                servers.unlist(self);
                self.special.set(special);
                servers.enlist(self);
            }
            Wait::Foreign(_) => self.unfold(),
            _ if special != 0 => self.unfold(),
            _ => {}
        }
        self.special.set(special);
        self.refold();
        if (before | special) & special::DENY_NATIVE != 0 {
            self.refold_foreign();
        }
    }

    /// Computes the words for the fast path of foreign calls. To be called whenever a thread to which native calls are denied gets another
    /// handler, or other bits of `special`.
    pub fn refold_foreign(self) {
        let name = self.fault.handler.get();
        let is_handler = |handler: &ThreadRef| {
            !name.is_nil() && handler.uid() == name && *handler != self && handler.may_do_calls_of(self)
        };
        match ThreadRef::named(name).filter(is_handler) {
            Some(handler) if self.special.get() == special::DENY_NATIVE => {
                self.foreign.handler.set(crate::object::door::hot_address(handler));
                self.foreign.key.set(handler.foreign_key());
            }
            _ => {
                self.foreign.handler.set(crate::object::door::hot_address(self));
                self.foreign.key.set(POISON);
            }
        }
    }

    /// Whether the thread may have another one's foreign calls: it belongs to that one's task, or to the chief of that. So nobody else can make a thread
    /// whose calls look like those of a thread that the handler knows.
    pub fn may_do_calls_of(self, thread: ThreadRef) -> bool {
        let (own, task) = (self.task(), thread.task());
        own == task || task.chief.get() == Some(own)
    }

    /// Makes the thread wait for the return from its foreign call, which `handler` has taken on the shuttle that the thread lent. True if the
    /// fast path may end the wait; otherwise nothing is changed.
    pub fn fold_foreign(self, handler: ThreadRef) -> bool {
        if self.foreign.key.get() != handler.foreign_key() {
            return false;
        }
        self.errand.set(Errand::Ipc);
        self.lent_to.set(Uid::NIL);
        self.state.set(State::Ready);
        self.hot.accept.set(self.foreign.key.get());
        // Both may have been set while the call was in the queue.
        self.hot.ip.set(self.frame.ip());
        self.hot.sp.set(self.frame.sp());
        self.hot.key.set(self.frame.call_flags());
        true
    }

    /// Instruction pointer, stack pointer and flags of a thread that waits for the return from a foreign call in a way that the fast path may end. It goes on there.
    pub fn place_of_foreign_call(self) -> [u64; 3] {
        [self.hot.ip.get(), self.hot.sp.get(), Frame::user_flags(self.hot.key.get())]
    }

    /// Sets these, of which the caller answers that they are fit for user mode.
    pub fn set_place_of_foreign_call(self, [ip, sp, flags]: [u64; 3]) {
        self.hot.ip.set(ip);
        self.hot.sp.set(sp);
        self.hot.key.set(flags);
    }

    /// Whether it waits for the return from a foreign call in a way that the fast path may end.
    #[inline(always)]
    pub fn is_folded_foreign(self) -> bool {
        matches!(self.wait(), Wait::Foreign(_))
    }

    /// Makes a wait that has to do with foreign calls one that [`Tcb::common_wait`] tells, and returns it.
    #[cold]
    #[inline(never)]
    pub fn settle(self) -> Wait {
        if self.wait() != Wait::Idle {
            self.unfold();
        }
        self.common_wait()
    }

    /// Makes the wait for the return from a foreign call that for the answer to an exception. The other registers are with the handler.
    #[cold]
    fn unfold_foreign(self, handler: Uid) {
        self.fault.exception.set(vector::SYSCALL);
        self.fault.is_foreign.set(true);
        self.errand.set(Errand::Exception);
        self.frame.complete_foreign(self.hot.ip.get(), self.hot.sp.get(), self.hot.key.get());
        self.set_faulting(handler, true);
        self.refold();
    }

    /// Makes a wait for an answer or for anybody, which the fast path might end, one that it cannot end.
    #[inline(never)]
    pub fn unfold(self) {
        let to = match self.stake() {
            _ if self.hot.accept.get() == NEVER => return,
            Stake::Claims(to) => to,
            _ => Uid::NIL,
        };
        let foreign = if self.takes_foreign() { TAKES_FOREIGN } else { 0 };
        self.receiving.takes.set(self.taking() | foreign);
        match self.wait() {
            Wait::Foreign(handler) => return self.unfold_foreign(handler),
            Wait::Return(server) => self.set_call_of(server),
            Wait::Closed(from) => self.set_wait_slowly(from, to),
            _ => self.set_wait_slowly(Uid::ANY, to),
        }
        self.receiving.window.set(self.open_window());
        self.errand.set(Errand::Ipc);
        // The fast path does not record that the thread is in a system call; the last trap is long over.
        self.frame.mode.set(Frame::SYSRET);
    }
}

impl Tcb {
    fn true_key(&self) -> u64 {
        self.uid().0 | CPU << STATION_SHIFT
    }

    fn true_open_key(&self) -> u64 {
        (self.uid().clan() as u64) << CLAN_SHIFT | CPU << STATION_SHIFT | OPEN_MARK
    }

    /// The thread's wait, wherever that is recorded.
    #[inline(always)]
    pub fn wait(&self) -> Wait {
        self.wait_or(|| self.rare_wait())
    }

    /// The thread's wait, with [`Wait::Idle`] for all that are rarely met; see [`ThreadRef::settle`].
    #[inline(always)]
    pub fn common_wait(&self) -> Wait {
        self.wait_or(|| Wait::Idle)
    }

    #[inline(always)]
    fn wait_or(&self, rare: impl FnOnce() -> Wait) -> Wait {
        let accept = self.hot.accept.get();
        if accept == NEVER {
            return match self.state.get() {
                State::Receiving if self.partner.get() == Uid::ANY => Wait::Open,
                State::Receiving => Wait::Closed(self.partner.get()),
                State::Faulting => Wait::Answer(self.partner.get()),
                State::Calling => Wait::Return(self.partner.get()),
                State::Idle => Wait::Idle,
                _ => Wait::No,
            };
        }
        let uid = accepted(accept);
        if accept & OPEN == OPEN {
            return Wait::Open;
        }
        match accept & (0xf & !TAKING) {
            0 => Wait::Closed(uid),
            DOOR_MARK => Wait::Return(uid),
            _ => rare(),
        }
    }

    /// The thread that takes foreign calls, or does one, if the wait of this thread is one of [`FOREIGN_MARK`].
    #[inline(always)]
    pub fn foreign_handler(&self) -> Option<Uid> {
        let accept = self.hot.accept.get();
        if accept & 0xf == FOREIGN_MARK { Some(accepted(accept)) } else { None }
    }

    #[inline(always)]
    fn rare_wait(&self) -> Wait {
        self.foreign_handler().map_or(Wait::Idle, |handler| self.foreign_wait(handler))
    }

    #[cold]
    #[inline(never)]
    fn foreign_wait(&self, handler: Uid) -> Wait {
        if handler == self.uid() { Wait::Open } else { Wait::Foreign(handler) }
    }

    /// Word in `accept` while the thread takes foreign calls and the fast path may see it.
    #[inline(always)]
    pub fn foreign_key(&self) -> u64 {
        self.true_key() | FOREIGN_MARK
    }

    /// Whether the thread, which waits or is about to, takes foreign calls.
    #[inline(always)]
    pub fn takes_foreign(&self) -> bool {
        match self.hot.accept.get() {
            NEVER => self.receiving.takes.get() & TAKES_FOREIGN != 0,
            accept => accept == self.foreign_key(),
        }
    }

    /// Meaning of the thread's word about a shuttle.
    #[inline(always)]
    pub fn stake(&self) -> Stake {
        match self.wait() {
            Wait::Foreign(handler) => Stake::Claims(handler),
            wait => self.stake_in(wait),
        }
    }

    /// Meaning of that word for a thread whose wait is known, and none for the return from a foreign call.
    #[inline(always)]
    pub fn stake_in(&self, wait: Wait) -> Stake {
        match wait {
            Wait::Open | Wait::Idle => Stake::Nothing,
            Wait::Closed(from) | Wait::Return(from) if self.hot.accept.get() != NEVER => Stake::Claims(from),
            _ => match self.lent_to.get() {
                Uid::NIL => Stake::Holds,
                to => Stake::Claims(to),
            },
        }
    }

    /// Whether the thread waits for the return from a foreign call.
    pub fn waits_for_return(&self) -> bool {
        let has_called = self.errand.get() == Errand::Exception
            && self.fault.exception.get() == vector::SYSCALL
            && self.fault.is_foreign.get();
        match self.wait() {
            Wait::Foreign(_) => true,
            Wait::Answer(_) => has_called,
            _ => false,
        }
    }

    /// Things that the thread, which waits or is about to, takes from its partner, of [`TAKING`].
    #[inline(always)]
    fn taking(&self) -> u64 {
        let accept = self.hot.accept.get();
        if accept == NEVER { self.receiving.takes.get() } else { accept & TAKING }
    }

    /// Whether it takes a block, and has one.
    #[inline(always)]
    pub fn takes_block(&self) -> bool {
        self.block.room.get() != 0 && self.taking() & TAKES_BLOCK != 0
    }

    /// Whether it takes an item into its standing window.
    #[inline(always)]
    pub fn takes_item(&self) -> bool {
        self.taking() & TAKES_ITEM != 0
    }

    /// The standing window, if items may arrive there: in a receive without a window of its own.
    #[inline(always)]
    pub fn open_window(&self) -> Fpage {
        if self.takes_item() { self.receiving.standing.get() } else { Fpage::NIL }
    }

    /// Whether the thread would run if it were its turn (it may be stopped all the same).
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.hot.accept.get() == NEVER && self.state.get() == State::Ready
    }

    /// Whether somebody may stand in its queue, or be [cut off](Inherited::cut_off) from it: its key, or the fast path's flags in the place of
    /// that, say so.
    #[inline(always)]
    pub fn is_awaited(&self) -> bool {
        self.hot.key.get() & 0xf != 0
    }

    /// Whether it stands in a queue since it wants to send, or to call through a door.
    pub fn is_queued(&self) -> bool {
        self.hot.accept.get() == NEVER && matches!(self.state.get(), State::Sending | State::Queueing)
    }

    /// Makes the thread wait for `from` (a thread, an interrupt, or anybody), and take what [`Receiving::takes`] says. `lent_to`: the
    /// thread to which it has lent its shuttle; nil if it has not. `plain`: the wait
    /// has neither a timeout nor a window but the [open one](Tcb::open_window), so that the fast path may end it. The fast
    /// path takes every wait for one thread for a wait for the answer to a call.
    #[inline(always)]
    pub fn set_wait(&self, from: Uid, plain: bool, lent_to: Uid) {
        let takes = self.receiving.takes.get();
        let plain = plain && self.special.get() == 0;
        if plain && from == lent_to {
            self.state.set(State::Ready);
            self.hot.accept.set(from.0 | CPU << STATION_SHIFT | takes);
        } else if plain && from == Uid::ANY && takes == TAKING {
            self.state.set(State::Ready);
            self.hot.accept.set(self.true_open_key());
        } else if takes & TAKES_FOREIGN != 0 {
            self.set_wait_for_foreign(from, plain, lent_to);
        } else {
            self.set_wait_slowly(from, lent_to);
        }
    }

    #[cold]
    #[inline(never)]
    fn set_wait_for_foreign(&self, from: Uid, plain: bool, lent_to: Uid) {
        if plain && from == Uid::ANY && self.receiving.takes.get() == FOREIGN_MARK {
            self.state.set(State::Ready);
            self.hot.accept.set(self.foreign_key());
        } else {
            self.set_wait_slowly(from, lent_to);
        }
    }

    fn set_wait_slowly(&self, from: Uid, lent_to: Uid) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(lent_to);
        self.state.set(State::Receiving);
        self.partner.set(from);
    }

    /// Makes the thread wait for the return from a call through a door, which `server` serves. If the thread is alerted, so is its
    /// server from now on.
    pub fn set_call(&self, server: ThreadRef) {
        if self.special.get() | server.special.get() == 0 {
            self.state.set(State::Ready);
            self.hot.accept.set(server.server.key.get() | self.receiving.takes.get());
        } else {
            self.set_call_of(server.uid());
            if self.special.get() & special::ALERTED != 0 {
                server.set_special(special::ALERTED, 0);
            }
        }
    }

    fn set_call_of(&self, server: Uid) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(server);
        self.state.set(State::Calling);
        self.partner.set(server);
    }

    /// Whether a window is the [open one](Tcb::open_window) of a thread that is about to wait. Most have none at all.
    #[inline(always)]
    pub fn is_open_window(&self, window: Fpage) -> bool {
        let standing = self.receiving.standing.get();
        window.0 | standing.0 == 0
            || window == if self.receiving.takes.get() & TAKES_ITEM != 0 { standing } else { Fpage::NIL }
    }

    /// Ends any wait: the thread is ready from now on.
    pub fn set_ready(&self) {
        self.hot.accept.set(NEVER);
        self.state.set(State::Ready);
    }

    /// Computes the two keys from the true state. To be called whenever `special` or the emptiness of
    /// `senders` changes.
    pub fn refold(&self) {
        let special = self.special.get() != 0;
        // A thread that waits for the return from a foreign call has its flags in the place of its key.
        if special && self.hot.accept.get() & 0xf == FOREIGN_MARK {
            return;
        }
        let queue = !self.senders.is_empty();
        self.hot.key.set(if special || queue { POISON } else { self.true_key() });
        self.block.answer_key.set(self.hot.key.get() | TAKES_BLOCK);
        self.hot.open_key.set(if special { POISON } else { self.true_open_key() });
        self.server.key.set(if special { POISON } else { self.true_key() | DOOR_MARK });
    }

    /// Makes the thread wait for the answer of `partner` to its page fault or exception, for which it `lends` its shuttle.
    #[inline(always)]
    pub fn set_faulting(&self, partner: Uid, lends: bool) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(if lends { partner } else { Uid::NIL });
        self.state.set(State::Faulting);
        self.partner.set(partner);
    }

    /// Checks what the block's fields promise each other; test builds call it after each operation.
    pub fn check(&self) {
        assert!(self.stack_ends_well(), "kernel stack overflow");
        let special = self.special.get() != 0;
        let (accept, key) = (self.hot.accept.get(), self.hot.key.get());
        // The key of a thread that made a foreign call is its flags, which are nobody's key: one of their bits is in the station's place.
        let has_flags = self.special.get() == special::DENY_NATIVE && key & FLAGS == FLAGS && key >> 32 == 0;
        if special {
            let is_foreign = has_flags && accept & 0xf == FOREIGN_MARK && accepted(accept) != self.uid();
            assert!(accept == NEVER || is_foreign, "a special thread is open to the fast path");
            assert_eq!(self.hot.open_key.get(), POISON);
        }
        if self.foreign.key.get() != POISON {
            assert_eq!(
                self.special.get(),
                special::DENY_NATIVE,
                "a thread's foreign calls are open to the fast path"
            );
        }
        if self.is_ready() || self.hot.accept.get() != NEVER {
            assert_eq!(
                self.lent_to.get(),
                Uid::NIL,
                "a thread runs, or the fast path answers it, and a claim is left"
            );
        }
        assert!(has_flags || self.block.answer_key.get() == key | TAKES_BLOCK);
        assert_eq!(key == POISON || has_flags, special || !self.senders.is_empty());
        let is_cut_off = self.sender_link.is_linked() && matches!(self.stake(), Stake::Claims(_));
        assert_eq!(self.sender_link.is_linked(), self.is_queued() || is_cut_off);
        assert_eq!(self.special.get() & special::CUT_OFF != 0, !self.inherited.cut_off.is_empty());
    }
}

/// Thread of a wait that is not open, by the word `accept`.
#[inline(always)]
fn accepted(accept: u64) -> Uid {
    Uid(accept & !(0xff << STATION_SHIFT | 0xf))
}

/// The number of this CPU. Keys carry it, so that a thread of another CPU fails the fast path's compare.
const CPU: u64 = 0;
