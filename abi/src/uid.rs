//! Identifiers that are unique in space and time (rows C8, P6).
//!
//! A thread's uid finds its control block by one *and* and one *add*: bits 12–29 are the slot, already
//! multiplied by the size of a control block. All other bits must match what the block holds, so an old or
//! invented uid fails one compare.
//!
//! ```text
//!  63        48 47          30 29        12 11       4 3    0
//! +------------+--------------+------------+----------+------+
//! |    clan    |  generation  |    slot    | station  | kind |
//! +------------+--------------+------------+----------+------+
//! ```
//!
//! *clan* is the number of the task that is chief of the thread's task; *station* is 0 on this machine and
//! kept for other machines; a slot whose generations are used up is retired, so no uid ever names two threads.

/// A thread, or something that sends like one (an interrupt).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Uid(pub u64);

/// Lowest bit of the slot, which is also log2 of the size of a thread control block.
pub const SLOT_SHIFT: u32 = 12;
/// Width of the slot in bits: 262,144 threads.
pub const SLOT_BITS: u32 = 18;
/// The bits of a uid that hold the slot.
pub const SLOT_MASK: u64 = ((1 << SLOT_BITS) - 1) << SLOT_SHIFT;
/// Lowest bit of the generation.
pub const GENERATION_SHIFT: u32 = 30;
/// Width of the generation in bits.
pub const GENERATION_BITS: u32 = 18;
/// Lowest bit of the clan.
pub const CLAN_SHIFT: u32 = 48;
/// Lowest bit of the station.
pub const STATION_SHIFT: u32 = 4;

const KIND_MASK: u64 = 0xf;
const KIND_THREAD: u64 = 0;
const KIND_INTERRUPT: u64 = 1;
const KIND_TASK: u64 = 2;

impl Uid {
    /// No thread: as destination "do not send", as source "do not receive", as target "myself".
    pub const NIL: Uid = Uid(0);
    /// Any sender: an open receive.
    pub const ANY: Uid = Uid(u64::MAX);

    /// Packs the uid of a thread. The caller keeps every field within its width.
    pub const fn thread(slot: u32, generation: u32, clan: u16) -> Uid {
        Uid((clan as u64) << CLAN_SHIFT
            | (generation as u64) << GENERATION_SHIFT
            | (slot as u64) << SLOT_SHIFT
            | KIND_THREAD)
    }

    /// The uid under which interrupt `line` sends (row C6).
    pub const fn interrupt(line: u8) -> Uid {
        Uid((line as u64) << SLOT_SHIFT | KIND_INTERRUPT)
    }

    /// The interrupt line, if this uid names an interrupt.
    pub const fn as_interrupt(self) -> Option<u8> {
        let line = self.0 >> SLOT_SHIFT;
        if self.0 & KIND_MASK == KIND_INTERRUPT && self.0 == Uid::interrupt(line as u8).0 {
            Some(line as u8)
        } else {
            None
        }
    }

    /// True for [`Uid::NIL`].
    pub const fn is_nil(self) -> bool {
        self.0 == 0
    }

    /// Number of the control block.
    pub const fn slot(self) -> u32 {
        ((self.0 & SLOT_MASK) >> SLOT_SHIFT) as u32
    }

    /// Number of threads that have had the slot, this one included.
    pub const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32 & ((1 << GENERATION_BITS) - 1)
    }

    /// Number of the chief's task.
    pub const fn clan(self) -> u16 {
        (self.0 >> CLAN_SHIFT) as u16
    }
}

impl core::fmt::Debug for Uid {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match *self {
            Uid::NIL => f.write_str("nil"),
            Uid::ANY => f.write_str("any"),
            uid => match uid.as_interrupt() {
                Some(line) => write!(f, "irq{line}"),
                None => write!(f, "{}.{}", uid.slot(), uid.generation()),
            },
        }
    }
}

/// A task: an address space with its threads, unique in time like a [`Uid`].
///
/// The low half is the task's number with the kind in bits 0–3, the high half counts the tasks that have had the
/// number, this one included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct TaskId(pub u64);

impl TaskId {
    /// No task: as a target "my own".
    pub const NIL: TaskId = TaskId(0);

    /// Packs number and generation.
    pub const fn new(number: u16, generation: u32) -> TaskId {
        TaskId((generation as u64) << 32 | (number as u64) << SLOT_SHIFT | KIND_TASK)
    }

    /// The task's number, which is also the clan of the tasks that it creates.
    pub const fn number(self) -> u16 {
        (self.0 >> SLOT_SHIFT) as u16
    }

    /// Number of tasks that have had the number, this one included.
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl core::fmt::Debug for TaskId {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "task {}.{}", self.number(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let uid = Uid::thread(0x3ffff, 0x3ffff, 0xffff);
        assert_eq!((uid.slot(), uid.generation(), uid.clan()), (0x3ffff, 0x3ffff, 0xffff));
        assert_eq!(Uid::thread(0x3ffff, 0, 0).0, SLOT_MASK);
        assert_eq!(uid.0 & 0xfff, 0);
    }

    #[test]
    fn interrupts_are_no_threads() {
        for line in 0..=255 {
            assert_eq!(Uid::interrupt(line).as_interrupt(), Some(line));
        }
        assert_eq!(Uid::thread(3, 1, 1).as_interrupt(), None);
        assert_eq!(Uid(Uid::interrupt(3).0 | 1 << 40).as_interrupt(), None);
        assert_eq!(Uid::ANY.as_interrupt(), None);
    }
}
