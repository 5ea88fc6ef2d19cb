//! Lending: how shuttles pass from thread to thread (row D6, decisions 0003 and 0056).
//!
//! Each thread has one word about a shuttle, [`Word`](word::Word). Its meaning follows from the thread's state ([`Stake`]):
//!
//! | stake | threads | the word |
//! |---|---|---|
//! | [`Stake::Holds`] | all that run, are ready, or wait without having lent | the shuttle that the thread is on |
//! | [`Stake::Claims`] | callers that wait for an answer | the shuttle that was lent, and comes back with the answer |
//! | [`Stake::Nothing`] | threads that wait for anybody, idle servers | nothing |
//!
//! A word is *valid* if it equals the reference that the shuttle has now; an older one is *stale*. A holder whose word is stale is on its
//! own home shuttle, and finds that out at its next slow event ([`Kernel::shuttle_of`]).
//!
//! **Rule 1: of each shuttle there is at most one valid holder.** A reference is moved, never copied. These are all the moves:
//!
//! | move | before | after |
//! |---|---|---|
//! | [`lend`](Kernel::lend) | A holds r, B's wait has ended | B holds r, A claims r from B |
//! | [`regain`](Kernel::regain), plainly | A claims r from B, B holds r | A holds r, B its home |
//! | [`regain`](Kernel::regain), otherwise | A's claim is valid, or to its own home | A holds a new reference; all older ones are stale |
//! | [`go_home`](Kernel::go_home) | A holds what is stale, or nothing, or drops what it holds | A holds its home |
//!
//! A claimant that has its shuttle back other than from the very thread to which it lent it takes it: the new reference makes the holder's
//! word stale in the same step. A holder in a ready queue with this shuttle goes into another queue with its own. Its extended state goes
//! with it ([`extended::part`]).
//!
//! **Rule 2: a home shuttle is with its owner or with nobody, unless the owner claims it.** So a thread may go home at any time without
//! a look at where its home is. The rule holds because an end of a wait always resolves the claim, and because only a claimant on the
//! owner's own chain can take the owner's shuttle. Then the owner still waits; its wait leaves the fast path ([`ThreadRef::unfold`]), and
//! its end takes the shuttle back.
//!
//! The fast path makes two of these moves, in their plain cases: [`fast_call`] and [`fast_return`] say in Rust what its instructions
//! do. They copy and compare words; since the one thread stops to wait in the step in which the other begins to, each is a move.

pub mod word;

use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{Hot, Wait};
use crate::processor::extended;
use abi::Uid;
use word::Stake;

/// Fate of the sender's shuttle in a message that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// A call lent it to the receiver.
    Lent,
    /// The sender gave back what the receiver had lent to it, and is on its home shuttle.
    Returned,
    /// The sender keeps it, and the receiver has its own.
    Kept,
}

/// Gives a new thread its home shuttle. No reference of an earlier thread in the same slot equals one of this.
pub fn begin(thread: ThreadRef, uid: Uid) {
    thread.home.reference.set(ShuttleRef::new(uid, 0));
    thread.hot.shuttle.set(thread.home_ref());
}

/// The fast path's call: the caller's word is copied to the called thread, which waited for anybody. The caller, which waits from now on for
/// it alone, claims what the other holds.
pub fn fast_call(caller: &Hot, called: &Hot) {
    called.shuttle.set(caller.shuttle.get());
}

/// Whether the fast path's reply or return may go on: the waiting thread claims the reference that the answering one holds. Its `accept`
/// says that it lent to this thread.
pub fn fast_return(answering: &Hot, waiting: &Hot) -> bool {
    answering.shuttle.get() == waiting.shuttle.get()
}

impl Kernel {
    /// The thread whose home shuttle `shuttle` names, if the reference is valid.
    #[inline]
    pub fn owner(&self, shuttle: ShuttleRef) -> Option<ThreadRef> {
        ThreadRef::in_slot(shuttle.slot()).filter(|owner| owner.home_ref() == shuttle)
    }

    /// The owner of the shuttle that `thread` holds; a stale word is replaced by the home shuttle first.
    #[inline]
    pub fn shuttle_of(&self, thread: ThreadRef) -> ThreadRef {
        match self.owner(thread.hot.shuttle.get()) {
            Some(owner) => owner,
            None => self.go_home_from_stale(thread),
        }
    }

    /// Puts a thread that holds what is stale on its home shuttle, and returns it.
    #[cold]
    #[inline(never)]
    fn go_home_from_stale(&self, thread: ThreadRef) -> ThreadRef {
        self.lose_shuttle(thread);
        thread
    }

