//! Nodes of door identifiers, and of doors.

use super::{DOOR_RIGHTS, Node, NodeSlot, SPACE_SHIFT, Slabs};
use crate::mem::pool::Pool;
use core::cell::Cell;

/// A door lies in the second node of its maker's identifier. The address is the entry, the kind the datum, the entry leads to
/// the pool of servers, and the slot, if there is one, says that it is in a list of unreferenced doors.
impl Node {
    /// Offset of `next`, for the fast path.
    pub const NEXT: usize = core::mem::offset_of!(Node, next);
    /// Offset of `prev`, for the fast path.
    pub const PREV: usize = core::mem::offset_of!(Node, prev);
    /// Offset of `slab`, for the fast path.
    pub const SLAB: usize = core::mem::offset_of!(Node, slab);
    /// Offset of `entry`, for the fast path.
    pub const ENTRY: usize = core::mem::offset_of!(Node, entry);
    /// Offset of `slot`, for the fast path.
    pub const SLOT: usize = core::mem::offset_of!(Node, slot);
    /// Offset of the address, for the fast path. It is negative if the identifier may be handed on.
    pub const ADDRESS: usize = core::mem::offset_of!(Node, address);
    /// Offset of `kind`, for the fast path.
    pub const KIND: usize = core::mem::offset_of!(Node, kind);
    /// Offset of the door's node in an identifier, for the fast path.
    pub const DOOR: usize = core::mem::offset_of!(Node, record);
    /// The kind of an identifier that is not its maker's: the tree is flat.
    pub const IDENTIFIER_KIND: u64 = (abi::Space::Door as u64) << SPACE_SHIFT | 1;
    /// Offset of the entry point in a door's node.
    pub const DOOR_ENTRY: usize = core::mem::offset_of!(Node, address);
    /// Offset of the datum in a door's node.
    pub const DOOR_DATUM: usize = core::mem::offset_of!(Node, kind);
    /// Offset, in a door's node, of the address behind the word of the first idle server.
    pub const DOOR_POOL: usize = core::mem::offset_of!(Node, entry);

    /// Fills in the maker's identifier of a new door, which is the root of a tree, and the door's own node. Both were just cut.
    pub fn init_door(
        &'static self,
        door: &'static Node,
        (number, slot): (u64, &'static NodeSlot),
        (entry, datum): (u64, u64),
        pool: &'static Cell<u64>,
    ) {
        self.fill(number | DOOR_RIGHTS, None, slot).plant(abi::Space::Door);
        self.record.set(Some(door));
        door.next.set(None);
        door.prev.set(None);
        door.slot.set(None);
        door.record.set(Some(self));
        door.address.set(entry);
        door.kind.set(datum);
        door.entry.set(Some(pool));
    }

    /// Fills in another identifier of the door, just cut, that comes from this one.
    #[inline(always)]
    pub fn add_identifier(
        &'static self,
        child: &'static Node,
        number: u64,
        may_pass: bool,
        slot: &'static NodeSlot,
    ) {
        child.fill(number | if may_pass { DOOR_RIGHTS } else { 0 }, None, slot);
        child.kind.set(Node::IDENTIFIER_KIND);
        child.record.set(self.record.get());
        self.link_behind(child);
    }

    /// Door that a word shows in the tables for the fast path, if it shows one.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn shown(word: u64) -> Option<&'static Node> {
        // SAFETY: a word with the highest bit is the address of a door's node, and is taken out of the table before the door goes.
        (word >> 63 == 1).then(|| unsafe { &*(word as *const Node) })
    }

    /// Node of the door to which an identifier leads.
    pub fn door(&self) -> &'static Node {
        self.record.get().expect("an identifier has a door")
    }

    /// The maker's identifier of a door.
    pub fn door_root(&self) -> &'static Node {
        self.door()
    }

    /// Entry point and datum of a door.
    pub fn door_target(&self) -> (u64, u64) {
        (self.address.get(), self.kind.get())
    }

    /// The number of an identifier.
    pub fn number(&self) -> u64 {
        self.address.get() & !DOOR_RIGHTS
    }

    /// Whether an identifier may be handed on.
    pub fn may_pass(&self) -> bool {
        self.address.get() & DOOR_RIGHTS != 0
    }

    /// Forbids to hand an identifier on.
    pub fn forbid_passing(&self) {
        self.address.set(self.number());
    }

    /// Whether nobody but a door's maker has an identifier of it.
    pub fn is_unreferenced(&self) -> bool {
        self.door_root().below(None).is_none()
    }

    /// Puts a door that nobody refers to before another one in a list, if it is in none.
    pub fn link_unreferenced(&'static self, first: Option<&'static Node>) -> bool {
        if self.slot.get().is_some() {
            return false;
        }
        self.slot.set(self.door_root().slot.get());
        self.prev.set(None);
        self.next.set(first);
        if let Some(next) = first {
            next.prev.set(Some(self));
        }
        true
    }

    /// Takes a door out of the list of unreferenced ones that it is in, if any; `head` is that list.
    pub fn unlink_unreferenced(&self, head: &Cell<Option<&'static Node>>) {
        if self.slot.take().is_some() {
            if self.prev.get().is_none() {
                head.set(self.next.get());
            }
            self.take_out();
        }
    }

    /// Takes a door's last identifier, the maker's, out of its slot, and gives both nodes back.
    pub fn discard_door(&'static self, pool: &Pool) {
        let door = self.door();
        self.erase(pool);
        Slabs::give_back(pool, door);
    }
}
