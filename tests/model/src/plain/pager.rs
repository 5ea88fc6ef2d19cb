//! Each condition of a plain answer, by a message that fulfils all others: there the plain way would do something else than the general one.
//!
//! The first thread is the pager of a ward, less urgent than all others, and replies as pagers do: with an item, to wait for anybody then.

use crate::world::World;
use abi::call::{self, RESUME_AS_IS, thread_op};
use abi::op::{self, Op};
use abi::{Dope, Error, Fpage, PAGE_SIZE, Rights, Timeout, Uid};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, Operation, State, WORDS, Wait, special};
use kernel::{life, sim};
use std::cell::Cell;

/// Where the ward gets pages: below one table.
const PLACE: u64 = 0x40_0000;

/// Where the pager has pages.
const OWN: u64 = 0x18_0000;

/// How the pager waits after its reply.
struct Receive {
    from: Uid,
    timeout: Timeout,
    window: Fpage,
}

/// A receive that a plain reply may have.
const PLAIN: Receive = Receive { from: Uid::ANY, timeout: Timeout::NEVER, window: Fpage::NIL };

struct Stage {
    world: World,
    ward: ThreadRef,
    /// Pages that the ward was given.
    given: Cell<u64>,
}

impl Stage {
    /// A ward that has faulted: its pager runs, on the ward's shuttle. Tables and slabs are there, so that a page is given plainly.
    fn new() -> Stage {
        let world = World::new(1024);
        world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
        let task = world.new_task(200);
        let ward = world.new_stand_in(task);
        world.thread_control(thread_op::SET_WINDOW, [ward.uid().0, Fpage::WHOLE.0, 0, 0]).expect("a window");
        world.thread_control(thread_op::START, [ward.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
        let stage = Stage { world, ward, given: Cell::new(0) };
        stage.world.page_fault(PLACE, Rights::R);
        stage.wait();
        stage.reply_to(ward.uid());
        stage.fault();
        stage.reply_to(ward.uid());
        stage.fault();
        stage
    }

    /// The ward faults, for which its pager waits.
    fn fault(&self) {
        let world = &self.world;
        assert_eq!(world.current(), self.ward);
        world.page_fault(PLACE, Rights::R);
        assert_eq!((world.current(), self.ward.wait()), (world.root, Wait::Answer(world.root.uid())));
        assert_eq!(world.root.hot.shuttle.get(), self.ward.hot.shuttle.get());
    }

    /// The pager, or whoever runs, replies with a page for the next place.
    fn reply_to(&self, to: Uid) {
        self.reply(to, &PLAIN);
    }

    fn reply(&self, to: Uid, receive: &Receive) {
        let place = self.given.replace(self.given.get() + 1);
        let item = Fpage::memory(OWN, 12, Rights::RW);
        self.reply_with(to, (item, PLACE + place * PAGE_SIZE), op::ITEM, receive);
    }

    fn reply_with(&self, to: Uid, (item, hot_spot): (Fpage, u64), flags: u32, receive: &Receive) {
        let mut w = [0; WORDS];
        (w[6], w[7]) = (item.0, hot_spot);
        w[Frame::RBX] = receive.from.0;
        w[Frame::RBP] = receive.window.0;
        w[Frame::R15] = call::timeouts(Timeout::ZERO, receive.timeout);
        self.world.system_call(Op::GENERAL.with(op::TAKES_BLOCK | flags).0 as u64, to.0, w);
    }

    /// The current thread waits for anybody, as it does after a plain reply.
    fn wait(&self) {
        self.reply_with(Uid::NIL, (Fpage::NIL, 0), 0, &PLAIN);
    }

    /// The pager answers an exception in the short form.
    fn resume(&self) {
        let head = Op::REPLY_WAIT.0 as u64 | (RESUME_AS_IS as u64) << 32;
        self.world.system_call(head, self.ward.uid().0, [0; WORDS]);
    }

    /// Another thread of the pager's task, more urgent than the ward.
    fn other(&self, priority: u8) -> ThreadRef {
        let uid = self.world.new_thread_uid(priority);
        let thread = self.world.k.thread(uid).expect("just made");
        assert_eq!(self.world.current(), thread);
        thread
    }

    /// A thread stands in the pager's queue.
    fn queue(&self) -> ThreadRef {
        let caller = self.other(2);
        self.world.ipc_call(self.world.root.uid());
        assert_eq!((self.world.current(), caller.state.get()), (self.world.root, State::Sending));
        caller
    }
}

#[test]
fn takes_the_next_of_its_queue() {
    let stage = Stage::new();
    let caller = stage.queue();
    stage.reply_to(stage.ward.uid());
    let root = stage.world.root;
    assert!(stage.ward.is_ready() && root.is_ready());
    assert_eq!((Uid(root.frame.partner()), caller.wait()), (caller.uid(), Wait::Closed(root.uid())));
    stage.world.check();
}

#[test]
fn takes_the_next_of_its_queue_after_an_exception() {
    let stage = Stage::new();
    stage.reply_to(stage.ward.uid());
    stage.world.exception(6);
    let caller = stage.queue();
    stage.resume();
    let root = stage.world.root;
    assert!(stage.ward.is_ready() && root.is_ready());
    assert_eq!((Uid(root.frame.partner()), caller.wait()), (caller.uid(), Wait::Closed(root.uid())));
    stage.world.check();
}

#[test]
fn waits_for_one() {
    let stage = Stage::new();
    let other = stage.other(2);
    stage.wait();
    stage.reply(stage.ward.uid(), &Receive { from: other.uid(), ..PLAIN });
    assert!(stage.ward.is_ready());
    assert_eq!(stage.world.root.wait(), Wait::Closed(other.uid()));
}

#[test]
fn does_not_wait() {
    let stage = Stage::new();
    stage.reply(stage.ward.uid(), &Receive { timeout: Timeout::ZERO, ..PLAIN });
    let root = stage.world.root;
    assert!(stage.ward.is_ready() && root.is_ready());
    assert_eq!(root.frame.rax.get(), Error::ReceiveTimeout as u64);
}

#[test]
fn has_a_window_for_once() {
    let stage = Stage::new();
    let window = Fpage::memory(0x7000_0000, 20, Rights::RWX);
    stage.reply(stage.ward.uid(), &Receive { window, ..PLAIN });
    let root = stage.world.root;
    assert!(stage.ward.is_ready());
    assert_eq!((root.hot.accept.get(), root.receiving.window.get()), (0, window));
}

#[test]
fn an_exception_is_not_answered_with_an_item() {
    let stage = Stage::new();
    stage.reply_to(stage.ward.uid());
    stage.world.exception(6);
    stage.reply_to(stage.ward.uid());
    assert!(stage.ward.is_stopped());
}

/// The ward is on a caller's shuttle when it faults, so its extended state is kept with itself.
#[test]
fn a_fault_on_a_borrowed_shuttle_keeps_the_state() {
    let stage = Stage::new();
    let (world, ward) = (&stage.world, stage.ward);
    stage.reply_to(ward.uid());
    stage.wait();
    let caller = life::thread::new_thread(&world.k, ward.task(), 3).expect("memory");
    life::thread::start_thread(&world.k, caller, 0x1000, 0x8000, 0);
    world.leave(kernel::sched::Next::Any);
    assert_eq!(world.current(), caller);
    world.ipc_call(ward.uid());
    assert_eq!(world.current(), ward);
    world.page_fault(PLACE, Rights::R);
    assert_eq!(world.current(), world.root);
    assert_ne!(ward.special.get() & special::STATE_KEPT, 0);
}

#[test]
fn a_ward_that_is_stopped_stays_so() {
    let stage = Stage::new();
    let stop = || {
        stage.world.thread_control(thread_op::STOP, [stage.ward.uid().0, 0, 0, 0]).expect("its own");
    };
    stop();
    stage.reply_to(stage.ward.uid());
    assert!(stage.ward.is_ready() && stage.ward.is_stopped() && stage.world.current() != stage.ward);
    stage.world.check();
    let stage = Stage::new();
    stage.reply_to(stage.ward.uid());
    stage.world.exception(6);
    stage.world.thread_control(thread_op::STOP, [stage.ward.uid().0, 0, 0, 0]).expect("its own");
    stage.resume();
    assert!(stage.ward.is_ready() && stage.ward.is_stopped() && stage.world.current() != stage.ward);
    stage.world.check();
}

/// The pager asks somebody else for the page, in vain: it takes the ward's shuttle back, by a new reference.
#[test]
fn answers_after_a_call_in_vain() {
    let stage = Stage::new();
    let (world, ward) = (&stage.world, stage.ward);
    let other = stage.other(2);
    stage.wait();
    let timeouts = (Timeout::NEVER, Timeout::from_us(1000));
    world.ipc(other.uid(), other.uid(), timeouts, Fpage::NIL, 0, [0; 8]);
    assert_eq!(world.current(), other);
    world.thread_control(thread_op::SET_PRIORITY, [other.uid().0, 0, 0, 0]).expect("its own");
    for _ in 0..4 {
        world.advance(2_000_000);
    }
    if world.current() == other {
        stage.wait();
    }
    assert_eq!(world.current(), world.root);
    assert_eq!(world.root.frame.rax.get(), Error::ReceiveTimeout as u64);
    stage.reply_to(ward.uid());
    assert_eq!(world.current(), ward);
    assert_eq!(ward.hot.shuttle.get(), ward.home_ref());
    world.check();
}

/// The thread that the pager asks is on the ward's shuttle too, and is not the ward's pager.
#[test]
fn nobody_answers_in_its_place() {
    let stage = Stage::new();
    let (world, ward) = (&stage.world, stage.ward);
    let other = stage.other(2);
    stage.wait();
    world.ipc_call(other.uid());
    assert_eq!(world.current(), other);
    assert_eq!(other.hot.shuttle.get(), ward.hot.shuttle.get());
    let place = PLACE + stage.given.get() * PAGE_SIZE;
    stage.reply_to(ward.uid());
    assert_eq!(ward.wait(), Wait::Answer(world.root.uid()));
    assert_eq!(sim::walk(&world.k.pool, ward.task(), place), None);
    assert_eq!((world.current(), other.frame.rax.get()), (other, Error::SendTimeout as u64));
    world.check();
}

/// The pager waits again before it answers, and so is on the shuttle of somebody urgent when it does. The ward goes on on its own, and when it
/// is its turn.
fn answers_on_the_shuttle_of_another(waits: impl FnOnce(&Stage)) {
    let stage = Stage::new();
    let (world, ward) = (&stage.world, stage.ward);
    waits(&stage);
    stage.wait();
    let runs = life::thread::new_thread(&world.k, world.sigma0, 3).expect("memory");
    life::thread::start_thread(&world.k, runs, 0x1000, 0x8000, 0);
    let urgent = life::thread::new_thread(&world.k, world.sigma0, 5).expect("memory");
    life::thread::start_thread(&world.k, urgent, 0x1000, 0x8000, 0);
    world.leave(kernel::sched::Next::Any);
    assert_eq!(world.current(), urgent);
    world.ipc_call(world.root.uid());
    assert_eq!((world.current(), world.k.priority(world.root)), (world.root, 5));
    stage.reply_to(ward.uid());
    assert!(ward.is_ready());
    assert_eq!((world.root.wait(), world.k.priority(ward)), (Wait::Open, 1));
    assert_eq!(world.current(), runs, "the ward is less urgent");
    world.check();
}

#[test]
fn answers_a_fault_on_the_shuttle_of_another() {
    answers_on_the_shuttle_of_another(|_| ());
}

#[test]
fn answers_a_call_on_the_shuttle_of_another() {
    answers_on_the_shuttle_of_another(|stage| {
        stage.reply_to(stage.ward.uid());
        let head = Op::CALL.with(op::TAKES_ITEM).0 as u64;
        stage.world.system_call(head, stage.world.root.uid().0, [9; WORDS]);
        assert_eq!(stage.world.current(), stage.world.root);
    });
}

/// More than its address space is to be switched when the ward faults.
#[test]
fn is_asked_by_a_ward_with_more_than_a_space() {
    for more in [special::HAS_FS, special::STEPPED, special::IN_DOMAIN] {
        let stage = Stage::new();
        stage.reply_to(stage.ward.uid());
        stage.ward.set_special(more, 0);
        stage.fault();
        stage.reply_to(stage.ward.uid());
        assert_eq!(stage.world.current(), stage.ward);
        stage.world.check();
    }
}

/// The pager's last message went to a chief in the place of another thread. Its next, which begins plainly and takes more than a step, does not.
#[test]
fn a_long_item_after_a_message_that_was_diverted() {
    let stage = Stage::new();
    let (world, ward, root) = (&stage.world, stage.ward, stage.world.root);
    stage.reply_to(ward.uid());
    let (task, me) = (world.new_task(20), ward.uid().0);
    let hidden = world.thread_control(thread_op::CREATE, [task.0, 1, me, me]).expect("memory")[0];
    let call = || world.system_call(Op::CALL.with(op::TAKES_ITEM).0 as u64, root.uid().0, [9; WORDS]);
    // A first time, so that the pager's pages have nodes.
    let item = |place| (Fpage::memory(OWN, 19, Rights::RW), place);
    call();
    stage.reply_with(ward.uid(), item(PLACE + 0x8_0000), op::ITEM, &PLAIN);
    call();
    stage.reply_with(Uid(hidden), (Fpage::NIL, 0), 0, &PLAIN);
    let is_diverted = || ward.frame.rax.get() as u32 & call::NOT_DIVERTED == 0;
    assert_eq!((world.current(), is_diverted()), (ward, true));
    call();
    assert_eq!(world.current(), root);
    stage.reply_with(ward.uid(), item(PLACE + 0x10_0000), op::ITEM, &PLAIN);
    assert_eq!((world.current(), is_diverted()), (ward, false));
    let last = PLACE + 0x18_0000 - PAGE_SIZE;
    assert!(sim::walk(&world.k.pool, ward.task(), last).is_some());
    world.check();
}

/// The ward faults in the middle of a message that it receives, and takes the rest of it then.
#[test]
fn answers_a_fault_in_the_middle_of_a_message() {
    let stage = Stage::new();
    let (world, ward) = (&stage.world, stage.ward);
    stage.reply_to(ward.uid());
    // Twenty words, of a block that the ward has no memory for.
    let place = PLACE + stage.given.get() * PAGE_SIZE;
    let room = [0, place, Dope::room(20, 0, 0).0, Timeout::NEVER.0.into()];
    world.thread_control(thread_op::SET_BLOCK, room).expect("room");
    stage.wait();
    stage.wait();
    let sender = life::thread::new_thread(&world.k, world.sigma0, 2).expect("memory");
    life::thread::start_thread(&world.k, sender, 0x1000, 0x8000, 0);
    world.leave(kernel::sched::Next::Any);
    assert_eq!(world.current(), sender);
    let patience = [0, OWN, Dope::room(20, 0, 0).0, Timeout::NEVER.0.into()];
    world.thread_control(thread_op::SET_BLOCK, patience).expect("room");
    let mut w = [0; WORDS];
    (w[0], w[1]) = (Dope::used(20, 0, 0).0, OWN);
    w[Frame::R15] = call::timeouts(Timeout::NEVER, Timeout::NEVER);
    world.system_call(Op::GENERAL.with(op::BLOCK).0 as u64, ward.uid().0, w);
    assert_eq!((world.current(), sender.state.get()), (world.root, State::Stalled));
    assert!(matches!(ward.operation.get(), Operation::Taken { .. }));
    stage.reply_to(ward.uid());
    world.settle();
    assert_eq!((ward.operation.get(), sender.operation.get()), (Operation::None, Operation::None));
    assert!(ward.is_ready() && sender.state.get() != State::Stalled);
    assert_eq!(Uid(ward.frame.partner()), sender.uid());
    world.check();
}
