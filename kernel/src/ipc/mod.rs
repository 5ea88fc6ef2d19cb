//! Ipc: everything that the fast path leaves to it, which is everything (rows P1, P8–P12, C6, C7).
//!
//! A message goes from a sender to a receiver, both blocked or current, in one step that cannot fail half-way:
//! [`send`] finds out whether the partner takes it, [`transfer`] moves the words, [`hand_over`] decides which thread goes
//! on on which shuttle, [`receive`] is the second phase. Page faults, exceptions and interrupts are messages
//! that the kernel writes; they take the same way.
//!
//! The property that ties this file to the fast path (`arch/x86_64/fast_path/`): *if the fast path accepts, this file
//! would have done the same.* The guest tests run the same random program both ways and compare.

pub mod alert;
mod clan;
pub mod door;
mod fault;
mod item;
mod known_way;
mod transfer;

pub use clan::way_to;
pub use door::unreferenced;
pub use fault::{USER_FLAGS, page_fault, port_fault, raise, system_call_exception};
pub use item::continue_map;
pub use known_way::call as call_by_known_way;
pub use transfer::{continue_transfer, copy_interrupted, is_taking};

use crate::kernel::Kernel;
use crate::lend::Passed;
use crate::object::ThreadRef;
use crate::object::interrupt;
use crate::object::thread::{Errand, Frame, NEVER, Operation, State, TAKES_ITEM, TAKING, Wait, taken_by};
use crate::param;
use crate::sched::Next;
use abi::call::{self, ABSOLUTE_END, FLAGS, ITEM_WHOLE, NO_ITEM};
use abi::op::{self, Op};
use abi::{Error, Fpage, Kind, Timeout, Uid};

/// An ipc operation, decoded.
#[derive(Clone, Copy, Debug)]
struct Request {
    dest: Uid,
    from: Uid,
    /// Of sending, and in the upper half of receiving, as in `r15` of the general form.
    timeouts: u64,
    window: Fpage,
    /// [`op::ITEM`], [`op::BLOCK`] and [`op::SHOWN`] of what it sends, if it sends; [`LENIENT`] and [`SHORT`].
    what: u32,
}

/// Of a [`Request`]: reply and wait, where a destination that does not wait is no error.
const LENIENT: u32 = 1;

/// Of a [`Request`]: all eleven words are the message.
const SHORT: u32 = 2;

const _: () = assert!((op::ITEM | op::BLOCK | op::SHOWN) & (LENIENT | SHORT) == 0);

impl Request {
    /// Reads a short form from the thread's registers: call, or reply and wait. What may come in its receive stands with the thread from
    /// now on, as for all forms.
    #[inline(always)]
    fn short(thread: ThreadRef) -> Request {
        let is_call = thread.frame.op() == Op::CALL;
        Request::of_form(thread, is_call, if is_call { 0 } else { TAKING })
    }

    /// One of the other short forms: with a block, or a call that takes more than words in answer.
    fn other(thread: ThreadRef) -> Request {
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
        let dest = Uid(thread.frame.rdx.get());
        thread.takes.set(takes);
        Request {
            dest,
            from: if is_call { dest } else { Uid::ANY },
            timeouts: call::timeouts(if is_call { Timeout::NEVER } else { Timeout::ZERO }, Timeout::NEVER),
            window: if takes & TAKES_ITEM != 0 { thread.standing.get() } else { Fpage::NIL },
            what: if is_call { SHORT } else { SHORT | LENIENT },
        }
    }

