//! Words that two tasks share.

pub use core::sync::atomic::{AtomicU64, Ordering, fence};
