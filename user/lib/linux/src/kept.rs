//! Tables of calls that few programs make, in one place.

use crate::calls::fifo::Fifos;
use crate::calls::inotify::Notices;
use crate::calls::pidfd::Pidfds;

/// The tables.
#[derive(Debug, Default)]
pub struct Kept {
    /// Pipes that have names.
    pub fifos: Fifos,
    /// Lists of watches of files.
    pub notices: Notices,
    /// Descriptors of processes.
    pub pidfds: Pidfds,
}
