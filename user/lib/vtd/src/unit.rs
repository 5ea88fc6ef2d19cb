//! A unit, and the spaces of the functions that it stands before.

use crate::Hardware;
use crate::registers::{
    CAPABILITY, COMMAND, CONTEXT, EXTENDED, FAULTS, Limits, PROTECTED, PROTECTED_ON, PROTECTED_STATUS, ROOT,
    STATUS, VERSION, command, context, faults, record, translations,
};
use crate::tables::{self, PAGE_LOG2, PRESENT, READ, WRITE};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// How long a unit may take for a command, and how often its answer is read meanwhile: a clock may stand still.
const PATIENCE_NS: u64 = 100_000_000;
/// See [`PATIENCE_NS`].
const LOOKS_MAX: u32 = 1_000_000;

/// Numbers of domains that are used, at most. The first is left out: it is a unit's own if that keeps absence.
const DOMAINS_MAX: usize = 256;

/// Physical addresses end here.
const PHYSICAL_END: u64 = 1 << 52;

/// Reason why something is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// There is no unit at these registers, or none that is understood.
    Unsuitable,
    /// It does not do what it is told. From then on it is told nothing, and whoever had a domain keeps it.
    Broken,
    /// There are no pages for tables, or no numbers for domains.
    Exhausted,
    /// The function has a domain already, or there is something at this address.
    Taken,
    /// No such address can be, or be mapped.
    BadAddress,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Trouble::Unsuitable => "it is of a kind that is not understood",
            Trouble::Broken => "it does not do what it is told",
            Trouble::Exhausted => "there is no memory for its tables",
            Trouble::Taken => "something is mapped there",
            Trouble::BadAddress => "no device has such addresses",
        })
    }
}

/// Access that a unit has refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Function that wanted it: bus (bits 8 to 15), device (3 to 7) and function.
    pub source: u16,
    /// Page that it wanted.
    pub address: u64,
    /// Whether it wanted to write.
    pub is_write: bool,
}

/// Space of one function. A unit that is broken still knows its tables, so they are kept until [`Unit::detach`] succeeds.
#[derive(Debug)]
pub struct Domain {
    source: u16,
    number: u16,
    first_table: u64,
    /// All others.
    tables: Vec<u64>,
}

/// An IOMMU.
#[derive(Debug)]
pub struct Unit<H> {
    hardware: H,
    limits: Limits,
    root: u64,
    /// Numbers of domains that are in use.
    used: Vec<bool>,
    is_broken: bool,
}

type Result<T> = core::result::Result<T, Trouble>;

/// Whether a unit translates already, by a way to read its registers: somebody has told it before, and functions reach what that one has allowed.
pub fn is_on(read: impl FnOnce(usize) -> u32) -> bool {
    read(STATUS) & command::TRANSLATE != 0
}

impl<H: Hardware> Unit<H> {
    /// Takes a unit over, whatever it did before: from here on no function behind it reaches any memory. The caller has silenced all of them.
    pub fn open(mut hardware: H) -> Result<Unit<H>> {
        let version = hardware.read(VERSION);
        if version == 0 || version == u32::MAX {
            return Err(Trouble::Unsuitable);
        }
        let capability = wide(&mut hardware, CAPABILITY);
        let extended = wide(&mut hardware, EXTENDED);
        let limits = Limits::of(capability, extended).ok_or(Trouble::Unsuitable)?;
        let root = hardware.take_page().ok_or(Trouble::Exhausted)?;
        let used = vec![false; DOMAINS_MAX.min(limits.domains as usize - 1)];
        let mut unit = Unit { hardware, limits, root, used, is_broken: false };
        unit.start()?;
        Ok(unit)
    }

    fn start(&mut self) -> Result<()> {
        // Commands by registers count only while there is no queue.
        if self.hardware.read(STATUS) & command::QUEUE != 0 {
            self.command(0, command::QUEUE)?;
            self.wait(STATUS, command::QUEUE, 0)?;
        }
        self.empty_buffer()?;
        self.hardware.write(ROOT, self.root as u32);
        self.hardware.write(ROOT + 4, (self.root >> 32) as u32);
        self.command(command::TAKE_ROOT, 0)?;
        self.wait(STATUS, command::TAKE_ROOT, command::TAKE_ROOT)?;
        self.forget(context::ALL, translations::ALL, 0)?;
        self.command(command::TRANSLATE, 0)?;
        self.wait(STATUS, command::TRANSLATE, command::TRANSLATE)?;
        if self.limits.protects && self.hardware.read(PROTECTED) & PROTECTED_ON != 0 {
            self.hardware.write(PROTECTED, 0);
            self.wait(PROTECTED, PROTECTED_STATUS, 0)?;
        }
        // Faults of an earlier life.
        self.faults(|_| {});
        Ok(())
    }

