//! A unit that does what the specification says, and nothing more: it keeps whatever it has found until it is told to forget it, and what is
//! written to memory comes to it when it must. With [`Lies`] its registers say anything.

use crate::Hardware;
use crate::registers::{
    CAPABILITY, COMMAND, CONTEXT, EXTENDED, FAULTS, PROTECTED, ROOT, STATUS, VERSION, command, context,
    faults, record, translations,
};
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

/// Numbers that a seed leads to.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// How a unit is made.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub levels: u32,
    pub width: u32,
    /// Log2 of the numbers of domains: 4, 6, 8 or more.
    pub domains_log2: u32,
    pub keeps_absence: bool,
    pub has_buffer: bool,
    pub protects: bool,
    pub records: usize,
    /// Pages that there are for tables.
    pub pages: usize,
}

/// An ordinary one.
pub const ORDINARY: Kind = Kind {
    levels: 3,
    width: 39,
    domains_log2: 8,
    keeps_absence: false,
    has_buffer: false,
    protects: false,
    records: 4,
    pages: 4096,
};

/// Things that registers say and do.
#[derive(Clone, Debug)]
pub enum Lies {
    /// The truth.
    None,
    /// Of so many commands, the last is never done.
    After(u32),
    /// It answers that it has forgotten nothing: about context tables, or about translations.
    Undone { contexts: bool },
    /// A read says anything, of a thousand so many times.
    Anything(Random, u64),
}

type Page = [u64; 512];

/// Offsets that the capability says.
const TRANSLATIONS: usize = 0x100;
/// See [`TRANSLATIONS`].
const RECORDS: usize = 0x200;

#[derive(Debug)]
pub struct Model {
    kind: Kind,
    pub lies: Lies,
    now_ns: u64,
    registers: BTreeMap<usize, u32>,
    pub records: Vec<[u32; 4]>,
    /// Root table that it has taken.
    root: u64,
    /// Pages as the processor wrote them, and as the unit sees them.
    written: BTreeMap<u64, Page>,
    seen: BTreeMap<u64, Page>,
    /// Pages that the driver has.
    pub taken: BTreeSet<u64>,
    next_page: u64,
    /// Of each function, the context entry that is kept: none where it keeps that there is none.
    contexts: BTreeMap<u16, Option<[u64; 2]>>,
    /// Of each domain's number and page, the entry that is kept, and all tables on the way there.
    kept: BTreeMap<(u16, u64), u64>,
    ways: BTreeMap<u16, BTreeSet<u64>>,
}

impl Model {
    pub fn new(kind: Kind) -> Model {
        let mut registers = BTreeMap::from([(VERSION, 0x10)]);
        let bit = |is: bool, number: u32| u64::from(is) << number;
        let capability = u64::from((kind.domains_log2 - 4) / 2)
            | bit(kind.has_buffer, 4)
            | bit(kind.protects, 5)
            | bit(kind.keeps_absence, 7)
            | 1 << (8 + kind.levels - 2)
            | u64::from(kind.width - 1) << 16
            | (RECORDS as u64 / 16) << 24
            | (kind.records as u64 - 1) << 40;
        let extended = (TRANSLATIONS as u64 / 16) << 8;
        for (at, value) in [(CAPABILITY, capability), (EXTENDED, extended)] {
            registers.insert(at, value as u32);
            registers.insert(at + 4, (value >> 32) as u32);
        }
        Model {
            kind,
            lies: Lies::None,
            now_ns: 0,
            registers,
            records: vec![[0; 4]; kind.records],
            root: 0,
            written: BTreeMap::new(),
            seen: BTreeMap::new(),
            taken: BTreeSet::new(),
            next_page: 0x10_0000,
            contexts: BTreeMap::new(),
            kept: BTreeMap::new(),
            ways: BTreeMap::new(),
        }
    }

    /// A unit that has been in use: it translates by tables of somebody else's, takes commands from a queue, and protects memory.
    pub fn used(kind: Kind) -> Model {
        let mut model = Model::new(kind);
        model.registers.insert(STATUS, command::TRANSLATE | command::QUEUE | command::TAKE_ROOT);
        model.registers.insert(PROTECTED, 1 << 31 | 1);
        // Function 0:1.0 and a page of its domain, as they were once.
        model.contexts.insert(8, Some([0x7000 | 1, 1 << 8 | 1]));
        model.kept.insert((1, 5), 0x9000 | 3);
        model
    }

    pub fn get(&self, at: usize) -> u32 {
        self.registers.get(&at).copied().unwrap_or(0)
    }

    fn word(&self, page: u64, index: usize) -> u64 {
        self.seen.get(&page).map_or(0, |page| page[index])
    }

