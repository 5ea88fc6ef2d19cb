//! A virtio device behind PCI, with memory of its own and time. It does what the standard says, and watches that the driver keeps to its registers and to its
//! pages. With [`Lies`] it does not: then the driver may be told anything at any time.
#![allow(unsafe_code)]

use crate::pool::{PAGE_LOG2, PAGES};
use crate::{Broken, Line, Place, Pool, Registers, Width};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::thread_local;
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

    pub fn word(&mut self) -> u32 {
        let (high, low) = (self.below(1 << 16), self.below(1 << 16));
        // Numbers near the ends are those that matter.
        match self.below(4) {
            0 => (high % 32) as u32,
            1 => u32::MAX - (high % 32) as u32,
            _ => (high << 16 | low) as u32,
        }
    }

    /// True as often as so many of a thousand times.
    pub fn is_per_mille(&mut self, rate: u64) -> bool {
        self.below(1000) < rate
    }
}

/// How often, of a thousand times, something is not as it should be.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lies {
    /// Configuration space is read.
    pub configuration: u64,
    /// A register is read.
    pub registers: u64,
    /// Memory is written to between two accesses.
    pub memory: u64,
    /// A buffer is never given back.
    pub never: u64,
    /// A buffer is given back before anything was done.
    pub nothing: u64,
    /// A buffer is given back by another number.
    pub ids: u64,
    /// A buffer is given back with another length.
    pub lengths: u64,
    /// More buffers are given back than there were.
    pub jumps: u64,
    /// A request ends with a status that is another.
    pub statuses: u64,
    /// The interrupt comes for no reason.
    pub spurious: u64,
}

/// Kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Disk,
    Card,
    Entropy,
    /// A console whose other side sends back all that it gets.
    Console,
}

#[derive(Clone, Copy, Default, Debug)]
struct Queue {
    size: u16,
    /// Number of the message that it sends, plus one.
    message: u16,
    is_enabled: bool,
    descriptors: u64,
    driver: u64,
    device: u64,
    /// Numbers of the next entry of each ring.
    taken: u16,
    used: u16,
}

/// Memory in which the pool is, between two pages that nobody may touch.
pub struct Memory {
    start: *mut u8,
}

const PAGE: usize = 1 << PAGE_LOG2;
const GUARD: u8 = 0xa5;
/// Address by which the device knows the pool.
pub const DEVICE_ADDRESS: u64 = 0x1_2345_6000;

fn layout() -> Layout {
    Layout::from_size_align((PAGES + 2) * PAGE, PAGE).unwrap()
}

thread_local! {
    static POOL: RefCell<Option<Pool>> = const { RefCell::new(None) };
}

/// Keeper of this thread's pool.
#[derive(Debug)]
pub struct Own;

impl Place for Own {
    fn with<T>(action: impl FnOnce(&mut Option<Pool>) -> T) -> T {
        POOL.with_borrow_mut(action)
    }
}

impl Memory {
    /// Memory with this thread's pool in it.
    fn new() -> Memory {
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout()) };
        assert!(!start.is_null());
        for guard in [0, (PAGES + 1) * PAGE] {
            // SAFETY: the page lies in what was allocated.
            unsafe { start.add(guard).write_bytes(GUARD, PAGE) };
        }
        let address = start.expose_provenance() + PAGE;
        // SAFETY: the pages are there until the memory is dropped, and then no driver is left.
        let pool = unsafe { Pool::new(address as u64, DEVICE_ADDRESS) };
        POOL.set(Some(pool));
        Memory { start }
    }

    /// Place of bytes with a device's address; `None` if one of them is not the pool's.
    fn place(&self, address: u64, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(address.checked_sub(DEVICE_ADDRESS)?).ok()?;
        let is_inside = at.checked_add(len).is_some_and(|end| end <= PAGES * PAGE);
        // SAFETY: it lies in what was allocated.
        is_inside.then(|| unsafe { self.start.add(PAGE + at) })
    }

    pub fn load<const LEN: usize>(&self, address: u64) -> Option<[u8; LEN]> {
        let from = self.place(address, LEN)?;
        // SAFETY: the bytes are there, and no reference to them is.
        Some(std::array::from_fn(|index| unsafe { from.add(index).read_volatile() }))
    }

    pub fn store(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let to = self.place(address, bytes.len())?;
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: as in `load`.
            unsafe { to.add(index).write_volatile(*byte) };
        }
        Some(())
    }

    fn load_u16(&self, address: u64) -> Option<u16> {
        self.load(address).map(u16::from_le_bytes)
    }

    /// Fails if somebody has written beside the pool.
    pub fn check(&self) {
        for guard in [0, (PAGES + 1) * PAGE] {
            // SAFETY: the page lies in what was allocated, and nobody writes there.
            let page = unsafe { std::slice::from_raw_parts(self.start.add(guard), PAGE) };
            assert!(page.iter().all(|&byte| byte == GUARD), "written beside the pool");
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        POOL.set(None);
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start, layout()) };
    }
}

