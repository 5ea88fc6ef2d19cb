//! Loaders and memory maps that are ordinary, damaged, or meant to harm.

use super::loader::{MemoryMap, PVH_MAGIC, Rsdp, parse_multiboot, parse_pvh};
use super::regions::{HOLE, Memory, Regions, memory};
use super::*;
use abi::PAGE_SIZE;
use abi::boot::{BootInfo, MemoryRegion, Screen, memory_kind, screen_kind};
use std::vec::Vec;

const IMAGE: Range = Range { start: 0x10_0000, len: 0x8_0000 };
const ARCHIVE: Range = Range { start: 0x80_0123, len: 0x4567 };

fn encode(entries: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (start, len, kind) in entries {
        bytes.extend(start.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

fn memory_of(entries: &[(u64, u64, u32)]) -> Memory {
    let bytes = encode(entries);
    let memory = memory(MemoryMap::new(&bytes), IMAGE, ARCHIVE);
    check(&memory.regions);
    memory
}

/// Checks the invariant of [`Regions`].
fn check(regions: &Regions) {
    for region in regions.as_slice() {
        assert!(region.len > 0 && region.kind != HOLE);
        assert_eq!((region.base % PAGE_SIZE, region.len % PAGE_SIZE), (0, 0));
    }
    for pair in regions.as_slice().windows(2) {
        let end = pair[0].base + pair[0].len;
        assert!(end < pair[1].base || (end == pair[1].base && pair[0].kind != pair[1].kind));
    }
}

fn kind_at(regions: &Regions, address: u64) -> u64 {
    let holds = |region: &&MemoryRegion| region.base <= address && address - region.base < region.len;
    regions.as_slice().iter().find(holds).map_or(HOLE, |region| region.kind)
}

const PC: [(u64, u64, u32); 4] =
    [(0x7fe_0000, 0x2_0000, 2), (0x10_0000, 0x7ee_0000, 1), (0, 0x9_fc00, 1), (0x9_fc00, 0x400, 2)];

#[test]
fn an_ordinary_pc() {
    let memory = memory_of(&PC);
    let regions = &memory.regions;
    assert_eq!(kind_at(regions, 0), memory_kind::FIRMWARE);
    assert_eq!(kind_at(regions, 0x9_f000), HOLE, "half a page of memory is none");
    assert_eq!(kind_at(regions, 0xa_0000), HOLE, "screen memory is a device");
    assert_eq!(kind_at(regions, 0xf_0000), memory_kind::FIRMWARE);
    assert_eq!(kind_at(regions, IMAGE.start), memory_kind::KERNEL);
    assert_eq!(kind_at(regions, IMAGE.end()), memory_kind::FREE);
    assert_eq!(kind_at(regions, 0x80_0000), memory_kind::ARCHIVE);
    assert_eq!(kind_at(regions, 0x80_4fff), memory_kind::ARCHIVE);
    assert_eq!(kind_at(regions, 0x80_5000), memory_kind::FREE);
    assert_eq!(kind_at(regions, 0x7fe_0000), HOLE);
    assert_eq!(memory.ram_bytes, 0x9_f000 + 0x7ee_0000);
}

#[test]
fn the_restrictive_kind_wins_in_any_order() {
    let mut entries =
        [(0x100_0000, 0x100_0000, 1), (0x110_0800, 0x1000, 2), (0x120_0000, 0x800, 3), (0, 1, 7)];
    for _ in 0..entries.len() {
        entries.rotate_left(1);
        let regions = memory_of(&entries).regions;
        assert_eq!(kind_at(&regions, 0x110_0000), HOLE);
        assert_eq!(kind_at(&regions, 0x110_1000), HOLE);
        assert_eq!(kind_at(&regions, 0x110_2000), memory_kind::FREE);
        assert_eq!(kind_at(&regions, 0x120_0000), memory_kind::FIRMWARE);
    }
}

/// A small generator: tests print nothing and need no seed from outside.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn hostile_maps_keep_the_invariant() {
    let mut state = 1;
    for _ in 0..2000 {
        let entries: Vec<_> = (0..random(&mut state) % 200)
            .map(|_| {
                let scale = random(&mut state) % 64;
                let mut word = || (random(&mut state) << 33 | random(&mut state)) >> scale;
                (word(), word(), (word() % 6) as u32)
            })
            .collect();
        let mut memory = memory_of(&entries);
        assert_eq!(kind_at(&memory.regions, IMAGE.start), memory_kind::KERNEL);
        assert_eq!(kind_at(&memory.regions, ARCHIVE.start), memory_kind::ARCHIVE);
        let before = memory.regions.clone();
        if let Ok(pool) = take_pool(&mut memory, None) {
            check(&memory.regions);
            assert_eq!(pool.range.start % POOL_UNIT, 0);
            assert_eq!(kind_at(&before, pool.range.start), memory_kind::FREE);
            assert_eq!(kind_at(&before, pool.range.end() - 1), memory_kind::FREE);
            assert!(!pool.range.overlaps(IMAGE) && !pool.range.overlaps(ARCHIVE));
        }
    }
}

#[test]
fn too_many_regions_lose_the_smallest() {
    let entries: Vec<_> = (0..300).map(|i| (0x1000_0000 + i * 0x10_0000, 0x1000 * (1 + i % 37), 1)).collect();
    let regions = memory_of(&entries).regions;
    assert!(regions.as_slice().len() <= BootInfo::MEMORY_MAX);
    assert!(regions.ranges(memory_kind::FREE).all(|range| range.len > 0x1000));
}

#[test]
fn the_pool_is_high_and_has_its_share() {
    let mut memory = memory_of(&PC);
    let pool = take_pool(&mut memory, None).unwrap();
    assert_eq!(pool.range, Range { start: 0x700_0000, len: 14 << 20 });
    assert_eq!(kind_at(&memory.regions, 0x700_0000), memory_kind::KERNEL);
    assert_eq!(kind_at(&memory.regions, 0x7e0_0000), memory_kind::FREE);
    let mut memory = memory_of(&PC);
    assert_eq!(take_pool(&mut memory, Some(5 << 20)).unwrap().range.len, 6 << 20);
    // In a large machine there is one slot for each thread that the pool has room for, unless its owner wants it otherwise.
    let large = [(0, 0x9_fc00, 1), (0x10_0000, 64 << 30, 1)];
    assert_eq!(take_pool(&mut memory_of(&large), None).unwrap().range.len, POOL_SHARE_MAX);
    assert_eq!(take_pool(&mut memory_of(&large), Some(2 << 30)).unwrap().range.len, 2 << 30);
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let refusal = |wanted| take_pool(&mut memory_of(&PC), wanted).unwrap_err();
    assert_eq!(refusal(Some(4096)), Refusal::SmallPool(4096));
    assert_eq!(refusal(Some(100 << 20)), Refusal::LargePool(100 << 20, 0x9_f000 + 0x7ee_0000));
    assert_eq!(refusal(Some(u64::MAX)), Refusal::LargePool(u64::MAX, 0x9_f000 + 0x7ee_0000));
    let small = [(0, 0x9_fc00, 1), (0x10_0000, 0xee_0000, 1)];
    let refusal = take_pool(&mut memory_of(&small), None).unwrap_err();
    assert_eq!(std::format!("{refusal}"), "this machine has 16 MiB of memory, Tern needs at least 24");
    let scattered: Vec<_> = (1..40).map(|i| (i << 21, (2 << 20) - 4096, 1)).collect();
    assert_eq!(take_pool(&mut memory_of(&scattered), None), Err(Refusal::NoRoomForPool(8 << 20)));
}

#[test]
fn archives_that_cannot_be() {
    let range = |start, len| Some(Range { start, len });
    assert_eq!(check_archive(None, IMAGE), Err(Refusal::NoArchive));
    for bad in
        [range(0x80_0000, 0), range(u64::MAX, 2), range(0x17_0000, 0x10_0000), range(1 << 51, 1 << 51 | 1)]
    {
        assert!(matches!(check_archive(bad, IMAGE), Err(Refusal::BadArchive(_))));
    }
    assert_eq!(check_archive(Some(ARCHIVE), IMAGE), Ok(ARCHIVE));
}

fn multiboot() -> Vec<u8> {
    let mut info = std::vec![0; 8];
    let mut tag = |kind: u32, body: &[u8]| {
        info.extend(kind.to_le_bytes());
        info.extend((8 + body.len() as u32).to_le_bytes());
        info.extend(body);
        info.resize(info.len().next_multiple_of(8), 0);
    };
    tag(1, b"seed=5\0");
    tag(3, &[0, 0, 0x80, 0, 0x10, 0, 0x80, 0, 0]);
    tag(3, &[0, 0, 0x90, 0, 0x10, 0, 0x90, 0, 0]);
    let mut map = std::vec![24, 0, 0, 0, 0, 0, 0, 0];
    map.extend(encode(&PC));
    tag(6, &map);
    tag(15, b"RSD PTR new");
    tag(14, b"RSD PTR old");
    tag(0, &[]);
    info
}

#[test]
fn multiboot_information() {
    let info = multiboot();
    let loaded = parse_multiboot(&info).unwrap();
    assert_eq!(loaded.command_line, b"seed=5");
    assert_eq!(loaded.archive, Some(Range { start: 0x80_0000, len: 16 }));
    assert_eq!(loaded.rsdp, Rsdp::Copy(b"RSD PTR new"));
    assert_eq!(loaded.map.entries().count(), 4);
}

#[test]
fn damaged_multiboot_information_never_panics() {
    let info = multiboot();
    for cut in 0..info.len() {
        if let Ok(loaded) = parse_multiboot(&info[..cut]) {
            memory(loaded.map, IMAGE, ARCHIVE);
        }
        for value in [0, 1, 0x7f, 0xff] {
            let mut bad = info.clone();
            bad[cut] = value;
            if let Ok(loaded) = parse_multiboot(&bad) {
                check(&memory(loaded.map, IMAGE, ARCHIVE).regions);
            }
        }
    }
}

/// A framebuffer's tag.
fn screen_tag(kind: u8, bits: u8, [address, pitch, width, height]: [u64; 4]) -> Vec<u8> {
    let mut tag = [8u32, 38].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    tag.extend(address.to_le_bytes());
    tag.extend([pitch, width, height].iter().flat_map(|&word| (word as u32).to_le_bytes()));
    tag.extend([bits, kind, 0, 0, 16, 8, 8, 8, 0, 8]);
    tag
}

/// Screen that is read from a tag, which stands in front of the others.
fn screen_of(tag: &[u8]) -> Screen {
    let mut info = multiboot();
    let mut tag = tag.to_vec();
    tag.resize(tag.len().next_multiple_of(8), 0);
    info.splice(8..8, tag);
    parse_multiboot(&info).unwrap().screen
}

#[test]
fn screens_are_told_of() {
    const USUAL: [u64; 4] = [0x8000_0000, 3200, 800, 600];
    let screen = screen_of(&screen_tag(1, 32, USUAL));
    let (kind, bytes, red, green, blue) = (screen_kind::PIXELS, 4, 16, 8, 0);
    assert_eq!(
        screen,
        Screen { address: 0x8000_0000, pitch: 3200, width: 800, height: 600, kind, bytes, red, green, blue }
    );
    let text = screen_of(&screen_tag(2, 16, [0xb8000, 160, 80, 25]));
    assert_eq!((text.kind, text.address, text.width, text.height), (screen_kind::TEXT, 0xb8000, 80, 25));
    let narrow = screen_of(&screen_tag(1, 24, [0x8000_0000, 2400, 800, 600]));
    assert_eq!((narrow.kind, narrow.bytes, narrow.red), (screen_kind::PIXELS, 3, 16));
    assert_eq!(parse_multiboot(&multiboot()).unwrap().screen, Screen::default());
    for (kind, bits, numbers) in [
        (0, 8, USUAL),
        (3, 32, USUAL),
        (1, 16, USUAL),
        (1, 32, [0, 3200, 800, 600]),
        (1, 32, [u64::MAX, 3200, 800, 600]),
        (1, 32, [0x8000_0001, 3200, 800, 600]),
        (1, 32, [0x8000_0000, 3199, 800, 600]),
        (1, 32, [0x8000_0000, 3200, 0, 600]),
        (1, 32, [0x8000_0000, 3200, 800, 0]),
        (1, 32, [0x8000_0000, 3200, u64::MAX, 600]),
        (1, 32, [0x8000_0000, u64::MAX, 800, u64::MAX]),
    ] {
        assert_eq!(
            screen_of(&screen_tag(kind, bits, numbers)),
            Screen::default(),
            "{kind} {bits} {numbers:x?}"
        );
    }
    let tag = screen_tag(1, 32, USUAL);
    for len in 8..tag.len() {
        let mut short = tag[..len].to_vec();
        short[4] = len as u8;
        assert_eq!(screen_of(&short), Screen::default(), "{len} bytes");
    }
}

/// A machine whose memory is one vector at 0x1000.
fn pvh() -> Vec<u8> {
    let mut image = Vec::new();
    for word in [PVH_MAGIC, 1, 0, 1] {
        image.extend(word.to_le_bytes());
    }
    for word in [0x1040u64, 0x1060, 0xf_0000, 0x1080, PC.len() as u64] {
        image.extend(word.to_le_bytes());
    }
    image.resize(0x40, 0);
    for word in [0x80_0000u64, 16, 0, 0] {
        image.extend(word.to_le_bytes());
    }
    image.extend(b"kmem=4M\0");
    image.resize(0x80, 0);
    image.extend(encode(&PC));
    image.resize(0x400, 0);
    image
}

fn reader<'a>(image: &'a [u8]) -> impl Fn(u64, u64) -> Option<&'a [u8]> {
    move |at, len| {
        let at = usize::try_from(at.checked_sub(0x1000)?).ok()?;
        image.get(at..at.checked_add(usize::try_from(len).ok()?)?)
    }
}

