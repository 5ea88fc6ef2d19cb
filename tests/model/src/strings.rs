//! Where the kernel reads and writes for two partners: a model of messages with a part in memory and of map items, and the kernel
//! held against it.
//!
//! *Model.* Memory of a sender and of a receiver, as bytes. A message is copied as `abi` describes it: words, then strings, each
//! into the buffer that the receiver has for it. The model says how the message ends for both, and what the receiver's memory
//! holds afterwards, every byte of it; what lies outside of the user half, or of what the receiver has room for, is never
//! touched. Of map items it says whether there is a place for one in the receiver's window, and where.
//!
//! *Implementation.* Two threads that never run: [`World::acting`] makes one the current thread for as long as its call takes.

use crate::random::{Random, amount, programs};
use crate::world::World;
use abi::call::{thread_op, timeouts};
use abi::op;
use abi::{Call, Dope, Error, Fpage, PAGE_SIZE, Rights, Space, StringPart, Timeout, Uid};
use kernel::arch;
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, State, Wait};
use kernel::processor;
use kernel::sim;

/// First address that no user has.
const USER_END: u64 = 0x7fff_ffff_f000;

/// Where both have memory, and how much.
const BASE: u64 = 0x4000_0000;
const PAGES: u64 = 8;
const LEN: u64 = PAGES * PAGE_SIZE;

/// Longest string.
const STRING_MAX: u64 = 4 << 20;

/// So much of a string is certainly copied in one step.
const STEP: u32 = 4096;

/// A message and what is there for it.
#[derive(Clone, Debug)]
struct Message {
    /// What the sender has in its registers.
    dope: u64,
    block: u64,
    /// What the receiver has registered.
    room: u64,
    there: u64,
    /// Descriptors: of the sender's strings and items, of the receiver's.
    sent: Vec<[u64; 2]>,
    rooms: Vec<[u64; 2]>,
    takes: bool,
}

fn dope(words: u64, strings: u64, items: u64) -> u64 {
    words | strings << 12 | items << 20
}

fn place(random: &mut Random) -> u64 {
    match random.below(12) {
        0 => random.pick(&[
            USER_END - 8,
            USER_END - 64,
            USER_END - 8000,
            USER_END,
            1 << 47,
            !0 << 47,
            (1 << 39) - 8,
            u64::MAX - 7,
            0,
        ]),
        1 => random.next(),
        _ => BASE + random.below(PAGES) * PAGE_SIZE + random.pick(&[0, 0, 8, 1, 4088, 4095]),
    }
}

fn len(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.pick(&[STRING_MAX, STRING_MAX + 1, u32::MAX as u64]),
        1 => random.below(LEN),
        _ => random.pick(&[0, 1, 7, 100, 4096, 5000]),
    }
}

fn string(random: &mut Random) -> [u64; 2] {
    let part = StringPart { address: place(random), len: len(random) as u32, capacity: len(random) as u32 };
    [part.address, part.sizes()]
}

fn message(random: &mut Random) -> Message {
    let number = |random: &mut Random, few: u64| {
        if random.one_in(6) { random.below(few) } else { random.below(3) }
    };
    let [words, strings] = [number(random, 600), number(random, 4)];
    let used = dope(words, strings, 0);
    // Mostly there is as much room as is needed.
    let same = !random.one_in(3);
    let room = if same { used } else { dope(number(random, 600), number(random, 4), 0) };
    let flip = |random: &mut Random, word: u64| {
        if random.one_in(20) { word ^ 1 << random.below(64) } else { word }
    };
    let descriptors = |random: &mut Random| (0..4).map(|_| string(random)).collect();
    let low = random.one_in(3);
    let block = |random: &mut Random| if low { BASE } else { place(random) };
    // Items are sent one at a time, see below.
    let no_items = !(0xff << 20);
    // A dope that came can be sent on: it says what room there was.
    let came = if random.one_in(4) { dope(number(random, 4096), number(random, 256), 0) << 32 } else { 0 };
    Message {
        dope: flip(random, used | came) & no_items,
        block: block(random),
        room: flip(random, room << 32),
        there: block(random),
        sent: descriptors(random),
        rooms: descriptors(random),
        takes: !random.one_in(8),
    }
}

/// Bytes of somebody, from [`BASE`] on. `None`: there is no memory.
struct Bytes(Vec<u8>);

