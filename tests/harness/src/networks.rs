//! The network: a card of the emulator's that reaches this host by one forwarded port, or a machine of the trial's by a bad wire; and loopback.

use crate::peer::{ADDRESS, Badness, CALLED, CLOCK, ECHOES, GIVES, GUEST, HOLDS, Peer, TAKES, Tally};
use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, failed, usual_description};
use libtest_mimic::Trial;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use xtask::archive::pack;
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Machine};
use xtask::{paths, peripherals};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 7] = [
        ("a_bad_wire_leaves_nothing", a_bad_wire_leaves_nothing),
        ("the_host_is_answered_whoever_is_killed", the_host_is_answered_whoever_is_killed),
        ("the_host_is_answered_behind_an_iommu", the_host_is_answered_behind_an_iommu),
        ("open_sockets_end_with_a_reset", open_sockets_end_with_a_reset),
        ("each_client_has_its_own_packets", each_client_has_its_own_packets),
        ("clients_share_loopback", clients_share_loopback),
        ("a_thousand_connections_are_there_at_once", a_thousand_connections_are_there_at_once),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("network", format!("network::{name}"), verdict)))
}

/// Lines in order, among others.
fn check_lines(reply: &Reply, expected: &[&str]) -> Verdict {
    let mut lines = reply.out.lines();
    match expected.iter().find(|text| !lines.any(|line| line.contains(*text))) {
        None => Ok(()),
        Some(text) => Err(reply.failed(&format!("expected {text:?}, in this order"))),
    }
}

/// Sends a text and reads it back, by one connection.
fn echo(port: u16, text: &[u8]) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(text)?;
    stream.shutdown(Shutdown::Write)?;
    let mut back = Vec::new();
    stream.read_to_end(&mut back)?;
    Ok(back == text)
}

fn the_host_is_answered_whoever_is_killed(world: &'static World) -> Verdict {
    the_host_is_answered(world, "pc")
}

/// On a machine with an IOMMU the card of a new driver reaches what that driver has, and nothing before.
fn the_host_is_answered_behind_an_iommu(world: &'static World) -> Verdict {
    the_host_is_answered(world, "q35")
}

/// The host asks again and again, while in the guest an echo server begins three times: first in a new system, then after the card's driver was killed, then
/// after the network server was. Each ends when it has served two connections, and the script goes on. One of them all may be broken off by what is killed.
///
/// A stranger at the card is refused while the driver has a client: so it comes when the network server has found the new driver, and somebody has been answered.
fn the_host_is_answered(world: &'static World, machine: &str) -> Verdict {
    let port = peripherals::free_port()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let host = {
        let is_over = is_over.clone();
        thread::spawn(move || {
            let text: Vec<u8> = (0..30_000u32).map(|at| (at / 7) as u8).collect();
            let mut echoes = 0;
            while !is_over.load(Ordering::Relaxed) {
                // Before somebody listens, the emulator breaks the connection off.
                echoes += usize::from(echo(port, &text).unwrap_or(false));
                thread::sleep(Duration::from_millis(50));
            }
            echoes
        })
    };
    let script = "run ip\nrun nc echo 7 2\nkill virtio-net\nrun ping 10.0.2.2\nrun net-test stranger\nrun ping 10.0.2.2\nrun nc echo 7 2\nkill network\nrun ping 127.0.0.1\nrun nc echo 7 2\n\
        run ping 10.0.2.2\nrun ip\n";
    let forward = format!("{port}:7");
    let reply =
        world.tern(&["run", "--script", "-", "--machine", machine, "--net", &forward], script.as_bytes());
    is_over.store(true, Ordering::Relaxed);
    let echoes = host.join().unwrap_or(0);
    let reply = reply?;
    reply.check_code(0)?;
    check_lines(
        &reply,
        &[
            "52:54:00:12:34:56 up",
            "virtio-net (task",
            "net-test: all is well",
            "56 bytes from 10.0.2.2",
            "network (task",
            "56 bytes from 127.0.0.1",
            "56 bytes from 10.0.2.2",
            "10.0.2.15/24 leased",
        ],
    )?;
    if reply.out.contains("bus: device") {
        return Err(reply.failed("a device wanted what is not its own"));
    }
    if reply.out.matches("root: virtio-net").count() != 1 {
        return Err(reply.failed("the driver has ended with its client"));
    }
    if echoes < 5 {
        return Err(reply.failed(&format!("the host had {echoes} echoes")));
    }
    Ok(())
}

/// The server's share of the usual description, and one for a thousand connections, both ends of which are here.
const USUAL: &str = "kernel-share = 8\nmemory = \"40 MiB\"\nuses = [\"console\", \"link\"]";
const MUCH: &str =
    "arguments = \"2200 2100\"\nkernel-share = 64\nmemory = \"128 MiB\"\nuses = [\"console\", \"link\"]";

