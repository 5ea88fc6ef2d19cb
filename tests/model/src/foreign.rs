//! Foreign calls, test by test: who may have them, and how they come back where something else happened meanwhile (decision 0082).

use crate::world::World;
use abi::call::{thread_op, vector};
use abi::{Call, Error, Fpage, Kind, TaskId, Timeout, Uid, op};
use kernel::arch::frame::RETURNED;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS};
use kernel::processor::copy;

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

pub(crate) fn wait(world: &World) {
    let flags = op::TAKES_BLOCK | op::TAKES_FOREIGN;
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, flags, [0; 8]);
}

/// A thread in a task, of this priority, whose foreign calls go to `handler`. The root's thread makes it.
pub(crate) fn ward(world: &World, task: TaskId, priority: u64, handler: ThreadRef) -> ThreadRef {
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

pub(crate) fn call(world: &World) {
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
pub(crate) fn world() -> World {
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

/// Memory of the first task for the registers of a late return.
const BLOCK: u64 = 0x4800_0000;

/// The current thread returns late from the call of another, with registers from memory.
fn return_late(world: &World, ward: ThreadRef) -> Result<(), Error> {
    let handler = world.current();
    let task = handler.task();
    let words: [u64; RETURNED] = core::array::from_fn(|number| 0x900 + number as u64);
    let _ = copy::write_words(&world.k, task, (task, BLOCK), words);
    // The other may run at once.
    let _ = world.thread_control(thread_op::FOREIGN_RETURN, [ward.uid().0, BLOCK, 0, 0]);
    match handler.frame.rax.get() {
        0 => Ok(()),
        code => {
            let known = Error::ALL.into_iter().map(|(error, _)| error);
            Err(known
                .into_iter()
                .find(|&error| error as u64 == code)
                .unwrap_or_else(|| panic!("error {code:x}")))
        }
    }
}

fn has_late_result(ward: ThreadRef) -> bool {
    let frame = &ward.frame;
    let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = &frame.w;
    let registers = [rdi, rsi, &frame.rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, &frame.rax];
    ward.is_ready() && registers.iter().zip(0x900..).all(|(register, word)| register.get() == word)
}

/// Others' calls are served meanwhile, or the thread is looked at, or it is stopped: a late return finds it.
#[test]
fn late_returns_find_threads_that_wait() {
    for between in 0..4 {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let other = ward(&world, TaskId::NIL, 3, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        if between == 3 {
            // Its handler has not waited since.
            assert_eq!(return_late(&world, other), Ok(()));
            assert!(has_late_result(other));
            continue;
        }
        wait(&world);
        assert_eq!(world.current(), world.root);
        let ward = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        match between {
            1 => drop(world.thread_control(thread_op::GET_REGISTERS, [other.uid().0, 0, 0, 0])),
            2 => drop(world.thread_control(thread_op::STOP, [other.uid().0, 0, 0, 0])),
            _ => {}
        }
        assert_eq!(return_late(&world, other), Ok(()), "{between}");
        assert!(has_late_result(other), "{between}");
        assert_eq!(return_late(&world, other), Err(Error::BadState), "it has gone on");
        assert_eq!(other.is_stopped(), between == 2);
        while world.current() != handler {
            world.call(Call::ThreadSwitch, 0, [handler.uid().0, 0, 0, 0]).ok();
        }
        give_back(&world);
        assert!(has_its_result(ward), "the other call's return is its own");
        world.check();
    }
}

/// A late return is the handler's alone, and of foreign calls alone.
#[test]
fn late_returns_of_others_are_refused() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let ward = ward(&world, TaskId::NIL, 5, handler);
    call(&world);
    assert_eq!(world.current(), handler);
    world.acting(world.root, || assert_eq!(return_late(&world, ward), Err(Error::BadState)));
    for address in [BLOCK + 4, abi::USER_END - 8, !7] {
        let arguments = [ward.uid().0, address, 0, 0];
        assert_eq!(
            world.thread_control(thread_op::FOREIGN_RETURN, arguments),
            Err(Error::BadArgument as u64)
        );
    }
    give_back(&world);
    assert!(has_its_result(ward));
    world.acting(world.root, || assert_eq!(return_late(&world, ward), Err(Error::BadState)));
    world.check();
}
