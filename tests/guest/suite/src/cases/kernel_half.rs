//! Addresses of the kernel half, where something is mapped: whatever names memory to the kernel must not name this.
//!
//! An address where nothing is mapped says little: it faults, and the fast path then leaves all to the slow path, whatever it has
//! checked. So these lie where the kernel's own memory is, by its layout; and each form is first used with good addresses, so that
//! the partner's pages are there, nothing else faults, and a form that has a fast path takes it.

use super::door::{self, DATUM, Pair, exchange};
use super::long::{from, from_block, pair, to, to_block};
use crate::kit::{Agent, Attempted, Child, Frame, Outcome, WORDS, fails, pager};
use crate::{check, check_eq};
use alloc::vec::Vec;
use sys::abi::call::{
    BREAK_ACCESS, BREAK_EXECUTE, BREAK_WRITE, Call, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL,
    DOOR_LONG_RETURN, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL, vector,
};
use sys::abi::op;
use sys::abi::{INFO_PAGE, USER_END};
use sys::{Dope, Error, Fpage, Kind, Rights, StringPart, Timeout, Uid, thread_state};

const POOL: u64 = 0xffff_8000_0000_0000;
const WINDOW: u64 = 0xffff_8080_0000_0000;
const DOORS: u64 = 0xffff_8200_0000_0000;
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const PER_CPU: u64 = 0xffff_ffff_bfff_c000;
const PORT_BITMAP: u64 = PER_CPU + 0x1000;
const TCBS: u64 = 0xffff_ffff_c000_0000;

/// From where the program is loaded.
const TEXT: u64 = IMAGE + 0x10_1000;

/// The hot line of a control block.
const HOT: u64 = 0xf00;

fn control_block(uid: Uid) -> u64 {
    TCBS + u64::from(uid.slot()) * 0x1000
}

/// Where something of the kernel's is mapped, several of each kind; what is a thread's own is that of these.
fn places(agents: &[&Agent]) -> Vec<u64> {
    let mut places = Vec::from([POOL, POOL + 0x3008, POOL + 0x1_0000, WINDOW + to_block()]);
    places.extend([DOORS, DOORS + 8 * 9, INFO_PAGE, PER_CPU, PER_CPU + 0x40, PORT_BITMAP, TCBS, TCBS + HOT]);
    // Text, constants and data.
    places.extend((0..10).map(|i| TEXT + i * 0x1_0000));
    places.extend(agents.iter().flat_map(|agent| [0, HOT].map(|at| control_block(agent.uid) + at)));
    places
}

/// Of this size the fast path copies blocks.
const SIZES: [u64; 2] = [1, 8];

const ROOM: Dope = Dope::room(8, 1, 0);

/// A frame with a block of so many words.
fn with_block(mut frame: Frame, operation: u32, words: u64, block: u64) -> Frame {
    frame.rax = 0x77 << 32 | u64::from(operation);
    (frame.rdi, frame.rsi) = (Dope::used(words, 0, 0).0, block);
    frame
}

fn clear() {
    to().block[..64].fill(0x5555);
}

/// The agent's order is refused with `error`, and nothing has come to the partner, who waits in an order of its own.
fn refused(
    agent: &mut Agent,
    frame: Frame,
    error: Error,
    partner: &Agent,
    what: &str,
    place: u64,
) -> Outcome {
    clear();
    agent.start(frame);
    check!(!agent.settle()?, "{what}, {place:#x}: it was not refused");
    let got = agent.wait()?;
    check!(got.error() == Some(error), "{what}, {place:#x}: {:?}", got.error());
    check!(!partner.is_done(), "{what}, {place:#x}: something came");
    check!(to().block[..64].iter().all(|&word| word == 0x5555), "{what}, {place:#x}: something was written");
    Ok(())
}

/// One block there, and words back.
fn exchange_block(sender: &mut Agent, receiver: &mut Agent, operation: u32, words: u64) -> Outcome {
    let partner = receiver.uid;
    sender.block(with_block(Frame::call(partner, 0, WORDS), operation, words, from_block()))?;
    check_eq!(receiver.wait()?.kind(), Some(Kind::Request));
    receiver.block(Frame::reply_wait(sender.uid, 0, WORDS))?;
    check_eq!(sender.wait()?.kind(), Some(Kind::Reply));
    Ok(())
}

