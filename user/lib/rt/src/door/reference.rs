//! References to objects with an interface, as methods take and give them.
//!
//! They travel as map items of one identifier, into a window of one number. Each server of the pool has such a window as its standing one: what
//! arrives with a request is taken from there, and another number becomes the window. A result leaves from a number that is the
//! window from then on. So when it has left, the number is a free one again that arrivals may take, and nobody has to
//! look after it.

use super::{Door, Room, porter};
use api::stub::door::Items;
use api::stub::narrow::find;
use api::stub::{self, Interface, View};
use core::fmt;
use core::ops::Deref;
use sys::abi::Space;
use sys::{Fpage, Result, Rights, Uid};

/// A reference to an object, as one of the interfaces that it has: the client of that one, `C`. Who drops it gives the identifier back.
pub struct Reference<C> {
    client: C,
    place: Room,
}

impl<C: Interface> Reference<C> {
    /// Another reference to the same object. Of one that may not be handed on it is a copy that leads nowhere.
    pub fn duplicate(&self) -> Result<Reference<C>> {
        porter::copy(self.place.number).map(|room| room.into_reference(self.client.view().first.into()))
    }

    /// This object as another interface: one that this inherits from, or that the object's own does. The object is asked. If it does
    /// not say that it has it, the reference comes back.
    pub fn narrow<D: Interface>(self) -> core::result::Result<Reference<D>, Reference<C>> {
        match find::<D>(self.client.view().door) {
            Ok(client) => Ok(Reference { client, place: self.place }),
            Err(_) => Err(self),
        }
    }

    /// Map item that hands the reference on or (if it is `granted`) away.
    pub fn item(&self, granted: bool) -> (Fpage, u64) {
        let rights = if granted { Rights::RW.or(Rights::GRANT) } else { Rights::RW };
        (Fpage::doors(self.place.number, 0, rights), self.client.view().first.into())
    }
}

impl<C> Deref for Reference<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.client
    }
}

impl<C> fmt::Debug for Reference<C> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "object {}", self.place.number)
    }
}

/// An object with this door was made with this interface, or with one whose first base it is, and so on.
impl<C: Interface> From<Door> for Reference<C> {
    fn from(door: Door) -> Reference<C> {
        door.place.into_reference(0)
    }
}

impl Room {
    /// The reference that arrived, if one did: calls of it say so. `first`: what came beside it.
    pub fn into_reference<C: Interface>(self, first: u64) -> Reference<C> {
        let view = View { door: stub::Door(self.number), first: first as u32 };
        Reference { client: C::at(view), place: self }
    }

    /// The number of a window that is somebody's no more.
    pub(super) fn of(window: Fpage) -> Option<Room> {
        let is_one = window.space() == Space::Door && window.log2() == 0;
        is_one.then(|| Room { number: (window.base() >> 12) as u32 })
    }
}

/// The calling thread has a window from now on, if there is a number. Gives back what was the number of its old one.
pub fn open_window() -> Option<Room> {
    let window = Room::new().map_or(Fpage::NIL, |room| {
        let window = room.window();
        room.leave();
        window
    });
    set_window(window)
}

/// The calling thread has none any more. Gives back what was its number.
pub fn close_window() -> Option<Room> {
    set_window(Fpage::NIL)
}

fn set_window(window: Fpage) -> Option<Room> {
    sys::thread_set_window(Uid::NIL, window).ok().and_then(Room::of)
}

/// The reference that arrived on the calling server with a request whose last words these are.
pub fn take<C: Interface>(place: u64, first: u64) -> Option<Reference<C>> {
    let next = next_window(place)?;
    let room = set_window(next.window())?;
    next.leave();
    Some(room.into_reference(first))
}

/// The reference that arrived there in the server's block, which has a window again.
pub fn take_from<C: Interface>(items: &mut Items, number: usize) -> Option<Reference<C>> {
    let item = items.get_mut(number)?;
    let [place, first] = *item;
    let next = next_window(place)?;
    *item = [next.window().0, 0];
    next.leave();
    Room::of(Fpage(place)).map(|room| room.into_reference(first))
}

/// The number for the next reference, if one has arrived here. If there is no number, what has arrived goes again.
fn next_window(place: u64) -> Option<Room> {
    let arrived = Fpage(place).rights().and(Rights::R) != Rights::NONE;
    let next = Room::new().ok().filter(|_| arrived);
    if next.is_none() {
        stub::door::let_go(place);
    }
    next
}

/// The last words of a reply that hands a reference away, for the calling server to send at once.
pub fn give<C: Interface>(reference: Reference<C>) -> (Fpage, u64) {
    let item = reference.item(true);
    let window = reference.place.window();
    reference.place.leave();
    drop(set_window(window));
    item
}
