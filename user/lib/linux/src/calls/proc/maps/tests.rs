//! Lines of `maps`, and what goes with them, as Linux has them.

use crate::errno::EACCES;
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::world::{OWN, World};
use linux_raw_sys::auxvec::{AT_ENTRY, AT_EXECFN, AT_NULL, AT_PAGESZ};
use linux_raw_sys::general::*;
use linux_raw_sys::prctl::{PR_SET_VMA, PR_SET_VMA_ANON_NAME};
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// Where calls have their paths and bytes, beside those of [`World`].
const PATH: u64 = OWN + 256;

/// All bytes of a file.
fn whole(world: &mut World, tid: Tid, path: &str) -> Vec<u8> {
    let fd = world.open(tid, path, O_RDONLY).unwrap();
    let mut all = Vec::new();
    loop {
        let bytes = world.read(tid, fd, 1000).unwrap().unwrap();
        if bytes.is_empty() {
            break;
        }
        all.extend(bytes);
    }
    world.now(tid, __NR_close, &[fd]).unwrap();
    all
}

fn text(world: &mut World, tid: Tid, path: &str) -> String {
    String::from_utf8(whole(world, tid, path)).unwrap()
}

/// The line of `maps` about an address, if there is one.
fn line_at(world: &mut World, tid: Tid, address: u64) -> Option<String> {
    let text = text(world, tid, "/proc/self/maps");
    let found = text.lines().find(|line| {
        let range = line.split(' ').next().unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        (number(start)..number(end)).contains(&address)
    });
    found.map(ToString::to_string)
}

fn map(world: &mut World, len: u64, flags: u32, fd: u64, offset: u64) -> u64 {
    let rights = u64::from(PROT_READ | PROT_WRITE);
    world.now(1, __NR_mmap, &[0, len, rights, flags.into(), fd, offset]).unwrap()
}

/// The line that Linux has: the name begins in column 73, or follows a longer head.
fn expected(at: u64, len: u64, head: &str, name: &str) -> String {
    let head = format!("{at:08x}-{:08x} {head} ", at + len);
    if name.is_empty() { head } else { format!("{head:<72} {name}") }
}

fn inode(world: &mut World, path: &str) -> u64 {
    let root = world.system.store.root;
    let found = world.system.store.volume.attributes_at(root, path.as_bytes(), vfs::path::Last::Follow);
    found.unwrap().inode.0
}

#[test]
fn files_have_their_paths() {
    let mut world = World::new();
    world.by_path(1, __NR_mkdir, "/lib", &[0o755]).unwrap();
    world.file(b"/lib/a file", &vec![1; 3 * PAGE as usize], 0o644);
    world.put(1, PATH, b"lib\0");
    world.put(1, OWN, b"/link\0");
    world.now(1, __NR_symlink, &[PATH, OWN]).unwrap();
    let fd = world.open(1, "/link/a file", O_RDWR).unwrap();
    let number = inode(&mut world, "/lib/a file");
    let own = map(&mut world, PAGE, MAP_PRIVATE, fd, PAGE);
    let shared = map(&mut world, 2 * PAGE, MAP_SHARED, fd, 0);
    let lines = |world: &mut World, name: &str| {
        for (at, len, head) in [
            (own, PAGE, format!("rw-p 00001000 08:01 {number}")),
            (shared, 2 * PAGE, format!("rw-s 00000000 08:01 {number}")),
        ] {
            assert_eq!(line_at(world, 1, at), Some(expected(at, len, &head, name)));
        }
    };
    lines(&mut world, "/lib/a file");
    // Neither its descriptor need be open nor the link be there, and a child has the same.
    world.now(1, __NR_close, &[fd]).unwrap();
    world.by_path(1, __NR_unlink, "/link", &[]).unwrap();
    lines(&mut world, "/lib/a file");
    let child = world.fork(1);
    let of_child = line_at(&mut world, child, shared).unwrap();
    assert!(of_child.ends_with(" /lib/a file"), "{of_child}");
    // Without a name it is shown by the one that it had.
    world.by_path(1, __NR_unlink, "/lib/a file", &[]).unwrap();
    lines(&mut world, "/lib/a file (deleted)");
    // The program itself.
    let number = inode(&mut world, "/program");
    let program = expected(0x40_0000, PAGE, &format!("r-xp 00000000 08:01 {number}"), "/program");
    assert_eq!(line_at(&mut world, 1, 0x40_0000), Some(program));
}