fn set_block(agent: &Agent, block: u64) -> Outcome {
    sys::thread_set_block(agent.uid, block, ROOM, Timeout::NEVER)?;
    Ok(())
}

/// Two agents that exchange blocks, in two tasks or in one: the second waits for anybody.
fn partners(is_one_task: bool) -> Outcome<(Vec<Child>, Agent, Agent)> {
    let (near, sender, far, receiver) = pair(ROOM)?;
    if !is_one_task {
        return Ok((Vec::from([near, far]), sender, receiver));
    }
    drop((sender, near));
    let sender = far.agent()?;
    receiver.settle()?;
    Ok((Vec::from([far]), sender, receiver))
}

pub fn blocks_come_from_nowhere_there() -> Outcome {
    for is_one_task in [false, true] {
        let (_tasks, mut sender, mut receiver) = partners(is_one_task)?;
        for words in SIZES {
            for operation in [IPC_LONG_CALL, IPC_LONG_TAKING_CALL] {
                exchange_block(&mut sender, &mut receiver, operation, words)?;
                for place in places(&[&sender, &receiver]) {
                    let frame = with_block(Frame::call(receiver.uid, 0, WORDS), operation, words, place);
                    refused(&mut sender, frame, Error::BadArgument, &receiver, "call", place)?;
                }
                exchange_block(&mut sender, &mut receiver, operation, words)?;
            }
            for place in places(&[&sender, &receiver]) {
                let frame = Frame::send(receiver.uid, Timeout::ZERO);
                let frame = with_block(frame, Call::Ipc as u32 | op::BLOCK, words, place);
                refused(&mut sender, frame, Error::BadArgument, &receiver, "send", place)?;
            }
        }
    }
    Ok(())
}

/// Blocks of somebody who has to wait are looked at when its turn comes, and refused then.
pub fn queued_blocks_come_from_nowhere_there() -> Outcome {
    let (_tasks, mut sender, mut receiver) = partners(false)?;
    exchange_block(&mut sender, &mut receiver, IPC_LONG_CALL, 8)?;
    for place in places(&[&sender, &receiver]) {
        sys::thread_abort(receiver.uid)?;
        receiver.wait()?;
        clear();
        let frame = Frame::call(receiver.uid, 0, WORDS);
        sender.start(with_block(frame, IPC_LONG_CALL, 8, place));
        sender.settle()?;
        receiver.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        check!(to().block[..64].iter().all(|&word| word == 0x5555), "{place:#x}: something was written");
        check_eq!(sender.wait()?.error(), Some(Error::BadArgument));
    }
    Ok(())
}

/// Answers in memory, to a caller that takes them.
pub fn answers_come_from_nowhere_there() -> Outcome {
    for is_one_task in [false, true] {
        let (_tasks, mut server, mut client) = partners(is_one_task)?;
        sys::thread_abort(client.uid)?;
        client.wait()?;
        server.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        // The second takes a block alone: its answer may go by the fast path.
        let calls = [Frame::taking, |frame: Frame| frame.taking_not(op::TAKES_ITEM)];
        for (words, takes) in SIZES.into_iter().flat_map(|words| calls.map(|call| (words, call))) {
            let call = takes(Frame::call(server.uid, 0, WORDS));
            let answer = Frame::reply_wait(client.uid, 0, WORDS);
            let long = |place| with_block(answer, IPC_LONG_REPLY_WAIT, words, place);
            client.block(call)?;
            server.wait()?;
            server.block(long(from_block()))?;
            check_eq!(client.wait()?.rdi, ROOM.with_used(Dope::used(words, 0, 0)).0);
            client.block(call)?;
            server.wait()?;
            for place in places(&[&server, &client]) {
                refused(&mut server, long(place), Error::BadArgument, &client, "answer", place)?;
            }
            server.block(answer)?;
            client.wait()?;
        }
    }
    Ok(())
}

/// A door's client in the task of the server, or in another one; both have a block.
fn door_pair(is_one_task: bool) -> Outcome<(Pair, Option<Agent>)> {
    let mut pair = Pair::new()?;
    set_block(&pair.server, to_block())?;
    set_block(&pair.client, to_block())?;
    pair.exchange()?;
    if !is_one_task {
        return Ok((pair, None));
    }
    let mut client = pair.far.agent()?;
    door::hand(&mut pair.maker, 7, Rights::R, &mut client, 9)?;
    set_block(&client, to_block())?;
    Ok((pair, Some(client)))
}

