//! Inheritance through rings of waiters, pools of servers and long chains of calls (decision 0081).

use crate::world::World;
use abi::Call;
use abi::call::{DOOR_CALL, door_op, thread_op};
use kernel::object::ThreadRef;
use kernel::object::thread::{State, WORDS};

fn create(world: &World, priority: u8) -> ThreadRef {
    let uid = world.new_thread_uid(priority);
    world.k.thread(uid).expect("it is there")
}

fn call_door(world: &World) {
    world.system_call(DOOR_CALL as u64, 5, [0; WORDS]);
}

fn settle(world: &World) {
    world.settle();
    for _ in 0..100 {
        world.advance(0);
    }
    world.k.settle_all();
}

/// X waits for a server of a task, and one server of the task waits in the queue of X. Another server runs. H, which is urgent, waits for a server
/// and gives up.
#[test]
fn a_ring_of_waiters_loses_the_priority_of_one_that_gave_up() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let s1 = create(&world, 2);
    assert_eq!(world.current(), s1);
    world.call(Call::DoorControl, door_op::CREATE, [5, 0x2000, 0, 0]).expect("a door");
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    let s2 = create(&world, 2);
    assert_eq!(world.current(), s2);
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    assert_eq!(world.current(), world.root);
    let c1 = create(&world, 2);
    assert_eq!(world.current(), c1);
    call_door(&world);
    let first = world.current();
    assert!(first == s1 || first == s2);
    let c2 = create(&world, 3);
    assert_eq!(world.current(), c2);
    call_door(&world);
    let second = world.current();
    assert!(second != first && (second == s1 || second == s2));
    let x = create(&world, 4);
    assert_eq!(world.current(), x);
    call_door(&world);
    assert_eq!(x.state.get(), State::Queueing);
    settle(&world);
    if world.current() != second {
        world.call(Call::ThreadSwitch, 0, [second.uid().0, 0, 0, 0]).ok();
    }
    assert_eq!(world.current(), second);
    assert_eq!((world.k.priority(first), world.k.priority(second)), (4, 4));
    world.call(Call::ThreadSwitch, 0, [first.uid().0, 0, 0, 0]).ok();
    assert_eq!(world.current(), first);
    world.ipc_call(x.uid());
    assert_eq!(first.state.get(), State::Sending);
    assert_eq!(world.current(), second);
    let h = create(&world, 9);
    assert_eq!(world.current(), h);
    call_door(&world);
    assert_eq!(h.state.get(), State::Queueing);
    settle(&world);
    assert_eq!(world.current(), second);
    assert_eq!(world.k.priority(second), 9);
    // H gives up.
    world.thread_control(thread_op::ABORT, [h.uid().0, 0, 0, 0]).ok();
    world.call(Call::ThreadSwitch, 0, [h.uid().0, 0, 0, 0]).ok();
    assert_eq!(world.current(), h);
    world.wait();
    // And even ends.
    settle(&world);
    assert_eq!(world.current(), second);
    world.thread_control(thread_op::DESTROY, [h.uid().0, 0, 0, 0]).ok();
    settle(&world);
    world.check();
    assert_eq!(world.current(), second);
    assert_eq!(world.k.priority(second), 4, "nobody above 4 waits");
}

/// Without ill will: a server calls a door of its own task while all of its servers are busy. It stands in the queue that
/// it inherits from itself; the other server, which runs, keeps what somebody else lent for a moment.
#[test]
fn a_server_that_calls_its_own_task_loses_the_priority_of_one_that_gave_up() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    create(&world, 2);
    world.call(Call::DoorControl, door_op::CREATE, [5, 0x2000, 0, 0]).expect("a door");
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    create(&world, 2);
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    assert_eq!(world.current(), world.root);
    let c1 = create(&world, 2);
    call_door(&world);
    let first = world.current();
    create(&world, 3);
    call_door(&world);
    let second = world.current();
    // The first one's client becomes the more urgent, so it runs.
    world.thread_control(thread_op::SET_PRIORITY, [c1.uid().0, 4, 0, 0]).ok();
    assert_eq!(world.current(), first);
    call_door(&world);
    assert_eq!(first.state.get(), State::Queueing);
    assert_eq!((world.current(), world.k.priority(second)), (second, 4));
    settle(&world);
    let before = world.k.priority(second);
    let h = create(&world, 9);
    assert_eq!(world.current(), h);
    call_door(&world);
    settle(&world);
    assert_eq!((world.current(), world.k.priority(second)), (second, 9));
    world.thread_control(thread_op::DESTROY, [h.uid().0, 0, 0, 0]).expect("it ends");
    settle(&world);
    world.check();
    assert_eq!((world.current(), world.k.priority(second)), (second, before));
}

/// A task without a free server has a watcher, which is to make one. Somebody urgent waits, and a hog of a middle priority runs.
#[test]
fn the_maker_of_a_server_inherits() {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let watcher = create(&world, 2);
    assert_eq!(world.current(), watcher);
    world.call(Call::DoorControl, door_op::CREATE, [5, 0x2000, 0, 0]).expect("a door");
    world.call(Call::DoorControl, door_op::SHORTAGE, [0; 4]).ok();
    assert_eq!(world.current(), world.root);
    let hog = create(&world, 5);
    assert_eq!(world.current(), hog);
    let h = create(&world, 9);
    assert_eq!(world.current(), h);
    call_door(&world);
    settle(&world);
    assert!(h.state.get() == State::Queueing && watcher.is_ready());
    assert_eq!(world.current(), watcher, "the hog runs, and nobody makes a server");

    // Another thread of the task asks, and is the maker from then on.
    assert_eq!(watcher.home.effective.get(), 9);
    let second = world.new_stand_in(world.sigma0.id.get());
    world
        .acting(second, || world.call(Call::DoorControl, door_op::SHORTAGE, [0; 4]).expect("somebody waits"));
    world.k.settle_all();
    assert_eq!([watcher, second].map(|it| it.home.effective.get()), [2, 9]);
}

/// A chain of `calls` calls; somebody urgent stands in the queue of the last.
fn at_the_end_of_a_chain(calls: usize) -> (u8, u8) {
    let world = World::new(512);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let servers: Vec<ThreadRef> = (0..calls)
        .map(|_| {
            let server = create(&world, 2);
            assert_eq!(world.current(), server);
            world.wait();
            server
        })
        .collect();
    let client = create(&world, 2);
    assert_eq!(world.current(), client);
    for server in &servers {
        world.ipc_call(server.uid());
        assert_eq!(world.current(), *server);
    }
    let last = world.current();
    let h = create(&world, 9);
    assert_eq!(world.current(), h);
    world.ipc_call(last.uid());
    settle(&world);
    world.check();
    assert_eq!(h.state.get(), State::Sending);
    (world.k.priority(last), client.home.effective.get())
}

#[test]
fn a_chain_of_seven_calls_inherits() {
    assert_eq!(at_the_end_of_a_chain(7).0, 9);
}

/// The longest chain that counts.
#[test]
fn a_chain_of_eight_calls_inherits() {
    assert_eq!(at_the_end_of_a_chain(8).0, 9);
}
