//! Few pages of many: which are there, and which has to go when another one is wanted.
//!
//! This half of [`mapped`](crate::mapped) knows neither files nor memory. All memory that it uses it takes in the beginning: whoever waits for a page may be the one who has
//! the heap.

use crate::policy::Policy;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Where pages come from, and go to.
pub trait Source {
    /// Why a page does not come, or does not go.
    type Error;

    /// Brings a page to its place, to be read, or also to be written. One that is there is brought again.
    fn bring(&mut self, page: u64, is_writable: bool) -> Result<(), Self::Error>;

    /// Takes a page from its place. When this comes back, what was written to the page is safe. After a failure it can be brought again, and nothing is lost.
    fn take(&mut self, page: u64) -> Result<(), Self::Error>;

    /// Whether a page was accessed since it was brought, or this was asked.
    fn was_accessed(&mut self, page: u64) -> bool;
}

/// How much work it was.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Faults that were resolved. A page that is read first and written later has two.
    pub faults: u64,
    /// Pages that had to go.
    pub replaced: u64,
}

/// [`Counts`] that anybody can read at any time.
#[derive(Debug, Default)]
pub struct Tally {
    faults: AtomicU64,
    replaced: AtomicU64,
}

impl Tally {
    /// Their values now.
    pub fn counts(&self) -> Counts {
        let [faults, replaced] = [&self.faults, &self.replaced].map(|count| count.load(Ordering::Relaxed));
        Counts { faults, replaced }
    }
}

/// Pages that are there, and the [`Policy`] that chooses which one has to go.
#[derive(Debug)]
pub struct Residents<P> {
    policy: P,
    pages_max: usize,
    /// Pages, the lowest first, and whether they are there to be written; with room for all.
    here: Vec<(u64, bool)>,
    tally: Arc<Tally>,
}

impl<P: Policy> Residents<P> {
    /// None yet, and never more than so many; one at least. `None` if there is no memory for their list, or for the policy's.
    pub fn new(pages_max: usize, mut policy: P) -> Option<Residents<P>> {
        let pages_max = pages_max.max(1);
        let mut here = Vec::new();
        here.try_reserve_exact(pages_max).ok()?;
        policy.reserve(pages_max).then(|| Residents { policy, pages_max, here, tally: Arc::default() })
    }

    /// How much work it is.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// How many are there.
    pub fn len(&self) -> usize {
        self.here.len()
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.here.is_empty()
    }

    /// Place of a page in the list: where it is, or where it would be.
    fn place(&self, page: u64) -> Result<usize, usize> {
        self.here.binary_search_by_key(&page, |&(page, _)| page)
    }

