//! Map, grant and flush: what arrives where, with which rights, and how it is taken back.

use crate::kit::{Agent, Child, Frame, Outcome, WORDS, fails, image, note};
use crate::{check, check_eq};
use sys::abi::call::{Call, vector};
use sys::abi::{INFO_PAGE, PAGE_SIZE, USER_END};
use sys::{Error, Fpage, Kind, Rights, Timeout, Touched, Uid, thread_state};

/// Where children get pages: an address that nothing else uses, at the start of a table of its own.
pub const WINDOW: u64 = 0x80_0000_0000;

/// Memory of this program that is only ever used as pages.
/// The part in use is aligned to its size; asking the linker for that would fill the file up instead.
#[repr(C, align(4096))]
struct Pages([[u64; 512]; 2 * PAGE_COUNT]);

const PAGE_COUNT: usize = 1024;

static mut PAGES: Pages = Pages([[0; 512]; 2 * PAGE_COUNT]);

/// Address of a page.
pub fn page(index: usize) -> u64 {
    let size = PAGE_COUNT as u64 * PAGE_SIZE;
    (&raw const PAGES as u64).next_multiple_of(size) + index as u64 * PAGE_SIZE
}

/// Writes the first word of a page, which also makes sure that the page is there.
fn fill(index: usize, value: u64) -> u64 {
    // SAFETY: the pages are words without meaning, and belong to the running test.
    unsafe { (page(index) as *mut u64).write_volatile(value) };
    page(index)
}

pub fn fill_all(indices: impl IntoIterator<Item = usize>, first: u64) {
    for index in indices {
        fill(index, first + index as u64);
    }
}

fn read(index: usize) -> u64 {
    // SAFETY: as above.
    unsafe { (page(index) as *const u64).read_volatile() }
}

fn one(index: usize, rights: Rights) -> Fpage {
    Fpage::memory(page(index), 12, rights)
}

const NOTHING: Rights = Rights::NONE;
const WINDOW_PAGE: Fpage = Fpage::memory(WINDOW, 12, Rights::RWX);

/// Takes all test pages back from everyone.
fn flush_all() -> Outcome {
    note(Call::Flush, sys::flush(Fpage::memory(page(0), 22, Rights::RWX)))?;
    Ok(())
}

pub fn mapped_page_is_shared() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 0x1234);
    let got = agent.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    check_eq!(Fpage(got.r13), WINDOW_PAGE.with_rights(Rights::RW));
    check_eq!(got.r14, WINDOW);
    check_eq!(agent.peek(WINDOW)?, Some(0x1234));
    check!(agent.poke(WINDOW, 0x5678)?);
    check_eq!(read(0), 0x5678);
    fill(0, 0x9abc);
    check_eq!(agent.peek(WINDOW)?, Some(0x9abc));
    check_eq!(agent.peek(WINDOW + 0x1000)?, None);
    flush_all()?;
    check_eq!(agent.peek(WINDOW)?, None);
    check_eq!(read(0), 0x9abc);
    Ok(())
}

pub fn received_item_is_announced() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 1);
    let got = agent.take((one(0, Rights::R), WINDOW), Fpage::WHOLE)?;
    check!(got.rax as u32 & sys::abi::call::NO_ITEM == 0);
    check!(got.rax as u32 & sys::abi::call::ITEM_WHOLE != 0);
    // And a message without an item is not.
    agent.block(Frame::receive(Uid::ANY, Timeout::NEVER).window(Fpage::WHOLE))?;
    sys::send(agent.uid, 0, [0x77; 8], Timeout::ZERO)?;
    let got = agent.wait()?;
    check!(got.rax as u32 & sys::abi::call::NO_ITEM != 0);
    check_eq!((got.r13, got.r14), (0x77, 0x77));
    flush_all()
}

