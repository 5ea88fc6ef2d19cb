//! One test for each bug that the random tests reach seldom or never.

use crate::world::World;
use abi::call::{task_op, thread_op};
use abi::{Error, Fpage, Rights, TaskId, Timeout, Uid};
use kernel::object::thread::special;

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
    kernel::ipc::abort(&world.k, last);
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
    assert!(kernel::arch::tcb(victim.slot()).is_none(), "its block is still there");
    world.check();
}

#[test]
fn a_flush_of_ports_without_rights_ends() {
    let world = World::new(256);
    let task = world.task(world.new_task(50));
    let plan = kernel::mem::space::plan(Fpage::ports(0, 4), 0, Fpage::ports(0, 16)).expect("it fits");
    let mapped = kernel::mem::space::map(&world.k, plan, world.sigma0, task, &mut 0, &mut true, &mut 100);
    assert!(mapped.is_ok());
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
