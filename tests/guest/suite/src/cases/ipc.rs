//! Ipc: what travels, who receives what, in which order, and how it ends early.

use crate::kit::{Agent, Child, Frame, Outcome, PLAIN_FLAGS, Random, WORDS, fails, in_time_enough};
use crate::{check, check_eq};
use sys::abi::Call;
use sys::abi::call::{ABSOLUTE_END, IPC_CALL, IPC_REPLY_WAIT, NULL};
use sys::abi::op;
use sys::{Error, Ipc, Kind, TaskId, Timeout, Uid};

/// Longer than the suite waits for any test.
const LONG: Timeout = Timeout::from_us(1_000_000_000);

const OTHER: [u64; 11] = [
    u64::MAX,
    0,
    1,
    0x8000_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_8000_0000_0000,
    42,
    0xdead,
    7,
    8,
    9,
];

/// A client and a server in tasks of their own, clan-mates.
struct Pair {
    client: Agent,
    server: Agent,
    near: Child,
    far: Child,
}

fn pair() -> Outcome<Pair> {
    let (near, far) = (Child::new()?, Child::new()?);
    Ok(Pair { client: near.agent()?, server: far.agent()?, near, far })
}

fn exchange(client: &mut Agent, server: &mut Agent) -> Outcome {
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    for (there, back, label, answer) in
        [(WORDS, OTHER, 0, u32::MAX), (OTHER, WORDS, u32::MAX, 1), ([0; 11], [u64::MAX; 11], 0x8000_0000, 0)]
    {
        client.block(Frame::call(server.uid, label, there))?;
        let got = server.wait()?;
        check_eq!(got.kind(), Some(Kind::Request));
        check_eq!(got.words(), there);
        check_eq!(got.received_label(), label);
        check_eq!(got.sender(), client.uid);
        server.block(Frame::reply_wait(client.uid, answer, back))?;
        let got = client.wait()?;
        check_eq!(got.kind(), Some(Kind::Reply));
        check_eq!(got.words(), back);
        check_eq!(got.received_label(), answer);
        check_eq!(got.sender(), server.uid);
        check_eq!(got.flags, PLAIN_FLAGS);
    }
    Ok(())
}

pub fn words_and_label_between_tasks() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    exchange(client, server)
}

pub fn words_and_label_within_a_task() -> Outcome {
    let child = Child::new()?;
    exchange(&mut child.agent()?, &mut child.agent()?)
}

pub fn words_and_label_in_the_own_task() -> Outcome {
    exchange(&mut Agent::new(TaskId::NIL)?, &mut Agent::new(TaskId::NIL)?)
}

pub fn words_and_label_across_the_clan_border() -> Outcome {
    let child = Child::new()?;
    exchange(&mut child.agent()?, &mut Agent::new(TaskId::NIL)?)?;
    exchange(&mut Agent::new(TaskId::NIL)?, &mut child.agent()?)
}

/// General and short forms meet: who sends in the general form sends eight words, and 0 for the other three.
pub fn general_form_meets_short_form() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    server.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    client.block(Frame::call(server.uid, 5, WORDS))?;
    let got = server.wait()?;
    check_eq!(got.kind(), Some(Kind::Request));
    check_eq!(got.words(), WORDS);
    server.block(Frame::ipc(client.uid, Uid::ANY, Timeout::ZERO, Timeout::NEVER).label(6))?;
    let got = client.wait()?;
    check_eq!(got.kind(), Some(Kind::Reply));
    check_eq!(got.words()[..8], WORDS[..8]);
    check_eq!(got.words()[8..], [0; 3]);
    check_eq!(got.received_label(), 6);

    client.block(Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::NEVER))?;
    let got = server.wait()?;
    check_eq!(got.kind(), Some(Kind::Request));
    check_eq!(got.sender(), client.uid);
    check_eq!(got.words()[..8], WORDS[..8]);
    check_eq!(got.words()[8..], [0; 3]);
    server.block(Frame::reply_wait(client.uid, 7, OTHER))?;
    let got = client.wait()?;
    check_eq!(got.words(), OTHER);
    Ok(())
}

