//! A directory of all file systems together.

use crate::table::{Table, status_of};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use files::Directory as Root;
use files::stubs::Files::{self as idl, Directory, File, Joined, Watcher};
use files::wire::not_narrowed;
use rt::api::stub::{Failure, Hold, View};
use rt::api::{self, Status, process};
use rt::door::{self, Reference};
use rt::home;
use rt::sync::Mutex;
use rt::sys::TaskId;
use vfs::Part;
use vfs::mounts::{Mounts, Refusal, Route, Source, names};

/// Permissions of a directory in whose place a file system is found, if it was gone.
const DIRECTORY: u16 = 0o755;

type Client = Directory::Client<View>;

/// A directory with file systems below. Its path begins at the root of all.
pub struct Tree {
    all: Arc<All>,
    path: Vec<Vec<u8>>,
    /// It counts as its client's.
    _part: Part,
}

/// One client, and references that it has got to the file systems that it has used.
pub struct All {
    table: Arc<Table>,
    /// The client.
    task: u64,
    /// The client's directories are more of these.
    part: Part,
    found: Mutex<Found>,
}

/// References to directories where file systems begin.
#[derive(Default)]
struct Found {
    /// Roots of servers, each of which is one share, by their names.
    servers: BTreeMap<String, Arc<Reference<Client>>>,
    /// The directories that are mounted, by the numbers of the file systems. One that is not a server's root counts as its client's.
    directories: BTreeMap<u64, (Arc<Reference<Client>>, Option<Part>)>,
}

fn refused(status: Status) -> Failure {
    Failure::Refused(status as u32)
}

fn not_changed(refusal: Refusal) -> Failure {
    refused(status_of(refusal))
}

fn failed(failure: api::Failure) -> Failure {
    match failure {
        api::Failure::Refused(status) => refused(status),
        _ => refused(Status::Busy),
    }
}

impl All {
    /// For another client.
    pub fn new(table: Arc<Table>, task: u64, part: Part) -> All {
        All { table, task, part, found: Mutex::new(Found::default()) }
    }

    /// The root directory of a file system.
    fn root(&self, mounts: &Mounts, number: u64) -> Result<Arc<Reference<Client>>, Failure> {
        if let Some((root, _)) = self.found.lock().directories.get(&number) {
            return Ok(root.clone());
        }
        // The lock is open meanwhile: who is asked may have to start first.
        let server = mounts.server(number).ok_or(refused(Status::NotFound))?;
        let mut root = self.root_of(server)?;
        let directory = mounts.directory(number);
        let mut part = None;
        if !directory.is_empty() {
            root = Arc::new(root.enter(&directory)?);
            part = self.part.another();
        }
        for path in mounts.covered(number) {
            // Others are found there, so there is a name for each.
            let _ = root.mkdir(&path, DIRECTORY);
        }
        let is_kept = directory.is_empty() || part.is_some();
        let mut found = self.found.lock();
        // One that was unmounted meanwhile, or for which the client has no part, is used this once.
        if is_kept && self.table.mounts().has(number) {
            found.directories.insert(number, (root.clone(), part));
        }
        Ok(root)
    }

    /// The root directory of a server.
    fn root_of(&self, server: &str) -> Result<Arc<Reference<Client>>, Failure> {
        if let Some(root) = self.found.lock().servers.get(server) {
            return Ok(root.clone());
        }
        let root = Arc::new(Root::of(server).map_err(failed)?.into_reference());
        let mut found = self.found.lock();
        if self.table.mounts().has_server(server) {
            found.servers.insert(server.into(), root.clone());
        }
        Ok(root)
    }

