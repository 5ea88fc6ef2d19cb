//! The console server: drives the UART by its interrupt and serves bytes out and in. What goes out is shown on the machine's
//! screen, too, if the boot loader has told of one.
//!
//! One thread does everything, so nothing needs a lock: it waits for anybody, and the interrupt is one of them. Buffers and queues are in
//! the library `terminal`, which it shares with other drivers of consoles.
//!
//! Reading order: [`console`], the line and the screen together; [`uart`], the device; [`screen`], a terminal's text, and
//! [`display`], which draws it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod console;
mod display;
mod screen;
mod uart;

use console::Console;
use display::Display;
use rt::api::{self, Name, memory, names};
use rt::sys::{self, Fpage, Timeout, Uid};
use screen::Screen;
use uart::Uart;

rt::entry!(main);

/// Interrupt line of the first serial port.
const LINE: u8 = 4;

fn main() -> i32 {
    match prepare() {
        // The loop looks at the device anyway, whether an interrupt has come or not.
        Ok(console) => terminal::serve(console, |_| ()),
        Err(_) => 1,
    }
}

/// Gets the device and the name.
fn prepare() -> api::Result<Console> {
    let home = rt::home();
    let (ports, interrupt) = (Fpage::ports(Uart::FIRST_PORT, Uart::PORTS_LOG2), Fpage::interrupt(LINE));
    memory::resource(home, ports, ports)?;
    memory::resource(home, interrupt, interrupt)?;
    // The first receive from the line makes this thread its driver; from then on every wait includes it.
    let _ = sys::receive(Uid::interrupt(LINE), Timeout::ZERO);
    let console = Console::new(Uart::start(), Display::find().map(Screen::new));
    let name = Name::new(api::console::NAME).ok_or(api::Failure::Garbled)?;
    names::register(home, &name)?;
    Ok(console)
}
