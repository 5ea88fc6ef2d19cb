//! Calls through doors whose data lies in memory: blocks, strings, pages and other identifiers (rows D10, D12, D13).

use super::door::{self, DATUM, Pair, exchange, hand, make, serve, unreferenced};
use super::long::{from, from_block, get_stuck, prepare, set_room, stuck, to, to_block};
use crate::kit::{Agent, Child, Frame, Outcome, WORDS, in_time_enough, pager};
use crate::{check, check_eq};
use sys::abi::call::{
    Call, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN, FLUSH_SELF, ITEM_WHOLE,
    NO_BLOCK, NO_ITEM, task_op, thread_op,
};
use sys::abi::op;
use sys::{Dope, Error, Fpage, Kind, Rights, StringPart, Timeout, Uid, thread_state};

const NEVER: Timeout = Timeout::NEVER;

fn long(operation: u32, rdx: u64, dope: Dope, block: u64) -> Frame {
    let mut frame = Frame::door_call(rdx as u32, 0x77, WORDS);
    frame.rax = 0x77 << 32 | operation as u64;
    (frame.rdi, frame.rsi) = (dope.0, block);
    frame
}

fn call(dope: Dope) -> Frame {
    call_for_words(dope).taking()
}

fn call_for_words(dope: Dope) -> Frame {
    long(DOOR_LONG_CALL, 9, dope, from_block())
}

/// A return from where calls arrive, to where they come from.
fn give_back(dope: Dope) -> Frame {
    long(DOOR_LONG_RETURN, 0, dope, to_block())
}

/// A server whose return did not arrive returns without what it has still, and waits for its next call.
fn rest(server: &mut Agent) -> Outcome {
    server.block(Frame::door_return(4, WORDS))
}

/// A pair whose server has that much room, and whose client has as much where it sends from.
fn pair(room: Dope) -> Outcome<Pair> {
    let pair = Pair::new()?;
    set_room(&pair.server, room, NEVER)?;
    sys::thread_set_block(pair.client.uid, from_block(), room, NEVER)?;
    Ok(pair)
}

/// A call or return with a block has come.
fn came(agent: &mut Agent, kind: Kind, rdx: u64, block: u64, dope: Dope) -> Outcome<Frame> {
    let got = agent.wait()?;
    let flags = NO_BLOCK | if dope.items() != 0 { NO_ITEM } else { 0 };
    check_eq!((got.rax, got.rdx), (0x77 << 32 | (kind as u32 & !flags) as u64, rdx));
    check_eq!((got.rdi, got.rsi), (dope.0, block));
    check_eq!(got.words()[2..10], WORDS[2..10]);
    check_eq!(got.r15, 0);
    Ok(got)
}

fn called(server: &mut Agent, dope: Dope) -> Outcome {
    came(server, Kind::DoorCall, DATUM, to_block(), dope).map(drop)
}

/// The sizes up to a page go by the fast path, if it is on.
pub fn blocks_both_ways() -> Outcome {
    for words in [0, 1, 8, 128, 511, 512, 513, 640, Dope::WORDS_MAX] {
        let (used, room) = (Dope::used(words, 0, 0), Dope::room(words.max(1), 0, 0));
        let mut pair = pair(room)?;
        for round in 0..3 {
            prepare(words + round);
            pair.client.block(call(used))?;
            called(&mut pair.server, room.with_used(used))?;
            let words = words as usize;
            check!(to().block[..words] == from().block[..words], "{words} words differ");
            check_eq!(to().block[words], 0x5555);
            if round == 0 {
                door::answer(&mut pair.server, &mut pair.client, 5)?;
                continue;
            }
            to().block[..words].iter_mut().for_each(|word| *word = !*word);
            pair.server.block(give_back(used))?;
            came(&mut pair.client, Kind::DoorReturn, 0, from_block(), room.with_used(used))?;
            check!(to().block[..words] == from().block[..words], "{words} words differ on the way back");
        }
        pair.exchange()?;
    }
    Ok(())
}

/// Where a string lies, on the way there and on the way back.
fn describe(at: usize, there: usize, len: usize) {
    let (here, far) = (from().bytes.as_ptr() as u64 + at as u64, to().bytes.as_ptr() as u64 + there as u64);
    let part = |address| StringPart { address, len: len as u32, capacity: len as u32 };
    for (block, part) in [(&mut from().block, part(here)), (&mut to().block, part(far))] {
        block[..2].copy_from_slice(&[part.address, part.sizes()]);
    }
}

