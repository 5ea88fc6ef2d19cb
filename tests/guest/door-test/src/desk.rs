//! A desk: a task that makes objects, keeps references and says how it is, asked by ipc. And its clients' side.

use crate::objects::{self, Forwarder, Gate, Sum};
use alloc::vec::Vec;
use rt::api::{self, Name, names, process};
use rt::door::{self, Door, Revoker, Room};
use sys::{Error, Fpage, Ipc, Message, Rights, TaskId, Timeout, Uid};

/// Most servers of a desk.
pub const SERVERS_MAX: u64 = 4;

/// What a desk is asked for: a request's label.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Request {
    /// A new [`Sum`].
    Sum,
    /// A new [`Gate`].
    Gate,
    /// A new [`Sum`] that [`Request::Revoke`] takes back.
    Revocable,
    /// A new [`Forwarder`] to the object whose identifier comes with this.
    Forwarder,
    /// Keep this identifier.
    Keep,
    /// Give back what was kept last.
    Pass,
    /// Add w0 to what was kept last.
    Add,
    /// Drop what was kept.
    Forget,
    /// Take back what can be.
    Revoke,
    /// Open the gate (w0 is 1) or shut it.
    SetGate,
    /// How is it?
    Status,
}

const REQUESTS: [Request; 11] = [
    Request::Sum,
    Request::Gate,
    Request::Revocable,
    Request::Forwarder,
    Request::Keep,
    Request::Pass,
    Request::Add,
    Request::Forget,
    Request::Revoke,
    Request::SetGate,
    Request::Status,
];

/// How a desk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Objects that there are.
    pub alive: u64,
    /// Objects that were dropped.
    pub dropped: u64,
    /// Server threads.
    pub servers: u64,
    /// [Numbers](numbers) for identifiers in use.
    pub numbers: u64,
    /// Calls that wait at the gate.
    pub inside: u64,
    /// Kernel memory that the task uses, in frames.
    pub frames: u64,
}

/// Numbers for identifiers that this task uses, but for that of each server's window.
pub fn numbers() -> u64 {
    u64::from(door::numbers_in_use()).wrapping_sub(door::servers() as u64)
}

fn status() -> [u64; 6] {
    let (alive, dropped) = objects::count();
    let frames = sys::task_info(TaskId::NIL).map_or(0, |info| info.used);
    [alive, dropped, door::servers() as u64, numbers(), objects::inside(), frames]
}

/// An answer: w0 … w5, and a reference that moves to who asked.
type Answer = ([u64; 6], Option<Door>);

#[derive(Default)]
struct Desk {
    kept: Vec<Door>,
    revokers: Vec<Revoker>,
}

impl Desk {
    fn answer(&mut self, request: Request, w0: u64, arrived: Option<Door>) -> sys::Result<Answer> {
        let gives = |door| Ok(([0; 6], Some(door)));
        match request {
            Request::Sum => return gives(door::export(Sum::new())?),
            Request::Gate => return gives(door::export(Gate::new())?),
            Request::Revocable => {
                let (door, revoker) = objects::revocable()?;
                self.revokers.push(revoker);
                return gives(door);
            }
            Request::Forwarder => {
                return gives(door::export(Forwarder::new(arrived.ok_or(Error::BadArgument)?))?);
            }
            Request::Pass => return gives(self.kept.pop().ok_or(Error::NoSuch)?),
            Request::Keep => self.kept.extend(arrived),
            Request::Add => {
                let (_, [sum, ..]) = self.kept.last().ok_or(Error::NoSuch)?.call(objects::ADD, words(w0))?;
                return Ok(([0, sum, 0, 0, 0, 0], None));
            }
            Request::Forget => self.kept.clear(),
            Request::Revoke => self.revokers.drain(..).for_each(|revoker| revoker.revoke()),
            Request::SetGate => objects::set_gate(w0 == 1),
            Request::Status => return Ok((status(), None)),
        }
        Ok(([0; 6], None))
    }
}

/// Words with this first one.
pub fn words(w0: u64) -> [u64; 8] {
    [w0, 0, 0, 0, 0, 0, 0, 0]
}

