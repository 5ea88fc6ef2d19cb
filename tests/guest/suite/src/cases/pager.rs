//! Pagers and memory managers outside of the kernel, stacked on one another: each of `user/lib/pagers` in a task of its own.

use super::door;
use crate::kit::{Attempted, Child, Client, Frame, Outcome, Stage, WORDS, pager, source};
use crate::{check, check_eq};
use alloc::sync::Arc;
use alloc::vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use pagers::Zone;
use pagers::colour::Coloured;
use pagers::copies::Copies;
use pagers::file::{File, Fill};
use pagers::locked::Locked;
use pagers::manager::{Limits, Manager};
use pagers::merge::{Merge, Part};
use pagers::policy::{First, Last, Policy, SecondChance};
use pagers::sharing::Sharing;
use pagers::swap::{Statistics, Store, Swap};
use rt::api::copies;
use rt::frames::{Colours, Pool, Upstream};
use sys::abi::PAGE_SIZE;
use sys::{Rights, TaskId, Uid};

/// Where the clients' pages lie: the start of a table of its own, aligned for any block.
pub const ZONE: u64 = 0x90_0000_0000;

/// The first pages of the zone.
fn zone(pages: u64) -> Range<u64> {
    ZONE..ZONE + pages * PAGE_SIZE
}

/// Log2 of what pagers ask for at a time, unless a test is about that.
const CHUNK_LOG2: u32 = 16;

fn pool(upstream: Uid) -> Pool<Upstream> {
    Pool::new(Upstream(upstream), CHUNK_LOG2)
}

// --- what clients do -----------------------------------------------------------------------------------

/// Writes `index + tag` to the beginning of each page; the argument is the number of pages and, above, the tag.
extern "C" fn write_pages(argument: u64) -> u64 {
    let (pages, tag) = (argument & 0xffff, argument & !0xffff);
    for index in 0..pages {
        // SAFETY: the zone is memory for tests, or touching it is a fault.
        unsafe { ((ZONE + index * PAGE_SIZE) as *mut u64).write_volatile(tag + index) };
    }
    pages
}

/// Counts the pages that begin as [`write_pages`] with the same argument left them.
extern "C" fn check_pages(argument: u64) -> u64 {
    let (pages, tag) = (argument & 0xffff, argument & !0xffff);
    let is_right = |index: &u64| {
        // SAFETY: as above.
        unsafe { ((ZONE + index * PAGE_SIZE) as *const u64).read_volatile() == tag + index }
    };
    (0..pages).filter(is_right).count() as u64
}

/// Adds 1 to the second word of each of so many pages, from the first to the last.
extern "C" fn scan(pages: u64) -> u64 {
    for index in 0..pages {
        let word = (ZONE + index * PAGE_SIZE + 8) as *mut u64;
        // SAFETY: as above.
        unsafe { word.write_volatile(word.read_volatile() + 1) };
    }
    pages
}

unsafe extern "C" {
    fn suite_load();
    fn suite_store();
}

/// Whether the client can write a page, if need be with its pager's help.
fn reaches(client: &mut Client, page: u64) -> Outcome<bool> {
    Ok(client.agent.attempt(suite_store, ZONE + page * PAGE_SIZE + 16, 1)?.is_fine())
}

// --- stacked managers ----------------------------------------------------------------------------------

fn manager(upstream: Uid, limits: Limits) -> Outcome<Stage> {
    Stage::new(move || Some(Manager::new(pool(upstream), Zone(zone(64)), limits)))
}

const TAG_ONE: u64 = 0xc1a5_5e5a_0001_0000;
const TAG_TWO: u64 = 0xc1a5_5e5a_0002_0000;