impl Bytes {
    fn range(&self, address: u64, len: u64) -> Option<std::ops::Range<usize>> {
        let first = address.checked_sub(BASE)?;
        let end = first.checked_add(len).filter(|&end| end <= LEN)?;
        Some(first as usize..end as usize)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let bytes = &self.0[self.range(address, 8)?];
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn pair(&self, address: u64) -> Option<[u64; 2]> {
        Some([self.word(address)?, self.word(address.checked_add(8)?)?])
    }

    fn set_word(&mut self, address: u64, word: u64) -> Option<()> {
        let range = self.range(address, 8)?;
        self.0[range].copy_from_slice(&word.to_le_bytes());
        Some(())
    }
}

/// How a message ends, for the sender and for the receiver.
type End = (Result<(), Error>, Option<Result<(), Error>>);

/// What the model has no opinion about: the bytes that a transfer moved before it failed.
struct Copied {
    end: End,
    /// Parts of the receiver's memory that may have been written to.
    touched: Vec<std::ops::Range<usize>>,
}

const BOTH_NO_ACCESS: End = (Err(Error::NoAccess), Some(Err(Error::NoAccess)));
const BOTH_OVERFLOW: End = (Err(Error::Overflow), Some(Err(Error::Overflow)));

/// Whether a room is one that can be registered at an address.
fn is_room(room: u64, address: u64) -> bool {
    let end = address.checked_add(Dope(room).size()).filter(|&end| end <= USER_END);
    let one_window = |end: u64| room == 0 || address >> 39 == (end - 1) >> 39;
    room & !(0x0fff_ffff << 32) == 0 && end.is_some_and(one_window)
}

/// The transfer, by the description.
fn transfer(message: &Message, room: u64, from: &Bytes, to: &mut Bytes) -> Copied {
    let mut touched = Vec::new();
    let end = transfer_parts(message, room, from, to, &mut touched);
    Copied { end, touched }
}

fn transfer_parts(
    message: &Message,
    room: u64,
    from: &Bytes,
    to: &mut Bytes,
    touched: &mut Vec<std::ops::Range<usize>>,
) -> End {
    let (used, block, there) = (Dope(message.dope), message.block, message.there);
    // What is used of the last part that there is; of the parts before it the room, if that is more.
    let left = used.room_as_used();
    let used_parts = [
        (8, used.words(), left.words()),
        (16, used.strings(), left.strings()),
        (16, used.items(), left.items()),
    ];
    let (mut offset, mut len) = (0, 0);
    for (size, used, left) in used_parts {
        if used > 0 {
            len = offset + size * used;
        }
        offset += size * used.max(left);
    }
    let end = block.checked_add(len);
    if message.dope & 0xf000_0000 != 0 || end.is_none_or(|end| end > USER_END) {
        return (Err(Error::BadArgument), None);
    }
    if room == 0 || !message.takes {
        return (Err(Error::NoWindow), None);
    }
    let (most, shape) = (Dope(room).room_as_used(), Dope(room).with_used(used));
    if used.words() > most.words() {
        return BOTH_OVERFLOW;
    }
    let (source, target) = (from.range(block, 8 * used.words()), to.range(there, 8 * used.words()));
    touched.extend(target.clone());
    let (Some(source), Some(target)) = (source, target) else {
        if used.words() == 0 {
            return strings((used, shape, most), (block, there), from, to, touched);
        }
        // Of words that are there in part, that part may have been copied.
        touched.push(0..LEN as usize);
        return BOTH_NO_ACCESS;
    };
    to.0[target].copy_from_slice(&from.0[source]);
    strings((used, shape, most), (block, there), from, to, touched)
}

fn strings(
    (used, shape, most): (Dope, Dope, Dope),
    (block, there): (u64, u64),
    from: &Bytes,
    to: &mut Bytes,
    touched: &mut Vec<std::ops::Range<usize>>,
) -> End {
    for number in 0..used.strings() {
        if number >= most.strings() {
            return BOTH_OVERFLOW;
        }
        let descriptors = [block + used.strings_offset(), there + shape.strings_offset()];
        let [mine, theirs] = descriptors.map(|first| first + 16 * number);
        let (Some(mine), Some(room)) = (from.pair(mine), to.pair(theirs)) else { return BOTH_NO_ACCESS };
        let (mine, room) = (StringPart::from_words(mine), StringPart::from_words(room));
        let len = mine.len as u64;
        let in_user_half = |address: u64| address.checked_add(len).is_some_and(|end| end <= USER_END);
        if len > STRING_MAX || !in_user_half(mine.address) {
            return (Err(Error::BadArgument), Some(Err(Error::NoAccess)));
        }
        if len > room.capacity as u64 || !in_user_half(room.address) {
            return BOTH_OVERFLOW;
        }
        if len != 0 {
            let (source, target) = (from.range(mine.address, len), to.range(room.address, len));
            // Of a string that is there in part, that part may have been copied.
            let part = room.address.clamp(BASE, BASE + LEN) - BASE;
            let end = room.address.saturating_add(len).clamp(BASE, BASE + LEN) - BASE;
            touched.push(part as usize..end as usize);
            let (Some(source), Some(target)) = (source, target) else { return BOTH_NO_ACCESS };
            to.0[target].copy_from_slice(&from.0[source]);
        }
        touched.extend(to.range(theirs, 16));
        // The descriptor is written back as it was found, but for the length, even if the string came over it.
        let written = [(theirs, room.address), (theirs + 8, StringPart { len: mine.len, ..room }.sizes())];
        if written.iter().any(|&(at, word)| to.set_word(at, word).is_none()) {
            return BOTH_NO_ACCESS;
        }
    }
    (Ok(()), Some(Ok(())))
}

/// A sender and a receiver, in two tasks that have memory of their own.
struct Pair {
    world: World,
    sender: ThreadRef,
    receiver: ThreadRef,
}

impl Pair {
    fn new() -> Pair {
        let world = World::new(1 << 11);
        let [sender, receiver] = world.new_strangers(150);
        let pair = Pair { world, sender, receiver };
        // The receiver also has something at the very beginning, where an item for no window would arrive.
        let all = [(sender, 0x100_0000, BASE), (receiver, 0x200_0000, BASE), (receiver, 0x300_0000, LEN)];
        for (thread, from, to) in all {
            let plan = Plan { space: Space::Memory, from, to, log2: LEN.ilog2(), rights: Rights::RW };
            assert!(pair.world.give(plan, thread.task()));
        }
        pair
    }

