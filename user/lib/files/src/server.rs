//! A file system behind doors. Each directory and each open file is an object, and the last reference to it closes it.
//!
//! Calls come from several threads at once, and one after the other they have the file system.
//!
//! Each program that asks for the root gets an object of its own, and all that is opened from there counts as that client's: see [`vfs::share`].
//!
//! Nobody waits in here. Who [watches](vfs::watch) something takes what has happened when he likes, or waits in a call by ipc, which the first
//! thread answers: whoever does something that one of them waits for pokes that thread, when he has given the file system back.
//!
//! Names are safe when they are acknowledged: each call that makes, moves or removes one syncs. Contents are safe when a file is synced or closed. So a
//! server that ends loses no more than a loss of power does.

use crate::desk::hand_out_and_wake;
use crate::stubs::Files::{self as idl, Directory, File, PagedFile, Watcher};
use crate::stubs::Watches::Waiting;
use crate::wire::{
    BYTES_MAX, ENTRIES_MAX, EVENTS_MAX, PATH_MAX, attributes_to_wire, before_from_wire, entry_to_wire,
    event_to_wire, how_from_bits, refused, space_to_wire,
};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rt::api::stub::{Failure, Hold, View};
use rt::api::{self, Status};
use rt::door::{self, Reference};
use rt::page::{self, Lent};
use rt::random::{self, Generator};
use rt::sync::Mutex;
use rt::sys::{self, Fpage, Uid};
use rt::time;
use vfs::page::{Page, Paged};
use vfs::path::Last;
use vfs::{Changes, Error, How, Inode, Kind, Part, Shares, Volume};

/// Objects that there are at most, of all clients: open files and directories. The kernel memory that the default system gives a file system's server
/// suffices for twice as many.
pub const OBJECTS_MAX: usize = 1024;

/// Roots that one task has at most, each with a share of its own. `mounts` has one for each client that uses this file system.
const ROOTS_MAX: usize = 128;

/// Watches that there are at most, of all clients: 8 KiB each.
const WATCHES_MAX: usize = 256;

/// Fewest bytes that are sent from the page where they lie. Fewer are copied, so that whoever reads and writes small pieces of a page, in turn, does not get
/// another page each time.
const SENT_MIN: usize = 1024;

/// A file system that is served.
struct Served<F> {
    volume: Mutex<Volume<F>>,
    /// The thread that answers those who wait.
    first: Uid,
    /// Changes that clients have made; 0 if there may be others. Counted by who has the volume, when a change is made.
    changes: AtomicU64,
}

type Shared<F> = Arc<Served<F>>;

impl<F: Paged> Served<F> {
    /// An operation on the file system, while nobody else has one.
    #[inline]
    fn with<T>(&self, run: impl FnOnce(&mut Volume<F>) -> T) -> T {
        let mut volume = self.volume.lock();
        let done = run(&mut volume);
        if volume.take_written() {
            self.count();
        }
        let has_woken = volume.has_woken();
        drop(volume);
        if has_woken {
            self.wake();
        }
        done
    }

    /// A change was made.
    fn count(&self) {
        if self.changes.load(Ordering::Relaxed) > 0 {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Somebody may wait for what has happened.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        // It cannot fail: the thread is this task's, and takes all messages.
        let _ = Waiting::Client { server: self.first }.poke();
    }
}

/// A client's account.
struct Account {
    pages: Part,
    watches: Part,
}

/// A page of a file, which clients can map.
#[derive(Clone, Debug)]
pub struct OwnPage(page::Page);

impl Page for OwnPage {
    fn zeroed() -> Option<OwnPage> {
        page::Page::zeroed().map(OwnPage)
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        self.0.read(at, to);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.write(at, from);
    }