/// M1 and M2 over M0, a client over each. What a manager gives stays its own, and one ends without the other.
pub fn managers_stack() -> Outcome {
    let limits = Limits { pages: 16, blocks: 1 << 20 };
    let base = manager(source::uid()?, limits)?;
    let (one, two) = (manager(base.uid(), limits)?, manager(base.uid(), limits)?);
    let (mut first, mut second) = (one.client()?, two.client()?);
    // A third level: M3 over M1.
    let three = manager(one.uid(), limits)?;
    let mut third = three.client()?;
    check_eq!(first.agent.apply(write_pages, 8 | TAG_ONE)?, 8);
    check_eq!(second.agent.apply(write_pages, 8 | TAG_TWO)?, 8);
    check_eq!(third.agent.apply(write_pages, 1)?, 1);
    // Each has its own frames, which the manager of all sees at the bottom.
    for index in 0..8 {
        check!(source::frame_with(TAG_ONE + index)? != source::frame_with(TAG_TWO + index)?);
    }
    check_eq!(first.agent.apply(check_pages, 8 | TAG_ONE)?, 8);
    // M1 ends: what its clients had from it goes, at all levels; M2 is not concerned.
    first.leave()?;
    third.leave()?;
    drop(one);
    check_eq!(first.agent.peek(ZONE)?, None);
    check_eq!(third.agent.peek(ZONE)?, None);
    check_eq!(second.agent.apply(check_pages, 8 | TAG_TWO)?, 8);
    check!(reaches(&mut second, 8)?);
    // The one at the bottom takes back what went through two managers.
    second.leave()?;
    source::take_all_back();
    check_eq!(second.agent.peek(ZONE)?, None);
    Ok(())
}

/// A manager that wants too much is stopped by the one below it, at its limit, and nobody else feels it.
pub fn managers_keep_to_their_limits() -> Outcome {
    let base = manager(source::uid()?, Limits { pages: 4, blocks: 2 << CHUNK_LOG2 })?;
    let generous = Limits { pages: 64, blocks: 0 };
    let (greedy, modest) = (manager(base.uid(), generous)?, manager(base.uid(), generous)?);
    let (mut first, mut second) = (greedy.client()?, modest.client()?);
    let mut reached = 0;
    while reached < 64 && reaches(&mut first, reached)? {
        reached += 1;
    }
    check_eq!(reached, 2 << CHUNK_LOG2 >> 12);
    check_eq!(second.agent.apply(write_pages, 32)?, 32);
    // A client of the lowest manager has its own limit.
    let mut third = base.client()?;
    check_eq!(third.agent.apply(write_pages, 4)?, 4);
    check!(!reaches(&mut third, 4)?);
    check!(!reaches(&mut third, 64)?, "a page beyond the zone");
    source::take_all_back();
    Ok(())
}

// --- figure 1 ------------------------------------------------------------------------------------------

fn file(pages: u64, fill: Fill) -> Outcome<Stage> {
    let upstream = source::uid()?;
    Stage::new(move || Some(File::new(pool(upstream), Zone(zone(pages)), Rights::R, fill)))
}

fn words(bytes: &mut [u8; 4096], word: u64) {
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word.to_ne_bytes()));
}

/// Contents of f1 and f2, so that the merged file is one sequence.
const F1_PAGES: u64 = 5;
const F2_PAGES: u64 = 7;

fn f1(page: u64, bytes: &mut [u8; 4096]) {
    words(bytes, page);
}

fn f2(page: u64, bytes: &mut [u8; 4096]) {
    words(bytes, F1_PAGES + page);
}

/// F merges f1 and f2 and grants their pages on: it is in no mapping, neither in the way nor to be paid for.
pub fn figure_1() -> Outcome {
    let files = [file(F1_PAGES, f1)?, file(F2_PAGES, f2)?];
    let part = |file: usize, pages| Part { server: files[file].uid(), pages };
    let parts = vec![part(0, F1_PAGES), part(1, F2_PAGES)];
    let all = F1_PAGES + F2_PAGES;
    let merge = Stage::new(move || Merge::new(Zone(zone(all)), parts, Rights::R))?;
    let mut client = merge.client()?;
    check_eq!(client.agent.attempt(suite_load, ZONE, 0)?, Attempted::Returned(0));
    let (pages, kernel) = (merge.pages()?, sys::task_info(merge.child.0)?.used);
    for page in 1..all {
        let got = client.agent.attempt(suite_load, ZONE + page * PAGE_SIZE + 0x7f8, 0)?;
        check_eq!(got, Attempted::Returned(page));
    }
    // However many pages went through it, F has none of them and paid for none.
    check_eq!((merge.pages()?, sys::task_info(merge.child.0)?.used), (pages, kernel));
    check!(!reaches(&mut client, 0)?, "more rights than the file gives");
    check!(!client.agent.attempt(suite_load, ZONE + all * PAGE_SIZE, 0)?.is_fine());
    // F ends: the client keeps what it has. f1 ends: its part goes, and no other.
    client.leave()?;
    drop(merge);
    check_eq!(client.agent.apply(check_pages, all)?, all);
    let [one, two] = files;
    drop(one);
    for page in 0..all {
        let expected = (page >= F1_PAGES).then_some(page);
        check_eq!(client.agent.peek(ZONE + page * PAGE_SIZE)?, expected);
    }
    drop(two);
    check_eq!(client.agent.peek(ZONE + F1_PAGES * PAGE_SIZE)?, None);
    source::take_all_back();
    Ok(())
}

