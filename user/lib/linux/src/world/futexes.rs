//! Futexes, locks that are handed over, and locks whose owners end.

use super::{COMMON, HANDLER, OWN, World};
use crate::errno::{EAGAIN, EDEADLK, EINTR, EINVAL, EPERM, ESRCH, ETIMEDOUT, Result};
use crate::machine::Tid;
use linux_raw_sys::general::*;

/// Words of futexes, in memory that each process has to itself.
const WORDS: [u64; 2] = [OWN + 0x2000, OWN + 0x2040];

const SECOND: u64 = 1_000_000_000;

impl World {
    fn futex(&mut self, tid: Tid, at: u64, op: u32, value: u32) -> Option<Result<u64>> {
        self.call(tid, __NR_futex, &[at, op.into(), value.into()])
    }

    fn set(&mut self, tid: Tid, at: u64, value: u32) {
        self.put(tid, at, &value.to_le_bytes());
    }

    /// Waits until a time of a clock.
    fn wait_until(&mut self, tid: Tid, op: u32, time: u64) -> Option<Result<u64>> {
        let words = [time / SECOND, time % SECOND];
        self.system.write_words(tid, OWN + 512, &words).unwrap();
        let bits = FUTEX_BITSET_MATCH_ANY.into();
        self.call(tid, __NR_futex, &[WORDS[0], op.into(), 0, OWN + 512, 0, bits])
    }

    /// Gives a thread a list of locks: entries at these addresses, each with its word 32 bytes behind it.
    fn list(&mut self, tid: Tid, head: u64, entries: &[u64], pending: u64) {
        let mut from = head;
        for entry in entries {
            self.system.write_words(tid, from & !1, &[*entry]).unwrap();
            from = *entry;
        }
        self.system.write_words(tid, from & !1, &[head]).unwrap();
        self.system.write_words(tid, head + 8, &[32, pending]).unwrap();
        self.now(tid, __NR_set_robust_list, &[head, 24]).unwrap();
    }

    fn end(&mut self, tid: Tid) {
        assert_eq!(self.call(tid, __NR_exit, &[0]), None);
    }
}

const WAIT: u32 = FUTEX_WAIT_PRIVATE;
const WAKE: u32 = FUTEX_WAKE_PRIVATE;

#[test]
fn who_came_first_is_woken_first() {
    let mut world = World::new();
    let threads = [(); 3].map(|()| world.thread(1));
    assert_eq!(world.futex(1, WORDS[0], WAIT, 1), Some(Err(EAGAIN)));
    assert_eq!(world.futex(1, WORDS[0] + 2, FUTEX_WAIT, 0), Some(Err(EINVAL)));
    for tid in [threads[2], threads[0], threads[1]] {
        world.wait(1);
        assert_eq!(world.futex(tid, WORDS[0], WAIT, 0), None);
    }
    assert_eq!(world.futex(1, WORDS[0], WAKE, 1), Some(Ok(1)));
    assert_eq!(threads.map(|tid| world.answer(tid)), [None, None, Some(Ok(0))]);
    assert_eq!(world.futex(1, WORDS[0], WAKE, i32::MAX as u32), Some(Ok(2)));
    assert_eq!(threads.map(|tid| world.answer(tid)), [Some(Ok(0)), Some(Ok(0)), None]);
}

/// Those that come while no time passes have their order, and one that is moved comes behind those that wait there already.
#[test]
fn turns_need_no_time() {
    let mut world = World::new();
    let threads = [(); 3].map(|()| world.thread(1));
    for (tid, at) in [(threads[0], WORDS[0]), (threads[2], WORDS[1]), (threads[1], WORDS[1])] {
        assert_eq!(world.futex(tid, at, WAIT, 0), None);
    }
    let op = FUTEX_CMP_REQUEUE_PRIVATE.into();
    assert_eq!(world.now(1, __NR_futex, &[WORDS[0], op, 0, 1, WORDS[1], 0]), Ok(1));
    for tid in [threads[2], threads[1], threads[0]] {
        assert_eq!(world.futex(1, WORDS[1], WAKE, 1), Some(Ok(1)));
        assert_eq!(world.answer(tid), Some(Ok(0)));
    }
}

