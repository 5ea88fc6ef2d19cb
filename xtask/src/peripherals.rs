//! Devices of a machine that is run: a disk that is a file, a network card, and a console that is a socket.

use crate::machine::{Forward, Kind, Machine};
use crate::{Context, Error, Result};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a disk that is made, in MiB.
const DISK_MIB: u32 = 256;

/// The disk of a person who names none, in the directory where the machine is started.
pub const USUAL_DISK: &str = "disk.img";

/// Where tools of the file system are; not everybody has all of it in the path.
const TOOLS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

/// The ports of a person who names none.
const USUAL_PORTS: Forward = Forward { host: 8080, guest: 80 };

/// The file of a disk, as a path that the emulator finds. If there is none, one is made, with an empty ext4 file system.
pub fn disk(path: &Path) -> Result<PathBuf> {
    disk_of(path, DISK_MIB)
}

/// The file of a disk, as a path that the emulator finds. If there is none, one of this size in MiB is made, with an empty ext4 file system.
pub fn disk_of(path: &Path, mib: u32) -> Result<PathBuf> {
    if !path.exists() {
        make_disk(path, mib)?;
    }
    present_disk(path)
}

/// The file of a disk that is there, as a path that the emulator finds.
pub fn present_disk(path: &Path) -> Result<PathBuf> {
    let file = path.canonicalize().context(|| format!("open the disk {}", path.display()))?;
    if !file.is_file() {
        return Err(Error::new(format!("the disk {} is no file", path.display())));
    }
    Ok(file)
}

/// Plugs in a disk and a network card where a person has asked for none, and says so. A second machine at the same time gets no disk, and
/// another port. As long as the file that comes back is open, others know that the disk is in use.
pub fn plug_in(machine: &mut Machine) -> Option<File> {
    // Disk and card are behind PCI.
    if machine.kind == Kind::Microvm {
        return None;
    }
    let mut lock = None;
    if machine.disk.is_none() {
        match free_disk(Path::new(USUAL_DISK)) {
            Ok((file, path)) => {
                eprintln!("tern: /disk is {}", path.display());
                (lock, machine.disk) = (Some(file), Some(path));
            }
            Err(why) => eprintln!("tern: no disk: {}", why.message),
        }
    }
    if machine.net.is_none() {
        // Somebody may have the port for long. One that is free now may be taken until the emulator wants it, and then that says so.
        let host = match TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORTS.host)) {
            Ok(_) => USUAL_PORTS.host,
            Err(_) => free_port().unwrap_or(0),
        };
        let guest = USUAL_PORTS.guest;
        eprintln!("tern: 127.0.0.1:{host} leads to port {guest}; nothing else leaves the machine");
        machine.net = Some(Forward { host, guest });
    }
    lock
}

/// A disk that no other machine of these tools uses.
fn free_disk(path: &Path) -> Result<(File, PathBuf)> {
    let path = disk(path)?;
    Ok((lock(&path)?, path))
}

/// Tells other machines of these tools, as long as what comes back is open, that a disk is in use.
pub fn lock(path: &Path) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.context(|| format!("open the disk {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(in_use(path)),
    }
}

/// Keeps a disk from emulators as well as from machines of these tools: they have locks of another kind, for bytes of the file.
///
/// The lock of that kind ends when this process closes the file, whichever handle it closes. So nobody else here opens it meanwhile.
pub fn lock_out(path: &Path) -> Result<File> {
    let file = lock(path)?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(in_use(path)),
    }
}

fn in_use(path: &Path) -> Error {
    Error::new(format!("{} is another machine's", path.display()))
}

/// A tool of the file system, whose messages are in English.
pub fn ext4_tool(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", TOOLS).env("LC_ALL", "C");
    command
}

/// A port of the loopback interface that nobody has.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).context(|| "find a port".into())
}

/// Longest path of a Unix socket, in bytes: the system's structure for it has a zero byte behind that.
const SOCKET_LEN_MAX: usize = 107;

