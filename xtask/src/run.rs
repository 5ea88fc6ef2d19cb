//! The verb `run`: a booted system with its shell, for a person or for a script, or with a program of Linux.

use crate::cli::RunOptions;
use crate::console::Event;
use crate::crash::Reports;
use crate::guest::{End, Guest};
use crate::machine::{GDB_ADDRESS, Machine};
use crate::{Context, Error, Result, build, interrupt, linux, peripherals, terminal};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Longest time from switching on to the shell, when nobody is there to lose patience.
const BOOT_LIMIT: Duration = Duration::from_secs(300);

/// Byte that ends the input of a guest.
const END_OF_INPUT: u8 = 4;

/// How long until a guest is told again that its script has ended.
const END_PAUSE: Duration = Duration::from_secs(1);

const CTRL_A: u8 = 1;
const CTRL_C: u8 = 3;
const SIGINT: i32 = 2;

/// Builds the system and runs it. The exit code is the guest's.
pub fn perform(options: RunOptions) -> Result<u8> {
    let script = options.script.as_deref().map(open_script).transpose()?;
    let boot = options.boot.join(" ");
    if boot.split_whitespace().any(|word| word == "init=") {
        return Err(Error::usage("--boot: init= wants the name of a program"));
    }
    let is_for_person = script.is_none() && io::stdin().is_terminal();
    let told = [
        ("--strace", options.strace.is_some()),
        ("--profile", options.profile),
        (linux::TERMINAL, is_for_person && io::stdout().is_terminal()),
    ];
    let memory = linux::memory_options(options.memory);
    let told = told.into_iter().filter_map(|(word, is_there)| is_there.then_some(word));
    let told: Vec<&str> = told.chain(memory.iter().map(String::as_str)).collect();
    let program =
        (!options.linux.is_empty()).then(|| linux::boot_options(&options.linux, &told, &boot)).transpose()?;
    let calls = Calls::new(options.strace.as_deref())?;
    // No other machine has the disks as long as these are there.
    let held = program.is_some().then(|| linux::disk(options.disk.as_deref())).transpose()?;
    let system = build::system_of(&options.system)?;
    let mut machine = Machine::new(&system);
    if script.is_some() {
        machine = machine.with("init=shell args=script");
    }
    machine = machine.with(program.as_deref().unwrap_or_default()).with(&boot);
    machine.kind = options.machine;
    machine.memory_mib = options.memory;
    machine.cpus = options.smp;
    machine.gdb = options.gdb;
    machine.kvm = options.kvm;
    machine.disk = match &held {
        Some((_, image)) => Some(image.clone()),
        None => options.disk.as_deref().map(peripherals::disk).transpose()?,
    };
    machine.disk_as = options.disk_as;
    machine.net = options.net;
    machine.entropy = options.entropy;
    // The socket goes away with it.
    let line = options.console.map(peripherals::Line::new).transpose()?;
    machine.console = line.as_ref().map(|line| line.path().to_path_buf());
    if is_for_person && let Some(line) = &line {
        eprintln!("tern: the virtio console is at {}", line.path().display());
    }
    // Nobody else has the disk as long as this is there.
    let _disk = if is_for_person && !options.bare { peripherals::plug_in(&mut machine) } else { None };
    if options.gdb {
        eprintln!(
            "tern: waiting for a debugger: gdb {} -ex 'target remote {GDB_ADDRESS}'",
            system.kernel.display()
        );
    }
    let reports = Reports::of(&system);
    match (script, program) {
        (Some(script), _) => run_script(&machine, reports, script, calls),
        (None, Some(_)) if !is_for_person => run_script(&machine, reports, Box::new(io::stdin()), calls),
        (None, Some(_)) => run_interactive(&machine, reports, Seen::Program, calls),
        (None, None) => run_interactive(&machine, reports, Seen::All, calls),
    }
}

/// Where it goes that a program of Linux tells of its calls.
enum Calls {
    /// Standard error.
    Shown,
    /// A file, and its name.
    File(File, String),
}

