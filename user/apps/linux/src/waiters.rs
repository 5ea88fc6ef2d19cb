//! Threads that wait for sockets: each for one at a time, since the server answers a thread when its socket is ready. There are as many as are needed, up to
//! [`THREADS_MAX`]; then all take turns: whoever has waited in vain for a while goes on with the socket that has been left longest, and its own is left. So no
//! socket has a thread for itself while another one has none.

use crate::network::{Server, find};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::cell::Cell;
use linux::network::ITSELF;
use net::sockets::Entrance;
use rt::sync::{Condvar, Mutex};
use rt::sys::{self, Uid};
use rt::thread;

/// Label of their messages. The first word is the number of a socket, the second says what it is ready for.
pub const READY: u32 = 0x7102;

/// Most threads.
const THREADS_MAX: usize = 32;

/// How long the first thread waits for each of several sockets, in ms.
const TURN_MS: u64 = 10;

/// How long each other thread waits for a socket while others are left, in ms; and if none are, until it looks whether there are.
const TURNS_MS: [u64; 2] = [100, 1000];

/// Something to be waited for.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Number of the socket.
    pub number: u64,
    /// Its ticket.
    pub ticket: u64,
    /// The bit of readiness.
    pub event: u32,
    /// The server.
    pub server: Uid,
}

impl Watch {
    /// Waits. Whether it is ready, or will never be: then whoever looks is told so.
    fn wait(&self, patience_ms: u64) -> bool {
        let outcome = Entrance::Client { server: self.server }.wait(self.ticket, self.event, patience_ms);
        outcome != Ok(0)
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Watch>,
    /// Threads that have nothing to do.
    idle: usize,
    /// Whether the server is to be looked for, and what was found.
    is_wanted: bool,
    found: Option<Option<Server>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something in the queue.
    more: Condvar,
    /// The first thread has something to do.
    first: Condvar,
}

/// All of them.
pub struct Waiters {
    shared: Arc<Shared>,
    main: Uid,
    priority: u8,
    threads: Cell<usize>,
}

impl Waiters {
    /// None yet. They tell the caller.
    pub fn new(priority: u8) -> Waiters {
        Waiters { shared: Arc::default(), main: sys::myself(), priority, threads: Cell::new(0) }
    }

    fn begin(&self, work: fn(&Shared, Uid)) -> bool {
        let (shared, main) = (self.shared.clone(), self.main);
        let Ok(handle) = thread::spawn(self.priority, move || work(&shared, main)) else { return false };
        handle.detach();
        self.threads.set(self.threads.get() + 1);
        true
    }

    /// Looks for the server. False: it cannot be looked for.
    pub fn look(&self) -> bool {
        if self.threads.get() == 0 && !self.begin(first) {
            return false;
        }
        self.shared.state.lock().is_wanted = true;
        self.shared.first.notify_one();
        true
    }

    /// The server that was found; none if there is none for this program.
    pub fn found(&self) -> Option<Option<Server>> {
        self.shared.state.lock().found.take()
    }

    /// Waits for something.
    pub fn wait(&self, watch: Watch) {
        let mut state = self.shared.state.lock();
        state.queue.push_back(watch);
        let is_taken = state.idle >= state.queue.len();
        drop(state);
        if is_taken {
            self.shared.more.notify_one();
        } else if self.threads.get() >= THREADS_MAX || !self.begin(others) {
            self.shared.first.notify_one();
        }
    }
}

fn tell(main: Uid, number: u64, event: u32) -> bool {
    sys::ipc_call(main, READY, [number, event.into(), 0, 0, 0, 0, 0, 0]).is_ok()
}

/// Work of the first thread: it looks for the server, and waits where others do not.
fn first(shared: &Shared, main: Uid) {
    let mut state = shared.state.lock();
    loop {
        let is_wanted = core::mem::take(&mut state.is_wanted);
        let watch = if is_wanted { None } else { state.queue.pop_front() };
        if !is_wanted && watch.is_none() {
            shared.first.wait(&mut state);
            continue;
        }
        drop(state);
        let found = is_wanted.then(find);
        let is_ready = watch.is_some_and(|watch| watch.wait(TURN_MS));
        let number = watch.map_or(ITSELF, |watch| watch.number);
        state = shared.state.lock();
        if let Some(found) = found {
            state.found = Some(found);
        }
        match watch {
            Some(watch) if !is_ready => {
                state.queue.push_back(watch);
                continue;
            }
            _ => {}
        }
        drop(state);
        if !tell(main, number, watch.map_or(0, |watch| watch.event)) {
            return;
        }
        state = shared.state.lock();
    }
}

/// Work of all others.
fn others(shared: &Shared, main: Uid) {
    let mut state = shared.state.lock();
    loop {
        let Some(watch) = state.queue.pop_front() else {
            state.idle += 1;
            shared.more.wait(&mut state);
            state.idle -= 1;
            continue;
        };
        let patience = TURNS_MS[usize::from(state.queue.is_empty())];
        drop(state);
        let is_ready = watch.wait(patience);
        if is_ready && !tell(main, watch.number, watch.event) {
            return;
        }
        state = shared.state.lock();
        if !is_ready {
            state.queue.push_back(watch);
        }
    }
}