pub fn strings_both_ways() -> Outcome {
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    for len in [0, 1, 64, 1024, 5120, 100_003] {
        let mut pair = pair(room)?;
        prepare(len as u64);
        describe(len % 13, len % 11, len);
        pair.client.block(call(used))?;
        called(&mut pair.server, room.with_used(used))?;
        let (here, there) = (len % 13..len % 13 + len, len % 11..len % 11 + len);
        check!(to().bytes[there.clone()] == from().bytes[here.clone()], "{len} bytes differ");
        to().bytes[there.clone()].iter_mut().for_each(|byte| *byte = !*byte);
        pair.server.block(give_back(used))?;
        came(&mut pair.client, Kind::DoorReturn, 0, from_block(), room.with_used(used))?;
        check!(to().bytes[there] == from().bytes[here], "{len} bytes differ on the way back");
        pair.exchange()?;
    }
    Ok(())
}

pub fn queued_calls_bring_their_blocks() -> Outcome {
    let (used, room) = (Dope::used(700, 0, 0), Dope::room(700, 0, 0));
    let mut pair = pair(room)?;
    let mut other = pair.near.agent()?;
    pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    prepare(1);
    other.block(call(used))?;
    pair.server.start(Frame::door_return(4, WORDS));
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    called(&mut pair.server, room.with_used(used))?;
    check!(to().block[..700] == from().block[..700], "the words differ");
    door::answer(&mut pair.server, &mut other, 4)?;
    // One that does not fit, or cannot be, does not stop those behind it.
    pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    let mut others = [pair.near.agent()?, pair.near.agent()?, pair.near.agent()?];
    others[0].block(call(Dope::used(701, 0, 0)))?;
    others[1].block(call(Dope(1 << 31)))?;
    others[2].block(Frame::door_call(9, 3, WORDS).taking())?;
    pair.server.start(Frame::door_return(4, WORDS));
    check_eq!(pair.client.wait()?.kind(), Some(Kind::DoorReturn));
    door::arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(others[0].wait()?.error(), Some(Error::Overflow));
    check_eq!(others[1].wait()?.error(), Some(Error::BadArgument));
    door::answer(&mut pair.server, &mut others[2], 4)
}

/// Sixteen at once, one of them moved; each can be called, and some come back.
pub fn identifiers_travel_in_calls_and_returns() -> Outcome {
    const COUNT: u64 = 16;
    let (used, room) = (Dope::used(0, 0, COUNT), Dope::room(0, 0, COUNT));
    let mut pair = pair(room)?;
    let third = Child::new()?;
    let (mut maker, mut end) = (third.agent()?, third.agent()?);
    for number in 0..COUNT as u32 {
        check_eq!(make(&mut maker, number, 100 + number as u64)?, None);
        hand(&mut maker, number, Rights::RW, &mut pair.client, 40 + number)?;
    }
    serve(&mut end)?;
    prepare(1);
    let moved = Rights::RW.or(Rights::GRANT);
    for i in 0..COUNT as usize {
        let rights = if i == 3 { moved } else { Rights::RW };
        from().block[2 * i..][..2].copy_from_slice(&[Fpage::doors(40 + i as u32, 0, rights).0, 0]);
        to().block[2 * i..][..2].copy_from_slice(&[Fpage::doors(600 + i as u32, 0, Rights::RW).0, 0]);
    }
    pair.client.block(call(used))?;
    came(&mut pair.server, Kind::DoorCall, DATUM, to_block(), room.with_used(used))?;
    for i in 0..COUNT as usize {
        check_eq!(to().block[2 * i], Fpage::doors(600 + i as u32, 0, Rights::RW).0);
    }
    for number in [0, 3, COUNT as u32 - 1] {
        exchange(&mut pair.maker, 600 + number, &mut end, 100 + number as u64)?;
    }
    check_eq!(pair.client.info()?.state, thread_state::RECEIVING);
    // Two come back, into numbers that the caller has never had.
    let back = Dope::used(0, 0, 2);
    for (i, number) in [(0, 603), (1, 605)] {
        to().block[2 * i..][..2].copy_from_slice(&[Fpage::doors(number, 0, moved).0, 0]);
        from().block[2 * i..][..2].copy_from_slice(&[Fpage::doors(900 + i as u32, 0, Rights::RW).0, 0]);
    }
    pair.server.block(give_back(back))?;
    came(&mut pair.client, Kind::DoorReturn, 0, from_block(), room.with_used(back))?;
    exchange(&mut pair.client, 900, &mut end, 103)?;
    exchange(&mut pair.client, 901, &mut end, 105)?;
    for number in [603, 605] {
        check_eq!(pair.maker.run(Frame::door_call(number, 0, WORDS))?.error(), Some(Error::NoSuch));
    }
    check_eq!(pair.client.run(Frame::door_call(43, 0, WORDS))?.error(), Some(Error::NoSuch));
    Ok(())
}

