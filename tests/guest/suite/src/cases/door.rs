//! Doors: calls through identifiers that lead to an entry point and a datum in another task (rows D1–D10, D18).

use super::exception::{denied, denied_flush};
use super::map::{WINDOW, fill_all, page};
use crate::kit::{Agent, Child, Frame, Outcome, WORDS, door_entry};
use crate::{check, check_eq};
use alloc::vec::Vec;
use sys::abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_TAKING_CALL, DOORS_LOG2, DOORS_MAX, FLUSH_SELF,
    SERVERS_MAX, door_op, vector,
};
use sys::abi::{Call, PAGE_SIZE};
use sys::{Dope, Error, Fpage, Kind, Rights, TaskId, Timeout, Uid, thread_state};

/// What an object is called in the task that has it.
pub(super) const DATUM: u64 = 0x1234_5678_9abc_def0;

pub(super) fn control(operation: u32, arguments: [u64; 3]) -> Frame {
    let [rdi, rsi, rdx] = arguments;
    Frame::control(Call::DoorControl as u32 | operation << 8, [rdi, rsi, rdx, 0, 0, 0])
}

pub(super) fn make(maker: &mut Agent, number: u32, datum: u64) -> Outcome<Option<Error>> {
    let got = maker.run(control(door_op::CREATE, [number as u64, door_entry(), datum]))?;
    Ok(got.error())
}

/// The agent serves its task's doors from now on.
pub(super) fn serve(server: &mut Agent) -> Outcome {
    server.block(control(door_op::SERVE, [0; 3]))
}

/// Hands `item` of the giver's on; returns where it arrived.
pub(super) fn hand_into(giver: &mut Agent, item: Fpage, taker: &mut Agent, window: Fpage) -> Outcome<Frame> {
    taker.block(Frame::receive(giver.uid, Timeout::NEVER).window(window))?;
    check_eq!(giver.run(Frame::send(taker.uid, Timeout::ZERO).item(item, 0))?.error(), None);
    taker.wait()
}

/// Hands identifier `number` on as `target`.
pub(super) fn hand(
    giver: &mut Agent,
    number: u32,
    rights: Rights,
    taker: &mut Agent,
    target: u32,
) -> Outcome {
    let window = Fpage::doors(target, 0, Rights::RW);
    let got = hand_into(giver, Fpage::doors(number, 0, rights), taker, window)?;
    check_eq!(got.kind(), Some(Kind::Reply));
    Ok(())
}

pub(super) fn flush(agent: &mut Agent, number: u32, flags: u64) -> Outcome {
    let page = Fpage::doors(number, 0, Rights::RW);
    check_eq!(agent.control(Call::Flush as u32, [page.0, flags, 0, 0, 0, 0])?.0, 0);
    Ok(())
}

/// A maker with a door of number 7 that `server` serves, and a client that has it as number 9.
pub(super) struct Pair {
    pub(super) near: Child,
    pub(super) far: Child,
    pub(super) client: Agent,
    pub(super) server: Agent,
    pub(super) maker: Agent,
}

impl Pair {
    pub(super) fn new() -> Outcome<Pair> {
        let (near, far) = (Child::new()?, Child::new()?);
        let (mut client, mut server, mut maker) = (near.agent()?, far.agent()?, far.agent()?);
        check_eq!(make(&mut maker, 7, DATUM)?, None);
        hand(&mut maker, 7, Rights::RW, &mut client, 9)?;
        serve(&mut server)?;
        Ok(Pair { near, far, client, server, maker })
    }

    /// One call, all words both ways.
    pub(super) fn exchange(&mut self) -> Outcome {
        exchange(&mut self.client, 9, &mut self.server, DATUM)
    }
}

/// The call has arrived with the server.
pub(super) fn arrived(server: &mut Agent, label: u32, datum: u64) -> Outcome {
    let got = server.wait()?;
    check_eq!((got.rax, got.rdx), ((label as u64) << 32 | Kind::DoorCall as u64, datum));
    check_eq!(got.words(), WORDS);
    Ok(())
}

pub(super) fn answer(server: &mut Agent, client: &mut Agent, label: u32) -> Outcome {
    let words = WORDS.map(|word| !word);
    server.block(Frame::door_return(label, words))?;
    let got = client.wait()?;
    check_eq!((got.rax, got.rdx), ((label as u64) << 32 | Kind::DoorReturn as u64, 0));
    check_eq!(got.words(), words);
    Ok(())
}

pub(super) fn exchange(client: &mut Agent, number: u32, server: &mut Agent, datum: u64) -> Outcome {
    client.block(Frame::door_call(number, 3, WORDS))?;
    arrived(server, 3, datum)?;
    answer(server, client, 4)
}

