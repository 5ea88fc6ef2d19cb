//! Tables of calls that few programs make, in one place.

use crate::calls::fifo::Fifos;
use crate::calls::pidfd::Pidfds;

/// The tables.
#[derive(Debug, Default)]
pub struct Kept {
    /// Pipes that have names.
    pub fifos: Fifos,
    /// Descriptors of processes.
    pub pidfds: Pidfds,
}
