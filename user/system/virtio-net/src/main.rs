//! The driver of virtio network cards: moves frames between the first card and two rings in memory of its client, under the name `link`.
//!
//! One thread does everything. It waits for three things at once: the card's interrupt, a client's kick, and other requests. What clients write into the
//! rings is checked by the library `ring`, what the device says by the library `virtio`. A client that lies loses its rings; a device that lies
//! ends the driver. On a machine without a card the driver waits, and says so to everybody who asks.
//!
//! A client has a lease, an object without methods. When it ends, the kernel says so to a thread of the pool, which leaves a note.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use net::link::{self, Answer, Request};
use net::ring::{self, Consumer, PACKET_MAX, Producer};
use rt::admission::Admission;
use rt::api::{self, Failure, Name, Reply, Status, names};
use rt::door::{self, Door, Object};
use rt::region::Region;
use rt::sys::{Fpage, Kind, Message, Rights, Uid};
use rt::{println, server, time};
use virtio::net::FRAME_MAX;
use virtio::{Broken, Card};

rt::entry!(main);

static CLIENTS: Admission = Admission::new();

/// How often a card is claimed whose last driver has just ended, and how long to wait before the next time.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Frames that are moved each way before somebody else has a turn.
const BURST: usize = 32;

/// Interrupts in a row with nothing to do, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 1000;

