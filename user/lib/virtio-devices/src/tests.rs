//! Tests against a model of a device: one that does what it should, one that says one wrong thing, and one that lies.

mod model;

use crate::console::{INPUT_MAX, OUTPUT_MAX};
use crate::disk::{BYTES_MAX, Trouble};
use crate::net::{FRAME_MAX, FRAME_MIN};
use crate::pci::{DeviceType, Interrupts, Registers};
use crate::{
    Broken, Card, Console, Disk, Entropy, Hardware, INTERRUPTS_MAX, PATIENCE_NS, Pci, Refusal, entropy,
};
use model::{BAR, CAPABILITIES, Kind, Lies, Model, NOTIFY_BYTES, Own, Random, Shared};
use std::vec;
use std::vec::Vec;
use virtio_drivers::Error;

const SECTORS: u64 = 64;

fn times(ordinary: u64) -> u64 {
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    if is_full { 100 * ordinary } else { ordinary }
}

/// The way to a device; every other one interrupts by messages.
fn open(device: &Shared, kind: DeviceType) -> Result<Pci<Shared>, Refusal> {
    let by_messages = device.0.borrow_mut().random.below(2) == 0;
    Pci::open(device.clone(), kind, if by_messages { Interrupts::Messages } else { Interrupts::Line })
}

fn disk(device: &Shared) -> Result<Disk<Shared, Hardware<Own>, Shared>, Refusal> {
    Disk::new(open(device, DeviceType::Block)?, device.clone())
}

fn card(device: &Shared) -> Result<Card<Shared, Hardware<Own>>, Refusal> {
    Card::new(open(device, DeviceType::Network)?)
}

fn entropy(device: &Shared) -> Result<Entropy<Shared, Hardware<Own>, Shared>, Refusal> {
    Entropy::new(open(device, DeviceType::EntropySource)?, device.clone())
}

fn console(device: &Shared) -> Result<Console<Shared, Hardware<Own>>, Refusal> {
    Console::new(open(device, DeviceType::Console)?)
}

#[test]
fn a_device_without_room_for_a_message_does_not_start_with_one() {
    for (interrupts, is_driven) in [(Interrupts::Line, true), (Interrupts::Messages, false)] {
        let mut model = Model::new(1, Kind::Disk, SECTORS);
        model.takes_messages = false;
        let device = model.shared();
        let way = Pci::open(device.clone(), DeviceType::Block, interrupts).unwrap();
        let outcome = Disk::<_, Hardware<Own>, _>::new(way, device.clone()).map(drop);
        let refusal = Refusal::Start(Error::InvalidParam);
        assert_eq!(outcome, if is_driven { Ok(()) } else { Err(refusal) });
        device.0.borrow().memory.check();
    }
}

/// A table of messages that lies where registers are is not used, since its memory would not be the driver's.
#[test]
fn tables_of_messages_lie_by_themselves() {
    let can = |bar: Option<u8>| {
        let mut model = Model::new(1, Kind::Disk, SECTORS);
        if let Some(bar) = bar {
            // Behind all others, in front of which it is put.
            let first = model.configuration[0x34];
            model.configuration[0x34] = 0xe0;
            model.configuration[0xe0..0xe8].copy_from_slice(&[0x11, first, 0, 0, bar, 0x10, 0, 0]);
        }
        model.shared().can_send_messages()
    };
    assert!(!can(None));
    assert!(can(Some(1)));
    assert!(!can(Some(BAR)));
}

#[test]
fn a_disk_keeps_what_is_written() {
    for seed in 0..times(10) {
        let device = Model::new(seed, Kind::Disk, SECTORS).shared();
        let mut disk = disk(&device).unwrap();
        assert_eq!((disk.sectors(), disk.is_read_only()), (SECTORS, true));
        let mut random = Random(seed + 1);
        let mut copy = vec![0u8; 512 * SECTORS as usize];
        for number in 0..200 {
            let count = 1 + random.below(8);
            let first = random.below(SECTORS - count + 1);
            let at = 512 * first as usize..512 * (first + count) as usize;
            if random.below(2) == 0 {
                let bytes: Vec<u8> = at.clone().map(|at| (number * 31 + at) as u8).collect();
                disk.write(first, &bytes).unwrap();
                copy[at].copy_from_slice(&bytes);
            } else {
                assert_eq!(disk.read(first, at.len()).unwrap(), &copy[at], "seed {seed}");
            }
        }
        device.0.borrow().memory.check();
    }
}

