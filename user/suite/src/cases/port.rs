//! Ports: names for threads that only the kernel can read (row P18).

use crate::kit::{Agent, Child, Frame, Outcome, WORDS, fails};
use crate::{check, check_eq};
use sys::abi::Call;
use sys::abi::call::{IPC_PORT_CALL, PORT_ENTRIES, PORT_LINKS};
use sys::{Error, Kind, TaskId, Uid};

fn open() -> Frame {
    Frame::reply_wait(Uid::NIL, 0, [0; 11])
}

/// A call to whoever is behind a port.
fn by_port(index: u64, label: u32) -> Frame {
    let mut frame = Frame::call(Uid(index), label, WORDS);
    frame.rax = (label as u64) << 32 | IPC_PORT_CALL as u64;
    frame
}

/// One call through a port to a server that waits for it, or not yet.
fn exchange(client: &mut Agent, index: u64, server: &mut Agent, queued: bool) -> Outcome {
    if !queued {
        server.block(open())?;
    }
    client.block(by_port(index, 3))?;
    let got = if queued { server.run(open())? } else { server.wait()? };
    check_eq!((got.rax, got.sender()), (3 << 32 | Kind::Request as u64, client.uid));
    check_eq!(got.words(), WORDS);
    server.block(Frame::reply_wait(client.uid, 4, WORDS))?;
    let got = client.wait()?;
    check_eq!((got.kind(), got.received_label(), got.sender()), (Some(Kind::Reply), 4, server.uid));
    sys::thread_abort(server.uid)?;
    check_eq!(server.wait()?.error(), Some(Error::ReceiveAborted));
    Ok(())
}

pub fn ports_lead_to_threads() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut client, mut server, mut other) = (near.agent()?, far.agent()?, near.agent()?);
    for index in [0, 1, PORT_LINKS - 1] {
        sys::task_set_port(near.0, index, 7, server.uid)?;
        exchange(&mut client, index, &mut server, false)?;
        exchange(&mut client, index, &mut server, true)?;
    }
    // Only the low bits count.
    exchange(&mut client, PORT_LINKS + 1, &mut server, false)?;
    // Within a task.
    sys::task_set_port(near.0, 2, 8, other.uid)?;
    exchange(&mut client, 2, &mut other, false)
}

pub fn ports_that_lead_nowhere() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut client, mut stranger) = (near.agent()?, far.agent()?);
    let mut server = far.agent()?;
    server.block(open())?;
    sys::task_set_port(near.0, 5, 1, server.uid)?;
    // No such link; no ports at all; a link to nobody; a stale and an invented uid.
    check_eq!(client.run(by_port(6, 0))?.error(), Some(Error::NoSuch));
    check_eq!(stranger.run(by_port(5, 0))?.error(), Some(Error::NoSuch));
    for thread in [Uid::NIL, Uid(server.uid.0 ^ 1 << 30), Uid(0xffff_8000_0000_0000), Uid(0x7f)] {
        sys::task_set_port(near.0, 6, 2, thread)?;
        check_eq!(client.run(by_port(6, 0))?.error(), Some(Error::NoSuch));
    }
    drop(server);
    for _ in 0..2 {
        let got = client.run(by_port(5, 0))?;
        check_eq!((got.error(), got.words()), (Some(Error::NoSuch), [0; 11]));
    }
    Ok(())
}

/// Everybody who has a port calls the new thread.
pub fn owners_bind_their_ports_anew() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut first, mut second) = (near.agent()?, far.agent()?);
    let mut servers = [far.agent()?, near.agent()?];
    sys::task_set_port(far.0, 9, 11, servers[0].uid)?;
    for server in servers.iter_mut().chain([&mut far.agent()?]) {
        sys::task_set_port(near.0, 3, 11, server.uid)?;
        exchange(&mut first, 3, server, false)?;
        exchange(&mut second, 9, server, false)?;
    }
    Ok(())
}

pub fn who_may_set_ports() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut agent = near.agent()?;
    const SET_PORT: u32 = Call::TaskControl as u32 | sys::abi::call::task_op::SET_PORT << 8;
    // A task sets its own, and those of its children, but not a sibling's.
    let (error, _) = agent.control(SET_PORT, [0, 1, 1, agent.uid.0, 0, 0])?;
    check_eq!(error, 0);
    let (error, _) = agent.control(SET_PORT, [far.0.0, 1, 1, agent.uid.0, 0, 0])?;
    check_eq!(error, Error::Denied as u64);
    for (index, number) in [(PORT_LINKS, 0), (0, PORT_ENTRIES), (u64::MAX, 0), (0, u64::MAX)] {
        let set = sys::task_set_port(near.0, index, number, agent.uid);
        fails(Call::TaskControl, set, Error::BadArgument)?;
    }
    fails(
        Call::TaskControl,
        sys::task_set_port(TaskId(0x7777_0000_0000_1002), 0, 0, agent.uid),
        Error::NoSuch,
    )
}

/// Four frames, paid by each task that has to do with ports, and given back.
pub fn ports_cost_quota() -> Outcome {
    // The suite's own page comes with the first port that it binds, and stays.
    let child = Child::new()?;
    sys::task_set_port(child.0, 0, 0, Uid::NIL)?;
    let before = sys::task_info(TaskId::NIL)?.used;
    let child = Child::new()?;
    let empty = sys::task_info(child.0)?.used;
    for (index, number) in [(0, 0), (1, 1), (1, 0)] {
        sys::task_set_port(child.0, index, number, Uid::NIL)?;
        check_eq!(sys::task_info(child.0)?.used, empty + 4);
    }
    drop(child);
    check_eq!(sys::task_info(TaskId::NIL)?.used, before);
    for quota in empty..empty + 4 {
        let child = Child::with_quota(quota)?;
        fails(Call::TaskControl, sys::task_set_port(child.0, 0, 0, Uid::NIL), Error::NoMemory)?;
        check_eq!(sys::task_info(child.0)?.used, empty);
    }
    let child = Child::with_quota(empty + 4)?;
    check!(sys::task_set_port(child.0, 0, 0, Uid::NIL).is_ok());
    Ok(())
}