/// The device.
pub struct Model {
    pub kind: Kind,
    pub lies: Lies,
    pub random: Random,
    pub configuration: [u8; 256],
    pub features: u64,
    pub queue_size: u16,
    pub doorbell: u16,
    /// Registers that are its own.
    pub own: Vec<u8>,
    pub has_reset: bool,
    pub takes_features: bool,
    /// Whether a queue can be told which message it sends.
    pub takes_messages: bool,
    pub generation_step: u8,
    /// Status, number and length that each answer has instead of its own.
    pub answer_status: Option<u8>,
    pub answer_id: Option<u32>,
    pub answer_len: Option<u32>,
    pub disk: Vec<u8>,
    /// Frames that were sent, and come back.
    pub wire: VecDeque<Vec<u8>>,
    /// Random bytes so far.
    pub told: Vec<u8>,
    pub memory: Memory,
    pub now_ns: u64,
    pub is_time_still: bool,
    /// Accesses so far: a driver that hangs has too many.
    pub accesses: u64,
    pub accesses_max: u64,
    driver_features: u64,
    half: u32,
    driver_half: u32,
    status: u32,
    generation: u8,
    selected: u16,
    queues: [Queue; 2],
}

/// Base address register with all registers, and one with nothing that matters.
pub const BAR: u8 = 4;
const OTHER_BAR: u8 = 1;
pub const BAR_BYTES: u64 = 0x4000;
const ISR: usize = 0x1000;
const DEVICE: usize = 0x2000;
const NOTIFY: usize = 0x3000;
pub const NOTIFY_BYTES: u32 = 0x100;
const MULTIPLIER: usize = 4;

/// Places of the capabilities in configuration space, and their types.
pub const CAPABILITIES: [(usize, u8); 4] = [(0x40, 1), (0x54, 2), (0x70, 3), (0x84, 4)];

const VERSION_1: u64 = 1 << 32;
const ACCESS_PLATFORM: u64 = 1 << 33;
/// Offered, and not to be accepted.
const UNWANTED: u64 = 1 << 9 | 1 << 28 | 1 << 29;

