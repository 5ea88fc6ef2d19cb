//! A file in a program's own memory, of which few pages are there at a time (row C24).
//!
//! Its user says how many, and by which [`Policy`] one has to go when another is wanted. So a program can look at a file of which the file system
//! would not let it have all pages at once, and knows better than anybody which it will need again.
//!
//! One thread of the program is the pager of all threads that [look](Mapping::enter). A fault in a mapping it resolves by having the file system map the page
//! there, which the kernel does for the whole program; so its answer maps nothing, and the access is tried again. Any other fault it makes its own,
//! so that the program's own pager resolves it.
//!
//! *If the file system's server ends*, its pages go, and none comes. Whoever looks then has a fault that nobody resolves: the program says why, and ends.

use crate::policy::Policy;
use crate::residents::{Counts, Residents, Source};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use files::{File, Pages};
use rt::api::{Failure, Reply, Result, Status};
use rt::page::{PAGE, Window, touch};
use rt::pager::{Fault, REFUSAL};
use rt::sync::Mutex;
use rt::sys::{self, Kind, Message, Rights, Uid};
use rt::{eprintln, server, thread};

/// Mappings that a program has at once.
pub const MAPPINGS_MAX: usize = 16;

/// Most pages of one: 4 GiB.
const PAGES_MAX: usize = 1 << 20;

/// Place for a mapping. The two words can be read without a lock: somebody may have a fault who has the lock.
struct Place {
    begin: AtomicU64,
    end: AtomicU64,
    region: Mutex<Option<Arc<Region>>>,
}

static PLACES: [Place; MAPPINGS_MAX] =
    [const { Place { begin: AtomicU64::new(0), end: AtomicU64::new(0), region: Mutex::new(None) } };
        MAPPINGS_MAX];

/// The thread that pages, once it is there.
static PAGING: Mutex<Option<Uid>> = Mutex::new(None);

/// The answer to a fault that is resolved: nothing is mapped by it, and the thread tries again.
const AGAIN: Reply = Reply::label(0);

/// Memory of a mapping.
struct Region {
    window: Window,
    pages: usize,
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
    place: &'static Place,
}

impl Mapping {
    /// Maps the first pages of a file. All of them that are looked at begin in front of its end. At most `resident` are there at a time; `policy` chooses
    /// which one goes.
    pub fn new(
        file: &File,
        pages: usize,
        resident: usize,
        policy: impl Policy + Send + 'static,
    ) -> Result<Mapping> {
        if pages > PAGES_MAX {
            return Err(Failure::Refused(Status::TooLarge));
        }
        let log2 = (pages * PAGE).next_power_of_two().max(PAGE).ilog2();
        let window = Window::new(log2).ok_or(Failure::Refused(Status::Exhausted))?;
        let residents = Residents::new(resident, Box::new(policy) as Box<dyn Policy + Send>);
        let (begin, end) = (window.begin(), window.begin() + (pages * PAGE) as u64);
        let state = Mutex::new(State { residents, file: file.pages()? });
        let region = Arc::new(Region { window, pages, state });
        paging_thread()?;
        for place in &PLACES {
            let mut taken = place.region.lock();
            if taken.is_none() {
                *taken = Some(region.clone());
                place.end.store(end, Ordering::Release);
                place.begin.store(begin, Ordering::Release);
                drop(taken);
                return Ok(Mapping { region, place });
            }
        }
        Err(Failure::Refused(Status::Exhausted))
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
        self.region.state.lock().residents.counts()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.place.begin.store(0, Ordering::Release);
        self.place.end.store(0, Ordering::Release);
        let region = self.place.region.lock().take();
        // Its memory goes when nobody has the lock.
        drop(region);
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
    let thread = thread::spawn(priority, || server::serve(|message| Some(answer(message))))
        .map_err(Failure::Kernel)?;
    let uid = thread.uid();
    thread.detach();
    *paging = Some(uid);
    Ok(uid)
}

fn answer(message: &Message) -> Reply {
    match (message.kind, Fault::decode(message)) {
        (Kind::Fault, Some(fault)) => resolve(&fault),
        (Kind::Fault, None) => REFUSAL,
        _ => Status::BadRequest.into(),
    }
}

/// Nothing is mapped by the answer: what was wanted is there already.
fn resolve(fault: &Fault) -> Reply {
    // Anybody may name this thread as a pager, of threads of his own.
    if fault.task != sys::identity().task {
        return REFUSAL;
    }
    let is_there = |place: &&Place| {
        let begin = place.begin.load(Ordering::Acquire);
        begin > 0 && fault.address >= begin && fault.address < place.end.load(Ordering::Acquire)
    };
    let Some(place) = PLACES.iter().find(is_there) else {
        touch(fault.address, fault.access.has(Rights::W));
        return AGAIN;
    };
    let region = place.region.lock().clone();
    let Some(region) = region else { return REFUSAL };
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