/// D2: a waiter that was moved stays where it is when its call is made again.
#[test]
fn moved_waiters_stay_where_they_are() {
    let mut world = World::new();
    let threads = [(); 3].map(|()| world.thread(1));
    for tid in threads {
        assert_eq!(world.futex(tid, WORDS[0], WAIT, 0), None);
    }
    let op = FUTEX_CMP_REQUEUE_PRIVATE.into();
    assert_eq!(world.now(1, __NR_futex, &[WORDS[0], op, 1, 9, WORDS[1], 5]), Err(EAGAIN));
    assert_eq!(world.now(1, __NR_futex, &[WORDS[0], op, u64::from(u32::MAX), 9, WORDS[1], 0]), Err(EINVAL));
    assert_eq!(world.now(1, __NR_futex, &[WORDS[0], op, 1, 9, WORDS[1], 0]), Ok(3));
    assert_eq!(threads.map(|tid| world.answer(tid)), [Some(Ok(0)), None, None]);
    // The one that is not woken is asked, too, and goes on waiting there.
    assert_eq!(world.futex(1, WORDS[1], WAKE, 1), Some(Ok(1)));
    assert_eq!(world.futex(1, WORDS[0], WAKE, 9), Some(Ok(0)));
    assert_eq!(world.futex(1, WORDS[1], WAKE, 9), Some(Ok(1)));
    assert_eq!(threads.map(|tid| world.answer(tid)), [None, Some(Ok(0)), Some(Ok(0))]);
}

/// D3: a page that gets another frame has the same words.
#[test]
fn words_survive_copies() {
    let mut world = World::new();
    let thread = world.thread(1);
    world.set(1, WORDS[0], 0);
    for op in [WAIT, FUTEX_WAIT] {
        assert_eq!(world.futex(thread, WORDS[0], op, 0), None);
        let child = world.fork(1);
        world.set(1, WORDS[0], 0);
        world.set(child, WORDS[0], 0);
        for wake in [WAKE, FUTEX_WAKE] {
            assert_eq!(world.futex(child, WORDS[0], wake, 9), Some(Ok(0)), "it is another process");
        }
        let wake = op | FUTEX_WAKE;
        assert_eq!(world.futex(1, WORDS[0], wake ^ FUTEX_PRIVATE_FLAG, 9), Some(Ok(0)));
        assert_eq!(world.futex(1, WORDS[0], wake, 9), Some(Ok(1)));
        assert_eq!(world.answer(thread), Some(Ok(0)));
    }
    // Processes meet in memory that they share.
    let child = world.fork(1);
    assert_eq!(world.futex(child, COMMON, FUTEX_WAIT, 0), None);
    assert_eq!(world.futex(1, COMMON, WAKE, 9), Some(Ok(0)));
    assert_eq!(world.futex(1, COMMON, FUTEX_WAKE, 9), Some(Ok(1)));
    assert_eq!(world.answer(child), Some(Ok(0)));
}

#[test]
fn processes_meet_in_a_file() {
    let mut world = World::new();
    world.file(b"/shared", &[0; 4096], 0o644);
    let child = world.fork(1);
    let at = [(1, 0x3000_0000u64), (child, 0x3100_0000)].map(|(tid, at)| {
        let fd = world.open(tid, "/shared", O_RDWR).unwrap();
        let flags = u64::from(MAP_SHARED | MAP_FIXED);
        world.now(tid, __NR_mmap, &[at, 4096, 3, flags, fd, 0]).unwrap() + 8
    });
    assert_eq!(world.futex(child, at[1], FUTEX_WAIT, 0), None);
    assert_eq!(world.futex(1, at[0], FUTEX_WAKE, 1), Some(Ok(1)));
}

#[test]
fn waits_end_at_times_of_clocks() {
    let mut world = World::new();
    world.wait(5 * SECOND);
    let date = 1000 * SECOND;
    let monotonic = FUTEX_WAIT_BITSET_PRIVATE;
    let real = monotonic | FUTEX_CLOCK_REALTIME;
    assert_eq!(world.wait_until(1, monotonic, 4 * SECOND), Some(Err(ETIMEDOUT)));
    assert_eq!(world.wait_until(1, real, date + 4 * SECOND), Some(Err(ETIMEDOUT)));
    for (op, time) in [(monotonic, 7 * SECOND), (real, date + 9 * SECOND)] {
        assert_eq!(world.wait_until(1, op, time), None);
        world.wait(SECOND);
        assert_eq!(world.answer(1), None);
        world.wait(SECOND);
        assert_eq!(world.answer(1), Some(Err(ETIMEDOUT)));
    }
    // A relative one.
    assert_eq!(world.wait_until(1, WAIT, SECOND), None);
    world.wait(SECOND);
    assert_eq!(world.answer(1), Some(Err(ETIMEDOUT)));
}

