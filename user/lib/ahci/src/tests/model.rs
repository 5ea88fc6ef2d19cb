//! A controller with a disk, which does what the standard says, and watches that the driver does. With [`Lies`] it does not: then the driver
//! may be told anything at any time, and is held to one thing only, that the device is told of no memory but its own.

use crate::command::SECTORS_MAX;
use crate::registers::{DISK, Host, Port, control, link, link_control, port_command, reason, task_file};
use crate::{Hardware, MEMORY_BYTES};
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

    fn word(&mut self) -> u32 {
        (self.below(1 << 16) << 16 | self.below(1 << 16)) as u32
    }

    /// True as often as so many of a thousand times.
    fn is_per_mille(&mut self, rate: u64) -> bool {
        self.below(1000) < rate
    }
}

/// How often, of a thousand times, something is not as it should be.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lies {
    /// A register is read.
    pub registers: u64,
    /// A bit of a register is read.
    pub bits: u64,
    /// Memory is written to between two looks.
    pub memory: u64,
    /// A command is never finished.
    pub never: u64,
    /// A command ends with an error, as it may.
    pub errors: u64,
    /// A command ends having moved fewer or more bytes.
    pub lengths: u64,
    /// A pause ends at once, for no reason.
    pub spurious: u64,
    /// A reset does not end.
    pub resets: u64,
}

impl Lies {
    /// Whether the driver can be told something that no controller says.
    fn is_liar(self) -> bool {
        self.registers + self.bits + self.memory + self.resets > 0
    }
}

/// A port.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    list: u64,
    received: u64,
    interrupts: u32,
    enabled: u32,
    command: u32,
    link_control: u32,
    /// The disk has said what it is since the last reset.
    is_ready: bool,
    error: u32,
}

/// A command under way.
#[derive(Clone, Debug)]
struct Work {
    due_ns: u64,
    words: [u8; 20],
    /// Offset of its data in memory, and its length.
    data: Option<(usize, usize)>,
    header: usize,
}

/// The controller, its disk, memory and time.
pub struct Model {
    pub lies: Lies,
    pub random: Random,
    pub disk: Vec<u8>,
    /// The disk's description of itself.
    pub description: [u8; 512],
    pub is_time_still: bool,
    pub now_ns: u64,
    /// Accesses so far: a driver that hangs has too many.
    pub accesses: u64,
    pub physical: u64,
    pub is_narrow: bool,
    /// Port of the disk, if there is one; and what kind of device it says that it is.
    pub disk_at: Option<usize>,
    pub signature: u32,
    /// Flushes that were done.
    pub flushes: usize,
    /// How the driver recovered: resets of the link.
    pub resets: usize,
    sector_bytes: usize,
    memory: Vec<u8>,
    control: u32,
    ports: [Slot; 6],
    work: Option<Work>,
}

/// Port of the disk.
const DISK_AT: usize = 2;
/// Time for a command.
const LATENCY_NS: u64 = 300_000;

impl Model {
    pub fn new(seed: u64, sector_bytes: usize, sectors: usize) -> Model {
        let mut description = [0; 512];
        let mut word =
            |at: usize, value: u16| description[2 * at..][..2].copy_from_slice(&value.to_le_bytes());
        word(83, 0x4400);
        (0..4).for_each(|index| word(100 + index, (sectors as u64 >> (16 * index)) as u16));
        if sector_bytes != 512 {
            word(106, 0x5000);
            word(117, (sector_bytes / 2) as u16);
        }
        Model {
            lies: Lies::default(),
            random: Random(seed),
            disk: vec![0; sector_bytes * sectors],
            description,
            is_time_still: false,
            now_ns: 5,
            accesses: 0,
            physical: 0x1234_5000,
            is_narrow: false,
            disk_at: Some(DISK_AT),
            signature: DISK,
            flushes: 0,
            resets: 0,
            sector_bytes,
            memory: vec![0xa5; MEMORY_BYTES],
            control: 0,
            ports: [Slot::default(); 6],
            work: None,
        }
    }

    fn is_linked(&self, number: usize) -> bool {
        let port = &self.ports[number];
        self.disk_at == Some(number)
            && port.command & port_command::SPIN_UP != 0
            && port.link_control & 0xf == 0
    }

    /// Offset of memory that the driver tells of, which must be its own.
    fn own(&self, address: u64, len: usize, align: u64) -> usize {
        assert!(address.is_multiple_of(align), "{address:#x} is not aligned");
        let at = address.checked_sub(self.physical).expect("memory of somebody else") as usize;
        assert!(at + len <= MEMORY_BYTES, "memory of somebody else");
        at
    }

    fn protocol(&self, is_kept: bool, rule: &str) {
        assert!(is_kept || self.lies.is_liar(), "{rule}");
    }

