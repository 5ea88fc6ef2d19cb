//! Connections of a program. A connection that moves much does so through memory that the server has, too: bytes are written and read there, and the server is called when it
//! sleeps, or when this program has to wait. One that moves little does so by calls, which need no memory. Nobody sees from outside which way it is.

use crate::memory::{Half, Memory};
use crate::sockets::{Entrance, Error, FOREVER, Net, Result, Sockets, socket_address};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::sync::atomic::Ordering;
use ring::Broken;
use ring::stream::{Reader, Writer};
use rt::api::Failure;
use rt::api::stub::{Failure as Fault, Inbox, View};
use rt::door::Reference;
use rt::sync::Mutex;

/// Bytes that a connection has moved by calls, both ways, when it is given memory.
const SHARED_FROM: usize = 64 << 10;

/// Memory that no connection has.
static SPARE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Outcome of one way: `None` if the other one is to be taken.
type Tried<T> = Option<core::result::Result<T, Fault>>;

/// This program's ends of a connection's streams.
struct Ends {
    memory: Memory,
    to_send: Writer<'static, Half>,
    received: Reader<'static, Half>,
    /// Nothing more is written.
    is_shut: bool,
}

impl Ends {
    fn of(memory: Memory) -> Option<Ends> {
        let (words, half) = memory.to_send();
        let to_send = Writer::new(words, half)?;
        let (words, half) = memory.received();
        Some(Ends { memory, to_send, received: Reader::new(words, half)?, is_shut: false })
    }

    /// Fails if the server has ended: then zeroes are where it was.
    fn check(&self) -> core::result::Result<(), Broken> {
        if self.memory.begun().load(Ordering::Relaxed) == 0 { Err(Broken) } else { Ok(()) }
    }

    /// Writes as much as there is room for. Whether the server is to be woken.
    ///
    /// The server says by an answer to a call why nothing can be written any more.
    fn write(&mut self, bytes: &[u8]) -> core::result::Result<(Tried<usize>, bool), Broken> {
        self.check()?;
        if self.is_shut || self.to_send.is_over() {
            return Ok((None, false));
        }
        let count = self.to_send.write(bytes)?;
        let is_full = count == 0 && !bytes.is_empty();
        let outcome = if is_full { Err(Fault::Refused(Sockets::AGAIN)) } else { Ok(count) };
        Ok((Some(outcome), self.to_send.wakes()))
    }

    /// Reads what has come. Whether the server is to be woken.
    ///
    /// The server says by an answer to a call how a connection has ended.
    fn read(&mut self, len_max: usize) -> core::result::Result<(Tried<Vec<u8>>, bool), Broken> {
        self.check()?;
        let mut to = Vec::new();
        let append = |half: &Half, at, len| half.append(at, len, &mut to);
        let count = self.received.read_with(len_max, append)?;
        let wakes = self.received.wakes()?;
        let is_over = count == 0 && self.received.is_over()?;
        let outcome = if count == 0 && len_max > 0 { Err(Fault::Refused(Sockets::AGAIN)) } else { Ok(to) };
        Ok(((!is_over).then_some(outcome), wakes))
    }

    /// The server could not be woken; it still wants to be.
    fn could_not_wake(&self) {
        self.to_send.could_not_wake();
        self.received.could_not_wake();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        give_back(self.memory);
    }
}

/// Keeps memory for another connection, without what was mapped over it.
fn give_back(memory: Memory) {
    memory.region().clear();
    SPARE.lock().push(memory);
}

/// Way of a connection's bytes.
enum Way {
    /// By calls, so many of them until now.
    Calls(usize),
    /// By calls for ever: what is in its memory makes no sense.
    CallsOnly,
    Memory(Ends),
}

