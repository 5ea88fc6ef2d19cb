//! A processor's translation caches, as hostile as the manuals permit.
//!
//! A processor walks ahead of the program, to any address of the loaded space and at any moment. So whatever a walk could
//! have found at any time since it last had to be forgotten may be cached, and may be used. This one always caches it: before
//! and after every instruction that forgets, at every access, and whenever [`audit`] asks. Cached apart are *links*, entries
//! of the upper levels with the rights that they leave: a walk may begin at one, and goes on in whatever its table holds by
//! then. Both carry the tag (PCID) under which they were found.
//!
//! | instruction | what it has to forget |
//! |---|---|
//! | `invlpg` | pages at the address and all links, of the loaded tag |
//! | `invpcid` kind 0 | pages at the address and the links on the way to it, of one tag |
//! | `invpcid` kind 1 | everything of one tag |
//! | load of CR3 | everything of the tag that is loaded, unless bit 63 is set |
//!
//! Intel SDM volume 3, 4.10.2 to 4.10.4; AMD APM volume 2, 5.5. Left out are global pages, which this machine has none of,
//! and the accessed bits that a walk ahead sets.
//!
//! The processor is not hostile at first: then nothing is cached, and each access is a walk of its own.

use crate::arch::four_level::{Table, pte, space};
use crate::layout::WINDOW;
use abi::{PAGE_SIZE, Rights};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

const KEEP: u64 = 1 << 63;
const TAG: u64 = 0xfff;
const USER: u64 = 1 << 2;
const WINDOW_SLOT: usize = (WINDOW >> 39 & 511) as usize;

/// Duty to forget that a processor broken on purpose neglects, so that tests can show that they notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// `invlpg`.
    PageOfLoaded,
    /// `invpcid` of a page.
    PageOfTag,
    /// `invpcid` of a tag.
    Tag,
    /// A load of CR3.
    Load,
    /// A load of CR3 under the tag of windows, which does not happen at all.
    WindowTag,
    /// The links, by any instruction but a load of CR3 that forgets.
    Links,
}

/// Access that all entries on the way allow together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Allowed {
    user: bool,
    rights: u8,
}

impl Allowed {
    const OPEN: Allowed = Allowed { user: true, rights: Rights::RWX.0 };

    fn through(self, entry: u64) -> Allowed {
        Allowed { user: self.user && entry & USER != 0, rights: self.rights & pte::rights(entry).0 }
    }

    fn is_within(self, other: Allowed) -> bool {
        self.user <= other.user && self.rights & !other.rights == 0
    }
}

/// A cached translation, of a page of any size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Page {
    address: u64,
    level: usize,
    frame: u64,
    allowed: Allowed,
    status: u64,
}

impl Page {
    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < size(self.level)
    }

    /// Physical address of an address in the page.
    fn shows(&self, address: u64) -> u64 {
        self.frame + (address - self.address)
    }

    /// Whether it shows the memory that `other`, a page around it, shows there too, and allows no more.
    fn is_part_of(&self, other: &Page) -> bool {
        other.shows(self.address) == self.frame && self.allowed.is_within(other.allowed)
    }
}

/// A cached entry of an upper level: the table of `level` for the addresses from `address` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Link {
    address: u64,
    level: usize,
    table: u64,
    allowed: Allowed,
}

impl Link {
    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < size(self.level + 1)
    }
}

/// Bytes that an entry of a level covers.
fn size(level: usize) -> u64 {
    1 << (12 + 9 * level)
}

/// Page or table that an entry at `index` of a table leads to.
enum Step {
    Page(Page),
    Link(Link),
}

fn step(from: Link, index: usize, entry: u64) -> Step {
    let offset = index as u64 * size(from.level);
    let upper = if from.level == 3 && index >= 256 { !0 << 48 } else { 0 };
    let (address, allowed) = ((from.address + offset) | upper, from.allowed.through(entry));
    if from.level == 0 || from.level < 3 && pte::is_large(entry) {
        let frame = pte::address(entry) & !(size(from.level) - 1);
        Step::Page(Page { address, level: from.level, frame, allowed, status: pte::status(entry) })
    } else {
        Step::Link(Link { address, level: from.level - 1, table: pte::address(entry), allowed })
    }
}

/// The memory where tables lie.
#[derive(Clone, Copy)]
struct Tables {
    start: u64,
    frames: usize,
    memory: *mut u8,
}

impl Tables {
    /// The table in a frame; `None` if the frame is not in the memory where tables lie.
    fn at(&self, frame: u64) -> Option<&'static [Cell<u64>; 512]> {
        let offset = frame.wrapping_sub(self.start);
        (offset / PAGE_SIZE < self.frames as u64).then(|| {
            // SAFETY: by the promise of `attach`. If the frame is no table, its cells are read as one, as a processor would.
            unsafe { &*self.memory.wrapping_add(offset as usize).cast::<Table>() }
        })
    }
}

