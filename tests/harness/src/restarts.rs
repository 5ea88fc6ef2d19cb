//! Servers that are killed at random moments by a program that uses all of them, `siege`. Whatever was acknowledged is there, each server is of use again, and
//! Linux finds no mistake on the disk.

use crate::files::{check_disk, tool};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed, usual_description};
use libtest_mimic::{Failed, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;
use xtask::archive::pack;
use xtask::console::Event;
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, DiskAs, Forward, Kind, Machine};
use xtask::{paths, peripherals};

/// Kills of each server in the full test, all campaigns together.
const KILLS_EACH: usize = 1000;

/// Kills of a campaign in the plain test, about.
const KILLS_PLAIN: usize = 40;

/// Time for one kill, at most, with all that has to start again and a part of a file that is kept. Generous, for slow and busy hosts.
const KILL_LIMIT: Duration = Duration::from_millis(600);

/// Bytes of what a machine says last that are looked at, at least.
const SAID_MAX: usize = 1 << 16;

/// Last words of the program that kills.
const OVER: &str = "siege: it is over";

/// Lines that no path and no end of a server explains.
const UNEXPLAINED: [&str; 2] =
    ["httpd: the server of files understands no path", "httpd: what was opened is"];

/// More bytes than any of these texts has.
const TEXT_MAX: usize = 64;

/// A system whose servers are killed.
struct Campaign {
    system: &'static str,
    /// More of its description.
    more: &'static str,
    /// Servers that are killed, and how often in the full test.
    victims: &'static [(&'static str, usize)],
    /// Where files are kept.
    place: &'static str,
    /// Kind of machine that it runs on, and of its disk.
    kind: Kind,
    disk_as: DiskAs,
}

/// Entry of the program that kills.
const SIEGE: &str = "\n[[program]]\nname = \"siege\"\noperator = true\nkernel-share = 32\n";

/// The default system, with a server of files of the disk.
const DEFAULT: Campaign = Campaign {
    system: "default",
    more: "\n[[program]]\nname = \"httpd\"\nserves = [\"web\"]\narguments = \"80 /disk/www\"\npriority = 40\npriority-max = 40\n\
           kernel-share = 8\nmemory = \"16 MiB\"\nuses = [\"console\", \"network\", \"files\"]\n",
    victims: &[
        ("virtio-block", 300),
        ("ext4", 300),
        ("mounts", 300),
        ("bus", 400),
        ("virtio-net", 500),
        ("network", 500),
        ("services", 500),
        ("bootfs", 1000),
        ("console", 1000),
        ("ramfs", 1000),
        ("httpd", 1000),
    ],
    place: "/disk/load",
    kind: Kind::Pc,
    disk_as: DiskAs::Virtio,
};

/// Each driver that ends leaves a space that goes, and each bus server one whose tables the next takes over. More devices are there than elsewhere.
const BEHIND_AN_IOMMU: Campaign = Campaign {
    more: "\n[[program]]\nname = \"virtio-entropy\"\nserves = [\"entropy\"]\npriority = 54\npriority-max = 54\nkernel-share = 4\n\
           memory = \"4 MiB\"\nuses = [\"console\", \"bus\"]\ndevices = [\"unclassified\"]\n\
           \n[[program]]\nname = \"virtio-console\"\nserves = [\"console-2\"]\npriority = 56\npriority-max = 56\nkernel-share = 4\n\
           memory = \"4 MiB\"\nuses = [\"console\", \"bus\"]\ndevices = [\"communication\"]\n",
    victims: &[
        ("virtio-block", 200),
        ("ext4", 200),
        ("bus", 600),
        ("virtio-net", 500),
        ("network", 500),
        ("services", 500),
        ("virtio-entropy", 1000),
        ("virtio-console", 1000),
    ],
    kind: Kind::Q35,
    ..DEFAULT
};

/// File systems over others: one that encrypts, and one over another that is on the disk, too.
const ENCRYPTED: Campaign = Campaign {
    system: "stacked",
    more: "",
    victims: &[("crypt", 1000), ("ext4", 300), ("mounts", 400), ("virtio-block", 500)],
    place: "/secret/load",
    kind: Kind::Pc,
    disk_as: DiskAs::Virtio,
};
/// The disk is behind an AHCI controller.
const MERGED: Campaign = Campaign {
    victims: &[("merge", 1000), ("ext4", 200), ("mounts", 300), ("ahci", 1000)],
    place: "/load",
    disk_as: DiskAs::Ahci,
    ..ENCRYPTED
};

/// All of them.
const CAMPAIGNS: [&Campaign; 4] = [&DEFAULT, &BEHIND_AN_IOMMU, &ENCRYPTED, &MERGED];

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("each_server_is_killed", |_| each_server_is_killed()),
        ("what_was_acknowledged_is_there", |world| run(world, &DEFAULT)),
        ("what_was_acknowledged_is_there_behind_an_iommu", |world| run(world, &BEHIND_AN_IOMMU)),
        ("what_was_acknowledged_and_encrypted_is_there", |world| run(world, &ENCRYPTED)),
        ("what_was_acknowledged_and_merged_is_there", |world| run(world, &MERGED)),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("restarts::{name}"), verdict)))
}

/// Each server of a system that comes with Tern, but the one that gives memory to all, is a victim, and that often enough.
fn each_server_is_killed() -> Verdict {
    let mut kills: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in CAMPAIGNS.iter().flat_map(|campaign| campaign.victims) {
        *kills.entry(name).or_default() += count;
    }
    if let Some((name, count)) = kills.iter().find(|&(_, &count)| count < KILLS_EACH) {
        return Err(format!("{name} is killed {count} times").into());
    }
    let missing: BTreeSet<String> =
        servers()?.into_iter().filter(|name| !kills.contains_key(&**name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("nobody kills {missing:?}").into()) }
}

