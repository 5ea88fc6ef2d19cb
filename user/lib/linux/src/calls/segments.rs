//! Shared memory of System V: `shmget` and its like.
//!
//! A segment is an [object](crate::memory::Objects) without a file, which this holds until somebody removes the segment; from then on only who has it attached
//! does. Memories say who that is: nobody counts, so a segment follows `fork`, `execve`, `munmap` and the end of a process by itself.

use super::ipc::{Ipc, Kind, structure};
use super::number;
use crate::errno::{EEXIST, EINVAL, ENOSPC, Result};
use crate::frames::{Bytes, PAGE};
use crate::ipc::numbers::{
    IPC_INFO, IPC_PRIVATE, IPC_RMID, IPC_SET, IPC_STAT, SHM_DEST, SHM_EXEC, SHM_HUGETLB, SHM_INFO, SHM_LOCK,
    SHM_LOCKED, SHM_RDONLY, SHM_REMAP, SHM_RND, SHM_STAT, SHM_STAT_ANY, SHM_UNLOCK, SHMMAX,
};
use crate::ipc::{Ids, OBJECTS_MAX, Permissions};
use crate::machine::{Machine, Tid};
use crate::memory::{self, FileNumber, Memory, Rights, Source};
use crate::process::Shared;
use crate::system::{Answer, DONE, System};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::fmt::Write;
use vfs::FileSystem;

/// Bytes of the budget that a segment counts for, beside its object.
const SEGMENT_BYTES: usize = 256;

/// Part of the frames that segments may have together: one of so many. Nobody's end gives back what they have.
const PART: u64 = 2;

/// Shared memory.
#[derive(Debug)]
pub struct Segment {
    /// Its bytes.
    object: FileNumber,
    /// How many were asked for.
    len: u64,
    /// The process that has made it.
    maker: Tid,
    /// The process that has attached or detached it last.
    last: Tid,
    /// When that was, each: seconds since 1970, or 0.
    attached: u64,
    detached: u64,
    /// Whether it goes with the last process that has it.
    is_removed: bool,
}

impl Kind for Segment {
    const TELLS_ANY: u32 = SHM_STAT_ANY;

    fn all(ipc: &mut Ipc) -> &mut Ids<Segment> {
        &mut ipc.segments
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        SEGMENT_BYTES
    }
}

impl Segment {
    fn pages(&self) -> u64 {
        self.len.div_ceil(PAGE)
    }
}

