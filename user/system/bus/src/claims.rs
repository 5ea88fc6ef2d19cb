//! Functions and who drives them.
//!
//! A claim goes with a thread, and ends with its lease. Then the function is silenced *before* anything of it is taken back: first the right to
//! use memory, then its parts, then, where there is an IOMMU, its space. Memory that a device was told of stays with its function, since what it
//! began to write may still come.

use crate::configuration::ConfigurationSpaces;
use crate::firmware::Firmware;
use crate::iommu::{Iommus, Space};
use crate::lines::{self, Line, Lines};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pci::{Address, BARS, Bar, CLASS_BRIDGE, Configuration, ENTRY_BYTES, Function, Messages, offset, piece};
use rt::api::bus::{Entry, Kind, command};
use rt::api::{Status, memory, process};
use rt::device::DeviceMemory;
use rt::frames::{Block, Lent, Supply, Upstream, reserve};
use rt::sys::{self, Fpage, Rights, Uid};
use rt::time;
use vtd::Fault;

type Result<T> = core::result::Result<T, Status>;

/// Pieces of memory that one function may use, and their bytes together.
const BLOCKS_MAX: usize = 16;
/// See [`BLOCKS_MAX`].
pub const BYTES_MAX: u64 = 1 << 20;

/// Interrupts that one function may send as messages.
const MESSAGES_MAX: usize = 8;

/// Bytes of a word in a table of messages.
const WORD_BYTES: u64 = 4;

/// Number of the word in an entry there that says whether the message is kept.
const MASK: u64 = 3;

/// Least time between two reports of one function, in nanoseconds.
const REPORTS_NS: u64 = 1_000_000_000;

/// Functions that nobody has found and that are reported, at most.
const STRANGERS_MAX: usize = 16;

/// All functions.
#[derive(Debug)]
pub struct Claims {
    configuration: ConfigurationSpaces,
    iommus: Iommus,
    /// Memory that is no function's: first and end of each piece.
    board: Vec<(u64, u64)>,
    functions: Vec<Function>,
    /// Of each function, in the order of the functions.
    claims: Vec<Claim>,
    /// Functions that nobody has found, and that wanted to use memory.
    strangers: Vec<u16>,
    /// Lines for messages.
    lines: Lines,
}

#[derive(Debug, Default)]
struct Claim {
    /// Thread that drives the function, if one does.
    owner: Option<Uid>,
    /// Windows onto what it answers at, or the ports. They stay.
    parts: [Option<Fpage>; BARS],
    /// Those that the owner has.
    is_given: [bool; BARS],
    has_line: bool,
    /// Its messages, by their numbers, and their lines.
    messages: Vec<(u16, Line)>,
    /// Memory with its table of messages, which no driver gets with these. It stays.
    table: Option<DeviceMemory>,
    lent: Vec<Lent>,
    free: Vec<Block>,
    /// Memory that it reaches, if there is an IOMMU and it reaches some.
    space: Option<Space>,
    /// Whether it was reported since it was claimed.
    is_reported: bool,
    /// When it was reported last.
    reported_ns: Option<u64>,
}

impl Claims {
    /// Finds all functions, and silences them; then lets none of them reach any memory, where there is an IOMMU.
    pub fn new(mut firmware: Firmware, mut configuration: ConfigurationSpaces) -> Claims {
        let functions = pci::find(&mut configuration);
        let iommus = Iommus::open(&mut firmware, &configuration, &functions);
        let board = configuration.range().into_iter().chain(iommus.registers().iter().copied()).collect();
        let claims = functions.iter().map(|_| Claim::default()).collect();
        Claims {
            configuration,
            iommus,
            board,
            functions,
            claims,
            strangers: Vec::new(),
            lines: Lines::default(),
        }
    }