pub(super) fn unreferenced(server: &mut Agent, datum: u64) -> Outcome {
    let got = server.wait()?;
    check_eq!((got.rax, got.rdx, got.words()), (Kind::Unreferenced as u64, datum, [0; 11]));
    server.block(Frame::door_return(0, WORDS))
}

pub fn words_and_label_come_and_go() -> Outcome {
    let mut pair = Pair::new()?;
    for _ in 0..20 {
        pair.exchange()?;
    }
    Ok(())
}

pub fn the_datum_names_the_object() -> Outcome {
    let mut pair = Pair::new()?;
    for (number, datum) in [(8, 0), (511, u64::MAX), (512, 1 << 63), (DOORS_MAX - 1, 1)] {
        check_eq!(make(&mut pair.maker, number, datum)?, None);
        hand(&mut pair.maker, number, Rights::R, &mut pair.client, number ^ 2)?;
        exchange(&mut pair.client, number ^ 2, &mut pair.server, datum)?;
    }
    pair.exchange()?;
    // The taken number, one too large, and an entry where no program can be.
    check_eq!(make(&mut pair.maker, 8, 5)?, Some(Error::BadState));
    check_eq!(make(&mut pair.maker, DOORS_MAX, 5)?, Some(Error::BadArgument));
    let got = pair.maker.run(control(door_op::CREATE, [20, sys::abi::USER_END, 0]))?;
    check_eq!(got.error(), Some(Error::BadArgument));
    check_eq!(pair.maker.run(control(door_op::COUNT, [0; 3]))?.error(), Some(Error::BadArgument));
    pair.exchange()
}

pub fn a_call_within_a_task() -> Outcome {
    let mut pair = Pair::new()?;
    exchange(&mut pair.maker, 7, &mut pair.server, DATUM)?;
    let mut own = Agent::new(TaskId::NIL)?;
    hand(&mut pair.client, 9, Rights::R, &mut own, 3)?;
    exchange(&mut own, 3, &mut pair.server, DATUM)
}

