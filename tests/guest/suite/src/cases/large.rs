//! Large pages: memory of 2 MiB that goes from task to task as one entry, in parts, and in parts that are split off.
//!
//! Whether a page is large shows in what it costs its owner: two frames at most where 512 small pages take eleven.

use super::map::WINDOW;
use crate::kit::{Agent, Child, Frame, Outcome};
use crate::{check, check_eq};
use rt::frames::{Lent, Supply, Upstream};
use rt::println;
use rt::sync::Mutex;
use sys::abi::PAGE_SIZE;
use sys::abi::call::{Call, FLUSH_SELF, ITEM_WHOLE};
use sys::{Error, Fpage, Rights, Timeout};

/// Bytes of a large page, and log2 of that.
pub const SIZE: u64 = 1 << LOG2;
const LOG2: u32 = 21;

/// Frames for a large page: two tables and a shadow on the way to it, and nodes.
const COST: u64 = 4;

/// Address of two large pages that belong to the suite.
pub fn memory() -> Outcome<u64> {
    static MEMORY: Mutex<Option<Lent>> = Mutex::new(None);
    let mut memory = MEMORY.lock();
    if memory.is_none() {
        *memory = Upstream(rt::home()).block(LOG2 + 1).map(|block| block.lend());
    }
    match &*memory {
        Some(lent) => Ok(lent.fpage().base()),
        None => Err(Error::NoMemory.into()),
    }
}

/// Its bytes from page `index` on, as words; whoever uses them knows that no agent does.
fn word(index: u64) -> Outcome<*mut u64> {
    Ok((memory()? + index * PAGE_SIZE) as *mut u64)
}

fn fill(index: u64, value: u64) -> Outcome {
    // SAFETY: the memory is words without meaning, and belongs to the running test.
    unsafe { word(index)?.write_volatile(value) };
    Ok(())
}

fn read(index: u64) -> Outcome<u64> {
    // SAFETY: as above.
    Ok(unsafe { word(index)?.read_volatile() })
}

fn mine(index: u64, log2: u32, rights: Rights) -> Outcome<Fpage> {
    Ok(Fpage::memory(memory()? + index * PAGE_SIZE, log2, rights))
}

fn place(index: u64) -> u64 {
    WINDOW + index * PAGE_SIZE
}

/// Pages of which the tests look at the first words.
const PICKS: [u64; 6] = [0, 1, 3, 255, 256, 511];

fn flush_all() -> Outcome {
    sys::flush(mine(0, LOG2 + 1, Rights::RWX)?)?;
    Ok(())
}

/// A child that has the first large page, with what it used before.
fn holder() -> Outcome<(Child, Agent, u64)> {
    for index in PICKS {
        fill(index, 7000 + index)?;
    }
    let child = Child::with_quota(64)?;
    let mut agent = child.agent()?;
    agent.peek(0)?; // Brings in what the agent itself needs.
    let used = sys::task_info(child.0)?.used;
    let got = agent.take((mine(0, LOG2, Rights::RW)?, WINDOW), Fpage::WHOLE)?;
    check!(got.rax as u32 & ITEM_WHOLE != 0);
    Ok((child, agent, used))
}

/// Frames that the child uses beyond `used`.
fn cost(child: &Child, used: u64) -> Outcome<u64> {
    Ok(sys::task_info(child.0)?.used - used)
}

fn flush(agent: &mut Agent, index: u64, log2: u32, rights: Rights, own: u64) -> Outcome<u64> {
    let page = Fpage::memory(place(index), log2, rights);
    Ok(agent.control(Call::Flush as u32, [page.0, own, 0, 0, 0, 0])?.0)
}

