//! Open files, and the numbers under which a process has them.

use crate::budget::{Budget, Share};
use crate::calls::fifo::Fifo;
use crate::calls::memfd::MemoryFile;
use crate::calls::named_queues::NamedQueue;
use crate::calls::pidfd::Pidfd;
use crate::calls::timers::SignalList;
use crate::epoll::Epoll;
use crate::errno::{EBADF, EMFILE, ENOMEM, Result};
use crate::inet::Inet;
use crate::inotify::Inotify;
use crate::netlink::Netlink;
use crate::pipe::Pipe;
use crate::socket::Socket;
use crate::timer::Timer;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use linux_raw_sys::general;
use vfs::{Attributes, Inode};

/// Bytes that everything open counts for, beside its path.
pub const OPEN_BYTES: usize = 256;

/// An object behind descriptors. Copies of a descriptor share it, with its position.
#[derive(Debug)]
pub struct Open {
    /// The object.
    pub object: Object,
    /// Position.
    pub offset: Cell<u64>,
    /// `O_…`: how it was opened, and what `fcntl` has changed.
    pub flags: Cell<u32>,
    /// Share of the budget that it has, with its path, since a descriptor leads to it.
    pub share: RefCell<Option<Share>>,
}

/// The object.
#[derive(Debug)]
pub enum Object {
    /// A file of the file system, which the volume has open once for this.
    File {
        /// Its inode.
        inode: Inode,
        /// Its path when it was opened.
        path: Vec<u8>,
    },
    /// A directory, in the same way. It may be special.
    Directory {
        /// Its inode.
        inode: Inode,
        /// Its path, without symbolic links, which is another one when it is moved.
        path: RefCell<Vec<u8>>,
    },
    /// A file of `/proc`. Its text is made anew for each read, as in Linux, so nobody can keep many of them.
    Text {
        /// Its inode.
        inode: Inode,
        /// Its path.
        path: Vec<u8>,
    },
    /// A symbolic link itself, as a place.
    Link(Box<Link>),
    /// The end of a pipe that reads.
    Reader(Rc<PipeEnds>),
    /// The end of a pipe that writes.
    Writer(Rc<PipeEnds>),
    /// A pipe that has a name, or that was opened by way of a descriptor.
    Fifo(Fifo),
    /// A device without state.
    Device {
        /// Its inode.
        inode: Inode,
        /// Its path.
        path: Vec<u8>,
    },
    /// A terminal, which is the slave if it is a pseudo-terminal.
    Terminal {
        /// Its inode.
        inode: Inode,
        /// Its number.
        number: u32,
    },
    /// The master of a pseudo-terminal.
    Master {
        /// Its inode.
        inode: Inode,
        /// The number of the pseudo-terminal.
        number: u32,
    },
    /// A counter that threads wait for.
    Counter {
        /// Its value.
        value: Cell<u64>,
        /// Whether a read takes one.
        is_semaphore: bool,
        /// Number that no other has.
        number: u64,
    },
    /// A socket.
    Socket(Rc<Socket>),
    /// A socket of a network.
    Inet(Rc<Inet>),
    /// A socket of netlink.
    Netlink(Box<Netlink>),
    /// A list of open files.
    Epoll(Rc<Epoll>),
    /// A timer.
    Timer(Rc<Timer>),
    /// A list of files that are watched.
    Inotify(Rc<Inotify>),
    /// Memory.
    Memory(MemoryFile),
    /// A process.
    Process(Rc<Pidfd>),
    /// Signals that are read.
    Signals(SignalList),
    /// A queue of messages.
    Queue(Rc<NamedQueue>),
}

/// A symbolic link that is open itself.
#[derive(Debug)]
pub struct Link {
    /// Its path.
    pub path: Vec<u8>,
    /// Where it leads, which never changes.
    pub target: Vec<u8>,
    /// Attributes that it had when it was opened.
    pub found: Attributes,
}

