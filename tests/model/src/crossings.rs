//! Crossings of features, test by test: a thread that is stopped, alerted, given registers or left by its client in the middle of something.

use crate::foreign::{call as foreign_call, wait as wait_for_foreign, ward};
use crate::world::World;
use abi::call::{ALERT_SET, thread_op};
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_SSE};
use abi::{Call, Error, Fpage, Rights, TaskId, ThreadState, Timeout, Uid, op};
use kernel::arch::extended::{IMAGE_WORD, set_registers};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, State, WORDS, Wait, special};
use kernel::processor;
use kernel::processor::extended::is_with_another;
use kernel::sched::Next;
use std::mem::offset_of;

type Words = [u64; size_of::<ThreadState>() / 8];

const BLOCK: u64 = 0x4800_0000;
const IMAGE: usize = offset_of!(ThreadState, image) / 8;
const FOREVER: (Timeout, Timeout) = (Timeout::NEVER, Timeout::NEVER);

fn world() -> World {
    let world = World::new(1024);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    world
}

fn runs(world: &World, thread: ThreadRef) {
    if world.current() != thread {
        world.call(Call::ThreadSwitch, 0, [thread.uid().0, 0, 0, 0]).ok();
    }
    assert_eq!(world.current(), thread);
}

/// A thread that waits for anybody, without pager and handler.
fn waiter(world: &World, priority: u64) -> ThreadRef {
    let uid = world.thread_control(thread_op::CREATE, [0, priority, 0, 0]).expect("memory")[0];
    world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it starts");
    let thread = world.k.thread(Uid(uid)).expect("just made");
    runs(world, thread);
    world.wait();
    thread
}

fn go(world: &World, thread: ThreadRef) {
    assert!(kernel::ipc::end::abort(&world.k, thread));
    world.leave(Next::Same);
    runs(world, thread);
}

fn state_of(world: &World, thread: ThreadRef) -> Words {
    let root = world.root.task();
    let none: Words = [0; 128];
    world.acting(world.root, || {
        processor::copy::write_words(&world.k, root, (root, BLOCK), none).expect("memory")
    });
    assert_eq!(world.current(), world.root);
    // Somebody else may run behind the call.
    let _ = world.thread_control(thread_op::GET_STATE, [thread.uid().0, BLOCK, ThreadState::LEN_BYTES, 0]);
    assert_eq!(world.root.frame.rax.get(), 0, "it stands still");
    world.acting(world.root, || processor::copy::read_words(&world.k, root, (root, BLOCK)).expect("memory"))
}

fn set_state(world: &World, thread: ThreadRef, words: Words) {
    let root = world.root.task();
    world.acting(world.root, || {
        processor::copy::write_words(&world.k, root, (root, BLOCK), words).expect("memory")
    });
    world
        .thread_control(thread_op::SET_STATE, [thread.uid().0, BLOCK, ThreadState::LEN_BYTES, 0])
        .expect("it stands still");
}

/// A pager's server ends, which has left its registers on the shuttle of the thread that faulted; that has its shuttle back in the middle.
#[test]
fn nobody_has_the_registers_of_a_server_that_ended() {
    const SECRET: u64 = 0x5ec4e7;
    let world = world();
    let [d, b, a, q] = [0; 4].map(|_| waiter(&world, 30));
    let nobody = world.new_stand_in(TaskId::NIL);
    a.fault.pager.set(b.uid());
    a.fault.handler.set(Uid::NIL);
    go(&world, a);
    set_registers(1);
    world.page_fault(0x40_0000, Rights::R);
    assert_eq!(world.current(), b);
    set_registers(2);
    world.ipc(d.uid(), d.uid(), FOREVER, Fpage::NIL, 0, [0; 8]);
    assert_eq!(world.current(), d);
    set_registers(SECRET);
    world.ipc(Uid::NIL, nobody.uid(), FOREVER, Fpage::NIL, 0, [0; 8]);
    assert_ne!(world.current(), d);
    // Somebody stands in its queue, so its end takes more than a step.
    go(&world, q);
    world.ipc_call(d.uid());
    assert_eq!(world.current(), world.root);
    world.check();
    world.begin_call(Call::ThreadControl, thread_op::DESTROY, d.uid().0);
    assert!(b.wait() != Wait::No, "it was told already");
    assert!(is_with_another(&world.k, a), "whoever controls the thread could get them in the middle");
    kernel::ipc::end::abort(&world.k, a);
    world.settle();
    world.leave(Next::Same);
    for _ in 0..4 {
        if world.current() != world.root {
            let current = world.current();
            world.wait();
            assert_ne!(current, world.current());
        }
    }
    assert!(a.is_stopped(), "nobody handles its exception");
    let words = state_of(&world, a);
    assert_ne!(words[IMAGE + IMAGE_WORD], SECRET, "registers of a third thread");
}

