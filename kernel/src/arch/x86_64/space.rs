//! Address spaces in the processor: CR3, tags, and what must be forgotten when a table changes.
//!
//! With PCID a task's translations carry its number as tag and survive switches; INVPCID drops those of a space
//! that is not loaded. Both or neither are used. Tasks with numbers beyond the tags share tag 0, which every load of
//! CR3 empties. The last tag is for spaces with an open window (see `copy.rs`). Without tags each load empties everything but the kernel's global pages, so only the loaded space
//! needs INVLPG. Intel SDM volume 3, 4.10.

use super::cpu::features;
use super::instructions::{invlpg, invpcid, write_cr3};
use super::paging;
use crate::arch;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Words};
use crate::object::TaskRef;

const TAG_MASK: u64 = 4095;
/// What a space has as its tag while its window is open; every load with it forgets what it found before.
pub const WINDOW_TAG: u64 = TAG_MASK;
const KEEP_TRANSLATIONS: u64 = 1 << 63;

/// Whether spaces are tagged.
pub fn tagged() -> bool {
    features().pcid && features().invpcid
}

/// What loads a task's space with its window open.
pub fn with_window(task: TaskRef) -> u64 {
    (task.space.get() & !KEEP_TRANSLATIONS) | WINDOW_TAG
}

/// Gives a new task the kernel half and a tag.
pub fn init_space(k: &Kernel, task: TaskRef) {
    let top = task.top.get();
    let entries = &k.pool.at::<Words>(Frame(top)).0;
    for (entry, &kernel) in entries[256..].iter().zip(paging::kernel_top()) {
        entry.set(kernel);
    }
    let number = task.id.get().number() as u64;
    let tag = if tagged() && number < WINDOW_TAG { number | KEEP_TRANSLATIONS } else { 0 };
    task.space.set(top | tag);
    if tag != 0 {
        // A former task of this number may have left translations.
        invpcid(1, tag & TAG_MASK, 0);
    }
}

/// The task's tables are about to be given back: nothing may be left that leads to them.
pub fn end_space(task: TaskRef) {
    flush_space(task);
}

/// Drops all translations of a task.
pub fn flush_space(task: TaskRef) {
    let space = task.space.get();
    if space & KEEP_TRANSLATIONS != 0 {
        invpcid(1, space & TAG_MASK, 0);
    } else if arch::is_started() && arch::current().hot.space.get() == space {
        // SAFETY: the space that is loaded, without the flag that would keep its translations.
        unsafe { write_cr3(space) };
    }
}

/// Drops the translation of one page of a task.
#[inline]
pub fn invalidate(task: TaskRef, address: u64) {
    Forget::of(task).page(address);
}

/// Drops translations of one task, page by page: 0 if it can have none, the tag of a space that is not loaded, or
/// [`Forget::LOADED`].
#[derive(Clone, Copy, Default)]
pub struct Forget(i64);

impl Forget {
    /// Less than any tag, so that one test tells all three apart.
    const LOADED: i64 = -1;

    /// As long as the loaded space stays the same.
    pub fn of(task: TaskRef) -> Forget {
        let space = task.space.get();
        if arch::current().hot.space.get() == space {
            Forget(Forget::LOADED)
        } else if space & KEEP_TRANSLATIONS != 0 {
            Forget((space & TAG_MASK) as i64)
        } else {
            Forget(0)
        }
    }

    /// Drops the translation of one page.
    #[inline(always)]
    pub fn page(self, address: u64) {
        if self.0 == 0 {
            return;
        }
        if self.0 < 0 { invlpg(address) } else { invpcid(0, self.0 as u64, address) }
    }
}
