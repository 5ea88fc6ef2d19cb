//! The verb `linux`, and how `run --linux` starts a program: Debian's packages on a disk image, as the root of Linux.
//!
//! In reading order: [`apt`] finds packages and fetches them, [`stage`] unpacks them into a folder of the host, [`status`] is the list of
//! those that are installed, [`disk`] puts a folder onto a disk image. Nothing of it needs the rights of `root`: no image is mounted,
//! and no script of a package is run.

mod apt;
mod disk;
mod stage;
mod status;
#[cfg(test)]
mod tests;

use crate::cli::{LinuxOptions, LinuxVerb};
use crate::paths::{self, Scratch};
use crate::{Error, Result, peripherals};
use apt::Apt;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

/// Directory of a disk that is the root of Linux, unless something else is asked for.
///
/// It is not the disk's own root, so that files of Tern's programs and files of Linux are apart, a program of Linux sees only its own, and
/// several roots fit on one disk.
pub const ROOT: &str = "/linux";

/// Directory where Tern has the disk.
const MOUNT: &str = "/disk";

/// Program of Tern that runs programs of Linux.
const PROGRAM: &str = "linux";

/// Option of that program: somebody sits at a terminal, which can be asked for its size.
pub const TERMINAL: &str = "--terminal";

/// Size of a disk that is made, in MiB.
const DISK_MIB: u32 = 1024;

/// Packages that are installed unasked. Each package may count on Debian's essential ones without naming them; among these are the
/// descriptions of terminals, which no program misses with a message that helps.
const ALWAYS: [&str; 1] = ["ncurses-base"];

/// Package of the C library.
const C_LIBRARY: &str = "libc6";

/// Bytes of a boot command line, at most, as the kernel has it (`COMMAND_LINE_MAX` in `kernel/src/boot.rs`).
const COMMAND_LINE_MAX: usize = 512;

/// The verb `linux`.
pub fn perform(options: LinuxOptions) -> Result<u8> {
    let image = options.disk.unwrap_or_else(|| PathBuf::from(peripherals::USUAL_DISK));
    let root = Root { image, directory: directory(&options.root)? };
    match options.verb {
        LinuxVerb::Install { packages } => {
            root.install(&Apt::new(paths::out()?.join("linux")), DISK_MIB, &packages)?;
        }
        LinuxVerb::List => print!("{}", root.list()?),
    }
    Ok(0)
}

/// The names of a directory of the disk.
fn directory(path: &str) -> Result<PathBuf> {
    let path = Path::new(path);
    let names = path.strip_prefix("/").unwrap_or(path);
    let is_plain = names.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || names.as_os_str().is_empty() {
        return Err(Error::usage(format!(
            "--root {}: expected a directory of the disk, such as {ROOT}",
            path.display()
        )));
    }
    Ok(names.components().collect())
}

/// Fetches the package that another one depends on and whose name begins so.
pub fn fetch_dependency(name: &str, beginning: &str) -> Result<PathBuf> {
    let apt = Apt::new(paths::out()?.join("linux"));
    let mut packages = apt.resolve(&[name.to_string()], "")?;
    packages.retain(|package| package.name.starts_with(beginning) && package.name != name);
    packages.truncate(1);
    let missing = || Error::new(format!("{name} depends on no package {beginning}…"));
    apt.fetch(&packages)?.pop().ok_or_else(missing)
}

/// A package and all that it needs, from Debian.
#[derive(Debug)]
pub struct Program {
    archives: Vec<PathBuf>,
    /// The package and the C library with their versions, which say what it costs to run.
    pub version: String,
}

/// Finds a package, with all that it needs, among those that were fetched before; or fetches it.
pub fn program(name: &str, is_fetched: bool) -> Result<Program> {
    let apt = Apt::new(paths::out()?.join("linux"));
    let packages = apt.resolve(&[name.to_string()], "")?;
    let archives = if is_fetched { apt.fetch(&packages)? } else { apt.kept(&packages)? };
    let wanted = |wanted: &str| packages.iter().find(|package| package.name == wanted);
    let versions = [name, C_LIBRARY].into_iter().filter_map(wanted);
    let versions: Vec<String> =
        versions.map(|package| format!("{} {}", package.name, package.version)).collect();
    Ok(Program { archives, version: versions.join(", ") })
}

impl Program {
    /// Unpacks it into an empty folder, which is a root of Linux then.
    pub fn unpack(&self, folder: &Path) -> Result<()> {
        stage::unpack(&self.archives, folder).map(|_| ())
    }
}

/// A root of Linux: a directory of a disk.
#[derive(Debug)]
struct Root {
    image: PathBuf,
    /// From the disk's own root on, without a slash in front.
    directory: PathBuf,
}

