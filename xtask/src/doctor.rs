//! The verb `doctor`: what is installed, what is missing, and what to do about it.

use crate::machine::QEMU;
use crate::{Result, newlib, nightly, paths};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// How a thing is found.
enum Look {
    /// By running a program; its first line is shown.
    Run(&'static [&'static str]),
    /// By a path.
    Path(&'static str),
}

/// A thing to look for: name, how, the verbs that need it, and what to install.
struct Need {
    name: &'static str,
    look: Look,
    verbs: &'static str,
    package: &'static str,
}

const fn run(
    name: &'static str,
    command: &'static [&'static str],
    verbs: &'static str,
    package: &'static str,
) -> Need {
    Need { name, look: Look::Run(command), verbs, package }
}

const fn path(name: &'static str, path: &'static str, verbs: &'static str, package: &'static str) -> Need {
    Need { name, look: Look::Path(path), verbs, package }
}

const NEEDS: [Need; 28] = [
    run("Rust", &["rustc", "--version"], "all", "rustup"),
    run("C compiler", &["gcc", "--version"], "all", "build-essential"),
    path("C library", newlib::SOURCE, "build run test bench image", newlib::PACKAGE),
    run("QEMU", &[QEMU, "--version"], "run test bench", "qemu-system-x86"),
    path("ext4 tools", "/usr/sbin/mke2fs", "run linux test", "e2fsprogs"),
    run("apt", &["apt-get", "--version"], "linux test", "apt"),
    run("GRUB", &["grub-mkrescue", "--version"], "image test", "grub-common"),
    path("GRUB, BIOS", "/usr/lib/grub/i386-pc", "image test", "grub-pc-bin"),
    path("GRUB, UEFI", "/usr/lib/grub/x86_64-efi", "image test", "grub-efi-amd64-bin"),
    run("xorriso", &["xorriso", "--version"], "image test", "xorriso"),
    run("mtools", &["mformat", "--version"], "image test", "mtools"),
    run("curl", &["curl", "--version"], "test", "curl"),
    path("busybox, static", "/usr/share/doc/busybox-static", "test", "busybox-static"),
    path("bash, static", "/bin/bash-static", "test", "bash-static"),
    path("Python", "/usr/bin/python3.11", "test", "python3"),
    path("SQLite", "/usr/bin/sqlite3", "test", "sqlite3"),
    path("redis", "/usr/bin/redis-check-rdb", "test", "redis-tools"),
    path("stress-ng", "/usr/bin/stress-ng", "test", "stress-ng"),
    path("Lua", "/usr/bin/lua5.4", "test", "lua5.4"),
    path("tcc", "/usr/bin/tcc", "test", "tcc"),
    path("git", "/usr/bin/git", "test", "git"),
    path("bzip2", "/usr/bin/bzip2", "test", "bzip2"),
    path("UEFI firmware", "/usr/share/ovmf/OVMF.fd", "test", "ovmf"),
    path("Bochs", "/usr/bin/bochs", "test", "bochs"),
    path("Bochs display", "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so", "test", "bochs-term"),
    path("Bochs firmware", "/usr/share/bochs/BIOS-bochs-latest", "test", "bochsbios"),
    run("script", &["script", "--version"], "test", "bsdutils"),
    run("setpriv", &["setpriv", "--version"], "(ends emulators safely)", "util-linux"),
];

/// Looks for everything. Fails if something is missing.
pub fn perform() -> Result<u8> {
    let mut missing = Vec::new();
    for need in &NEEDS {
        let found = look(&need.look);
        let shown = found.as_deref().unwrap_or("missing");
        println!("{:<16} {:<24} {shown}", need.name, need.verbs);
        if found.is_none() {
            missing.push(need.package);
        }
    }
    let pinned = nightly::installed().unwrap_or_else(|| "not installed; comes with the first use".into());
    println!("{:<16} {:<24} {pinned}", "nightly", "miri fuzz");
    println!("{:<16} {:<24} {}", "KVM", "(never needed)", try_kvm(Path::new(KVM), QEMU));
    println!("{:<16} {:<24} {}", "build directory", "all", paths::target().display());
    if missing.is_empty() {
        println!("everything is there");
        return Ok(0);
    }
    println!("install with: apt-get install {}", missing.join(" "));
    Ok(1)
}

/// The host's virtualisation.
const KVM: &str = "/dev/kvm";

/// Says whether the host's virtualisation can be used, which nobody knows before an emulator has tried: the device may be
/// there without the permission to use it, or without the hardware.
fn try_kvm(device: &Path, emulator: &str) -> String {
    if !device.exists() {
        return "none".into();
    }
    let mut command = Command::new(emulator);
    command.args(["-accel", "kvm", "-nodefaults", "-display", "none", "-S", "-monitor", "stdio"]);
    let tried = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let ended = tried.and_then(|mut child| {
        // One that does not start reads nothing; its end says so.
        let _ = child.stdin.take().map(|mut input| input.write_all(b"quit\n"));
        child.wait_with_output()
    });
    match ended {
        Ok(output) if output.status.success() => "tried, works; ./tern run --kvm uses it".into(),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            format!("tried, does not work: {}", text.trim().lines().next().unwrap_or("no reason was given"))
        }
        Err(error) => format!("{} is there, not tried: {error}", device.display()),
    }
}

fn look(look: &Look) -> Option<String> {
    match look {
        Look::Path(path) => Path::new(path).exists().then(|| path.to_string()),
        Look::Run(command) => {
            let output = Command::new(command[0]).args(&command[1..]).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.lines().next().unwrap_or("there").to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that exists is no promise: only an emulator that ran is one.
    #[test]
    fn kvm_is_promised_only_when_it_was_tried() {
        let there = Path::new("/dev/null");
        assert_eq!(try_kvm(Path::new("/nonexistent"), "true"), "none");
        assert!(try_kvm(there, "true").contains("works"));
        assert!(try_kvm(there, "false").contains("does not work"));
        assert!(try_kvm(there, "/nonexistent").contains("not tried"));
    }
}
