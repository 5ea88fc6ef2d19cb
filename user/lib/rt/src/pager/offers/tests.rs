//! Offers against a model: tasks whose pages are numbers, offers that are lists of numbers.
//!
//! Frames have a content and know which of a task's addresses they are mapped at, with which right. So the test sees each access as a processor would: it goes through
//! if a mapping allows it, and is a fault otherwise. The model has no frames: what a task reads at an address is what it or nobody else wrote there.

use super::*;
use std::cell::RefCell;
use std::collections::{BTreeMap as Map, BTreeSet};
use std::rc::Rc;
use std::vec::Vec;

/// Operations of the random test, plain and full.
const STEPS: [usize; 2] = [30_000, 1_000_000];

const TASKS: u64 = 3;

/// Pages of a task that it may write to; one more can be read only.
const PAGES: u64 = 6;

const FIRST: u64 = 0x1000_0000;

/// A place in a task: its pages, and behind them those of windows.
type Place = (u64, u64);

#[derive(Default)]
struct Machine {
    content: Map<u64, u64>,
    mapped: Map<Place, (u64, bool)>,
    next: u64,
    frames_max: usize,
    flushes: usize,
}

impl Machine {
    fn take_from_all(&mut self, frame: u64, only_writing: bool) {
        self.flushes += 1;
        match only_writing {
            true => self
                .mapped
                .values_mut()
                .filter(|(of, _)| *of == frame)
                .for_each(|(_, writes)| *writes = false),
            false => self.mapped.retain(|_, (of, _)| *of != frame),
        }
    }
}

#[derive(Clone)]
struct Fake(Rc<RefCell<Machine>>);

/// A frame is no value that can be copied: there is one owner.
#[derive(Debug)]
struct Frame(u64);

impl Fake {
    fn new_frame(&self, content: u64) -> Option<Frame> {
        let mut machine = self.0.borrow_mut();
        if machine.content.len() >= machine.frames_max {
            return None;
        }
        machine.next += 1;
        let number = machine.next;
        machine.content.insert(number, content);
        Some(Frame(number))
    }
}

impl Frames for Fake {
    type Own = Frame;
    type Common = Frame;
    fn freeze(&mut self, own: Frame) -> Frame {
        self.0.borrow_mut().take_from_all(own.0, true);
        own
    }
    fn thaw(&mut self, common: Frame) -> Frame {
        self.0.borrow_mut().take_from_all(common.0, false);
        common
    }
    fn copy(&mut self, common: &Frame) -> Option<Frame> {
        let content = self.0.borrow().content[&common.0];
        self.new_frame(content)
    }
    fn put(&mut self, own: Frame) {
        let mut machine = self.0.borrow_mut();
        machine.take_from_all(own.0, false);
        machine.content.remove(&own.0);
    }
    fn number(common: &Frame) -> u64 {
        common.0
    }
}

struct Space(Memory<Frame, Frame>);

impl Task<Frame, Frame> for Space {
    fn memory(&mut self) -> &mut Memory<Frame, Frame> {
        &mut self.0
    }
    fn is_writable(&self, first: u64, end: u64) -> bool {
        first >= FIRST && end <= FIRST + PAGES * PAGE_SIZE
    }
}

fn address(page: u64) -> u64 {
    FIRST + page * PAGE_SIZE
}

/// Place of a window's page.
fn in_window(at: u64, page: u64) -> u64 {
    1_000 * at + page
}

struct World {
    fake: Fake,
    tasks: BTreeMap<TaskId, Space>,
    offers: Offers<Frame>,
}

fn key(task: u64) -> u64 {
    1_000 + task
}

impl World {
    fn new(pages_max: u64, frames_max: usize) -> World {
        let machine = Machine { frames_max, ..Machine::default() };
        let mut world = World {
            fake: Fake(Rc::new(RefCell::new(machine))),
            tasks: BTreeMap::new(),
            offers: Offers::default(),
        };
        (0..TASKS).for_each(|task| world.begin(task, pages_max));
        world
    }

