//! A thread that finds the driver of the card, gives it rings, and waits for it; again and again, since drivers end.

use crate::shared::{Link, Shared};
use core::time::Duration;
use net::link::{self, Client};
use net::ring::{Consumer, Producer};
use rt::api::stub::{Failure as Fault, Within};
use rt::api::{Failure, Name, Result, Status, names};
use rt::door::Room;
use rt::region::Region;
use rt::sys::{self, Error, Uid};
use rt::{thread, time};

/// How long to wait before a driver is looked for again.
const PAUSE: Duration = Duration::from_millis(20);

/// How long to wait when there is none, or no card.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How long to wait for frames before looking whether the card is still wanted, in µs.
const LOOK_US: u64 = 1_000_000;

/// Begins.
pub fn begin(shared: &Shared) -> sys::Result<()> {
    let shared = shared.clone();
    let priority = sys::thread_info(sys::myself())?.priority;
    let region = link::region().ok_or(Error::NoMemory)?;
    thread::spawn(priority, move || -> () { follow(&shared, region) })?.detach();
    Ok(())
}

/// Whenever there is a driver, its frames are the stack's.
fn follow(shared: &Shared, region: Region) -> ! {
    loop {
        match attach(region) {
            Ok((link, address)) => {
                let driver = link.driver;
                shared.set_link(Some((link, address)));
                while shared.has_link() && is_there(driver) {
                    if !shared.poke() {
                        // This task is being ended. The driver has something to tell at once as long as there are frames that nobody takes: without a pause both
                        // would keep whoever ends the task from doing so.
                        time::sleep(PAUSE);
                    }
                }
                shared.set_link(None);
                time::sleep(PAUSE);
            }
            // Its driver has just ended, or its last client has.
            Err(Failure::Refused(Status::Taken)) => time::sleep(PAUSE),
            Err(_) => {
                shared.set_link(None);
                time::sleep(LONG_PAUSE);
            }
        }
    }
}

/// Finds the driver, and gives it rings.
fn attach(region: Region) -> Result<(Link, [u8; 6])> {
    let driver: Uid = names::resolve(rt::home(), &Name::new(link::NAME).ok_or(Failure::Garbled)?)?;
    let (address, _) = link::info(driver)?;
    let room = Room::new().map_err(Failure::Kernel)?;
    // Nobody else has them: the last driver is gone, or has given them back.
    region.take_back();
    link::reset(region);
    link::attach(driver, region.fpage(), room.window())?;
    let [received, to_send] = link::rings(region);
    let (Some(received), Some(to_send)) = (Consumer::new(received), Producer::new(to_send)) else {
        return Err(Failure::Garbled);
    };
    Ok((Link { driver, received, to_send, _lease: room.into_door() }, address))
}

/// Waits for frames, and not for long. False if the driver is gone.
fn is_there(driver: Uid) -> bool {
    match (Client { server: Within::us(driver, LOOK_US) }).wait() {
        Ok(()) | Err(Fault::Kernel(Error::ReceiveTimeout | Error::ReceiveAborted | Error::SendAborted)) => {
            true
        }
        Err(_) => false,
    }
}
