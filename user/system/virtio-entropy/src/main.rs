//! The driver of virtio sources of random bytes: serves those of the first one, under the name `entropy`.
//!
//! One thread does everything, and a request waits for the one before, ten seconds at most. What the device says is checked by the library `virtio-devices`; a
//! device that lies ends the driver. On a machine without one the driver ends with [`UNAVAILABLE`].

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::time::Duration;
use rt::admission::Admission;
use rt::api::entropy::{self, SEED_WORDS};
use rt::api::process::UNAVAILABLE;
use rt::api::stub::{self, Failure as Fault, Kind, Message, Reply};
use rt::api::{self, Failure, Name, Status, names};
use rt::sys::Uid;
use rt::{println, time};
use virtio::{Broken, Entropy};

rt::entry!(main);

/// How often a device is claimed whose last driver has just ended, and how long to wait before the next time.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Interrupts between two requests, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 1000;

/// Requests to the device for one seed. One is enough unless it has few bytes at the moment.
const PARTS_MAX: usize = 8;

fn main() -> i32 {
    let source = match patiently() {
        Ok(source) => source,
        Err(Failure::Refused(Status::NotFound)) => return UNAVAILABLE,
        Err(failure) => {
            println!("virtio-entropy: {failure}");
            return 1;
        }
    };
    let registered =
        Name::new(entropy::NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    match registered {
        Ok(()) => entropy::serve(&mut Own {
            source,
            interrupts: 0,
            clients: Admission::new(),
            admitted: Err(Status::Denied),
        }),
        Err(_) => 1,
    }
}

/// Claims again and again as long as the last driver's end is being dealt with.
fn patiently() -> api::Result<Entropy> {
    for _ in 0..TRIES {
        match virtio::entropy() {
            Err(Failure::Refused(Status::Taken)) => time::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    virtio::entropy()
}

struct Own {
    source: Entropy,
    /// Interrupts since the last request.
    interrupts: u32,
    clients: Admission,
    /// Whether who has called now may.
    admitted: Result<(), Status>,
}

/// A broken device may write to memory until the bus server has silenced it. That happens when this task ends; then `root` starts it again.
fn broken(Broken: Broken) -> Fault {
    println!("virtio-entropy: the device does not do what it should");
    rt::exit(1)
}

impl Own {
    /// Refuses who is no client.
    fn begin(&mut self) -> Result<(), Fault> {
        self.interrupts = 0;
        self.admitted.map_err(|status| Fault::Refused(status as u32))
    }
}

impl entropy::Server for Own {
    fn caller(&mut self, from: Uid) {
        self.admitted = self.clients.admit(from);
    }

    fn other(&mut self, message: &Message) -> Option<Reply> {
        // Interrupts come here, too, when nobody waits for them. A line that never falls would keep everybody from the processor.
        if message.kind == Kind::Interrupt {
            self.source.quiet();
            self.interrupts += 1;
            if self.interrupts > INTERRUPTS_MAX {
                broken(Broken);
            }
        }
        stub::decline(message)
    }

    fn read(&mut self, count_max: u32) -> Result<&[u8], Fault> {
        self.begin()?;
        if !(1..=entropy::BYTES_MAX as u32).contains(&count_max) {
            return Err(Fault::Refused(Status::BadRequest as u32));
        }
        self.source.read(count_max as usize).map_err(broken)
    }

    fn seed(&mut self) -> Result<[u64; SEED_WORDS], Fault> {
        self.begin()?;
        let mut bytes = [0; 8 * SEED_WORDS];
        let mut len = 0;
        for _ in 0..PARTS_MAX {
            let part = self.source.read(bytes.len() - len).map_err(broken)?;
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
            if len == bytes.len() {
                let (words, _) = bytes.as_chunks::<8>();
                return Ok(core::array::from_fn(|index| u64::from_le_bytes(words[index])));
            }
        }
        // It had too few, and may have more later.
        Err(Fault::Refused(Status::Busy as u32))
    }
}
