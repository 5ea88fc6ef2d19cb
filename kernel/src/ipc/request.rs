//! An ipc operation, decoded once from the thread's registers.

use crate::object::ThreadRef;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{FOREIGN_MARK, TAKES_FOREIGN, TAKES_ITEM, TAKING, special, taken_by};
use abi::call::{self, ABSOLUTE_END};
use abi::op::{self, Carries, Op};
use abi::{Error, Fpage, Timeout, Uid};

/// An ipc operation, decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) dest: Uid,
    pub(super) from: Uid,
    /// Timeouts as in `r15` of the general form: of sending, and in the upper half of receiving.
    pub(super) timeouts: u64,
    pub(super) window: Fpage,
    /// Flags: [`op::ITEM`], [`op::BLOCK`] and [`op::SHOWN`] of what it sends, if it sends; [`LENIENT`] and [`SHORT`].
    pub(super) what: u32,
}

/// Flag of a [`Request`]: it is a reply and wait, where a destination that does not wait is no error.
pub(super) const LENIENT: u32 = 1;

/// Flag of a [`Request`]: all eleven words are the message.
pub(super) const SHORT: u32 = 2;

const _: () = assert!((op::ITEM | op::BLOCK | op::SHOWN) & (LENIENT | SHORT) == 0);

impl Request {
    /// Reads a short form from the thread's registers: call, or reply and wait. As for all forms, the thread notes what may come in its
    /// receive.
    #[inline(always)]
    pub(super) fn short(thread: ThreadRef) -> Request {
        let is_call = thread.frame.op() == Op::CALL;
        Request::of_form(thread, is_call, if is_call { 0 } else { TAKING })
    }

    /// Reads one of the other short forms: with a block, or a call that takes more than words in answer.
    pub(super) fn other(thread: ThreadRef) -> Request {
        let op = thread.frame.op();
        let replies = op == Op::REPLY_WAIT.with(op::BLOCK);
        let flags = op.short_flags();
        let long = flags.has(op::BLOCK);
        let takes = if replies { TAKING } else { taken_by(flags) };
        let request = Request::of_form(thread, !replies, takes);
        Request { what: if long { request.what & !SHORT | op::BLOCK } else { request.what }, ..request }
    }

    #[inline(always)]
    fn of_form(thread: ThreadRef, is_call: bool, takes: u64) -> Request {
        let dest = Uid(thread.frame.partner());
        thread.receiving.takes.set(takes);
        Request {
            dest,
            from: if is_call { dest } else { Uid::ANY },
            timeouts: call::timeouts(if is_call { Timeout::NEVER } else { Timeout::ZERO }, Timeout::NEVER),
            window: if takes & TAKES_ITEM != 0 { thread.receiving.standing.get() } else { Fpage::NIL },
            what: if is_call { SHORT } else { SHORT | LENIENT },
        }
    }

    /// The return from a foreign call, made by `thread` for `caller`: a reply, and a wait that takes such calls.
    pub(super) fn foreign_return(thread: ThreadRef, caller: Uid) -> Request {
        thread.receiving.takes.set(FOREIGN_MARK);
        Request {
            dest: caller,
            from: Uid::ANY,
            timeouts: call::timeouts(Timeout::ZERO, Timeout::NEVER),
            window: thread.receiving.standing.get(),
            what: SHORT | LENIENT,
        }
    }

    /// Reads the general form of a message of words only, and no flag but [`op::TAKES_BLOCK`].
    #[inline(always)]
    pub(super) fn of_words(thread: ThreadRef) -> Result<Request, Error> {
        Request::general_of(thread, Op(thread.frame.op().0 & op::TAKES_BLOCK))
    }

    /// Reads the general form, but for its rare flags: these [`Request::rare`] reads.
    #[inline(always)]
    pub(super) fn general(thread: ThreadRef) -> Result<Request, Error> {
        Request::general_of(thread, thread.frame.op())
    }

