//! Which error each call was seen to return.

use super::Failure;
use crate::kit::Outcome;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::abi::error::POSSIBLE;
use sys::abi::op::{Form, Op};
use sys::{Error, abi::Call};

/// One bit for each error, one word for each call.
static SEEN: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Notes what a call returned.
pub fn note<T>(call: Call, result: sys::Result<T>) -> sys::Result<T> {
    if let Err(error) = &result {
        SEEN[call as usize & 7].fetch_or(1 << *error as u32, Ordering::Relaxed);
    }
    result
}

/// Notes the result of a raw call by the number it was made with.
pub fn note_raw(eax: u32, rax: u64) {
    let call = Call::ALL.iter().find(|(call, _)| *call as u32 == eax & 0x8000_00ff);
    let call = match Op(eax).form() {
        Some(Form::DoorCall | Form::DoorReturn) => Some(Call::DoorControl),
        Some(Form::Call | Form::ReplyWait) => Some(Call::Ipc),
        _ => call.map(|(call, _)| *call),
    };
    if let (Some(call), Some(error)) = (call, Error::from_code(rax as u32)) {
        let _ = note::<()>(call, Err(error));
    }
}

/// Checks that a call failed, and how.
#[track_caller]
pub fn fails<T: Debug>(call: Call, result: sys::Result<T>, error: Error) -> Outcome {
    match note(call, result) {
        Err(got) if got == error => Ok(()),
        Err(got) => Err(Failure::new(format_args!("{call:?} failed with '{got}', not '{error}'"))),
        Ok(_) => Err(Failure::new(format_args!("{call:?} did not fail; expected '{error}'"))),
    }
}

fn was_seen((call, error): &(Call, Error)) -> bool {
    SEEN[*call as usize & 7].load(Ordering::Relaxed) & 1 << *error as u32 != 0
}

/// The pairs of call and error that were seen although they are not possible.
pub fn unexpected() -> impl Iterator<Item = (Call, Error)> {
    let pairs = POSSIBLE.iter().flat_map(|(call, errors)| {
        Error::ALL.iter().filter(|(error, _)| !errors.contains(error)).map(|(error, _)| (*call, *error))
    });
    pairs.filter(was_seen)
}

/// The possible pairs of call and error that were never seen.
pub fn missing() -> impl Iterator<Item = (Call, Error)> {
    let pairs = POSSIBLE.iter().flat_map(|(call, errors)| errors.iter().map(|error| (*call, *error)));
    pairs.filter(|pair| !was_seen(pair))
}