impl Model {
    pub fn new(seed: u64, kind: Kind, sectors: u64) -> Model {
        let mut own = vec![0; 0x40];
        match kind {
            Kind::Disk => own[..8].copy_from_slice(&sectors.to_le_bytes()),
            Kind::Card => own[..6].copy_from_slice(&[2, 3, 5, 7, 11, 13]),
            Kind::Entropy => own.clear(),
            Kind::Console => {}
        }
        let mut configuration = [0; 256];
        configuration[6] = 0x10;
        configuration[0x34] = CAPABILITIES[0].0 as u8;
        for (index, (at, kind)) in CAPABILITIES.into_iter().enumerate() {
            let next = CAPABILITIES.get(index + 1).map_or(0, |next| next.0 as u8);
            let (offset, len) = match kind {
                1 => (0, 56),
                2 => (NOTIFY, NOTIFY_BYTES as usize),
                3 => (ISR, 1),
                _ => (DEVICE, own.len()),
            };
            configuration[at..at + 5].copy_from_slice(&[9, next, if kind == 2 { 20 } else { 16 }, kind, BAR]);
            configuration[at + 8..at + 12].copy_from_slice(&(offset as u32).to_le_bytes());
            configuration[at + 12..at + 16].copy_from_slice(&(len as u32).to_le_bytes());
            if kind == 2 {
                configuration[at + 16..at + 20].copy_from_slice(&(MULTIPLIER as u32).to_le_bytes());
            }
        }
        let disk_bytes = if kind == Kind::Disk { 512 * sectors.min(64) as usize } else { 0 };
        Model {
            kind,
            lies: Lies::default(),
            random: Random(seed),
            configuration,
            features: VERSION_1 | ACCESS_PLATFORM | UNWANTED | 1 << 5 | 1 << 16,
            queue_size: 256,
            doorbell: 3,
            own,
            has_reset: true,
            takes_features: true,
            takes_messages: true,
            generation_step: 0,
            answer_status: None,
            answer_id: None,
            answer_len: None,
            disk: vec![0; disk_bytes],
            wire: VecDeque::new(),
            told: Vec::new(),
            memory: Memory::new(),
            now_ns: 5,
            is_time_still: false,
            accesses: 0,
            accesses_max: 1_000_000,
            driver_features: 0,
            half: 0,
            driver_half: 0,
            status: 0,
            generation: 0,
            selected: 0,
            queues: [Queue::default(); 2],
        }
    }

    pub fn shared(self) -> Shared {
        Shared(Rc::new(RefCell::new(self)))
    }

    fn is_liar(&self) -> bool {
        self.lies.configuration + self.lies.registers + self.lies.memory > 0
    }

    /// Happens at each access: a driver that goes on for ever is found, and memory may change.
    fn tick(&mut self) {
        self.accesses += 1;
        assert!(self.accesses < self.accesses_max, "the driver does not give up");
        if self.random.is_per_mille(self.lies.memory) {
            self.scribble();
        }
    }

    /// Writes somewhere in the pool, mostly where a queue is.
    fn scribble(&mut self) {
        let queue = self.queues[self.random.below(2) as usize];
        let near = [queue.descriptors, queue.driver, queue.device, queue.device, DEVICE_ADDRESS];
        let base = near[self.random.below(5) as usize];
        let within = if base == DEVICE_ADDRESS { (PAGES * PAGE) as u64 } else { 256 };
        let address = base.wrapping_add(self.random.below(within));
        let bytes = self.random.word().to_le_bytes();
        let len = 1 + self.random.below(4) as usize;
        let _ = self.memory.store(address, &bytes[..len]);
    }

    fn read_register(&mut self, at: usize) -> u32 {
        let queue = self.queues.get(usize::from(self.selected)).copied().unwrap_or_default();
        match at {
            4 if self.half < 2 => (self.features >> (32 * self.half)) as u32,
            20 => self.status,
            21 => {
                self.generation = self.generation.wrapping_add(self.generation_step);
                self.generation.into()
            }
            24 if queue.is_enabled => queue.size.into(),
            24 => self.queue_size.into(),
            26 => queue.message.wrapping_sub(1).into(),
            28 => queue.is_enabled.into(),
            30 => u32::from(self.doorbell) + u32::from(self.selected),
            ISR => 1,
            DEVICE..NOTIFY => 0,
            _ => 0,
        }
    }

