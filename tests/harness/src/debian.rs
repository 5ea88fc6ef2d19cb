//! Programs of Debian with the libraries that they are linked with, as they are on this machine: lists of command lines print on Tern what they print on Linux.

use crate::files::{check_disk, root_disk};
use crate::linux::{linux, same_output};
use crate::world::{Named, Scratch, Verdict, World};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::paths;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 1] =
        [("programs_print_what_they_print_on_linux", programs_print_what_they_print_on_linux)];
    trials
        .into_iter()
        .map(|(name, verdict)| world.trial("linux", format!("debian::{name}"), verdict))
        .collect()
}

/// Programs, all of them in `/usr/bin`.
const PROGRAMS: &str = "dash env cat ls cp mv rm mkdir rmdir ln chmod touch sort uniq head tail wc cut tr seq tee split comm join paste od stat date dd expr factor fold nl \
    numfmt printf readlink realpath shuf sha256sum md5sum cksum base64 sleep sum tac test timeout truncate tsort expand true id fmt pr mkfifo nice nohup echo grep sed mawk find \
    xargs diff cmp gzip tar bzip2 perl python3.11 lua5.4 sqlite3 git tcc bash make patch xz as ld ar nm objdump strings strip readelf getopt flock setsid prlimit \
    getconf install basename dirname link unlink mktemp tty csplit sha1sum b2sum du sync false \
    renice ionice chrt taskset";

/// Folders that programs read from.
const FOLDERS: [&str; 5] = [
    "/usr/lib/git-core",
    "/usr/share/git-core/templates",
    "/usr/lib/x86_64-linux-gnu/perl-base",
    "/usr/lib/x86_64-linux-gnu/tcc",
    "/usr/lib/python3.11",
];

/// Parts of them that no line needs.
const SPARED: [&str; 6] = ["test", "idlelib", "lib2to3", "ensurepip", "distutils", "__pycache__"];

/// Search path of programs, here and there.
const PATH: &str = "/usr/bin:/bin";

/// Directory in which each command begins.
const PLACE: &str = "/tmp/place";

/// Number of commands of which the plain test runs one.
const ONE_IN: usize = 8;

/// Most commands for one boot.
const AT_ONCE: usize = 15;

/// The newest file of a kind, by its name, that somebody has fetched into a folder of `target/tern/linux`.
pub fn fetched(folder: &str, is_wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let files = fs::read_dir(paths::out().ok()?.join("linux").join(folder)).ok()?;
    let paths = files.filter_map(Result::ok).map(|entry| entry.path());
    paths.filter(|path| path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy()))).max()
}

/// Copies a file to the same path below a root, with the libraries that it is linked with.
pub fn bring(root: &Path, file: &Path, known: &mut BTreeSet<PathBuf>) -> Result<(), Failed> {
    if !known.insert(file.to_path_buf()) {
        return Ok(());
    }
    let to = root.join(file.strip_prefix("/")?);
    fs::create_dir_all(to.parent().unwrap_or(root))?;
    fs::copy(file, &to).map_err(|error| format!("{}: {error}", file.display()))?;
    // A file that is no program is linked with nothing, and the tool says so by its status.
    let linked = Command::new("ldd").arg(file).output()?;
    for word in
        String::from_utf8_lossy(&linked.stdout).split_whitespace().filter(|word| word.starts_with('/'))
    {
        bring(root, Path::new(word), known)?;
    }
    Ok(())
}

/// Copies a folder, with the libraries of what is in it.
pub fn bring_folder(root: &Path, folder: &Path, known: &mut BTreeSet<PathBuf>) -> Result<(), Failed> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kind = fs::symlink_metadata(&path)?.file_type();
        let to = root.join(path.strip_prefix("/")?);
        if SPARED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            fs::create_dir_all(&to)?;
            bring_folder(root, &path, known)?;
        } else if kind.is_symlink() {
            fs::create_dir_all(to.parent().unwrap_or(root))?;
            symlink(fs::read_link(&path)?, &to)?;
        } else if name.ends_with(".so") {
            bring(root, &path, known)?;
        } else {
            fs::create_dir_all(to.parent().unwrap_or(root))?;
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// A folder with all that the lines need.
fn make_root(root: &Path) -> Result<(), Failed> {
    let mut known = BTreeSet::new();
    for folder in ["tmp", "bin", "lists", "etc", "root"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in PROGRAMS.split_whitespace() {
        bring(root, &Path::new("/usr/bin").join(name), &mut known)?;
    }
    for folder in FOLDERS {
        bring_folder(root, Path::new(folder), &mut known)?;
    }
    symlink("/usr/bin/dash", root.join("bin/sh"))?;
    for file in ["/etc/passwd", "/etc/group"] {
        fs::copy(file, root.join(file.trim_start_matches('/')))?;
    }
    Ok(())
}

/// The committed list, or a part of it, in pieces of which each is for one boot. Lines behind a command that begin with "> " are a part of it.
fn lists(is_full: bool) -> Result<Vec<String>, Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/programs.txt");
    let text = fs::read_to_string(path)?;
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match commands.last_mut() {
            Some(command) if line.starts_with("> ") => *command += &format!("\n{line}"),
            _ => commands.push(line.into()),
        }
    }
    let kept: Vec<String> = (0..)
        .zip(commands)
        .filter(|(number, _)| is_full || number % ONE_IN == 0)
        .map(|(_, command)| command)
        .collect();
    Ok(kept.chunks(AT_ONCE).map(|commands| commands.join("\n") + "\n").collect())
}

fn programs_print_what_they_print_on_linux(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let root = scratch.0.join("disk/linux");
    make_root(&root)?;
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/run.sh"), root.join("lists/run.sh"))?;
    let lists = lists(world.full)?;
    for (number, list) in lists.iter().enumerate() {
        fs::write(root.join(format!("lists/{number}")), list)?;
    }
    let disk = root_disk(&scratch, "512M")?;
    for number in 0..lists.len() {
        let list = root.join(format!("lists/{number}"));
        let output = Command::new("/usr/bin/dash")
            .args([&root.join("lists/run.sh"), Path::new("/usr/bin/dash"), &list, &scratch.0.join("place")])
            .current_dir("/")
            .env_clear()
            .envs([("PATH", PATH), ("HOME", "/root"), ("TERM", "xterm"), ("USER", "root")])
            .output()?;
        let wanted = String::from_utf8_lossy(&output.stdout).into_owned();
        let there = format!("/lists/{number}");
        let words = ["/usr/bin/dash", "/lists/run.sh", "/usr/bin/dash", &there, PLACE];
        let reply = linux(world, &disk, &words, b"")?;
        same_output(&wanted, &reply, &list, &root.display().to_string())?;
    }
    check_disk(&disk)
}