pub fn plain_send_is_no_request() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    let got = client.run(Frame::send(server.uid, Timeout::ZERO).label(3))?;
    check_eq!(got.rax, 0);
    let got = server.wait()?;
    check_eq!(got.kind(), Some(Kind::Reply));
    check_eq!(got.received_label(), 3);
    check_eq!(got.words()[..8], WORDS[..8]);
    Ok(())
}

pub fn closed_receive_takes_only_its_partner() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, near, .. } = &mut pair;
    let mut other = near.agent()?;
    server.block(Frame::receive(client.uid, Timeout::NEVER))?;
    other.block(Frame::send(server.uid, Timeout::NEVER).label(1))?;
    check!(!server.is_done(), "a closed receive took a message from somebody else");
    let got = other_is_refused(client, server)?;
    check_eq!(got.rax, 0);
    let got = server.wait()?;
    check_eq!(got.sender(), client.uid);
    let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.sender(), other.uid);
    check_eq!(other.wait()?.rax, 0);

    // Through the short forms, too: a client that waits for its answer takes it from nobody else.
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    client.block(Frame::call(server.uid, 0, WORDS))?;
    server.wait()?;
    other.block(Frame::call(client.uid, 0, OTHER))?;
    check!(!client.is_done(), "a caller took a message from somebody else");
    server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
    check_eq!(client.wait()?.sender(), server.uid);
    let got = client.run(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    check_eq!((got.sender(), got.kind()), (other.uid, Some(Kind::Request)));
    Ok(())
}

fn other_is_refused(client: &mut Agent, server: &Agent) -> Outcome<Frame> {
    client.run(Frame::send(server.uid, Timeout::ZERO))
}

pub fn send_timeouts() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    let got = client.run(Frame::send(server.uid, Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::SendTimeout));
    let got = client.run_into_timeout(Frame::send(server.uid, Timeout::from_us(3000)), 3000)?;
    check_eq!(got.error(), Some(Error::SendTimeout));
    // A receiver in time.
    client.block(Frame::send(server.uid, LONG))?;
    let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.sender(), client.uid);
    check_eq!(client.wait()?.rax, 0);
    // No receive follows a send that failed.
    let got = client.run(Frame::ipc(server.uid, server.uid, Timeout::ZERO, Timeout::NEVER))?;
    check_eq!(got.error(), Some(Error::SendTimeout));
    Ok(())
}

pub fn receive_timeouts() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    for from in [Uid::ANY, client.uid, server.uid] {
        let got = server.run(Frame::receive(from, Timeout::ZERO))?;
        check_eq!(got.error(), Some(Error::ReceiveTimeout));
        for us in [1, 250, 20_000] {
            let got = server.run_into_timeout(Frame::receive(from, Timeout::from_us(us)), us)?;
            check_eq!(got.error(), Some(Error::ReceiveTimeout));
        }
    }
    server.block(Frame::receive(Uid::ANY, LONG))?;
    let got = client.run(Frame::send(server.uid, Timeout::ZERO))?;
    check_eq!(got.rax, 0);
    check_eq!(server.wait()?.sender(), client.uid);
    // A call that the server does not answer in time; the late answer is dropped.
    server.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    let got = client.run(Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::from_us(500)))?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    check_eq!(server.wait()?.kind(), Some(Kind::Request));
    server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
    let got = client.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    Ok(())
}

/// The shortest and the longest timeouts, in both units.
pub fn timeouts_at_their_limits() -> Outcome {
    const MS: u32 = 1 << 31;
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    for short in [0, 1, MS, MS | 1].map(Timeout) {
        let us = short.us().unwrap_or(0);
        let sent = client.run_into_timeout(Frame::send(server.uid, short), us)?;
        let received = server.run_into_timeout(Frame::receive(Uid::ANY, short), us)?;
        let errors = (sent.error(), received.error());
        check_eq!(errors, (Some(Error::SendTimeout), Some(Error::ReceiveTimeout)));
    }
    // Nobody lives to see these end: the message comes first.
    for long in [MS - 1, u32::MAX - 1, u32::MAX].map(Timeout) {
        client.block(Frame::send(server.uid, long))?;
        check_eq!(server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?.sender(), client.uid);
        check_eq!(client.wait()?.rax, 0);
        server.block(Frame::receive(client.uid, long))?;
        check_eq!(client.run(Frame::send(server.uid, Timeout::ZERO))?.rax, 0);
        check_eq!(server.wait()?.sender(), client.uid);
    }
    Ok(())
}

