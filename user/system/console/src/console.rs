//! Buffers and queues between clients and device.
//!
//! Output is taken in the order of the requests, except that a client in the middle of a line goes on first, so that
//! lines of several programs do not mix.
//!
//! Input is not read ahead: it stays in the device, and with the sender on the other side of the line, until a client
//! wants it. So a sender that is faster than the programs has to wait, and what nobody has read yet outlives a crash
//! of this server. Only while somebody watches for Ctrl-C is the line read, and what else comes kept.

use crate::screen::Screen;
use crate::uart::Uart;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use rt::api::console::{Answer, INTERRUPT_KEY, Request};
use rt::api::wire::{TEXT_LEN_MAX, take};
use rt::api::{Status, Text};
use rt::sys::{Message, Timeout, Uid};
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

/// Note for a person at the screen: there is no driver for its keyboard.
const ON_SCREEN: &str = "The console is the first serial port (COM1, 115200 baud, 8N1): type there.\r\n\
                         This screen shows what it prints.\r\n\r\n";
const ON_SCREEN_ALONE: &str = "The console would be the first serial port, which this machine does not have:\r\n\
                               nothing can be typed. This screen shows what is printed.\r\n\r\n";

/// The state of the server.
pub struct Console {
    uart: Uart,
    screen: Option<Screen>,
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

impl Console {
    /// Empty buffers. A screen says at its top where what is shown there comes from.
    pub fn new(uart: Uart, mut screen: Option<Screen>) -> Console {
        let about = if uart.is_there() { ON_SCREEN } else { ON_SCREEN_ALONE };
        screen.as_mut().into_iter().for_each(|screen| screen.write(about.as_bytes()));
        Console {
            uart,
            screen,
            output: VecDeque::with_capacity(OUTPUT_LEN_MAX),
            input: VecDeque::new(),
            writers: VecDeque::new(),
            readers: VecDeque::new(),
            drainers: Vec::new(),
            watcher: None,
            line: None,
        }
    }

    /// Takes a request. It is answered by [`Console::work`], or at once if it is refused.
    pub fn accept(&mut self, message: &Message) {
        let client = message.sender;
        // A client that asks again has given up its earlier request.
        self.writers.retain(|writer| writer.client != client);
        self.readers.retain(|reader| reader.client != client);
        self.drainers.retain(|drainer| *drainer != client);
        self.watcher = self.watcher.filter(|watcher| *watcher != client);
        if let Err(status) = self.enqueue(client, message) {
            // A client that does not wait any more does not learn it.
            let _ = server::reply(client, &status.into());
        }
    }

    fn enqueue(&mut self, client: Uid, message: &Message) -> Result<(), Status> {
        let fits = |len: usize| if len < QUEUE_LEN_MAX { Ok(()) } else { Err(Status::Busy) };
        match Request::read(message)? {
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
                    let _ = server::reply(former, &Status::Busy.into());
                }
            }
        }
        Ok(())
    }

    /// Does all that can be done; returns how long to wait for the next event.
    pub fn work(&mut self) -> Timeout {
        loop {
            self.receive();
            self.answer_readers();
            self.admit_writers();
            self.send();
            self.uart.enable(self.wants_input(), !self.output.is_empty());
            if !self.uart.is_pending() {
                break;
            }
        }
        self.screen.as_mut().into_iter().for_each(Screen::draw);
        if self.output.is_empty() {
            for drainer in self.drainers.drain(..) {
                let _ = server::reply(drainer, &Answer::Drain.into());
            }
        }
        if self.output.is_empty() && self.writers.is_empty() {
            Timeout::NEVER
        } else {
            Timeout::from_us(POLL_US)
        }
    }

    fn send(&mut self) {
        while !self.output.is_empty() && self.uart.can_send() {
            for byte in self.output.drain(..self.output.len().min(Uart::FIFO_LEN)) {
                self.uart.send(byte);
            }
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
                self.screen.as_mut().into_iter().for_each(|screen| screen.write(bytes));
            }
            self.line = more.then(|| (client, time::now_ns() + LINE_PATIENCE_NS));
            let _ = server::reply(client, &Answer::Write.into());
        }
    }

    /// The client that is in the middle of a line, else the first.
    fn next_writer(&self) -> Option<usize> {
        if let Some((owner, until)) = self.line
            && time::now_ns() < until
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

    fn wants_input(&self) -> bool {
        self.input.len() < self.input_len_max()
    }

    fn receive(&mut self) {
        while self.wants_input()
            && let Some(byte) = self.uart.receive()
        {
            if byte != INTERRUPT_KEY || !self.tell_watcher() {
                self.input.push_back(byte);
            }
        }
    }

    /// Answers who waits for the key. False if nobody does any more.
    fn tell_watcher(&mut self) -> bool {
        self.watcher.take().is_some_and(|watcher| server::reply(watcher, &Answer::Watch.into()).is_ok())
    }

    fn answer_readers(&mut self) {
        while !self.input.is_empty()
            && let Some(Reader { client, len_max }) = self.readers.pop_front()
        {
            let len = len_max.min(self.input.len());
            let (text, _) = take(&self.input.make_contiguous()[..len]);
            // Input that a dead client did not get is the next one's.
            if server::reply(client, &Answer::Read(text).into()).is_ok() {
                self.input.drain(..text.len());
            }
        }
    }
}
