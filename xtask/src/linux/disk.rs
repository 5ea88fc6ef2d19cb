//! A folder of the host onto a disk image, without mounting it: by `debugfs`, which reads commands.
//!
//! A command of `debugfs` that fails may leave half of what it does, and the others go on. So nothing is tried: all that is on the disk is looked at
//! before, and the commands are made for that. They change a copy of the image, which takes the place of the image when `e2fsck` finds
//! nothing in it.

use super::apt::output;
use crate::paths::{self, Scratch};
use crate::peripherals::ext4_tool;
use crate::{Context, Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bits of a mode that are the kind of file.
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Complaint of `debugfs` about a path that is not there.
const NOT_FOUND: &str = "File not found by ext2_lookup";

/// Complaint of `debugfs` about a list of something else. The mode of it says so, too.
const NO_DIRECTORY: &str = "is not a directory";

/// Beginning of a line with which `debugfs` repeats the command that lists a directory.
const LISTS: &[u8] = b"debugfs: ls -p ";

/// A file of an image; empty if it is not there.
pub fn read(image: &Path, path: &Path) -> Result<Vec<u8>> {
    let name = quoted(Path::new("/").join(path).as_os_str().as_bytes())?;
    let request = String::from_utf8(name).map_err(|_| Error::new("the path on the disk is no text"))?;
    let mut command = ext4_tool("debugfs");
    let (said, complaints) = ask(command.arg("-R").arg(format!("cat {request}")).arg(plain(image)))?;
    match complaints.iter().find(|complaint| !complaint.contains(NOT_FOUND)) {
        Some(complaint) => Err(unreadable(image, complaint)),
        None => Ok(said),
    }
}

/// Puts all that is in a folder onto an image. Files that are there are replaced, but for those of `kept`, paths below `directory`. Returns the
/// bytes of all files. If it fails, the image is as before.
pub fn put(image: &Path, folder: &Path, directory: &Path, kept: &[PathBuf]) -> Result<u64> {
    let kept: BTreeSet<PathBuf> = kept.iter().map(|path| directory.join(path)).collect();
    let copy = Copy::of(image)?;
    // It also brings the journal of the last machine to its end.
    check(image, &copy.0, "-fp", &[0, 1])?;
    let entries = entries(folder)?;
    let there = look(&copy.0, &entries)?;
    let script = Script::new(folder, &entries, &there, &kept)?;
    let complaints = run(&copy.0, &script.commands, true)?.1;
    if let Some(complaint) = complaints.first() {
        let is_full = complaint.contains("Could not allocate");
        let why = match is_full {
            true => format!("{} MiB are wanted, and {} MiB are free", mib(script.bytes), mib(there.free)),
            false => complaint.clone(),
        };
        let what = if is_full { "there is no room on" } else { "cannot write to" };
        return Err(Error::new(format!("{what} {}: {why}", image.display())));
    }
    check(image, &copy.0, "-fn", &[0])?;
    copy.replace(image)?;
    Ok(script.bytes)
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// A copy of an image, beside it. It goes away if it does not replace the image.
struct Copy(PathBuf);

impl Copy {
    fn of(image: &Path) -> Result<Copy> {
        let mut name = std::ffi::OsString::from(".");
        name.push(image.file_name().unwrap_or_default());
        name.push(".new");
        let copy = Copy(image.with_file_name(name));
        let mut command = Command::new("cp");
        command.env("LC_ALL", "C").args(["--archive", "--reflink=auto", "--sparse=always", "--"]);
        let output = output(command.arg(image).arg(&copy.0))?;
        if output.status.success() {
            return Ok(copy);
        }
        let complaints = String::from_utf8_lossy(&output.stderr);
        let why = complaints.trim().lines().next_back().unwrap_or("no reason was given").to_string();
        Err(Error::new(format!("cannot copy {}: {why}", image.display())))
    }

    /// Takes the image's place, once it is on the host's disk as a whole.
    fn replace(self, image: &Path) -> Result<()> {
        File::open(&self.0)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.0, image))
            .context(|| format!("replace {}", image.display()))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Has a file system checked. `image` is whose it is, for messages.
fn check(image: &Path, file: &Path, how: &str, good: &[i32]) -> Result<()> {
    let output = output(ext4_tool("e2fsck").arg(how).arg(plain(file)))?;
    if output.status.code().is_some_and(|code| good.contains(&code)) {
        return Ok(());
    }
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_other = complaints.contains("Bad magic number");
    Err(match is_other {
        true => unreadable(image, "Bad magic number"),
        false => Error::new(format!("the file system of {} is damaged; e2fsck mends it", image.display())),
    })
}

fn unreadable(image: &Path, complaint: &str) -> Error {
    let image = image.display();
    match complaint.contains("Bad magic number") {
        true => Error::new(format!("there is no ext4 file system on {image}")),
        false => Error::new(format!("cannot read {image}: {complaint}")),
    }
}

/// A path that no tool takes for an option.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// Runs commands of `debugfs`; what it prints, and its complaints.
fn run(image: &Path, commands: &[u8], writes: bool) -> Result<(Vec<u8>, Vec<String>)> {
    let scratch = Scratch::create("debugfs")?;
    let script = scratch.0.join("script");
    paths::write(&script, commands)?;
    let mut command = ext4_tool("debugfs");
    command.args(writes.then_some("-w")).arg("-f").arg(script);
    ask(command.arg(plain(image)))
}

fn ask(command: &mut Command) -> Result<(Vec<u8>, Vec<String>)> {
    let output = output(command)?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    // It begins with its version.
    let complaints = complaints.lines().map(str::trim).filter(|line| !line.is_empty()).skip(1);
    Ok((output.stdout, complaints.map(str::to_string).collect()))
}

/// A word of a command of `debugfs`.
fn quoted(word: &[u8]) -> Result<Vec<u8>> {
    if word.iter().any(|byte| byte.is_ascii_control()) {
        return Err(Error::new(format!("the name {:?} is none for a disk", String::from_utf8_lossy(word))));
    }
    let mut quoted = vec![b'"'];
    for &byte in word {
        quoted.extend(if byte == b'"' { vec![b'"', b'"'] } else { vec![byte] });
    }
    quoted.push(b'"');
    Ok(quoted)
}

/// All that is in a folder, by path from there on, each directory before what it holds.
fn entries(folder: &Path) -> Result<BTreeMap<PathBuf, Metadata>> {
    let mut entries = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(inside) = left.pop() {
        let path = folder.join(&inside);
        let what = || format!("read {}", path.display());
        for entry in fs::read_dir(&path).context(what)? {
            let entry = entry.context(what)?;
            let (name, metadata) = (inside.join(entry.file_name()), entry.metadata().context(what)?);
            if metadata.is_dir() {
                left.push(name.clone());
            }
            entries.insert(name, metadata);
        }
    }
    Ok(entries)
}

/// Contents of an image.
struct There {
    /// Modes of what is in the directories that were looked at.
    modes: HashMap<PathBuf, u32>,
    /// Free space, in bytes.
    free: u64,
}

/// Looks for what is in an image where these entries would be.
fn look(image: &Path, entries: &BTreeMap<PathBuf, Metadata>) -> Result<There> {
    let directories = entries.iter().filter(|(_, metadata)| metadata.is_dir()).map(|(path, _)| path.clone());
    let directories: Vec<PathBuf> = [PathBuf::new()].into_iter().chain(directories).collect();
    let mut commands = b"stats -h\n".to_vec();
    for directory in &directories {
        commands.extend(line(&[b"ls -p", &quoted(&on_disk(directory))?]));
    }
    let (said, complaints) = run(image, &commands, false)?;
    let is_known =
        |complaint: &String| [NOT_FOUND, NO_DIRECTORY].iter().any(|known| complaint.contains(known));
    if let Some(complaint) = complaints.iter().find(|complaint| !is_known(complaint)) {
        return Err(unreadable(image, complaint));
    }
    let (mut modes, mut numbers) = (HashMap::new(), HashMap::new());
    let mut lists = directories.iter();
    let mut directory = None;
    for line in said.split(|&byte| byte == b'\n') {
        if line.starts_with(LISTS) {
            directory = lists.next();
        } else if let Some(directory) = directory {
            modes.extend(listed(line).map(|(name, mode)| (directory.join(name), mode)));
        } else if let Some((name, value)) = str::from_utf8(line).ok().and_then(|line| line.split_once(':')) {
            numbers.insert(name.to_string(), value.trim().parse::<u64>().unwrap_or(0));
        }
    }
    let number = |name| numbers.get(name).copied().unwrap_or(0);
    Ok(There { modes, free: number("Free blocks") * number("Block size") })
}

/// Name and mode in a line of a listing: `/INODE/MODE/OWNER/GROUP/NAME/LENGTH/`.
fn listed(line: &[u8]) -> Option<(&OsStr, u32)> {
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b'/').collect();
    let [b"", _, mode, _, _, name, _, b""] = parts[..] else { return None };
    let mode = u32::from_str_radix(str::from_utf8(mode).ok()?, 8).ok()?;
    Some((OsStr::from_bytes(name), mode))
}

fn on_disk(path: &Path) -> Vec<u8> {
    Path::new("/").join(path).as_os_str().as_bytes().to_vec()
}

/// A command, as a line.
fn line(words: &[&[u8]]) -> Vec<u8> {
    [&words.join(&b' ')[..], b"\n"].concat()
}

/// Commands that put entries onto an image.
struct Script {
    commands: Vec<u8>,
    /// Bytes of all files.
    bytes: u64,
    /// The first name of each file that has several, and how many it has here.
    names: HashMap<u64, (Vec<u8>, u32)>,
}

impl Script {
    fn new(
        folder: &Path,
        entries: &BTreeMap<PathBuf, Metadata>,
        there: &There,
        kept: &BTreeSet<PathBuf>,
    ) -> Result<Script> {
        let mut script = Script { commands: Vec::new(), bytes: 0, names: HashMap::new() };
        for (path, metadata) in entries {
            let name = quoted(&on_disk(path))?;
            let old = there.modes.get(path).map(|mode| mode & KIND);
            let refuse = |why: &str| Err(Error::new(format!("/{} {why}", path.display())));
            match old {
                Some(DIRECTORY) if metadata.is_dir() => continue,
                Some(DIRECTORY) => return refuse("is a directory on the disk, and none in the packages"),
                Some(_) if metadata.is_dir() => {
                    return refuse("is a directory in the packages, and none on the disk");
                }
                Some(_) if kept.contains(path) => continue,
                Some(_) => script.add(&[b"rm", &name]),
                None => {}
            }
            script.make(&folder.join(path), &name, metadata)?;
        }
        let several: Vec<(Vec<u8>, u32)> =
            script.names.values().filter(|(_, count)| *count > 1).cloned().collect();
        for (name, count) in several {
            script.add(&[b"sif", &name, b"links_count", count.to_string().as_bytes()]);
        }
        Ok(script)
    }

    fn add(&mut self, words: &[&[u8]]) {
        self.commands.extend(line(words));
    }

    /// Makes something where nothing is.
    fn make(&mut self, source: &Path, name: &[u8], metadata: &Metadata) -> Result<()> {
        let kind = metadata.mode() & KIND;
        match kind {
            DIRECTORY => self.add(&[b"mkdir", name]),
            SYMLINK => {
                let target = fs::read_link(source).context(|| format!("read {}", source.display()))?;
                self.add(&[b"symlink", name, &quoted(target.as_os_str().as_bytes())?]);
            }
            REGULAR => {
                if let Some((first, count)) = self.names.get_mut(&metadata.ino()) {
                    *count += 1;
                    let first = first.clone();
                    // Room for a name, which `ln` does not make.
                    self.add(&[b"symlink", name, b"room"]);
                    self.add(&[b"rm", name]);
                    self.add(&[b"ln", &first, name]);
                    return Ok(());
                }
                self.bytes += metadata.len();
                if metadata.nlink() > 1 {
                    self.names.insert(metadata.ino(), (name.to_vec(), 1));
                }
                self.add(&[b"write", &quoted(source.as_os_str().as_bytes())?, name]);
            }
            _ => return Err(Error::new(format!("{} is no file, directory or link", source.display()))),
        }
        let mode = format!("0{:o}", metadata.mode());
        let time = format!("@{}", metadata.mtime());
        let fields = [("mode", mode.as_str()), ("uid", "0"), ("gid", "0"), ("mtime", &time)];
        for (field, value) in fields {
            self.add(&[b"sif", name, field.as_bytes(), value.as_bytes()]);
        }
        Ok(())
    }
}