    /// Reads the general form. Its rare flags are [`Request::rare`]'s.
    #[inline(always)]
    fn general(thread: ThreadRef) -> Result<Request, Error> {
        let frame = &thread.frame;
        let op = frame.op();
        let flags = op.general_flags();
        let dest = Uid(frame.rdx.get());
        let window = Fpage(frame.w[Frame::RBP].get());
        let mut timeouts = frame.w[Frame::R15].get();
        if flags.has(op::ABSOLUTE) {
            timeouts = absolute(timeouts);
        }
        let item = flags.has(op::ITEM);
        let item_valid = !item || Fpage(frame.w[6].get()).is_valid();
        // The standing window was checked when it was set.
        let window_valid = window.is_nil() || window == thread.standing.get() || window.is_valid();
        if op.has_unknown() || !window_valid || !item_valid {
            return Err(Error::BadArgument);
        }
        thread.takes.set(if flags.has(op::TAKES_BLOCK) { TAKING } else { 0 });
        Ok(Request {
            dest,
            from: Uid(frame.w[Frame::RBX].get()),
            timeouts,
            window,
            what: if dest.is_nil() { 0 } else { op.0 & op::ITEM },
        })
    }

    /// Reads the general form with its rare flags.
    fn rare(thread: ThreadRef) -> Result<Request, Error> {
        let flags = thread.frame.op().general_flags();
        let request = Request::general(thread)?;
        if flags.has(op::ITEM) && flags.has(op::BLOCK) {
            return Err(Error::BadArgument);
        }
        if request.dest.is_nil() {
            return Ok(request);
        }
        Ok(Request { what: thread.frame.op().0 & (op::ITEM | op::BLOCK | op::SHOWN), ..request })
    }

    /// Leaves with a thread what its receive phase will need when the send phase, which takes long, is over.
    fn suspend(&self, thread: ThreadRef) {
        thread.then_from.set(self.from);
        thread.then_timeout.set(self.receive_timeout().0);
        thread.window.set(self.window);
    }

    /// What is left to do of a suspended operation. Its registers still name the destination.
    fn resumed(thread: ThreadRef) -> Request {
        Request {
            dest: Uid(thread.frame.rdx.get()),
            from: thread.then_from.get(),
            timeouts: call::timeouts(Timeout::NEVER, Timeout(thread.then_timeout.get())),
            window: thread.window.get(),
            what: 0,
        }
    }

    #[inline(always)]
    fn send_timeout(&self) -> Timeout {
        Timeout(self.timeouts as u32)
    }

    #[inline(always)]
    fn receive_timeout(&self) -> Timeout {
        Timeout((self.timeouts >> 32) as u32)
    }

    fn is_call(&self) -> bool {
        self.from == self.dest
    }

    #[inline(always)]
    fn has(&self, what: u32) -> bool {
        self.what & what != 0
    }
}

/// Fills the registers in which a thread finds the result of its ipc, all of them.
fn set_result(thread: ThreadRef, rax: u64, sender: Uid) {
    thread.frame.rax.set(rax);
    thread.frame.rdx.set(sender.0);
    thread.frame.r11.set(FLAGS);
    thread.frame.mode.set(Frame::SYSRET);
}

/// The result of an ipc that failed: the code, and zeroes in the message registers.
fn set_error(thread: ThreadRef, error: Error) {
    set_result(thread, error as u64, Uid::NIL);
    thread.frame.w.iter().for_each(|word| word.set(0));
}

fn fail(thread: ThreadRef, error: Error) -> Next {
    set_error(thread, error);
    Next::Same
}

/// The short forms of the system call.
#[inline(always)]
pub fn short(k: &Kernel, current: ThreadRef) -> Next {
    perform(k, current, &Request::short(current))
}

/// Its general form.
#[inline(always)]
pub fn general(k: &Kernel, current: ThreadRef) -> Next {
    const COMMON: u32 = op::ITEM | op::TAKES_BLOCK | op::ABSOLUTE;
    if !current.frame.op().has_only(COMMON) {
        return rare(k, current);
    }
    match Request::general(current) {
        Ok(request) => perform(k, current, &request),
        Err(error) => fail(current, error),
    }
}

#[inline(never)]
fn rare(k: &Kernel, current: ThreadRef) -> Next {
    if let Some(partner) = known_way::reply(k, current) {
        return Next::To(partner);
    }
    let request = match Request::rare(current) {
        Ok(request) => request,
        Err(error) => return fail(current, error),
    };
    if current.frame.op().general_flags().has(op::ALERTABLE) && !alert::begin(current) {
        let receives = request.dest.is_nil();
        return fail(current, if receives { Error::ReceiveAborted } else { Error::SendAborted });
    }
    perform(k, current, &request)
}