/// Down a chain of five and back, then again where the first task is called back.
pub fn a_call_in_a_call() -> Outcome {
    const LENGTH: usize = 5;
    let (mut children, mut servers, mut makers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LENGTH {
        let child = Child::new()?;
        servers.push(child.agent()?);
        let mut maker = child.agent()?;
        check_eq!(make(&mut maker, 0, DATUM)?, None);
        makers.push(maker);
        children.push(child);
    }
    for i in 0..LENGTH {
        let [giver, taker] = makers.get_disjoint_mut([(i + 1) % LENGTH, i]).expect("two of them");
        hand(giver, 0, Rights::R, taker, 1)?;
    }
    for server in &mut servers {
        serve(server)?;
    }
    for _ in 0..3 {
        makers[LENGTH - 1].block(Frame::door_call(1, 3, WORDS))?;
        for (i, server) in servers.iter_mut().enumerate() {
            arrived(server, 3, DATUM)?;
            if i + 1 < LENGTH {
                server.block(Frame::door_call(1, 3, WORDS))?;
            }
        }
        for i in (1..LENGTH).rev() {
            let [server, client] = servers.get_disjoint_mut([i, i - 1]).expect("two of them");
            answer(server, client, 4)?;
        }
        answer(&mut servers[0], &mut makers[LENGTH - 1], 4)?;
    }
    Ok(())
}

/// With an FS base, the FPU in use, stopped for a while.
pub fn servers_that_are_special() -> Outcome {
    extern "C" fn use_fpu(_: u64) -> u64 {
        // SAFETY: no Rust code of the suite uses the FPU.
        unsafe { core::arch::asm!("fld1", "fstp st(0)") };
        0
    }
    let mut pair = Pair::new()?;
    sys::thread_set_fs(pair.server.uid, 0x1000)?;
    pair.exchange()?;
    sys::thread_set_fs(pair.server.uid, 0)?;
    pair.exchange()?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    pair.server.apply(use_fpu, 0)?;
    answer(&mut pair.server, &mut pair.client, 4)?;
    pair.exchange()?;
    pair.client.apply(use_fpu, 0)?;
    pair.exchange()?;
    // Who is stopped is not called; another one is.
    sys::thread_stop(pair.server.uid)?;
    let mut other = pair.far.agent()?;
    serve(&mut other)?;
    exchange(&mut pair.client, 9, &mut other, DATUM)?;
    drop(other);
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    check!(!pair.server.is_done());
    sys::thread_resume(pair.server.uid)?;
    arrived(&mut pair.server, 3, DATUM)?;
    answer(&mut pair.server, &mut pair.client, 4)?;
    // A caller that is stopped meanwhile has its answer when it goes on.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    sys::thread_stop(pair.client.uid)?;
    pair.server.block(Frame::door_return(4, WORDS))?;
    check!(!pair.client.is_done());
    sys::thread_resume(pair.client.uid)?;
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    pair.exchange()
}

pub fn callers_wait_in_order() -> Outcome {
    let mut pair = Pair::new()?;
    let mut callers = [pair.near.agent()?, pair.near.agent()?, pair.near.agent()?];
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    for (label, caller) in (10..).zip(&mut callers) {
        caller.block(Frame::door_call(9, label, WORDS))?;
    }
    // One of them gives up, and is not served.
    sys::thread_abort(callers[1].uid)?;
    check_eq!(callers[1].wait()?.error(), Some(Error::SendAborted));
    pair.server.start(Frame::door_return(4, WORDS));
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    arrived(&mut pair.server, 10, DATUM)?;
    pair.server.start(Frame::door_return(5, WORDS));
    check_eq!(callers[0].wait()?.received_label(), 5);
    arrived(&mut pair.server, 12, DATUM)?;
    // Who waits with an identifier that goes meanwhile learns that when its turn comes.
    callers[1].block(Frame::door_call(9, 13, WORDS))?;
    flush(&mut pair.maker, 7, 0)?;
    pair.server.start(Frame::door_return(6, WORDS));
    check_eq!(callers[2].wait()?.received_label(), 6);
    check_eq!(callers[1].wait()?.error(), Some(Error::NoSuch));
    unreferenced(&mut pair.server, DATUM)
}

pub fn who_waits_learns_of_a_shortage() -> Outcome {
    let mut pair = Pair::new()?;
    let (mut watcher, mut second) = (pair.far.agent()?, pair.far.agent()?);
    watcher.block(control(door_op::SHORTAGE, [0; 3]))?;
    check_eq!(second.run(control(door_op::SHORTAGE, [0; 3]))?.error(), Some(Error::BadState));
    pair.exchange()?;
    check!(!watcher.is_done());
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    check!(!watcher.is_done());
    let mut caller = pair.near.agent()?;
    caller.block(Frame::door_call(9, 3, WORDS))?;
    let got = watcher.wait()?;
    check_eq!((got.rax, got.rdi), (0, 1));
    // It is still so, and then the pool grows.
    check_eq!(watcher.run(control(door_op::SHORTAGE, [0; 3]))?.rax, 0);
    second.start(control(door_op::SERVE, [0; 3]));
    arrived(&mut second, 3, DATUM)?;
    answer(&mut second, &mut caller, 4)?;
    answer(&mut pair.server, &mut pair.client, 4)?;
    watcher.block(control(door_op::SHORTAGE, [0; 3]))?;
    sys::thread_abort(watcher.uid)?;
    check_eq!(watcher.wait()?.error(), Some(Error::ReceiveAborted));
    pair.exchange()
}

pub fn identifiers_are_handed_on() -> Outcome {
    let mut pair = Pair::new()?;
    let child = Child::new()?;
    let mut other = child.agent()?;
    // Not where they were, into a window of many, as often as one likes.
    let window = Fpage::doors(64, 4, Rights::RW);
    let got = hand_into(&mut pair.client, Fpage::doors(8, 1, Rights::RW), &mut other, window)?;
    check_eq!(got.words()[6], Fpage::doors(64, 1, Rights::RW).0);
    exchange(&mut other, 65, &mut pair.server, DATUM)?;
    check_eq!(other.run(Frame::door_call(64, 0, WORDS))?.error(), Some(Error::NoSuch));
    hand(&mut other, 65, Rights::R, &mut pair.client, 10)?;
    exchange(&mut pair.client, 10, &mut pair.server, DATUM)?;
    // Whoever handed it on has no say over it.
    flush(&mut pair.client, 9, FLUSH_SELF)?;
    check_eq!(pair.client.run(Frame::door_call(9, 0, WORDS))?.error(), Some(Error::NoSuch));
    exchange(&mut other, 65, &mut pair.server, DATUM)?;
    exchange(&mut pair.client, 10, &mut pair.server, DATUM)
}

pub fn some_may_not_be_handed_on() -> Outcome {
    let mut pair = Pair::new()?;
    let child = Child::new()?;
    let mut other = child.agent()?;
    hand(&mut pair.maker, 7, Rights::R, &mut pair.client, 20)?;
    exchange(&mut pair.client, 20, &mut pair.server, DATUM)?;
    hand(&mut pair.client, 20, Rights::RW, &mut other, 1)?;
    check_eq!(other.run(Frame::door_call(1, 0, WORDS))?.error(), Some(Error::NoSuch));
    // Without the right to call nothing is handed on either; and one may do without.
    hand(&mut pair.client, 9, Rights::W, &mut other, 1)?;
    check_eq!(other.run(Frame::door_call(1, 0, WORDS))?.error(), Some(Error::NoSuch));
    let page = Fpage::doors(9, 0, Rights::W);
    check_eq!(pair.client.control(Call::Flush as u32, [page.0, FLUSH_SELF, 0, 0, 0, 0])?.0, 0);
    hand(&mut pair.client, 9, Rights::RW, &mut other, 1)?;
    check_eq!(other.run(Frame::door_call(1, 0, WORDS))?.error(), Some(Error::NoSuch));
    pair.exchange()
}

/// Threads to which native calls are denied make none through doors that are there, with a block or without, and give none up.
pub fn calls_that_are_denied() -> Outcome {
    let mut pair = Pair::new()?;
    // Nothing else stands in the way of a block.
    sys::thread_set_block(pair.server.uid, super::long::to_block(), Dope::room(2, 0, 0), Timeout::NEVER)?;
    for number in [DOOR_CALL, DOOR_TAKING_CALL, DOOR_LONG_CALL, DOOR_ITEM_CALL] {
        let door = 9 << 32;
        let mut agent = denied(&pair.near, door | number as u64, |_| Ok(()))?;
        let caught = agent.attempted()?;
        check_eq!(caught.vector(), Some(vector::SYSCALL));
        check!(!pair.server.is_done(), "{number:x} reached the server");
    }
    // It is not the only one, nor the last that was handed on.
    for number in [8, 10] {
        hand(&mut pair.maker, 7, Rights::RW, &mut pair.client, number)?;
    }
    let mut agent = denied_flush(&pair.near, Fpage::doors(9, 0, Rights::RW))?;
    check_eq!(agent.attempted()?.vector(), Some(vector::SYSCALL));
    pair.exchange()
}

pub fn moved_identifiers_are_gone() -> Outcome {
    let mut pair = Pair::new()?;
    let child = Child::new()?;
    let mut other = child.agent()?;
    let moved = Rights::RW.or(Rights::GRANT);
    hand(&mut pair.client, 9, moved, &mut other, 1)?;
    check_eq!(pair.client.run(Frame::door_call(9, 0, WORDS))?.error(), Some(Error::NoSuch));
    exchange(&mut other, 1, &mut pair.server, DATUM)?;
    // Over another one, which is gone then; and onto itself.
    hand(&mut pair.maker, 7, moved, &mut other, 2)?;
    exchange(&mut pair.maker, 7, &mut pair.server, DATUM)?;
    hand(&mut other, 1, moved, &mut pair.client, 9)?;
    hand(&mut other, 2, moved, &mut pair.client, 9)?;
    for number in [1, 2] {
        check_eq!(other.run(Frame::door_call(number, 0, WORDS))?.error(), Some(Error::NoSuch));
    }
    let mut same = pair.near.agent()?;
    hand(&mut pair.client, 9, moved, &mut same, 9)?;
    pair.exchange()
}

pub fn revoked_doors() -> Outcome {
    let mut pair = Pair::new()?;
    // Those of others go; the maker can hand out new ones.
    flush(&mut pair.maker, 7, 0)?;
    unreferenced(&mut pair.server, DATUM)?;
    check_eq!(pair.client.run(Frame::door_call(9, 0, WORDS))?.error(), Some(Error::NoSuch));
    exchange(&mut pair.maker, 7, &mut pair.server, DATUM)?;
    hand(&mut pair.maker, 7, Rights::RW, &mut pair.client, 9)?;
    pair.exchange()?;
    // The door goes, and nothing comes of it.
    flush(&mut pair.maker, 7, FLUSH_SELF)?;
    check_eq!(pair.client.run(Frame::door_call(9, 0, WORDS))?.error(), Some(Error::NoSuch));
    check_eq!(pair.maker.run(Frame::door_call(7, 0, WORDS))?.error(), Some(Error::NoSuch));
    check_eq!(make(&mut pair.maker, 7, 5)?, None);
    hand(&mut pair.maker, 7, Rights::RW, &mut pair.client, 9)?;
    exchange(&mut pair.client, 9, &mut pair.server, 5)
}

pub fn a_running_call_survives_revocation() -> Outcome {
    for flags in [0, FLUSH_SELF] {
        let mut pair = Pair::new()?;
        pair.client.block(Frame::door_call(9, 3, WORDS))?;
        arrived(&mut pair.server, 3, DATUM)?;
        flush(&mut pair.maker, 7, flags)?;
        if flags == 0 {
            pair.server.start(Frame::door_return(4, WORDS));
        } else {
            pair.server.block(Frame::door_return(4, WORDS))?;
        }
        check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
        if flags == 0 {
            unreferenced(&mut pair.server, DATUM)?;
        }
    }
    Ok(())
}

pub fn unreferenced_comes_once() -> Outcome {
    let mut pair = Pair::new()?;
    let child = Child::new()?;
    let mut other = child.agent()?;
    hand(&mut pair.client, 9, Rights::RW, &mut other, 1)?;
    flush(&mut pair.client, 9, FLUSH_SELF)?;
    check!(pair.server.settle()?);
    flush(&mut other, 1, FLUSH_SELF)?;
    unreferenced(&mut pair.server, DATUM)?;
    // Each time that the last one goes, in whatever way: replaced, moved away and released, with its task.
    hand(&mut pair.maker, 7, Rights::RW, &mut other, 1)?;
    check_eq!(make(&mut pair.client, 9, 5)?, None);
    hand(&mut pair.client, 9, Rights::RW, &mut other, 1)?;
    unreferenced(&mut pair.server, DATUM)?;
    hand(&mut pair.maker, 7, Rights::RW, &mut other, 2)?;
    drop(other);
    check!(pair.server.settle()?);
    drop(child);
    unreferenced(&mut pair.server, DATUM)?;
    exchange(&mut pair.maker, 7, &mut pair.server, DATUM)
}

pub fn unreferenced_waits_for_calls() -> Outcome {
    let mut pair = Pair::new()?;
    let mut second = pair.far.agent()?;
    serve(&mut second)?;
    // The one that served last is called first.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    let mut other = pair.near.agent()?;
    flush(&mut other, 9, FLUSH_SELF)?;
    check!(pair.server.settle()?);
    second.start(Frame::door_return(4, WORDS));
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    unreferenced(&mut second, DATUM)?;
    // Not if there is one again, by then.
    hand(&mut pair.maker, 7, Rights::RW, &mut pair.client, 9)?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    flush(&mut other, 9, FLUSH_SELF)?;
    hand(&mut pair.maker, 7, Rights::RW, &mut other, 9)?;
    answer(&mut second, &mut pair.client, 4)?;
    // Who serves ends before it returns: that was the last call, too.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    flush(&mut other, 9, FLUSH_SELF)?;
    drop(second);
    check_eq!(pair.client.wait()?.error(), Some(Error::PartnerDied));
    unreferenced(&mut pair.server, DATUM)
}

pub fn numbers_that_are_no_identifier() -> Outcome {
    let mut pair = Pair::new()?;
    let child = Child::new()?;
    let mut stranger = child.agent()?;
    for number in [0, 8, 10, 511, 512, 0x1_0000, DOORS_MAX - 1, DOORS_MAX, DOORS_MAX + 9, 1 << 31, u32::MAX] {
        for agent in [&mut pair.client, &mut stranger] {
            let got = agent.run(Frame::door_call(number, 3, WORDS))?;
            // Only the result is another.
            check_eq!((got.rax, got.rdx), (Error::NoSuch as u64, number as u64));
            check_eq!(got.words(), WORDS);
        }
    }
    check_eq!(stranger.run(Frame::door_call(9, 3, WORDS))?.error(), Some(Error::NoSuch));
    // The low half of the register is the number.
    let mut frame = Frame::door_call(10, 3, WORDS);
    frame.rdx |= 0xffff_8000_0000_0000;
    let got = pair.client.run(frame)?;
    check_eq!((got.rax, got.rdx), (Error::NoSuch as u64, 10));
    frame.rdx ^= 10 ^ 9;
    pair.client.block(frame)?;
    arrived(&mut pair.server, 3, DATUM)?;
    answer(&mut pair.server, &mut pair.client, 4)?;
    // Flexpages of doors that there cannot be.
    for page in [Fpage(0x1235 << 12 | 3 << 10 | 1 << 4), Fpage(1 << (DOORS_LOG2 + 12) | 3 << 10)] {
        check_eq!(
            pair.maker.control(Call::Flush as u32, [page.0, 0, 0, 0, 0, 0])?.0,
            Error::BadArgument as u64
        );
    }
    Ok(())
}

pub fn returns_without_a_call() -> Outcome {
    let mut pair = Pair::new()?;
    check_eq!(pair.maker.run(Frame::door_return(4, WORDS))?.error(), Some(Error::BadState));
    pair.exchange()?;
    // Ipc is no return: the caller waits for nothing but that.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(
        pair.server.run(Frame::send(pair.client.uid, Timeout::ZERO))?.error(),
        Some(Error::SendTimeout)
    );
    pair.server.block(Frame::reply_wait(pair.client.uid, 4, WORDS))?;
    check!(!pair.client.is_done());
    sys::thread_abort(pair.server.uid)?;
    check_eq!(pair.server.wait()?.error(), Some(Error::ReceiveAborted));
    answer(&mut pair.server, &mut pair.client, 4)?;
    // Who serves cannot begin to serve.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(pair.server.run(control(door_op::SERVE, [0; 3]))?.error(), Some(Error::BadState));
    answer(&mut pair.server, &mut pair.client, 4)
}