extern "C" fn number_pages(base: u64) -> u64 {
    for page in 0..16 {
        // SAFETY: the test gives an address of its own memory.
        unsafe { ((base + page * 4096) as *mut u64).write_volatile(page) };
    }
    0
}

/// Whole pages: mapped in the call, moved in the return.
pub fn pages_move() -> Outcome {
    const PAGES: u64 = 16;
    const PLACE: u64 = 0x6000_0000;
    const BACK: u64 = 0x7000_0000;
    let (used, room) = (Dope::used(0, 0, 1), Dope::room(0, 0, 1));
    let mut pair = pair(room)?;
    prepare(7);
    // Sixteen pages of the suite's that both have, or will.
    let base = (from().bytes.as_ptr() as u64).next_multiple_of(PAGES << 12);
    pair.client.apply(number_pages, base)?;
    let item = |base, rights| Fpage::memory(base, 16, rights);
    from().block[..2].copy_from_slice(&[item(base, Rights::RW).0, 0]);
    to().block[..2].copy_from_slice(&[item(PLACE, Rights::RW).0, 0]);
    pair.client.block(call(used))?;
    came(&mut pair.server, Kind::DoorCall, DATUM, to_block(), room.with_used(used))?;
    for page in 0..PAGES {
        check_eq!(pair.server.peek(PLACE + page * 4096)?, Some(page));
    }
    to().block[..2].copy_from_slice(&[item(PLACE, Rights::RW.or(Rights::GRANT)).0, 0]);
    from().block[..2].copy_from_slice(&[item(BACK, Rights::RW).0, 0]);
    pair.server.block(give_back(used))?;
    came(&mut pair.client, Kind::DoorReturn, 0, from_block(), room.with_used(used))?;
    for page in 0..PAGES {
        check_eq!(pair.client.peek(BACK + page * 4096)?, Some(page));
        check_eq!(pair.maker.peek(PLACE + page * 4096)?, None);
    }
    // Not all of it, since the server's task cannot pay.
    sys::task_set_quota(pair.far.0, sys::task_info(pair.far.0)?.used)?;
    from().block[..2].copy_from_slice(&[item(base, Rights::RW).0, 0]);
    to().block[..2].copy_from_slice(&[item(PLACE + (1 << 40), Rights::RW).0, 0]);
    pair.client.block(call(used))?;
    let got = pair.server.wait()?;
    check_eq!(got.rax as u32 & (ITEM_WHOLE | NO_ITEM | NO_BLOCK), 0);
    door::answer(&mut pair.server, &mut pair.client, 1)
}

pub fn no_room_is_the_callers_error() -> Outcome {
    let used = Dope::used(1, 0, 0);
    let mut pair = Pair::new()?;
    check_eq!(pair.client.run(call(used))?.error(), Some(Error::NoWindow));
    check!(pair.server.settle()?);
    pair.exchange()?;
    // And on the way back: the server has done its part.
    pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(pair.server.run(give_back(used))?.error(), Some(Error::NoWindow));
    let got = pair.client.wait()?;
    check_eq!((got.error(), got.words()), (Some(Error::NoWindow), [0; 11]));
    rest(&mut pair.server)?;
    pair.exchange()
}

