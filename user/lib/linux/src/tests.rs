//! Memory of processes against a model that knows bytes alone: no frames, no copies, no rights of the machine.

mod budget;
mod bytes;
mod cache;
mod counted;
mod crossings;
mod faults;
mod held;
mod hostile;
mod late;
mod limits;
mod opened;
mod others;
mod places;
pub(crate) mod random;
mod waits;
mod world;

use crate::errno::{EEXIST, EINVAL, ENOMEM};
use crate::executable::{self, Executable, HEAD_BYTES, Told};
use crate::frames::{Bytes, Frame, Frames, PAGE};
use crate::memory::{Access, Fault, FileNumber, Kind, Memory, Move, Rights, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

/// Frames of a machine, and who has them mapped: process, page, rights.
struct Machine {
    frames: Vec<Vec<u8>>,
    mapped: BTreeMap<(usize, u64), (Frame, Rights)>,
}

impl Machine {
    fn new(count: usize) -> Machine {
        // Bytes that were there before are nobody's business.
        Machine { frames: vec![vec![0xee; PAGE as usize]; count], mapped: BTreeMap::new() }
    }
}

impl Bytes for Machine {
    fn count(&self) -> u32 {
        self.frames.len() as u32
    }
    fn make(&mut self, _: Frame) -> bool {
        true
    }
    fn clear(&mut self, frame: Frame) {
        self.frames[frame.0 as usize].fill(0);
    }
    fn copy(&mut self, from: Frame, to: Frame) {
        self.frames[to.0 as usize] = self.frames[from.0 as usize].clone();
    }
    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize) {
        let bytes = self.frames[from.0.0 as usize][from.1..from.1 + len].to_vec();
        self.write(to.0, to.1, &bytes);
    }
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.frames[frame.0 as usize][at..at + to.len()]);
    }
    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.frames[frame.0 as usize][at..at + from.len()].copy_from_slice(from);
    }
    fn protect(&mut self, frame: Frame) {
        for (mapped, rights) in self.mapped.values_mut() {
            if *mapped == frame {
                *rights = Rights(rights.0 & !Rights::WRITE.0);
            }
        }
    }
    fn withdraw(&mut self, frame: Frame) {
        self.mapped.retain(|_, (mapped, _)| *mapped != frame);
    }
}

/// Processes with the kernel's memory, and a page cache of files, whose page n begins with the byte n + 1.
struct World {
    frames: Frames<Machine>,
    memories: Vec<Memory>,
    cache: BTreeMap<(u64, u64), Frame>,
}

impl World {
    fn new(count: usize) -> World {
        let frames = Frames::new(Machine::new(count));
        World { frames, memories: vec![Memory::default()], cache: BTreeMap::new() }
    }

    /// A process accesses a byte, as a processor does: by what is mapped, and by a fault where that does not suffice.
    fn access(&mut self, process: usize, address: u64, write: Option<u8>) -> Result<u8, Fault> {
        let wanted = if write.is_some() { Rights::WRITE } else { Rights::READ };
        let (page, at) = (address / PAGE, (address % PAGE) as usize);
        loop {
            if let Some(&(frame, rights)) = self.frames.bytes.mapped.get(&(process, page))
                && rights.has(wanted)
            {
                let bytes = &mut self.frames.bytes.frames[frame.0 as usize];
                if let Some(byte) = write {
                    bytes[at] = byte;
                }
                return Ok(bytes[at]);
            }
            match self.memories[process].fault(&mut self.frames, address, wanted)? {
                Access::Mapped(frame, rights) => {
                    self.frames.note_mapped(frame, rights);
                    self.frames.bytes.mapped.insert((process, page), (frame, rights));
                }
                Access::Wants(Source { file: FileNumber(file), offset }, _) => {
                    let known = self.cache.get(&(file, offset)).copied();
                    let frame = match known {
                        Some(frame) => frame,
                        None => {
                            let frame = self.frames.zeroed().map_err(|_| Fault::NoMemory)?;
                            if file < SHARED {
                                self.frames.bytes.write(frame, 0, &[(offset / PAGE) as u8 + 1]);
                            }
                            self.cache.insert((file, offset), frame);
                            frame
                        }
                    };
                    self.memories[process].supply(&mut self.frames, address, frame);
                }
            }
        }
    }

