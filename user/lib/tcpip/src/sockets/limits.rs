//! How many objects each owner may have, so that whoever comes gets one.
//!
//! There is one rule: **an owner who has an eighth of what is free gets no more.** An object is set aside for each owner that may still come, and does not
//! count as free; an owner's first object is one of those. `vfs::Shares` has the rule for objects that count themselves; sockets are counted by their table.

/// An owner who has more than one in so many of those that are free gets no more.
const PART: usize = 8;

/// Limits of objects that owners share. Of sockets, each place of a listener's queue is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Objects of all owners.
    pub all: usize,
    /// Owners that there may be at once. One object is set aside for each of them that has none, at most half of all objects.
    pub owners: usize,
    /// Objects of one owner, if somebody has said how many, instead of an eighth of what is free.
    pub own: Option<usize>,
}

impl Default for Limits {
    /// Sockets of the network server. A task that is alone gets 65. One for each program that `root` starts is set aside.
    fn default() -> Limits {
        Limits { all: 640, owners: 64, own: None }
    }
}

/// Objects that there are, as one owner sees them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Taken {
    /// Its own.
    pub own: usize,
    /// Those of all owners, with its own.
    pub all: usize,
    /// Owners that have one or more.
    pub owners: usize,
}

impl Limits {
    /// How many objects an owner gets who wants so many more.
    pub fn more(&self, taken: Taken, wanted: usize) -> usize {
        (0..wanted).take_while(|&more| self.gives(taken, more)).count()
    }

    /// Whether an owner gets another object after so many more.
    fn gives(&self, taken: Taken, more: usize) -> bool {
        let own = taken.own + more;
        let free = self.all.saturating_sub(taken.all + more);
        if own == 0 {
            return free > 0;
        }
        let owners = taken.owners + usize::from(taken.own == 0);
        let aside = self.owners.min(self.all / 2).saturating_sub(owners);
        let spare = free.saturating_sub(aside);
        spare > 0 && own < self.own.unwrap_or(spare.div_ceil(PART))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Lets owners take all that they get, one after the other, and says how many that are.
    fn greedy(limits: Limits, owners: usize) -> Vec<usize> {
        let mut all = 0;
        let each = |owner| {
            let own = limits.more(Taken { own: 0, all, owners: owner }, limits.all);
            all += own;
            own
        };
        (0..owners).map(each).collect()
    }

    #[test]
    fn who_wants_all_leaves_one_for_each() {
        for limits in [Limits::default(), Limits { all: 128, owners: 64, own: None }] {
            let each = greedy(limits, limits.owners);
            assert!(each.iter().all(|own| *own > 0), "{each:?}");
            assert!(each.iter().sum::<usize>() <= limits.all && each.is_sorted_by(|a, b| a >= b), "{each:?}");
        }
        let each = greedy(Limits::default(), 64);
        assert_eq!(each[0], 65);
        assert!(each[5] > 32 && each[9] > 16, "{each:?}");
    }

    /// Owners that come again and again, and always take all that they get, keep nobody away.
    #[test]
    fn who_comes_again_leaves_one_for_each() {
        let limits = Limits { all: 640, owners: 64, own: None };
        let mut owned = [0; 63];
        for round in 0..1000 {
            let owner = round * 37 % 63;
            if round % 3 == 0 {
                owned[owner] /= 2;
            }
            let (all, owners) = (owned.iter().sum(), owned.iter().filter(|own| **own > 0).count());
            let own = owned[owner];
            owned[owner] += limits.more(Taken { own, all, owners }, 1000);
            assert!(owned.iter().sum::<usize>() < 640 && owned[owner] > 0, "round {round}: {owned:?}");
        }
    }

    #[test]
    fn a_number_for_each_is_kept() {
        let limits = Limits { all: 2200, owners: 64, own: Some(2100) };
        assert_eq!(greedy(limits, 3), [2100, 38, 1]);
        assert_eq!(greedy(Limits { all: 40, owners: 64, own: Some(8) }, 6), [8, 8, 7, 1, 1, 1]);
        assert_eq!(greedy(Limits { all: 3, owners: 64, own: None }, 4), [1, 1, 1, 0]);
    }
}
