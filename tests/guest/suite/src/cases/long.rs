//! Long messages: what of a message lies in memory arrives whole, once, and nowhere else (rows P2, P3).

use super::large;
use super::map::{self, WINDOW};
use crate::kit::{Agent, Child, Frame, Outcome, Random, WORDS, fails, in_time_enough, note, pager};
use crate::{check, check_eq};
use core::arch::global_asm;
use core::ptr::{addr_of, addr_of_mut};
use sys::abi::PAGE_SIZE;
use sys::abi::call::{
    Call, IPC_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL, ITEM_WHOLE, NO_BLOCK,
    PATIENCE_US,
};
use sys::abi::op;
use sys::thread_state;
use sys::{Dope, Error, Fpage, Kind, Registered, Rights, StringPart, Timeout, Uid};

const WORDS_MAX: usize = Dope::WORDS_MAX as usize;
pub(super) const BYTES: usize = 1 << 20;

/// One side's block and strings. Children see them at the same addresses.
#[repr(C, align(4096))]
pub(super) struct Side {
    /// Direct words, and descriptors.
    pub(super) block: [u64; 8192],
    /// What strings are made of.
    pub(super) bytes: [u8; BYTES + 8192],
}

static mut FROM: Side = Side { block: [0; 8192], bytes: [0; BYTES + 8192] };
static mut TO: Side = Side { block: [0; 8192], bytes: [0; BYTES + 8192] };

/// How far into a large page a string begins.
const LARGE_OFFSET: usize = 0x7_f123;

// A call to the thread whose uid is in rdi, and another when that is over.
global_asm!(
    "
    .section .text.suite_long_caller, \"ax\", @progbits
    .globl suite_long_caller
suite_long_caller:
    mov rbx, rdi
1:  mov rdx, rbx
    mov eax, {call}
    syscall
    jmp 1b
    .text
    ",
    call = const IPC_CALL,
);

unsafe extern "C" {
    fn suite_long_caller();
}

/// Where nobody has a page, and the suite's pager gives none.
const NOWHERE: u64 = 0x90_0000_0000;

const NEVER: Timeout = Timeout::NEVER;

pub(super) fn from() -> &'static mut Side {
    // SAFETY: tests run one after the other, and look at the sides only while no agent does.
    unsafe { &mut *addr_of_mut!(FROM) }
}

pub(super) fn to() -> &'static mut Side {
    // SAFETY: as above.
    unsafe { &mut *addr_of_mut!(TO) }
}

pub(super) fn from_block() -> u64 {
    addr_of!(from().block) as u64
}

pub(super) fn to_block() -> u64 {
    addr_of!(to().block) as u64
}

/// Fills the sending side with a pattern and empties the other.
pub(super) fn prepare(seed: u64) {
    let mut random = Random::new(seed);
    from().block.iter_mut().for_each(|word| *word = random.next());
    from()
        .bytes
        .chunks_mut(8)
        .for_each(|part| part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]));
    to().block.fill(0x5555);
    to().bytes.fill(0x55);
}

/// `operation` to a thread, with a block.
fn long(operation: u32, partner: Uid, dope: Dope, block: u64) -> Frame {
    let mut frame = Frame::call(partner, 0x77, WORDS);
    frame.rax = 0x77 << 32 | operation as u64;
    (frame.rdi, frame.rsi) = (dope.0, block);
    frame
}

pub(super) fn long_call(partner: Uid, dope: Dope) -> Frame {
    long(IPC_LONG_CALL, partner, dope, from_block())
}

pub(super) fn long_reply(partner: Uid, dope: Dope) -> Frame {
    long(IPC_LONG_REPLY_WAIT, partner, dope, from_block())
}

/// The general form, sending only.
fn long_send(partner: Uid, dope: Dope, block: u64, timeout: Timeout) -> Frame {
    let mut frame = Frame::send(partner, timeout);
    frame.rax |= op::BLOCK as u64;
    (frame.rdi, frame.rsi) = (dope.0, block);
    frame
}

pub(super) fn open() -> Frame {
    Frame::reply_wait(Uid::NIL, 0, [0; 11])
}

pub(super) fn set_room(agent: &Agent, room: Dope, patience: Timeout) -> Outcome {
    sys::thread_set_block(agent.uid, to_block(), room, patience)?;
    Ok(())
}

/// Two agents in tasks of their own; the second waits for anybody, with that much room.
pub(super) fn pair(room: Dope) -> Outcome<(Child, Agent, Child, Agent)> {
    let (near, far) = (Child::with_quota(128)?, Child::with_quota(128)?);
    let (sender, mut receiver) = (near.agent()?, far.agent()?);
    set_room(&receiver, room, NEVER)?;
    receiver.block(open())?;
    Ok((near, sender, far, receiver))
}

/// Which strings lie where: offset and length in each side's bytes.
pub(super) fn describe(used: Dope, room: Dope, parts: impl IntoIterator<Item = (usize, usize, u32, u32)>) {
    let source = &mut from().block[used.strings_offset() as usize / 8..];
    let target = &mut to().block[room.strings_offset() as usize / 8..];
    for (i, (at, there, len, capacity)) in parts.into_iter().enumerate() {
        let send = StringPart::send(from().bytes.as_ptr() as u64 + at as u64, len);
        let take = StringPart::room(to().bytes.as_ptr() as u64 + there as u64, capacity);
        source[2 * i..][..2].copy_from_slice(&[send.address, send.sizes()]);
        target[2 * i..][..2].copy_from_slice(&[take.address, take.sizes()]);
    }
}