pub fn bad_blocks_are_refused() -> Outcome {
    let room = Dope::room(4, 0, 0);
    let mut pair = pair(room)?;
    let bad = Some(Error::BadArgument);
    for (dope, block) in [(Dope(1 << 28), from_block()), (Dope::used(1, 0, 0), sys::abi::USER_END - 7)] {
        check_eq!(pair.client.run(long(DOOR_LONG_CALL, 9, dope, block))?.error(), bad);
        check_eq!(pair.client.run(long(DOOR_LONG_CALL, 10, dope, block))?.error(), Some(Error::NoSuch));
        check!(pair.server.settle()?);
        // A server learns of its own, and can return something else.
        pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
        door::arrived(&mut pair.server, 3, DATUM)?;
        check_eq!(pair.server.run(long(DOOR_LONG_RETURN, 0, dope, block))?.error(), bad);
        check!(!pair.client.is_done());
        door::answer(&mut pair.server, &mut pair.client, 4)?;
    }
    check_eq!(pair.maker.run(give_back(Dope::used(1, 0, 0)))?.error(), Some(Error::BadState));
    Ok(())
}

pub fn too_long_is_the_callers_error() -> Outcome {
    let room = Dope::room(100, 0, 0);
    let mut pair = pair(room)?;
    prepare(1);
    check_eq!(pair.client.run(call(Dope::used(101, 0, 0)))?.error(), Some(Error::Overflow));
    check!(pair.server.settle()?);
    check_eq!(pair.client.run(call(Dope::used(0, 1, 0)))?.error(), Some(Error::Overflow));
    pair.exchange()?;
    pair.client.block(call(Dope::used(100, 0, 0)))?;
    called(&mut pair.server, room.with_used(Dope::used(100, 0, 0)))?;
    check_eq!(pair.server.run(give_back(Dope::used(101, 0, 0)))?.error(), Some(Error::Overflow));
    check_eq!(pair.client.wait()?.error(), Some(Error::Overflow));
    rest(&mut pair.server)?;
    pair.exchange()
}

pub fn patience_with_the_partners_pager() -> Outcome {
    for at_target in [false, true] {
        let all = |us| {
            let (used, room) = stuck(at_target);
            let mut pair = Pair::new()?;
            let patience = Timeout::from_us(us);
            set_room(&pair.server, room, patience)?;
            sys::thread_set_block(pair.client.uid, 0, Dope::NONE, patience)?;
            let got = pair.client.run(call(used))?;
            check_eq!(got.error(), Some(Error::NoAccess));
            check!(pair.server.settle()?);
            pair.exchange()?;
            // On a machine that stands still meanwhile, less.
            Ok(got.rdi == 1080)
        };
        check!(in_time_enough(100_000, all)?, "what is there does not move");
    }
    Ok(())
}

/// A call that cannot go on, on one of its sides.
fn stuck_call(at_target: bool) -> Outcome<Pair> {
    let (used, room) = stuck(at_target);
    let mut pair = Pair::new()?;
    set_room(&pair.server, room, NEVER)?;
    pair.client.start(call(used));
    get_stuck();
    check!(!pair.client.is_done() && !pair.server.is_done());
    Ok(pair)
}

/// The server is free again, whatever became of the caller.
pub fn the_caller_is_cut_off_in_the_middle() -> Outcome {
    for at_target in [false, true] {
        for ends in [false, true] {
            let mut pair = stuck_call(at_target)?;
            let mut other = pair.near.agent()?;
            if ends {
                sys::thread_destroy(pair.client.uid)?;
            } else {
                sys::thread_abort(pair.client.uid)?;
                let got = pair.client.wait()?;
                check_eq!((got.error(), got.rdi), (Some(Error::SendAborted), 1080));
            }
            exchange(&mut other, 9, &mut pair.server, DATUM)?;
        }
    }
    Ok(())
}

pub fn the_called_ends_in_the_middle() -> Outcome {
    for at_target in [false, true] {
        for whole_task in [false, true] {
            let mut pair = stuck_call(at_target)?;
            if whole_task {
                sys::task_destroy(pair.far.0)?
            } else {
                sys::thread_destroy(pair.server.uid)?
            }
            if !at_target {
                // It waits for its own pager, and hears of the end when that gives up.
                sys::thread_abort(pair.client.uid)?;
            }
            check!(pair.client.wait()?.error().is_some());
            if !whole_task {
                let mut server = pair.far.agent()?;
                serve(&mut server)?;
                exchange(&mut pair.client, 9, &mut server, DATUM)?;
            }
        }
    }
    Ok(())
}