/// Rounds of a thousand connections. The first makes heaps as large as they stay.
const MANY_ROUNDS: usize = 4;

/// A thousand connections at once; and when they are gone, there is as much memory as before, so that they can be once more. The machine's time leaps while connections
/// that are closed are still kept for a while.
fn a_thousand_connections_are_there_at_once(world: &'static World) -> Verdict {
    let usual = usual_description()?;
    let text = usual.replace(USUAL, MUCH);
    if text == usual {
        return Err(format!("the usual description does not have {USUAL:?}").into());
    }
    let entries = world.entries_of(|files| xtask::system::of_text("networks", &text, files))?;
    let scratch = Scratch::create()?;
    let archive = scratch.0.join("boot.cpio");
    paths::write(&archive, &pack(&entries))?;
    let kernel = world.system.kernel.clone();
    let boot = Boot::Direct { kernel, archive: Some(archive) };
    let mut guest = Guest::start(&Machine::booting(boot).with("init=shell args=script").counting())?;
    guest.limit(Some(2 * LIMIT));
    let outcome = rounds_of_many(&mut guest);
    guest.send(b"run net-test\nexit 0\n");
    let end = guest.finish();
    if let Err(why) = outcome {
        return Err(failed(&why, &end, &guest.text()));
    }
    let all = guest.text().matches("net-test: all is well").count();
    // One after each rest, too.
    if end != End::Orderly(0) || all != 2 * MANY_ROUNDS + 1 {
        return Err(failed("it did not end in order", &end, &guest.text()));
    }
    Ok(())
}

fn rounds_of_many(guest: &mut Guest) -> Result<(), String> {
    if !guest.expect_begin() {
        return Err("the shell does not begin".into());
    }
    let mut before = None;
    for round in 1..=MANY_ROUNDS {
        let end = format!("round {round} is over");
        let begin = guest.text().len();
        guest.send(format!("run net-test many\nrun net-test rest 15\nmem\nps\necho {end}\n").as_bytes());
        if !guest.expect(&end) {
            return Err(format!("expected {end:?}"));
        }
        let now = in_use(guest.text().get(begin..).unwrap_or_default())?;
        if round > 1 {
            check_no_more(round, before.get_or_insert_with(|| now.clone()), &now)?;
        }
    }
    Ok(())
}

/// Nobody has more than before, but for the [`MARGIN`].
fn check_no_more(round: usize, before: &InUse, now: &InUse) -> Result<(), String> {
    for (name, now) in now {
        let before = before.get(name).copied().unwrap_or_default();
        // A heap that keeps small blocks may be a page larger once they have been needed.
        let more = margin(name).unwrap_or([1, 0]);
        if now[0] > before[0] + more[0] || now[1] > before[1] + more[1] {
            return Err(format!("round {round}: {name} has {now:?} pages and frames, and had {before:?}"));
        }
    }
    Ok(())
}

/// Pages and frames that somebody may have more, if it is one of those who may: see [`MARGIN`].
fn margin(name: &str) -> Option<[u64; 2]> {
    ["network ", "mm ", PROGRAMS].iter().any(|it| name.starts_with(it)).then_some(MARGIN)
}

/// A machine with the trial's own at the other end of the wire. The guest's time leaps to the next timer while it waits, and the machine at the other end has the same.
fn wired(world: &World, peer: &Peer) -> Machine {
    let options = format!("init=shell args=script env=ADDRESS={GUEST}/24");
    let mut machine = world.machine().with(&options).counting();
    peer.plug_in(&mut machine);
    machine
}

/// The network server is killed while a connection is open. The program hears of it; and when the other end says something, the next server resets the connection, of which it knows nothing.
fn open_sockets_end_with_a_reset(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let peer = Peer::listen(&scratch.0.join("wire"), Badness::default(), 0)?;
    let mut guest = Guest::start(&wired(world, &peer))?;
    guest.limit(Some(LIMIT));
    let outcome = hold(&mut guest, &peer);
    guest.send(b"exit 0\n");
    let end = guest.finish();
    let tally = peer.tally();
    if let Err(why) = outcome {
        return Err(failed(&format!("{why}\n{tally:?}"), &end, &guest.text()));
    }
    if tally.held != 1 || tally.resets == 0 || tally.wrong.is_some() || end != End::Orderly(0) {
        return Err(failed(
            &format!("expected one connection and a reset of it\n{tally:?}"),
            &end,
            &guest.text(),
        ));
    }
    Ok(())
}

