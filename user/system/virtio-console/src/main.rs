//! The driver of virtio consoles: serves the first one as a console, under the name that its argument says.
//!
//! Buffers and queues are those of each console ([`terminal`]); what the device says is checked by the library `virtio-devices`, and a device that lies ends the
//! driver. It waits for nothing but messages: whoever reads on the other side may be slow, and then writers wait, and nobody else. On a machine without
//! such a device the driver ends with [`UNAVAILABLE`].

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::time::Duration;
use rt::api::process::UNAVAILABLE;
use rt::api::{self, Failure, Name, Status, names};
use rt::{println, time};
use terminal::Device;
use virtio::console::{INPUT_MAX, OUTPUT_MAX};
use virtio::{Broken, Console};

rt::entry!(main);

/// How often a device is claimed whose last driver has just ended, and how long to wait before the next time.
const TRIES: usize = 100;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(10);

/// Interrupts for nothing, beyond which the device does nothing else.
const INTERRUPTS_MAX: u32 = 1000;

fn main() -> i32 {
    let arguments = rt::arguments();
    let Some(name) = arguments.first().and_then(|name| Name::new(name)) else {
        println!("virtio-console: its argument is the name under which it serves");
        return 2;
    };
    let console = match patiently() {
        Ok(console) => console,
        Err(Failure::Refused(Status::NotFound)) => return UNAVAILABLE,
        Err(failure) => {
            println!("virtio-console: {failure}");
            return 1;
        }
    };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    terminal::serve(Line::new(console), Line::interrupted)
}

/// Claims again and again as long as the last driver's end is being dealt with.
fn patiently() -> api::Result<Console> {
    for _ in 0..TRIES {
        match virtio::console() {
            Err(Failure::Refused(Status::Taken)) => time::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    virtio::console()
}

/// A broken device may write to memory until the bus server has silenced it. That happens when this task ends; then `root` starts it again.
fn broken<T>(Broken: Broken) -> T {
    println!("virtio-console: the device does not do what it should");
    rt::exit(1)
}

/// The device, and what has come from it.
struct Line {
    console: Console,
    /// Bytes that the device has brought: those from `at` to `end` nobody has taken.
    came: [u8; INPUT_MAX],
    at: usize,
    end: usize,
    /// Whether somebody wants input.
    is_wanted: bool,
    /// Interrupts since the device has done something.
    interrupts: u32,
}

impl Line {
    fn new(console: Console) -> Line {
        Line { console, came: [0; INPUT_MAX], at: 0, end: 0, is_wanted: false, interrupts: 0 }
    }

    /// Takes an interrupt back. A line that never falls would keep everybody from the processor.
    fn interrupted(&mut self) {
        self.console.quiet();
        self.interrupts += 1;
        if self.interrupts > INTERRUPTS_MAX {
            broken(Broken)
        }
    }
}

impl Device for Line {
    const SEND_MAX: usize = OUTPUT_MAX;

    fn receive(&mut self) -> Option<u8> {
        if self.at == self.end {
            let bytes = self.console.receive().unwrap_or_else(broken)?;
            self.came[..bytes.len()].copy_from_slice(bytes);
            (self.at, self.end, self.interrupts) = (0, bytes.len(), 0);
        }
        self.at += 1;
        Some(self.came[self.at - 1])
    }

    fn can_send(&self) -> bool {
        !self.console.is_sending()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.console.send(bytes).unwrap_or_else(broken);
    }

    fn is_sending(&self) -> bool {
        self.console.is_sending()
    }

    /// The device says by itself that it has sent something. It brings nothing before all is taken that it has brought.
    fn enable(&mut self, input: usize, _: bool) {
        self.is_wanted = input > 0;
        if self.at == self.end {
            self.console.want(input).unwrap_or_else(broken);
        }
    }

    /// Input for which there is nobody stays where it is.
    fn is_pending(&mut self) -> bool {
        let has_sent = self.console.reap().unwrap_or_else(broken);
        if has_sent {
            self.interrupts = 0;
        }
        has_sent || self.is_wanted && (self.at < self.end || self.console.is_pending())
    }
}
