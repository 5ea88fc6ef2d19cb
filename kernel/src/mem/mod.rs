//! Memory: the kernel's own frames, page tables, and the operations map, grant and flush.

mod block;
pub mod budget;
pub mod doors;
mod large;
mod numbers;
pub mod plan;
#[allow(unsafe_code)]
pub mod pool;
mod run;
mod small;
pub mod space;
mod step;
pub mod table;
mod walk;