#[test]
fn a_handler_ends_a_wait() {
    let mut world = World::new();
    let thread = world.thread(1);
    world.action(1, SIGUSR1, HANDLER);
    assert_eq!(world.futex(thread, WORDS[0], WAIT, 0), None);
    world.now(1, __NR_tgkill, &[1, thread.into(), SIGUSR1.into()]).unwrap();
    let state = world.system.machine.states.remove(&thread).unwrap();
    assert_eq!(state.registers[abi::state::register::RIP], HANDLER);
    // The frame of the handler has the result: behind `uc_flags`, `uc_link`, `uc_stack` and 13 registers.
    let at = state.registers[abi::state::register::RSP] + 8 + 40 + 13 * 8;
    let mut bytes = [0; 8];
    world.system.read(thread, at, &mut bytes).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), EINTR.result());
}

#[test]
fn several_words_are_waited_for() {
    let mut world = World::new();
    let thread = world.thread(1);
    world.set(1, COMMON, 5);
    let list = OWN + 0x3000;
    let flags = u64::from(FUTEX_32);
    let words = [5, COMMON, flags, 0, WORDS[1], flags | u64::from(FUTEX_PRIVATE_FLAG)];
    world.system.write_words(1, list, &words).unwrap();
    let waits = |world: &mut World, count: u64| world.call(thread, __NR_futex_waitv, &[list, count]);
    assert_eq!((waits(&mut world, 0), waits(&mut world, 129)), (Some(Err(EINVAL)), Some(Err(EINVAL))));
    assert_eq!(waits(&mut world, 3), Some(Err(EINVAL)), "the third is nothing");
    for (index, (at, wake)) in [(COMMON, FUTEX_WAKE), (WORDS[1], WAKE)].into_iter().enumerate() {
        assert_eq!(waits(&mut world, 2), None);
        assert_eq!(world.futex(1, WORDS[0], WAKE, 9), Some(Ok(0)));
        assert_eq!(world.futex(1, at, wake, 9), Some(Ok(1)));
        assert_eq!(world.answer(thread), Some(Ok(index as u64)));
    }
    world.set(1, WORDS[1], 1);
    assert_eq!(waits(&mut world, 2), Some(Err(EAGAIN)));
    world.set(1, WORDS[1], 0);
    world.system.write_words(1, OWN + 512, &[2, 0]).unwrap();
    let monotonic = CLOCK_MONOTONIC.into();
    assert_eq!(world.call(thread, __NR_futex_waitv, &[list, 2, 0, OWN + 512, monotonic]), None);
    world.wait(2 * SECOND);
    assert_eq!(world.answer(thread), Some(Err(ETIMEDOUT)));
}

#[test]
fn two_words_are_woken_by_what_the_second_was() {
    let mut world = World::new();
    let threads = [(); 2].map(|()| world.thread(1));
    let two = |world: &mut World, before: u32, code: u32| {
        world.set(1, WORDS[1], 0);
        for (tid, at) in threads.into_iter().zip(WORDS) {
            assert_eq!(world.futex(tid, at, WAIT, 0), None);
        }
        world.set(1, WORDS[1], before);
        let op = FUTEX_WAKE_OP_PRIVATE.into();
        let woken = world.now(1, __NR_futex, &[WORDS[0], op, 1, 1, WORDS[1], code.into()]).unwrap();
        let after = world.number(1, WORDS[1]);
        world.futex(1, WORDS[1], WAKE, 9);
        (woken, after)
    };
    let code = |op: u32, compare: u32, argument: i32, compared: i32| {
        op << 28 | compare << 24 | (argument as u32 & 0xfff) << 12 | compared as u32 & 0xfff
    };
    assert_eq!(two(&mut world, 3, code(FUTEX_OP_SET, FUTEX_OP_CMP_EQ, 7, 3)), (2, 7));
    assert_eq!(two(&mut world, 3, code(FUTEX_OP_ADD, FUTEX_OP_CMP_LT, -1, 3)), (1, 2));
    assert_eq!(two(&mut world, -5i32 as u32, code(FUTEX_OP_OR, FUTEX_OP_CMP_EQ, 1, -5)), (2, -5i32 as u32));
    assert_eq!(
        two(&mut world, 15, code(FUTEX_OP_ANDN | FUTEX_OP_OPARG_SHIFT, FUTEX_OP_CMP_GE, 3, 15)),
        (2, 7)
    );
    assert_eq!(two(&mut world, 15, code(FUTEX_OP_XOR, FUTEX_OP_CMP_NE, 1, 15)), (1, 14));
}