pub fn the_called_ends() -> Outcome {
    let mut pair = Pair::new()?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    sys::thread_destroy(pair.server.uid)?;
    let got = pair.client.wait()?;
    check_eq!((got.error(), got.words()), (Some(Error::PartnerDied), [0; 11]));
    let mut server = pair.far.agent()?;
    serve(&mut server)?;
    exchange(&mut pair.client, 9, &mut server, DATUM)?;
    // The whole task, with one that runs and one that waits.
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut server, 3, DATUM)?;
    let mut other = pair.near.agent()?;
    other.block(Frame::door_call(9, 3, WORDS))?;
    sys::task_destroy(pair.far.0)?;
    check_eq!(pair.client.wait()?.error(), Some(Error::PartnerDied));
    check_eq!(other.wait()?.error(), Some(Error::PartnerDied));
    check_eq!(other.run(Frame::door_call(9, 3, WORDS))?.error(), Some(Error::NoSuch));
    Ok(())
}

/// A task ends that has threads, callers in the queue of its doors, and a page of each thread. The harness watches how long a step of it has
/// interrupts off.
pub fn a_crowded_task_ends() -> Outcome {
    fill_all(0..32, 7);
    for (threads, waiting) in [(6, 12), (2, 15), (12, 5)] {
        let (near, far) = (Child::with_quota(80)?, Child::with_quota(80)?);
        let (mut server, mut maker) = (far.agent()?, far.agent()?);
        let others = (2..threads).map(|_| far.agent()).collect::<Outcome<Vec<Agent>>>()?;
        check_eq!(make(&mut maker, 7, DATUM)?, None);
        let mut first = near.agent()?;
        let mut callers = (0..waiting).map(|_| near.agent()).collect::<Outcome<Vec<Agent>>>()?;
        hand(&mut maker, 7, Rights::RW, &mut first, 9)?;
        serve(&mut server)?;
        first.block(Frame::door_call(9, 3, WORDS))?;
        arrived(&mut server, 3, DATUM)?;
        for caller in &mut callers {
            caller.block(Frame::door_call(9, 3, WORDS))?;
        }
        for at in 0..16 {
            let to = WINDOW + 2 * at * PAGE_SIZE;
            maker.take((Fpage::memory(page(2 * at as usize), 12, Rights::RW), to), Fpage::WHOLE)?;
        }
        sys::task_destroy(far.0)?;
        for caller in callers.iter_mut().chain([&mut first]) {
            check_eq!(caller.wait()?.error(), Some(Error::PartnerDied));
        }
        drop(others);
    }
    Ok(())
}

