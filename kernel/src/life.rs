//! Lives of threads and tasks: how they are made, and how they end, in steps.

pub mod task;
pub mod thread;

pub use task::{boot_task, end_task};
pub use thread::{boot_thread, bury, end_thread, start_thread};
