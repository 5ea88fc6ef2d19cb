//! The bus server: finds the devices behind PCI, and hands each to the driver that claims it, once.
//!
//! One thread answers. A lease is an object behind a door, without methods: when its last identifier goes, because the driver let go
//! or ended, the kernel says so to another thread, which gives the function back.
//!
//! Reading order: [`claims`]; [`configuration`] and [`ports`], the ways to the devices; [`iommu`], what devices reach; [`firmware`], which says where all of
//! that is. What a device is made of is told in the library `pci`, what an IOMMU is in `vtd`, and what the firmware's tables are in `acpi`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod claims;
mod configuration;
mod firmware;
mod iommu;
mod lines;
mod ports;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use claims::Claims;
use configuration::ConfigurationSpaces;
use core::time::Duration;
use firmware::Firmware;
use rt::admission::Admission;
use rt::api::bus::{self, Answer, Request};
use rt::api::{self, Name, Reply, Status, names};
use rt::door::{self, Door, Object};
use rt::server;
use rt::sync::Mutex;
use rt::sys::{self, Kind, Message, Rights};
use rt::{println, thread, time};

rt::entry!(main);

static CLIENTS: Admission = Admission::new();

/// How often the IOMMUs are asked whether they have refused something.
const LOOKS: Duration = Duration::from_millis(250);

/// A claim, as long as somebody has it.
struct Lease {
    claims: Arc<Mutex<Claims>>,
    place: u32,
}

impl Object for Lease {
    fn call(&self, _: u32, _: [u64; 8]) -> (u32, [u64; 8]) {
        (Status::BadRequest as u32, [0; 8])
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut claims = self.claims.lock();
        // Of a driver that is still known.
        let reports = claims.reports();
        claims.release(self.place);
        drop(claims);
        tell(&reports);
    }
}

fn main() -> i32 {
    match prepare() {
        Ok(claims) => serve(&claims),
        Err(_) => 1,
    }
}

fn prepare() -> api::Result<Arc<Mutex<Claims>>> {
    let mut firmware = Firmware::open();
    let configuration = ConfigurationSpaces::open(&mut firmware)?;
    let claims = Claims::new(firmware, configuration);
    tell(&claims.about());
    let has_iommu = claims.has_iommu();
    let claims = Arc::new(Mutex::new(claims));
    if has_iommu {
        watch(claims.clone());
    }
    let name = Name::new(bus::NAME).ok_or(api::Failure::Garbled)?;
    names::register(rt::home(), &name)?;
    Ok(claims)
}

/// Tells a person. Nobody has the claims meanwhile, since the console may take its time.
fn tell(lines: &[String]) {
    lines.iter().for_each(|line| println!("bus: {line}"));
}

/// Tells of what devices were refused. An IOMMU could say so by an interrupt, but some looks in a second are enough.
fn watch(claims: Arc<Mutex<Claims>>) {
    let body = move || -> () {
        loop {
            time::sleep(LOOKS);
            let reports: Vec<String> = claims.lock().reports();
            tell(&reports);
        }
    };
    // Urgent like this thread, which waits for it when both want the claims. Without it faults are told of when a driver lets go of its function.
    let own = sys::thread_info(sys::myself());
    if let Ok(handle) = own.and_then(|own| thread::spawn(own.priority, body)) {
        handle.detach();
    }
}

fn serve(claims: &Arc<Mutex<Claims>>) -> ! {
    let mut message = server::wait();
    loop {
        // Moved to the client with the answer; what is left of it then goes, and so does the lease of a client that is gone.
        let mut lease = None;
        if message.kind == Kind::Request {
            let reply = answer(claims, &message, &mut lease).unwrap_or_else(Reply::from);
            let _ = server::reply(message.sender, &reply);
        }
        drop(lease);
        message = server::wait();
    }
}

fn answer(claims: &Arc<Mutex<Claims>>, message: &Message, lease: &mut Option<Door>) -> Result<Reply, Status> {
    let thread = message.sender;
    CLIENTS.admit(thread)?;
    let request = Request::read(message)?;
    if let Request::Claim { class_number, vendor, device } = request {
        let place = claims.lock().claim(thread, class_number, vendor, device)?;
        let door = door::export(Lease { claims: claims.clone(), place }).map_err(|_| Status::Exhausted)?;
        let (item, _) = door.item(Rights::R.or(Rights::GRANT));
        *lease = Some(door);
        return Ok(Answer::Claim(item, place).into());
    }
    let mut claims = claims.lock();
    Ok(match request {
        Request::Device { place } => Answer::Device(claims.entry(place)?),
        Request::Bar { place, number } => {
            let (kind, base, len) = claims.bar(place, number)?;
            Answer::Bar(kind, base, len)
        }
        Request::Read { place, offset } => Answer::Read(claims.read(thread, place, offset)?),
        Request::Command { place, bits } => {
            claims.command(thread, place, bits)?;
            Answer::Command
        }
        Request::Part { place, number } => Answer::Part(claims.part(thread, place, number)?),
        Request::Interrupt { place } => Answer::Interrupt(claims.interrupt(thread, place)?),
        Request::Message { place, number } => Answer::Message(claims.message(thread, place, number)?),
        Request::Pages { place, log2 } => {
            let (physical, block) = claims.pages(thread, place, log2)?;
            Answer::Pages(physical, block)
        }
        Request::Claim { .. } => return Err(Status::BadRequest),
    }
    .into())
}
