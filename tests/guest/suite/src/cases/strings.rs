//! Strings of messages, on both paths: what ends one in the middle lets the message go on from that very byte, and what was looked at holds.

use super::long::{
    arrived, check_request, describe, from, long_call, open, pair, prepare, set_room, to, to_block,
};
use super::map::WINDOW;
use crate::kit::{Agent, Child, Frame, Outcome, WORDS, note, pager, progress, spawn};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicBool, Ordering};
use sys::abi::call::{Call, IPC_LONG_CALL, NO_ITEM};
use sys::abi::{PAGE_SIZE, USER_END, op};
use sys::{Dope, Error, Fpage, Kind, Rights, StringPart, TaskId, Timeout};

const PIECES: usize = 16;
const PIECE: usize = 256;

/// Distance from one piece to the next: each lies on a page of its own, and begins in the middle of a word.
const APART: usize = 2 * PAGE_SIZE as usize + 3;

/// Sixteen strings of 256 bytes, each from and to a page of its own.
fn scattered(used: Dope, room: Dope) {
    scattered_of(used, room, PIECE);
}

/// Sixteen strings of so many bytes, at the same places.
fn scattered_of(used: Dope, room: Dope, len: usize) {
    let piece = |i| (i * APART, (PIECES - 1 - i) * APART, len as u32, 2 * len as u32);
    describe(used, room, (0..PIECES).map(piece));
}

/// Whether these are there, and nothing around them.
fn check_scattered(room: Dope) -> Outcome {
    for i in 0..PIECES {
        let there = (PIECES - 1 - i) * APART;
        check!(arrived(i * APART, there, PIECE), "string {i} differs");
        check_eq!(to().bytes[there + PIECE], 0x55);
        let part = &to().block[room.strings_offset() as usize / 8 + 2 * i..][..2];
        check_eq!(part[0], to().bytes.as_ptr() as u64 + there as u64);
        check_eq!(part[1], (2 * PIECE as u64) << 32 | PIECE as u64);
    }
    Ok(())
}

/// Takes the page of an address back from everybody else.
fn take_back(address: u64, rights: Rights) {
    let _ = note(Call::Flush, sys::flush(Fpage::memory(address & !(PAGE_SIZE - 1), 12, rights)));
}

fn answer(sender: &mut Agent, receiver: &mut Agent) -> Outcome {
    receiver.block(Frame::reply_wait(sender.uid, 0, WORDS))?;
    sender.wait().map(drop)
}

