//! The journal of a disk is brought to its end, and the files are read.

use crate::disk::{self, Layer, Memory};
use crate::judge::{Found, History};
use mix::{DIRECTORIES, Name};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use vfs::{How, Inode, Kind, Volume};

/// Entries of a directory that are read at a time.
const ENTRIES: usize = 14;

/// A disk, and the files that were found on it.
#[derive(Debug)]
pub struct Replayed {
    /// The files.
    pub found: Found,
    /// The disk, with the file system marked as whole.
    pub image: Vec<u8>,
}

fn told(what: &'static str) -> impl Fn(vfs::Error) -> String {
    move |error| format!("{what}: {error:?}")
}

/// Files that were found on a disk whose power was lost, by who has brought the journal to its end.
#[derive(Debug)]
pub struct Lost(Vec<(&'static str, Found)>);

impl Lost {
    /// Power is lost on a disk that looks like that, and Tern brings the journal to its end. With a folder for images Linux does so, too, and finds no mistake on either disk
    /// afterwards.
    pub fn of(image: &[u8], folder: Option<&Path>) -> Result<Lost, String> {
        let by = |who: &'static str| move |why| format!("after {who}: {why}");
        let replayed = by_tern(image.to_vec()).map_err(by("Tern"))?;
        let mut all = vec![("Tern", replayed.found)];
        if let Some(folder) = folder {
            checked_by_linux(folder, &replayed.image).map_err(by("Tern"))?;
            let found = by_linux(folder, image).and_then(by_tern).map_err(by("Linux"))?.found;
            all.push(("Linux", found));
        }
        Ok(Lost(all))
    }

    /// Finds all that was promised, when so many steps of a history were acknowledged, and so many begun.
    pub fn judge(&self, history: &History, (acknowledged, begun): (usize, usize)) -> Result<(), String> {
        self.0.iter().try_for_each(|(who, found)| {
            history.judge(acknowledged, begun, found).map_err(|why| format!("after {who}: {why}"))
        })
    }
}

/// All files in the directories of [`mix`], by Tern's file system.
pub fn by_tern(image: Vec<u8>) -> Result<Replayed, String> {
    catch_unwind(AssertUnwindSafe(|| replayed(image))).unwrap_or_else(|_| Err("the library panics".into()))
}

fn replayed(image: Vec<u8>) -> Result<Replayed, String> {
    let disk = Memory::of(image);
    let mut volume = mounted(disk.clone())?;
    let mut found = Found::new();
    for directory in DIRECTORIES {
        for (entry, content) in inside(&mut volume, directory)? {
            let path = format!("{directory}/{entry}");
            let (name, content) = Name::of(&path).zip(content).ok_or_else(|| format!("{path} is there"))?;
            if found.insert(name, content).is_some() {
                return Err(format!("{path} is there twice"));
            }
        }
    }
    volume.into_inner().unmount().map_err(told("to unmount"))?;
    let image = disk.0.take();
    Ok(Replayed { found, image })
}

/// Contents of the files of a directory, by their names, when Tern's file system has brought the journal to its end. What is no file is left out. The disk stays as it is.
pub fn files_by_tern(image: &[u8], directory: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let all = inside(&mut mounted(Layer::over(image))?, directory)?;
    Ok(all.into_iter().filter_map(|(name, content)| Some((name, content?))).collect())
}

type Mounted<'a> = Volume<disk::Mounted<'a>>;

fn mounted<'a>(disk: impl ext4::Disk + 'a) -> Result<Mounted<'a>, String> {
    Ok(Volume::new(disk::mount(disk, || 0).map_err(told("it is not mounted"))?))
}

/// Names in a directory, and the contents of those that are files.
type Inside = Vec<(String, Option<Vec<u8>>)>;