pub fn blocks_through_doors_come_from_nowhere_there() -> Outcome {
    for is_one_task in [false, true] {
        let (mut pair, mut other) = door_pair(is_one_task)?;
        let Pair { client, server, .. } = &mut pair;
        let client = other.as_mut().unwrap_or(client);
        for (words, operation) in
            [(1, DOOR_LONG_CALL), (8, DOOR_LONG_CALL), (8, DOOR_LONG_CALL & !op::TAKES_BLOCK)]
        {
            let call = |place| with_block(Frame::door_call(9, 0, WORDS), operation, words, place);
            client.block(call(from_block()))?;
            server.wait()?;
            door::answer(server, client, 4)?;
            for place in places(&[client, server]) {
                refused(client, call(place), Error::BadArgument, server, "call through a door", place)?;
            }
        }
        for (round, words) in [(0, 1), (1, 8), (2, 8)] {
            client.block(Frame::door_call(9, 3, WORDS).taking())?;
            door::arrived(server, 3, DATUM)?;
            let give_back = |place| with_block(Frame::door_return(0, WORDS), DOOR_LONG_RETURN, words, place);
            for place in places(&[client, server]) {
                refused(server, give_back(place), Error::BadArgument, client, "return", place)?;
            }
            server.block(give_back(from_block()))?;
            check!(client.wait()?.error().is_none(), "round {round}");
        }
        exchange(client, 9, server, DATUM)?;
    }
    Ok(())
}

/// A call through a door whose servers are all busy, and whose block is looked at when one is free.
pub fn queued_blocks_through_doors_come_from_nowhere_there() -> Outcome {
    let (mut pair, _) = door_pair(false)?;
    let mut other = pair.near.agent()?;
    for place in places(&[&other, &pair.server]) {
        pair.client.block(Frame::door_call(9, 3, WORDS))?;
        door::arrived(&mut pair.server, 3, DATUM)?;
        clear();
        let frame = Frame::door_call(9, 0, WORDS);
        other.start(with_block(frame, DOOR_LONG_CALL, 8, place));
        other.settle()?;
        door::answer(&mut pair.server, &mut pair.client, 4)?;
        check_eq!(other.wait()?.error(), Some(Error::BadArgument));
        check!(to().block[..64].iter().all(|&word| word == 0x5555), "{place:#x}: something was written");
    }
    Ok(())
}

/// Strings, which only the slow path copies, whose descriptors name the kernel's memory: to send from there, or to arrive there.
pub fn strings_neither_come_from_nor_go_there() -> Outcome {
    const LEN: u32 = 16;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    for is_one_task in [false, true] {
        let (_tasks, mut sender, mut receiver) = partners(is_one_task)?;
        sys::thread_set_block(receiver.uid, to_block(), room, Timeout::NEVER)?;
        let mut places = places(&[&sender, &receiver]);
        places.extend([USER_END - 8, u64::MAX - 15, (1 << 47) - 8, 1 << 47, 1 << 63]);
        for place in places {
            for at_target in [false, true] {
                clear();
                let here = from().bytes.as_ptr() as u64;
                let there = to().bytes.as_ptr() as u64;
                to().bytes[..64].fill(0x55);
                let (source, target) = if at_target { (here, place) } else { (place, there) };
                let (source, target) = (StringPart::send(source, LEN), StringPart::room(target, LEN));
                from().block[..2].copy_from_slice(&[source.address, source.sizes()]);
                to().block[..2].copy_from_slice(&[target.address, target.sizes()]);
                let mut call =
                    with_block(Frame::call(receiver.uid, 0, WORDS), IPC_LONG_CALL, 0, from_block());
                call.rdi = used.0;
                sender.start(call);
                check!(!sender.settle()?, "a string at {place:#x} was not refused");
                let errors = (sender.wait()?.error(), receiver.wait()?.error());
                let expected = match at_target {
                    false => (Some(Error::BadArgument), Some(Error::NoAccess)),
                    true => (Some(Error::Overflow), Some(Error::Overflow)),
                };
                check!(errors == expected, "a string at {place:#x}: {errors:?}");
                check!(to().bytes[..64] == [0x55; 64], "a string at {place:#x} was copied");
                receiver.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
            }
        }
    }
    Ok(())
}

