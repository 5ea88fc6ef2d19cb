//! What a transfer has looked at in one step holds in the next, whatever users write into their blocks, and register, meanwhile.
//!
//! An item is what it was when it was begun; a block stays where it was when the message was accepted. In each of these tests the other
//! side, or somebody else of its task, changes one of them between two steps.

use crate::random::{Random, amount, first_seed};
use crate::world::World;
use abi::call::{thread_op, timeouts};
use abi::op;
use abi::{Call, Dope, Error, Fpage, PAGE_SIZE, Rights, Space, StringPart, Timeout, USER_END, Uid};
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, Operation};
use kernel::processor;
use kernel::sim;
use kernel::{arch, syscall};

const BASE: u64 = 0x4000_0000;
const WINDOW: u64 = 0x5000_0000;
/// Of the sender's, a large page.
const LARGE: u64 = 0x6000_0000;

struct Pair {
    world: World,
    sender: ThreadRef,
    receiver: ThreadRef,
}

impl Pair {
    fn new() -> Pair {
        let world = World::new(1 << 12);
        let [sender, receiver] = world.new_strangers(300);
        let pair = Pair { world, sender, receiver };
        pair.map(memory(0x100_0000, BASE, 20), sender);
        pair.map(memory(0x200_0000, BASE, 20), receiver);
        // So that the table of the window is there.
        pair.map(memory(0x300_0000, WINDOW + WINDOWS, 12), receiver);
        pair
    }

    fn write(&self, thread: ThreadRef, address: u64, words: [u64; 2]) {
        arch::load_space(thread.hot.space.get());
        let task = thread.task();
        processor::copy::write_words(&self.world.k, task, (task, address), words).expect("it has memory");
    }

    /// The sender sends a block; `meanwhile` happens once, after a step. True if it did.
    fn send(
        &self,
        dope: Dope,
        block: u64,
        is_moment: impl Fn(u64) -> bool,
        meanwhile: impl FnOnce(),
    ) -> bool {
        let mut meanwhile = Some(meanwhile);
        self.send_in_steps(dope, block, |done| {
            if is_moment(done)
                && let Some(meanwhile) = meanwhile.take()
            {
                meanwhile();
            }
        });
        meanwhile.is_none()
    }

    /// The sender sends a block; `meanwhile` happens after each step, and gets how much of the part is done.
    fn send_in_steps(&self, dope: Dope, block: u64, mut meanwhile: impl FnMut(u64)) {
        let mut w = [0; 11];
        (w[Frame::RBX], w[Frame::R15]) = (Uid::ANY.0, timeouts(Timeout::NEVER, Timeout::NEVER));
        self.begin(self.receiver, (Call::Ipc as u32 | op::TAKES_BLOCK) as u64, 0, w);
        let mut w = [0; 11];
        (w[0], w[1]) = (dope.0, block);
        self.begin(self.sender, (Call::Ipc as u32 | op::BLOCK) as u64, self.receiver.uid().0, w);
        while self.sender.operation.get() != Operation::None {
            let done = match self.sender.operation.get() {
                Operation::Transfer { at, .. } => at.done,
                _ => 0,
            };
            meanwhile(done);
            arch::load_space(self.sender.hot.space.get());
            self.world.acting(self.sender, || {
                let _ = syscall::continue_operation(&self.world.k, self.sender);
            });
        }
        arch::load_space(self.world.root.hot.space.get());
        // Who would run now never does.
        for thread in [self.sender, self.receiver].into_iter().filter(|thread| thread.is_ready()) {
            self.world.k.unqueue_thread(thread);
            thread.state.set(kernel::object::thread::State::Inactive);
        }
    }

    fn begin(&self, thread: ThreadRef, rax: u64, rdx: u64, w: [u64; 11]) {
        thread.frame.rax.set(rax);
        thread.frame.rdx.set(rdx);
        thread.frame.w.iter().zip(w).for_each(|(register, word)| register.set(word));
        arch::load_space(thread.hot.space.get());
        self.world.acting(thread, || {
            let _ = crate::world::system_call(&self.world.k, thread);
        });
    }

    /// Registers a block for the receiver.
    fn set_block(&self, address: u64, room: Dope) -> Result<(), u64> {
        let set = [self.receiver.uid().0, address, room.0, Timeout::NEVER.0 as u64];
        self.world.thread_control(thread_op::SET_BLOCK, set).map(drop)
    }

    /// A block at the beginning of the memory that both have.
    fn new_with(room: Dope) -> Pair {
        let pair = Pair::new();
        pair.set_block(BASE, room).expect("a block");
        pair
    }

    fn map(&self, plan: Plan, to: ThreadRef) {
        self.world.give(plan, to.task());
    }

    /// Takes from everybody what the sender gave of a page.
    fn take_back(&self, page: Fpage) {
        self.world.take_back(self.sender.task(), page);
    }

