//! Foreign calls, test by test: who may have them, and how they come back where something else happened meanwhile (decision 0082).

mod late;

use crate::world::World;
use abi::call::{ALERT_SET, FLAGS, RESUME_AS_IS, thread_op, vector};
use abi::foreign::Registers;
use abi::{Call, Error, Fpage, Kind, Rights, TaskId, Timeout, USER_END, Uid, op};
use kernel::arch::extended::{registers, set_registers};
use kernel::arch::frame::RETURNED;
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Errand, Frame, State, WORDS, Wait};
use kernel::processor::copy;

/// Number by which a handler returns.
const FOREIGN_RETURN: u64 = 0xffff_fffb;

const LABEL: u64 = 0x77;

/// A thread that takes foreign calls and waits, at a high priority.
pub(crate) fn handler(world: &World, task: TaskId) -> ThreadRef {
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
pub(crate) fn give_back(world: &World) {
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

/// Instruction pointer, stack pointer and flags of a thread in a foreign call are read and set while it goes on waiting in the way that the fast path ends. All else that is
/// asked or set makes the wait one that all code knows, and finds the same.
#[test]
fn a_call_returns_to_another_place() {
    let general = |world: &World, operation: u32, thread: Uid, [group, a, b, c, d]: [u64; 5]| {
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI], w[Frame::R10], w[Frame::R8], w[Frame::R9]) =
            (thread.0, group, b, c, d);
        world.system_call(Call::ThreadControl as u64 | u64::from(operation) << 8, a, w);
        world.result().0
    };
    for (unfolds, rax) in [(false, 0), (true, 0), (true, 9)] {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let ward = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        let uid = ward.uid();
        let place = |world: &World| {
            let found = world.thread_control(thread_op::GET_REGISTERS, [uid.0, 0, 0, 0]).expect("it waits");
            [found[2], found[3], found[4], found[5]]
        };
        let [ip, sp, flags, _] = place(&world);
        assert_eq!((ip, sp, flags & !0x28_0dd5), (ward.user_ip(), ward.user_sp(), FLAGS));
        assert!(ward.is_folded_foreign());
        for wrong in [[0, USER_END, sp, flags, 0], [0, ip, 1 << 47, flags, 0]] {
            assert_eq!(general(&world, thread_op::SET_REGISTERS, uid, wrong), Error::BadArgument as u64);
            assert_eq!(place(&world), [ip, sp, flags, 0]);
        }
        let set = [0, 0x12340, 0xabc0, FLAGS | 1 | 1 << 12 | 1 << 62, rax];
        assert_eq!(general(&world, thread_op::SET_REGISTERS, uid, set), 0);
        assert_eq!(place(&world), [0x12340, 0xabc0, FLAGS | 1, rax]);
        if unfolds {
            world.thread_control(thread_op::GET_REGISTERS, [uid.0, 2, 0, 0]).expect("it waits");
        }
        assert_eq!(ward.is_folded_foreign(), !unfolds);
        assert_eq!(place(&world), [0x12340, 0xabc0, FLAGS | 1, rax]);
        world.check();
        give_back(&world);
        assert!(has_its_result(ward));
        assert_eq!((ward.user_ip(), ward.user_sp()), (0x12340, 0xabc0));
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
            world.thread_control(thread_op::GET_REGISTERS, [ward.uid().0, 2, 0, 0]).expect("it waits");
        });
        ward.frame.rax.set(negative);
        world.settle();
        give_back(&world);
        assert!(has_its_result(ward), "{negative:x}");
        world.check();
    }
}

/// A server that waits for a client, and whose native calls are denied.
fn server_in_front(world: &World, handler: ThreadRef) -> ThreadRef {
    let me = world.root.uid().0;
    let server = world.new_thread(TaskId::NIL, 5);
    switch_to(world, server);
    world.wait();
    world.thread_control(thread_op::SET_PAGER, [server.uid().0, me, handler.uid().0, 0]).expect("it is ours");
    world.thread_control(thread_op::DENY_NATIVE, [server.uid().0, 1, LABEL, 0]).expect("it is ours");
    server
}

/// A server that makes a foreign call for its client, which has this priority and patience. Its handler has the call.
pub(crate) fn server_with_client(
    world: &World,
    handler: ThreadRef,
    priority: u8,
    patience: Timeout,
) -> (ThreadRef, ThreadRef) {
    let server = server_in_front(world, handler);
    let client = world.new_thread(TaskId::NIL, priority);
    assert_eq!(world.current(), client);
    world.ipc(server.uid(), server.uid(), (Timeout::NEVER, patience), Fpage::NIL, 0, [1; 8]);
    assert_eq!(world.current(), server);
    call(world);
    assert_eq!(world.current(), handler);
    (server, client)
}

