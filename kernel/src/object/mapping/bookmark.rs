//! Bookmarks: nodes that stand where walks were broken off.

use super::{BOOKMARK, Node};

/// Bookmark of a walk through everything below a page that a thread broke off to look at the interrupts.
#[repr(transparent)]
pub struct Bookmark(Node);

/// Point at which a walk goes on.
#[derive(Clone, Copy)]
pub struct Mark {
    /// Node behind which the bookmark stands.
    pub place: &'static Node,
    /// Note of the walk, in 62 bits.
    pub note: u64,
}

impl Bookmark {
    /// Makes an empty bookmark out of any contents: it is in no list.
    pub fn init(&self) {
        self.0.stand_alone();
    }

    /// Leaves the bookmark where a walk through everything below `root` is broken off.
    pub fn leave(&'static self, root: &'static Node, mark: Mark) {
        let Bookmark(node) = self;
        self.remove();
        node.slab.set(None);
        node.entry.set(None);
        node.slot.set(None);
        node.record.set(Some(root));
        node.address.set(root.task().losses.get());
        node.kind.set(BOOKMARK | mark.note << 1);
        mark.place.link_behind(node);
    }

    /// Mark at which the walk below `root` was broken off. `None` if it was another walk, or if the root may have gone since: then its
    /// task has lost a page. Takes the bookmark out in any case.
    pub fn resume(&self, root: &'static Node) -> Option<Mark> {
        let Bookmark(node) = self;
        let place = node.prev.get();
        let is_valid = node.record.get().is_some_and(|of| core::ptr::eq(of, root))
            && node.address.get() == root.task().losses.get();
        self.remove();
        place.filter(|_| is_valid).map(|place| Mark { place, note: (node.kind.get() & !BOOKMARK) >> 1 })
    }

    /// Takes the bookmark out of the list that it is in, if any.
    pub fn remove(&self) {
        self.0.take_out();
    }
}