pub fn points_in_time() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    let in_us = |us: u64| sys::clock() + us * 1000;
    // Each phase alone, and one that is over before it begins.
    for us in [0, 2000, 20_000] {
        let until = in_us(us);
        let got = client.run(Frame::send(server.uid, Timeout::NEVER).until(until))?;
        check_eq!(got.error(), Some(Error::SendTimeout));
        check!(sys::clock() >= until, "a send ended early");
        let until = in_us(us);
        let got = server.run(Frame::receive(Uid::ANY, Timeout::NEVER).until(until))?;
        check_eq!(got.error(), Some(Error::ReceiveTimeout));
        check!(sys::clock() >= until, "a receive ended early");
    }
    // The point is the same for both phases: the call waits to send first, and its answer never comes. On a machine that stands
    // still meanwhile it is over before the server looks.
    let both_phases = |us: u64| -> Outcome<bool> {
        let until = in_us(us);
        client.start(Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::NEVER).until(until));
        client.settle()?;
        let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
        // This ends later, since it begins later and takes as long.
        sys::sleep_us(us)?;
        check!(!client.waits()?, "a call did not end");
        let error = client.wait()?.error();
        check!(sys::clock() >= until, "a call ended early");
        if got.error().is_some() {
            check_eq!((got.error(), error), (Some(Error::ReceiveTimeout), Some(Error::SendTimeout)));
            return Ok(false);
        }
        check_eq!((got.kind(), error), (Some(Kind::Request), Some(Error::ReceiveTimeout)));
        Ok(true)
    };
    check!(in_time_enough(50_000, both_phases)?, "no machine is so slow that a call has no two phases");
    // Points that never come; the message does.
    for until in [ABSOLUTE_END - 1, ABSOLUTE_END, u64::MAX] {
        server.block(Frame::receive(Uid::ANY, Timeout::ZERO).until(until))?;
        check_eq!(client.run(Frame::send(server.uid, Timeout::ZERO))?.rax, 0);
        check_eq!(server.wait()?.sender(), client.uid);
    }
    Ok(())
}

pub fn many_timeouts_end_in_order() -> Outcome {
    let child = Child::new()?;
    let mut sleepers = [child.agent()?, child.agent()?, child.agent()?, child.agent()?];
    let delays = [9000, 3000, 12_000, 6000];
    let start = sys::clock();
    for (sleeper, us) in sleepers.iter_mut().zip(delays) {
        sleeper.start(Frame::receive(sleeper.uid, Timeout::from_us(us)));
    }
    let mut last = 0;
    for index in [1, 3, 0, 2] {
        check_eq!(sleepers[index].wait()?.error(), Some(Error::ReceiveTimeout));
        let now = sys::clock() - start;
        check!(now >= delays[index] * 1000 && now >= last, "sleeper {index} woke at {now} ns");
        last = now;
    }
    Ok(())
}

pub fn senders_are_served_first_come_first_served() -> Outcome {
    let (one, two) = (Child::new()?, Child::new()?);
    let mut server = two.agent()?;
    let mut senders = [one.agent()?, two.agent()?, one.agent()?, Agent::new(TaskId::NIL)?];
    for round in 0..3 {
        // Calls, plain sends and short calls queue in the same queue.
        for (index, sender) in senders.iter_mut().enumerate() {
            let label = index as u32;
            match (index + round) % 3 {
                0 => sender.block(Frame::call(server.uid, label, WORDS))?,
                1 => sender.block(Frame::send(server.uid, Timeout::NEVER).label(label))?,
                _ => sender
                    .block(Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::NEVER).label(label))?,
            }
        }
        let mut answer = Uid::NIL;
        for (index, sender) in senders.iter().enumerate() {
            let got = server.run(Frame::reply_wait(answer, 0, WORDS))?;
            check_eq!((got.received_label(), got.sender()), (index as u32, sender.uid));
            answer = got.sender();
        }
        server.block(Frame::reply_wait(answer, 0, WORDS))?;
        for sender in &mut senders {
            sender.wait()?;
        }
        sys::thread_abort(server.uid)?;
        check_eq!(server.wait()?.error(), Some(Error::ReceiveAborted));
    }
    Ok(())
}

