//! A directory of all file systems together.

use alloc::sync::Arc;
use alloc::vec::Vec;
use files::Directory as Root;
use files::stubs::Files::{self as idl, Directory, File, Joined, Watcher};
use rt::api::stub::{Failure, Hold, View};
use rt::api::{self, Status};
use rt::door::{self, Reference};
use rt::sync::Mutex;
use vfs::Part;
use vfs::mounts::{Mounts, Route, names};

type Client = Directory::Client<View>;

/// A directory with file systems below. Its path begins at the root of all.
pub struct Tree {
    all: Arc<All>,
    path: Vec<Vec<u8>>,
    /// It counts as its client's.
    _part: Part,
}

/// File systems, and references to the roots that one client has got of those that it has used.
pub struct All {
    mounts: Arc<Mounts>,
    /// The client's directories are more of these.
    part: Part,
    found: Mutex<Vec<Option<Arc<Reference<Client>>>>>,
}

fn refused(status: Status) -> Failure {
    Failure::Refused(status as u32)
}

fn failed(failure: api::Failure) -> Failure {
    match failure {
        api::Failure::Refused(status) => refused(status),
        _ => refused(Status::Busy),
    }
}

impl All {
    /// For another client.
    pub fn new(mounts: Arc<Mounts>, part: Part) -> All {
        let found = Mutex::new((0..mounts.count()).map(|_| None).collect());
        All { mounts, part, found }
    }

    /// The root directory of a file system.
    fn root(&self, number: usize) -> Result<Arc<Reference<Client>>, Failure> {
        if let Some(Some(root)) = self.found.lock().get(number) {
            return Ok(root.clone());
        }
        // The lock is open meanwhile: who is asked may have to start first.
        let server = self.mounts.server(number).ok_or(refused(Status::NotFound))?;
        let mut root = Root::of(server).map_err(failed)?;
        if !self.mounts.directory(number).is_empty() {
            root = root.enter(self.mounts.directory(number)).map_err(failed)?;
        }
        for path in self.mounts.covered(number) {
            // Others are found there, so there is a name for each.
            let _ = root.mkdir(path);
        }
        let root = Arc::new(root.into_reference());
        if let Some(place) = self.found.lock().get_mut(number) {
            *place = Some(root.clone());
        }
        Ok(root)
    }

    /// An operation on a file system. One whose server is gone is looked for again, once, if nothing was begun there.
    fn with<T>(&self, number: usize, run: impl Fn(&Client) -> Result<T, Failure>) -> Result<T, Failure> {
        for _ in 0..2 {
            let root = self.root(number)?;
            let outcome = run(&root);
            match outcome {
                Err(Failure::Kernel(error)) => {
                    if let Some(place) = self.found.lock().get_mut(number) {
                        *place = None;
                    }
                    if error != rt::sys::Error::NoSuch {
                        break;
                    }
                }
                outcome => return outcome,
            }
        }
        Err(refused(Status::Busy))
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
        let Route { number, base, rest } = self.all.mounts.route(&self.path, path);
        self.all.with(number, |root| {
            if base.is_empty() { run(root, &rest) } else { run(&*root.enter(&base)?, &rest) }
        })
    }

    /// An operation that makes, moves or removes a name: none of those at which file systems are found.
    fn change<T>(
        &self,
        path: &[u8],
        run: impl Fn(&Client, &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.all.mounts.is_needed(&self.whole(path)) {
            return Err(refused(Status::Busy));
        }
        self.at(path, run)
    }

    /// An operation that takes two paths of one file system.
    fn change_both<T>(
        &self,
        first: &[u8],
        second: &[u8],
        run: impl Fn(&Client, &[u8], &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let number = |path| self.all.mounts.route(&self.path, path).number;
        if number(first) != number(second) {
            return Err(refused(Status::OtherFileSystem));
        }
        self.change(first, |root, first| self.change(second, |_, second| run(root, first, second)))
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

    fn sync(&self) -> Result<(), Failure> {
        for number in self.all.mounts.below(&self.path) {
            // One that is not there has nothing to lose.
            match self.all.with(number, Client::sync) {
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
        if !self.all.mounts.has_below(&path) {
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
        self.change(at, Client::unlink)
    }

    fn rmdir(&self, at: &[u8]) -> Result<(), Failure> {
        self.change(at, Client::rmdir)
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

    fn mount<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Joined::Replies>,
        number: u32,
    ) -> Result<&'a [u8], Failure> {
        let text = self.path.is_empty().then(|| self.all.mounts.text(number as usize)).flatten();
        hold.keep(text.ok_or(refused(Status::NotFound))?.as_slice())
    }
}
