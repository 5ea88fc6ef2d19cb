//! Losses of power of the whole system: a program works with files through the servers, the driver and an emulated disk whose writes QEMU records. The disk
//! of any moment is made of that record, and must have what the program was promised until then, whoever brings its journal to its end: Linux, Tern's file system on the host, or
//! the whole system, started with that disk.
//!
//! The program marks on the disk itself how far it was ([`mix::Mark`]), so the record says what was acknowledged at each of its places.

use crate::files::tool;
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use description::Program;
use libtest_mimic::{Failed, Trial};
use mix::Mark;
use power::judge::{Found, History, Promise};
use power::log::{self, Entry, Kind};
use power::replay::{self, Lost};
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;
use xtask::archive::pack;
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, DiskAs, Machine};
use xtask::paths;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 2] = [
        ("what_was_acknowledged_survives", |world| run(world, 1, DiskAs::Virtio)),
        ("what_was_acknowledged_survives_on_a_sata_disk", |world| run(world, 2, DiskAs::Ahci)),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("power_cuts::{name}"), verdict)))
}

/// The program that works with files.
const PROGRAM: &str = "power-test";

/// Where it does so.
const PLACE: &str = "/disk";

/// Bytes of the disk. The last [`BESIDE`] are no file system's: marks are there.
const DISK: u64 = 12 << 20;
/// See [`DISK`].
const BESIDE: u64 = 1 << 20;

/// Counts of a campaign, plain or full.
struct Counts {
    /// Steps of the program.
    steps: usize,
    /// Moments at which power is lost, at least.
    cuts: usize,
    /// Those of them with which the system is started.
    boots: usize,
}

const PLAIN: Counts = Counts { steps: 12, cuts: 40, boots: 1 };
const FULL: Counts = Counts { steps: 600, cuts: 6000, boots: 6 };
/// The history of the SATA disk, which is that of another seed, has fewer requests.
const FULL_SATA: Counts = Counts { cuts: 4000, ..FULL };

/// The system, in which the program may have the disk beside the files on it.
fn machine(world: &World, scratch: &Path) -> Result<Machine, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        for driver in system.programs.iter_mut().filter(|program| program.serves.contains(&"block".into())) {
            driver.clients.iter_mut().for_each(|clients| clients.push(PROGRAM.into()));
        }
        let program = Program { name: PROGRAM.into(), file: PROGRAM.into(), ..system.usual.clone() };
        system.programs.push(program);
        Ok(system)
    })?;
    let archive = scratch.join("boot.cpio");
    paths::write(&archive, &pack(&entries))?;
    let kernel = world.system.kernel.clone();
    Ok(Machine::booting(Boot::Direct { kernel, archive: Some(archive) }).with("init=shell args=script"))
}

/// Runs the program on a machine, and gives back what was said.
fn ask(machine: &Machine, arguments: &str, limit: Duration) -> Result<String, Failed> {
    let mut guest = Guest::start(machine)?;
    guest.limit(Some(limit));
    // Nobody reads what is typed before the shell begins. A machine that ends before that says so below.
    guest.expect_begin();
    guest.send(format!("run {PROGRAM} {PLACE}{arguments}\nexit 0\n").as_bytes());
    let end = guest.finish();
    let said = guest.text();
    if end != End::Orderly(0) || !said.contains("power-test: all is well") {
        return Err(failed("the program failed", &end, &said));
    }
    Ok(said)
}

/// A disk whose writes are recorded, as arguments of the emulator.
pub fn recorded(disk: &Path, log: &Path, disk_as: DiskAs, machine: &mut Machine) {
    let path = |path: &Path| path.display().to_string().replace(',', ",,");
    let node = format!(
        "driver=blklogwrites,node-name=disk,file.driver=file,file.filename={},log.driver=file,log.filename={}",
        path(disk),
        path(log)
    );
    let devices = match disk_as {
        DiskAs::Virtio => vec![machine.virtio("virtio-blk-pci,drive=disk")],
        DiskAs::Ahci => vec!["ahci,id=ahci".into(), "ide-hd,drive=disk,bus=ahci.0".into()],
    };
    machine.extra.extend(["-blockdev".into(), node]);
    for device in devices {
        machine.extra.extend(["-device".into(), device]);
    }
}