    fn begin(&mut self, task: u64, pages_max: u64) {
        let mut space = Space(Memory::new(pages_max));
        assert_eq!(self.offers.introduce(TaskId(task), &mut space.0, key(task)), key(task));
        self.tasks.insert(TaskId(task), space);
    }

    fn end(&mut self, task: u64) {
        let Space(memory) = self.tasks.remove(&TaskId(task)).unwrap();
        self.fake.0.borrow_mut().mapped.retain(|(of, _), _| *of != task);
        self.offers.forget(&mut self.tasks, TaskId(task), memory, &mut self.fake);
    }

    /// Access of a thread at a place: it reads what is there, or writes. `None` if its fault is refused.
    fn access(&mut self, task: u64, place: u64, write: Option<u64>) -> Option<u64> {
        loop {
            let mapped = self.fake.0.borrow().mapped.get(&(task, place)).copied();
            match (mapped, write) {
                (Some((frame, true)), Some(value)) => {
                    self.fake.0.borrow_mut().content.insert(frame, value);
                    return Some(value);
                }
                (Some((frame, _)), None) => return Some(self.fake.0.borrow().content[&frame]),
                _ => {}
            }
            let (frame, writes) = self.fault(task, place, write.is_some())?;
            self.fake.0.borrow_mut().mapped.insert((task, place), (frame, writes));
        }
    }

    fn fault(&mut self, task: u64, place: u64, is_written: bool) -> Option<(u64, bool)> {
        let World { fake, tasks, offers } = self;
        let memory = &mut tasks.get_mut(&TaskId(task))?.0;
        if place >= 1_000 {
            let page = (place / 1_000, place % 1_000);
            return match offers.look(memory, page, is_written, fake).ok()? {
                Look::Own(frame) => Some((frame.0, true)),
                Look::Common(frame) => Some((frame.0, false)),
            };
        }
        match memory.get(address(place)) {
            Some(Page::Own(frame)) => Some((frame.0, true)),
            Some(Page::Common(frame)) if !is_written => Some((frame.0, false)),
            Some(_) => Some((memory.own(address(place), fake)?.0, true)),
            None if memory.has_room(1) => {
                let frame = fake.new_frame(0)?;
                let number = frame.0;
                memory.add(address(place), frame);
                Some((number, true))
            }
            None => None,
        }
    }

    fn offer(&mut self, task: u64, number: u64, first: u64, pages: u64) -> Result<u64, Status> {
        let World { fake, tasks, offers } = self;
        offers.offer(tasks, (key(task), number), (address(first), pages), fake)
    }

    /// Takes an offer as a program does: what may be mapped from before is given back.
    fn take(&mut self, task: u64, number: u64, at: u64) -> Result<Shown, Status> {
        let World { fake, tasks, offers } = self;
        let shown = offers.take::<_, _, Fake>(tasks, (key(task), number), at)?;
        let stale = in_window(at, 0)..in_window(at, shown.stale);
        fake.0.borrow_mut().mapped.retain(|(of, place), _| *of != task || !stale.contains(place));
        Ok(shown)
    }

    fn done(&mut self, task: u64, number: u64) -> Result<(), Status> {
        let World { fake, tasks, offers } = self;
        offers.done(tasks, (key(task), number), fake)
    }

    fn withdraw(&mut self, task: u64, number: u64) -> Result<(), Status> {
        let World { fake, tasks, offers } = self;
        offers.withdraw(tasks, (key(task), number), fake)
    }

    fn frames(&self) -> usize {
        self.fake.0.borrow().content.len()
    }

    fn flushes(&self) -> usize {
        self.fake.0.borrow().flushes
    }
}