/// A pipe.
#[derive(Debug)]
pub struct PipeEnds {
    /// Number that no other pipe has.
    pub number: u64,
    /// Its bytes, and how many have its ends open.
    pub pipe: RefCell<Pipe>,
    /// Its name, if it has one.
    pub name: Option<PipeName>,
    /// Owner and group of whoever has made it. If it has a name, those of the file count, which may get others.
    pub owner: (u32, u32),
}

/// Name of a pipe.
#[derive(Debug)]
pub struct PipeName {
    /// The file with the mark, which is open once for the pipe.
    pub inode: Inode,
    /// Path by which it was opened first.
    pub path: Vec<u8>,
    /// Share of the budget that the path has.
    pub share: Share,
}

impl Open {
    /// Something opened with these flags.
    pub fn new(object: Object, flags: u32) -> Rc<Open> {
        let flags = Cell::new(flags & !general::O_CLOEXEC);
        Rc::new(Open { object, offset: Cell::new(0), flags, share: RefCell::new(None) })
    }

    /// Whether it may be read.
    pub fn is_readable(&self) -> bool {
        self.flags.get() & (general::O_ACCMODE | general::O_PATH) != general::O_WRONLY
            && self.flags.get() & general::O_PATH == 0
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.flags.get() & general::O_ACCMODE != general::O_RDONLY && self.flags.get() & general::O_PATH == 0
    }

    /// Whether nobody waits with it.
    pub fn has(&self, flag: u32) -> bool {
        self.flags.get() & flag != 0
    }

    /// Whether it has the mode in which Linux tells of what happens to it by signals, so that `O_ASYNC` is one of its flags when it was set.
    pub fn can_be_asynchronous(&self) -> bool {
        matches!(
            self.object,
            Object::Reader(_)
                | Object::Writer(_)
                | Object::Fifo(_)
                | Object::Terminal { .. }
                | Object::Master { .. }
                | Object::Socket(_)
                | Object::Inet(_)
                | Object::Netlink(_)
                | Object::Inotify(_)
        )
    }

    /// The file that it is, if it is one of the file system. That has it open.
    pub fn file(&self) -> Option<Inode> {
        match &self.object {
            Object::File { inode, .. } | Object::Directory { inode, .. } => Some(*inode),
            Object::Fifo(fifo) => fifo.inode(),
            _ => None,
        }
    }

    /// Bytes of paths that it keeps.
    pub fn name_bytes(&self) -> usize {
        match &self.object {
            Object::Link(link) => size_of::<Link>() + link.path.len() + link.target.len(),
            _ => self.name().len(),
        }
    }

    /// Path or name, as `/proc/PID/fd` shows it.
    pub fn name(&self) -> Vec<u8> {
        match &self.object {
            Object::File { path, .. } | Object::Text { path, .. } | Object::Device { path, .. } => {
                path.clone()
            }
            // That of the root is empty.
            Object::Directory { path, .. } if path.borrow().is_empty() => b"/".to_vec(),
            Object::Directory { path, .. } => path.borrow().clone(),
            Object::Link(link) => link.path.clone(),
            Object::Fifo(fifo) if fifo.inode().is_some() => fifo.path().to_vec(),
            Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                alloc::format!("pipe:[{}]", ends.number).into_bytes()
            }
            Object::Terminal { number, .. } => alloc::format!("/dev/pts/{number}").into_bytes(),
            Object::Master { .. } => b"/dev/ptmx".to_vec(),
            Object::Counter { .. } => b"anon_inode:[eventfd]".to_vec(),
            Object::Epoll(_) => b"anon_inode:[eventpoll]".to_vec(),
            Object::Timer(_) => b"anon_inode:[timerfd]".to_vec(),
            Object::Signals(_) => b"anon_inode:[signalfd]".to_vec(),
            Object::Inotify(_) => b"anon_inode:inotify".to_vec(),
            Object::Memory(file) => file.name.to_vec(),
            Object::Process(_) => b"anon_inode:[pidfd]".to_vec(),
            Object::Queue(queue) => queue.name.clone(),
            Object::Socket(socket) => alloc::format!("socket:[{}]", socket.number).into_bytes(),
            Object::Inet(inet) => alloc::format!("socket:[{}]", inet.number).into_bytes(),
            Object::Netlink(socket) => alloc::format!("socket:[{}]", socket.number).into_bytes(),
        }
    }
}

