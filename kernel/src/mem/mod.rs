//! Memory: the kernel's own frames, page tables, and the operations map, grant and flush.

pub mod at;
mod block;
pub mod budget;
pub mod doors;
mod large;
mod numbers;
pub mod plan;
#[allow(unsafe_code)]
pub mod pool;
pub mod recent;
mod run;
mod small;
pub mod space;
mod step;
pub mod table;
mod walk;
