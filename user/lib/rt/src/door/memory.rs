//! Memory of a server's thread for what lies nowhere else until it has gone back: what a method keeps of an object whose state is behind a
//! lock, and what another object has answered, on behalf of which this program's object was called.
//!
//! Bytes of a page that are [sent](Sent) from where they lie [stay] in the same way.
//!
//! A return does not come back, so nobody could free it then. It stays for the thread's next call that wants some, grows when that wants more, and
//! goes when the thread ends. Whose it is, the stack says.
#![allow(unsafe_code)]

use crate::page::{Lent, Sent};
use crate::sync::Mutex;
use crate::thread::{SLOTS_MAX, own_slot};
use alloc::vec::Vec;
use api::stub::door::Turn;
use api::stub::hold::Memory;
use core::cell::{Cell, UnsafeCell};
use core::mem::take;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::Uid;
use sys::thread_state::RECEIVING;

/// Least size of a piece, in units of 16 bytes: a page, less what the heap needs.
const PIECE_MIN: usize = 4032 / size_of::<u128>();

/// Memory of the thread on the stack of that slot: pieces, each of which is larger than the one before and stays where it is.
struct Own {
    pieces: UnsafeCell<Vec<Vec<u128>>>,
    /// How much of the last piece is somebody's, in its units.
    used: Cell<usize>,
    /// Bytes of the last answer that was sent from a page.
    sent: UnsafeCell<Option<Sent>>,
    /// The thread, once it has answered with a page.
    thread: AtomicU64,
    /// Page of the last answer that maps one. Others [withdraw](withdraw) it.
    lent: Mutex<Option<Answered>>,
}

/// Page that an answer maps.
struct Answered {
    /// Number of the object that gave the page.
    owner: u64,
    _lent: Lent,
}

// SAFETY: only that thread uses it, except for `thread` and `lent`, which all may.
unsafe impl Sync for Own {}

/// Threads are bits of a word.
const _: () = assert!(SLOTS_MAX <= u64::BITS as usize);

static ALL: [Own; SLOTS_MAX] = [const { Own::new() }; SLOTS_MAX];

impl Own {
    const fn new() -> Own {
        Own {
            pieces: UnsafeCell::new(Vec::new()),
            used: Cell::new(0),
            sent: UnsafeCell::new(None),
            thread: AtomicU64::new(0),
            lent: Mutex::new(None),
        }
    }

    /// Nothing of it is anybody's. The largest piece stays.
    ///
    /// # Safety
    ///
    /// That is so: what was handed out is looked at no more.
    unsafe fn begin(&self) {
        // SAFETY: it is the calling thread's own, and used only here and in `room`, one after the other.
        let pieces = unsafe { &mut *self.pieces.get() };
        if pieces.len() > 1 {
            pieces.drain(..pieces.len() - 1);
        }
        self.used.set(0);
        // SAFETY: it is the calling thread's own, and nobody looks at what the answer before has sent.
        unsafe { *self.sent.get() = None };
    }

    /// Whether the thread waits for a call: then whatever it has answered has left. Another thread looks while it may be running.
    fn waits(&self) -> bool {
        let info = sys::thread_info(Uid(self.thread.load(Ordering::Relaxed)));
        info.is_ok_and(|info| info.state == RECEIVING && super::waits_for_call(info.ip))
    }
}

impl Memory for Own {
    fn room(&self, bytes: usize) -> Option<&mut [u128]> {
        let wanted = bytes.div_ceil(size_of::<u128>()).max(1);
        // SAFETY: it is the calling thread's own, and used only here and in `begin`, one after the other.
        let pieces = unsafe { &mut *self.pieces.get() };
        let last = pieces.last().map_or(0, Vec::len);
        if last - self.used.get() < wanted {
            // With room for what went before, so that the next call like this one needs one piece.
            let before: usize = pieces.iter().map(Vec::len).sum();
            let len = (wanted + before).max(PIECE_MIN);
            let mut piece = Vec::new();
            piece.try_reserve_exact(len).or_else(|_| piece.try_reserve_exact(wanted)).ok()?;
            piece.resize(piece.capacity(), 0);
            pieces.try_reserve(1).ok()?;
            pieces.push(piece);
            self.used.set(0);
        }
        let piece = pieces.last_mut()?;
        let first = self.used.replace(self.used.get() + wanted);
        // SAFETY: it is within the piece, which stays until the next call begins; and nobody else is given this part of it.
        Some(unsafe { slice::from_raw_parts_mut(piece.as_mut_ptr().add(first), wanted) })
    }
}

/// That of the calling thread, for as long as the call. `None` if the thread is none of [`spawn`](crate::thread::spawn).
pub fn memory(_: &mut Turn) -> Option<&dyn Memory> {
    let own = &ALL[own_slot()?];
    // SAFETY: whoever has some of it has the turn as well, which the thread has once, or had it in a call that is over.
    unsafe { own.begin() };
    Some(own)
}