    /// Descriptors of the only item, at the beginning of both blocks.
    fn describe(&self, item: (Fpage, u64), window: Fpage) {
        self.write(self.sender, BASE, [item.0.0, item.1]);
        self.write(self.receiver, BASE, [window.0, 0]);
    }
}

const fn memory(from: u64, to: u64, log2: u32) -> Plan {
    Plan { space: Space::Memory, from, to, log2, rights: Rights::RW }
}

/// A smaller item takes the place of one that is under way: what is done of that does not count for it.
#[test]
fn an_item_that_shrinks_stays_in_the_window() {
    let pair = Pair::new_with(Dope::room(0, 0, 1));
    let (item, window) = (BASE + 0x8_0000, Fpage::memory(WINDOW, 19, Rights::RWX));
    pair.describe((Fpage::memory(item, 19, Rights::RWX), 0), window);
    let is_moment = |done: u64| done >> 1 > 0x2000;
    let changed = pair.send(Dope::used(0, 0, 1), BASE, is_moment, || {
        pair.describe((Fpage::memory(item, 13, Rights::RWX), 0x7_e000), window);
    });
    assert!(changed);
    let is_there = |page: &u64| sim::walk(&pair.world.k.pool, pair.receiver.task(), *page).is_some();
    let pages = |range: std::ops::Range<u64>| range.map(|page| WINDOW + page * PAGE_SIZE);
    assert_eq!(pages(0..0x80).filter(is_there).count(), 0x80);
    assert_eq!(pages(0x80..0x100).filter(is_there).collect::<Vec<_>>(), [], "behind the window");
    pair.world.check();
}

/// An item of ports becomes one of memory when an odd number of ports is done; that many bytes are no place for a page. Whatever is
/// mapped can be taken away again.
#[test]
fn an_item_that_becomes_memory_is_aligned() {
    // Where the step ends depends on how many nodes the receiver's slab has left.
    for (filled, item, log2) in (0..64).map(|filled| (filled, BASE + 0x2_0000, 14)).chain(
        // Out of a large page.
        (0..8).map(|filled| (filled, LARGE, 21)),
    ) {
        let pair = Pair::new_with(Dope::room(0, 0, 1));
        let ports = Plan { space: Space::Port, ..memory(0, 0, 9) };
        pair.map(ports, pair.sender);
        pair.map(memory(0x400_0000, LARGE, 21), pair.sender);
        for page in 0..filled {
            let to = WINDOW + 0x11_0000 + page * PAGE_SIZE;
            pair.map(memory(0x300_0000, to, 12), pair.receiver);
        }
        pair.describe((Fpage::ports(0, 9), 0), Fpage::ports(0, 9));
        let is_odd = |done: u64| done >> 1 & 1 != 0;
        pair.send(Dope::used(0, 0, 1), BASE, is_odd, || {
            let page = |address| Fpage::memory(address, 14, Rights::RWX);
            pair.describe((page(item), 0), page(WINDOW));
        });
        pair.world.check();
        pair.take_back(Fpage::memory(item, log2, Rights::RWX));
        pair.world.check();
    }
}

/// The receiver's block cannot be registered anew, at the end of the user half, where its descriptors would be in the kernel half.
#[test]
fn a_block_stays_where_the_message_was_accepted() {
    for words in [1022, 1023, 1024, 2047, 4095] {
        let (room, used) = (Dope::room(4095, 1, 0), Dope::used(words, 1, 0));
        let pair = Pair::new_with(room);
        let string = |thread, offset, sizes| pair.write(thread, BASE + offset, [BASE + 0x1_0000, sizes]);
        string(pair.sender, used.strings_offset(), 120 << 10);
        string(pair.receiver, room.with_used(used).strings_offset(), (120 << 10) << 32);
        let changed = pair.send(
            used,
            BASE,
            |_| true,
            || {
                let elsewhere = pair.set_block(USER_END - 4080, Dope::room(0, 255, 0));
                assert_eq!(elsewhere, Err(Error::BadState as u64));
            },
        );
        assert!(changed);
        let got = [0, 1].map(|word| pair.receiver.frame.w[word].get());
        assert_eq!(got, [room.with_used(used).0, BASE], "where the message arrived");
        pair.world.check();
        // Afterwards it can be.
        assert_eq!(pair.set_block(BASE, Dope::NONE), Ok(()));
    }
}

/// How much of a receiver's memory windows may be in.
const WINDOWS: u64 = 1 << 20;

/// A message of random parts, and what users change after each of its steps.
struct Message {
    random: Random,
    used: Dope,
    /// Windows of memory that were in the receiver's block at any time.
    windows: Vec<Fpage>,
}

