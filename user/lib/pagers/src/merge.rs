//! Two files as one: figure 1 of "On µ-Kernel Construction" (row C11).
//!
//! F stands between its clients and the files f1 and f2. A page comes to F as a mapping, and F *grants* it on. So F
//! has each page for a moment only: it needs one page of address space however large the files are, pays for no mapping,
//! and is not in the way when a file takes a page back. A page of f1 that F granted to A is a mapping from f1 to A; when
//! F ends A keeps it, when f1 ends A loses it.

use crate::{Pager, Zone, show};
use alloc::vec::Vec;
use rt::api::{Reply, file};
use rt::frames::View;
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Rights, Uid};

/// A part of the merged file.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Pager of the part.
    pub server: Uid,
    /// How long it is.
    pub pages: u64,
}

/// The merging pager.
#[derive(Debug)]
pub struct Merge {
    zone: Zone,
    parts: Vec<Part>,
    rights: Rights,
    /// Where a page is between its coming and its going.
    transit: View,
}

impl Merge {
    /// Shows the parts one after another. `None` if there is no address space left.
    pub fn new(zone: Zone, parts: Vec<Part>, rights: Rights) -> Option<Merge> {
        Some(Merge { zone, parts, rights, transit: View::new()? })
    }

    /// Pager of a page, and the number that the page has there.
    fn part(&self, mut page: u64) -> Option<(Uid, u64)> {
        for part in &self.parts {
            if page < part.pages {
                return Some((part.server, page));
            }
            page -= part.pages;
        }
        None
    }

    fn find(&self, fault: &Fault) -> Option<Reply> {
        let page = self.zone.page(fault, self.rights)?;
        let (server, number) = self.part(page)?;
        file::page(server, number, self.rights, self.transit.window()).ok()?;
        Some(show(self.transit.grant(self.rights), self.zone.address(page)))
    }
}

impl Pager for Merge {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }
}