/// A descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The object behind it.
    pub open: Rc<Open>,
    /// Whether it is closed when the process begins another program.
    pub closes: bool,
}

/// Places that a table of descriptors has at least.
const PLACES_MIN: usize = 32;

/// Descriptors of a process.
#[derive(Debug)]
pub struct Descriptors {
    places: Vec<Option<Descriptor>>,
    /// Share of the budget that the table has.
    share: Share,
}

impl Descriptors {
    /// None, in a table with a share of a budget.
    pub fn within(budget: &Budget) -> Descriptors {
        Descriptors { places: Vec::new(), share: budget.empty() }
    }

    /// A copy for another process. `ENOMEM`: the budget has no room for it.
    pub fn copy(&self, budget: &Budget) -> Result<Descriptors> {
        let share = budget.take(self.share.bytes()).ok_or(ENOMEM)?;
        let mut places = Vec::new();
        places.reserve_exact(self.places.capacity());
        places.extend_from_slice(&self.places);
        Ok(Descriptors { places, share })
    }

    /// Bytes of the table.
    pub fn table_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Option<Descriptor>>()
    }

    /// The object behind a descriptor.
    pub fn get(&self, number: u32) -> Result<&Descriptor> {
        self.places.get(number as usize).and_then(Option::as_ref).ok_or(EBADF)
    }

    /// A descriptor, to change it.
    pub fn get_mut(&mut self, number: u32) -> Result<&mut Descriptor> {
        self.places.get_mut(number as usize).and_then(Option::as_mut).ok_or(EBADF)
    }

    /// The lowest number that is free, from one on, below a limit: the table has a place for it from now on. `EMFILE`: there is none; `ENOMEM`: the table cannot grow.
    pub fn reserve(&mut self, from: u32, limit: u32) -> Result<u32> {
        let free = (from as usize..).find(|number| self.places.get(*number).is_none_or(Option::is_none));
        let number = free.filter(|number| *number < limit as usize).ok_or(EMFILE)?;
        self.grow(number)?;
        Ok(number as u32)
    }

    /// Puts it under the lowest number that is free, with the errors of [`Self::reserve`].
    pub fn add(&mut self, open: Rc<Open>, closes: bool, from: u32, limit: u32) -> Result<u32> {
        let number = self.reserve(from, limit)?;
        self.replace(number, Descriptor { open, closes })?;
        Ok(number)
    }

    /// Lets the table have a number. `ENOMEM`: it cannot grow.
    fn grow(&mut self, number: usize) -> Result<()> {
        if self.places.capacity() <= number {
            let places = (number + 1).next_power_of_two().max(PLACES_MIN);
            let more = places - self.places.len();
            if !self.share.resize(places * size_of::<Option<Descriptor>>()) {
                return Err(ENOMEM);
            }
            self.places.reserve_exact(more);
        }
        Ok(())
    }

    /// Puts it under a number, and gives back what was there. `ENOMEM`: the table cannot grow.
    pub fn replace(&mut self, number: u32, descriptor: Descriptor) -> Result<Option<Descriptor>> {
        let number = number as usize;
        self.grow(number)?;
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        Ok(self.places.get_mut(number).and_then(|place| place.replace(descriptor)))
    }

    /// Takes one away.
    pub fn take(&mut self, number: u32) -> Result<Descriptor> {
        self.places.get_mut(number as usize).and_then(Option::take).ok_or(EBADF)
    }

    /// Takes those away that are closed when a program begins.
    pub fn take_closing(&mut self) -> Vec<Descriptor> {
        self.places.iter_mut().filter_map(|place| place.take_if(|found| found.closes)).collect()
    }

    /// Takes all away.
    pub fn take_all(&mut self) -> Vec<Descriptor> {
        let places = core::mem::take(&mut self.places);
        self.share.set(0);
        places.into_iter().flatten().collect()
    }

    /// All of them, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Descriptor)> {
        self.places
            .iter()
            .enumerate()
            .filter_map(|(number, found)| found.as_ref().map(|found| (number as u32, found)))
    }
}