    /// Forgets all but what is found in these file systems and, if it is said which, is not of a server that is gone.
    pub fn keep_only(&self, mounts: &Mounts, gone: Option<&str>) {
        let mut found = self.found.lock();
        let is_lost = |server: Option<&str>| server.is_none() || server == gone;
        let is_unused = |server: &str| !mounts.has_server(server) || gone == Some(server);
        let directories: Vec<_> =
            found.directories.extract_if(.., |&number, _| is_lost(mounts.server(number))).collect();
        let servers: Vec<_> = found.servers.extract_if(.., |server, _| is_unused(server)).collect();
        drop(found);
        // References go when nothing is locked.
        drop((directories, servers));
    }

    /// An operation on a file system. One whose server is gone is looked for again, once, if nothing was begun there.
    fn with<T>(
        &self,
        mounts: &Mounts,
        number: u64,
        run: impl Fn(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        for _ in 0..2 {
            match self.root(mounts, number).and_then(|root| run(&root)) {
                Err(Failure::Kernel(error)) => {
                    self.keep_only(mounts, mounts.server(number));
                    if error != rt::sys::Error::NoSuch {
                        break;
                    }
                }
                Ok(value) => return Ok(value),
                Err(failure @ Failure::Refused(_)) => return Err(failure),
                Err(Failure::TooLong) => return Err(refused(Status::NameTooLong)),
                // No answer that is of use, such as one whose reference has not come since this program is being ended. That is no fault of the client's, who may ask again.
                Err(_) => break,
            }
        }
        Err(refused(Status::Busy))
    }

    /// Fails unless there is a directory where a file system is to begin. A server may be one of something else.
    fn check(&self, source: &Source) -> Result<(), Failure> {
        // It would be found in itself.
        if source.server() == files::NAME {
            return Err(refused(Status::Denied));
        }
        let root = Root::of(source.server()).map_err(failed)?.into_reference();
        let root: Reference<Client> = root.narrow().map_err(|kept| failed(not_narrowed(kept)))?;
        match source.directory().as_slice() {
            b"" => Ok(()),
            directory => root.enter(directory).map(drop).map_err(|failure| match failure {
                Failure::Refused(_) => failure,
                _ => refused(Status::Busy),
            }),
        }
    }

    /// Fails unless the client's program may change what all programs find.
    fn check_right(&self) -> Result<(), Failure> {
        match process::may_mount(home(), TaskId(self.task)) {
            Ok(true) => Ok(()),
            _ => Err(refused(Status::Denied)),
        }
    }
}

impl Tree {
    /// The root of all, if the client may have one more directory.
    pub fn root(all: Arc<All>) -> Option<Tree> {
        let part = all.part.another()?;
        Some(Tree { all, path: Vec::new(), _part: part })
    }

    /// Names from the root of all.
    fn whole(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let below = names(path).into_iter().map(<[u8]>::to_vec);
        self.path.iter().cloned().chain(below).collect()
    }

    /// An operation on what has a path. Its file system begins at this directory, so that no link leads out of it.
    fn at<T>(&self, path: &[u8], run: impl Fn(&Client, &[u8]) -> Result<T, Failure>) -> Result<T, Failure> {
        self.at_of(&self.all.table.mounts(), path, run)
    }

