//! The word that selects an address space in the processor: CR3, with a tag (PCID), and what must be forgotten.
//!
//! With PCID a space's translations carry a tag of its own and survive switches; INVPCID drops those of a space that is not
//! loaded. Both or neither are used. The last tag is for spaces with an open window (see `window.rs`). Without tags each load
//! empties everything but the kernel's global pages, so only the loaded space needs INVLPG. Intel SDM volume 3, 4.10.

use super::Table;
use crate::arch::isa::cpu::features;
use crate::arch::isa::instructions::{self, invlpg, invpcid};
use crate::arch::isa::paging;
use crate::layout;

/// The bits of a word that are its tag.
pub const TAG_MASK: u64 = 4095;

/// Tag under which any space runs while its copy window is open. Each load with it forgets what is cached under it.
pub const WINDOW_TAG: u64 = TAG_MASK;

/// Bit of a word: its load keeps what is cached under its tag.
const KEEP_TRANSLATIONS: u64 = 1 << 63;

/// Whether spaces are tagged.
pub fn tagged() -> bool {
    features().pcid && features().invpcid
}

/// Top-level tables of a space: one more under page-table isolation.
pub fn tables() -> u32 {
    if features().isolates { 2 } else { 1 }
}

/// Index of the first entry of a top-level table that belongs to the kernel half.
const KERNEL_HALF: usize = 256;

/// Entries of a top-level table that the kernel half uses. The others of it are empty in every task, so that a new table has them right
/// and an old one is given back with them as they are.
const KERNEL_ENTRIES: [usize; layout::PARTS.len()] = {
    let mut entries = [0; layout::PARTS.len()];
    let mut part = 0;
    while part < entries.len() {
        entries[part] = (layout::PARTS[part] >> 39) as usize % 512;
        assert!(entries[part] >= KERNEL_HALF && (part == 0 || entries[part - 1] < entries[part]));
        part += 1;
    }
    entries
};

/// Gives a top-level table the kernel half.
pub fn fill_kernel_half(top: &Table) {
    fill(top, paging::kernel_top());
}

/// Gives the top-level table that users run on, under page-table isolation, what is shown of the kernel half.
pub fn fill_shown_half(top: &Table) {
    fill(top, paging::shown_top());
}

fn fill(top: &Table, half: &[u64; 256]) {
    let is_given = |index: usize| KERNEL_ENTRIES.contains(&(KERNEL_HALF + index));
    debug_assert!(half.iter().enumerate().all(|(index, &entry)| entry == 0 || is_given(index)));
    KERNEL_ENTRIES.iter().for_each(|&index| top[index].set(half[index - KERNEL_HALF]));
}

/// Takes the kernel half out of a top-level table that is about to be given back.
pub fn clear_kernel_half(top: &Table) {
    KERNEL_ENTRIES.iter().for_each(|&index| top[index].set(0));
}

/// The word of a space without a tag of its own, whose top-level table is `top`.
pub const fn untagged(top: u64) -> u64 {
    top
}

/// The word of a space with a tag of its own. Forgets what a former owner may have left under the tag.
pub fn with_tag(top: u64, tag: u16) -> u64 {
    invpcid(1, tag as u64, 0);
    top | tag as u64 | KEEP_TRANSLATIONS
}

/// The tag that a space has for itself.
#[inline(always)]
pub const fn tag_in(space: u64) -> Option<u16> {
    if space & KEEP_TRANSLATIONS != 0 { Some((space & TAG_MASK) as u16) } else { None }
}

/// The word that loads a space with its copy window open.
pub const fn with_window(space: u64) -> u64 {
    (space & !KEEP_TRANSLATIONS) | WINDOW_TAG
}

/// Loads a space: the word of a task, whose tables have the kernel half.
#[inline(always)]
pub fn load(space: u64) {
    // SAFETY: words are made by `untagged`, `with_tag` and `with_window` alone, of tables with the kernel half.
    unsafe { instructions::write_cr3(space) };
}

/// Forgets all translations of a tag.
#[inline(always)]
pub fn forget_tag(tag: u16) {
    invpcid(1, tag as u64, 0);
}

/// Forgets the translation of one page of the loaded space.
#[inline(always)]
pub fn forget_page(address: u64) {
    invlpg(address);
}

/// Forgets the translation of one page under a tag.
#[inline(always)]
pub fn forget_tagged_page(tag: u64, address: u64) {
    invpcid(0, tag, address);
}
