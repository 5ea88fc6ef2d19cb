//! The lock of a [`RwLock`](super::RwLock): many readers, or one writer.

use super::line::{Line, wait};
use super::system::Mutex;

/// How many are inside, and who wants to be.
#[derive(Debug)]
pub struct State {
    readers: usize,
    has_writer: bool,
    /// Writers in the line; as long as there are some, no reader enters.
    writers_waiting: usize,
    line: Line,
}

impl State {
    /// Nobody is there.
    pub const fn new() -> State {
        State { readers: 0, has_writer: false, writers_waiting: 0, line: Line::new() }
    }
}

/// The lock of a [`RwLock`](super::RwLock).
#[derive(Debug)]
pub struct RawReadersLock {
    pub(super) state: Mutex<State>,
}

impl RawReadersLock {
    /// Enters as a reader if that can be at once.
    pub fn try_enter_shared(&self) -> bool {
        enter_shared(&mut self.state.lock())
    }

    /// Enters as the writer if that can be at once.
    pub fn try_enter_alone(&self) -> bool {
        enter_alone(&mut self.state.lock())
    }

    /// Enters as a reader.
    pub fn enter_shared(&self) {
        loop {
            let mut state = self.state.lock();
            if enter_shared(&mut state) {
                return;
            }
            let ticket = state.line.join();
            drop(state);
            wait(&self.state, |state| &mut state.line, ticket, None);
        }
    }

    /// Enters as the writer.
    pub fn enter_alone(&self) {
        let mut state = self.state.lock();
        if enter_alone(&mut state) {
            return;
        }
        state.writers_waiting += 1;
        loop {
            let ticket = state.line.join();
            drop(state);
            wait(&self.state, |state| &mut state.line, ticket, None);
            state = self.state.lock();
            if enter_alone(&mut state) {
                state.writers_waiting -= 1;
                return;
            }
        }
    }

    /// A reader leaves.
    pub fn leave_shared(&self) {
        let mut state = self.state.lock();
        state.readers -= 1;
        if state.readers == 0 {
            state.line.wake_all();
        }
    }

    /// The writer leaves.
    pub fn leave_alone(&self) {
        let mut state = self.state.lock();
        state.has_writer = false;
        state.line.wake_all();
    }
}

fn enter_shared(state: &mut State) -> bool {
    let may = !state.has_writer && state.writers_waiting == 0;
    state.readers += usize::from(may);
    may
}

fn enter_alone(state: &mut State) -> bool {
    let may = !state.has_writer && state.readers == 0;
    state.has_writer |= may;
    may
}