fn main() -> i32 {
    if rt::environment::variable("LOG").is_none() {
        // The library tells of each device that it has found.
        rt::log::set_max_level(rt::log::LevelFilter::Warn);
    }
    let card = match claim() {
        Ok(card) => card,
        Err(failure) => {
            println!("virtio-net: {failure}");
            return 1;
        }
    };
    let registered =
        Name::new(link::NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    let (Ok(()), Some(spare)) = (registered, link::region()) else { return 1 };
    let mut driver = Driver { card, client: None, spare, packet: [0; PACKET_MAX], idle: 0 };
    loop {
        driver.turn();
    }
}

/// The card, if there is one.
fn claim() -> api::Result<Option<Card>> {
    let mut tries = 0;
    loop {
        match virtio::card() {
            Ok(card) => return Ok(Some(card)),
            Err(Failure::Refused(Status::NotFound)) => return Ok(None),
            Err(Failure::Refused(Status::Taken)) if tries < TRIES => time::sleep(PAUSE),
            Err(failure) => return Err(failure),
        }
        tries += 1;
    }
}

/// Proof that a client is there: it goes with it.
struct Lease {
    is_over: Arc<AtomicBool>,
}

impl Object for Lease {
    fn call(&self, _: u32, _: [u64; 8]) -> (u32, [u64; 8]) {
        (Status::BadRequest as u32, [0; 8])
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// The client that has the rings.
struct Client {
    /// Thread that gave them, and may wait for frames.
    owner: Uid,
    region: Region,
    received: Producer<'static>,
    to_send: Consumer<'static>,
    /// Whether it waits.
    waits: bool,
    /// Set when its lease is over.
    is_over: Arc<AtomicBool>,
}

struct Driver {
    card: Option<Card>,
    client: Option<Client>,
    /// Where the next client's rings arrive.
    spare: Region,
    packet: [u8; PACKET_MAX],
    /// Interrupts in a row with nothing to do.
    idle: u32,
}

/// A broken device may write to memory until the bus server has silenced it. That happens when this task ends; then `root` starts it again.
fn broken(_: Broken) -> ! {
    println!("virtio-net: the card does not do what it should");
    rt::exit(1)
}

impl Driver {
    /// Moves frames, waits for a message, and answers it.
    fn turn(&mut self) {
        let moved = self.move_frames();
        let message = link::next(self.spare.fpage());
        let Some(message) = message else { return };
        match message.kind {
            Kind::Interrupt => {
                if let Some(card) = &mut self.card {
                    card.quiet();
                }
                self.idle = if moved { 0 } else { self.idle + 1 };
                if self.idle > INTERRUPTS_MAX {
                    broken(Broken);
                }
            }
            _ => {
                let mut lease = None;
                let reply = self.answer(&message, &mut lease).unwrap_or_else(|status| Some(status.into()));
                if let Some(reply) = reply {
                    let _ = server::reply(message.sender, &reply);
                }
                // Pages that came with it and were not wanted go.
                if message.item().is_some() {
                    self.spare.clear();
                }
            }
        }
    }

    /// Moves frames both ways, and answers who waits for some. Says whether there were any.
    fn move_frames(&mut self) -> bool {
        let Some(card) = &mut self.card else { return false };
        self.client.take_if(|client| client.is_over.load(Ordering::Acquire));
        let moved = move_frames(card, self.client.as_mut(), &mut self.packet);
        let moved = moved.unwrap_or_else(|ring::Broken| {
            println!("virtio-net: the client's rings make no sense");
            if let Some(client) = self.client.take() {
                client.region.clear();
            }
            true
        });
        self.client.as_mut().map(Client::answer_waiter);
        moved
    }

    fn answer(&mut self, message: &Message, lease: &mut Option<Door>) -> Result<Option<Reply>, Status> {
        CLIENTS.admit(message.sender)?;
        let request = Request::read(message)?;
        let card = self.card.as_ref().ok_or(Status::NotFound)?;
        match request {
            Request::Info => Ok(Some(Answer::Info(card.address(), FRAME_MAX as u32).into())),
            Request::Attach { rings } => {
                let door = self.attach(message.sender, rings)?;
                let (item, _) = door.item(Rights::R.or(Rights::GRANT));
                let reply = Answer::Attach(item).into();
                // Sent here, since what is sent later has to be there still.
                let _ = server::reply(message.sender, &reply);
                *lease = Some(door);
                Ok(None)
            }
            // Frames are moved before the next message.
            Request::Kick => Ok(None),
            Request::Wait => {
                let client = self.client.as_mut().filter(|client| client.owner == message.sender);
                client.ok_or(Status::Denied)?.waits = true;
                Ok(None)
            }
        }
    }

    /// Takes a client's rings.
    fn attach(&mut self, owner: Uid, arrived: Fpage) -> Result<Door, Status> {
        if self.client.as_ref().is_some_and(|client| !client.is_over.load(Ordering::Acquire)) {
            return Err(Status::Taken);
        }
        if !self.spare.is(arrived) {
            return Err(Status::BadRequest);
        }
        let spare = match self.client.take() {
            Some(client) => client.region,
            None => link::region().ok_or(Status::Exhausted)?,
        };
        spare.clear();
        let region = core::mem::replace(&mut self.spare, spare);
        let [received, to_send] = link::rings(region);
        let (Some(received), Some(to_send)) = (Producer::new(received), Consumer::new(to_send)) else {
            return Err(Status::BadRequest);
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let door = door::export(Lease { is_over: is_over.clone() }).map_err(|_| Status::Exhausted)?;
        self.client = Some(Client { owner, region, received, to_send, waits: false, is_over });
        Ok(door)
    }
}

impl Client {
    /// Answers who waits, if there is something.
    fn answer_waiter(&mut self) {
        // Numbers that make no sense are found by the next who moves frames.
        if self.waits && self.received.waiting().is_ok_and(|waiting| waiting > 0) {
            self.waits = false;
            let _ = server::reply(self.owner, &Answer::Wait.into());
        }
    }
}

/// Moves frames both ways, as long as there is room, and a burst at most. Without a client those that have come are dropped.
fn move_frames(
    card: &mut Card,
    mut client: Option<&mut Client>,
    packet: &mut [u8; PACKET_MAX],
) -> Result<bool, ring::Broken> {
    let mut moved = false;
    let mut outcome = Ok(true);
    for _ in 0..BURST {
        let take = |frame: &[u8]| {
            if let Some(client) = client.as_deref_mut() {
                // A client that is slow loses frames, as on any network.
                outcome = client.received.put(frame);
            }
        };
        if !card.receive(take).unwrap_or_else(|why| broken(why)) {
            break;
        }
        moved = true;
        outcome?;
    }
    card.reap().unwrap_or_else(|why| broken(why));
    let Some(client) = client else { return Ok(moved) };
    for _ in 0..BURST {
        // A card that has no buffer left interrupts when it has one again.
        if !card.can_send() {
            return Ok(moved);
        }
        match client.to_send.take(packet)? {
            Some(len) => card.send(&packet[..len]).unwrap_or_else(|why| broken(why)),
            None if client.to_send.may_sleep()? => return Ok(moved),
            None => {}
        }
        moved = true;
    }
    Ok(moved)
}
