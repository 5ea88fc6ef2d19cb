//! The server of a console, whatever its device is: buffers and queues between clients and a [`Device`].
//!
//! No client can hold it up, because it only ever answers those who wait. What cannot be done at once stands in a queue: writers while the output buffer is
//! full, readers while there is no input.
//!
//! Output is taken in the order of the requests, except that a client in the middle of a line goes on first, so that
//! lines of several programs do not mix.
//!
//! Input is not read ahead: it stays in the device, and with the sender on the other side of the line, until a client
//! wants it. So a sender that is faster than the programs has to wait, and what nobody has read yet outlives a crash
//! of this server. Only while somebody watches for Ctrl-C is the line read, and what else comes kept.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use rt::admission::Admission;
use rt::api::console::{Answer, INTERRUPT_KEY, Request};
use rt::api::wire::{TEXT_LEN_MAX, take};
use rt::api::{Status, Text};
use rt::sys::{self, Kind, Message, Timeout, Uid};
use rt::{server, time};

const OUTPUT_LEN_MAX: usize = 4096;

/// Input that is kept while somebody watches for a key.
const INPUT_LEN_MAX: usize = 256;

/// Clients of one kind that can wait at the same time.
const QUEUE_LEN_MAX: usize = 128;

/// How long the rest of a line may take before others are served.
const LINE_PATIENCE_NS: u64 = 50_000_000;

/// With output waiting, the device is looked at this often even if it does not interrupt.
const POLL_US: u64 = 20_000;

/// How long to wait until it is asked again whether a thread may be a client.
const ADMISSION_US: u64 = 500;

/// A line on which bytes come and go. Its interrupt comes to the server's thread.
pub trait Device {
    /// Bytes that it takes at once, when it can send.
    const SEND_MAX: usize;

    /// A byte, if one is there.
    fn receive(&mut self) -> Option<u8>;
    /// Whether it takes bytes now.
    fn can_send(&self) -> bool;
    /// Sends bytes, [`Device::SEND_MAX`] at most. It is asked only when it can.
    fn send(&mut self, bytes: &[u8]);
    /// Whether something that it took is still here, so that the line is not drained.
    fn is_sending(&self) -> bool {
        false
    }
    /// Says which events shall interrupt: that input comes, of which so many bytes are wanted, and that it can send again.
    fn enable(&mut self, input: usize, output: bool);
    /// Whether it wants to be looked at once more before the server sleeps.
    fn is_pending(&mut self) -> bool;

    /// Shows elsewhere what has been taken to be sent.
    fn show(&mut self, _: &[u8]) {}
    /// Brings what is shown elsewhere up to date.
    fn draw(&mut self) {}
}

/// Those who ask, and a clock.
pub trait Clients {
    /// Answers a client, and says whether it still waited for that.
    fn answer(&mut self, client: Uid, answer: Result<Answer, Status>) -> bool;
    /// Whether a thread may be a client; `None` if that is not known yet.
    fn admit(&mut self, thread: Uid) -> Option<Result<(), Status>>;
    /// Time since some moment, in nanoseconds.
    fn now_ns(&self) -> u64;
}

/// Threads of this machine.
#[derive(Default, Debug)]
pub struct Threads(Admission);

impl Clients for Threads {
    fn answer(&mut self, client: Uid, answer: Result<Answer, Status>) -> bool {
        let reply = answer.map_or_else(Into::into, Into::into);
        server::reply(client, &reply).is_ok()
    }

    fn admit(&mut self, thread: Uid) -> Option<Result<(), Status>> {
        self.0.admit_at_once(thread)
    }

    fn now_ns(&self) -> u64 {
        time::now_ns()
    }
}