pub fn reply_to_nobody_is_dropped() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, near, .. } = &mut pair;
    let mut other = near.agent()?;
    // The client does not wait at all.
    server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
    let got = client.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    // It waits for somebody else.
    sys::thread_abort(server.uid)?;
    server.wait()?;
    client.block(Frame::receive(other.uid, Timeout::NEVER))?;
    server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
    check!(!client.is_done(), "a reply reached a thread that waits for somebody else");
    let got = other.run(Frame::send(client.uid, Timeout::ZERO))?;
    check_eq!(got.rax, 0);
    check_eq!(client.wait()?.sender(), other.uid);
    Ok(())
}

pub fn call_chain() -> Outcome {
    let mut pair = pair()?;
    let Pair { client: a, server: b, near, .. } = &mut pair;
    let mut c = near.agent()?;
    b.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    c.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    for _ in 0..3 {
        a.block(Frame::call(b.uid, 1, WORDS))?;
        check_eq!(b.wait()?.sender(), a.uid);
        b.block(Frame::call(c.uid, 2, OTHER))?;
        let got = c.wait()?;
        check_eq!((got.sender(), got.words()), (b.uid, OTHER));
        c.block(Frame::reply_wait(b.uid, 3, WORDS))?;
        let got = b.wait()?;
        check_eq!((got.sender(), got.words(), got.received_label()), (c.uid, WORDS, 3));
        b.block(Frame::reply_wait(a.uid, 4, OTHER))?;
        let got = a.wait()?;
        check_eq!((got.sender(), got.words(), got.received_label()), (b.uid, OTHER, 4));
    }
    Ok(())
}

/// A server's own call is ended while it serves; then it answers, and everybody goes on: the client calls others, and the server is called.
pub fn answers_after_a_call_that_was_ended() -> Outcome {
    let mut pair = pair()?;
    let Pair { client: a, server: b, near, .. } = &mut pair;
    let (mut c, mut d) = (near.agent()?, near.agent()?);
    let open = Frame::reply_wait(Uid::NIL, 0, [0; 11]);
    for _ in 0..8 {
        b.block(open)?;
        c.block(open)?;
        a.block(Frame::call(b.uid, 1, WORDS))?;
        check_eq!(b.wait()?.sender(), a.uid);
        b.block(Frame::call(c.uid, 2, OTHER))?;
        check_eq!(c.wait()?.sender(), b.uid);
        sys::thread_abort(b.uid)?;
        check_eq!(b.wait()?.error(), Some(Error::ReceiveAborted));
        b.block(Frame::reply_wait(a.uid, 4, OTHER))?;
        let got = a.wait()?;
        check_eq!((got.sender(), got.words(), got.received_label()), (b.uid, OTHER, 4));
        c.block(open)?;
        for (caller, called) in [(&mut *a, &mut c), (&mut d, &mut *b)] {
            caller.block(Frame::call(called.uid, 5, WORDS))?;
            check_eq!(called.wait()?.sender(), caller.uid);
            called.block(Frame::reply_wait(caller.uid, 6, OTHER))?;
            check_eq!(caller.wait()?.received_label(), 6);
        }
        for agent in [&mut *b, &mut c] {
            sys::thread_abort(agent.uid)?;
            agent.wait()?;
        }
    }
    Ok(())
}

pub fn answers_out_of_order() -> Outcome {
    let mut pair = pair()?;
    let Pair { client: a, server, near, .. } = &mut pair;
    let mut b = near.agent()?;
    for _ in 0..3 {
        server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        a.block(Frame::call(server.uid, 1, WORDS))?;
        check_eq!(server.wait()?.sender(), a.uid);
        server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        b.block(Frame::call(server.uid, 2, WORDS))?;
        check_eq!(server.wait()?.sender(), b.uid);
        // The later client first; then the earlier one.
        server.block(Frame::reply_wait(b.uid, 3, OTHER))?;
        let got = b.wait()?;
        check_eq!((got.sender(), got.received_label()), (server.uid, 3));
        check!(!a.is_done());
        sys::thread_abort(server.uid)?;
        server.wait()?;
        server.block(Frame::reply_wait(a.uid, 4, OTHER))?;
        let got = a.wait()?;
        check_eq!((got.sender(), got.received_label()), (server.uid, 4));
        sys::thread_abort(server.uid)?;
        server.wait()?;
    }
    Ok(())
}