    #[inline(always)]
    fn general_of(thread: ThreadRef, op: Op) -> Result<Request, Error> {
        let frame = &thread.frame;
        let flags = op.general_flags();
        let dest = Uid(frame.partner());
        let window = Fpage(frame.window());
        let mut timeouts = frame.timeouts();
        if flags.has(op::ABSOLUTE) {
            timeouts = absolute(timeouts);
        }
        let item = flags.has(op::ITEM);
        let item_valid = !item || Fpage(frame.w[6].get()).is_valid();
        // The standing window was checked when it was set.
        let window_valid = window.is_nil() || window == thread.receiving.standing.get() || window.is_valid();
        if op.has_unknown() || !window_valid || !item_valid {
            return Err(Error::BadArgument);
        }
        thread.receiving.takes.set(if flags.has(op::TAKES_BLOCK) { TAKING } else { 0 });
        Ok(Request {
            dest,
            from: Uid(frame.then_from()),
            timeouts,
            window,
            what: if dest.is_nil() { 0 } else { op.0 & op::ITEM },
        })
    }

    /// Reads the general form with its rare flags.
    pub(super) fn rare(thread: ThreadRef) -> Result<Request, Error> {
        let flags = thread.frame.op().general_flags();
        let request = Request::general(thread)?;
        if flags.has(op::ITEM) && flags.has(op::BLOCK) {
            return Err(Error::BadArgument);
        }
        if flags.has(op::TAKES_FOREIGN) && request.from == Uid::ANY {
            let takes = &thread.receiving.takes;
            takes.set(takes.get() | TAKES_FOREIGN);
            thread.foreign.stack.set(thread.hot.sp.get());
            // Whatever call it did stays unanswered.
            thread.lost.set(ShuttleRef::NONE);
        }
        if request.dest.is_nil() {
            return Ok(request);
        }
        Ok(Request { what: thread.frame.op().0 & (op::ITEM | op::BLOCK | op::SHOWN), ..request })
    }

    /// Leaves with a thread what its receive phase needs after a send phase that takes long.
    pub(super) fn suspend(&self, thread: ThreadRef) {
        thread.receiving.from.set(self.from);
        thread.receiving.timeout.set(self.receive_timeout().0);
        thread.receiving.window.set(self.window);
    }

    /// The rest of a suspended operation. Its registers still name the destination.
    pub(super) fn resumed(thread: ThreadRef) -> Request {
        Request {
            dest: Uid(thread.frame.partner()),
            from: thread.receiving.from.get(),
            timeouts: call::timeouts(Timeout::NEVER, Timeout(thread.receiving.timeout.get())),
            window: thread.receiving.window.get(),
            what: 0,
        }
    }

    #[inline(always)]
    pub(super) fn send_timeout(&self) -> Timeout {
        Timeout(self.timeouts as u32)
    }

    #[inline(always)]
    pub(super) fn receive_timeout(&self) -> Timeout {
        Timeout((self.timeouts >> 32) as u32)
    }

    pub(super) fn is_call(&self) -> bool {
        self.from == self.dest
    }

    #[inline(always)]
    pub(super) fn has(&self, what: u32) -> bool {
        self.what & what != 0
    }
}

/// Timeout that stands for a point in time while an ipc is under way. The point itself stays in `r15` of the frame until the ipc is
/// over, and `eax` says so: as a number of microseconds this is an ordinary timeout.
pub(super) const ABSOLUTE: Timeout = Timeout(0x7fff_ffff);

/// Timeouts that stand for a point in time, in both halves of `r15`.
#[cold]
fn absolute(until: u64) -> u64 {
    let timeout = if until < ABSOLUTE_END { ABSOLUTE } else { Timeout::NEVER };
    call::timeouts(timeout, timeout)
}

/// Things that the call (true) or return (false) in a thread's registers carries; `None` if there is neither.
pub(super) fn carried(thread: ThreadRef) -> Option<(Carries, bool)> {
    let op = thread.frame.op();
    op.is_door().map(|is_call| (op.short_flags().carries(), is_call))
}

/// Begins an operation of the current thread that an alert is to end. False if the thread is alerted already.
pub(super) fn begin_alertable(current: ThreadRef) -> bool {
    if current.special.get() & special::ALERTED != 0 {
        return false;
    }
    current.set_special(special::ALERTABLE, 0);
    true
}