pub fn the_caller_ends_in_the_middle_of_the_return() -> Outcome {
    for at_target in [false, true] {
        for aborted in [false, true] {
            let mut pair = Pair::new()?;
            // What is stuck is the way from the client's to the server's side: this time the server sends from the former.
            let (used, room) = stuck(at_target);
            sys::thread_set_block(pair.client.uid, to_block(), room, NEVER)?;
            pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
            door::arrived(&mut pair.server, 3, DATUM)?;
            pair.server.start(long(DOOR_LONG_RETURN, 0, used, from_block()));
            get_stuck();
            check!(!pair.client.is_done());
            let mut other = pair.near.agent()?;
            if aborted {
                sys::thread_abort(pair.client.uid)?;
                let got = pair.client.wait()?;
                check_eq!((got.error(), got.rdi), (Some(Error::ReceiveAborted), 1080));
            } else {
                sys::thread_destroy(pair.client.uid)?;
                if !at_target {
                    // The server waits for its own pager.
                    sys::thread_abort(pair.server.uid)?;
                }
            }
            let expected = match (aborted, at_target) {
                (true, _) => Error::SendAborted,
                (false, true) => Error::PartnerDied,
                (false, false) => Error::SendAborted,
            };
            check_eq!(pair.server.wait()?.error(), Some(expected));
            rest(&mut pair.server)?;
            exchange(&mut other, 9, &mut pair.server, DATUM)?;
        }
    }
    Ok(())
}

/// A return with more than words to somebody who has gone, or waits no more, comes back: the server has what it was to hand over.
pub fn what_does_not_arrive_stays() -> Outcome {
    let (used, room) = (Dope::used(8, 0, 0), Dope::room(8, 0, 0));
    for aborted in [false, true] {
        for in_memory in [false, true] {
            let mut pair = pair(room)?;
            let third = Child::new()?;
            let (mut maker, mut end) = (third.agent()?, third.agent()?);
            check_eq!(make(&mut maker, 1, 101)?, None);
            serve(&mut end)?;
            let mut other = pair.near.agent()?;
            pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
            door::arrived(&mut pair.server, 3, DATUM)?;
            hand(&mut maker, 1, Rights::RW, &mut pair.server, 600)?;
            if aborted {
                sys::thread_abort(pair.client.uid)?;
                check_eq!(pair.client.wait()?.error(), Some(Error::ReceiveAborted));
            } else {
                sys::thread_destroy(pair.client.uid)?;
            }
            let moved = Fpage::doors(600, 0, Rights::RW.or(Rights::GRANT));
            let frame = if in_memory { give_back(used) } else { with_item(DOOR_ITEM_RETURN, moved) };
            check_eq!(pair.server.run(frame)?.error(), Some(Error::PartnerDied));
            check_eq!(pair.server.run(give_back(used))?.error(), Some(Error::PartnerDied));
            exchange(&mut pair.server, 600, &mut end, 101)?;
            rest(&mut pair.server)?;
            exchange(&mut other, 9, &mut pair.server, DATUM)?;
        }
    }
    Ok(())
}

pub fn the_door_goes_in_the_middle() -> Outcome {
    for flags in [0, FLUSH_SELF] {
        let mut pair = stuck_call(true)?;
        let page = Fpage::doors(7, 0, Rights::RW);
        check_eq!(pair.maker.control(Call::Flush as u32, [page.0, flags, 0, 0, 0, 0])?.0, 0);
        sys::thread_abort(pair.client.uid)?;
        check_eq!(pair.client.wait()?.error(), Some(Error::SendAborted));
        if flags == 0 {
            unreferenced(&mut pair.server, DATUM)?;
        } else {
            check!(pair.server.settle()?);
        }
    }
    Ok(())
}

