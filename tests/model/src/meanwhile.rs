//! What a transfer has looked at in one step holds in the next, whatever users write into their blocks, and register, meanwhile.
//!
//! An item is what it was when it was begun; a block stays where it was when the message was accepted. In each of these tests the other
//! side, or somebody else of its task, changes one of them between two steps.

use crate::world::World;
use abi::call::{IPC_LONG, IPC_TAKE, thread_op, timeouts};
use abi::{Call, Dope, Error, Fpage, PAGE_SIZE, Rights, Space, Timeout, Uid};
use kernel::mem::space::{self, Plan, Progress};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, Operation};
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
        let [sender, receiver] = [0, 1].map(|_| {
            let task = world.new_task(300);
            let thread = world.new_stand_in(task);
            world.thread_control(thread_op::SET_PAGER, [thread.uid().0, 0, 0, 0]).expect("it exists");
            thread
        });
        let pair = Pair { world, sender, receiver };
        pair.map(memory(0x100_0000, BASE, 18), sender);
        pair.map(memory(0x200_0000, BASE, 18), receiver);
        // So that the table of the window is there.
        pair.map(memory(0x300_0000, WINDOW + 0x10_0000, 12), receiver);
        pair
    }

    fn write(&self, thread: ThreadRef, address: u64, words: [u64; 2]) {
        arch::load_space(thread.hot.space.get());
        let task = thread.task();
        arch::write_words(&self.world.k, task, (task, address), words).expect("it has memory");
    }

    /// The sender sends a block; `meanwhile` happens once, after a step. True if it did.
    fn send(
        &self,
        dope: Dope,
        block: u64,
        is_moment: impl Fn(u64) -> bool,
        meanwhile: impl FnOnce(),
    ) -> bool {
        let mut w = [0; 11];
        (w[Frame::RBX], w[Frame::R15]) = (Uid::ANY.0, timeouts(Timeout::NEVER, Timeout::NEVER));
        self.begin(self.receiver, (Call::Ipc as u32 | IPC_TAKE) as u64, 0, w);
        let mut w = [0; 11];
        (w[0], w[1]) = (dope.0, block);
        let mut meanwhile = Some(meanwhile);
        self.begin(self.sender, (Call::Ipc as u32 | IPC_LONG) as u64, self.receiver.uid().0, w);
        while self.sender.operation.get() != Operation::None {
            let done = match self.sender.operation.get() {
                Operation::Transfer { at, .. } => at.done,
                _ => 0,
            };
            if is_moment(done)
                && let Some(meanwhile) = meanwhile.take()
            {
                meanwhile();
            }
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
        meanwhile.is_none()
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
        let (k, sigma0) = (&self.world.k, self.world.sigma0);
        let mut progress = Progress::START;
        while space::map(k, plan, sigma0, to.task(), &mut progress, &mut 16).is_err() {}
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
    let (item, window) = (BASE + 0x2_0000, Fpage::memory(WINDOW, 17, Rights::RWX));
    pair.describe((Fpage::memory(item, 17, Rights::RWX), 0), window);
    let is_moment = |done: u64| done >> 1 > 0x2000;
    let changed = pair.send(Dope::used(0, 0, 1), BASE, is_moment, || {
        pair.describe((Fpage::memory(item, 13, Rights::RWX), 0x1_e000), window);
    });
    assert!(changed);
    let is_there = |page: &u64| arch::walk(&pair.world.k.pool, pair.receiver.task(), *page).is_some();
    let pages = |range: std::ops::Range<u64>| range.map(|page| WINDOW + page * PAGE_SIZE);
    assert_eq!(pages(0..0x20).filter(is_there).count(), 0x20);
    assert_eq!(pages(0x20..0x100).filter(is_there).collect::<Vec<_>>(), [], "behind the window");
    pair.world.check();
}

/// An item of ports becomes one of memory when an odd number of ports is done; that many bytes are no place for a page. Whatever is
/// mapped can be taken away again.
#[test]
fn an_item_that_becomes_memory_is_aligned() {
    // Where the step ends depends on how many nodes the receiver's slab has left.
    for (filled, item, log2) in (0..64).map(|filled| (filled, BASE + 0x2_0000, 14)).chain(
        // The same out of a large page.
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
        let page = Fpage::memory(item, log2, Rights::RWX);
        let (mut at, mut status) = (0, 0);
        let mut flush = || {
            let (k, task) = (&pair.world.k, pair.sender.task());
            space::flush(k, task, page, false, &mut at, &mut status, &mut 32)
        };
        while flush().is_err() {}
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
                let elsewhere = pair.set_block(abi::USER_END - 4080, Dope::room(0, 255, 0));
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
