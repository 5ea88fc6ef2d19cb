//! Containers without allocation: intrusive lists, slot tables, tags, pending timeouts.

pub mod discipline;
pub mod list;
pub mod slots;
pub mod tags;
pub mod timeout;
pub mod wheel;
