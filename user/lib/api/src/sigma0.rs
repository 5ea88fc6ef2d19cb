//! Requests that only σ0 can carry out: switch the machine off, and tell about itself. For `root` alone, which passes on to
//! the console what it is about the screen, and to the bus server where the firmware's tables are.
//!
//! σ0 also serves [`memory`](crate::memory) and the writing half of [`console`](crate::console).

use crate::process::{TaskEntry, ThreadEntry};
use crate::stubs::System::Machine::Client;
use crate::wire::Result;
use sys::abi::PAGE_SIZE;
use sys::{Fpage, Rights, Uid};

pub use crate::stubs::System::Machine::{Answer, NUMBER, Request};
pub use crate::stubs::System::{Screen, ScreenKind};

/// Ends the machine with an exit status.
pub fn power_off(server: Uid, status: i32) -> Result<()> {
    Ok(Client { server }.power_off(status)?)
}

/// σ0's own entry in the list of tasks.
pub fn usage(server: Uid) -> Result<TaskEntry> {
    Ok(Client { server }.usage()?)
}

/// σ0's only thread.
pub fn thread(server: Uid) -> Result<ThreadEntry> {
    Ok(Client { server }.thread()?)
}

/// Screen of the machine. For `root`, and for the console server, which asks `root`.
pub fn screen(server: Uid) -> Result<Screen> {
    Ok(Client { server }.display()?)
}

/// Physical address of the root of the firmware's tables (ACPI); 0 if there are none. For `root`, and for the bus server, which asks `root`.
pub fn firmware(server: Uid) -> Result<u64> {
    Ok(Client { server }.firmware()?)
}

/// The memory of a screen as a resource: the smallest piece that can be mapped at once. `None` if there is no screen.
pub fn screen_memory(screen: &Screen) -> Option<Fpage> {
    let end = screen.address.checked_add(u64::from(screen.pitch) * u64::from(screen.height))?;
    let log2 = (PAGE_SIZE.trailing_zeros()..40).find(|log2| (end - 1) >> log2 == screen.address >> log2)?;
    (screen.kind != ScreenKind::NO_SCREEN)
        .then(|| Fpage::memory(screen.address >> log2 << log2, log2, Rights::RW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_are_covered() {
        let screen = |address, pitch, height, kind| Screen {
            address,
            pitch,
            width: 80,
            height,
            kind,
            bytes: 2,
            red: 0,
            green: 0,
            blue: 0,
        };
        let cover = |screen| screen_memory(&screen).map(|page| (page.base(), page.log2()));
        assert_eq!(cover(screen(0xb8000, 160, 25, ScreenKind::TEXT)), Some((0xb8000, 12)));
        assert_eq!(cover(screen(0xb8000, 160, 26, ScreenKind::TEXT)), Some((0xb8000, 13)));
        assert_eq!(cover(screen(0x8000_0000, 3200, 600, ScreenKind::PIXELS)), Some((0x8000_0000, 21)));
        assert_eq!(cover(screen(0x801f_0000, 3200, 600, ScreenKind::PIXELS)), Some((0x8000_0000, 22)));
        assert_eq!(cover(screen(0xb8000, 160, 25, ScreenKind::NO_SCREEN)), None);
        assert_eq!(cover(screen(u64::MAX - 5, 160, 25, ScreenKind::TEXT)), None);
    }
}
