//! Registers beside a message change hands with it: after an ipc, or at the beginning of a call through a door, all of them are the thread's own, or
//! its partner's, or initial; never a third one's, whoever else has worked on the shuttle or was cut off. See `painted.rs` for how that is seen.

use super::door::{DATUM, hand, make};
use crate::kit::{Child, Found, Frame, Outcome, Painter, WORDS, pager};
use crate::{check, check_eq};
use core::array::from_fn;
use sys::abi::call::{Call, NOT_DIVERTED, door_op, task_op};
use sys::abi::op;
use sys::{Error, Kind, Rights, TaskId, Timeout, Uid};

const NEVER: Timeout = Timeout::NEVER;

/// Painters with numbers from 1 on, each in a task of its own.
fn painters<const N: usize>(children: &[Child; N]) -> Outcome<[Painter; N]> {
    let mut painters: [Option<Painter>; N] = from_fn(|_| None);
    for (index, child) in children.iter().enumerate() {
        painters[index] = Some(Painter::new(child.0, index as u64 + 1)?);
    }
    Ok(painters.map(|painter| painter.expect("just made")))
}

fn children<const N: usize>() -> Outcome<[Child; N]> {
    let mut children: [Option<Child>; N] = from_fn(|_| None);
    for child in &mut children {
        *child = Some(Child::new()?);
    }
    Ok(children.map(|child| child.expect("just made")))
}

fn call(to: &Painter) -> Frame {
    Frame::call(to.agent.uid, 0, WORDS)
}

fn wait() -> Frame {
    Frame::reply_wait(Uid::NIL, 0, WORDS)
}

fn answer(to: &Painter) -> Frame {
    Frame::reply_wait(to.agent.uid, 0, WORDS)
}

/// A painter's system call has ended so, and it finds its own number or initial registers: nobody has sent it anything.
fn ended(painter: &mut Painter, error: Error) -> Outcome {
    let (frame, found) = painter.wait()?;
    check_eq!(frame.error(), Some(error));
    check!([Found::Initial, painter.own()].contains(&found), "{found:?} after {error:?}");
    Ok(())
}

/// A message of `partner` has come, and with it all of its registers.
fn came(painter: &mut Painter, partner: &Painter) -> Outcome {
    let (frame, found) = painter.wait()?;
    check_eq!((frame.error(), found), (None, partner.own()));
    Ok(())
}

/// A message of `partner` has come, and perhaps no shuttle with it, since one was taken back meanwhile.
fn arrived(painter: &mut Painter, partner: &Painter) -> Outcome {
    let (frame, found) = painter.wait()?;
    check_eq!(frame.error(), None);
    let is_right = [Found::Initial, painter.own(), partner.own()].contains(&found);
    check!(is_right, "{:?} finds {found:?} after a message of {:?}", painter.own(), partner.own());
    Ok(())
}

/// Three clients wait in the queue of a server, which takes one after the other, and answers the one before at the same time.
pub fn callers_in_a_queue() -> Outcome {
    let children = children()?;
    let [mut server, mut one, mut two, mut three] = painters(&children)?;
    for client in [&mut one, &mut two, &mut three] {
        client.block(call(&server))?;
    }
    server.start(wait());
    came(&mut server, &one)?;
    server.start(answer(&one));
    came(&mut server, &two)?;
    came(&mut one, &server)?;
    // A sender that lends nothing brings nothing.
    one.block(Frame::send(server.agent.uid, NEVER))?;
    server.start(answer(&two));
    came(&mut server, &three)?;
    came(&mut two, &server)?;
    server.start(answer(&three));
    let (_, found) = server.wait()?;
    check!([Found::Initial, server.own()].contains(&found), "a plain message brings {found:?}");
    came(&mut three, &server)
}