#[test]
fn pvh_information() {
    let image = pvh();
    let loaded = parse_pvh(0x1000, reader(&image)).unwrap();
    assert_eq!(loaded.command_line, b"kmem=4M");
    assert_eq!(loaded.archive, Some(Range { start: 0x80_0000, len: 16 }));
    assert_eq!(loaded.rsdp, Rsdp::At(0xf_0000));
    assert_eq!(loaded.map.entries().count(), 4);
}

#[test]
fn damaged_pvh_information_never_panics() {
    let image = pvh();
    for at in 0..0x100 {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bad = image.clone();
            bad[at] = value;
            if let Ok(loaded) = parse_pvh(0x1000, reader(&bad)) {
                check(&memory(loaded.map, IMAGE, ARCHIVE).regions);
            }
        }
    }
    assert!(parse_pvh(0, reader(&image)).is_err());
}

#[test]
fn long_command_lines_are_refused() {
    let mut boot = Boot::new();
    assert_eq!(boot.set_command_line(&[b'x'; COMMAND_LINE_MAX + 1]), Err(Refusal::LongCommandLine));
    boot.set_command_line(&[0xff; 4]).unwrap();
    assert!(boot.command_line().is_err());
    boot.set_command_line(b"seed=1").unwrap();
    assert_eq!(boot.command_line(), Ok("seed=1"));
}
