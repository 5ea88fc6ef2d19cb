//! A file in a program's own memory, of which few pages are there at a time (row C24).
//!
//! Its user says how many, and by which [`Policy`] one has to go when another is wanted. So a program can look at a file of which the file system
//! would not let it have all pages at once, and knows better than anybody which it will need again.
//!
//! One thread of the program is the pager of all threads that [look](Mapping::enter). A fault in a mapping it resolves by having the file system map the page
//! there, which the kernel does for the whole program; so its answer maps nothing, and the access is tried again. Any other fault it makes its own,
//! so that the program's own pager resolves it.
//!
//! *Whoever has the fault may have any lock of the program*, that of the heap, too. So that thread takes memory for nothing and gives none back, and waits for no lock that another
//! thread has.
//!
//! *If the file system's server ends*, its pages go, and none comes. Whoever looks then has a fault that nobody resolves: the program says why, and ends.

use crate::policy::Policy;
use crate::residents::{Counts, Residents, Source, Tally};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use files::{File, Pages};
use rt::api::{Failure, Reply, Result, Status};
use rt::page::{PAGE, Window, touch};
use rt::pager::{Fault, REFUSAL};
use rt::sync::Mutex;
use rt::sys::{self, Kind, Message, Rights, TaskId, Uid};
use rt::{eprintln, server, thread};

/// Mappings that a program has at once.
pub const MAPPINGS_MAX: usize = 16;

/// Most pages of one: 4 GiB.
const PAGES_MAX: usize = 1 << 20;

/// Place for a mapping.
struct Place {
    /// A mapping has it.
    is_taken: AtomicBool,
    /// Where the mapping's memory begins and ends; 0 while it is being made, and when it goes. These words can be read without the lock: somebody may have a fault elsewhere who
    /// has that.
    begin: AtomicU64,
    end: AtomicU64,
    /// Locked by the thread that pages, as long as the two words say that there is a mapping.
    region: Mutex<Option<Arc<Region>>>,
}

impl Place {
    const fn new() -> Place {
        let (begin, end) = (AtomicU64::new(0), AtomicU64::new(0));
        Place { is_taken: AtomicBool::new(false), begin, end, region: Mutex::new(None) }
    }
}

static PLACES: [Place; MAPPINGS_MAX] = [const { Place::new() }; MAPPINGS_MAX];

/// The thread that pages, once it is there.
static PAGING: Mutex<Option<Uid>> = Mutex::new(None);

/// The answer to a fault that is resolved: nothing is mapped by it, and the thread tries again.
const AGAIN: Reply = Reply::label(0);

/// Memory of a mapping.
struct Region {
    window: Window,
    pages: usize,
    /// Used by the thread that pages, and by no other.
    state: Mutex<State>,
}

struct State {
    residents: Residents<Box<dyn Policy + Send>>,
    file: Pages,
}

/// A page's place, and where it comes from.
struct Between<'a> {
    window: &'a Window,
    file: &'a Pages,
}

impl Source for Between<'_> {
    type Error = Failure;

    fn bring(&mut self, page: u64, is_writable: bool) -> Result<()> {
        self.file.map(self.window.page(page as usize), page * PAGE as u64, is_writable)
    }

    fn take(&mut self, page: u64) -> Result<()> {
        // Nobody here writes to it any more when the file system looks at what was written.
        self.window.let_go(page as usize);
        self.file.unmap(page * PAGE as u64)
    }

    fn was_accessed(&mut self, page: u64) -> bool {
        self.window.was_accessed(page as usize)
    }
}

/// A file that is mapped, of which few pages are there at a time.
pub struct Mapping {
    region: Arc<Region>,
    tally: Arc<Tally>,
    place: &'static Place,
}

