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
        let own = self.all.values().filter(|shared| shared.owner == owner).count();
        if own >= OWN_MAX || self.all.len() >= ALL_MAX {
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
                    if shared.flow.drain(stack, id) || until_ns <= now_ns {
                        stack.close(id);
                        shared.memory.wipe();
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
        if shared.flow.drain(stack, id) {
            let memory = shared.memory;
            self.all.remove(&id);
            stack.close(id);
            memory.wipe();
            self.spare.push(memory);
        }
    }

    /// Says for what a socket is ready, of which the stack says `of_socket`.
    pub fn ready(&self, id: Id, of_socket: Result<u32, Refusal>) -> Result<u32, Refusal> {
        match self.all.get(&id) {
            Some(shared) => shared.flow.ready(of_socket),
            None => of_socket,
        }
    }
}
