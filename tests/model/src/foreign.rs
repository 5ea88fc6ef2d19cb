//! Foreign calls, test by test: who may have them, and how they come back where something else happened meanwhile (decision 0082).

use crate::world::World;
use abi::call::{thread_op, vector};
use abi::{Call, Error, Fpage, Kind, TaskId, Timeout, Uid, op};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS};

/// Number by which a handler returns.
const FOREIGN_RETURN: u64 = 0xffff_fffb;

const LABEL: u64 = 0x77;

/// A thread that takes foreign calls and waits, at a high priority.
fn handler(world: &World, task: TaskId) -> ThreadRef {
    let handler = world.new_thread(task, 9);
    world.settle();
    assert_eq!(world.current(), handler);
    wait(world);
    handler
}

fn wait(world: &World) {
    let flags = op::TAKES_BLOCK | op::TAKES_FOREIGN;
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, flags, [0; 8]);
}

/// A thread in a task, of this priority, whose foreign calls go to `handler`. The root's thread makes it.
fn ward(world: &World, task: TaskId, priority: u64, handler: ThreadRef) -> ThreadRef {
    let root = world.root.uid().0;
    let uid = world
        .thread_control(thread_op::CREATE, [task.0, priority, root, handler.uid().0])
        .expect("there is memory")[0];
    world.thread_control(thread_op::DENY_NATIVE, [uid, 1, LABEL, 0]).expect("it is ours");
    let ward = world.k.thread(Uid(uid)).expect("just made");
    start(world, ward);
    ward
}

fn start(world: &World, thread: ThreadRef) {
    world.thread_control(thread_op::START, [thread.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    world.settle();
    assert_eq!(world.current(), thread);
}

fn call(world: &World) {
    world.system_call(39, 3, [7; WORDS]);
}

/// The handler returns, with a register that says so.
fn give_back(world: &World) {
    world.system_call(FOREIGN_RETURN, 0x5555, [8; WORDS]);
    world.settle();
    for _ in 0..10 {
        world.advance(0);
    }
}

fn has_its_result(ward: ThreadRef) -> bool {
    ward.is_ready() && ward.frame.partner() == 0x5555 && ward.frame.w[Frame::RDI].get() == 8
}

/// The first task's thread is less urgent than all others.
fn world() -> World {
    let world = World::new(1000);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    world
}

#[test]
fn a_handler_has_calls_of_its_own_wards() {
    for is_own_task in [true, false] {
        let world = world();
        let task = if is_own_task { TaskId::NIL } else { world.new_task(100) };
        let handler = handler(&world, TaskId::NIL);
        let ward = ward(&world, task, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        assert_eq!(handler.frame.partner(), 3);
        give_back(&world);
        assert!(has_its_result(ward));
        world.check();
    }
}

/// A program aims one of its threads at a handler of another task, with the label of a thread that the handler knows.
#[test]
fn nobody_elses_calls_look_like_those_of_a_ward() {
    let world = world();
    let [servers, strangers] = [world.new_task(100), world.new_task(100)];
    let handler = handler(&world, servers);
    let stranger = ward(&world, strangers, 5, handler);
    call(&world);
    assert_eq!(world.current(), handler);
    assert_eq!(
        (world.result().0 as u32, handler.frame.partner()),
        (Kind::Exception as u32, stranger.uid().0)
    );
    assert_eq!(handler.frame.w[Frame::RDI].get(), vector::SYSCALL);
    world.check();
}

/// A return restores the stack pointer with which its thread began to wait; a thread that never waited for foreign calls has none.
#[test]
fn a_return_before_any_call_is_an_error() {
    let world = world();
    let thread = world.new_thread(TaskId::NIL, 9);
    world.settle();
    assert_eq!(world.current(), thread);
    world.system_call(FOREIGN_RETURN, 0x5555, [8; WORDS]);
    assert_eq!(world.current(), thread, "it goes on at once");
    assert_eq!(world.result().0, Error::BadState as u64);
    world.check();
}

/// Whether a call is a foreign one does not depend on registers that somebody changes meanwhile.
#[test]
fn registers_that_change_meanwhile_keep_no_return_away() {
    for negative in [-4i64 as u64, 0x8000_0000, 39] {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let ward = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        // Looking makes the wait one that all code knows; then the result changes.
        world.acting(world.root, || {
            world.thread_control(thread_op::GET_REGISTERS, [ward.uid().0, 0, 0, 0]).expect("it waits");
        });
        ward.frame.rax.set(negative);
        world.settle();
        give_back(&world);
        assert!(has_its_result(ward), "{negative:x}");
        world.check();
    }
}

/// A client gives up, and takes its shuttle back from its server, whose foreign call is done on it.
#[test]
fn calls_return_although_their_shuttle_was_taken() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let me = world.root.uid().0;
    let server = world.new_thread(TaskId::NIL, 5);
    assert_eq!(world.current(), server);
    world.wait();
    world.thread_control(thread_op::SET_PAGER, [server.uid().0, me, handler.uid().0, 0]).expect("it is ours");
    world.thread_control(thread_op::DENY_NATIVE, [server.uid().0, 1, LABEL, 0]).expect("it is ours");
    let client = world.new_thread(TaskId::NIL, 4);
    assert_eq!(world.current(), client);
    let patience = (Timeout::NEVER, Timeout::from_us(1000));
    world.ipc(server.uid(), server.uid(), patience, Fpage::NIL, 0, [1; 8]);
    assert_eq!(world.current(), server);
    call(&world);
    assert_eq!(world.current(), handler);
    world.advance(2_000_000);
    world.settle();
    assert_eq!(client.frame.head() & 0xff, Error::ReceiveTimeout as u64);
    while world.current() != handler {
        world.call(Call::ThreadSwitch, 0, [handler.uid().0, 0, 0, 0]).ok();
    }
    give_back(&world);
    assert!(has_its_result(server));
    world.check();
}