impl Calls {
    /// A file of this name, or standard error if it has none.
    fn new(file: Option<&str>) -> Result<Calls> {
        match file.filter(|file| !file.is_empty()) {
            Some(name) => {
                let file = File::create(name).context(|| format!("make the file {name}"))?;
                Ok(Calls::File(file, name.into()))
            }
            None => Ok(Calls::Shown),
        }
    }

    fn tell(&mut self, text: &[u8]) -> Result<()> {
        match self {
            Calls::File(file, name) => file.write_all(text).context(|| format!("write to {name}")),
            Calls::Shown => {
                let mut out = io::stderr().lock();
                // A terminal whose keys are the guest's goes to the beginning of a line only if it is told so.
                let text = if out.is_terminal() { with_carriage_returns(text) } else { text.to_vec() };
                out.write_all(&text).context(|| "write to standard error".into())
            }
        }
    }
}

fn with_carriage_returns(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) })
        .copied()
        .collect()
}

fn open_script(path: &str) -> Result<Box<dyn Read + Send>> {
    if path == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).context(|| format!("open the script {path}"))?;
    let is_directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_directory {
        return Err(Error::new(format!("the script {path} is a directory")));
    }
    Ok(Box::new(file))
}

/// Feeds a script to the shell and prints only its answers.
fn run_script(
    machine: &Machine,
    mut reports: Reports,
    script: Box<dyn Read + Send>,
    mut calls: Calls,
) -> Result<u8> {
    let mut guest = Guest::start(machine)?;
    if !machine.gdb {
        guest.limit(Some(BOOT_LIMIT));
    }
    let mut script = Some(script);
    let mut begun = false;
    while let Some(event) = guest.next_event() {
        match event {
            Event::Begin if !begun => {
                begun = true;
                guest.limit(None);
                if let (Some(script), Some(input)) = (script.take(), guest.take_input()) {
                    thread::spawn(move || feed(script, input, END_PAUSE));
                }
            }
            Event::Text(text) if begun => print(&without_carriage_returns(&text))?,
            Event::Crash(words) if begun => {
                reports.push(&words).map_or(Ok(()), |text| print(text.as_bytes()))?;
            }
            Event::Trace(text) => calls.tell(&text)?,
            Event::Text(_) | Event::Crash(_) | Event::Begin | Event::Exit(_) => {}
        }
    }
    let end = guest.finish();
    if begun { end.code() } else { end_unseen(end, &guest) }
}

/// Exit code of a machine of which nothing was printed, so that a reason would be lost.
fn end_unseen(end: End, guest: &Guest) -> Result<u8> {
    match end {
        End::Orderly(exit_code @ 1..) => Err(Error { message: guest.reason(), exit_code }),
        end => end.code(),
    }
}

/// Copies a script to the guest, and ends it as a script ends: with a newline and the end of input. The end lasts, as that of a file does: it is told again after each `pause`, since
/// a program that the script has started may have heard of it in the shell's place.
///
/// The guest's end of the line may go away at any time; then there is nobody left to feed. Until then it stays open: a closed one looks like a broken cable to some
/// emulators.
fn feed(mut script: impl Read, mut input: impl Write, pause: Duration) {
    let mut buffer = [0; 4096];
    let mut last = b'\n';
    while let Ok(len @ 1..) = script.read(&mut buffer) {
        if input.write_all(&buffer[..len]).and_then(|()| input.flush()).is_err() {
            return;
        }
        last = buffer[len - 1];
    }
    keep_ended(input, end_of_input(last), pause);
}

/// Ends an input by these bytes, and tells of its end again after each `pause`, for as long as there is a guest.
fn keep_ended(mut input: impl Write, mut end: &[u8], pause: Duration) {
    while input.write_all(end).and_then(|()| input.flush()).is_ok() {
        end = &[END_OF_INPUT];
        thread::sleep(pause);
    }
}

