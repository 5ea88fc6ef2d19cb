//! Copies of the tree with all that is built for the machine, in which guides are followed and mistakes are made. Only what a trial changes there is built anew.
//!
//! Nearly all bytes that are built are libraries and programs. Compilers put a new file in the place of such a one, and never write into it; so a copy shares them, and is made at once.

use crate::world::{LIMIT, Reply, Scratch, World, run_within};
use std::fs::{self, File, Metadata};
use std::path::Path;
use std::process::Command;
use xtask::{Context, Error, Result, paths};

/// Directories of what is built for the machine.
const BUILT: [&str; 3] = ["user", "kernel", "newlib"];

/// Ends of the names of files that are replaced and never changed; programs have none.
const REPLACED: [&str; 3] = ["rlib", "rmeta", "so"];

/// Bytes of a file from which on it is shared. Notes of cargo's have no end of their names either, and are written into: all of them are shorter.
const SHARED_MIN: u64 = 64 << 10;

/// Has a shell of the host do something in a copy.
pub fn in_copy(tree: &Path, commands: &str, input: &str) -> Result<Reply> {
    let mut command = Command::new("/bin/sh");
    command.args(["-e", "-c", commands]).current_dir(tree);
    command.env("CARGO_MANIFEST_DIR", tree).env_remove("CARGO_TARGET_DIR").env_remove(xtask::build::PREBUILT);
    run_within(60 * LIMIT, command, input.as_bytes())
}

/// Copies the checkout and what is built for the machine. Cargo looks at the times of files, so they stay; it finds nothing to do in the copy, since
/// it notes paths as they are within a checkout.
pub fn copy_tree(world: &World) -> Result<Scratch> {
    let (scratch, root) = (Scratch::create()?, paths::root());
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto", "--target-directory"]).arg(&scratch.0);
    for entry in fs::read_dir(&root).context(|| format!("read {}", root.display()))? {
        let path = entry.context(|| "read the tree".into())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("target") && !name.starts_with('.') && name != "out" {
            command.arg(&path);
        }
    }
    if !command.status().context(|| "run cp".into())?.success() {
        return Err(Error::new(format!("copying to {} failed", scratch.0.display())));
    }
    let built = paths::target();
    for part in BUILT.iter().filter(|part| built.join(part).exists()) {
        share(&built.join(part), &scratch.0.join("target").join(part))?;
    }
    // The front door has trials of its own; here it leads to the tool at once.
    let door = format!("#!/bin/sh\nexec '{}' \"$@\"\n", world.tool().display());
    fs::write(scratch.0.join("tern"), door).context(|| "write the front door".into())?;
    Ok(scratch)
}

/// Makes a directory that has the files of another one, with their times.
fn share(from: &Path, to: &Path) -> Result<()> {
    let doing = || format!("copy {}", from.display());
    fs::create_dir_all(to).context(doing)?;
    for entry in fs::read_dir(from).context(doing)? {
        let entry = entry.context(doing)?;
        let (path, there) = (entry.path(), to.join(entry.file_name()));
        let metadata = entry.metadata().context(doing)?;
        if metadata.is_dir() {
            share(&path, &there)?;
        } else if !is_replaced(&path, &metadata) || fs::hard_link(&path, &there).is_err() {
            copy(&path, &there, &metadata).context(doing)?;
        }
    }
    Ok(())
}

/// Whether whoever makes a file anew puts another one in its place.
fn is_replaced(path: &Path, metadata: &Metadata) -> bool {
    let end = path.extension();
    metadata.len() >= SHARED_MIN && end.is_none_or(|end| REPLACED.iter().any(|replaced| end == *replaced))
}

fn copy(from: &Path, to: &Path, metadata: &Metadata) -> std::io::Result<()> {
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(metadata.modified()?)
}