    fn clear(&self, at: usize) {
        self.0.clear(at);
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    type Sent = page::Sent;

    fn send(&mut self, at: usize, len: usize) -> Option<page::Sent> {
        self.0.send(at, len)
    }

    fn is_sent(&self) -> bool {
        self.0.is_sent()
    }

    fn copied(&self) -> Option<OwnPage> {
        self.0.copied().map(OwnPage)
    }
}

/// Serves a file system under a name, for ever. Comes back if that cannot be.
pub fn serve<F: Paged<Page = OwnPage> + Send + 'static>(name: &str, fs: F) -> api::Failure {
    serve_at_most(name, fs, OBJECTS_MAX)
}

/// Serves a file system of which so many files and directories may be open. One over others says what these let it have, so that it shares that out.
pub fn serve_at_most<F: Paged<Page = OwnPage> + Send + 'static>(
    name: &str,
    fs: F,
    objects_max: usize,
) -> api::Failure {
    if let Err(error) = door::make_room::<PagedFile::Object<Open<F>>>() {
        return api::Failure::Kernel(error);
    }
    let changes = AtomicU64::new(u64::from(fs.knows_all_changes()));
    let volume = Volume::new(fs);
    let mut pages = Shares::new(volume.pages_max(), ROOTS_MAX);
    let served = Arc::new(Served { volume: Mutex::new(volume), first: sys::myself(), changes });
    let mut shares = Shares::new(objects_max, ROOTS_MAX);
    let mut watches = Shares::new(WATCHES_MAX, ROOTS_MAX);
    let root = |task| {
        let part = shares.open(task).ok_or(Status::TooManyOpen)?;
        let pages = pages.open(task).ok_or(Status::TooManyOpen)?;
        let watches = watches.open(task).ok_or(Status::TooManyOpen)?;
        let inode = served.volume.lock().root();
        let open = Open::new(served.clone(), inode, None, part, Arc::new(Account { pages, watches }));
        Ok(door::serve(Directory::Object(open)).map_err(|_| Status::Exhausted)?.into())
    };
    hand_out_and_wake(name, root, |waiters| {
        let mut volume = served.volume.lock();
        waiters.take(time::now_ns(), |ticket| volume.wait(ticket))
    })
}

/// A file or directory that is open.
struct Open<F: Paged<Page = OwnPage>> {
    served: Shared<F>,
    inode: Inode,
    /// A file's length, if its file system says it without being asked.
    len: Option<Arc<AtomicU64>>,
    /// Its contents have changed since they were synced. Set and cleared by who has the volume.
    is_dirty: AtomicBool,
    /// Pages that are mapped.
    mapped: Mutex<Mappings>,
    /// It counts as its client's.
    part: Part,
    /// Its pages and watches are more of these.
    account: Arc<Account>,
}

/// Pages of a file that clients have mapped by one object.
#[derive(Default)]
struct Mappings {
    /// By where they begin in the file, by their addresses, since somebody may have cut off the file there meanwhile, and by whether they may be written.
    pages: BTreeMap<(u64, usize, bool), Mapped>,
    /// The object's number for threads that [keep](door::outlive) a page besides, since an answer that maps it may be under way when it goes. 0 before the first page.
    number: u64,
    /// Bits of these threads.
    threads: u64,
}

impl Mappings {
    /// The number that no other object has.
    fn number(&mut self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.number == 0 {
            self.number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.number
    }

    /// Whether clients may write to a page.
    fn is_writable(&self) -> bool {
        self.pages.keys().any(|&(_, _, is_writable)| is_writable)
    }
}

/// A page that is mapped, as one of its client's.
struct Mapped {
    lent: Lent,
    _part: Part,
}

impl<F: Paged<Page = OwnPage>> Drop for Open<F> {
    fn drop(&mut self) {
        let mut volume = self.served.volume.lock();
        let mapped = self.mapped.get_mut();
        // Nobody refers to this object, so no answer of it is under way.
        door::withdraw(mapped.number, mapped.threads);
        // A sync that ran while a page was being mapped knew nothing of it.
        let was_writable = mapped.is_writable();
        if was_writable {
            self.served.count();
        }
        mapped.pages.values_mut().for_each(|page| page.lent.end_writing());
        // Nobody is left who could hear of an error.
        if was_writable {
            volume.wrote(self.inode);
        }
        if was_writable || self.is_dirty.load(Ordering::Relaxed) {
            let _ = volume.sync(self.inode);
        }
        if volume.take_written() {
            self.served.count();
        }
        mapped.pages.clear();
        let _ = volume.close(self.inode);
    }
}

impl<F: Paged<Page = OwnPage> + Send + 'static> Open<F> {
    fn new(
        served: Shared<F>,
        inode: Inode,
        len: Option<Arc<AtomicU64>>,
        part: Part,
        account: Arc<Account>,
    ) -> Open<F> {
        let mapped = Mutex::new(Mappings::default());
        Open { served, inode, len, is_dirty: AtomicBool::new(false), mapped, part, account }
    }