pub fn rights_only_shrink() -> Outcome {
    let (one_child, two_child) = (Child::new()?, Child::new()?);
    let (mut near, mut far) = (one_child.agent()?, two_child.agent()?);
    fill(0, 42);
    let got = near.take((one(0, Rights::R), WINDOW), Fpage::WHOLE)?;
    check_eq!(Fpage(got.r13).rights(), Rights::R);
    check_eq!(near.peek(WINDOW)?, Some(42));
    check!(!near.poke(WINDOW, 1)?, "a read-only page was written");
    check!(!near.execute(WINDOW)?, "a page without that right was executed");
    check_eq!(read(0), 42);
    // What one does not have one cannot give.
    far.block(Frame::receive(near.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
    let send = Frame::send(far.uid, Timeout::ZERO).item(WINDOW_PAGE.with_rights(Rights::RWX), WINDOW);
    check_eq!(near.run(send)?.rax, 0);
    check_eq!(far.wait()?.kind(), Some(Kind::Reply));
    check_eq!(far.peek(WINDOW)?, Some(42));
    check!(!far.poke(WINDOW, 1)?, "a right came from nowhere");
    check!(!far.execute(WINDOW)?);
    flush_all()
}

/// The suite's own pager, asked to make its code writable, refuses, and lives.
pub fn code_is_nobodys_to_write() -> Outcome {
    unsafe extern "C" {
        fn suite_store();
    }
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let (code, _) = image();
    check_eq!(agent.attempt(suite_store, code, 0)?.vector(), Some(vector::UNRESOLVED_FAULT));
    check!(agent.peek(code)?.is_some() && !agent.poke(code, 0)?);
    Ok(())
}

pub fn executable_pages_execute() -> Outcome {
    unsafe extern "C" {
        fn suite_page();
    }
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let code = suite_page as *const () as usize as u64;
    // SAFETY: reading the program's own code.
    unsafe { (code as *const u8).read_volatile() };
    agent.take((Fpage::memory(code, 12, Rights::RX), WINDOW), Fpage::WHOLE)?;
    check!(agent.execute(WINDOW)?);
    check!(!agent.poke(WINDOW, 0)?, "code was written");
    agent.take((Fpage::memory(code, 12, Rights::R), WINDOW + 0x1000), Fpage::WHOLE)?;
    check!(!agent.execute(WINDOW + 0x1000)?, "a page without that right was executed");
    sys::flush(Fpage::memory(code, 12, Rights::RWX))?;
    Ok(())
}

pub fn hot_spot_in_a_larger_window() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(5, 55);
    // The window has 16 pages; the hot spot chooses one of them, by itself or by any address congruent to it.
    let window = Fpage::memory(WINDOW, 16, Rights::RWX);
    for (hot_spot, place) in [(0x3000, 3), (WINDOW + 0x9000, 9), (0x1_2345_f000, 15), (0x7abc, 7)] {
        let got = agent.take((one(5, Rights::RW), hot_spot), window)?;
        check_eq!(Fpage(got.r13).base(), WINDOW + place * 0x1000);
        check_eq!(agent.peek(WINDOW + place * 0x1000)?, Some(55));
    }
    check_eq!(agent.peek(WINDOW + 0x1000)?, None);
    flush_all()
}

pub fn hot_spot_in_a_larger_flexpage() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill_all(16..32, 100);
    let source = Fpage::memory(page(16), 16, Rights::RW);
    // The window has one page, then four; the hot spot chooses which part of the source goes there.
    for (hot_spot, log2, first) in [(0x6000, 12, 22), (page(16) + 0xd000, 12, 29), (0x5000, 14, 20)] {
        let got = agent.take((source, hot_spot), Fpage::memory(WINDOW, log2, Rights::RWX))?;
        check_eq!((Fpage(got.r13).base(), Fpage(got.r13).log2()), (WINDOW, log2));
        check_eq!(agent.peek(WINDOW)?, Some(100 + first));
        flush_all()?;
    }
    Ok(())
}

pub fn equal_sizes_need_no_hot_spot() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill_all(0..4, 200);
    let item = (Fpage::memory(page(0), 14, Rights::RW), 0x3000);
    agent.take(item, Fpage::memory(WINDOW, 14, Rights::RWX))?;
    for index in 0..4 {
        check_eq!(agent.peek(WINDOW + index * 0x1000)?, Some(200 + index));
    }
    flush_all()
}

pub fn no_window_no_item() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 1);
    let item = (one(0, Rights::R), WINDOW);
    for frame in [
        Frame::receive(Uid::ANY, Timeout::NEVER),
        Frame::reply_wait(Uid::NIL, 0, [0; 11]),
        Frame::receive(Uid::ANY, Timeout::NEVER).window(Fpage::ports(0, 16)),
        Frame::receive(Uid::ANY, Timeout::NEVER).window(Fpage::interrupt(0)),
    ] {
        agent.block(frame)?;
        fails(Call::Ipc, sys::send_item(agent.uid, 0, [0; 8], item, Timeout::ZERO), Error::NoWindow)?;
        check!(!agent.is_done(), "a refused message ended the receive");
        sys::send(agent.uid, 9, [0; 8], Timeout::ZERO)?;
        check_eq!(agent.wait()?.received_label(), 9);
    }
    // So it is when the sender comes first.
    agent.block(Frame::send(sys::myself(), Timeout::NEVER).item(one(0, Rights::R), WINDOW))?;
    fails(Call::Ipc, sys::receive(agent.uid, Timeout::from_us(1000)), Error::ReceiveTimeout)?;
    check_eq!(agent.wait()?.error(), Some(Error::NoWindow));
    Ok(())
}

