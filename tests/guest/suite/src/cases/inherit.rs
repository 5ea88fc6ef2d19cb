//! A server works at the priority of the most urgent of those that wait for it (row D6). Priorities alone decide here: a *hog* between the
//! server's own client and an urgent one never blocks once it runs, so whoever inherits nothing never comes to run again.
//!
//! The suite's thread is the most urgent. A server that has a call to hold tells it, and loses the processor by that, in the middle of the call.

use crate::kit::{Outcome, Thread, pager, spawn};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::{Error, TaskId, Timeout, Uid, thread_state};

/// Number of the door, far from those of the runtime.
const DOOR: u32 = 1001;

/// Label of a call in whose middle the server tells the suite's thread.
const HOLD: u32 = 7;

/// Label of a call for which a server tells the suite's thread that it is about to call the next.
const PASS: u32 = 8;

/// How long the suite's thread waits for what comes at once, or never.
const PATIENCE: Timeout = Timeout::from_us(60_000_000);

static MAIN: AtomicU64 = AtomicU64::new(0);
/// Partner that a client calls, by its number: a server, or the door if it is nil.
static CALLED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// Label of its call.
static LABELS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static TURNS: AtomicU64 = AtomicU64::new(0);
/// Turn of each client, by its number; of the hog the last. 0: none yet.
static TURN_OF: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
/// Partner that a server calls for each call, by its number; nil: nobody.
static NEXT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// The client that is to be seen in the queue.
static AWAITED: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static RELEASED: AtomicU64 = AtomicU64::new(0);

const HOG: usize = 4;

unsafe extern "C" {
    fn suite_server();
    fn suite_door_run();
}

fn uid(of: &AtomicU64) -> Uid {
    Uid(of.load(Relaxed))
}

fn rest() -> ! {
    loop {
        let _ = sys::receive(Uid::ANY, Timeout::NEVER);
    }
}

fn tell() {
    let _ = sys::send(uid(&MAIN), 0, [0; 8], Timeout::NEVER);
}

fn take_turn(who: usize) {
    TURN_OF[who].store(TURNS.fetch_add(1, Relaxed) + 1, Relaxed);
    tell();
}

extern "C" fn client(number: u64, _: u64) -> ! {
    let (number, label) = (number as usize, LABELS[number as usize].load(Relaxed) as u32);
    let called = uid(&CALLED[number]);
    if called == Uid::NIL {
        let _ = sys::door_call(DOOR, label, [0; 8]);
    } else {
        let _ = sys::ipc_call(called, label, [0; 8]);
    }
    take_turn(number);
    rest()
}

extern "C" fn hog(_: u64, _: u64) -> ! {
    take_turn(HOG);
    loop {
        core::hint::spin_loop();
    }
}

/// Serves, for each call by a call of the next server.
extern "C" fn server(number: u64, _: u64) -> ! {
    let mut answered = Uid::NIL;
    loop {
        let Ok(call) = sys::ipc_reply_wait(answered, 0, [0; 8]) else {
            answered = Uid::NIL;
            continue;
        };
        answered = call.sender;
        let next = uid(&NEXT[number as usize]);
        if next != Uid::NIL {
            if call.label == PASS {
                tell();
            }
            let _ = sys::ipc_call(next, call.label, [0; 8]);
        } else if call.label == HOLD {
            hold();
        }
    }
}

/// The middle of a call. If somebody is to be seen in the queue, the call does not end by itself.
extern "C" fn hold() {
    tell();
    let awaited = uid(&AWAITED);
    if awaited != Uid::NIL {
        while sys::thread_info(awaited).is_ok_and(|info| info.state != thread_state::SENDING) {}
        SEEN.store(1, Relaxed);
        // The suite's thread itself stands in the queue where its timeout is tried.
        if awaited != uid(&MAIN) {
            tell();
        }
        while RELEASED.load(Relaxed) == 0 {
            core::hint::spin_loop();
        }
    }
}

