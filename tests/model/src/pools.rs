//! Inheritance by servers of doors: a caller that finds no free server waits for all that serve its task's callers, and each of them, and each
//! for whom it works, is as urgent as that meanwhile.

use crate::world::World;
use abi::Call;
use abi::call::{DOOR_CALL, DOOR_RETURN, door_op, thread_op};
use kernel::object::ThreadRef;
use kernel::object::thread::WORDS;

/// Number of the door, for its task.
const DOOR: u64 = 5;

/// A thread of the first task, which is more urgent than whoever runs, and so runs from now on.
fn begin(world: &World, priority: u8) -> ThreadRef {
    let uid = world.new_thread_uid(priority);
    let thread = world.k.thread(uid).expect("just made");
    assert_eq!(world.current(), thread);
    thread
}

fn call_door(world: &World) {
    world.system_call(DOOR_CALL as u64, DOOR, [0; WORDS]);
}

/// Lets all priorities be computed that are to be computed anew.
fn settle(world: &World) {
    world.settle();
    for _ in 0..100 {
        world.advance(0);
    }
    world.k.settle_all();
    world.check();
}

#[test]
fn a_caller_that_was_served_inherits_no_more() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0; 4]).expect("a priority");
    let server = begin(&world, 2);
    world.call(Call::DoorControl, door_op::CREATE, [DOOR, 0x2000, 0, 0]).expect("a door");
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    let served = begin(&world, 2);
    call_door(&world);
    assert_eq!(world.current(), server);
    let priorities = || (world.k.priority(server), served.home.effective.get());
    let [first, second] = [9, 10].map(|priority| {
        let caller = begin(&world, priority);
        call_door(&world);
        assert_eq!((world.current(), priorities()), (server, (priority, priority)));
        caller
    });
    world.system_call(DOOR_RETURN as u64, 0, [0; WORDS]);
    settle(&world);
    // The more urgent one is served now, and the other still waits: for the server alone.
    assert_eq!((world.current(), priorities()), (server, (10, 2)));
    assert_eq!(server.home.effective.get(), 9);
    let set_priority = |thread: ThreadRef, priority: u64| {
        world.thread_control(thread_op::SET_PRIORITY, [thread.uid().0, priority, 0, 0]).expect("its own");
        settle(&world);
    };
    set_priority(second, 3);
    assert_eq!(world.k.priority(server), 9);
    set_priority(first, 1);
    assert_eq!(world.k.priority(server), 3);
}