/// Programs and tasks of modules that serve something, in all descriptions.
fn servers() -> Result<BTreeSet<String>, Failed> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(paths::root().join("systems"))? {
        let text = fs::read_to_string(entry?.path())?;
        for part in text.split("\n[[").skip(1) {
            let value = |key: &str| part.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            let is_server = part.starts_with("program]]") && value("serves").is_some();
            if let Some(name) = value("name").filter(|_| is_server || part.starts_with("task]]")) {
                all.insert(name.trim_matches('"').to_string());
            }
        }
    }
    // Shells are no servers, though one has a name by which it is found; and with a sandbox the one program in it ends.
    all.retain(|name| name != "mm" && !name.starts_with("shell") && !name.starts_with("sandbox"));
    Ok(all)
}

/// The machine, whose servers may end as often as they like.
fn machine(world: &World, campaign: &Campaign, scratch: &Path) -> Result<Machine, Failed> {
    let name = campaign.system;
    let text = if name == "default" {
        usual_description()?
    } else {
        fs::read_to_string(paths::root().join(format!("systems/{name}.toml")))?
    };
    let text = text + campaign.more + SIEGE;
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::of_text(name, &text, files)?;
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
    let (archive, disk, files) = (scratch.join("boot.cpio"), scratch.join("disk"), scratch.join("files"));
    paths::write(&archive, &pack(&entries))?;
    fs::create_dir_all(files.join("www"))?;
    fs::write(files.join("www/page"), "whoever is killed\n")?;
    let (from, to) = (files.display().to_string(), disk.display().to_string());
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-d", &from, &to, "64M"])?;
    let kernel = world.system.kernel.clone();
    let mut machine =
        Machine::booting(Boot::Direct { kernel, archive: Some(archive) }).with("init=shell args=script");
    (machine.kind, machine.disk_as, machine.disk) = (campaign.kind, campaign.disk_as, Some(disk));
    let has = |name| campaign.victims.iter().any(|&(victim, _)| victim == name);
    if has("virtio-net") {
        machine.net = Some(Forward { host: peripherals::free_port()?, guest: 7 });
    }
    machine.entropy = has("virtio-entropy");
    machine.console = has("virtio-console").then(|| scratch.join("console"));
    Ok(machine)
}

impl Campaign {
    /// How often each victim is killed. In the plain test each is at least twice, and together they are about as often as ever.
    fn kills(&self, is_full: bool) -> Vec<(&'static str, usize)> {
        let all: usize = self.victims.iter().map(|(_, count)| count).sum();
        let plain = |count: usize| (count * KILLS_PLAIN / all).max(2);
        self.victims.iter().map(|&(name, count)| (name, if is_full { count } else { plain(count) })).collect()
    }
}

/// Reads on until the siege is over, then ends the machine. Gives back the last of what it has said, since all of it would be too much, and the first line that is
/// [unexplained](UNEXPLAINED). What is typed before the siege is over would go with a console that is killed.
fn last_of(guest: &mut Guest) -> (String, Option<&'static str>) {
    let (mut said, mut is_over, mut unexplained) = (Vec::new(), false, None);
    while let Some(event) = guest.next_event() {
        let Event::Text(text) = event else { continue };
        // Each part is looked through once, with the end of what was before, where a text may have begun.
        let begin = said.len().saturating_sub(TEXT_MAX);
        said.extend(text);
        let has_said = |text: &str| said[begin..].windows(text.len()).any(|part| part == text.as_bytes());
        unexplained = unexplained.or(UNEXPLAINED.into_iter().find(|line| has_said(line)));
        if !is_over && has_said(OVER) {
            is_over = true;
            guest.send(b"exit 0\n");
        }
        let more = said.len().saturating_sub(SAID_MAX);
        // Not each time, since all that stays is moved.
        said.drain(..if more > SAID_MAX { more } else { 0 });
    }
    (String::from_utf8_lossy(&said).replace('\r', ""), unexplained)
}

fn run(world: &World, campaign: &Campaign) -> Verdict {
    let scratch = Scratch::create()?;
    let mut guest = Guest::start(&machine(world, campaign, &scratch.0)?)?;
    let kills = campaign.kills(world.full);
    let count: usize = kills.iter().map(|(_, count)| count).sum();
    guest.limit(Some(2 * LIMIT + KILL_LIMIT * count as u32));
    let begun = guest.expect_begin();
    let victims: String = kills.iter().map(|(name, count)| format!(" {name}={count}")).collect();
    let place = campaign.place;
    guest.send(format!("mkdir {place}\nrun siege 24301 {place}{victims}\n").as_bytes());
    let (text, unexplained) = last_of(&mut guest);
    let end = guest.finish();
    if !begun || end != End::Orderly(0) {
        return Err(failed("it did not end in order", &end, &text));
    }
    let told = kills.iter().map(|(name, count)| format!("siege: {name} was killed {count} times"));
    for line in told.chain(["siege: all is well".into()]) {
        if !text.contains(&line) {
            return Err(failed(&format!("expected {line:?}"), &end, &text));
        }
    }
    if let Some(line) = unexplained {
        return Err(failed(&format!("unexpected {line:?}"), &end, &text));
    }
    check_disk(&scratch.0.join("disk").display().to_string())
}
