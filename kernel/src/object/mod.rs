//! The kernel's objects, one file each: state, operations, end.

pub mod block;
pub mod breakpoint;
pub mod door;
pub mod interrupt;
pub mod mapping;
pub mod shuttle;
pub mod task;
pub mod thread;

pub use task::TaskRef;
pub use thread::ThreadRef;