    /// A call of a thread that never runs, to its end.
    fn call(&self, thread: ThreadRef, rax: u64, rdx: u64, w: [u64; 11]) {
        let frame = &thread.frame;
        frame.rax.set(rax);
        frame.rdx.set(rdx);
        frame.w.iter().zip(w).for_each(|(register, word)| register.set(word));
        self.world.acting(thread, || {
            arch::load_space(thread.hot.space.get());
            let _ = crate::world::system_call(&self.world.k, thread);
            self.world.finish(thread);
        });
        arch::load_space(self.world.root.hot.space.get());
        self.rest();
    }

    /// Who would run now never does.
    fn rest(&self) {
        for thread in [self.sender, self.receiver].into_iter().filter(|thread| thread.is_ready()) {
            self.world.k.unqueue_thread(thread);
            thread.state.set(State::Inactive);
        }
    }

    /// The receiver waits for anybody, with a window.
    fn wait(&self, window: u64, takes: bool) {
        let mut w = [0; 11];
        (w[Frame::RBX], w[Frame::RBP]) = (Uid::ANY.0, window);
        w[Frame::R15] = timeouts(Timeout::NEVER, Timeout::NEVER);
        let take = if takes { op::TAKES_BLOCK } else { 0 };
        self.call(self.receiver, (Call::Ipc as u32 | take) as u64, 0, w);
    }

    /// Lets a thread go on from whatever it waits for.
    fn abort(&self, thread: ThreadRef) {
        self.world.thread_control(thread_op::ABORT, [thread.uid().0, 0, 0, 0]).expect("it waits");
        self.rest();
    }

    /// The memory of one of them.
    fn bytes(&self, thread: ThreadRef) -> Bytes {
        let pages = (0..PAGES).flat_map(|page| {
            let place = sim::walk(&self.world.k.pool, thread.task(), BASE + page * PAGE_SIZE);
            arch::memory(place.expect("it has memory").0, PAGE_SIZE as usize)
        });
        Bytes(pages.collect())
    }

