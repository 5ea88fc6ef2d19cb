//! The kernel's objects, one file each: state, and operations on it. How threads and tasks begin and end is in [`life`](crate::life).

pub mod block;
pub mod breakpoint;
mod checked;
pub mod door;
pub mod interrupt;
pub mod mapping;
pub mod queue;
pub mod shuttle;
pub mod task;
pub mod thread;

pub use task::TaskRef;
pub use thread::ThreadRef;