/// The other short forms, of which the fast path does what it can.
pub fn other(k: &Kernel, current: ThreadRef) -> Next {
    perform(k, current, &Request::other(current))
}

/// A general form with bits that mean nothing.
pub fn malformed(current: ThreadRef) -> Next {
    fail(current, Error::BadArgument)
}

#[inline(always)]
fn perform(k: &Kernel, current: ThreadRef, request: &Request) -> Next {
    // How this message crosses a border, if it is one, is found out anew.
    current.crossing.set(0);
    if request.dest.is_nil() {
        return receive_and_run(k, current, request, None);
    }
    send(k, current, request)
}

/// The send phase of the current thread.
#[inline(always)]
fn send(k: &Kernel, current: ThreadRef, request: &Request) -> Next {
    let error = match find(k, current, request) {
        Err(error) => error,
        Ok(partner) if accepts(partner, shown(current, request)) => {
            return send_to(k, current, partner, request);
        }
        Ok(_) if request.send_timeout() == Timeout::ZERO => Error::SendTimeout,
        Ok(partner) => return queue(k, current, partner, *request),
    };
    if request.has(LENIENT) { receive_and_run(k, current, request, None) } else { fail(current, error) }
}

/// Who gets the message: its destination, or a chief on the way there.
#[inline(always)]
fn find(k: &Kernel, current: ThreadRef, request: &Request) -> Result<ThreadRef, Error> {
    match k.thread(request.dest) {
        None => Err(Error::NoSuch),
        Some(partner) if partner == current => Err(Error::BadArgument),
        Some(partner) if request.has(op::SHOWN) || partner.uid().clan() != current.uid().clan() => {
            clan::across(k, current, partner, request.has(op::SHOWN))
        }
        Some(partner) => Ok(partner),
    }
}

/// Whom the current thread's message is shown to come from.
#[inline(always)]
fn shown(current: ThreadRef, request: &Request) -> Uid {
    if request.has(op::SHOWN) { current.shown.get() } else { current.uid() }
}

/// Whether `partner` would take a message from `sender` now.
#[inline(always)]
fn accepts(partner: ThreadRef, sender: Uid) -> bool {
    match partner.wait() {
        Wait::Open => true,
        Wait::Closed(from) | Wait::Answer(from) => from == sender,
        Wait::No | Wait::Return(_) | Wait::Idle => false,
    }
}

/// Blocks the current thread in the partner's queue, first come first served.
fn queue(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: Request) -> Next {
    request.suspend(current);
    current.errand.set(Errand::Ipc);
    enqueue_sender(current, partner);
    set_timeout(k, current, request.send_timeout());
    Next::Any
}

fn enqueue_sender(sender: ThreadRef, partner: ThreadRef) {
    sender.state.set(State::Sending);
    sender.partner.set(partner.uid());
    partner.senders.push_back(sender);
    partner.refold();
}

fn dequeue_sender(sender: ThreadRef, partner: ThreadRef) {
    partner.senders.remove(sender);
    partner.refold();
}

/// Takes a thread that waits to send out of the queue. The partner may be ending, so that no uid leads to it any more.
fn leave_queue(sender: ThreadRef) {
    let name = sender.partner.get();
    let partner = crate::arch::tcb(name.slot()).filter(|partner| partner.name.get() == name);
    dequeue_sender(sender, partner.expect("a queue ends before its thread does"));
}

/// Files or drops the timeout of a thread that starts to wait.
#[inline(always)]
fn set_timeout(k: &Kernel, thread: ThreadRef, timeout: Timeout) {
    match timeout.us() {
        None => k.wheel.remove(thread),
        Some(us) => file_timeout(k, thread, us),
    }
}

/// Stands for a point in time while an ipc is under way. The point itself stays in `r15` of the frame until the ipc is
/// over, and `eax` says so: as a number of microseconds this is an ordinary timeout.
const ABSOLUTE: Timeout = Timeout(0x7fff_ffff);

