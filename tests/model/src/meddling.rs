//! Threads that meddle with others who are in the middle of something: what is a pager's or a server's in the processor is nobody else's, and
//! whoever is urgent does not pay for those who are not.

use crate::world::World;
use abi::call::thread_op;
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_SSE};
use abi::{Call, Fpage, Rights, TaskId, ThreadState, Timeout, Uid};
use kernel::arch::extended::{IMAGE_WORD, registers, set_registers};
use kernel::mem::plan::Plan;
use kernel::object::thread::State;
use kernel::processor;
use std::mem::offset_of;

type Words = [u64; size_of::<ThreadState>() / 8];

const IMAGE: usize = offset_of!(ThreadState, image) / 8;
const FS: usize = offset_of!(ThreadState, fs_base) / 8;

/// A thread faults; its pager, of another task, works on the thread's shuttle, and is preempted by a thread of the first one's task. That may
/// neither see nor change what the pager has in the processor: it is no party to that fault, and the pager is none of its task's.
#[test]
fn nobody_gets_or_sets_what_a_pager_has_in_the_processor() {
    const SECRET: u64 = 0x5ec4e7;
    const EVIL: u64 = 0xe711;
    const BLOCK: u64 = 0x1000_0000;
    let world = World::new(1024);
    let (k, pager) = (&world.k, world.root);
    world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
    let task = world.task(world.new_task(200));
    let page = |at: u64| Fpage::memory(at, 12, Rights::RWX);
    assert!(world.give(Plan::fit(page(0x4800_0000), 0, page(BLOCK)).expect("one page"), task));
    let [bait, spy] = [10, 50].map(|priority| {
        let thread = world.new_stand_in(task.id.get());
        world.thread_control(thread_op::SET_PRIORITY, [thread.uid().0, priority, 0, 0]).expect("a priority");
        thread.fault.pager.set(pager.uid());
        thread
    });
    // The spy sleeps.
    world.thread_control(thread_op::START, [spy.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    assert_eq!(world.current(), spy);
    let sleep =
        || world.ipc(Uid::NIL, Uid::ANY, (Timeout::ZERO, Timeout::from_us(1000)), Fpage::NIL, 0, [0; 8]);
    sleep();
    assert_eq!(world.current(), pager);
    // The bait faults, and its pager works on its shuttle.
    world.thread_control(thread_op::START, [bait.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    assert_eq!(world.current(), bait);
    set_registers(1);
    world.page_fault(0x40_0000, Rights::R);
    assert_eq!(world.current(), pager);
    world.wait();
    assert_eq!((world.current(), bait.state.get()), (pager, State::Faulting));
    set_registers(SECRET);
    // The spy wakes in the middle of that.
    world.advance(2_000_000);
    assert_eq!(world.current(), spy);
    let call =
        |operation: u32| world.thread_control(operation, [bait.uid().0, BLOCK, ThreadState::LEN_BYTES, 0]);
    let _ = call(thread_op::GET_STATE);
    let mut words: Words = processor::copy::read_words(k, task, (task, BLOCK)).expect("memory");
    let seen = words[IMAGE + IMAGE_WORD];
    (words[FS], words[IMAGE + IMAGE_WORD]) = (0x6666_0000, EVIL);
    words[IMAGE + IMAGE_HEADER] = STATE_SSE;
    words[IMAGE + IMAGE_MXCSR] = 0x1f80;
    processor::copy::write_words(k, task, (task, BLOCK), words).expect("memory");
    let set = call(thread_op::SET_STATE);
    sleep();
    assert_eq!(world.current(), pager);
    assert_eq!(
        (registers(), bait.extended.fs_base.get() == 0x6666_0000, seen == SECRET),
        (SECRET, false, false),
        "registers of the pager, whether its FS base is the spy's, whether the spy saw its registers; set: {set:?}"
    );
}

/// A pager ends in whose queue 16 threads stand with their faults. Each of them becomes an exception, and stands in the queue of the one handler,
/// behind waiters of all priorities above, all of which are looked at. So a step, with interrupts off, takes few of them.
#[test]
fn the_end_of_a_pager_moves_few_waiters_in_each_step() {
    let world = World::new(2048);
    let root = world.root;
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let [pager, handler] = [0, 1].map(|_| world.new_stand_in(TaskId::NIL));
    let start = |priority: u64| {
        let thread = world.new_stand_in(TaskId::NIL);
        let uid = thread.uid().0;
        world.thread_control(thread_op::SET_PRIORITY, [uid, priority, 0, 0]).expect("a priority");
        world
            .thread_control(thread_op::SET_PAGER, [uid, pager.uid().0, handler.uid().0, 0])
            .expect("it exists");
        world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it can start");
        assert_eq!(world.current(), thread);
        thread
    };
    for priority in 2..64 {
        start(priority);
        let never = (Timeout::NEVER, Timeout::NEVER);
        world.ipc(handler.uid(), Uid::NIL, never, Fpage::NIL, 0, [0; 8]);
        assert_eq!(world.current(), root);
    }
    let faulting: Vec<_> = (0..16)
        .map(|_| {
            let thread = start(1);
            world.page_fault(0x7000_0000_0000, Rights::R);
            assert_eq!(world.current(), root);
            thread
        })
        .collect();
    let moved = || faulting.iter().filter(|thread| thread.partner.get() == handler.uid()).count();
    world.begin_call(Call::ThreadControl, thread_op::DESTROY, pager.uid().0);
    let mut before = moved();
    assert!(before <= 3);
    while world.is_busy() {
        world.go_on_once();
        assert!(moved() - before <= 3, "{} threads in a step", moved() - before);
        before = moved();
    }
    assert_eq!(before, 16);
}

/// A thread calls a server of another task, which works on its shuttle and is preempted by a thread of the caller's task. That sets the FS base of
/// the caller: the server's own must not change.
#[test]
fn nobody_sets_the_fs_base_of_a_server_by_its_client() {
    let world = World::new(1024);
    let server = world.root;
    world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
    let task = world.task(world.new_task(200));
    let [bait, spy] = [10, 50].map(|priority| {
        let thread = world.new_stand_in(task.id.get());
        world.thread_control(thread_op::SET_PRIORITY, [thread.uid().0, priority, 0, 0]).expect("a priority");
        thread
    });
    world.thread_control(thread_op::START, [spy.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::ZERO, Timeout::from_us(1000)), Fpage::NIL, 0, [0; 8]);
    world.thread_control(thread_op::START, [bait.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    world.ipc_call(server.uid());
    assert_eq!(world.current(), server);
    world.wait();
    assert_eq!((world.current(), server.hot.shuttle.get()), (server, bait.home_ref()));
    world.advance(2_000_000);
    assert_eq!(world.current(), spy);
    let set = world.thread_control(thread_op::SET_FS, [bait.uid().0, 0x6666_0000, 0, 0]);
    // The server goes on with what lies beside the shuttle of the bait.
    assert_eq!(server.hot.shuttle.get(), bait.home_ref());
    assert_ne!(bait.extended.fs_base.get(), 0x6666_0000, "{set:?}");
}

/// Threads of the lowest priorities stand in a line of queues. One of them changes its end, and an urgent thread that has nothing to do with any
/// of them wakes: how often it is interrupted may not depend on the length of the line.
#[test]
fn an_urgent_thread_does_not_pay_for_a_line_of_others() {
    let interruptions = |count: usize| {
        let world = World::new(4096);
        let root = world.root;
        world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
        let start = |priority: u64| {
            let thread = world.new_stand_in(TaskId::NIL);
            let uid = thread.uid().0;
            world.thread_control(thread_op::SET_PRIORITY, [uid, priority, 0, 0]).expect("a priority");
            world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it can start");
            assert_eq!(world.current(), thread);
            thread
        };
        let send = |to: Uid| {
            world.ipc(to, Uid::NIL, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, 0, [0; 8]);
            assert_eq!(world.current(), root);
        };
        let urgent = start(63);
        world.ipc(Uid::NIL, Uid::ANY, (Timeout::ZERO, Timeout::from_us(10_000)), Fpage::NIL, 0, [0; 8]);
        let mut line = vec![world.new_stand_in(TaskId::NIL)];
        for _ in 0..count {
            let next = start(1);
            send(line[line.len() - 1].uid());
            line.push(next);
        }
        start(2);
        send(line[count].uid());
        while world.current() != urgent {
            // Less than what settles the line: the timer fires at once, over and over.
            world.advance(20_000_000);
        }
        assert!(line.iter().any(|thread| thread.home.unsettled.get()), "the line is long");
        (0..1000).filter(|_| kernel::arch::advance(1)).count()
    };
    assert_eq!(interruptions(1000), 0);
}