#[test]
fn requests_that_are_refused() {
    let device = Model::new(1, Kind::Disk, SECTORS).shared();
    let mut disk = disk(&device).unwrap();
    let before = device.0.borrow().accesses;
    for (first, len) in [
        (0, 0),
        (0, 1),
        (0, 511),
        (0, BYTES_MAX + 512),
        (SECTORS, 512),
        (SECTORS - 1, 1024),
        (u64::MAX, 512),
        (u64::MAX - 1, BYTES_MAX),
    ] {
        assert_eq!(disk.read(first, len), Err(Trouble::Refused), "{first} {len}");
        assert_eq!(disk.write(first, &vec![7; len]), Err(Trouble::Refused), "{first} {len}");
    }
    assert_eq!(device.0.borrow().accesses, before, "the device was asked");
    assert!(disk.read(SECTORS - 1, 512).is_ok());
}

#[test]
fn frames_that_are_sent_come_back() {
    let device = Model::new(1, Kind::Card, 0).shared();
    let mut card = card(&device).unwrap();
    assert_eq!(card.address(), [2, 3, 5, 7, 11, 13]);
    let (mut sent, mut came) = (0u32, 0u32);
    let mut random = Random(2);
    for _ in 0..2000 {
        let len = FRAME_MIN + random.below((FRAME_MAX - FRAME_MIN + 1) as u64) as usize;
        if card.can_send() && random.below(3) > 0 {
            let mut frame = vec![sent as u8; len];
            frame[..4].copy_from_slice(&sent.to_le_bytes());
            card.send(&frame).unwrap();
            sent += 1;
        }
        card.quiet();
        crate::Line::wait(&mut device.clone(), 1000).unwrap();
        for _ in 0..random.below(4) {
            let is_one = card.receive(|frame| {
                assert_eq!(frame[..4], came.to_le_bytes());
                assert!(frame[4..].iter().all(|&byte| byte == came as u8));
                came += 1;
            });
            is_one.unwrap();
        }
        card.reap().unwrap();
    }
    assert!(came > 500 && sent - came <= 64, "{sent} {came}");
    // Bytes that are no frame are not sent.
    card.send(&[0; FRAME_MIN - 1]).unwrap();
    card.send(&[0; FRAME_MAX + 1]).unwrap();
    device.0.borrow().memory.check();
}

#[test]
fn random_bytes_are_those_of_the_device() {
    let device = Model::new(1, Kind::Entropy, 0).shared();
    let mut source = entropy(&device).unwrap();
    let mut all: Vec<u8> = Vec::new();
    for wanted in [1, 2, 16, 1000, 4095, 4096, 0, 5000, 7, 4096] {
        let bytes = source.read(wanted).unwrap();
        assert!((1..=wanted.clamp(1, entropy::BYTES_MAX)).contains(&bytes.len()));
        all.extend(bytes);
    }
    assert_eq!(all, device.0.borrow().told);
    device.0.borrow().memory.check();
}

#[test]
fn bytes_that_are_sent_come_back_in_order() {
    for seed in 0..times(10) {
        let device = Model::new(seed, Kind::Console, 0).shared();
        let mut console = console(&device).unwrap();
        let mut random = Random(seed + 1);
        let (mut sent, mut came) = (0usize, 0usize);
        for _ in 0..1000 {
            let bytes: Vec<u8> =
                (sent..sent + random.below(1500) as usize).map(|at| (at % 251) as u8).collect();
            let was_sending = console.is_sending();
            let count = console.send(&bytes).unwrap();
            assert_eq!(count, if was_sending { 0 } else { bytes.len().min(OUTPUT_MAX) });
            sent += count;
            let wanted = random.below(400) as usize;
            let before = came;
            console.want(wanted).unwrap();
            crate::Line::wait(&mut device.clone(), 1000).unwrap();
            console.quiet();
            while let Some(bytes) = console.receive().unwrap() {
                assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == ((came + at) % 251) as u8));
                came += bytes.len();
            }
            assert!(came - before <= INPUT_MAX, "nobody wanted more");
            console.reap().unwrap();
            assert!(!console.is_pending());
        }
        assert!(came > 10_000 && came <= sent, "seed {seed}: {came} {sent}");
        device.0.borrow().memory.check();
    }
}

