//! Alerts: a hint that runs forward along a chain of calls, and ends what was begun as alertable (row D9).

use super::door::{self, DATUM, Pair, hand, make, serve};
use super::long::{from, from_block, get_stuck, prepare, set_room, stuck, to_block};
use crate::kit::{Agent, Child, Frame, Outcome, WORDS, pager};
use crate::{check, check_eq};
use alloc::vec::Vec;
use core::ptr::addr_of;
use sys::abi::Call;
use sys::abi::call::{
    ALERT_CLEAR, ALERT_POLL, ALERT_SET, DOOR_ITEM_CALL, DOOR_LONG_CALL, IPC_LONG_CALL, thread_op,
};
use sys::{Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};

const NEVER: Timeout = Timeout::NEVER;

fn alert(agent: &Agent) -> Outcome {
    Ok(sys::alert(agent.uid).map(drop)?)
}

/// What of these threads is alerted.
fn alerted<const N: usize>(agents: [&Agent; N]) -> Outcome<[bool; N]> {
    let mut are = [false; N];
    for (is, agent) in are.iter_mut().zip(agents) {
        *is = sys::is_alerted(agent.uid)?;
    }
    Ok(are)
}

/// An agent asks or says something about an alert: the error, and what it was before.
fn about(agent: &mut Agent, thread: Uid, what: u64) -> Outcome<(u64, u64)> {
    const ALERT: u32 = Call::ThreadControl as u32 | thread_op::ALERT << 8;
    let (error, out) = agent.control(ALERT, [thread.0, what, 0, 0, 0, 0])?;
    Ok((error, out[0]))
}

pub fn set_told_and_cleared() -> Outcome {
    let mut pair = Pair::new()?;
    let client = &mut pair.client;
    // By itself, and by its chief.
    for (what, was) in [(ALERT_POLL, 0), (ALERT_SET, 0), (ALERT_POLL, 1), (ALERT_SET, 1), (ALERT_CLEAR, 1)] {
        check_eq!(about(client, Uid::NIL, what)?, (0, was));
    }
    alert(client)?;
    check_eq!(about(client, Uid::NIL, ALERT_POLL)?, (0, 1));
    check!(sys::clear_alert(client.uid)?);
    check!(!sys::clear_alert(client.uid)?);
    check_eq!(about(client, Uid::NIL, 3)?.0, Error::BadArgument as u64);
    // Not by a stranger, and not a server that waits for a call.
    check_eq!(about(client, pair.server.uid, ALERT_SET)?.0, Error::Denied as u64);
    alert(&pair.server)?;
    check!(!sys::is_alerted(pair.server.uid)?);
    pair.exchange()
}

/// A client, and servers each of which calls the next. The thread that made a server's door is beside it.
struct Chain {
    children: Vec<Child>,
    makers: Vec<Agent>,
    agents: Vec<Agent>,
}

impl Chain {
    /// Nobody has called yet. More of them than an alert reaches in one step.
    const LENGTH: usize = 7;

    fn new() -> Outcome<Chain> {
        let mut chain = Chain { children: Vec::new(), makers: Vec::new(), agents: Vec::new() };
        for _ in 0..Self::LENGTH {
            let child = Child::new()?;
            let mut maker = child.agent()?;
            check_eq!(make(&mut maker, 0, DATUM)?, None);
            if let Some(before) = chain.makers.last_mut() {
                hand(&mut maker, 0, Rights::R, before, 1)?;
            }
            chain.agents.push(child.agent()?);
            chain.makers.push(maker);
            chain.children.push(child);
        }
        for server in &mut chain.agents[1..] {
            serve(server)?;
        }
        Ok(chain)
    }

    /// All but the last call the next.
    fn call(&mut self) -> Outcome {
        for i in 1..Self::LENGTH {
            self.agents[i - 1].block(Frame::door_call(1, 3, WORDS))?;
            door::arrived(&mut self.agents[i], 3, DATUM)?;
        }
        Ok(())
    }

    fn alerted(&self) -> Outcome<[bool; Chain::LENGTH]> {
        alerted(core::array::from_fn(|i| &self.agents[i]))
    }

    /// From the last one that still serves up to the server `first`, all return.
    fn give_back(&mut self, first: usize) -> Outcome {
        for i in (first..Self::LENGTH).rev() {
            let [client, server] = self.agents.get_disjoint_mut([i - 1, i]).expect("two of them");
            door::answer(server, client, 4)?;
        }
        Ok(())
    }
}

/// The elements from `first` on.
fn from_on(first: usize) -> [bool; Chain::LENGTH] {
    core::array::from_fn(|i| i >= first)
}

