//! The verb `image`: a disc image that boots by BIOS and UEFI, from an optical disc or a USB stick.

use crate::build::{self, System};
use crate::cli::ImageOptions;
use crate::paths::{self, Scratch};
use crate::{Context, Error, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The boot loader's modules that are needed to find and start the kernel on all these ways. All of them would
/// make the image four times as large.
const GRUB_MODULES: &str = "normal multiboot2 iso9660 part_msdos part_gpt fat search search_fs_file \
     serial terminal configfile all_video gfxterm echo";

/// Builds the system and makes an image of it.
pub fn perform(options: ImageOptions) -> Result<u8> {
    let output = match options.output {
        Some(path) => path,
        None => paths::out()?.join("tern.iso"),
    };
    writable(&output)?;
    let system = build::system()?;
    make(&system, &options.boot, &output)?;
    let size_kib = fs::metadata(&output).context(|| format!("read {}", output.display()))?.len() / 1024;
    println!("disc image  {} ({size_kib} KiB)", output.display());
    Ok(0)
}

/// Refuses a place where no file can be, before anything is built.
fn writable(output: &Path) -> Result<()> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(Error::new(format!("there is no folder {} for the disc image", folder.display())));
    }
    match output.is_dir() {
        true => Err(Error::new(format!("{} is a folder, and the disc image a file", output.display()))),
        false => Ok(()),
    }
}

/// Makes an image whose system boots with these options.
pub fn make(system: &System, boot_options: &str, output: &Path) -> Result<()> {
    if boot_options.contains(|c: char| c.is_control() || "\"'\\$;{}#".contains(c)) {
        return Err(Error::usage("boot options are words of the form key=value"));
    }
    let tree = Scratch::create("image")?;
    let boot = tree.0.join("boot");
    fs::create_dir_all(boot.join("grub")).context(|| "create the image's tree".into())?;
    for (from, name) in [(&system.kernel, "tern-kernel"), (&system.archive, "boot.cpio")] {
        fs::copy(from, boot.join(name)).context(|| format!("copy {}", from.display()))?;
    }
    let menu = format!(
        "serial --unit=0 --speed=115200\ninsmod all_video\nset timeout=0\nset default=0\n\
         menuentry \"Tern\" {{\n  multiboot2 /boot/tern-kernel {boot_options}\n  \
         module2 /boot/boot.cpio\n  boot\n}}\n"
    );
    paths::write(&boot.join("grub/grub.cfg"), menu.as_bytes())?;
    let mut writer = Command::new("grub-mkrescue");
    writer
        .arg("-o")
        .arg(output)
        .args(["--compress=xz", "--fonts=", "--locales=", "--themes="])
        .arg(format!("--install-modules={GRUB_MODULES}"))
        .arg(&tree.0);
    // It reports every step; that is worth reading only if one failed.
    let finished = writer.output().context(|| "run grub-mkrescue".into())?;
    if finished.status.success() {
        return Ok(());
    }
    let report = String::from_utf8_lossy(&finished.stderr);
    let reason = report.lines().find(|line| line.contains("error")).unwrap_or("it gave no reason");
    Err(Error::new(format!("making the disc image failed: {reason}")))
}