    /// An operation on the file system, while nobody else has one.
    fn with<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> vfs::Result<T>) -> Result<T, Failure> {
        self.served.with(|volume| run(volume, self.inode)).map_err(refused)
    }

    /// An operation that changes names or attributes, and is safe when it is done.
    fn safely<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> vfs::Result<T>) -> Result<T, Failure> {
        self.with(|volume, inode| {
            let done = run(volume, inode);
            self.served.count();
            let done = done?;
            volume.sync(inode)?;
            Ok(done)
        })
    }

    /// An operation that changes contents.
    fn dirtily<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> vfs::Result<T>) -> Result<T, Failure> {
        self.with(|volume, inode| {
            self.is_dirty.store(true, Ordering::Relaxed);
            let done = run(volume, inode);
            self.served.count();
            done
        })
    }

    /// The object for an inode that an operation opens, if the client may have one more.
    fn opens(
        &self,
        run: impl FnOnce(&mut Volume<F>, Inode) -> vfs::Result<Inode>,
    ) -> Result<Open<F>, Failure> {
        let part = self.part.another().ok_or(too_many())?;
        let (inode, len) = self.with(|volume, base| {
            let inode = run(volume, base)?;
            Ok((inode, volume.len_word(inode)))
        })?;
        Ok(Open::new(self.served.clone(), inode, len, part, self.account.clone()))
    }

    fn change(&self, changes: &Changes) -> Result<(), Failure> {
        self.safely(|volume, inode| volume.change(inode, changes))
    }

    fn stat(&self) -> Result<idl::Attributes, Failure> {
        self.with(|volume, inode| volume.attributes(inode)).map(|found| attributes_to_wire(&found))
    }
}

/// The client has as many of something as it may.
fn too_many() -> Failure {
    Failure::Refused(Status::TooManyOpen as u32)
}

/// No threads, identifiers or memory are left for one more object.
fn exhausted(_: rt::sys::Error) -> Failure {
    Failure::Refused(Status::Exhausted as u32)
}

/// Methods of [`idl::Node`], which files and directories have alike.
macro_rules! node {
    ($interface:ident) => {
        fn stat(&self) -> Result<idl::Attributes, Failure> {
            Open::stat(self)
        }

        fn chmod(&self, permissions: u16) -> Result<(), Failure> {
            self.change(&Changes { permissions: Some(permissions), ..Changes::default() })
        }

        fn chown(&self, owner: u32, group: u32) -> Result<(), Failure> {
            self.change(&Changes { owner: Some((owner, group)), ..Changes::default() })
        }

        fn utimes(&self, accessed: u64, modified: u64) -> Result<(), Failure> {
            self.change(&Changes { times: Some((accessed, modified)), ..Changes::default() })
        }

        fn sync(&self) -> Result<(), Failure> {
            self.with(|volume, inode| {
                let kind = volume.attributes(inode)?.kind;
                let is_writable = self.mapped.lock().is_writable();
                if is_writable {
                    volume.wrote(inode);
                    self.served.count();
                }
                if kind == Kind::Directory { volume.sync_all(inode) } else { volume.sync(inode) }?;
                // A client that has mapped it to write may write again.
                self.is_dirty.store(is_writable, Ordering::Relaxed);
                Ok(())
            })
        }

        fn xattr<'a>(
            &'a self,
            hold: &'a mut Hold<'a, $interface::Replies>,
            attribute: &[u8],
        ) -> Result<&'a [u8], Failure> {
            let value = self.with(|volume, inode| volume.xattr(inode, attribute))?;
            // One that is longer somebody else has set, who has used the disk.
            hold.keep(value.get(..BYTES_MAX).unwrap_or(&value))
        }

        fn xattrs<'a>(&'a self, hold: &'a mut Hold<'a, $interface::Replies>) -> Result<&'a [u8], Failure> {
            let names = self.with(Volume::xattrs)?;
            hold.keep(whole_names(&names))
        }

        fn set_xattr(&self, attribute: &[u8], value: &[u8], wanted: idl::Before) -> Result<(), Failure> {
            let before = before_from_wire(wanted);
            self.safely(|volume, inode| volume.set_xattr(inode, attribute, value, before))
        }

        fn remove_xattr(&self, attribute: &[u8]) -> Result<(), Failure> {
            self.safely(|volume, inode| volume.remove_xattr(inode, attribute))
        }
    };
}