pub fn alerts_run_forward() -> Outcome {
    let mut chain = Chain::new()?;
    for first in [0, 1, 3, Chain::LENGTH - 1] {
        chain.call()?;
        check_eq!(chain.alerted()?, [false; Chain::LENGTH]);
        alert(&chain.agents[first])?;
        check_eq!(chain.alerted()?, from_on(first));
        // Each has its own, and it ends with the call.
        let last = Chain::LENGTH - 1;
        check_eq!(about(&mut chain.agents[last], Uid::NIL, ALERT_CLEAR)?, (0, 1));
        check_eq!(chain.alerted()?[last], false);
        chain.give_back(1)?;
        check_eq!(chain.alerted()?, core::array::from_fn(|i| i == 0 && first == 0));
        sys::clear_alert(chain.agents[0].uid)?;
    }
    Ok(())
}

pub fn the_call_of_the_alerted_arrives_alerted() -> Outcome {
    let mut pair = Pair::new()?;
    alert(&pair.client)?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(alerted([&pair.client, &pair.server])?, [true, true]);
    door::answer(&mut pair.server, &mut pair.client, 4)?;
    check_eq!(alerted([&pair.client, &pair.server])?, [true, false]);
    sys::clear_alert(pair.client.uid)?;
    // Also if it waited for a server meanwhile. Nobody else is alerted.
    let mut other = pair.near.agent()?;
    other.block(Frame::door_call(9, 3, WORDS))?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    pair.client.block(Frame::door_call(9, 3, WORDS))?;
    alert(&pair.client)?;
    check_eq!(alerted([&pair.client, &other, &pair.server])?, [true, false, false]);
    pair.server.start(Frame::door_return(4, WORDS));
    check_eq!(other.wait()?.kind(), Some(Kind::DoorReturn));
    door::arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(alerted([&other, &pair.server])?, [false, true]);
    door::answer(&mut pair.server, &mut pair.client, 4)
}

/// The thread alone, and its task.
pub fn the_caller_ends() -> Outcome {
    for with_task in [false, true] {
        let mut chain = Chain::new()?;
        chain.call()?;
        match with_task {
            true => sys::task_destroy(chain.children[0].0)?,
            false => sys::thread_destroy(chain.agents[0].uid)?,
        }
        let [_, rest @ ..] = &chain.agents[..] else { unreachable!("there are some") };
        for agent in rest {
            check!(sys::is_alerted(agent.uid)?);
        }
        // Whom the first of them serves next is no affair of that.
        chain.give_back(2)?;
        let first = &mut chain.agents[1];
        first.start(Frame::door_return(4, WORDS));
        if with_task {
            // With it went the last identifier.
            door::unreferenced(first, DATUM)?;
        }
        check!(first.settle()?);
        check!(!sys::is_alerted(first.uid)?);
    }
    Ok(())
}

/// Whoever is in front learns of it by an error, and is not alerted.
pub fn the_middle_ends() -> Outcome {
    const MIDDLE: usize = 2;
    let mut chain = Chain::new()?;
    chain.call()?;
    sys::thread_destroy(chain.agents[MIDDLE].uid)?;
    check_eq!(chain.agents[MIDDLE - 1].wait()?.error(), Some(Error::PartnerDied));
    for (i, agent) in chain.agents.iter().enumerate().filter(|&(i, _)| i != MIDDLE) {
        check_eq!(sys::is_alerted(agent.uid)?, i > MIDDLE);
    }
    chain.give_back(MIDDLE + 2)?;
    let [client, server] = chain.agents.get_disjoint_mut([0, 1]).expect("two of them");
    door::answer(server, client, 4)
}