extern "C" fn door_server(_: u64, _: u64) -> ! {
    // SAFETY: it serves, without end.
    unsafe { suite_server() };
    rest()
}

fn below(steps: u8) -> Outcome<u8> {
    let own = pager::priority();
    check!(own > 7, "the suite's priority, {own}, leaves too little room below it");
    Ok(own - steps)
}

fn begin() {
    MAIN.store(sys::myself().0, Relaxed);
    for zero in [&TURNS, &AWAITED, &SEEN, &RELEASED].into_iter().chain(&TURN_OF).chain(&NEXT) {
        zero.store(0, Relaxed);
    }
}

fn new_server(number: u64, steps: u8) -> Outcome<Thread> {
    spawn(TaskId::NIL, below(steps)?, server, number)
}

fn new_client(number: usize, steps: u8, called: Uid, label: u32) -> Outcome<Thread> {
    CALLED[number].store(called.0, Relaxed);
    LABELS[number].store(label.into(), Relaxed);
    spawn(TaskId::NIL, below(steps)?, client, number as u64)
}

fn new_hog() -> Outcome<Thread> {
    spawn(TaskId::NIL, below(3)?, hog, 0)
}

/// Waits until a thread tells something.
fn hear(thread: &Thread) -> Outcome {
    check!(sys::receive(thread.uid, PATIENCE).is_ok(), "nobody works for the most urgent");
    Ok(())
}

fn turns<const N: usize>(of: [usize; N]) -> [u64; N] {
    of.map(|who| TURN_OF[who].load(Relaxed))
}

/// The two more urgent clients of a server in the middle of a patient one's call are served, in their order, past the hog; then the server is
/// no more urgent than before.
fn two_are_served(first: Thread, called: Uid) -> Outcome {
    let hog = new_hog()?;
    let second = new_client(2, 2, called, 0)?;
    let urgent = new_client(1, 1, called, 0)?;
    hear(&urgent)?;
    check_eq!(turns([1, 2, 0, HOG]), [1, 0, 0, 0]);
    hear(&second)?;
    check_eq!(turns([1, 2, 0, HOG]), [1, 2, 0, 0]);
    // The patient one has its answer, and is behind the hog.
    hear(&hog)?;
    check_eq!(turns([1, 2, 0, HOG]), [1, 2, 0, 3]);
    drop(hog);
    hear(&first)?;
    check_eq!(turns([0]), [4]);
    Ok(())
}

pub fn a_hog_a_server_and_three_clients() -> Outcome {
    begin();
    let server = new_server(0, 6)?;
    let first = new_client(0, 5, server.uid, HOLD)?;
    hear(&server)?;
    two_are_served(first, server.uid)
}

/// The first server has called the second, on its client's time.
pub fn a_chain_of_calls() -> Outcome {
    begin();
    let servers = [new_server(0, 6)?, new_server(1, 7)?];
    NEXT[0].store(servers[1].uid.0, Relaxed);
    let first = new_client(0, 5, servers[0].uid, HOLD)?;
    hear(&servers[1])?;
    two_are_served(first, servers[0].uid)
}

/// The first server is about to stand in the second one's queue, which works for somebody else.
pub fn a_chain_of_queues() -> Outcome {
    begin();
    let servers = [new_server(0, 6)?, new_server(1, 7)?];
    let other = new_client(3, 6, servers[1].uid, HOLD)?;
    hear(&servers[1])?;
    NEXT[0].store(servers[1].uid.0, Relaxed);
    let first = new_client(0, 5, servers[0].uid, PASS)?;
    hear(&servers[0])?;
    two_are_served(first, servers[0].uid)?;
    hear(&other)
}

/// The client of a chain gives up; the server in the middle, which waits for the next, is on its own. Who calls it then is served.
pub fn a_chain_that_was_cut() -> Outcome {
    begin();
    let servers = [new_server(0, 6)?, new_server(1, 7)?];
    NEXT[0].store(servers[1].uid.0, Relaxed);
    let first = new_client(0, 5, servers[0].uid, HOLD)?;
    hear(&servers[1])?;
    sys::thread_abort(first.uid)?;
    two_are_served_after_a_cut(first, servers[0].uid)
}

