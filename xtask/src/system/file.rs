//! A description as a person writes it.

use super::Mistake;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The description that this one begins with.
    pub base: Option<Spanned<String>>,
    /// Names of entries of the base that are left out.
    #[serde(default)]
    pub without: Vec<Spanned<String>>,
    /// Rights of programs that have no entry, and of those whose entries do not say. Those of the base, if this is left out.
    pub usual: Option<Spanned<Rights>>,
    /// Programs.
    #[serde(default)]
    pub program: Vec<Spanned<Entry>>,
    /// Modules, each of which belongs to one task.
    #[serde(default)]
    pub module: Vec<Spanned<Entry>>,
    /// Tasks that are made of modules.
    #[serde(default)]
    pub task: Vec<Spanned<Task>>,
}

/// A program, or a module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Entry {
    /// Its name, and the name of its file in the boot archive.
    pub name: String,
    /// Its file, if that has another name.
    pub file: Option<String>,
    /// Arguments with which it is started at boot.
    pub arguments: Option<String>,
    /// The names that it serves. It starts at boot if it serves any, and again when it ends.
    pub serves: Option<Vec<String>>,
    /// The programs that may ask for what it serves; without this, all.
    pub clients: Option<Vec<String>>,
    /// The program that starts in its place if this machine has nothing for it.
    pub otherwise: Option<String>,
    /// Names in whose place it finds others: those of monitors.
    pub instead: Option<BTreeMap<String, String>>,
    // Rights of all programs, which cannot be flattened, since unknown keys would be taken then.
    /// See [`Rights::priority`].
    pub priority: Option<i64>,
    /// See [`Rights::priority_max`].
    pub priority_max: Option<i64>,
    /// See [`Rights::kernel_share`].
    pub kernel_share: Option<i64>,
    /// See [`Rights::memory`].
    pub memory: Option<String>,
    /// See [`Rights::restarts`].
    pub restarts: Option<i64>,
    /// See [`Rights::uses`].
    pub uses: Option<Vec<String>>,
    /// Colours of the cache for which its pages get their frames.
    pub colours: Option<i64>,
    /// Contiguous memory that it may have besides, such as `2 MiB`.
    pub contiguous: Option<String>,
    /// I/O ports, each group such as `0x3f8+8`: the first one, and their number.
    pub ports: Option<Vec<String>>,
    /// Interrupt lines.
    pub interrupts: Option<Vec<i64>>,
    /// Classes of devices.
    pub devices: Option<Vec<String>>,
    /// Whether it is the bus server.
    pub bus: Option<bool>,
    /// Whether it may read the boot archive.
    pub archive: Option<bool>,
    /// Whether it may start programs, and end programs that it did not start.
    pub operator: Option<bool>,
    /// Whether it may mount and unmount file systems.
    pub mount: Option<bool>,
    /// Settings of a sandbox, if the file is `linux`.
    pub sandbox: Option<Sandbox>,
}

/// A sandbox of the program `linux`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// The directory that is its root, such as `/disk/one`.
    pub root: String,
    /// Its first program, and the arguments of that.
    pub program: Vec<String>,
    /// Memory of all its processes together, such as `16 MiB`.
    pub memory: String,
    /// Processes and threads that it may have.
    pub processes: i64,
    /// Bytes that all below its root may take, such as `64 MiB`; without this, all that its file system has.
    pub disk: Option<String>,
    /// Files, directories and symbolic links that there may be below its root; without this, as many as its file system has.
    pub files: Option<i64>,
    /// Whether it has the network.
    #[serde(default)]
    pub network: bool,
    /// Whether keys of the console are typed at its terminal.
    #[serde(default)]
    pub keys: bool,
    /// Name of the server that hears of every call before it is made.
    pub monitor: Option<String>,
}

/// Rights and limits of all programs that have no entry. An entry may change each of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rights {
    /// Priority of the first thread.
    pub priority: i64,
    /// Highest priority of its threads.
    pub priority_max: i64,
    /// Kernel memory, in parts of 256 of all.
    pub kernel_share: i64,
    /// Memory, such as `64 MiB`.
    pub memory: String,
    /// How often it may end within ten seconds and be started again, if it serves names.
    pub restarts: i64,
    /// The names that it may ask for; without this, all.
    pub uses: Option<Vec<String>>,
}

/// A task that is made of modules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its modules.
    pub modules: Vec<String>,
}

/// Reads the file. What TOML does not allow, or no key is for, is told with its line.
pub fn parse(text: &str) -> Result<File, Mistake> {
    toml::from_str(text).map_err(|error| Mistake {
        line: line_of(text, error.span().unwrap_or_default()),
        reason: error.message().replace('\n', ": "),
    })
}

/// Line in which a part of the text begins, from 1 on.
pub fn line_of(text: &str, part: Range<usize>) -> u32 {
    let before = text.as_bytes().get(..part.start).unwrap_or_default();
    before.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1
}
