//! What the trials share: the built system, and ways to boot it and to ask the front door.

use crate::order;
use libtest_mimic::{Failed, Trial};
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use xtask::archive::{Entry, pack};
use xtask::build::{self, System};
use xtask::guest::{End, Guest};
use xtask::machine::Machine;
use xtask::{Context, paths};

/// Longest time for a machine that does little, some hundred times what it takes: a machine that hangs is ended, and no other one, however slow and busy its host is.
pub const LIMIT: Duration = Duration::from_secs(600);

/// What a trial says: nothing, or why it failed.
pub type Verdict = Result<(), Failed>;

/// A command of the shell, and the lines that it says.
pub type Says<'a> = (&'a str, &'a [&'a str]);

/// A trial's name and its body.
pub type Named = (&'static str, fn(&'static World) -> Verdict);

/// The built system.
#[derive(Debug)]
pub struct World {
    /// What boots.
    pub system: System,
    /// The large counts are asked for.
    pub full: bool,
    /// Trials that this machine cannot have, each with the reason.
    skipped: Mutex<Vec<(String, String)>>,
}

impl World {
    /// Builds the system; it lives as long as the process.
    pub fn build() -> xtask::Result<&'static World> {
        let full = env::var_os("TERN_FULL").is_some_and(|value| value == "1");
        Ok(Box::leak(Box::new(World { system: build::system()?, full, skipped: Mutex::default() })))
    }

    /// A trial of one kind.
    pub fn trial(
        &'static self,
        kind: &str,
        name: impl Into<String>,
        verdict: impl FnOnce(&'static World) -> Verdict + Send + 'static,
    ) -> Trial {
        order::trial(kind, name, move || verdict(self))
    }

    /// Notes that a trial cannot be had here, and why.
    pub fn skip(&self, name: &str, why: &str) {
        if let Ok(mut skipped) = self.skipped.lock() {
            skipped.push((name.into(), why.into()));
        }
    }

    /// Says aloud which of the trials whose names have this text are not there. `./tern test` says it again at its end.
    pub fn tell_skipped(&self, filter: &str) {
        for (name, why) in self.skipped.lock().iter().flat_map(|skipped| skipped.iter()) {
            if name.contains(filter) {
                println!("skipped: {name}: {why}");
            }
        }
    }

    /// The usual machine.
    pub fn machine(&self) -> Machine {
        Machine::new(&self.system)
    }

    /// Runs `./tern` (its part behind the checks) with these arguments and this input.
    pub fn tern(&self, arguments: &[&str], input: &[u8]) -> xtask::Result<Reply> {
        let mut command = self.tern_command();
        command.args(arguments);
        run(command, input)
    }

    /// The command that [`World::tern`] runs.
    pub fn tern_command(&self) -> Command {
        let tool = env::var_os("TERN_XTASK").unwrap_or_else(|| paths::root().join("tern").into());
        let mut command = Command::new(tool);
        let system = self.system.kernel.parent().map(PathBuf::from).unwrap_or_default();
        command.env(build::PREBUILT, system).env("CARGO_MANIFEST_DIR", paths::root());
        command
    }

    /// The tool behind `./tern`, which may be called from another checkout.
    pub fn tool(&self) -> PathBuf {
        let built = || paths::target().join("debug/xtask");
        env::var_os("TERN_XTASK").map_or_else(built, PathBuf::from)
    }

    /// Feeds a script to the shell.
    pub fn script(&self, script: &[u8]) -> xtask::Result<Reply> {
        self.tern(&["run", "--script", "-"], script)
    }

    /// Runs commands, and compares what they say with what they should say: see [`Reply::check_says`].
    pub fn says(&self, commands: &[Says]) -> Verdict {
        self.script(script_of(commands).as_bytes())?.check_says(commands)
    }

    /// Feeds a script to the shell of a system whose boot archive has these files.
    pub fn script_in(&self, entries: &[Entry], script: &[u8]) -> xtask::Result<Reply> {
        self.script_with(entries, &[], script)
    }

    /// Does that with more options of `run`.
    pub fn script_with(&self, entries: &[Entry], options: &[&str], script: &[u8]) -> xtask::Result<Reply> {
        let scratch = Scratch::create()?;
        paths::write(&scratch.0.join("boot.cpio"), &pack(entries))?;
        fs::copy(&self.system.kernel, scratch.0.join("tern-kernel")).context(|| "copy the kernel".into())?;
        let mut command = self.tern_command();
        command.env(build::PREBUILT, &scratch.0).args(["run", "--script", "-"]).args(options);
        run(command, script)
    }

    /// The boot archive's files.
    pub fn entries(&self) -> xtask::Result<Vec<Entry>> {
        self.system.entries()
    }

    /// The boot archive with another description, which `describe` makes for these files.
    pub fn entries_of(
        &self,
        describe: impl FnOnce(&[&str]) -> xtask::Result<description::System>,
    ) -> xtask::Result<Vec<Entry>> {
        self.system.entries_of(describe)
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Reply {
    /// Its exit code; 255 if a signal ended it.
    pub code: u8,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Reply {
    /// Fails unless there was one line on standard error and this exit code.
    pub fn check_refusal(&self, codes: &[u8]) -> Verdict {
        let one_line = self.err.trim_end().lines().count() == 1 && self.err.starts_with("tern: ");
        if one_line && codes.contains(&self.code) {
            Ok(())
        } else {
            Err(self.failed("expected one clear line"))
        }
    }

    /// Fails unless standard output contains the text.
    pub fn check_contains(&self, text: &str) -> Verdict {
        if self.out.contains(text) { Ok(()) } else { Err(self.failed(&format!("expected {text:?}"))) }
    }

    /// Fails unless standard error contains the text.
    pub fn check_error(&self, text: &str) -> Verdict {
        if self.err.contains(text) { Ok(()) } else { Err(self.failed(&format!("expected {text:?}"))) }
    }

    /// Fails unless each command has said its lines, and nothing else was said; of a line that ends with `…` the beginning.
    pub fn check_says(&self, commands: &[Says]) -> Verdict {
        self.check_code(0)?;
        let mut lines = self.out.lines();
        for (command, says) in commands {
            for expected in *says {
                let line = lines.next().unwrap_or_default();
                let is_as_expected = match expected.strip_suffix('…') {
                    Some(start) => line.starts_with(start),
                    None => line == *expected,
                };
                if !is_as_expected {
                    return Err(self.failed(&format!("{command}: expected {expected:?}, found {line:?}")));
                }
            }
        }
        match lines.next() {
            None => Ok(()),
            Some(line) => Err(self.failed(&format!("expected nothing more, found {line:?}"))),
        }
    }

    /// Fails unless the exit code is this one.
    pub fn check_code(&self, code: u8) -> Verdict {
        if self.code == code { Ok(()) } else { Err(self.failed(&format!("expected exit code {code}"))) }
    }

    /// A failure that shows everything.
    pub fn failed(&self, why: &str) -> Failed {
        let Reply { code, out, err } = self;
        format!("{why}\nexit code {code}\n--- standard output\n{out}\n--- standard error\n{err}").into()
    }
}

/// Runs a command to its end, or to [`LIMIT`]: then its exit code is 124.
pub fn run(command: Command, input: &[u8]) -> xtask::Result<Reply> {
    run_within(LIMIT, command, input)
}

/// Runs a command to its end, or to another limit.
pub fn run_within(limit: Duration, command: Command, input: &[u8]) -> xtask::Result<Reply> {
    let mut command = limited(limit, &command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = xtask::interrupt::spawn(&mut command)?;
    let typed = input.to_vec();
    let keyboard = child.stdin.take();
    // Typing in another thread: a command that prints before it has read everything must not wait for us.
    let typist = thread::spawn(move || keyboard.map(|mut keyboard| keyboard.write_all(&typed)));
    let output = child.wait_with_output().context(|| "wait for a command".into())?;
    let _ = typist.join();
    Ok(reply(&output))
}

/// A command under a time limit. The path is absolute because a trial may have its own PATH.
fn limited(limit: Duration, command: &Command) -> Command {
    let mut limited = Command::new("/usr/bin/timeout");
    limited.arg("--kill-after=10").arg(limit.as_secs().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(key, value),
            None => limited.env_remove(key),
        };
    }
    limited
}

fn reply(output: &Output) -> Reply {
    Reply {
        code: output.status.code().map_or(255, |code| code as u8),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Boots a machine and lets it run to its end.
pub fn boot(machine: &Machine, limit: Duration) -> xtask::Result<(End, String)> {
    let mut guest = Guest::start(machine)?;
    guest.limit(Some(limit));
    let end = guest.finish();
    Ok((end, guest.text()))
}

/// A failure that shows how a machine ended and what it said.
pub fn failed(why: &str, end: &End, text: &str) -> Failed {
    format!("{why}\nthe machine: {end:?}\n--- serial line\n{text}").into()
}

/// Commands as a script that ends with status 0.
pub fn script_of(commands: &[Says]) -> String {
    let script: String = commands.iter().map(|(command, _)| format!("{command}\n")).collect();
    script + "exit 0\n"
}

/// The text of the description that `./tern run` boots.
pub fn usual_description() -> xtask::Result<String> {
    let bytes = paths::read(&paths::root().join("systems/default.toml"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A directory that goes away with its owner.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes one.
    pub fn create() -> xtask::Result<Scratch> {
        Scratch::below(&paths::out()?)
    }

    /// Makes one in memory, if Linux has a place for that: for images that are written again and again.
    pub fn in_memory() -> xtask::Result<Scratch> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Scratch::below(memory) } else { Scratch::create() }
    }

    fn below(folder: &Path) -> xtask::Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("tern-scratch-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).context(|| format!("create {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