fn two_are_served_after_a_cut(first: Thread, called: Uid) -> Outcome {
    let hog = new_hog()?;
    let second = new_client(2, 2, called, 0)?;
    let urgent = new_client(1, 1, called, 0)?;
    hear(&urgent)?;
    hear(&second)?;
    hear(&hog)?;
    check_eq!(turns([1, 2, HOG, 0]), [1, 2, 3, 0]);
    drop((hog, first));
    Ok(())
}

/// How a client gives up.
enum End {
    Abort,
    Destroy,
}

/// A server that never answers is urgent for as long as an urgent client waits for it.
fn gives_up(end: End) -> Outcome {
    begin();
    let server = new_server(0, 6)?;
    let first = new_client(0, 5, server.uid, HOLD)?;
    hear(&server)?;
    let hog = new_hog()?;
    let urgent = new_client(1, 1, server.uid, 0)?;
    AWAITED.store(urgent.uid.0, Relaxed);
    hear(&server)?;
    check_eq!((SEEN.load(Relaxed), turns([HOG])), (1, [0]));
    match end {
        End::Abort => sys::thread_abort(urgent.uid)?,
        _ => sys::thread_destroy(urgent.uid)?,
    }
    hear(&hog)?;
    check_eq!(turns([0]), [0]);
    drop(first);
    Ok(())
}

pub fn who_gives_up_helps_no_more() -> Outcome {
    gives_up(End::Abort)?;
    gives_up(End::Destroy)
}

/// The client's timeout ends; the server works on, behind the hog.
pub fn who_is_out_of_time_helps_no_more() -> Outcome {
    begin();
    let server = new_server(0, 6)?;
    let first = new_client(0, 5, server.uid, HOLD)?;
    hear(&server)?;
    AWAITED.store(sys::myself().0, Relaxed);
    let hog = new_hog()?;
    let ipc = sys::Ipc { to: server.uid, send_timeout: Timeout::from_us(50_000), ..sys::Ipc::NONE };
    check_eq!(ipc.run().map(drop), Err(Error::SendTimeout));
    check_eq!((SEEN.load(Relaxed), turns([HOG])), (1, [0]));
    hear(&hog)?;
    drop((first, hog));
    Ok(())
}

/// The server follows a client in its queue that gets another priority, down and up.
pub fn a_client_in_the_queue_gets_other_priorities() -> Outcome {
    begin();
    let server = new_server(0, 6)?;
    let first = new_client(0, 5, server.uid, HOLD)?;
    hear(&server)?;
    let hog = new_hog()?;
    let other = new_client(1, 2, server.uid, 0)?;
    AWAITED.store(other.uid.0, Relaxed);
    hear(&server)?;
    check_eq!(turns([HOG]), [0]);
    let info = first.info()?;
    check_eq!((info.priority, info.effective), (below(5)?, below(2)?));
    sys::thread_set_priority(other.uid, below(4)?, 0)?;
    hear(&hog)?;
    check_eq!(first.info()?.effective, below(4)?);
    RELEASED.store(1, Relaxed);
    sys::thread_set_priority(other.uid, below(1)?, 0)?;
    hear(&other)?;
    check_eq!(turns([HOG, 1, 0]), [1, 2, 0]);
    drop((first, hog));
    Ok(())
}

/// Callers of a door wait for a server of the task; it is as urgent as they are.
pub fn callers_of_a_door() -> Outcome {
    begin();
    // SAFETY: the entry ends in door return, and calls a function that returns.
    unsafe { sys::door_create(DOOR, suite_door_run as *const () as u64, hold as *const () as u64)? };
    let served = serve_by_door();
    sys::door_revoke(DOOR)?;
    served
}

