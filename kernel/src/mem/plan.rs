//! Arithmetic of map items: a sender's flexpage, fitted into a receiver's window (row C2). No table is looked at.

use abi::{Fpage, Rights, Space};

/// Plan of a mapping: the part of the sender's flexpage that is mapped, and the address at which its first byte arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Space of the item.
    pub space: Space,
    /// First address in the giver's space.
    pub from: u64,
    /// First address in the receiver's space.
    pub to: u64,
    /// Log2 of the size.
    pub log2: u32,
    /// Rights to give, with [`Rights::GRANT`].
    pub rights: Rights,
}

impl Plan {
    /// Fits the sender's flexpage into the receiver's window. The smaller of the two is mapped whole; the hot spot
    /// selects its place in the larger one. `None` if the window is of another space, or the item has no place in it.
    #[inline(always)]
    pub fn fit(item: Fpage, hot_spot: u64, window: Fpage) -> Option<Plan> {
        let space = item.space();
        if window.is_nil() || window.space() != space {
            return None;
        }
        if space == Space::Memory && item.log2() == window.log2() {
            return Some(Plan {
                space,
                from: item.base(),
                to: window.base(),
                log2: item.log2(),
                rights: item.rights(),
            });
        }
        let (inner, outer, item_is_smaller) =
            if item.log2() <= window.log2() { (item, window, true) } else { (window, item, false) };
        let (log2, rights) = (inner.log2(), item.rights());
        if space == Space::Memory {
            let place = outer.base() + (hot_spot >> log2 << log2 & ((1 << outer.log2()) - 1));
            let (from, to) = if item_is_smaller { (inner.base(), place) } else { (place, inner.base()) };
            return Some(Plan { space, from, to, log2, rights });
        }
        if space == Space::Door {
            let (inner, outer) = (inner.base() >> 12, outer.base() >> 12);
            let place = outer + (hot_spot >> log2 << log2 & ((1 << window.log2().max(item.log2())) - 1));
            let (from, to) = if item_is_smaller { (inner, place) } else { (place, inner) };
            return Some(Plan { space, from, to, log2, rights });
        }
        // A port or line maps only to itself: the smaller of the two must lie in the larger.
        let (first, outer_first) = (inner.base() >> 12, outer.base() >> 12);
        let fits = first >> outer.log2() == outer_first >> outer.log2();
        fits.then_some(Plan { space, from: first, to: first, log2, rights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(base: u64, log2: u32) -> Fpage {
        Fpage::memory(base, log2, Rights::RWX)
    }

    #[test]
    fn hot_spot_selects_the_place_in_the_larger() {
        let plan = Plan::fit(memory(0x3000, 12), 0x7fff_5678, memory(0x4000_0000, 30)).unwrap();
        assert_eq!((plan.from, plan.to, plan.log2), (0x3000, 0x7fff_5000, 12));
        let plan = Plan::fit(memory(0x4000_0000, 30), 0x12_3456, memory(0x8000, 12)).unwrap();
        assert_eq!((plan.from, plan.to, plan.log2), (0x4012_3000, 0x8000, 12));
    }

    #[test]
    fn ports_map_to_themselves() {
        let item = Fpage::ports(0x3f8, 3);
        let plan = Plan::fit(item, 0, Fpage::ports(0, 16)).unwrap();
        assert_eq!((plan.from, plan.to, plan.log2), (0x3f8, 0x3f8, 3));
        assert_eq!(Plan::fit(item, 0, Fpage::ports(0x60, 3)), None);
        assert_eq!(Plan::fit(item, 0, memory(0, 30)), None);
        let plan = Plan::fit(Fpage::ports(0, 16), 0, Fpage::ports(0x60, 0)).unwrap();
        assert_eq!((plan.from, plan.log2), (0x60, 0));
    }
}