/// Neither a block nor an item comes to a call of any form that takes only words in return; the server has it still. Who takes more
/// takes words, too.
pub fn calls_for_words_take_nothing_else() -> Outcome {
    let (used, room) = (Dope::used(5, 0, 0), Dope::room(5, 0, 0));
    let mut pair = pair(room)?;
    sys::thread_set_window(pair.server.uid, Fpage::doors(600, 0, Rights::RW))?;
    sys::thread_set_window(pair.client.uid, Fpage::doors(700, 0, Rights::RW))?;
    hand(&mut pair.maker, 7, Rights::RW, &mut pair.client, 40)?;
    let item = |number| Fpage::doors(number, 0, Rights::RW);
    let forms = [Frame::door_call(9, 3, WORDS), call_for_words(used), with_item(DOOR_ITEM_CALL, item(40))];
    for form in forms {
        for returned in [give_back(used), with_item(DOOR_ITEM_RETURN, item(7))] {
            prepare(3);
            pair.client.block(form)?;
            pair.server.wait()?;
            prepare(4);
            let before = from().block[..5].to_vec();
            check_eq!(pair.server.run(returned)?.error(), Some(Error::NoWindow));
            check_eq!(pair.client.wait()?.error(), Some(Error::NoWindow));
            check!(from().block[..5] == before, "the caller's block was written to");
            check_eq!(pair.client.run(Frame::door_call(700, 0, WORDS))?.error(), Some(Error::NoSuch));
            rest(&mut pair.server)?;
        }
        let with_block = form.taking_not(op::TAKES_ITEM);
        let with_item = form.taking_not(op::TAKES_BLOCK);
        for form in [form, with_block, with_item, form.taking()] {
            pair.client.block(form)?;
            pair.server.wait()?;
            rest(&mut pair.server)?;
            let got = pair.client.wait()?;
            check_eq!((got.kind(), got.words()), (Some(Kind::DoorReturn), WORDS));
        }
        // Who takes one of the two does not take the other.
        for (form, other) in [(with_block, item(7)), (with_item, Fpage::NIL)] {
            pair.client.block(form)?;
            pair.server.wait()?;
            let returned = match other {
                Fpage::NIL => give_back(used),
                item => self::with_item(DOOR_ITEM_RETURN, item),
            };
            check_eq!(pair.server.run(returned)?.error(), Some(Error::NoWindow));
            check_eq!(pair.client.wait()?.error(), Some(Error::NoWindow));
            rest(&mut pair.server)?;
        }
        pair.client.block(with_item)?;
        pair.server.wait()?;
        pair.server.block(self::with_item(DOOR_ITEM_RETURN, item(7)))?;
        item_came(&mut pair.client, Kind::DoorReturn, 0, item(700))?;
        check_eq!(
            pair.client.run(Frame::control(Call::Flush as u32, [item(700).0, FLUSH_SELF, 0, 0, 0, 0]))?.rax,
            0
        );
    }
    Ok(())
}

/// The call or return with an item in its registers.
fn with_item(operation: u32, item: Fpage) -> Frame {
    let mut frame = Frame::door_call(9, 0x66, WORDS);
    frame.rax = 0x66 << 32 | operation as u64;
    (frame.r13, frame.r14) = (item.0, 0);
    frame
}

/// An item has come, and it is there.
fn item_came(agent: &mut Agent, kind: Kind, rdx: u64, place: Fpage) -> Outcome {
    let got = agent.wait()?;
    check_eq!((got.rax, got.rdx), (0x66 << 32 | (kind as u32 & !NO_ITEM) as u64, rdx));
    check_eq!((got.words()[..6].to_vec(), got.r13, got.r14), (WORDS[..6].to_vec(), place.0, 0));
    check_eq!(got.words()[8..], [0; 3]);
    Ok(())
}

