//! The trace ring: what is recorded, for whom, and that nothing is while it is off.

use crate::world::World;
use abi::call::{TRACE_COUNTERS, TRACE_EVENTS, thread_op};
use abi::{Error, Rights, Uid};

fn counters(world: &World) -> [u64; 4] {
    let [made, messages, updates, long, ..] =
        world.thread_control(thread_op::READ_TRACE, [TRACE_COUNTERS, 0, 0, 0]).expect("the first task may");
    [made, messages, updates, long]
}

fn records(world: &World) -> Vec<(&'static str, u64, u64)> {
    let read = |number| world.thread_control(thread_op::READ_TRACE, [number, 0, 0, 0]).ok();
    let name = |event: u64| TRACE_EVENTS[event as usize];
    (0..counters(world)[0])
        .filter_map(read)
        .map(|[_, event, thread, argument, ..]| (name(event), thread, argument))
        .collect()
}

/// The first thread at the lowest priority, and a server of its own task that waits.
fn server(world: &World) -> Uid {
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let server = world.new_thread_uid(1);
    assert_eq!(world.current().uid(), server);
    world.wait();
    assert_eq!(world.current(), world.root);
    server
}

fn round_trip(world: &World, server: Uid) {
    world.ipc_call(server);
    assert_eq!(world.current().uid(), server);
    world.ipc_reply_wait(world.root.uid());
    assert_eq!(world.current(), world.root);
}

#[test]
fn a_round_trip_is_two_messages_and_two_switches() {
    let world = World::new(256);
    let server = server(&world);
    round_trip(&world, server);
    assert_eq!(counters(&world)[0], 0, "something is recorded while nobody is traced");
    for thread in [0, server.0] {
        world.thread_control(thread_op::TRACE, [thread, 3, 0, 0]).expect("the first task may");
    }
    let root = world.root.uid();
    round_trip(&world, server);
    let expected =
        [("ipc", root, server), ("switch", root, server), ("ipc", server, root), ("switch", server, root)];
    assert_eq!(records(&world), expected.map(|(event, thread, to)| (event, thread.0, to.0)));
    // Control went to and fro, and no queue was touched: that is lazy scheduling.
    assert_eq!(counters(&world)[1..], [2, 0, 0]);
    for thread in [0, server.0] {
        world.thread_control(thread_op::TRACE, [thread, 0, 0, 0]).expect("the first task may");
    }
    round_trip(&world, server);
    assert_eq!(counters(&world)[0], 4);
    world.check();
}

#[test]
fn the_ring_keeps_the_last_and_knows_faults() {
    let world = World::new(256);
    world.thread_control(thread_op::TRACE, [0, 3, 0, 0]).expect("the first task may");
    // Made by one that is traced, and so traced too; its pager is the first thread.
    let server = server(&world);
    for _ in 0..200 {
        round_trip(&world, server);
    }
    let made = counters(&world)[0];
    assert!(made > 700);
    assert_eq!(world.thread_control(thread_op::READ_TRACE, [0; 4]), Err(Error::NoSuch as u64));
    assert_eq!(world.thread_control(thread_op::READ_TRACE, [made, 0, 0, 0]), Err(Error::NoSuch as u64));
    assert_eq!(records(&world).len(), 256);
    world.ipc_call(server);
    world.page_fault(0x7123_4568, Rights::W);
    world.settle();
    // The first thread waits for the server alone, and its fault is a message of its.
    assert_eq!(world.current(), world.root);
    let fault = ("fault", server.0, 0x7123_4568 | Rights::W.0 as u64);
    assert!(records(&world).contains(&fault));
}

#[test]
fn only_the_first_tasks_may_trace() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let child = world.new_task(128);
    let thread = world.new_thread(child, 1);
    assert_eq!(world.current(), thread);
    // A task that the first one made may, and whom it makes may not.
    world.thread_control(thread_op::TRACE, [0, 1, 0, 0]).expect("it may");
    counters(&world);
    let grandchild = world.new_task(32);
    let thread = world.new_thread(grandchild, 2);
    assert_eq!(world.current(), thread);
    for (operation, rdi) in [(thread_op::TRACE, 0), (thread_op::READ_TRACE, TRACE_COUNTERS)] {
        assert_eq!(world.thread_control(operation, [rdi, 1, 0, 0]), Err(Error::Denied as u64));
    }
    world.check();
}