/// Three threads: the first faults, its pager is the second, and that calls the third on its shuttle. Returned in this order.
fn pager_with_server(world: &World) -> [ThreadRef; 3] {
    let [server, pager, thread] = [0; 3].map(|_| waiter(world, 30));
    thread.fault.pager.set(pager.uid());
    go(world, thread);
    set_registers(1);
    world.page_fault(0x40_0000, Rights::R);
    assert_eq!(world.current(), pager);
    set_registers(2);
    [thread, pager, server]
}

/// Whether the first thread, which controls all others here, may get the state of a thread, and set its FS base.
fn may_get_and_set(world: &World, thread: ThreadRef) -> [bool; 2] {
    assert_eq!(world.current(), world.root);
    let get = world.thread_control(thread_op::GET_STATE, [thread.uid().0, BLOCK, ThreadState::LEN_BYTES, 0]);
    let set = world.thread_control(thread_op::SET_FS, [thread.uid().0, 0x6666_0000, 0, 0]);
    for result in [get, set] {
        assert!(result.is_ok() || result == Err(Error::BadState as u64), "{result:?}");
    }
    [get, set].map(|result| result.is_ok())
}

/// A pager asks a server, which keeps the call and waits for others: its registers lie beside the shuttle of the thread that faulted, and are no
/// business of whoever controls that. Those of a pager which waits for others are, since it is trusted with the fault.
#[test]
fn nobody_gets_what_a_server_of_a_pager_has_left() {
    const SECRET: u64 = 0x5ec4e7;
    for asks in [false, true] {
        let world = world();
        let [thread, _, server] = pager_with_server(&world);
        if asks {
            world.ipc(server.uid(), server.uid(), FOREVER, Fpage::NIL, 0, [0; 8]);
            assert_eq!(world.current(), server);
            set_registers(SECRET);
        }
        world.wait();
        assert_eq!(thread.state.get(), State::Faulting);
        assert_eq!(may_get_and_set(&world, thread), [!asks; 2], "asks: {asks}");
        world.check();
    }
}

/// A server is stopped, or the pager that it answers is: that is on the shuttle of the thread which faulted, and has not come to run.
#[test]
fn nobody_gets_what_is_for_a_thread_that_does_not_run_yet() {
    for is_answered in [false, true] {
        let world = world();
        let [thread, pager, server] = pager_with_server(&world);
        if !is_answered {
            server.set_special(special::STOPPED, 0);
        }
        world.ipc(server.uid(), server.uid(), FOREVER, Fpage::NIL, 0, [0; 8]);
        if is_answered {
            assert_eq!(world.current(), server);
            pager.set_special(special::STOPPED, 0);
            world.ipc_reply_wait(pager.uid());
        }
        let holder = if is_answered { pager } else { server };
        assert_eq!((holder.hot.shuttle.get(), holder.is_ready()), (thread.home_ref(), true));
        assert_eq!(may_get_and_set(&world, thread), [false; 2], "answered: {is_answered}");
        world.check();
    }
}