    fn read_port(&mut self, number: usize, at: usize) -> u32 {
        let port = self.ports[number];
        let is_linked = self.is_linked(number);
        let fields = [Port::Interrupts, Port::Enabled, Port::Command, Port::TaskFile, Port::Signature];
        let more = [Port::Link, Port::LinkControl, Port::Issue];
        let Some(field) = fields.into_iter().chain(more).find(|field| field.at(number as u32) == at) else {
            return 0;
        };
        match field {
            Port::Interrupts => port.interrupts,
            Port::Enabled => port.enabled,
            Port::Command => port.command,
            Port::TaskFile if !is_linked || !port.is_ready => 0x7f,
            Port::TaskFile if self.work.is_some() => 0x50 | task_file::BUSY,
            Port::TaskFile => 0x50 | port.error,
            Port::Signature if port.is_ready => self.signature,
            Port::Signature => u32::MAX,
            Port::Link if is_linked => 0x113,
            Port::LinkControl => port.link_control,
            Port::Issue => u32::from(self.work.is_some()),
            _ => 0,
        }
    }

    fn write_port(&mut self, number: usize, at: usize, value: u32) {
        let register = |field: Port| field.at(number as u32) == at;
        let port = &mut self.ports[number];
        let is_stopped = port.command & (port_command::RUNS | port_command::RECEIVES) == 0;
        let low = |old: u64| old >> 32 << 32 | u64::from(value);
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        if register(Port::Interrupts) {
            port.interrupts &= !value;
        } else if register(Port::Enabled) {
            port.enabled = value;
        } else if register(Port::Command) {
            self.write_command(number, value);
        } else if register(Port::LinkControl) {
            self.write_link(number, value);
        } else if register(Port::Issue) {
            self.issue(number, value);
        } else if register(Port::LinkErrors) {
        } else {
            match () {
                () if register(Port::List) => port.list = low(port.list),
                () if register(Port::ListHigh) => port.list = high(port.list),
                () if register(Port::Received) => port.received = low(port.received),
                () if register(Port::ReceivedHigh) => port.received = high(port.received),
                () => panic!("a register that is not known, or that only tells"),
            }
            self.protocol(is_stopped, "addresses change while the port works");
        }
    }

    fn write_command(&mut self, number: usize, value: u32) {
        use port_command::{POWER, RECEIVE, RECEIVES, RUNS, SPIN_UP, START};
        let before = self.ports[number].command;
        let started = value & !before;
        let mut now = value & (START | RECEIVE | SPIN_UP | POWER);
        if started & RECEIVE != 0 {
            let at = self.own(self.ports[number].received, 256, 256);
            if self.is_linked(number) {
                self.memory[at..at + 256].fill(0x5a);
                self.ports[number].is_ready = true;
            }
        }
        if started & START != 0 {
            self.own(self.ports[number].list, 1024, 1024);
            self.protocol(now & RECEIVE != 0, "commands before the device can say something");
            let is_ready = self.is_linked(number) && self.ports[number].is_ready;
            self.protocol(is_ready, "commands without a device that is ready");
        }
        self.protocol(
            now & RECEIVE != 0 || before & RUNS == 0,
            "the device is not listened to, but may have commands",
        );
        now |= if now & START != 0 { RUNS } else { 0 };
        now |= if now & RECEIVE != 0 { RECEIVES } else { 0 };
        if now & RUNS == 0 && before & RUNS != 0 {
            self.work = None;
        }
        if self.random.is_per_mille(self.lies.resets) {
            now |= before & (RUNS | RECEIVES);
        }
        self.ports[number].command = now;
    }

    fn write_link(&mut self, number: usize, value: u32) {
        let port = &mut self.ports[number];
        let is_reset = value & 0xf == link_control::RESET;
        let is_stopped = port.command & port_command::RUNS == 0;
        port.link_control = value;
        if is_reset {
            (port.is_ready, port.error) = (false, 0);
            self.resets += 1;
        }
        self.protocol(is_stopped, "the link is reset while commands run");
    }

    /// Takes a command from memory, as it is now.
    fn issue(&mut self, number: usize, value: u32) {
        let port = self.ports[number];
        self.protocol(port.command & port_command::RUNS != 0, "a command at a port that does not run");
        self.protocol(self.work.is_none(), "a second command");
        self.protocol(port.error == 0, "a command after an error");
        assert_eq!(value, 1, "there is one command in the list");
        let header = self.own(port.list, 1024, 1024);
        let word = |at: usize| u32::from_le_bytes(self.memory[at..at + 4].try_into().unwrap());
        let wide = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (first, moved) = (word(header), word(header + 4));
        let regions = first >> 16;
        assert_eq!((first & 0x1f, moved), (5, 0));
        assert!(regions <= 1);
        let table = self.own(wide(header + 8), 0x80 + 16 * regions as usize, 128);
        let words: [u8; 20] = self.memory[table..table + 20].try_into().unwrap();
        assert_eq!(words[..2], [0x27, 0x80]);
        let data = (regions == 1).then(|| {
            let len = (word(table + 0x8c) & 0x3f_ffff) as usize + 1;
            (self.own(wide(table + 0x80), len, 2), len)
        });
        assert_eq!(first >> 6 & 1 == 1, words[2] == 0x35, "the direction is not that of the command");
        let never = self.random.is_per_mille(self.lies.never);
        let due_ns = if never { u64::MAX } else { self.now_ns + LATENCY_NS };
        self.work = Some(Work { due_ns, words, data, header });
    }