    /// Words for a person about the machine: where it differs from others, and who is trusted.
    pub fn about(&self) -> Vec<String> {
        let devices =
            self.functions.iter().enumerate().filter(|(_, function)| function.class() != CLASS_BRIDGE);
        let trusted: Vec<Address> = devices
            .filter(|(place, _)| !self.iommus.is_before(*place))
            .map(|(_, function)| function.address)
            .collect();
        let memory =
            self.configuration.range().map(|(first, _)| format!("configuration spaces at {first:#x}"));
        let about = if self.functions.is_empty() {
            Vec::new()
        } else if self.iommus.is_empty() {
            Vec::from([String::from("no IOMMU: a driver whose device uses memory is trusted with all of it")])
        } else {
            let all =
                String::from("IOMMU: a device reaches the memory that its driver got for it, and no other");
            let but = trusted
                .into_iter()
                .map(|address| format!("no IOMMU before {address}: its driver is trusted with all memory"));
            [all].into_iter().chain(but).collect()
        };
        memory.into_iter().chain(about).collect()
    }

    /// Whether accesses to memory can be refused at all.
    pub fn has_iommu(&self) -> bool {
        !self.iommus.is_empty()
    }

    /// Tells of functions that wanted to use memory which is not theirs: of each once for each claim, and not too often.
    pub fn reports(&mut self) -> Vec<String> {
        let Claims { iommus, functions, claims, strangers, .. } = self;
        let mut reports = Vec::new();
        iommus.faults(|fault| reports.extend(report(functions, claims, strangers, fault)));
        reports
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
            messages: function.messages.map_or(0, Messages::count),
            messages_taken: self.claims[place as usize].messages.len() as u16,
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
        Ok(self.configuration.read(self.functions[place as usize].address, offset))
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
                (claim.owner, claim.is_reported) = (Some(thread), false);
                return Ok(place as u32);
            }
            outcome = Err(Status::Taken);
        }
        outcome
    }

    /// Place of a function that the thread has claimed.
    fn own(&self, thread: Uid, place: u32) -> Result<usize> {
        let claim = self.claims.get(place as usize).ok_or(Status::NotFound)?;
        if claim.owner == Some(thread) { Ok(place as usize) } else { Err(Status::Denied) }
    }

    /// Sets the bits of the command register that are a driver's.
    pub fn command(&mut self, thread: Uid, place: u32, bits: u16) -> Result<()> {
        if bits & !command::ALL != 0 {
            return Err(Status::BadRequest);
        }
        let place = self.own(thread, place)?;
        if bits & command::MASTER != 0 && !self.iommus.allows(place) {
            return Err(Status::Denied);
        }
        set_command(&mut self.configuration, &self.functions[place], bits);
        Ok(())
    }

    /// Memory or ports behind a base address register, to be mapped.
    pub fn part(&mut self, thread: Uid, place: u32, number: u8) -> Result<Fpage> {
        let place = self.own(thread, place)?;
        let bar = *self.functions[place].bars.get(number as usize).ok_or(Status::BadRequest)?;
        let (claim, function) = (&self.claims[place], &self.functions[place]);
        if !claim.messages.is_empty() && is_with_table(function, number as usize) {
            // A driver that could write the table could send any interrupt.
            return Err(Status::Denied);
        }
        let known = claim.parts[number as usize];
        if let Some(part) = known {
            self.claims[place].is_given[number as usize] = true;
            return Ok(part);
        }
        if bar == Bar::Nothing {
            return Err(Status::NotFound);
        }
        let (first, log2) =
            piece(&self.functions, &self.board, place, number as usize).ok_or(Status::Denied)?;
        let (wanted, window) = match bar {
            Bar::Ports { base, .. } => (Fpage::ports(base, log2), Fpage::ports(base, log2)),
            _ => (Fpage::memory(first, log2, Rights::RW), reserve(log2).ok_or(Status::Exhausted)?),
        };
        memory::resource(rt::home(), wanted, window).map_err(|_| Status::Denied)?;
        let part = window.with_rights(Rights::RW);
        let claim = &mut self.claims[place];
        (claim.parts[number as usize], claim.is_given[number as usize]) = (Some(part), true);
        Ok(part)
    }

    /// The interrupt line. One that two functions share goes to the first of their drivers.
    pub fn interrupt(&mut self, thread: Uid, place: u32) -> Result<Fpage> {
        let place = self.own(thread, place)?;
        let (line, pin) = (self.functions[place].line, self.functions[place].pin);
        if pin == 0 || line == 0 || line >= lines::COUNT {
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
        // Whatever the function says, a line for messages is none of a pin's: another function may send it.
        if sys::interrupt_message(line).is_ok() {
            return Err(Status::NotFound);
        }
        self.claims[place].has_line = true;
        Ok(interrupt)
    }

    /// The line of a message, which the function sends from now on.
    pub fn message(&mut self, thread: Uid, place: u32, number: u16) -> Result<Fpage> {
        let place = self.own(thread, place)?;
        let messages = self.functions[place].messages.filter(|messages| number < messages.count());
        let messages = messages.ok_or(Status::NotFound)?;
        let claim = &self.claims[place];
        if let Some((_, line)) = claim.messages.iter().find(|(other, _)| *other == number) {
            return Ok(Fpage::interrupt(line.number));
        }
        if claim.messages.len() >= MESSAGES_MAX {
            return Err(Status::Exhausted);
        }
        let line = self.lines.take().ok_or(Status::Exhausted)?;
        if let Err(status) = self.send(place, messages, number, line) {
            self.lines.give_back(line);
            return Err(status);
        }
        self.claims[place].messages.push((number, line));
        Ok(Fpage::interrupt(line.number))
    }

    /// Has a function send a message.
    fn send(&mut self, place: usize, messages: Messages, number: u16, line: Line) -> Result<()> {
        let address = self.functions[place].address;
        let (at, bar, offset, count) = match messages {
            Messages::Table { at, bar, offset, count } => (at, bar, offset, count),
            Messages::One { at } => {
                let message = (line.message.0, line.message.1 as u16);
                let can = pci::send_one(&mut self.configuration, address, at, message);
                return if can { Ok(()) } else { Err(Status::Denied) };
            }
        };
        let (claim, function) = (&self.claims[place], &self.functions[place]);
        if (0..BARS).any(|number| claim.is_given[number] && is_with_table(function, number)) {
            return Err(Status::Taken);
        }
        let (first, log2) =
            piece(&self.functions, &self.board, place, usize::from(bar)).ok_or(Status::Denied)?;
        let Bar::Memory { base, .. } = self.functions[place].bars[usize::from(bar)] else {
            return Err(Status::NotFound);
        };
        let claim = &mut self.claims[place];
        if claim.table.is_none() {
            let memory = DeviceMemory::map(Fpage::memory(first, log2, Rights::RW));
            claim.table = Some(memory.map_err(|_| Status::Exhausted)?);
        }
        let (is_first, table) = (claim.messages.is_empty(), claim.table.as_mut().ok_or(Status::Exhausted)?);
        let before = self.configuration.read(address, offset::COMMAND) as u16 & command::ALL;
        set_command(&mut self.configuration, &self.functions[place], before | command::MEMORY);
        let at_word = |number: u16, word: u64| {
            (base - first + offset + u64::from(number) * ENTRY_BYTES + word * WORD_BYTES) as usize
        };
        if is_first {
            // Messages of an owner before this one have lines that may be somebody else's by now.
            (0..count).for_each(|other| table.write_u32(at_word(other, MASK), 1));
        }
        for (word, value) in (0..).zip(pci::entry(line.message)) {
            table.write_u32(at_word(number, word), value);
        }
        set_command(&mut self.configuration, &self.functions[place], before);
        pci::send_from_table(&mut self.configuration, address, at);
        Ok(())
    }

    /// Memory that the function may use, and the address by which it knows that.
    pub fn pages(&mut self, thread: Uid, place: u32, log2: u8) -> Result<(u64, Fpage)> {
        let log2 = memory::block_log2(log2)?;
        let place = self.own(thread, place)?;
        let (claim, address) = (&mut self.claims[place], self.functions[place].address);
        let bytes: u64 = claim.lent.iter().map(|lent| 1 << lent.fpage().log2()).sum();
        if claim.lent.len() >= BLOCKS_MAX || bytes + (1 << log2) > BYTES_MAX {
            return Err(Status::Exhausted);
        }
        let mut block = match claim.free.iter().position(|block| block.log2() == log2) {
            Some(at) => claim.free.swap_remove(at),
            None => Upstream(rt::home()).block(log2).ok_or(Status::Exhausted)?,
        };
        block.bytes_mut().fill(0);
        let Ok(known_as) = self.iommus.give(place, address, &mut claim.space, block.physical(), log2) else {
            if self.iommus.allows(place) {
                claim.free.push(block);
            }
            // If its IOMMU is broken, the function may reach the block for ever, so nobody gets it.
            self.silence_unchecked();
            return Err(Status::Exhausted);
        };
        let lent = block.lend();
        let item = (known_as, lent.fpage().with_rights(Rights::RW));
        claim.lent.push(lent);
        Ok(item)
    }

    /// Ends a claim. The function is silenced first.
    pub fn release(&mut self, place: u32) {
        let place = place as usize;
        let (Some(function), Some(claim)) = (self.functions.get(place), self.claims.get_mut(place)) else {
            return;
        };
        set_command(&mut self.configuration, function, command::NO_INTERRUPT);
        pci::send_none(&mut self.configuration, function.address);
        let line = claim.has_line.then(|| Fpage::interrupt(function.line));
        let messages = claim.messages.iter().map(|(_, line)| Fpage::interrupt(line.number));
        for part in claim.parts.into_iter().flatten().chain(line).chain(messages) {
            // A flush of one's own cannot fail but for lack of memory, and then whoever had it is gone.
            let _ = sys::flush(part.with_rights(Rights::RWX));
        }
        (claim.has_line, claim.is_given) = (false, [false; BARS]);
        claim.messages.drain(..).for_each(|(_, line)| self.lines.give_back(line));
        let is_over = claim.space.take().is_none_or(|space| self.iommus.take_back(space).is_ok());
        let blocks = claim.lent.drain(..).map(Lent::reclaim);
        if is_over {
            claim.free.extend(blocks);
        } else {
            // The function may reach them for ever, so nobody gets them.
            blocks.for_each(drop);
        }
        claim.owner = None;
        self.silence_unchecked();
    }

    /// Functions behind an IOMMU that has stopped doing what it is told use no memory any more.
    fn silence_unchecked(&mut self) {
        for (place, function) in self.functions.iter().enumerate() {
            if !self.iommus.allows(place) {
                set_command(&mut self.configuration, function, command::NO_INTERRUPT);
            }
        }
    }
}