/// A change of segments that a memory shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A process that is a copy has them.
    Attached,
    /// A process has them no longer.
    Detached,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Pages that all segments may have.
    pub(super) fn segment_pages_max(&self) -> u64 {
        self.memory_bytes().0 / PAGE / PART
    }

    /// Pages of all segments, whether they have frames or not.
    fn segment_pages(&self) -> u64 {
        self.kept.ipc.segments.iter().map(|(_, segment)| segment.of.pages()).sum()
    }

    pub(crate) fn sys_shmget(&mut self, tid: Tid, [key, len, flags, ..]: [u64; 6]) -> Answer {
        let pid = self.pid(tid)?;
        let make = |system: &mut Self, permissions| system.make_segment(pid, len, flags as u32, permissions);
        self.ipc_get(tid, (key, flags), |segment: &Segment| len <= segment.len, make)
    }

    fn make_segment(&mut self, pid: Tid, len: u64, flags: u32, permissions: Permissions) -> Result<i32> {
        // There are no large pages.
        if len == 0 || len > SHMMAX || flags & SHM_HUGETLB != 0 {
            return Err(EINVAL);
        }
        let pages = len.div_ceil(PAGE);
        let is_too_much = pages > self.segment_pages_max().saturating_sub(self.segment_pages());
        if is_too_much || self.kept.ipc.segments.count() >= OBJECTS_MAX {
            return Err(ENOSPC);
        }
        let share = self.kept.ipc.lasting.take(&self.budget, SEGMENT_BYTES).ok_or(ENOSPC)?;
        let name = format!("/SYSV{:08x} (deleted)", permissions.key).into_bytes().into();
        let object = self.store.frames.make_object(Some(pages * PAGE), Some(name))?;
        let segment =
            Segment { object, len, maker: pid, last: 0, attached: 0, detached: 0, is_removed: false };
        let now = self.seconds();
        let added = self.kept.ipc.segments.add(permissions, now, segment, Some(share));
        if added.is_err() {
            self.store.frames.leave_object(object);
        }
        added
    }

    pub(crate) fn sys_shmat(&mut self, tid: Tid, [id, at, flags, ..]: [u64; 6]) -> Answer {
        let (id, flags) = (id as i32, flags as u32);
        let replaces = flags & SHM_REMAP != 0;
        let at = match at {
            at if at.is_multiple_of(PAGE) => at,
            at if flags & SHM_RND != 0 => at / PAGE * PAGE,
            _ => return Err(EINVAL),
        };
        if at == 0 && replaces {
            return Err(EINVAL);
        }
        let wanted = [
            (true, Rights::READ, 0o444),
            (flags & SHM_RDONLY == 0, Rights::WRITE, 0o222),
            (flags & SHM_EXEC != 0, Rights::EXECUTE, 0o111),
        ];
        let wanted = wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted);
        let (rights, mode) = wanted.fold((0, 0), |all, (_, right, mode)| (all.0 | right.0, all.1 | mode));
        let segment = self.ipc_allowed::<Segment>(tid, id, mode)?;
        let (file, len) = (segment.of.object, segment.of.pages() * PAGE);
        let kind = memory::Kind {
            is_shared: true,
            is_read_only: flags & SHM_RDONLY != 0,
            source: Some(Source { file, offset: 0 }),
            ..memory::Kind::private(Rights(rights))
        };
        self.check_limit(tid, len)?;
        let room = self.room(tid)?;
        let mut written = BTreeSet::new();
        if replaces {
            written = room.borrow().memory.shared_files(at..at.saturating_add(len));
        }
        let frames = &mut self.store.frames;
        // Pages that are replaced may be all that is left of a removed segment.
        frames.hold_object(file);
        let mapped = room.borrow_mut().memory.map(frames, (at != 0).then_some(at), len, kind, replaces);
        frames.leave_object(file);
        let mapped = mapped.map_err(|error| if error == EEXIST { EINVAL } else { error })?;
        self.bring_unmapped(written);
        let (pid, now) = (self.pid(tid)?, self.seconds());
        let segment = &mut self.ipc_object::<Segment>(tid, id)?.of;
        (segment.attached, segment.last) = (now, pid);
        number(Ok(mapped))
    }

    pub(crate) fn sys_shmdt(&mut self, tid: Tid, [at, ..]: [u64; 6]) -> Answer {
        if !at.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        let segments = self.kept.ipc.segments.iter().map(|(id, segment)| (segment.of.object, id));
        let segments: BTreeMap<FileNumber, i32> = segments.collect();
        let room = self.room(tid)?;
        let found = room.borrow().memory.shown_from(at, |object| segments.contains_key(&object));
        let (object, pieces) = found.ok_or(EINVAL)?;
        room.borrow_mut().memory.unmap_pieces(&mut self.store.frames, object, &pieces);
        let (pid, now) = (self.pid(tid)?, self.seconds());
        let id = segments.get(&object).copied().unwrap_or(-1);
        if let Some(segment) = self.kept.ipc.segments.get_mut(id) {
            (segment.of.detached, segment.of.last) = (now, pid);
        }
        self.let_removed_segments_go();
        DONE
    }

    /// Memories of all processes.
    fn rooms(&self) -> impl Iterator<Item = &Shared> {
        // A child by `vfork` has the memory of its parent.
        let rooms = self.processes.values().map(|process| (Rc::as_ptr(&process.room), &process.room));
        rooms.collect::<BTreeMap<_, _>>().into_values()
    }

    /// How often processes have a segment attached.
    fn attachments(&self, segment: &Segment) -> u64 {
        self.rooms().map(|room| room.borrow().memory.pieces_of_object(segment.object)).sum()
    }

    /// How often processes have each object without a file mapped: one look at each memory, however many segments there are.
    fn all_attachments(&self) -> BTreeMap<FileNumber, u64> {
        let mut all = BTreeMap::new();
        for room in self.rooms() {
            for (_, _, kind) in room.borrow().memory.regions() {
                if let Some(source) = kind.source.filter(|source| source.file.is_object()) {
                    *all.entry(source.file).or_default() += 1;
                }
            }
        }
        all
    }

    /// Segments that a memory shows are somebody's from now on, or no longer.
    pub(crate) fn segments_change(&mut self, pid: Tid, memory: &Memory, change: Change) {
        let now = self.seconds();
        let is_there = |segment: &Segment| memory.has_object(segment.object);
        let segments = self.kept.ipc.segments.iter_mut().map(|(_, segment)| &mut segment.of);
        for segment in segments.filter(|segment| is_there(segment)) {
            segment.last = pid;
            match change {
                Change::Attached => segment.attached = now,
                Change::Detached => segment.detached = now,
            }
        }
    }

    /// Forgets segments that are removed, and that nobody has any more.
    pub(crate) fn let_removed_segments_go(&mut self) {
        let Ipc { segments, segments_removed, .. } = &mut self.kept.ipc;
        if *segments_removed > 0 {
            let before = segments.count();
            let frames = &self.store.frames;
            segments.retain(|segment| !segment.of.is_removed || frames.has_object(segment.of.object));
            *segments_removed -= before - segments.count();
        }
    }

    /// Leaves all segments that are not removed.
    pub(super) fn forget_segments(&mut self) {
        let kept = self.kept.ipc.segments.iter().filter(|(_, segment)| !segment.of.is_removed);
        for (_, segment) in kept {
            self.store.frames.leave_object(segment.of.object);
        }
    }

    pub(crate) fn sys_shmctl(&mut self, tid: Tid, [id, command, at, ..]: [u64; 6]) -> Answer {
        let (id, command) = (id as i32, command as u32);
        if id < 0 {
            return Err(EINVAL);
        }
        match command {
            IPC_STAT | SHM_STAT | SHM_STAT_ANY => {
                let (id, result) = self.ipc_told::<Segment>(tid, id, command)?;
                self.tell_segment(tid, id, at)?;
                number(Ok(result))
            }
            IPC_SET => self.ipc_set::<Segment>(tid, id, at).and(DONE),
            IPC_RMID => self.remove_segment(tid, id),
            SHM_LOCK | SHM_UNLOCK => {
                let segment = self.ipc_owned::<Segment>(tid, id)?;
                let mark = if command == SHM_LOCK { SHM_LOCKED } else { 0 };
                segment.permissions.mode = segment.permissions.mode & !SHM_LOCKED | mark;
                DONE
            }
            IPC_INFO => {
                let words =
                    [SHMMAX, 1, OBJECTS_MAX as u64, OBJECTS_MAX as u64, self.segment_pages_max(), 0, 0, 0, 0];
                self.write_words(tid, at, &words)?;
                number(Ok(self.kept.ipc.segments.highest().into()))
            }
            SHM_INFO => {
                let segments = self.kept.ipc.segments.iter();
                let frames = &self.store.frames;
                let present: u64 = segments.map(|(_, segment)| frames.object_bytes(segment.of.object)).sum();
                let count = self.kept.ipc.segments.count() as u64;
                self.write_words(tid, at, &[count, self.segment_pages(), present / PAGE, 0, 0, 0])?;
                number(Ok(self.kept.ipc.segments.highest().into()))
            }
            _ => Err(EINVAL),
        }
    }

    fn tell_segment(&mut self, tid: Tid, id: i32, at: u64) -> Result<()> {
        let found = self.kept.ipc.segments.get(id).ok_or(EINVAL)?;
        let Segment { len, maker, last, attached, detached, .. } = found.of;
        let processes = u64::from(last) << 32 | u64::from(maker);
        let words = [len, attached, detached, found.changed, processes, self.attachments(&found.of), 0, 0];
        let bytes = structure(&found.permissions, &words);
        self.write(tid, at, &bytes)
    }

    fn remove_segment(&mut self, tid: Tid, id: i32) -> Answer {
        self.ipc_owned::<Segment>(tid, id)?;
        let found = self.kept.ipc.segments.get(id).ok_or(EINVAL)?;
        let (object, was_removed) = (found.of.object, found.of.is_removed);
        if self.attachments(&found.of) == 0 {
            self.kept.ipc.segments.remove(id);
            self.kept.ipc.segments_removed -= usize::from(was_removed);
        } else if let Some(found) = self.kept.ipc.segments.get_mut(id) {
            // Nobody finds it any more, but by its identifier.
            found.permissions.key = IPC_PRIVATE;
            found.permissions.mode |= SHM_DEST;
            found.of.is_removed = true;
            self.kept.ipc.segments_removed += usize::from(!was_removed);
        }
        if !was_removed {
            self.store.frames.leave_object(object);
        }
        DONE
    }

    /// Text of `/proc/sysvipc/shm`.
    pub(super) fn segments_text(&self) -> String {
        let mut text = String::from(
            "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      \
             dtime      ctime                   rss                  swap\n",
        );
        let attachments = self.all_attachments();
        for (id, found) in self.kept.ipc.segments.iter() {
            let (Permissions { key, owner, maker, mode, .. }, of) = (found.permissions, &found.of);
            let present = self.store.frames.object_bytes(of.object);
            // A `String` takes all that is written.
            let _ = writeln!(
                text,
                "{key:10} {id:10}  {mode:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {present:21} {:21}",
                of.len,
                of.maker,
                of.last,
                attachments.get(&of.object).copied().unwrap_or(0),
                owner.0,
                owner.1,
                maker.0,
                maker.1,
                of.attached,
                of.detached,
                found.changed,
                0
            );
        }
        text
    }
}

#[cfg(test)]
mod tests;
