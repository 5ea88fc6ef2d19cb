//! One test for each bug that the random tests reach seldom or never.

use crate::world::World;
use abi::call::{IPC_LONG_CALL, task_op, thread_op};
use abi::op;
use abi::{Call, Dope, Error, Fpage, Rights, TaskId, Timeout, Uid};
use kernel::mem::plan::Plan;
use kernel::mem::space::Progress;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS, Wait, special};

/// More senders than the end of a thread handles in one step.
const CROWD: usize = 40;

/// `CROWD` threads that wait to send to the first thread of a task; the processor is on the first thread.
fn crowd(world: &World) -> (Uid, Vec<Uid>) {
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let me = world.root.uid().0;
    let victim = Uid(world.thread_control(thread_op::CREATE, [0, 1, me, me]).expect("memory")[0]);
    let mut senders = Vec::new();
    for _ in 0..CROWD {
        let sender = world.new_thread_uid(1);
        assert_eq!(world.current().uid(), sender);
        world.ipc_call(victim);
        senders.push(sender);
    }
    assert_eq!(world.current(), world.root);
    (victim, senders)
}

#[test]
fn a_sender_may_leave_while_its_partner_is_ending() {
    let world = World::new(256);
    let (victim, senders) = crowd(&world);
    world.begin_call(abi::Call::ThreadControl, thread_op::DESTROY, victim.0);
    assert!(world.is_busy() || world.current() != world.root, "it takes several steps");
    let last = world.k.thread(*senders.last().expect("a crowd")).expect("it waits");
    kernel::ipc::end::abort(&world.k, last);
    world.check();
    world.settle();
    world.check();
}

#[test]
fn a_thread_that_ends_itself_is_not_lost_when_interrupted() {
    let world = World::new(256);
    let (victim, _) = crowd(&world);
    world.thread_control(thread_op::START, [victim.0, 0x1000, 0x8000, 0]).expect("it starts");
    assert_eq!(world.current().uid(), victim);
    world.begin_call(abi::Call::ThreadControl, thread_op::DESTROY, 0);
    // Its slice ends between two steps.
    world.advance(20_000_000);
    world.settle();
    for _ in 0..10 * CROWD {
        if world.current() == world.root {
            break;
        }
        world.wait();
    }
    world.thread_control(thread_op::INFO, [0; 4]).expect("the first thread runs");
    assert!(ThreadRef::in_slot(victim.slot()).is_none(), "its block is still there");
    world.check();
}

#[test]
fn a_flush_of_ports_without_rights_ends() {
    let world = World::new(256);
    let task = world.task(world.new_task(50));
    let plan = Plan::fit(Fpage::ports(0, 4), 0, Fpage::ports(0, 16)).expect("it fits");
    let mut progress = Progress::START;
    let mut map = || kernel::mem::space::map(&world.k, plan, world.sigma0, task, &mut progress, &mut 100);
    while map().is_err() {}
    let page = Fpage::ports(0, 4).with_rights(Rights::X);
    world.call(abi::Call::Flush, 0, [page.0, 0, 0, 0]).expect("a valid page");
    world.check();
    world.task_control(task_op::DESTROY, [task.id.get().0, 0, 0, 0]).expect("it is ours");
    assert_eq!(world.k.task(TaskId::NIL).map(|task| task.id.get()), None);
    world.check();
}

#[test]
fn a_line_that_was_only_polled_is_released_by_the_next_wait() {
    let world = World::new(256);
    world.ipc(Uid::NIL, Uid::interrupt(3), (Timeout::NEVER, Timeout::ZERO), Fpage::NIL, 0, [0; 8]);
    assert_eq!(world.result().0, Error::ReceiveTimeout as u64);
    // It is attached and still masked: the fast path, which does not release lines, must not take the next wait.
    assert!(!kernel::arch::irq_is_open(3));
    assert_ne!(world.root.special.get() & special::INTERRUPT, 0);
    world.ipc_reply_wait(Uid::NIL);
    assert!(kernel::arch::irq_is_open(3));
    assert_eq!(world.root.special.get() & special::INTERRUPT, 0);
    world.check();
}

