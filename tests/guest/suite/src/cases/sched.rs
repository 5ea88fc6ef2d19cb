//! Scheduling: priorities, time slices, and the shuttle that a caller lends.

use super::long;
use crate::kit::{
    Agent, Child, Client, Frame, Outcome, Stage, Thread, WORDS, abort_later, guarded, in_time_enough, pager,
    progress, spawn, stop_later,
};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicU64, Ordering};
use pagers::Pager;
use rt::api::Reply;
use rt::pager::Fault;
use sys::abi::call::IPC_TAKING_CALL;
use sys::{Dope, Error, Ipc, TaskId, Timeout, Uid, thread_state};

static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

extern "C" fn count(index: u64, _: u64) -> ! {
    loop {
        COUNTS[index as usize].fetch_add(1, Ordering::Relaxed);
    }
}

fn counts() -> [u64; 4] {
    core::array::from_fn(|index| COUNTS[index].load(Ordering::Relaxed))
}

/// A thread of this program that counts without end.
fn counter(index: u64, priority: u8) -> Outcome<Thread> {
    COUNTS[index as usize].store(0, Ordering::Relaxed);
    spawn(TaskId::NIL, priority, count, index)
}

/// A priority below this thread's by `steps`.
fn below(steps: u8) -> Outcome<u8> {
    let own = pager::priority();
    check!(own > steps, "the suite's priority, {own}, leaves too little room below it");
    Ok(own - steps)
}

fn sleep_ms(ms: u64) -> Outcome {
    Ok(sys::sleep_us(ms * 1000)?)
}

/// Sleeps until something is true. False if that takes very long: the emulator may stand still for a while.
fn eventually(is_true: impl Fn() -> bool) -> Outcome<bool> {
    for _ in 0..20_000 {
        if is_true() {
            return Ok(true);
        }
        progress();
        sleep_ms(5)?;
    }
    Ok(false)
}

