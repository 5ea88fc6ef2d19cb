//! All registers of a thread at once: what a state may be, and what happens to a block that is not there, or changes meanwhile.

use crate::foreign::{give_back, handler, server_with_client};
use crate::world::World;
use abi::call::{FLAGS, RESUME_AS_IS, thread_op};
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_SSE, register};
use abi::{Call, Error, Fpage, Rights, TaskId, ThreadState, Timeout, USER_END, Uid};
use kernel::arch::extended::{IMAGE_WORD, registers, set_registers};
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, State, WORDS};
use kernel::processor;
use std::mem::offset_of;

type Words = [u64; size_of::<ThreadState>() / 8];

/// A block in the first task's memory.
const BLOCK: u64 = 0x4800_0000;

const FIRST: usize = offset_of!(ThreadState, registers) / 8;
const FS: usize = offset_of!(ThreadState, fs_base) / 8;
const GS: usize = offset_of!(ThreadState, gs_base) / 8;
const IMAGE: usize = offset_of!(ThreadState, image) / 8;

/// A state with another number in each register.
fn state(number: u64) -> Words {
    let mut words: Words = std::array::from_fn(|i| number + i as u64);
    (words[0], words[1]) = (ThreadState::LEN_BYTES, 7 | abi::state::STATE_GS);
    words[FIRST + register::RIP] = 0x1000;
    words[FIRST + register::RSP] = 0x8000;
    words[FIRST + register::RFLAGS] = FLAGS;
    words[GS + 1..IMAGE].fill(0);
    words[IMAGE + IMAGE_HEADER..IMAGE + 72].fill(0);
    words[IMAGE + IMAGE_HEADER] = STATE_SSE;
    words[IMAGE + IMAGE_MXCSR] = 0x1f80;
    words
}

fn write(world: &World, thread: ThreadRef, at: u64, words: Words) {
    let task = thread.task();
    world.acting(thread, || processor::copy::write_words(&world.k, task, (task, at), words).expect("memory"));
}

fn read(world: &World, thread: ThreadRef, at: u64) -> Words {
    let task = thread.task();
    world.acting(thread, || processor::copy::read_words(&world.k, task, (task, at)).expect("memory"))
}

fn call(world: &World, operation: u32, thread: Uid, at: u64) -> Result<[u64; 6], u64> {
    world.thread_control(operation, [thread.0, at, ThreadState::LEN_BYTES, 0])
}

/// A state that a thread has after it was set to this one.
fn as_got(mut words: Words) -> Words {
    let word = words[IMAGE + IMAGE_WORD];
    words[IMAGE..].fill(0);
    words[IMAGE] = 0x37f;
    words[IMAGE + IMAGE_MXCSR] = 0x1f80 | 0xffff << 32;
    words[IMAGE + IMAGE_HEADER] = STATE_SSE;
    words[IMAGE + IMAGE_WORD] = word;
    words
}

#[test]
fn a_thread_has_the_state_that_it_was_given() {
    let world = World::new(512);
    let thread = world.new_stand_in(TaskId::NIL);
    assert_eq!(call(&world, thread_op::GET_STATE, thread.uid(), BLOCK), Err(Error::BadState as u64));
    for number in [0x1000, 0x2000] {
        write(&world, world.root, BLOCK, state(number));
        call(&world, thread_op::SET_STATE, thread.uid(), BLOCK).expect("a state that a thread may have");
        assert!(thread.is_stopped() && thread.is_ready());
        call(&world, thread_op::GET_STATE, thread.uid(), BLOCK + 4096).expect("it stands still");
        assert_eq!(read(&world, world.root, BLOCK + 4096), as_got(state(number)));
        world.check();
    }
}

