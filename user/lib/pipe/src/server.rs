//! A pipe's thread. It wakes ends that sleep, and is itself an end for programs that call it as they would call the console.
//!
//! It waits for nobody but its next message: a client that has to wait is answered later.

use crate::{ENDS, Shared, number};
use alloc::collections::VecDeque;
use core::sync::atomic::Ordering;
use ring::stream::{self, Side};
use rt::api::console::{self, Answer as ConsoleAnswer, Request as ConsoleRequest};
use rt::api::pipe::{Answer, End, Request};
use rt::api::wire::{TEXT_LEN_MAX, take};
use rt::api::{Reply, Status, Text, interface_of, process};
use rt::server;
use rt::stream::Body;
use rt::sys::{self, Message, Uid};

/// Clients that can wait at an end at the same time.
const QUEUE_LEN_MAX: usize = 16;

/// An end as the thread sees it.
#[derive(Default)]
struct Seen {
    /// The last client that was found to be of a program that may use it.
    client: Option<Uid>,
    /// Thread that waits for the other end.
    waiter: Option<Uid>,
    /// The other end has done something, and nobody has heard of it yet.
    is_woken: bool,
}

/// Text that waits for room, and how much of it has been written.
struct Writing {
    client: Uid,
    text: Text,
    at: usize,
}

struct Server<'a> {
    shared: &'a Shared,
    seen: [Seen; ENDS],
    /// The end that writes, if its program calls.
    writer: Option<stream::Writer<'static, Body>>,
    writing: VecDeque<Writing>,
    /// The end that reads, if its program calls.
    reader: Option<stream::Reader<'static, Body>>,
    reading: VecDeque<(Uid, usize)>,
}

/// Serves until the pipe is over.
pub fn serve(shared: &Shared) {
    let mut server = Server {
        shared,
        seen: Default::default(),
        writer: None,
        writing: VecDeque::new(),
        reader: None,
        reading: VecDeque::new(),
    };
    let mut message = server::wait();
    loop {
        let answer = server.answer(&message).unwrap_or_else(|status| Some((message.sender, status.into())));
        if shared.is_over.load(Ordering::Acquire) {
            server.close(End::WRITER);
            server.close(End::READER);
        }
        server.move_bytes();
        if shared.is_over.load(Ordering::Acquire) {
            if let Some((client, reply)) = answer {
                let _ = server::reply(client, &reply);
            }
            return;
        }
        // One call for both.
        message = match answer {
            Some((client, reply)) => server::reply_wait(client, &reply),
            None => server::wait(),
        };
    }
}

/// Whether a thread is of this task.
fn is_own(thread: Uid) -> bool {
    sys::thread_info(thread).is_ok_and(|info| info.task == sys::identity().task)
}

