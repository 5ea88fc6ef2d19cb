//! The calendar, a module: date and time of day, UTC. It asks the clock how late it is, wherever that runs.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use rt::api::stub::Failure;
use rt::api::{self, Status, calendar, calendar::Date, clock};
use rt::door::Object;
use rt::module::{Module, Service, answer};

/// The module.
pub static MODULE: Module = Module { name: calendar::NAME, make };

/// State of the calendar: where it asks for the time.
struct Calendar {
    clock: Service,
}

impl calendar::Server for &Calendar {
    fn now(&mut self) -> Result<Date, Failure> {
        match clock::now(&self.clock) {
            Ok(nanoseconds) => Ok(date(nanoseconds / 1_000_000_000)),
            // A client that asks for the date does not care which of its servers is away.
            Err(_) => Err(Failure::Refused(Status::Busy as u32)),
        }
    }
}

impl Object for Calendar {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        answer(label, words, |message| calendar::dispatch(&mut &*self, message))
    }
}

fn make() -> api::Result<Arc<dyn Object>> {
    Ok(Arc::new(Calendar { clock: Service::new(clock::NAME) }))
}

/// The date so many seconds after the start of 1970.
fn date(seconds: u64) -> Date {
    let (days, second) = (seconds / 86400, seconds % 86400);
    // Count from 1 March of the year 0, so that leap days come last; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Date {
        year: (era * 400 + year + next) as u32,
        month: month as u8,
        day: day_of_month as u8,
        hour: (second / 3600) as u8,
        minute: (second / 60 % 60) as u8,
        second: (second % 60) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, (1970, 1, 1, [0, 0, 0])),
            (86_399, (1970, 1, 1, [23, 59, 59])),
            (951_782_400, (2000, 2, 29, [0, 0, 0])),
            (951_868_800, (2000, 3, 1, [0, 0, 0])),
            (1_709_164_799, (2024, 2, 28, [23, 59, 59])),
            (4_107_542_400, (2100, 3, 1, [0, 0, 0])),
        ] {
            let date = date(seconds);
            let time = [date.hour, date.minute, date.second];
            assert_eq!((date.year, date.month, date.day, time), expected, "{seconds}");
        }
    }
}