#[test]
fn each_side_has_what_it_wrote() {
    let mut world = World::new(20, 100);
    (0..4).for_each(|page| assert_eq!(world.access(0, page, Some(10 + page)), Some(10 + page)));
    world.offer(0, 77, 0, 4).unwrap();
    assert_eq!(world.take(1, 77, 1), Ok(Shown { pages: 4, stale: 0 }));
    assert_eq!(world.take(1, 77, 2), Err(Status::NotFound), "an offer is taken once");
    // The giver writes to one, the taker to another, both to a third.
    world.access(0, 0, Some(20));
    world.access(1, in_window(1, 1), Some(31));
    world.access(0, 2, Some(22));
    world.access(1, in_window(1, 2), Some(32));
    let giver = [0, 1, 2, 3].map(|page| world.access(0, page, None));
    let taker = [0, 1, 2, 3].map(|page| world.access(1, in_window(1, page), None));
    assert_eq!(giver, [Some(20), Some(11), Some(22), Some(13)]);
    assert_eq!(taker, [Some(10), Some(31), Some(32), Some(13)]);
    assert_eq!(world.done(0, 77), Err(Status::NotFound), "the giver did not take it");
    world.done(1, 77).unwrap();
    assert_eq!(world.frames(), 4, "all copies but the giver's pages are free");
    assert_eq!(world.access(1, in_window(1, 1), None), None);
    assert_eq!(world.access(0, 3, Some(1)), Some(1));
}

#[test]
fn nothing_is_done_again_that_is_done() {
    let mut world = World::new(20, 100);
    (0..4).for_each(|page| assert!(world.access(0, page, Some(page)).is_some()));
    for number in 1..4 {
        let before = world.flushes();
        world.offer(0, number, 0, 4).unwrap();
        let expected = if number == 1 { 4 } else { 0 };
        assert_eq!(world.flushes() - before, expected, "what nobody wrote to is still frozen");
        assert_eq!(world.take(1, number, 3), Ok(Shown { pages: 4, stale: 0 }));
        assert_eq!(world.fake.0.borrow().mapped.contains_key(&(1, in_window(3, 0))), number > 1);
        (0..4).for_each(|page| assert_eq!(world.access(1, in_window(3, page), None), Some(page)));
        world.done(1, number).unwrap();
    }
    assert_eq!(world.frames(), 4);
    // Another offer in the window says that something else may be there.
    (4..6).for_each(|page| assert!(world.access(0, page, Some(page)).is_some()));
    world.offer(0, 9, 4, 2).unwrap();
    assert_eq!(world.take(1, 9, 3), Ok(Shown { pages: 2, stale: 4 }));
    assert_eq!(world.access(1, in_window(3, 0), None), Some(4));
    assert_eq!(world.access(1, in_window(3, 2), None), None, "there is no third page");
}

#[test]
fn an_end_takes_nothing_from_the_other() {
    let mut world = World::new(20, 100);
    (0..2).for_each(|page| assert!(world.access(0, page, Some(page + 5)).is_some()));
    world.offer(0, 1, 0, 2).unwrap();
    world.take(1, 1, 1).unwrap();
    world.withdraw(0, 1).unwrap();
    world.end(0);
    assert_eq!(world.access(1, in_window(1, 1), None), Some(6), "the giver has ended");
    // Another task has its number, and nothing to do with the offer.
    world.begin(0, 20);
    assert_eq!(world.withdraw(0, 1), Err(Status::NotFound));
    world.done(1, 1).unwrap();
    assert_eq!(world.frames(), 0);

    (0..2).for_each(|page| assert!(world.access(0, page, Some(page + 5)).is_some()));
    world.offer(0, 2, 0, 2).unwrap();
    world.take(1, 2, 1).unwrap();
    world.access(1, in_window(1, 0), Some(9));
    world.end(1);
    assert_eq!(world.frames(), 2, "the taker has ended");
    assert_eq!(world.access(0, 0, Some(7)), Some(7));
    world.offer(0, 3, 0, 2).unwrap();
    world.withdraw(0, 3).unwrap();
    assert_eq!(world.withdraw(0, 3), Err(Status::NotFound));
    assert!(world.tasks[&TaskId(0)].0.has_room(18));
}