    fn write_register(&mut self, at: usize, value: u32) {
        let selected = usize::from(self.selected);
        let low = |old: u64| old >> 32 << 32 | u64::from(value);
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        match at {
            0 => self.half = value,
            8 => self.driver_half = value,
            12 if self.driver_half < 2 => {
                let shift = 32 * self.driver_half;
                self.driver_features =
                    self.driver_features & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            20 => self.write_status(value),
            22 => self.selected = value as u16,
            NOTIFY.. => {
                let number = value as usize;
                let is_right =
                    at == NOTIFY + MULTIPLIER * (usize::from(self.doorbell) + number) && number < 2;
                assert!(is_right || self.is_liar(), "a doorbell that is not the queue's");
                if number < 2 {
                    self.watch(number);
                    // Some of it is done at once, the rest when the driver waits.
                    if self.random.below(2) == 0 {
                        self.work();
                    }
                }
            }
            _ if selected >= 2 => {}
            24 => self.queues[selected].size = value as u16,
            26 if self.takes_messages => self.queues[selected].message = (value as u16).wrapping_add(1),
            26 => {}
            28 => self.queues[selected].is_enabled = value != 0,
            32 => self.queues[selected].descriptors = low(self.queues[selected].descriptors),
            36 => self.queues[selected].descriptors = high(self.queues[selected].descriptors),
            40 => self.queues[selected].driver = low(self.queues[selected].driver),
            44 => self.queues[selected].driver = high(self.queues[selected].driver),
            48 => self.queues[selected].device = low(self.queues[selected].device),
            52 => self.queues[selected].device = high(self.queues[selected].device),
            _ => assert!(self.is_liar(), "register {at:#x} only tells"),
        }
    }

    fn write_status(&mut self, value: u32) {
        if value == 0 {
            self.queues = [Queue::default(); 2];
            self.status = if self.has_reset { 0 } else { 0x80 };
            return;
        }
        self.status = value;
        if value & 8 != 0 {
            if !self.takes_features {
                self.status &= !8;
            }
            let wanted = VERSION_1 | ACCESS_PLATFORM;
            let is_right = self.driver_features & !self.features == 0
                && self.driver_features & UNWANTED == 0
                && self.driver_features & wanted == self.features & wanted;
            assert!(is_right || self.is_liar(), "features {:#x}", self.driver_features);
        }
    }

    /// Descriptors of a chain: address, length, and whether the device writes there. `None` if they make no sense.
    fn chain(&self, queue: Queue, head: u16) -> Option<Vec<(u64, usize, bool)>> {
        let mut chain = Vec::new();
        let mut index = head;
        while chain.len() < usize::from(queue.size) {
            if index >= queue.size {
                return None;
            }
            let bytes: [u8; 16] = self.memory.load(queue.descriptors + 16 * u64::from(index))?;
            let address = u64::from_le_bytes(bytes[..8].try_into().ok()?);
            let len = u32::from_le_bytes(bytes[8..12].try_into().ok()?) as usize;
            let flags = u16::from_le_bytes(bytes[12..14].try_into().ok()?);
            chain.push((address, len, flags & 2 != 0));
            if flags & 1 == 0 {
                return Some(chain);
            }
            index = u16::from_le_bytes(bytes[14..16].try_into().ok()?);
        }
        None
    }

    fn head(&self, queue: Queue, number: u16) -> Option<u16> {
        self.memory.load_u16(queue.driver + 4 + 2 * u64::from(number % queue.size.max(1)))
    }

    /// Looks at what the driver has added last, which nobody has changed yet: all of it must be in pages that are in use.
    fn watch(&self, number: usize) {
        if self.lies.configuration > 0 {
            // It may have said that its registers are elsewhere, and does not know what was written there.
            return;
        }
        let queue = self.queues[number];
        assert!(queue.is_enabled && matches!(queue.size, 8 | 16));
        let in_use = Own::with(|pool| pool.as_ref().map_or(0, Pool::in_use));
        let last = self.memory.load_u16(queue.driver + 2).expect("the ring is in the pool").wrapping_sub(1);
        let head = self.head(queue, last).expect("the ring is in the pool");
        let chain = self.chain(queue, head).expect("a chain that ends");
        for (address, len, _) in chain {
            assert!(len > 0 && self.memory.place(address, len).is_some(), "memory of somebody else");
            let at = address - DEVICE_ADDRESS;
            let pages = at >> PAGE_LOG2..=(at + len as u64 - 1) >> PAGE_LOG2;
            assert!(pages.into_iter().all(|page| in_use >> page & 1 != 0), "a page that is free");
        }
    }

    /// Does what there is to do.
    fn work(&mut self) {
        // Frames that are sent come back, so that queue is first.
        for number in [1, 0] {
            for _ in 0..32 {
                if !self.work_once(number) {
                    break;
                }
            }
        }
    }

    fn work_once(&mut self, number: usize) -> bool {
        let queue = self.queues[number];
        let Some(end) = self.memory.load_u16(queue.driver.wrapping_add(2)) else { return false };
        let has_frame = !self.wire.is_empty() || self.lies.nothing > 0 && self.random.below(4) == 0;
        let waits = matches!(self.kind, Kind::Card | Kind::Console) && number == 0 && !has_frame;
        if !queue.is_enabled || queue.taken == end || waits {
            return false;
        }
        self.queues[number].taken = queue.taken.wrapping_add(1);
        let Some(head) = self.head(queue, queue.taken) else { return false };
        let Some(chain) = self.chain(queue, head) else { return true };
        if self.random.is_per_mille(self.lies.never) {
            return true;
        }
        let written = match self.random.is_per_mille(self.lies.nothing) {
            true => Some(self.random.below(5000) as usize),
            false => self.serve(number, &chain),
        };
        let (mut id, mut len) = (u32::from(head), written.unwrap_or(0) as u32);
        if self.random.is_per_mille(self.lies.ids) {
            id = self.random.word();
        }
        if self.random.is_per_mille(self.lies.lengths) {
            len = self.random.word();
        }
        let (id, len) = (self.answer_id.unwrap_or(id), self.answer_len.unwrap_or(len));
        let entry = queue.device + 4 + 8 * u64::from(queue.used % queue.size.max(1));
        let _ = self.memory.store(entry, &id.to_le_bytes());
        let _ = self.memory.store(entry + 4, &len.to_le_bytes());
        let step = if self.random.is_per_mille(self.lies.jumps) { self.random.word() as u16 } else { 1 };
        let used = queue.used.wrapping_add(step);
        self.queues[number].used = used;
        let _ = self.memory.store(queue.device + 2, &used.to_le_bytes());
        true
    }

    /// Serves a request; returns how many bytes were written.
    fn serve(&mut self, number: usize, chain: &[(u64, usize, bool)]) -> Option<usize> {
        let mut given = Vec::new();
        for &(address, len, _) in chain.iter().filter(|part| !part.2) {
            self.memory.place(address, len)?;
            given.extend((0..len).map(|at| self.memory.load::<1>(address + at as u64).unwrap_or([0])[0]));
        }
        let room: usize = chain.iter().filter(|part| part.2).map(|part| part.1).sum();
        let room = room.min(PAGES * PAGE);
        let answer = match self.kind {
            Kind::Disk => self.serve_disk(&given, room)?,
            Kind::Card if number == 1 => {
                self.wire.push_back(given.get(12..)?.to_vec());
                Vec::new()
            }
            Kind::Card => [&[0; 12], &self.wire.pop_front()?[..]].concat(),
            Kind::Console if number == 1 => {
                self.wire.push_back(given);
                Vec::new()
            }
            Kind::Console => {
                // Bytes for which there is no room come later.
                let mut bytes = self.wire.pop_front()?;
                let rest = bytes.split_off(bytes.len().min(room));
                if !rest.is_empty() {
                    self.wire.push_front(rest);
                }
                bytes
            }
            Kind::Entropy => {
                let len = 1 + self.random.below(room.max(1) as u64) as usize;
                let bytes: Vec<u8> = (0..len).map(|_| self.random.below(256) as u8).collect();
                self.told.extend(&bytes);
                bytes
            }
        };
        let mut rest = &answer[..];
        for &(address, len, _) in chain.iter().filter(|part| part.2) {
            let (now, later) = rest.split_at(len.min(rest.len()));
            self.memory.store(address, now)?;
            rest = later;
        }
        Some(answer.len())
    }

    fn serve_disk(&mut self, given: &[u8], room: usize) -> Option<Vec<u8>> {
        let kind = u32::from_le_bytes(given.get(..4)?.try_into().ok()?);
        let sector = u64::from_le_bytes(given.get(8..16)?.try_into().ok()?);
        let at = usize::try_from(sector.checked_mul(512)?).ok()?;
        let data = room.checked_sub(1)?;
        let mut answer = vec![0; room];
        let is_there = match kind {
            0 => self.disk.get(at..at.checked_add(data)?).map(|from| answer[..data].copy_from_slice(from)),
            1 => {
                let from = given.get(16..)?;
                self.disk.get_mut(at..at.checked_add(from.len())?).map(|to| to.copy_from_slice(from))
            }
            _ => None,
        };
        answer[data] = if is_there.is_some() { 0 } else { 1 };
        if self.random.is_per_mille(self.lies.statuses) {
            answer[data] = self.random.word() as u8;
        }
        answer[data] = self.answer_status.unwrap_or(answer[data]);
        Some(answer)
    }
}

/// The device, as the driver and the test see it.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<Model>>);

fn bytes_of(width: Width) -> usize {
    match width {
        Width::One => 1,
        Width::Two => 2,
        Width::Four => 4,
    }
}

impl Registers for Shared {
    fn configuration(&self, offset: u8) -> u32 {
        let model = &mut *self.0.borrow_mut();
        model.tick();
        assert!(offset.is_multiple_of(4));
        if model.random.is_per_mille(model.lies.configuration) {
            return model.random.word();
        }
        u32::from_le_bytes(std::array::from_fn(|index| model.configuration[usize::from(offset) + index]))
    }