/// A record of writes, and the history of the program that made them.
struct Record<'a> {
    before: Vec<u8>,
    entries: Vec<Entry<'a>>,
    history: History,
}

/// A random number below an end, the same in each run.
fn below(random: &mut u64, end: usize) -> usize {
    *random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    (*random >> 33) as usize % end.max(1)
}

/// Places at which power is lost: the number of an entry is the one before it. One is behind each entry that makes others safe, and there are others at random, but none before `first`.
pub fn cuts(entries: &[Entry], first: usize, least: usize) -> Vec<usize> {
    let count = entries.len();
    let makes_safe = |number: &usize| entries[number - 1].is_flush || entries[number - 1].is_fua;
    let mut cuts: Vec<usize> = (first.max(1)..=count).filter(makes_safe).collect();
    let mut random = 1;
    while cuts.len() < least.min(count.saturating_sub(first)) {
        let cut = first + below(&mut random, count + 1 - first);
        if !cuts.contains(&cut) {
            cuts.push(cut);
        }
    }
    // A handful more lie between flushes, however many of these there are.
    cuts.extend((0..least / 4).map(|_| first + below(&mut random, count + 1 - first)));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Writes an entry to a disk.
pub fn apply(entry: &Entry, image: &mut [u8]) -> Verdict {
    if let Kind::Write { at, bytes } = entry.kind {
        let at = at as usize;
        let place = image.get_mut(at..at + bytes.len()).ok_or("a write goes beyond the disk")?;
        place.copy_from_slice(bytes);
    }
    Ok(())
}

impl Record<'_> {
    /// The mark of an entry, if it is one.
    fn mark(&self, number: usize) -> Option<Mark> {
        match self.entries.get(number)?.kind {
            Kind::Write { at, bytes } if at >= DISK - BESIDE => Mark::of(bytes),
            _ => None,
        }
    }

    /// Whether an entry leaves the file system as it is: a mark, or nothing but a flush.
    fn is_beside(&self, number: usize) -> bool {
        match self.entries[number].kind {
            Kind::Write { at, bytes } => bytes.is_empty() || at >= DISK - BESIDE,
            Kind::Discard { .. } | Kind::Mark(_) => true,
        }
    }

    /// Places between two entries at which power is lost, of which the first is behind the first mark.
    fn cuts(&self, least: usize) -> Result<Vec<usize>, Failed> {
        let first = (0..self.entries.len()).find(|&number| self.mark(number).is_some());
        Ok(cuts(&self.entries, first.ok_or("nothing was marked in the record")? + 1, least))
    }

    /// How many steps were acknowledged, and how many begun, before an entry.
    fn steps(&self, cut: usize) -> (usize, usize) {
        let mark = (0..cut).rev().find_map(|number| self.mark(number));
        mark.map_or((0, 0), |mark| (mark.acknowledged as usize, mark.begun as usize))
    }
}

/// Files that the booted system has told of, by path: length and sum.
fn is_told(said: &str, found: &Found) -> bool {
    let expected = found.iter().map(|(name, content)| {
        format!("{}: {} bytes, {:016x}", name.path(), content.len(), mix::sum(content))
    });
    let told: Vec<&str> = said.lines().filter(|line| line.contains(" bytes, ")).collect();
    told == expected.collect::<Vec<_>>()
}