#[test]
fn limits_hold() {
    let mut world = World::new(6, 100);
    (0..3).for_each(|page| assert!(world.access(0, page, Some(page)).is_some()));
    assert_eq!(world.offer(0, 1, 0, 0), Err(Status::BadRequest));
    assert_eq!(world.offer(0, 1, 0, PAGES_MAX + 1), Err(Status::BadRequest));
    assert_eq!(world.offer(0, 1, (u64::MAX - FIRST) / PAGE_SIZE, 2), Err(Status::BadRequest));
    assert_eq!(world.offer(0, 1, 1, 4), Err(Status::NotFound), "a page was never touched");
    assert_eq!(world.offer(7, 1, 0, 2), Err(Status::Denied), "nobody has that key");
    world.offer(0, 1, 0, 3).unwrap();
    assert_eq!(world.offer(0, 2, 0, 1), Err(Status::Exhausted), "each page may have to be there twice");
    world.take(1, 1, 1).unwrap();
    (0..3).for_each(|page| assert!(world.access(0, page, Some(9)).is_some(), "that is paid"));
    assert_eq!(world.take(1, 1, 16), Err(Status::NotFound));
    world.done(1, 1).unwrap();
    // A taker pays for its own copies.
    (0..5).for_each(|page| assert!(world.access(1, page, Some(page)).is_some()));
    world.offer(0, 3, 0, 3).unwrap();
    world.take(1, 3, 1).unwrap();
    assert_eq!(world.access(1, in_window(1, 0), Some(1)), Some(1));
    assert_eq!(world.access(1, in_window(1, 1), Some(1)), None);
    assert_eq!(world.access(1, in_window(1, 1), None), Some(9));
    world.done(1, 3).unwrap();
    // An offer that somebody keeps takes no memory from its giver.
    let mut kept = World::new(6, 100);
    (0..3).for_each(|page| assert!(kept.access(0, page, Some(page)).is_some()));
    kept.offer(0, 1, 0, 3).unwrap();
    kept.take(1, 1, 1).unwrap();
    (3..6).for_each(|page| assert!(kept.access(0, page, Some(page)).is_some()));
    assert_eq!(kept.access(0, 6, Some(1)), None);
    for number in 0..OFFERS_MAX as u64 {
        let mut small = World::new(1_000, 100);
        assert!(small.access(0, 0, Some(1)).is_some());
        let all: Vec<_> = (1..=number + 1).map(|offer| small.offer(0, offer, 0, 1)).collect();
        assert!(all.iter().all(Result::is_ok));
        if number + 1 == OFFERS_MAX as u64 {
            assert_eq!(small.offer(0, 99, 0, 1), Err(Status::Exhausted));
        }
    }
}

#[test]
fn without_frames_a_writer_is_refused_and_nothing_else_changes() {
    let mut world = World::new(20, 2);
    (0..2).for_each(|page| assert!(world.access(0, page, Some(page)).is_some()));
    world.offer(0, 1, 0, 2).unwrap();
    world.take(1, 1, 1).unwrap();
    assert_eq!(world.access(0, 0, Some(5)), None);
    assert_eq!(world.access(1, in_window(1, 0), Some(5)), None);
    assert_eq!(world.access(0, 0, None), Some(0));
    assert_eq!(world.access(1, in_window(1, 0), None), Some(0));
    world.done(1, 1).unwrap();
    assert_eq!(world.access(0, 0, Some(5)), Some(5), "nobody else has it, so it needs no frame");
}

/// An offer as the model has it.
struct Known {
    giver: u64,
    content: Vec<u64>,
    taken: Option<(u64, u64)>,
}