/// Is a desk of this name, for good.
pub fn run(name: &str) -> i32 {
    let Some(name) = Name::new(name) else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    door::set_limit(SERVERS_MAX as usize);
    let mut desk = Desk::default();
    let mut answer: (Uid, Answer) = (Uid::NIL, ([0; 6], None));
    loop {
        let Ok(room) = Room::new() else { return 1 };
        let (to, ([w0, w1, w2, w3, w4, w5], door)) = &answer;
        let ipc = Ipc {
            to: *to,
            words: [*w0, *w1, *w2, *w3, *w4, *w5, 0, 0],
            item: door.as_ref().map(|door| door.item(Rights::RW.or(Rights::GRANT))),
            from: Uid::ANY,
            window: room.window(),
            send_timeout: Timeout::ZERO,
            ..Ipc::NONE
        };
        let message = ipc.run();
        // The reference has been moved, or nobody waits for it.
        answer = (Uid::NIL, ([0; 6], None));
        let Ok(Some(message)) = message else { continue };
        let arrived = message.item().map(|_| room.into_door());
        let request = REQUESTS.get(message.label as usize);
        let said = match request {
            Some(&request) => desk.answer(request, message.words[0], arrived),
            None => Err(Error::BadArgument),
        };
        answer = (message.sender, said.unwrap_or_else(|error| ([error as u64, 0, 0, 0, 0, 0], None)));
    }
}

/// How often a client looks whether a desk is there, and how long it waits in between.
const LOOKS: u32 = 1000;
const PAUSE_US: u64 = 10_000;

/// A desk in a task of its own.
pub struct Remote {
    task: TaskId,
    server: Uid,
}

impl Remote {
    /// Starts one.
    pub fn start(name: &str) -> api::Result<Remote> {
        let program = Name::new("door-test").ok_or(api::Failure::Garbled)?;
        let task = process::start(rt::home(), &program, name)?;
        let name = Name::new(name).ok_or(api::Failure::Garbled)?;
        let mut looks = 0;
        loop {
            match names::resolve(rt::home(), &name) {
                Ok(server) => return Ok(Remote { task, server }),
                Err(failure) if looks == LOOKS => return Err(failure),
                Err(_) => looks += 1,
            }
            let _ = sys::sleep_us(PAUSE_US);
        }
    }

    fn send(
        &self,
        request: Request,
        w0: u64,
        item: Option<(Fpage, u64)>,
        window: Fpage,
    ) -> sys::Result<Message> {
        let label = request as u32;
        let ipc =
            Ipc { to: self.server, label, words: words(w0), item, from: self.server, window, ..Ipc::NONE };
        ipc.run()?.ok_or(Error::BadArgument)
    }

    /// Asks for something without a reference; w1 of the answer.
    pub fn ask(&self, request: Request, w0: u64) -> sys::Result<u64> {
        let message = self.send(request, w0, None, Fpage::NIL)?;
        success(&message)?;
        Ok(message.words[1])
    }

    /// Asks for a reference.
    pub fn get(&self, request: Request) -> sys::Result<Door> {
        let room = Room::new()?;
        let message = self.send(request, 0, None, room.window())?;
        success(&message)?;
        Ok(room.into_door())
    }

    /// Hands a reference on, and gets the one to a forwarder.
    pub fn forwarder(&self, door: &Door) -> sys::Result<Door> {
        let room = Room::new()?;
        let message = self.send(Request::Forwarder, 0, Some(door.item(Rights::RW)), room.window())?;
        success(&message)?;
        Ok(room.into_door())
    }

    /// Hands a reference on, to be kept.
    pub fn keep(&self, door: &Door, rights: Rights) -> sys::Result<()> {
        success(&self.send(Request::Keep, 0, Some(door.item(rights)), Fpage::NIL)?)
    }

    /// How it is.
    pub fn status(&self) -> sys::Result<Status> {
        let [alive, dropped, servers, numbers, inside, frames, ..] =
            self.send(Request::Status, 0, None, Fpage::NIL)?.words;
        Ok(Status { alive, dropped, servers, numbers, inside, frames })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = process::kill(rt::home(), self.task);
        // The name is free when it has ended.
        let _ = process::wait(rt::home(), self.task, u64::MAX);
    }
}

fn success(message: &Message) -> sys::Result<()> {
    match Error::from_code(message.words[0] as u32) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
