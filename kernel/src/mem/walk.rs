//! Walk: takes rights from everyone who got a page, directly or not, from one mapping of it.
//!
//! The tree of a page is a list in preorder, so the mappings below another are the deeper nodes behind it. If all of them lose
//! the page, the first one goes as long as there is one. Otherwise the walk first passes all that are below and then comes back to
//! the root, taking the rights on its way: so at any time nobody has more rights than his giver. A task that maps meanwhile
//! adds a node right behind its own: either has lost the rights already, or the walk meets both later.
//!
//! Such a walk makes no progress by passing nodes. Where it is broken off it leaves the thread's bookmark in the list, with a note of
//! its parameters; another walk that meets the bookmark steps over it, or takes it out, and then the broken walk begins anew.

use super::budget::Stop;
use super::large::{self, Part, Restricted};
use super::small;
use super::step::Step;
use crate::arch::pte;
use crate::object::mapping::{Border, Index, LargePage, Mark, Node};
use abi::{PAGE_SIZE, Rights};

/// Walk that takes rights from everyone below a mapping, and with `own` at last from the mapping itself.
#[derive(Clone, Copy)]
pub struct Walk {
    /// The mapping.
    pub root: &'static Node,
    /// The part of its large page that is taken; all of a small page.
    pub part: Part,
    /// The rights that go.
    pub remove: Rights,
    /// Whether the mapping itself loses them.
    pub own: bool,
}

/// Progress of a walk.
#[derive(Clone, Copy)]
struct Reached {
    place: &'static Node,
    half: u64,
    /// Whether it has passed all nodes below the root.
    is_back: bool,
}

impl Walk {
    /// A walk on which a mapping and all below it lose everything.
    pub fn clear(root: &'static Node) -> Walk {
        Walk { root, part: Part::WHOLE, remove: Rights::RWX, own: true }
    }

    /// Goes on where the walk was broken off, or begins. With [`Stop::Again`] it is to be called again.
    pub fn run(self, step: &mut Step) -> Result<(), Stop> {
        if self.remove.has(Rights::R) && self.part.is_whole() { self.empty(step) } else { self.narrow(step) }
    }

    /// Takes the page from all mappings.
    fn empty(self, step: &mut Step) -> Result<(), Stop> {
        while let Some(below) = self.root.below(None) {
            if below.is_bookmark() {
                // Nothing will be left where it stands; its own walk begins anew.
                step.pass()?;
                below.take_out();
            } else if below.border().is_some() {
                let root = self.root.large().expect("those below lose their borders before they go");
                large::dissolve_index(step, root)?;
            } else {
                self.restrict(step, below, Part::WHOLE)?;
            }
        }
        if self.own { self.restrict(step, self.root, Part::WHOLE) } else { Ok(()) }
    }

    fn narrow(self, step: &mut Step) -> Result<(), Stop> {
        let (place, left) = match step.resume(self.root) {
            Some(Mark { place, note }) if note & !Walk::REACHED == self.note() => (place, note),
            _ => (self.root, 0),
        };
        let half = (left & Walk::SECOND != 0) as u64;
        let mut at = Reached { place, half, is_back: left & Walk::BACK != 0 };
        let result = self.narrow_from(step, &mut at);
        if result == Err(Stop::Again) {
            let reached =
                if at.half == 0 { 0 } else { Walk::SECOND } | if at.is_back { Walk::BACK } else { 0 };
            step.leave(self.root, Mark { place: at.place, note: self.note() | reached });
        }
        result
    }

    /// Bit of a note: the walk is on its way back.
    const BACK: u64 = 1;
    /// Bit of a note: the walk takes the second half.
    const SECOND: u64 = 2;
    const REACHED: u64 = Walk::BACK | Walk::SECOND;

    /// Parameters of the walk in the bookmark's note, beside its progress.
    fn note(self) -> u64 {
        self.part.first << 2 | self.part.count << 11 | (self.remove.0 as u64) << 21 | (self.own as u64) << 29
    }

    /// Part that may be restricted in one step: all, or half of all the parts there can be. A part that is taken away is not looked at
    /// again, so that a walk which takes pages needs no halves.
    fn half(self, half: u64) -> Part {
        if self.halves() == 1 { self.part } else { Part { first: half * Part::HALF, count: Part::HALF } }
    }

    fn halves(self) -> u64 {
        if self.root.large().is_some() && self.part.is_whole() { 2 } else { 1 }
    }

