//! Tests of the whole system, in the order in which they are best read.
//!
//! [`world`] is what all of them share: the built system and the tool that runs it. A trial boots a machine (or
//! asks the front door for something) and judges what comes back. [`suite`] boots the guest's own test suite and
//! turns each of its lines into a trial, and [`hosts`] has the tests that need no machine. [`order`] says which come first.

#![forbid(unsafe_code)]

mod world;

mod bad_input;
mod boot;
mod c_library;
mod clusters;
mod colours;
mod consoles;
mod copies;
mod crashes;
mod databases;
mod debian;
mod doors;
mod drivers;
mod edges;
mod files;
mod front_door;
mod guides;
mod hosts;
mod interactive;
mod leaks;
mod leases;
mod linux;
mod monitor;
mod mounting;
mod networks;
mod order;
mod peer;
mod person;
mod pipes;
mod policies;
mod power_cuts;
mod python;
mod realtime;
mod registers;
mod restarts;
mod runtimes;
mod sandboxes;
mod screens;
mod sdk;
mod shell;
mod shells;
mod sources;
mod stacked;
mod strangers;
mod stretches;
mod stubs;
mod suite;
mod tables;
mod terminals;
mod web;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::thread;
use suite::Reports;
use world::World;

fn main() -> ExitCode {
    xtask::interrupt::install();
    let mut arguments = Arguments::from_args();
    // Every trial is a machine, and more machines than processors only reach their time limits.
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    arguments.test_threads.get_or_insert(processors);
    match perform(&arguments) {
        Ok(has_failed) => ExitCode::from(if has_failed { FAILED } else { 0 }),
        Err(error) => {
            eprintln!("tern: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Exit code when a trial has failed, as Rust's own harness has it.
const FAILED: u8 = 101;

/// Runs all trials by one queue, and says whether one has failed. With a filter, the guest's suite is asked before, for that part alone.
fn perform(arguments: &Arguments) -> xtask::Result<bool> {
    let world = World::build()?;
    let (mut trials, trials_of_hosts) = (trials(world)?, hosts::trials()?);
    let reports = Reports::default();
    match &arguments.filter {
        None => trials.extend(reports.boots(world)),
        Some(filter) if !arguments.list => trials.extend(suite::trials(world, filter)),
        Some(_) => {}
    }
    let is_whole = !trials_of_hosts.is_empty() && arguments.filter.is_none();
    trials.extend(trials_of_hosts);
    if is_whole {
        trials.push(order::names_are_those_of_trials(&trials));
    }
    order::sort(&mut trials);
    if !arguments.list {
        world.tell_skipped(arguments.filter.as_deref().unwrap_or(""));
    }
    let first = libtest_mimic::run(arguments, trials);
    let of_guest = reports.trials(world);
    let second = (!of_guest.is_empty()).then(|| libtest_mimic::run(arguments, of_guest));
    order::write_times()?;
    Ok(first.has_failed() || second.is_some_and(|second| second.has_failed()))
}

fn trials(world: &'static World) -> xtask::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    trials.extend(front_door::trials(world));
    trials.extend(bad_input::trials(world));
    trials.extend(boot::trials(world));
    trials.extend(shell::trials(world));
    trials.extend(interactive::trials(world));
    trials.extend(drivers::trials(world));
    trials.extend(consoles::trials(world));
    trials.extend(networks::trials(world));
    trials.extend(leases::trials(world));
    trials.extend(web::trials(world));
    trials.extend(linux::trials(world));
    trials.extend(shells::trials(world));
    trials.extend(terminals::trials(world));
    trials.extend(debian::trials(world));
    trials.extend(python::trials(world));
    trials.extend(databases::trials(world));
    trials.extend(sources::trials(world));
    trials.extend(files::trials(world));
    trials.extend(edges::trials(world));
    trials.extend(pipes::trials(world));
    trials.extend(mounting::trials(world));
    trials.extend(stacked::trials(world));
    trials.extend(restarts::trials(world));
    trials.extend(runtimes::trials(world));
    trials.extend(power_cuts::trials(world));
    trials.extend(crashes::trials(world));
    trials.extend(sandboxes::trials(world));
    trials.extend(screens::trials(world));
    trials.extend(stubs::trials(world));
    trials.extend(doors::trials(world));
    trials.extend(c_library::trials(world));
    trials.extend(registers::trials(world));
    trials.extend(sdk::trials(world));
    trials.extend(clusters::trials(world));
    trials.extend(policies::trials(world));
    trials.extend(strangers::trials(world));
    trials.extend(colours::trials(world));
    trials.extend(guides::trials(world)?);
    trials.extend(tables::trials(world)?);
    trials.extend(realtime::trials(world));
    trials.extend(suite::transcripts(world));
    trials.extend(suite::registers(world));
    trials.extend(suite::random(world));
    trials.extend(leaks::trials(world));
    trials.push(suite::much_memory(world));
    Ok(trials)
}
