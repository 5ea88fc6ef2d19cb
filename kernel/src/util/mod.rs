//! Containers without allocation: intrusive lists, slot tables, the timing wheel.

pub mod list;
pub mod slots;
pub mod wheel;