/// What stands for a point in time in both halves of `r15`.
#[cold]
fn absolute(until: u64) -> u64 {
    let timeout = if until < ABSOLUTE_END { ABSOLUTE } else { Timeout::NEVER };
    call::timeouts(timeout, timeout)
}

#[inline(never)]
fn file_timeout(k: &Kernel, thread: ThreadRef, us: u64) {
    let now = crate::arch::now_ns();
    let mut deadline = now + us * 1000;
    if us == ABSOLUTE.0 as u64 && is_absolute(thread) {
        deadline = thread.frame.w[Frame::R15].get().max(now);
    }
    file_deadline(k, thread, deadline);
}

#[inline(always)]
fn file_deadline(k: &Kernel, thread: ThreadRef, deadline_ns: u64) {
    if k.wheel.insert(thread, deadline_ns) {
        k.arm(u64::MAX);
    }
}

#[cold]
fn is_absolute(thread: ThreadRef) -> bool {
    thread.frame.op().is_absolute()
}

/// The current thread's message goes to a partner that waits for it.
#[inline(always)]
fn send_to(k: &Kernel, current: ThreadRef, partner: ThreadRef, request: &Request) -> Next {
    if request.has(op::ITEM) {
        return item::send_item(k, current, partner, request);
    }
    let answered = partner.wait();
    if let Wait::Answer(_) = answered {
        return fault::answer(k, current, partner, request);
    }
    if request.has(op::BLOCK) {
        return transfer::send(k, current, partner, *request);
    }
    // Only who waits has a timeout: one that were left would end the next wait, if that began on the fast path.
    k.wheel.remove(partner);
    let kind = if request.is_call() { Kind::Request } else { Kind::Reply };
    let passed = k.pass_in(current, partner, answered, request.is_call());
    transfer(current, partner, kind as u32, request.has(SHORT));
    let sent = hand_over(k, current, partner, passed);
    receive_and_run(k, current, request, Some(sent))
}

/// What is left of a send phase whose message has arrived.
#[derive(Clone, Copy)]
struct Sent {
    /// The receiver, if it is to run at once. It is in no queue.
    first: Option<ThreadRef>,
    /// Who received it.
    receiver: ThreadRef,
    /// What became of the sender's shuttle.
    passed: Passed,
}

/// The second half of a call whose first half just succeeded: the partner exists and sends nothing yet.
fn wait_for_answer(k: &Kernel, current: ThreadRef, request: &Request, lent_to: Uid) -> bool {
    let error = if request.receive_timeout() == Timeout::ZERO {
        Error::ReceiveTimeout
    } else if has_ended(k, current, request.from) {
        Error::PartnerDied
    } else {
        wait(k, current, request.from, request.receive_timeout(), request.window, lent_to);
        return false;
    };
    set_error(current, error);
    if lent_to != Uid::NIL {
        k.take_back(current, lent_to);
    }
    true
}

/// Whether the thread from which `thread` is going to wait for an answer has ended meanwhile. That can be only if a chief
/// took the message in its place: nobody takes messages of one that has ended.
#[inline(always)]
fn has_ended(k: &Kernel, thread: ThreadRef, from: Uid) -> bool {
    from.clan() != thread.uid().clan() && clan::has_ended(k, from)
}

/// `lent_to`: to whom the thread has lent its shuttle, if to anybody.
#[inline(always)]
fn wait(k: &Kernel, thread: ThreadRef, from: Uid, timeout: Timeout, window: Fpage, lent_to: Uid) {
    thread.window.set(window);
    thread.errand.set(Errand::Ipc);
    // An answer that has to come by way of a chief may not come directly.
    let direct = from == Uid::ANY || from.clan() == thread.uid().clan() || clan::is_direct(k, thread, from);
    let plain = direct && timeout == Timeout::NEVER && thread.is_open_window(window);
    thread.set_wait(from, plain, lent_to);
    set_timeout(k, thread, timeout);
}