impl Root {
    /// Installs packages, with all that they need. A disk that is not there is made, of this size in MiB. If it fails, the disk is as before.
    fn install(&self, apt: &Apt, mib: u32, names: &[String]) -> Result<()> {
        let held = if self.image.exists() { Some(self.hold(mib)?) } else { None };
        let old = self.status()?;
        let always = ALWAYS.iter().filter(|name| !status::has(&old, name)).map(|name| name.to_string());
        let packages = apt.resolve(&names.iter().cloned().chain(always).collect::<Vec<String>>(), &old)?;
        let archives = apt.fetch(&packages)?;
        let scratch = Scratch::create("linux-root")?;
        let top = paths::create(&scratch.0.join(&self.directory))?;
        let kept = stage::unpack(&archives, &top)?;
        let stanzas =
            archives.iter().map(|archive| apt::control(archive)).collect::<Result<Vec<String>>>()?;
        stage::write(&top, status::PATH, status::with(&old, &stanzas).as_bytes())?;
        let (_held, image) = match held {
            Some(held) => held,
            None => self.hold(mib)?,
        };
        if self.status()? != old {
            return Err(Error::new(format!("{} has changed meanwhile; try again", self.image.display())));
        }
        let bytes = disk::put(&image, &scratch.0, &self.directory, &kept)?;
        let (count, mib) = (packages.len(), bytes.div_ceil(1 << 20));
        let s = if count == 1 { "" } else { "s" };
        println!("{}: {count} package{s} in /{}, {mib} MiB", self.image.display(), self.directory.display());
        Ok(())
    }

    /// The disk, kept from machines and from others that install.
    fn hold(&self, mib: u32) -> Result<(File, PathBuf)> {
        let image = peripherals::disk_of(&self.image, mib)?;
        Ok((peripherals::lock_out(&image)?, image))
    }

    /// Packages and their versions.
    fn list(&self) -> Result<String> {
        if !self.image.exists() {
            return Err(Error::new(no_disk(&self.image)));
        }
        let installed = status::installed(&self.status()?);
        if installed.is_empty() {
            let (image, directory) = (self.image.display(), self.directory.display());
            return Err(Error::new(format!("nothing is installed in /{directory} of {image}")));
        }
        let width = installed.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        Ok(installed.iter().map(|(name, version)| format!("{name:width$}  {version}\n")).collect())
    }

    /// The list of installed packages; empty if there is none.
    fn status(&self) -> Result<String> {
        if !self.image.exists() {
            return Ok(String::new());
        }
        let bytes = disk::read(&self.image, &self.directory.join(status::PATH))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn no_disk(image: &Path) -> String {
    format!("there is no disk {}; ./tern linux install PACKAGE makes one", image.display())
}

/// The disk of `run --linux`, which is there and which no other machine has as long as what comes back is open.
pub fn disk(named: Option<&Path>) -> Result<(File, PathBuf)> {
    let image = named.unwrap_or(Path::new(peripherals::USUAL_DISK));
    if !image.exists() {
        return Err(Error::new(no_disk(image)));
    }
    let image = peripherals::present_disk(image)?;
    Ok((peripherals::lock(&image)?, image))
}

/// Boot options that start a program of Linux instead of the shell, after options of the program that runs it. `others` are those that stand beside them.
///
/// Boot options and arguments of Tern's programs are words without blanks. If a word of the program is none, all words are encoded, and
/// `--encoded` in front says so: see [`encoded`].
pub fn boot_options(words: &[String], options: &[&str], others: &str) -> Result<String> {
    let is_taken = |option: &str| others.split_whitespace().any(|word| word.starts_with(option));
    if let Some(option) = ["init=", "args="].into_iter().find(|option| is_taken(option)) {
        return Err(Error::usage(format!(
            "--linux says itself which program starts, so --boot cannot: {option}"
        )));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(Error::usage("--linux: a word cannot have a zero in it"));
    }
    let codes: Vec<String> = words.iter().map(|word| encoded(word)).collect();
    let mut arguments = vec!["--boot".to_string(), "--root".into(), format!("{MOUNT}{ROOT}")];
    arguments.extend(options.iter().map(|option| option.to_string()));
    if codes != words {
        arguments.push("--encoded".into());
    }
    arguments.extend(codes);
    let options = format!("init={PROGRAM} args={}", arguments.join(","));
    match options.len() + 1 + others.len() {
        ..=COMMAND_LINE_MAX => Ok(options),
        len => Err(Error::usage(format!(
            "--linux: the boot command line would have {len} bytes, and at most {COMMAND_LINE_MAX} fit; \
             type longer commands at the shell"
        ))),
    }
}

/// Memory of a machine in which programs of Linux have no more than `linux` takes without options, in MiB.
const USUAL_MIB: u32 = 256;

/// Memory of all processes of Linux, in MiB: without options, and at most.
const PROCESSES_MIB: [u32; 2] = [60, 4096];

/// Memory of the program `linux` itself, in MiB: without options, and at most.
const OWN_MIB: [u32; 2] = [32, 256];

/// Of so many further MiB one is for `linux` itself: it keeps 168 bytes of tables for each page of processes, and more of what these make it keep.
const OF_OWN: u32 = 16;

/// Options by which programs of Linux have what a machine has beyond the usual memory.
pub fn memory_options(machine_mib: u32) -> Vec<String> {
    let more = machine_mib.saturating_sub(USUAL_MIB);
    if more == 0 {
        return Vec::new();
    }
    let [processes, own] = [(PROCESSES_MIB, more - more / OF_OWN), (OWN_MIB, more / OF_OWN)]
        .map(|([usual, most], more)| (usual + more).min(most).to_string());
    ["--memory".into(), processes, "--own-memory".into(), own].into()
}

/// A word as one that boot options can hold: bytes that are no graphic characters of ASCII, commas and percent signs become `%` and two hexadecimal
/// digits. A word without bytes is a percent sign alone.
fn encoded(word: &str) -> String {
    if word.is_empty() {
        return "%".into();
    }
    let code = |byte: u8| match byte {
        b'%' | b',' => format!("%{byte:02x}"),
        _ if byte.is_ascii_graphic() => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    word.bytes().map(code).collect()
}
