//! Connections whose bytes go through memory that their programs have, too: which memory, for how long, and how such a connection ends.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use net::memory::{Half, Memory};
use rt::sys::Fpage;
use tcpip::flows::Part;
use tcpip::{Flow, Id, Refusal, Stack, State};

/// Connections with memory, of all programs. Others go by calls.
const ALL_MAX: usize = 64;

/// Connections with memory, also those that are closed and have bytes to be sent.
const KEPT_MAX: usize = 96;

/// Such connections of one program.
const OWN_MAX: usize = 16;

/// How long a connection that is closed may take to send what was written, until that is given up.
const CLOSING_NS: u64 = 10_000_000_000;

/// End of a connection that has bytes which are to be sent before.
enum Ending {
    /// Nothing more is written.
    Shutdown,
    /// Nobody has it any more, and then it has so much time.
    Close { until_ns: u64 },
}

struct Shared {
    owner: u64,
    memory: Memory,
    flow: Flow<Half>,
    ending: Option<Ending>,
}

impl Shared {
    fn is_closed(&self) -> bool {
        matches!(self.ending, Some(Ending::Close { .. }))
    }

    /// Closes the connection for good. If bytes that were to be sent are lost, the other side must not take what it has for all of it.
    fn end(&self, stack: &mut Stack, id: Id, is_late: bool) {
        if is_late || self.flow.is_broken() {
            stack.break_off(id);
        } else {
            stack.close(id);
        }
        self.memory.wipe();
    }
}

/// All of them.
#[derive(Default)]
pub struct Flows {
    all: BTreeMap<Id, Shared>,
    /// Memory that no connection has.
    spare: Vec<Memory>,
}

fn part((words, store): (&'static [AtomicU64], Half)) -> Part<Half> {
    Part { words, store }
}

impl Flows {
    /// Gives a connection memory, to be mapped to its program.
    pub fn share(&mut self, stack: &mut Stack, id: Id) -> Result<Fpage, Refusal> {
        if stack.state(id)?.0 != State::Open {
            return Err(Refusal::Closed);
        }
        let owner = stack.owner(id)?;
        if self.all.contains_key(&id) {
            return Err(Refusal::InUse);
        }
        let open = || self.all.values().filter(|shared| !shared.is_closed());
        let own = open().filter(|shared| shared.owner == owner).count();
        if own >= OWN_MAX || open().count() >= ALL_MAX || self.all.len() >= KEPT_MAX {
            return Err(Refusal::Limit);
        }
        let memory = self.spare.pop().or_else(Memory::new).ok_or(Refusal::Limit)?;
        let flow = Flow::new(memory.begun(), part(memory.to_send()), part(memory.received()));
        let flow = flow.ok_or(Refusal::Limit)?;
        self.all.insert(id, Shared { owner, memory, flow, ending: None });
        Ok(memory.region().fpage())
    }

    /// Moves bytes of all of them. Says whether the stack has something to do.
    pub fn turn(&mut self, stack: &mut Stack, now_ns: u64) -> bool {
        let mut has_more = false;
        let Flows { all, spare } = self;
        all.retain(|&id, shared| {
            match shared.ending {
                None => has_more |= shared.flow.turn(stack, id),
                Some(Ending::Shutdown) => {
                    has_more |= shared.flow.turn(stack, id);
                    if shared.flow.drain(stack, id) {
                        let _ = stack.shutdown(id);
                        (shared.ending, has_more) = (None, true);
                    }
                }
                Some(Ending::Close { until_ns }) => {
                    let is_drained = shared.flow.drain(stack, id);
                    if is_drained || until_ns <= now_ns {
                        shared.end(stack, id, !is_drained);
                        spare.push(shared.memory);
                        has_more = true;
                        return false;
                    }
                }
            }
            true
        });
        has_more
    }

    /// Nothing more is written to a connection; what was written is sent before.
    pub fn shutdown(&mut self, stack: &mut Stack, id: Id) -> Result<(), Refusal> {
        if let Some(shared) = self.all.get_mut(&id)
            && !shared.flow.drain(stack, id)
        {
            shared.ending = Some(Ending::Shutdown);
            return Ok(());
        }
        stack.shutdown(id)
    }

    /// Nobody has a socket any more; what was written is sent before.
    pub fn close(&mut self, stack: &mut Stack, id: Id, now_ns: u64) {
        let Some(shared) = self.all.get_mut(&id) else {
            return stack.close(id);
        };
        shared.ending = Some(Ending::Close { until_ns: now_ns.saturating_add(CLOSING_NS) });
        shared.memory.region().take_back();
        if !shared.flow.drain(stack, id) {
            stack.let_go(id);
            return;
        }
        if let Some(shared) = self.all.remove(&id) {
            shared.end(stack, id, false);
            self.spare.push(shared.memory);
        }
    }

    /// When the time of the next one is over that is closed and has bytes to be sent.
    pub fn next_ns(&self) -> Option<u64> {
        let until = |shared: &Shared| match shared.ending {
            Some(Ending::Close { until_ns }) => Some(until_ns),
            _ => None,
        };
        self.all.values().filter_map(until).min()
    }

    /// Whether a connection has memory.
    pub fn has(&self, id: Id) -> bool {
        self.all.contains_key(&id)
    }

    /// Whether a call that reads would overtake bytes in memory.
    pub fn holds_received(&self, id: Id) -> bool {
        self.all.get(&id).is_some_and(|shared| shared.flow.holds_received())
    }

    /// Whether nothing more is written to a connection, since that was said, and not everything has been sent yet.
    pub fn is_ending(&self, id: Id) -> bool {
        self.all.get(&id).is_some_and(|shared| shared.ending.is_some())
    }

    /// Says for what a socket is ready, of which the stack says `of_socket`.
    pub fn ready(&self, id: Id, of_socket: Result<u32, Refusal>) -> Result<u32, Refusal> {
        match self.all.get(&id) {
            Some(shared) => shared.flow.ready(of_socket),
            None => of_socket,
        }
    }
}
