//! Sandboxes: entries of the program `linux` whose table `sandbox` names all that a sandbox has. It becomes the arguments with which `root` starts the program.

use super::check::bytes;
use super::file::{Entry, Rights, Sandbox};

/// The program that runs sandboxes.
const PROGRAM: &str = "linux";

/// Names of the servers of files and of the network.
const FILES: &str = "files";
/// See [`FILES`].
const NETWORK: &str = "network";

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// Memory of a sandbox in MiB, at most.
const MEMORY_MIB_MAX: u64 = 4096;

/// Processes and threads of a sandbox, at most.
const PROCESSES_MAX: i64 = 256;

/// Files of a sandbox, at most: as many as a number of the program has.
const FILES_MAX: i64 = u32::MAX as i64;

/// Bytes of arguments, at most, as `root` takes them (`ARGUMENTS_LEN_MAX` in `user/lib/api/src/process.rs`).
const ARGUMENTS_MAX: usize = 128 << 10;

/// A sandbox, as the program hears of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Names of its root, from that of all files on.
    pub root: Vec<String>,
    /// Arguments of the program.
    pub arguments: String,
    /// Memory of its processes in bytes.
    pub memory_bytes: u64,
    /// Whether keys of the console are its.
    pub has_keys: bool,
}

impl Settings {
    /// Whether the root of one lies in that of the other, or is the same.
    pub fn overlaps(&self, other: &Settings) -> bool {
        let len = self.root.len().min(other.root.len());
        self.root[..len] == other.root[..len]
    }
}

/// Reads the sandbox of an entry with these rights, and says what is wrong with it.
pub fn read(entry: &Entry, sandbox: &Sandbox, rights: &Rights) -> (Settings, Vec<String>) {
    let uses = rights.uses.as_deref();
    let mut reasons = Vec::new();
    entry_alone(entry, &mut reasons);
    names(sandbox, uses, &mut reasons);
    let root: Vec<String> =
        sandbox.root.split('/').filter(|name| !name.is_empty()).map(String::from).collect();
    let is_plain =
        |name: &String| name != "." && name != ".." && name.bytes().all(|byte| byte.is_ascii_graphic());
    if !sandbox.root.starts_with('/') || root.is_empty() || !root.iter().all(is_plain) {
        reasons.push(format!("root {:?}: expected a directory such as \"/disk/one\"", sandbox.root));
    }
    let memory_bytes = bytes("memory", &sandbox.memory).unwrap_or_else(|reason| {
        reasons.push(reason);
        MIB
    });
    if !memory_bytes.is_multiple_of(MIB) || memory_bytes / MIB > MEMORY_MIB_MAX {
        reasons.push(format!("memory {:?}: expected whole MiB, at most 4 GiB", sandbox.memory));
    }
    if !(1..=PROCESSES_MAX).contains(&sandbox.processes) {
        reasons.push(format!("processes {}: expected 1 to {PROCESSES_MAX}", sandbox.processes));
    }
    let disk_mib = sandbox.disk.as_ref().map(|disk| disk_mib(disk, &mut reasons));
    if let Some(files) = sandbox.files.filter(|files| !(1..=FILES_MAX).contains(files)) {
        reasons.push(format!("files {files}: expected 1 to {FILES_MAX}"));
    }
    if sandbox.program.first().is_none_or(String::is_empty)
        || sandbox.program.iter().any(|it| it.contains('\0'))
    {
        reasons.push("program: expected a program and its arguments, such as [\"sh\", \"/start\"]".into());
    }
    // A mistake in the memory of the entry is told where that is read.
    let own_bytes = bytes("memory", &rights.memory).unwrap_or(MIB);
    let memory_mib = [memory_bytes, own_bytes].map(|bytes| (bytes / MIB).max(1));
    let arguments = arguments(sandbox, &root, memory_mib, disk_mib);
    if arguments.len() > ARGUMENTS_MAX {
        reasons.push(format!("program: {} bytes, and at most {ARGUMENTS_MAX} fit", arguments.len()));
    }
    let reasons = reasons.into_iter().map(|reason| format!("{}: sandbox: {reason}", entry.name)).collect();
    (Settings { name: entry.name.clone(), root, arguments, memory_bytes, has_keys: sandbox.keys }, reasons)
}