impl Mapping {
    /// Maps the first pages of a file. All of them that are looked at begin in front of its end. At most `resident` are there at a time; `policy` chooses
    /// which one goes. All memory that paging needs is taken here.
    pub fn new(
        file: &File,
        pages: usize,
        resident: usize,
        policy: impl Policy + Send + 'static,
    ) -> Result<Mapping> {
        if pages > PAGES_MAX {
            return Err(Failure::Refused(Status::TooLarge));
        }
        const EXHAUSTED: Failure = Failure::Refused(Status::Exhausted);
        let log2 = (pages * PAGE).next_power_of_two().max(PAGE).ilog2();
        let window = Window::new(log2).ok_or(EXHAUSTED)?;
        let policy = Box::new(policy) as Box<dyn Policy + Send>;
        let residents = Residents::new(resident.min(pages), policy).ok_or(EXHAUSTED)?;
        let tally = residents.tally().clone();
        let (begin, end) = (window.begin(), window.begin() + (pages * PAGE) as u64);
        let state = Mutex::new(State { residents, file: file.pages()? });
        let region = Arc::new(Region { window, pages, state });
        paging_thread()?;
        let place = PLACES.iter().find(|place| !place.is_taken.swap(true, Ordering::Acquire));
        let place = place.ok_or(EXHAUSTED)?;
        *place.region.lock() = Some(region.clone());
        place.end.store(end, Ordering::Release);
        place.begin.store(begin, Ordering::Release);
        Ok(Mapping { region, tally, place })
    }

    /// Lets the calling thread look at it, as long as what comes back is there.
    pub fn enter(&self) -> Result<Look<'_>> {
        let pager = paging_thread()?;
        let own = sys::identity();
        sys::thread_set_pager(own.uid, pager, own.handler).map_err(Failure::Kernel)?;
        Ok(Look { region: &self.region, before: own, thread: PhantomData })
    }

    /// How much work it was.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.place.begin.store(0, Ordering::Release);
        self.place.end.store(0, Ordering::Release);
        // A fault that is being resolved is resolved before. Its memory goes here, and not with the thread that pages.
        let region = self.place.region.lock().take();
        drop(region);
        self.place.is_taken.store(false, Ordering::Release);
    }
}

/// Leave of a thread to look at a mapping.
pub struct Look<'a> {
    region: &'a Region,
    before: sys::Identity,
    /// It is that thread's.
    thread: PhantomData<*const ()>,
}

impl Look<'_> {
    /// The bytes, in words: the first one has the first eight, the lowest in front. Others who write to the file change them.
    pub fn words(&self) -> &[AtomicU64] {
        self.region.window.words(self.region.pages)
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        // It cannot fail: both were there before.
        let _ = sys::thread_set_pager(self.before.uid, self.before.pager, self.before.handler);
    }
}

/// The thread that pages. It begins with the first mapping, and stays.
fn paging_thread() -> Result<Uid> {
    let mut paging = PAGING.lock();
    if let Some(uid) = *paging {
        return Ok(uid);
    }
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let own = sys::identity().task;
    let thread = thread::spawn(priority, move || server::serve(|message| Some(answer(message, own))))
        .map_err(Failure::Kernel)?;
    let uid = thread.uid();
    thread.detach();
    *paging = Some(uid);
    Ok(uid)
}

fn answer(message: &Message, own: TaskId) -> Reply {
    match (message.kind, Fault::decode(message)) {
        // Anybody may name this thread as a pager, of threads of his own.
        (Kind::Fault, Some(fault)) if fault.task == own => resolve(&fault),
        (Kind::Fault, _) => REFUSAL,
        _ => Status::BadRequest.into(),
    }
}

/// Nothing is mapped by the answer: what was wanted is there already.
fn resolve(fault: &Fault) -> Reply {
    let is_there = |place: &&Place| {
        let begin = place.begin.load(Ordering::Acquire);
        begin > 0 && fault.address >= begin && fault.address < place.end.load(Ordering::Acquire)
    };
    let Some(place) = PLACES.iter().find(is_there) else {
        touch(fault.address, fault.access.has(Rights::W));
        return AGAIN;
    };
    // Nobody else has the lock, unless the mapping has gone since, and nobody was to look at it.
    let Some(region) = place.region.try_lock() else { return REFUSAL };
    let Some(region) = &*region else { return REFUSAL };
    let page = fault.address.saturating_sub(region.window.begin()) / PAGE as u64;
    let State { residents, file } = &mut *region.state.lock();
    let mut between = Between { window: &region.window, file };
    match residents.fault(&mut between, page, fault.access.has(Rights::W)) {
        Ok(()) => AGAIN,
        Err(failure) => {
            eprintln!("a page of a mapped file is not to be had: {failure}");
            REFUSAL
        }
    }
}