    /// Ends the command under way.
    fn finish(&mut self) {
        let Some(work) = self.work.take() else { return };
        let Some(number) = self.disk_at else { return };
        let words = work.words;
        let is_error = self.random.is_per_mille(self.lies.errors);
        let mut moved = work.data.map_or(0, |(_, len)| len);
        if self.random.is_per_mille(self.lies.lengths) {
            moved = self.random.word() as usize & 0x1fff;
        }
        let done = moved.min(work.data.map_or(0, |(_, len)| len));
        if is_error || !self.execute(&words, work.data.map(|(at, _)| at), done) {
            self.ports[number].error = task_file::ERROR;
            self.ports[number].interrupts |= 1 << 30;
            // The command stays there until the port is stopped.
            self.work = Some(Work { due_ns: u64::MAX, ..work });
            return;
        }
        let header = work.header;
        self.memory[header + 4..header + 8].copy_from_slice(&(moved as u32).to_le_bytes());
        self.ports[number].interrupts |= reason::DONE;
    }

    /// Does what a disk does. False if it could not.
    fn execute(&mut self, words: &[u8; 20], data: Option<usize>, len: usize) -> bool {
        let first = u64::from_le_bytes([words[4], words[5], words[6], words[8], words[9], words[10], 0, 0]);
        let count = usize::from(u16::from_le_bytes([words[12], words[13]]));
        assert!(first < SECTORS_MAX && words[7] == 0x40);
        let from = first as usize * self.sector_bytes;
        let is_there = from + count * self.sector_bytes <= self.disk.len();
        match (words[2], data) {
            (0xec, Some(at)) => self.memory[at..at + len].copy_from_slice(&self.description[..len]),
            (0xea, None) => self.flushes += 1,
            (0x25, Some(at)) if is_there && len <= count * self.sector_bytes => {
                self.memory[at..at + len].copy_from_slice(&self.disk[from..from + len]);
            }
            (0x35, Some(at)) if is_there && len <= count * self.sector_bytes => {
                self.disk[from..from + len].copy_from_slice(&self.memory[at..at + len]);
            }
            _ => return false,
        }
        true
    }

    fn reset(&mut self) {
        self.work = None;
        self.ports = [Slot::default(); 6];
    }
}

impl Hardware for Model {
    fn read(&mut self, at: usize) -> u32 {
        self.accesses += 1;
        if self.random.is_per_mille(self.lies.registers) {
            let word = self.random.word();
            return [0, u32::MAX, word, word & 0x113][self.random.below(4) as usize];
        }
        let truth = match at {
            _ if at == Host::Abilities.at() => u32::from(!self.is_narrow) << 31,
            _ if at == Host::Control.at() => {
                let control = self.control;
                if !self.random.is_per_mille(self.lies.resets) {
                    self.control &= !control::RESET;
                }
                control
            }
            _ if at == Host::Ports.at() => 0x3f,
            0x100.. if at < 0x100 + 6 * 0x80 => self.read_port((at - 0x100) / 0x80, at),
            _ => 0,
        };
        let flips = self.random.is_per_mille(self.lies.bits);
        truth ^ if flips { 1 << self.random.below(32) } else { 0 }
    }

    fn write(&mut self, at: usize, value: u32) {
        self.accesses += 1;
        match at {
            _ if at == Host::Control.at() => {
                if value & control::RESET != 0 {
                    self.reset();
                }
                self.control = value;
            }
            0x100.. if at < 0x100 + 6 * 0x80 => self.write_port((at - 0x100) / 0x80, at, value),
            // More ports than there are, or what only a lie leads to.
            _ => {}
        }
    }

    fn load(&mut self, at: usize, to: &mut [u8]) {
        self.accesses += 1;
        to.copy_from_slice(&self.memory[at..at + to.len()]);
    }

    fn store(&mut self, at: usize, from: &[u8]) {
        self.accesses += 1;
        self.protocol(self.work.is_none(), "memory of a command changes while it is under way");
        self.memory[at..at + from.len()].copy_from_slice(from);
    }

    fn device_address(&self) -> u64 {
        self.physical
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn pause(&mut self, ns: u64) {
        self.accesses += 1;
        assert!(ns > 0, "no time to wait");
        if self.random.is_per_mille(self.lies.memory) {
            let at = self.random.below(MEMORY_BYTES as u64) as usize;
            let end = (at + self.random.below(64) as usize).min(MEMORY_BYTES);
            let byte = self.random.word() as u8;
            self.memory[at..end].fill(byte);
        }
        if self.is_time_still || self.random.is_per_mille(self.lies.spurious) {
            return;
        }
        let due = self.work.as_ref().map_or(u64::MAX, |work| work.due_ns);
        self.now_ns = due.clamp(self.now_ns, self.now_ns + ns);
        if self.now_ns >= due {
            self.finish();
        }
    }
}

/// [`Port::Link`] of the model where a device is.
const _: () = assert!(0x113 & link::DETECTION == link::UP);
