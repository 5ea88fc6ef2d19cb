//! Chains of calls through doors in which threads and tasks end at any moment, while identifiers are handed around, released and
//! revoked.
//!
//! Sixteen tasks have two doors each, servers for them, and clients. A client calls any door that its task has; a server that is called
//! calls a door of a later task, and so on, so that no ring of callers can wait for one another. All of them
//! yield the processor at random: before a call, in the middle of one, before a return. The suite's main thread ends some of
//! them, and whole tasks, stops and resumes some, makes some less urgent, alerts some, makes others, and tells each task's *steward* which identifiers to hand on, to release and to revoke. Only
//! stewards change who has what, so it is known at any moment, and with it which doors have lost their last identifier how often.
//!
//! From time to time no new calls begin. Then every client has to come to its end, every server to wait, and each door's
//! unreferenced messages to be as many as expected. That none comes too early is looked at all the time.
//!
//! Everything follows from the seed and from the order in which threads get the processor; main is more urgent
//! than all others while it acts, and one of them while it lets them run.

use crate::kit::{self, Child, Frame, Outcome, Random, pager};
use crate::{check, check_eq};
use alloc::vec::Vec;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};
use rt::println;
use sys::abi::Call;
use sys::abi::call::door_op;
use sys::thread_state::{RECEIVING, SENDING};
use sys::{Error, Fpage, Kind, Message, Rights, TaskId, Timeout, Uid};

const TASKS: usize = 16;
/// The first of a task's threads is its steward; clients follow, then servers.
const THREADS: usize = 6;
const CLIENTS: core::ops::Range<usize> = 1..3;
const SERVERS: core::ops::Range<usize> = 3..THREADS;
/// Door `n` is of task `n / 2`, and has number `n` wherever it has one.
const DOORS: usize = 2 * TASKS;

/// Kernel memory of a task, in frames.
const QUOTA: u64 = 44;

/// Ends after which everything has to come to rest.
const ROUND: u64 = 200;
/// How often the others get the processor until they have to be at rest.
const PATIENCE: u64 = 100_000;

/// How many are stopped at a time, and how many less urgent.
const HINDERED_MAX: usize = 8;

/// What servers make of a caller's word.
const SEAL: u64 = 0x5ea1_5ea1_5ea1_5ea1;

type Counter = AtomicU64;

/// Unreferenced messages of each door.
#[unsafe(export_name = "suite_chaos_told")]
static TOLD: [Counter; DOORS] = [const { Counter::new(0) }; DOORS];
/// Whether each door was handed on since it lost its last identifier.
static HANDED_ON: [Counter; DOORS] = [const { Counter::new(0) }; DOORS];
/// Which call each thread serves: its datum, or 0.
static SERVING: [Counter; TASKS * THREADS] = [const { Counter::new(0) }; TASKS * THREADS];
/// Whether each thread is in a call, or as good as.
static CALLING: [Counter; TASKS * THREADS] = [const { Counter::new(0) }; TASKS * THREADS];
/// Each thread's random numbers.
static RANDOM: [Counter; TASKS * THREADS] = [const { Counter::new(1) }; TASKS * THREADS];
/// Nonzero: clients end themselves.
static RESTING: Counter = Counter::new(0);
/// How calls ended: with a return, no such door, the partner's death, an abort.
static ENDED: [Counter; 4] = [const { Counter::new(0) }; 4];
/// The longest chain.
static DEEPEST: Counter = Counter::new(0);
/// The first thing that ought not to have happened: which, and two words about it.
static WRONG: [Counter; 3] = [const { Counter::new(0) }; 3];

#[repr(C, align(4096))]
struct Stack([u8; 4096]);

static mut STACKS: [Stack; TASKS * THREADS] = [const { Stack([0; 4096]) }; TASKS * THREADS];

unsafe extern "C" {
    fn suite_start();
    fn suite_chaos_serve();
    fn suite_chaos_entry();
    fn suite_chaos_counted();
    fn suite_system_call(frame: *mut Frame);
}

