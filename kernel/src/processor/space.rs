//! The spaces of tasks in the processor: their tags, and the translations to be forgotten when a table changes.
//!
//! **Tags are used again.** A new task gets a free one. If there is none it shares tag 0 with all others that have none,
//! which every load of the space empties, until it is found running at the end of a time slice: then it gets the tag of another
//! task, which shares from then on ([`renew_tag`], decision 0032). A tag is emptied before it has a new owner.
//!
//! The machine makes the word that selects a space, and forgets translations ([`crate::arch::space`]).

use super::{current, is_started};
use crate::arch::{Table, space};
use crate::kernel::Kernel;
use crate::mem::pool::{Frame, Pool, Words};
use crate::object::{TaskRef, ThreadRef};
use crate::param;
use crate::util::tags::TAG_MAX;
use abi::PAGE_SIZE;

const _: () = assert!((TAG_MAX as u64) < space::WINDOW_TAG);

fn table(pool: &Pool, frame: u64) -> &'static Table {
    &pool.at::<Words>(Frame(frame)).0
}

/// Gives a new task the kernel half and a tag.
pub fn init_space(k: &Kernel, task: TaskRef) {
    let top = task.top.get();
    space::fill_kernel_half(table(&k.pool, top));
    if task.user_space.get() != 0 {
        space::fill_shown_half(table(&k.pool, task.user_space.get()));
    }
    set_space(task, space::untagged(top));
    if space::tagged()
        && let Some(tag) = k.tags.take()
    {
        give_tag(task, tag);
    }
}

/// Number of frames that a task needs for its space: top-level tables, without the tables of its pages.
pub fn space_frames() -> u32 {
    space::tables()
}

/// Shows users an entry of the task's top-level table that has changed: under page-table isolation they run on another table.
pub fn show(pool: &Pool, task: TaskRef, index: usize) {
    if task.user_space.get() != 0 {
        let [from, to] = [task.top.get(), task.user_space.get()].map(|top| &table(pool, top)[index]);
        to.set(from.get());
    }
}

/// Empties the kernel half of the task's top-level tables, which are about to be given back, and forgets all that was found in them.
pub fn end_space(k: &Kernel, task: TaskRef) {
    let tops = [task.top.get(), task.user_space.get()];
    tops.iter().filter(|&&top| top != 0).for_each(|&top| space::clear_kernel_half(table(&k.pool, top)));
    flush_space(task);
    if let Some(tag) = tag_of(task) {
        k.tags.give_back(tag);
    }
}

/// The tag that a task has for itself.
pub fn tag_of(task: TaskRef) -> Option<u16> {
    space::tag_in(task.space.get())
}

fn give_tag(task: TaskRef, tag: u16) {
    set_space(task, space::with_tag(task.top.get(), tag));
}

fn set_space(task: TaskRef, space: u64) {
    task.space.set(space);
    let next = |thread: &ThreadRef| task.threads.after(*thread);
    core::iter::successors(task.threads.first(), next).for_each(|thread| thread.hot.space.set(space));
}

/// Gives a task that is found running at the end of a time slice a tag, if it has none for itself: a free one, or that of the next
/// task in turn with so few threads that all can be told in this step.
#[inline]
pub fn renew_tag(k: &Kernel, current: TaskRef) {
    if space::tagged() && tag_of(current).is_none() {
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
        set_space(owner, space::untagged(owner.top.get()));
        tag
    });
    if let Some(tag) = tag {
        give_tag(current, tag);
        // Loads the space anew, under its new tag.
        space::load(current.space.get());
    }
}

/// Drops all translations of a task.
pub fn flush_space(task: TaskRef) {
    let word = task.space.get();
    if let Some(tag) = space::tag_in(word) {
        space::forget_tag(tag);
    } else if is_started() && current().hot.space.get() == word {
        // Without a tag the load keeps nothing.
        space::load(word);
    }
}

/// Drops the translation of one page of a task.
#[inline]
pub fn invalidate(task: TaskRef, address: u64) {
    Forget::of(task).page(address);
}

/// Drops translations of one task, page by page. The number is 0 if there can be none, the tag of a space that is not loaded, or
/// [`Forget::LOADED`].
#[derive(Clone, Copy, Default)]
pub struct Forget(i64);

impl Forget {
    /// A number less than any tag, so that one test tells all three apart.
    const LOADED: i64 = -1;

    /// Prepares to drop translations of a task. The value is good as long as the loaded space stays the same.
    pub fn of(task: TaskRef) -> Forget {
        let word = task.space.get();
        if current().hot.space.get() == word {
            Forget(Forget::LOADED)
        } else {
            Forget(space::tag_in(word).map_or(0, i64::from))
        }
    }

    /// Drops the translation of one page.
    #[inline(always)]
    pub fn page(self, address: u64) {
        if self.0 == 0 {
            return;
        }
        if self.0 < 0 {
            space::forget_page(address);
        } else {
            space::forget_tagged_page(self.0 as u64, address);
        }
    }

    /// Drops the translations of `count` pages in a row, or all translations of the space.
    #[inline(always)]
    pub fn pages(self, first: u64, count: usize) {
        let pages = (0..count as u64).map(|i| first + i * PAGE_SIZE);
        if self.0 < 0 {
            let word = current().hot.space.get();
            if count < param::FORGOTTEN_TOGETHER || space::tag_in(word).is_some() {
                pages.for_each(space::forget_page);
            } else {
                space::load(word);
            }
        } else if self.0 > 0 {
            pages.for_each(|address| space::forget_tagged_page(self.0 as u64, address));
        }
    }
}