/// Whether so many bytes of the sending side are there on the other.
pub(super) fn arrived(at: usize, there: usize, len: usize) -> bool {
    to().bytes[there..there + len] == from().bytes[at..at + len]
}

/// Checks a received request: registers, and the direct words.
pub(super) fn check_request(got: &Frame, sender: &Agent, used: Dope, room: Dope) -> Outcome {
    check_eq!(got.rax, 0x77 << 32 | (Kind::Request as u32 & !NO_BLOCK) as u64);
    check_eq!(got.sender(), sender.uid);
    check_eq!((got.rdi, got.rsi), (room.with_used(used).0, to_block()));
    check_eq!(got.words()[2..10], WORDS[2..10]);
    check_eq!(got.r15, 0);
    let words = used.words() as usize;
    check!(to().block[..words] == from().block[..words], "direct words differ");
    check!(used.strings() != 0 || to().block[words] == 0x5555, "more words came than were sent");
    Ok(())
}

pub fn direct_words_of_all_sizes() -> Outcome {
    for words in [0, 1, 2, 8, 112, 511, 512, 513, 2000, WORDS_MAX as u64] {
        prepare(words);
        let used = Dope::used(words, 0, 0);
        let room = Dope::room(words.max(1), 0, 0);
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        check_request(&got, &sender, used, room)?;
        // The answer is short, and finds the caller.
        receiver.block(Frame::reply_wait(sender.uid, 5, WORDS))?;
        let answer = sender.wait()?;
        check_eq!(answer.rax, 5 << 32 | Kind::Reply as u64);
        check_eq!(answer.words(), WORDS);
    }
    Ok(())
}

pub fn what_was_received_is_sent_on() -> Outcome {
    prepare(1);
    let room = Dope::room(100, 0, 0);
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    // The caller's block serves for both, too.
    sys::thread_set_block(sender.uid, from_block(), room, NEVER)?;
    for words in [100, 7] {
        sender.block(long_call(receiver.uid, Dope::used(words, 0, 0)).taking())?;
        let got = receiver.wait()?;
        to().block[..words as usize].iter_mut().for_each(|word| *word ^= 0xff);
        let reply = long(IPC_LONG_REPLY_WAIT, sender.uid, Dope(got.rdi), got.rsi);
        receiver.block(reply)?;
        let answer = sender.wait()?;
        check_eq!(answer.rax, 0x77 << 32 | (Kind::Reply as u32 & !NO_BLOCK) as u64);
        check_eq!((answer.rdi, answer.rsi), (room.with_used(Dope::used(words, 0, 0)).0, from_block()));
        check!(to().block[..words as usize] == from().block[..words as usize], "the answer differs");
    }
    Ok(())
}

/// A block answers a call on whose shuttle a third thread runs meanwhile: the caller has its shuttle back, and the third its own.
pub fn answers_after_a_call_that_was_ended() -> Outcome {
    let (used, room) = (Dope::used(7, 0, 0), Dope::room(100, 0, 0));
    let (near, mut caller, _far, mut middle) = pair(room)?;
    sys::thread_set_block(caller.uid, from_block(), room, NEVER)?;
    let mut last = near.agent()?;
    for round in 0..8 {
        prepare(round);
        caller.block(Frame::call(middle.uid, 0x77, WORDS).taking())?;
        check_eq!(middle.wait()?.sender(), caller.uid);
        last.block(open())?;
        middle.block(Frame::call(last.uid, 2, WORDS))?;
        check_eq!(last.wait()?.sender(), middle.uid);
        sys::thread_abort(middle.uid)?;
        check_eq!(middle.wait()?.error(), Some(Error::ReceiveAborted));
        middle.block(long(IPC_LONG_REPLY_WAIT, caller.uid, used, to_block()))?;
        check_eq!(caller.wait()?.rax as u32, Kind::Reply as u32 & !NO_BLOCK);
        check!(from().block[..7] == to().block[..7], "the answer differs");
    }
    Ok(())
}

