//! Units of all kinds, against a list of what should be mapped.

mod model;

use crate::registers::PROTECTED;
use crate::{Domain, Fault, Hardware, Trouble, Unit};
use model::{Kind, Lies, Model, ORDINARY, Random};
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

const PAGE: u64 = 4096;

/// Kinds of units that behave differently.
fn kinds() -> Vec<Kind> {
    let mut kinds = vec![
        ORDINARY,
        Kind { levels: 4, width: 48, ..ORDINARY },
        Kind { width: 48, ..ORDINARY },
        Kind { levels: 4, width: 40, domains_log2: 4, ..ORDINARY },
        Kind { width: 36, domains_log2: 16, records: 1, ..ORDINARY },
        Kind { protects: true, domains_log2: 4, ..ORDINARY },
        Kind { pages: 12, ..ORDINARY },
    ];
    for (keeps_absence, has_buffer) in [(true, false), (false, true), (true, true)] {
        kinds.push(Kind { keeps_absence, has_buffer, ..ORDINARY });
    }
    kinds
}

fn open(kind: Kind) -> Unit<Model> {
    Unit::open(Model::new(kind)).unwrap()
}

#[test]
fn nothing_is_reachable_at_first() {
    for kind in kinds() {
        for model in [Model::new(kind), Model::used(kind)] {
            let mut unit = Unit::open(model).unwrap();
            for (source, address) in [(0, 0), (8, 5 * PAGE), (8, 0x9000), (0xffff, 0xfee0_0000), (8, 1 << 38)]
            {
                assert_eq!(unit.hardware().access(source, address, true), None);
            }
            assert!(!kind.protects || unit.hardware().get(PROTECTED) == 0);
        }
    }
}

#[test]
fn what_is_mapped_is_reachable_by_one() {
    for kind in kinds() {
        let mut unit = open(kind);
        // Looked for before it is there: some units keep that it is not.
        assert_eq!(unit.hardware().access(0x0108, 0x10_0000, false), None);
        let mut domain = unit.attach(0x0108).unwrap();
        assert_eq!(unit.hardware().access(0x0108, 0x10_0000, false), None);
        unit.map(&mut domain, 0x10_0000, 0x7654_2000, 13).unwrap();
        let mut reach = |source, address| unit.hardware().access(source, address, true);
        assert_eq!(reach(0x0108, 0x10_0123), Some(0x7654_2123));
        assert_eq!(reach(0x0108, 0x10_1fff), Some(0x7654_3fff));
        for (source, address) in [
            (0x0108, 0x0f_ffff),
            (0x0108, 0x10_2000),
            (0x0108, 0x7654_2000),
            (0x0109, 0x10_0000),
            (8, 0x10_0000),
        ] {
            assert_eq!(reach(source, address), None, "{source:x} {address:x}");
        }
        unit.detach(domain).unwrap();
        assert_eq!(unit.hardware().access(0x0108, 0x10_0123, true), None);
    }
}

#[test]
fn what_cannot_be_mapped() {
    let mut unit = open(Kind { width: 36, ..ORDINARY });
    let mut domain = unit.attach(8).unwrap();
    for (address, physical, log2) in [
        (0x1000, 0x3000, 13),
        (0x2000, 0x3000, 13),
        (0x1800, 0x3000, 12),
        (0x1000, 0x3800, 12),
        (0, 0, 11),
        (0, 0, 36),
        (0, 0, 64),
        (1 << 36, 0, 12),
        (u64::MAX << 12, 0, 12),
        (0, 1 << 52, 12),
        (0, u64::MAX << 12, 12),
    ] {
        assert_eq!(unit.map(&mut domain, address, physical, log2), Err(Trouble::BadAddress), "{address:x}");
    }
    let mut wide = open(Kind { width: 48, ..ORDINARY });
    let mut of_wide = wide.attach(8).unwrap();
    assert_eq!(wide.map(&mut of_wide, 1 << 39, 0x3000, 12), Err(Trouble::BadAddress), "beyond three levels");
    unit.map(&mut domain, (1 << 36) - PAGE, (1 << 52) - PAGE, 12).unwrap();
    unit.map(&mut domain, 0x2000, 0x5000, 12).unwrap();
    // Half of it is there.
    assert_eq!(unit.map(&mut domain, 0x2000, 0x8000, 13), Err(Trouble::Taken));
    assert_eq!(unit.hardware().access(8, 0x3000, false), None);
    assert_eq!(unit.attach(8).err(), Some(Trouble::Taken));
}

