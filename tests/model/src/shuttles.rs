//! Shuttles: who runs on whose time. A call lends, an answer gives back, and whatever cuts a chain leaves each shuttle
//! with exactly one thread.

use crate::world::World;
use abi::call::thread_op;
use abi::{Fpage, TaskId, Timeout, Uid};
use kernel::object::ThreadRef;

const FOREVER: (Timeout, Timeout) = (Timeout::NEVER, Timeout::NEVER);

/// Three threads that wait, less urgent the later; the first thread runs when none of them can.
fn three() -> (World, [ThreadRef; 3]) {
    let world = World::new(256);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let mut all = [world.root; 3];
    for (i, thread) in all.iter_mut().enumerate() {
        let me = world.root.uid().0;
        let priority = 30 - i as u64;
        let uid =
            world.thread_control(thread_op::CREATE, [TaskId::NIL.0, priority, me, me]).expect("memory")[0];
        *thread = world.k.thread(Uid(uid)).expect("just made");
        world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it starts");
        assert_eq!(world.current(), *thread);
        world.wait();
        assert!(world.is_idle() || world.current() == world.root);
    }
    (world, all)
}

/// Ends a thread's wait. It may run before the caller sees a result.
fn abort(world: &World, thread: ThreadRef) {
    world.thread_control(thread_op::ABORT, [thread.uid().0, 0, 0, 0]).ok();
}

/// Wakes a thread that waits.
fn wake(world: &World, thread: ThreadRef) {
    abort(world, thread);
    assert_eq!(world.current(), thread);
    world.check();
}

#[test]
fn a_call_lends_and_the_answer_gives_back() {
    let (world, [a, b, _]) = three();
    wake(&world, a);
    world.ipc_call(b.uid());
    assert_eq!((world.current(), world.k.priority(b)), (b, 30), "b runs on a's priority");
    world.check();
    world.advance(1000);
    world.ipc_reply_wait(a.uid());
    assert_eq!((world.current(), world.k.priority(a)), (a, 30));
    world.wait();
    assert_eq!(
        (a.home.time_ns.get(), b.home.time_ns.get()),
        (1000, 0),
        "the time of the call is the caller's"
    );
    world.check();
}

#[test]
fn an_aborted_caller_takes_its_shuttle_back() {
    let (world, [a, b, c]) = three();
    wake(&world, a);
    world.ipc_call(b.uid());
    world.ipc_call(c.uid());
    assert_eq!(world.current(), c);
    abort(&world, a);
    assert_eq!(world.current(), a, "a is the most urgent again");
    assert_eq!(c.hot.shuttle.get(), c.home_ref(), "c goes on with its own");
    assert_eq!(world.k.priority(c), 29, "at the priority of b, which waits for it");
    world.check();
}

#[test]
fn a_chain_cut_twice_leaves_one_thread_on_each_shuttle() {
    let (world, [a, b, c]) = three();
    wake(&world, a);
    world.ipc_call(b.uid());
    world.ipc_call(c.uid());
    abort(&world, b);
    world.check();
    abort(&world, a);
    world.check();
    assert_eq!([a, b, c].map(|thread| world.k.priority(thread)), [30, 29, 28]);
}

#[test]
fn a_timeout_cuts_a_call() {
    let (world, [a, b, _]) = three();
    wake(&world, a);
    let timeouts = (Timeout::NEVER, Timeout::from_us(100));
    world.ipc(b.uid(), b.uid(), timeouts, Fpage::NIL, 0, [0; 8]);
    assert_eq!((world.current(), world.k.priority(b)), (b, 30));
    world.advance(200_000);
    assert_eq!(world.current(), a, "its shuttle came home, and b is less urgent");
    assert_eq!(world.k.priority(b), 29);
    world.check();
}

#[test]
fn the_end_of_the_called_thread_brings_the_shuttle_home() {
    let (world, [a, b, _]) = three();
    wake(&world, a);
    world.ipc_call(b.uid());
    world.thread_control(thread_op::DESTROY, [0; 4]).ok();
    assert_eq!((world.current(), world.k.priority(a)), (a, 30));
    assert_eq!(a.frame.rax.get(), abi::Error::PartnerDied as u64);
    world.check();
}

#[test]
fn the_end_of_the_caller_leaves_the_called_thread_its_own() {
    let (world, [a, b, _]) = three();
    wake(&world, a);
    world.ipc_call(b.uid());
    world.thread_control(thread_op::DESTROY, [a.uid().0, 0, 0, 0]).expect("same task");
    assert_eq!((world.current(), world.k.priority(b)), (b, 29));
    world.check();
}

#[test]
fn an_answer_to_another_client_gives_no_foreign_shuttle() {
    let (world, [a, b, c]) = three();
    wake(&world, b);
    world.ipc_call(c.uid());
    // The server takes another call before it answers the first.
    world.ipc(Uid::NIL, Uid::ANY, FOREVER, Fpage::NIL, 0, [0; 8]);
    wake(&world, a);
    world.ipc_call(c.uid());
    assert_eq!((world.current(), world.k.priority(c)), (c, 30));
    world.ipc_reply_wait(b.uid());
    world.check();
    assert_eq!((world.k.priority(b), world.current()), (29, b));
    world.wait();
    wake(&world, c);
    world.ipc_reply_wait(a.uid());
    assert_eq!((world.current(), world.k.priority(a)), (a, 30));
    world.check();
}

#[test]
fn a_call_back_leaves_nobody_without_a_shuttle() {
    let (world, [a, b, c]) = three();
    wake(&world, c);
    world.ipc_call(a.uid());
    world.ipc_call(b.uid());
    world.ipc_call(a.uid());
    assert_eq!(world.current(), a);
    world.check();
    world.ipc_reply_wait(c.uid());
    world.check();
    world.wait();
    wake(&world, a);
    world.ipc_reply_wait(b.uid());
    world.check();
    assert_eq!([a, b, c].map(|thread| world.k.priority(thread)), [30, 29, 28]);
}