fn serve_by_door() -> Outcome {
    let server = spawn(TaskId::NIL, below(6)?, door_server, 0)?;
    let first = new_client(0, 5, Uid::NIL, 0)?;
    hear(&server)?;
    let hog = new_hog()?;
    let urgent = new_client(1, 1, Uid::NIL, 0)?;
    // Each call tells.
    hear(&server)?;
    hear(&urgent)?;
    check_eq!(turns([1, 0, HOG]), [1, 0, 0]);
    hear(&hog)?;
    drop((first, hog));
    Ok(())
}

extern "C" fn stands(called: u64, _: u64) -> ! {
    let _ = sys::send(Uid(called), 0, [0; 8], Timeout::NEVER);
    rest()
}

extern "C" fn hears_nobody(_: u64, _: u64) -> ! {
    loop {
        let _ = sys::receive(uid(&MAIN), Timeout::NEVER);
    }
}

/// Threads that stand one in the other's queue; somebody more urgent comes to the last. (Interrupts may not stay off for long: the watch looks.)
pub fn a_line_of_queues() -> Outcome {
    begin();
    // More than the queues of a chain that one dispatch settles.
    const LENGTH: usize = 18;
    let mut line = alloc::vec::Vec::new();
    line.push(spawn(TaskId::NIL, below(7)?, hears_nobody, 0)?);
    for i in 0..LENGTH {
        let called = line[i].uid.0;
        line.push(spawn(TaskId::NIL, below(7)?, stands, called)?);
    }
    let _ = sys::receive(Uid::ANY, Timeout::from_us(20_000));
    let urgent = spawn(TaskId::NIL, below(4)?, stands, line[LENGTH].uid.0)?;
    let _ = sys::receive(Uid::ANY, Timeout::from_us(20_000));
    check_eq!(urgent.info()?.state, thread_state::SENDING);
    Ok(())
}

/// Point in time at which all callers give up.
static GIVE_UP_NS: AtomicU64 = AtomicU64::new(0);

extern "C" fn calls_until(called: u64, _: u64) -> ! {
    let until_ns = Some(GIVE_UP_NS.load(Relaxed));
    let _ = sys::Ipc { to: Uid(called), from: Uid(called), until_ns, ..sys::Ipc::NONE }.run();
    rest()
}

/// Calls a thread for its own caller.
extern "C" fn passes_on(called: u64, _: u64) -> ! {
    let _ = sys::receive(Uid::ANY, Timeout::NEVER);
    let _ = sys::ipc_call(Uid(called), 0, [0; 8]);
    rest()
}

/// Takes all calls and answers none.
extern "C" fn answers_nobody(_: u64, _: u64) -> ! {
    rest()
}

/// Callers take their shuttles back at one point in time, from as many chains to one thread, in whose queues all of them move.
/// (Interrupts may not stay off for long: the watch looks.)
pub fn many_chains_are_cut_at_once() -> Outcome {
    chains_are_cut(hears_nobody, thread_state::SENDING)?;
    chains_are_cut(answers_nobody, thread_state::RECEIVING)
}

/// `state`: of the middle threads afterwards.
fn chains_are_cut(last: extern "C" fn(u64, u64) -> !, state: u8) -> Outcome {
    const CHAINS: usize = 10;
    begin();
    let own = pager::priority();
    GIVE_UP_NS.store(rt::time::now_ns() + 200_000_000, Relaxed);
    let last = spawn(TaskId::NIL, below(1)?, last, 0)?;
    let mut chains = alloc::vec::Vec::new();
    for i in 0..CHAINS as u8 {
        let middle = spawn(TaskId::NIL, own.saturating_sub(2 + 2 * i).max(1), passes_on, last.uid.0)?;
        let first = spawn(TaskId::NIL, below(1)?, calls_until, middle.uid.0)?;
        chains.push((first, middle));
    }
    let _ = sys::receive(Uid::ANY, Timeout::from_us(400_000));
    for (first, middle) in &chains {
        check_eq!((first.info()?.state, middle.info()?.state), (thread_state::RECEIVING, state));
    }
    Ok(())
}