pub fn flush_reaches_grandchildren() -> Outcome {
    let children = [Child::new()?, Child::new()?, Child::new()?];
    let mut agents = [children[0].agent()?, children[1].agent()?, children[2].agent()?];
    fill(3, 33);
    agents[0].take((one(3, Rights::RW), WINDOW), Fpage::WHOLE)?;
    for index in 1..3 {
        let target = agents[index].uid;
        let source = agents[index - 1].uid;
        agents[index].block(Frame::receive(source, Timeout::NEVER).window(Fpage::WHOLE))?;
        let place = WINDOW + 0x1000 * index as u64;
        let item = Fpage::memory(place - 0x1000, 12, Rights::RW);
        let got = agents[index - 1].run(Frame::send(target, Timeout::ZERO).item(item, place))?;
        check_eq!(got.rax, 0);
        agents[index].wait()?;
        check_eq!(agents[index].peek(place)?, Some(33));
    }
    // The middle one takes back what it gave, and keeps its own.
    let (rax, _) = agents[1]
        .control(Call::Flush as u32, [Fpage::memory(WINDOW + 0x1000, 12, Rights::RWX).0, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    check_eq!(agents[2].peek(WINDOW + 0x2000)?, None);
    check_eq!(agents[1].peek(WINDOW + 0x1000)?, Some(33));
    // The root of the tree takes everything.
    flush_all()?;
    check_eq!(agents[1].peek(WINDOW + 0x1000)?, None);
    check_eq!(agents[0].peek(WINDOW)?, None);
    check_eq!(read(3), 33);
    Ok(())
}

/// Number of neighbours whose nodes lie in a slab each.
const NEIGHBOURS: usize = 32;

/// Address of a neighbour.
fn place(index: usize) -> u64 {
    WINDOW + index as u64 * PAGE_SIZE
}

/// The flexpage with all neighbours.
fn neighbours(rights: Rights) -> Fpage {
    Fpage::memory(WINDOW, 12 + NEIGHBOURS.ilog2(), rights)
}

/// Hands pages from this number on to a task so that the nodes of the neighbours lie in a slab of it each. `hand_on` is given the
/// pages of this task and the address that they are to get.
fn fill_slabs(first: usize, mut hand_on: impl FnMut(Fpage, u64) -> Outcome) -> Outcome {
    // As many others as fill a slab, mapped between each two neighbours: first page and size of each item.
    const OTHERS: [(usize, u32); 5] = [(64, 17), (96, 16), (112, 15), (120, 14), (124, 13)];
    for index in 0..NEIGHBOURS {
        hand_on(one(first + index, Rights::RW), place(index))?;
        let far = WINDOW + (1 << 30) + ((index as u64) << 21);
        for (first, log2) in OTHERS {
            let to = far + (first - 64) as u64 * PAGE_SIZE;
            hand_on(Fpage::memory(page(first), log2, Rights::RW), to)?;
        }
    }
    Ok(())
}

/// Neighbours whose nodes lie in a slab each, full or alone in it, at the task that flushes and at two that have the pages from it: one
/// flush has to settle a slab for each node. The harness watches how long a step of it has interrupts off.
pub fn flush_of_a_slab_for_each_page() -> Outcome {
    fill_all((0..NEIGHBOURS).chain(64..126), 7);
    for (alone, own) in [(false, 0), (true, 0), (true, sys::abi::call::FLUSH_SELF)] {
        let children = [Child::with_quota(80)?, Child::with_quota(80)?, Child::with_quota(80)?];
        let mut middle = children[0].agent()?;
        let mut takers = [children[1].agent()?, children[2].agent()?];
        fill_slabs(0, |pages, to| middle.take((pages, to), Fpage::WHOLE).map(|_| ()))?;
        for taker in &mut takers {
            fill_slabs(0, |pages, to| {
                let item = Fpage::memory(to, pages.log2(), Rights::RW);
                middle.hand_on((item, to), taker)
            })?;
        }
        if alone {
            sys::flush(Fpage::memory(page(64), 18, Rights::RWX))?;
        }
        check_eq!(middle.control(Call::Flush as u32, [neighbours(Rights::RWX).0, own, 0, 0, 0, 0])?.0, 0);
        for index in [0, 1, NEIGHBOURS / 2, NEIGHBOURS - 1] {
            for taker in &mut takers {
                check_eq!(taker.peek(place(index))?, None);
            }
            check_eq!(middle.peek(place(index))?.is_some(), own == 0);
        }
        flush_all()?;
    }
    Ok(())
}

/// Neighbours, in a slab each or all in one, go in one item to a task that has other pages at some of their places: the run of simple
/// pages ends at each of those, and the next begins behind it. The harness watches how long a step of it has interrupts off.
pub fn runs_that_end_at_once() -> Outcome {
    fill_all(0..126, 7);
    for apart in [false, true] {
        for gap in [1, 2, 3, NEIGHBOURS] {
            for rights in [Rights::RW, Rights::RW.or(Rights::GRANT)] {
                let children = [Child::with_quota(80)?, Child::with_quota(80)?];
                let (mut giver, mut taker) = (children[0].agent()?, children[1].agent()?);
                if apart {
                    fill_slabs(0, |pages, to| giver.take((pages, to), Fpage::WHOLE).map(|_| ()))?;
                } else {
                    let all = Fpage::memory(page(0), 12 + NEIGHBOURS.ilog2(), Rights::RW);
                    giver.take((all, WINDOW), Fpage::WHOLE)?;
                }
                fill_slabs(NEIGHBOURS, |pages, to| taker.take((pages, to), Fpage::WHOLE).map(|_| ()))?;
                for index in (0..NEIGHBOURS).filter(|index| (index + 1) % gap != 0) {
                    sys::flush(one(NEIGHBOURS + index, Rights::RWX))?;
                }
                giver.hand_on((neighbours(rights), WINDOW), &mut taker)?;
                for index in 0..NEIGHBOURS {
                    check_eq!(taker.peek(place(index))?, Some(7 + index as u64));
                    check_eq!(giver.peek(place(index))?.is_some(), !rights.has(Rights::GRANT));
                }
                flush_all()?;
            }
        }
    }
    Ok(())
}

pub fn flush_of_one_right() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 7);
    agent.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    check!(agent.poke(WINDOW, 8)?);
    sys::flush(one(0, Rights::W))?;
    check!(!agent.poke(WINDOW, 9)?, "written after the right was taken");
    check_eq!(agent.peek(WINDOW)?, Some(8));
    // This task kept the right.
    fill(0, 10);
    check_eq!(agent.peek(WINDOW)?, Some(10));
    // Taking nothing takes nothing.
    sys::flush(one(0, NOTHING))?;
    check_eq!(agent.peek(WINDOW)?, Some(10));
    flush_all()
}