/// Whether a base address register leads to a page with the function's table of messages.
fn is_with_table(function: &Function, number: usize) -> bool {
    match function.messages {
        Some(Messages::Table { bar, .. }) => {
            pci::share_a_page(function.bars[number], function.bars[usize::from(bar)])
        }
        _ => false,
    }
}

/// Sets the driver's bits of the command register, and leaves the others.
fn set_command(configuration: &mut ConfigurationSpaces, function: &Function, bits: u16) {
    let before = configuration.read(function.address, offset::COMMAND) & 0xffff;
    // The status is in the upper half, where ones clear bits.
    configuration.write(
        function.address,
        offset::COMMAND,
        before & !u32::from(command::ALL) | u32::from(bits),
    );
    // A function that answers this has brought to memory all that it wrote before.
    configuration.read(function.address, offset::COMMAND);
}

/// Words for a person about an access that was refused, unless there were some already.
fn report(
    functions: &[Function],
    claims: &mut [Claim],
    strangers: &mut Vec<u16>,
    fault: Fault,
) -> Option<String> {
    let address = Address(fault.source);
    let wanted = if fault.is_write { "write to" } else { "read from" };
    let rest = format!("wanted to {wanted} {:#x}, which is not its own", fault.address);
    let Some(place) = functions.iter().position(|function| function.address == address) else {
        if strangers.contains(&fault.source) || strangers.len() >= STRANGERS_MAX {
            return None;
        }
        strangers.push(fault.source);
        return Some(format!("device {address}, which nobody has found, {rest}"));
    };
    let claim = &mut claims[place];
    let now_ns = time::now_ns();
    if claim.is_reported || claim.reported_ns.is_some_and(|last| now_ns - last < REPORTS_NS) {
        return None;
    }
    (claim.is_reported, claim.reported_ns) = (true, Some(now_ns));
    Some(match claim.owner {
        None => format!("device {address}, which nobody drives, {rest}"),
        Some(owner) => match process::task_of(rt::home(), owner) {
            Ok(task) => format!("device {address}, driven by task {}, {rest}", task.number()),
            Err(_) => format!("device {address}, whose driver has ended, {rest}"),
        },
    })
}