    /// Gives a function a space, in which nothing is mapped yet.
    pub fn attach(&mut self, source: u16) -> Result<Domain> {
        self.check()?;
        let free = self.used.iter().position(|used| !used).ok_or(Trouble::Exhausted)?;
        let contexts = self.context_table(source)?;
        let at = tables::place_of_function(source);
        if self.hardware.load(contexts, at) & PRESENT != 0 {
            return Err(Trouble::Taken);
        }
        let first_table = self.hardware.take_page().ok_or(Trouble::Exhausted)?;
        self.used[free] = true;
        let number = free as u16 + 1;
        let [lower, upper] = tables::context(first_table, self.limits.levels, number);
        // The bit that makes it count comes last.
        self.hardware.store(contexts, at + 1, upper);
        self.hardware.store(contexts, at, lower);
        self.appeared(number)?;
        Ok(Domain { source, number, first_table, tables: Vec::new() })
    }

    /// The context table of a function's bus, which is made if it is not there. It stays.
    fn context_table(&mut self, source: u16) -> Result<u64> {
        let at = tables::place_of_bus(source);
        let entry = self.hardware.load(self.root, at);
        if entry & PRESENT != 0 {
            return Ok(tables::address(entry));
        }
        let page = self.hardware.take_page().ok_or(Trouble::Exhausted)?;
        self.hardware.store(self.root, at, page | PRESENT);
        Ok(page)
    }

    /// Maps `1 << log2` bytes of memory to a device's address, to be read and written. Either all of them are, or nothing has changed.
    pub fn map(&mut self, domain: &mut Domain, address: u64, physical: u64, log2: u32) -> Result<()> {
        self.check()?;
        let fits = |at: u64, end: u64| {
            at.is_multiple_of(1 << log2) && at.checked_add(1 << log2).is_some_and(|last| last <= end)
        };
        if !(PAGE_LOG2..self.limits.width).contains(&log2)
            || !fits(address, 1 << self.limits.width)
            || !fits(physical, PHYSICAL_END)
        {
            return Err(Trouble::BadAddress);
        }
        let offsets = || (0..1u64 << log2).step_by(1 << PAGE_LOG2);
        for offset in offsets() {
            let (table, at) = self.place(domain, address + offset)?;
            if self.hardware.load(table, at) != 0 {
                return Err(Trouble::Taken);
            }
        }
        // All tables are there now, so the rest cannot fail.
        for offset in offsets() {
            let (table, at) = self.place(domain, address + offset)?;
            self.hardware.store(table, at, (physical + offset) | READ | WRITE);
        }
        self.appeared(domain.number)
    }

    /// The table and the place in it that a device's address leads to. Tables that are missing are made.
    fn place(&mut self, domain: &mut Domain, address: u64) -> Result<(u64, usize)> {
        let mut table = domain.first_table;
        for level in (2..=self.limits.levels).rev() {
            let at = tables::place(address, level);
            let entry = self.hardware.load(table, at);
            table = if entry != 0 {
                tables::address(entry)
            } else {
                let page = self.hardware.take_page().ok_or(Trouble::Exhausted)?;
                self.hardware.store(table, at, page | READ | WRITE);
                domain.tables.push(page);
                page
            };
        }
        Ok((table, tables::place(address, 1)))
    }

    /// Takes a function's space away. When this is done, nothing that it wanted before comes any more, so all memory that it had can be used
    /// otherwise. If it fails the memory is lost: nobody can say whether the device still reaches it.
    pub fn detach(&mut self, domain: Domain) -> Result<()> {
        self.check()?;
        let contexts = tables::address(self.hardware.load(self.root, tables::place_of_bus(domain.source)));
        let at = tables::place_of_function(domain.source);
        // The bit that makes it count goes first.
        self.hardware.store(contexts, at, 0);
        self.hardware.store(contexts, at + 1, 0);
        self.forget(context::DOMAIN, translations::DOMAIN, domain.number)?;
        for page in domain.tables.into_iter().chain([domain.first_table]) {
            self.hardware.give_back(page);
        }
        self.used[usize::from(domain.number) - 1] = false;
        Ok(())
    }