/// Moves the words. Both threads' registers are in their frames.
#[inline(always)]
fn transfer(sender: ThreadRef, receiver: ThreadRef, kind: u32, short: bool) {
    let (from, to) = (&sender.frame, &receiver.frame);
    for i in 0..8 {
        to.w[i].set(from.w[i].get());
    }
    for i in 8..11 {
        to.w[i].set(if short { from.w[i].get() } else { 0 });
    }
    let label = from.rax.get() >> 32 << 32;
    set_result(receiver, label | kind as u64, sender.uid());
    if sender.crossing.get() != 0 {
        clan::mark(sender, receiver);
    }
    receiver.set_ready();
}

/// Decides whether the receiver of a message, which is ready, runs at once; otherwise it is put into a queue, unless it is stopped. The
/// sender is current, or about to be.
#[inline(always)]
fn hand_over(k: &Kernel, sender: ThreadRef, receiver: ThreadRef, passed: Passed) -> Sent {
    let runs = passed != Passed::Kept || k.priority(receiver) >= k.priority(sender);
    let first = Some(receiver).filter(|receiver| runs && !receiver.is_stopped());
    if !runs {
        k.wake(receiver);
    }
    Sent { first, receiver, passed }
}

/// The receive phase of the current thread, and the choice of who runs. `sent` is its send phase, if it had one and the message arrived.
#[inline(always)]
fn receive_and_run(k: &Kernel, current: ThreadRef, request: &Request, sent: Option<Sent>) -> Next {
    let done = match sent {
        Some(sent) if request.is_call() => {
            let lent_to = if sent.passed == Passed::Lent { sent.receiver.uid() } else { Uid::NIL };
            wait_for_answer(k, current, request, lent_to)
        }
        _ => {
            let alone = request.dest.is_nil();
            receive(k, current, request.from, request.receive_timeout(), request.window, alone)
        }
    };
    match sent.and_then(|sent| sent.first) {
        Some(partner) => Next::To(partner),
        None if done => Next::Same,
        None => Next::Any,
    }
}

/// The receive phase of a thread that runs or is about to. True if it is over; otherwise the thread waits.
#[inline(always)]
fn receive(k: &Kernel, thread: ThreadRef, from: Uid, timeout: Timeout, window: Fpage, alone: bool) -> bool {
    let nothing_there = thread.senders.is_empty() && thread.line.get() == 0;
    if from == Uid::ANY && timeout == Timeout::NEVER && nothing_there {
        wait(k, thread, from, timeout, window, Uid::NIL);
        return false;
    }
    receive_looking(k, thread, from, timeout, window, alone)
}

/// The same, where there may be a message already.
#[inline(never)]
fn receive_looking(
    k: &Kernel,
    thread: ThreadRef,
    from: Uid,
    timeout: Timeout,
    window: Fpage,
    alone: bool,
) -> bool {
    if from.is_nil() {
        let error = if alone { Error::NoSuch as u64 } else { 0 };
        thread.frame.rax.set(error);
        thread.frame.r11.set(FLAGS);
        thread.frame.mode.set(Frame::SYSRET);
        return true;
    }
    if let Some(error) = cannot_receive(k, thread, from) {
        set_error(thread, error);
        return true;
    }
    thread.window.set(window);
    if let Some((line, count)) = interrupt::take_pending(k, thread, from) {
        deliver_interrupt(thread, line, count);
        return true;
    }
    let sender = if from == Uid::ANY { thread.senders.first() } else { queued_as(k, thread, from) };
    if let Some(sender) = sender {
        match take(k, thread, sender) {
            Taken::Message => return true,
            Taken::Mapping => return false,
            // Nothing was delivered: look at the next sender, after a look at the interrupts.
            Taken::Refused => {
                thread.then_from.set(from);
                thread.then_timeout.set(timeout.0);
                thread.operation.set(Operation::Receive);
                thread.frame.mode.set(Frame::SYSRET);
                k.set_busy(thread);
                return true;
            }
        }
    }
    if timeout == Timeout::ZERO {
        set_error(thread, Error::ReceiveTimeout);
        return true;
    }
    interrupt::release(k, thread, from);
    wait(k, thread, from, timeout, window, Uid::NIL);
    false
}