/// Two clients of a door with one server.
pub fn callers_in_the_queue_of_a_door() -> Outcome {
    let children = children()?;
    let [mut server, mut one, mut two] = painters(&children)?;
    let mut maker = children[0].agent()?;
    check_eq!(make(&mut maker, 7, DATUM)?, None);
    for client in [&mut one, &mut two] {
        hand(&mut maker, 7, Rights::R, &mut client.agent, 9)?;
    }
    for _ in 0..2 {
        one.block(Frame::door_call(9, 0, WORDS))?;
        two.block(Frame::door_call(9, 0, WORDS))?;
        server.start(Frame::control(Call::DoorControl as u32 | door_op::SERVE << 8, [0; 6]));
        came(&mut server, &one)?;
        server.start(Frame::door_return(0, WORDS));
        came(&mut server, &two)?;
        came(&mut one, &server)?;
        server.block(Frame::door_return(0, WORDS))?;
        came(&mut two, &server)?;
        // Now the server waits first.
        one.block(Frame::door_call(9, 0, WORDS))?;
        came(&mut server, &one)?;
        server.block(Frame::door_return(0, WORDS))?;
        came(&mut one, &server)?;
        sys::thread_abort(server.agent.uid)?;
        ended(&mut server, Error::ReceiveAborted)?;
    }
    Ok(())
}

/// A server keeps the call of one client, and works for another; what it leaves with the first one's shuttle is the server's.
pub fn a_server_that_keeps_a_call() -> Outcome {
    let children = children()?;
    let [mut server, mut one, mut two, mut three] = painters(&children)?;
    server.block(wait())?;
    one.block(call(&server))?;
    came(&mut server, &one)?;
    server.block(wait())?;
    two.block(call(&server))?;
    came(&mut server, &two)?;
    // It has the second one's shuttle, and answers the first.
    server.block(answer(&one))?;
    let (frame, found) = one.wait()?;
    check_eq!(frame.kind(), Some(Kind::Reply));
    check!([Found::Initial, one.own(), server.own()].contains(&found), "the first one finds {found:?}");
    three.block(call(&server))?;
    came(&mut server, &three)?;
    sys::thread_abort(two.agent.uid)?;
    ended(&mut two, Error::ReceiveAborted)?;
    server.block(answer(&three))?;
    came(&mut three, &server)
}

/// A server that calls another one finds what that left, and its client what the first one did.
pub fn a_call_in_a_call() -> Outcome {
    let children = children()?;
    let [mut first, mut second, mut client] = painters(&children)?;
    for _ in 0..3 {
        first.block(wait())?;
        second.block(wait())?;
        client.block(call(&first))?;
        came(&mut first, &client)?;
        first.block(call(&second))?;
        came(&mut second, &first)?;
        second.block(answer(&first))?;
        came(&mut first, &second)?;
        first.block(answer(&client))?;
        came(&mut client, &first)?;
        for server in [&mut first, &mut second] {
            sys::thread_abort(server.agent.uid)?;
            ended(server, Error::ReceiveAborted)?;
        }
    }
    Ok(())
}

/// A message out of a clan goes to the chief, which asks somebody and answers; or has it answered by another thread of its task.
pub fn a_chief_in_between() -> Outcome {
    const TASK_CREATE: u32 = Call::TaskControl as u32 | task_op::CREATE << 8;
    let other = Child::new()?;
    let mut server = Painter::new(other.0, 2)?;
    let (mut chief, mut mate) = (Painter::new(TaskId::NIL, 3)?, Painter::new(TaskId::NIL, 4)?);
    // Messages go to the thread that made the task.
    let arguments = [Child::QUOTA, pager::priority().into(), 0, 0, 0, 0];
    let (error, [task, ..]) = chief.agent.control(TASK_CREATE, arguments)?;
    check_eq!(error, 0);
    let clan = Child(TaskId(task));
    let mut member = Painter::new(clan.0, 1)?;
    let outsider = sys::identity().pager;
    let reply_as = |to: &Painter| {
        let mut frame = Frame::send(to.agent.uid, Timeout::ZERO).flags(op::SHOWN);
        frame.r12 = outsider.0;
        frame
    };
    server.block(wait())?;
    for by_mate in [false, true, false] {
        chief.block(wait())?;
        member.block(Frame::call(outsider, 0, WORDS))?;
        let (frame, found) = chief.wait()?;
        check_eq!((frame.rax as u32 & NOT_DIVERTED, found), (0, member.own()));
        let helper = if by_mate { &mut mate } else { &mut server };
        if by_mate {
            helper.block(wait())?;
        }
        chief.block(call(helper))?;
        came(helper, &chief)?;
        if by_mate {
            check_eq!(helper.run(reply_as(&member))?.0.rax, 0);
            let (frame, found) = member.wait()?;
            check_eq!(frame.sender(), outsider);
            let is_right = [Found::Initial, member.own(), mate.own()].contains(&found);
            check!(is_right, "the member finds {found:?}");
            check_eq!(mate.run(Frame::send(chief.agent.uid, Timeout::ZERO))?.0.rax, 0);
            let (frame, found) = chief.wait()?;
            check_eq!(frame.sender(), mate.agent.uid);
            let is_right = [Found::Initial, chief.own(), mate.own()].contains(&found);
            check!(is_right, "the chief finds {found:?}");
        } else {
            helper.block(answer(&chief))?;
            came(&mut chief, helper)?;
            check_eq!(chief.run(reply_as(&member))?.0.rax, 0);
            came(&mut member, &chief)?;
        }
    }
    Ok(())
}

