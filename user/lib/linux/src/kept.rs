//! Tables of calls that few programs make, in one place.

use crate::calls::aio::Contexts;
use crate::calls::alarms::Alarms;
use crate::calls::fifo::Fifos;
use crate::calls::inotify::Notices;
use crate::calls::ipc::Ipc;
use crate::calls::pidfd::Pidfds;
use alloc::vec::Vec;

/// The tables.
#[derive(Debug, Default)]
pub struct Kept {
    /// Contexts of asynchronous requests.
    pub aio: Contexts,
    /// Timers that send signals.
    pub alarms: Alarms,
    /// When the machine began, in nanoseconds since 1970, as it was read once: the clocks are read one after the other, and their difference is another one each time.
    pub began: u64,
    /// Pipes that have names.
    pub fifos: Fifos,
    /// Name of the sandbox, if it was given another one.
    pub host_name: Option<Vec<u8>>,
    /// Objects of System V's ipc.
    pub ipc: Ipc,
    /// Lists of watches of files.
    pub notices: Notices,
    /// Calls that filters had something against, and of which somebody was told.
    pub refused: usize,
    /// Descriptors of processes.
    pub pidfds: Pidfds,
}
