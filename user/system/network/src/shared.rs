//! The stack, and the rings of the card, behind one lock, which nobody holds while he waits for anything else.

use crate::flows::Flows;
use alloc::sync::Arc;
use core::net::SocketAddr;
use net::ring::{Broken, Consumer, PACKET_MAX, Producer};
use net::sockets::Entrance::Client;
use rt::door::Door;
use rt::sync::Mutex;
use rt::sys::{Fpage, Uid};
use rt::{println, time};
use tcpip::leases::Complaint;
use tcpip::{Id, Refusal, Stack};

/// The card, as long as its driver lives.
pub struct Link {
    /// The driver.
    pub driver: Uid,
    /// Frames that have come.
    pub received: Consumer<'static>,
    /// Frames that are to go.
    pub to_send: Producer<'static>,
    /// Keeps all others from the card.
    pub _lease: Door,
}

struct State {
    stack: Stack,
    flows: Flows,
    link: Option<Link>,
    /// It has been found out whether there is a card.
    is_decided: bool,
    packet: [u8; PACKET_MAX],
}

/// State that all threads share.
#[derive(Clone)]
pub struct Shared {
    state: Arc<Mutex<State>>,
    /// The thread that takes turns.
    first: Uid,
}

impl Shared {
    /// A stack without a card.
    pub fn new(stack: Stack, first: Uid) -> Shared {
        let state =
            State { stack, flows: Flows::default(), link: None, is_decided: false, packet: [0; PACKET_MAX] };
        Shared { state: Arc::new(Mutex::new(state)), first }
    }

    /// Whether it is known which addresses there are.
    pub fn is_settled(&self) -> bool {
        let state = self.state.lock();
        state.is_decided && state.stack.is_settled()
    }

    /// Does something with the stack.
    pub fn stack<T>(&self, act: impl FnOnce(&mut Stack) -> T) -> T {
        act(&mut self.state.lock().stack)
    }

    /// Says for what a socket is ready.
    pub fn ready(&self, id: Id) -> Result<u32, Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        flows.ready(id, stack.ready(id))
    }

    /// Gives a connection memory for its bytes.
    pub fn share(&self, id: Id) -> Result<Fpage, Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        flows.share(stack, id)
    }

    /// Begins a connection. One that has memory has been one already.
    pub fn connect(&self, id: Id, from: SocketAddr, to: SocketAddr) -> Result<(), Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        if flows.has(id) { Err(Refusal::Bad) } else { stack.connect_from(id, from, to) }
    }

    /// Writes to a connection.
    pub fn write(&self, id: Id, bytes: &[u8]) -> Result<usize, Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        if flows.is_ending(id) { Err(Refusal::Closed) } else { stack.write(id, bytes) }
    }

    /// Reads from a connection, and says whether the other side may wait for room. Bytes that lie in memory come before those of the socket.
    pub fn read(&self, id: Id, to: &mut [u8]) -> Result<(usize, bool), Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        if flows.holds_received(id) {
            return Err(Refusal::Again);
        }
        let was_crowded = stack.is_crowded(id);
        stack.read(id, to).map(|len| (len, was_crowded))
    }

    /// Nothing more is written to a connection.
    pub fn shutdown(&self, id: Id) -> Result<(), Refusal> {
        let State { stack, flows, .. } = &mut *self.state.lock();
        flows.shutdown(stack, id)
    }

    /// Nobody has a socket any more.
    pub fn close(&self, id: Id) {
        let State { stack, flows, .. } = &mut *self.state.lock();
        flows.close(stack, id, time::now_ns());
    }

    /// There is something to do for the thread that takes turns. False if that is gone, and with it, soon, the whole task.
    #[must_use]
    pub fn poke(&self) -> bool {
        Client { server: self.first }.poke().is_ok()
    }

    /// There is a card, with this address, or there is none any more.
    pub fn set_link(&self, link: Option<(Link, [u8; 6])>) {
        let mut state = self.state.lock();
        let (link, address) = link.unzip();
        let before = core::mem::replace(&mut state.link, link);
        state.stack.set_link(address);
        state.is_decided = true;
        drop(state);
        drop(before);
        let _ = self.poke();
    }

    /// Whether there is a card.
    pub fn has_link(&self) -> bool {
        self.state.lock().link.is_some()
    }

    /// Takes a turn of the stack, and moves frames. Says who is to be told that there are frames to be sent, and in how many microseconds there is
    /// something to do again.
    pub fn turn(&self) -> (Option<Uid>, Option<u64>) {
        let mut state = self.state.lock();
        let mut more = state.receive();
        let mut next_us = state.turn(time::now_ns());
        let wakes = state.send();
        if more.is_err() || wakes.is_err() {
            println!("network: the driver's rings make no sense");
            state.link = None;
            state.stack.set_link(None);
            more = Ok(false);
        }
        if more == Ok(true) {
            next_us = Some(0);
        }
        let driver = state.link.as_ref().map(|link| link.driver);
        (driver.filter(|_| wakes == Ok(true)), next_us)
    }

    /// The driver did not hear that there are frames; it is told again.
    pub fn could_not_kick(&self) {
        if let Some(link) = &self.state.lock().link {
            link.to_send.could_not_wake();
        }
    }
}

impl State {
    /// Moves bytes of connections, and takes a turn of the stack in between. Says in how many microseconds there is something to do again.
    fn turn(&mut self, now_ns: u64) -> Option<u64> {
        let State { stack, flows, .. } = self;
        flows.turn(stack, now_ns);
        let next_us = stack.turn(now_ns / 1000);
        if flows.turn(stack, now_ns) {
            return Some(0);
        }
        let flows_us = flows.next_ns().map(|until_ns| until_ns.saturating_sub(now_ns).div_ceil(1000));
        [next_us, flows_us].into_iter().flatten().min()
    }

    /// Gives the stack what has come, as far as it has room. Says whether there is more.
    fn receive(&mut self) -> Result<bool, Broken> {
        let State { stack, link: Some(link), packet, .. } = self else { return Ok(false) };
        let mut has_more = true;
        while has_more && stack.has_room() {
            match link.received.take(packet)? {
                Some(len) => stack.push(&packet[..len]),
                None => has_more = false,
            }
        }
        if let Some(Complaint { server, fault }) = stack.complaint() {
            println!("network: the server at {server} leases no address: {fault}");
        }
        while let Some(conflict) = stack.conflict() {
            println!("network: {conflict}");
        }
        Ok(has_more)
    }

    /// Sends what the stack has for the card, as far as there is room. Says whether the driver sleeps.
    fn send(&mut self) -> Result<bool, Broken> {
        let State { stack, link: Some(link), .. } = self else { return Ok(false) };
        while link.to_send.has_room()? {
            match stack.pop() {
                Some(frame) => link.to_send.put(&frame)?,
                None => break,
            };
        }
        Ok(link.to_send.waiting()? > 0 && link.to_send.wakes())
    }
}
