//! One client for three servers: an object of its own task, which it calls without a message; one behind a door, or behind the door of
//! another that stands in between; and a thread, by ipc. The client is generic over the interface's trait and knows nothing of that.

use crate::{purse_door, purse_ipc, spawn};
use alloc::boxed::Box;
use purse_door::Bank::Overdrawn;
use purse_door::Bank::Purse::{Client, DrawError, Object, Server};
use rt::door;
use rt::println;
use rt::sync::Mutex;
use stub::Failure;

/// The client.
fn spend(purse: &impl Server) -> Result<(), DrawError> {
    purse.put(30)?;
    match (purse.draw(10)?, purse.draw(50)) {
        (20, Err(DrawError::Overdrawn(Overdrawn { by: 30 }))) => Ok(()),
        _ => Err(Failure::Malformed.into()),
    }
}

/// The object.
struct Own(Mutex<i32>);

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
}

/// The same as a thread serves it.
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
    let by_ipc = match spawn(move || -> () { purse_ipc::Bank::Purse::serve(&mut empty()) }) {
        Some(server) => spend(&Client { server }),
        None => Err(Failure::Malformed.into()),
    };
    let good = local.is_ok() && by_door.is_ok() && by_ipc.is_ok();
    println!("SELFTEST one client for three servers: {}", if good { "ok" } else { "FAILED" });
    if !good {
        println!("  {local:?}, by door {by_door:?}, by ipc {by_ipc:?}");
    }
    i32::from(!good)
}