fn hold(guest: &mut Guest, peer: &Peer) -> Result<(), String> {
    let expect = |guest: &mut Guest, text: &str| {
        if guest.expect(text) { Ok(()) } else { Err(format!("expected {text:?}")) }
    };
    if !guest.expect_begin() {
        return Err("the shell does not begin".into());
    }
    let clock = format!("run net-test clock {ADDRESS}:{CLOCK} &\n");
    guest.send(format!("{clock}run net-test hold {ADDRESS}:{HOLDS} &\n").as_bytes());
    expect(guest, "net-test: it holds a connection")?;
    if peer.tally().resets > 0 {
        return Err("a connection is reset of which the server knows".into());
    }
    guest.send(b"kill network\n");
    expect(guest, "net-test: the connection is lost")?;
    peer.speak();
    guest.send(format!("{clock}run net-test rest 20\necho it has spoken\n").as_bytes());
    expect(guest, "it has spoken")
}

/// Two programs use one card. Each gets what was sent back to it, and nothing else.
fn each_client_has_its_own_packets(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let peer = Peer::listen(&scratch.0.join("wire"), Badness::default(), 0)?;
    let mut guest = Guest::start(&wired(world, &peer))?;
    guest.limit(Some(LIMIT));
    let at = format!("{ADDRESS}:{ECHOES}");
    let script = format!(
        "run net-test apart 1 6001 6002 {at} &\nrun net-test apart 2 6002 6001 {at}\nrun net-test rest 10\nexit 0\n"
    );
    guest.expect_begin();
    guest.send(script.as_bytes());
    let end = guest.finish();
    let (text, tally) = (guest.text(), peer.tally());
    let told = ["1", "2"].iter().all(|name| text.contains(&format!("net-test: {name} has its own alone")));
    // Each sends 200 of them.
    if !told || end != End::Orderly(0) || tally.datagrams < 400 {
        return Err(failed(&format!("expected that each has its own packets\n{tally:?}"), &end, &text));
    }
    Ok(())
}

/// Without a card. Programs that end in the middle of everything leave nothing: each takes as much as it may, and there are more of them than
/// fit at once.
fn clients_share_loopback(world: &'static World) -> Verdict {
    let greedy = "run net-test greedy\n".repeat(8);
    let script = format!(
        "run ip\nrun net-test\nrun nc echo 80 2 &\nrun nc 127.0.0.1 80 one client\nrun nc ::1 80 another\nrun nc udp-echo 9 1 &\n\
         run nc udp 127.0.0.1 9 a datagram\n{greedy}run net-test\nrun ping ::1\nrun ping 10.0.2.2\nrun nc 127.0.0.1 81\n"
    );
    let reply = world.tern(&["run", "--script", "-"], script.as_bytes())?;
    let mut expected = vec!["no card", "127.0.0.1/8", "net-test: all is well", "one client", "another"];
    expected.push("127.0.0.1:9: a datagram");
    expected.extend(["net-test: all is well"; 9]);
    expected.extend(["56 bytes from ::1", "ping: no way leads there", "nc: the connection is closed"]);
    check_lines(&reply, &expected)
}

/// A wire that is worse than any that people keep.
const BAD: Badness = Badness { losses: 30, damages: 50, doubles: 10, delays: 10 };

/// Bytes of each connection, plain and full.
const BYTES: [usize; 2] = [60_000, 400_000];

/// Rounds in which memory becomes what it stays, and rounds at least.
const WARM_UP: usize = 2;
/// See [`WARM_UP`].
const ROUNDS: usize = 4;

/// Pages that the network server may have more after the warm-up, all rounds together: two buffers of 16 KiB, 32 KiB that it has together with a program, a socket, and the heap's
/// own words for each of two connections; and frames of the kernel's that map them: a table, and nodes. A connection that stands still keeps its memory for a minute,
/// while the next ones are made beside it, and the heap is as large as it was at most. A connection that left its memory behind would need more within a few rounds. The memory
/// manager's books grow with the heap. Nobody else may have more.
const MARGIN: [u64; 2] = [36, 2];

/// Of so many connections one may break off.
const BROKEN_MAX: u64 = 10;

/// Rests of 15 seconds after a round, at most: a connection may stand still behind its last byte, and breaks off after a minute of silence.
const RESTS_MAX: usize = 6;

/// Time of the guest's for which the rounds go on, plain and full, in nanoseconds.
const UNTIL_NS: [u64; 2] = [0, 3_600_000_000_000];

/// Longest time of all rounds on the host, in the full test.
const HOUR_LIMIT: Duration = Duration::from_secs(3600);

/// Memory in use, by names: pages and frames of the kernel's. Programs have their numbers too, since one that is started again is another.
type InUse = BTreeMap<String, [u64; 2]>;