/// A page of the k-th string is not there, on one side, on the other, or on both.
pub fn faults_in_each_of_them() -> Outcome {
    let (used, room) = (Dope::used(3, PIECES as u64, 0), Dope::room(5, PIECES as u64, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    for round in 0..3 * PIECES + 1 {
        progress();
        prepare(round as u64);
        scattered(used, room);
        if let Some(round) = round.checked_sub(1) {
            let (i, sides) = (round / 3, round % 3 + 1);
            if sides & 1 != 0 {
                take_back(from().bytes.as_ptr() as u64 + (i * APART) as u64, Rights::RWX);
            }
            if sides & 2 != 0 {
                let rights = if round % 2 == 0 { Rights::W } else { Rights::RWX };
                take_back(to().bytes.as_ptr() as u64 + ((PIECES - 1 - i) * APART) as u64, rights);
            }
        }
        sender.block(long_call(receiver.uid, used))?;
        check_request(&receiver.wait()?, &sender, used, room)?;
        check_scattered(room)?;
        answer(&mut sender, &mut receiver)?;
    }
    Ok(())
}

/// The k-th string, a short one or a long one, is one that cannot be sent or taken: both learn of it, and how much was copied before.
pub fn bad_ones_behind_good_ones() -> Outcome {
    let (used, room) = (Dope::used(2, PIECES as u64, 0), Dope::room(2, PIECES as u64, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    // All pages are there from here on: where one is not, the slow path looks again.
    prepare(0);
    scattered_of(used, room, 5000);
    sender.block(long_call(receiver.uid, used))?;
    check_request(&receiver.wait()?, &sender, used, room)?;
    answer(&mut sender, &mut receiver)?;
    for (len, k, of_sender, words) in bad_ones() {
        let errors = if of_sender {
            (Error::BadArgument, Error::NoAccess)
        } else {
            (Error::Overflow, Error::Overflow)
        };
        prepare(k as u64);
        scattered(used, room);
        let (mine, theirs) = (&mut from().block[2 + 2 * k..][..2], &mut to().block[2 + 2 * k..][..2]);
        (mine[1], theirs[1]) = (len.into(), u64::from(len) << 32);
        if of_sender { mine } else { theirs }.copy_from_slice(&words);
        sender.start(long_call(receiver.uid, used));
        let (sent, got) = (sender.wait()?, receiver.wait()?);
        check!((sent.error(), got.error()) == (Some(errors.0), Some(errors.1)), "{words:x?} of {len} bytes");
        check_eq!((sent.rdi, got.rdi), (16 + (k * PIECE) as u64, 16 + (k * PIECE) as u64));
        for i in 0..k {
            check!(arrived(i * APART, (PIECES - 1 - i) * APART, PIECE), "{words:x?}: string {i} differs");
        }
        receiver.block(open())?;
    }
    Ok(())
}

/// Bad descriptors: length of the string otherwise, its number, whether it is the sender's, and the words.
fn bad_ones() -> impl Iterator<Item = (u32, usize, bool, [u64; 2])> {
    let bad = [PIECE as u32, 5000].into_iter().flat_map(|len| {
        let (mine, theirs) = (from().bytes.as_ptr() as u64, to().bytes.as_ptr() as u64);
        let last = USER_END - u64::from(len) + 1;
        let nowhere = [0xffff_8000_0000_0000, u64::MAX - 8, 1 << 47, USER_END, last];
        let sent = nowhere.map(|address| (true, [address, len.into()]));
        let too_long = [StringPart::MAX + 1, u32::MAX].map(|len| (true, [mine, len.into()]));
        let taken = nowhere.map(|address| (false, [address, u64::from(len) << 32]));
        let too_small = [len - 1, 0].map(|capacity| (false, [theirs, u64::from(capacity) << 32]));
        let all = sent.into_iter().chain(too_long).chain(taken).chain(too_small);
        all.enumerate().map(move |(k, (of_sender, words))| (len, k, of_sender, words))
    });
    bad.chain(too_long_for_any_room())
}

/// Strings that are longer than one may be, for receivers with as much room.
fn too_long_for_any_room() -> impl Iterator<Item = (u32, usize, bool, [u64; 2])> {
    let mine = from().bytes.as_ptr() as u64;
    let all = [StringPart::MAX + 1, u32::MAX].into_iter().enumerate();
    all.map(move |(k, len)| (u32::MAX, k, true, [mine, len.into()]))
}

/// At the end of the user half a string may end, though nobody has a page there; one that is empty may lie anywhere in it.
pub fn up_to_the_end_of_the_user_half() -> Outcome {
    let (used, room) = (Dope::used(0, 2, 0), Dope::room(0, 2, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    // All pages that are there at all come before nobody waits for them any more.
    prepare(1);
    describe(used, room, [(0, 0, 100, 100), (200, 200, 5000, 5000)]);
    sender.block(long_call(receiver.uid, used))?;
    check_request(&receiver.wait()?, &sender, used, room)?;
    answer(&mut sender, &mut receiver)?;
    set_room(&receiver, room, Timeout::ZERO)?;
    sys::thread_set_block(sender.uid, 0, Dope::NONE, Timeout::ZERO)?;
    for (of_sender, len) in [(true, 64), (false, 64), (true, 0), (false, 0), (true, 4096), (false, 4096)] {
        prepare(len);
        describe(used, room, [(0, 0, 100, 100), (200, 200, len as u32, 5000)]);
        let side = if of_sender { &mut from().block } else { &mut to().block };
        side[2] = USER_END - len;
        sender.start(long_call(receiver.uid, used));
        let got = receiver.wait()?;
        if len == 0 {
            check_request(&got, &sender, used, room)?;
            answer(&mut sender, &mut receiver)?;
        } else {
            check_eq!((sender.wait()?.error(), got.error()), (Some(Error::NoAccess), Some(Error::NoAccess)));
            check_eq!(got.rdi, 100);
            receiver.block(open())?;
        }
        check!(arrived(0, 0, 100), "the first string differs");
    }
    Ok(())
}

/// Any number of them, more than a step takes, long ones between.
pub fn more_than_a_step_takes() -> Outcome {
    let most = Dope::room(0, 60, 0);
    let (_near, mut sender, _far, mut receiver) = pair(most)?;
    for count in [1, 2, 15, 16, 17, 20, 21, 24, 25, 40, 60] {
        for long in [0, count / 2, count - 1] {
            progress();
            let used = Dope::used(0, count as u64, 0);
            prepare((count * 64 + long) as u64);
            let len = |i: usize| if i == long { 9001 } else { 100 + 7 * i };
            let part = |i: usize| (i * 10_001, i * 10_003, len(i) as u32, 10_000);
            describe(used, most, (0..count).map(part));
            sender.block(long_call(receiver.uid, used))?;
            check_request(&receiver.wait()?, &sender, used, most)?;
            for i in 0..count {
                check!(arrived(i * 10_001, i * 10_003, len(i)), "string {i} of {count} differs");
                check_eq!(to().bytes[i * 10_003 + len(i)], 0x55);
            }
            answer(&mut sender, &mut receiver)?;
        }
    }
    Ok(())
}

/// Within one task the target may be the source's neighbour. A string that comes over itself is moved once, although the next one faults.
pub fn each_byte_is_copied_once() -> Outcome {
    let child = Child::with_quota(128)?;
    let (mut sender, mut receiver) = (child.agent()?, child.agent()?);
    let (used, room) = (Dope::used(0, 2, 0), Dope::room(0, 2, 0));
    set_room(&receiver, room, Timeout::NEVER)?;
    for (len, shift) in [(1000, 8), (4000, 64), (4096, 1024), (20_000, 8)] {
        prepare(len as u64);
        describe(used, room, [(shift, 0, len as u32, len as u32), (40_000, 40_000, 100, 100)]);
        // The buffer of the first lies in front of it.
        to().block[0] = from().bytes.as_ptr() as u64;
        let mut before = [0; 2];
        before.copy_from_slice(&[from().bytes[shift], from().bytes[shift + len - 1]]);
        receiver.block(open())?;
        take_back(to().bytes.as_ptr() as u64 + 40_000, Rights::RWX);
        sender.block(long_call(receiver.uid, used))?;
        check_request(&receiver.wait()?, &sender, used, room)?;
        check!([from().bytes[0], from().bytes[len - 1]] == before, "{len} bytes were moved twice");
        check!(arrived(40_000, 40_000, 100), "the second string differs");
        sender.wait_for_answer(&mut receiver)?;
    }
    Ok(())
}

fn bytes_at(offset: usize) -> u64 {
    to().bytes.as_ptr() as u64 + offset as u64
}

/// Gives pages from `first` on to the receiver a second time: `count` of them, at `there`.
fn show_again(receiver: &mut Agent, first: u64, count: u64, there: u64) -> Outcome {
    for at in (0..count).map(|i| i * PAGE_SIZE) {
        let page = first + at;
        pager::touch(page, Rights::RW);
        let window = Fpage::memory(there + at, 12, Rights::RW);
        receiver.take((Fpage::memory(page, 12, Rights::RW), 0), window)?;
    }
    Ok(())
}

/// Where a receiver's buffers lie so far apart that no window shows two of them, nor the block.
pub fn buffers_far_from_the_block() -> Outcome {
    const FAR: [u64; 2] = [0x91_0000_0000, 0x2345_6789_0000];
    const FIRST: usize = 0x2_0000;
    const SECOND: usize = FIRST + PAGE_SIZE as usize;
    let (used, room) = (Dope::used(1, 5, 0), Dope::room(1, 5, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    show_again(&mut receiver, bytes_at(FIRST), 1, FAR[0])?;
    show_again(&mut receiver, bytes_at(SECOND), 1, FAR[1])?;
    for round in 0..4 {
        prepare(round);
        describe(used, room, (0..5).map(|i| (i * 5000, i * 300, 200, 200)));
        for (i, at) in [(1, FAR[0]), (2, FAR[1]), (4, FAR[0] + 1000)] {
            to().block[1 + 2 * i] = at;
        }
        receiver.block(open())?;
        sender.block(long_call(receiver.uid, used))?;
        check_request(&receiver.wait()?, &sender, used, room)?;
        for (i, there) in [0, FIRST, SECOND, 900, FIRST + 1000].into_iter().enumerate() {
            check!(arrived(i * 5000, there, 200), "string {i} differs");
            check_eq!(to().block[2 + 2 * i], 200 << 32 | 200);
        }
        sender.wait_for_answer(&mut receiver)?;
    }
    Ok(())
}

/// A buffer that begins where the window of the block shows it, and ends behind that.
pub fn buffers_that_no_window_shows_whole() -> Outcome {
    const SHOWN_END: u64 = 1 << 39;
    const FIRST: usize = 0x2_0000;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    show_again(&mut receiver, bytes_at(FIRST), 16, SHOWN_END - 2 * PAGE_SIZE)?;
    for len in [100, 4096, 9000, 20_000, 50_000] {
        for round in 0..2 {
            prepare(len as u64 + round);
            describe(used, room, [(3, 0, len as u32, len as u32)]);
            to().block[0] = SHOWN_END - 2 * PAGE_SIZE;
            receiver.block(open())?;
            sender.block(long_call(receiver.uid, used))?;
            check_request(&receiver.wait()?, &sender, used, room)?;
            check!(arrived(3, FIRST, len), "{len} bytes differ");
            check_eq!(to().bytes[FIRST + len], 0x55);
            sender.wait_for_answer(&mut receiver)?;
        }
    }
    Ok(())
}

/// Buffers in front of what the window of the block shows. Were they looked for in the window, the kernel's own memory would be found.
pub fn buffers_in_front_of_the_window() -> Outcome {
    const BLOCK: u64 = 1 << 39;
    let (used, room) = (Dope::used(1, 1, 0), Dope::room(1, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    show_again(&mut receiver, to_block(), 1, BLOCK)?;
    sys::thread_set_block(receiver.uid, BLOCK, room, Timeout::NEVER)?;
    receiver.block(open())?;
    for len in [50_000, 9000, 4096, 100] {
        for round in 0..2 {
            prepare(len as u64 + round);
            describe(used, room, [(3, 0, len as u32, len as u32)]);
            sender.block(long_call(receiver.uid, used))?;
            let got = receiver.wait()?;
            check_eq!((got.error(), got.rdi, got.rsi), (None, room.with_used(used).0, BLOCK));
            check!(to().block[0] == from().block[0] && arrived(3, 0, len), "{len} bytes differ");
            answer(&mut sender, &mut receiver)?;
        }
    }
    Ok(())
}

/// A string out of the user half, whose pages in that are there: nothing of it is sent.
pub fn out_of_the_user_half() -> Outcome {
    const LAST: u64 = USER_END - PAGE_SIZE;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    // All pages are there from here on: where one is not, the slow path looks again.
    prepare(0);
    describe(used, room, [(0, 0, 100_000, 100_000)]);
    sender.block(long_call(receiver.uid, used))?;
    check_request(&receiver.wait()?, &sender, used, room)?;
    answer(&mut sender, &mut receiver)?;
    show_again(&mut sender, bytes_at(0), 1, LAST)?;
    for len in [PAGE_SIZE as u32 + 1, 20_000, 100_000] {
        prepare(len.into());
        describe(used, room, [(0, 0, len, len)]);
        from().block[0] = LAST;
        sender.start(long_call(receiver.uid, used));
        let (sent, got) = (sender.wait()?, receiver.wait()?);
        check_eq!((sent.error(), got.error()), (Some(Error::BadArgument), Some(Error::NoAccess)));
        check_eq!((sent.rdi, got.rdi), (0, 0));
        receiver.block(open())?;
    }
    Ok(())
}

/// More direct words than the receiver has room for, and a string, whose descriptor lies behind that room: nothing comes.
pub fn more_words_than_there_is_room_for() -> Outcome {
    let room = Dope::room(2, 1, 0);
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    for words in [2, 3, 100, 512] {
        let used = Dope::used(words, 1, 0);
        prepare(words);
        describe(used, room, [(0, 0, 100, 100)]);
        let before = to().block;
        sender.start(long_call(receiver.uid, used));
        let got = receiver.wait()?;
        if words == 2 {
            check_request(&got, &sender, used, room)?;
            answer(&mut sender, &mut receiver)?;
            continue;
        }
        check_eq!((sender.wait()?.error(), got.error()), (Some(Error::Overflow), Some(Error::Overflow)));
        check!(to().block == before, "{words} words were written");
        receiver.block(open())?;
    }
    Ok(())
}

/// Words and strings with something beside them: items, which arrive as well, and bits of the dope that mean nothing yet.
pub fn with_something_beside_them() -> Outcome {
    let (used, room) = (Dope::used(1, 1, 1), Dope::room(2, 1, 1));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sender.peek_own(from().bytes.as_ptr() as u64)?;
    let page = Fpage::memory(from().bytes.as_ptr() as u64, 12, Rights::R);
    let window = Fpage::memory(WINDOW, 12, Rights::R);
    for round in 0..4 {
        prepare(round);
        describe(used, room, [(0, 0, 200, 200)]);
        from().block[used.items_offset() as usize / 8..][..2].copy_from_slice(&[page.0, 0]);
        to().block[room.items_offset() as usize / 8..][..2].copy_from_slice(&[window.0, 0]);
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        check!(got.rax as u32 & NO_ITEM == 0, "round {round}: no item came");
        check_eq!(got.rdi, room.with_used(used).0);
        check!(arrived(0, 0, 200), "round {round}: the string differs");
        check_eq!(to().block[room.items_offset() as usize / 8], window.0);
        answer(&mut sender, &mut receiver)?;
    }
    for reserved in (28..32).map(|bit| 1 << bit) {
        to().block[0] = 0x5555;
        let refused = sender.run(long_call(receiver.uid, Dope(Dope::used(1, 1, 0).0 | reserved)))?;
        check_eq!(refused.error(), Some(Error::BadArgument));
        check!(!receiver.is_done() && to().block[0] == 0x5555, "bits {reserved:#x} were sent");
    }
    Ok(())
}

/// Progress that the fast path has noted of a message means nothing for the next one, which the slow path sends.
pub fn the_slow_path_begins_at_the_beginning() -> Outcome {
    let (used, room) = (Dope::used(1, 3, 0), Dope::room(1, 3, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    for round in 0..4 {
        for len in [100, 50_000] {
            prepare(round * 2 + (len == 100) as u64);
            describe(used, room, [(0, 0, len, len), (60_000, 60_001, len, len), (120_000, 120_003, 5, 6)]);
            let mut frame = long_call(receiver.uid, used);
            if round % 2 == 1 {
                frame = Frame::ipc(receiver.uid, receiver.uid, Timeout::NEVER, Timeout::NEVER);
                frame.rax |= op::BLOCK as u64;
                (frame.rdi, frame.rsi) = (used.0, super::long::from_block());
            }
            check!(frame.rax as u32 == IPC_LONG_CALL || round % 2 == 1);
            sender.block(frame)?;
            let got = receiver.wait()?;
            check_eq!(got.rax as u32, Kind::Request as u32 & !sys::abi::call::NO_BLOCK);
            check!(to().block[0] == from().block[0], "the direct word differs");
            let len = len as usize;
            check!(arrived(0, 0, len) && arrived(60_000, 60_001, len), "round {round}: {len} bytes differ");
            check!(arrived(120_000, 120_003, 5));
            answer(&mut sender, &mut receiver)?;
        }
    }
    Ok(())
}

/// Whether descriptors are to be changed when something of their string is there.
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// Sleeps for a while, again and again. When something of a string is there, it makes nonsense of both descriptors, once.
extern "C" fn spoil(us: u64, _: u64) -> ! {
    loop {
        let _ = sys::sleep_us(us);
        let first = to().bytes.as_ptr();
        // SAFETY: the sides are there as long as the program, and others only write bytes to them.
        if unsafe { first.read_volatile() } != 0x55 && IS_ARMED.swap(false, Ordering::Relaxed) {
            to().block[..2].copy_from_slice(&[u64::MAX, 0]);
            from().block[..2].copy_from_slice(&[0xffff_8000_0000_0000, 1]);
        }
    }
}

/// Another thread writes to the descriptors of a string that is under way. It arrives as it was when the kernel looked at it, and so does
/// the receiver's descriptor.
pub fn descriptors_are_read_once() -> Outcome {
    const LEN: u32 = 1 << 20;
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    let mut in_the_middle = 0;
    let _spoiler = spawn(TaskId::NIL, pager::priority() + 1, spoil, 20)?;
    for round in 0..20 {
        progress();
        prepare(round);
        from().bytes[0] = 1;
        describe(used, room, [(0, 0, LEN, LEN)]);
        IS_ARMED.store(true, Ordering::Relaxed);
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        let was_changed = !IS_ARMED.swap(false, Ordering::Relaxed);
        check_eq!((got.error(), got.sender()), (None, sender.uid));
        check!(arrived(0, 0, LEN as usize), "round {round}: what arrived differs");
        let part = [to().bytes.as_ptr() as u64, (LEN as u64) << 32 | LEN as u64];
        // A change that came too late is still there.
        in_the_middle += (was_changed && to().block[..2] == part) as u64;
        answer(&mut sender, &mut receiver)?;
    }
    check!(in_the_middle >= 3, "only {in_the_middle} strings had their descriptors changed");
    Ok(())
}

/// Replies with strings, to a caller that takes them, as calls do.
pub fn replies_bring_them() -> Outcome {
    let (used, room) = (Dope::used(3, PIECES as u64, 0), Dope::room(5, PIECES as u64, 0));
    let (_near, mut server, _far, mut client) = pair(room)?;
    sys::thread_abort(client.uid)?;
    client.wait()?;
    server.block(open())?;
    for round in 0..8 {
        prepare(round);
        scattered(used, room);
        client.block(Frame::call(server.uid, 5, WORDS).taking())?;
        check_eq!(server.wait()?.sender(), client.uid);
        server.block(super::long::long_reply(client.uid, used))?;
        let got = client.wait()?;
        check_eq!(got.rax as u32, Kind::Reply as u32 & !sys::abi::call::NO_BLOCK);
        check_eq!(got.rdi, room.with_used(used).0);
        check_eq!(got.words()[2..10], WORDS[2..10]);
        check_scattered(room)?;
    }
    Ok(())
}