/// A debugger sets the state of a server that waits in the queue of its pager; then the server's client gives up.
#[test]
fn a_state_that_was_set_lasts_when_a_client_gives_up() {
    let world = world();
    let s = waiter(&world, 30);
    let a = waiter(&world, 30);
    let nobody = world.new_stand_in(TaskId::NIL);
    s.fault.pager.set(nobody.uid());
    go(&world, a);
    world.ipc_call(s.uid());
    assert_eq!(world.current(), s);
    set_registers(7);
    world.page_fault(0x40_0000, Rights::R);
    assert_eq!((world.current(), s.state.get()), (world.root, State::Sending));
    let mut words = state_of(&world, s);
    assert_eq!(words[IMAGE + IMAGE_WORD], 7);
    words[IMAGE + IMAGE_WORD] = 0x1234;
    words[IMAGE + IMAGE_HEADER] = STATE_SSE;
    words[IMAGE + IMAGE_MXCSR] = 0x1f80;
    set_state(&world, s, words);
    assert_eq!(state_of(&world, s)[IMAGE + IMAGE_WORD], 0x1234);
    kernel::ipc::end::abort(&world.k, a);
    world.settle();
    world.check();
    assert_eq!(state_of(&world, s)[IMAGE + IMAGE_WORD], 0x1234, "the state is the old one again");
}

/// Instruction and stack pointer are set while a foreign call waits in the queue of its handler.
#[test]
fn registers_that_are_set_in_the_queue_of_a_handler_last() {
    let world = world();
    let handler = waiter(&world, 9);
    let ward = ward(&world, TaskId::NIL, 12, handler);
    runs(&world, ward);
    // The handler takes no foreign calls yet, and is in the middle of something else.
    handler.set_special(kernel::object::thread::special::STOPPED, 0);
    kernel::ipc::end::abort(&world.k, handler);
    foreign_call(&world);
    assert_eq!((world.current(), ward.state.get()), (world.root, State::Sending));
    let before =
        world.thread_control(thread_op::GET_REGISTERS, [ward.uid().0, 0, 0, 0]).expect("it stands still");
    let (flags, rax) = (before[4], before[5]);
    let mut w = [0; WORDS];
    (w[Frame::RDI], w[Frame::RSI], w[Frame::R10], w[Frame::R8], w[Frame::R9]) =
        (ward.uid().0, 0, 0xabc0, flags, rax);
    world.system_call(Call::ThreadControl as u64 | u64::from(thread_op::SET_REGISTERS) << 8, 0x12340, w);
    assert_eq!(world.result().0, 0);
    world.thread_control(thread_op::RESUME, [handler.uid().0, 0, 0, 0]).ok();
    runs(&world, handler);
    wait_for_foreign(&world);
    assert_eq!(world.current(), handler);
    world.system_call(0xffff_fffb, 0x5555, [8; WORDS]);
    world.settle();
    assert_eq!(world.current(), ward);
    assert_eq!((ward.user_ip(), ward.user_sp()), (0x12340, 0xabc0), "where it was set to go on");
}

/// A sender is stopped in the middle of a message of several steps.
#[test]
fn a_stopped_sender_can_be_aborted_between_two_steps() {
    let world = World::new(2048);
    let receiver = world.new_thread(world.new_task(500), 1);
    world.thread_control(thread_op::SET_PRIORITY, [world.root.uid().0, 0, 0, 0]).ok();
    world.leave(Next::Same);
    assert_eq!(world.current(), receiver);
    let window = Fpage::memory(1 << 40, 30, Rights::RWX);
    world.ipc(Uid::NIL, Uid::ANY, FOREVER, window, op::TAKES_BLOCK, [0; 8]);
    let sender = world.current();
    let other = world.new_stand_in(TaskId::NIL);
    world.begin_long_map(receiver.uid());
    world.acting(other, || {
        world.thread_control(thread_op::STOP, [sender.uid().0, 0, 0, 0]).expect("ours");
    });
    let abort = world.acting(other, || kernel::ipc::end::abort(&world.k, sender));
    assert!(abort, "an ipc pends");
}