/// Bytes stay with the device until somebody wants them.
#[test]
fn nothing_is_read_ahead() {
    let device = Model::new(1, Kind::Console, 0).shared();
    let mut console = console(&device).unwrap();
    let wait = || crate::Line::wait(&mut device.clone(), 1000).unwrap();
    assert_eq!(console.send(b"hello"), Ok(5));
    wait();
    assert_eq!((console.reap(), console.receive()), (Ok(true), Ok(None)));
    console.want(0).unwrap();
    wait();
    assert_eq!(console.receive(), Ok(None));
    console.want(2).unwrap();
    // More is not wanted before that has come.
    console.want(100).unwrap();
    wait();
    assert_eq!(console.receive(), Ok(Some(&b"he"[..])));
    wait();
    assert_eq!(console.receive(), Ok(None));
    console.want(100).unwrap();
    wait();
    assert_eq!(console.receive(), Ok(Some(&b"llo"[..])));
    assert_eq!((console.send(b""), console.is_sending()), (Ok(0), false));
}

#[test]
fn bytes_that_are_none() {
    let outcome = |change: fn(&mut Model)| -> Result<usize, Broken> {
        let device = Model::new(1, Kind::Console, 0).shared();
        let mut console = console(&device).unwrap();
        console.send(&[7; 100])?;
        crate::Line::wait(&mut device.clone(), 1000)?;
        console.reap()?;
        change(&mut device.0.borrow_mut());
        console.want(64)?;
        crate::Line::wait(&mut device.clone(), 1000)?;
        let outcome = console.receive().map(|bytes| bytes.map_or(0, <[u8]>::len));
        let outcomes = (console.want(1), console.send(b"more"), console.reap(), console.receive().map(drop));
        if outcome.is_err() {
            assert_eq!(outcomes, (Err(Broken), Err(Broken), Err(Broken), Err(Broken)), "broken is for ever");
        }
        outcome
    };
    assert_eq!(outcome(|_| ()), Ok(64));
    assert_eq!(outcome(|model| model.answer_len = Some(0)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_len = Some(1)), Ok(1));
    assert_eq!(outcome(|model| model.answer_len = Some(65)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_len = Some(u32::MAX)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_id = Some(8)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_id = Some(u32::MAX)), Err(Broken));
    // A device that does not answer is none that lies: somebody on its other side may be slow.
    assert_eq!(outcome(|model| model.lies.never = 1000), Ok(0));
    let device = Model::new(1, Kind::Console, 0).shared();
    let mut console = console(&device).unwrap();
    device.0.borrow_mut().answer_id = Some(3);
    console.send(b"hello").unwrap();
    crate::Line::wait(&mut device.clone(), 1000).unwrap();
    assert_eq!(console.reap(), Err(Broken));
}

/// A device that says one wrong thing when it is started.
fn refusal(kind: Kind, change: impl FnOnce(&mut Model)) -> Option<Refusal> {
    let mut model = Model::new(1, kind, SECTORS);
    change(&mut model);
    let device = model.shared();
    let outcome = match kind {
        Kind::Disk => disk(&device).map(drop),
        Kind::Card => card(&device).map(drop),
        Kind::Entropy => entropy(&device).map(drop),
        Kind::Console => console(&device).map(drop),
    };
    device.0.borrow().memory.check();
    outcome.err()
}