/// Pieces of a region have its path, wherever they are, and a file that gets another name keeps the one by which it was mapped.
#[test]
fn pieces_of_a_file_have_its_path() {
    let mut world = World::new();
    world.file(b"/file", &vec![1; 4 * PAGE as usize], 0o644);
    let number = inode(&mut world, "/file");
    let fd = world.open(1, "/file", O_RDWR).unwrap();
    let at = map(&mut world, 4 * PAGE, MAP_PRIVATE, fd, 0);
    world.now(1, __NR_munmap, &[at + PAGE, PAGE]).unwrap();
    let flags = u64::from(MREMAP_MAYMOVE | MREMAP_FIXED);
    let to = 0x3000_0000;
    assert_eq!(world.now(1, __NR_mremap, &[at + 3 * PAGE, PAGE, 2 * PAGE, flags, to]), Ok(to));
    world.put(1, OWN + 512, b"/other\0");
    world.by_path(1, __NR_rename, "/file", &[OWN + 512]).unwrap();
    for (at, len, offset) in [(at, PAGE, 0), (at + 2 * PAGE, PAGE, 2 * PAGE), (to, 2 * PAGE, 3 * PAGE)] {
        let head = format!("rw-p {offset:08x} 08:01 {number}");
        assert_eq!(line_at(&mut world, 1, at), Some(expected(at, len, &head, "/file")));
    }
    // Another mapping by its new name gives all of them that.
    let fd = world.open(1, "/other", O_RDWR).unwrap();
    map(&mut world, PAGE, MAP_PRIVATE, fd, 0);
    assert!(line_at(&mut world, 1, to).unwrap().ends_with(" /other"));
}

#[test]
fn a_path_ends_no_line() {
    let mut world = World::new();
    world.file(b"/two\nlines", &[1], 0o644);
    let fd = world.open(1, "/two\nlines", O_RDWR).unwrap();
    let at = map(&mut world, PAGE, MAP_PRIVATE, fd, 0);
    assert!(line_at(&mut world, 1, at).unwrap().ends_with(" /two\\012lines"));
}

#[test]
fn memory_without_a_file_has_names() {
    let mut world = World::new();
    world.system.store.view.borrow_mut().vdso = vec![0x90; PAGE as usize].into();
    world.put(1, OWN, b"/program\0");
    assert_eq!(world.call(1, __NR_execve, &[OWN, 0, 0]), None);
    world.lay_out(1);
    let heap = world.now(1, __NR_brk, &[0]).unwrap();
    assert_eq!(line_at(&mut world, 1, heap), None);
    world.now(1, __NR_brk, &[heap + PAGE + 1]).unwrap();
    let of_heap = expected(heap, 2 * PAGE, "rw-p 00000000 00:00 0", "[heap]");
    assert_eq!(line_at(&mut world, 1, heap), Some(of_heap));
    let plain = map(&mut world, PAGE, MAP_PRIVATE | MAP_ANONYMOUS, u64::MAX, 0);
    let nameless = expected(plain, PAGE, "rw-p 00000000 00:00 0", "");
    assert_eq!(line_at(&mut world, 1, plain), Some(nameless));
    world.put(1, PATH, b"name\0");
    let fd = world.now(1, __NR_memfd_create, &[PATH, 0]).unwrap();
    world.now(1, __NR_ftruncate, &[fd, PAGE]).unwrap();
    let memory = map(&mut world, PAGE, MAP_SHARED, fd, 0);
    world.now(1, __NR_close, &[fd]).unwrap();
    let shared = map(&mut world, PAGE, MAP_SHARED | MAP_ANONYMOUS, u64::MAX, 0);
    let segment = world.now(1, __NR_shmget, &[0x1234, PAGE, 0o1600]).unwrap();
    let segment = world.now(1, __NR_shmat, &[segment, 0, 0]).unwrap();
    for (at, name) in [
        (memory, "/memfd:name (deleted)"),
        (shared, "/dev/zero (deleted)"),
        (segment, "/SYSV00001234 (deleted)"),
    ] {
        let line = line_at(&mut world, 1, at).unwrap();
        assert!(line.contains(" rw-s 00000000 00:01 ") && line[73..] == *name, "{line}");
    }
    let maps = text(&mut world, 1, "/proc/self/maps");
    let last: Vec<&str> = maps.lines().rev().take(2).collect();
    assert!(last[0].contains(" r-xp 00000000 00:00 0 ") && last[0].ends_with(" [vdso]"), "{maps}");
    assert!(last[1].contains(" rw-p 00000000 00:00 0 ") && last[1].ends_with(" [stack]"), "{maps}");
    // Memory that grows downwards is not the stack for that.
    let grows = map(&mut world, PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, u64::MAX, 0);
    assert!(!line_at(&mut world, 1, grows).unwrap().contains('['));
}

/// A name that a program gives stands where Linux has it: in the place of that of shared memory, and not of the heap's.
#[test]
fn given_names_have_their_places() {
    let mut world = World::new();
    let heap = world.now(1, __NR_brk, &[0]).unwrap();
    world.now(1, __NR_brk, &[heap + PAGE]).unwrap();
    let private = map(&mut world, PAGE, MAP_PRIVATE | MAP_ANONYMOUS, u64::MAX, 0);
    let shared = map(&mut world, PAGE, MAP_SHARED | MAP_ANONYMOUS, u64::MAX, 0);
    world.put(1, PATH, b"of mine\0");
    for (at, name) in [(heap, "[heap]"), (private, "[anon:of mine]"), (shared, "[anon_shmem:of mine]")] {
        let [call, kind] = [PR_SET_VMA, PR_SET_VMA_ANON_NAME].map(u64::from);
        assert_eq!(world.now(1, __NR_prctl, &[call, kind, at, PAGE, PATH]), Ok(0));
        let line = line_at(&mut world, 1, at).unwrap();
        assert_eq!(&line[73..], name, "{line}");
    }
}

