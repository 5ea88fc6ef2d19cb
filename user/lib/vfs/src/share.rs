//! How many objects each client of a server may have at once, so that one who wants all leaves some for others.
//!
//! There is one rule: **who has an eighth of what is free gets no more.** One client alone gets a ninth of all; of 1,024 objects some twenty are left
//! when thirty clients have taken all that they could. A client is an *account*; one owner has several, since who stands in between for others has
//! one for each of them.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicUsize, Ordering};

/// An account that has more than one in so many of those that are free gets no more.
const PART: usize = 8;

/// All objects of a server, by their clients.
#[derive(Debug)]
pub struct Shares {
    all: Arc<All>,
    accounts_max: usize,
    /// One of these is in each account of an owner.
    owners: BTreeMap<u64, Weak<()>>,
}

#[derive(Debug)]
struct All {
    taken: AtomicUsize,
    max: usize,
}

#[derive(Debug)]
struct Account {
    own: AtomicUsize,
    all: Arc<All>,
    _owner: Arc<()>,
}

/// One object of an account. It is given back when this is dropped.
#[derive(Debug)]
pub struct Part(Arc<Account>);

impl Shares {
    /// So many objects, and accounts of one owner. An account is there as long as it has an object.
    pub fn new(max: usize, accounts_max: usize) -> Shares {
        let all = Arc::new(All { taken: AtomicUsize::new(0), max });
        Shares { all, accounts_max, owners: BTreeMap::new() }
    }

    /// The first object of another account. None if the owner has as many accounts as it may, or if nothing is left.
    pub fn open(&mut self, owner: u64) -> Option<Part> {
        self.owners.retain(|_, accounts| accounts.strong_count() > 0);
        let of_owner = match self.owners.get(&owner).and_then(Weak::upgrade) {
            // This is one more of them.
            Some(accounts) if Arc::strong_count(&accounts) > self.accounts_max => return None,
            Some(accounts) => accounts,
            None => {
                let first = Arc::new(());
                self.owners.insert(owner, Arc::downgrade(&first));
                first
            }
        };
        take(&Arc::new(Account { own: AtomicUsize::new(0), all: self.all.clone(), _owner: of_owner }))
    }

    /// How many objects there are.
    pub fn taken(&self) -> usize {
        self.all.taken.load(Ordering::Relaxed)
    }
}

impl Part {
    /// One more of the same account, if it has fewer than are free.
    pub fn another(&self) -> Option<Part> {
        take(&self.0)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.own.fetch_sub(1, Ordering::Relaxed);
        self.0.all.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take(account: &Arc<Account>) -> Option<Part> {
    let taken = account.all.taken.fetch_add(1, Ordering::Relaxed);
    let own = account.own.fetch_add(1, Ordering::Relaxed);
    // Dropped again if it is too much.
    let part = Part(account.clone());
    let free = account.all.max.saturating_sub(taken);
    (own < free.div_ceil(PART)).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Takes all that an account gets.
    fn all_of(first: Part) -> Vec<Part> {
        let mut parts = alloc::vec![first];
        while let Some(part) = parts[0].another() {
            parts.push(part);
        }
        parts
    }

    #[test]
    fn who_wants_all_leaves_some() {
        let mut shares = Shares::new(1024, 2);
        let mut greedy: Vec<Vec<Part>> = Vec::new();
        for owner in 0..30 {
            let free = 1024 - shares.taken();
            let own = all_of(shares.open(owner).unwrap());
            assert!((free / 9..=free / 9 + 1).contains(&own.len()), "owner {owner}: {} of {free}", own.len());
            greedy.push(own);
        }
        assert!(1024 - shares.taken() > 20, "{}", shares.taken());
        drop(greedy);
        assert_eq!(shares.taken(), 0);
    }

    #[test]
    fn there_is_an_end() {
        let mut shares = Shares::new(10, 100);
        let all: Vec<Part> = (0..10).map(|_| shares.open(1).unwrap()).collect();
        assert!(shares.open(2).is_none() && all[0].another().is_none());
        assert_eq!(shares.taken(), 10);
    }

    #[test]
    fn all_is_given_back() {
        let mut shares = Shares::new(100, 2);
        for _ in 0..3 {
            let (one, other) = (all_of(shares.open(7).unwrap()), all_of(shares.open(7).unwrap()));
            assert_eq!((one.len(), other.len(), shares.taken()), (12, 10, 22));
            assert!(shares.open(7).is_none(), "two accounts are all that an owner has");
            assert!(shares.open(8).is_some());
            drop(one);
            let third = shares.open(7).unwrap();
            assert!(third.another().is_some());
            drop((other, third));
            assert_eq!(shares.taken(), 0);
        }
    }
}
