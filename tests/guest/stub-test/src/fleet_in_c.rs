//! References within values go between a program in Rust and one in C (`tests/guest/fleet-c`): both have a port, each calls the other's at the same time, and
//! each is sent what no stub sends. Afterwards nothing is left.

use crate::fleet::{all_gone, call_at, hostile_to, liar, port, with_inbox};
use crate::fleet_door::Harbour::Port;
use crate::in_c::{get, numbers_at_rest, receive};
use crate::references::{failed, same};
use alloc::format;
use alloc::string::String;
use rt::api::process::End;
use rt::api::{Name, names, process};
use rt::door::{Reference, Room};
use rt::println;
use stub::View;
use sys::{Ipc, Rights, Uid};

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let before = numbers_at_rest(u32::MAX);
    let outcome = both_ways().and_then(|()| all_gone()).and_then(|()| {
        let now = numbers_at_rest(before);
        if now <= before { Ok(()) } else { Err(format!("{now} numbers in use, {before} before")) }
    });
    println!(
        "SELFTEST references within values to and from C: {}",
        if outcome.is_ok() { "ok" } else { "FAILED" }
    );
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// How often all methods are called.
const ROUNDS: u32 = 10;

fn both_ways() -> Result<(), String> {
    let names = [Name::new("fleet"), Name::new("fleet-c")];
    let [Some(own_name), Some(program)] = names else { return Err("no name".into()) };
    names::register(rt::home(), &own_name).map_err(failed)?;
    let task = process::start(rt::home(), &program, "").map_err(failed)?;
    let (own_port, own_liar) = (port()?, liar()?);
    let (peer, room) = get(Uid::NIL, None)?;
    let its_port: Reference<Port::Client<View>> = room.into_door().into();
    // It hands over the same again.
    let (peer, again) = get(peer, Some(own_port.item(false)))?;
    drop((own_port, again));
    Ipc { to: peer, item: Some(own_liar.item(Rights::RW)), ..Ipc::NONE }.run().map_err(failed)?;
    drop(own_liar);
    let outcome = with_inbox(|inbox| (0..ROUNDS).try_for_each(|_| call_at(&its_port, inbox)))
        .and_then(|()| hostile_to(&its_port))
        .and_then(|()| with_inbox(|inbox| call_at(&its_port, inbox)));
    drop(its_port);
    let done = receive(Room::new().map_err(failed)?)?.0;
    Ipc { to: done.sender, ..Ipc::NONE }.run().map_err(failed)?;
    let end = process::wait(rt::home(), task, u64::MAX).map_err(failed)?.map(|outcome| outcome.end);
    outcome?;
    same("failures of its client", done.label, 0)?;
    same("its end", end, Some(End::Exited(0)))
}