/// No block comes to who did not say that it may, in whatever form it waits: memory that it has registered is its own meanwhile. Who takes
/// one takes words, too.
pub fn who_takes_no_block_gets_none() -> Outcome {
    let (used, room) = (Dope::used(7, 0, 0), Dope::room(100, 0, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sys::thread_set_block(sender.uid, from_block(), room, NEVER)?;
    let general = Frame::ipc(receiver.uid, receiver.uid, NEVER, NEVER);
    let patient = Frame::ipc(receiver.uid, receiver.uid, NEVER, Timeout::from_us(1 << 30));
    let short = Frame::call(receiver.uid, 0x77, WORDS);
    for form in [short, long_call(receiver.uid, used), general, patient] {
        prepare(6);
        sender.block(form)?;
        receiver.wait()?;
        to().block.fill(0x77);
        // A message is refused, and a reply ends the call.
        let sent = receiver.run(long_send(sender.uid, used, to_block(), Timeout::ZERO))?;
        check_eq!(sent.error(), Some(Error::NoWindow));
        check!(!sender.is_done());
        receiver.block(long(IPC_LONG_REPLY_WAIT, sender.uid, used, to_block()))?;
        check_eq!(sender.wait()?.error(), Some(Error::NoWindow));
        check!(from().block[0] != 0x77, "a block came");
        for takes_words in [false, true] {
            sender.block(form.taking())?;
            receiver.wait()?;
            let reply = match takes_words {
                true => Frame::reply_wait(sender.uid, 5, WORDS),
                false => long(IPC_LONG_REPLY_WAIT, sender.uid, used, to_block()),
            };
            receiver.block(reply)?;
            let got = sender.wait()?;
            let kind = Kind::Reply as u32 & if takes_words { u32::MAX } else { !NO_BLOCK };
            check_eq!(got.rax as u32, kind);
        }
        check!(from().block[..7] == to().block[..7], "the answer differs");
    }
    // Who waits for anybody.
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    receiver.block(Frame::receive(Uid::ANY, NEVER))?;
    check_eq!(sender.run(long_call(receiver.uid, used))?.error(), Some(Error::NoWindow));
    sender.block(short)?;
    check_eq!(receiver.wait()?.kind(), Some(Kind::Request));
    receiver.block(Frame::reply_wait(sender.uid, 5, WORDS))?;
    sender.wait()?;
    // It looks at who waits in its queue: whose message is refused.
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    sender.block(long_call(receiver.uid, used))?;
    check_eq!(receiver.run(Frame::receive(Uid::ANY, Timeout::ZERO))?.error(), Some(Error::ReceiveTimeout));
    check_eq!(sender.wait()?.error(), Some(Error::NoWindow));
    sender.block(long_call(receiver.uid, used))?;
    receiver.run(Frame::receive(Uid::ANY, Timeout::ZERO).taking())?;
    receiver.block(Frame::reply_wait(sender.uid, 5, WORDS))?;
    check_eq!(sender.wait()?.kind(), Some(Kind::Reply));
    Ok(())
}

pub fn a_block_for_a_while() -> Outcome {
    let (room, patience) = (Dope::room(100, 3, 0), Timeout::from_us(77));
    let none = Registered { address: 0, room: Dope::NONE, patience: Timeout::from_us(PATIENCE_US) };
    let first = Registered { address: to_block(), room, patience };
    let child = Child::with_quota(128)?;
    let agent = child.agent()?;
    let set = |to: Registered| sys::thread_set_block(agent.uid, to.address, to.room, to.patience);
    check_eq!(set(first)?, none);
    check_eq!(set(Registered { address: from_block(), ..first })?, first);
    // What is refused changes nothing.
    check_eq!(set(Registered { address: u64::MAX, ..none }), Err(Error::BadArgument));
    check_eq!(set(none)?, Registered { address: from_block(), ..first });
    check_eq!(set(none)?, none);
    Ok(())
}

/// A thread that waits for a message in the place of one that has ended gets none that was meant for that.
pub fn blocks_for_one_who_has_ended() -> Outcome {
    let (used, room) = (Dope::used(9, 0, 0), Dope::room(512, 0, 0));
    prepare(5);
    let (near, mut sender, _far, receiver) = pair(room)?;
    let mut old = receiver.uid;
    drop(receiver);
    for _ in 0..40 {
        // A slot will be used again sooner or later; the uid never.
        let mut fresh = near.agent()?;
        set_room(&fresh, room, NEVER)?;
        fresh.block(open())?;
        for form in [IPC_LONG_CALL, IPC_LONG_TAKING_CALL] {
            check_eq!(sender.run(long(form, old, used, from_block()))?.error(), Some(Error::NoSuch));
        }
        check!(!fresh.is_done());
        old = fresh.uid;
    }
    Ok(())
}

pub fn within_a_task() -> Outcome {
    prepare(2);
    let child = Child::with_quota(128)?;
    let (mut sender, mut receiver) = (child.agent()?, child.agent()?);
    let (used, room) = (Dope::used(300, 1, 0), Dope::room(512, 1, 0));
    set_room(&receiver, room, NEVER)?;
    for used in [Dope::used(300, 0, 0), used] {
        prepare(3);
        describe(used, room, [(3, 5, 10_001, 20_000)]);
        receiver.block(open())?;
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        check_request(&got, &sender, used, room)?;
        sender.wait_for_answer(&mut receiver)?;
    }
    check!(to().bytes[5..10_006] == from().bytes[3..10_004]);
    check_eq!((to().bytes[4], to().bytes[10_006]), (0x55, 0x55));
    Ok(())
}

pub fn strings_of_all_sizes() -> Outcome {
    let (used, room) = (Dope::used(3, 1, 0), Dope::room(4, 2, 0));
    for len in [0, 1, 7, 8, 9, 4095, 4096, 4097, 32768, 32769, 100_003, BYTES] {
        prepare(len as u64);
        describe(used, room, [(len % 13, len % 11, len as u32, len as u32 + 1)]);
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        check_request(&got, &sender, used, room)?;
        let (at, there) = (len % 13, len % 11);
        check!(to().bytes[there..there + len] == from().bytes[at..at + len], "{len} bytes differ");
        check_eq!(to().bytes[there + len], 0x55);
        check_eq!(to().block[4 + 1], (len as u64 + 1) << 32 | len as u64);
    }
    Ok(())
}

/// The kernel copies forward, whatever direction its caller's flags say.
pub fn flags_do_not_turn_copies_round() -> Outcome {
    const BACKWARDS: u64 = 1 << 10;
    for (words, len) in [(112, 0), (3, 5000), (3, BYTES)] {
        let strings = (len != 0) as u64;
        let (used, room) = (Dope::used(words, strings, 0), Dope::room(words, 1, 0));
        prepare(len as u64);
        describe(used, room, (len != 0).then_some((0, 0, len as u32, len as u32)));
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        let call = long_call(receiver.uid, used);
        sender.block(Frame { flags: call.flags | BACKWARDS, ..call })?;
        check_request(&receiver.wait()?, &sender, used, room)?;
        check!(arrived(0, 0, len), "{len} bytes differ");
    }
    Ok(())
}

/// A thread with such flags comes in between: a copy that lets interrupts in goes on after them.
pub fn flags_of_others_do_not_turn_copies_round() -> Outcome {
    const SLICE_US: u64 = 100;
    const ROUNDS: u64 = 200_000_000;
    unsafe extern "C" {
        fn suite_backwards();
    }
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    let other = Child::new()?;
    let mut neighbour = other.agent()?;
    for agent in [&sender, &neighbour] {
        sys::thread_set_priority(agent.uid, agent.info()?.priority, SLICE_US)?;
    }
    neighbour.start_attempt(suite_backwards, ROUNDS, 0);
    for round in 0..40 {
        prepare(round);
        describe(used, room, [(0, 0, BYTES as u32, BYTES as u32)]);
        sender.block(long_call(receiver.uid, used))?;
        check_request(&receiver.wait()?, &sender, used, room)?;
        check!(arrived(0, 0, BYTES), "the string differs");
        receiver.block(Frame::reply_wait(sender.uid, 0, [0; 11]))?;
        sender.wait()?;
    }
    check!(neighbour.attempted()?.is_fine());
    Ok(())
}

/// From a large page to small ones, back, and to another large one, all over it.
pub fn strings_from_and_to_large_pages() -> Outcome {
    let base = large::memory()?;
    let half = |i: usize| {
        let start = base as usize + i * large::SIZE as usize;
        // SAFETY: the suite's own memory; agents use it only while this waits for them.
        unsafe { core::slice::from_raw_parts_mut(start as *mut u8, large::SIZE as usize) }
    };
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(1, 1, 0));
    let (near, far) = (Child::with_quota(128)?, Child::with_quota(128)?);
    let (mut sender, mut receiver) = (near.agent()?, far.agent()?);
    let take = |agent: &mut Agent, i: u64| {
        let item = Fpage::memory(base + i * large::SIZE, 21, Rights::RW);
        agent.take((item, WINDOW), Fpage::WHOLE).map(drop)
    };
    take(&mut sender, 0)?;
    take(&mut receiver, 1)?;
    set_room(&receiver, room, NEVER)?;
    let len = BYTES - 4099;
    for (from_large, to_large) in [(true, false), (false, true), (true, true)] {
        prepare(len as u64);
        half(0)[..len].iter_mut().zip(&from().bytes).for_each(|(to, from)| *to = !from);
        half(1).fill(0x55);
        describe(used, room, [(0, 0, len as u32, len as u32)]);
        let (source, target) = (LARGE_OFFSET, 2 * LARGE_OFFSET);
        if from_large {
            half(0).copy_within(..len, source);
            from().block[0] = WINDOW + source as u64;
        }
        if to_large {
            to().block[1] = WINDOW + target as u64;
        }
        receiver.block(open())?;
        sender.block(long_call(receiver.uid, used))?;
        receiver.wait()?;
        let sent = if from_large { &half(0)[source..][..len] } else { &from().bytes[..len] };
        let came = if to_large { &half(1)[target..][..len] } else { &to().bytes[..len] };
        check!(sent == came, "{len} bytes differ, {from_large} {to_large}");
        let behind = if to_large { half(1)[target + len] } else { to().bytes[len] };
        check_eq!(behind, 0x55);
        sender.wait_for_answer(&mut receiver)?;
    }
    note(Call::Flush, sys::flush(Fpage::memory(base, 22, Rights::RWX)))?;
    Ok(())
}

/// A string as long as strings can be, from large pages to small ones. One byte more is refused; see [`bad_strings_are_refused`].
pub fn a_string_as_long_as_can_be() -> Outcome {
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let (len, base) = (StringPart::MAX as usize, large::memory()?);
    prepare(17);
    // SAFETY: the suite's own memory; agents use it only while this waits for them.
    let source = unsafe { core::slice::from_raw_parts_mut(base as *mut u8, len) };
    source.chunks_mut(BYTES).for_each(|part| part.copy_from_slice(&from().bytes[..BYTES]));
    source.chunks_mut(BYTES).zip(1..).for_each(|(part, number)| part[0] = number);
    let (near, far) = (Child::with_quota(128)?, Child::with_quota(128)?);
    let (mut sender, mut receiver) = (near.agent()?, far.agent()?);
    sender.take((Fpage::memory(base, StringPart::MAX.ilog2(), Rights::R), WINDOW), Fpage::WHOLE)?;
    from().block[..2].copy_from_slice(&[WINDOW, len as u64]);
    to().block[..2].copy_from_slice(&[map::page(0), (len as u64) << 32]);
    set_room(&receiver, room, NEVER)?;
    receiver.block(open())?;
    sender.block(long_call(receiver.uid, used))?;
    receiver.wait()?;
    // SAFETY: as above.
    let target = unsafe { core::slice::from_raw_parts(map::page(0) as *const u8, len) };
    check!(source == target, "4 MiB differ");
    check_eq!(to().block[1], (len as u64) << 32 | len as u64);
    sender.wait_for_answer(&mut receiver)?;
    note(Call::Flush, sys::flush(Fpage::memory(base, 22, Rights::RWX)))?;
    note(Call::Flush, sys::flush(Fpage::memory(map::page(0), 22, Rights::RWX)))?;
    Ok(())
}

pub fn many_strings_are_scattered() -> Outcome {
    let count = Dope::PARTS_MAX as usize;
    let (used, room) = (Dope::used(0, count as u64, 0), Dope::room(0, count as u64, 0));
    prepare(7);
    let part = |i: usize| (i * 4001, (count - 1 - i) * 4003, 1000 + i as u32, 4000);
    describe(used, room, (0..count).map(part));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sender.block(long_call(receiver.uid, used))?;
    check_request(&receiver.wait()?, &sender, used, room)?;
    for i in 0..count {
        let (at, there, len, _) = part(i);
        let len = len as usize;
        check!(to().bytes[there..there + len] == from().bytes[at..at + len], "string {i} differs");
    }
    Ok(())
}

pub fn queued_senders_deliver_when_taken() -> Outcome {
    prepare(8);
    let (used, room) = (Dope::used(10, 1, 0), Dope::room(10, 1, 0));
    describe(used, room, [(0, 0, 50_000, 50_000)]);
    let (near, far) = (Child::with_quota(128)?, Child::with_quota(128)?);
    let (mut sender, mut receiver) = (near.agent()?, far.agent()?);
    set_room(&receiver, room, NEVER)?;
    sender.block(long_call(receiver.uid, used))?;
    let got = receiver.run(open())?;
    check_request(&got, &sender, used, room)?;
    check!(to().bytes[..50_000] == from().bytes[..50_000]);
    Ok(())
}

pub fn the_general_form_sends_blocks() -> Outcome {
    prepare(9);
    let (used, room) = (Dope::used(20, 0, 0), Dope::room(20, 0, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    check_eq!(sender.run(long_send(receiver.uid, used, from_block(), Timeout::ZERO))?.rax, 0);
    let got = receiver.wait()?;
    check_eq!(got.rax, (Kind::Reply as u32 & !NO_BLOCK) as u64);
    check_eq!(got.words()[2..8], WORDS[2..8]);
    check_eq!((got.rbx, got.rbp, got.r15), (0, 0, 0));
    check!(to().block[..20] == from().block[..20]);
    // Nobody waits now.
    let late = sender.run(long_send(receiver.uid, used, from_block(), Timeout::from_us(50)))?;
    check_eq!(late.error(), Some(Error::SendTimeout));
    Ok(())
}

pub fn items_in_a_block() -> Outcome {
    prepare(10);
    let (used, room) = (Dope::used(1, 0, 2), Dope::room(2, 0, 2));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    let page = |i: u64| addr_of!(from().bytes) as u64 + i * PAGE_SIZE;
    // The sender has the pages: it has read them.
    for i in 0..2 {
        sender.peek_own(page(i))?;
        let item = Fpage::memory(page(i), 12, Rights::R);
        let window = Fpage::memory(WINDOW + i * PAGE_SIZE, 12, Rights::RWX);
        from().block[1 + 2 * i as usize..][..2].copy_from_slice(&[item.0, 0]);
        to().block[2 + 2 * i as usize..][..2].copy_from_slice(&[window.0, 0]);
    }
    sender.block(long_call(receiver.uid, used))?;
    let got = receiver.wait()?;
    check!(got.rax as u32 & sys::abi::call::NO_ITEM == 0);
    for i in 0..2 {
        let arrived = Fpage(to().block[2 + 2 * i as usize]);
        check_eq!(arrived, Fpage::memory(WINDOW + i * PAGE_SIZE, 12, Rights::R));
        let word = u64::from_le_bytes(from().bytes[i as usize * 4096..][..8].try_into().expect("8 bytes"));
        check_eq!(receiver.peek(WINDOW + i * PAGE_SIZE)?, Some(word));
        check!(!receiver.poke(WINDOW + i * PAGE_SIZE, 1)?, "a right came from nowhere");
    }
    Ok(())
}

/// A block of as much as a step copies, and then a receive that looks through a long queue for what a chief may have shown: the harness sees how
/// long that takes without a look at the interrupts.
pub fn a_receive_behind_many_callers() -> Outcome {
    const CALLERS: usize = 130;
    let (used, room) = (Dope::used(512, 4, 0), Dope::room(512, 4, 0));
    let (near, far) = (Child::with_quota(600)?, Child::with_quota(128)?);
    let (mut middle, mut partner) = (near.agent()?, far.agent()?);
    set_room(&partner, room, NEVER)?;
    let entry = suite_long_caller as *const () as usize as u64;
    let mut callers = alloc::vec::Vec::new();
    for _ in 0..CALLERS {
        let caller = sys::thread_create(near.0, pager::priority(), pager::uid(), pager::uid())?;
        // SAFETY: it makes one system call, and needs no stack.
        unsafe { sys::thread_start(caller, entry, 0, middle.uid.0)? };
        callers.push(caller);
    }
    let waits =
        |caller: &Uid| sys::thread_info(*caller).is_ok_and(|info| info.state == thread_state::SENDING);
    while !callers.iter().all(waits) {
        sys::sleep_us(100)?;
    }
    // Somebody of another clan: this thread.
    let from = pager::uid();
    for round in 0..4 {
        prepare(round);
        describe(used, room, (0..4).map(|i| (i * 5000, i * 5000, 4096, 4096)));
        partner.block(open())?;
        let mut frame = Frame::ipc(partner.uid, from, NEVER, Timeout::from_us(50));
        frame.rax |= op::BLOCK as u64;
        (frame.rdi, frame.rsi) = (used.0, from_block());
        check_eq!(middle.run(frame)?.error(), Some(Error::ReceiveTimeout));
        partner.wait()?;
        check!((0..4).all(|i| arrived(i * 5000, i * 5000, 4096)));
    }
    Ok(())
}

/// As many items as a message can have: the same page at so many places.
pub fn as_many_items_as_can_be() -> Outcome {
    let count = Dope::PARTS_MAX;
    let (used, room) = (Dope::used(0, 0, count), Dope::room(0, 0, count));
    prepare(18);
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    let page = addr_of!(from().bytes) as u64;
    sender.peek_own(page)?;
    let place = |i: u64| WINDOW + i * PAGE_SIZE;
    for i in 0..count {
        let (item, window) = (Fpage::memory(page, 12, Rights::R), Fpage::memory(place(i), 12, Rights::RWX));
        from().block[2 * i as usize] = item.0;
        to().block[2 * i as usize] = window.0;
    }
    sender.block(long_call(receiver.uid, used))?;
    let got = receiver.wait()?;
    check!(got.rax as u32 & ITEM_WHOLE != 0, "not all of it arrived");
    let word = u64::from_le_bytes(from().bytes[..8].try_into().expect("8 bytes"));
    for i in [0, 1, count / 2, count - 1] {
        check_eq!(Fpage(to().block[2 * i as usize]), Fpage::memory(place(i), 12, Rights::R));
        check_eq!(receiver.peek(place(i))?, Some(word));
    }
    check_eq!(receiver.peek(place(count))?, None);
    note(Call::Flush, sys::flush(Fpage::memory(page, 12, Rights::RWX)))?;
    Ok(())
}

/// An item or a window that is no flexpage, or of which one has no place in the other, ends the message, and nothing is mapped.
pub fn bad_items_are_refused() -> Outcome {
    let (used, room) = (Dope::used(1, 0, 1), Dope::room(1, 0, 1));
    let page = addr_of!(from().bytes) as u64;
    let (item, window) = (Fpage::memory(page, 12, Rights::R), Fpage::memory(WINDOW, 12, Rights::RWX));
    let bad = [
        Fpage(page | 24 << 4 | 1),
        Fpage(page | 11 << 4 | 1),
        Fpage(page | 1),
        Fpage(1 << 47 | 12 << 4 | 1),
        Fpage(48 << 4 | 1),
        Fpage(page | 3 << 10 | 12 << 4 | 1),
        Fpage(0x1_0000 << 12 | 1 << 10 | 1),
        Fpage::NIL,
        Fpage::interrupt(0),
    ];
    for (item, window) in bad.map(|bad| (bad, window)).into_iter().chain(bad.map(|bad| (item, bad))) {
        prepare(19);
        from().block[1..3].copy_from_slice(&[item.0, WINDOW]);
        to().block[1..3].copy_from_slice(&[window.0, 0]);
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        sender.peek_own(page)?;
        let sent = sender.run(long_call(receiver.uid, used))?;
        check!(sent.error() == Some(Error::NoWindow), "{item:?} to {window:?}: {:?}", sent.error());
        let got = receiver.wait()?;
        check_eq!((got.error(), sent.rdi, got.rdi), (Some(Error::NoAccess), 8, 8));
        check_eq!(receiver.peek(WINDOW)?, None);
    }
    Ok(())
}

pub fn too_long_is_an_error_for_both() -> Outcome {
    let room = Dope::room(10, 2, 0);
    let cases: [(Dope, u32, u64); 4] = [
        (Dope::used(11, 0, 0), 0, 0),
        (Dope::used(10, 3, 0), 100, 80 + 200),
        (Dope::used(5, 2, 0), 201, 40),
        (Dope::used(0, 0, 1), 0, 0),
    ];
    for (used, len, moved) in cases {
        prepare(11);
        let capacity = |i: usize| if i == 0 { 200 } else { 300 };
        describe(used, room, (0..used.strings() as usize).map(|i| (0, 1000 * i, len, capacity(i))));
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        let sent = sender.run(long_call(receiver.uid, used))?;
        check_eq!((sent.error(), sent.rdi), (Some(Error::Overflow), moved));
        let got = receiver.wait()?;
        check_eq!((got.error(), got.rdi), (Some(Error::Overflow), moved));
        check_eq!(got.words()[1..], [0; 10]);
    }
    Ok(())
}

pub fn no_room_is_the_senders_error_alone() -> Outcome {
    prepare(12);
    let used = Dope::used(1, 0, 0);
    let (_near, mut sender, _far, mut receiver) = pair(Dope::NONE)?;
    // A block of nothing has no room there either.
    for used in [used, Dope::NONE] {
        check_eq!(sender.run(long_call(receiver.uid, used))?.error(), Some(Error::NoWindow));
    }
    check!(!receiver.is_done(), "a receiver without a block was disturbed");
    // A server goes on after a reply that nobody has room for; a client does not wait for another one.
    sender.block(Frame::call(receiver.uid, 0, WORDS))?;
    receiver.wait()?;
    receiver.block(long(IPC_LONG_REPLY_WAIT, sender.uid, used, to_block()))?;
    check_eq!(sender.wait()?.error(), Some(Error::NoWindow));
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    // So it is for a sender that had to wait.
    sender.block(long_call(receiver.uid, used))?;
    receiver.block(open())?;
    check_eq!(sender.wait()?.error(), Some(Error::NoWindow));
    Ok(())
}

pub fn bad_blocks_are_refused() -> Outcome {
    prepare(13);
    let room = Dope::room(100, 1, 0);
    let (_near, mut sender, _far, receiver) = pair(room)?;
    let bad = Some(Error::BadArgument);
    let end = sys::abi::USER_END;
    let one = Dope::used(1, 0, 0);
    let blocks = [
        (Dope(1 << 28), from_block()),
        (Dope(1 << 29), from_block()),
        (Dope(1 << 30), from_block()),
        (Dope(1 << 31), from_block()),
        (one, end),
        (one, end - 7),
        (one, 1 << 63),
        (one, 0xffff_8000_0000_0000),
        (one, u64::MAX - 7),
        (one, 1 << 47),
        (Dope::used(100, 0, 0), end - 792),
    ];
    for (dope, block) in blocks {
        let sent = sender.run(long(IPC_LONG_CALL, receiver.uid, dope, block))?;
        check!(sent.error() == bad, "block {block:#x}: {:?}", sent.error());
        check_eq!(sender.run(long_send(receiver.uid, dope, block, Timeout::ZERO))?.error(), bad);
    }
    let mut both = long_send(receiver.uid, one, from_block(), Timeout::ZERO);
    both.rax |= op::ITEM as u64;
    check_eq!(sender.run(both)?.error(), bad);
    check!(!receiver.is_done(), "a bad block reached the receiver");
    let control =
        |address, room| note(Call::ThreadControl, sys::thread_set_block(sender.uid, address, room, NEVER));
    for (address, room) in
        [(end - 8, Dope::room(2, 0, 0)), (u64::MAX, room), (8, Dope(1 << 60)), (8, Dope(1 << 63)), (8, one)]
    {
        fails(Call::ThreadControl, control(address, room), Error::BadArgument)?;
    }
    fails(Call::ThreadControl, control((1 << 39) - 8, Dope::room(2, 0, 0)), Error::BadArgument)?;
    control(end - 16, Dope::room(2, 0, 0))?;
    Ok(())
}

pub fn bad_strings_are_refused() -> Outcome {
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let kernel = 0xffff_8000_0000_0000;
    let good = from_block();
    for (address, len) in
        [(kernel, 8), (u64::MAX, 8), (sys::abi::USER_END - 7, 8), (good, StringPart::MAX + 1)]
    {
        prepare(14);
        describe(used, room, [(0, 0, 8, u32::MAX)]);
        from().block[..2].copy_from_slice(&[address, len as u64]);
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        check_eq!(sender.run(long_call(receiver.uid, used))?.error(), Some(Error::BadArgument));
        check_eq!(receiver.wait()?.error(), Some(Error::NoAccess));
    }
    // A bad buffer is no room.
    for address in [kernel, sys::abi::USER_END - 7] {
        prepare(15);
        describe(used, room, [(0, 0, 8, 8)]);
        to().block[0] = address;
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        check_eq!(sender.run(long_call(receiver.uid, used))?.error(), Some(Error::Overflow));
        check_eq!(receiver.wait()?.error(), Some(Error::Overflow));
    }
    Ok(())
}

/// Buffers of a receiver that overlap are its own affair: the strings come in order, and where one falls on the descriptors of
/// the next, that is what the descriptors are.
pub fn overlapping_buffers_hurt_their_owner_only() -> Outcome {
    let (used, room) = (Dope::used(1, 2, 0), Dope::room(1, 2, 0));
    prepare(20);
    describe(used, room, [(0, 100, 9000, 9000), (20_000, 4000, 6000, 6000)]);
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sender.block(long_call(receiver.uid, used))?;
    check_request(&receiver.wait()?, &sender, used, room)?;
    check!(to().bytes[100..4000] == from().bytes[..3900], "the first string's beginning differs");
    check!(to().bytes[4000..10_000] == from().bytes[20_000..26_000], "the second string differs");
    check!(to().bytes[10_000..11_000].iter().all(|&byte| byte == 0x55));
    receiver.block(Frame::reply_wait(sender.uid, 0, WORDS))?;
    sender.wait()?;
    // The first string falls on the second descriptor, and makes it one that leads into the kernel, or elsewhere in the
    // receiver's own memory.
    let elsewhere = to().bytes.as_ptr() as u64 + 30_000;
    for (address, error) in [(0xffff_8000_0000_0000, Some(Error::Overflow)), (elsewhere, None)] {
        prepare(21);
        describe(used, room, [(0, 0, 16, 16), (20_000, 0, 64, 64)]);
        from().bytes[..8].copy_from_slice(&address.to_le_bytes());
        from().bytes[8..16].copy_from_slice(&(64_u64 << 32).to_le_bytes());
        to().block[1] = to_block() + 8 * 3;
        sender.start(long_call(receiver.uid, used));
        let got = receiver.wait()?;
        check_eq!(got.error(), error);
        if error.is_some() {
            check_eq!(sender.wait()?.error(), error);
            check_eq!(got.rdi, 8 + 16);
            receiver.block(open())?;
        } else {
            check!(to().bytes[30_000..30_064] == from().bytes[20_000..20_064], "the second string differs");
        }
    }
    Ok(())
}

/// A message whose second string nobody can read or take.
pub(super) fn stuck(at_target: bool) -> (Dope, Dope) {
    let (used, room) = (Dope::used(10, 2, 0), Dope::room(10, 2, 0));
    prepare(16);
    describe(used, room, [(0, 0, 1000, 1000), (2000, 2000, 1000, 1000)]);
    if at_target {
        to().block[10 + 2] = NOWHERE
    } else {
        from().block[10 + 2] = NOWHERE
    }
    (used, room)
}

/// Lets others run until all faults that the suite's pager resolves are resolved.
pub(super) fn get_stuck() {
    for _ in 0..2000 {
        let _ = sys::thread_switch(Uid::NIL);
    }
}

pub fn patience_with_the_partners_pager() -> Outcome {
    let moved = |at_target, patience| -> Outcome<u64> {
        let (used, room) = stuck(at_target);
        let (_near, mut sender, _far, mut receiver) = pair(room)?;
        set_room(&receiver, room, patience)?;
        sys::thread_set_block(sender.uid, 0, Dope::NONE, patience)?;
        sender.start(long_call(receiver.uid, used));
        let (sent, got) = (sender.wait()?, receiver.wait()?);
        check_eq!((sent.error(), got.error()), (Some(Error::NoAccess), Some(Error::NoAccess)));
        check_eq!(sent.rdi, got.rdi);
        Ok(sent.rdi)
    };
    for at_target in [false, true] {
        moved(at_target, Timeout::ZERO)?;
        // On a machine that stands still meanwhile, less.
        let all = |us| Ok(moved(at_target, Timeout::from_us(us))? == 1080);
        check!(in_time_enough(100_000, all)?, "what is there does not move");
    }
    Ok(())
}

pub fn abort_in_the_middle() -> Outcome {
    for at_target in [false, true] {
        for of_sender in [false, true] {
            let (used, room) = stuck(at_target);
            let (_near, mut sender, _far, mut receiver) = pair(room)?;
            sender.start(long_call(receiver.uid, used));
            get_stuck();
            check!(!receiver.is_done());
            sys::thread_abort(if of_sender { sender.uid } else { receiver.uid })?;
            let (sent, got) = (sender.wait()?, receiver.wait()?);
            check_eq!((sent.error(), got.error()), (Some(Error::SendAborted), Some(Error::ReceiveAborted)));
            check_eq!((sent.rdi, got.rdi), (1080, 1080));
        }
    }
    Ok(())
}

pub fn partner_ends_in_the_middle() -> Outcome {
    for at_target in [false, true] {
        for of_sender in [false, true] {
            let (used, room) = stuck(at_target);
            let (near, mut sender, far, mut receiver) = pair(room)?;
            sender.start(long_call(receiver.uid, used));
            get_stuck();
            sys::task_destroy(if of_sender { near.0 } else { far.0 })?;
            if of_sender {
                check_eq!(receiver.wait()?.error(), Some(Error::PartnerDied));
            } else if at_target {
                check_eq!(sender.wait()?.error(), Some(Error::PartnerDied));
            } else {
                // It waits for its pager still; when that gives up it hears of the end.
                check!(!sender.is_done());
                sys::thread_abort(sender.uid)?;
                check!(sender.wait()?.error().is_some());
            }
        }
    }
    Ok(())
}

pub fn memory_revoked_in_between() -> Outcome {
    let (used, room) = (Dope::used(512, 1, 0), Dope::room(512, 1, 0));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    for round in 0..40 {
        prepare(round);
        describe(used, room, [(0, 0, 20_000, 20_000)]);
        sender.block(long_call(receiver.uid, used))?;
        let got = receiver.wait()?;
        check_request(&got, &sender, used, room)?;
        check!(to().bytes[..20_000] == from().bytes[..20_000], "round {round}");
        // Everything is taken back from both: the next round faults anew on both sides, page by page.
        for page in (from_block()..from_block() + size_of::<Side>() as u64).step_by(4096) {
            note(Call::Flush, sys::flush(Fpage::memory(page, 12, Rights::RWX)))?;
        }
        let rights = if round % 2 == 0 { Rights::W } else { Rights::RWX };
        for page in (to_block()..to_block() + size_of::<Side>() as u64).step_by(4096) {
            note(Call::Flush, sys::flush(Fpage::memory(page, 12, rights)))?;
        }
        receiver.block(Frame::reply_wait(sender.uid, 0, WORDS))?;
        sender.wait()?;
    }
    Ok(())
}

pub fn a_dead_receivers_frames_are_not_written() -> Outcome {
    let (used, room) = (Dope::used(0, 1, 0), Dope::room(0, 1, 0));
    let near = Child::with_quota(256)?;
    let mut sender = near.agent()?;
    for round in 0..30 {
        prepare(round);
        describe(used, room, [(0, 0, BYTES as u32, BYTES as u32)]);
        let far = Child::with_quota(128)?;
        let mut receiver = far.agent()?;
        set_room(&receiver, room, NEVER)?;
        receiver.block(open())?;
        sender.start(long_call(receiver.uid, used));
        for _ in 0..round {
            let _ = sys::thread_switch(sender.uid);
        }
        sys::task_destroy(far.0)?;
        // Its pages have another owner now.
        to().bytes.fill(0x33);
        let sent = sender.wait()?;
        check!(to().bytes.iter().all(|&byte| byte == 0x33), "round {round}: written after the end");
        let ended = matches!(sent.error(), Some(Error::PartnerDied | Error::NoSuch));
        check!(ended, "round {round}: {:?}", sent.error());
        // What the receiver's tables were made of is used at once for another task, which works.
        let other = Child::new()?;
        check_eq!(other.agent()?.apply(double, 21)?, 42);
    }
    Ok(())
}

extern "C" fn double(value: u64) -> u64 {
    2 * value
}

impl Agent {
    /// Answers the request that `receiver` has got from this agent.
    pub(super) fn wait_for_answer(&mut self, receiver: &mut Agent) -> Outcome {
        receiver.run(Frame::send(self.uid, Timeout::ZERO))?;
        self.wait().map(drop)
    }

    /// Reads a word with the help of the suite's pager.
    pub(super) fn peek_own(&mut self, address: u64) -> Outcome {
        extern "C" fn read(address: u64) -> u64 {
            // SAFETY: the test gives an address of its own memory.
            unsafe { (address as *const u64).read_volatile() }
        }
        self.apply(read, address).map(drop)
    }
}
