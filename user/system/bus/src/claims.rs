//! Functions and who drives them.
//!
//! A claim goes with a thread, and ends with its lease. Then the function is silenced *before* anything of it is taken back: first the right to
//! use memory, then its parts. Memory that a device was told of stays with its function, since what it began to write may still come.

use crate::ports::Ports;
use alloc::vec::Vec;
use pci::{BARS, Bar, Configuration, Function, offset, piece};
use rt::api::bus::{Entry, Kind, command};
use rt::api::{Status, memory, process};
use rt::frames::{Block, Lent, Supply, Upstream, reserve};
use rt::sys::{self, Fpage, Rights, Uid};

type Result<T> = core::result::Result<T, Status>;

/// Pieces of memory that one function may use, and their bytes together.
const BLOCKS_MAX: usize = 16;
/// See [`BLOCKS_MAX`].
const BYTES_MAX: u64 = 1 << 20;

/// Line numbers of firmware from here on mean that there is none.
const LINES: u8 = 192;

/// All functions.
#[derive(Debug)]
pub struct Claims {
    ports: Ports,
    functions: Vec<Function>,
    /// Of each function, in the order of the functions.
    claims: Vec<Claim>,
}

#[derive(Debug, Default)]
struct Claim {
    /// Thread that drives the function, if one does.
    owner: Option<Uid>,
    /// Windows onto what it answers at, or the ports. They stay.
    parts: [Option<Fpage>; BARS],
    has_line: bool,
    lent: Vec<Lent>,
    free: Vec<Block>,
}

impl Claims {
    /// Finds all functions, and silences them.
    pub fn new(mut ports: Ports) -> Claims {
        let functions = pci::find(&mut ports);
        let claims = functions.iter().map(|_| Claim::default()).collect();
        Claims { ports, functions, claims }
    }

    /// Function at a place.
    pub fn entry(&self, place: u32) -> Result<Entry> {
        let function = self.functions.get(place as usize).ok_or(Status::NotFound)?;
        Ok(Entry {
            address: function.address.0,
            vendor: function.vendor,
            device: function.device,
            class_code: function.class_code,
            line: function.line,
            pin: function.pin,
            has_msix: function.has_msix,
            is_claimed: self.claims[place as usize].owner.is_some(),
        })
    }

    /// A base address register.
    pub fn bar(&self, place: u32, number: u8) -> Result<(Kind, u64, u64)> {
        let function = self.functions.get(place as usize).ok_or(Status::NotFound)?;
        Ok(match *function.bars.get(number as usize).ok_or(Status::BadRequest)? {
            Bar::Nothing => (Kind::NOTHING, 0, 0),
            Bar::Memory { base, len, prefetchable: true } => (Kind::PREFETCHABLE, base, len),
            Bar::Memory { base, len, prefetchable: false } => (Kind::MEMORY, base, len),
            Bar::Ports { base, len } => (Kind::PORTS, base.into(), len.into()),
        })
    }

    /// Four bytes of configuration space, which others than the owner may see only while there is none.
    pub fn read(&self, thread: Uid, place: u32, offset: u8) -> Result<u32> {
        let claim = self.claims.get(place as usize).ok_or(Status::NotFound)?;
        if claim.owner.is_some_and(|owner| owner != thread) {
            return Err(Status::Denied);
        }
        if !offset.is_multiple_of(4) {
            return Err(Status::BadRequest);
        }
        Ok(self.ports.read(self.functions[place as usize].address, offset))
    }

    /// Claims a function for a thread, if the system description says that its program may drive the class.
    pub fn claim(&mut self, thread: Uid, class: u8, vendor: u16, device: u16) -> Result<u32> {
        let allowed = process::classes(rt::home(), thread).map_err(|_| Status::Denied)?;
        if class >= 32 || allowed >> class & 1 == 0 {
            return Err(Status::Denied);
        }
        let fits = |wanted: u16, number| wanted == rt::api::bus::ANY || wanted == number;
        let is_meant = |function: &Function| {
            function.class() == class && fits(vendor, function.vendor) && fits(device, function.device)
        };
        let mut outcome = Err(Status::NotFound);
        for (place, claim) in
            self.claims.iter_mut().enumerate().filter(|(place, _)| is_meant(&self.functions[*place]))
        {
            if claim.owner.is_none() {
                claim.owner = Some(thread);
                return Ok(place as u32);
            }
            outcome = Err(Status::Taken);
        }
        outcome
    }

    /// The function and its claim, if the thread has claimed it.
    fn own(&mut self, thread: Uid, place: u32) -> Result<(&mut Ports, &Function, &mut Claim)> {
        let claim = self.claims.get_mut(place as usize).ok_or(Status::NotFound)?;
        if claim.owner != Some(thread) {
            return Err(Status::Denied);
        }
        Ok((&mut self.ports, &self.functions[place as usize], claim))
    }