/// A file, mapped by its own pager: what one client reads is what all read.
pub fn mapped_files_are_shared() -> Outcome {
    let file = file(F1_PAGES, f1)?;
    let (mut one, mut other) = (file.client()?, file.client()?);
    check_eq!(one.agent.apply(check_pages, F1_PAGES)?, F1_PAGES);
    let pages = file.pages()?;
    check_eq!(other.agent.apply(check_pages, F1_PAGES)?, F1_PAGES);
    // The second client cost its pager nothing.
    check_eq!(file.pages()?, pages);
    check!(!reaches(&mut one, 0)?, "a file to be read was written");
    source::take_all_back();
    Ok(())
}

// --- replacement ---------------------------------------------------------------------------------------

/// Frames of the swapping pager, pages of its client, and how often the client goes over them.
const FRAMES: usize = 16;
const PAGES: u64 = 24;
const ROUNDS: u64 = 10;

fn zeroes(_: u64, bytes: &mut [u8; 4096]) {
    bytes.fill(0);
}

/// A disk in memory.
pub fn disk(pages: u64) -> Outcome<Stage> {
    let upstream = source::uid()?;
    Stage::new(move || Some(File::new(pool(upstream), Zone(zone(pages)), Rights::RW, zeroes)))
}

/// A pager with too few frames for its zone, and what it did.
pub fn swap<P: Policy + Default + 'static>(
    disk: Uid,
    frames: usize,
    pages: u64,
) -> Outcome<(Stage, Arc<Statistics>)> {
    let statistics = Arc::new(Statistics::default());
    let (upstream, theirs) = (source::uid()?, statistics.clone());
    let stage = Stage::new(move || {
        let store = Store::new(disk)?;
        Some(Swap::new(Zone(zone(pages)), (pool(upstream), frames), P::default(), store, theirs))
    })?;
    Ok((stage, statistics))
}

/// Faults, reads and writes of a client that goes over its pages again and again.
fn scanned<P: Policy + Default + 'static>() -> Outcome<[u64; 3]> {
    let disk = disk(PAGES)?;
    let (stage, statistics) = swap::<P>(disk.uid(), FRAMES, PAGES)?;
    let mut client = stage.client()?;
    client.agent.apply(scan, 0)?;
    let before = client.faults()?;
    for _ in 0..ROUNDS {
        client.agent.apply(scan, PAGES)?;
    }
    let faults = client.faults()? - before;
    // Nothing was lost on the way to the disk and back.
    for page in 0..PAGES {
        let got = client.agent.attempt(suite_load, ZONE + page * PAGE_SIZE + 8, 0)?;
        check_eq!(got, Attempted::Returned(ROUNDS));
    }
    drop((client, stage, disk));
    source::take_all_back();
    Ok([faults, statistics.read.load(Ordering::Relaxed), statistics.written.load(Ordering::Relaxed)])
}

/// A program that knows what it will do next brings the policy for it, and faults less than half as often.
pub fn users_choose_the_policy() -> Outcome {
    let [first, read, written] = scanned::<First>()?;
    check_eq!(first, PAGES * ROUNDS);
    check!(read >= PAGES * (ROUNDS - 1) && written >= read, "{read} read, {written} written");
    let [second, ..] = scanned::<SecondChance>()?;
    check_eq!(second, PAGES * ROUNDS);
    // Every page once; then in each round those that do not fit, and one.
    let [last, read, _] = scanned::<Last>()?;
    check_eq!(last, PAGES + (ROUNDS - 1) * (PAGES - FRAMES as u64 + 1));
    check!(read < PAGES * ROUNDS / 2, "{read} read");
    Ok(())
}