#[test]
fn devices_that_do_not_start() {
    for kind in [Kind::Disk, Kind::Card, Kind::Entropy, Kind::Console] {
        let refusal = |change: fn(&mut Model)| refusal(kind, change);
        let start = |error| Some(Refusal::Start(error));
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|model| model.queue_size = 0), start(Error::InvalidParam));
        assert_eq!(refusal(|model| model.queue_size = 4), start(Error::InvalidParam));
        assert_eq!(refusal(|model| model.queue_size = u16::MAX), None);
        assert_eq!(refusal(|model| model.doorbell = 0), None);
        assert_eq!(refusal(|model| model.doorbell = (NOTIFY_BYTES / 4) as u16), start(Error::InvalidParam));
        assert_eq!(refusal(|model| model.doorbell = u16::MAX - 1), start(Error::InvalidParam));
        for change in [
            (|model: &mut Model| model.has_reset = false) as fn(&mut Model),
            |model| model.takes_features = false,
            |model| model.features &= !(1 << 32),
        ] {
            let asks = matches!(kind, Kind::Disk | Kind::Card);
            let expected = if asks { Error::NotReady } else { Error::InvalidParam };
            assert_eq!(refusal(change), start(expected));
        }
        assert_eq!(refusal(|model| model.configuration[6] = 0), Some(Refusal::Place("common part")));
        assert_eq!(refusal(|model| model.configuration.fill(0xff)), Some(Refusal::Place("common part")));
    }
    let changing = |kind| refusal(kind, |model| model.generation_step = 1);
    assert_eq!(changing(Kind::Disk), Some(Refusal::Start(Error::NotReady)));
    assert_eq!(changing(Kind::Card), Some(Refusal::Start(Error::NotReady)));
    let missing = |kind| refusal(kind, |model| model.configuration[CAPABILITIES[2].0 + 1] = 0);
    assert_eq!(missing(Kind::Disk), Some(Refusal::Start(Error::ConfigSpaceMissing)));
    assert_eq!(missing(Kind::Card), Some(Refusal::Start(Error::ConfigSpaceMissing)));
    assert_eq!(missing(Kind::Entropy), None);
    assert_eq!(missing(Kind::Console), None);
    let small = |kind| refusal(kind, |model| model.configuration[CAPABILITIES[3].0 + 12] = 4);
    assert_eq!(small(Kind::Disk), Some(Refusal::Start(Error::ConfigSpaceTooSmall)));
    assert_eq!(small(Kind::Card), Some(Refusal::Start(Error::ConfigSpaceTooSmall)));
}