/// The call goes on; its return finds nobody.
pub fn the_caller_ends() -> Outcome {
    let mut pair = Pair::new()?;
    let mut caller = pair.near.agent()?;
    caller.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    drop(caller);
    // Another thread may have the slot, and wait for another server.
    let mut next = pair.near.agent()?;
    let mut second = pair.far.agent()?;
    serve(&mut second)?;
    next.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    pair.server.block(Frame::door_return(4, WORDS))?;
    check!(!next.is_done());
    answer(&mut second, &mut next, 4)?;
    // While it waits for a server.
    let mut queued = pair.near.agent()?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    next.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    queued.block(Frame::door_call(9, 3, WORDS))?;
    drop(queued);
    answer(&mut second, &mut pair.client, 4)?;
    answer(&mut pair.server, &mut next, 4)
}

/// Who waits above learns at once, what runs below goes on and dies at its return.
pub fn the_middle_ends() -> Outcome {
    let mut pair = Pair::new()?;
    let last = Child::new()?;
    let (mut maker, mut end) = (last.agent()?, last.agent()?);
    check_eq!(make(&mut maker, 0, 1)?, None);
    hand(&mut maker, 0, Rights::R, &mut pair.maker, 30)?;
    serve(&mut end)?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    pair.server.block(Frame::door_call(30, 3, WORDS))?;
    arrived(&mut end, 3, 1)?;
    sys::thread_destroy(pair.server.uid)?;
    check_eq!(pair.client.wait()?.error(), Some(Error::PartnerDied));
    // The old part can still call and be called.
    end.block(Frame::ipc(sys::myself(), sys::myself(), Timeout::NEVER, Timeout::NEVER))?;
    let got = sys::receive(end.uid, Timeout::NEVER)?;
    sys::send(got.sender, 0, [0; 8], Timeout::ZERO)?;
    check_eq!(end.wait()?.kind(), Some(Kind::Reply));
    end.block(Frame::door_return(4, WORDS))?;
    exchange(&mut pair.maker, 30, &mut end, 1)
}