    /// An operation on what has a path among these file systems.
    fn at_of<T>(
        &self,
        mounts: &Mounts,
        path: &[u8],
        run: impl Fn(&Client, &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Route { number, base, rest } = mounts.route(&self.path, path);
        self.all.with(mounts, number, |root| {
            if base.is_empty() { run(root, &rest) } else { run(&*root.enter(&base)?, &rest) }
        })
    }

    /// An operation that makes, moves or removes a name: none of those at which file systems are found.
    fn change<T>(
        &self,
        mounts: &Mounts,
        path: &[u8],
        run: impl Fn(&Client, &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if mounts.is_needed(&self.whole(path)) {
            return Err(refused(Status::Busy));
        }
        self.at_of(mounts, path, run)
    }

    /// An operation that takes two paths of one file system.
    fn change_both<T>(
        &self,
        first: &[u8],
        second: &[u8],
        run: impl Fn(&Client, &[u8], &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // Both paths are looked for among the same ones, whatever is mounted meanwhile.
        let mounts = self.all.table.mounts();
        let number = |path| mounts.route(&self.path, path).number;
        if number(first) != number(second) {
            return Err(refused(Status::OtherFileSystem));
        }
        self.change(&mounts, first, |root, first| {
            self.change(&mounts, second, |_, second| run(root, first, second))
        })
    }

    /// Fails unless this is the root of a program that may change what all programs find. Whoever has such a root has that right.
    fn check_right(&self) -> Result<(), Failure> {
        if self.path.is_empty() { self.all.check_right() } else { Err(refused(Status::Denied)) }
    }

    /// An operation on the directory itself.
    fn itself<T>(&self, run: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
        self.at(b"", |directory, _| run(directory))
    }
}

impl Joined::Relay for Tree {
    fn stat(&self) -> Result<idl::Attributes, Failure> {
        self.itself(Client::stat)
    }

    fn chmod(&self, permissions: u16) -> Result<(), Failure> {
        self.itself(|directory| directory.chmod(permissions))
    }

    fn chown(&self, owner: u32, group: u32) -> Result<(), Failure> {
        self.itself(|directory| directory.chown(owner, group))
    }

    fn utimes(&self, accessed: u64, modified: u64) -> Result<(), Failure> {
        self.itself(|directory| directory.utimes(accessed, modified))
    }

    fn xattr<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Joined::Replies>,
        attribute: &[u8],
    ) -> Result<&'a [u8], Failure> {
        let value = self.itself(|directory| {
            let mut replies = alloc::boxed::Box::new(Directory::Replies::new());
            rt::api::stub::Inbox::open(&mut *replies, |inbox| {
                directory.xattr(inbox, attribute).map(|value| value.to_vec())
            })?
        })?;
        hold.keep(value.as_slice())
    }

    fn xattrs<'a>(&'a self, hold: &'a mut Hold<'a, Joined::Replies>) -> Result<&'a [u8], Failure> {
        let names = self.itself(|directory| {
            let mut replies = alloc::boxed::Box::new(Directory::Replies::new());
            rt::api::stub::Inbox::open(&mut *replies, |inbox| {
                directory.xattrs(inbox).map(|names| names.to_vec())
            })?
        })?;
        hold.keep(names.as_slice())
    }

    fn set_xattr(&self, attribute: &[u8], value: &[u8], wanted: idl::Before) -> Result<(), Failure> {
        self.itself(|directory| directory.set_xattr(attribute, value, wanted))
    }

    fn remove_xattr(&self, attribute: &[u8]) -> Result<(), Failure> {
        self.itself(|directory| directory.remove_xattr(attribute))
    }

    fn sync(&self) -> Result<(), Failure> {
        let mounts = self.all.table.mounts();
        for number in mounts.others_below(&self.path) {
            // One that is not there has nothing to lose.
            match self.all.with(&mounts, number, Client::sync) {
                Err(Failure::Refused(status)) if status == Status::NotFound as u32 => {}
                outcome => outcome?,
            }
        }
        self.itself(Client::sync)
    }

    fn open(
        &self,
        file: &[u8],
        how: u32,
        permissions: u16,
    ) -> Result<Reference<File::Client<View>>, Failure> {
        self.at(file, |root, path| root.open(path, how, permissions))
    }

    fn enter(&self, at: &[u8]) -> Result<Reference<Directory::Client<View>>, Failure> {
        let path = self.whole(at);
        if !self.all.table.mounts().has_below(&path) {
            return self.at(at, |root, path| root.enter(path));
        }
        // That it is a directory, its file system says.
        self.at(at, |root, path| root.enter(path)).map(drop)?;
        let part = self.all.part.another().ok_or(refused(Status::TooManyOpen))?;
        let tree = Tree { all: self.all.clone(), path, _part: part };
        Ok(door::serve(Joined::Object(tree)).map_err(|_| refused(Status::Exhausted))?.into())
    }

