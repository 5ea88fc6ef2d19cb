//! Where things are: the checkout, and what is built from it.

use crate::{Context, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// The top directory of the checkout.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    // The manifest is that of xtask or of a test crate; the workspace is the nearest directory with the door.
    let manifest = PathBuf::from(manifest);
    let top = manifest.ancestors().find(|directory| directory.join("tern").is_file());
    top.unwrap_or(&manifest).to_path_buf()
}

/// The directory for everything that is built.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// The directory for what this tool itself makes: the finished kernel, the boot archive, images, reports.
pub fn out() -> Result<PathBuf> {
    let path = target().join("tern");
    fs::create_dir_all(&path).context(|| format!("create {}", path.display()))?;
    Ok(path)
}

/// Creates a directory, unless it is there.
pub fn create(path: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path).context(|| format!("create {}", path.display()))?;
    Ok(path.to_path_buf())
}

/// A new directory of this tool that goes away with its owner.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates one. Its name begins with this.
    pub fn create(name: &str) -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        create(&out()?.join(format!("{name}-{}-{number}", process::id()))).map(Scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a file so that no reader ever sees half of it. Leaves an equal file as it is.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    let mut temporary = path.to_path_buf();
    temporary.as_mut_os_string().push(format!(".{}", process::id()));
    fs::write(&temporary, contents)
        .and_then(|()| fs::rename(&temporary, path))
        .context(|| format!("write {}", path.display()))
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).context(|| format!("read {}", path.display()))
}

/// Finds a program as the shell would.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut candidates = env::split_paths(&path).map(|directory| directory.join(name.as_ref()));
    candidates.find(|candidate| candidate.is_file())
}
