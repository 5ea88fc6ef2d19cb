//! A client's memory for replies that do not fit into registers.
//!
//! The kernel knows one place for each thread where messages in memory arrive. An [`Inbox`] is that place while the function
//! that was given it runs; then it is again what it was before. So a server can be a client while it answers, one inbox can be
//! opened inside of another, and a program that calls in a loop opens one around the loop and pays for it once.
//!
//! What has come stays in the inbox, and whoever looks at it keeps the inbox from receiving anything else: calls that were not given one
//! take no reply in memory, whatever the server sends.
//!
//! **An object that hands on what another one answers** has no place of its own for that: it goes back from where it has arrived, when the
//! method is over. So whoever calls the method lends it a [`Hold`].

use crate::door::Turn;
use crate::{Failure, Receive, Room, Space, Strings};
use core::marker::PhantomData;
use sys::{Error, Registered, Uid};

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

impl<R: Receive> Inbox<'_, R> {
    /// Lets replies arrive in `room` while `with` runs. Fails if the kernel does not accept it.
    pub fn open<T>(room: &mut R, with: impl FnOnce(&mut Inbox<R>) -> T) -> Result<T, Failure> {
        let _restore = Restore(room.register().map_err(Failure::Kernel)?);
        Ok(with(&mut Inbox { room, thread: PhantomData }))
    }

    /// What has come, if the kernel says that it has come here.
    #[inline(always)]
    pub fn arrived(&mut self, address: u64) -> Result<&mut R, Failure> {
        if address == self.room.address() { Ok(self.room) } else { Err(Failure::OtherInbox) }
    }
}

/// Where a server's thread keeps what another object has answered, until that has gone back.
#[derive(Debug)]
pub struct Hold<'a, R> {
    turn: &'a mut Turn,
    inbox: Option<Inbox<'a, R>>,
}

impl<'a, R> Hold<'a, R> {
    /// That of the calling thread, for the call that it is in.
    #[inline(always)]
    pub fn new(turn: &'a mut Turn) -> Self {
        Hold { turn, inbox: None }
    }
}

impl<'a, S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize>
    Hold<'a, Room<S, WORDS, STRINGS, BYTES>>
{
    /// Lets replies arrive there while `with` runs, which also has space for a value to keep. `memory` is the thread's, as many bytes as
    /// are wanted.
    pub fn open<V: 'a, T>(
        &'a mut self,
        memory: impl FnOnce(&'a mut Turn, usize) -> Option<&'a mut [u128]>,
        with: impl FnOnce(&'a mut Inbox<'a, Room<S, WORDS, STRINGS, BYTES>>, Space<'a, V>) -> T,
    ) -> Result<T, Failure> {
        const UNIT: usize = size_of::<u128>();
        let (own, all) = const {
            let own = size_of::<Room<S, WORDS, STRINGS, BYTES>>().div_ceil(UNIT);
            (own, own + size_of::<V>().div_ceil(UNIT))
        };
        let placed = memory(self.turn, all * UNIT).and_then(|memory| {
            let (first, rest) = memory.split_at_mut_checked(own)?;
            Some((Room::in_place(first)?, Space::new(rest)?))
        });
        let (room, space) = placed.ok_or(Failure::Kernel(Error::NoMemory))?;
        let _restore = Restore(room.register().map_err(Failure::Kernel)?);
        Ok(with(self.inbox.insert(Inbox { room, thread: PhantomData }), space))
    }
}