    /// Puts a thread on its home shuttle, since the one that it was on was taken from it. Which one that was is written down: by that a handler is known
    /// to do the foreign call of the thread that lent it.
    #[cold]
    pub fn lose_shuttle(&self, thread: ThreadRef) {
        thread.lost.set(thread.hot.shuttle.get());
        self.go_home(thread);
    }

    /// Puts a thread on its home shuttle, whatever it held. It must not be in a ready queue, and must not claim anything.
    #[inline(always)]
    pub fn go_home(&self, thread: ThreadRef) {
        if thread.is_awaited() {
            self.leaves(thread);
        }
        thread.hot.shuttle.set(thread.home_ref());
    }

    /// Puts a thread, which may be in a ready queue, on its home shuttle.
    pub fn leave_shuttle(&self, thread: ThreadRef) {
        let was_queued = self.unqueue_thread(thread);
        self.go_home(thread);
        if was_queued {
            self.wake(thread);
        }
    }

    /// Lends the shuttle that `caller` holds to `called`, whose own wait, if it had one, is over. The caller begins to wait for it in the
    /// same step, in a state that claims.
    #[inline(always)]
    pub fn lend(&self, caller: ThreadRef, called: ThreadRef) {
        self.shuttle_of(caller);
        if called.is_awaited() {
            self.leaves(called);
            called.hot.shuttle.set(caller.hot.shuttle.get());
            self.comes(called);
        } else {
            called.hot.shuttle.set(caller.hot.shuttle.get());
        }
    }

    /// Passes the shuttles when a message of `sender`, which holds one and is in no queue, ends the wait of `receiver`. Called while the
    /// receiver still waits; then it holds a shuttle. A sender whose call has [lent](Passed::Lent) has to wait in a state that claims.
    ///
    /// A call back to the thread whose shuttle the caller is on brings it home, as an answer would, and lends nothing.
    #[inline(always)]
    pub fn pass(&self, sender: ThreadRef, receiver: ThreadRef, is_call: bool) -> Passed {
        self.pass_in(sender, receiver, receiver.wait(), is_call)
    }

    /// Does the work of [`Kernel::pass`] for a receiver whose wait is known.
    #[inline(always)]
    pub fn pass_in(&self, sender: ThreadRef, receiver: ThreadRef, wait: Wait, is_call: bool) -> Passed {
        let (stake, shuttle) = (receiver.stake_in(wait), sender.hot.shuttle.get());
        match stake {
            Stake::Nothing if is_call && receiver.is_awaited() => {
                self.lend(sender, receiver);
                Passed::Lent
            }
            Stake::Nothing if is_call => {
                receiver.hot.shuttle.set(shuttle);
                Passed::Lent
            }
            Stake::Nothing => {
                self.go_home(receiver);
                Passed::Kept
            }
            // The plain case: the shuttle comes back from the thread to which it was lent.
            Stake::Claims(from) if receiver.hot.shuttle.get() == shuttle && from == sender.uid() => {
                self.give_back(sender, receiver);
                Passed::Returned
            }
            _ => self.pass_oddly(sender, receiver, stake, is_call),
        }
    }

    /// Gives the shuttle that `by` holds back to `to`, which lent it to this very thread and claims it by an equal word.
    #[inline(always)]
    pub fn give_back(&self, by: ThreadRef, to: ThreadRef) {
        if by.is_awaited() {
            self.end_claim_plainly(by, to);
        }
        to.lent_to.set(Uid::NIL);
        by.hot.shuttle.set(by.home_ref());
    }

    #[cold]
    #[inline(never)]
    fn end_claim_plainly(&self, by: ThreadRef, to: ThreadRef) {
        self.leaves(by);
        self.end_claim(to, by);
    }

    #[cold]
    #[inline(never)]
    fn pass_oddly(&self, sender: ThreadRef, receiver: ThreadRef, stake: Stake, is_call: bool) -> Passed {
        if self.resolve(receiver, stake, Some(sender)) {
            return Passed::Returned;
        }
        if !is_call {
            return Passed::Kept;
        }
        self.lend(sender, receiver);
        Passed::Lent
    }

    /// Gives `thread`, whose wait is going to end by a message of `by` or without one, a shuttle to hold: the one it held, the one it lent,
    /// or its home. True if `by` gave it back.
    #[inline(never)]
    pub fn regain(&self, thread: ThreadRef, by: Option<ThreadRef>) -> bool {
        self.resolve(thread, thread.stake(), by)
    }

    /// Ends a call whose shuttle was lent a moment ago: the caller does not wait after all.
    #[cold]
    #[inline(never)]
    pub fn take_back(&self, caller: ThreadRef, called: Uid) {
        self.resolve(caller, Stake::Claims(called), None);
    }