/// A page that was not written goes without a visit to the disk.
pub fn clean_pages_are_not_stored() -> Outcome {
    let disk = disk(PAGES)?;
    let (stage, statistics) = swap::<SecondChance>(disk.uid(), FRAMES, PAGES)?;
    let mut client = stage.client()?;
    client.agent.apply(write_pages, PAGES)?;
    // Reading only, from now on. Each page is written once at most: when it goes for the first time.
    for _ in 0..ROUNDS {
        check_eq!(client.agent.apply(check_pages, PAGES)?, PAGES);
    }
    check_eq!(statistics.written.load(Ordering::Relaxed), PAGES);
    check!(statistics.replaced.load(Ordering::Relaxed) > 5 * PAGES);
    // The disk ends: what is in memory stays usable; what is not is a fault that nobody resolves, and no more.
    let disk_task = disk.child.0;
    drop(disk);
    check!(sys::task_info(disk_task).is_err());
    let alive = (0..PAGES).map(|page| client.agent.attempt(suite_load, ZONE + page * PAGE_SIZE, 0));
    let alive = alive.collect::<Outcome<vec::Vec<_>>>()?.iter().filter(|got| got.is_fine()).count();
    check_eq!(alive, FRAMES);
    drop((client, stage));
    source::take_all_back();
    Ok(())
}

// --- colours -------------------------------------------------------------------------------------------

const COLOURS: u64 = 16;
const TAG_COLOURED: u64 = 0xc010_04ed_0000_0000;

/// Touches the pages of the zone in an order of no order.
extern "C" fn write_scattered(pages: u64) -> u64 {
    for step in 0..pages {
        let index = (step * 29 + 7) % pages;
        // SAFETY: as above.
        unsafe { ((ZONE + index * PAGE_SIZE) as *mut u64).write_volatile(TAG_COLOURED + index) };
    }
    pages
}

/// Every page has a frame of its colour, in whatever order they are touched, in every task.
pub fn pages_have_their_colours() -> Outcome {
    let upstream = source::uid()?;
    let make = move || Some(Coloured::new(Zone(zone(64)), Upstream(upstream), Colours::new(COLOURS)?, 18));
    let stage = Stage::new(make)?;
    let mut client = stage.client()?;
    check_eq!(client.agent.apply(write_scattered, 64)?, 64);
    for page in 0..64 {
        let frame = source::frame_with(TAG_COLOURED + page)?;
        check!(frame >> 12 & (COLOURS - 1) == page % COLOURS, "page {page} has frame {frame:#x}");
    }
    let mut other = stage.client()?;
    check_eq!(other.agent.apply(write_scattered, 5)?, 5);
    for page in 0..5 {
        let frames = source::frames_with(TAG_COLOURED + page)?;
        check_eq!(frames.len(), 2);
        check!(frames.iter().all(|frame| frame >> 12 & (COLOURS - 1) == page % COLOURS));
    }
    drop((client, other, stage));
    source::take_all_back();
    Ok(())
}

// --- arguments in place --------------------------------------------------------------------------------

/// Where the callee answers, set by the test.
static CALLEE: AtomicU64 = AtomicU64::new(0);

/// A server that adds up words wherever its caller has them.
extern "C" fn add_up(_: u64) -> u64 {
    let (mut to, mut words) = (Uid::NIL, [0; 8]);
    loop {
        let Ok(message) = sys::ipc_reply_wait(to, 0, words) else { return 1 };
        let [start, len, ..] = message.words;
        // SAFETY: what the caller says is not trusted: outside of the zone the read is a fault of the callee's.
        let word = |index: u64| unsafe { ((start + 8 * index) as *const u64).read_volatile() };
        words[0] = (0..len).map(word).sum();
        to = message.sender;
    }
}