    /// Whatever is mapped is what a fault would map now, with no more rights.
    fn check_mapped(&mut self) {
        for ((process, page), (frame, rights)) in self.frames.bytes.mapped.clone() {
            let found = self.memories[process].fault(&mut self.frames, page * PAGE, Rights::READ);
            let Ok(Access::Mapped(now, allowed)) = found else { panic!("{process} has {page} mapped") };
            assert_eq!(now, frame, "{process} has another frame mapped at {page}");
            assert!(allowed.has(rights), "{process} has {rights:?} at {page}, and may have {allowed:?}");
        }
    }

    fn fork(&mut self, process: usize) -> usize {
        let copy = self.memories[process].copy(&mut self.frames).unwrap();
        self.memories.push(copy);
        self.memories.len() - 1
    }
}

/// Numbers of files from here on are memory without a name that several processes share.
const SHARED: u64 = 100;

const BASE: u64 = 0x10_0000;

fn private() -> Kind {
    Kind::private(Rights::READ_WRITE)
}

fn of_file(file: u64, page: u64, is_shared: bool) -> Kind {
    let source = Some(Source { file: FileNumber(file), offset: page * PAGE });
    Kind { source, is_shared, ..private() }
}

#[test]
fn memory_is_zero_until_it_is_written() {
    let mut world = World::new(10);
    let Machine { .. } = world.frames.bytes;
    world.memories[0].map(&mut world.frames, Some(BASE), 3 * PAGE, private(), false).unwrap();
    assert_eq!(world.access(0, BASE + 5, None), Ok(0));
    assert_eq!(world.access(0, BASE + 5, Some(7)), Ok(7));
    assert_eq!(world.access(0, BASE - 1, None), Err(Fault::Nothing));
    assert_eq!(world.access(0, BASE + 3 * PAGE, None), Err(Fault::Nothing));
    assert_eq!(world.memories[0].sizes(), (3 * PAGE, PAGE));
    world.memories[0].unmap(&mut world.frames, BASE, PAGE).unwrap();
    assert_eq!(world.access(0, BASE + 5, None), Err(Fault::Nothing));
    assert_eq!(world.frames.used(), 0);
}

#[test]
fn a_copy_is_written_to_by_one_alone() {
    let mut world = World::new(10);
    world.memories[0].map(&mut world.frames, Some(BASE), 2 * PAGE, private(), false).unwrap();
    world.access(0, BASE, Some(1)).unwrap();
    let child = world.fork(0);
    assert_eq!(world.access(child, BASE, None), Ok(1));
    assert_eq!(world.frames.used(), 1, "both have one frame");
    world.access(0, BASE, Some(2)).unwrap();
    assert_eq!((world.access(child, BASE, None), world.access(0, BASE, None)), (Ok(1), Ok(2)));
    assert_eq!(world.frames.used(), 2);
    // The last one that has it writes where it is.
    world.access(child, BASE, Some(3)).unwrap();
    assert_eq!(world.frames.used(), 2);
    // Pages that were touched by nobody are each one's own.
    world.access(child, BASE + PAGE, Some(4)).unwrap();
    assert_eq!(world.access(0, BASE + PAGE, None), Ok(0));
}