/// The first in the queue of `thread` whose message is shown to come from `from`. Of others than itself, which can be only across the border
/// of a clan, a limited number is looked at.
fn queued_as(k: &Kernel, thread: ThreadRef, from: Uid) -> Option<ThreadRef> {
    let queued = |it: &ThreadRef| {
        it.hot.accept.get() == NEVER && it.state.get() == State::Sending && it.partner.get() == thread.uid()
    };
    let itself = k.thread(from).filter(queued).filter(|it| clan::shown_as(*it) == from);
    if itself.is_some() || from.clan() == thread.uid().clan() {
        return itself;
    }
    core::iter::successors(thread.senders.first(), |it| thread.senders.after(*it))
        .take(param::QUEUE_SCAN)
        .find(|it| clan::shown_as(*it) == from)
}

fn cannot_receive(k: &Kernel, thread: ThreadRef, from: Uid) -> Option<Error> {
    if from == Uid::ANY {
        return None;
    }
    match from.as_interrupt() {
        Some(line) => interrupt::attach(k, thread, line).err(),
        None if k.thread(from).is_none() => Some(Error::NoSuch),
        None => None,
    }
}

/// What came of taking a message from the queue.
enum Taken {
    /// It is in the receiver's registers.
    Message,
    /// Its map item takes long; the receiver waits.
    Mapping,
    /// The receiver has no window for its map item; the sender has the error.
    Refused,
}

/// `thread` takes the message of a sender in its queue.
fn take(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    dequeue_sender(sender, thread);
    k.wheel.remove(sender);
    sender.set_ready();
    match sender.errand.get() {
        Errand::Ipc => take_ipc(k, thread, sender),
        Errand::Fault | Errand::Exception => {
            k.lend(sender, thread);
            fault::deliver(thread, sender, Passed::Lent);
            Taken::Message
        }
    }
}

fn take_ipc(k: &Kernel, thread: ThreadRef, sender: ThreadRef) -> Taken {
    if sender.frame.op().is_item() {
        return item::take_item(k, thread, sender);
    }
    let is_call = sender.is_calling();
    if transfer::is_long(sender) {
        return if transfer::take(k, thread, sender) { Taken::Mapping } else { Taken::Refused };
    }
    let short = sender.frame.op().is_short();
    transfer(sender, thread, if is_call { Kind::Request } else { Kind::Reply } as u32, short);
    after_taken(k, thread, sender, is_call);
    Taken::Message
}

/// What the sender of a message that was taken from the queue does next: it is not current.
fn after_taken(k: &Kernel, thread: ThreadRef, sender: ThreadRef, is_call: bool) {
    if is_call {
        let timeout = Timeout(sender.then_timeout.get());
        sender.errand.set(Errand::Ipc);
        if timeout == Timeout::ZERO {
            set_error(sender, Error::ReceiveTimeout);
            k.wake(sender);
            return;
        }
        if has_ended(k, sender, sender.then_from.get()) {
            set_error(sender, Error::PartnerDied);
            k.wake(sender);
            return;
        }
        // A call that was queued lends its shuttle when the called thread takes it.
        k.lend(sender, thread);
        wait(k, sender, sender.then_from.get(), timeout, sender.window.get(), thread.uid());
        return;
    }
    if sender.then_from.get().is_nil() {
        sender.frame.rax.set(0);
        sender.frame.r11.set(FLAGS);
        sender.frame.mode.set(Frame::SYSRET);
    } else {
        // Its receive phase may find a message of its own; it looks when it runs, so that this does not recurse.
        sender.operation.set(Operation::Receive);
        k.set_busy(sender);
    }
    k.wake(sender);
}

/// Continues a thread whose message was taken while it was queued, with its receive phase.
pub fn continue_receive(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    let timeout = Timeout(current.then_timeout.get());
    let done = receive(k, current, current.then_from.get(), timeout, current.window.get(), false);
    if done { Next::Same } else { Next::Any }
}