    /// Writes words to the memory of one of them, as far as it is there.
    fn write(&self, thread: ThreadRef, address: u64, words: &[u64]) {
        arch::load_space(thread.hot.space.get());
        for (i, word) in words.iter().enumerate() {
            let at = address.wrapping_add(8 * i as u64);
            let fits = at.checked_sub(BASE).is_some_and(|offset| offset + 8 <= LEN);
            if fits {
                let task = thread.task();
                let _ = processor::copy::write_words(&self.world.k, task, (task, at), [*word]);
            }
        }
        arch::load_space(self.world.root.hot.space.get());
    }

    fn fill(&self, thread: ThreadRef, seed: u64) {
        let word = |i: u64| (i + 1).wrapping_mul(0x0101_0101_0101_0101).wrapping_add(seed);
        let task = thread.task();
        arch::load_space(thread.hot.space.get());
        for page in 0..PAGES {
            let words: [u64; 512] = std::array::from_fn(|i| word(page * 512 + i as u64));
            let place = (task, BASE + page * PAGE_SIZE);
            processor::copy::write_words(&self.world.k, task, place, words).expect("it has memory");
        }
        arch::load_space(self.world.root.hot.space.get());
    }

    /// How a call ended for a thread.
    fn end(thread: ThreadRef) -> Result<(), Error> {
        match thread.frame.rax.get() as u32 {
            kind if kind == 0 || kind >> 31 != 0 => Ok(()),
            code => Err(Error::from_code(code).expect("an error")),
        }
    }

