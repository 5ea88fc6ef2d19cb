//! A copy of the checkout, in which a check is missing: with a directory of its own for what is built from it, so that
//! only what concerns the check is built anew.

use super::list::Check;
use crate::{Context, Result, paths};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are not copied: those that are built, and the history.
const LEFT_OUT: [&str; 2] = ["target", ".git"];

/// A copy.
pub struct Tree {
    /// Its top directory.
    pub root: PathBuf,
    /// Folder for everything that is built from it.
    pub target: PathBuf,
}

impl Tree {
    /// Brings copy number `index` up to date.
    pub fn prepare(index: usize) -> Result<Tree> {
        let directory = paths::target().join(format!("mutate/{index}"));
        let (root, original) = (directory.join("tree"), paths::root());
        let mut kept = BTreeSet::new();
        copy(&original, &root, &mut kept)?;
        remove_others(&root, &kept)?;
        Ok(Tree { root, target: directory.join("target") })
    }

    /// Does something in the copy while the check is missing in it.
    pub fn without<R>(&self, check: &Check, act: impl FnOnce() -> Result<R>) -> Result<R> {
        let place = self.root.join(&check.file);
        let source = paths::read(&place)?;
        let changed = check.apply(&String::from_utf8_lossy(&source))?;
        paths::write(&place, changed.as_bytes())?;
        let result = act();
        paths::write(&place, &source)?;
        result
    }
}

/// Copies what differs, so that the rest looks as old to cargo as it is.
fn copy(from: &Path, to: &Path, kept: &mut BTreeSet<PathBuf>) -> Result<()> {
    fs::create_dir_all(to).context(|| format!("create {}", to.display()))?;
    kept.insert(to.to_path_buf());
    for path in entries(from)? {
        let name = path.file_name().unwrap_or_default();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let target = to.join(name);
        if path.is_dir() {
            copy(&path, &target, kept)?;
        } else if path.is_file() {
            paths::write(&target, &paths::read(&path)?)?;
            let permissions = fs::metadata(&path).map(|data| data.permissions());
            permissions
                .and_then(|permissions| fs::set_permissions(&target, permissions))
                .context(|| format!("copy {}", path.display()))?;
            kept.insert(target);
        }
    }
    Ok(())
}

fn remove_others(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for path in entries(directory)? {
        let removed = match (kept.contains(&path), path.is_dir()) {
            (true, true) => remove_others(&path, kept),
            (true, false) => Ok(()),
            (false, true) => fs::remove_dir_all(&path).context(|| format!("remove {}", path.display())),
            (false, false) => fs::remove_file(&path).context(|| format!("remove {}", path.display())),
        };
        removed?;
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(directory).context(|| format!("read {}", directory.display()))?;
    Ok(read.filter_map(|entry| Some(entry.ok()?.path())).collect())
}