/// A connection.
pub struct Stream<'a> {
    net: &'a Net,
    stream: Reference<Sockets::Stream::Client<View>>,
    ticket: u64,
    /// Locked by nobody who waits for the connection.
    way: Mutex<Way>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        net: &'a Net,
        stream: Reference<Sockets::Stream::Client<View>>,
        ticket: u64,
    ) -> Stream<'a> {
        Stream { net, stream, ticket, way: Mutex::new(Way::Calls(0)) }
    }

    /// Writes all of it.
    pub fn write(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let len = self.write_some(bytes, FOREVER)?;
            bytes = bytes.get(len..).ok_or(Error::Server(Failure::Garbled))?;
        }
        Ok(())
    }

    /// Writes as much of it as there is room for, and waits until there is some. Gives back how many bytes that were.
    pub fn write_some(&self, bytes: &[u8], patience_ms: u64) -> Result<usize> {
        let piece = &bytes[..bytes.len().min(Sockets::BYTES_MAX as usize)];
        self.net.when(self.ticket, Sockets::WRITABLE, patience_ms, || {
            if let Some(outcome) = self.through_memory(|ends| ends.write(bytes)) {
                return outcome;
            }
            let len = self.stream.write(piece)? as usize;
            self.count(len);
            Ok(len)
        })
    }

    /// Reads what has come, and waits until something has: nothing if nothing more will.
    pub fn read(&self, len_max: usize, patience_ms: u64) -> Result<Vec<u8>> {
        let through_memory = || self.through_memory(|ends| ends.read(len_max));
        let read = || through_memory().transpose();
        if let Some(bytes) = self.net.when(self.ticket, Sockets::READABLE, patience_ms, read)? {
            return Ok(bytes);
        }
        let len_max = len_max.min(Sockets::BYTES_MAX as usize) as u32;
        let spare = self.net.spare.lock().take();
        let mut replies = spare.unwrap_or_else(|| Box::new(Sockets::Stream::Replies::new()));
        let outcome = Inbox::open(&mut *replies, |inbox| {
            // Another thread may have changed the way while this one waited.
            let read = || match through_memory() {
                Some(outcome) => outcome,
                None => self.stream.read(inbox, len_max).map(<[u8]>::to_vec),
            };
            self.net.when(self.ticket, Sockets::READABLE, patience_ms, read)
        });
        *self.net.spare.lock() = Some(replies);
        let bytes = outcome??;
        self.count(bytes.len());
        Ok(bytes)
    }

    /// Nothing more will be written.
    pub fn shutdown(&self) -> Result<()> {
        if let Way::Memory(ends) = &mut *self.way.lock() {
            ends.is_shut = true;
        }
        Ok(self.stream.shutdown()?)
    }

    /// The other end.
    pub fn peer(&self) -> Result<SocketAddr> {
        Ok(socket_address(&self.stream.peer()?))
    }

    /// This end.
    pub fn local(&self) -> Result<SocketAddr> {
        Ok(socket_address(&self.stream.local()?))
    }

    /// Does something with this program's ends of the streams, if it has them, and wakes the server if that is to be.
    fn through_memory<T>(
        &self,
        act: impl FnOnce(&mut Ends) -> core::result::Result<(Tried<T>, bool), Broken>,
    ) -> Tried<T> {
        let mut way = self.way.lock();
        let Way::Memory(ends) = &mut *way else { return None };
        let Ok((outcome, wakes)) = act(ends) else {
            // The server has ended, and says so when it is called. If it has not, it hears that the memory is not used any more.
            ends.memory.begun().store(0, Ordering::Release);
            *way = Way::CallsOnly;
            return None;
        };
        drop(way);
        if wakes
            && (Entrance::Client { server: self.net.server }).poke().is_err()
            && let Way::Memory(ends) = &*self.way.lock()
        {
            ends.could_not_wake();
        }
        outcome
    }

    /// So many bytes have moved by a call.
    fn count(&self, len: usize) {
        let mut way = self.way.lock();
        if let Way::Calls(moved) = &mut *way {
            *moved += len;
            if *moved >= SHARED_FROM {
                // If there is none now, there may be after as many bytes again.
                *way = self.share().map_or(Way::Calls(0), Way::Memory);
            }
        }
    }

    /// Asks for memory.
    fn share(&self) -> Option<Ends> {
        let shared = self.stream.duplicate().ok()?.narrow::<Sockets::SharedStream::Client<View>>().ok()?;
        let spare = SPARE.lock().pop();
        let memory = spare.or_else(Memory::new)?;
        let arrived = shared.share(memory.region().fpage());
        let ends = match arrived {
            Ok(arrived) if memory.region().is(arrived) => Ends::of(memory),
            _ => None,
        };
        let Some(ends) = ends else {
            give_back(memory);
            return None;
        };
        memory.begun().store(1, Ordering::Release);
        // Something may have come already. If the server has ended, the next call says so.
        let _ = (Entrance::Client { server: self.net.server }).poke();
        Some(ends)
    }
}
