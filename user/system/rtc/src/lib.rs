//! The wall clock, a module: reads the PC's battery-backed clock and says how many nanoseconds have passed since 1970.
//!
//! The clock is read once after the machine was switched on; from then on the kernel's time is added, which is finer and costs no device access. The clock has whole seconds, and to wait for
//! the next one would take up to one at each start, so it is taken to be in the middle of one, as Linux does: it is half a second off at most. A module
//! that started again and read it at another moment could be a second off from what was said before. So the first one has `root` keep the time at which the kernel's
//! begins, before anybody hears of it, and those that come after it take that. The text that is kept belongs to the task: no other module of it may keep one.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cmos;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use rt::api::stub::Failure;
use rt::api::{self, clock, memory, process};
use rt::door::Object;
use rt::module::{Module, answer};
use rt::sys::Fpage;
use rt::{println, time};

/// The module.
pub static MODULE: Module = Module { name: clock::NAME, make };

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// State of the clock.
struct Clock {
    /// The wall clock at the kernel's time 0, in nanoseconds since 1970.
    zero: u64,
}

impl clock::Server for &Clock {
    fn now(&mut self) -> Result<u64, Failure> {
        Ok(self.zero.saturating_add(time::now_ns()))
    }
}

impl Object for Clock {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        answer(label, words, |message| clock::dispatch(&mut &*self, message))
    }
}

/// Begin of the text that is kept.
const BEGIN: &str = "clock ";

/// Bytes of the text, at most: it has a number of 20 digits.
const LEN_MAX: usize = BEGIN.len() + 20;

/// Text that is kept of the time at which the kernel's begins.
fn written(zero: u64) -> String {
    format!("{BEGIN}{zero}")
}

/// Time of such a text. `None` if it makes no sense, or if there is none.
fn read(text: &[u8]) -> Option<u64> {
    let zero = core::str::from_utf8(text).ok()?.strip_prefix(BEGIN)?;
    zero.parse().ok().filter(|&number| written(number).as_bytes() == text)
}

/// Wall clock at the kernel's time 0, if that is so many nanoseconds now and the clock has so many seconds.
fn zero(seconds: u64, since: u64) -> u64 {
    seconds.saturating_mul(SECOND).saturating_add(SECOND / 2).saturating_sub(since)
}

/// Takes the time from the module that was here before; the first one gets the device, and reads it.
fn make() -> api::Result<Arc<dyn Object>> {
    let mut text = [0; LEN_MAX];
    let len = process::kept(rt::home(), &mut text)?;
    if let Some(zero) = text.get(..len).and_then(read) {
        return Ok(Arc::new(Clock { zero }));
    }
    if len > 0 {
        println!("clock: the time may be a second off, since what was kept of it makes no sense");
    }
    let ports = Fpage::ports(cmos::FIRST_PORT, cmos::PORTS_LOG2);
    memory::resource(rt::home(), ports, ports)?;
    let zero = zero(cmos::now(), time::now_ns());
    process::keep(rt::home(), written(zero).as_bytes())?;
    Ok(Arc::new(Clock { zero }))
}

#[cfg(test)]
mod tests {
    use super::{LEN_MAX, SECOND, read, written, zero};
    use alloc::format;

    /// Whenever in a second it is read, it is half a second off at most.
    #[test]
    fn the_clock_is_in_the_middle_of_its_second() {
        let truth = 946_684_800 * SECOND + 123_456_789;
        for since in [0, 1, 400_000_000, 876_543_210, 876_543_211, 7 * SECOND] {
            let found = zero((truth + since) / SECOND, since);
            assert!(found.abs_diff(truth) <= SECOND / 2, "{since}: {found}");
        }
        // A broken clock makes no other mistake.
        assert_eq!((zero(0, u64::MAX), zero(u64::MAX, 0)), (0, u64::MAX));
    }

    #[test]
    fn what_is_kept_is_read_again() {
        for zero in [0, 9, 946_684_800, u64::MAX] {
            let text = written(zero);
            assert!(text.len() <= LEN_MAX);
            assert_eq!(read(text.as_bytes()), Some(zero));
            // Cut anywhere, or with one byte more or another one, it is the text of another time or of none.
            for len in 0..text.len() {
                assert_ne!(read(&text.as_bytes()[..len]), Some(zero));
                let mut other = text.clone().into_bytes();
                for byte in 0..=u8::MAX {
                    other[len] = byte;
                    assert_eq!(read(&other) == Some(zero), other == text.as_bytes(), "{other:?}");
                }
            }
            assert_eq!(read(format!("{text} ").as_bytes()), None);
            assert_eq!(read(format!("clock +{zero}").as_bytes()), None);
            assert_eq!(read(format!("clock 0{zero}").as_bytes()), None);
        }
        assert_eq!(read(b"clock 99999999999999999999"), None);
    }
}
