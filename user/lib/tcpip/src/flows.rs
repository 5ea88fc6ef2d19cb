//! A connection whose bytes its program writes and reads where the server has them, too: a stream of bytes each way ([`ring::stream`]) in memory that both have.
//!
//! In each turn bytes go from the one stream into the socket, and from the socket into the other. A stream has nobody who sleeps but the server, whose turn a program
//! asks for when that is so; a program that has to wait waits for the socket, as it would without streams: see [`Flow::ready`].
//!
//! **The memory is not believed.** A program that writes nonsense to it ends its own flow: no byte moves any more. It cannot make a turn longer than the bytes that there is room for.

use crate::readiness::{READABLE, WRITABLE};
use crate::sockets::Connection;
use crate::{Id, Refusal, Stack};
use core::sync::atomic::{AtomicU64, Ordering};
use ring::Broken;
use ring::stream::{self, Reader, Side, Store, Writer};

/// Pieces in which bytes move at most in a turn, each way: a socket's buffer ends in the middle of what it has, and goes on at its beginning.
const PIECES: usize = 2;

/// Memory for a stream.
#[derive(Debug)]
pub struct Part<S> {
    /// Words of the stream.
    pub words: &'static [AtomicU64],
    /// Bytes of it.
    pub store: S,
}

/// Both streams of a connection, as the server has them.
#[derive(Debug)]
pub struct Flow<S: Store> {
    /// The program uses them, once this is not zero. Until then its calls do.
    begun: &'static AtomicU64,
    /// Bytes that are to be sent.
    to_send: Reader<'static, S>,
    /// Bytes that have come.
    received: Writer<'static, S>,
    /// Words of both, in this order.
    words: [&'static [AtomicU64]; 2],
    is_broken: bool,
}

impl<S: Store> Flow<S> {
    /// Two streams that are empty. `None` if there is no room for them.
    pub fn new(begun: &'static AtomicU64, to_send: Part<S>, received: Part<S>) -> Option<Flow<S>> {
        let words = [to_send.words, received.words];
        words.into_iter().for_each(stream::reset);
        begun.store(0, Ordering::Relaxed);
        Some(Flow {
            begun,
            to_send: Reader::new(to_send.words, to_send.store)?,
            received: Writer::new(received.words, received.store)?,
            words,
            is_broken: false,
        })
    }

    /// Whether the program uses them.
    fn is_used(&self) -> bool {
        !self.is_broken && self.begun.load(Ordering::Acquire) != 0
    }

    /// Whether bytes that have come wait for the program in its stream, so that whoever read from the socket would overtake it.
    pub fn holds_received(&self) -> bool {
        self.is_used() && self.received.waiting().unwrap_or(0) > 0
    }

    /// Whether the program has written nonsense, so that bytes which were to be sent are lost.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Moves bytes, as far as there is room. Says whether the stack has something to do: bytes to send, or room to tell of.
    pub fn turn(&mut self, stack: &mut Stack, id: Id) -> bool {
        if !self.is_used() {
            return false;
        }
        let Ok(mut connection) = stack.connection(id) else { return false };
        let sent = self.send(&mut connection);
        let moved = sent.and_then(|sent| Ok(sent | self.receive(&mut connection)?));
        self.is_broken = moved.is_err();
        moved.unwrap_or(false)
    }

    /// Moves bytes that are to be sent, of a connection that will be shut. Says whether nothing is left that could still be sent.
    pub fn drain(&mut self, stack: &mut Stack, id: Id) -> bool {
        let Ok(mut connection) = stack.connection(id) else { return true };
        if !self.is_used() {
            return true;
        }
        let left = self.send(&mut connection).and_then(|_| self.to_send.waiting());
        self.is_broken = left.is_err();
        left.unwrap_or(0) == 0 || connection.is_shut()
    }

    fn send(&mut self, connection: &mut Connection) -> Result<bool, Broken> {
        if connection.is_shut() {
            stream::close(self.words[0], Side::Reader);
            return Ok(false);
        }
        let mut has_moved = false;
        for _ in 0..PIECES {
            if self.to_send.waiting()? == 0 {
                break;
            }
            let mut read = Ok(0);
            let outcome = connection.send(|room| {
                read = self.to_send.read(room);
                read.unwrap_or(0)
            });
            has_moved |= read? > 0;
            if outcome.is_err() {
                break;
            }
        }
        // Bytes that wait for room in the socket are moved in the turn that makes room. Nobody has to say so.
        if self.to_send.waiting()? > 0 || self.to_send.is_asleep() || self.to_send.may_sleep()? {
            return Ok(has_moved);
        }
        Ok(has_moved || self.to_send.waiting()? > 0)
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<bool, Broken> {
        let (was_crowded, mut has_moved) = (connection.is_crowded(), false);
        for _ in 0..PIECES {
            if !connection.has_received() {
                if connection.is_over() {
                    stream::close(self.words[1], Side::Writer);
                }
                break;
            }
            let is_full = self.received.room()? == 0;
            if is_full
                && (self.received.is_asleep() || self.received.may_sleep()? || self.received.room()? == 0)
            {
                break;
            }
            let mut written = Ok(0);
            connection.receive(|bytes| {
                written = self.received.write(bytes);
                written.unwrap_or(0)
            });
            has_moved |= written? > 0;
        }
        Ok(was_crowded && has_moved)
    }

    /// Says for what a program's socket is ready, of which the stack says `of_socket`: to read what its stream has, to write where there is room.
    pub fn ready(&self, of_socket: Result<u32, Refusal>) -> Result<u32, Refusal> {
        let of_socket = of_socket?;
        if !self.is_used() {
            return Ok(of_socket);
        }
        // A program that has written nonsense hears so at once.
        let (Ok(waiting), Ok(room)) = (self.received.waiting(), self.to_send.room()) else {
            return Ok(READABLE | WRITABLE);
        };
        let bit = |is_so, bit| if is_so { bit } else { 0 };
        Ok(of_socket | bit(waiting > 0, READABLE) | bit(room > 0, WRITABLE))
    }
}