pub fn abort_in_each_phase() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    let forms = [
        Frame::send(server.uid, Timeout::NEVER),
        Frame::send(server.uid, LONG),
        Frame::call(server.uid, 0, WORDS),
        Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::NEVER),
    ];
    for form in forms {
        client.block(form)?;
        sys::thread_abort(client.uid)?;
        check_eq!(client.wait()?.error(), Some(Error::SendAborted));
        // Nothing of it is left in the queue.
        let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
        check_eq!(got.error(), Some(Error::ReceiveTimeout));
    }
    let forms = [
        Frame::receive(Uid::ANY, Timeout::NEVER),
        Frame::receive(server.uid, LONG),
        Frame::reply_wait(Uid::NIL, 0, WORDS),
        Frame::receive(client.uid, Timeout::NEVER),
    ];
    for form in forms {
        client.block(form)?;
        sys::thread_abort(client.uid)?;
        let got = client.wait()?;
        check_eq!(got.error(), Some(Error::ReceiveAborted));
        check_eq!(got.flags, PLAIN_FLAGS);
    }
    for form in [Frame::call(server.uid, 0, WORDS), Frame::ipc(server.uid, server.uid, Timeout::NEVER, LONG)]
    {
        server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        client.block(form)?;
        server.wait()?;
        sys::thread_abort(client.uid)?;
        check_eq!(client.wait()?.error(), Some(Error::ReceiveAborted));
        // The server goes on, and its answer is dropped.
        server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
        sys::thread_abort(server.uid)?;
        server.wait()?;
    }
    Ok(())
}

pub fn partner_ends_in_each_phase() -> Outcome {
    let near = Child::new()?;
    let mut client = near.agent()?;
    for whole_task in [false, true] {
        for phase in 0..5 {
            let far = Child::new()?;
            let mut server = far.agent()?;
            match phase {
                0 => client.block(Frame::send(server.uid, Timeout::NEVER))?,
                1 => client.block(Frame::call(server.uid, 0, WORDS))?,
                2 => client.block(Frame::receive(server.uid, Timeout::NEVER))?,
                3 => client.block(Frame::receive(server.uid, LONG))?,
                _ => {
                    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
                    client.block(Frame::call(server.uid, 0, WORDS))?;
                    server.wait()?;
                }
            }
            let gone = server.uid;
            if whole_task {
                sys::task_destroy(far.0)?;
            } else {
                sys::thread_destroy(gone)?;
            }
            let got = client.wait()?;
            check!(got.error() == Some(Error::PartnerDied), "phase {phase}: {:?}", got.error());
            check_eq!(got.flags, PLAIN_FLAGS);
            let got = client.run(Frame::call(gone, 0, WORDS))?;
            check_eq!(got.error(), Some(Error::NoSuch));
            let got = client.run(Frame::receive(gone, Timeout::NEVER))?;
            check_eq!(got.error(), Some(Error::NoSuch));
        }
    }
    Ok(())
}

pub fn sender_ends_in_the_queue() -> Outcome {
    let mut pair = pair()?;
    let Pair { server, near, .. } = &mut pair;
    let mut first = near.agent()?;
    let mut second = near.agent()?;
    first.block(Frame::send(server.uid, Timeout::NEVER).label(1))?;
    second.block(Frame::send(server.uid, Timeout::NEVER).label(2))?;
    sys::thread_destroy(first.uid)?;
    let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.received_label(), 2);
    let got = server.run(Frame::receive(Uid::ANY, Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    Ok(())
}

pub fn stale_uid_is_an_error() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, near, .. } = &mut pair;
    let mut old = near.agent()?.uid;
    for _ in 0..40 {
        // A slot will be used again sooner or later; the uid never.
        let mut fresh = near.agent()?;
        check!(fresh.uid != old, "a uid was used twice");
        fresh.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        let got = client.run(Frame::call(old, 0, WORDS))?;
        check_eq!(got.error(), Some(Error::NoSuch));
        let got = client.run(Frame::send(old, Timeout::ZERO))?;
        check_eq!(got.error(), Some(Error::NoSuch));
        fails(Call::ThreadControl, sys::thread_info(old), Error::NoSuch)?;
        fails(Call::ThreadControl, sys::thread_abort(old), Error::NoSuch)?;
        fails(Call::ThreadControl, sys::thread_destroy(old), Error::NoSuch)?;
        fails(Call::ThreadSwitch, sys::thread_switch(old), Error::NoSuch)?;
        check!(!fresh.is_done());
        old = fresh.uid;
    }
    Ok(())
}

