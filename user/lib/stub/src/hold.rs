//! Where an object's answer lies when it lies nowhere else: until the reply has left, with the thread that serves.
//!
//! A reply with a part in memory goes from where it lies, when the method is over. Most objects give back references into
//! themselves. Two kinds cannot: one whose state is behind a lock, since nobody may look at that once the lock is open again; and one that
//! hands on what another object answers. So whoever calls the method lends it a [`Hold`]: the first kind puts a copy of its answer there
//! ([`keep`](Hold::keep)), the second one an inbox ([`open`](Hold::open)).

use crate::door::Turn;
use crate::long::{bytes_of, put_all, put_text};
use crate::{Failure, Inbox, Room, Space, Strings};
use core::cell::Cell;
use core::fmt;
use sys::Error;

/// Memory of a thread that serves, for the call that it is in.
pub trait Memory {
    /// So many bytes or more that nobody else has, with anything in them, until the thread's next call. `None` if there are none.
    #[allow(clippy::mut_from_ref, reason = "it is other memory each time")]
    fn room(&self, bytes: usize) -> Option<&mut [u128]>;
}

/// Finds the memory of the calling thread. What was kept there in calls before is gone.
pub type OfThread<'a> = fn(&'a mut Turn) -> Option<&'a dyn Memory>;

/// Value that can be [kept](Hold::keep): a text, a list, or a value, of types that need not be dropped. Of a `String` or a `Vec` keep what is in
/// it, `text.as_str()` or `list.as_slice()`.
pub trait Keep {
    /// A copy in that memory.
    fn copy_to<'a>(&self, memory: &'a dyn Memory) -> Option<&'a Self>;
}

impl Keep for str {
    fn copy_to<'a>(&self, memory: &'a dyn Memory) -> Option<&'a str> {
        Some(put_text(memory.room(self.len())?, self))
    }
}

impl<T: Clone> Keep for [T] {
    fn copy_to<'a>(&self, memory: &'a dyn Memory) -> Option<&'a [T]> {
        Some(put_all(memory.room(size_of_val(self))?, self))
    }
}

impl<T: Clone> Keep for T {
    fn copy_to<'a>(&self, memory: &'a dyn Memory) -> Option<&'a T> {
        Some(Space::new(memory.room(size_of::<T>())?)?.put(self.clone()))
    }
}

/// Where a method keeps what it gives back, until that has left.
pub struct Hold<'a, R> {
    memory: OfThread<'a>,
    /// Function that finds the memory; none once it is found.
    turn: Cell<Option<&'a mut Turn>>,
    found: Cell<Option<&'a dyn Memory>>,
    inbox: Option<Inbox<'a, R>>,
}

impl<R> fmt::Debug for Hold<'_, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Hold").finish_non_exhaustive()
    }
}

impl<'a, R> Hold<'a, R> {
    /// That of the calling thread, for the call that it is in.
    #[inline(always)]
    pub fn new(turn: &'a mut Turn, memory: OfThread<'a>) -> Self {
        Hold { memory, turn: Cell::new(Some(turn)), found: Cell::new(None), inbox: None }
    }

    /// The call itself, once, and before anything was kept: for a method whose answer stays elsewhere until it has left. Nothing is kept
    /// afterwards.
    pub fn take_turn(&mut self) -> Option<&'a mut Turn> {
        self.turn.take()
    }

    fn memory(&self) -> Result<&'a dyn Memory, Failure> {
        if let Some(turn) = self.turn.take() {
            self.found.set((self.memory)(turn));
        }
        self.found.get().ok_or(Failure::Kernel(Error::NoMemory))
    }

    /// Keeps a copy of a text, a list or a value until the reply has left, so that a method can give it back. As often as is wanted.
    /// Fails if there is no memory for it.
    pub fn keep<T: Keep + ?Sized>(&self, value: &T) -> Result<&'a T, Failure> {
        value.copy_to(self.memory()?).ok_or(Failure::Kernel(Error::NoMemory))
    }

    /// Lets `with` write at most `len` bytes that stay until the reply has left, and say how many. They have any value at first, so it writes as
    /// many as it says. This is for bytes that lie nowhere in one piece; others are [kept](Hold::keep).
    pub fn fill(
        &self,
        len: usize,
        with: impl FnOnce(&mut [u8]) -> Result<usize, Failure>,
    ) -> Result<&'a [u8], Failure> {
        let memory = self.memory()?.room(len).ok_or(Failure::Kernel(Error::NoMemory))?;
        let bytes = bytes_of(memory, len);
        let count = with(bytes)?;
        bytes.get(..count).ok_or(Failure::Malformed)
    }
}

impl<'a, S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize>
    Hold<'a, Room<S, WORDS, STRINGS, BYTES>>
{
    /// Lets replies arrive in the thread's memory while `with` runs, which also has space for a value to keep.
    pub fn open<V: 'a, T>(
        &'a mut self,
        with: impl FnOnce(&'a mut Inbox<'a, Room<S, WORDS, STRINGS, BYTES>>, Space<'a, V>) -> T,
    ) -> Result<T, Failure> {
        const UNIT: usize = size_of::<u128>();
        let own = const { size_of::<Room<S, WORDS, STRINGS, BYTES>>().div_ceil(UNIT) };
        let placed = self.memory()?.room(own * UNIT + size_of::<V>()).and_then(|memory| {
            let (first, rest) = memory.split_at_mut_checked(own)?;
            Some((Room::in_place(first)?, Space::new(rest)?))
        });
        let (room, space) = placed.ok_or(Failure::Kernel(Error::NoMemory))?;
        Inbox::open_in(&mut self.inbox, room, |inbox| with(inbox, space))
    }
}