    /// Sets the bits of the command register that are a driver's.
    pub fn command(&mut self, thread: Uid, place: u32, bits: u16) -> Result<()> {
        if bits & !command::ALL != 0 {
            return Err(Status::BadRequest);
        }
        let (ports, function, _) = self.own(thread, place)?;
        set_command(ports, function, bits);
        Ok(())
    }

    /// Memory or ports behind a base address register, to be mapped.
    pub fn part(&mut self, thread: Uid, place: u32, number: u8) -> Result<Fpage> {
        self.own(thread, place)?;
        let place = place as usize;
        let bar = *self.functions[place].bars.get(number as usize).ok_or(Status::BadRequest)?;
        if let Some(part) = self.claims[place].parts[number as usize] {
            return Ok(part);
        }
        if bar == Bar::Nothing {
            return Err(Status::NotFound);
        }
        let (first, log2) = piece(&self.functions, place, number as usize).ok_or(Status::Denied)?;
        let (wanted, window) = match bar {
            Bar::Ports { base, .. } => (Fpage::ports(base, log2), Fpage::ports(base, log2)),
            _ => (Fpage::memory(first, log2, Rights::RW), reserve(log2).ok_or(Status::Exhausted)?),
        };
        memory::resource(rt::home(), wanted, window).map_err(|_| Status::Denied)?;
        let part = window.with_rights(Rights::RW);
        self.claims[place].parts[number as usize] = Some(part);
        Ok(part)
    }

    /// The interrupt line. One that two functions share goes to the first of their drivers.
    pub fn interrupt(&mut self, thread: Uid, place: u32) -> Result<Fpage> {
        self.own(thread, place)?;
        let place = place as usize;
        let (line, pin) = (self.functions[place].line, self.functions[place].pin);
        if pin == 0 || line == 0 || line >= LINES {
            return Err(Status::NotFound);
        }
        let others = self.claims.iter().zip(&self.functions).enumerate();
        if others
            .filter(|(other, _)| *other != place)
            .any(|(_, (claim, function))| claim.has_line && function.line == line)
        {
            return Err(Status::Taken);
        }
        let interrupt = Fpage::interrupt(line);
        memory::resource(rt::home(), interrupt, interrupt).map_err(|_| Status::Denied)?;
        self.claims[place].has_line = true;
        Ok(interrupt)
    }

    /// Memory that the function may use, and its physical address.
    pub fn pages(&mut self, thread: Uid, place: u32, log2: u8) -> Result<(u64, Fpage)> {
        let log2 = memory::block_log2(log2)?;
        let (_, _, claim) = self.own(thread, place)?;
        let bytes: u64 = claim.lent.iter().map(|lent| 1 << lent.fpage().log2()).sum();
        if claim.lent.len() >= BLOCKS_MAX || bytes + (1 << log2) > BYTES_MAX {
            return Err(Status::Exhausted);
        }
        let mut block = match claim.free.iter().position(|block| block.log2() == log2) {
            Some(at) => claim.free.swap_remove(at),
            None => Upstream(rt::home()).block(log2).ok_or(Status::Exhausted)?,
        };
        block.bytes_mut().fill(0);
        let lent = block.lend();
        let item = (lent.physical(), lent.fpage().with_rights(Rights::RW));
        claim.lent.push(lent);
        Ok(item)
    }

    /// Ends a claim. The function is silenced first.
    pub fn release(&mut self, place: u32) {
        let place = place as usize;
        let (Some(function), Some(claim)) = (self.functions.get(place), self.claims.get_mut(place)) else {
            return;
        };
        set_command(&mut self.ports, function, command::NO_INTERRUPT);
        let line = claim.has_line.then(|| Fpage::interrupt(function.line));
        for part in claim.parts.into_iter().flatten().chain(line) {
            // A flush of one's own cannot fail but for lack of memory, and then whoever had it is gone.
            let _ = sys::flush(part.with_rights(Rights::RWX));
        }
        claim.has_line = false;
        claim.free.extend(claim.lent.drain(..).map(Lent::reclaim));
        claim.owner = None;
    }
}

/// Sets the driver's bits of the command register, and leaves the others.
fn set_command(ports: &mut Ports, function: &Function, bits: u16) {
    let before = ports.read(function.address, offset::COMMAND) & 0xffff;
    // The status is in the upper half, where ones clear bits.
    ports.write(function.address, offset::COMMAND, before & !u32::from(command::ALL) | u32::from(bits));
}