/// Keeps bytes of a page as they are until the reply has left. `None` if the thread is none of [`spawn`](crate::thread::spawn).
#[inline]
pub fn stay(_: &mut Turn, sent: Sent) -> Option<&[u8]> {
    let own = &ALL[own_slot()?];
    // SAFETY: it is the calling thread's own. Whoever had what lies there had the turn of a call that is over, and who has the turn of this one keeps
    // it until the reply has left.
    let place = unsafe { &mut *own.sent.get() };
    Some(place.insert(sent))
}

/// Keeps a page lent that the calling thread's answer maps, as long as that may be under way: until the thread answers with another page or ends, or the object that
/// gives the page [withdraws](withdraw) it. `owner` is a number that no other object here has. Gives back the thread's bit for that; 0, and nothing is kept, if the thread is none
/// of [`spawn`](crate::thread::spawn), which gives no such answers.
pub fn outlive(owner: u64, lent: Lent) -> u64 {
    let Some(slot) = own_slot() else { return 0 };
    let own = &ALL[slot];
    if own.thread.load(Ordering::Relaxed) == 0 {
        own.thread.store(sys::myself().0, Ordering::Relaxed);
    }
    let before = own.lent.lock().replace(Answered { owner, _lent: lent });
    // To give a page back takes a while, and needs no lock.
    drop(before);
    1 << slot
}

/// Gives the pages back that threads [keep](outlive) lent for the object with that number. `threads` has their bits. All their answers have left, as those of an
/// object have to which nobody refers.
pub fn withdraw(owner: u64, threads: u64) {
    withdraw_if(owner, threads, |_| true);
}

/// Like [`withdraw`], of an object that others may be calling: a page whose answer may be under way stays lent. Gives back the bits of the threads that keep one.
pub fn withdraw_arrived(owner: u64, threads: u64) -> u64 {
    let own = own_slot();
    withdraw_if(owner, threads, |slot| own == Some(slot) || ALL[slot].waits())
}

fn withdraw_if(owner: u64, mut threads: u64, has_left: impl Fn(usize) -> bool) -> u64 {
    let mut kept = 0;
    while threads != 0 {
        let slot = threads.trailing_zeros() as usize;
        threads &= threads - 1;
        let mut place = ALL[slot].lent.lock();
        let is_owners = place.as_ref().is_some_and(|answered| answered.owner == owner);
        if is_owners && !has_left(slot) {
            kept |= 1 << slot;
        } else if is_owners {
            let answered = place.take();
            drop(place);
            drop(answered);
        }
    }
    kept
}

/// The calling thread needs none any more.
///
/// # Safety
///
/// It is in no call.
pub(super) unsafe fn give_back() {
    if let Some(slot) = own_slot() {
        // SAFETY: it is the calling thread's own, and nobody has any of it beyond the end of a call.
        drop(take(unsafe { &mut *ALL[slot].pieces.get() }));
        ALL[slot].used.set(0);
        // SAFETY: it is the calling thread's own, and no answer that it has sent is under way.
        drop(unsafe { &mut *ALL[slot].sent.get() }.take());
        ALL[slot].thread.store(0, Ordering::Relaxed);
        let answered = ALL[slot].lent.lock().take();
        drop(answered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::stub::hold::Keep;
    use std::vec;

    impl Own {
        fn pieces_len(&self) -> usize {
            // SAFETY: nobody else uses it meanwhile.
            unsafe { &*self.pieces.get() }.len()
        }
    }

    #[test]
    fn what_is_kept_stays_where_it_is_until_the_next_call() {
        let own = Own::new();
        for _ in 0..3 {
            let text = "a text of some length".copy_to(&own).unwrap();
            let numbers: Vec<&[u64]> = (0..50)
                .map(|len: usize| vec![len as u64; 7 * len].as_slice().copy_to(&own).unwrap())
                .collect();
            let large = [0xa5_u8; 100_000].copy_to(&own).unwrap();
            let nothing = <[u32]>::copy_to(&[], &own).unwrap();
            assert_eq!((text, nothing.len()), ("a text of some length", 0));
            assert!(large.iter().all(|byte| *byte == 0xa5));
            let is_right = |(len, list): (usize, &&[u64])| {
                list.len() == 7 * len && list.iter().all(|number| *number == len as u64)
            };
            assert!(numbers.iter().enumerate().all(is_right));
            // SAFETY: nobody looks at it any more.
            unsafe { own.begin() };
            assert_eq!(own.pieces_len(), 1, "the largest piece stays");
        }
    }

    #[test]
    fn calls_of_one_kind_come_to_need_one_piece() {
        let own = Own::new();
        let call = || (0..9).for_each(|_| assert!(own.room(3000).is_some()));
        (0..2).for_each(|_| {
            call();
            // SAFETY: nobody looks at it any more.
            unsafe { own.begin() };
        });
        call();
        assert_eq!(own.pieces_len(), 1);
    }
}