/// In each phase, and before it begins.
pub fn alertable_ipc() -> Outcome {
    let child = Child::new()?;
    let (mut client, mut server) = (child.agent()?, child.agent()?);
    let later = Timeout::from_us(60_000_000);
    let sending = [
        Frame::send(server.uid, NEVER),
        Frame::ipc(server.uid, server.uid, later, NEVER),
        Frame::send(server.uid, NEVER).item(Fpage::memory(0x1000_0000, 12, Rights::R), 0),
    ];
    let receiving = [
        Frame::receive(Uid::ANY, NEVER),
        Frame::receive(server.uid, NEVER),
        Frame::receive(client.uid, later),
    ];
    let all = sending.map(|frame| (frame, Error::SendAborted)).into_iter();
    for (frame, error) in all.chain(receiving.map(|frame| (frame, Error::ReceiveAborted))) {
        // What was not begun so goes on.
        client.block(frame)?;
        alert(&client)?;
        check!(client.settle()?);
        sys::thread_abort(client.uid)?;
        check_eq!(client.wait()?.error(), Some(error));
        // What is begun afterwards does not begin, until that is cleared.
        check_eq!(client.run(frame.alertable())?.error(), Some(error));
        sys::clear_alert(client.uid)?;
        client.block(frame.alertable())?;
        alert(&client)?;
        let got = client.wait()?;
        check_eq!((got.error(), got.words()), (Some(error), [0; 11]));
        sys::clear_alert(client.uid)?;
    }
    // A call that has arrived.
    server.block(Frame::receive(Uid::ANY, NEVER))?;
    client.block(Frame::ipc(server.uid, server.uid, NEVER, NEVER).alertable())?;
    check_eq!(server.wait()?.kind(), Some(Kind::Request));
    alert(&client)?;
    check_eq!(client.wait()?.error(), Some(Error::ReceiveAborted));
    sys::clear_alert(client.uid)?;
    // Of nobody's business if nobody is alerted; and the next that waits is not alertable because the last was.
    server.block(Frame::receive(Uid::ANY, NEVER))?;
    check_eq!(client.run(Frame::send(server.uid, NEVER).alertable())?.error(), None);
    check_eq!(server.wait()?.kind(), Some(Kind::Reply));
    client.block(Frame::reply_wait(Uid::NIL, 0, WORDS))?;
    alert(&client)?;
    check!(!client.is_done());
    sys::send(client.uid, 0, [0; 8], NEVER)?;
    check_eq!(client.wait()?.kind(), Some(Kind::Reply));
    Ok(())
}

fn alertable_call() -> Frame {
    Frame::door_call(9, 3, WORDS).alertable()
}

pub fn alertable_calls() -> Outcome {
    let mut pair = Pair::new()?;
    alert(&pair.client)?;
    check_eq!(pair.client.run(alertable_call())?.error(), Some(Error::SendAborted));
    check_eq!(pair.client.run(Frame::door_call(10, 3, WORDS).alertable())?.error(), Some(Error::NoSuch));
    sys::clear_alert(pair.client.uid)?;
    // It goes on, alerted, and its return reaches nobody.
    pair.client.block(alertable_call())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    alert(&pair.client)?;
    let got = pair.client.wait()?;
    check_eq!((got.error(), got.words()), (Some(Error::ReceiveAborted), [0; 11]));
    check_eq!(alerted([&pair.client, &pair.server])?, [true, true]);
    sys::clear_alert(pair.client.uid)?;
    // The second waits for a server.
    pair.client.block(alertable_call())?;
    alert(&pair.client)?;
    check_eq!(pair.client.wait()?.error(), Some(Error::SendAborted));
    sys::clear_alert(pair.client.uid)?;
    pair.server.block(Frame::door_return(4, WORDS))?;
    // All is as it was; a call that returns is nothing special.
    pair.client.block(alertable_call())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    door::answer(&mut pair.server, &mut pair.client, 4)?;
    pair.exchange()?;
    // In the middle of a chain.
    let mut chain = Chain::new()?;
    for i in 1..Chain::LENGTH {
        chain.agents[i - 1].block(Frame::door_call(1, 3, WORDS).alertable())?;
        door::arrived(&mut chain.agents[i], 3, DATUM)?;
    }
    alert(&chain.agents[0])?;
    for agent in &mut chain.agents[..Chain::LENGTH - 1] {
        check_eq!(agent.wait()?.error(), Some(Error::ReceiveAborted));
    }
    check_eq!(chain.alerted()?, [true; Chain::LENGTH]);
    Ok(())
}

/// A chain that an alert ends everywhere, with another caller that waits for each of its servers. (Interrupts may not stay off for long: the watch
/// looks.)
pub fn a_crowded_chain_ends() -> Outcome {
    let mut chain = Chain::new()?;
    let own = pager::priority();
    for i in 1..Chain::LENGTH {
        chain.agents[i - 1].block(Frame::door_call(1, 3, WORDS).alertable())?;
        door::arrived(&mut chain.agents[i], 3, DATUM)?;
    }
    let mut crowd = Vec::new();
    for (steps, child) in (2..).zip(&chain.children[..Chain::LENGTH - 1]) {
        let mut other = child.agent()?;
        other.block(Frame::door_call(1, 3, WORDS))?;
        sys::thread_set_priority(other.uid, own.saturating_sub(steps).max(1), 0)?;
        crowd.push(other);
    }
    alert(&chain.agents[0])?;
    for agent in &mut chain.agents[..Chain::LENGTH - 1] {
        check_eq!(agent.wait()?.error(), Some(Error::ReceiveAborted));
    }
    check_eq!(chain.alerted()?, [true; Chain::LENGTH]);
    Ok(())
}