/// Translations and links that are cached under one tag.
#[derive(Clone, Default)]
struct Cached {
    pages: BTreeSet<Page>,
    links: BTreeSet<Link>,
}

#[derive(Default)]
struct Processor {
    /// CR3, without bit 63, which is no part of its value.
    space: u64,
    tagged: bool,
    hostile: bool,
    tables: Option<Tables>,
    tags: BTreeMap<u64, Cached>,
    defect: Option<Defect>,
    /// Harm that a stale translation has done, as text.
    harm: Option<String>,
}

thread_local! {
    static PROCESSOR: RefCell<Processor> = RefCell::new(Processor::default());
}

impl Processor {
    fn tag(&self) -> u64 {
        if self.tagged { self.space & TAG } else { 0 }
    }

    fn root(space: u64) -> Link {
        Link { address: 0, level: 3, table: pte::address(space), allowed: Allowed::OPEN }
    }

    /// Caches all that can be found now: from the loaded table, and from each link that is cached.
    fn look_ahead(&mut self) {
        let (true, Some(tables)) = (self.hostile, self.tables) else { return };
        let root = Processor::root(self.space);
        let cached = self.tags.entry(self.tag()).or_default();
        let mut ahead: Vec<Link> = cached.links.iter().copied().chain([root]).collect();
        let mut seen = BTreeSet::new();
        while let Some(link) = ahead.pop() {
            let Some(table) = tables.at(link.table).filter(|_| seen.insert(link)) else { continue };
            for (index, entry) in used(table) {
                match step(link, index, entry) {
                    Step::Page(page) => _ = cached.pages.insert(page),
                    Step::Link(link) => {
                        cached.links.insert(link);
                        ahead.push(link);
                    }
                }
            }
        }
    }

    fn forget(&mut self, tag: u64, pages: impl Fn(&Page) -> bool, links: impl Fn(&Link) -> bool) {
        self.look_ahead();
        let keeps_links = self.defect == Some(Defect::Links);
        let cached = self.tags.entry(tag).or_default();
        cached.pages.retain(|page| !pages(page));
        cached.links.retain(|link| keeps_links || !links(link));
        self.look_ahead();
    }

    /// The page that a walk from the top finds, and its entry.
    fn walk(&self, space: u64, address: u64) -> Option<(Page, &'static Cell<u64>)> {
        let mut link = Processor::root(space);
        loop {
            let index = (address / size(link.level)) as usize % 512;
            let entry = &self.tables?.at(link.table)?[index];
            if !pte::is_present(entry.get()) {
                return None;
            }
            match step(link, index, entry.get()) {
                Step::Page(page) => return Some((page, entry)),
                Step::Link(below) => link = below,
            }
        }
    }

    /// Physical address of an access of the kernel's; `None` if it faults.
    fn access(&mut self, address: u64, right: Rights) -> Option<u64> {
        self.look_ahead();
        let found = self.walk(self.space, address);
        let cached = self.tags.get(&self.tag());
        let mut cached = cached.iter().flat_map(|cached| &cached.pages).filter(|page| page.has(address));
        let stale = cached.find(|page| !found.is_some_and(|(now, _)| page.is_part_of(&now)));
        if let Some(&stale) = stale {
            // The worst that may happen does: the stale translation is used.
            self.harm = Some(format!("an access to {address:#x} goes through {stale:x?}"));
            return Some(stale.shows(address));
        }
        let (page, entry) = found.filter(|(page, _)| Rights(page.allowed.rights).has(right))?;
        entry.set(pte::touched(entry.get(), right == Rights::W));
        Some(page.shows(address))
    }

    /// Translation or link that is cached under the tag of a space and is not, or no longer, in its tables; as text.
    fn stale(&self, space: u64, tag: u64) -> Option<String> {
        let cached = self.tags.get(&tag)?;
        let page = cached.pages.iter().find(|page| {
            let now = self.walk(space, page.address);
            !now.is_some_and(|(now, _)| page.is_part_of(&now) && page.status & !now.status == 0)
        });
        let link = || cached.links.iter().find(|link| !self.has_link(space, link));
        page.map(|page| format!("{page:x?}")).or_else(|| link().map(|link| format!("{link:x?}")))
    }

    fn has_link(&self, space: u64, link: &Link) -> bool {
        let mut at = Processor::root(space);
        while at.level > link.level {
            let index = (link.address / size(at.level)) as usize % 512;
            let entry =
                self.tables.and_then(|tables| tables.at(at.table)).map_or(0, |table| table[index].get());
            match step(at, index, entry) {
                Step::Link(below) if pte::is_present(entry) => at = below,
                _ => return false,
            }
        }
        at.table == link.table && link.allowed.is_within(at.allowed)
    }
}

