//! Offers: pages that a call through a door shows as they are, and that are copied when somebody writes. Served by a memory manager to
//! the tasks that it pages.

use crate::stubs::System::Offers::Client;
use crate::wire::Result;
use sys::Uid;

pub use crate::stubs::System::Offers::{Answer, NUMBER, Request};

/// Address of the word by which the manager knows the caller's task. It is there when it is read.
pub fn key(manager: Uid) -> Result<u64> {
    Ok(Client { server: manager }.key()?)
}

/// Offers so many pages of the task with that key, from `address` on; gives back the offer's number.
pub fn offer(manager: Uid, key: u64, address: u64, pages: u64) -> Result<u64> {
    Ok(Client { server: manager }.offer(key, address, pages)?)
}

/// Puts an offer into window `at` of the task with that key. Gives back how many pages that are, and how many pages of the window may
/// be mapped from an offer before, which the caller gives back before it looks.
pub fn take(manager: Uid, key: u64, offer: u64, at: u64) -> Result<(u64, u64)> {
    Ok(Client { server: manager }.take(key, offer, at)?)
}

/// Ends an offer that the task with that key took.
pub fn done(manager: Uid, key: u64, offer: u64) -> Result<()> {
    Ok(Client { server: manager }.done(key, offer)?)
}

/// Ends an offer that the task with that key made, unless somebody has taken it.
pub fn withdraw(manager: Uid, key: u64, offer: u64) -> Result<()> {
    Ok(Client { server: manager }.withdraw(key, offer)?)
}