/// Each task controls its own threads of the chain, and those alone.
pub fn a_stop_in_the_chain_stops_one() -> Outcome {
    let mut pair = Pair::new()?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    let (denied, _) = pair.maker.control(
        Call::ThreadControl as u32 | sys::abi::call::thread_op::STOP << 8,
        [pair.client.uid.0, 0, 0, 0, 0, 0],
    )?;
    check_eq!(denied, Error::Denied as u64);
    sys::thread_stop(pair.client.uid)?;
    // The server goes on, and may be asked.
    check_eq!(pair.server.run(Frame::send(Uid::NIL, Timeout::ZERO))?.error(), Some(Error::NoSuch));
    pair.server.block(Frame::door_return(4, WORDS))?;
    check!(!pair.client.is_done());
    sys::thread_resume(pair.client.uid)?;
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    pair.exchange()
}

pub fn aborted_calls() -> Outcome {
    let mut pair = Pair::new()?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut pair.server, 3, DATUM)?;
    sys::thread_abort(pair.client.uid)?;
    let got = pair.client.wait()?;
    check_eq!((got.error(), got.words()), (Some(Error::ReceiveAborted), [0; 11]));
    // The call goes on; what it returns reaches nobody, also not the next wait of the same thread.
    let mut second = pair.far.agent()?;
    serve(&mut second)?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    arrived(&mut second, 3, DATUM)?;
    pair.server.block(Frame::door_return(4, WORDS))?;
    check!(!pair.client.is_done());
    answer(&mut second, &mut pair.client, 5)
}

