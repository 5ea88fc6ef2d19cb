//! ext4 on a disk in memory: Linux's own tools find no mistake in it, and files of theirs are read. Losses of power are in `tests/power`.

use crate::as_on_linux::{Folder, Here, all_on_linux};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::rc::Rc;
use vfs::{How, Volume};

pub use power::disk::{Memory, Mounted, format, mount};

/// Runs one of Linux's tools for ext4.
pub fn run(name: &str, arguments: &[&str]) -> Output {
    let path = ["/usr/sbin", "/sbin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("{name} is not there: it is part of the package e2fsprogs"));
    Command::new(path).args(arguments).output().unwrap()
}

/// Runs one of Linux's tools for ext4, and gives back what it says. The test fails if the tool does not find everything right.
pub fn tool(name: &str, arguments: &[&str]) -> Vec<u8> {
    let output = run(name, arguments);
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {arguments:?}: {}\n{said}{complained}", output.status);
    output.stdout
}

/// An image that Linux's `mke2fs` has made.
pub fn made_by_linux(folder: &Folder, mebibytes: usize, options: &[&str]) -> Memory {
    let image = folder.0.join("image");
    fs::write(&image, []).unwrap();
    let size = format!("{mebibytes}M");
    let image = image.to_str().unwrap();
    tool("mke2fs", &[&["-q", "-F"], options, &[image, &size]].concat());
    Memory(Rc::new(RefCell::new(fs::read(image).unwrap())))
}

/// Linux finds no mistake, and has nothing to repair.
pub fn check_by_linux(folder: &Folder, disk: &[u8]) {
    let image = folder.0.join("checked");
    fs::write(&image, disk).unwrap();
    tool("e2fsck", &["-f", "-n", image.to_str().unwrap()]);
}

/// Kinds of ext4 file systems.
pub const KINDS: [&[&str]; 4] = [
    &["-t", "ext4", "-b", "4096"],
    &["-t", "ext4", "-b", "4096", "-O", "^has_journal"],
    &["-t", "ext4", "-b", "4096", "-O", "^dir_index,^metadata_csum", "-I", "128"],
    &["-t", "ext4", "-b", "1024"],
];

#[test]
fn linux_reads_files_that_were_written() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("written-{number}"));
        let disk = made_by_linux(&folder, 32, options);
        let mut volume = Volume::new(mount(disk.clone(), || 1_000_000_000 << 30).unwrap());
        let root = volume.root();
        let create = How { create: true, ..How::default() };
        volume.mkdir(root, b"many", 0o755).unwrap();
        let many = volume.enter(root, b"many").unwrap();
        let files = 300u32;
        for file in 0..files {
            let at = volume.open(many, format!("file-{file}").as_bytes(), create, 0o644).unwrap();
            volume.write(at, 0, &vec![file as u8; file as usize * 97]).unwrap();
            volume.close(at).unwrap();
        }
        for file in (0..files).step_by(3) {
            volume.unlink(many, format!("file-{file}").as_bytes()).unwrap();
        }
        // A hole, and more than one extent.
        let holes = volume.open(root, b"holes", create, 0o600).unwrap();
        for at in [0, 70_000, 9_000_000, 5 << 30] {
            volume.write(holes, at, b"here").unwrap();
        }
        volume.close(holes).unwrap();
        volume.close(many).unwrap();
        volume.into_inner().unmount().unwrap();
        let image = disk.0.borrow().clone();
        check_by_linux(&folder, &image);
        let path = folder.0.join("checked");
        let read = tool("debugfs", &["-R", "cat /many/file-20", path.to_str().unwrap()]);
        assert_eq!(read, vec![20; 1940], "{options:?}");
        let listed = tool("debugfs", &["-R", "ls -p /many", path.to_str().unwrap()]);
        assert_eq!(
            String::from_utf8(listed).unwrap().matches("file-").count() as u32,
            files / 3 * 2,
            "{options:?}"
        );
    }
}