fn get(counter: &Counter) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn set(counter: &Counter, value: u64) {
    counter.store(value, Ordering::Relaxed);
}

fn add(counter: &Counter, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// Something that ought not to have happened.
fn wrong(what: u64, details: [u64; 2]) {
    if WRONG[0].compare_exchange(0, what, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        WRONG[1..].iter().zip(details).for_each(|(place, detail)| set(place, detail));
    }
}

// What follows up to `Task` runs in the children.

/// A thread's next random number.
fn random(slot: usize) -> u64 {
    let mut random = Random::new(get(&RANDOM[slot]));
    let next = random.next();
    set(&RANDOM[slot], next);
    next >> 16
}

/// Lets others run, or not.
fn dawdle(slot: usize) {
    for _ in 0..random(slot) % 3 {
        let _ = sys::thread_switch(Uid::NIL);
    }
}

/// A call through a door, one more in a chain. False if there is no such door.
fn call(slot: usize, door: usize, depth: u64) -> bool {
    let word = random(slot);
    let mut words = [0; 11];
    (words[0], words[1]) = (word, depth);
    let mut frame = Frame::door_call(door as u32, depth as u32, words);
    if random(slot).is_multiple_of(4) {
        frame = frame.alertable();
    }
    set(&CALLING[slot], 1);
    // SAFETY: the call changes the registers that the frame stands for, and no memory.
    unsafe { suite_system_call(&mut frame) };
    set(&CALLING[slot], 0);
    let end = match (frame.kind(), frame.error()) {
        (Some(Kind::DoorReturn), _) if frame.rdi == word ^ SEAL && frame.rsi == depth => 0,
        (_, Some(Error::NoSuch)) => 1,
        (_, Some(Error::PartnerDied)) => 2,
        (_, Some(Error::SendAborted | Error::ReceiveAborted)) => 3,
        _ => {
            wrong(1, [frame.rax, frame.rdi]);
            return true;
        }
    };
    add(&ENDED[end], 1);
    end != 1
}

/// Sees to it that nothing of what [`call`] needs is missing, so that a thread in a call never waits for its pager.
fn prepare(slot: usize) {
    let mut frame = Frame::control(Call::Clock as u32, [0; 6]);
    // SAFETY: the call changes no memory.
    unsafe { suite_system_call(&mut frame) };
    set(&CALLING[slot], 0);
}

/// A client: calls whatever its task may have been handed.
extern "C" fn client(slot: u64, _: u64) -> ! {
    let slot = slot as usize;
    prepare(slot);
    while get(&RESTING) == 0 {
        dawdle(slot);
        if random(slot).is_multiple_of(4) {
            let _ = sys::clear_alert(Uid::NIL);
        }
        let door = random(slot) as usize % DOORS;
        if door / 2 != slot / THREADS {
            call(slot, door, 1);
        }
    }
    loop {
        let _ = sys::thread_destroy(Uid::NIL);
    }
}

#[repr(C)]
struct Words {
    first: u64,
    second: u64,
}

/// A server is called, or told that a door is unreferenced; see `suite_chaos_entry`.
#[unsafe(export_name = "suite_chaos_served")]
extern "C" fn served(word: u64, depth: u64, datum: u64, rax: u64) -> Words {
    let here = &raw const word as u64;
    let slot = (here - addr_of!(STACKS) as u64) as usize / size_of::<Stack>();
    let task = slot / THREADS;
    if datum as u8 as usize / 2 != task {
        wrong(2, [datum, slot as u64]);
    }
    if rax as u32 == Kind::Unreferenced as u32 {
        let mates = &SERVING[task * THREADS..(task + 1) * THREADS];
        // Once it has been counted, the door may be handed on and called again.
        let is_served = mates.iter().any(|serving| get(serving) == datum);
        if is_served && get(&HANDED_ON[datum as u8 as usize]) == 0 {
            wrong(3, [datum, slot as u64]);
        }
        if (rax >> 32, word, depth) != (0, 0, 0) {
            wrong(6, [rax, word]);
        }
        dawdle(slot);
        return Words { first: 0, second: 0 };
    }
    if rax != depth << 32 | Kind::DoorCall as u64 {
        wrong(4, [rax, depth]);
    }
    set(&SERVING[slot], datum);
    DEEPEST.fetch_max(depth, Ordering::Relaxed);
    prepare(slot);
    dawdle(slot);
    if task + 1 < TASKS && !random(slot).is_multiple_of(32) {
        // Mostly the next task's, so that chains are long.
        let later = (TASKS - 1 - task) as u64;
        let step = if random(slot).is_multiple_of(16) { random(slot) % later } else { 0 };
        let door = 2 * (task + 1 + step as usize) + random(slot) as usize % 2;
        if !call(slot, door, depth + 1) {
            call(slot, door ^ 1, depth + 1);
        }
        dawdle(slot);
    }
    set(&SERVING[slot], 0);
    Words { first: word ^ SEAL, second: depth }
}

/// What a steward is told to do: the label of a message.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Order {
    /// Make door w0, with datum w1.
    Make,
    /// Hand door w0 on to the thread w1, with the rights w2.
    Give,
    /// Take door w0 from the thread w1. This alone is not answered.
    Take,
    /// Release or, if it is its own, give up door w0.
    Release,
    /// Take door w0 from everybody else.
    Revoke,
    /// Nothing, so that what was ordered before has been done.
    Rest,
}

