//! Real time beside time-sharing: a task with locked memory wakes up in time while others thrash (row C12).

use super::pager::{ZONE, disk, locked, swap};
use crate::check_eq;
use crate::kit::{Child, Outcome, Random, Thread, pager, progress, source, spawn};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pagers::policy::First;
use sys::abi::PAGE_SIZE;
use sys::{Timeout, Uid};

/// How often the urgent task wakes up, at least, and how many pages are replaced meanwhile, at least.
const WAKES: u64 = 1000;

/// Of them in one go.
const ROUND: u64 = 100;

/// What it goes through at each wake-up: log2 in bytes.
const LOCKED_LOG2: u32 = 17;

/// Pages of those who thrash, and frames for all of them.
const PAGES: u64 = 32;
const FRAMES: usize = 8;

/// How much more urgent it is.
const STEPS: u8 = 4;

static OVER: AtomicBool = AtomicBool::new(false);
static WORST_NS: AtomicU64 = AtomicU64::new(0);

/// Sleeps and wakes up, each time for another while, and goes through all its memory. Returns the sum of what it finds.
extern "C" fn wake_up(times: u64) -> u64 {
    let (mut random, mut sum) = (Random::new(times), 0);
    for _ in 0..times {
        let us = 100 + random.below(1000);
        let due_ns = rt::time::now_ns() + us * 1000;
        let _ = sys::sleep_us(us);
        WORST_NS.fetch_max(rt::time::now_ns().saturating_sub(due_ns), Ordering::Relaxed);
        for offset in (0..1 << LOCKED_LOG2).step_by(PAGE_SIZE as usize) {
            // SAFETY: the zone is memory for tests, or touching it is a fault.
            sum += unsafe { ((ZONE + offset) as *const u64).read_volatile() };
        }
    }
    sum
}

/// The urgent thread: is told how often to wake up, and tells when that is done. It waits in between, for an agent without
/// an order would leave nobody else the processor.
extern "C" fn urgent(chief: u64, _: u64) -> ! {
    loop {
        if let Ok(message) = sys::receive(Uid(chief), Timeout::NEVER) {
            let sum = wake_up(message.words[0]);
            let _ = sys::send(Uid(chief), 0, [sum; 8], Timeout::NEVER);
        }
    }
}

/// Lets the urgent thread wake up so often. The message is no call: a call would lend it this thread's priority.
fn wakes(thread: &Thread, times: u64) -> Outcome<u64> {
    sys::send(thread.uid, 0, [times; 8], Timeout::from_us(60_000_000))?;
    Ok(sys::receive(thread.uid, Timeout::from_us(60_000_000))?.words[0])
}

/// Writes to more pages than there are frames, until it is told to end.
extern "C" fn thrash(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    while !OVER.load(Ordering::Relaxed) {
        let page = random.below(PAGES);
        // SAFETY: as above.
        unsafe { ((ZONE + page * PAGE_SIZE) as *mut u64).write_volatile(seed) };
    }
    0
}

/// Nobody's memory but its own matters to a task whose memory is locked. It causes no fault while others do nothing else, and
/// wakes up in time: the line `REALTIME` says how late it was at worst. How long a nanosecond is depends on
/// the emulator; counting instructions it is one of them, and then the harness judges.
pub fn locked_task_beside_thrashing() -> Outcome {
    OVER.store(false, Ordering::Relaxed);
    let priority = pager::priority();
    let disk = disk(PAGES)?;
    let (swapper, statistics) = swap::<First>(disk.uid(), FRAMES, PAGES)?;
    let mut crowd = [swapper.client()?, swapper.client()?, swapper.client()?];
    let child = Child(sys::task_create(Child::QUOTA, priority + STEPS)?);
    let locker = locked(child.0, LOCKED_LOG2)?;
    let thread = spawn(child.0, priority + STEPS, urgent, sys::myself().0)?;
    sys::thread_set_pager(thread.uid, locker.uid(), pager::uid())?;
    // The first round brings in what it needs: its pages and its code.
    wakes(&thread, 2)?;
    WORST_NS.store(0, Ordering::Relaxed);
    let faults = thread.info()?.faults;
    for (client, seed) in crowd.iter_mut().zip(1..) {
        client.agent.start_apply(thrash, seed);
    }
    let replaced = || statistics.replaced.load(Ordering::Relaxed);
    let (before, mut woken) = (replaced(), 0);
    while woken < WAKES || replaced() - before < WAKES {
        // What is locked stays what it was: zeroes.
        check_eq!(wakes(&thread, ROUND)?, 0);
        woken += ROUND;
        progress();
    }
    let replaced = replaced() - before;
    let worst_ns = WORST_NS.load(Ordering::Relaxed);
    OVER.store(true, Ordering::Relaxed);
    for client in &mut crowd {
        client.agent.result()?;
    }
    rt::println!("REALTIME worst={worst_ns} wakes={woken} replaced={replaced}");
    check_eq!(thread.info()?.faults, faults);
    drop((thread, child, locker, crowd, swapper, disk));
    source::take_all_back();
    Ok(())
}
