//! Ends everything this tool has started when it is told to end itself.
//!
//! Children run in process groups of their own, so that a Ctrl-C of the terminal reaches only this tool, which
//! then ends them in its own order: terminal first, children next, one line, exit code 128 + signal.

use crate::{Context, Result, terminal};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Process groups that are ours.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Starts to listen for signals.
pub fn install() {
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        thread::spawn(move || signals.forever().next().map(end));
    }
}

/// Ends the process as a signal demands.
pub fn end(signal: i32) {
    terminal::restore();
    for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = kill_process_group(group, Signal::TERM);
    }
    eprintln!("tern: interrupted");
    std::process::exit(128 + signal);
}

/// Starts a child that [`end`] would end.
pub fn spawn(command: &mut Command) -> Result<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    // The lock is held over the start, so that no child can slip past a signal.
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.process_group(0).spawn().context(|| format!("run {name}"))?;
    groups.push(Pid::from_child(&child));
    Ok(child)
}

/// Waits for a child of [`spawn`].
pub fn wait(mut child: Child) -> Result<ExitStatus> {
    let status = child.wait().context(|| "wait for a child".into())?;
    let ended = Pid::from_child(&child);
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != ended);
    Ok(status)
}

/// Waits for a child of [`spawn`] and for all that it prints.
pub fn output(child: Child) -> Result<Output> {
    let ended = Pid::from_child(&child);
    let output = child.wait_with_output().context(|| "wait for a child".into())?;
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != ended);
    Ok(output)
}

/// Runs a child to its end.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    wait(spawn(command)?)
}