    /// Somebody wants to read a page, or to write to it. If it fails, the pages that were there are, as far as the source has them.
    pub fn fault<S: Source>(&mut self, source: &mut S, page: u64, is_write: bool) -> Result<(), S::Error> {
        let before = self.place(page).ok().map(|place| self.here[place].1);
        if before.is_none() && self.here.len() >= self.pages_max {
            self.replace(source)?;
        }
        // One that is there may be gone from its place, since others can take it, so it is brought in any case.
        let is_writable = is_write || before == Some(true);
        source.bring(page, is_writable)?;
        match self.place(page) {
            Ok(place) => self.here[place].1 = is_writable,
            Err(place) => {
                self.here.insert(place, (page, is_writable));
                self.policy.loaded(page);
            }
        }
        self.tally.faults.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn replace<S: Source>(&mut self, source: &mut S) -> Result<(), S::Error> {
        let chosen = self.policy.victim(&mut |page| source.was_accessed(page));
        // A policy that names a page which is not there is wrong, and no reason to have more than may be there.
        let place = chosen.and_then(|page| self.place(page).ok()).unwrap_or(0);
        let Some(&(victim, _)) = self.here.get(place) else { return Ok(()) };
        if let Err(error) = source.take(victim) {
            self.here[place].1 = false;
            self.policy.loaded(victim);
            return Err(error);
        }
        self.here.remove(place);
        self.tally.replaced.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::trials::{self, FRAMES, PAGES};
    use crate::policy::{First, Last, SecondChance};
    use alloc::boxed::Box;
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec;

    /// Pages of one number each, of which few are in their place.
    struct Model {
        stored: Vec<u64>,
        /// Pages in their place, and whether they may be written.
        placed: BTreeMap<u64, (u64, bool)>,
        accessed: BTreeSet<u64>,
        placed_max: usize,
        fails: bool,
    }

    impl Model {
        fn new(pages: usize, placed_max: usize) -> Model {
            let (placed, accessed) = (BTreeMap::new(), BTreeSet::new());
            Model { stored: vec![0; pages], placed, accessed, placed_max, fails: false }
        }
    }

    impl Source for Model {
        type Error = ();

        fn bring(&mut self, page: u64, is_writable: bool) -> Result<(), ()> {
            if self.fails {
                return Err(());
            }
            let value = self.placed.get(&page).map_or(self.stored[page as usize], |&(value, _)| value);
            self.placed.insert(page, (value, is_writable));
            assert!(self.placed.len() <= self.placed_max, "more pages are there than may be");
            Ok(())
        }

        fn take(&mut self, page: u64) -> Result<(), ()> {
            // After a failure it is gone from its place, and can be taken once more.
            if let Some((value, _)) = self.placed.remove(&page) {
                self.stored[page as usize] = value;
            }
            self.accessed.remove(&page);
            if self.fails { Err(()) } else { Ok(()) }
        }

        fn was_accessed(&mut self, page: u64) -> bool {
            self.accessed.remove(&page)
        }
    }

    /// An access, and the faults that it needs. Gives back what was there.
    fn access(
        all: &mut Residents<impl Policy>,
        model: &mut Model,
        page: u64,
        to_write: Option<u64>,
    ) -> Result<u64, ()> {
        for _ in 0..2 {
            match model.placed.get_mut(&page) {
                Some((value, is_writable)) if to_write.is_none() || *is_writable => {
                    model.accessed.insert(page);
                    let before = *value;
                    *value = to_write.unwrap_or(before);
                    return Ok(before);
                }
                _ => all.fault(model, page, to_write.is_some())?,
            }
        }
        panic!("a fault that was resolved comes again");
    }

    #[test]
    fn faults_are_those_of_the_policy() {
        trials::check(|policy, touches| {
            let mut all = Residents::new(FRAMES, policy).unwrap();
            let mut model = Model::new(PAGES as usize, FRAMES);
            for page in touches {
                assert_eq!(access(&mut all, &mut model, page, None), Ok(0));
            }
            let Counts { faults, replaced } = all.tally().counts();
            assert_eq!((all.len(), replaced), (FRAMES, faults - FRAMES as u64));
            faults
        });
    }

    /// A policy that is wrong in turn in all ways.
    #[derive(Default)]
    struct Wrong(u64);

    impl Policy for Wrong {
        fn reserve(&mut self, _: usize) -> bool {
            true
        }

        fn loaded(&mut self, _: u64) {}

        fn victim(&mut self, _: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
            self.0 += 1;
            [None, Some(u64::MAX), Some(self.0 % 40)][self.0 as usize % 3]
        }
    }

    /// Random accesses, of which some fail, against a copy.
    #[test]
    fn what_was_written_is_there() {
        let policies: [fn() -> Box<dyn Policy>; 4] = [
            || Box::new(First::default()),
            || Box::new(Last::default()),
            || Box::new(SecondChance::default()),
            || Box::new(Wrong::default()),
        ];
        for (seed, policy) in policies.iter().cycle().take(40).enumerate() {
            let frames = 1 + seed % 9;
            let (mut all, mut model) = (Residents::new(frames, policy()).unwrap(), Model::new(40, frames));
            let (mut copy, mut state) = ([0; 40], seed as u64);
            for step in 1..2000 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let (page, kind) = (state >> 33, state >> 60);
                let page = page % 40;
                model.fails = kind == 15;
                let to_write = (kind < 6).then_some(step);
                if let Ok(before) = access(&mut all, &mut model, page, to_write) {
                    assert_eq!(before, copy[page as usize], "seed {seed}, step {step}");
                    copy[page as usize] = to_write.unwrap_or(before);
                }
                assert!(all.len() <= frames);
            }
            let now = |page: usize| {
                model.placed.get(&(page as u64)).map_or(model.stored[page], |&(value, _)| value)
            };
            assert_eq!(core::array::from_fn::<u64, 40, _>(now), copy, "seed {seed}");
        }
    }
}