    fn stat_at(&self, at: &[u8], follow: bool) -> Result<idl::Attributes, Failure> {
        self.at(at, |root, path| root.stat_at(path, follow))
    }

    fn readdir<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Joined::Replies>,
        cursor: u64,
    ) -> Result<&'a [idl::Entry], Failure> {
        let entries = self.itself(|directory| {
            let mut replies = alloc::boxed::Box::new(Directory::Replies::new());
            rt::api::stub::Inbox::open(&mut *replies, |inbox| directory.readdir(inbox, cursor))?
        })?;
        hold.keep(&entries[..])
    }

    fn mkdir(&self, at: &[u8], permissions: u16) -> Result<(), Failure> {
        self.at(at, |root, path| root.mkdir(path, permissions))
    }

    fn symlink(&self, target: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.at(at, |root, path| root.symlink(target, path))
    }

    fn readlink<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Joined::Replies>,
        at: &[u8],
    ) -> Result<&'a [u8], Failure> {
        let target = self.at(at, |root, path| {
            let mut replies = alloc::boxed::Box::new(Directory::Replies::new());
            rt::api::stub::Inbox::open(&mut *replies, |inbox| {
                root.readlink(inbox, path).map(|target| target.to_vec())
            })?
        })?;
        hold.keep(target.as_slice())
    }

    fn link(&self, existing: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.change_both(existing, at, Client::link)
    }

    fn rename(&self, existing: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.change_both(existing, at, Client::rename)
    }

    fn unlink(&self, at: &[u8]) -> Result<(), Failure> {
        self.change(&self.all.table.mounts(), at, Client::unlink)
    }

    fn rmdir(&self, at: &[u8]) -> Result<(), Failure> {
        self.change(&self.all.table.mounts(), at, Client::rmdir)
    }

    fn statfs(&self) -> Result<idl::Space, Failure> {
        self.itself(Client::statfs)
    }

    /// Not known: there are several file systems.
    fn changes(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    /// It is the file system's own: nothing of it comes by here.
    fn watch(&self, at: &[u8]) -> Result<Reference<Watcher::Client<View>>, Failure> {
        self.at(at, |root, path| root.watch(path))
    }

    fn mounted<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Joined::Replies>,
        number: u32,
    ) -> Result<&'a [u8], Failure> {
        let text = self.path.is_empty().then(|| self.all.table.mounts().text(number as usize)).flatten();
        hold.keep(text.ok_or(refused(Status::NotFound))?.as_slice())
    }

    fn mount(&self, source: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.check_right()?;
        let mounts = self.all.table.mounts();
        let source = mounts.source(source).map_err(not_changed)?;
        for path in mounts.way_to(at).map_err(not_changed)? {
            if self.stat_at(&path, false)?.kind != idl::Kind::KIND_DIRECTORY {
                return Err(refused(Status::NotDirectory));
            }
        }
        self.all.check(&source)?;
        self.all.table.change(|mounts| mounts.with(at, source)).map_err(refused)
    }

    fn unmount(&self, at: &[u8]) -> Result<(), Failure> {
        self.check_right()?;
        let mounts = self.all.table.mounts();
        let number = mounts.removable(at).map_err(not_changed)?;
        // A later sync does not find it. If its server does not hand out its files, there is nothing to lose.
        if let Err(failure) = self.all.with(&mounts, number, Client::sync)
            && self.all.with(&mounts, number, |_| Ok(())).is_ok()
        {
            return Err(failure);
        }
        let remove = |mounts: &Mounts| match mounts.removable(at)? {
            // Meanwhile somebody else has mounted something over it.
            other if other != number => Err(Refusal::Busy),
            number => Ok(mounts.without(number)),
        };
        self.all.table.change(remove).map_err(refused)?;
        self.all.table.forget_unmounted();
        Ok(())
    }
}
