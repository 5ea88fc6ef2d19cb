//! The CMOS clock (MC146818): an index port and a data port.

use rt::device::Port;

/// Its first port.
pub const FIRST_PORT: u16 = 0x70;
/// Log2 of the number of its ports.
pub const PORTS_LOG2: u32 = 1;

const INDEX: Port = Port(FIRST_PORT);
const DATA: Port = Port(FIRST_PORT + 1);

/// Seconds, minutes, hours, day, month, year.
const REGISTERS: [u8; 6] = [0x00, 0x02, 0x04, 0x07, 0x08, 0x09];
const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;

const UPDATING: u8 = 1 << 7;
const IS_24_HOURS: u8 = 1 << 1;
const IS_BINARY: u8 = 1 << 2;
const AFTERNOON: u8 = 1 << 7;

/// How often the clock is read before whatever it says is taken.
const TRIES: usize = 1000;

fn read(register: u8) -> u8 {
    INDEX.write(register);
    DATA.read()
}

/// Seconds since the start of 1970, taking the clock for UTC.
pub fn now() -> u64 {
    let status = read(STATUS_B);
    let [second, minute, hour, day, month, year] = consistent();
    let number =
        |value: u8| if status & IS_BINARY != 0 { value } else { value / 16 * 10 + value % 16 } as u64;
    let hour = if status & IS_24_HOURS != 0 {
        number(hour)
    } else {
        number(hour & !AFTERNOON) % 12 + if hour & AFTERNOON != 0 { 12 } else { 0 }
    };
    // The clock has two digits; the century register is not on every machine.
    let year = match number(year) {
        year @ 70.. => 1900 + year,
        year => 2000 + year,
    };
    let days = days_since_1970(year, number(month), number(day));
    ((days * 24 + hour) * 60 + number(minute)) * 60 + number(second)
}

/// The registers, read outside an update and twice alike.
fn consistent() -> [u8; 6] {
    let mut before = REGISTERS.map(read);
    for _ in 0..TRIES {
        if read(STATUS_A) & UPDATING != 0 {
            continue;
        }
        let now = REGISTERS.map(read);
        if now == before {
            break;
        }
        before = now;
    }
    before
}

/// Days from the start of 1970 to a date, which a broken clock may have made up.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year / 4 - year / 100 + year / 400;
    (year * 365 + leap_days + (month * 153 + 2) / 5 + day).saturating_sub(719_469)
}
