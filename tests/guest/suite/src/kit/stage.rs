//! Stages: a pager in a task of its own, and its clients in theirs.
//!
//! Code and heap of all of them are the suite's, at the same addresses, as for every child; what is under test are the
//! pages beyond. A pager is made in its own task, so that the memory that it asks for arrives there. Its clients get
//! the suite's code from it, too: it passes on what it has from the suite.

use super::{Agent, Child, Outcome, Thread, agent, pager};
use crate::check;
use alloc::boxed::Box;
use pagers::Pager;
use rt::api::Reply;
use rt::pager::Fault;
use sys::{Fpage, Rights, Uid};

/// Kernel memory of a stage, in frames.
const QUOTA: u64 = 96;

/// A pager in a task of its own. It ends when this value is dropped.
pub struct Stage {
    // In this order: the thread ends before its task.
    thread: Thread,
    /// Its task.
    pub child: Child,
}

type Body = Box<dyn FnOnce() + Send>;

extern "C" fn begin(body: u64, _: u64) -> ! {
    // SAFETY: `Stage::start` made it and gave it away; the heap is shared.
    let body = unsafe { Box::from_raw(body as *mut Body) };
    body();
    loop {
        let _ = sys::thread_destroy(Uid::NIL);
    }
}

impl Stage {
    /// Starts a pager, which is made by a function in its own task.
    pub fn new<P: Pager + 'static>(make: impl FnOnce() -> Option<P> + Send + 'static) -> Outcome<Stage> {
        let child = Child::with_quota(QUOTA)?;
        Stage::start(child, pager::priority(), move || {
            if let Some(pager) = make() {
                pagers::serve(WithCode(pager));
            }
        })
    }

    /// Starts any body in a task, with a priority.
    pub fn start(child: Child, priority: u8, body: impl FnOnce() + Send + 'static) -> Outcome<Stage> {
        let body: Body = Box::new(body);
        check!(pager::allow_heap(child.0), "too many stages");
        let argument = Box::into_raw(Box::new(body)) as u64;
        let thread = agent::spawn(child.0, priority, begin, argument)?;
        Ok(Stage { thread, child })
    }

    /// Its uid.
    pub fn uid(&self) -> Uid {
        self.thread.uid
    }

    /// Pages that its task has mapped.
    pub fn pages(&self) -> Outcome<u64> {
        Ok(sys::task_info(self.child.0)?.pages)
    }

    /// A client in a task of its own.
    pub fn client(&self) -> Outcome<Client> {
        Client::new(Child::new()?, self.uid(), pager::priority())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        pager::forbid_heap(self.child.0);
    }
}

/// An agent that is paged by a stage, in a task of its own.
pub struct Client {
    // In this order: the thread ends before its task.
    /// The agent.
    pub agent: Agent,
    _child: Child,
}

impl Client {
    /// Starts it.
    pub fn new(child: Child, pager: Uid, priority: u8) -> Outcome<Client> {
        let agent = Agent::create(child.0, priority)?;
        sys::thread_set_pager(agent.uid, pager, pager::uid())?;
        agent.begin()?;
        Ok(Client { agent, _child: child })
    }

    /// Leaves its pager, which is going to end, and takes the suite's, which has the code but nothing else.
    pub fn leave(&self) -> sys::Result<()> {
        sys::thread_set_pager(self.agent.uid, pager::uid(), pager::uid())
    }

    /// Page faults so far.
    pub fn faults(&self) -> Outcome<u64> {
        Ok(self.agent.info()?.faults)
    }
}

/// A pager whose clients run the suite's code.
struct WithCode<P>(P);

impl<P: Pager> Pager for WithCode<P> {
    fn fault(&mut self, fault: Fault) -> Reply {
        let page = fault.address & !0xfff;
        if !pager::is_mine(page) || agent::is_guard(page) {
            return self.0.fault(fault);
        }
        pager::touch(page, fault.access);
        pagers::show(Fpage::memory(page, 12, Rights::RWX), page)
    }

    fn request(&mut self, message: &sys::Message) -> Reply {
        self.0.request(message)
    }
}