/// Names, with a zero behind each, as far as they fit into a message.
fn whole_names(names: &[u8]) -> &[u8] {
    match names.get(..BYTES_MAX) {
        Some(some) => &some[..some.iter().rposition(|&byte| byte == 0).map_or(0, |end| end + 1)],
        None => names,
    }
}

impl<F: Paged<Page = OwnPage> + Send + 'static> PagedFile::Relay for Open<F> {
    node!(PagedFile);

    fn read<'a>(
        &'a self,
        hold: &'a mut Hold<'a, PagedFile::Replies>,
        offset: u64,
        count: u32,
    ) -> Result<&'a [u8], Failure> {
        let count = BYTES_MAX.min(count as usize);
        if count >= SENT_MIN
            && let Some(sent) = self.with(|volume, inode| volume.send(inode, offset, count))?
            && let Some(turn) = hold.take_turn()
        {
            return door::stay(turn, sent).ok_or(Failure::Kernel(sys::Error::NoMemory));
        }
        hold.fill(count, |to| self.with(|volume, inode| volume.read(inode, offset, to)))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<u32, Failure> {
        self.dirtily(|volume, inode| volume.write(inode, offset, data)).map(|count| count as u32)
    }

    fn append(&self, data: &[u8]) -> Result<u64, Failure> {
        self.dirtily(|volume, inode| volume.append(inode, data))
    }

    fn truncate(&self, len: u64) -> Result<(), Failure> {
        self.dirtily(|volume, inode| volume.truncate(inode, len))
    }

    fn len(&self) -> Result<u64, Failure> {
        match &self.len {
            Some(len) => Ok(len.load(Ordering::Acquire)),
            None => self.with(Volume::len),
        }
    }

    fn map(&self, offset: u64, is_writable: bool) -> Result<Fpage, Failure> {
        let take = |volume: &mut Volume<F>, inode| volume.page(inode, offset, is_writable);
        let OwnPage(page) = if is_writable { self.dirtily(take) } else { self.with(take) }?;
        let mut mapped = self.mapped.lock();
        let known = (offset, page.address(), is_writable);
        if let Entry::Vacant(place) = mapped.pages.entry(known) {
            let part = self.account.pages.another().ok_or(too_many())?;
            place.insert(Mapped { lent: page.lend(is_writable), _part: part });
        }
        let answered = page.lend(is_writable);
        let fpage = answered.fpage();
        let number = mapped.number();
        mapped.threads |= door::outlive(number, answered);
        Ok(fpage)
    }

    fn unmap(&self, offset: u64) -> Result<(), Failure> {
        let place = (offset, 0, false)..=(offset, usize::MAX, true);
        let is_writable = |mapped: &Mappings| {
            mapped.pages.range(place.clone()).any(|(&(_, _, is_writable), _)| is_writable)
        };
        if is_writable(&self.mapped.lock()) {
            self.with(|volume, inode| {
                volume.wrote(inode);
                self.served.count();
                volume.sync(inode)
            })?;
        }
        let mut mapped = self.mapped.lock();
        mapped.threads = door::withdraw_arrived(mapped.number, mapped.threads);
        let keys: Vec<_> = mapped.pages.range(place.clone()).map(|(&key, _)| key).collect();
        let gone: Vec<_> = keys.iter().filter_map(|key| mapped.pages.remove(key)).collect();
        drop(mapped);
        drop(gone);
        Ok(())
    }
}