/// Tasks that write, offer, take and end at random find what they would find if each offer were a copy.
#[test]
fn offers_are_copies() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut seed = 1u64;
    let mut below = |end: u64| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) % end
    };
    let mut world = World::new(40, 60);
    let mut pages: Map<Place, u64> = Map::new();
    let mut known: Map<u64, Known> = Map::new();
    let mut numbers = 0;
    for step in 0..STEPS[usize::from(full)] {
        let (task, page) = (below(TASKS), below(PAGES));
        match below(16) {
            0..=3 => {
                let value = step as u64 + 1;
                if world.access(task, page, Some(value)).is_some() {
                    pages.insert((task, page), value);
                }
            }
            4..=5 => {
                // A page that is read first is one of zeros.
                let found = world.access(task, page, None);
                if let Some(found) = found {
                    assert_eq!(found, *pages.entry((task, page)).or_insert(0), "step {step}");
                }
            }
            6..=8 => {
                let count = 1 + below(PAGES - page);
                let number = numbers + 1;
                let content: Vec<_> =
                    (page..page + count).filter_map(|p| pages.get(&(task, p)).copied()).collect();
                match world.offer(task, number, page, count) {
                    Ok(_) => {
                        assert_eq!(content.len() as u64, count, "step {step}: pages that were never touched");
                        numbers = number;
                        known.insert(number, Known { giver: task, content, taken: None });
                    }
                    Err(status) => {
                        let is_touched = content.len() as u64 == count;
                        assert_eq!(status == Status::NotFound, !is_touched, "step {step}: {status:?}");
                    }
                }
            }
            9..=10 => {
                let which = below(known.len().max(1) as u64) as usize;
                let Some((&number, offer)) = known.iter_mut().nth(which) else { continue };
                let at = 1 + below(3);
                if world.take(task, number, at).is_ok() {
                    assert!(offer.taken.is_none());
                    offer.taken = Some((task, at));
                }
            }
            11..=13 => {
                let which = below(known.len().max(1) as u64) as usize;
                let Some((_, offer)) = known.iter_mut().nth(which) else { continue };
                let (Some((taker, at)), page) = (offer.taken, below(PAGES)) else { continue };
                let write = (below(3) == 0).then_some(step as u64 + 1);
                let found = world.access(taker, in_window(at, page), write);
                let Some(content) = offer.content.get_mut(page as usize) else {
                    assert_eq!(found, None, "step {step}: behind the offer's end");
                    continue;
                };
                match write {
                    Some(value) if found.is_some() => *content = value,
                    Some(_) => {}
                    None => assert_eq!(found, Some(*content), "step {step}"),
                }
            }
            14 => {
                let number = 1 + below(numbers.max(1));
                let Some(Known { giver, taken, .. }) = known.get(&number) else { continue };
                let is_over = match taken {
                    Some((taker, _)) => world.done(*taker, number).is_ok(),
                    None => world.withdraw(*giver, number).is_ok(),
                };
                assert!(is_over, "step {step}");
                known.remove(&number);
            }
            _ if below(20) == 0 => {
                world.end(task);
                world.begin(task, 40);
                pages.retain(|(of, _), _| *of != task);
                known.retain(|_, offer| match offer.taken {
                    Some((taker, _)) => taker != task,
                    None => offer.giver != task,
                });
            }
            _ => {}
        }
        // Frames are those of tasks and those that offers hold: none is lost.
        let live: BTreeSet<u64> = world.fake.0.borrow().content.keys().copied().collect();
        let mapped: BTreeSet<u64> = world.fake.0.borrow().mapped.values().map(|(frame, _)| *frame).collect();
        assert!(mapped.is_subset(&live), "step {step}: a mapping of a frame that is free");
    }
    (0..TASKS).for_each(|task| world.end(task));
    assert_eq!(world.frames(), 0, "a frame is lost");
}