/// A client whose call to a server has become the server's call to another one. All of them are in tasks of their own.
struct Chain {
    client: Painter,
    first: Painter,
    second: Painter,
    /// Somebody who waits behind the client.
    next: Painter,
    children: [Child; 4],
}

impl Chain {
    fn new(called: Frame) -> Outcome<Chain> {
        let children = children()?;
        let [mut client, mut first, mut second, mut next] = painters(&children)?;
        first.block(wait())?;
        second.block(wait())?;
        client.block(Frame { rdx: first.agent.uid.0, rbx: first.agent.uid.0, ..called })?;
        came(&mut first, &client)?;
        first.block(call(&second))?;
        came(&mut second, &first)?;
        next.block(call(&first))?;
        Ok(Chain { client, first, second, next, children })
    }

    /// The client is out of it. The others go on as if nothing had happened.
    fn goes_on(mut self) -> Outcome {
        let Chain { first, second, client, next, .. } = &mut self;
        second.block(answer(first))?;
        arrived(first, second)?;
        first.start(answer(client));
        came(first, next)?;
        first.block(answer(next))?;
        came(next, first)?;
        // Nobody has left anything with the client's shuttle.
        first_call(client, first)
    }
}

fn first_call(client: &mut Painter, server: &mut Painter) -> Outcome {
    client.block(call(server))?;
    came(server, client)?;
    server.block(answer(client))?;
    came(client, server)
}

pub fn a_kill_in_the_middle() -> Outcome {
    let called = || Frame::ipc(Uid::NIL, Uid::NIL, NEVER, NEVER);
    // The server in the middle.
    let mut chain = Chain::new(called())?;
    sys::task_destroy(chain.children[1].0)?;
    ended(&mut chain.client, Error::PartnerDied)?;
    ended(&mut chain.next, Error::PartnerDied)?;
    let (second, client) = (&mut chain.second, &mut chain.client);
    second.block(wait())?;
    first_call(client, second)?;
    // The last one.
    let mut chain = Chain::new(called())?;
    sys::thread_destroy(chain.second.agent.uid)?;
    ended(&mut chain.first, Error::PartnerDied)?;
    let (first, client, next) = (&mut chain.first, &mut chain.client, &mut chain.next);
    first.start(answer(client));
    came(first, next)?;
    arrived(client, first)?;
    // The client.
    let mut chain = Chain::new(called())?;
    sys::task_destroy(chain.children[0].0)?;
    let Chain { first, second, next, .. } = &mut chain;
    second.block(answer(first))?;
    arrived(first, second)?;
    first.start(wait());
    came(first, next)?;
    first.block(answer(next))?;
    came(next, first)
}

pub fn an_alert_in_the_middle() -> Outcome {
    let mut chain = Chain::new(Frame::ipc(Uid::NIL, Uid::NIL, NEVER, NEVER).alertable())?;
    sys::alert(chain.client.agent.uid)?;
    ended(&mut chain.client, Error::ReceiveAborted)?;
    for thread in [&chain.client, &chain.first, &chain.second] {
        sys::clear_alert(thread.agent.uid)?;
    }
    chain.goes_on()
}

pub fn a_timeout_in_the_middle() -> Outcome {
    let mut chain = Chain::new(Frame::ipc(Uid::NIL, Uid::NIL, NEVER, Timeout::from_us(200_000)))?;
    ended(&mut chain.client, Error::ReceiveTimeout)?;
    chain.goes_on()
}