/// An alert comes between two steps of a message that its sender began as alertable.
#[test]
fn an_alert_between_two_steps_is_not_lost() {
    let world = World::new(2048);
    let receiver = world.new_thread(TaskId::NIL, 1);
    let friend = world.new_thread(TaskId::NIL, 50);
    world.acting(receiver, || {
        let room = abi::Dope::room(4095, 0, 0).0;
        let result =
            world.thread_control(thread_op::SET_BLOCK, [0, 0x4000_0000, room, Timeout::NEVER.0.into()]);
        result.expect("room");
    });
    let sender = world.root;
    world.thread_control(thread_op::SET_PRIORITY, [sender.uid().0, 0, 0, 0]).ok();
    runs(&world, friend);
    let sleep =
        || world.ipc(Uid::NIL, Uid::ANY, (Timeout::ZERO, Timeout::from_us(1000)), Fpage::NIL, 0, [0; 8]);
    sleep();
    runs(&world, receiver);
    world.wait();
    runs(&world, sender);
    let frame = &sender.frame;
    frame.w.iter().for_each(|word| word.set(0));
    frame.w[0].set(abi::Dope::used(4095, 0, 0).0);
    frame.w[1].set(0x4100_0000);
    frame.w[Frame::R15].set(abi::call::timeouts(Timeout::NEVER, Timeout::NEVER));
    frame.w[Frame::RBX].set(receiver.uid().0);
    frame.rax.set((Call::Ipc as u32 | op::BLOCK | op::TAKES_BLOCK | op::ALERTABLE).into());
    frame.rdx.set(receiver.uid().0);
    assert!(!world.enter(), "it takes several steps");
    world.advance(2_000_000);
    runs(&world, friend);
    world.thread_control(thread_op::ALERT, [sender.uid().0, ALERT_SET, 0, 0]).ok();
    world.check();
    sleep();
    world.settle();
    assert!(sender.is_ready(), "it waits for an answer, though it is alerted");
    assert_eq!(sender.frame.rax.get(), Error::SendAborted as u64);
}

/// A supervised program names a thread outside of its clan as its pager, and tells it things by page faults.
#[test]
fn nobody_beyond_the_border_hears_of_faults() {
    let world = world();
    let monitor = world.task(world.new_task(200));
    let outside = world.task(world.new_task(60));
    let monitors = world.new_stand_in(monitor.id.get());
    let outsider = world.new_stand_in(outside.id.get());
    let client = world.acting(monitors, || {
        let task = world.new_task(60);
        let uid = world
            .thread_control(thread_op::CREATE, [task.0, 5, monitors.uid().0, monitors.uid().0])
            .expect("memory")[0];
        world.k.thread(Uid(uid)).expect("just made")
    });
    world.thread_control(thread_op::SET_PRIORITY, [outsider.uid().0, 9, 0, 0]).expect("ok");
    world.thread_control(thread_op::START, [outsider.uid().0, 0x1000, 0x8000, 0]).expect("ok");
    runs(&world, outsider);
    world.wait();
    world.acting(monitors, || {
        world.thread_control(thread_op::START, [client.uid().0, 0x1000, 0x8000, 0]).expect("ok")
    });
    world.leave(Next::Same);
    runs(&world, client);
    // By a message: to the monitor.
    for named in [[outsider.uid(), Uid::NIL], [Uid::NIL, outsider.uid()]] {
        let set = world.thread_control(thread_op::SET_PAGER, [0, named[0].0, named[1].0, 0]);
        assert_eq!(set.map(drop), Err(Error::Denied as u64));
        let made = world.thread_control(thread_op::CREATE, [0, 5, named[0].0, named[1].0]);
        assert_eq!(made.map(drop), Err(Error::Denied as u64));
    }
    // A thread that is not there may be somebody's one day.
    let set =
        world.thread_control(thread_op::SET_PAGER, [0, Uid::thread(500, 1, outsider.uid().clan()).0, 0, 0]);
    assert_eq!(set.map(drop), Err(Error::NoSuch as u64));
}
