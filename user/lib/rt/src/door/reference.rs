//! References to objects with an interface, as methods take and give them.
//!
//! They travel as map items of one identifier, into a window of one number. Each server of the pool has such a window as its standing one: what
//! arrives with a request is taken from there, and another number becomes the window. A result leaves from a number that is the
//! window from then on. So when it has left, the number is a free one again that arrivals may take, and nobody has to
//! look after it.

use super::{Door, Room, porter};
use api::stub::door::Items;
use api::stub::narrow::find;
use api::stub::{self, Arrived, Blank, Failure, Gives, In, Interface, Malformed, NO_WINDOW, Out, View, Wire};
use core::fmt;
use core::mem::replace;
use core::ops::Deref;
use sys::abi::Space;
use sys::{Dope, Error, Fpage, Result, Rights, Uid};

/// A reference to an object, as one of the interfaces that it has: the client of that one, `C`. Who drops it gives the identifier back.
pub struct Reference<C> {
    client: C,
    place: Room,
}

impl<C: Interface> Reference<C> {
    /// A reference to no object: calls fail. As an argument or result it is not handed over, and the call fails; within a struct, list, union or
    /// exception it says that there is none.
    pub const NOBODY: Reference<C> = Reference { client: C::NOBODY, place: Room::NONE };

    /// Whether it refers to no object.
    pub fn is_nobody(&self) -> bool {
        self.place.is_none()
    }

    /// Another reference to the same object. Of one that may not be handed on it is a copy that leads nowhere.
    pub fn duplicate(&self) -> Result<Reference<C>> {
        porter::copy(self.place.number).map(|room| room.into_reference(self.client.view().first.into()))
    }

    /// This object as another interface: one that this inherits from, or that the object's own does. The object is asked. If it does
    /// not say that it has it, the reference comes back, with the reason.
    pub fn narrow<D: Interface>(self) -> core::result::Result<Reference<D>, NotNarrowed<C>> {
        match find::<D>(self.client.view().door) {
            Ok(client) => Ok(Reference { client, place: self.place }),
            Err(failure) => Err(NotNarrowed { reference: self, failure }),
        }
    }

    /// Map item that hands the reference on or (if it is `granted`) away.
    pub fn item(&self, granted: bool) -> (Fpage, u64) {
        if self.is_nobody() {
            return (Fpage::NIL, 0);
        }
        let rights = if granted { Rights::RW.or(Rights::GRANT) } else { Rights::RW };
        (Fpage::doors(self.place.number, 0, rights), self.client.view().first.into())
    }
}

/// A reference to an object that has not said that it has an interface.
#[derive(Debug)]
pub struct NotNarrowed<C> {
    /// The reference as it was.
    pub reference: Reference<C>,
    /// Reason: refused by an object that is there and does not have it; any other failure says nothing of what the object has, such as one of the kernel if its
    /// server has ended.
    pub failure: Failure,
}

/// Within something: the identifier goes beside the words.
impl<C: Interface> Wire for Reference<C> {
    fn put(&self, out: &mut Out) {
        out.hand((!self.is_nobody()).then_some(|granted| self.item(granted)));
    }
    fn get(from: &mut In) -> core::result::Result<Reference<C>, Malformed> {
        let Some([place, first]) = from.handed()? else { return Ok(Reference::NOBODY) };
        Room::of(Fpage(place)).map(|room| room.into_reference(first)).ok_or(Malformed)
    }
}

impl<C: Interface> Blank for Reference<C> {
    const BLANK: Reference<C> = Reference::NOBODY;
}