/// A short block has the general registers alone, in their order; whatever stands behind it stays, and so do all other registers of the thread.
#[test]
fn general_registers_go_by_themselves() {
    let world = World::new(512);
    let thread = world.new_stand_in(TaskId::NIL);
    let short = |operation: u32, at: u64, room: u64| {
        world.thread_control(operation, [thread.uid().0, at, room, 0]).map(drop)
    };
    let general = ThreadState::GENERAL_BYTES;
    let (bad_state, bad_argument) = (Err(Error::BadState as u64), Err(Error::BadArgument as u64));
    write(&world, world.root, BLOCK, state(0x1000));
    for operation in [thread_op::GET_STATE, thread_op::SET_STATE] {
        assert_eq!(short(operation, BLOCK, general), bad_state, "it has never run");
    }
    call(&world, thread_op::SET_STATE, thread.uid(), BLOCK).expect("a state that a thread may have");
    let mut words = [7; size_of::<ThreadState>() / 8];
    write(&world, world.root, BLOCK + 4096, words);
    short(thread_op::GET_STATE, BLOCK + 4096 + 8, general).expect("it stands still");
    words[1..=FS - FIRST].copy_from_slice(&as_got(state(0x1000))[FIRST..FS]);
    assert_eq!(read(&world, world.root, BLOCK + 4096), words);

    let mut set = state(0x2000);
    write(&world, world.root, BLOCK, set);
    short(thread_op::SET_STATE, BLOCK + 8 * FIRST as u64, general).expect("registers that a thread may have");
    let mut expected = as_got(state(0x1000));
    expected[FIRST..FS].copy_from_slice(&set[FIRST..FS]);
    let is_as_expected = || {
        call(&world, thread_op::GET_STATE, thread.uid(), BLOCK + 4096).expect("it stands still");
        assert_eq!(read(&world, world.root, BLOCK + 4096), expected);
        world.check();
    };
    is_as_expected();
    for (at, word) in [(register::RIP, USER_END), (register::RSP, 1 << 47)] {
        set = state(0x3000);
        set[FIRST + at] = word;
        write(&world, world.root, BLOCK, set);
        assert_eq!(short(thread_op::SET_STATE, BLOCK + 8 * FIRST as u64, general), bad_argument);
        is_as_expected();
    }
    for operation in [thread_op::GET_STATE, thread_op::SET_STATE] {
        for (at, room) in [
            (BLOCK + 4, general),
            (BLOCK, general - 1),
            (BLOCK, general + 1),
            (USER_END - general + 8, general),
        ] {
            assert_eq!(short(operation, at, room), bad_argument, "{at:x}, {room}");
        }
    }
    is_as_expected();
}

#[test]
fn states_that_no_thread_may_have_change_nothing() {
    let world = World::new(512);
    let [new, old] = [0, 1].map(|_| world.new_stand_in(TaskId::NIL));
    write(&world, world.root, BLOCK, state(0x1000));
    call(&world, thread_op::SET_STATE, old.uid(), BLOCK).expect("a state that a thread may have");
    let bad = [
        (0, 0),
        (0, 1023),
        (1, 1 << 3),
        (1, 1 << 63),
        (FIRST + register::RIP, USER_END),
        (FIRST + register::RSP, 1 << 47),
        (FS, 1 << 47),
        (GS, !0 << 48),
        (GS + 1, 1),
        (IMAGE - 1, 1 << 63),
        (IMAGE + IMAGE_HEADER, 1 << 3 | 2),
        (IMAGE + IMAGE_HEADER + 1, 1 << 63),
        (IMAGE + IMAGE_HEADER + 7, 1),
        (IMAGE + IMAGE_MXCSR, 1 << 16),
    ];
    for (at, word) in bad {
        let mut words = state(0x2000);
        words[at] = word;
        write(&world, world.root, BLOCK, words);
        for thread in [new, old] {
            let result = call(&world, thread_op::SET_STATE, thread.uid(), BLOCK);
            assert_eq!(result, Err(Error::BadArgument as u64), "word {at} {word:x}");
        }
        assert_eq!(new.state.get(), State::Inactive);
        call(&world, thread_op::GET_STATE, old.uid(), BLOCK).expect("it stands still");
        assert_eq!(read(&world, world.root, BLOCK), as_got(state(0x1000)), "word {at} {word:x}");
        world.check();
    }
}