/// Whatever happens in which order: what should be mapped is, and nothing else.
#[test]
fn as_the_list_says() {
    for (number, kind) in kinds().into_iter().enumerate() {
        let mut random = Random(number as u64 + 1);
        let mut unit = open(kind);
        let mut domains: BTreeMap<u16, (Domain, BTreeMap<u64, u64>)> = BTreeMap::new();
        let sources = [0x0008, 0x0010, 0x00f8, 0x0100, 0x01ff, 0x8000];
        let addresses = [0, 0x10_0000, 0x1f_f000, 0x20_0000, 0x4000_0000, (1 << 36) - 16 * PAGE];
        for _ in 0..3000 {
            let source = sources[random.below(sources.len() as u64) as usize];
            match (random.below(8), domains.get_mut(&source)) {
                (0..4, Some((domain, pages))) => {
                    let log2 = 12 + random.below(3) as u32;
                    let near = addresses[random.below(addresses.len() as u64) as usize];
                    let at = (near + (random.below(4) << log2)) >> log2 << log2;
                    let physical = random.below(1 << 20) << log2;
                    let range = || (0..1 << log2).step_by(PAGE as usize);
                    let is_free = range().all(|offset| !pages.contains_key(&(at + offset)));
                    match unit.map(domain, at, physical, log2) {
                        Ok(()) => {
                            assert!(is_free);
                            pages.extend(range().map(|offset| (at + offset, physical + offset)));
                        }
                        Err(Trouble::Taken) => assert!(!is_free),
                        Err(trouble) => assert_eq!((trouble, kind.pages), (Trouble::Exhausted, 12)),
                    }
                }
                (0..4, None) => match unit.attach(source) {
                    Ok(domain) => drop(domains.insert(source, (domain, BTreeMap::new()))),
                    Err(trouble) => assert_eq!((trouble, kind.pages), (Trouble::Exhausted, 12)),
                },
                (4, Some(_)) => {
                    let (domain, _) = domains.remove(&source).unwrap();
                    unit.detach(domain).unwrap();
                }
                _ => {}
            }
            // All that is mapped is there, and of the rest some is looked at.
            for &source in &sources {
                let nothing = BTreeMap::new();
                let pages = domains.get(&source).map_or(&nothing, |(_, pages)| pages);
                let near = addresses[random.below(addresses.len() as u64) as usize] + PAGE * random.below(32);
                for at in pages.keys().copied().take(4).chain([near]) {
                    let wanted = pages.get(&at).map(|physical| physical + 0x123);
                    assert_eq!(unit.hardware().access(source, at + 0x123, true), wanted, "{source:x} {at:x}");
                }
            }
        }
        for (domain, _) in std::mem::take(&mut domains).into_values() {
            unit.detach(domain).unwrap();
        }
        // The root table, and a context table for each bus.
        assert!(unit.hardware().taken.len() <= 4, "tables are lost");
    }
}

/// Numbers of domains are used again, and more than there are cannot be had.
#[test]
fn numbers_of_domains() {
    let mut unit = open(Kind { domains_log2: 4, ..ORDINARY });
    let mut domains: Vec<Domain> = (0..15).map(|source| unit.attach(source).unwrap()).collect();
    assert_eq!(unit.attach(15).err(), Some(Trouble::Exhausted));
    unit.map(&mut domains[3], 0x1000, 0x5000, 12).unwrap();
    assert_eq!(unit.hardware().access(3, 0x1000, true), Some(0x5000));
    unit.detach(domains.swap_remove(3)).unwrap();
    domains.push(unit.attach(15).unwrap());
    assert_eq!(unit.hardware().access(15, 0x1000, true), None);
    assert_eq!(unit.hardware().access(3, 0x1000, true), None);
}