/// Unix socket that the emulator makes for a console. It goes away with this.
#[derive(Debug)]
pub struct Line(PathBuf);

impl Line {
    /// A place where the emulator can make one. It would replace whatever is there, so that is looked at before: a socket at which nobody listens any more is
    /// one that a machine has left.
    pub fn new(path: PathBuf) -> Result<Line> {
        let wrong = |why: &str| Err(Error::new(format!("the console {} {why}", path.display())));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.file_name().is_none() || !folder.is_dir() {
            return wrong("would be in no directory");
        }
        if path.as_os_str().as_bytes().len() > SOCKET_LEN_MAX {
            return wrong(&format!(
                "has a name that is too long for a socket, which may have {SOCKET_LEN_MAX} bytes"
            ));
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.file_type().is_socket() => wrong("is there, and is no socket"),
            Ok(_) if UnixStream::connect(&path).is_ok() => wrong("is another program's"),
            _ => Ok(Line(path)),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // There is none if the emulator has not started.
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes a file that is a disk with an empty ext4 file system. It takes no space until something is written.
fn make_disk(path: &Path, mib: u32) -> Result<()> {
    let what = || format!("make the disk {}", path.display());
    let size = format!("{mib}M");
    // Made under another name, so that a disk is there as a whole or not at all; and linked and not renamed, so that nobody else's is replaced.
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let part = path.with_file_name(format!(".{name}.{}", std::process::id()));
    // A path that begins with a dash is none of an option.
    let file = Path::new(".").join(&part);
    let output = ext4_tool("mke2fs")
        .args(["-q", "-t", "ext4", "-b", "4096"])
        .args([file.as_os_str(), size.as_ref()])
        .output();
    let is_made = output.as_ref().is_ok_and(|output| output.status.success());
    let placed = if is_made { fs::hard_link(&file, path) } else { Ok(()) };
    let _ = fs::remove_file(&file);
    let output = output.context(what)?;
    if is_made {
        match placed {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).context(what),
            // Somebody else has made one in the meantime, which is as good.
            _ => {}
        }
        eprintln!("tern: made {}, a disk of {mib} MiB with an empty file system", path.display());
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!("{}: {}", what(), why.trim().lines().next_back().unwrap_or("mke2fs failed"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_line_replaces_nothing_but_a_socket_that_was_left() {
        let folder = std::env::temp_dir().join(format!("tern-line-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("there is room");
        let refusal = |path: &Path| Line::new(path.into()).expect_err("it is no place for a socket").message;
        let path = folder.join("line");
        let listener = UnixListener::bind(&path).expect("it is a place for one");
        assert!(refusal(&path).contains("another program's"));
        drop(listener);
        let line = Line::new(path.clone()).expect("nobody listens any more");
        assert_eq!(line.path(), path);
        drop(line);
        assert!(!path.exists());
        drop(Line::new(path.clone()).expect("there is nothing"));
        fs::write(&path, b"a file").expect("there is room");
        assert!(refusal(&path).contains("is no socket"));
        assert!(path.exists());
        assert!(refusal(&folder).contains("is no socket"));
        assert!(refusal(&path.join("below")).contains("in no directory"));
        assert!(refusal(&folder.join("not/there")).contains("in no directory"));
        assert!(refusal(Path::new("")).contains("in no directory"));
        assert!(refusal(&folder.join("l".repeat(108))).contains("too long"));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_disk_is_one_machines() {
        let path = std::env::temp_dir().join(format!("tern-disk-{}", std::process::id()));
        std::fs::write(&path, b"a disk").expect("there is room");
        let (first, _) = free_disk(&path).expect("nobody has it");
        assert!(free_disk(&path).expect_err("somebody has it").message.contains("another machine's"));
        drop(first);
        assert!(free_disk(&path).is_ok());
        std::fs::remove_file(&path).expect("it is there");
    }
}