/// Sends to a uid that was made up. It must fail at once, or at worst reach nobody.
fn forged(client: &mut Agent, server: &Agent, uid: Uid) -> Outcome {
    let got = client.run(Frame::send(uid, Timeout::ZERO))?;
    check!(got.error().is_some() && got.error() != Some(Error::SendTimeout), "{:x} was accepted", uid.0);
    client.start(Frame::call(uid, 0, WORDS));
    if client.settle()? {
        sys::thread_abort(client.uid)?;
        client.wait()?;
        return Err(crate::kit::Failure::new(format_args!("call to {:x} blocked", uid.0)));
    }
    let got = client.wait()?;
    check!(got.error().is_some(), "call to {:x} succeeded", uid.0);
    // A reply to nobody waits; it must reach nobody.
    let got = client.run(Frame::ipc(uid, client.uid, Timeout::ZERO, Timeout::ZERO))?;
    check!(got.error().is_some(), "reply to {:x} succeeded", uid.0);
    check!(!server.is_done(), "{:x} reached the server", uid.0);
    Ok(())
}

pub fn forged_uids_reach_nobody() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, near, .. } = &mut pair;
    // A few neighbours, so that flipped slots may hit somebody.
    let _neighbours = [near.agent()?, near.agent()?, near.agent()?];
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    for bit in 0..64 {
        let uid = Uid(server.uid.0 ^ 1 << bit);
        if sys::thread_info(uid).is_ok() {
            continue; // Not forged: a neighbour's.
        }
        forged(client, server, uid)?;
    }
    let mut random = Random::new(11);
    for _ in 0..200 {
        let garbage = random.next();
        let uids = [
            Uid(garbage),
            Uid(server.uid.0 & sys::abi::uid::SLOT_MASK | garbage & !sys::abi::uid::SLOT_MASK),
            Uid(server.uid.0 & 0xffff_ffff | garbage << 32),
            Uid(sys::abi::uid::SLOT_MASK & garbage),
        ];
        for uid in uids {
            if uid != server.uid && uid.as_interrupt().is_none() && sys::thread_info(uid).is_err() {
                forged(client, server, uid)?;
            }
        }
    }
    for uid in [Uid(u64::MAX - 1), Uid(1 << 63), Uid(0xf), Uid(2), Uid(0xffff_ffff_c000_0000)] {
        forged(client, server, uid)?;
    }
    Ok(())
}

/// Nil, "anybody" and oneself as destinations.
pub fn odd_destinations() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    check_eq!(client.run(Frame::call(Uid::NIL, 0, WORDS))?.error(), Some(Error::NoSuch));
    check_eq!(client.run(Frame::call(Uid::ANY, 0, WORDS))?.error(), Some(Error::NoSuch));
    check_eq!(client.run(Frame::send(Uid::ANY, Timeout::ZERO))?.error(), Some(Error::NoSuch));
    check!(!server.is_done());
    // Neither send nor receive.
    let got = client.run(Frame::ipc(Uid::NIL, Uid::NIL, Timeout::ZERO, Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::NoSuch));
    // To oneself: an error, or a wait that can be ended.
    for form in [Frame::call(client.uid, 0, WORDS), Frame::send(client.uid, Timeout::NEVER)] {
        client.start(form);
        if client.settle()? {
            sys::thread_abort(client.uid)?;
        }
        let got = client.wait()?;
        check!(got.error().is_some(), "a message to oneself: {:x}", got.rax);
    }
    let got = client.run(Frame::send(client.uid, Timeout::ZERO))?;
    check!(got.error().is_some());
    Ok(())
}