/// Serves a device for ever. `interrupted` hears of each interrupt before the device is looked at.
pub fn serve<D: Device>(device: D, mut interrupted: impl FnMut(&mut D)) -> ! {
    let mut terminal = Terminal::new(device, Threads::default());
    loop {
        let timeout = terminal.work();
        let Ok(message) = sys::receive(Uid::ANY, timeout) else { continue };
        match message.kind {
            Kind::Request => terminal.accept(&message),
            Kind::Interrupt => interrupted(&mut terminal.device),
            _ => {}
        }
    }
}

/// The state of the server.
#[derive(Debug)]
pub struct Terminal<D, C> {
    device: D,
    clients: C,
    /// Requests of threads of which it is not known yet whether they may be clients.
    unknown: VecDeque<Message>,
    output: VecDeque<u8>,
    /// Read while somebody watched, or for a client that went away before it got it.
    input: VecDeque<u8>,
    writers: VecDeque<Writer>,
    readers: VecDeque<Reader>,
    drainers: Vec<Uid>,
    /// Watcher for Ctrl-C: the last who asked.
    watcher: Option<Uid>,
    /// Thread in the middle of a line, and until when that counts.
    line: Option<(Uid, u64)>,
}

#[derive(Debug)]
struct Writer {
    client: Uid,
    text: Text,
    more: bool,
}

#[derive(Debug)]
struct Reader {
    client: Uid,
    len_max: usize,
}

impl<D: Device, C: Clients> Terminal<D, C> {
    /// Empty buffers.
    pub fn new(device: D, clients: C) -> Terminal<D, C> {
        Terminal {
            device,
            clients,
            unknown: VecDeque::new(),
            output: VecDeque::with_capacity(OUTPUT_LEN_MAX),
            input: VecDeque::new(),
            writers: VecDeque::new(),
            readers: VecDeque::new(),
            drainers: Vec::new(),
            watcher: None,
            line: None,
        }
    }

    /// Takes a request. It is answered by [`Terminal::work`], or at once if it is refused.
    pub fn accept(&mut self, message: &Message) {
        self.unknown.retain(|unknown| unknown.sender != message.sender);
        self.admit(message);
    }

    /// Takes a request of who may be a client, and keeps it for later while that is not known.
    fn admit(&mut self, message: &Message) {
        let client = message.sender;
        let refusal = match self.clients.admit(client) {
            Some(Ok(())) => return self.ask(client, Request::read(message).map_err(Status::from)),
            Some(Err(status)) => status,
            None if self.unknown.len() < QUEUE_LEN_MAX => return self.unknown.push_back(*message),
            None => Status::Busy,
        };
        // A client that does not wait any more does not learn it.
        let _ = self.clients.answer(client, Err(refusal));
    }

    fn admit_unknown(&mut self) {
        for message in core::mem::take(&mut self.unknown) {
            self.admit(&message);
        }
    }

    /// Takes a request of a client, or what is none.
    fn ask(&mut self, client: Uid, request: Result<Request, Status>) {
        // A client that asks again has given up its earlier request.
        self.writers.retain(|writer| writer.client != client);
        self.readers.retain(|reader| reader.client != client);
        self.drainers.retain(|drainer| *drainer != client);
        self.watcher = self.watcher.filter(|watcher| *watcher != client);
        if let Err(status) = request.and_then(|request| self.enqueue(client, request)) {
            // A client that does not wait any more does not learn it.
            let _ = self.clients.answer(client, Err(status));
        }
    }

    fn enqueue(&mut self, client: Uid, request: Request) -> Result<(), Status> {
        let fits = |len: usize| if len < QUEUE_LEN_MAX { Ok(()) } else { Err(Status::Busy) };
        match request {
            Request::Write { text, more } => {
                fits(self.writers.len())?;
                self.writers.push_back(Writer { client, text, more });
            }
            Request::Read { len_max: 0 } => return Err(Status::BadRequest),
            Request::Read { len_max } => {
                let len_max = TEXT_LEN_MAX.min(len_max as usize);
                fits(self.readers.len())?;
                self.readers.push_back(Reader { client, len_max });
            }
            Request::Drain => {
                fits(self.drainers.len())?;
                self.drainers.push(client);
            }
            Request::Watch => {
                if let Some(former) = self.watcher.replace(client) {
                    let _ = self.clients.answer(former, Err(Status::Busy));
                }
            }
        }
        Ok(())
    }