    /// Sends a message, and compares what comes of it. True if it arrived.
    fn send(&self, message: &Message) -> bool {
        let (k, sender, receiver) = (&self.world.k, self.sender, self.receiver);
        self.fill(sender, message.dope);
        self.fill(receiver, !message.dope);
        let fits = is_room(message.room, message.there);
        let set = [receiver.uid().0, message.there, message.room, Timeout::NEVER.0 as u64];
        let registered = self.world.thread_control(thread_op::SET_BLOCK, set);
        assert_eq!(registered.map(drop), if fits { Ok(()) } else { Err(Error::BadArgument as u64) });
        if !fits {
            return false;
        }
        let (used, shape) = (Dope(message.dope), Dope(message.room).with_used(Dope(message.dope)));
        let flat = |all: &[[u64; 2]]| all.iter().flatten().copied().collect::<Vec<u64>>();
        self.write(sender, message.block.wrapping_add(used.strings_offset()), &flat(&message.sent));
        self.write(receiver, message.there.wrapping_add(shape.strings_offset()), &flat(&message.rooms));
        // A long string that comes over the descriptors is the receiver's own affair: they are read anew in each step.
        let block = message.there..message.there + shape.size();
        let comes_over = |(&[at, _], &[_, sizes]): (&[u64; 2], &[u64; 2])| {
            let len = sizes as u32;
            len > STEP && at < block.end && at.saturating_add(len as u64) > block.start
        };
        if message.rooms.iter().zip(&message.sent).take(used.strings() as usize).any(comes_over) {
            return false;
        }
        let (from, mut to) = (self.bytes(sender), self.bytes(receiver));
        let before = to.0.clone();
        let copied = transfer(message, message.room, &from, &mut to);
        self.wait(0, message.takes);
        let mut w = [0; 11];
        (w[0], w[1], w[Frame::R15]) = (message.dope, message.block, 0);
        self.call(sender, (Call::Ipc as u32 | op::BLOCK) as u64, receiver.uid().0, w);
        let waits = receiver.wait() == Wait::Open;
        let found = (Pair::end(sender), (!waits).then(|| Pair::end(receiver)));
        assert_eq!(found, copied.end, "how it ends");
        let after = self.bytes(receiver);
        let arrived = found.0.is_ok();
        let expected = if arrived { &to.0 } else { &before };
        for (at, (found, expected)) in after.0.iter().zip(expected).enumerate() {
            let known = arrived || !copied.touched.iter().any(|range| range.contains(&at));
            assert!(!known || found == expected, "byte {at:x} of the receiver's memory");
        }
        assert!(self.bytes(sender).0 == from.0, "the sender's memory has changed");
        if waits {
            self.abort(receiver);
        }
        k.check();
        arrived
    }
}

#[test]
fn kernel_and_model_of_blocks_and_strings_agree() {
    let mut counts = [0; 2];
    programs("blocks and strings", amount(4000), 100, message, |program| {
        let pair = Pair::new();
        for message in program {
            counts[pair.send(message) as usize] += 1;
        }
    });
    let [failed, arrived] = counts;
    assert!(failed > 500 && arrived > 500, "{arrived} messages arrived, {failed} did not");
}

/// An item, and the window for it.
#[derive(Clone, Debug)]
struct Item {
    page: u64,
    hot_spot: u64,
    window: u64,
    in_block: bool,
    /// There is room for an item in the receiver's block.
    has_room: bool,
}

fn flexpage(random: &mut Random) -> u64 {
    let rights = random.pick(&[Rights::RW, Rights::R, Rights::RWX, Rights::NONE]);
    let log2 = random.pick(&[12, 12, 13, 14, 15]);
    let page = match random.below(12) {
        0 => Fpage::NIL,
        1 => Fpage(random.next()),
        2 => Fpage::ports(random.below(16) as u16 * 8, random.pick(&[0, 3, 16])),
        3 => Fpage::interrupts(),
        4 => Fpage::WHOLE,
        5 => Fpage::memory((!0 << 47) + random.below(PAGES) * PAGE_SIZE, 12, rights),
        6 => Fpage::memory(1 << 47, 13, rights),
        // Where there is a table, and nothing else.
        7 | 8 => Fpage::memory(BASE + LEN + random.below(PAGES) * PAGE_SIZE, log2, rights),
        _ => Fpage::memory(BASE + random.below(PAGES) * PAGE_SIZE, log2, rights),
    };
    page.0 ^ if random.one_in(20) { 1 << random.below(64) } else { 0 }
}

fn item(random: &mut Random) -> Item {
    let hot_spot = if random.one_in(4) { random.next() } else { BASE + random.below(LEN) };
    let (page, window) = (flexpage(random), flexpage(random));
    let in_block = random.one_in(3);
    Item { page, hot_spot, window, in_block, has_room: !in_block || !random.one_in(4) }
}

/// Whether a flexpage is one, by the form that `abi` describes: space, size, alignment, range.
pub fn is_flexpage(page: u64) -> bool {
    let (space, log2) = (page >> 10 & 3, page >> 4 & 0x3f);
    // Bits of an address, or of a number; and the smallest size.
    let (bits, least, shift) = [(47, 12, 0), (16, 0, 12), (8, 0, 12), (18, 0, 12)][space as usize];
    let first = (page & !0xfff) >> shift;
    (least..=bits).contains(&log2) && first >> bits == 0 && first & ((1 << log2) - 1) == 0
}

/// Where an item arrives, if there is a place for it: in the window, by the description. Then also where it begins at the sender's.
fn arrival(item: &Item) -> Option<(u64, u64)> {
    let (page, window) = (item.page, item.window);
    let (space, log2, room) = (page >> 10 & 3, page >> 4 & 0x3f, window >> 4 & 0x3f);
    if window == 0 || window >> 10 & 3 != space {
        return None;
    }
    // The smaller of the two whole. Of memory and identifiers the hot spot says where in the larger; a port or line is itself.
    let small = log2.min(room);
    let shift = if space == 0 { 0 } else { 12 };
    let (first, base) = (page >> 12 << 12 >> shift, window >> 12 << 12 >> shift);
    // Where in the larger one.
    let place = |large: u64| item.hot_spot >> small << small & ((1 << large) - 1);
    let (from, to) = match () {
        () if space == 1 || space == 2 => {
            let inner = if log2 <= room { first } else { base };
            let outer = first >> log2.max(room) == base >> log2.max(room);
            outer.then_some((inner, inner))?
        }
        () if log2 <= room => (first, base + place(room)),
        () => (first + place(log2), base),
    };
    Some((to << shift | space << 10 | small << 4 | page & Rights::RWX.0 as u64, from))
}

impl Pair {
    /// Sends an item, and compares what comes of it. True if it arrived.
    fn send_item(&self, item: &Item) -> bool {
        let (sender, receiver) = (self.sender, self.receiver);
        let valid = is_flexpage(item.page);
        let place = if valid && is_flexpage(item.window) { arrival(item) } else { None };
        let arrival = place.filter(|_| item.has_room);
        let place = arrival.map(|(place, _)| place);
        if item.in_block && place.is_some_and(|place| place >> 10 & 3 == 0 && place >> 12 << 12 <= BASE) {
            // It may come over the block that says where it is to come.
            return false;
        }
        let mut w = [0; 11];
        let flag = if item.in_block {
            let room = Dope::room(!item.has_room as u64, 0, item.has_room as u64).0;
            let set = [receiver.uid().0, BASE, room, Timeout::NEVER.0 as u64];
            self.world.thread_control(thread_op::SET_BLOCK, set).expect("there is memory");
            self.write(sender, BASE, &[item.page, item.hot_spot]);
            self.write(receiver, BASE, &[item.window, 0]);
            self.wait(0, true);
            (w[0], w[1]) = (Dope::used(0, 0, 1).0, BASE);
            op::BLOCK
        } else {
            self.wait(item.window, true);
            (w[6], w[7]) = (item.page, item.hot_spot);
            op::ITEM
        };
        let waits = receiver.wait() == Wait::Open;
        let accepts = item.in_block || item.window == 0 || is_flexpage(item.window);
        assert_eq!(waits, accepts, "whether a window can be waited with");
        if !waits {
            return false;
        }
        // What a page of nothing is replaced by is nothing, so that the memory of both stays as it is.
        self.call(sender, (Call::Ipc as u32 | flag) as u64, receiver.uid().0, w);
        let expected = match (item.in_block, valid, place) {
            (_, _, Some(_)) => Ok(()),
            _ if !item.has_room => Err(Error::Overflow),
            (false, false, None) => Err(Error::BadArgument),
            _ => Err(Error::NoWindow),
        };
        assert_eq!(Pair::end(sender), expected);
        if let Some(place) = place {
            let found =
                if item.in_block { self.bytes(receiver).word(BASE) } else { Some(receiver.frame.w[6].get()) };
            assert_eq!(found, Some(place), "where it arrived");
            self.check_pages(Fpage(place), arrival.expect("it has a place").1);
        }
        if receiver.wait() == Wait::Open {
            self.abort(receiver);
        }
        place.is_some()
    }
}

/// From here on, a sender of items may only read its memory.
const READ_ONLY: u64 = BASE + LEN / 2;

impl Pair {
    /// Of one who sends items: a part of its memory is for reading.
    fn of_items() -> Pair {
        let pair = Pair::new();
        let part = Fpage::memory(0x100_0000 + READ_ONLY - BASE, (LEN / 2).ilog2(), Rights::W);
        pair.world.take_back(pair.world.sigma0, part);
        pair
    }