impl<C: Interface> Gives for Reference<C> {
    fn give(&mut self) {
        replace(self, Reference::NOBODY).place.leave();
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

/// References that have come to the calling server with a request, from one on: each is taken from its window, which is there again.
pub struct Taken<'a> {
    items: &'a mut Items,
    next: usize,
}

impl<'a> Taken<'a> {
    /// Those from that number on.
    pub fn from(items: &'a mut Items, first: usize) -> Taken<'a> {
        Taken { items, next: first }
    }
}

impl Arrived for Taken<'_> {
    fn next(&mut self) -> Option<[u64; 2]> {
        let item = self.items.get_mut(self.next)?;
        self.next += 1;
        let next = next_window(item[0])?;
        let arrived = replace(item, [next.window().0, 0]);
        next.leave();
        Some(arrived)
    }
    fn is_left(&self) -> bool {
        self.next < self.items.count()
    }
}

/// References that come to a client with a reply: the windows of its inbox, each with a number of its own for as long as the call. What nobody
/// has taken in the end is given back.
pub struct Arrivals {
    windows: Items,
    next: usize,
    arrived: usize,
}

impl Arrivals {
    /// Opens so many windows. Fails with [`Error::Limit`] if there are not enough numbers.
    pub fn open(windows: Items, count: usize) -> Result<Arrivals> {
        // A drop closes those that are open.
        let mut arrivals = Arrivals { windows, next: 0, arrived: 0 };
        for number in 0..count {
            let window = arrivals.windows.get_mut(number).ok_or(Error::NoWindow)?;
            let room = Room::new()?;
            *window = [room.window().0, 0];
            room.leave();
        }
        Ok(arrivals)
    }

    /// Notes how many have come, which that dope says; the first `of_their_own` of them are no part of anything.
    pub fn came(&mut self, dope: u64, of_their_own: usize) {
        (self.next, self.arrived) = (of_their_own, Dope(dope).items() as usize);
    }

    /// The one with this number, if it has come.
    pub fn take<C: Interface>(&mut self, number: usize) -> core::result::Result<Reference<C>, Malformed> {
        let [place, first] = self.at(number).ok_or(Malformed)?;
        Room::of(Fpage(place)).map(|room| room.into_reference(first)).ok_or(Malformed)
    }

    fn at(&mut self, number: usize) -> Option<[u64; 2]> {
        let window = self.windows.get_mut(number).filter(|_| number < self.arrived)?;
        has_arrived(window[0]).then(|| replace(window, NO_WINDOW))
    }
}

impl Arrived for Arrivals {
    fn next(&mut self) -> Option<[u64; 2]> {
        self.next += 1;
        self.at(self.next - 1)
    }
    fn is_left(&self) -> bool {
        self.next < self.arrived
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        for number in 0..self.windows.count() {
            if let Some(window) = self.windows.get_mut(number) {
                drop(Room::of(Fpage(replace(window, NO_WINDOW)[0])));
            }
        }
    }
}

/// Whether an identifier has come there.
fn has_arrived(place: u64) -> bool {
    Fpage(place).rights().and(Rights::R) != Rights::NONE
}

/// The number for the next reference, if one has arrived here. If there is no number, what has arrived goes again.
fn next_window(place: u64) -> Option<Room> {
    let next = Room::new().ok().filter(|_| has_arrived(place));
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

/// The references that a reply with this dope describes in these words leave the program by it, for the calling server to send at once: their numbers are its
/// windows from now on. Says what the server has to let go of if the reply does not arrive: the dope of the block with `windows`, whose room
/// `request` says.
pub fn give_many(windows: &mut Items, words: &[u64], dope: u64, request: u64) -> u64 {
    let used = Dope(dope);
    let items = words.get(used.items_offset() as usize / 8..).unwrap_or_default();
    for (number, item) in items.chunks_exact(2).take(used.items() as usize).enumerate() {
        if let (Some(room), Some(window)) = (Room::of(Fpage(item[0])), windows.get_mut(number)) {
            drop(Room::of(Fpage(replace(window, [room.window().0, 0])[0])));
            room.leave();
        }
    }
    Dope(request).with_used(Dope::used(0, 0, used.items())).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::stub::Anything;

    #[test]
    fn nobody_has_no_number_and_none_is_freed() {
        let nobody = Reference::<Anything>::NOBODY;
        assert!(nobody.is_nobody());
        assert_eq!(nobody.item(true), (Fpage::NIL, 0));
        drop(nobody);
    }
}