/// Blocks there whose dope says that they have a string: their words do not come, and their descriptors are not read.
pub fn blocks_with_strings_come_from_nowhere_there() -> Outcome {
    for is_one_task in [false, true] {
        let (_tasks, mut sender, mut receiver) = partners(is_one_task)?;
        exchange_block(&mut sender, &mut receiver, IPC_LONG_CALL, 8)?;
        for (words, strings) in [(0, 1), (8, 1), (8, 16), (64, 2)] {
            let room = Dope::room(words, strings, 0);
            sys::thread_set_block(receiver.uid, to_block(), room, Timeout::NEVER)?;
            for place in places(&[&sender, &receiver]) {
                let mut call = with_block(Frame::call(receiver.uid, 0, WORDS), IPC_LONG_CALL, words, place);
                call.rdi = Dope::used(words, strings, 0).0;
                refused(&mut sender, call, Error::BadArgument, &receiver, "call with strings", place)?;
            }
        }
    }
    Ok(())
}

/// Flexpages of the kernel's memory, in all places where one can be: nobody gives or takes it.
pub fn pages_are_neither_given_nor_taken_there() -> Outcome {
    let (_tasks, mut sender, mut receiver) = partners(false)?;
    let (used, room) = (Dope::used(0, 0, 1), Dope::room(0, 0, 1));
    for place in places(&[&sender, &receiver]) {
        let page = Fpage(place & !0xfff | 12 << 4 | u64::from(Rights::RWX.0));
        let good = Fpage::memory(from_block(), 12, Rights::RW);
        fails(Call::Flush, sys::flush(page), Error::BadArgument)?;
        for agent in [&sender, &receiver] {
            fails(Call::ThreadControl, sys::thread_set_window(agent.uid, page), Error::BadArgument)?;
        }
        let send = Frame::send(receiver.uid, Timeout::ZERO).item(page, 0);
        refused(&mut sender, send, Error::BadArgument, &receiver, "item", place)?;
        let got = sender.run(Frame::receive(Uid::ANY, Timeout::ZERO).window(page))?;
        check_eq!(got.error(), Some(Error::BadArgument));
        // Items and windows in a block.
        sys::thread_set_block(receiver.uid, to_block(), room, Timeout::NEVER)?;
        for (item, window) in [(page, good), (good, page)] {
            clear();
            from().block[..2].copy_from_slice(&[item.0, 0]);
            to().block[..2].copy_from_slice(&[window.0, 0]);
            let mut call = with_block(Frame::call(receiver.uid, 0, WORDS), IPC_LONG_CALL, 0, from_block());
            call.rdi = used.0;
            sender.start(call);
            check!(!sender.settle()?, "an item or window at {place:#x} was not refused");
            let errors = (sender.wait()?.error(), receiver.wait()?.error());
            check!(
                errors == (Some(Error::NoWindow), Some(Error::NoAccess)),
                "an item or window at {place:#x}: {errors:?}"
            );
            receiver.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        }
    }
    Ok(())
}

/// Calls through doors and returns from them are refused, too, with the partner's standing window open.
pub fn pages_through_doors_are_not_given_there() -> Outcome {
    let (mut pair, _) = door_pair(false)?;
    let good = Fpage::memory(from_block(), 12, Rights::RW);
    for agent in [&pair.client, &pair.server] {
        sys::thread_set_window(agent.uid, good)?;
    }
    let with_item = |mut frame: Frame, operation: u32, page: Fpage| {
        frame.rax = u64::from(operation);
        (frame.r13, frame.r14) = (page.0, 0);
        frame
    };
    for place in places(&[&pair.client, &pair.server]) {
        let page = Fpage(place & !0xfff | 12 << 4 | u64::from(Rights::RWX.0));
        let Pair { client, server, .. } = &mut pair;
        for operation in [DOOR_ITEM_CALL, DOOR_ITEM_CALL & !op::TAKES_BLOCK] {
            let call = with_item(Frame::door_call(9, 0, WORDS), operation, page);
            refused(client, call, Error::BadArgument, server, "item in a call through a door", place)?;
        }
        client.block(Frame::door_call(9, 3, WORDS).taking())?;
        door::arrived(server, 3, DATUM)?;
        let give_back = with_item(Frame::door_return(0, WORDS), DOOR_ITEM_RETURN, page);
        refused(server, give_back, Error::BadArgument, client, "item in a return", place)?;
        door::answer(server, client, 4)?;
    }
    Ok(())
}