pub fn foreign_interrupts_are_denied() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, .. } = &mut pair;
    for line in [0, 1, 4, 8, 191, 192, 255] {
        let got = client.run(Frame::receive(Uid::interrupt(line), Timeout::ZERO))?;
        check!(got.error() == Some(Error::Denied) || got.error() == Some(Error::NoSuch), "{:?}", got.error());
        let got = client.run(Frame::send(Uid::interrupt(line), Timeout::ZERO))?;
        check!(got.error().is_some());
    }
    let got = client.run(Frame::receive(Uid::interrupt(4), Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::Denied));
    // No interrupt, but looks like one.
    let got = client.run(Frame::receive(Uid(Uid::interrupt(4).0 | 1 << 40), Timeout::ZERO))?;
    check!(got.error().is_some() && got.error() != Some(Error::ReceiveTimeout));
    Ok(())
}

pub fn reserved_bits_are_refused() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    for bit in (8..31).filter(|&bit| op::GENERAL_FLAGS & 1 << bit == 0) {
        let mut frame = Frame::send(server.uid, Timeout::ZERO);
        frame.rax |= 1 << bit;
        let got = client.run(frame)?;
        check!(got.error() == Some(Error::BadArgument), "bit {bit}: {:?}", got.error());
    }
    let mut frame = Frame::send(server.uid, Timeout::ZERO).window(sys::Fpage(0x33));
    frame.rbx = Uid::ANY.0;
    check_eq!(client.run(frame)?.error(), Some(Error::BadArgument));
    check!(!server.is_done());
    Ok(())
}

/// The flags come back plain, whatever they were; DF and AC above all.
pub fn flags_come_back_plain() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    let awkward = PLAIN_FLAGS | 0x400 | 1 << 18 | 1 << 21 | 0x4000 | 0x8d5;
    server.block(Frame { flags: awkward, ..Frame::reply_wait(Uid::NIL, 0, [0; 11]) })?;
    for form in [
        Frame::call(server.uid, 0, WORDS),
        Frame::ipc(server.uid, server.uid, Timeout::NEVER, Timeout::NEVER),
    ] {
        client.block(Frame { flags: awkward, ..form })?;
        check_eq!(server.wait()?.flags, PLAIN_FLAGS);
        server.block(Frame { flags: awkward, ..Frame::reply_wait(client.uid, 0, WORDS) })?;
        check_eq!(client.wait()?.flags, PLAIN_FLAGS);
    }
    for form in [
        Frame::send(Uid(0x1000), Timeout::ZERO),
        Frame::receive(Uid::ANY, Timeout::from_us(100)),
        Frame::call(Uid(0x1000), 0, WORDS),
    ] {
        let got = client.run(Frame { flags: awkward, ..form })?;
        check!(got.error().is_some());
        check_eq!(got.flags, PLAIN_FLAGS);
    }
    Ok(())
}

fn is_kernels(value: u64) -> bool {
    value >= 0xffff_8000_0000_0000
}

