//! Locked memory: there before it is needed, and never taken away (row C12).
//!
//! A task of the real-time kind must not wait for a disk, nor for a pager that serves others. This pager takes all memory
//! of its zone at once, when it is made, and maps it whole with the first touch. From then on the task causes no
//! fault, so it depends on nobody else's memory, however short that is. What the pager cannot have at the beginning it
//! does not promise.

use crate::{Pager, Zone, show};
use rt::api::Reply;
use rt::frames::{Lent, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Rights, TaskId};

/// The pager of one task with locked memory.
#[derive(Debug)]
pub struct Locked {
    task: TaskId,
    zone: Zone,
    memory: Lent,
}

impl Locked {
    /// Takes `1 << log2` bytes for a task, to be seen at `address`, a multiple of the size. `None` if there is no such
    /// block.
    pub fn new(task: TaskId, address: u64, log2: u32, supply: &mut impl Supply) -> Option<Locked> {
        assert!(address.is_multiple_of(1 << log2), "the zone is aligned to its size");
        let mut block = supply.block(log2)?;
        block.bytes_mut().fill(0);
        Some(Locked { task, zone: Zone(address..address + (1 << log2)), memory: block.lend() })
    }
}

impl Pager for Locked {
    fn fault(&mut self, fault: Fault) -> Reply {
        match self.zone.page(&fault, Rights::RW) {
            Some(_) if fault.task == self.task => {
                show(self.memory.fpage().with_rights(Rights::RW), self.zone.0.start)
            }
            _ => REFUSAL,
        }
    }
}