    /// Does the work of [`Kernel::regain`] for a thread with a certain stake.
    fn resolve(&self, thread: ThreadRef, stake: Stake, by: Option<ThreadRef>) -> bool {
        match stake {
            Stake::Holds => false,
            Stake::Nothing => {
                self.go_home(thread);
                false
            }
            Stake::Claims(from) => match by.filter(|by| by.uid() == from) {
                Some(by) if by.hot.shuttle.get() == thread.hot.shuttle.get() => {
                    self.give_back(by, thread);
                    true
                }
                by => self.resolve_claim(thread, from, by),
            },
        }
    }

    /// Resolves a claim, on what was lent to the thread `lent`, whose reference does not come back plainly. `by`: the thread that was lent to, if it ends the wait.
    #[cold]
    #[inline(never)]
    fn resolve_claim(&self, thread: ThreadRef, lent: Uid, by: Option<ThreadRef>) -> bool {
        let claim = thread.hot.shuttle.get();
        self.foreign_call_ends(thread, lent);
        self.end_claim_from(thread, lent);
        self.shrinks(claim);
        thread.lent_to.set(Uid::NIL);
        if let Some(by) = by
            && let Some(owner) = self.returned_after_cut(thread, by)
        {
            self.go_home(by);
            self.renew(owner, thread, lent);
            return true;
        }
        match self.owner(claim) {
            Some(owner) => self.renew(owner, thread, lent),
            None if claim.same_owner(thread.home_ref()) => self.renew(thread, thread, lent),
            None => match self.still_carried_by(thread) {
                Some(owner) => self.renew(owner, thread, lent),
                None => self.lose_shuttle(thread),
            },
        }
        false
    }

    /// A thread that may wait for `handler` to return from its foreign call takes its shuttle back. If that is the call which the handler does now, its return goes to nobody;
    /// by the shuttle alone it would find another caller on the same one, whose call it has left unanswered.
    fn foreign_call_ends(&self, caller: ThreadRef, handler: Uid) {
        let handler = if caller.waits_for_return() { self.thread(handler) } else { None };
        let Some(handler) = handler else { return };
        let (held, claim) = (handler.hot.shuttle.get(), caller.hot.shuttle.get());
        let on = if held.same_owner(handler.home_ref()) { handler.lost.get() } else { held };
        if on.same_owner(claim) {
            handler.unwanted.set(claim);
        }
    }

    /// Owner of the shuttle that `thread` claims by an older reference, if `by` holds it, and `thread` is in the chain that it carries: that was
    /// cut below `by`. A thread that was cut off is in no chain of the shuttle's, though `by` may be on it again by another.
    fn returned_after_cut(&self, thread: ThreadRef, by: ThreadRef) -> Option<ThreadRef> {
        let held = by.hot.shuttle.get();
        let owner = self.owner(held).filter(|_| held.same_owner(thread.hot.shuttle.get()))?;
        (owner == thread || self.is_carried(owner, thread)).then_some(owner)
    }

    /// Makes all references to the home shuttle of `owner` stale, and gives the new one to `taker`. A thread that waits to run on it
    /// goes on with its own, and so will a thread that runs on it.
    /// `lent`: the thread to which `taker` lent it.
    fn renew(&self, owner: ThreadRef, taker: ThreadRef, lent: Uid) {
        extended::part(self, owner, taker, lent);
        let displaced = self.unqueue(owner);
        self.stop_counting(owner);
        owner.home.reference.set(owner.home_ref().next());
        taker.hot.shuttle.set(owner.home_ref());
        if taker != owner {
            // The owner claims it by an older reference. The fast path, which only compares, might give it back the older one.
            owner.unfold();
        }
        if let Some(carrier) = displaced.filter(|&carrier| carrier != taker) {
            self.wake(carrier);
        }
        self.follow_cut(owner, taker, lent);
    }

    /// Prepares the end of a thread: it leaves its ready queue, drops what it holds or claims, and a thread on its shuttle has to leave it.
    pub fn end_shuttle(&self, thread: ThreadRef) {
        self.unqueue_thread(thread);
        self.shrinks(thread.hot.shuttle.get());
        let stake = thread.stake();
        if let Stake::Claims(lent) = stake {
            self.foreign_call_ends(thread, lent);
            self.end_claim_from(thread, lent);
        }
        thread.lent_to.set(Uid::NIL);
        self.renew(thread, thread, Uid::NIL);
        if let Stake::Claims(lent) = stake {
            self.follow_cut(thread, thread, lent);
        }
    }
}
