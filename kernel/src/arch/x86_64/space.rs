//! Address spaces in the processor: CR3, tags, and what must be forgotten when a table changes.
//!
//! With PCID a task's translations carry a tag of its own and survive switches; INVPCID drops those of a space that is not
//! loaded. Both or neither are used. The last tag is for spaces with an open window (see `copy.rs`). Without tags each load
//! empties everything but the kernel's global pages, so only the loaded space needs INVLPG. Intel SDM volume 3, 4.10.
//!
//! **Tags are used again.** A new task gets a free one. If there is none it shares tag 0 with all others that have none,
//! which every load of CR3 empties, until it is found running at the end of a time slice: then it gets the tag of another
//! task, which shares from then on ([`renew_tag`], decision 0032). INVPCID empties a tag before it has a new owner.

use super::cpu::features;
use super::instructions::{invlpg, invpcid, write_cr3};
use super::paging;
use crate::arch;
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Pool, Words};
use crate::object::{TaskRef, ThreadRef};
use crate::param;
use crate::util::tags::TAG_MAX;
use abi::PAGE_SIZE;

const TAG_MASK: u64 = 4095;
/// What a space has as its tag while its window is open; every load with it forgets what it found before.
pub const WINDOW_TAG: u64 = TAG_MASK;
const KEEP_TRANSLATIONS: u64 = 1 << 63;

const _: () = assert!((TAG_MAX as u64) < WINDOW_TAG);

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
    if task.user_space.get() != 0 {
        let shown = &k.pool.at::<Words>(Frame(task.user_space.get())).0;
        for (entry, &kernel) in shown[256..].iter().zip(paging::shown_top()) {
            entry.set(kernel);
        }
    }
    set_space(task, top);
    if tagged()
        && let Some(tag) = k.tags.take()
    {
        give_tag(task, tag);
    }
}

/// Frames that a task needs for its space, beside those that pages need.
pub fn space_frames() -> u32 {
    if features().isolates { 2 } else { 1 }
}

/// An entry of the task's top-level table has changed. Under page-table isolation its users have another one.
pub fn show(pool: &Pool, task: TaskRef, index: usize) {
    if task.user_space.get() != 0 {
        let [from, to] =
            [task.top.get(), task.user_space.get()].map(|top| &pool.at::<Words>(Frame(top)).0[index]);
        to.set(from.get());
    }
}

/// The task's tables are about to be given back: nothing may be left that leads to them.
pub fn end_space(k: &Kernel, task: TaskRef) {
    flush_space(task);
    if let Some(tag) = tag_of(task) {
        k.tags.give_back(tag);
    }
}

/// The tag that a task has for itself.
pub fn tag_of(task: TaskRef) -> Option<u16> {
    let space = task.space.get();
    (space & KEEP_TRANSLATIONS != 0).then_some((space & TAG_MASK) as u16)
}

/// Nothing is under the tag that a former owner may have left.
fn give_tag(task: TaskRef, tag: u16) {
    invpcid(1, tag as u64, 0);
    set_space(task, task.top.get() | tag as u64 | KEEP_TRANSLATIONS);
}

fn set_space(task: TaskRef, space: u64) {
    task.space.set(space);
    let next = |thread: &ThreadRef| task.threads.after(*thread);
    core::iter::successors(task.threads.first(), next).for_each(|thread| thread.hot.space.set(space));
}

/// The running task was found so at the end of a time slice. If it has no tag for itself it gets one: a free one, or that
/// of the next task round whose threads can be told soon.
#[inline]
pub fn renew_tag(k: &Kernel, current: TaskRef) {
    if tagged() && tag_of(current).is_none() {
        find_tag(k, current);
    }
}

#[cold]
fn find_tag(k: &Kernel, current: TaskRef) {
    let is_small = |task: TaskRef| task.thread_count.get() <= param::TAG_THREADS_MAX;
    if !is_small(current) {
        return;
    }
    let tag = k.tags.take().or_else(|| {
        let end = k.task_slots.high_water() as u16;
        let numbers = (0..param::TAG_SEARCH).map(|_| k.tags.next_task(end));
        let tasks = numbers.map(|number| k.task_frame(number)).filter(|frame| frame.0 != 0);
        let mut tasks = tasks.map(|frame| TaskRef::at(&k.pool, frame));
        let owner = tasks.find(|&task| tag_of(task).is_some() && is_small(task))?;
        let tag = tag_of(owner);
        set_space(owner, owner.top.get());
        tag
    });
    if let Some(tag) = tag {
        give_tag(current, tag);
        // SAFETY: the space that is loaded, under another tag.
        unsafe { write_cr3(current.space.get()) };
    }
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

    /// Drops the translations of `count` pages in a row, or all of the space.
    #[inline(always)]
    pub fn pages(self, first: u64, count: usize) {
        let pages = (0..count as u64).map(|i| first + i * PAGE_SIZE);
        if self.0 < 0 {
            let space = arch::current().hot.space.get();
            if count < param::FORGOTTEN_TOGETHER || space & KEEP_TRANSLATIONS != 0 {
                pages.for_each(invlpg);
            } else {
                // SAFETY: the space that is loaded.
                unsafe { write_cr3(space) };
            }
        } else if self.0 > 0 {
            pages.for_each(|address| invpcid(0, self.0 as u64, address));
        }
    }
}
