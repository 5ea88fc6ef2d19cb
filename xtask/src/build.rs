//! Builds what boots: the kernel with its symbol table, and the archive of user programs.

use crate::archive::{self, Entry};
use crate::ksyms::{self, Filled};
use crate::{Error, Result, interrupt, paths, programs};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// The compiler's name for a machine without an operating system.
pub const GUEST_TARGET: &str = "x86_64-unknown-none";

/// The compiler's options for the kernel; its linker script comes from its own build script.
pub const KERNEL_FLAGS: [&str; 3] =
    ["-Crelocation-model=static", "-Ccode-model=kernel", "-Cforce-frame-pointers=yes"];

/// The compiler's options for user programs. Their code is position-independent, because σ0 lies beyond the reach
/// of 32-bit addresses; the files are not. Ciphers do without vector instructions, for which the compiler of this target has no registers.
const USER_FLAGS: [&str; 5] = [
    "-Crelocation-model=pic",
    "-Clink-arg=--no-pie",
    "--cfg=aes_backend=\"soft\"",
    "--cfg=chacha20_backend=\"soft\"",
    "--cfg=poly1305_backend=\"soft\"",
];

/// System that a machine boots.
#[derive(Clone, Debug)]
pub struct System {
    /// The kernel, an ELF file.
    pub kernel: PathBuf,
    /// The boot archive.
    pub archive: PathBuf,
}

impl System {
    /// The boot archive's files.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let bytes = paths::read(&self.archive)?;
        let files = abi::archive::files(&bytes).filter_map(std::result::Result::ok);
        Ok(files.map(|file| Entry { name: file.name.into(), data: file.data.to_vec() }).collect())
    }

    /// The boot archive's files with another description, which `describe` makes for them.
    pub fn entries_of(
        &self,
        describe: impl FnOnce(&[&str]) -> Result<description::System>,
    ) -> Result<Vec<Entry>> {
        let mut entries = self.entries()?;
        entries.retain(|entry| entry.name != description::FILE);
        let files: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let data = describe(&files)?.pack();
        entries.push(Entry { name: description::FILE.into(), data });
        Ok(entries)
    }
}

/// The verb `build`.
pub fn perform() -> Result<u8> {
    let system = system()?;
    println!("kernel        {}", system.kernel.display());
    println!("boot archive  {}", system.archive.display());
    Ok(0)
}

/// The system that is built if nobody says which.
pub const DEFAULT: &str = "default";

/// Names a directory with a system that is already built; then nothing is built. The tests use it, so that a
/// hundred boots do not ask cargo a hundred times.
pub const PREBUILT: &str = "TERN_PREBUILT";

/// Builds kernel and boot archive, with the default system.
pub fn system() -> Result<System> {
    system_of(DEFAULT)
}

/// Builds kernel and boot archive, with the system of this name.
pub fn system_of(name: &str) -> Result<System> {
    let prebuilt = std::env::var_os(PREBUILT).filter(|_| name == DEFAULT);
    if let Some(directory) = prebuilt.map(PathBuf::from) {
        return Ok(System { kernel: directory.join("tern-kernel"), archive: directory.join("boot.cpio") });
    }
    let (kernel, archive) = side_by_side(kernel, || archive(&programs::build_all(name)?));
    Ok(System { kernel: kernel?, archive: archive? })
}

/// Runs two builders at the same time: hardly one has work for all processors from its beginning to its end.
pub fn side_by_side<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

/// Builds the kernel and fills in its symbol table.
pub fn kernel() -> Result<PathBuf> {
    kernel_of(&paths::root(), &paths::target().join("kernel"), &paths::out()?, &KERNEL_FLAGS)
}

/// Builds the kernel of any checkout, into any directory; `out` is where the finished one goes. Nobody hears how far it is: at a terminal, programs tell of themselves beside it.
pub fn kernel_of(root: &Path, directory: &Path, out: &Path, flags: &[&str]) -> Result<PathBuf> {
    let mut builder = cargo_in(root, "build", directory, flags);
    builder.args(["--quiet", "--package", "tern-kernel", "--bin", "tern-kernel"]);
    run_builder(&mut builder, "the kernel")?;
    let mut image = paths::read(&directory.join(GUEST_TARGET).join("release/tern-kernel"))?;
    if let Filled::Functions(kept, total) = ksyms::fill(&mut image)?
        && kept < total
    {
        eprintln!("tern: note: the kernel's symbol table has room for {kept} of {total} functions");
    }
    let path = out.join("tern-kernel");
    paths::write(&path, &image)?;
    Ok(path)
}

/// Packs the boot archive.
pub fn archive(entries: &[Entry]) -> Result<PathBuf> {
    let path = paths::out()?.join("boot.cpio");
    paths::write(&path, &archive::pack(entries))?;
    Ok(path)
}

/// `cargo build` for the guest, into its own directory so that it never waits for the tool's own build.
pub fn cargo(verb: &str, target_directory: &Path, flags: &[&str]) -> Command {
    let mut command = cargo_in(&paths::root(), verb, target_directory, flags);
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    command
}

/// Like [`cargo`], for user programs. Messages of panics name files by their paths in the checkout, so that programs are the same wherever that is.
pub fn cargo_for_programs(verb: &str, target_directory: &Path) -> Command {
    let mut command = cargo(verb, target_directory, &USER_FLAGS);
    let root = paths::root();
    command.env("RUSTC_WRAPPER", root.join("xtask/mapped-rustc")).env("TERN_CHECKOUT", root);
    command
}

fn cargo_in(root: &Path, verb: &str, target_directory: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args([verb, "--release", "--target", GUEST_TARGET, "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_directory)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null());
    command
}

/// Runs a builder; `what` completes the sentence "building … failed".
pub fn run_builder(builder: &mut Command, what: &str) -> Result<()> {
    let status = interrupt::status(builder)?;
    if status.success() { Ok(()) } else { Err(Error::new(format!("building {what} failed"))) }
}
