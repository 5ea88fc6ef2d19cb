//! The network: a card of the emulator's that reaches this host by one forwarded port, and loopback.

use crate::world::{Named, Reply, Verdict, World, usual_description};
use libtest_mimic::Trial;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use xtask::peripherals;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("the_host_is_answered_whoever_is_killed", the_host_is_answered_whoever_is_killed),
        ("the_host_is_answered_behind_an_iommu", the_host_is_answered_behind_an_iommu),
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
    let script = "run ip\nrun nc echo 7 2\nkill virtio-net\nrun net-test stranger\nrun ping 10.0.2.2\nrun nc echo 7 2\nkill network\nrun ping 127.0.0.1\nrun nc echo 7 2\n\
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
const USUAL: &str = "kernel-share = 8\nmemory = \"16 MiB\"\nuses = [\"console\", \"link\"]";
const MUCH: &str =
    "arguments = \"2200 2100\"\nkernel-share = 64\nmemory = \"128 MiB\"\nuses = [\"console\", \"link\"]";

/// A thousand connections at once; and when they are gone, there is as much memory as before, so that they can be once more.
fn a_thousand_connections_are_there_at_once(world: &'static World) -> Verdict {
    let usual = usual_description()?;
    let text = usual.replace(USUAL, MUCH);
    if text == usual {
        return Err(format!("the usual description does not have {USUAL:?}").into());
    }
    let entries = world.entries_of(|files| xtask::system::of_text("networks", &text, files))?;
    let reply = world.script_in(&entries, b"run net-test many\nrun net-test many\nrun net-test\n")?;
    check_lines(&reply, &["net-test: all is well"; 3])
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