    /// Where a device's access leads to. What is refused leaves a record.
    pub fn access(&mut self, source: u16, address: u64, is_write: bool) -> Option<u64> {
        if self.get(STATUS) & command::TRANSLATE == 0 {
            return Some(address);
        }
        let found = self.translated(source, address).filter(|entry| entry >> u32::from(is_write) & 1 != 0);
        if found.is_none() {
            self.refuse(source, address, is_write);
        }
        found.map(|entry| entry & !0xfff | address & 0xfff)
    }

    fn translated(&mut self, source: u16, address: u64) -> Option<u64> {
        let context = match self.contexts.get(&source) {
            Some(kept) => *kept,
            None => {
                let found = self.context(source);
                if found.is_some() || self.kind.keeps_absence {
                    self.contexts.insert(source, found);
                }
                found
            }
        }?;
        let number = (context[1] >> 8) as u16;
        assert_eq!(context[0] & 0xe, 0, "passes on what it is asked, or is told not to report faults");
        assert_eq!(context[1] & 7, u64::from(self.kind.levels) - 2, "levels that the unit does not have");
        assert!(!self.kind.keeps_absence || number != 0, "the unit's own domain");
        assert!(u32::from(number) < 1 << self.kind.domains_log2, "no such domain");
        if address >> self.kind.width.min(12 + 9 * self.kind.levels) != 0 {
            return None;
        }
        let page = address >> 12;
        if let Some(entry) = self.kept.get(&(number, page)) {
            return Some(*entry);
        }
        let mut table = context[0] & !0xfff;
        for level in (1..=self.kind.levels).rev() {
            assert!(self.taken.contains(&table), "walks through memory that is not its own");
            self.ways.entry(number).or_default().insert(table);
            let entry = self.word(table, (page >> (9 * (level - 1)) & 511) as usize);
            assert_eq!(entry & 0xffc, 0, "bits that are reserved, or a large page");
            if level == 1 {
                if entry != 0 || self.kind.keeps_absence {
                    self.kept.insert((number, page), entry);
                }
                return Some(entry);
            }
            if entry & 3 == 0 {
                if self.kind.keeps_absence {
                    self.kept.insert((number, page), 0);
                }
                return None;
            }
            table = entry & !0xfff;
        }
        None
    }

    fn context(&self, source: u16) -> Option<[u64; 2]> {
        assert!(self.taken.contains(&self.root), "the root table is not its own");
        let entry = self.word(self.root, 2 * usize::from(source >> 8));
        let table = entry & !0xfff;
        if entry & 1 == 0 {
            return None;
        }
        assert!(self.taken.contains(&table), "a context table that is not its own");
        let at = 2 * usize::from(source & 255);
        let words = [self.word(table, at), self.word(table, at + 1)];
        (words[0] & 1 != 0).then_some(words)
    }

    fn refuse(&mut self, source: u16, address: u64, is_write: bool) {
        let status = self.get(FAULTS);
        match self.records.iter_mut().find(|words| words[3] & record::FAULT == 0) {
            Some(words) => {
                let kind = if is_write { 0 } else { record::IS_READ };
                *words = [
                    (address & !0xfff) as u32,
                    (address >> 32) as u32,
                    source.into(),
                    record::FAULT | kind | 6,
                ];
                self.registers.insert(FAULTS, status | faults::PENDING);
            }
            None => {
                self.registers.insert(FAULTS, status | faults::LOST);
            }
        }
    }

    fn forget_domain(&mut self, number: u16) {
        self.kept.retain(|(other, _), _| *other != number);
        self.ways.remove(&number);
    }

    fn command(&mut self, value: u32) {
        let status = self.get(STATUS);
        let mut next = value & (command::TRANSLATE | command::QUEUE) | status & command::TAKE_ROOT;
        if value & command::TAKE_ROOT != 0 {
            self.root = u64::from(self.get(ROOT)) | u64::from(self.get(ROOT + 4)) << 32;
            next |= command::TAKE_ROOT;
        }
        if value & command::EMPTY_BUFFER != 0 {
            assert!(self.kind.has_buffer);
            self.seen = self.written.clone();
        }
        self.registers.insert(STATUS, next);
    }

    /// Whether the unit never answers this command.
    fn is_ignored(&mut self) -> bool {
        match &mut self.lies {
            Lies::After(0) => true,
            Lies::After(left) => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }
}

impl Hardware for Model {
    fn read(&mut self, at: usize) -> u32 {
        assert!(at < crate::REGISTERS_BYTES && at.is_multiple_of(4));
        if let Lies::Anything(random, rate) = &mut self.lies
            && random.below(1000) < *rate
        {
            return (random.below(1 << 16) << 16 | random.below(1 << 16)) as u32;
        }
        match at.checked_sub(RECORDS) {
            Some(at) if at < 16 * self.records.len() => self.records[at / 16][at / 4 % 4],
            _ => self.get(at),
        }
    }