#[test]
fn pages_of_files_are_shared_until_they_are_written() {
    let mut world = World::new(10);
    let kinds = [of_file(1, 3, false), of_file(1, 3, true), of_file(1, 4, true)];
    for (place, kind) in (0..).zip(kinds) {
        let at = BASE + place * 16 * PAGE;
        world.memories[0].map(&mut world.frames, Some(at), 2 * PAGE, kind, false).unwrap();
    }
    let [own, shared, next] = [0, 16, 32].map(|page| BASE + page * PAGE);
    assert_eq!(world.access(0, own, None), Ok(4));
    assert_eq!(world.access(0, own + PAGE, None), Ok(5));
    assert_eq!(world.access(0, shared, None), Ok(4));
    world.access(0, own, Some(50)).unwrap();
    assert_eq!(world.access(0, shared, None), Ok(4), "a private page is nobody else's");
    world.access(0, shared + PAGE, Some(60)).unwrap();
    assert_eq!(world.access(0, next, None), Ok(60), "a shared one is everybody's");
    assert_eq!(world.access(0, own + PAGE, None), Ok(60), "also where it was only read");
}

#[test]
fn calls_that_make_no_sense() {
    let mut world = World::new(10);
    let World { frames, memories, .. } = &mut world;
    let memory = &mut memories[0];
    assert_eq!(memory.map(frames, Some(BASE + 1), PAGE, private(), false), Err(EINVAL));
    assert_eq!(memory.map(frames, Some(BASE), 0, private(), false), Err(EINVAL));
    assert_eq!(memory.map(frames, None, u64::MAX, private(), false), Err(ENOMEM));
    assert_eq!(memory.map(frames, None, 1 << 47, private(), false), Err(ENOMEM));
    assert_eq!(memory.map(frames, Some(!(PAGE - 1)), PAGE, private(), true), Err(ENOMEM));
    memory.map(frames, Some(BASE), 4 * PAGE, private(), false).unwrap();
    assert_eq!(memory.map(frames, Some(BASE + PAGE), PAGE, private(), false), Err(EEXIST));
    assert_eq!(memory.unmap(frames, BASE, 0), Err(EINVAL));
    assert_eq!(memory.unmap(frames, BASE, u64::MAX), Err(EINVAL));
    assert_eq!(memory.protect(frames, BASE, 5 * PAGE, Rights::READ), Err(ENOMEM));
    assert_eq!(memory.remap(frames, (BASE, PAGE), 0, Move::Anywhere), Err(EINVAL));
    assert_eq!(memory.remap(frames, (BASE, 4 * PAGE), 8 * PAGE, Move::To(BASE + 2 * PAGE)), Err(EINVAL));
    let other = memory.map_near(frames, BASE, PAGE, private()).unwrap();
    assert_ne!(other, BASE, "there is something");
}

#[test]
fn a_heap_grows_and_shrinks() {
    let mut world = World::new(100);
    let World { frames, memories, .. } = &mut world;
    memories[0].begin_heap(BASE + 100);
    assert_eq!(memories[0].set_break(frames, 0), BASE + 100);
    assert_eq!(memories[0].set_break(frames, BASE + 3 * PAGE), BASE + 3 * PAGE);
    assert_eq!(memories[0].set_break(frames, u64::MAX), BASE + 3 * PAGE);
    world.access(0, BASE + 2 * PAGE, Some(1)).unwrap();
    assert_eq!(world.memories[0].set_break(&mut world.frames, BASE + PAGE + 1), BASE + PAGE + 1);
    assert_eq!(world.access(0, BASE + 2 * PAGE, None), Err(Fault::Nothing));
    world.memories[0].set_break(&mut world.frames, BASE + 3 * PAGE);
    assert_eq!(world.access(0, BASE + 2 * PAGE, None), Ok(0), "what comes back is zero");
}

/// Bytes that begin pages of a process, and what may be done there.
#[derive(Clone, Default)]
struct Model(BTreeMap<u64, (u8, Rights)>);