/// Pages that came in items of many sizes, and went on in others, are flushed in flexpages of others again: one right, all
/// rights, from others and from oneself.
pub fn flush_of_mixed_sizes() -> Outcome {
    let (near, far) = (Child::with_quota(64)?, Child::with_quota(64)?);
    let (mut agent, mut other) = (near.agent()?, far.agent()?);
    let picks = [1, 4, 7, 16, 31, 512, 700, 1023];
    fill_all(picks, 5000);
    let place = |index: usize| WINDOW + index as u64 * PAGE_SIZE;
    let part = |first: usize, log2, rights| Fpage::memory(place(first), log2, rights);
    for (first, log2) in [(1, 12), (4, 14), (16, 16), (512, 21)] {
        agent.take((Fpage::memory(page(first), log2, Rights::RW), place(first)), Fpage::WHOLE)?;
    }
    for (first, log2) in [(0, 15), (16, 15), (24, 15), (512, 20), (768, 20)] {
        other.block(Frame::receive(agent.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
        let item = part(first, log2, Rights::RW);
        check_eq!(agent.run(Frame::send(other.uid, Timeout::ZERO).item(item, place(first)))?.rax, 0);
        other.wait()?;
    }
    let flush = |agent: &mut crate::kit::Agent, fpage: Fpage, own| -> Outcome {
        check_eq!(agent.control(Call::Flush as u32, [fpage.0, own, 0, 0, 0, 0])?.0, 0);
        Ok(())
    };
    let own = sys::abi::call::FLUSH_SELF;
    // The right to write, from others, in a part that cuts through what went on.
    flush(&mut agent, part(0, 17, Rights::W), 0)?;
    for index in picks {
        check_eq!(other.peek(place(index))?, Some(5000 + index as u64));
        check_eq!(other.poke(place(index) + 8, 1)?, index >= 32);
        check!(agent.poke(place(index) + 8, 2)?);
    }
    // That right from oneself and others, in all: everybody can still read.
    flush(&mut agent, Fpage::memory(WINDOW, 30, Rights::W), own)?;
    for index in picks {
        check_eq!(other.peek(place(index) + 8)?, Some(2));
        check!(!other.poke(place(index), 3)? && !agent.poke(place(index), 3)?);
    }
    // Everything from others in a part, then in all and from oneself.
    flush(&mut agent, part(512, 21, Rights::RWX), 0)?;
    for index in picks {
        check_eq!(other.peek(place(index))?.is_some(), index < 512);
        check_eq!(agent.peek(place(index))?, Some(5000 + index as u64));
    }
    flush(&mut agent, Fpage::memory(WINDOW, 39, Rights::RWX), own)?;
    for index in picks {
        check_eq!((agent.peek(place(index))?, other.peek(place(index))?), (None, None));
        check_eq!(read(index), 5000 + index as u64);
    }
    flush_all()
}

pub fn flush_of_oneself() -> Outcome {
    let (child, other) = (Child::new()?, Child::new()?);
    let mut agent = child.agent()?;
    let mut third = other.agent()?;
    fill(0, 7);
    agent.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    third.block(Frame::receive(agent.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
    let frame = Frame::send(third.uid, Timeout::ZERO).item(WINDOW_PAGE.with_rights(Rights::RW), WINDOW);
    check_eq!(agent.run(frame)?.rax, 0);
    third.wait()?;
    let (rax, _) =
        agent.control(Call::Flush as u32, [WINDOW_PAGE.0, sys::abi::call::FLUSH_SELF, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    check_eq!(agent.peek(WINDOW)?, None);
    check_eq!(third.peek(WINDOW)?, None);
    check_eq!(read(0), 7);
    Ok(())
}

pub fn flush_reports_access() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 7);
    agent.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    sys::flush(one(0, NOTHING))?;
    check_eq!(sys::flush(one(0, NOTHING))?, Touched { accessed: false, written: false });
    check_eq!(agent.peek(WINDOW)?, Some(7));
    check_eq!(sys::flush(one(0, NOTHING))?, Touched { accessed: true, written: false });
    check_eq!(sys::flush(one(0, NOTHING))?, Touched { accessed: false, written: false });
    check!(agent.poke(WINDOW, 8)?);
    check_eq!(sys::flush(one(0, NOTHING))?, Touched { accessed: true, written: true });
    // The last chance: what was written shows in the flush that takes the page.
    check!(agent.poke(WINDOW, 9)?);
    check_eq!(sys::flush(one(0, Rights::RWX))?, Touched { accessed: true, written: true });
    check_eq!(sys::flush(one(0, Rights::RWX))?, Touched { accessed: false, written: false });
    Ok(())
}

pub fn grant_hands_over() -> Outcome {
    let (one_child, two_child) = (Child::new()?, Child::new()?);
    let (mut near, mut far) = (one_child.agent()?, two_child.agent()?);
    fill(0, 77);
    near.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    let place = WINDOW + 0x5000;
    far.block(Frame::receive(near.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
    let grant = WINDOW_PAGE.with_rights(Rights::RW.or(Rights::GRANT));
    check_eq!(near.run(Frame::send(far.uid, Timeout::ZERO).item(grant, place))?.rax, 0);
    far.wait()?;
    check_eq!(near.peek(WINDOW)?, None);
    check_eq!(far.peek(place)?, Some(77));
    check!(far.poke(place, 78)?);
    // The giver has no authority left; the one above it has.
    let (rax, _) = near.control(Call::Flush as u32, [WINDOW_PAGE.0, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    check_eq!(far.peek(place)?, Some(78));
    flush_all()?;
    check_eq!(far.peek(place)?, None);
    Ok(())
}

/// A page that is granted after it was mapped on: the children of the mapping stay.
pub fn grant_keeps_the_tree() -> Outcome {
    let children = [Child::new()?, Child::new()?, Child::new()?];
    let mut agents = [children[0].agent()?, children[1].agent()?, children[2].agent()?];
    fill(0, 5);
    agents[0].take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    for (to, rights) in [(1, Rights::R), (2, Rights::RW.or(Rights::GRANT))] {
        let (from, target) = (agents[0].uid, agents[to].uid);
        agents[to].block(Frame::receive(from, Timeout::NEVER).window(Fpage::WHOLE))?;
        let frame = Frame::send(target, Timeout::ZERO).item(WINDOW_PAGE.with_rights(rights), WINDOW);
        check_eq!(agents[0].run(frame)?.rax, 0);
        agents[to].wait()?;
    }
    check_eq!(agents[0].peek(WINDOW)?, None);
    check_eq!(agents[1].peek(WINDOW)?, Some(5));
    check_eq!(agents[2].peek(WINDOW)?, Some(5));
    flush_all()?;
    check_eq!(agents[1].peek(WINDOW)?, None);
    check_eq!(agents[2].peek(WINDOW)?, None);
    Ok(())
}

/// One page at so many places of a child, most of them derived from others.
const COPIES_LOG2: u32 = 10;

fn copy_place(index: usize) -> u64 {
    WINDOW + index as u64 * PAGE_SIZE
}

/// A page that a child has and then maps to itself, twice as many each time.
fn copied_page(giver: &mut Agent, taker: &mut Agent) -> Outcome {
    giver.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    for log2 in 0..COPIES_LOG2 {
        taker.block(Frame::receive(giver.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
        let item = Fpage::memory(WINDOW, 12 + log2, Rights::RW);
        check_eq!(giver.run(Frame::send(taker.uid, Timeout::ZERO).item(item, copy_place(1 << log2)))?.rax, 0);
        taker.wait()?;
    }
    Ok(())
}

/// A right is taken from a page that was handed on a thousand times: by a flush, and by a grant of less than one has.
pub fn long_trees_lose_a_right() -> Outcome {
    let (child, other) = (Child::with_quota(128)?, Child::new()?);
    let (mut giver, mut taker, mut far) = (child.agent()?, child.agent()?, other.agent()?);
    let picks = [1, 2, 3, 511, 512, 777, 1023];
    fill(0, 6);
    copied_page(&mut giver, &mut taker)?;
    check!(picks.into_iter().all(|i| taker.poke(copy_place(i), i as u64).is_ok_and(|done| done)));
    let touched = note(Call::Flush, sys::flush(one(0, Rights::W)))?;
    check_eq!(touched, Touched { accessed: true, written: true });
    for index in picks {
        check!(!taker.poke(copy_place(index), 1)?, "written after the right was taken");
        check_eq!(taker.peek(copy_place(index))?, Some(1023));
    }
    flush_all()?;
    copied_page(&mut giver, &mut taker)?;
    far.block(Frame::receive(giver.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
    let item = WINDOW_PAGE.with_rights(Rights::R.or(Rights::GRANT));
    check_eq!(giver.run(Frame::send(far.uid, Timeout::ZERO).item(item, WINDOW))?.rax, 0);
    far.wait()?;
    check_eq!((far.peek(WINDOW)?, far.poke(WINDOW, 1)?), (Some(1023), false));
    check_eq!(giver.peek(WINDOW)?, None);
    for index in picks {
        check!(!taker.poke(copy_place(index), 1)?, "more rights than who gave them");
        check_eq!(taker.peek(copy_place(index))?, Some(1023));
    }
    flush_all()
}

/// Mapping over a page: the newcomer replaces what is there, and the old tree forgets it.
pub fn mapping_over_a_page() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(0, 1);
    fill(1, 2);
    agent.take((one(0, Rights::RW), WINDOW), Fpage::WHOLE)?;
    check_eq!(agent.peek(WINDOW)?, Some(1));
    agent.take((one(1, Rights::RW), WINDOW), Fpage::WHOLE)?;
    check_eq!(agent.peek(WINDOW)?, Some(2));
    sys::flush(one(0, Rights::RWX))?;
    check_eq!(agent.peek(WINDOW)?, Some(2));
    // This page again, with more rights and with fewer.
    agent.take((one(1, Rights::R), WINDOW), Fpage::WHOLE)?;
    check_eq!(agent.peek(WINDOW)?, Some(2));
    agent.take((one(1, Rights::RW), WINDOW), Fpage::WHOLE)?;
    check!(agent.poke(WINDOW, 3)?);
    sys::flush(one(1, Rights::RWX))?;
    check_eq!(agent.peek(WINDOW)?, None);
    Ok(())
}

pub fn bad_flexpages_are_refused() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let good = one(0, Rights::R);
    let bad = [
        (0x1000 | 13 << 4, "misaligned"),
        (0x1000 | 11 << 4 | 1, "smaller than a page"),
        (0x1000 | 1, "size 0"),
        (1 << 47 | 12 << 4 | 1, "kernel half"),
        (0xffff_8000_0000_0000 | 12 << 4 | 1, "kernel half"),
        (INFO_PAGE | 12 << 4 | 1, "information page"),
        (48 << 4 | 1, "larger than the user half"),
        (63 << 4 | 1, "as large as it gets"),
        (0x1000 | 3 << 10 | 12 << 4 | 1, "no such space"),
        (0x1_0000 << 12 | 1 << 10 | 1, "port out of range"),
        (1 << 10 | 17 << 4 | 1, "too many ports"),
        (256 << 12 | 2 << 10 | 1, "line out of range"),
        (2 << 10 | 9 << 4 | 1, "too many lines"),
        (3 << 12 | 1 << 10 | 1 << 4 | 1, "misaligned ports"),
    ];
    for (value, what) in bad {
        let fpage = Fpage(value);
        check!(!fpage.is_valid(), "{what}");
        fails(Call::Flush, sys::flush(fpage), Error::BadArgument)?;
        fails(Call::ThreadControl, sys::thread_set_window(agent.uid, fpage), Error::BadArgument)?;
        agent.block(Frame::receive(Uid::ANY, Timeout::NEVER).window(Fpage::WHOLE))?;
        fails(
            Call::Ipc,
            sys::send_item(agent.uid, 0, [0; 8], (fpage, 0), Timeout::ZERO),
            Error::BadArgument,
        )?;
        check!(!agent.is_done(), "{what}");
        sys::thread_abort(agent.uid)?;
        agent.wait()?;
        let got = agent.run(Frame::receive(Uid::ANY, Timeout::ZERO).window(fpage))?;
        check!(got.error() == Some(Error::BadArgument), "window {what}: {:?}", got.error());
    }
    for bits in [2, 1 << 12, 1 << 63] {
        let (rax, _) = agent.control(Call::Flush as u32, [good.0, bits, 0, 0, 0, 0])?;
        check_eq!(rax, Error::BadArgument as u64);
    }
    Ok(())
}

/// A range of many tables with few pages in it.
pub fn large_ranges() -> Outcome {
    let child = Child::with_quota(64)?;
    let mut agent = child.agent()?;
    let picks = [0, 1, 511, 512, 700, 1023];
    fill_all(picks, 1000);
    let all = Fpage::memory(page(0), 22, Rights::RW);
    let got = agent.take((all, WINDOW), Fpage::WHOLE)?;
    check_eq!((Fpage(got.r13).base(), Fpage(got.r13).log2()), (WINDOW, 22));
    for index in picks {
        check_eq!(agent.peek(WINDOW + index as u64 * 0x1000)?, Some(1000 + index as u64));
    }
    flush_all()?;
    for index in picks {
        check_eq!(agent.peek(WINDOW + index as u64 * 0x1000)?, None);
    }
    // A gigabyte, a terabyte and everything, of which this task has next to nothing.
    for log2 in [30, 40, 46] {
        sys::flush(Fpage::memory(0x4000_0000_0000, log2, Rights::RWX))?;
    }
    sys::flush(Fpage::WHOLE.with_rights(NOTHING))?;
    agent.take((Fpage::memory(0x2000_0000_0000, 40, Rights::RW), WINDOW), Fpage::WHOLE)?;
    Ok(())
}

/// The receiver pays for what it gets. If it cannot, it gets a part, and the sender knows nothing of it.
pub fn receiver_without_quota_gets_a_part() -> Outcome {
    let child = Child::with_quota(16)?;
    let mut agent = child.agent()?;
    agent.peek(0)?; // Brings in what the agent itself needs.
    fill_all(0..1024, 3000);
    let used = sys::task_info(child.0)?.used;
    sys::task_set_quota(child.0, used + 4)?;
    let mine = sys::task_info(sys::TaskId::NIL)?.used;
    agent.block(Frame::receive(sys::myself(), Timeout::NEVER).window(Fpage::WHOLE))?;
    let item = (Fpage::memory(page(0), 22, Rights::RW), WINDOW);
    sys::send_item(agent.uid, 0, [0; 8], item, Timeout::ZERO)?;
    let got = agent.wait()?;
    check_eq!(got.kind(), Some(Kind::Reply));
    check!(got.rax as u32 & sys::abi::call::NO_ITEM == 0);
    check!(got.rax as u32 & sys::abi::call::ITEM_WHOLE == 0, "nobody said that the item is short");
    let info = sys::task_info(child.0)?;
    check!(info.used <= info.quota, "{} of {} frames used", info.used, info.quota);
    check_eq!(sys::task_info(sys::TaskId::NIL)?.used, mine);
    // What arrived is right.
    let mut arrived = 0;
    for index in (0..1024).step_by(37) {
        if let Some(value) = agent.peek(WINDOW + index * 0x1000)? {
            check_eq!(value, 3000 + index);
            arrived += 1;
        }
    }
    check!(arrived < 28, "all of it arrived");
    flush_all()?;
    check_eq!(agent.peek(WINDOW)?, None);
    Ok(())
}

/// What a task does not have it cannot give, and nobody can be given the last page of the half.
pub fn nothing_comes_from_nothing() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let nowhere = 0x7000_0000_0000;
    agent.take((Fpage::memory(nowhere, 12, Rights::RWX), WINDOW), Fpage::WHOLE)?;
    check_eq!(agent.peek(WINDOW)?, None);
    fill(0, 1);
    agent.block(Frame::receive(sys::myself(), Timeout::NEVER).window(Fpage::WHOLE))?;
    // It is an error, or it arrives nowhere.
    if sys::send_item(agent.uid, 0, [0; 8], (one(0, Rights::R), USER_END), Timeout::ZERO).is_err() {
        sys::thread_abort(agent.uid)?;
    }
    agent.wait()?;
    check_eq!(agent.peek(USER_END)?, None);
    check_eq!(agent.peek(USER_END - 0x1000)?, None);
    flush_all()
}

/// A pager whose pages come from another pager.
pub fn pager_chain() -> Outcome {
    let (upper, lower) = (Child::new()?, Child::new()?);
    let mut middle = upper.agent()?;
    let mut faulter = lower.agent()?;
    // SAFETY: as in `fill`.
    unsafe { (page(9) as *mut u64).add(3).write_volatile(99) };
    faulter.peek(0)?;
    sys::thread_set_pager(faulter.uid, middle.uid, crate::kit::pager::uid())?;
    unsafe extern "C" {
        fn suite_load();
    }
    middle.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    let place = 0x90_0000_5000;
    faulter.start_attempt(suite_load, place + 8 * 3, 0);
    check!(faulter.settle()?);
    let got = middle.wait()?;
    check_eq!(got.kind(), Some(Kind::Fault));
    check_eq!(got.sender(), faulter.uid);
    let [address, ip, task, ..] = got.words();
    check_eq!(address & !7, place + 24);
    check_eq!(address & 7, Rights::R.0 as u64);
    check_eq!(ip, suite_load as *const () as usize as u64);
    check_eq!(task, lower.0.0);
    // The middle one has nothing itself: it gets a page from here first, then maps it on.
    middle.take((one(9, Rights::RW), WINDOW), Fpage::WHOLE)?;
    // An answer without an item makes the thread try again.
    let got = middle.run(Frame::reply_wait(faulter.uid, 0, [0; 11]))?;
    check_eq!((got.kind(), got.words()[0]), (Some(Kind::Fault), address));
    let answer = Frame::ipc(faulter.uid, Uid::ANY, Timeout::ZERO, Timeout::NEVER)
        .item(WINDOW_PAGE.with_rights(Rights::R), place);
    middle.block(answer)?;
    check_eq!(faulter.attempted()?, crate::kit::Attempted::Returned(99));
    sys::thread_abort(middle.uid)?;
    middle.wait()?;
    check_eq!(faulter.info()?.pager, middle.uid);
    flush_all()
}

/// A write to a read-only page and an execution of data are faults that say so.
pub fn faults_name_the_access() -> Outcome {
    let (upper, lower) = (Child::new()?, Child::new()?);
    let mut pager = upper.agent()?;
    let mut faulter = lower.agent()?;
    unsafe extern "C" {
        fn suite_store();
        fn suite_jump();
    }
    fill(0, 1);
    faulter.take((one(0, Rights::R), WINDOW), Fpage::WHOLE)?;
    faulter.peek(WINDOW)?;
    sys::thread_set_pager(faulter.uid, pager.uid, crate::kit::pager::uid())?;
    for (function, rights) in [(suite_store as crate::kit::Attempt, Rights::W), (suite_jump, Rights::X)] {
        let before = faulter.info()?.faults;
        pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
        faulter.start_attempt(function, WINDOW, 5);
        check!(faulter.settle()?);
        let got = pager.wait()?;
        check_eq!(got.kind(), Some(Kind::Fault));
        check_eq!(got.words()[0] & !7, WINDOW);
        check!(Rights(got.words()[0] as u8 & 7).has(rights), "access {:x}", got.words()[0] & 7);
        check_eq!(faulter.info()?.faults, before + 1);
        check_eq!(faulter.info()?.state, thread_state::FAULTING);
        // Without the pager it is an exception.
        sys::thread_set_pager(faulter.uid, Uid::NIL, crate::kit::pager::uid())?;
        pager.block(Frame::reply_wait(faulter.uid, 0, [0; 11]))?;
        check_eq!(faulter.attempted()?.vector(), Some(sys::abi::call::vector::UNRESOLVED_FAULT));
        sys::thread_abort(pager.uid)?;
        pager.wait()?;
        sys::thread_set_pager(faulter.uid, pager.uid, crate::kit::pager::uid())?;
    }
    flush_all()
}

/// The pager ends while a thread waits for it: the fault becomes an exception.
pub fn pager_ends() -> Outcome {
    let (upper, lower) = (Child::new()?, Child::new()?);
    let mut faulter = lower.agent()?;
    unsafe extern "C" {
        fn suite_load();
    }
    for phase in 0..3 {
        let mut pager = upper.agent()?;
        faulter.peek(0)?;
        if phase == 1 {
            pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
        }
        sys::thread_set_pager(faulter.uid, pager.uid, crate::kit::pager::uid())?;
        if phase == 2 {
            sys::thread_destroy(pager.uid)?;
        }
        faulter.start_attempt(suite_load, WINDOW, 0);
        faulter.settle()?;
        if phase != 2 {
            sys::thread_destroy(pager.uid)?;
        }
        check_eq!(faulter.attempted()?.vector(), Some(sys::abi::call::vector::UNRESOLVED_FAULT));
        sys::thread_set_pager(faulter.uid, crate::kit::pager::uid(), crate::kit::pager::uid())?;
    }
    Ok(())
}

/// Every page of this program that a child can have is one that this program has: none outside of it.
pub fn children_start_with_nothing() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let (start, _) = image();
    check_eq!(agent.peek(start - 0x1000)?, None);
    check_eq!(agent.peek(0)?, None);
    check_eq!(agent.peek(rt::layout::HEAP.start)?, None);
    check_eq!(agent.peek(USER_END - 0x1000)?, None);
    check!(agent.peek(INFO_PAGE)?.is_some(), "the information page is missing");
    check!(!agent.poke(INFO_PAGE, 0)?, "the information page was written");
    check_eq!(agent.peek(0xffff_8000_0000_0000)?, None);
    check_eq!(agent.peek(0xffff_ffff_8000_0000)?, None);
    check_eq!(agent.peek(0xffff_ffff_bfff_c000)?, None);
    check_eq!(agent.peek(0xffff_ffff_c000_0000)?, None);
    Ok(())
}

/// An item to somebody who calls: the answer of the general form carries it.
pub fn item_in_a_reply() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    fill(2, 22);
    let me = sys::myself();
    agent.block(Frame::ipc(me, me, Timeout::NEVER, Timeout::NEVER).window(Fpage::WHOLE))?;
    let got = sys::receive(agent.uid, Timeout::ZERO)?;
    check_eq!(got.words[..], WORDS[..8]);
    sys::send_item(agent.uid, 1, [0; 8], (one(2, Rights::R), WINDOW), Timeout::ZERO)?;
    let got = agent.wait()?;
    check_eq!(got.kind(), Some(Kind::Reply));
    check_eq!(agent.peek(WINDOW)?, Some(22));
    flush_all()
}