/// No register ever holds an address of the kernel, or anything that is neither an argument nor a result.
pub fn registers_leak_nothing() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, .. } = &mut pair;
    let mut frames = [
        Frame::receive(Uid::ANY, Timeout::ZERO),
        Frame::receive(Uid::ANY, Timeout::from_us(200)),
        Frame::send(server.uid, Timeout::ZERO),
        Frame::send(Uid(0x5000), Timeout::ZERO),
        Frame::call(Uid(0x5000), 0, WORDS),
        Frame::receive(Uid::interrupt(3), Timeout::ZERO),
        Frame::control(Call::Clock as u32, [1, 2, 3, 4, 5, 6]),
        Frame::control(Call::Flush as u32, [1, 2, 3, 4, 5, 6]),
        Frame::control(Call::ThreadSwitch as u32, [0, 2, 3, 4, 5, 6]),
        Frame::control(Call::ThreadControl as u32 | 10 << 8, [client.uid.0, 2, 3, 4, 5, 6]),
        Frame::control(Call::TaskControl as u32 | 2 << 8, [0, 2, 3, 4, 5, 6]),
        Frame::control(Call::TaskControl as u32 | 5 << 8, [0, 2, 3, 4, 5, 6]),
        Frame::control(Call::TaskControl as u32 | 99 << 8, [1, 2, 3, 4, 5, 6]),
        Frame::control(NULL, [1, 2, 3, 4, 5, 6]),
    ];
    for frame in &mut frames {
        let before = *frame;
        let got = client.run(before)?;
        for (name, value) in got.registers() {
            check!(!is_kernels(value), "{name} = {value:x} after {:x}", before.rax);
        }
        if before.rax as u32 & 0xff != 1 && before.rax as u32 != IPC_CALL {
            let kept = |f: &Frame| [f.rbx, f.rbp, f.r12, f.r13, f.r14, f.r15];
            check_eq!(kept(&got), kept(&before));
        }
    }
    // A null call and a failed one change nothing but rax, rcx and r11.
    let before = Frame::control(NULL, [1, 2, 3, 4, 5, 6]);
    let got = client.run(before)?;
    check_eq!([got.rdi, got.rsi, got.rdx, got.r10, got.r8, got.r9], [1, 2, 3, 4, 5, 6]);
    let before = Frame::control(Call::TaskControl as u32 | 99 << 8, [1, 2, 3, 4, 5, 6]);
    let got = client.run(before)?;
    check_eq!([got.rdi, got.rsi, got.rdx, got.r10, got.r8, got.r9], [1, 2, 3, 4, 5, 6]);
    // What a failed or empty ipc shows is the caller's own.
    for frame in [Frame::send(server.uid, Timeout::ZERO), Frame::receive(Uid::ANY, Timeout::from_us(50))] {
        let got = client.run(frame)?;
        let known = |value| value == 0 || frame.registers().iter().any(|(_, own)| *own == value);
        for (name, value) in
            got.registers().into_iter().filter(|(name, _)| !matches!(*name, "rax" | "rcx" | "r11"))
        {
            check!(known(value), "{name} = {value:x}, which was no argument");
        }
    }
    // Successful messages show words, sender and label only.
    server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    client.block(Frame::call(server.uid, 0, WORDS))?;
    for (name, value) in server.wait()?.registers() {
        let known = WORDS.contains(&value) || value == client.uid.0 || !is_kernels(value);
        check!(known || (name == "rax" && value == IPC_CALL as u64), "{name} = {value:x}");
    }
    server.block(Frame::reply_wait(client.uid, 0, WORDS))?;
    for (name, value) in client.wait()?.registers() {
        let known = WORDS.contains(&value) || value == server.uid.0 || !is_kernels(value);
        check!(known || (name == "rax" && value == IPC_REPLY_WAIT as u64), "{name} = {value:x}");
    }
    Ok(())
}

/// Thousands of round trips on the plain stubs, interrupted by the clock, lose nothing.
pub fn many_round_trips() -> Outcome {
    extern "C" fn server(_: u64) -> u64 {
        let mut message = sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]);
        while let Ok(got) = message {
            if got.label == 1 {
                let _ = sys::send(got.sender, 0, got.words, Timeout::ZERO);
                return 0;
            }
            let mut words = got.words;
            words.reverse();
            message = sys::ipc_reply_wait(got.sender, 0, words);
        }
        1
    }
    let far = Child::new()?;
    let mut agent = far.agent()?;
    agent.start_apply(server, 0);
    check!(agent.settle()?);
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let words: [u64; 8] = core::array::from_fn(|_| random.next());
        let got = sys::ipc_call(agent.uid, 0, words)?;
        let mut back = got.words;
        back.reverse();
        check!(back == words && got.sender == agent.uid && got.kind == Kind::Reply, "a word changed");
    }
    sys::ipc_call(agent.uid, 1, [0; 8])?;
    check_eq!(agent.result()?, 0);
    Ok(())
}

/// The general form with everything at once: reply, then receive from one only, then time out.
pub fn reply_then_closed_receive_times_out() -> Outcome {
    let mut pair = pair()?;
    let Pair { client, server, far, .. } = &mut pair;
    let other = far.agent()?;
    server.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    client.block(Frame::call(server.uid, 0, WORDS))?;
    server.wait()?;
    let got = server.run(Frame::ipc(client.uid, other.uid, Timeout::ZERO, Timeout::from_us(100)))?;
    check_eq!(got.error(), Some(Error::ReceiveTimeout));
    check_eq!(client.wait()?.sender(), server.uid);
    // So with the stub.
    let none = Ipc { from: Uid::ANY, receive_timeout: Timeout::ZERO, ..Ipc::NONE };
    fails(Call::Ipc, none.run(), Error::ReceiveTimeout)
}