/// One item without a block: an identifier there and another one back, many pages there and back.
pub fn items_travel_in_registers() -> Outcome {
    const PLACE: u64 = 0x6000_0000;
    let mut pair = Pair::new()?;
    let third = Child::new()?;
    let (mut maker, mut end) = (third.agent()?, third.agent()?);
    check_eq!(make(&mut maker, 1, 101)?, None);
    hand(&mut maker, 1, Rights::RW, &mut pair.client, 40)?;
    serve(&mut end)?;
    let one = |number| Fpage::doors(number, 0, Rights::RW);
    let moved = |number| Fpage::doors(number, 0, Rights::RW.or(Rights::GRANT));
    sys::thread_set_window(pair.server.uid, one(600))?;
    sys::thread_set_window(pair.client.uid, one(700))?;
    for _ in 0..3 {
        pair.client.block(with_item(DOOR_ITEM_CALL, moved(40)).taking())?;
        item_came(&mut pair.server, Kind::DoorCall, DATUM, one(600))?;
        exchange(&mut pair.maker, 600, &mut end, 101)?;
        pair.server.block(with_item(DOOR_ITEM_RETURN, moved(600)))?;
        item_came(&mut pair.client, Kind::DoorReturn, 0, one(700))?;
        exchange(&mut pair.client, 700, &mut end, 101)?;
        hand(&mut maker, 1, Rights::RW, &mut pair.client, 40)?;
    }
    // Pages, in more steps than one, also for a server that is not yet free.
    let base = (from().bytes.as_ptr() as u64).next_multiple_of(64 << 12);
    let item = |base| Fpage::memory(base, 18, Rights::RW);
    sys::thread_set_window(pair.server.uid, item(PLACE))?;
    sys::thread_set_window(pair.client.uid, item(PLACE))?;
    for page in 0..4 {
        pair.client.apply(number_pages, base + page * (16 << 12))?;
    }
    let mut other = pair.maker;
    for queued in [false, true] {
        if queued {
            other.block(Frame::door_call(7, 3, WORDS))?;
            door::arrived(&mut pair.server, 3, DATUM)?;
        }
        pair.client.block(with_item(DOOR_ITEM_CALL, item(base)).taking())?;
        if queued {
            pair.server.start(Frame::door_return(4, WORDS));
            check_eq!(other.wait()?.kind(), Some(Kind::DoorReturn));
        }
        item_came(&mut pair.server, Kind::DoorCall, DATUM, item(PLACE))?;
        for page in 0..64 {
            check_eq!(other.peek(PLACE + page * 4096)?, Some(page % 16));
        }
        pair.server
            .block(with_item(DOOR_ITEM_RETURN, item(PLACE).with_rights(Rights::RW.or(Rights::GRANT))))?;
        item_came(&mut pair.client, Kind::DoorReturn, 0, item(PLACE))?;
        check_eq!(pair.client.peek(PLACE + 63 * 4096)?, Some(15));
        check_eq!(other.peek(PLACE)?, None);
    }
    Ok(())
}

pub fn bad_items_in_registers_are_refused() -> Outcome {
    let mut pair = Pair::new()?;
    let item = Fpage::memory(0x1000_0000, 12, Rights::RW);
    // No window, one of another space; and what is no flexpage.
    for window in [Fpage::NIL, Fpage::doors(5, 0, Rights::RW)] {
        sys::thread_set_window(pair.server.uid, window)?;
        check_eq!(pair.client.run(with_item(DOOR_ITEM_CALL, item))?.error(), Some(Error::NoWindow));
        check!(pair.server.settle()?);
    }
    check_eq!(pair.client.run(with_item(DOOR_ITEM_CALL, Fpage(1)))?.error(), Some(Error::BadArgument));
    pair.client.block(Frame::door_call(9, 3, WORDS).taking())?;
    door::arrived(&mut pair.server, 3, DATUM)?;
    check_eq!(pair.server.run(with_item(DOOR_ITEM_RETURN, Fpage(1)))?.error(), Some(Error::BadArgument));
    check_eq!(pair.server.run(with_item(DOOR_ITEM_RETURN, item))?.error(), Some(Error::NoWindow));
    check_eq!(pair.client.wait()?.error(), Some(Error::NoWindow));
    rest(&mut pair.server)?;
    pair.exchange()
}

/// Whoever is cut off while an item is mapped in steps, the other goes on.
pub fn ends_while_pages_are_mapped() -> Outcome {
    const PLACE: u64 = 0x6000_0000;
    for who in 0..4 {
        let mut pair = Pair::new()?;
        let base = (from().bytes.as_ptr() as u64).next_multiple_of(64 << 12);
        sys::thread_set_window(pair.server.uid, Fpage::memory(PLACE, 18, Rights::RW))?;
        for page in 0..4 {
            pair.client.apply(number_pages, base + page * (16 << 12))?;
        }
        let mut other = pair.near.agent()?;
        pair.client.start(with_item(DOOR_ITEM_CALL, Fpage::memory(base, 18, Rights::RW)));
        // It may be at its beginning, in its middle or done.
        for _ in 0..who {
            sys::thread_switch(pair.client.uid)?;
        }
        match who {
            0 | 1 => sys::thread_destroy(pair.client.uid)?,
            2 => drop(sys::thread_abort(pair.client.uid)),
            _ => {
                sys::thread_destroy(pair.server.uid)?;
                check_eq!(pair.client.wait()?.error(), Some(Error::PartnerDied));
                continue;
            }
        }
        // The server is idle, or has the call of somebody who is gone.
        if !pair.server.settle()? {
            pair.server.wait()?;
            pair.server.block(Frame::door_return(4, WORDS))?;
        }
        exchange(&mut other, 9, &mut pair.server, DATUM)?;
    }
    Ok(())
}