    fn narrow_from(self, step: &mut Step, at: &mut Reached) -> Result<(), Stop> {
        loop {
            while !at.is_back {
                match self.root.below(Some(at.place)) {
                    Some(next) => {
                        step.pass()?;
                        at.place = self.skip(step, next)?;
                    }
                    None => at.is_back = true,
                }
            }
            self.come_back(step, at)?;
            at.half += 1;
            if at.half == self.halves() {
                return Ok(());
            }
            at.is_back = false;
        }
    }

    /// Node from which a walk goes on that has come to `next`: the mappings of single parts lie between borders, and it looks at one when it
    /// comes back.
    fn skip(self, step: &mut Step, next: &'static Node) -> Result<&'static Node, Stop> {
        let Some(border) = next.border() else { return Ok(next) };
        // To find out the kind of a border takes as long as to pass it.
        step.pass()?;
        match border {
            Border::Start(index) if self.uses(index) => Ok(index.end()),
            _ => Ok(next),
        }
    }

    /// Whether the walk goes by way of an index, to the one part that it is about.
    fn uses(self, index: Index) -> bool {
        self.part.count == 1 && index.is_usable()
    }

    fn come_back(self, step: &mut Step, at: &mut Reached) -> Result<(), Stop> {
        let part = self.half(at.half);
        loop {
            let place = at.place;
            let index = place.large().and_then(LargePage::index);
            if let Some(index) = index.filter(|index| !index.is_suspended()) {
                // Others may have added what this walk has not met: the index is new, or another walk has ended.
                step.pass()?;
                at.place = index.end();
                continue;
            }
            if core::ptr::eq(place, self.root) {
                break;
            }
            let before = place.before().expect("the root is before those below it");
            if let Some(border) = place.border() {
                step.pass()?;
                step.pass()?;
                at.place = self.before_border(step, border, before);
                continue;
            }
            if self.concerns(place, part) {
                self.restrict(step, place, part)?;
            } else {
                step.pass()?;
            }
            at.place = before;
        }
        if self.own {
            return self.restrict(step, self.root, part);
        }
        end_walk(self.root);
        Ok(())
    }

    /// Node to which a walk comes back from a border, behind the node `before`.
    fn before_border(self, step: &Step, border: Border, before: &'static Node) -> &'static Node {
        match border {
            Border::End(index) => {
                index.suspend();
                if self.uses(index) { index.last_of(step.pool(), self.part.first) } else { before }
            }
            Border::Head(index, _) if self.uses(index) => index.start(),
            _ => before,
        }
    }

    /// Whether a node below maps a page of this part, or is a large page, which has all parts.
    fn concerns(self, node: &'static Node, part: Part) -> bool {
        let Some(entry) = node.entry() else { return false };
        let Some(root) = self.root.large() else { return true };
        let first = root.frame() + part.first * PAGE_SIZE;
        node.large().is_some() || pte::address(entry.get()).wrapping_sub(first) < part.count * PAGE_SIZE
    }

    /// Takes the rights from one mapping.
    fn restrict(self, step: &mut Step, node: &'static Node, part: Part) -> Result<(), Stop> {
        let Some(large) = node.large() else {
            step.begin(if self.root.large().is_some() { 2 } else { 1 })?;
            step.is_fresh = false;
            step.status |= small::restrict(step.k(), node, self.remove);
            return Ok(());
        };
        if self.remove.has(Rights::R) {
            if self.part.is_whole() {
                large::dissolve_index(step, large)?;
            } else {
                large::prepare_loss(step, large, part)?;
            }
        }
        let before = (step.budget, step.is_fresh);
        step.begin_large()?;
        match large::restrict(step, large, (part, self.part.is_whole()), self.remove) {
            Restricted::Gone => Ok(()),
            Restricted::Kept => {
                end_walk(node);
                Ok(())
            }
            Restricted::Partly => Err(Stop::Again),
            Restricted::NoMemory if self.remove == Rights::NONE => {
                end_walk(node);
                step.status |= pte::status(large.cell().get());
                Ok(())
            }
            // A task that cannot pay to lose only what the others lose, loses everything.
            Restricted::NoMemory => {
                (step.budget, step.is_fresh) = before;
                Walk::clear(node).run(step)
            }
        }
    }
}

/// Ends a walk at a mapping that is there still: what is added below it has lost the rights.
fn end_walk(node: &'static Node) {
    if let Some(index) = node.large().and_then(LargePage::index) {
        index.resume();
    }
}
