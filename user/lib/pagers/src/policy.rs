//! Replacement policies: which page has to go when all frames are in use (row C11).
//!
//! The best answer depends on what the program does next, which its author knows and no kernel can. So the policy is an
//! argument of the [`swap`](crate::swap) pager, and of a [mapped file](crate::mapped). These three are examples; a program with its own idea writes a fourth.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Chooses the page that has to go.
pub trait Policy {
    /// Takes memory for so many pages that are loaded at once, before the first one; false if there is none. A policy of a [mapped file](crate::mapped) takes no more later: whoever waits for a page
    /// may be the one who has the heap.
    fn reserve(&mut self, pages: usize) -> bool;

    /// A page got a frame.
    fn loaded(&mut self, page: u64);

    /// Chooses a page and forgets it. `accessed` says whether a page was accessed since it was loaded or asked about.
    /// `None` only if no page is loaded.
    fn victim(&mut self, accessed: &mut dyn FnMut(u64) -> bool) -> Option<u64>;
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn reserve(&mut self, pages: usize) -> bool {
        (**self).reserve(pages)
    }

    fn loaded(&mut self, page: u64) {
        (**self).loaded(page);
    }

    fn victim(&mut self, accessed: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        (**self).victim(accessed)
    }
}

/// The page that came first goes first.
#[derive(Debug, Default)]
pub struct First(VecDeque<u64>);

impl Policy for First {
    fn reserve(&mut self, pages: usize) -> bool {
        self.0.try_reserve(pages).is_ok()
    }

    fn loaded(&mut self, page: u64) {
        self.0.push_back(page);
    }

    fn victim(&mut self, _: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        self.0.pop_front()
    }
}

/// The page that came first goes first, unless it is in use: then it gets a second chance. Good when some pages are used
/// more than others.
#[derive(Debug, Default)]
pub struct SecondChance(VecDeque<u64>);

impl Policy for SecondChance {
    fn reserve(&mut self, pages: usize) -> bool {
        self.0.try_reserve(pages).is_ok()
    }

    fn loaded(&mut self, page: u64) {
        self.0.push_back(page);
    }

    fn victim(&mut self, accessed: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        // Once around, every page has lost its mark.
        for _ in 0..self.0.len() {
            let page = self.0.pop_front()?;
            if !accessed(page) {
                return Some(page);
            }
            self.0.push_back(page);
        }
        self.0.pop_front()
    }
}

/// The page that came last goes first. Good for a program that goes over its data again and again from the beginning:
/// what it has just left it needs last.
#[derive(Debug, Default)]
pub struct Last(VecDeque<u64>);

impl Policy for Last {
    fn reserve(&mut self, pages: usize) -> bool {
        self.0.try_reserve(pages).is_ok()
    }

    fn loaded(&mut self, page: u64) {
        self.0.push_back(page);
    }

    fn victim(&mut self, _: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
        self.0.pop_back()
    }
}

/// Programs of accesses, and the faults that each policy has then: for its own tests, and for those of its users.
#[cfg(test)]
pub(crate) mod trials {
    use super::*;
    use alloc::vec::Vec;

    /// Pages that there are, and those that are there at a time.
    pub(crate) const PAGES: u64 = 24;
    pub(crate) const FRAMES: usize = 16;

    /// Checks how many faults somebody has who accesses these pages in this order, with one of the policies.
    pub(crate) fn check(faults: impl Fn(Box<dyn Policy>, Vec<u64>) -> u64) {
        let scan = || (0..10).flat_map(|_| 0..PAGES).collect();
        assert_eq!(faults(Box::new(First::default()), scan()), 240);
        assert_eq!(faults(Box::new(SecondChance::default()), scan()), 240);
        assert_eq!(faults(Box::new(Last::default()), scan()), 24 + 9 * 9);
        // Page 0 between all others.
        let hot = || (0..10).flat_map(|_| (1..PAGES).flat_map(|page| [0, page])).collect();
        let first = faults(Box::new(First::default()), hot());
        let second = faults(Box::new(SecondChance::default()), hot());
        assert!(second < first && second == 230 + 2, "{second} and {first}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// Faults of a program that touches these pages in order.
    fn faults(mut policy: Box<dyn Policy>, touches: Vec<u64>) -> u64 {
        let (mut loaded, mut marked, mut faults) = (BTreeSet::new(), BTreeSet::new(), 0);
        for page in touches {
            marked.insert(page);
            if loaded.contains(&page) {
                continue;
            }
            faults += 1;
            if loaded.len() == trials::FRAMES {
                let victim = policy.victim(&mut |page| marked.remove(&page)).unwrap();
                assert!(loaded.remove(&victim), "a page was chosen that is not loaded");
                marked.remove(&victim);
            }
            loaded.insert(page);
            policy.loaded(page);
        }
        faults
    }

    #[test]
    fn each_is_good_for_something() {
        trials::check(faults);
    }

    #[test]
    fn nothing_is_chosen_from_nothing() {
        assert_eq!(First::default().victim(&mut |_| true), None);
        assert_eq!(SecondChance::default().victim(&mut |_| true), None);
        assert_eq!(Last::default().victim(&mut |_| true), None);
    }
}
