//! A root of Linux in a folder of the host: packages, unpacked one over the other, and the little that comes of no package.

use crate::{Context, Error, Result, interrupt};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Directories that have moved below `usr`. Packages still have files in their old places.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Directories that are there, with their permissions.
const DIRECTORIES: [(&str, u32); 9] = [
    ("", 0o755),
    ("dev", 0o755),
    ("etc", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
];

/// Files that scripts of packages make elsewhere. One that is on the disk already stays.
const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\ntty:x:5:\nusers:x:100:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
];

/// Unpacks packages into an empty folder, and adds what no package has. Paths come back, from the folder on, that replace nothing.
pub fn unpack(archives: &[PathBuf], root: &Path) -> Result<Vec<PathBuf>> {
    for (name, mode) in DIRECTORIES {
        directory(&root.join(name), mode)?;
    }
    for name in MERGED {
        let target = Path::new("usr").join(name);
        directory(&root.join(&target), 0o755)?;
        symlink(&target, root.join(name)).context(|| format!("make the link /{name}"))?;
    }
    for archive in archives {
        unpack_one(archive, root)?;
    }
    let mut kept = Vec::new();
    for (name, text) in FILES {
        if !root.join(name).exists() {
            write(root, name, text.as_bytes())?;
            kept.push(PathBuf::from(name));
        }
    }
    Ok(kept)
}

/// Unpacks a package. `dpkg-deb` alone would put its directories in the place of links to directories.
fn unpack_one(archive: &Path, root: &Path) -> Result<()> {
    let mut source = Command::new("dpkg-deb");
    source.arg("--fsys-tarfile").arg(archive).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut source = interrupt::spawn(source.stderr(Stdio::piped()))?;
    let reader = read_into(root, source.stdout.take().map_or(Stdio::null(), Stdio::from))?;
    let tar = interrupt::output(reader)?;
    let source = interrupt::output(source)?;
    // A source that fails is why its reader does.
    match [source, tar].into_iter().find(|output| !output.status.success()) {
        None => Ok(()),
        Some(output) => {
            let complaints = String::from_utf8_lossy(&output.stderr);
            let why = complaints.trim().lines().next().unwrap_or("no reason was given");
            Err(Error::new(format!("cannot unpack {}: {why}", archive.display())))
        }
    }
}

/// Starts a `tar` that reads an archive. Nobody else has the archive then, so the end of one is noticed by the other.
fn read_into(root: &Path, archive: Stdio) -> Result<Child> {
    let mut tar = Command::new("tar");
    tar.args([
        "--extract",
        "--preserve-permissions",
        "--no-same-owner",
        "--keep-directory-symlink",
        "--directory",
    ]);
    tar.arg(root).stdin(archive).stdout(Stdio::null()).stderr(Stdio::piped());
    interrupt::spawn(&mut tar)
}

/// Writes a file below a root, and makes the directories above it.
pub fn write(root: &Path, name: &str, contents: &[u8]) -> Result<()> {
    let path = root.join(name);
    let parents = Path::new(name).ancestors().skip(1).map(|above| root.join(above));
    let mut missing: Vec<PathBuf> = parents.take_while(|above| !above.exists()).collect();
    missing.reverse();
    missing.iter().try_for_each(|above| directory(above, 0o755))?;
    fs::write(&path, contents)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)))
        .context(|| format!("write {}", path.display()))
}

/// Makes a directory with these permissions, whatever those of new files are on the host.
fn directory(path: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .context(|| format!("make the directory {}", path.display()))
}