/// Bytes that follow the last byte of an input: the end of the line, if that is missing, and of the input.
fn end_of_input(last: u8) -> &'static [u8] {
    if last == b'\n' { &[END_OF_INPUT] } else { &[b'\n', END_OF_INPUT] }
}

fn without_carriage_returns(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != b'\r').collect()
}

/// Output of a machine that a person sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// All of it.
    All,
    /// That of the first program.
    Program,
}

/// Connects the person's terminal with the guest's serial line.
fn run_interactive(machine: &Machine, mut reports: Reports, seen: Seen, mut calls: Calls) -> Result<u8> {
    let mut guest = Guest::start(machine)?;
    let begun = Arc::new(AtomicBool::new(false));
    let mut input = guest.take_input();
    if io::stdin().is_terminal() {
        let program = if seen == Seen::All { "shell" } else { "program" };
        eprintln!("tern: Ctrl-A x ends the machine; Ctrl-C goes to the {program} once that runs");
        start_forwarding(input.take(), &begun);
    }
    let handed = terminal::hand_over();
    while let Some(event) = guest.next_event() {
        let is_seen = seen == Seen::All || begun.load(Ordering::Relaxed);
        match event {
            Event::Text(_) | Event::Crash(_) if !is_seen => {}
            Event::Text(text) => print(&text)?,
            Event::Crash(words) => reports.push(&words).map_or(Ok(()), |text| print(text.as_bytes()))?,
            Event::Begin => {
                begun.store(true, Ordering::Relaxed);
                // An input that is no terminal may have typed everything already; nobody would have listened before.
                start_forwarding(input.take(), &begun);
            }
            Event::Trace(text) => calls.tell(&text)?,
            Event::Exit(_) => {}
        }
    }
    let end = guest.finish();
    drop(handed);
    if seen == Seen::Program && !begun.load(Ordering::Relaxed) {
        return end_unseen(end, &guest);
    }
    if !matches!(end, End::Orderly(_)) {
        println!();
    }
    end.code()
}

fn start_forwarding(input: Option<ChildStdin>, begun: &Arc<AtomicBool>) {
    let begun = begun.clone();
    thread::spawn(move || input.map(|input| forward_keys(input, &begun)));
}

/// Passes keys on. Ctrl-A starts a command to this tool: `x` ends the machine, anything else is passed on.
fn forward_keys(mut input: ChildStdin, begun: &AtomicBool) {
    let mut keys = io::stdin().lock().bytes();
    let mut last = b'\n';
    while let Some(Ok(key)) = keys.next() {
        let mut key = key;
        if key == CTRL_A {
            match keys.next() {
                Some(Ok(b'x' | b'X')) => interrupt::end(SIGINT),
                Some(Ok(other)) => key = other,
                Some(Err(_)) | None => break,
            }
        } else if key == CTRL_C && !begun.load(Ordering::Relaxed) {
            interrupt::end(SIGINT);
        }
        if input.write_all(&[key]).and_then(|()| input.flush()).is_err() {
            return;
        }
        last = key;
    }
    // The shell asks a person who ends the input whether that is meant. Nobody is there to answer any more.
    keep_ended(input, &[end_of_input(last), &[END_OF_INPUT]].concat(), END_PAUSE);
}

/// Prints at once. A reader that went away ends the run.
fn print(text: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).context(|| "write to standard output".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that takes so many pieces, and then goes away.
    struct Line {
        taken: Vec<u8>,
        pieces_left: usize,
    }

    impl Write for &mut Line {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.pieces_left = self.pieces_left.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
            self.taken.extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_of_a_script_lasts() {
        for (script, taken) in
            [("run a\n", "run a\n\x04\x04\x04"), ("run a", "run a\n\x04\x04\x04"), ("", "\x04\x04\x04\x04")]
        {
            let mut line = Line { taken: Vec::new(), pieces_left: 4 };
            feed(script.as_bytes(), &mut line, Duration::ZERO);
            assert_eq!(line.taken, taken.as_bytes(), "{script:?}");
        }
    }
}
