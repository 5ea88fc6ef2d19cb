//! Memory of a server's thread for what lies nowhere else until it has gone back: what another object has answered, on behalf of which
//! this program's object was called.
//!
//! A return does not come back, so nobody could free it then. It stays for the thread's next call that wants some, grows when that wants more, and
//! goes when the thread ends. Whose it is, the stack says.
#![allow(unsafe_code)]

use crate::thread::{SLOTS_MAX, own_slot};
use alloc::vec::Vec;
use api::stub::door::Turn;
use core::cell::UnsafeCell;
use core::mem::take;

/// Memory of the thread on the stack of that slot.
struct Own(UnsafeCell<Vec<u128>>);

// SAFETY: only that thread uses it.
unsafe impl Sync for Own {}

static ALL: [Own; SLOTS_MAX] = [const { Own(UnsafeCell::new(Vec::new())) }; SLOTS_MAX];

/// So many bytes or more, with anything in them, for as long as the call. `None` if there are not so many, or if the thread is none
/// of [`spawn`](crate::thread::spawn).
pub fn memory(_: &mut Turn, bytes: usize) -> Option<&mut [u128]> {
    // SAFETY: it is the calling thread's own. Whoever has it has the turn as well, which the thread has once, or had it in a call
    // that is over.
    let own = unsafe { &mut *ALL[own_slot()?].0.get() };
    let missing = bytes.div_ceil(size_of::<u128>()).saturating_sub(own.len());
    own.try_reserve_exact(missing).ok()?;
    own.resize(own.len() + missing, 0);
    Some(own)
}

/// The calling thread needs none any more.
///
/// # Safety
///
/// It is in no call.
pub(super) unsafe fn give_back() {
    if let Some(slot) = own_slot() {
        // SAFETY: it is the calling thread's own, and nobody has it beyond the end of a call.
        drop(take(unsafe { &mut *ALL[slot].0.get() }));
    }
}