/// A server in a clan of its own: its chief handed the door on, so words come and go. What could be handed over has to be sent by ipc,
/// where the chief sees it.
pub fn words_cross_borders_and_nothing_else() -> Outcome {
    unsafe extern "C" {
        fn suite_hidden_server();
    }
    const TASK_CREATE: u32 = Call::TaskControl as u32 | task_op::CREATE << 8;
    const THREAD_CREATE: u32 = Call::ThreadControl as u32 | thread_op::CREATE << 8;
    const THREAD_START: u32 = Call::ThreadControl as u32 | thread_op::START << 8;
    const SET_BLOCK: u32 = Call::ThreadControl as u32 | thread_op::SET_BLOCK << 8;
    const SET_WINDOW: u32 = Call::ThreadControl as u32 | thread_op::SET_WINDOW << 8;
    let (inner, other) = (Child::with_quota(128)?, Child::new()?);
    let (mut chief, mut stranger) = (inner.agent()?, other.agent()?);
    let priority = pager::priority() as u64;
    let (error, [task, ..]) = chief.control(TASK_CREATE, [48, priority, 0, 0, 0, 0])?;
    check_eq!(error, 0);
    let (error, [hidden, ..]) = chief.control(THREAD_CREATE, [task, priority, pager::uid().0, 0, 0, 0])?;
    check_eq!(error, 0);
    let entry = suite_hidden_server as *const () as usize as u64;
    check_eq!(chief.control(THREAD_START, [hidden, entry, 0, chief.uid.0, 0, 0])?.0, 0);
    let window = Fpage::doors(7, 0, Rights::RW);
    check_eq!(chief.run(Frame::receive(Uid(hidden), NEVER).window(window))?.kind(), Some(Kind::Reply));
    hand(&mut chief, 7, Rights::RW, &mut stranger, 9)?;
    let (used, room) = (Dope::used(0, 0, 1), Dope::room(2, 0, 1));
    check_eq!(chief.control(SET_BLOCK, [hidden, to_block(), room.0, u64::MAX, 0, 0])?.0, 0);
    // It would have a place for an identifier.
    let place = Fpage::doors(3, 0, Rights::RW);
    check_eq!(chief.control(SET_WINDOW, [hidden, place.0, 0, 0, 0, 0])?.0, 0);
    for _ in 0..2 {
        let got = stranger.run(Frame::door_call(9, 3, WORDS))?;
        check_eq!((got.kind(), got.words()), (Some(Kind::DoorReturn), WORDS));
        check_eq!(stranger.run(call(Dope::used(2, 0, 0)))?.kind(), Some(Kind::DoorReturn));
        let item = Fpage::doors(9, 0, Rights::RW);
        check_eq!(stranger.run(with_item(DOOR_ITEM_CALL, item))?.error(), Some(Error::Denied));
        from().block[..2].copy_from_slice(&[item.0, 0]);
        to().block[2..4].copy_from_slice(&[item.0, 0]);
        check_eq!(stranger.run(call(used))?.error(), Some(Error::Denied));
    }
    // Between the chief and its clan nothing is a border.
    from().block[..2].copy_from_slice(&[Fpage::doors(7, 0, Rights::RW).0, 0]);
    let got = chief.run(long(DOOR_LONG_CALL, 7, used, from_block()))?;
    check_eq!(got.kind(), Some(Kind::DoorReturn));
    Ok(())
}

/// A server that was called on the fast path faults while the next call's block comes: its pager runs on the server's own shuttle, and not
/// on that of whom it served last.
pub fn a_fault_before_the_second_call() -> Outcome {
    let (used, room) = (Dope::used(640, 0, 0), Dope::room(640, 0, 0));
    let mut pair = pair(room)?;
    let mut other = pair.near.agent()?;
    for round in 0..10 {
        prepare(round);
        pair.exchange()?;
        for page in (to_block()..to_block() + 8192).step_by(4096) {
            sys::flush(Fpage::memory(page, 12, Rights::RWX))?;
        }
        other.block(call(used))?;
        called(&mut pair.server, room.with_used(used))?;
        check!(to().block[..640] == from().block[..640], "the words differ");
        door::answer(&mut pair.server, &mut other, 5)?;
    }
    Ok(())
}
