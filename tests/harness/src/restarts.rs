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

/// A system whose servers are killed.
struct Campaign {
    system: &'static str,
    /// Servers that are killed, some of them twice as often as others. Those that started them are not, nor the file system in memory, which is empty
    /// afterwards, nor the console.
    victims: &'static [&'static str],
    /// Where files are kept.
    place: &'static str,
    /// Kind of machine that it runs on.
    kind: Kind,
}

/// The default system, and its disk's driver twice as often.
const DEFAULT: Campaign = Campaign {
    system: "default",
    victims: &["virtio-block", "ext4", "mounts", "bus", "virtio-net", "network", "services", "virtio-block"],
    place: "/disk/load",
    kind: Kind::Pc,
};

/// Each driver that ends leaves a space that goes, and each bus server one whose tables the next takes over.
const BEHIND_AN_IOMMU: Campaign = Campaign { kind: Kind::Q35, ..DEFAULT };

/// File systems over others: one that encrypts, and one over another that is on the disk, too.
const ENCRYPTED: Campaign = Campaign {
    system: "stacked",
    victims: &["crypt", "ext4", "mounts", "virtio-block", "crypt"],
    place: "/secret/load",
    kind: Kind::Pc,
};
const MERGED: Campaign = Campaign {
    system: "stacked",
    victims: &["merge", "ext4", "mounts", "virtio-block", "merge"],
    place: "/load",
    kind: Kind::Pc,
};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("what_was_acknowledged_is_there", |world| run(world, &DEFAULT)),
        ("what_was_acknowledged_is_there_behind_an_iommu", |world| run(world, &BEHIND_AN_IOMMU)),
        ("what_was_acknowledged_and_encrypted_is_there", |world| run(world, &ENCRYPTED)),
        ("what_was_acknowledged_and_merged_is_there", |world| run(world, &MERGED)),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("restarts::{name}"), verdict)))
}

/// The machine of `./tern run --script - --disk DISK`, whose servers may end as often as they like.
fn machine(world: &World, campaign: &Campaign, scratch: &Path) -> Result<Machine, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read(campaign.system, files)?;
        for program in &mut system.programs {
            program.restarts = u8::MAX;
            // All that is written is to be on the disk, and to start is to be cheap.
            program.arguments = program
                .arguments
                .replace("ram disk/base", "disk/written disk/base")
                .replace("disk/vault open-sesame", "disk/vault open-sesame crypt 64");
        }
        Ok(system)
    })?;
    let (archive, disk) = (scratch.join("boot.cpio"), scratch.join("disk"));
    paths::write(&archive, &pack(&entries))?;
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", &disk.display().to_string(), "64M"])?;
    let kernel = world.system.kernel.clone();
    let mut machine =
        Machine::booting(Boot::Direct { kernel, archive: Some(archive) }).with("init=shell args=script");
    machine.kind = campaign.kind;
    machine.disk = Some(disk);
    Ok(machine)
}

fn run(world: &World, campaign: &Campaign) -> Verdict {
    let scratch = Scratch::create()?;
    let mut guest = Guest::start(&machine(world, campaign, &scratch.0)?)?;
    let kills = KILLS[usize::from(world.full)];
    guest.limit(Some(2 * LIMIT + Duration::from_millis(600) * kills as u32));
    let outcome = campaign.go(&mut guest, kills);
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

impl Campaign {
    /// Kills servers one after the other, at moments that nobody has chosen, and then lets the load come to its end.
    fn go(&self, guest: &mut Guest, kills: usize) -> Result<(), String> {
        let expect = |guest: &mut Guest, text: &str| {
            if guest.expect(text) { Ok(()) } else { Err(format!("expected {text:?}")) }
        };
        if !guest.expect_begin() {
            return Err("the shell does not begin".into());
        }
        let place = self.place;
        guest.send(format!("mkdir {place}\nrun file-test load {place} &\necho it begins\n").as_bytes());
        expect(guest, "it begins")?;
        let mut random = 0x5eed_u64;
        for number in 0..kills {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let victim = self.victims[(random >> 33) as usize % self.victims.len()];
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
}