fn page(door: u64, rights: Rights) -> Fpage {
    Fpage::doors(door as u32, 0, rights)
}

fn obey(message: &Message) -> sys::Result<()> {
    const ORDERS: [Order; 6] =
        [Order::Make, Order::Give, Order::Take, Order::Release, Order::Revoke, Order::Rest];
    let [first, second, third, ..] = message.words;
    match ORDERS[message.label as usize] {
        Order::Make => {
            let entry = suite_chaos_entry as *const () as usize as u64;
            let mut registers = [first, entry, second, 0, 0, 0];
            // SAFETY: it makes a door.
            match unsafe { sys::system_call(Call::DoorControl as u32 | door_op::CREATE << 8, &mut registers) }
            {
                0 => Ok(()),
                _ => Err(Error::BadState),
            }
        }
        Order::Give => {
            let item = (page(first, Rights(third as u8)), 0);
            sys::send_item(Uid(second), 0, [0; 8], item, Timeout::NEVER)
        }
        Order::Take => sys::receive_item(Uid(second), page(first, Rights::RW), Timeout::NEVER).map(drop),
        // SAFETY: identifiers are no memory.
        Order::Release => unsafe { sys::flush_self(page(first, Rights::RW)) }.map(drop),
        Order::Revoke => sys::flush(page(first, Rights::RW)).map(drop),
        Order::Rest => Ok(()),
    }
}

/// A steward: does what main says.
extern "C" fn steward(_: u64, _: u64) -> ! {
    let mut message = sys::receive(Uid::ANY, Timeout::NEVER);
    loop {
        let Ok(order) = message else {
            message = sys::receive(Uid::ANY, Timeout::NEVER);
            continue;
        };
        let done = obey(&order);
        if order.label == Order::Take as u32 {
            if let Err(error) = done {
                wrong(5, [error as u64, order.words[0]]);
            }
            message = sys::receive(Uid::ANY, Timeout::NEVER);
        } else {
            let error = done.err().map_or(0, |error| error as u32);
            message = sys::ipc_reply_wait(order.sender, error, [0; 8]);
        }
    }
}

/// A task of the chain.
struct Task {
    child: Child,
    threads: [Option<Uid>; THREADS],
}

/// How many were ended or aborted, and how many messages expected.
#[derive(Default)]
struct Counts {
    threads: u64,
    tasks: u64,
    aborts: u64,
    stops: u64,
    alerts: u64,
    unreferenced: u64,
}