/// While pages are mapped in steps, and afterwards.
pub fn alertable_calls_with_items() -> Outcome {
    const PLACE: u64 = 0x6000_0000;
    for switches in 0..4 {
        let mut pair = Pair::new()?;
        let base = (from().bytes.as_ptr() as u64).next_multiple_of(64 << 12);
        sys::thread_set_window(pair.server.uid, Fpage::memory(PLACE, 18, Rights::RW))?;
        for page in 0..64 {
            pair.client.peek(base + page * 4096)?;
        }
        let mut frame = Frame::door_call(9, 3, WORDS);
        frame.rax = frame.rax >> 32 << 32 | DOOR_ITEM_CALL as u64;
        (frame.r13, frame.r14) = (Fpage::memory(base, 18, Rights::RW).0, 0);
        pair.client.start(frame.alertable());
        for _ in 0..switches {
            sys::thread_switch(pair.client.uid)?;
        }
        alert(&pair.client)?;
        let got = pair.client.wait()?;
        check!(matches!(got.error(), Some(Error::SendAborted | Error::ReceiveAborted)), "{got:?}");
        if got.error() == Some(Error::ReceiveAborted) {
            pair.server.wait()?;
            check!(sys::is_alerted(pair.server.uid)?);
            pair.server.block(Frame::door_return(4, WORDS))?;
        }
        sys::clear_alert(pair.client.uid)?;
        pair.exchange()?;
    }
    Ok(())
}

/// Stuck in the middle of a block, for whose pages nobody cares.
pub fn alertable_copies() -> Outcome {
    for at_target in [false, true] {
        let (used, room) = stuck(at_target);
        let mut pair = Pair::new()?;
        set_room(&pair.server, room, NEVER)?;
        let mut frame = Frame::door_call(9, 3, WORDS);
        frame.rax = frame.rax >> 32 << 32 | DOOR_LONG_CALL as u64;
        (frame.rdi, frame.rsi) = (used.0, from_block());
        pair.client.start(frame.alertable());
        get_stuck();
        check!(!pair.client.is_done());
        alert(&pair.client)?;
        check_eq!(pair.client.wait()?.error(), Some(Error::SendAborted));
        sys::clear_alert(pair.client.uid)?;
        pair.exchange()?;
        // The receiver of a message is alerted.
        let (mut sender, mut receiver) = (pair.near.agent()?, pair.near.agent()?);
        let (used, room) = stuck(at_target);
        sys::thread_set_block(receiver.uid, to_block(), room, NEVER)?;
        receiver.block(Frame::receive(Uid::ANY, NEVER).taking().alertable())?;
        let mut frame = Frame::call(receiver.uid, 0, WORDS);
        frame.rax = IPC_LONG_CALL as u64;
        (frame.rdi, frame.rsi) = (used.0, from_block());
        sender.start(frame);
        get_stuck();
        alert(&receiver)?;
        let errors = (sender.wait()?.error(), receiver.wait()?.error());
        check_eq!(errors, (Some(Error::SendAborted), Some(Error::ReceiveAborted)));
        prepare(0);
    }
    Ok(())
}

/// A page that nobody has touched before.
static UNTOUCHED: [u8; 3 * 4096] = [0; 3 * 4096];

extern "C" fn read(address: u64) -> u64 {
    // SAFETY: `UNTOUCHED` is there for everybody.
    unsafe { (address as *const u64).read_volatile() }
}

/// A thread's last call was one that an alert ends, but now it waits for its pager.
pub fn faults_are_not_ended() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let got = agent.run(Frame::receive(Uid::ANY, Timeout::ZERO).alertable())?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    sys::thread_set_pager(agent.uid, sys::myself(), pager::uid())?;
    agent.start_apply(read, (addr_of!(UNTOUCHED) as u64).next_multiple_of(4096));
    get_stuck();
    alert(&agent)?;
    let fault = sys::receive(agent.uid, NEVER)?;
    check_eq!(fault.kind, Kind::Fault);
    alert(&agent)?;
    check!(!agent.is_done());
    // An answer without a page: it tries again, with who has one.
    sys::thread_set_pager(agent.uid, pager::uid(), pager::uid())?;
    sys::send(agent.uid, 0, [0; 8], Timeout::ZERO)?;
    check_eq!(agent.result()?, 0);
    check!(sys::is_alerted(agent.uid)?);
    let mut stranger = Agent::new(TaskId::NIL)?;
    stranger.block(Frame::receive(agent.uid, NEVER))?;
    check_eq!(agent.run(Frame::send(stranger.uid, NEVER).alertable())?.error(), Some(Error::SendAborted));
    check_eq!(agent.run(Frame::send(stranger.uid, NEVER))?.error(), None);
    check_eq!(stranger.wait()?.kind(), Some(Kind::Reply));
    Ok(())
}
