//! Clients of this server: the programs that the system description names, by their `uses` and the server's `clients`.
//!
//! `root` tells where a server is only to those who may know. But a uid is a number, and a hostile program tries them all, or asks for the threads of a program as `ps` does.
//! So a server that answers whoever sends to it [asks](Admission::admit) for each thread that it does not know. The kernel says who a message comes from, and `root` which program that is; nobody can
//! lie about either. References to objects need no such thing: a program has those that somebody gave to it.
//!
//! Threads that `root` has once found to be a client's are remembered, since no uid is used twice: to look costs a few instructions. The surprise: a server to which `root` itself sends,
//! as it does to the console, must not wait for `root`, which may be waiting for it. It asks [at once](Admission::admit_at_once) or later.

use crate::home;
use api::{Failure, Status, process};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::{Error, Uid};

/// Threads that are remembered, by the last bits of their slots. The kernel hands slots out from the lowest, so few threads share a place.
const KNOWN_MAX: usize = 128;

/// Clients of what one thread serves: of two names in one task each has its own.
#[derive(Debug)]
pub struct Admission {
    /// Threads of clients; 0: none is known. Each place stands for itself, so no order is needed.
    known: [AtomicU64; KNOWN_MAX],
}

impl Default for Admission {
    fn default() -> Admission {
        Admission::new()
    }
}

impl Admission {
    /// Nobody is known yet.
    pub const fn new() -> Admission {
        Admission { known: [const { AtomicU64::new(0) }; KNOWN_MAX] }
    }

    /// Refuses a thread whose program may not ask for what the caller serves, with [`Status::Denied`]. `root` is asked for a thread that is not known, and waited for. Without it nobody is let
    /// in.
    #[inline]
    pub fn admit(&self, thread: Uid) -> Result<(), Status> {
        if self.knows(thread) { Ok(()) } else { self.judge(thread, process::is_client(home(), thread)) }
    }

    /// [`admit`](Admission::admit) for a server to which `root` itself sends: `None` if `root` has no time just now. Then ask again a little later, and take other messages meanwhile.
    pub fn admit_at_once(&self, thread: Uid) -> Option<Result<(), Status>> {
        // `root` knows what it does, and could not be asked: it waits for the answer to what it has sent.
        if self.knows(thread) || thread == home() {
            return Some(Ok(()));
        }
        match process::is_client_at_once(home(), thread) {
            Err(Failure::Kernel(Error::SendTimeout)) => None,
            found => Some(self.judge(thread, found)),
        }
    }

    fn place(&self, thread: Uid) -> &AtomicU64 {
        &self.known[thread.slot() as usize % KNOWN_MAX]
    }

    #[inline]
    fn knows(&self, thread: Uid) -> bool {
        self.place(thread).load(Ordering::Relaxed) == thread.0
    }

    #[cold]
    fn judge(&self, thread: Uid, found: api::Result<bool>) -> Result<(), Status> {
        if found != Ok(true) {
            return Err(Status::Denied);
        }
        self.place(thread).store(thread.0, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads that share a place, as those whose slots are so far apart do.
    const FIRST: Uid = Uid::thread(3, 1, 2);
    const OTHER: Uid = Uid::thread(3 + KNOWN_MAX as u32, 1, 2);

    #[test]
    fn a_client_is_remembered_and_nobody_else() {
        let admission = Admission::new();
        assert_eq!(admission.judge(FIRST, Ok(true)), Ok(()));
        assert!(admission.knows(FIRST) && !admission.knows(OTHER));
        assert!(!admission.knows(Uid::thread(3, 2, 2)), "another thread has the slot");
        assert_eq!(admission.judge(OTHER, Ok(true)), Ok(()));
        assert!(admission.knows(OTHER) && !admission.knows(FIRST));
    }

    #[test]
    fn who_is_none_is_refused_each_time() {
        let admission = Admission::new();
        for found in [Ok(false), Err(Failure::Garbled), Err(Failure::Kernel(Error::NoSuch))] {
            assert_eq!(admission.judge(FIRST, found), Err(Status::Denied));
            assert!(!admission.knows(FIRST));
        }
    }
}