/// The system is started with a disk as it was when power was lost. Files are read by the program, and afterwards from the disk.
fn boots(world: &World, record: &Record, cut: usize, image: &[u8], folder: &Path) -> Verdict {
    let file = folder.join("lost");
    paths::write(&file, image)?;
    let mut machine = machine(world, folder)?;
    machine.disk = Some(file.clone());
    let said = ask(&machine, "", LIMIT)?;
    let after = replay::by_tern(paths::read(&file)?)?;
    let (acknowledged, begun) = record.steps(cut);
    record.history.judge(acknowledged, begun, &after.found)?;
    replay::by_linux(folder, &paths::read(&file)?)?;
    if is_told(&said, &after.found) {
        Ok(())
    } else {
        Err(format!("other files are on the disk than\n{said}").into())
    }
}

fn run(world: &World, seed: u64, disk_as: DiskAs) -> Verdict {
    let counts = match disk_as {
        _ if !world.full => PLAIN,
        DiskAs::Virtio => FULL,
        DiskAs::Ahci => FULL_SATA,
    };
    // A few cuts need not be quick, and a machine may have little memory for files.
    let scratch = if world.full { Scratch::in_memory()? } else { Scratch::create()? };
    let folder = scratch.0.as_path();
    let [disk, log] = ["disk", "log"].map(|name| folder.join(name));
    let before = make(&disk, &log)?;
    let mut machine = machine(world, folder)?;
    recorded(&disk, &log, disk_as, &mut machine);
    let said = ask(&machine, &format!(" {seed} {}", counts.steps), LIMIT * (1 + counts.steps as u32 / 50))?;
    let log = paths::read(&log)?;
    let history = History::new(seed, counts.steps, Promise::Names);
    let record = Record { before, entries: log::parse(&log).map_err(|damage| damage.to_string())?, history };
    let cuts = record.cuts(counts.cuts)?;
    let mut image = record.before.clone();
    let (mut applied, mut told, mut lost) = (0, 0, None);
    let mut boots_left: Vec<usize> =
        (1..=counts.boots).map(|number| cuts[(cuts.len() - 1) * number / (counts.boots + 1)]).collect();
    for &cut in &cuts {
        while applied < cut {
            apply(&record.entries[applied], &mut image)?;
            // The files found stay the same as long as the file system does, and more is promised meanwhile.
            lost = lost.filter(|_| record.is_beside(applied));
            applied += 1;
        }
        let place =
            |why: String| format!("power is lost before entry {cut} of {}: {why}", record.entries.len());
        let found = lost.take().map_or_else(|| Lost::of(&image, Some(folder)), Ok).map_err(place)?;
        lost.insert(found).judge(&record.history, record.steps(cut)).map_err(place)?;
        if boots_left.first() == Some(&cut) {
            boots_left.retain(|&boot| boot != cut);
            boots(world, &record, cut, &image, folder)
                .map_err(|why| place(why.message().unwrap_or_default().into()))?;
            told += 1;
        }
    }
    // The program has said as much as the marks do.
    let last = record.steps(record.entries.len()).0;
    let is_said = said.contains("steps are acknowledged") && last == counts.steps;
    let is_enough = cuts.len() >= counts.cuts && told == counts.boots;
    eprintln!("power_cuts: power was lost at {} of {} places", cuts.len(), record.entries.len());
    if is_said && is_enough {
        return Ok(());
    }
    Err(format!("{} cuts, {told} boots, {last} steps are marked\n{said}", cuts.len()).into())
}

/// Makes a disk with a file system, and an empty record. Gives back the disk.
fn make(disk: &Path, log: &Path) -> Result<Vec<u8>, Failed> {
    paths::write(disk, &[])?;
    paths::write(log, &[])?;
    let kibibytes = format!("{}k", (DISK - BESIDE) >> 10);
    let path = disk.display().to_string();
    tool("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", "-J", "size=4", &path, &kibibytes])?;
    OpenOptions::new()
        .write(true)
        .open(disk)
        .and_then(|file| file.set_len(DISK))
        .map_err(|error| error.to_string())?;
    fs::read(disk).map_err(|error| error.to_string().into())
}