impl Server<'_> {
    /// The answer, and the thread that gets it.
    fn answer(&mut self, message: &Message) -> Result<Option<(Uid, Reply)>, Status> {
        if interface_of(message) == console::NUMBER {
            return self.answer_caller(message);
        }
        let client = message.sender;
        match Request::read(message)? {
            Request::Attach { which: end } => {
                self.check(client, end)?;
                if !self.shared.take(end) {
                    return Err(Status::Taken);
                }
                Ok(Some((client, Answer::Attach(self.shared.region.fpage()).into())))
            }
            Request::Wait { which: end } => {
                self.check(client, end)?;
                let seen = &mut self.seen[number(end)];
                if core::mem::take(&mut seen.is_woken) {
                    return Ok(Some((client, Answer::Wait.into())));
                }
                if let Some(former) = seen.waiter.replace(client).filter(|former| *former != client) {
                    let _ = server::reply(former, &Answer::Wait.into());
                }
                Ok(None)
            }
            Request::Wake { which: end } => {
                self.check(client, other(end))?;
                Ok(self.waiter(end).map(|waiter| (waiter, Answer::Wait.into())))
            }
            Request::Close { which: end } => {
                if !is_own(client) {
                    return Err(Status::Denied);
                }
                self.close(end);
                Ok(Some((client, Answer::Close.into())))
            }
        }
    }

    /// Refuses whoever is of no program that may use an end.
    fn check(&mut self, client: Uid, end: End) -> Result<(), Status> {
        let known = &mut self.seen[number(end)].client;
        if *known == Some(client) {
            return Ok(());
        }
        let is_known = is_own(client)
            || process::task_of(rt::home(), client)
                .is_ok_and(|task| self.shared.programs[number(end)].lock().contains(&task));
        if !is_known {
            return Err(Status::Denied);
        }
        *known = Some(client);
        Ok(())
    }

    /// Tells an end that the other one has done something.
    fn wake(&mut self, end: End) {
        if let Some(waiter) = self.waiter(end) {
            // An end that does not wait any more will look before it sleeps again.
            let _ = server::reply(waiter, &Answer::Wait.into());
        }
    }

    /// The thread that waits at an end and is to be told. If none does, the next one is answered at once.
    fn waiter(&mut self, end: End) -> Option<Uid> {
        let seen = &mut self.seen[number(end)];
        let waiter = seen.waiter.take();
        seen.is_woken = waiter.is_none();
        waiter
    }

    fn close(&mut self, end: End) {
        stream::close(self.shared.region.words(), side(end));
        self.wake(other(end));
    }

    /// Requests of programs that call as they would call the console.
    fn answer_caller(&mut self, message: &Message) -> Result<Option<(Uid, Reply)>, Status> {
        let client = message.sender;
        match ConsoleRequest::read(message)? {
            ConsoleRequest::Write { text, .. } => {
                self.check(client, End::WRITER)?;
                if self.writer.is_none() {
                    if !self.shared.take(End::WRITER) {
                        return Err(Status::Taken);
                    }
                    self.writer =
                        stream::Writer::new(self.shared.region.words(), Body::of(self.shared.region));
                }
                self.writing.retain(|writing| writing.client != client);
                if self.writing.len() == QUEUE_LEN_MAX {
                    return Err(Status::Busy);
                }
                self.writing.push_back(Writing { client, text, at: 0 });
                Ok(None)
            }
            ConsoleRequest::Read { len_max: 0 } => Err(Status::BadRequest),
            ConsoleRequest::Read { len_max } => {
                self.check(client, End::READER)?;
                if self.reader.is_none() {
                    if !self.shared.take(End::READER) {
                        return Err(Status::Taken);
                    }
                    self.reader =
                        stream::Reader::new(self.shared.region.words(), Body::of(self.shared.region));
                }
                self.reading.retain(|(reader, _)| *reader != client);
                if self.reading.len() == QUEUE_LEN_MAX {
                    return Err(Status::Busy);
                }
                self.reading.push_back((client, TEXT_LEN_MAX.min(len_max as usize)));
                Ok(None)
            }
            ConsoleRequest::Drain => {
                self.check(client, End::WRITER)?;
                Ok(Some((client, ConsoleAnswer::Drain.into())))
            }
            // Nobody types here.
            ConsoleRequest::Watch => Err(Status::Unsupported),
        }
    }

    /// Moves all bytes that can be moved for programs that call.
    fn move_bytes(&mut self) {
        while self.write_some() | self.read_some() {}
    }

    /// Writes for the first who waits. False if nothing changed.
    fn write_some(&mut self) -> bool {
        let (Some(side), Some(first)) = (&mut self.writer, self.writing.front_mut()) else { return false };
        let client = first.client;
        let written = if side.is_over() { None } else { side.write(&first.text[first.at..]).ok() };
        let Some(count) = written else {
            self.writing.pop_front();
            let _ = server::reply(client, &Status::Closed.into());
            return true;
        };
        first.at += count;
        let (is_done, wakes) = (first.at == first.text.len(), side.wakes());
        // Memory that makes no sense is found by the next who writes.
        let sleeps = !is_done && count == 0 && side.may_sleep().unwrap_or(false);
        if is_done {
            self.writing.pop_front();
            let _ = server::reply(client, &ConsoleAnswer::Write.into());
        }
        if wakes {
            self.wake(End::READER);
        }
        !sleeps
    }

    /// Reads for the first who waits. False if nothing changed.
    fn read_some(&mut self) -> bool {
        let (Some(side), Some(&(client, len_max))) = (&mut self.reader, self.reading.front()) else {
            return false;
        };
        let mut bytes = [0; TEXT_LEN_MAX];
        // Memory that makes no sense is the end.
        let read = side.read(&mut bytes[..len_max]);
        let is_over = side.is_over().unwrap_or(true);
        let wakes = side.wakes().unwrap_or(false);
        let count = read.unwrap_or(0);
        let sleeps = count == 0 && !is_over && side.may_sleep().unwrap_or(false);
        if count > 0 || is_over {
            self.reading.pop_front();
            let (text, _) = take(&bytes[..count]);
            let _ = server::reply(client, &ConsoleAnswer::Read(text).into());
        }
        if wakes {
            self.wake(End::WRITER);
        }
        !sleeps
    }
}

const fn other(end: End) -> End {
    match end {
        End::WRITER => End::READER,
        End::READER => End::WRITER,
    }
}

const fn side(end: End) -> Side {
    match end {
        End::WRITER => Side::Writer,
        End::READER => Side::Reader,
    }
}