fn inside(volume: &mut Mounted, directory: &str) -> Result<Inside, String> {
    let root = volume.root();
    let inside = volume.enter(root, directory.as_bytes()).map_err(told("a directory"))?;
    let (mut all, mut cursor) = (Inside::new(), 0);
    loop {
        let entries = volume.readdir(inside, cursor, ENTRIES).map_err(told("a directory's names"))?;
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        for entry in &entries {
            let is_file = entry.kind == Kind::File;
            let content = is_file.then(|| content(volume, inside, &entry.name)).transpose()?;
            all.push((String::from_utf8_lossy(&entry.name).into_owned(), content));
        }
    }
    volume.close(inside).map_err(told("to close"))?;
    Ok(all)
}

/// The bytes of a file.
fn content(volume: &mut Mounted, directory: Inode, name: &[u8]) -> Result<Vec<u8>, String> {
    let file = volume.open(directory, name, How::default(), 0).map_err(told("to open"))?;
    let mut content = vec![0; volume.len(file).map_err(told("a length"))? as usize];
    let len = volume.read(file, 0, &mut content).map_err(told("to read"))?;
    volume.close(file).map_err(told("to close"))?;
    if len == content.len() { Ok(content) } else { Err(format!("{len} of {} bytes are read", content.len())) }
}

fn tool(arguments: &[&str]) -> Result<Output, String> {
    let path = ["/usr/sbin/e2fsck", "/sbin/e2fsck"].map(PathBuf::from).into_iter().find(|path| path.exists());
    let path = path.ok_or("e2fsck is not there: it is part of the package e2fsprogs")?;
    Command::new(path).args(arguments).output().map_err(|error| format!("e2fsck: {error}"))
}

/// Lines that `e2fsck -p` may say of a disk whose power was lost: it brings the journal to its end, and ends files that were open without a name. A tree of extents with room
/// to spare is no mistake.
const EXPECTED: [&str; 7] = [
    "recovering journal",
    "Clearing orphaned inode",
    "check forced",
    "could be narrower",
    " files",
    // The first commit after a mount begins in the journal, and then says so in the superblock.
    "needs_recovery flag is clear",
    "Run journal anyway",
];

/// Where the superblock has the features without which nobody may use the disk, and the one of them that says that the journal has to be brought to its end first.
const INCOMPATIBLE: usize = 1024 + 0x60;
/// See [`INCOMPATIBLE`].
const RECOVER: u8 = 1 << 2;

/// Whether a disk says that something is left in its journal.
pub fn has_journal_left(image: &[u8]) -> bool {
    image.get(INCOMPATIBLE).is_some_and(|features| features & RECOVER != 0)
}

/// Linux brings the journal to its end, and then finds no mistake. The disk as it is then.
pub fn by_linux(folder: &Path, image: &[u8]) -> Result<Vec<u8>, String> {
    let file = folder.join("replayed");
    fs::write(&file, image).map_err(|error| error.to_string())?;
    let output = tool(&["-p", &file.display().to_string()])?;
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = said.lines().find(|line| !EXPECTED.iter().any(|part| line.contains(part))) {
        return Err(format!("Linux says {line:?} in\n{said}"));
    }
    // Status 1 is that something was repaired.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("e2fsck -p: {}\n{said}", output.status));
    }
    if has_journal_left(image) && !said.contains(EXPECTED[0]) {
        return Err(format!("Linux leaves the journal as it is:\n{said}"));
    }
    is_sound(&file)?;
    fs::read(&file).map_err(|error| error.to_string())
}

/// Linux finds no mistake, and has nothing to repair.
pub fn checked_by_linux(folder: &Path, image: &[u8]) -> Result<(), String> {
    let file = folder.join("checked");
    fs::write(&file, image).map_err(|error| error.to_string())?;
    is_sound(&file)
}

fn is_sound(file: &Path) -> Result<(), String> {
    let output = tool(&["-f", "-n", &file.display().to_string()])?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("e2fsck -fn: {}\n{}", output.status, String::from_utf8_lossy(&output.stdout)))
}