/// Entries of a table that are present; most are not.
fn used(table: &'static [Cell<u64>; 512]) -> impl Iterator<Item = (usize, u64)> {
    let parts = table.chunks_exact(8).enumerate();
    let parts = parts.filter(|(_, part)| part.iter().fold(0, |all, entry| all | entry.get()) != 0);
    let entries = parts.flat_map(|(at, part)| (8 * at..).zip(part.iter().map(Cell::get)));
    entries.filter(|&(_, entry)| pte::is_present(entry))
}

/// A new processor, which caches nothing.
pub(super) fn reset() {
    PROCESSOR.set(Processor::default());
}

/// Tells where the tables of spaces lie: in `frames` frames at `memory`, the first with the physical address `start`.
///
/// # Safety
/// The memory stays as long as the machine, and holds nothing but cells.
pub unsafe fn attach(memory: *mut u8, start: u64, frames: usize) {
    let tables = Tables { start, frames, memory };
    PROCESSOR.with_borrow_mut(|processor| processor.tables = Some(tables));
}

/// Makes the processor cache all that it may, before the first task is made. `tagged`: with PCID and INVPCID.
pub fn be_hostile(tagged: bool) {
    PROCESSOR.with_borrow_mut(|processor| (processor.hostile, processor.tagged) = (true, tagged));
}

/// Breaks the processor.
pub fn break_down(defect: Defect) {
    PROCESSOR.with_borrow_mut(|processor| processor.defect = Some(defect));
}

/// Whether the processor has tags, and the instruction that forgets them.
pub(super) fn is_tagged() -> bool {
    PROCESSOR.with_borrow(|processor| processor.tagged)
}

/// Drops pages at an address, and all links, of the loaded tag.
pub fn invlpg(address: u64) {
    PROCESSOR.with_borrow_mut(|processor| {
        if processor.defect != Some(Defect::PageOfLoaded) {
            processor.forget(processor.tag(), |page| page.has(address), |_| true);
        }
    });
}

/// Drops pages at an address with the links on the way there (kind 0), or everything (kind 1), of a tag.
pub fn invpcid(kind: u64, tag: u64, address: u64) {
    PROCESSOR.with_borrow_mut(|processor| {
        assert!(processor.tagged && tag <= TAG && kind <= 1, "invalid operation");
        let defect = if kind == 0 { Defect::PageOfTag } else { Defect::Tag };
        if processor.defect != Some(defect) {
            let all = kind == 1;
            processor.forget(tag, |page| all || page.has(address), |link| all || link.has(address));
        }
    });
}

/// Loads CR3.
///
/// # Safety
/// Nothing is asked of the caller here; on a real machine the space has to have the kernel half.
pub unsafe fn write_cr3(value: u64) {
    PROCESSOR.with_borrow_mut(|processor| {
        assert!(processor.tagged || value & (KEEP | TAG) == 0, "general protection fault");
        if value & TAG == space::WINDOW_TAG && processor.defect == Some(Defect::WindowTag) {
            return;
        }
        processor.look_ahead();
        processor.space = value & !KEEP;
        if value & KEEP == 0 && processor.defect != Some(Defect::Load) {
            processor.tags.remove(&processor.tag());
        }
        processor.look_ahead();
    });
}

/// Physical address of an access of the kernel's to memory of a user; `None` if it faults.
pub(super) fn access(address: u64, right: Rights) -> Option<u64> {
    PROCESSOR.with_borrow_mut(|processor| processor.access(address, right))
}

/// A space in which the processor could run.
#[derive(Clone, Copy)]
pub struct Space {
    /// The word that selects it.
    pub word: u64,
    /// Its top-level table.
    pub top: &'static [Cell<u64>; 512],
}

/// Checks the caches while no kernel code runs. An error is: a translation or link that is not in the tables of the space in
/// which it would be used; a loaded space that is not `current`, the current thread's; a window that is open. Its text says
/// which one, and in which of the spaces.
pub fn audit<S: std::fmt::Debug>(
    current: u64,
    mut spaces: impl Iterator<Item = (S, Space)>,
) -> Result<(), String> {
    PROCESSOR.with_borrow_mut(|processor| {
        processor.look_ahead();
        if let Some(harm) = processor.harm.take() {
            return Err(harm);
        }
        let loaded = processor.space;
        if loaded != current & !KEEP {
            return Err(format!("{loaded:#x} is loaded, not {current:#x}"));
        }
        spaces.try_for_each(|(whose, Space { word, top })| {
            if top[WINDOW_SLOT].get() != 0 {
                return Err(format!("the window of {whose:?} is open"));
            }
            // Without tags, and under the tag of windows, which all spaces share, each load forgets.
            let tag = if word & KEEP != 0 { word & TAG } else { loaded & TAG };
            if word & KEEP == 0 && word != loaded {
                return Ok(());
            }
            processor.stale(word, tag).map_or(Ok(()), |what| Err(format!("{whose:?} may use {what}")))
        })
    })
}