#[test]
fn faults_are_told_once() {
    let mut unit = open(Kind { records: 2, ..ORDINARY });
    let mut told = Vec::new();
    unit.hardware().access(0x0108, 0x12_3456_7890, true);
    unit.hardware().access(0x0200, 0x8000, false);
    // There is no record left.
    unit.hardware().access(0x0300, 0x8000, false);
    unit.faults(|fault| told.push(fault));
    let write = Fault { source: 0x0108, address: 0x12_3456_7000, is_write: true };
    assert_eq!(told, [write, Fault { source: 0x0200, address: 0x8000, is_write: false }]);
    unit.faults(|fault| panic!("{fault:?}"));
    unit.hardware().access(0x0300, 0x8000, false);
    told.clear();
    unit.faults(|fault| told.push(fault));
    assert_eq!(told.len(), 1);
}

/// A unit that never answers a command is given up in time. Memory that it may still reach is not used otherwise.
#[test]
fn a_unit_that_stands_still() {
    for kind in kinds() {
        for after in 0..40 {
            let mut model = Model::used(kind);
            model.lies = Lies::After(after);
            let Ok(mut unit) = Unit::open(model) else { continue };
            let outcome = unit.attach(8).and_then(|mut domain| {
                unit.map(&mut domain, 0x1000, 0x5000, 12)?;
                unit.hardware().access(8, 0x1000, true);
                let taken = unit.hardware().taken.len();
                let outcome = unit.detach(domain);
                let is_kept = unit.hardware().taken.len() == taken;
                assert_eq!(
                    outcome.is_err(),
                    is_kept,
                    "tables are given back when the unit has forgotten them"
                );
                outcome
            });
            assert_eq!(outcome.is_ok(), unit.is_sound());
            if outcome.is_err() {
                assert_eq!(unit.attach(16).err(), Some(Trouble::Broken));
            }
        }
    }
}

#[test]
fn a_unit_that_does_nothing() {
    for contexts in [false, true] {
        let mut unit = open(ORDINARY);
        let domain = unit.attach(8).unwrap();
        unit.hardware().lies = Lies::Undone { contexts };
        let taken = unit.hardware().taken.len();
        assert_eq!(unit.detach(domain), Err(Trouble::Broken));
        assert_eq!(unit.hardware().taken.len(), taken);
    }
}

/// Whatever the registers say, nothing panics, ends, or reaches for memory of others.
#[test]
fn a_unit_that_lies() {
    for seed in 0..2000 {
        let mut model = Model::new(kinds()[seed as usize % kinds().len()]);
        model.lies = Lies::Anything(Random(seed), 1 + seed % 300);
        let Ok(mut unit) = Unit::open(model) else { continue };
        for source in [8, 16, 0x0100] {
            let Ok(mut domain) = unit.attach(source) else { continue };
            let _ = unit.map(&mut domain, 0x1000, 0x5000, 13);
            unit.faults(|_| {});
            let _ = unit.detach(domain);
        }
    }
}

/// There is nothing, or nothing that is understood.
#[test]
fn no_unit() {
    struct Nothing(u32);
    impl Hardware for Nothing {
        fn read(&mut self, _: usize) -> u32 {
            self.0
        }
        fn write(&mut self, _: usize, _: u32) {
            panic!("tells nobody something");
        }
        fn take_page(&mut self) -> Option<u64> {
            None
        }
        fn give_back(&mut self, _: u64) {}
        fn load(&mut self, _: u64, _: usize) -> u64 {
            0
        }
        fn store(&mut self, _: u64, _: usize, _: u64) {}
        fn now_ns(&self) -> u64 {
            0
        }
        fn pause(&mut self) {}
    }
    for value in [0, 1, u32::MAX] {
        assert_eq!(Unit::open(Nothing(value)).err(), Some(Trouble::Unsuitable));
    }
}