#[test]
fn files_of_linux_are_read() {
    let folder = Folder::new("read");
    let source = folder.0.join("source");
    fs::create_dir_all(source.join("many")).unwrap();
    for file in 0..1500 {
        fs::write(source.join(format!("many/a-file-with-the-number-{file}")), vec![file as u8; file])
            .unwrap();
    }
    symlink("many/a-file-with-the-number-7", source.join("short")).unwrap();
    symlink(format!("{}short", "./".repeat(60)), source.join("long")).unwrap();
    for options in KINDS {
        let from = ["-d", source.to_str().unwrap()];
        let disk = made_by_linux(&folder, 64, &[options, &from].concat());
        // Linux gives the large directory an index, where there are some.
        let image = folder.0.join("indexed");
        fs::write(&image, &*disk.0.borrow()).unwrap();
        run("e2fsck", &["-fyD", image.to_str().unwrap()]);
        let disk = Memory(Rc::new(RefCell::new(fs::read(&image).unwrap())));
        let mut volume = Volume::new(mount(disk, || 0).unwrap());
        let root = volume.root();
        let _ = volume.rmdir(root, b"lost+found");
        let (mut ours, mut linux) = (BTreeMap::new(), BTreeMap::new());
        Here { volume, root }.all(root, "", &mut ours);
        all_on_linux(&source, "", &mut linux);
        assert_eq!(ours, linux, "{options:?}");
    }
}

/// Blocks that Linux has set aside for a file, and to which nobody has written, are free again when the file goes: those in front of its end, and those behind it.
#[test]
fn blocks_that_were_set_aside_are_given_back() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("aside-{number}"));
        made_by_linux(&folder, 32, options);
        let image = folder.0.join("image");
        let debugfs = |request: &str| tool("debugfs", &["-w", "-R", request, image.to_str().unwrap()]);
        for name in ["inside", "behind"] {
            debugfs(&format!("write /dev/null {name}"));
            // In front of the end, or else they count as written to.
            debugfs(&format!("sif {name} size 4096000"));
            debugfs(&format!("fallocate {name} 0 999"));
            let extents = String::from_utf8(debugfs(&format!("ex {name}"))).unwrap();
            assert!(extents.contains("Uninit"), "{extents}");
        }
        debugfs("sif behind size 0");
        let disk = Memory::of(fs::read(&image).unwrap());
        check_by_linux(&folder, &disk.0.borrow());
        let mut volume = Volume::new(mount(disk.clone(), || 1_000_000_000 << 30).unwrap());
        let root = volume.root();
        let before = volume.space().unwrap().free;
        for name in [&b"inside"[..], b"behind"] {
            volume.unlink(root, name).unwrap();
        }
        let block = if options.contains(&"1024") { 1024 } else { 4096 };
        assert!(volume.space().unwrap().free >= before + 2000 * block, "{options:?}");
        volume.into_inner().unmount().unwrap();
        check_by_linux(&folder, &disk.0.borrow());
    }
}

/// A file that has blocks of more groups than there is room for in the transaction by which files are forgotten.
#[test]
fn a_file_of_many_groups_goes() {
    let folder = Folder::new("groups");
    // So small groups need all of their bitmaps made beforehand: the library leaves a bitmap's end, behind the last block, as it is.
    let features = "^resize_inode,^metadata_csum,^uninit_bg";
    let options = ["-t", "ext4", "-b", "1024", "-g", "512", "-N", "2048", "-O", features];
    let disk = made_by_linux(&folder, 64, &options);
    let mut volume = Volume::new(mount(disk.clone(), || 1_000_000_000 << 30).unwrap());
    let root = volume.root();
    let before = volume.space().unwrap().free;
    let create = How { create: true, ..How::default() };
    let file = volume.open(root, b"wide", create, 0o644).unwrap();
    let piece = vec![7; 64 << 10];
    let groups = 100;
    for at in (0..groups * (512 << 10)).step_by(piece.len()) {
        assert_eq!(volume.write(file, at, &piece).unwrap(), piece.len());
    }
    volume.sync(file).unwrap();
    volume.unlink(root, b"wide").unwrap();
    volume.close(file).unwrap();
    assert_eq!(volume.space().unwrap().free, before);
    volume.into_inner().unmount().unwrap();
    check_by_linux(&folder, &disk.0.borrow());
}