/// A client gives up, and takes its shuttle back from its server, whose foreign call is done on it.
#[test]
fn calls_return_although_their_shuttle_was_taken() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let (server, client) = server_with_client(&world, handler, 4, Timeout::from_us(1000));
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

/// Two servers make foreign calls for their clients, which both give up. The handler, which has left the first call unanswered, returns from the
/// second, and then from the first by its name.
#[test]
fn a_return_goes_to_the_last_of_several_that_were_cut_off() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let patience = Timeout::from_us(1000);
    let (first, _) = server_with_client(&world, handler, 4, patience);
    wait(&world);
    let (second, _) = server_with_client(&world, handler, 3, patience);
    world.advance(2_000_000);
    world.settle();
    switch_to(&world, handler);
    give_back(&world);
    assert!(has_its_result(second));
    assert!(!first.is_ready() && !has_its_result(first), "it has an answer that was not its own");
    world.acting(handler, || assert_eq!(return_late(&world, first), Ok(())));
    assert!(has_late_result(first));
    world.check();
}

fn switch_to(world: &World, handler: ThreadRef) {
    while world.current() != handler {
        world.call(Call::ThreadSwitch, 0, [handler.uid().0, 0, 0, 0]).ok();
    }
}

/// A handler calls somebody in the middle of a foreign call, has no answer in time, and so takes the shuttle back under a newer reference; then it is taken
/// from the handler.
#[test]
fn a_return_finds_its_caller_behind_a_call_that_timed_out() {
    let world = world();
    let somebody = world.new_thread(TaskId::NIL, 9);
    world.settle();
    assert_eq!(world.current(), somebody);
    wait(&world);
    let handler = handler(&world, TaskId::NIL);
    let (server, client) = server_with_client(&world, handler, 4, Timeout::from_us(3000));
    let patience = (Timeout::NEVER, Timeout::from_us(100));
    world.ipc(somebody.uid(), somebody.uid(), patience, Fpage::NIL, 0, [0; 8]);
    assert_eq!(world.current(), somebody);
    world.advance(1_000_000);
    world.settle();
    assert_eq!(handler.frame.head() & 0xff, Error::ReceiveTimeout as u64);
    world.advance(4_000_000);
    world.settle();
    assert_eq!(client.frame.head() & 0xff, Error::ReceiveTimeout as u64);
    switch_to(&world, handler);
    give_back(&world);
    assert!(has_its_result(server));
    world.check();
}

/// A handler returns from a call whose thread was aborted, or has returned from it late by its name. Another caller, whose call it has left unanswered and whose
/// client has given up, does not get the registers.
#[test]
fn a_return_to_who_does_not_wait_goes_to_nobody_who_was_cut_off() {
    for is_late in [false, true] {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let (server, _) = server_with_client(&world, handler, 4, Timeout::from_us(1000));
        wait(&world);
        world.advance(2_000_000);
        world.settle();
        let ward = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        if is_late {
            assert_eq!(return_late(&world, ward), Ok(()));
        } else {
            world.thread_control(thread_op::ABORT, [ward.uid().0, 0, 0, 0]).expect("it waits");
        }
        world.settle();
        switch_to(&world, handler);
        give_back(&world);
        assert!(!has_its_result(server) && !has_its_result(ward), "{is_late}");
        assert!(!server.is_ready());
        world.check();
    }
}

/// A client gives up one server and calls another; both make foreign calls, and the handler leaves the first one unanswered. The second server is aborted, or hears of
/// a late return, before the handler returns from its call: the first one, which waits for another answer, does not get the registers.
#[test]
fn a_return_to_who_does_not_wait_goes_to_no_other_server_of_its_client() {
    for case in 0..8 {
        let [gives_up, is_late, is_cut_at_work] = [1, 2, 4].map(|bit| case & bit != 0);
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let patience = (Timeout::NEVER, Timeout::from_us(1000));
        let (first, client) = server_with_client(&world, handler, 4, patience.1);
        if !is_cut_at_work {
            wait(&world);
        }
        world.advance(2_000_000);
        world.settle();
        if is_cut_at_work {
            switch_to(&world, handler);
            wait(&world);
        }
        let second = server_in_front(&world, handler);
        switch_to(&world, client);
        world.ipc(second.uid(), second.uid(), patience, Fpage::NIL, 0, [2; 8]);
        assert_eq!(world.current(), second);
        call(&world);
        assert_eq!(world.current(), handler);
        if gives_up {
            world.advance(4_000_000);
            world.settle();
            switch_to(&world, handler);
        }
        if is_late {
            assert_eq!(return_late(&world, second), Ok(()));
        } else {
            world.thread_control(thread_op::ABORT, [second.uid().0, 0, 0, 0]).expect("it waits");
        }
        world.settle();
        switch_to(&world, handler);
        give_back(&world);
        assert!(!has_its_result(first) && !has_its_result(second), "{case}");
        assert!(!first.is_ready(), "{case}");
        world.acting(handler, || assert_eq!(return_late(&world, first), Ok(())));
        assert!(has_late_result(first));
        world.check();
    }
}