/// A call whose arguments are three pages of words: it carries an address and a length.
extern "C" fn call_with_pages(first: u64) -> u64 {
    let len = 3 * PAGE_SIZE / 8;
    for index in 0..len {
        // SAFETY: as above.
        unsafe { ((ZONE + 8 * index) as *mut u64).write_volatile(first + index) };
    }
    let callee = Uid(CALLEE.load(Ordering::Relaxed));
    sys::ipc_call(callee, 0, [ZONE, len, 0, 0, 0, 0, 0, 0]).map_or(0, |answer| answer.words[0])
}

fn sum(first: u64) -> u64 {
    (0..3 * PAGE_SIZE / 8).map(|index| first + index).sum()
}

/// The pager lets a trusted callee see its caller's memory: the first call costs faults, all others nothing.
pub fn callees_see_arguments_in_place() -> Outcome {
    let (owner, guest, stranger) = (Child::new()?, Child::new()?, Child::new()?);
    let (upstream, trusted) = (source::uid()?, vec![(guest.0, Rights::R)]);
    let of: TaskId = owner.0;
    let stage = Stage::new(move || Some(Sharing::new(Zone(zone(8)), pool(upstream), of, trusted)))?;
    let priority = pager::priority();
    let mut caller = Client::new(owner, stage.uid(), priority)?;
    let mut callee = Client::new(guest, stage.uid(), priority)?;
    let mut other = Client::new(stranger, stage.uid(), priority)?;
    // Before its owner has touched it, a page is not there for anybody.
    check!(!callee.agent.attempt(suite_load, ZONE, 0)?.is_fine());
    CALLEE.store(callee.agent.uid.0, Ordering::Relaxed);
    callee.agent.start_apply(add_up, 0);
    check!(callee.agent.settle()?, "the callee does not wait");
    check_eq!(caller.agent.apply(call_with_pages, 1000)?, sum(1000));
    let faults = callee.faults()?;
    for first in [5, 50, 500] {
        check_eq!(caller.agent.apply(call_with_pages, first)?, sum(first));
    }
    check_eq!(callee.faults()?, faults);
    // Somebody whom the owner did not name sees nothing.
    check!(!other.agent.attempt(suite_load, ZONE, 0)?.is_fine(), "a stranger saw the arguments");
    // To be seen is not to be changed.
    sys::thread_abort(callee.agent.uid)?;
    check_eq!(callee.agent.result()?, 1);
    check!(callee.agent.attempt(suite_load, ZONE, 0)?.is_fine());
    check!(!reaches(&mut callee, 0)?, "a guest wrote what it may read");
    drop((caller, callee, other, stage));
    source::take_all_back();
    Ok(())
}

// --- copy on write -------------------------------------------------------------------------------------

static OFFERED_BY: AtomicU64 = AtomicU64::new(0);
static OFFERED_TO: AtomicU64 = AtomicU64::new(0);

/// Offers so many pages from the first on; returns an error's number.
extern "C" fn offer_pages(pages: u64) -> u64 {
    let to = TaskId(OFFERED_TO.load(Ordering::Relaxed));
    copies::offer(sys::identity().pager, 0, pages, to).is_err() as u64
}

/// Takes what was offered, in the place of the pages from `at` on; returns how many they are, or all ones.
extern "C" fn take_pages(at: u64) -> u64 {
    let from = TaskId(OFFERED_BY.load(Ordering::Relaxed));
    copies::take(sys::identity().pager, from, at).unwrap_or(u64::MAX)
}

/// The first word of a page of the client's, with its pager's help.
fn load(client: &mut Client, page: u64) -> Outcome<Attempted> {
    client.agent.attempt(suite_load, ZONE + page * PAGE_SIZE, 0)
}

fn store(client: &mut Client, page: u64, value: u64) -> Outcome<bool> {
    Ok(client.agent.attempt(suite_store, ZONE + page * PAGE_SIZE, value)?.is_fine())
}

