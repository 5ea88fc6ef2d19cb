//! Requests to a server that `root` may be starting again.
//!
//! A server can end at any moment: before a client calls the thread that it found, or while the client waits for the answer. A program that
//! is just starting meets that like any other, and must not take it for an answer. The surprise: a server that *stays* down costs no
//! patience, since `root` then answers that its name is not found.

use crate::time;
use api::Result;
use core::time::Duration;

/// How often a request is made at most.
pub const TRIES: usize = 1500;

/// Time between two tries: half a minute in all, since a server that is started again on a busy machine takes its time.
pub const PAUSE: Duration = Duration::from_millis(20);

/// Makes a request, and makes it again as long as its server ends meanwhile. `request` finds the server by its name each time, and may be
/// made twice. Fails like the last try.
pub fn while_gone<T>(request: impl FnMut() -> Result<T>) -> Result<T> {
    tried(request, || time::sleep(PAUSE))
}

fn tried<T>(mut request: impl FnMut() -> Result<T>, mut pause: impl FnMut()) -> Result<T> {
    for _ in 1..TRIES {
        match request() {
            Err(failure) if failure.server_is_gone() => pause(),
            outcome => return outcome,
        }
    }
    request()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Failure, Status};
    use sys::Error;

    /// Outcome of a request that first fails so often, and how many pauses it took.
    fn after(failures: usize, failure: Failure) -> (Result<usize>, usize) {
        let (mut calls, mut pauses) = (0, 0);
        let request = || {
            calls += 1;
            if calls > failures { Ok(calls) } else { Err(failure) }
        };
        let outcome = tried(request, || pauses += 1);
        (outcome, pauses)
    }

    #[test]
    fn a_server_that_ends_is_asked_again() {
        for error in [Error::NoSuch, Error::PartnerDied] {
            let gone = Failure::Kernel(error);
            assert_eq!(after(0, gone), (Ok(1), 0));
            assert_eq!(after(3, gone), (Ok(4), 3));
            assert_eq!(after(TRIES - 1, gone), (Ok(TRIES), TRIES - 1));
            assert_eq!(after(TRIES, gone), (Err(gone), TRIES - 1));
        }
    }

    #[test]
    fn an_answer_is_one() {
        for failure in [
            Failure::Refused(Status::NotFound),
            Failure::Refused(Status::Io),
            Failure::Kernel(Error::Limit),
            Failure::Garbled,
        ] {
            assert_eq!(after(1, failure), (Err(failure), 0));
        }
    }
}