#[test]
fn locks_are_handed_over() {
    let mut world = World::new();
    let [first, second] = [(); 2].map(|()| world.thread(1));
    let at = WORDS[0];
    let (lock, try_lock, unlock) = (FUTEX_LOCK_PI_PRIVATE, FUTEX_TRYLOCK_PI_PRIVATE, FUTEX_UNLOCK_PI_PRIVATE);
    assert_eq!(world.futex(1, at, unlock, 0), Some(Err(EPERM)));
    assert_eq!((world.futex(1, at, lock, 0), world.number(1, at)), (Some(Ok(0)), 1));
    assert_eq!(world.futex(1, at, lock, 0), Some(Err(EDEADLK)));
    assert_eq!(world.futex(first, at, try_lock, 0), Some(Err(EAGAIN)));
    assert_eq!(world.futex(first, at, lock, 0), None);
    world.wait(1);
    assert_eq!(world.futex(second, at, lock, 0), None);
    assert_eq!((world.number(1, at), world.futex(1, at, WAKE, 9)), (FUTEX_WAITERS | 1, Some(Ok(0))));
    assert_eq!(world.futex(1, at, unlock, 0), Some(Ok(0)));
    assert_eq!((world.answer(first), world.number(1, at)), (Some(Ok(0)), FUTEX_WAITERS | first));
    // An owner that ends hands it over, too, and says so.
    world.end(first);
    let died = FUTEX_WAITERS | FUTEX_OWNER_DIED | second;
    assert_eq!((world.answer(second), world.number(1, at)), (Some(Ok(0)), died));
    assert_eq!(world.futex(second, at, unlock, 0), Some(Ok(0)));
    assert_eq!((world.futex(1, at, try_lock, 0), world.number(1, at)), (Some(Ok(0)), 1));
    world.set(1, at, 999);
    assert_eq!(world.futex(1, at, lock, 0), Some(Err(ESRCH)));
    // A time is one of the clock of dates.
    world.set(1, at, second);
    assert_eq!(world.wait_until(1, lock, 1000 * SECOND + 2 * SECOND), None);
    world.wait(3 * SECOND);
    assert_eq!(world.answer(1), Some(Err(ETIMEDOUT)));
}

#[test]
fn locks_tell_that_their_owner_has_ended() {
    let mut world = World::new();
    let [owner, waiter] = [(); 2].map(|()| world.thread(1));
    let head = OWN + 0x3000;
    let entries = [head + 0x100, head + 0x200, (head + 0x300) | 1, head + 0x400];
    world.list(owner, head, &entries, head + 0x500);
    let words = [0x100, 0x200, 0x300, 0x400, 0x500].map(|at| head + at + 32);
    let before = [owner, owner | FUTEX_WAITERS, owner, waiter, owner];
    words.into_iter().zip(before).for_each(|(at, word)| world.set(1, at, word));
    assert_eq!(world.futex(waiter, words[1], FUTEX_WAIT, before[1]), None);
    world.end(owner);
    let after =
        [FUTEX_OWNER_DIED, FUTEX_OWNER_DIED | FUTEX_WAITERS, FUTEX_OWNER_DIED, waiter, FUTEX_OWNER_DIED];
    assert_eq!(words.map(|at| world.number(1, at)), after);
    assert_eq!(world.answer(waiter), Some(Ok(0)));
}

#[test]
fn lists_that_never_end_do() {
    let mut world = World::new();
    let head = OWN + 0x3000;
    for entries in [&[head + 0x100, head + 0x200, head + 0x100][..], &[8], &[!7], &[head + 0x101]] {
        let owner = world.thread(1);
        let mut from = head;
        for entry in entries {
            let _ = world.system.write_words(owner, from & !1, &[*entry]);
            from = *entry;
        }
        world.system.write_words(owner, head + 8, &[u64::MAX - 2, 3]).unwrap();
        world.now(owner, __NR_set_robust_list, &[head, 24]).unwrap();
        world.end(owner);
    }
    let owner = world.thread(1);
    world.now(owner, __NR_set_robust_list, &[u64::MAX - 3, 24]).unwrap();
    world.end(owner);
}
