//! A hundred thousand threads: what a message to one of them costs, and what their timeouts cost.
//!
//! The crowd are servers of one task, each of which waits for anybody. When their wait is aborted they become
//! sleepers: each waits for a point in time of its own. Most of those points are a millisecond apart; some threads
//! share theirs, to see what an interrupt costs when many wait for the same moment. Nobody ends the crowd: the machine
//! does.

use crate::{Chief, Failure, ITERATIONS, QUOTA, Result};
use core::ptr::addr_of_mut;
use sys::{Kind, TaskId, Uid};

/// Threads that wait for points in time of their own.
const CROWD: usize = 100_000;

/// Groups that share a point in time, and their size.
const BURSTS: usize = 40;
const BURST: usize = 64;

/// All of them.
const TOTAL: usize = CROWD + BURSTS * BURST;

/// Clock interrupts that are measured, and the time from one to the next.
const TICKS: u32 = 320;
const TICK_NS: u64 = 100_000;

/// How far the points in time of the crowd are apart.
const APART_NS: u64 = 1_000_000;

/// The servers that are called, one in each iteration. On a page of its own, so that it is mapped once.
#[repr(C, align(4096))]
struct Servers([u64; ITERATIONS as usize]);

#[unsafe(no_mangle)]
static mut bench_crowd_servers: Servers = Servers([0; ITERATIONS as usize]);
/// When a sleeper that begins to wait ends.
#[unsafe(no_mangle)]
static mut bench_crowd_until: u64 = 0;
/// When the measured sleeper wakes next.
#[unsafe(no_mangle)]
static mut bench_tick_next: u64 = 0;
/// How often it still does.
#[unsafe(no_mangle)]
static mut bench_ticks: u32 = TICKS;

unsafe extern "C" {
    fn bench_crowd();
    fn bench_crowd_client();
    fn bench_call_forever();
    fn bench_call_earlier();
    fn bench_call_first();
    fn bench_call_timed_again();
    fn bench_general_server();
    fn bench_tick_idle();
    fn bench_tick_sleeper();
}

impl Chief {
    /// The rows that need the crowd.
    pub fn crowd_suite(&self) -> Result<()> {
        let near = sys::task_create(QUOTA, self.priority + 4)?;
        let far = sys::task_create(TOTAL as u64 + QUOTA, self.priority + 4)?;
        self.gather(far)?;
        self.call_some(near)?;
        let first = self.put_to_sleep(far)?;
        self.timeouts(near, far)?;
        self.ticks(near, far, first)
    }

    /// Makes the crowd. They are more urgent than this thread, so each waits when it has been started.
    fn gather(&self, task: TaskId) -> Result<()> {
        let before = sys::task_info(task)?.used;
        for number in 0..TOTAL {
            let thread = sys::thread_create(task, self.priority + 1, self.uid, Uid::NIL)?;
            self.begin(thread, bench_crowd)?;
            if number == 0 {
                self.settle(thread)?;
            }
            if number.is_multiple_of(TOTAL / ITERATIONS as usize + 1) {
                let called = number / (TOTAL / ITERATIONS as usize + 1);
                // SAFETY: no client runs now.
                unsafe { bench_crowd_servers.0[called] = thread.0 };
            }
        }
        // A frame for each, and a few for what the first of them touched.
        let used = sys::task_info(task)?.used - before;
        if used > TOTAL as u64 + 16 {
            return Err(Failure::Report(used, TOTAL as u64));
        }
        Ok(())
    }

    /// One call to each of some servers all over the crowd.
    fn call_some(&self, task: TaskId) -> Result<()> {
        // SAFETY: no client runs now.
        let last = unsafe { bench_crowd_servers.0[0] };
        let report = self.against(task, bench_crowd_client, Uid(last))?;
        let [rax, rdx, ..] = report.words;
        if Kind::from_eax(rax as u32) != Some(Kind::Reply) || rdx != last {
            return Err(Failure::Report(rax, rdx));
        }
        Ok(())
    }

    /// Lets each of the crowd wait for its point in time. Returns the first of them.
    fn put_to_sleep(&self, task: TaskId) -> Result<u64> {
        // Soon after it begins, a span of the timing wheel does too that holds hundreds of them.
        const SPAN_NS: u64 = 1 << 28;
        let first = (sys::clock() + 6 * SPAN_NS).next_multiple_of(SPAN_NS) - TICK_NS * TICKS as u64 / 2;
        let mut thread = sys::thread_next(task, Uid::NIL)?;
        let oldest = thread;
        for number in 0..TOTAL {
            let until = match number.checked_sub(BURSTS * BURST) {
                None => first + (number / BURST) as u64 * 8 * TICK_NS,
                Some(number) => first + number as u64 * APART_NS,
            };
            set_until(until);
            sys::thread_abort(thread)?;
            if thread == oldest {
                self.settle(thread)?;
            }
            thread = sys::thread_next(task, thread)?;
        }
        set_until(sys::abi::call::ABSOLUTE_END - 1);
        Ok(first)
    }

    /// Calls with and without a timeout, in the same general form.
    fn timeouts(&self, client: TaskId, server: TaskId) -> Result<()> {
        let server = self.start(server, bench_general_server, Uid::NIL)?;
        self.settle(server)?;
        let once = [bench_call_forever, bench_call_earlier, bench_call_timed_again];
        for entry in once.into_iter().chain([bench_call_first as crate::Entry; ITERATIONS as usize]) {
            let [rax, rdx, ..] = self.against(client, entry, server)?.words;
            if Kind::from_eax(rax as u32) != Some(Kind::Reply) || rdx != server.0 {
                return Err(Failure::Report(rax, rdx));
            }
        }
        Ok(())
    }

    /// Clock interrupts, each of which wakes at least one thread.
    fn ticks(&self, idle: TaskId, sleeper: TaskId, first: u64) -> Result<()> {
        sys::thread_set_priority(self.uid, self.priority + 4, 0)?;
        if sys::clock() >= first {
            return Err(Failure::Report(sys::clock(), first));
        }
        // SAFETY: the sleeper does not run yet.
        unsafe { bench_tick_next = first };
        for (task, entry, priority) in [
            (sleeper, bench_tick_sleeper as crate::Entry, self.priority + 3),
            (idle, bench_tick_idle, self.priority + 2),
        ] {
            let thread = sys::thread_create(task, priority, self.uid, self.uid)?;
            self.begin(thread, entry)?;
        }
        let report = self.serve()?;
        if report.words[0] != 0 { Err(Failure::Report(report.words[0], 0)) } else { Ok(()) }
    }
}

fn set_until(until: u64) {
    // SAFETY: each sleeper reads it once, right when its wait was aborted, which is later than this.
    unsafe { addr_of_mut!(bench_crowd_until).write_volatile(until) };
}
