//! Copies: pages go to another task as they are, and are copied when somebody writes. Served by the pager of both.

use crate::stubs::System::Copies::Client;
use crate::wire::Result;
use sys::{TaskId, Uid};

pub use crate::stubs::System::Copies::{Answer, NUMBER, Request};

/// Keeps `pages` pages of the caller, from page `first` of its zone on, for a task that will [`take`] them.
pub fn offer(pager: Uid, first: u64, pages: u64, to: TaskId) -> Result<()> {
    Client { server: pager }.offer(first, pages, to.0)?;
    Ok(())
}

/// Puts what a task has offered in the place of the caller's pages from `at` on. Returns how many they are.
pub fn take(pager: Uid, from: TaskId, at: u64) -> Result<u64> {
    Ok(Client { server: pager }.take(from.0, at)?)
}