struct Chaos {
    tasks: Vec<Task>,
    /// Who has each door, but for its maker: one bit for each task.
    holders: [u32; DOORS],
    /// What each door's datum has beside its number: how often it was made.
    made: [u64; DOORS],
    /// Unreferenced messages that have come or have to come.
    expected: [u64; DOORS],
    random: Random,
    counts: Counts,
    /// Who is stopped.
    stopped: Vec<Uid>,
    /// Who is less urgent than the others.
    slow: Vec<Uid>,
}

impl Chaos {
    fn new(seed: u64) -> Outcome<Chaos> {
        TOLD.iter().chain(&ENDED).chain(&WRONG).for_each(|counter| set(counter, 0));
        set(&DEEPEST, 0);
        let mut chaos = Chaos {
            tasks: Vec::new(),
            holders: [0; DOORS],
            made: [0; DOORS],
            expected: [0; DOORS],
            random: Random::new(seed),
            counts: Counts::default(),
            stopped: Vec::new(),
            slow: Vec::new(),
        };
        for index in 0..TASKS {
            chaos.tasks.push(Task { child: Child::with_quota(QUOTA)?, threads: [None; THREADS] });
            chaos.furnish(index)?;
        }
        Ok(chaos)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A new task gets its threads and doors.
    fn furnish(&mut self, index: usize) -> Outcome {
        for thread in 0..THREADS {
            self.spawn(index, thread)?;
        }
        for door in [2 * index, 2 * index + 1] {
            self.make(door)?;
        }
        Ok(())
    }

    fn spawn(&mut self, task: usize, thread: usize) -> Outcome {
        let slot = task * THREADS + thread;
        for counter in [&SERVING[slot], &CALLING[slot]] {
            set(counter, 0);
        }
        set(&RANDOM[slot], self.random.next());
        let pager = pager::uid();
        let uid = sys::thread_create(self.tasks[task].child.0, pager::priority() - 1, pager, pager)?;
        let top = addr_of!(STACKS) as u64 + ((slot + 1) * size_of::<Stack>()) as u64;
        if SERVERS.contains(&thread) {
            let serve = suite_chaos_serve as *const () as usize as u64;
            // SAFETY: nobody else has the stack.
            unsafe { sys::thread_start(uid, serve, top, 0)? };
        } else {
            let function = if thread == 0 { steward } else { client };
            // SAFETY: the same; the function's address lies on the stack, where `suite_start` expects it.
            unsafe {
                *((top - 8) as *mut u64) = function as *const () as usize as u64;
                sys::thread_start(uid, suite_start as *const () as usize as u64, top - 8, slot as u64)?;
            }
        }
        self.tasks[task].threads[thread] = Some(uid);
        Ok(())
    }

    fn steward(&self, task: usize) -> Uid {
        self.tasks[task].threads[0].expect("a task has a steward")
    }

    fn order(&self, task: usize, order: Order, [first, second, third]: [u64; 3]) -> Outcome {
        let words = [first, second, third, 0, 0, 0, 0, 0];
        let answer = sys::ipc_call(self.steward(task), order as u32, words)?;
        check_eq!(answer.label, 0);
        Ok(())
    }

    fn make(&mut self, door: usize) -> Outcome {
        self.made[door] += 1;
        let datum = door as u64 | self.made[door] << 8;
        self.order(door / 2, Order::Make, [door as u64, datum, 0])
    }

    fn has(&self, task: usize, door: usize) -> bool {
        door / 2 == task || self.holders[door] & 1 << task != 0
    }

    /// Whether its maker has to be told that a door is unreferenced.
    fn is_to_be_told(&self, door: usize) -> bool {
        get(&TOLD[door]) < self.expected[door]
    }

    /// Some hold a door no more.
    fn lose(&mut self, door: usize, tasks: u32) {
        let before = self.holders[door];
        self.holders[door] = before & !tasks;
        if before != 0 && self.holders[door] == 0 {
            set(&HANDED_ON[door], 0);
            self.expected[door] += 1;
            self.counts.unreferenced += 1;
        }
    }

    /// Hands a door on. One of which its maker has to be told stays with him: so it is known how often he is.
    fn hand(&mut self) -> Outcome {
        let (door, from) = (self.below(DOORS), self.below(TASKS));
        // Mostly to the task before, so that chains go through all of them.
        let to = if self.one_in(3) { self.below(TASKS) } else { (door / 2).saturating_sub(1) };
        if self.has(to, door) || self.is_to_be_told(door) {
            return Ok(());
        }
        let from = if self.has(from, door) { from } else { door / 2 };
        set(&HANDED_ON[door], 1);
        let moves = self.one_in(4);
        let rights = if moves { Rights::RW.or(Rights::GRANT) } else { Rights::RW };
        let (giver, taker) = (self.steward(from), self.steward(to));
        let words = [door as u64, giver.0, 0, 0, 0, 0, 0, 0];
        sys::send(taker, Order::Take as u32, words, Timeout::NEVER)?;
        self.order(from, Order::Give, [door as u64, taker.0, rights.0 as u64])?;
        self.order(to, Order::Rest, [0; 3])?;
        self.holders[door] |= 1 << to;
        if moves && door / 2 != from {
            self.holders[door] &= !(1 << from);
        }
        Ok(())
    }

    /// Releases an identifier, revokes a door, or gives one up and makes another.
    fn take_away(&mut self) -> Outcome {
        let (door, task) = (self.below(DOORS), self.below(TASKS));
        if self.one_in(4) {
            self.lose(door, u32::MAX);
            self.order(door / 2, Order::Revoke, [door as u64, 0, 0])
        } else if door / 2 != task {
            self.lose(door, 1 << task);
            self.order(task, Order::Release, [door as u64, 0, 0])
        } else if !self.is_to_be_told(door) {
            self.holders[door] = 0;
            self.order(task, Order::Release, [door as u64, 0, 0])?;
            self.make(door)
        } else {
            Ok(())
        }
    }

    /// Ends a thread's wait, unless that is for its pager.
    fn abort(&mut self) -> Outcome {
        let (task, thread) = (self.below(TASKS), 1 + self.below(THREADS - 1));
        let Some(uid) = self.tasks[task].threads[thread] else { return Ok(()) };
        let Ok(info) = sys::thread_info(uid) else { return Ok(()) };
        let calls = get(&CALLING[task * THREADS + thread]) != 0;
        if info.state == RECEIVING || info.state == SENDING && calls {
            sys::thread_abort(uid)?;
            self.counts.aborts += 1;
        }
        Ok(())
    }

    /// Stops a thread, whatever it is in the middle of, or makes it less urgent than all others.
    fn hinder(&mut self) -> Outcome {
        let (task, thread) = (self.below(TASKS), 1 + self.below(THREADS - 1));
        let Some(uid) = self.tasks[task].threads[thread] else { return Ok(()) };
        let stops = !self.one_in(4);
        let hindered = if stops {
            sys::thread_stop(uid)
        } else {
            sys::thread_set_priority(uid, pager::priority() - 2, 0)
        };
        match hindered {
            Ok(()) if stops => self.stopped.push(uid),
            Ok(()) => self.slow.push(uid),
            // It has ended itself.
            Err(Error::NoSuch) => {}
            Err(error) => return Err(error.into()),
        }
        self.counts.stops += 1;
        Ok(())
    }

    /// Lets those go on that were hindered first, until so many are left.
    fn release(&mut self, left: usize) {
        for uid in self.stopped.drain(..self.stopped.len().saturating_sub(left)) {
            // It may have ended.
            let _ = sys::thread_resume(uid);
        }
        for uid in self.slow.drain(..self.slow.len().saturating_sub(left)) {
            let _ = sys::thread_set_priority(uid, pager::priority() - 1, 0);
        }
    }

    fn alert(&mut self) -> Outcome {
        let (task, thread) = (self.below(TASKS), 1 + self.below(THREADS - 1));
        match self.tasks[task].threads[thread].map(sys::alert) {
            Some(Ok(_)) => self.counts.alerts += 1,
            // It has ended itself.
            None | Some(Err(Error::NoSuch)) => {}
            Some(Err(error)) => return Err(error.into()),
        }
        Ok(())
    }

    fn end_thread(&mut self) -> Outcome {
        let (task, thread) = (self.below(TASKS), 1 + self.below(THREADS - 1));
        let slot = task * THREADS + thread;
        let Some(uid) = self.tasks[task].threads[thread].take() else { return self.spawn(task, thread) };
        self.counts.threads += 1;
        if SERVERS.contains(&thread) && sys::thread_stop(uid).is_ok() {
            note_uncounted(uid);
        }
        set(&SERVING[slot], 0);
        match sys::thread_destroy(uid) {
            // It has ended itself.
            Ok(()) | Err(Error::NoSuch) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn end_task(&mut self) -> Outcome {
        let index = self.below(TASKS);
        self.counts.tasks += 1;
        for door in (0..DOORS).filter(|door| door / 2 != index) {
            self.lose(door, 1 << index);
        }
        sys::task_destroy(self.tasks[index].child.0)?;
        for door in [2 * index, 2 * index + 1] {
            check!(get(&TOLD[door]) <= self.expected[door], "door {door} was unreferenced too early");
            // Nobody is left to be told.
            (self.holders[door], self.expected[door]) = (0, get(&TOLD[door]));
        }
        self.tasks[index] = Task { child: Child::with_quota(QUOTA)?, threads: [None; THREADS] };
        self.furnish(index)
    }

    /// Something ends, and much else happens.
    fn step(&mut self) -> Outcome {
        for _ in 0..self.below(12) {
            let_others_run()?;
        }
        for _ in 0..self.below(16) {
            self.hand()?;
        }
        if self.one_in(2) {
            self.take_away()?;
        }
        if self.one_in(2) {
            self.abort()?;
        }
        if self.one_in(2) {
            self.alert()?;
        }
        if self.one_in(2) {
            self.hinder()?;
        }
        let left = self.below(HINDERED_MAX);
        self.release(left);
        for _ in 0..2 {
            let (task, thread) = (self.below(TASKS), 1 + self.below(THREADS - 1));
            if self.tasks[task].threads[thread].is_none() {
                self.spawn(task, thread)?;
            }
        }
        if self.one_in(8) { self.end_task() } else { self.end_thread() }
    }

    /// What must hold at any moment.
    fn check(&self) -> Outcome {
        for (door, &expected) in self.expected.iter().enumerate() {
            let told = get(&TOLD[door]);
            check!(told <= expected, "door {door}: {told} unreferenced messages, not {expected}");
            check!(
                self.holders[door] == 0 || told == expected,
                "door {door} is referenced: {told}, {expected}"
            );
        }
        let [what, first, second] = WRONG.each_ref().map(get);
        check!(what == 0, "wrong {what}: {first:#x} {second:#x}");
        Ok(())
    }

    /// No new calls; all that there are come to their end.
    fn rest(&mut self) -> Outcome {
        set(&RESTING, 1);
        self.release(0);
        for round in 0.. {
            self.hire()?;
            let mut busy = self.threads().filter(|&(slot, uid)| is_busy(slot, uid));
            let untold = (0..DOORS).find(|&door| self.is_to_be_told(door));
            if untold.is_none() && busy.next().is_none() {
                break;
            }
            if round == PATIENCE {
                drop(busy);
                crate::describe_threads();
                return Err(kit::Failure::new(format_args!(
                    "somebody hangs, or door {untold:?} is not told of"
                )));
            }
            let_others_run()?;
        }
        self.check()?;
        for (slot, uid) in self.threads().filter(|&(slot, _)| SERVERS.contains(&(slot % THREADS))) {
            check!(!matches!(sys::is_alerted(uid), Ok(true)), "server {slot} waits, and is alerted");
        }
        set(&RESTING, 0);
        for task in &mut self.tasks {
            task.threads[CLIENTS].fill(None);
        }
        kit::progress();
        Ok(())
    }

    /// All servers that there can be.
    fn hire(&mut self) -> Outcome {
        for task in 0..TASKS {
            for thread in SERVERS {
                let lives = |uid: Uid| sys::thread_info(uid).is_ok();
                if !self.tasks[task].threads[thread].is_some_and(lives) {
                    self.spawn(task, thread)?;
                }
            }
        }
        Ok(())
    }

    /// All that may be there.
    fn threads(&self) -> impl Iterator<Item = (usize, Uid)> {
        let slots = self.tasks.iter().flat_map(|task| task.threads);
        slots.enumerate().filter_map(|(slot, uid)| Some((slot, uid?)))
    }
}

/// Clients have to be gone, and all others to wait, in no call.
fn is_busy(slot: usize, uid: Uid) -> bool {
    let Ok(info) = sys::thread_info(uid) else { return false };
    CLIENTS.contains(&(slot % THREADS)) || info.state != RECEIVING || get(&SERVING[slot]) != 0
}

/// A server that is going to end may have been told that a door is unreferenced, and not have counted it yet.
fn note_uncounted(server: Uid) {
    let Ok([rip, _, _, rax]) = sys::thread_registers(server, 0) else { return };
    let code =
        suite_chaos_entry as *const () as usize as u64..suite_chaos_counted as *const () as usize as u64;
    if code.contains(&rip)
        && rax as u32 == Kind::Unreferenced as u32
        && let Ok([_, _, datum, _]) = sys::thread_registers(server, 1)
    {
        add(&TOLD[datum as u8 as usize], 1);
    }
}

/// Lets each of the others run for a while.
fn let_others_run() -> Outcome {
    sys::thread_set_priority(Uid::NIL, pager::priority() - 1, 0)?;
    let _ = sys::thread_switch(Uid::NIL);
    sys::thread_set_priority(Uid::NIL, pager::priority(), 0)?;
    Ok(())
}

fn run(kills: u64, seed: u64) -> Outcome<Counts> {
    let mut chaos = Chaos::new(seed)?;
    for step in 1.. {
        chaos.step()?;
        chaos.check()?;
        let is_over = chaos.counts.threads + chaos.counts.tasks >= kills;
        if is_over || step % ROUND == 0 {
            chaos.rest()?;
        }
        if is_over {
            break;
        }
    }
    Ok(chaos.counts)
}

pub fn chains_of_doors_and_sudden_ends() -> Outcome {
    // The first time this program's own pages come in, and are paid for.
    run(2 * ROUND, 0)?;
    let (kills, seed, since) = (crate::chaos_kills(), crate::random_seed(), sys::clock());
    let before = sys::task_info(TaskId::NIL)?;
    let Counts { threads, tasks, aborts, stops, alerts, unreferenced } = run(kills, seed)?;
    // Before anything else runs, whose pages may be new.
    let after = sys::task_info(TaskId::NIL)?;
    let [returned, none, died, aborted] = ENDED.each_ref().map(get);
    let deepest = get(&DEEPEST);
    println!(
        "CHAOS seed={seed} kills={kills} ms={} ended: threads={threads} tasks={tasks} aborts={aborts} stops={stops} alerts={alerts} calls: returned={returned} \
         died={died} aborted={aborted} no_such={none} deepest={deepest} unreferenced={unreferenced}",
        (sys::clock() - since) / 1_000_000
    );
    check_eq!((after.quota, after.threads), (before.quota, before.threads));
    // A task keeps one slab without nodes, if it has no other with room; whether it does depends on what was needed at once.
    check!(after.used.abs_diff(before.used) <= 1, "{} frames, and {} before", after.used, before.used);
    // It was no walk through an empty house.
    check!(returned > kills && died > kills / 100 && unreferenced > kills / 100);
    check!(
        aborts > kills / 20 && stops > kills / 20 && alerts > kills / 20 && deepest + 1 >= TASKS as u64,
        "{deepest} calls in a chain"
    );
    Ok(())
}