#[test]
fn capacities_that_no_disk_has() {
    let with =
        |sectors: u64| refusal(Kind::Disk, |model| model.own[..8].copy_from_slice(&sectors.to_le_bytes()));
    assert_eq!(with(u64::MAX), Some(Refusal::Capacity(u64::MAX)));
    assert_eq!(with(1 << 55), Some(Refusal::Capacity(1 << 55)));
    assert_eq!(with((1 << 55) - 1), None);
    assert_eq!(with(0), None);
    let device = Model::new(1, Kind::Disk, 0).shared();
    assert_eq!(disk(&device).unwrap().read(0, 512), Err(Trouble::Refused));
    // There are fewer than it says.
    let mut model = Model::new(1, Kind::Disk, SECTORS);
    model.own[..8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let device = model.shared();
    let mut disk = disk(&device).unwrap();
    assert_eq!(disk.read(SECTORS, 512), Err(Trouble::Failed));
    assert!(disk.read(SECTORS - 1, 512).is_ok(), "after a failure the next request works");
}

#[test]
fn places_that_are_not_there() {
    let names = ["common part", "doorbell", "interrupt status", "own part"];
    for ((at, _), name) in CAPABILITIES.into_iter().zip(names) {
        let with = |offset: u32, len: u32| {
            refusal(Kind::Disk, |model| {
                model.configuration[at + 8..at + 12].copy_from_slice(&offset.to_le_bytes());
                model.configuration[at + 12..at + 16].copy_from_slice(&len.to_le_bytes());
            })
        };
        for (offset, len) in
            [(0x4000, 0x100), (0x3f80, 0x100), (u32::MAX - 3, 0x100), (0, u32::MAX), (u32::MAX, u32::MAX)]
        {
            assert_eq!(with(offset, len), Some(Refusal::Place(name)), "{offset:#x} {len:#x}");
        }
        if name != "interrupt status" {
            assert_eq!(with(1, 0x80), Some(Refusal::Place(name)), "it is not aligned");
        }
        for bar in [0, 6, 7, 0xff] {
            let found = refusal(Kind::Disk, |model| model.configuration[at + 4] = bar);
            assert_eq!(found, Some(Refusal::Place(name)), "{bar}");
        }
    }
    // A list that goes in a circle, one that ends in the header, and one that ends at the end.
    assert_eq!(refusal(Kind::Disk, |model| model.configuration[CAPABILITIES[3].0 + 1] = 0x40), None);
    assert!(refusal(Kind::Disk, |model| model.configuration[0x41] = 0x40).is_some());
    assert!(refusal(Kind::Disk, |model| model.configuration[0x34] = 0x3c).is_some());
    let at_the_end = refusal(Kind::Disk, |model| {
        model.configuration[0x41] = 0xfc;
        model.configuration[0xfc..].copy_from_slice(&[9, 0, 20, 2]);
    });
    assert_eq!(at_the_end, Some(Refusal::Place("doorbell")));
}

/// Outcome of a read by a device that does what it should, until it does not.
fn after(lies: Lies) -> Trouble {
    let device = Model::new(1, Kind::Disk, SECTORS).shared();
    let mut disk = disk(&device).unwrap();
    disk.write(3, &[3; 512]).unwrap();
    device.0.borrow_mut().lies = lies;
    let begin = device.0.borrow().now_ns;
    let outcome = disk.read(3, 512).map(drop);
    assert!(device.0.borrow().now_ns - begin <= PATIENCE_NS + 2000);
    device.0.borrow_mut().lies = Lies::default();
    let next = disk.read(3, 512).map(drop);
    assert_eq!(next.is_ok(), outcome != Err(Trouble::Broken), "broken is for ever");
    outcome.unwrap_err()
}

#[test]
fn answers_that_are_none() {
    assert_eq!(after(Lies { never: 1000, ..Lies::default() }), Trouble::Broken);
    assert_eq!(after(Lies { nothing: 1000, ..Lies::default() }), Trouble::Broken);
    assert_eq!(after(Lies { never: 1000, spurious: 999, ..Lies::default() }), Trouble::Broken);
    let with = |change: fn(&mut Model)| {
        let device = Model::new(1, Kind::Disk, SECTORS).shared();
        let mut disk = disk(&device).unwrap();
        change(&mut device.0.borrow_mut());
        disk.read(0, 512).map(drop)
    };
    assert_eq!(with(|model| model.answer_status = Some(0)), Ok(()));
    assert_eq!(with(|model| model.answer_status = Some(1)), Err(Trouble::Failed));
    assert_eq!(with(|model| model.answer_status = Some(2)), Err(Trouble::Failed));
    assert_eq!(with(|model| model.answer_status = Some(3)), Err(Trouble::Broken));
    assert_eq!(with(|model| model.answer_status = Some(4)), Err(Trouble::Broken));
    assert_eq!(with(|model| model.answer_status = Some(0xff)), Err(Trouble::Broken));
    assert_eq!(with(|model| model.answer_id = Some(1)), Err(Trouble::Broken));
    assert_eq!(with(|model| model.answer_id = Some(16)), Err(Trouble::Broken));
    assert_eq!(with(|model| model.answer_id = Some(u32::MAX)), Err(Trouble::Broken));
}

/// Buffers are given back twice, or before it was done: that is found at a next request.
#[test]
fn answers_that_come_before_they_are_asked_for() {
    let device = Model::new(1, Kind::Disk, SECTORS).shared();
    let mut disk = disk(&device).unwrap();
    for _ in 0..20 {
        disk.read(3, 512).unwrap();
    }
    device.0.borrow_mut().lies.jumps = 1000;
    let outcomes: Vec<_> = (0..20).map(|_| disk.read(3, 512).map(drop)).collect();
    let first = outcomes.iter().position(|&outcome| outcome == Err(Trouble::Broken)).unwrap();
    assert!(outcomes[..first].iter().all(Result::is_ok), "{outcomes:?}");
    assert!(outcomes[first..].iter().all(|&outcome| outcome == Err(Trouble::Broken)), "{outcomes:?}");
}

#[test]
fn frames_that_are_none() {
    let outcome = |change: fn(&mut Model)| -> Result<Option<usize>, Broken> {
        let device = Model::new(1, Kind::Card, 0).shared();
        let mut card = card(&device).unwrap();
        change(&mut device.0.borrow_mut());
        card.send(&[7; 100])?;
        crate::Line::wait(&mut device.clone(), 1000)?;
        let mut len = None;
        card.receive(|frame| len = Some(frame.len()))?;
        card.reap()?;
        Ok(len)
    };
    assert_eq!(outcome(|_| ()), Ok(Some(100)));
    // The header of twelve bytes, and a frame of at least fourteen.
    assert_eq!(outcome(|model| model.answer_len = Some(11)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_len = Some(12)), Ok(None));
    assert_eq!(outcome(|model| model.answer_len = Some(25)), Ok(None));
    assert_eq!(outcome(|model| model.answer_len = Some(26)), Ok(Some(14)));
    assert_eq!(outcome(|model| model.answer_len = Some(12 + 1514)), Ok(Some(1514)));
    assert_eq!(outcome(|model| model.answer_len = Some(2048)), Ok(None));
    assert_eq!(outcome(|model| model.answer_len = Some(2049)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_len = Some(u32::MAX)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_id = Some(16)), Err(Broken));
    assert_eq!(outcome(|model| model.answer_id = Some(u32::MAX)), Err(Broken));
}

#[test]
fn a_request_ends_where_time_stands_still() {
    let mut model = Model::new(1, Kind::Disk, SECTORS);
    model.is_time_still = true;
    let device = model.shared();
    let mut disk = disk(&device).unwrap();
    device.0.borrow_mut().lies.never = 1000;
    let before = device.0.borrow().accesses;
    assert_eq!(disk.read(0, 512), Err(Trouble::Broken));
    assert!(device.0.borrow().accesses - before < 3 * u64::from(INTERRUPTS_MAX));
}

#[test]
fn random_bytes_that_are_none() {
    let outcome = |lies: Lies| {
        let device = Model::new(3, Kind::Entropy, 0).shared();
        let mut source = entropy(&device).unwrap();
        source.read(100).unwrap();
        device.0.borrow_mut().lies = lies;
        let outcome = source.read(4096).map(drop);
        device.0.borrow_mut().lies = Lies::default();
        assert_eq!(source.read(100).is_ok(), outcome.is_ok(), "broken is for ever");
        outcome
    };
    assert_eq!(outcome(Lies::default()), Ok(()));
    assert_eq!(outcome(Lies { nothing: 1000, ..Lies::default() }), Err(Broken));
    assert_eq!(outcome(Lies { never: 1000, ..Lies::default() }), Err(Broken));
    for (len, is_right) in [(0, false), (1, true), (64, true), (65, false), (u32::MAX, false)] {
        let device = Model::new(3, Kind::Entropy, 0).shared();
        let mut source = entropy(&device).unwrap();
        device.0.borrow_mut().answer_len = Some(len);
        // Fewer than sixteen zeroes may be chance.
        let found = source.read(64).map(<[u8]>::len);
        assert_eq!(found.is_ok(), is_right, "{len}");
        assert!(found.is_err() || found == Ok(len as usize));
    }
}

/// Nothing of what a device says leads to a panic, to a hang, or to memory that is not its own: the last is watched by the model.
#[test]
fn a_device_that_lies() {
    // Outcomes: not started, right, failed, broken.
    let mut told = [[0u64; 4]; 4];
    for seed in 0..times(10_000) {
        let mut random = Random(seed);
        let mut rate = |most: u64| if random.below(3) < 2 { 0 } else { random.below(most) };
        let lies = Lies {
            configuration: rate(20),
            registers: rate(20),
            memory: rate(400),
            never: rate(20),
            nothing: rate(50),
            ids: rate(100),
            lengths: rate(100),
            jumps: rate(100),
            statuses: rate(200),
            spurious: rate(900),
        };
        let kind = [Kind::Disk, Kind::Card, Kind::Entropy, Kind::Console][seed as usize % 4];
        let mut model = Model::new(seed, kind, SECTORS);
        model.lies = lies;
        let device = model.shared();
        let counts = &mut told[seed as usize % 4];
        match kind {
            Kind::Disk => lie_to_a_disk(&device, counts),
            Kind::Card => lie_to_a_card(&device, counts),
            Kind::Entropy => lie_to_a_source(&device, counts),
            Kind::Console => lie_to_a_console(&device, counts),
        }
        let model = device.0.borrow();
        model.memory.check();
        assert!(model.now_ns < 30 * PATIENCE_NS, "seed {seed}");
    }
    for (number, counts) in told.iter().enumerate() {
        // Disks alone say that they failed.
        let is_seen = |(outcome, &count): (usize, &u64)| count > 10 || outcome == 2 && number > 0;
        assert!(counts.iter().enumerate().all(is_seen), "not all was seen: {told:?}");
    }
}

fn lie_to_a_disk(device: &Shared, told: &mut [u64; 4]) {
    let Ok(mut disk) = disk(device) else {
        told[0] += 1;
        return;
    };
    for number in 0..10 {
        let end = disk.sectors();
        let first = if number % 2 == 0 { 0 } else { end.saturating_sub(8) };
        let outcome = match number % 3 {
            0 => disk.write(first, &[7; BYTES_MAX]),
            _ => disk.read(first, BYTES_MAX).map(|bytes| assert_eq!(bytes.len(), BYTES_MAX)),
        };
        disk.quiet();
        match outcome {
            Ok(()) => told[1] += 1,
            Err(Trouble::Failed) => told[2] += 1,
            Err(Trouble::Broken) => told[3] += 1,
            Err(Trouble::Refused) => assert!(end < 8),
        }
    }
}

fn lie_to_a_card(device: &Shared, told: &mut [u64; 4]) {
    let Ok(mut card) = card(device) else {
        told[0] += 1;
        return;
    };
    let mut drive = || -> Result<(), Broken> {
        for number in 0..20 {
            card.quiet();
            card.send(&[number; FRAME_MAX])?;
            crate::Line::wait(&mut device.clone(), 1000)?;
            // The driver does so, too: a burst, and no more.
            for _ in 0..32 {
                let take = |frame: &[u8]| assert!((FRAME_MIN..=FRAME_MAX).contains(&frame.len()));
                if !card.receive(take)? {
                    break;
                }
            }
            card.reap()?;
        }
        Ok(())
    };
    // Its driver ends when it is broken, so nobody asks again.
    told[if drive().is_ok() { 1 } else { 3 }] += 1;
}

fn lie_to_a_source(device: &Shared, told: &mut [u64; 4]) {
    let Ok(mut source) = entropy(device) else {
        told[0] += 1;
        return;
    };
    for number in 0..10 {
        let wanted = [1, 4096, 100][number % 3];
        match source.read(wanted) {
            Ok(bytes) => {
                assert!((1..=wanted).contains(&bytes.len()));
                assert!(bytes.len() < 16 || bytes.iter().any(|&byte| byte != 0));
                told[1] += 1;
            }
            Err(Broken) => told[3] += 1,
        }
        source.quiet();
    }
}

fn lie_to_a_console(device: &Shared, told: &mut [u64; 4]) {
    let Ok(mut console) = console(device) else {
        told[0] += 1;
        return;
    };
    let mut drive = || -> Result<(), Broken> {
        for number in 0..20 {
            console.send(&[number; 300])?;
            let wanted = [1, 100, INPUT_MAX][usize::from(number) % 3];
            console.want(wanted)?;
            crate::Line::wait(&mut device.clone(), 1000)?;
            console.quiet();
            let mut count = 0;
            while let Some(bytes) = console.receive()? {
                assert!((1..=INPUT_MAX).contains(&bytes.len()));
                count += 1;
            }
            assert!(count <= 1, "one buffer, one answer");
            console.reap()?;
            assert!(!console.is_sending() || !console.reap()?);
        }
        Ok(())
    };
    told[if drive().is_ok() { 1 } else { 3 }] += 1;
}
