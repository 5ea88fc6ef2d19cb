//! Regions of memory: `/proc/PID/maps` lists them, and `smaps` counts what is there of each.

use super::TEXT_MAX;
use crate::frames::{Bytes, PAGE};
use crate::machine::Machine;
use crate::memory::{Kind, Label, Memory, Rights};
use crate::process::Process;
use crate::special::Special;
use crate::system::System;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use vfs::{FileSystem, Inode};

/// Columns of a line in front of a blank and the name.
const HEAD_COLUMNS: usize = 72;

/// Name of shared memory that has no other one.
const NAMELESS: &[u8] = b"/dev/zero (deleted)";

/// A region: first address, end, kind.
type Region = (u64, u64, Kind);

/// Bytes of memory that are there.
#[derive(Default)]
struct Usage {
    /// Bytes that are mapped.
    mapped: u64,
    /// Bytes that have frames.
    resident: u64,
    /// Those bytes, each divided by the number of processes that have it: of memory without a file, of files, of shared memory.
    proportional: [u64; 3],
    /// Of those, the bytes that no file has.
    proportional_dirty: u64,
    /// Bytes that others have, too: those that are as a file has them, and the others.
    shared: [u64; 2],
    /// Bytes that this process alone has, in the same way.
    private: [u64; 2],
    /// Bytes that are no file's, and no shared memory's.
    anonymous: u64,
}

impl Usage {
    /// Counts a page of a region whose frame is used so often. A page of a file that is no copy is also used by the file, and one of shared memory by that.
    fn add(&mut self, kind: &Kind, uses: u32) {
        let is_own = kind.source.is_none() || uses == 1;
        let users = u64::from(if is_own { uses } else { uses.saturating_sub(1) }.max(1));
        let is_object = kind.source.is_some_and(|source| source.file.is_object());
        let is_dirty = is_own || is_object || kind.is_shared && kind.rights.has(Rights::WRITE);
        self.resident += PAGE;
        let class = match () {
            () if is_own => 0,
            () if is_object => 2,
            () => 1,
        };
        self.proportional[class] += PAGE / users;
        self.anonymous += if is_own { PAGE } else { 0 };
        if is_dirty {
            self.proportional_dirty += PAGE / users;
        }
        let counted = if users > 1 { &mut self.shared } else { &mut self.private };
        counted[usize::from(is_dirty)] += PAGE;
    }

    /// Lines of `smaps` about it, behind those about the size. `is_sum`: it is that of all regions.
    fn lines(&self, is_sum: bool) -> String {
        let [anonymous, of_files, shared] = self.proportional;
        let all = [("Rss:", self.resident), ("Pss:", anonymous + of_files + shared)];
        let parts = [("Pss_Anon:", anonymous), ("Pss_File:", of_files), ("Pss_Shmem:", shared)];
        let parts = parts.into_iter().filter(|_| is_sum);
        let others = [
            ("Shared_Clean:", self.shared[0]),
            ("Shared_Dirty:", self.shared[1]),
            ("Private_Clean:", self.private[0]),
            ("Private_Dirty:", self.private[1]),
            ("Referenced:", self.resident),
            ("Anonymous:", self.anonymous),
            ("LazyFree:", 0),
            ("AnonHugePages:", 0),
            ("ShmemPmdMapped:", 0),
            ("FilePmdMapped:", 0),
            ("Shared_Hugetlb:", 0),
            ("Private_Hugetlb:", 0),
            ("Swap:", 0),
            ("SwapPss:", 0),
            ("Locked:", 0),
        ];
        let dirty = [("Pss_Dirty:", self.proportional_dirty)];
        all.into_iter().chain(dirty).chain(parts).chain(others).map(size_line).collect()
    }
}

/// A line with a number of bytes, in units of 1024.
fn size_line((name, bytes): (&str, u64)) -> String {
    format!("{name:<16}{:>8} kB\n", bytes / 1024)
}

/// Whether a region shows the code that processes call in place of system calls.
fn is_vdso(kind: &Kind) -> bool {
    kind.source.is_some_and(|source| source.file.0 == Special::Vdso.inode().0)
}

