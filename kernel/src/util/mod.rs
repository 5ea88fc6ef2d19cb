//! Containers without allocation: intrusive lists, slot tables, pending timeouts.

pub mod list;
pub mod slots;
pub mod timeout;
pub mod wakeup;
pub mod wheel;
