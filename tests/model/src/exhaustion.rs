//! Failure: whatever allocates is tried with a quota that is exhausted at the first, second, third … allocation. Each
//! time the call either succeeds or reports the lack, nothing stays allocated that is not in use, and once
//! everything is ended every frame is back.

use crate::world::World;
use abi::call::{task_op, thread_op};
use abi::op;
use abi::{Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};

/// Frames that a task has from the beginning.
const TASK: u64 = 2;

/// Runs `attempt` with 0, 1, 2 … frames to spare until it succeeds, and checks that each failure leaves nothing behind.
fn at_every_allocation(most: u64, mut attempt: impl FnMut(&World, TaskId) -> bool) {
    let world = World::new(1024);
    // Once with plenty, so that what the first task itself needs for it is there.
    let task = world.new_task(100);
    assert!(attempt(&world, task));
    world.task_control(task_op::DESTROY, [task.0, 0, 0, 0]).expect("it is ours");
    for spare in 0..=most {
        let used = world.sigma0.used.get();
        let task = world.new_task(TASK + spare);
        let done = attempt(&world, task);
        world.check();
        world.task_control(task_op::DESTROY, [task.0, 0, 0, 0]).expect("it is ours");
        world.check();
        assert_eq!(world.sigma0.used.get(), used, "with {spare} frames to spare something leaked");
        if done {
            assert!(spare > 0, "it needs no memory");
            return;
        }
    }
    panic!("{most} frames are not enough");
}

#[test]
fn thread_create() {
    at_every_allocation(1, |world, task| {
        let before = world.task(task).used.get();
        match world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!((error, world.task(task).used.get()), (Error::NoMemory as u64, before));
                false
            }
        }
    });
}

#[test]
fn task_create_carves_from_its_creator() {
    let world = World::new(512);
    let left = (world.sigma0.quota.get() - world.sigma0.used.get()) as u64;
    assert_eq!(world.task_control(task_op::CREATE, [left + 1, 1, 0, 0]), Err(Error::NoMemory as u64));
    assert_eq!(world.task_control(task_op::CREATE, [1, 1, 0, 0]), Err(Error::NoMemory as u64));
    world.check();
    let task = world.new_task(left);
    assert_eq!(world.thread_control(thread_op::CREATE, [0, 1, 0, 0]), Err(Error::NoMemory as u64));
    world.check();
    world.task_control(task_op::SET_QUOTA, [task.0, TASK, 0, 0]).expect("it uses no more");
    assert_eq!(world.task_control(task_op::SET_QUOTA, [task.0, 1, 0, 0]), Err(Error::NoMemory as u64));
    world.thread_control(thread_op::CREATE, [0, 1, 0, 0]).expect("there is memory again");
    world.check();
}

/// A map item of any kind arrives whole, or says that it did not.
fn map_item(item: Fpage, window: Fpage, most: u64) {
    at_every_allocation(most + 1, |world, task| {
        if world.task(task).quota.get() as u64 == TASK {
            return false;
        }
        let receiver = world.new_thread(task, 63);
        world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
        assert_eq!(world.current(), receiver, "the most urgent runs");
        world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), window, 0, [0; 8]);
        assert_eq!(world.current(), world.root);
        world.thread_control(thread_op::SET_PRIORITY, [0, 63, 0, 0]).expect("a priority");
        let mut words = [0; 8];
        (words[6], words[7]) = (item.0, 0);
        world.ipc(receiver.uid(), Uid::NIL, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, op::ITEM, words);
        world.check();
        let result = receiver.frame.rax.get() as u32;
        if world.current() == receiver {
            world.wait();
        }
        assert_eq!(Kind::from_eax(result), Some(Kind::Reply));
        result & abi::call::ITEM_WHOLE != 0
    });
}

#[test]
fn map_of_memory() {
    map_item(Fpage::memory(1 << 30, 12, Rights::RWX), Fpage::WHOLE, 5);
}

#[test]
fn map_of_many_pages() {
    map_item(Fpage::memory(1 << 30, 20, Rights::RWX), Fpage::WHOLE, 12);
}

#[test]
fn map_of_a_large_page() {
    map_item(Fpage::memory(1 << 30, 21, Rights::RWX), Fpage::WHOLE, 5);
}

#[test]
fn map_of_ports() {
    map_item(Fpage::ports(0x3f8, 3), Fpage::ports(0, 16), 6);
}

#[test]
fn map_of_lines() {
    map_item(Fpage::interrupt(3), Fpage::interrupts(), 4);
}