/// Where `thread_control` and `door_control` are given addresses.
pub fn control_takes_no_address_there() -> Outcome {
    let child = Child::with_quota(64)?;
    let (agent, mut maker) = (child.agent()?, child.agent()?);
    let idle = sys::thread_create(child.0, 0, pager::uid(), pager::uid())?;
    sys::thread_stop(agent.uid)?;
    let _ = sys::thread_abort(agent.uid);
    let refused = |result: sys::Result<()>| fails(Call::ThreadControl, result, Error::BadArgument);
    for place in places(&[&agent, &maker]) {
        for words in SIZES {
            let room = Dope::room(words, 0, 0);
            refused(sys::thread_set_block(agent.uid, place, room, Timeout::NEVER).map(drop))?;
        }
        refused(sys::thread_set_block(agent.uid, place, Dope::NONE, Timeout::NEVER).map(drop))?;
        refused(sys::thread_set_fs(agent.uid, place))?;
        for [ip, sp] in [[place, 0x1000], [0x1000, place]] {
            // SAFETY: nothing starts.
            refused(unsafe { sys::thread_start(idle, ip, sp, 0) })?;
            refused(sys::thread_set_registers(agent.uid, 0, [ip, sp, 0x202, 0]))?;
        }
        for (event, len) in [(BREAK_EXECUTE, 1), (BREAK_WRITE, 8), (BREAK_ACCESS, 8)] {
            refused(sys::thread_breakpoint(agent.uid, 0, place & !7, event, len))?;
        }
        let got = maker.run(door::control(sys::abi::call::door_op::CREATE, [20, place, 0]))?;
        check_eq!(got.error(), Some(Error::BadArgument));
    }
    sys::thread_destroy(idle)?;
    Ok(())
}

/// What a program itself reads, writes or executes there is an exception, and no pager is asked. The info page alone can be read.
pub fn programs_touch_nothing_there() -> Outcome {
    let child = Child::with_quota(64)?;
    let mut agent = child.agent()?;
    agent.peek(0)?;
    let faults = [vector::UNRESOLVED_FAULT, PAGE_FAULT];
    unsafe extern "C" {
        fn suite_load();
        fn suite_store();
        fn suite_jump();
    }
    for place in places(&[&agent]) {
        let accesses: [(crate::kit::Attempt, &str); 3] =
            [(suite_load, "read"), (suite_store, "written"), (suite_jump, "executed")];
        for (access, what) in accesses {
            // With its pager: that would map whatever is asked for.
            let got = agent.attempt(access, place, 1)?;
            if place == INFO_PAGE && what == "read" {
                check!(matches!(got, Attempted::Returned(_)), "the info page cannot be read");
                continue;
            }
            check!(
                got.vector().is_some_and(|vector| faults.contains(&vector)),
                "{place:#x} was {what}: {got:x?}"
            );
        }
    }
    Ok(())
}

const PAGE_FAULT: u64 = 14;

/// A handler that lets a thread go on there.
pub fn handlers_resume_nobody_there() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut handler, mut thread) = (near.agent()?, far.agent()?);
    unsafe extern "C" {
        fn suite_nothing();
        fn suite_ud2();
    }
    for place in places(&[&handler, &thread]) {
        for [ip, sp] in [[place, 0x1000], [0x1000, place]] {
            thread.attempt(suite_nothing, 0, 0)?;
            sys::thread_set_pager(thread.uid, pager::uid(), handler.uid)?;
            handler.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
            thread.start_attempt(suite_ud2, 0, 0);
            check_eq!(handler.wait()?.kind(), Some(Kind::Exception));
            let words = [0, 0, ip, sp, 0x202, 0, 0, 0, 0, 0, 0];
            sys::thread_set_pager(thread.uid, pager::uid(), pager::uid())?;
            let resume = Frame::ipc(thread.uid, Uid::NIL, Timeout::ZERO, Timeout::NEVER);
            let [rdi, rsi, r8, r9, r10, r12, r13, r14, ..] = words;
            let resume = Frame { rdi, rsi, r8, r9, r10, r12, r13, r14, ..resume };
            check_eq!(handler.run(resume.label(sys::abi::call::RESUME))?.error(), None);
            // It is stopped, as after any answer that makes no sense.
            check!(thread.settle()?, "{place:#x}: it went on");
            check_eq!(thread.info()?.state, thread_state::STOPPED);
            drop(core::mem::replace(&mut thread, far.agent()?));
        }
    }
    Ok(())
}