    /// Tells of each access that was refused and that the unit has a record of. Records are few, so of many faults most are lost.
    pub fn faults(&mut self, mut tell: impl FnMut(Fault)) {
        let status = self.hardware.read(FAULTS);
        if status & (faults::PENDING | faults::LOST) == 0 {
            return;
        }
        for number in 0..self.limits.records {
            let at = self.limits.first_record + record::BYTES * number;
            let upper = self.hardware.read(at + 12);
            if upper & record::FAULT == 0 {
                continue;
            }
            let source = self.hardware.read(at + 8) as u16;
            let address = wide(&mut self.hardware, at) >> PAGE_LOG2 << PAGE_LOG2;
            self.hardware.write(at + 12, record::FAULT);
            tell(Fault { source, address, is_write: upper & record::IS_READ == 0 });
        }
        self.hardware.write(FAULTS, faults::LOST);
    }

    /// Whether it does what it is told, as far as is known.
    pub fn is_sound(&self) -> bool {
        !self.is_broken
    }

    #[cfg(test)]
    pub(crate) fn hardware(&mut self) -> &mut H {
        &mut self.hardware
    }

    fn check(&self) -> Result<()> {
        if self.is_broken { Err(Trouble::Broken) } else { Ok(()) }
    }

    /// Gives a command to the whole unit: bits that are set, and bits that are cleared.
    fn command(&mut self, set: u32, cleared: u32) -> Result<()> {
        let status = self.hardware.read(STATUS);
        if status == u32::MAX {
            return self.broken();
        }
        self.hardware.write(COMMAND, status & command::LASTING & !cleared | set);
        Ok(())
    }

    /// Makes the unit see what is there now and was not before.
    fn appeared(&mut self, domain: u16) -> Result<()> {
        if self.limits.keeps_absence {
            self.forget(context::DOMAIN, translations::DOMAIN, domain)
        } else {
            self.empty_buffer()
        }
    }

    /// Makes the unit forget what it has kept: of context tables first, since translations are made out of them.
    fn forget(&mut self, contexts: u32, kept: u32, domain: u16) -> Result<()> {
        self.empty_buffer()?;
        self.hardware.write(CONTEXT, domain.into());
        self.hardware.write(CONTEXT + 4, context::FORGET | contexts);
        let done = self.wait(CONTEXT + 4, context::FORGET, 0)?;
        if done & context::DONE == 0 {
            return self.broken();
        }
        let upper = self.limits.translations + translations::UPPER;
        self.hardware.write(upper - 4, 0);
        self.hardware.write(upper, translations::FORGET | kept | translations::DRAIN | u32::from(domain));
        let done = self.wait(upper, translations::FORGET, 0)?;
        if done & translations::DONE == 0 { self.broken() } else { Ok(()) }
    }

    fn empty_buffer(&mut self) -> Result<()> {
        if !self.limits.has_buffer {
            return Ok(());
        }
        self.command(command::EMPTY_BUFFER, 0)?;
        self.wait(STATUS, command::EMPTY_BUFFER, 0).map(drop)
    }

    /// Waits until some bits of a register are as they should be, and returns all of it.
    fn wait(&mut self, at: usize, mask: u32, wanted: u32) -> Result<u32> {
        let end = self.hardware.now_ns().saturating_add(PATIENCE_NS);
        for _ in 0..LOOKS_MAX {
            let value = self.hardware.read(at);
            if value & mask == wanted {
                return Ok(value);
            }
            if self.hardware.now_ns() > end {
                break;
            }
            self.hardware.pause();
        }
        self.broken()
    }

    fn broken<T>(&mut self) -> Result<T> {
        self.is_broken = true;
        Err(Trouble::Broken)
    }
}

/// A register of 64 bits, lower half first.
fn wide(hardware: &mut impl Hardware, at: usize) -> u64 {
    u64::from(hardware.read(at)) | u64::from(hardware.read(at + 4)) << 32
}