    /// The receiver has the pages of an item that has arrived, with the rights that are both the sender's and the item's.
    fn check_pages(&self, item: Fpage, from: u64) {
        if item.space() != Space::Memory {
            return;
        }
        let pages = (0..(1 << item.log2()) / PAGE_SIZE).take(2 * PAGES as usize).map(|i| i * PAGE_SIZE);
        for (source, target) in pages.map(|page| (from + page, item.base() + page)) {
            let is_there = (BASE..BASE + LEN).contains(&source) && target < USER_END;
            let had = if source < READ_ONLY { Rights::RW } else { Rights::R };
            let given = item.rights().and(had);
            if is_there && given != Rights::NONE {
                let physical = 0x100_0000 + source - BASE;
                let expected = Some((physical, given.or(Rights::R)));
                let found = sim::walk(&self.world.k.pool, self.receiver.task(), target);
                assert_eq!(found, expected, "what is at {target:x}, from {source:x}");
            }
        }
    }
}

#[test]
fn kernel_and_model_of_windows_agree() {
    let mut counts = [0; 2];
    programs("windows", amount(1500), 50, item, |program| {
        let mut pair = None;
        for item in program {
            let there = pair.take().unwrap_or_else(Pair::of_items);
            let arrived = there.send_item(item);
            counts[arrived as usize] += 1;
            there.world.k.check();
            // What has arrived may have come over the memory that blocks lie in.
            pair = Some(there).filter(|_| !arrived);
        }
    });
    let [refused, arrived] = counts;
    assert!(refused > 200 && arrived > 200, "{arrived} items arrived, {refused} did not");
}