/// Size of what all below its root may take, in MiB.
fn disk_mib(text: &str, reasons: &mut Vec<String>) -> u64 {
    match bytes("disk", text) {
        Ok(bytes) if bytes.is_multiple_of(MIB) => return bytes / MIB,
        Ok(_) => reasons.push(format!("disk {text:?}: expected whole MiB")),
        Err(reason) => reasons.push(reason),
    }
    1
}

/// Keys that an entry with a sandbox has, or has not.
fn entry_alone(entry: &Entry, reasons: &mut Vec<String>) {
    if entry.file.as_deref().unwrap_or(&entry.name) != PROGRAM {
        reasons.push(format!("the file of its program is {PROGRAM:?}"));
    }
    if entry.serves.iter().flatten().next().is_none() {
        reasons.push("it starts at boot, so it serves a name".into());
    }
    for (key, is_there) in [
        ("arguments", entry.arguments.is_some()),
        ("colours", entry.colours.is_some()),
        ("contiguous", entry.contiguous.is_some()),
        ("ports", entry.ports.is_some()),
        ("interrupts", entry.interrupts.is_some()),
        ("devices", entry.devices.is_some()),
        ("bus", entry.bus == Some(true)),
        ("archive", entry.archive == Some(true)),
        ("operator", entry.operator == Some(true)),
        ("mount", entry.mount == Some(true)),
    ] {
        if is_there {
            reasons.push(format!("its entry has no {key}"));
        }
    }
}

/// Servers that it reaches: those that are named, and no others.
fn names(sandbox: &Sandbox, uses: Option<&[String]>, reasons: &mut Vec<String>) {
    let Some(uses) = uses else {
        return reasons.push("its entry says what it uses".into());
    };
    let uses = |name: &str| uses.iter().any(|used| used == name);
    if !uses(FILES) {
        reasons.push(format!("it uses {FILES:?}, where its root is"));
    }
    match (sandbox.network, uses(NETWORK)) {
        (true, false) => reasons.push(format!("it has the network, and does not use {NETWORK:?}")),
        (false, true) => reasons.push(format!("it uses {NETWORK:?}, and does not have \"network = true\"")),
        _ => {}
    }
    if let Some(monitor) = sandbox.monitor.as_ref().filter(|monitor| !uses(monitor)) {
        reasons.push(format!("its monitor is {monitor:?}, which it does not use"));
    }
}

fn arguments(
    sandbox: &Sandbox,
    root: &[String],
    [memory_mib, own_mib]: [u64; 2],
    disk_mib: Option<u64>,
) -> String {
    let mut words = vec!["--root".into(), format!("/{}", root.join("/"))];
    words.extend(["--memory".into(), memory_mib.to_string()]);
    words.extend(["--own-memory".into(), own_mib.to_string()]);
    words.extend(["--processes".into(), sandbox.processes.to_string()]);
    words.extend(disk_mib.into_iter().flat_map(|mib| ["--disk".into(), mib.to_string()]));
    words.extend(sandbox.files.into_iter().flat_map(|files| ["--files".into(), files.to_string()]));
    if !sandbox.keys {
        words.push("--no-keys".into());
    }
    if let Some(monitor) = &sandbox.monitor {
        words.extend(["--monitor".into(), monitor.clone()]);
    }
    words.push("--encoded".into());
    words.extend(sandbox.program.iter().map(|word| encoded(word)));
    words.join(" ")
}

/// A word as one without blanks and quotes: other bytes than those of plain names become `%` and two hexadecimal digits.
fn encoded(word: &str) -> String {
    if word.is_empty() {
        return "%".into();
    }
    let code = |byte: u8| match byte {
        b'/' | b'.' | b'_' | b'-' | b'=' | b':' | b'+' | b'@' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    word.bytes().map(code).collect()
}
