//! Words that two tasks share, as loom has them.

pub use loom::sync::atomic::{AtomicU64, Ordering, fence};