/// Random calls and accesses of several processes, all of whose pages begin with a byte of their own in the model.
#[test]
fn memory_and_model_agree() {
    let mut random = 1u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    for _ in 0..300 {
        let mut world = World::new(400);
        let mut models = vec![Model::default()];
        let mut gone = BTreeSet::new();
        for _ in 0..150 {
            let process = below(models.len() as u64) as usize;
            if gone.contains(&process) {
                continue;
            }
            let (first, count) = (below(24), 1 + below(8));
            let (start, len) = (BASE + first * PAGE, count * PAGE);
            let pages = first..first + count;
            let rights = Rights([0, 1, 3, 3][below(4) as usize]);
            let choice = below(10);
            if choice == 4 && models.len() < 5 {
                let copy = models[process].clone();
                models.push(copy);
                world.fork(process);
                continue;
            }
            let World { frames, memories, .. } = &mut world;
            let (memory, model) = (&mut memories[process], &mut models[process].0);
            match choice {
                0 | 1 => {
                    memory.map(frames, Some(start), len, Kind::private(rights), true).unwrap();
                    model.extend(pages.map(|page| (page, (0, rights))));
                }
                2 => {
                    memory.unmap(frames, start, len).unwrap();
                    model.retain(|page, _| !pages.contains(page));
                }
                3 => {
                    let is_whole = pages.clone().all(|page| model.contains_key(&page));
                    assert_eq!(memory.protect(frames, start, len, rights).is_ok(), is_whole);
                    if is_whole {
                        model.range_mut(pages).for_each(|(_, (_, had))| *had = rights);
                    }
                }
                5 if process > 0 && below(4) == 0 => {
                    frames.bytes.mapped.retain(|(of, _), _| *of != process);
                    memory.clear(frames);
                    gone.insert(process);
                    model.clear();
                }
                6 => {
                    // To where nothing is mapped otherwise.
                    let kinds: BTreeSet<u8> =
                        pages.clone().filter_map(|page| model.get(&page).map(|(_, had)| had.0)).collect();
                    let is_whole = pages.clone().all(|page| model.contains_key(&page)) && kinds.len() == 1;
                    if is_whole {
                        let to = 64 + below(16);
                        let at = memory.remap(frames, (start, len), len, Move::To(BASE + to * PAGE)).unwrap();
                        assert_eq!(at, BASE + to * PAGE);
                        let moved: Vec<_> = pages
                            .filter_map(|page| Some((page - first + to, model.remove(&page)?)))
                            .collect();
                        model.extend(moved);
                    }
                }
                _ => {
                    let page = if below(4) == 0 { 64 + below(24) } else { first };
                    let write = (below(2) == 0).then(|| 1 + below(200) as u8);
                    let wanted = if write.is_some() { Rights::WRITE } else { Rights::READ };
                    let expected = match model.get_mut(&page) {
                        None => Err(Fault::Nothing),
                        Some((_, rights)) if !rights.has(wanted) => Err(Fault::Denied),
                        Some((byte, _)) => {
                            *byte = write.unwrap_or(*byte);
                            Ok(*byte)
                        }
                    };
                    assert_eq!(world.access(process, BASE + page * PAGE, write), expected);
                }
            }
            world.check_mapped();
        }
        for (process, model) in models.iter().enumerate() {
            for (&page, &(byte, rights)) in &model.0 {
                let expected = if rights.has(Rights::READ) { Ok(byte) } else { Err(Fault::Denied) };
                assert_eq!(world.access(process, BASE + page * PAGE, None), expected);
            }
        }
        let World { frames, memories, .. } = &mut world;
        frames.bytes.mapped.clear();
        memories.iter_mut().for_each(|memory| memory.clear(frames));
        assert_eq!(frames.used(), 0, "a frame is lost");
    }
}

/// The test itself is an executable.
#[test]
fn an_executable_is_what_its_tools_say() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let found = Executable::read(&bytes[..HEAD_BYTES], bytes.len() as u64).unwrap();
    let whole = elf::ElfBytes::<elf::endian::LittleEndian>::minimal_parse(&bytes).unwrap();
    assert_eq!(found.entry, whole.ehdr.e_entry);
    let loaded: Vec<_> =
        whole.segments().unwrap().iter().filter(|entry| entry.p_type == elf::abi::PT_LOAD).collect();
    assert_eq!(found.segments.len(), loaded.len());
    for (segment, entry) in found.segments.iter().zip(loaded) {
        assert_eq!((segment.address, segment.memory_bytes), (entry.p_vaddr, entry.p_memsz));
        let (first, file, end) = segment.pages();
        assert!(first <= segment.address && file <= end && end - first < entry.p_memsz + 2 * PAGE);
    }
    let (at, len) = found.interpreter.unwrap();
    assert!(bytes[at as usize..][..len as usize].starts_with(b"/lib"));
}