/// The line of a region with a name, which may be empty.
fn line((start, end, kind): &Region, name: &[u8]) -> Vec<u8> {
    let mark = |right: Rights, letter: char| if kind.rights.has(right) { letter } else { '-' };
    let (read, write) = (mark(Rights::READ, 'r'), mark(Rights::WRITE, 'w'));
    let (execute, shared) = (mark(Rights::EXECUTE, 'x'), if kind.is_shared { 's' } else { 'p' });
    let (offset, device, inode) = match kind.source.filter(|_| !is_vdso(kind)) {
        None => (0, "00:00", 0),
        Some(source) if source.file.is_object() => (source.offset, "00:01", source.file.object()),
        Some(source) => (source.offset, "08:01", source.file.0),
    };
    let head = format!("{start:08x}-{end:08x} {read}{write}{execute}{shared} {offset:08x} {device} {inode} ");
    let mut line = if name.is_empty() { head } else { format!("{head:<HEAD_COLUMNS$} ") }.into_bytes();
    for byte in name {
        match byte {
            // A line of the list ends there.
            b'\n' => line.extend_from_slice(b"\\012"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// Marks of a region in `smaps`: what may be done with it, what somebody could let be done, and what it is.
fn flags(kind: &Kind) -> String {
    let may_write = !kind.is_read_only;
    let all = [
        (kind.rights.has(Rights::READ), "rd "),
        (kind.rights.has(Rights::WRITE), "wr "),
        (kind.rights.has(Rights::EXECUTE), "ex "),
        (kind.is_shared, "sh "),
        (true, "mr "),
        (may_write, "mw "),
        (true, "me "),
        (kind.is_shared && may_write, "ms "),
        (kind.grows_down, "gd "),
    ];
    all.into_iter().filter(|(has, _)| *has).map(|(_, mark)| mark).collect()
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Text of `maps`, or of `smaps` with what is there of each region.
    pub(super) fn regions_text(&self, process: &Process, counts: bool) -> Rc<[u8]> {
        let memory = &process.room.borrow().memory;
        let mut text = Vec::new();
        for region in memory.regions() {
            text.append(&mut line(&region, &self.name_of_region(memory, &region)));
            if counts {
                text.extend_from_slice(self.counted(memory, &region).as_bytes());
            }
            if text.len() > TEXT_MAX {
                break;
            }
        }
        text.into()
    }

    /// Name of a region as it is shown, which is empty for most memory without a file.
    fn name_of_region(&self, memory: &Memory, (start, end, kind): &Region) -> Vec<u8> {
        match memory.label(*start, *end, *kind) {
            Label::Given(name) if kind.is_shared => [&b"[anon_shmem:"[..], name, b"]"].concat(),
            Label::Given(name) => [&b"[anon:"[..], name, b"]"].concat(),
            Label::File(_) if is_vdso(kind) => b"[vdso]".to_vec(),
            Label::File(file) if file.is_object() => {
                let name = self.store.frames.object_name(file);
                name.map_or_else(|| NAMELESS.to_vec(), |name| name.to_vec())
            }
            Label::File(file) => {
                let path = memory.path(file).unwrap_or_default();
                let is_gone = !path.is_empty() && self.store.has_lost_name(Inode(file.0));
                let end: &[u8] = if is_gone { b" (deleted)" } else { b"" };
                [path, end].concat()
            }
            Label::Heap => b"[heap]".to_vec(),
            Label::Stack => b"[stack]".to_vec(),
            Label::Nothing => Vec::new(),
        }
    }

    fn usage(&self, memory: &Memory, (start, end, kind): &Region) -> Usage {
        let mut usage = Usage { mapped: end - start, ..Usage::default() };
        for frame in memory.frames_of(*start, *end) {
            usage.add(kind, self.store.frames.use_count(frame));
        }
        usage
    }

    /// Lines of `smaps` behind that of `maps`.
    fn counted(&self, memory: &Memory, region: &Region) -> String {
        let usage = self.usage(memory, region);
        let sizes = [("Size:", usage.mapped), ("KernelPageSize:", PAGE), ("MMUPageSize:", PAGE)];
        let sizes: String = sizes.into_iter().map(size_line).collect();
        let (lines, flags) = (usage.lines(false), flags(&region.2));
        format!("{sizes}{lines}THPeligible:    0\nVmFlags: {flags}\n")
    }

    /// Text of `smaps_rollup`.
    pub(super) fn sum_of_regions(&self, process: &Process) -> Rc<[u8]> {
        let memory = &process.room.borrow().memory;
        let (mut sum, mut first, mut last) = (Usage::default(), None, 0);
        for region in memory.regions() {
            (first, last) = (first.or(Some(region.0)), region.1);
            for frame in memory.frames_of(region.0, region.1) {
                sum.add(&region.2, self.store.frames.use_count(frame));
            }
        }
        let all = (first.unwrap_or(0), last, Kind::private(Rights::NONE));
        let mut text = line(&all, b"[rollup]");
        text.extend_from_slice(sum.lines(true).as_bytes());
        text.into()
    }
}

#[cfg(test)]
mod tests;
