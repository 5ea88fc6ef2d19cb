//! A client's memory for replies that do not fit into registers.
//!
//! The kernel knows one place for each thread where messages in memory arrive. An [`Inbox`] is that place while the function
//! that was given it runs; then it is again what it was before. So a server can be a client while it answers, one inbox can be
//! opened inside of another, and a program that calls in a loop opens one around the loop and pays for it once.
//!
//! A reply's part in memory stays in the inbox, and whoever looks at it keeps the inbox from receiving anything else: calls that were not given one
//! take no reply in memory, whatever the server sends.

use crate::door::Items;
use crate::{Failure, Receive, Room, Strings};
use core::marker::PhantomData;
use sys::{Registered, Uid};

/// Where replies to this thread arrive.
#[derive(Debug)]
pub struct Inbox<'a, R> {
    room: &'a mut R,
    /// It is the inbox of a thread and cannot go to another one.
    thread: PhantomData<*const ()>,
}

/// Registers again what was registered before.
struct Restore(Registered);

impl Drop for Restore {
    fn drop(&mut self) {
        let Registered { address, room, patience } = self.0;
        let restored = sys::thread_set_block(Uid::NIL, address, room, patience);
        debug_assert!(restored.is_ok(), "it was accepted once");
    }
}

impl<'a, R: Receive> Inbox<'a, R> {
    /// Lets replies arrive in `room` while `with` runs, and makes an inbox of it in `place`, for longer.
    pub(crate) fn open_in<T>(
        place: &'a mut Option<Self>,
        room: &'a mut R,
        with: impl FnOnce(&'a mut Self) -> T,
    ) -> Result<T, Failure> {
        let _restore = Restore(room.register().map_err(Failure::Kernel)?);
        Ok(with(place.insert(Inbox { room, thread: PhantomData })))
    }
}

impl<S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize>
    Inbox<'_, Room<S, WORDS, STRINGS, BYTES>>
{
    /// Windows for references that come with a reply. Nothing arrives in them unless somebody says where.
    pub fn windows(&mut self) -> Items {
        Items::all_of(self.room.windows())
    }
}

impl<R: Receive> Inbox<'_, R> {
    /// Lets replies arrive in `room` while `with` runs. Fails if the kernel does not accept it.
    pub fn open<T>(room: &mut R, with: impl FnOnce(&mut Inbox<R>) -> T) -> Result<T, Failure> {
        let _restore = Restore(room.register().map_err(Failure::Kernel)?);
        Ok(with(&mut Inbox { room, thread: PhantomData }))
    }

    /// Part in memory of a reply, if the kernel says that it has come here.
    #[inline(always)]
    pub fn arrived(&mut self, address: u64) -> Result<&mut R, Failure> {
        if address == self.room.address() { Ok(self.room) } else { Err(Failure::OtherInbox) }
    }
}
