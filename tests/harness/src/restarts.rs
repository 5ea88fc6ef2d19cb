//! Servers that are killed at random moments, while a program keeps files on a disk. Whatever was acknowledged is there, and Linux finds no mistake on the
//! disk.

use crate::files::{check_disk, tool};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use std::thread;
use std::time::Duration;
use xtask::archive::pack;
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Kind, Machine};
use xtask::paths;

/// Kills in which at least one file is kept.
const KILLS_A_ROUND: usize = 5;

/// How many are killed, plain and full.
const KILLS: [usize; 2] = [40, 1000];

/// Servers that are killed, the disk's driver twice as often: all but those that started them, the file system in memory, which is empty afterwards, and the console.
const VICTIMS: [&str; 8] =
    ["virtio-block", "ext4", "mounts", "bus", "virtio-net", "network", "services", "virtio-block"];

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 2] = [
        ("what_was_acknowledged_is_there", what_was_acknowledged_is_there),
        ("what_was_acknowledged_is_there_behind_an_iommu", what_was_acknowledged_is_there_behind_an_iommu),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("restarts::{name}"), verdict)))
}

/// The machine of `./tern run --script - --disk DISK`, whose servers may end as often as they like.
fn machine(world: &World, kind: Kind, scratch: &Path) -> Result<Machine, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        system.programs.iter_mut().for_each(|program| program.restarts = u8::MAX);
        Ok(system)
    })?;
    let (archive, disk) = (scratch.join("boot.cpio"), scratch.join("disk"));
    paths::write(&archive, &pack(&entries))?;
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", &disk.display().to_string(), "64M"])?;
    let kernel = world.system.kernel.clone();
    let mut machine =
        Machine::booting(Boot::Direct { kernel, archive: Some(archive) }).with("init=shell args=script");
    machine.kind = kind;
    machine.disk = Some(disk);
    Ok(machine)
}

fn what_was_acknowledged_is_there(world: &'static World) -> Verdict {
    survives(world, Kind::Pc)
}

/// Each driver that ends leaves a space that goes, and each bus server one whose tables the next takes over.
fn what_was_acknowledged_is_there_behind_an_iommu(world: &'static World) -> Verdict {
    survives(world, Kind::Q35)
}

fn survives(world: &'static World, kind: Kind) -> Verdict {
    let scratch = Scratch::create()?;
    let mut guest = Guest::start(&machine(world, kind, &scratch.0)?)?;
    let kills = KILLS[usize::from(world.full)];
    guest.limit(Some(LIMIT + Duration::from_millis(600) * kills as u32));
    let outcome = campaign(&mut guest, kills);
    guest.send(b"exit 0\n");
    let end = guest.finish();
    if let Err(why) = outcome {
        return Err(failed(&why, &end, &guest.text()));
    }
    if end != End::Orderly(0) {
        return Err(failed("it did not end in order", &end, &guest.text()));
    }
    check_disk(&scratch.0.join("disk").display().to_string())
}

/// Kills servers one after the other, at moments that nobody has chosen, and then lets the load come to its end.
fn campaign(guest: &mut Guest, kills: usize) -> Result<(), String> {
    let expect = |guest: &mut Guest, text: &str| {
        if guest.expect(text) { Ok(()) } else { Err(format!("expected {text:?}")) }
    };
    if !guest.expect_begin() {
        return Err("the shell does not begin".into());
    }
    guest.send(b"mkdir /disk/load\nrun file-test load /disk/load &\necho it begins\n");
    expect(guest, "it begins")?;
    let mut random = 0x5eed_u64;
    for number in 0..kills {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let victim = VICTIMS[(random >> 33) as usize % VICTIMS.len()];
        thread::sleep(Duration::from_millis(random >> 50 & 63));
        // One that is not there yet is no victim.
        guest.send(format!("kill {victim}\necho kill {number} is over\n").as_bytes());
        expect(guest, &format!("kill {number} is over"))?;
        // A busy host kills no faster than files are kept.
        if (number + 1) % KILLS_A_ROUND == 0 {
            expect(guest, &format!("round {} is kept", (number + 1) / KILLS_A_ROUND))?;
        }
    }
    guest.send(b"echo x > /stop\n");
    expect(guest, "all is well")
}
