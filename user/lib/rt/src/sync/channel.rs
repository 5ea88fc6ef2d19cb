//! Channels: values go from threads that send to threads that receive, in order, each to one.
//!
//! A channel has room for so many values; who sends into a full one waits. When all receivers are gone sending fails, and when
//! all senders are gone receiving fails as soon as the last value is taken.

use super::line::{Line, wait};
use super::system::{Mutex, now_ns};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

/// The half that sends. A clone sends into the same channel.
#[derive(Debug)]
pub struct Sender<T>(Arc<Channel<T>>);

/// The half that receives. A clone receives from the same channel; each value goes to one of them.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Channel<T>>);

/// Why a value was not sent; it comes back.
#[derive(Debug, PartialEq, Eq)]
pub enum NotSent<T> {
    /// Nobody is left to receive it.
    Closed(T),
    /// There is no room at the moment.
    Full(T),
}

/// Why no value came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReceived {
    /// Nobody is left to send one.
    Closed,
    /// There is none at the moment.
    Empty,
}

#[derive(Debug)]
struct Channel<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    values: VecDeque<T>,
    room: usize,
    senders: usize,
    receivers: usize,
    /// Receivers that wait for a value, and senders that wait for room.
    want_value: Line,
    want_room: Line,
}

/// A channel with room for so many values, at least one. `usize::MAX`: senders never wait.
pub fn channel<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let state = State {
        values: VecDeque::new(),
        room: room.max(1),
        senders: 1,
        receivers: 1,
        want_value: Line::new(),
        want_room: Line::new(),
    };
    let channel = Arc::new(Channel { state: Mutex::new(state) });
    (Sender(channel.clone()), Receiver(channel))
}

impl<T> State<T> {
    fn put(&mut self, value: T) -> Result<(), NotSent<T>> {
        if self.receivers == 0 {
            return Err(NotSent::Closed(value));
        }
        if self.values.len() >= self.room {
            return Err(NotSent::Full(value));
        }
        self.values.push_back(value);
        self.want_value.wake_one();
        Ok(())
    }

    fn take(&mut self) -> Result<T, NotReceived> {
        let Some(value) = self.values.pop_front() else {
            return Err(if self.senders == 0 { NotReceived::Closed } else { NotReceived::Empty });
        };
        self.want_room.wake_one();
        Ok(value)
    }
}

impl<T> Sender<T> {
    /// Sends, and waits for room if there is none.
    ///
    /// # Errors
    ///
    /// The value, if nobody is left to receive it.
    pub fn send(&self, mut value: T) -> Result<(), T> {
        let lock = &self.0.state;
        loop {
            let mut state = lock.lock();
            value = match state.put(value) {
                Ok(()) => return Ok(()),
                Err(NotSent::Closed(value)) => return Err(value),
                Err(NotSent::Full(value)) => value,
            };
            let ticket = state.want_room.join();
            drop(state);
            wait(lock, |state| &mut state.want_room, ticket, None);
        }
    }

    /// Sends if that can be done at once.
    ///
    /// # Errors
    ///
    /// The value, and why.
    pub fn try_send(&self, value: T) -> Result<(), NotSent<T>> {
        self.0.state.lock().put(value)
    }
}

impl<T> Receiver<T> {
    /// Receives, and waits for a value if there is none.
    ///
    /// # Errors
    ///
    /// [`NotReceived::Closed`].
    pub fn receive(&self) -> Result<T, NotReceived> {
        self.receive_until(None)
    }

    /// Receives, and waits for a value for at most so long.
    ///
    /// # Errors
    ///
    /// [`NotReceived`].
    pub fn receive_for(&self, patience: Duration) -> Result<T, NotReceived> {
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.receive_until(Some(now_ns().saturating_add(patience)))
    }

    /// Receives if there is a value.
    ///
    /// # Errors
    ///
    /// [`NotReceived`].
    pub fn try_receive(&self) -> Result<T, NotReceived> {
        self.0.state.lock().take()
    }

    fn receive_until(&self, until_ns: Option<u64>) -> Result<T, NotReceived> {
        let lock = &self.0.state;
        let mut is_in_time = true;
        loop {
            let mut state = lock.lock();
            match state.take() {
                Err(NotReceived::Empty) if is_in_time => {}
                outcome => return outcome,
            }
            let ticket = state.want_value.join();
            drop(state);
            is_in_time = wait(lock, |state| &mut state.want_value, ticket, until_ns);
        }
    }
}

impl<T> Iterator for Receiver<T> {
    type Item = T;

    /// The next value; `None` when nobody is left to send one.
    fn next(&mut self) -> Option<T> {
        self.receive().ok()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.state.lock().senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.0.state.lock().receivers += 1;
        Receiver(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.senders -= 1;
        if state.senders == 0 {
            state.want_value.wake_all();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.receivers -= 1;
        if state.receivers > 0 {
            return;
        }
        state.want_room.wake_all();
        let unwanted = core::mem::take(&mut state.values);
        drop(state);
        // Their ends may take their time, or use the channel.
        drop(unwanted);
    }
}