    /// Does all that can be done; returns how long to wait for the next event.
    pub fn work(&mut self) -> Timeout {
        self.admit_unknown();
        loop {
            self.receive();
            self.answer_readers();
            self.admit_writers();
            self.send();
            self.device.enable(self.wanted(), !self.output.is_empty());
            if !self.device.is_pending() {
                break;
            }
        }
        self.device.draw();
        if self.output.is_empty() && !self.device.is_sending() {
            for drainer in self.drainers.drain(..) {
                let _ = self.clients.answer(drainer, Ok(Answer::Drain));
            }
        }
        if !self.unknown.is_empty() {
            Timeout::from_us(ADMISSION_US)
        } else if self.output.is_empty() && self.writers.is_empty() {
            Timeout::NEVER
        } else {
            Timeout::from_us(POLL_US)
        }
    }

    fn send(&mut self) {
        while !self.output.is_empty() && self.device.can_send() {
            let (first, _) = self.output.as_slices();
            let len = first.len().min(D::SEND_MAX);
            self.device.send(&first[..len]);
            self.output.drain(..len);
        }
    }

    fn admit_writers(&mut self) {
        while self.output.len() + 2 * TEXT_LEN_MAX <= OUTPUT_LEN_MAX
            && let Some(index) = self.next_writer()
            && let Some(Writer { client, text, more }) = self.writers.remove(index)
        {
            for &byte in text.iter() {
                // Terminals want both.
                let bytes: &[u8] = if byte == b'\n' { b"\r\n" } else { core::slice::from_ref(&byte) };
                self.output.extend(bytes);
                self.device.show(bytes);
            }
            self.line = more.then(|| (client, self.clients.now_ns() + LINE_PATIENCE_NS));
            let _ = self.clients.answer(client, Ok(Answer::Write));
        }
    }

    /// The client that is in the middle of a line, else the first.
    fn next_writer(&self) -> Option<usize> {
        if let Some((owner, until)) = self.line
            && self.clients.now_ns() < until
        {
            return self.writers.iter().position(|writer| writer.client == owner);
        }
        (!self.writers.is_empty()).then_some(0)
    }

    /// How much input may be kept just now.
    fn input_len_max(&self) -> usize {
        match (self.watcher, self.readers.front()) {
            (Some(_), _) => INPUT_LEN_MAX,
            (None, Some(reader)) => reader.len_max,
            (None, None) => 0,
        }
    }

    /// How many bytes of input are wanted.
    fn wanted(&self) -> usize {
        self.input_len_max().saturating_sub(self.input.len())
    }

    fn receive(&mut self) {
        while self.wanted() > 0
            && let Some(byte) = self.device.receive()
        {
            if byte != INTERRUPT_KEY || !self.tell_watcher() {
                self.input.push_back(byte);
            }
        }
    }

    /// Answers who waits for the key. False if nobody does any more.
    fn tell_watcher(&mut self) -> bool {
        let watcher = self.watcher.take();
        watcher.is_some_and(|watcher| self.clients.answer(watcher, Ok(Answer::Watch)))
    }

    fn answer_readers(&mut self) {
        while !self.input.is_empty()
            && let Some(Reader { client, len_max }) = self.readers.pop_front()
        {
            let len = len_max.min(self.input.len());
            let (text, _) = take(&self.input.make_contiguous()[..len]);
            let len = text.len();
            // Input that a dead client did not get is the next one's.
            if self.clients.answer(client, Ok(Answer::Read(text))) {
                self.input.drain(..len);
            }
        }
    }
}
