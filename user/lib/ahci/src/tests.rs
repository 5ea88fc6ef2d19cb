//! Tests against a model of a controller: one that does what it should, one whose commands fail, and one that lies.

mod model;

use crate::command::Command;
use crate::registers::DISK;
use crate::{BYTES_MAX, Disk, Geometry, Trouble};
use model::{Lies, Model, Random};
use std::vec;
use std::vec::Vec;

const SECTORS: usize = 64;

/// Accesses of the largest request, or of a search; a driver that hangs needs more. The longest of them is a disk that never answers, whose driver
/// looks each millisecond for thirty seconds, twice.
const ACCESSES_MAX: u64 = 4_000_000;

/// The time in which each of them ends, whatever is told.
const TIME_MAX_NS: u64 = 150_000_000_000;

fn opened(model: Model) -> Disk<Model> {
    Disk::open(model).unwrap_or_else(|trouble| panic!("{trouble}"))
}

fn times(ordinary: u64) -> u64 {
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    if is_full { 100 * ordinary } else { ordinary }
}

#[test]
fn a_command_in_memory() {
    let physical = 0x12_3456_7000;
    let command = Command::Read(0x0605_0403_0201, 8, 4096);
    assert_eq!(command.words(), [0x27, 0x80, 0x25, 0, 1, 2, 3, 0x40, 4, 5, 6, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    let header = command.header(physical);
    assert_eq!(header[..8], [5, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(header[8..16], 0x12_3456_7500u64.to_le_bytes());
    let table = command.table(physical);
    assert_eq!(table[..20], command.words());
    assert_eq!(table[0x80..0x88], 0x12_3456_8000u64.to_le_bytes());
    assert_eq!(table[0x8c..], 4095u32.to_le_bytes());
    assert_eq!(Command::Write(0, 1, 512).header(physical)[0], 5 | 1 << 6);
    let flush = Command::Flush;
    assert_eq!((flush.header(physical)[2], flush.words()[2]), (0, 0xea));
    assert!(flush.table(physical)[0x80..].iter().all(|&byte| byte == 0));
}

#[test]
fn descriptions_that_are_understood() {
    let with = |words: &[(usize, u16)]| {
        let mut bytes = Model::new(1, 512, 0x1234).description;
        for &(at, word) in words {
            bytes[2 * at..][..2].copy_from_slice(&word.to_le_bytes());
        }
        Geometry::read(&bytes).map(|geometry| (geometry.sector_bytes, geometry.sectors))
    };
    assert_eq!(with(&[]), Some((512, 0x1234)));
    assert_eq!(with(&[(102, 3)]), Some((512, 3 << 32 | 0x1234)));
    assert_eq!(with(&[(106, 0x5000), (117, 2048)]), Some((4096, 0x1234)));
    // A word that does not say that it says something.
    assert_eq!(with(&[(106, 0x1000), (117, 2048)]), Some((512, 0x1234)));
    for wrong in [
        &[(83, 0x4000)][..],
        &[(83, 0x0400)],
        &[(83, 0xffff)],
        &[(100, 0)],
        &[(103, 1), (100, 1)],
        &[(106, 0x5000), (117, 0)],
        &[(106, 0x5000), (117, 128)],
        &[(106, 0x5000), (117, 260)],
        &[(106, 0x5000), (117, 4096)],
        &[(106, 0x5000), (117, 256), (118, 1)],
    ] {
        assert_eq!(with(wrong), None, "{wrong:x?}");
    }
    assert_eq!(Geometry::read(&[0; 512]), None);
    assert_eq!(Geometry::read(&[0xff; 512]), None);
}

#[test]
fn requests_that_are_refused() {
    for sector_bytes in [512, 4096] {
        let mut disk = opened(Model::new(1, sector_bytes, SECTORS));
        assert_eq!(disk.geometry(), Geometry { sector_bytes, sectors: SECTORS as u64 });
        let before = disk.hardware().accesses;
        let (last, end) = (SECTORS as u64 - 1, SECTORS as u64);
        for (first, len) in [
            (0, 0),
            (0, 1),
            (0, sector_bytes - 1),
            (0, BYTES_MAX + sector_bytes),
            (end, sector_bytes),
            (last, BYTES_MAX + 1),
            (u64::MAX, sector_bytes),
            (u64::MAX - 1, BYTES_MAX),
            (1 << 48, sector_bytes),
        ] {
            let mut bytes = vec![7; len];
            assert_eq!(disk.read(first, &mut bytes), Err(Trouble::Refused), "{first} {len}");
            assert_eq!(disk.write(first, &bytes), Err(Trouble::Refused), "{first} {len}");
            assert!(bytes.iter().all(|&byte| byte == 7));
        }
        assert_eq!(disk.hardware().accesses, before, "the disk was asked");
        assert_eq!(disk.read(last, &mut vec![0; sector_bytes]), Ok(()));
    }
}

/// Random requests against a copy of the disk. `rates` fail, and nothing else; then the next works.
fn compare(seed: u64, sector_bytes: usize, rates: Lies) -> (usize, usize) {
    let mut disk = opened(Model::new(seed, sector_bytes, SECTORS));
    disk.hardware().lies = rates;
    let mut random = Random(seed + 1);
    let mut copy = vec![0u8; sector_bytes * SECTORS];
    // Sectors of which a write has failed may be old, new, or a part of both.
    let mut unknown = [false; SECTORS];
    let (mut done, mut failed) = (0, 0);
    for number in 0..times(200) {
        let count = 1 + random.below((BYTES_MAX / sector_bytes) as u64) as usize;
        let first = random.below((SECTORS - count + 1) as u64) as usize;
        let at = first * sector_bytes..(first + count) * sector_bytes;
        let begin = (disk.hardware().accesses, disk.hardware().now_ns);
        let outcome = match random.below(8) {
            0 => disk.flush(),
            1..4 => {
                let bytes: Vec<u8> = at.clone().map(|at| (number as usize * 31 + at) as u8).collect();
                let outcome = disk.write(first as u64, &bytes);
                copy[at].copy_from_slice(&bytes);
                unknown[first..first + count].fill(outcome.is_err());
                outcome
            }
            _ => {
                let mut bytes = vec![0xee; at.len()];
                let outcome = disk.read(first as u64, &mut bytes);
                for (index, sector) in bytes.chunks(sector_bytes).enumerate() {
                    let wanted = &copy[at.start + index * sector_bytes..][..sector_bytes];
                    let is_right = match outcome {
                        Ok(()) => unknown[first + index] || sector == wanted,
                        Err(_) => sector.iter().all(|&byte| byte == 0xee),
                    };
                    assert!(is_right, "seed {seed}, request {number}, sector {}", first + index);
                }
                outcome
            }
        };
        match outcome {
            Ok(()) => done += 1,
            // A link that was reset in vain is a controller that is broken.
            Err(Trouble::Broken) => return (done, failed),
            Err(Trouble::Failed) => failed += 1,
            Err(other) => panic!("seed {seed}: {other}"),
        }
        check_end(&mut disk, begin, seed);
    }
    (done, failed)
}

/// Fails if something took too long.
fn check_end(disk: &mut Disk<Model>, begin: (u64, u64), seed: u64) {
    let model = disk.hardware();
    assert!(model.accesses - begin.0 < ACCESSES_MAX, "seed {seed}: a hang");
    assert!(model.now_ns - begin.1 < TIME_MAX_NS, "seed {seed}: too long");
}

#[test]
fn what_is_written_is_read() {
    for (seed, sector_bytes) in [(1, 512), (2, 4096), (3, 1024)] {
        let (done, failed) = compare(seed, sector_bytes, Lies::default());
        assert_eq!((done as u64, failed), (times(200), 0));
    }
}

#[test]
fn interrupts_without_a_reason_do_no_harm() {
    let (done, failed) = compare(4, 512, Lies { spurious: 900, ..Lies::default() });
    assert_eq!((done as u64, failed), (times(200), 0));
}

/// Errors of the disk, wrong lengths, and commands that never end: the port is reset, and the next request works.
#[test]
fn after_a_failure_the_next_request_works() {
    for (lies, seeds) in [
        (Lies { errors: 200, ..Lies::default() }, 20),
        (Lies { lengths: 200, ..Lies::default() }, 20),
        (Lies { never: 20, spurious: 100, ..Lies::default() }, 3),
    ] {
        let mut sum = (0, 0);
        for seed in 0..seeds {
            let (done, failed) = compare(seed, 512, lies);
            sum = (sum.0 + done, sum.1 + failed);
        }
        assert!(sum.0 > 100 && sum.1 > 5, "{lies:?}: {sum:?}");
    }
}

#[test]
fn one_failure_is_told_and_mended() {
    for lies in [
        Lies { errors: 1000, ..Lies::default() },
        Lies { lengths: 1000, ..Lies::default() },
        Lies { never: 1000, ..Lies::default() },
    ] {
        let mut disk = opened(Model::new(9, 512, SECTORS));
        disk.write(3, &[3; 512]).unwrap();
        // The link comes up again only if the disk then says what it is: the lie ends with the reset.
        disk.hardware().lies = lies;
        let before = disk.hardware().now_ns;
        let outcome = disk.read(3, &mut [0; 512]);
        assert_eq!(outcome, Err(Trouble::Broken), "{lies:?}: nor can it say what it is");
        assert!(disk.hardware().now_ns - before < TIME_MAX_NS);
        assert_eq!(disk.hardware().resets, 1);
        disk.hardware().lies = Lies::default();
        assert_eq!(disk.read(3, &mut [0; 512]), Err(Trouble::Broken), "for ever");
        assert_eq!(disk.flush(), Err(Trouble::Broken));
        // Its next driver finds it well.
        let mut model = Model::new(9, 512, SECTORS);
        model.disk.copy_from_slice(&disk.hardware().disk.clone());
        let mut bytes = [0; 512];
        opened(model).read(3, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 512]);
    }
}

#[test]
fn another_disk_behind_the_same_port_is_not_taken_for_it() {
    let mut disk = opened(Model::new(1, 512, SECTORS));
    disk.hardware().description = Model::new(1, 512, SECTORS - 1).description;
    disk.hardware().lies.never = 1000;
    let (one, other) = (disk.read(0, &mut [0; 512]), disk.read(0, &mut [0; 512]));
    assert_eq!((one, other), (Err(Trouble::Broken), Err(Trouble::Broken)));
    let mut disk = opened(Model::new(1, 512, SECTORS));
    disk.hardware().disk_at = None;
    assert_eq!(disk.read(0, &mut [0; 512]), Err(Trouble::Broken), "it was pulled out");
}

#[test]
fn controllers_without_a_disk() {
    let open = |change: fn(&mut Model)| {
        let mut model = Model::new(1, 512, SECTORS);
        change(&mut model);
        Disk::open(model).map(|_| ())
    };
    assert_eq!(open(|_| ()), Ok(()));
    assert_eq!(open(|model| model.disk_at = None), Err(Trouble::NoDisk));
    assert_eq!(open(|model| model.signature = 0xeb14_0101), Err(Trouble::NoDisk), "a drive for discs");
    assert_eq!(open(|model| model.description = [0; 512]), Err(Trouble::Unsuitable));
    assert_eq!(open(|model| model.lies.never = 1000), Err(Trouble::Failed));
    assert_eq!(open(|model| model.lies.resets = 1000), Err(Trouble::Broken));
    assert!(open(|model| model.lies.registers = 1000).is_err());
    assert_eq!(open(|model| model.physical = 1 << 32), Ok(()));
    assert_eq!(
        open(|model| (model.physical, model.is_narrow) = ((1 << 32) - 4096, true)),
        Err(Trouble::Broken),
        "memory that it cannot reach"
    );
    assert_eq!(open(|model| (model.physical, model.is_narrow) = ((1 << 32) - 8192, true)), Ok(()));
}

/// Nothing of what a device says leads to a panic, to a hang, to bytes that were not asked for, or to memory that is not its own: the last is
/// watched by the model.
#[test]
fn a_device_that_lies() {
    let mut told = [0; 4];
    for seed in 0..times(2000) {
        let mut random = Random(seed);
        let mut rate = |most: u64| if random.below(2) == 0 { 0 } else { random.below(most) };
        let lies = Lies {
            registers: rate(20),
            bits: rate(50),
            memory: rate(400),
            never: rate(20),
            errors: rate(100),
            lengths: rate(100),
            spurious: rate(900),
            resets: rate(30),
        };
        let mut model = Model::new(seed, 512, SECTORS);
        model.lies = lies;
        let Ok(mut disk) = Disk::open(model) else {
            told[3] += 1;
            continue;
        };
        let geometry = disk.geometry();
        check_end(&mut disk, (0, 0), seed);
        for number in 0..20 {
            let begin = (disk.hardware().accesses, disk.hardware().now_ns);
            let first = if number % 2 == 0 { 0 } else { geometry.sectors - 1 };
            let mut bytes = vec![0xee; geometry.sector_bytes];
            let outcome = match number % 3 {
                0 => disk.write(first, &bytes),
                1 => disk.flush(),
                _ => disk.read(first, &mut bytes),
            };
            check_end(&mut disk, begin, seed);
            disk.quiet();
            match outcome {
                Ok(()) => told[0] += 1,
                Err(Trouble::Failed) => told[1] += 1,
                Err(Trouble::Broken) => told[2] += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
    }
    assert!(told.iter().all(|&count| count > 10), "not all was seen: {told:?}");
}

/// Interrupts come all the time, and no time passes in between.
#[test]
fn where_time_stands_still() {
    let mut model = Model::new(1, 512, SECTORS);
    model.is_time_still = true;
    assert_eq!(Disk::open(model).map(|_| ()), Err(Trouble::Failed));
    let mut disk = opened(Model::new(1, 512, SECTORS));
    disk.hardware().is_time_still = true;
    let begin = (disk.hardware().accesses, disk.hardware().now_ns);
    assert_eq!(disk.read(0, &mut [0; 512]), Err(Trouble::Broken));
    check_end(&mut disk, begin, 1);
}

/// All registers are all ones, all zeroes, or anything: a controller that was pulled out, and one that never was one.
#[test]
fn where_no_controller_is() {
    struct Anything(fn(usize) -> u32, u64);
    impl crate::Hardware for Anything {
        fn read(&mut self, at: usize) -> u32 {
            self.0(at)
        }
        fn write(&mut self, _: usize, _: u32) {}
        fn load(&mut self, _: usize, to: &mut [u8]) {
            to.fill(0xff);
        }
        fn store(&mut self, _: usize, _: &[u8]) {}
        fn device_address(&self) -> u64 {
            0x1000
        }
        fn now_ns(&self) -> u64 {
            self.1
        }
        fn pause(&mut self, ns: u64) {
            self.1 += ns;
        }
    }
    let read: [fn(usize) -> u32; 4] =
        [|_| u32::MAX, |_| 0, |at| at as u32, |at| if at == 0x04 { 0 } else { DISK }];
    for (number, read) in read.into_iter().enumerate() {
        assert!(Disk::open(Anything(read, 0)).is_err(), "{number}");
    }
}