    fn write(&mut self, at: usize, value: u32) {
        assert!(at < crate::REGISTERS_BYTES && at.is_multiple_of(4));
        if matches!(self.lies, Lies::Anything(..)) {
            // It may have said that registers are elsewhere, so what this means nobody knows.
            self.registers.insert(at, value);
            return;
        }
        match at {
            COMMAND => {
                if !self.is_ignored() {
                    self.command(value);
                }
            }
            FAULTS => {
                let status = self.get(FAULTS) & !(value & faults::LOST);
                self.registers.insert(FAULTS, status);
            }
            PROTECTED => {
                self.registers.insert(PROTECTED, if value >> 31 != 0 { 1 << 31 | 1 } else { 0 });
            }
            _ if at == CONTEXT + 4 => {
                if self.is_ignored() {
                    self.registers.insert(at, value);
                    return;
                }
                assert_eq!(self.get(STATUS) & command::QUEUE, 0, "commands come from the queue");
                assert!(!self.kind.has_buffer || self.seen == self.written, "the buffer is full");
                let number = self.get(CONTEXT) as u16;
                match value & (3 << 29) {
                    context::ALL => self.contexts.clear(),
                    context::DOMAIN => self
                        .contexts
                        .retain(|_, kept| kept.is_some_and(|words| (words[1] >> 8) as u16 != number)),
                    _ => panic!("{value:#x}"),
                }
                let is_done = !matches!(self.lies, Lies::Undone { contexts: true });
                self.registers
                    .insert(at, value & !context::FORGET & !context::DONE | u32::from(is_done) << 27);
            }
            _ if at == TRANSLATIONS + translations::UPPER => {
                if self.is_ignored() {
                    self.registers.insert(at, value);
                    return;
                }
                assert_eq!(
                    value & translations::DRAIN,
                    translations::DRAIN,
                    "what is under way may still come"
                );
                match value & (3 << 28) {
                    translations::ALL => (self.kept, self.ways) = (BTreeMap::new(), BTreeMap::new()),
                    translations::DOMAIN => self.forget_domain(value as u16),
                    _ => panic!("{value:#x}"),
                }
                let is_done = !matches!(self.lies, Lies::Undone { contexts: false });
                let rest = value & !translations::FORGET & !translations::DONE;
                self.registers.insert(at, rest | u32::from(is_done) << 25);
            }
            _ => match at.checked_sub(RECORDS) {
                Some(at) if at < 16 * self.records.len() => {
                    let word = &mut self.records[at / 16][at / 4 % 4];
                    *word &= !(value & record::FAULT);
                    if self.records.iter().all(|words| words[3] & record::FAULT == 0) {
                        let status = self.get(FAULTS) & !faults::PENDING;
                        self.registers.insert(FAULTS, status);
                    }
                }
                _ => {
                    self.registers.insert(at, value);
                }
            },
        }
    }

    fn take_page(&mut self) -> Option<u64> {
        if self.taken.len() >= self.kind.pages {
            return None;
        }
        // One that was given back is used first, as it is for a unit that still has it.
        let free = self.written.keys().find(|page| !self.taken.contains(page)).copied();
        let page = free.unwrap_or_else(|| {
            self.next_page += 0x1000;
            self.next_page
        });
        self.taken.insert(page);
        (0..512).for_each(|index| self.store(page, index, 0));
        Some(page)
    }

    fn give_back(&mut self, page: u64) {
        assert!(self.taken.remove(&page), "it was not taken");
        assert!(self.ways.values().all(|way| !way.contains(&page)), "the unit still knows a table");
        let is_kept = self.contexts.values().flatten().any(|words| words[0] & !0xfff == page);
        assert!(!is_kept, "the unit still knows a first table");
    }

    fn load(&mut self, page: u64, index: usize) -> u64 {
        assert!(self.taken.contains(&page), "reads memory that is not its own");
        self.written[&page][index]
    }

    fn store(&mut self, page: u64, index: usize, entry: u64) {
        assert!(self.taken.contains(&page), "writes to memory that is not its own");
        self.written.entry(page).or_insert([0; 512])[index] = entry;
        if !self.kind.has_buffer {
            self.seen.entry(page).or_insert([0; 512])[index] = entry;
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn pause(&mut self) {
        self.now_ns += 1_000_000;
    }
}
