//! Prediction domains (decision 0088): the processor forgets predictions between threads of two domains, and only there.

use crate::world::World;
use abi::call::task_op;
use abi::{Error, TaskId};
use kernel::arch::predictions_forgotten;
use kernel::object::ThreadRef;
use kernel::processor;

fn set_domain(world: &World, task: TaskId) -> Result<[u64; 6], u64> {
    world.task_control(task_op::SET_DOMAIN, [task.0, 0, 0, 0])
}

/// A thread of a task that waits for calls: it has answered its first.
fn server(world: &World, task: TaskId) -> ThreadRef {
    let (thread, me) = (world.new_thread(task, 40), world.current());
    world.ipc_call(thread.uid());
    assert_eq!(world.current(), thread);
    world.wait();
    world.ipc_reply_wait(me.uid());
    assert_eq!(world.current(), me);
    thread
}

/// Calls a thread, which answers. Returns how often predictions were forgotten on the way there and back.
fn visit(world: &World, thread: ThreadRef) -> u64 {
    let (before, me) = (predictions_forgotten(), world.current());
    world.ipc_call(thread.uid());
    assert_eq!(world.current(), thread);
    world.check();
    world.ipc_reply_wait(me.uid());
    assert_eq!(world.current(), me);
    world.check();
    predictions_forgotten() - before
}

#[test]
fn predictions_are_forgotten_between_domains_only() {
    let world = World::new(512);
    let [apart, common] = [world.new_task(40), world.new_task(40)];
    assert_eq!(set_domain(&world, apart).map(|[forgets, ..]| forgets), Ok(1));
    let [a, b, c] = [apart, common, apart].map(|task| server(&world, task));
    assert_eq!((visit(&world, a), visit(&world, b)), (2, 0));
    // Among threads of one domain nothing is forgotten, but on the way in and out.
    let (before, me) = (predictions_forgotten(), world.current().uid());
    world.ipc_call(a.uid());
    world.ipc_call(c.uid());
    assert_eq!((world.current(), predictions_forgotten() - before), (c, 1));
    world.ipc_reply_wait(a.uid());
    world.ipc_reply_wait(me);
    assert_eq!(predictions_forgotten() - before, 2);
}

#[test]
fn domains_are_for_tasks_that_are_empty() {
    let world = World::new(512);
    let task = world.new_task(60);
    world.new_stand_in(task);
    assert_eq!(set_domain(&world, task), Err(Error::BadState as u64));
    assert_eq!(set_domain(&world, TaskId::NIL), Err(Error::Denied as u64));
    assert_eq!(world.task(task).domain.get(), TaskId::NIL);
}

#[test]
fn tasks_in_a_domain_make_tasks_in_it() {
    let world = World::new(512);
    let task = world.new_task(200);
    set_domain(&world, task).expect("it is empty");
    let member = world.new_stand_in(task);
    let [child, other] = world.acting(member, || [0; 2].map(|_| world.new_task(20)));
    assert_eq!(world.task(child).domain.get(), task);
    // The chief of the domain is no chief of the child.
    assert_eq!(set_domain(&world, child), Err(Error::Denied as u64));
    world.acting(member, || set_domain(&world, other)).expect("it is empty");
    assert_eq!(world.task(other).domain.get(), other, "domains become finer");
    assert_eq!(processor::domain_of(member), task);
    assert_eq!(set_domain(&world, task), Err(Error::BadState as u64), "it is in use");
}
