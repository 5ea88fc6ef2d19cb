//! More pages than frames: what does not fit goes to a disk (row C11).
//!
//! The pager has a fixed number of frames for all pages of its zone. When they are used up, its user's [`Policy`]
//! chooses a page; if that was written since it came, it is copied to the store, and its frame gets the page that is wanted.
//! Accesses of the clients to a page are known from the flush that takes it away: the bits of the page tables come with
//! it, so no fault is needed to learn of the first write.
//!
//! All tasks that it pages see the same pages. The store is any [`rt::api::file`] that can be written.

use crate::policy::Policy;
use crate::{Pager, Zone, show};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use rt::api::{Reply, file};
use rt::frames::{Frame, Pool, Shared, Supply, View};
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Rights, Uid};

/// Counts of its work, for the owner of the other reference.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Pages read from the store.
    pub read: AtomicU64,
    /// Pages written to the store.
    pub written: AtomicU64,
    /// Pages that had to go; those not written were in the store already, or never written to.
    pub replaced: AtomicU64,
}

/// A disk, page by page.
#[derive(Debug)]
pub struct Store {
    server: Uid,
    /// Where its pages are while they are read, and while they are written.
    source: View,
    target: View,
}

impl Store {
    /// Uses a file as a disk. `None` if there is no address space left.
    pub fn new(server: Uid) -> Option<Store> {
        Some(Store { server, source: View::new()?, target: View::new()? })
    }

    /// Makes a page ready to be read. After that nothing can fail as long as the disk lives.
    fn open(&self, page: u64) -> rt::api::Result<()> {
        file::page(self.server, page, Rights::R, self.source.window())
    }

    fn write(&self, page: u64, frame: &mut Frame) -> rt::api::Result<()> {
        file::page(self.server, page, Rights::RW, self.target.window())?;
        self.target.copy_from(frame);
        Ok(())
    }
}

/// A page that has a frame.
#[derive(Debug)]
struct Loaded {
    page: Shared,
    /// It was written to since it was loaded, as far as anybody asked.
    written: bool,
}

impl Loaded {
    /// Whether it was accessed since this was asked last. The answer comes with *written*, which must not be lost.
    fn accessed(&mut self) -> bool {
        let touched = self.page.touched();
        self.written |= touched.written;
        touched.accessed
    }
}

/// The swapping pager.
#[derive(Debug)]
pub struct Swap<S, P> {
    zone: Zone,
    pool: Pool<S>,
    frames_left: usize,
    policy: P,
    store: Store,
    loaded: BTreeMap<u64, Loaded>,
    /// Pages of which the store has a copy. It is good until the page is written to.
    stored: BTreeSet<u64>,
    statistics: Arc<Statistics>,
}

impl<S: Supply, P: Policy> Swap<S, P> {
    /// A pager with at most `frames` frames.
    pub fn new(
        zone: Zone,
        (pool, frames): (Pool<S>, usize),
        policy: P,
        store: Store,
        statistics: Arc<Statistics>,
    ) -> Swap<S, P> {
        let (loaded, stored) = (BTreeMap::new(), BTreeSet::new());
        Swap { zone, pool, frames_left: frames, policy, store, loaded, stored, statistics }
    }

    /// A frame: a new one, or that of a page that has to go.
    fn frame(&mut self) -> Option<Frame> {
        if self.frames_left == 0 {
            return self.replace();
        }
        self.frames_left -= 1;
        self.pool.take()
    }

    fn replace(&mut self) -> Option<Frame> {
        let loaded = &mut self.loaded;
        let victim = self.policy.victim(&mut |page| loaded.get_mut(&page).is_some_and(Loaded::accessed))?;
        let Loaded { page, written } = self.loaded.remove(&victim)?;
        let (mut frame, touched) = page.take_back();
        if written || touched.written {
            if self.store.write(victim, &mut frame).is_err() {
                // A page that cannot be stored stays, and the fault is refused: nothing is lost.
                self.keep(victim, frame, true);
                return None;
            }
            self.stored.insert(victim);
            self.statistics.written.fetch_add(1, Ordering::Relaxed);
        }
        self.statistics.replaced.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    fn load(&mut self, page: u64) -> Option<()> {
        let is_stored = self.stored.contains(&page);
        if is_stored {
            // First, so that no page has to go for one that cannot come.
            self.store.open(page).ok()?;
        }
        let mut frame = self.frame()?;
        if is_stored {
            self.store.source.copy_to(&mut frame);
            self.statistics.read.fetch_add(1, Ordering::Relaxed);
        } else {
            frame.bytes_mut().fill(0);
        }
        self.keep(page, frame, false);
        Some(())
    }

    fn keep(&mut self, page: u64, frame: Frame, written: bool) {
        self.loaded.insert(page, Loaded { page: frame.share(), written });
        self.policy.loaded(page);
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let page = self.zone.page(fault, Rights::RW)?;
        if !self.loaded.contains_key(&page) {
            self.load(page)?;
        }
        Some(show(self.loaded.get(&page)?.page.fpage(Rights::RW), self.zone.address(page)))
    }
}

impl<S: Supply, P: Policy> Pager for Swap<S, P> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }
}