/// Whether in one of several spans of time the threads count as they should. The emulator may stand still for a while in
/// any slice, so one span alone says little; slices that were not kept would show in all of them.
fn in_some_span(ms: u64, is_so: impl Fn([u64; 4]) -> bool) -> Outcome<bool> {
    for _ in 0..10 {
        let before = counts();
        sleep_ms(ms)?;
        let after = counts();
        if is_so(core::array::from_fn(|i| after[i] - before[i])) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn urgent_threads_come_first() -> Outcome {
    let low = counter(0, below(2)?)?;
    check!(eventually(|| counts()[0] > 0)?, "a lonely thread did not run");
    let high = counter(1, below(1)?)?;
    let start = counts()[0];
    sleep_ms(50)?;
    check_eq!(counts()[0], start);
    check!(eventually(|| counts()[1] > 0)?, "the urgent thread did not run");
    check_eq!(counts()[0], start);
    drop(high);
    check!(
        eventually(|| counts()[0] > start)?,
        "the less urgent thread starved after the urgent one was gone"
    );
    drop(low);
    Ok(())
}

pub fn equals_take_turns() -> Outcome {
    let priority = below(1)?;
    let threads = [counter(0, priority)?, counter(1, priority)?, counter(2, priority)?];
    for thread in &threads {
        sys::thread_set_priority(thread.uid, priority, 5000)?;
    }
    let fair = in_some_span(300, |[a, b, c, _]| {
        let (least, most) = (a.min(b).min(c), a.max(b).max(c));
        least > 0 && most < 4 * least
    })?;
    check!(fair, "they counted to {:?}", counts());
    Ok(())
}

pub fn time_slices_differ() -> Outcome {
    let priority = below(1)?;
    let threads = [counter(0, priority)?, counter(1, priority)?];
    sys::thread_set_priority(threads[0].uid, priority, 3000)?;
    sys::thread_set_priority(threads[1].uid, priority, 30_000)?;
    let differ = in_some_span(500, |[short, long, ..]| short > 0 && long > 2 * short)?;
    check!(differ, "they counted to {:?}", counts());
    Ok(())
}

pub fn stopped_threads_stand_still() -> Outcome {
    let thread = counter(0, below(1)?)?;
    sleep_ms(5)?;
    sys::thread_stop(thread.uid)?;
    let stopped = counts()[0];
    sleep_ms(10)?;
    check_eq!(counts()[0], stopped);
    check_eq!(thread.info()?.state, thread_state::STOPPED);
    sys::thread_resume(thread.uid)?;
    check!(eventually(|| counts()[0] > stopped)?, "a resumed thread did not go on");
    Ok(())
}

/// A pending ipc goes on while its thread is stopped, and shows when it is resumed.
pub fn stopped_threads_go_on_receiving() -> Outcome {
    use crate::kit::Frame;
    let child = Child::new()?;
    let mut agent = child.agent()?;
    agent.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    sys::thread_stop(agent.uid)?;
    sys::send(agent.uid, 77, [1; 8], Timeout::ZERO)?;
    sleep_ms(1)?;
    check!(!agent.is_done(), "a stopped thread ran");
    sys::thread_resume(agent.uid)?;
    check_eq!(agent.wait()?.received_label(), 77);
    Ok(())
}

/// Switching to a thread runs it now, before others of the same priority.
pub fn switch_to_a_thread() -> Outcome {
    let own = pager::priority();
    let threads = [counter(0, own)?, counter(1, own)?, counter(2, own)?];
    for (index, thread) in threads.iter().enumerate() {
        let before = counts();
        sys::thread_switch(thread.uid)?;
        let after = counts();
        check!(after[index] > before[index], "thread {index} did not run");
    }
    Ok(())
}

/// How long a server works for a request, in loops.
static WORK: AtomicU64 = AtomicU64::new(0);
static SERVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn serve(_: u64, _: u64) -> ! {
    let mut answer = Uid::NIL;
    loop {
        if let Ok(message) = sys::ipc_reply_wait(answer, 0, [0; 8]) {
            let end = sys::clock() + WORK.load(Ordering::Relaxed);
            while sys::clock() < end {}
            SERVED.fetch_add(1, Ordering::Relaxed);
            answer = message.sender;
        }
    }
}

fn call(server: Uid, limit: Timeout) -> sys::Result<()> {
    let ipc = Ipc { to: server, from: server, receive_timeout: limit, send_timeout: limit, ..Ipc::NONE };
    ipc.run().map(drop)
}

/// A server of low priority works at its caller's, past a thread in between.
pub fn servers_run_at_their_callers_priority() -> Outcome {
    let server = spawn(TaskId::NIL, below(3)?, serve, 0)?;
    WORK.store(0, Ordering::Relaxed);
    sleep_ms(2)?; // It waits now.
    let hog = counter(0, below(2)?)?;
    sleep_ms(2)?;
    WORK.store(3_000_000, Ordering::Relaxed);
    let before = counts()[0];
    let outcome = call(server.uid, Timeout::from_us(500_000));
    let during = counts()[0] - before;
    check_eq!(outcome, Ok(()));
    check_eq!(during, 0);
    drop((hog, server));
    Ok(())
}

/// Whose call [`answer_when_another_queues`] waits for.
static QUEUED: AtomicU64 = AtomicU64::new(0);

/// Serves, and answers its first caller only when another one stands in its queue.
extern "C" fn answer_when_another_queues(_: u64, _: u64) -> ! {
    let mut answer = Uid::NIL;
    loop {
        let Ok(message) = sys::ipc_reply_wait(answer, 0, [0; 8]) else { continue };
        SERVED.fetch_add(1, Ordering::Relaxed);
        let other = Uid(QUEUED.load(Ordering::Relaxed));
        while message.sender != other
            && sys::thread_info(other).is_ok_and(|info| info.state != thread_state::SENDING)
        {
            let _ = sys::sleep_us(1000);
        }
        answer = message.sender;
    }
}

extern "C" fn call_once(server: u64, _: u64) -> ! {
    let _ = call(Uid(server), Timeout::NEVER);
    deaf(0, 0)
}

/// B answers A while C's call stands in B's queue: C's transfer comes first, and then A continues, which is more urgent than what B does
/// for C (row P10).
pub fn a_queued_call_is_taken_before_the_answered_continues() -> Outcome {
    SERVED.store(0, Ordering::Relaxed);
    let server = spawn(TaskId::NIL, below(3)?, answer_when_another_queues, 0)?;
    let other = spawn(TaskId::NIL, below(2)?, call_once, server.uid.0)?;
    QUEUED.store(other.uid.0, Ordering::Relaxed);
    call(server.uid, Timeout::NEVER)?;
    let (state, served) = (other.info()?.state, SERVED.load(Ordering::Relaxed));
    check_eq!(state, thread_state::RECEIVING);
    check_eq!(served, 1);
    check!(eventually(|| SERVED.load(Ordering::Relaxed) == 2)?, "the queued call was lost");
    Ok(())
}

/// A caller that gives up gets its shuttle back; the server goes on with its own.
pub fn callers_get_their_shuttle_back() -> Outcome {
    let server = spawn(TaskId::NIL, below(2)?, serve, 0)?;
    WORK.store(0, Ordering::Relaxed);
    sleep_ms(2)?;
    WORK.store(120_000_000, Ordering::Relaxed);
    let served = SERVED.load(Ordering::Relaxed);
    let start = sys::clock();
    check_eq!(call(server.uid, Timeout::from_us(5000)), Err(Error::ReceiveTimeout));
    let elapsed = sys::clock() - start;
    check!((5_000_000..100_000_000).contains(&elapsed), "5 ms took {elapsed} ns");
    check_eq!(SERVED.load(Ordering::Relaxed), served);
    // On its own shuttle it is less urgent than a thread in between …
    let hog = counter(0, below(1)?)?;
    sleep_ms(200)?;
    check_eq!(SERVED.load(Ordering::Relaxed), served);
    drop(hog);
    // … and ends its work when nobody is more urgent; the late answer is dropped.
    sleep_ms(200)?;
    check_eq!(SERVED.load(Ordering::Relaxed), served + 1);
    WORK.store(0, Ordering::Relaxed);
    check_eq!(call(server.uid, Timeout::from_us(500_000)), Ok(()));
    Ok(())
}

/// Work for a caller is charged to the caller.
pub fn lent_time_is_the_callers() -> Outcome {
    let server = spawn(TaskId::NIL, below(1)?, serve, 0)?;
    WORK.store(0, Ordering::Relaxed);
    sleep_ms(2)?;
    WORK.store(20_000_000, Ordering::Relaxed);
    let me = sys::myself();
    let (mine, theirs) = (sys::thread_info(me)?.cpu_ns, server.info()?.cpu_ns);
    check_eq!(call(server.uid, Timeout::NEVER), Ok(()));
    let (mine, theirs) = (sys::thread_info(me)?.cpu_ns - mine, server.info()?.cpu_ns - theirs);
    check!(mine >= 19_000_000, "the caller was charged {mine} ns");
    check!(theirs < mine / 4, "the server was charged {theirs} ns");
    Ok(())
}

/// Whom [`call_and_count`] calls.
static CALLED: AtomicU64 = AtomicU64::new(0);

/// Calls with words alone, or so that the answer may bring a block; then works for a while. Gets its mailbox, and above it which call.
extern "C" fn call_and_count(mailbox: u64) -> u64 {
    let mut frame = Frame::call(Uid(CALLED.load(Ordering::Relaxed)), 0, WORDS);
    if mailbox >> 32 != 0 {
        frame.rax = IPC_TAKING_CALL.into();
    }
    // SAFETY: this agent's own mailbox, and a call that takes nothing away.
    let is_fine = unsafe { guarded(mailbox as u32 as usize, &mut frame) };
    for _ in 0..10_000_000 {
        core::hint::spin_loop();
    }
    is_fine as u64
}

/// A server has two calls, and answers the first while it is on the second one's shuttle. What the first then does is on its own time, and the
/// second is still to be answered.
pub fn who_is_answered_has_its_own_time() -> Outcome {
    let (used, room) = (Dope::used(4, 0, 0), Dope::room(64, 0, 0));
    for with_block in [false, true] {
        let (_near, mut server, _far, mut first) = long::pair(room)?;
        let other = Child::new()?;
        let mut second = other.agent()?;
        sys::thread_abort(first.uid)?;
        first.wait()?;
        CALLED.store(server.uid.0, Ordering::Relaxed);
        server.block(long::open())?;
        first.start_apply(call_and_count, first.mailbox_index() as u64 | (with_block as u64) << 32);
        check_eq!(server.wait()?.sender(), first.uid);
        server.block(long::open())?;
        second.block(Frame::call(server.uid, 0, WORDS))?;
        check_eq!(server.wait()?.sender(), second.uid);
        let spent = |agent: &Agent| agent.info().map(|info| info.cpu_ns);
        let before = [spent(&first)?, spent(&second)?];
        let answer = match with_block {
            false => Frame::reply_wait(first.uid, 0, WORDS),
            true => long::long_reply(first.uid, used),
        };
        server.block(answer)?;
        check_eq!(first.result()?, 1);
        let (own, others) = (spent(&first)? - before[0], spent(&second)? - before[1]);
        check!(own > 4 * others, "{own} ns of its own, and {others} ns of the other's");
        sys::thread_abort(server.uid)?;
        server.wait()?;
        server.block(Frame::reply_wait(second.uid, 0, WORDS))?;
        check_eq!(second.wait()?.error(), None);
    }
    Ok(())
}

/// Time that nobody lends is one's own.
pub fn own_time_is_ones_own() -> Outcome {
    let thread = counter(0, below(1)?)?;
    sleep_ms(30)?;
    let first = thread.info()?.cpu_ns;
    check!(first > 5_000_000, "charged {first} ns");
    sys::thread_stop(thread.uid)?;
    let stopped = thread.info()?.cpu_ns;
    sleep_ms(10)?;
    check_eq!(thread.info()?.cpu_ns, stopped);
    let me = sys::thread_info(sys::myself())?.cpu_ns;
    sleep_ms(20)?;
    let slept = sys::thread_info(sys::myself())?.cpu_ns - me;
    check!(slept < 10_000_000, "20 ms of sleep were charged as {slept} ns");
    Ok(())
}

/// How late a thread may run that waited for a point in time and is the most urgent: on a machine whose time is what it has executed.
const LATE_NS: u64 = 500_000;

/// Each kind of timeout ends when it should: not before, and not late.
pub fn timeouts_end_in_time() -> Outcome {
    // Receives nothing, sends nothing.
    let deaf = spawn(TaskId::NIL, below(1)?, deaf, 0)?;
    sleep_ms(2)?;
    for us in [1, 700, 1000, 30_000, 400_000] {
        let limit = Timeout::from_us(us);
        let send = Ipc { to: deaf.uid, send_timeout: limit, ..Ipc::NONE };
        let receive = Ipc { from: deaf.uid, receive_timeout: limit, ..Ipc::NONE };
        let call = Ipc { from: deaf.uid, receive_timeout: limit, ..send };
        let kinds =
            [(send, Error::SendTimeout), (receive, Error::ReceiveTimeout), (call, Error::SendTimeout)];
        for (index, (ipc, error)) in kinds.into_iter().enumerate() {
            let start = sys::clock();
            check_eq!(ipc.run().map(drop), Err(error));
            let elapsed = sys::clock() - start;
            let range = us * 1000..us * 1000 + LATE_NS;
            check!(range.contains(&elapsed), "{us} us took {elapsed} ns in kind {index}");
        }
    }
    Ok(())
}

extern "C" fn deaf(_: u64, _: u64) -> ! {
    loop {
        let _ = sys::sleep_us(1_000_000_000);
    }
}

/// The clock moves forward, and sleeping takes the time it should.
pub fn clock_and_sleep() -> Outcome {
    let mut last = sys::clock();
    for _ in 0..1000 {
        let now = sys::clock();
        check!(now >= last, "the clock went back from {last} to {now}");
        last = now;
    }
    for ms in [1, 10, 50] {
        let start = sys::clock();
        sleep_ms(ms)?;
        let elapsed = sys::clock() - start;
        check!((ms * 1_000_000..ms * 1_000_000 + LATE_NS).contains(&elapsed), "{ms} ms took {elapsed} ns");
    }
    // The time stamp on the information page and the clock agree.
    let (before, page, after) = (sys::clock(), rt::time::now_ns(), sys::clock());
    const MARGIN_NS: u64 = 1_000_000;
    let range = before.saturating_sub(MARGIN_NS)..=after + MARGIN_NS;
    check!(range.contains(&page), "page {page}, clock {before} to {after}");
    Ok(())
}

/// Sleeps for a while, again and again, and counts.
extern "C" fn tick(us: u64, _: u64) -> ! {
    loop {
        let _ = sys::sleep_us(us);
        COUNTS[0].fetch_add(1, Ordering::Relaxed);
    }
}

/// Long strings are copied with interrupts let in: more urgent threads run meanwhile, and everything arrives.
pub fn copies_are_interrupted() -> Outcome {
    const LEN: u32 = long::BYTES as u32 - 13;
    let (used, room) = (Dope::used(1, 2, 0), Dope::room(1, 2, 0));
    let (_near, mut sender, _far, mut receiver) = long::pair(room)?;
    long::prepare(1);
    let (first, second) =
        ((3, 5, LEN / 2, LEN / 2), (LEN as usize / 2, LEN as usize / 2 + 6, LEN / 2, LEN / 2));
    long::describe(used, room, [first, second]);
    COUNTS[0].store(0, Ordering::Relaxed);
    let _ticker = spawn(TaskId::NIL, pager::priority() + 1, tick, 20)?;
    let mut most = 0;
    for round in 0..20 {
        progress();
        long::to().bytes.fill(0x55);
        let before = counts()[0];
        sender.block(long::long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        most = most.max(counts()[0] - before);
        check_eq!((got.error(), got.sender()), (None, sender.uid));
        for (at, there, len, _) in [first, second] {
            let same = long::from().bytes[at..][..len as usize] == long::to().bytes[there..][..len as usize];
            check!(same, "round {round}: what arrived differs");
        }
        check!(
            long::to().bytes[..5] == [0x55; 5],
            "round {round}: something was written before the first string"
        );
        receiver.block(Frame::reply_wait(sender.uid, 0, WORDS))?;
        sender.wait()?;
    }
    check!(most >= 3, "{most} ticks at most during a megabyte");
    Ok(())
}

/// What was copied until then is what the error says, to the byte.
pub fn copies_are_aborted() -> Outcome {
    const LEN: u32 = long::BYTES as u32 - 5;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let mut in_the_middle = 0;
    for us in (20..220).step_by(5) {
        progress();
        long::prepare(us);
        long::describe(used, room, [(1, 0, LEN, LEN)]);
        let (_near, mut sender, _far, mut receiver) = long::pair(room)?;
        let killer = abort_later(sender.uid, us)?;
        sender.start(long::long_call(receiver.uid, used));
        check!(eventually(|| killer.has_acted())?, "nobody aborts");
        // Too late it finds the sender waiting for the answer, too early not yet in its ipc.
        let ends = eventually(|| sender.is_done() || sys::thread_abort(sender.uid).is_ok())?;
        check!(ends, "the sender does not end");
        let sent = sender.wait()?;
        let moved = sent.rdi as usize;
        if sent.error() == Some(Error::SendAborted) && (1..LEN as usize).contains(&moved) {
            in_the_middle += 1;
            let got = receiver.wait()?;
            check_eq!((got.error(), got.rdi), (Some(Error::ReceiveAborted), sent.rdi));
            check!(long::to().bytes[..moved] == long::from().bytes[1..][..moved], "{moved} bytes differ");
            check!(
                long::to().bytes[moved..].iter().all(|&byte| byte == 0x55),
                "more than {moved} bytes came"
            );
        }
    }
    check!(in_the_middle >= 3, "only {in_the_middle} copies were aborted in the middle");
    Ok(())
}

/// Whoever controls a sender stops it in the middle of a message. The receiver is held for as long as its patience says, and not until
/// somebody lets the sender go on, which learns of it then.
pub fn senders_that_are_stopped() -> Outcome {
    const LEN: u32 = long::BYTES as u32 - 5;
    const PATIENCE_US: u64 = 10_000;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (_near, mut sender, _far, mut receiver) = long::pair(room)?;
    let mut in_the_middle = 0;
    // The first message, which nobody stops, brings the pages, and that takes long.
    for us in [1_000_000].into_iter().chain((20..220).step_by(20)) {
        progress();
        let patience = if us == 1_000_000 { Timeout::NEVER } else { Timeout::from_us(PATIENCE_US) };
        long::set_room(&receiver, room, patience)?;
        long::describe(used, room, [(1, 0, LEN, LEN)]);
        let stopper = stop_later(sender.uid, us)?;
        sender.start(long::long_call(receiver.uid, used));
        check!(eventually(|| stopper.has_acted() || receiver.is_done())?, "nobody stops it");
        let since = sys::clock();
        if receiver.info()?.state == thread_state::BUSY {
            in_the_middle += 1;
            let (got, held_us) = (receiver.wait()?, (sys::clock() - since) / 1000);
            check_eq!(got.error(), Some(Error::ReceiveTimeout));
            check!(held_us < 3 * PATIENCE_US, "the receiver was held for {held_us} us");
            check!(!sender.is_done());
            receiver.block(long::open())?;
            sys::thread_resume(sender.uid)?;
            check_eq!(sender.wait()?.error(), Some(Error::SendTimeout));
        } else {
            let _ = sys::thread_resume(sender.uid);
            // On a slow machine it may have been long enough all the same.
            let next = match receiver.wait()?.error() {
                Some(Error::ReceiveTimeout) => long::open(),
                _ => Frame::reply_wait(sender.uid, 0, WORDS),
            };
            receiver.block(next)?;
            sender.wait()?;
        }
    }
    check!(in_the_middle >= 3, "only {in_the_middle} senders were stopped in the middle");
    Ok(())
}

/// A pager that answers every fault in the zone as if the page were there now, and gives none. Its clients fault for ever.
struct Idle;

impl Pager for Idle {
    fn fault(&mut self, _: Fault) -> Reply {
        COUNTS[0].fetch_add(1, Ordering::Relaxed);
        Reply::label(0)
    }
}

extern "C" fn answer_for_ever(_: u64) -> u64 {
    serve(0, 0)
}

extern "C" fn call_for_ever(server: u64) -> u64 {
    while call(Uid(server), Timeout::NEVER).is_ok() {
        COUNTS[1].fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// In the middle of a message one side's pager gives nothing, again and again. Its own client does not get on, but all others
/// do, and the other side waits no longer than it wanted to.
pub fn pagers_that_answer_with_nothing() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut caller, mut server) = (near.agent()?, far.agent()?);
    WORK.store(0, Ordering::Relaxed);
    // They never wait, so that each turn of theirs is a whole slice: a short one, as this thread gives way
    // very often.
    sys::thread_set_priority(caller.uid, pager::priority(), BYSTANDERS_SLICE_US)?;
    server.start_apply(answer_for_ever, 0);
    caller.start_apply(call_for_ever, server.uid.0);
    check!(eventually(|| counts()[1] > 0)?, "the bystanders do not call each other");
    // Once before, so that this program's own tables are there.
    let mut before = 0;
    for round in 0..2 {
        for at_target in [false, true] {
            let mut met = Met::default();
            let is_fine = in_time_enough(IDLE_PATIENCE_US, |us| {
                met = meet_idle_pager(at_target, us)?;
                Ok(met.is_fine())
            })?;
            check!(is_fine, "{met:?}");
        }
        let used = sys::task_info(TaskId::NIL)?.used;
        check!(round == 0 || used == before, "{used} frames are used, {before} were before");
        before = used;
    }
    check!(!caller.is_done() && !server.is_done(), "the bystanders have ended");
    Ok(())
}

/// Time slice of the bystanders.
const BYSTANDERS_SLICE_US: u64 = 200;

/// How long the other side waits for the idle pager, where the machine is fast enough.
const IDLE_PATIENCE_US: u64 = 60_000;

/// What happened while an idle pager answered.
#[derive(Default, Debug)]
struct Met {
    answers: u64,
    bystanders_calls: u64,
}

impl Met {
    fn is_fine(&self) -> bool {
        self.answers >= 100 && self.bystanders_calls >= 100
    }
}

/// Waits until a transfer that an idle pager hinders is over: not before the other side's patience ends, and not after a timeout
/// that is longer and begins when the pager has been asked already. Which of the two ends first the kernel decides, not the machine.
fn wait_for_the_end(sender: &Agent, receiver: &Agent, answers: u64, patience_us: u64) -> Outcome {
    const STEP_US: u64 = 5_000;
    let start = sys::clock();
    check!(eventually(|| counts()[0] > answers)?, "the pager is not asked");
    // They are ready once it is over, even if they have not run since.
    let is_over = || -> Outcome<bool> {
        Ok((sender.info()?.state, receiver.info()?.state) == (thread_state::READY, thread_state::READY))
    };
    let mut slept_us = 0;
    while !is_over()? {
        check!(slept_us <= patience_us + STEP_US, "the transfer does not end");
        sys::sleep_us(STEP_US)?;
        slept_us += STEP_US;
    }
    let waited_ns = sys::clock() - start;
    check!(waited_ns >= patience_us * 1000, "it ended after {waited_ns} ns already");
    Ok(())
}

fn meet_idle_pager(at_target: bool, patience_us: u64) -> Outcome<Met> {
    progress();
    let (used, room) = long::stuck(at_target);
    let stage = Stage::new(|| Some(Idle))?;
    let child = Child::with_quota(128)?;
    let mut honest = child.agent()?;
    let mut client = Client::new(Child::with_quota(128)?, stage.uid(), pager::priority())?;
    let (sender, receiver) =
        if at_target { (&mut honest, &mut client.agent) } else { (&mut client.agent, &mut honest) };
    // The client itself would wait for ever.
    let patience = |is_honest| if is_honest { Timeout::from_us(patience_us) } else { Timeout::NEVER };
    long::set_room(receiver, room, patience(!at_target))?;
    sys::thread_set_block(sender.uid, 0, Dope::NONE, patience(at_target))?;
    receiver.block(long::open())?;
    let [answers, calls, ..] = counts();
    sender.start(long::long_call(receiver.uid, used));
    wait_for_the_end(sender, receiver, answers, patience_us)?;
    let met = Met { answers: counts()[0] - answers, bystanders_calls: counts()[1] - calls };
    let (sent, got) = (sender.wait()?, receiver.wait()?);
    check_eq!((sent.error(), got.error()), (Some(Error::NoAccess), Some(Error::NoAccess)));
    check_eq!((sent.rdi, got.rdi), (1080, 1080));
    check!(long::arrived(0, 0, 1000), "what was moved is not there");
    // Nobody faults any more, and with pages that are there the same two go on.
    let answers = counts()[0];
    sleep_ms(5)?;
    check_eq!(counts()[0], answers);
    long::prepare(22);
    long::describe(used, room, [(0, 0, 1000, 1000), (2000, 2000, 1000, 1000)]);
    receiver.block(long::open())?;
    sender.block(long::long_call(receiver.uid, used))?;
    long::check_request(&receiver.wait()?, sender, used, room)?;
    check!(long::arrived(2000, 2000, 1000), "the second string differs");
    sender.wait_for_answer(receiver)?;
    Ok(met)
}