    fn len_bytes(&self, bar: u8) -> u64 {
        match bar {
            BAR => BAR_BYTES,
            OTHER_BAR => 0x1000,
            _ => 0,
        }
    }

    fn read(&self, bar: u8, at: usize, width: Width) -> u32 {
        let model = &mut *self.0.borrow_mut();
        model.tick();
        let bytes = bytes_of(width);
        assert!(at.is_multiple_of(bytes) && (at + bytes) as u64 <= self.len_bytes(bar), "outside");
        if model.random.is_per_mille(model.lies.registers) {
            return model.random.word();
        }
        if bar != BAR {
            return 0;
        }
        if (DEVICE..DEVICE + model.own.len()).contains(&at) {
            let from = at - DEVICE;
            let mut word = [0; 4];
            word[..bytes].copy_from_slice(&model.own[from..from + bytes]);
            return u32::from_le_bytes(word);
        }
        model.read_register(at)
    }

    fn write(&mut self, bar: u8, at: usize, width: Width, value: u32) {
        let model = &mut *self.0.borrow_mut();
        let bytes = bytes_of(width);
        assert!(at.is_multiple_of(bytes) && (at + bytes) as u64 <= self.len_bytes(bar), "outside");
        let is_known = bar == BAR && !(56..NOTIFY).contains(&at);
        assert!(is_known || model.is_liar(), "a register that there is not");
        if is_known {
            model.write_register(at, value);
        }
        model.tick();
    }
}

impl Line for Shared {
    fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }

    fn wait(&mut self, ns: u64) -> Result<(), Broken> {
        let model = &mut *self.0.borrow_mut();
        model.tick();
        let before: u16 = model.queues.iter().fold(0, |sum, queue| sum.wrapping_add(queue.used));
        model.work();
        let after: u16 = model.queues.iter().fold(0, |sum, queue| sum.wrapping_add(queue.used));
        let is_early = before != after || model.random.is_per_mille(model.lies.spurious);
        if !model.is_time_still {
            model.now_ns += if is_early { 1000.min(ns) } else { ns + 1 };
        }
        Ok(())
    }
}