/// The lowest priority is that of the idle thread too.
#[test]
fn an_idle_processor_goes_to_a_driver_of_the_lowest_priority() {
    let world = World::new(256);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    for from in [Uid::interrupt(3), Uid::ANY] {
        world.ipc(Uid::NIL, from, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, 0, [0; 8]);
        assert!(world.is_idle());
        world.interrupt(3);
        assert_eq!(world.current(), world.root, "its interrupt has come");
        assert_eq!(world.root.frame.w[0].get(), 1);
        world.check();
    }
}

/// A thread that ends itself leaves its block to the next one, which an interrupt keeps from running. If it is stopped then, it stands still.
#[test]
fn a_thread_behind_one_that_ended_itself_stands_still() {
    let world = World::new(256);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let driver = world.new_thread_uid(50);
    assert_eq!(world.current().uid(), driver);
    world.ipc(Uid::NIL, Uid::interrupt(3), (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, 0, [0; 8]);
    let next = world.new_thread_uid(20);
    assert_eq!(world.current().uid(), next);
    let last = world.new_thread_uid(30);
    assert_eq!(world.current().uid(), last);
    world.begin_call(Call::ThreadControl, thread_op::DESTROY, 0);
    while world.current().name.get() == last {
        world.go_on_once();
    }
    assert!(world.current().uid() == next && world.is_busy(), "it is to take the block away");
    world.interrupt(3);
    assert_eq!(world.current().uid(), driver);
    world.thread_control(thread_op::STOP, [next.0, 0, 0, 0]).expect("it is ours");
    world.thread_control(thread_op::GET_REGISTERS, [next.0, 0, 0, 0]).expect("it stands still");
    assert!(ThreadRef::in_slot(last.slot()).is_none(), "its block is still there");
    world.check();
}

/// Where both sides of a long message have their blocks; no page is there at first.
const BLOCK: u64 = 0x4000_0000;

/// A sender in the middle of a long call to a receiver, each in a task of its own, whose pager is the first thread. That
/// runs, and somebody's page fault waits for it.
fn faulting_transfer(world: &World) -> (ThreadRef, ThreadRef) {
    let [to, from] = [0; 2].map(|_| world.new_task(100));
    let (receiver, sender) = (world.new_thread(to, 63), world.new_thread(from, 63));
    world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
    assert_eq!(world.current(), receiver);
    let room = Dope::room(8, 0, 0).0;
    world.thread_control(thread_op::SET_BLOCK, [0, BLOCK, room, u64::from(u32::MAX)]).expect("a block");
    world.wait();
    assert_eq!(world.current(), sender);
    let mut words = [0; WORDS];
    (words[0], words[1]) = (Dope::used(8, 0, 0).0, BLOCK);
    world.system_call(IPC_LONG_CALL.into(), receiver.uid().0, words);
    assert_eq!(world.current(), world.root);
    (sender, receiver)
}

/// The current thread takes a page fault, and begins to answer it with more pages than are mapped in one step.
fn begin_answer(world: &World, from: ThreadRef) {
    world.wait();
    let frame = &world.current().frame;
    assert_eq!(Uid(frame.rdx.get()), from.uid());
    frame.rax.set(u64::from(Call::Ipc as u32 | op::ITEM));
    frame.w[6].set(Fpage::memory(BLOCK, 20, Rights::RWX).0);
    frame.w[7].set(BLOCK);
    frame.w[Frame::RBX].set(0);
    frame.w[Frame::R15].set(0);
    assert!(!world.enter(), "it takes several steps");
}

#[test]
fn a_long_answer_to_a_fault_does_not_change_what_the_faulting_call_waits_for() {
    let world = World::new(512);
    let (sender, receiver) = faulting_transfer(&world);
    for side in [sender, receiver] {
        begin_answer(&world, side);
        world.settle();
        world.check();
    }
    // Everything is there: the receiver has the request.
    assert_eq!(world.current(), receiver);
    assert_eq!(sender.wait(), Wait::Closed(receiver.uid()));
    world.ipc_reply_wait(sender.uid());
    assert_eq!(world.current(), sender);
    world.check();
}

#[test]
fn a_transfer_that_ends_while_a_fault_in_it_is_answered() {
    for ended in 0..3 {
        let world = World::new(512);
        let (sender, receiver) = faulting_transfer(&world);
        begin_answer(&world, sender);
        world.settle();
        begin_answer(&world, receiver);
        let pager = world.current();
        match ended {
            0 => assert!(kernel::ipc::end::abort(&world.k, sender)),
            1 => assert!(kernel::ipc::end::abort(&world.k, receiver)),
            // The sender's patience with the receiver's pager.
            _ => assert_eq!(kernel::ipc::end::expired(&world.k, sender), kernel::param::EXPIRY_OF_TWO),
        }
        world.check();
        assert_eq!(pager.frame.rax.get(), Error::SendAborted as u64);
        for side in [sender, receiver] {
            assert!(side.is_ready() && side.frame.rax.get() != 0 && side.frame.rax.get() >> 31 == 0);
        }
        world.leave(kernel::sched::Next::Same);
        world.check();
    }
}

/// A thread of the first task that is in the middle of a call of several steps. The first thread, less urgent than it, runs.
fn in_the_middle(world: &World, begin: impl FnOnce()) -> ThreadRef {
    let busy = world.k.thread(world.new_thread_uid(2)).expect("just made");
    assert_eq!(world.current(), busy);
    begin();
    assert!(world.is_busy());
    // Stopped from outside, as by another processor's thread: the first one goes on.
    world.k.unqueue_thread(busy);
    busy.set_special(special::STOPPED, 0);
    world.leave(kernel::sched::Next::Any);
    while world.current() != world.root {
        world.wait();
    }
    busy
}

#[test]
fn a_thread_in_the_middle_of_a_call_is_not_started_anew() {
    let world = World::new(512);
    let receiver = world.new_thread(world.new_task(100), 63);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    assert_eq!(world.current(), receiver);
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), Fpage::WHOLE, 0, [0; 8]);
    let sender = in_the_middle(&world, || {
        let frame = &world.current().frame;
        frame.rax.set(u64::from(Call::Ipc as u32 | op::ITEM));
        frame.rdx.set(receiver.uid().0);
        frame.w[6].set(Fpage::memory(1 << 30, 20, Rights::RWX).0);
        frame.w[Frame::RBX].set(0);
        world.enter();
    });
    let start = [sender.uid().0, 0x1000, 0x8000, 0];
    assert_eq!(world.thread_control(thread_op::START, start), Err(Error::BadState as u64));
    world.check();
    // Its message arrives all the same.
    world.begin_call(Call::ThreadControl, thread_op::RESUME, sender.uid().0);
    world.settle();
    world.check();
    assert_eq!(receiver.frame.rdx.get(), sender.uid().0);
}

#[test]
fn a_thread_is_ended_although_the_one_that_was_ending_it_is() {
    let world = World::new(256);
    let (victim, _) = crowd(&world);
    let ending = in_the_middle(&world, || {
        world.begin_call(Call::ThreadControl, thread_op::DESTROY, victim.0);
    });
    let slots = [victim, ending.uid()].map(|uid| uid.slot());
    world.begin_call(Call::ThreadControl, thread_op::DESTROY, ending.uid().0);
    world.settle();
    // Those who waited for the victim are more urgent.
    while world.current() != world.root {
        world.wait();
    }
    world.check();
    for slot in slots {
        assert!(ThreadRef::in_slot(slot).is_none(), "a block is still there");
    }
}