/// A return to a caller on whose shuttle a third thread runs meanwhile: the caller has its shuttle back, and the third its own.
pub fn returns_after_a_call_that_was_ended() -> Outcome {
    let mut pair = Pair::new()?;
    let mut last = pair.near.agent()?;
    for _ in 0..8 {
        pair.client.block(Frame::door_call(9, 3, WORDS))?;
        arrived(&mut pair.server, 3, DATUM)?;
        last.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        pair.server.block(Frame::call(last.uid, 2, WORDS))?;
        check_eq!(last.wait()?.sender(), pair.server.uid);
        sys::thread_abort(pair.server.uid)?;
        check_eq!(pair.server.wait()?.error(), Some(Error::ReceiveAborted));
        answer(&mut pair.server, &mut pair.client, 4)?;
    }
    Ok(())
}

pub fn servers_resign() -> Outcome {
    let mut pair = Pair::new()?;
    pair.exchange()?;
    sys::thread_abort(pair.server.uid)?;
    check_eq!(pair.server.wait()?.error(), Some(Error::ReceiveAborted));
    check_eq!(pair.server.run(Frame::door_return(4, WORDS))?.error(), Some(Error::BadState));
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    pair.server.start(control(door_op::SERVE, [0; 3]));
    arrived(&mut pair.server, 3, DATUM)?;
    answer(&mut pair.server, &mut pair.client, 4)?;
    // From the middle of the list of those that wait.
    let mut others = [pair.far.agent()?, pair.far.agent()?];
    for other in &mut others {
        serve(other)?;
    }
    let [middle, last] = &mut others;
    sys::thread_abort(middle.uid)?;
    check_eq!(middle.wait()?.error(), Some(Error::ReceiveAborted));
    exchange(&mut pair.client, 9, last, DATUM)?;
    sys::thread_destroy(last.uid)?;
    pair.exchange()
}

pub fn tasks_end_with_their_doors() -> Outcome {
    let before = sys::task_info(TaskId::NIL)?.used;
    for ending in 0..3 {
        let mut pair = Pair::new()?;
        pair.client.block(Frame::door_call(9, 3, WORDS))?;
        arrived(&mut pair.server, 3, DATUM)?;
        match ending {
            0 => sys::task_destroy(pair.far.0)?,
            1 => sys::task_destroy(pair.near.0)?,
            _ => flush(&mut pair.maker, 7, FLUSH_SELF)?,
        }
        if ending == 1 {
            pair.server.start(Frame::door_return(4, WORDS));
            unreferenced(&mut pair.server, DATUM)?;
        }
    }
    check_eq!(sys::task_info(TaskId::NIL)?.used, before);
    Ok(())
}