/// A call through a door carries the place of sixteen pages: the server finds what the client had, whatever either writes,
/// and only what is written is copied.
pub fn pages_are_copied_when_written() -> Outcome {
    const PAGES: u64 = 16;
    let (near, far, third) = (Child::new()?, Child::new()?, Child::new()?);
    OFFERED_BY.store(near.0.0, Ordering::Relaxed);
    OFFERED_TO.store(far.0.0, Ordering::Relaxed);
    let mut maker = far.agent()?;
    let upstream = source::uid()?;
    let stage = Stage::new(move || Some(Copies::new(Zone(zone(2 * PAGES)), pool(upstream))))?;
    let mut client = Client::new(near, stage.uid(), pager::priority())?;
    let mut server = Client::new(far, stage.uid(), pager::priority())?;
    let mut stranger = Client::new(third, stage.uid(), pager::priority())?;
    check_eq!(door::make(&mut maker, 7, door::DATUM)?, None);
    door::hand(&mut maker, 7, Rights::RW, &mut client.agent, 9)?;
    let tag = 0x10000;
    check_eq!(client.agent.apply(write_pages, tag | PAGES)?, PAGES);
    // Nothing is taken that was not offered, nothing offered that is not there, and nobody served who is not known.
    check_eq!(stranger.agent.apply(take_pages, 0)?, u64::MAX);
    for known in [&mut stranger, &mut server] {
        check_eq!(load(known, 0)?, Attempted::Returned(0));
    }
    door::serve(&mut server.agent)?;
    let pages = stage.pages()?;
    check_eq!(stranger.agent.apply(take_pages, 0)?, u64::MAX);
    check_eq!(client.agent.apply(offer_pages, 2 * PAGES + 1)?, 1);
    for round in 0..2 {
        check_eq!(client.agent.apply(offer_pages, PAGES)?, 0);
        client.agent.block(Frame::door_call(9, 3, WORDS))?;
        door::arrived(&mut server.agent, 3, door::DATUM)?;
        check_eq!(server.agent.apply(take_pages, 2 * PAGES)?, u64::MAX);
        check_eq!(server.agent.apply(take_pages, 0)?, PAGES);
        check_eq!(server.agent.apply(check_pages, tag | PAGES)?, PAGES);
        // No copies yet; some pages are for what the pager remembers.
        check!(round != 0 || stage.pages()? - pages < PAGES / 2);
        // The server writes two of them, and the client, when it is back, the second of these and another one.
        for page in [3, 4] {
            check!(store(&mut server, page, 1)?);
        }
        door::answer(&mut server.agent, &mut client.agent, 4)?;
        check_eq!(client.agent.apply(check_pages, tag | PAGES)?, PAGES);
        for page in [4, 5] {
            check!(store(&mut client, page, 2)?);
        }
        client.agent.block(Frame::door_call(9, 3, WORDS))?;
        door::arrived(&mut server.agent, 3, door::DATUM)?;
        check_eq!(load(&mut server, 5)?, Attempted::Returned(tag + 5));
        check_eq!(load(&mut server, 4)?, Attempted::Returned(1));
        check_eq!(server.agent.apply(check_pages, tag | PAGES)?, PAGES - 2);
        door::answer(&mut server.agent, &mut client.agent, 4)?;
        check_eq!(load(&mut client, 3)?, Attempted::Returned(tag + 3));
        check_eq!(client.agent.apply(check_pages, tag | PAGES)?, PAGES - 2);
        check_eq!(client.agent.apply(write_pages, tag | PAGES)?, PAGES);
    }
    drop((client, server, stranger, maker, stage));
    source::take_all_back();
    Ok(())
}

// --- locked memory -------------------------------------------------------------------------------------

/// A pager that locks `1 << log2` bytes for a task.
pub fn locked(task: TaskId, log2: u32) -> Outcome<Stage> {
    let upstream = source::uid()?;
    Stage::new(move || Locked::new(task, ZONE, log2, &mut Upstream(upstream)))
}

/// One fault brings in everything; there is no second one.
pub fn locked_memory_faults_once() -> Outcome {
    let child = Child::new()?;
    let stage = locked(child.0, 17)?;
    let mut client = Client::new(child, stage.uid(), pager::priority())?;
    client.agent.apply(write_pages, 0)?;
    let before = client.faults()?;
    check_eq!(client.agent.apply(write_pages, 32)?, 32);
    check_eq!(client.faults()? - before, 1);
    check!(!reaches(&mut client, 32)?, "a page beyond what is locked");
    // The memory is one task's alone.
    let mut other = stage.client()?;
    check!(!reaches(&mut other, 0)?);
    drop((client, other, stage));
    source::take_all_back();
    Ok(())
}