/// A process that maps one file after the other keeps no more paths than it has files mapped, by half.
#[test]
fn paths_go_with_their_files() {
    let mut world = World::new();
    for number in 0..100 {
        let path = format!("/file{number}");
        world.file(path.as_bytes(), &[1], 0o644);
        let fd = world.open(1, &path, O_RDONLY).unwrap();
        let at = world.now(1, __NR_mmap, &[0, PAGE, PROT_READ.into(), MAP_PRIVATE.into(), fd, 0]).unwrap();
        world.now(1, __NR_close, &[fd]).unwrap();
        if number % 10 != 0 {
            world.now(1, __NR_munmap, &[at, PAGE]).unwrap();
        }
    }
    let maps = text(&mut world, 1, "/proc/self/maps");
    assert_eq!(maps.lines().filter(|line| line.contains(" /file")).count(), 10);
    let room = world.system.room(1).unwrap();
    assert!(room.borrow().memory.path_count() <= 22);
}

#[test]
fn facts_of_the_stack_are_a_file() {
    let mut world = World::new();
    let facts = whole(&mut world, 1, "/proc/self/auxv");
    let words: Vec<u64> = facts.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    assert!(facts.len().is_multiple_of(16) && words.ends_with(&[AT_NULL.into(), 0]), "{words:?}");
    let pairs: BTreeMap<u64, u64> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(pairs.len(), words.len() / 2, "each is told once");
    let of = |kind: u32| pairs[&u64::from(kind)];
    assert_eq!((of(AT_PAGESZ), of(AT_ENTRY)), (PAGE, 0x40_0000));
    let mut name = [0; 9];
    world.system.read(1, of(AT_EXECFN), &mut name).unwrap();
    assert_eq!(&name, b"/program\0");
    let child = world.fork(1);
    for path in ["/proc/self/auxv", "/proc/thread-self/auxv"] {
        assert_eq!(whole(&mut world, child, path), facts);
    }
    world.now(child, __NR_setresuid, &[7, 7, 7]).unwrap();
    assert_eq!(world.open(child, "/proc/1/auxv", O_RDONLY), Err(EACCES));
}

/// A field of `smaps` in KiB.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.split(':').next() == Some(name)).unwrap();
    assert!(line.len() == 27 && line.ends_with(" kB"), "{line}");
    line[16..24].trim().parse().unwrap()
}

#[test]
fn pages_of_regions_are_counted() {
    let mut world = World::new();
    let at = map(&mut world, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, u64::MAX, 0);
    world.put(1, at, &[1; PAGE as usize + 1]);
    let child = world.fork(1);
    world.put(child, at, b"own");
    // The page into which files are read is there before it is counted.
    text(&mut world, 1, "/proc/self/maps");
    let smaps = text(&mut world, 1, "/proc/self/smaps");
    let begin = smaps.find(&format!("{at:08x}-")).unwrap();
    let own = &smaps[begin..];
    let names = own.lines().skip(1).map(|line| line.split(':').next().unwrap());
    let names: Vec<&str> = names.take(23).collect();
    assert_eq!(
        names,
        [
            "Size",
            "KernelPageSize",
            "MMUPageSize",
            "Rss",
            "Pss",
            "Pss_Dirty",
            "Shared_Clean",
            "Shared_Dirty",
            "Private_Clean",
            "Private_Dirty",
            "Referenced",
            "Anonymous",
            "LazyFree",
            "AnonHugePages",
            "ShmemPmdMapped",
            "FilePmdMapped",
            "Shared_Hugetlb",
            "Private_Hugetlb",
            "Swap",
            "SwapPss",
            "Locked",
            "THPeligible",
            "VmFlags",
        ]
    );
    // The child has written to the first of two pages, and the other one is that of both.
    for (name, size) in [("Size", 16), ("MMUPageSize", 4), ("Rss", 8), ("Pss", 6), ("Anonymous", 8)] {
        assert_eq!(field(own, name), size, "{name}");
    }
    for (name, size) in [("Shared_Dirty", 4), ("Private_Dirty", 4), ("Shared_Clean", 0), ("Locked", 0)] {
        assert_eq!(field(own, name), size, "{name}");
    }
    assert_eq!(own.lines().nth(23), Some("VmFlags: rd wr mr mw me "));
    let sum = text(&mut world, 1, "/proc/self/smaps_rollup");
    let all = expected(0x40_0000, 0x7fff_ffff_e000 - 0x40_0000, "---p 00000000 00:00 0", "[rollup]");
    assert_eq!(sum.lines().next(), Some(all.as_str()));
    let resident = smaps.lines().filter(|line| line.starts_with("Rss:"));
    let resident: u64 = resident.map(|line| line[16..24].trim().parse::<u64>().unwrap()).sum();
    assert_eq!(field(&sum, "Rss"), resident);
    let parts = ["Pss_Anon", "Pss_File", "Pss_Shmem"].map(|name| field(&sum, name));
    assert!(parts.iter().sum::<u64>().abs_diff(field(&sum, "Pss")) <= 2, "{sum}");
}