/// A server's foreign call is done on the shuttle of its client: there its vector registers are, and not beside its own shuttle. Its handler sees them, and
/// the server goes on with those that the handler sets.
#[test]
fn a_server_has_its_state_on_the_shuttle_of_its_client() {
    let world = crate::foreign::world();
    let handler = handler(&world, TaskId::NIL);
    let (server, client) = server_with_client(&world, handler, 5, Timeout::NEVER);
    set_registers(7);
    let (own, others) = (server.uid(), client.uid());
    call(&world, thread_op::GET_STATE, own, BLOCK).expect("it waits for its handler");
    assert_eq!(read(&world, handler, BLOCK)[IMAGE + IMAGE_WORD], 7);
    assert_eq!(call(&world, thread_op::GET_STATE, others, BLOCK), Err(Error::BadState as u64));
    let words = state(0x1000);
    write(&world, handler, BLOCK, words);
    call(&world, thread_op::SET_STATE, own, BLOCK).expect("it waits for its handler");
    assert_eq!(registers(), words[IMAGE + IMAGE_WORD]);
    give_back(&world);
    assert_eq!((world.current(), registers()), (server, words[IMAGE + IMAGE_WORD]));
    world.check();
}

/// The block lies in two pages that its task lacks. Its pager brings the first, with a good state; before it brings the second, the first
/// has changed: what is set is what is there when all of it is there.
#[test]
fn a_block_is_taken_whole_or_not_at_all() {
    let world = World::new(512);
    let (there, at) = (0x5000_0000, 0x10_0000 - 512);
    let child = world.task(world.new_task(60));
    let [caller, target] = [0, 1].map(|_| world.new_stand_in(child.id.get()));
    world.root.fault.handler.set(Uid::NIL);
    let give = |page: u64| {
        let fpage = |at: u64| Fpage::memory(at, 12, Rights::RWX);
        let plan =
            Plan::fit(fpage(there + page * 4096), 0, fpage(at - 0xe00 + page * 4096)).expect("one page");
        assert!(world.give(plan, child));
    };
    let block = there + 0xe00;
    write(&world, world.root, block, state(0x1000));
    // The caller's pager is the first thread, which waits for it.
    caller.fault.pager.set(world.root.uid());
    let frame = &caller.frame;
    world.thread_control(thread_op::START, [caller.uid().0, 0x1000, 0x8000, 0]).expect("it can start");
    world.wait();
    assert_eq!(world.current(), caller);
    for page in 0..2 {
        if page == 0 {
            let mut w = [0; WORDS];
            (w[Frame::RDI], w[Frame::RSI]) = (target.uid().0, at);
            let op = Call::ThreadControl as u64 | u64::from(thread_op::SET_STATE) << 8;
            world.system_call(op, ThreadState::LEN_BYTES, w);
        }
        // It faults, and its pager runs.
        assert_eq!((world.current(), caller.state.get()), (world.root, State::Faulting), "page {page}");
        assert_eq!(world.root.frame.w[0].get() >> 12, (at >> 12) + page);
        assert_eq!(target.state.get(), State::Inactive);
        give(page);
        write(&world, world.root, block, state(0x2000 + page));
        let label = u64::from(RESUME_AS_IS) << 32;
        world.system_call(abi::call::IPC_REPLY_WAIT as u64 | label, caller.uid().0, [0; WORDS]);
        world.settle();
    }
    assert_eq!((world.current(), frame.rax.get()), (caller, 0));
    assert_eq!(target.frame.rax.get(), state(0x2001)[FIRST + register::RAX]);
    world.check();
}

/// Nobody resolves the fault: the call has an error, and no exception is raised.
#[test]
fn a_block_that_nobody_brings_is_an_error() {
    let world = World::new(512);
    let thread = world.new_stand_in(TaskId::NIL);
    // Where the first task has no memory.
    let at = 0x7000_0000_0000;
    let set = call(&world, thread_op::SET_STATE, thread.uid(), at);
    assert_eq!(set, Err(Error::NoAccess as u64));
    assert_eq!(thread.state.get(), State::Inactive);
    write(&world, world.root, BLOCK, state(0x1000));
    call(&world, thread_op::SET_STATE, thread.uid(), BLOCK).expect("a state that a thread may have");
    assert_eq!(call(&world, thread_op::GET_STATE, thread.uid(), at), Err(Error::NoAccess as u64));
    assert!(world.root.is_ready() && !world.root.is_stopped());
    world.check();
}