/// Heads that are damaged anyhow are refused, or make sense.
#[test]
fn damaged_executables_make_sense_or_are_none() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut random = 1u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut head = bytes[..HEAD_BYTES].to_vec();
        for _ in 0..1 + below(4) {
            let at = below(1024) as usize;
            head[at] = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8][below(6) as usize];
        }
        if below(8) == 0 {
            head.truncate(below(1024) as usize);
        }
        match Executable::read(&head, bytes.len() as u64) {
            Ok(found) => {
                let (first, end) = found.range();
                assert!(first < end && end <= crate::memory::END);
                read += 1;
            }
            Err(error) => {
                assert_eq!(error, crate::errno::ENOEXEC);
                refused += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}

#[test]
fn a_stack_has_what_a_program_looks_for() {
    let told = Told {
        headers: (0x40_0040, 9),
        interpreter: 0x7000_0000,
        entry: 0x40_1000,
        owner: (1000, 100),
        effective: (1000, 0),
        random: [7; 16],
        features: 0xbfeb_fbff,
        vdso: 0x7fff_ffff_e000,
    };
    let texts = |all: &[&str]| all.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    for count in 0..5 {
        let arguments = texts(&["ls", "-l", "/etc", "x", "y"][..count]);
        let environment = texts(&["HOME=/", "TERM=xterm"]);
        let top = 0x7fff_ffff_e000;
        let (pointer, bytes) = executable::stack(top, &arguments, &environment, b"/bin/ls", &told).unwrap();
        assert_eq!((pointer % 16, pointer + bytes.len() as u64), (0, top));
        let word = |index: usize| u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap());
        let text = |address: u64| {
            let rest = &bytes[(address - pointer) as usize..];
            rest.split(|&byte| byte == 0).next().unwrap().to_vec()
        };
        assert_eq!(word(0), count as u64);
        assert_eq!((0..count).map(|at| text(word(1 + at))).collect::<Vec<_>>(), arguments);
        assert_eq!((word(1 + count), word(4 + count)), (0, 0));
        assert_eq!([word(2 + count), word(3 + count)].map(text).to_vec(), environment);
        let vector: BTreeMap<u64, u64> = (0..)
            .map(|at| (word(5 + count + 2 * at), word(6 + count + 2 * at)))
            .take_while(|(kind, _)| *kind != 0)
            .collect();
        assert_eq!((vector[&3], vector[&5], vector[&6], vector[&9]), (0x40_0040, 9, PAGE, 0x40_1000));
        assert_eq!([11, 12, 13, 14, 23, 33].map(|kind| vector[&kind]), [1000, 1000, 100, 0, 1, top]);
        assert_eq!((text(vector[&31]), text(vector[&15])), (b"/bin/ls".to_vec(), b"x86_64".to_vec()));
        assert_eq!(bytes[(vector[&25] - pointer) as usize..][..16], [7; 16]);
    }
    let many = vec![vec![b'x'; 1000]; 3000];
    assert_eq!(executable::stack(1 << 40, &many, &[], b"x", &told), Err(crate::errno::E2BIG));
}

#[test]
fn scripts_name_their_interpreters() {
    let script = |text: &str| executable::script(text.as_bytes());
    let found = |path: &str, argument: Option<&str>| Some(Ok((path.into(), argument.map(Vec::from))));
    assert_eq!(script("#!/bin/sh\necho"), found("/bin/sh", None));
    assert_eq!(script("#! /usr/bin/env  python3 -u \n"), found("/usr/bin/env", Some("python3 -u")));
    assert_eq!(script("#!/bin/sh"), found("/bin/sh", None));
    assert_eq!(script("#!  \n"), Some(Err(crate::errno::ENOEXEC)));
    assert_eq!(script("echo"), None);
}