/// Three tables, two for each 512 numbers, and the nodes.
pub fn what_doors_cost() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    agent.apply(nothing, 0)?;
    check_eq!(make(&mut agent, 0, 1)?, None);
    let with_one = sys::task_info(child.0)?.used;
    for (number, frames) in [(1, 0), (511, 0), (512, 2), (1023, 0), (DOORS_MAX - 1, 2)] {
        let before = sys::task_info(child.0)?.used;
        check_eq!(make(&mut agent, number, 1)?, None);
        check_eq!(sys::task_info(child.0)?.used - before, frames);
    }
    check!(with_one >= 5);
    // Who cannot pay gets none, whichever of the frames it is.
    let child = Child::new()?;
    let mut agent = child.agent()?;
    agent.apply(nothing, 0)?;
    let before = sys::task_info(child.0)?.used;
    for frames in 0.. {
        sys::task_set_quota(child.0, before + frames)?;
        match make(&mut agent, 3, 1)? {
            Some(error) => check_eq!(error, Error::NoMemory),
            None => {
                check_eq!((frames, sys::task_info(child.0)?.used - before), (5, 5));
                break;
            }
        }
    }
    Ok(())
}

extern "C" fn nothing(_: u64) -> u64 {
    0
}

/// A thread that serves, and needs no stack since nobody calls it.
fn bare_server(task: TaskId) -> Outcome<Uid> {
    unsafe extern "C" {
        fn suite_serve();
    }
    let pager = crate::kit::pager::uid();
    let thread = sys::thread_create(task, crate::kit::pager::priority(), pager, pager)?;
    // SAFETY: it makes one system call.
    unsafe { sys::thread_start(thread, suite_serve as *const () as usize as u64, 0, 0)? };
    Ok(thread)
}

pub fn too_many_servers() -> Outcome {
    let child = Child::with_quota(SERVERS_MAX as u64 + 200)?;
    let mut agent = child.agent()?;
    let mut servers = Vec::new();
    for _ in 0..SERVERS_MAX {
        servers.push(bare_server(child.0)?);
    }
    let waits =
        |thread: &Uid| sys::thread_info(*thread).is_ok_and(|info| info.state == thread_state::RECEIVING);
    while !servers.iter().all(waits) {
        sys::sleep_us(100)?;
    }
    check_eq!(agent.run(control(door_op::SERVE, [0; 3]))?.error(), Some(Error::Limit));
    // All of them are looked at when a door has no reference any more, and a list of as many when one is stopped or ends: the
    // harness sees how long that takes without a look at the interrupts.
    unsafe extern "C" {
        fn suite_door_nothing();
    }
    let near = Child::new()?;
    let mut client = near.agent()?;
    let entry = suite_door_nothing as *const () as usize as u64;
    check_eq!(agent.run(control(door_op::CREATE, [0, entry, 1]))?.error(), None);
    for _ in 0..3 {
        hand(&mut agent, 0, Rights::R, &mut client, 1)?;
        check_eq!(client.run(Frame::door_call(1, 3, WORDS))?.kind(), Some(Kind::DoorReturn));
        flush(&mut client, 1, FLUSH_SELF)?;
        while !servers.iter().all(waits) {
            sys::sleep_us(100)?;
        }
    }
    for server in [servers[0], servers[SERVERS_MAX as usize / 2]] {
        sys::thread_stop(server)?;
        sys::thread_resume(server)?;
    }
    sys::thread_destroy(servers[5])?;
    serve(&mut agent)?;
    Ok(())
}

/// More doors than a step can deal with, handed on at once and revoked at once.
pub fn a_task_full_of_doors() -> Outcome {
    const DOORS: u32 = 128;
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut client, mut maker, mut server) = (near.agent()?, far.agent()?, far.agent()?);
    for number in 0..DOORS {
        check_eq!(make(&mut maker, number, number as u64)?, None);
    }
    let window = Fpage::doors(0, DOORS_LOG2, Rights::RW);
    hand_into(&mut maker, Fpage::doors(0, 7, Rights::RW), &mut client, window)?;
    serve(&mut server)?;
    for number in [0, 77, DOORS - 1] {
        exchange(&mut client, number, &mut server, number as u64)?;
    }
    let all = Fpage::doors(0, DOORS_LOG2, Rights::RW);
    check_eq!(client.control(Call::Flush as u32, [all.0, FLUSH_SELF, 0, 0, 0, 0])?.0, 0);
    // Each of them is told once.
    let mut told = [false; DOORS as usize];
    for i in 0..DOORS {
        let got = server.wait()?;
        check_eq!(got.kind(), Some(Kind::Unreferenced));
        check!(!core::mem::replace(&mut told[got.rdx as usize], true));
        let frame = Frame::door_return(0, WORDS);
        if i + 1 == DOORS { server.block(frame)? } else { server.start(frame) }
    }
    check_eq!(maker.control(Call::Flush as u32, [all.0, FLUSH_SELF, 0, 0, 0, 0])?.0, 0);
    check_eq!(make(&mut maker, 0, 5)?, None);
    Ok(())
}