impl<F: Paged<Page = OwnPage> + Send + 'static> Directory::Relay for Open<F> {
    node!(Directory);

    fn open(
        &self,
        file: &[u8],
        how: u32,
        permissions: u16,
    ) -> Result<Reference<File::Client<View>>, Failure> {
        let how = how_from_bits(how).ok_or(refused(Error::Invalid))?;
        // Whatever fails from here on, it is closed.
        let open = self.opens(|volume, base| {
            let opened = volume.open(base, file, how, permissions);
            if how != How::default() {
                self.served.count();
            }
            opened
        })?;
        if how != How::default() {
            self.with(Volume::sync)?;
        }
        Ok(door::serve(PagedFile::Object(open)).map_err(exhausted)?.into())
    }

    fn enter(&self, at: &[u8]) -> Result<Reference<Directory::Client<View>>, Failure> {
        let open = self.opens(|volume, base| volume.enter(base, at))?;
        Ok(door::serve(Directory::Object(open)).map_err(exhausted)?.into())
    }

    fn stat_at(&self, at: &[u8], follow: bool) -> Result<idl::Attributes, Failure> {
        let last = if follow { Last::Follow } else { Last::Stay };
        self.with(|volume, base| volume.attributes_at(base, at, last)).map(|found| attributes_to_wire(&found))
    }

    fn readdir<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Directory::Replies>,
        cursor: u64,
    ) -> Result<&'a [idl::Entry], Failure> {
        let entries = self.with(|volume, inode| volume.readdir(inode, cursor, ENTRIES_MAX))?;
        let entries: Vec<_> = entries.iter().filter_map(entry_to_wire).collect();
        hold.keep(entries.as_slice())
    }

    fn mkdir(&self, at: &[u8], permissions: u16) -> Result<(), Failure> {
        self.safely(|volume, base| volume.mkdir(base, at, permissions))
    }

    fn symlink(&self, target: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.safely(|volume, base| volume.symlink(base, target, at))
    }

    fn readlink<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Directory::Replies>,
        at: &[u8],
    ) -> Result<&'a [u8], Failure> {
        let target = self.with(|volume, base| volume.readlink(base, at))?;
        hold.keep(target.get(..PATH_MAX).unwrap_or(&target))
    }

    fn link(&self, existing: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.safely(|volume, base| volume.link(base, existing, at))
    }

    fn rename(&self, existing: &[u8], at: &[u8]) -> Result<(), Failure> {
        self.safely(|volume, base| volume.rename(base, existing, at))
    }

    fn unlink(&self, at: &[u8]) -> Result<(), Failure> {
        self.safely(|volume, base| volume.unlink(base, at))
    }

    fn rmdir(&self, at: &[u8]) -> Result<(), Failure> {
        self.safely(|volume, base| volume.rmdir(base, at))
    }

    fn statfs(&self) -> Result<idl::Space, Failure> {
        self.with(|volume, _| volume.space()).map(space_to_wire)
    }

    fn changes(&self) -> Result<u64, Failure> {
        Ok(self.served.changes.load(Ordering::Acquire))
    }

    fn watch(&self, at: &[u8]) -> Result<Reference<Watcher::Client<View>>, Failure> {
        let parts = [&self.part, &self.account.watches].map(Part::another);
        let [Some(object), Some(watch)] = parts else { return Err(too_many()) };
        // It only has to be another one than those of the other watches.
        let ticket = random::generator().map_or_else(|_| random::weak_number(), Generator::number);
        self.with(|volume, base| volume.watch(base, at, ticket))?;
        // Whatever fails from here on, it is not wanted any more.
        let watching = Watching { served: self.served.clone(), ticket, _parts: [object, watch] };
        Ok(door::serve(Watcher::Object(watching)).map_err(exhausted)?.into())
    }
}

/// A watch of a client.
struct Watching<F: Paged> {
    served: Shared<F>,
    /// Its number in the volume.
    ticket: u64,
    /// It counts as its client's.
    _parts: [Part; 2],
}

impl<F: Paged> Drop for Watching<F> {
    fn drop(&mut self) {
        self.served.with(|volume| volume.unwatch(self.ticket));
    }
}

impl<F: Paged + Send + 'static> Watcher::Relay for Watching<F> {
    fn next<'a>(&'a self, hold: &'a mut Hold<'a, Watcher::Replies>) -> Result<&'a [idl::Event], Failure> {
        let events = self.served.with(|volume| volume.events(self.ticket, EVENTS_MAX)).map_err(refused)?;
        let events: Vec<_> = events.iter().filter_map(event_to_wire).collect();
        hold.keep(events.as_slice())
    }

    fn ticket(&self) -> Result<(u64, u64), Failure> {
        Ok((self.ticket, self.served.first.0))
    }
}
