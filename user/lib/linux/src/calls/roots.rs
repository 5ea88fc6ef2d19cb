//! Root directories of processes: `chroot`, and paths of processes that have another root than the sandbox.
//!
//! All calls look things up by paths from the sandbox's root on. A path of a process with another root is made one of these when a call names it: it is walked up to its last name, so that no symbolic
//! link and no `..` is left in front of that which could mean something else from another root on. The last name is walked by [`System::reach`].

use super::HERE;
use super::moved::rest;
use super::paths::with_share;
use super::permissions::whole;
use super::way::{Way, last_name};
use crate::errno::{EPERM, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::FilesystemInformation;
use crate::system::{Answer, DONE, System};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{CAP_SYS_CHROOT, O_DIRECTORY, O_PATH};
use vfs::FileSystem;
use vfs::path::Last;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The root directory of a thread's process; none if it is that of the sandbox.
    pub(super) fn root_directory(&self, tid: Tid) -> Result<Option<Rc<Open>>> {
        let process = self.other(self.pid(tid)?)?;
        Ok(process.filesystem.borrow().root.clone())
    }

    /// Whether a thread's process has another root directory than the sandbox.
    pub(super) fn has_root(&self, tid: Tid) -> Result<bool> {
        let process = self.other(self.pid(tid)?)?;
        Ok(process.filesystem.borrow().root.is_some())
    }

    /// The path from the sandbox's root on that a path of a thread with another root means. Its last name may be that of a symbolic link, or of nothing. A path without a last name, since it
    /// ends with `.` or `..` or is that of the root, ends with a dot.
    pub(super) fn path_in_root(&mut self, tid: Tid, directory: u64, path: &[u8]) -> Result<Way> {
        let start = match self.root_directory(tid)?.filter(|_| path.first() == Some(&b'/')) {
            Some(root) => root.name(),
            None => self.base(tid, directory)?,
        };
        self.look_at_links(tid, &[start.as_slice(), b"/", path].concat());
        let mut found = self.walk(tid, &start, path, Last::Name, 0)?.path;
        match last_name(path) {
            Some(b".") if !path.ends_with(b"/") => found.extend_from_slice(b"/."),
            // `rmdir` has another error for these than for a dot.
            None | Some(b"." | b"..") => found.extend_from_slice(b"/./"),
            Some(_) => {}
        }
        Ok(Way::walked(found))
    }

    /// A path as a thread sees it: from its root on, unless it does not lead there.
    pub(super) fn seen_path(&self, tid: Tid, path: Vec<u8>) -> Result<Vec<u8>> {
        let Some(root) = self.root_directory(tid)? else { return Ok(path) };
        let seen = rest(&path, &root.name());
        let seen = seen.map(|rest| if rest.is_empty() { whole(&[]) } else { rest.to_vec() });
        Ok(seen.unwrap_or(path))
    }

    /// The path of the working directory, as `getcwd` tells it.
    pub(super) fn seen_directory(&mut self, tid: Tid) -> Result<Vec<u8>> {
        let path = self.base(tid, HERE)?;
        let is_outside = match self.root_directory(tid)? {
            Some(root) => rest(&path, &root.name()).is_none(),
            None => false,
        };
        let path = if path.is_empty() { whole(&[]) } else { path };
        if is_outside { Ok([&b"(unreachable)"[..], &path].concat()) } else { self.seen_path(tid, path) }
    }

    /// Gives a process another root directory. Its working directory and its descriptors stay, wherever they are.
    pub(crate) fn sys_chroot(&mut self, tid: Tid, [path, ..]: [u64; 6]) -> Answer {
        let path = self.searchable_at(tid, path)?;
        if !self.can(tid, CAP_SYS_CHROOT) {
            return Err(EPERM);
        }
        let path = self.canonical(&path)?;
        let root = if path.is_empty() { None } else { Some(self.open_root(path)?) };
        let before = core::mem::replace(&mut self.process(tid)?.filesystem.borrow_mut().root, root);
        before.into_iter().for_each(|before| self.close(before));
        DONE
    }

    /// Opens a directory for processes whose root it is.
    fn open_root(&mut self, path: Vec<u8>) -> Result<Rc<Open>> {
        let share = self.share_of_open(&path)?;
        let root = self.store.root;
        let inode = self.store.volume.enter(root, &path)?;
        let object = Object::Directory { inode, path: RefCell::new(path) };
        Ok(with_share(Open::new(object, O_PATH | O_DIRECTORY), share))
    }

    /// A process shares its root, working directory and umask with no other one from now on.
    pub(super) fn separate_filesystem(&mut self, tid: Tid) -> Result<()> {
        let process = self.process(tid)?;
        if Rc::strong_count(&process.filesystem) > 1 {
            let own = process.filesystem.borrow().clone();
            process.filesystem = Rc::new(RefCell::new(own));
        }
        Ok(())
    }

    /// A process that has ended has no directories.
    pub(crate) fn leave_filesystem(&mut self, left: Rc<RefCell<FilesystemInformation>>) {
        let root = Rc::into_inner(left).and_then(|left| left.into_inner().root);
        root.into_iter().for_each(|root| self.close(root));
    }
}