/// An interrupt's message. The thread is ready afterwards.
pub fn deliver_interrupt(thread: ThreadRef, line: u8, count: u64) {
    thread.frame.w.iter().for_each(|word| word.set(0));
    thread.frame.w[0].set(count);
    set_result(thread, Kind::Interrupt as u64, Uid::interrupt(line));
    thread.set_ready();
}

/// A timeout fired. The entry may be left from a wait that is over.
pub fn expired(k: &Kernel, thread: ThreadRef) {
    if thread.hot.accept.get() != crate::object::thread::NEVER {
        return;
    }
    match thread.state.get() {
        State::Stalled | State::Taking => transfer::out_of_patience(k, thread),
        State::Sending => fail_blocked(k, thread, Error::SendTimeout),
        State::Receiving => fail_blocked(k, thread, Error::ReceiveTimeout),
        _ => {}
    }
}

/// Ends the wait of a thread that is not running with an error, wherever it waits. A thread that waits for an answer
/// to a fault gets an exception instead, and one that waits for an answer to an exception stops.
pub fn fail_blocked(k: &Kernel, thread: ThreadRef, error: Error) {
    let wait = thread.wait();
    if thread.state.get() == State::Sending && wait == Wait::No {
        leave_queue(thread);
        if thread.errand.get() != Errand::Ipc {
            return fault::unanswered(k, thread);
        }
    }
    k.wheel.remove(thread);
    k.regain(thread, None);
    if let Wait::Answer(_) = wait {
        return fault::unanswered(k, thread);
    }
    thread.operation.set(Operation::None);
    set_error(thread, error);
    thread.set_ready();
    k.wake(thread);
}

/// A thread in the queue of one that ends, out of the queue already.
pub fn partner_died(k: &Kernel, sender: ThreadRef) {
    k.wheel.remove(sender);
    if sender.errand.get() != Errand::Ipc {
        return fault::unanswered(k, sender);
    }
    set_error(sender, Error::PartnerDied);
    sender.set_ready();
    k.wake(sender);
}

/// `thread_control` aborts whatever ipc the thread waits in. False if it waits in none.
pub fn abort(k: &Kernel, thread: ThreadRef) -> bool {
    let (own, other) = match thread.operation.get() {
        Operation::Transfer { .. } => (Error::SendAborted, Error::ReceiveAborted),
        _ => (Error::ReceiveAborted, Error::SendAborted),
    };
    if thread.state.get() != State::Ready && transfer::interrupt(k, thread, own, other) {
        return true;
    }
    if door::abort(k, thread) {
        return true;
    }
    let error = match (thread.wait(), thread.state.get()) {
        (Wait::Open | Wait::Closed(_) | Wait::Return(_), _) => Error::ReceiveAborted,
        (Wait::No, State::Sending) => Error::SendAborted,
        (Wait::No, State::Taking) => Error::ReceiveAborted,
        (Wait::Answer(_), _) => {
            fail_blocked(k, thread, Error::ReceiveAborted);
            return true;
        }
        _ => return false,
    };
    if thread.state.get() == State::Taking && thread.wait() == Wait::No {
        item::abandon(k, thread, error, Error::SendAborted);
        return true;
    }
    fail_blocked(k, thread, error);
    true
}

/// Ends the ipc of a thread that is going to end: nobody keeps a link to it.
pub fn leave(k: &Kernel, thread: ThreadRef) {
    door::leave(k, thread);
    if thread.wait() == Wait::No && thread.state.get() == State::Sending {
        leave_queue(thread);
    }
    if let Operation::Map { to, .. } = thread.operation.get()
        && let Some(receiver) = k.thread(to)
    {
        item::release_receiver(k, receiver, Error::PartnerDied);
    }
    transfer::leave(k, thread);
    k.wheel.remove(thread);
    // Somebody goes on with the end of a thread, see `end_thread`.
    if !matches!(thread.operation.get(), Operation::EndThread { .. }) {
        thread.operation.set(Operation::None);
    }
}

const _: () = assert!(NO_ITEM & ITEM_WHOLE == 0 && call::NULL < Op::CALL.0);