/// Bytes go both ways over a bad wire, to the guest and from it, for an hour of the guest's time in the full test; and no
/// round leaves anything, in any task, in the memory manager, or in the kernel.
fn a_bad_wire_leaves_nothing(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let bytes = BYTES[usize::from(world.full)];
    let peer = Peer::listen(&scratch.0.join("wire"), BAD, bytes)?;
    let mut guest = Guest::start(&wired(world, &peer))?;
    guest.limit(Some(if world.full { HOUR_LIMIT } else { LIMIT }));
    let outcome = rounds(&mut guest, &peer, bytes, UNTIL_NS[usize::from(world.full)]);
    guest.send(b"exit 0\n");
    let end = guest.finish();
    if let Err(why) = outcome {
        return Err(failed(&format!("{why}\n{:?}", peer.tally()), &end, &guest.text()));
    }
    if end != End::Orderly(0) {
        return Err(failed("it did not end in order", &end, &guest.text()));
    }
    Ok(())
}

/// Connections that are over after a round.
fn over_after(round: usize) -> u64 {
    3 * round as u64
}

/// Types commands, and waits until they are done.
fn follow(guest: &mut Guest, commands: &str, end: &str) -> Result<(), String> {
    guest.send(format!("{commands}\necho {end}\n").as_bytes());
    if guest.expect(end) { Ok(()) } else { Err(format!("expected {end:?}")) }
}

/// Rounds until it is late enough.
fn rounds(guest: &mut Guest, peer: &Peer, bytes: usize, until_ns: u64) -> Result<(), String> {
    if !guest.expect_begin() {
        return Err("the shell does not begin".into());
    }
    guest.send(format!("run net-test clock {ADDRESS}:{CLOCK} &\n").as_bytes());
    let mut most = InUse::new();
    for round in 1.. {
        peer.call();
        let begin = guest.text().len();
        guest.send(
            format!(
                "run nc send {ADDRESS} {TAKES} {bytes}\nrun nc count {ADDRESS} {GIVES}\nrun nc echo {CALLED} 1\n"
            )
            .as_bytes(),
        );
        for rest in 1..=RESTS_MAX {
            follow(guest, "run net-test rest 15", &format!("round {round} has rested {rest}"))?;
            if peer.tally().over >= over_after(round) {
                break;
            }
        }
        follow(guest, "mem\nps", &format!("round {round} is over"))?;
        let text = guest.text();
        let text = text.get(begin..).unwrap_or_default();
        let tally = peer.tally();
        check_round(round, bytes, text, &tally)?;
        for (name, now) in in_use(text)? {
            let most = most.entry(name.clone()).or_default();
            if round <= WARM_UP {
                *most = std::array::from_fn(|at| now[at].max(most[at]));
            }
            let more = margin(&name).unwrap_or_default();
            if now[0] > most[0] + more[0] || now[1] > most[1] + more[1] {
                return Err(format!("round {round}: {name} has {now:?} pages and frames, and had {most:?}"));
            }
        }
        if round >= ROUNDS && tally.now_ns >= until_ns {
            let few = tally.broken * BROKEN_MAX <= tally.over;
            return if few { Ok(()) } else { Err("connections break off".into()) };
        }
    }
    Ok(())
}

/// Both sides have had all bytes, and the wire was as bad as it should be. The library's connections sometimes stand still on such a wire, and break off after a minute of
/// silence; what has come is right all the same, and no memory is lost by it.
fn check_round(round: usize, bytes: usize, text: &str, tally: &Tally) -> Result<(), String> {
    if let Some(why) = &tally.wrong {
        return Err(format!("round {round}: {why}"));
    }
    if tally.over != over_after(round) {
        return Err(format!("round {round}: {} connections are over", tally.over));
    }
    let told = text.matches(&format!("{bytes} bytes in ")).count() as u64;
    if told + tally.broken < 2 {
        return Err(format!("round {round}: the guest has not had all"));
    }
    if tally.lost < tally.segments / 100 {
        return Err(format!("round {round}: the wire is not bad"));
    }
    Ok(())
}

/// Memory of all programs together, as `mem` calls it.
const PROGRAMS: &str = "programs (mm)";

/// Reads the figures of `mem` and `ps`.
fn in_use(text: &str) -> Result<InUse, String> {
    let mut all = InUse::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let row = ["machine (sigma0)", PROGRAMS, "kernel memory (root)"]
            .into_iter()
            .find(|row| line.starts_with(row));
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("no number: {line}"));
        if let (Some(row), [.., used, _]) = (row, &words[..]) {
            all.insert(row.into(), [number(used)? / 4, 0]);
        } else if let [task, name, _, _, _, _, _, pages, kernel, ..] = words[..]
            && task.parse::<u32>().is_ok()
        {
            let frames = kernel.split('/').next().unwrap_or_default();
            all.insert(format!("{name} (task {task})"), [number(pages)?, number(frames)?]);
        }
    }
    if all.len() < 10 { Err("mem and ps do not say what is in use".into()) } else { Ok(all) }
}