/// Memory of the first task for the registers of a late return.
const BLOCK: u64 = 0x4800_0000;

/// An address at which the first task has no memory.
const NOWHERE: u64 = 0x7000_0000_0000;

/// The flag of a thread that is stepped (TF).
const STEP: u64 = 1 << 8;

/// Writes the registers of a late return to memory of the current thread's task.
fn write_registers(world: &World, at: u64) {
    let task = world.current().task();
    let words: [u64; RETURNED] = core::array::from_fn(|number| 0x900 + number as u64);
    let _ = copy::write_words(&world.k, task, (task, at), words);
}

/// The current thread returns late from the call of another, with registers from memory.
fn return_late(world: &World, ward: ThreadRef) -> Result<(), Error> {
    write_registers(world, BLOCK);
    return_from(world, ward, BLOCK)
}

/// Does so with registers that may not be there.
fn return_from(world: &World, ward: ThreadRef, at: u64) -> Result<(), Error> {
    let handler = world.current();
    // The other may run at once.
    let _ = world.thread_control(thread_op::FOREIGN_RETURN, [ward.uid().0, at, 0, 0]);
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

/// Others' calls are served meanwhile, or the thread is looked at, stopped, stepped, alerted or gets another priority: a late return finds it.
#[test]
fn late_returns_find_threads_that_wait() {
    for between in 0..8 {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let other = ward(&world, TaskId::NIL, 3, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        if between == 3 || between == 7 {
            // Its handler has not waited since.
            if between == 7 {
                world.thread_control(thread_op::STOP, [other.uid().0, 0, 0, 0]).expect("it is ours");
            }
            assert_eq!(return_late(&world, other), Ok(()));
            assert!(has_late_result(other));
            assert_eq!((world.current(), handler.hot.shuttle.get()), (handler, handler.home_ref()));
            continue;
        }
        wait(&world);
        assert_eq!(world.current(), world.root);
        let ward = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        match between {
            1 => drop(world.thread_control(thread_op::GET_REGISTERS, [other.uid().0, 2, 0, 0])),
            2 => drop(world.thread_control(thread_op::STOP, [other.uid().0, 0, 0, 0])),
            4 => drop(world.thread_control(thread_op::STEP, [other.uid().0, 1, 0, 0])),
            5 => drop(world.thread_control(thread_op::ALERT, [other.uid().0, ALERT_SET, 0, 0])),
            6 => drop(world.thread_control(thread_op::SET_PRIORITY, [other.uid().0, 4, 0, 0])),
            _ => {}
        }
        assert_eq!(return_late(&world, other), Ok(()), "{between}");
        assert!(has_late_result(other), "{between}");
        assert_eq!(return_late(&world, other), Err(Error::BadState), "it has gone on");
        assert_eq!(other.is_stopped(), between == 2);
        assert_eq!(other.frame.rflags.get() & STEP != 0, between == 4);
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

/// The handler has more to do, and goes on; but if the thread is more urgent that goes first, and of two that are as urgent the one whose shuttle
/// the handler was on.
#[test]
fn a_handler_goes_on_after_a_late_return() {
    for (has_waited, priority, goes_on) in [
        (true, 5, true),
        (true, 9, true),
        (true, 12, false),
        (false, 5, true),
        (false, 9, false),
        (false, 12, false),
    ] {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let ward = ward(&world, TaskId::NIL, priority, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        if has_waited {
            wait(&world);
            assert_eq!(world.current(), world.root);
            // Another call wakes it, on another shuttle.
            let other = self::ward(&world, TaskId::NIL, 1, handler);
            call(&world);
            assert_eq!((world.current(), handler.hot.shuttle.get()), (handler, other.home_ref()));
            world.thread_control(thread_op::SET_PRIORITY, [other.uid().0, 9, 0, 0]).expect("it is ours");
        }
        assert_eq!(return_late(&world, ward), Ok(()));
        assert!(has_late_result(ward));
        let (runs, is_ready) = if goes_on { (handler, ward) } else { (ward, handler) };
        assert_eq!(world.current(), runs, "{has_waited} {priority}");
        assert!(is_ready.is_ready() && !is_ready.is_stopped());
        world.check();
        // The other one runs next: when the handler stops, or the thread calls again, and finds its handler busy.
        if goes_on {
            world.thread_control(thread_op::STOP, [0; 4]).ok();
        } else {
            call(&world);
        }
        assert_eq!(world.current(), is_ready);
        assert_eq!(ward.hot.shuttle.get(), ward.home_ref());
        world.check();
    }
}

/// A thread that waits for an answer to a page fault, or to an exception that is no foreign call, has made no call from which anybody could return, although
/// it did before: all of its registers stay as they are.
#[test]
fn late_returns_are_for_foreign_calls_alone() {
    for kind in 0..3 {
        let world = world();
        let handler = handler(&world, TaskId::NIL);
        let first = ward(&world, TaskId::NIL, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        give_back(&world);
        assert_eq!(world.current(), first);
        match kind {
            0 => {
                first.fault.pager.set(handler.uid());
                world.page_fault(NOWHERE, Rights::R);
            }
            1 => {
                world.exception(6);
            }
            // A native call, which is denied to it.
            _ => world.system_call(Call::Clock as u64, 0, [0; WORDS]),
        }
        assert_eq!((world.current(), first.wait()), (handler, Wait::Answer(handler.uid())));
        let before = first.frame.registers().map(|register| register.get());
        assert_eq!(return_late(&world, first), Err(Error::BadState), "{kind}");
        assert_eq!(first.frame.registers().map(|register| register.get()), before);
        assert_eq!((first.wait(), world.current()), (Wait::Answer(handler.uid()), handler));
        assert_ne!(first.errand.get(), Errand::Ipc);
        world.check();
    }
}

/// A call that stands in its handler's queue has not come yet.
#[test]
fn calls_that_have_not_come_yet_are_not_returned_from() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let first = ward(&world, TaskId::NIL, 12, handler);
    call(&world);
    assert_eq!(world.current(), handler);
    let second = ward(&world, TaskId::NIL, 13, handler);
    call(&world);
    assert_eq!((world.current(), second.state.get()), (handler, State::Sending));
    assert_eq!(return_late(&world, second), Err(Error::BadState));
    assert_eq!(second.frame.partner(), 3);
    assert_eq!(return_late(&world, first), Ok(()));
    assert!(has_late_result(first));
    world.check();
}

/// The block lies in two pages that the handler lacks, and its pager brings. Meanwhile the thread may have been aborted: then the return is none.
#[test]
fn a_late_return_waits_for_its_block() {
    for is_aborted in [false, true] {
        let world = world();
        let (there, at) = (0x5000_0000, 0x10_0fc0);
        write_registers(&world, there + 0xfc0);
        let task = world.new_task(100);
        let handler = handler(&world, task);
        handler.fault.pager.set(world.root.uid());
        let ward = ward(&world, task, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        wait(&world);
        let other = self::ward(&world, task, 5, handler);
        call(&world);
        assert_eq!(world.current(), handler);
        // It faults, and its pager runs.
        world.thread_control(thread_op::FOREIGN_RETURN, [ward.uid().0, at, 0, 0]).ok();
        for page in 0..2 {
            assert_eq!((world.current(), handler.state.get()), (world.root, State::Sending), "page {page}");
            world.wait();
            assert_eq!(world.root.frame.w[0].get() >> 12, (at >> 12) + page);
            assert_eq!(ward.wait(), Wait::Answer(handler.uid()));
            let fpage = |at: u64| Fpage::memory(at, 12, Rights::RWX);
            let plan = Plan::fit(fpage(there + page * 4096), 0, fpage(at - 0xfc0 + page * 4096));
            assert!(world.give(plan.expect("one page"), world.task(task)));
            if is_aborted && page == 1 {
                world.thread_control(thread_op::ABORT, [ward.uid().0, 0, 0, 0]).expect("it waits");
            }
            let label = u64::from(RESUME_AS_IS) << 32;
            let mut w = [0; WORDS];
            w[Frame::R15] = abi::call::timeouts(Timeout::ZERO, Timeout::ZERO);
            world.system_call(Call::Ipc as u64 | label, handler.uid().0, w);
            world.settle();
        }
        let result = if is_aborted { Error::BadState as u64 } else { 0 };
        assert_eq!((world.current(), handler.frame.rax.get()), (handler, result));
        assert_eq!(has_late_result(ward), !is_aborted);
        assert_ne!(other.wait(), Wait::No);
        world.check();
    }
}

/// Nobody brings a page of the block: the call has an error, and the thread waits as before.
#[test]
fn a_late_return_without_a_block_is_an_error() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    handler.fault.pager.set(Uid::NIL);
    let ward = ward(&world, TaskId::NIL, 5, handler);
    call(&world);
    assert_eq!(world.current(), handler);
    // The last place where a block may be is one of them.
    for at in [NOWHERE, abi::USER_END - Registers::LEN_BYTES] {
        assert_eq!(return_from(&world, ward, at), Err(Error::NoAccess));
        assert_eq!((world.current(), ward.wait()), (handler, Wait::Answer(handler.uid())));
    }
    assert_eq!(return_late(&world, ward), Ok(()));
    assert!(has_late_result(ward));
    world.check();
}

/// Vector registers pass with the thread's shuttle: the thread finds those that its handler left there, and the handler finds its own.
#[test]
fn a_late_return_gives_extended_state_back() {
    for has_waited in [false, true] {
        let world = world();
        let handler = world.new_thread(TaskId::NIL, 9);
        set_registers(1);
        wait(&world);
        let ward = ward(&world, TaskId::NIL, 5, handler);
        set_registers(2);
        call(&world);
        assert_eq!((world.current(), registers()), (handler, 2));
        set_registers(3);
        if has_waited {
            wait(&world);
            let _other = self::ward(&world, TaskId::NIL, 6, handler);
            set_registers(4);
            call(&world);
            assert_eq!((world.current(), registers()), (handler, 4));
            set_registers(5);
        }
        assert_eq!(return_late(&world, ward), Ok(()));
        if has_waited {
            assert_eq!((world.current(), registers()), (handler, 5));
        }
        wait(&world);
        assert_eq!((world.current(), registers()), (ward, 3));
        world.check();
    }
}

/// A handler faults in the middle of a foreign call, and the thread is taken from its call while the handler's pager works on its shuttle. Nothing of the pager's stays there:
/// the thread begins anew, and the handler goes on with its own.
#[test]
fn a_thread_has_nothing_of_its_handlers_pager() {
    let world = world();
    let pager = handler(&world, TaskId::NIL);
    let handler = handler(&world, TaskId::NIL);
    world.thread_control(thread_op::SET_PAGER, [handler.uid().0, pager.uid().0, 0, 0]).expect("it is ours");
    let ward = ward(&world, TaskId::NIL, 5, handler);
    set_registers(2);
    call(&world);
    assert_eq!((world.current(), registers()), (handler, 2));
    world.page_fault(0x7000_0000, Rights::R);
    assert_eq!(world.current(), pager);
    set_registers(9);
    world.thread_control(thread_op::ABORT, [ward.uid().0, 0, 0, 0]).expect("it waits");
    assert!(ward.is_stopped() && ward.is_ready());
    let label = u64::from(RESUME_AS_IS) << 32;
    world.system_call(abi::call::IPC_REPLY_WAIT as u64 | label, handler.uid().0, [0; WORDS]);
    world.settle();
    assert_eq!((world.current(), registers()), (handler, 2));
    world.thread_control(thread_op::RESUME, [ward.uid().0, 0, 0, 0]).expect("it is stopped");
    set_registers(3);
    wait(&world);
    assert_eq!((world.current(), registers()), (ward, 0));
    world.check();
}

/// A server that makes a foreign call for an urgent client, which its handler answers late, goes on as urgent as that.
#[test]
fn a_late_return_gives_a_clients_shuttle_back() {
    let world = world();
    let handler = handler(&world, TaskId::NIL);
    let (server, client) = server_with_client(&world, handler, 12, Timeout::NEVER);
    wait(&world);
    let _other = ward(&world, TaskId::NIL, 4, handler);
    call(&world);
    assert_eq!((world.current(), world.k.priority(handler)), (handler, 4));
    assert_eq!(return_late(&world, server), Ok(()));
    assert!(has_late_result(server));
    assert_eq!((world.current(), world.k.priority(server)), (server, 12));
    assert_eq!(client.wait(), Wait::Closed(server.uid()));
    world.check();
}