/// From one agent to another.
fn hand_on(from: &mut Agent, to: &mut Agent, item: Fpage, hot_spot: u64) -> Outcome {
    to.block(Frame::receive(from.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
    check_eq!(from.run(Frame::send(to.uid, Timeout::ZERO).item(item, hot_spot))?.rax, 0);
    to.wait()?;
    Ok(())
}

pub fn one_entry_for_all() -> Outcome {
    let (child, mut agent, used) = holder()?;
    check!(cost(&child, used)? <= COST, "{} frames for a large page", cost(&child, used)?);
    let pages = sys::task_info(child.0)?.pages;
    for index in PICKS {
        check_eq!(agent.peek(place(index))?, Some(7000 + index));
        check!(agent.poke(place(index) + 8, index)?);
    }
    check!(!agent.execute(place(1))?, "a right came from nowhere");
    check_eq!(agent.peek(place(512))?, None);
    // And on to a third task, and all at once from both.
    let other = Child::with_quota(64)?;
    let mut far = other.agent()?;
    hand_on(&mut agent, &mut far, Fpage::memory(WINDOW, LOG2, Rights::RWX), WINDOW + SIZE)?;
    check_eq!(far.peek(WINDOW + SIZE + 255 * PAGE_SIZE)?, Some(7255));
    flush_all()?;
    check_eq!((agent.peek(place(255))?, far.peek(WINDOW + SIZE)?), (None, None));
    check_eq!(sys::task_info(child.0)?.pages, pages - 512);
    Ok(())
}

pub fn small_pages_out_of_it() -> Outcome {
    let (child, mut agent, used) = holder()?;
    let other = Child::with_quota(64)?;
    let mut far = other.agent()?;
    for (index, log2) in [(3, 12), (256, 16), (511, 12)] {
        hand_on(&mut agent, &mut far, Fpage::memory(place(index), log2, Rights::RW), place(index))?;
        check_eq!(far.peek(place(index))?, Some(7000 + index));
    }
    check_eq!(flush(&mut agent, 3, 12, Rights::RWX, 0)?, 0);
    check_eq!((far.peek(place(3))?, far.peek(place(256))?), (None, Some(7256)));
    check_eq!(flush(&mut agent, 256, 16, Rights::W, 0)?, 0);
    check!(!far.poke(place(256), 1)? && far.poke(place(511), 1)?);
    check!(cost(&child, used)? <= COST, "it was split for others");
    flush_all()?;
    check_eq!(far.peek(place(511))?, None);
    Ok(())
}

pub fn part_is_taken_from_oneself() -> Outcome {
    let (child, mut agent, used) = holder()?;
    let whole = cost(&child, used)?;
    check_eq!(flush(&mut agent, 3, 12, Rights::RWX, FLUSH_SELF)?, 0);
    check_eq!(agent.peek(place(3))?, None);
    // A right of another part; the first keeps it.
    check_eq!(flush(&mut agent, 256, 20, Rights::W, FLUSH_SELF)?, 0);
    check!(!agent.poke(place(256), 1)? && agent.poke(place(255), 7255)?);
    for index in PICKS.into_iter().filter(|&index| index != 3) {
        check_eq!(agent.peek(place(index))?, Some(7000 + index));
    }
    // A table and its shadow.
    check_eq!(cost(&child, used)?, whole + 2);
    // A page of its own in the gap, and another over a part.
    fill(512, 1)?;
    for index in [3, 511] {
        agent.take((mine(512, 12, Rights::RW)?, place(index)), Fpage::WHOLE)?;
        check_eq!(agent.peek(place(index))?, Some(1));
    }
    sys::flush(mine(0, LOG2, Rights::RWX)?)?;
    check_eq!((agent.peek(place(0))?, agent.peek(place(3))?), (None, Some(1)));
    flush_all()?;
    check_eq!(agent.peek(place(3))?, None);
    // The table of small pages is empty, and makes room.
    agent.take((mine(0, LOG2, Rights::RW)?, WINDOW), Fpage::WHOLE)?;
    check!(cost(&child, used)? <= COST);
    flush_all()
}

pub fn part_is_taken_by_the_giver() -> Outcome {
    let (_child, mut agent, _) = holder()?;
    sys::flush(mine(1, 12, Rights::RWX)?)?;
    sys::flush(mine(256, 12, Rights::W)?)?;
    check_eq!(agent.peek(place(1))?, None);
    check!(!agent.poke(place(256), 1)? && agent.poke(place(255), 7255)?);
    check_eq!(agent.peek(place(256))?, Some(7256));
    // The giver has lost nothing.
    fill(256, 5)?;
    check_eq!((read(1)?, agent.peek(place(256))?), (7001, Some(5)));
    flush_all()
}

pub fn part_is_granted() -> Outcome {
    let (_child, mut agent, _) = holder()?;
    let other = Child::with_quota(64)?;
    let mut far = other.agent()?;
    let grant = Fpage::memory(place(3), 12, Rights::RW.or(Rights::GRANT));
    hand_on(&mut agent, &mut far, grant, WINDOW)?;
    check_eq!((agent.peek(place(3))?, far.peek(WINDOW)?), (None, Some(7003)));
    check_eq!(agent.peek(place(1))?, Some(7001));
    check_eq!(flush(&mut agent, 0, LOG2, Rights::RWX, FLUSH_SELF)?, 0);
    check_eq!((agent.peek(place(1))?, far.peek(WINDOW)?), (None, Some(7003)));
    flush_all()?;
    check_eq!(far.peek(WINDOW)?, None);
    Ok(())
}

pub fn all_of_it_is_granted() -> Outcome {
    let (child, mut agent, used) = holder()?;
    let other = Child::with_quota(64)?;
    let mut far = other.agent()?;
    far.peek(0)?;
    let before = sys::task_info(other.0)?.used;
    let grant = Fpage::memory(WINDOW, LOG2, Rights::RW.or(Rights::GRANT));
    hand_on(&mut agent, &mut far, grant, WINDOW)?;
    check_eq!((agent.peek(place(255))?, far.peek(place(255))?), (None, Some(7255)));
    check!(cost(&other, before)? <= COST && cost(&child, used)? <= COST);
    flush_all()?;
    check_eq!(far.peek(place(255))?, None);
    Ok(())
}

/// A large page, one of which parts went different ways, and small ones, in one flush.
pub fn flush_meets_all_sizes() -> Outcome {
    let (child, mut agent, _) = holder()?;
    let other = Child::with_quota(96)?;
    let mut far = other.agent()?;
    // The second 2 MiB: small pages, and over two of them others.
    agent.take((mine(512, LOG2 - 1, Rights::RW)?, place(512)), Fpage::WHOLE)?;
    agent.take((mine(768, LOG2 - 1, Rights::RW)?, place(768)), Fpage::WHOLE)?;
    check_eq!(flush(&mut agent, 256, 12, Rights::RWX, FLUSH_SELF)?, 0);
    agent.take((mine(513, 12, Rights::RW)?, place(256)), Fpage::WHOLE)?;
    hand_on(&mut agent, &mut far, Fpage::memory(WINDOW, LOG2 + 1, Rights::RWX), WINDOW)?;
    let picks = [0, 255, 256, 511, 512, 767, 1023];
    for index in picks {
        check!(agent.poke(place(index), index)? && far.peek(place(index))? == Some(index));
    }
    check_eq!(flush(&mut agent, 0, LOG2 + 1, Rights::W, 0)?, 0);
    for index in picks {
        check!(agent.poke(place(index), 1)? && !far.poke(place(index), 2)?, "page {index}");
    }
    let pages = sys::task_info(child.0)?.pages;
    check_eq!(flush(&mut agent, 0, LOG2 + 1, Rights::RWX, FLUSH_SELF)?, 0);
    for index in picks {
        check_eq!((agent.peek(place(index))?, far.peek(place(index))?), (None, None));
    }
    check_eq!(sys::task_info(child.0)?.pages, pages - 1024);
    flush_all()
}

/// Without memory for the table nothing of one's own is lost; to the giver all of it.
pub fn no_memory_to_split() -> Outcome {
    let (child, mut agent, used) = holder()?;
    sys::task_set_quota(child.0, used + cost(&child, used)?)?;
    for rights in [Rights::RWX, Rights::W] {
        check_eq!(flush(&mut agent, 3, 12, rights, FLUSH_SELF)?, Error::NoMemory as u64);
    }
    let got = agent.take((mine(512, 12, Rights::RW)?, place(3)), Fpage::WHOLE)?;
    check!(got.rax as u32 & ITEM_WHOLE == 0, "a page came over a part that cannot be split off");
    for index in PICKS {
        check_eq!(agent.peek(place(index))?, Some(7000 + index));
        check!(agent.poke(place(index), 7000 + index)?);
    }
    sys::flush(mine(1, 12, Rights::RWX)?)?;
    for index in PICKS {
        check_eq!(agent.peek(place(index))?, None);
    }
    flush_all()
}

/// A gibibyte that lies together, where the machine has one: 512 large pages, which its processor may see as one.
pub fn a_gibibyte() -> Outcome {
    const GIB_LOG2: u32 = 30;
    const NODES_OF_A_FRAME: u64 = 63;
    let Some(block) = Upstream(rt::home()).block(GIB_LOG2) else {
        println!("tern: suite     no gibibyte that lies together");
        return Ok(());
    };
    let block = block.lend();
    let whole = block.fpage();
    let at = |index: u64| whole.base() + index * SIZE + 8 * index;
    let place = |index: u64| at(index) - whole.base() + WINDOW;
    for index in PICKS {
        // SAFETY: memory of the block, which is words without meaning.
        unsafe { (at(index) as *mut u64).write_volatile(9000 + index) };
    }
    let children = [Child::with_quota(128)?, Child::with_quota(128)?];
    let (mut near, mut far) = (children[0].agent()?, children[1].agent()?);
    near.peek(0)?;
    let used = sys::task_info(children[0].0)?.used;
    near.take((whole.with_rights(Rights::RW), WINDOW), Fpage::WHOLE)?;
    // A table, a directory and its shadow, the name of what is fused, and two nodes for each large page.
    check!(cost(&children[0], used)? <= 4 + 1024u64.div_ceil(NODES_OF_A_FRAME));
    check_eq!(sys::task_info(children[0].0)?.pages >> 18, 1);
    hand_on(&mut near, &mut far, Fpage::memory(WINDOW, GIB_LOG2, Rights::RW), WINDOW)?;
    for index in PICKS {
        check_eq!(far.peek(place(index))?, Some(9000 + index));
        check!(near.poke(place(index), 9100 + index)?);
        check_eq!(far.peek(place(index))?, Some(9100 + index));
    }
    // One large page of it loses a right, one goes, and a small one of a third.
    let part = |index, log2, rights| Fpage::memory(WINDOW + index * SIZE, log2, rights);
    for (page, own) in [
        (part(1, LOG2, Rights::W), 0),
        (part(3, LOG2, Rights::RWX), 0),
        (part(255, 12, Rights::RWX), FLUSH_SELF),
    ] {
        check_eq!(near.control(Call::Flush as u32, [page.0, own, 0, 0, 0, 0])?.0, 0);
    }
    for index in PICKS {
        let (there, writable) = (index != 3 && index != 255, !matches!(index, 1 | 3 | 255));
        check_eq!(far.peek(place(index))?, there.then_some(9100 + index));
        check_eq!(far.poke(place(index), 9200 + index)?, writable);
        check_eq!(near.poke(place(index), 9300 + index)?, index != 255);
    }
    check_eq!(near.peek(place(255) + PAGE_SIZE)?, Some(0));
    sys::flush(whole)?;
    for index in PICKS {
        check_eq!(near.peek(place(index))?, None);
    }
    // SAFETY: as above.
    check_eq!(unsafe { (at(511) as *const u64).read_volatile() }, 9300 + 511);
    Ok(())
}
