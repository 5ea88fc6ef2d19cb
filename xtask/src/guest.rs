//! A machine while it runs: its serial line, its time limit, and how it ended.

use crate::console::{Event, Filter};
use crate::machine::Machine;
use crate::{Error, Result, interrupt};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Exit code of the emulator after the guest's orderly end (0x10 written to its exit port).
const CODE_ORDERLY: i32 = 33;

/// Exit code of the emulator after a kernel panic or a refusal to boot (0x11 written).
const CODE_STOPPED: i32 = 35;

/// Output that is kept for messages, at most, in bytes.
const TRANSCRIPT_LEN_MAX: usize = 1 << 20;

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest ended itself, with this exit code.
    Orderly(u8),
    /// The kernel panicked or refused to boot; this is its reason.
    Stopped(String),
    /// The machine ended in any other way, said in one sentence.
    Broken(String),
}

impl End {
    /// The exit code of an orderly end, everything else as an error.
    pub fn code(self) -> Result<u8> {
        match self {
            End::Orderly(code) => Ok(code),
            End::Stopped(reason) => Err(Error::machine(format!("the kernel stopped: {reason}"))),
            End::Broken(reason) => Err(Error::machine(reason)),
        }
    }
}

/// A running machine.
#[derive(Debug)]
pub struct Guest {
    child: Option<Child>,
    input: Option<ChildStdin>,
    chunks: Receiver<Vec<u8>>,
    complaints: Option<JoinHandle<Vec<u8>>>,
    filter: Filter,
    pending: VecDeque<Event>,
    deadline: Option<Instant>,
    timed_out: bool,
    /// The exit code that the guest announced.
    exit_code: Option<u8>,
    /// Output of the guest so far (its beginning, if it is much).
    pub transcript: Vec<u8>,
}

impl Guest {
    /// Starts a machine.
    pub fn start(machine: &Machine) -> Result<Guest> {
        Guest::start_command(machine.command()?)
    }

    /// Starts an emulator whose standard input and output are the guest's serial line.
    pub fn start_command(mut command: Command) -> Result<Guest> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = interrupt::spawn(&mut command)?;
        let (sender, chunks) = sync_channel(64);
        let output = child.stdout.take();
        thread::spawn(move || output.map(|output| forward(output, &sender)));
        let errors = child.stderr.take();
        let complaints = thread::spawn(move || {
            let mut text = Vec::new();
            errors.map(|mut errors| errors.read_to_end(&mut text));
            text
        });
        Ok(Guest {
            input: child.stdin.take(),
            child: Some(child),
            chunks,
            complaints: Some(complaints),
            filter: Filter::default(),
            pending: VecDeque::new(),
            deadline: None,
            timed_out: false,
            exit_code: None,
            transcript: Vec::new(),
        })
    }

    /// Sets the time from now after which the machine is ended; `None` removes the limit.
    pub fn limit(&mut self, limit: Option<Duration>) {
        self.deadline = limit.map(|limit| Instant::now() + limit);
    }

    /// The guest's keyboard. Can be taken once.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Types something.
    pub fn send(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.input {
            // A guest that has ended is noticed by its end, not here.
            let _ = input.write_all(bytes).and_then(|()| input.flush());
        }
    }

    /// Waits for the next event; `None` when the output ends or the time is over.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                self.note(&event);
                return Some(event);
            }
            let chunk = self.next_chunk()?;
            self.pending.extend(self.filter.push(&chunk));
        }
    }

    /// Reads on until the transcript contains a text; says whether it came.
    pub fn expect(&mut self, text: &str) -> bool {
        let mut from = 0;
        loop {
            let found = self.transcript[from..].windows(text.len()).any(|window| window == text.as_bytes());
            if found {
                return true;
            }
            from = self.transcript.len().saturating_sub(text.len());
            if self.next_event().is_none() {
                return false;
            }
        }
    }

    /// Reads on until the first program starts; says whether it did.
    pub fn expect_begin(&mut self) -> bool {
        std::iter::from_fn(|| self.next_event()).any(|event| event == Event::Begin)
    }

    /// Reads everything that is left and returns how the machine ended.
    pub fn finish(&mut self) -> End {
        while self.next_event().is_some() {}
        let rest = self.filter.rest();
        self.transcript.extend(rest);
        if self.timed_out {
            self.kill();
        }
        let Some(child) = self.child.take() else {
            return End::Broken("the machine has ended before".into());
        };
        let status = interrupt::wait(child);
        let complaints = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        match status {
            Err(error) => End::Broken(error.message),
            Ok(_) if self.timed_out => End::Broken("the time limit was reached".into()),
            Ok(status) => self.judge(status, &String::from_utf8_lossy(&complaints)),
        }
    }

    /// The output so far as text, carriage returns left out.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.transcript).replace('\r', "")
    }

    /// Ends the machine at once.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }

    fn next_chunk(&mut self) -> Option<Vec<u8>> {
        let Some(deadline) = self.deadline else { return self.chunks.recv().ok() };
        match self.chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(chunk) => Some(chunk),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.timed_out = true;
                None
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Text(text) if self.transcript.len() < TRANSCRIPT_LEN_MAX => self.transcript.extend(text),
            Event::Exit(code) => self.exit_code = Some(*code),
            Event::Text(_) | Event::Begin | Event::Crash(_) | Event::Trace(_) => {}
        }
    }

    fn judge(&self, status: ExitStatus, complaints: &str) -> End {
        match (status.code(), self.exit_code) {
            (Some(CODE_ORDERLY), Some(code)) => End::Orderly(code),
            (Some(CODE_ORDERLY), None) => End::Broken("the guest ended without an exit code".into()),
            (Some(CODE_STOPPED), _) => End::Stopped(self.reason()),
            (Some(0), _) => End::Broken("the machine was reset (triple fault) or switched off".into()),
            (Some(code), _) => End::Broken(match complaints.trim().lines().last() {
                Some(line) => line.to_string(),
                None => format!("the emulator ended with exit code {code}"),
            }),
            (None, _) => End::Broken(format!("signal {} ended the emulator", status.signal().unwrap_or(0))),
        }
    }

    /// Why the kernel stopped: its own sentence, or what follows a panic's headline.
    pub fn reason(&self) -> String {
        let text = self.text();
        let panic = text.lines().find(|line| line.contains("KERNEL PANIC"));
        let sentence = text.lines().rev().find_map(|line| line.strip_prefix("tern: "));
        panic.or(sentence).unwrap_or("it gave no reason").trim().to_string()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.child.take() {
            let _ = interrupt::wait(child);
        }
    }
}

/// Passes output on until either side ends.
fn forward(mut output: impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) if sender.send(buffer[..len].to_vec()).is_err() => return,
            Err(error) if error.kind() != ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {}
        }
    }
}
