//! Many threads: what grows with their number, and what must not.

use crate::world::World;
use abi::call::{task_op, thread_op};
use abi::{Call, Error, Fpage, TaskId, Timeout, Uid};

const CROWD: u64 = 1500;

/// Takes the end of a task step by step. Whoever runs meanwhile waits for anybody. Returns the number of steps.
fn end_task(world: &World, task: TaskId, mut runs: impl FnMut(Uid)) -> u64 {
    world.begin_call(Call::TaskControl, task_op::DESTROY, task.0);
    let mut steps = 0;
    while world.is_busy() || world.current() != world.root {
        if world.is_busy() {
            world.go_on_once();
            steps += 1;
        } else {
            runs(world.current().uid());
            world.wait();
        }
    }
    steps
}

#[test]
fn a_task_of_many_threads_ends_in_a_number_of_steps_that_grows_with_them() {
    let world = World::new(4096);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let task = world.new_task(CROWD + 64);
    let threads: Vec<Uid> = (0..CROWD).map(|_| world.new_thread(task, 0).uid()).collect();
    // Some wait for an answer or message of one of them alone, some to send to one.
    let mut waiting = Vec::new();
    for &thread in threads.iter().step_by(100) {
        // A thread that waits for it would let it run before the first thread.
        world.thread_control(thread_op::STOP, [thread.0, 0, 0, 0]).expect("it may");
        waiting.push(world.new_thread_uid(1));
        let never = (Timeout::NEVER, Timeout::NEVER);
        world.ipc(Uid::NIL, thread, never, Fpage::NIL, 0, [0; 8]);
        waiting.push(world.new_thread_uid(1));
        world.ipc_call(thread);
    }
    assert_eq!(world.current(), world.root);
    let mut told = Vec::new();
    let steps = end_task(&world, task, |uid| {
        assert_eq!(world.result().0, Error::PartnerDied as u64);
        told.push(uid);
    });
    told.sort();
    waiting.sort();
    assert_eq!(told, waiting);
    assert!(steps < 2 * CROWD, "{steps} steps for {CROWD} threads");
    assert!(world.k.task(task).is_none());
    world.check();
}

#[test]
fn a_thread_and_its_task_may_be_ended_at_the_same_time() {
    for delay in 0..24 {
        let world = World::new(1024);
        world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
        let task = world.new_task(400);
        let create = |_| Uid(world.thread_control(thread_op::CREATE, [task.0, 0, 0, 0]).expect("memory")[0]);
        let threads: Vec<Uid> = (0..300).map(create).collect();
        // Another thread of the chief ends one of them, if it still can.
        let helper = world.new_thread_uid(0);
        assert_eq!(world.current(), world.root);
        world.begin_call(Call::TaskControl, task_op::DESTROY, task.0);
        for _ in 0..delay * 30 {
            world.go_on_once();
        }
        world.advance(20_000_000);
        assert_eq!(world.current().uid(), helper);
        world.begin_call(Call::ThreadControl, thread_op::DESTROY, threads[150].0);
        // They take turns, a few steps each, until both are done.
        let mut steps = 0;
        while world.k.task(task).is_some() {
            if world.is_busy() {
                world.go_on_once();
            }
            steps += 1;
            assert!(steps < 10_000, "no end after {delay}");
            if steps % 3 == 0 {
                world.advance(20_000_000);
            }
        }
        world.settle();
        world.check();
    }
}
