//! The machine of a row beside its boot options: a model of processor, a disk, a network card, and another system than the default one.

use crate::archive::pack;
use crate::build::{System, run_builder};
use crate::machine::{Forward, Machine};
use crate::peripherals::ext4_tool;
use crate::{Context, Error, Result, paths, system};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Date of all that is on a disk, since 1970.
pub(super) const DATE: Duration = Duration::from_secs(946_684_800);

/// Number of a disk.
const UUID: &str = "00000000-0000-4000-8000-000000000001";

/// Arguments of the emulator for a disk behind which there is nothing: it is read as zeroes, at once.
pub(super) const NULL_DISK: [&str; 2] =
    ["-blockdev", "driver=null-co,node-name=disk,size=16777216,read-zeroes=on"];

/// Device of that disk.
pub(super) const NULL_DISK_DEVICE: &str = "virtio-blk-pci,drive=disk";

/// Devices of such a disk at a SATA controller.
const NULL_DISK_SATA: [&str; 4] = ["-device", "ahci,id=sata", "-device", "ide-hd,bus=sata.0,drive=disk"];

/// Folder with the descriptions of systems of rows.
const SYSTEMS: &str = "bench/systems";

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    /// One behind which there is nothing.
    Null,
    /// Such a one at a SATA controller.
    Sata,
    /// One with an empty file system.
    Ext4,
}

/// Words of a row that are no boot options, and those that are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Boot options.
    pub options: String,
    /// Model of the processor: `cpu=EPYC`.
    cpu: Option<String>,
    /// `disk=null`, `disk=sata` or `disk=ext4`.
    disk: Option<Disk>,
    /// `system=stacked`: a file in [`SYSTEMS`].
    system: Option<String>,
    /// `card=on`: a network card.
    card: bool,
    /// `program=PACKAGE`: for a row of the suite `linux`, the package of the program that it measures.
    pub program: Option<String>,
}

impl Wanted {
    /// Reads the words of a row.
    pub fn read(words: &str) -> Result<Wanted> {
        let mut wanted = Wanted::default();
        let mut options = Vec::new();
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some(("cpu", model)) => wanted.cpu = Some(model.into()),
                Some(("disk", "null")) => wanted.disk = Some(Disk::Null),
                Some(("disk", "sata")) => wanted.disk = Some(Disk::Sata),
                Some(("system", name)) => wanted.system = Some(name.into()),
                Some(("disk", "ext4")) => wanted.disk = Some(Disk::Ext4),
                Some(("card", "on")) => wanted.card = true,
                Some(("program", package)) => wanted.program = Some(package.into()),
                Some(("disk" | "card", _)) => {
                    return Err(Error::new(format!("bench/rows.tsv: there is no {word}")));
                }
                _ => options.push(word),
            }
        }
        wanted.options = options.join(" ");
        Ok(wanted)
    }

    /// Whether there is a device that works beside the processor.
    pub fn has_devices(&self) -> bool {
        self.disk.is_some() || self.card
    }

    /// The system to boot: the default one that is given, or it with another description, in an archive that is made in `folder`.
    pub fn system(&self, usual: &System, folder: &Path) -> Result<System> {
        let Some(name) = &self.system else { return Ok(usual.clone()) };
        let source = format!("{SYSTEMS}/{name}.toml");
        let text = paths::read(&paths::root().join(&source))?;
        let text = String::from_utf8(text).context(|| format!("read {source}"))?;
        let entries = usual.entries_of(|files| system::of_text(&source, &text, files))?;
        let archive = folder.join("boot.cpio");
        paths::write(&archive, &pack(&entries))?;
        Ok(System { archive, ..usual.clone() })
    }

    /// Gives a machine that counts all of it.
    pub fn plug_into(&self, machine: &mut Machine) -> Result<()> {
        if let Some(cpu) = &self.cpu {
            machine.cpu = format!("{cpu},-erms");
        }
        match self.disk {
            Some(Disk::Null) => {
                let device = machine.virtio(NULL_DISK_DEVICE);
                machine.extra.extend(NULL_DISK.map(String::from));
                machine.extra.extend(["-device".into(), device]);
            }
            Some(Disk::Sata) => {
                machine.extra.extend(NULL_DISK.map(String::from));
                machine.extra.extend(NULL_DISK_SATA.map(String::from));
            }
            Some(Disk::Ext4) => {
                let image = paths::out()?.join("bench-ext4.img");
                make_disk(&image, None, "16M")?;
                machine.disk = Some(image);
            }
            None => {}
        }
        if self.card {
            // Nobody connects to the port, which is any.
            machine.net = Some(Forward { host: 0, guest: 1 });
        }
        Ok(())
    }
}

/// Makes a disk of that size with an ext4 file system, empty or with what is in a folder. Nothing of the host gets in: no dates, no owners, no random numbers.
pub(super) fn make_disk(image: &Path, from: Option<&Path>, size: &str) -> Result<()> {
    let _ = fs::remove_file(image);
    let mut builder = ext4_tool("mke2fs");
    builder.env("E2FSPROGS_FAKE_TIME", DATE.as_secs().to_string());
    builder.args(["-q", "-t", "ext4", "-b", "4096", "-U", UUID, "-E"]);
    builder.arg(format!("root_owner=0:0,hash_seed={UUID}"));
    if let Some(folder) = from {
        builder.arg("-d").arg(folder);
    }
    builder.arg(image).arg(size);
    run_builder(&mut builder, "a disk for rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted() {
        let wanted = Wanted::read("pti=off cpu=EPYC disk=null kmem=1M card=on").unwrap();
        let disk = Some(Disk::Null);
        let (options, cpu) = ("pti=off kmem=1M".into(), Some("EPYC".into()));
        let expected = Wanted { options, cpu, disk, card: true, ..Wanted::default() };
        assert_eq!(wanted, expected);
        let wanted = Wanted::read("disk=sata system=stacked").unwrap();
        assert_eq!((wanted.disk, wanted.system.as_deref()), (Some(Disk::Sata), Some("stacked")));
        assert!(wanted.has_devices() && !Wanted::read("cpu=EPYC pti=off").unwrap().has_devices());
        assert!(Wanted::read("disk=floppy").is_err() && Wanted::read("card=off").is_err());
        assert_eq!(Wanted::read("").unwrap().options, "");
        let wanted = Wanted::read("program=lua5.4").unwrap();
        assert_eq!((wanted.program.as_deref(), wanted.options.as_str()), (Some("lua5.4"), ""));
    }
}
