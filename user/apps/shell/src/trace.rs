//! The command `trace`: what the kernel recorded of messages, switches, faults, interrupts and mappings.

use crate::shell::{STATUS_USAGE, Shell};
use alloc::vec::Vec;
use rt::api::Result;
use rt::api::process;
use rt::println;
use rt::sys::abi::call::{TRACE_COUNTERS, TRACE_EVENTS};
use rt::sys::{Fpage, Uid};

/// Records that are shown unless another number is given.
const SHOWN: u64 = 24;

/// The command.
pub fn trace(_: &mut Shell, words: &[&str]) -> i32 {
    let count = match words {
        [_] => Some(SHOWN),
        [_, count] => count.parse().ok(),
        _ => None,
    };
    let result = match (words.first(), count) {
        (Some(&"on"), Some(_)) => process::trace(rt::home(), true),
        (Some(&"off"), Some(_)) => process::trace(rt::home(), false),
        (Some(&"show"), Some(count)) => show(count),
        _ => {
            println!("usage: trace on|off|show [COUNT]");
            return STATUS_USAGE;
        }
    };
    match result {
        Ok(()) => 0,
        Err(failure) => {
            println!("trace: {failure}");
            1
        }
    }
}

fn show(count: u64) -> Result<()> {
    // All are read before any is shown, which makes more of them. So does reading, so the oldest may be gone.
    let [made, messages, updates, long] = process::record(rt::home(), TRACE_COUNTERS)?.unwrap_or_default();
    if made == 0 {
        println!("nothing is recorded: 'trace on' begins to");
        return Ok(());
    }
    let mut records = Vec::new();
    for number in made.saturating_sub(count)..made {
        records.extend(process::record(rt::home(), number)?);
    }
    println!("{:>16}  {:<9}  {:>8}  {}", "TIME us", "EVENT", "THREAD", "WHAT");
    for &[time, event, thread, argument] in &records {
        let name = TRACE_EVENTS.get(event as usize).copied().unwrap_or("?");
        let what = match name {
            "ipc" | "switch" => alloc::format!("to {:?}", Uid(argument)),
            "interrupt" => alloc::format!("line {}", Uid(argument).as_interrupt().unwrap_or(0)),
            "map" => alloc::format!("{:x?}", Fpage(argument)),
            _ if argument < 512 => alloc::format!("exception {argument}"),
            _ => alloc::format!("address {:#x}", argument & !7),
        };
        println!(
            "{:>12}.{:03}  {name:<9}  {:>8}  {what}",
            time / 1000,
            time % 1000,
            alloc::format!("{:?}", Uid(thread))
        );
    }
    if messages == 0 {
        println!("no message is recorded");
        return Ok(());
    }
    let share = (messages - long) * 100 / messages;
    println!("{messages} messages, faults included; {share} in 100 fit in registers");
    let ratio = messages * 10 / updates.max(1);
    println!("{updates} updates of ready queues: {}.{} messages for each", ratio / 10, ratio % 10);
    Ok(())
}