impl Message {
    fn new(pair: &Pair, mut random: Random) -> Message {
        pair.map(Plan { space: Space::Port, ..memory(0, 0, 9) }, pair.sender);
        pair.map(memory(0x400_0000, LARGE, 21), pair.sender);
        // Where a step ends depends on how many nodes the receiver's slab has left.
        for page in 0..random.below(64) {
            pair.map(memory(0x300_0000, WINDOW + WINDOWS + (1 + page) * PAGE_SIZE, 12), pair.receiver);
        }
        let (words, strings) = (random.pick(&[0, 1, 600, 1100]), random.below(3));
        let used = Dope::used(words, strings, random.below(4));
        Message { random, used, windows: Vec::new() }
    }

    /// Writes a string to the sender's block, the receiver's, or both.
    fn write_string(&mut self, pair: &Pair, number: u64, both: bool) {
        let address = BASE + 0x1_0000 + self.random.below(16) * PAGE_SIZE;
        let len = self.random.pick(&[0, 1, 5000, 100_000, 200_000]) as u32;
        let part = StringPart { address, len, capacity: len + 4096 };
        let words = [part.address, part.sizes()];
        self.write(pair, self.used.strings_offset() + 16 * number, [words, words], both);
    }

    fn write_item(&mut self, pair: &Pair, number: u64, both: bool) {
        let random = &mut self.random;
        let ports = Fpage::ports(random.pick(&[0, 0, 64]), random.pick(&[9, 9, 6]));
        let from = random.pick(&[BASE + 0x2_0000, LARGE]);
        let memory = Fpage::memory(from, random.pick(&[12, 13, 16, 17, 17]), Rights::RWX);
        let at = WINDOW + random.below(8) * 0x2_0000;
        let window = Fpage::memory(at, random.pick(&[12, 14, 17, 17]), Rights::RWX);
        let is_port = random.one_in(3);
        let pages = if is_port { [ports, ports] } else { [memory, window] };
        let hot_spot = random.below(64) * PAGE_SIZE;
        self.windows.extend((!is_port).then_some(window));
        self.write(pair, self.used.items_offset() + 16 * number, pages.map(|page| [page.0, hot_spot]), both);
    }

    fn write(&mut self, pair: &Pair, offset: u64, [sent, taken]: [[u64; 2]; 2], both: bool) {
        if both || self.random.one_in(2) {
            pair.write(pair.sender, BASE + offset, sent);
        }
        if both || self.random.one_in(2) {
            let room = pair.receiver.block.room().with_used(self.used);
            let is_item = offset >= self.used.items_offset();
            let [mine, theirs] = [self.used, room]
                .map(|dope| if is_item { dope.items_offset() } else { dope.strings_offset() });
            pair.write(pair.receiver, BASE + offset - mine + theirs, taken);
        }
    }

    /// Somebody changes something.
    fn change(&mut self, pair: &Pair) {
        let (strings, items) = (self.used.strings(), self.used.items());
        match self.random.below(4) {
            0 if strings != 0 => {
                let number = self.random.below(strings);
                self.write_string(pair, number, false);
            }
            1 | 2 if items != 0 => {
                let (number, both) = (self.random.below(items), self.random.one_in(2));
                self.write_item(pair, number, both);
            }
            _ => {
                let at = self.random.pick(&[BASE, BASE + 0x8000, USER_END - 4080]);
                let room = self.random.pick(&[Dope::room(0, 255, 0), Dope::room(1200, 2, 3)]);
                // Mostly refused.
                let _ = pair.set_block(at, room);
            }
        }
    }

    fn describe(&mut self, pair: &Pair) {
        (0..self.used.strings()).for_each(|number| self.write_string(pair, number, true));
        (0..self.used.items()).for_each(|number| self.write_item(pair, number, true));
    }
}

/// Messages whose blocks are written to, and registered anew, while they are under way: whatever arrives is in some window that
/// was there, every invariant holds, and all can be taken away again.
#[test]
fn nothing_that_changes_meanwhile_does_harm() {
    for seed in first_seed()..first_seed() + amount(4000) as u64 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let pair = Pair::new_with(Dope::room(1200, 2, 3));
        let mut message = Message::new(&pair, Random::new(random.next()));
        message.describe(&pair);
        pair.send_in_steps(message.used, BASE, |_| {
            if random.one_in(2) {
                message.change(&pair);
            }
            pair.world.check();
        });
        let is_there = |page: &u64| sim::walk(&pair.world.k.pool, pair.receiver.task(), *page).is_some();
        let in_window =
            |page: u64, window: &Fpage| (window.base()..window.base() + (1 << window.log2())).contains(&page);
        let pages = (WINDOW - WINDOWS..WINDOW + WINDOWS).step_by(PAGE_SIZE as usize).filter(is_there);
        for page in pages {
            assert!(message.windows.iter().any(|window| in_window(page, window)), "a page at {page:x}");
        }
        pair.take_back(Fpage::memory(BASE + 0x2_0000, 17, Rights::RWX));
        pair.take_back(Fpage::memory(LARGE, 21, Rights::RWX));
        pair.world.check();
    }
}
