//! Who runs next is a matter of priorities, however somebody was answered: also where the one who answers is not on the shuttle that it
//! was lent, and has its own (row P9).

use super::long;
use crate::kit::{Outcome, Thread, pager, spawn};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::{Block, Dope, TaskId, Timeout, Uid};

/// Number of the door, far from those of the runtime.
const DOOR: u32 = 1000;

/// How the caller calls.
const WITH_WORDS: u64 = 0;
const WITH_BLOCK: u64 = 1;
const BY_DOOR: u64 = 2;
const BY_DOOR_FOR_BLOCK: u64 = 3;

static TURNS: AtomicU64 = AtomicU64::new(0);
/// Which turn was the middle thread's, and which the caller's; 0: none yet.
static MIDDLE_TURN: AtomicU64 = AtomicU64::new(0);
static CALLER_TURN: AtomicU64 = AtomicU64::new(0);
static MAIN: AtomicU64 = AtomicU64::new(0);
static SERVER: AtomicU64 = AtomicU64::new(0);
static MIDDLE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn suite_server();
    fn suite_door_run();
    fn suite_door_run_long();
    fn suite_taking_door_call(door: u32) -> u64;
}

fn uid(of: &AtomicU64) -> Uid {
    Uid(of.load(Relaxed))
}

fn note(turn: &AtomicU64) {
    turn.store(TURNS.fetch_add(1, Relaxed) + 1, Relaxed);
}

fn rest() -> ! {
    loop {
        let _ = sys::receive(Uid::ANY, Timeout::NEVER);
    }
}

/// A thread between the other two in priority: notes when it is told to.
extern "C" fn middle(_: u64, _: u64) -> ! {
    let _ = sys::receive(Uid::ANY, Timeout::NEVER);
    note(&MIDDLE_TURN);
    rest()
}

/// The least urgent thread: runs when the server waits, on the caller's shuttle, for another call.
extern "C" fn other_caller(_: u64, _: u64) -> ! {
    let _ = sys::ipc_call(uid(&SERVER), 1, [0; 8]);
    rest()
}

/// Less urgent than the middle thread: calls, and notes when it is answered.
extern "C" fn caller(way: u64, _: u64) -> ! {
    let to = uid(&SERVER);
    match way {
        WITH_WORDS => drop(sys::ipc_call(to, 1, [0; 8])),
        WITH_BLOCK => drop(sys::ipc_call_taking(to, 1, [0; 8])),
        BY_DOOR => drop(sys::door_call(DOOR, 1, [0; 8])),
        // SAFETY: a block goes where this thread's blocks go.
        _ => drop(unsafe { suite_taking_door_call(DOOR) }),
    }
    note(&CALLER_TURN);
    let _ = sys::send(uid(&MAIN), 2, [0; 8], Timeout::NEVER);
    rest()
}

/// The server has a call, and is on the caller's shuttle. It takes another call and answers that: now it is on its own. Then it makes
/// the middle thread ready.
extern "C" fn change_shuttles() {
    if let Ok(call) = sys::receive(Uid::ANY, Timeout::NEVER) {
        let _ = sys::send(call.sender, 3, [0; 8], Timeout::ZERO);
    }
    let _ = sys::send(uid(&MIDDLE), 4, [0; 8], Timeout::ZERO);
}

/// The most urgent of the four.
extern "C" fn server(way: u64, _: u64) -> ! {
    let Ok(call) = sys::receive(Uid::ANY, Timeout::NEVER) else { rest() };
    change_shuttles();
    if way == WITH_BLOCK {
        let block = Block { dope: Dope::used(7, 0, 0), address: long::from_block() };
        let _ = sys::ipc_reply_wait_long(call.sender, 5, block, [0; 6]);
    } else {
        let _ = sys::ipc_reply_wait(call.sender, 5, [0; 8]);
    }
    rest()
}

/// The most urgent one, for doors.
extern "C" fn door_server(_: u64, _: u64) -> ! {
    // SAFETY: it serves, without end.
    unsafe { suite_server() };
    rest()
}

/// The server answers somebody less urgent than a thread that is ready.
fn answer(way: u64) -> Outcome {
    let own = pager::priority();
    check!(own > 4, "the suite's priority, {own}, leaves too little room below it");
    let start = |steps, function, store: &AtomicU64| -> Outcome<Thread> {
        let thread = spawn(TaskId::NIL, own - steps, function, way)?;
        store.store(thread.uid.0, Relaxed);
        Ok(thread)
    };
    for turn in [&TURNS, &MIDDLE_TURN, &CALLER_TURN] {
        turn.store(0, Relaxed);
    }
    MAIN.store(sys::myself().0, Relaxed);
    let is_by_door = matches!(way, BY_DOOR | BY_DOOR_FOR_BLOCK);
    let _server = start(1, if is_by_door { door_server } else { server }, &SERVER)?;
    let _middle = start(2, middle, &MIDDLE)?;
    let caller = start(3, caller, &AtomicU64::new(0))?;
    sys::thread_set_block(caller.uid, long::to_block(), Dope::room(100, 0, 0), Timeout::NEVER)?;
    let _other = start(4, other_caller, &AtomicU64::new(0))?;
    // All of them are less urgent than this thread, and run while it waits.
    check_eq!(sys::receive(caller.uid, Timeout::NEVER)?.label, 2);
    check_eq!([&MIDDLE_TURN, &CALLER_TURN].map(|turn| turn.load(Relaxed)), [1, 2]);
    Ok(())
}

pub fn an_answer_with_words() -> Outcome {
    answer(WITH_WORDS)
}

pub fn an_answer_with_a_block() -> Outcome {
    long::prepare(1);
    answer(WITH_BLOCK)
}

/// Says, beside, which block is returned.
extern "C" fn change_shuttles_for_block() -> u64 {
    change_shuttles();
    long::from_block()
}

fn give_back(way: u64, entry: unsafe extern "C" fn(), work: *const ()) -> Outcome {
    // SAFETY: the entry ends in door return, and calls a function that returns.
    unsafe { sys::door_create(DOOR, entry as *const () as u64, work as u64)? };
    let answered = answer(way);
    sys::door_release(DOOR)?;
    answered
}

pub fn a_return() -> Outcome {
    give_back(BY_DOOR, suite_door_run, change_shuttles as *const ())
}

pub fn a_return_with_a_block() -> Outcome {
    long::prepare(1);
    give_back(BY_DOOR_FOR_BLOCK, suite_door_run_long, change_shuttles_for_block as *const ())
}
