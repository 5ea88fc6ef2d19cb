//! One client for three servers: an object of its own task, which it calls without a message; one behind a door, or behind the door of
//! another that stands in between; and a thread, by ipc. The client is generic over the interface's trait and knows nothing of that.

use crate::{purse_door, purse_ipc, spawn};
use alloc::boxed::Box;
use alloc::vec::Vec;
use purse_door::Bank::Overdrawn;
use purse_door::Bank::Purse::{Client, DrawError, Object, Server};
use rt::door;
use rt::println;
use rt::sync::Mutex;
use stub::{Failure, Once};
use sys::Error;

/// The client.
pub fn spend(purse: &impl Server) -> Result<(), DrawError> {
    purse.put(30)?;
    match (purse.draw(10)?, purse.draw(50)) {
        (20, Err(DrawError::Overdrawn(Overdrawn { by: 30 }))) => Ok(()),
        _ => Err(Failure::Malformed.into()),
    }
}

/// The object.
#[derive(Default)]
pub struct Own(Mutex<i32>);

impl Server for Own {
    fn put(&self, amount: i32) -> Result<(), Failure> {
        *self.0.lock() += amount;
        Ok(())
    }
    fn draw(&self, amount: i32) -> Result<i32, DrawError> {
        let mut holds = self.0.lock();
        if amount > *holds {
            return Err(DrawError::Overdrawn(Overdrawn { by: amount - *holds }));
        }
        *holds -= amount;
        Ok(*holds)
    }
    fn count(&self, owner: &str, coins: &[u8]) -> Result<u32, Failure> {
        let worth = || owner.bytes().chain(coins.iter().copied()).map(u32::from).sum::<u32>();
        let before = worth();
        let _ = sys::sleep_us(PAUSE_US);
        // Others have called meanwhile.
        if worth() == before { Ok(before) } else { Err(Failure::Malformed) }
    }
}

/// This server as a thread serves it.
impl purse_ipc::Bank::Purse::Server for Own {
    fn put(&mut self, amount: i32) -> Result<(), Failure> {
        Server::put(self, amount)
    }
    fn draw(&mut self, amount: i32) -> Result<i32, purse_ipc::Bank::Purse::DrawError> {
        Server::draw(self, amount).map_err(|error| match error {
            DrawError::Overdrawn(Overdrawn { by }) => purse_ipc::Bank::Overdrawn { by }.into(),
            DrawError::Failure(failure) => failure.into(),
        })
    }
    fn count(&mut self, owner: &str, coins: &[u8]) -> Result<u32, Failure> {
        Server::count(self, owner, coins)
    }
}

impl From<purse_ipc::Bank::Overdrawn> for purse_ipc::Bank::Purse::DrawError {
    fn from(overdrawn: purse_ipc::Bank::Overdrawn) -> Self {
        purse_ipc::Bank::Purse::DrawError::Overdrawn(overdrawn)
    }
}

/// Lets the client spend in all three ways; says whether that failed, as 1.
pub fn test() -> i32 {
    let empty = || Own(Mutex::new(0));
    let local = spend(&empty());
    let served = door::serve(Object(empty())).and_then(|door| {
        // Who refers to an object is one, too.
        let reference = Client { server: &*Box::leak(Box::new(door)) };
        Ok((reference, door::serve(Object(reference))?))
    });
    let by_door = match served {
        Ok((reference, between)) => {
            let emptied = |purse: Result<i32, DrawError>| purse.map(drop);
            spend(&reference)
                .and_then(|()| emptied(reference.draw(20)))
                .and_then(|()| spend(&Client { server: &between }))
        }
        Err(error) => Err(Failure::Kernel(error).into()),
    };
    let serve = move || {
        static ROOM: Once<purse_ipc::Bank::Purse::Room> = Once::new(purse_ipc::Bank::Purse::Room::new());
        if let Some(room) = ROOM.take() {
            purse_ipc::Bank::Purse::serve(&mut empty(), room);
        }
    };
    let by_ipc = match spawn(serve) {
        Some(server) => spend(&Client { server }),
        None => Err(Failure::Malformed.into()),
    };
    let good = local.is_ok() && by_door.is_ok() && by_ipc.is_ok();
    println!("SELFTEST one client for three servers: {}", if good { "ok" } else { "FAILED" });
    if !good {
        println!("  {local:?}, by door {by_door:?}, by ipc {by_ipc:?}");
    }
    i32::from(!good) + many() + no_room()
}

/// How long a purse takes to count, in µs.
const PAUSE_US: u64 = 500;
/// Who counts at the same time, and how often each.
const CLIENTS: u8 = 6;
const COUNTS: usize = 20;

/// Several call one object at the same time, with requests in memory: each has a server with memory of its own. Says whether that
/// failed, as 1.
fn many() -> i32 {
    let Ok(door) = door::serve(Object(Own(Mutex::new(0)))) else { return 1 };
    let purse = Client { server: &*Box::leak(Box::new(door)) };
    let counted = |client: u8| {
        move || {
            let coins = [client; 2500];
            let expected = 2500 * u32::from(client) + 2 * u32::from(b'a' + client);
            let owner = [b'a' + client; 2];
            let owner = core::str::from_utf8(&owner).unwrap_or_default();
            (0..COUNTS).all(|_| purse.count(owner, &coins) == Ok(expected))
        }
    };
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let clients: Vec<_> = (1..=CLIENTS).map(|client| rt::thread::spawn(priority, counted(client))).collect();
    let mut servers = 0;
    let good = clients.into_iter().filter_map(|client| {
        servers = servers.max(door::servers());
        client.ok()?.join()
    });
    let good = good.filter(|good| *good).count() == usize::from(CLIENTS) && servers > 1;
    println!("SELFTEST several clients of one object: {}", if good { "ok" } else { "FAILED" });
    i32::from(!good)
}

/// An object whose requests have more in memory than those of others.
struct Greedy;

impl stub::door::Object for Greedy {
    type Table = [stub::door::Entry; 4];
    const TABLE: &'static Self::Table = &[stub::door::method::<stub::door::NoMethod<Greedy>>(); 4];
    const SHIFT: u32 = 63;
    const ROOM: Option<&'static [u32]> = Some(&[1 << 20]);
}

/// An object for whose requests servers have no room is not served. Says whether that failed, as 1.
fn no_room() -> i32 {
    let served = door::serve(Greedy).map(drop);
    let good = [served, door::make_room::<Greedy>()] == [Err(Error::NoWindow); 2];
    println!("SELFTEST an object that wants more room: {}", if good { "ok" } else { "FAILED" });
    i32::from(!good)
}
