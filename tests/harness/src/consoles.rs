//! A virtio console, whose other side is a Unix socket of the host, and the shell that sits at it.

use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use xtask::archive::{Entry, pack};
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Kind};
use xtask::paths;

/// Line that a program prints, and that nobody types.
const HELLO: &str = "Hello from Rust\r\n";

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("a_second_shell_sits_at_a_virtio_console", a_second_shell_sits_at_a_virtio_console),
        ("a_side_that_does_not_read_holds_up_nobody", a_side_that_does_not_read_holds_up_nobody),
        (
            "without_a_virtio_console_there_is_no_second_shell",
            without_a_virtio_console_there_is_no_second_shell,
        ),
        ("a_console_replaces_no_file", a_console_replaces_no_file),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("drivers", format!("consoles::{name}"), verdict)))
}

fn entries(world: &World) -> xtask::Result<Vec<Entry>> {
    world.entries_of(|files| xtask::system::read("consoles", files))
}

/// The other side of the line.
struct Line {
    stream: UnixStream,
    /// All that has come, and how much of it was expected so far.
    came: Vec<u8>,
    seen: usize,
    end: Instant,
}

impl Line {
    /// Connects as soon as the emulator has made the socket.
    fn connect(socket: &Path) -> Result<Line, Failed> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            if let Ok(stream) = UnixStream::connect(socket) {
                stream.set_read_timeout(Some(Duration::from_millis(100)))?;
                return Ok(Line { stream, came: Vec::new(), seen: 0, end });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("the emulator does not make the socket".into())
    }

    fn send(&mut self, text: &str) -> Verdict {
        Ok(self.stream.write_all(text.as_bytes())?)
    }

    /// Reads what is there; false if there was nothing for a while.
    fn read(&mut self) -> Result<bool, Failed> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(self.failed("the line is closed")),
            Ok(len) => {
                self.came.extend(&buffer[..len]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a text has come behind all that was expected before.
    fn finds(&mut self, text: &str) -> bool {
        let rest = &self.came[self.seen..];
        let at = rest.windows(text.len()).position(|window| window == text.as_bytes());
        if let Some(at) = at {
            self.seen += at + text.len();
        }
        at.is_some()
    }

    fn expect(&mut self, text: &str) -> Verdict {
        while !self.finds(text) {
            if Instant::now() > self.end {
                return Err(self.failed(&format!("expected {text:?}")));
            }
            self.read()?;
        }
        Ok(())
    }

    /// Sends something again, whenever nothing has come for a while, until a text comes.
    fn repeat(&mut self, text: &str, expected: &str) -> Verdict {
        self.send(text)?;
        while !self.finds(expected) {
            if Instant::now() > self.end {
                return Err(self.failed(&format!("expected {expected:?} at last")));
            }
            if !self.read()? {
                self.send(text)?;
            }
        }
        Ok(())
    }

    fn failed(&self, why: &str) -> Failed {
        format!("{why}\n--- second console\n{}", String::from_utf8_lossy(&self.came)).into()
    }
}

/// A machine with two shells, and both lines to them.
struct Consoles {
    guest: Guest,
    line: Line,
    _scratch: Scratch,
}

impl Consoles {
    fn start(world: &World, kind: Kind) -> Result<Consoles, Failed> {
        let scratch = Scratch::create()?;
        let archive = scratch.0.join("boot.cpio");
        paths::write(&archive, &pack(&entries(world)?))?;
        let socket = socket()?;
        let mut machine = world.machine();
        machine.kind = kind;
        machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive) };
        machine.console = Some(socket.clone());
        let mut guest = Guest::start(&machine)?;
        guest.limit(Some(LIMIT));
        let line = Line::connect(&socket);
        // A line that is connected needs no name any more.
        let _ = fs::remove_file(&socket);
        let mut consoles = Consoles { guest, line: line?, _scratch: scratch };
        // A UART loses what is typed before its driver is there.
        consoles.awaits("\"help\" lists")?;
        Ok(consoles)
    }

    /// Has the first shell do something, and waits for what the first console then says.
    fn first(&mut self, command: &str, text: &str) -> Verdict {
        self.guest.send(format!("{command}\r").as_bytes());
        self.awaits(text)
    }

    fn awaits(&mut self, text: &str) -> Verdict {
        if self.guest.expect(text) {
            Ok(())
        } else {
            let end = self.guest.finish();
            Err(failed(&format!("expected {text:?}"), &end, &self.guest.text()))
        }
    }

    /// Ends the machine by the first shell.
    fn end(&mut self) -> Result<String, Failed> {
        self.guest.send(b"exit 0\r");
        let (end, text) = (self.guest.finish(), self.guest.text());
        if end == End::Orderly(0) { Ok(text) } else { Err(failed("expected exit code 0", &end, &text)) }
    }
}

/// A place for a socket. That of the other files may have a longer name than a socket can.
pub fn socket() -> xtask::Result<PathBuf> {
    let number = xtask::peripherals::free_port()?;
    Ok(std::env::temp_dir().join(format!("tern-{}-{number}", std::process::id())))
}

/// Programs that it starts have its console, bytes that are typed while its driver is down wait, and it goes on after the ends of the driver, of the bus server, and of itself.
fn a_second_shell_sits_at_a_virtio_console(world: &'static World) -> Verdict {
    for kind in [Kind::Pc, Kind::Q35] {
        let mut consoles = Consoles::start(world, kind)?;
        consoles.line.send("run hello-rust\r")?;
        consoles.line.expect(HELLO)?;
        consoles.first("kill virtio-console\recho one end", "\none end")?;
        consoles.line.send("run hello-rust\r")?;
        consoles.line.expect(HELLO)?;
        consoles.first("kill bus\recho another end", "\nanother end")?;
        // Until the next bus server silences it, the device brings bytes for a driver that has ended.
        consoles.line.repeat("run hello-rust\r", HELLO)?;
        // Much more than the device brings at once.
        let typed: String = (0..40).map(|number| format!("echo {number} bottles\r")).collect();
        consoles.line.send(&typed)?;
        for number in 0..40 {
            consoles.line.expect(&format!("\n{number} bottles\r\n"))?;
        }
        // A key that comes before the program runs is for the shell, so it is pressed until one comes later.
        consoles.line.send("run crash loop\r")?;
        consoles.line.expect("run crash loop")?;
        consoles.line.repeat("\x03", "run: crash was killed")?;
        consoles.line.send("exit 3\r")?;
        consoles.line.expect("\"help\" lists")?;
        consoles.line.send("run hello-rust\r")?;
        consoles.line.expect(HELLO)?;
        let text = consoles.end()?;
        for expected in
            ["virtio-console (task", "drivers start again", "shell-2 (task", "ended with status 3"]
        {
            if !text.contains(expected) {
                return Err(format!("expected {expected:?}\n{text}").into());
            }
        }
        if text.contains("Hello")
            || text.contains("bottles")
            || text.contains("crashed")
            || text.contains("bus: device")
        {
            return Err(format!("the first console says what it should not\n{text}").into());
        }
    }
    Ok(())
}

/// The other side reads nothing of all that comes: the first shell works, and the second goes on. The emulator drops what its socket does not take.
fn a_side_that_does_not_read_holds_up_nobody(world: &'static World) -> Verdict {
    let mut consoles = Consoles::start(world, Kind::Pc)?;
    // Some 400 KiB come of that, which is more than a socket holds.
    consoles.line.send(&"help -l\r".repeat(100))?;
    consoles.first("run hello-rust", "Hello from Rust")?;
    consoles.first("ps", "virtio-console")?;
    consoles.line.repeat("run hello-rust\r", HELLO)?;
    consoles.end().map(drop)
}

/// Nobody says so: there is none, and what would sit there does not start.
fn without_a_virtio_console_there_is_no_second_shell(world: &'static World) -> Verdict {
    let entries = entries(world)?;
    for machine in ["pc", "microvm"] {
        let reply = world.script_with(&entries, &["--machine", machine], b"ps\nexit 0\n")?;
        reply.check_code(0)?;
        reply.check_contains("shell")?;
        if ["root:", "shell-2", "virtio-console"].iter().any(|text| reply.out.contains(text)) {
            return Err(reply.failed("something runs for which there is no device"));
        }
    }
    let socket = socket()?;
    let option = socket.display().to_string();
    let reply = world.script_with(&entries, &["--console", &option], b"ps\nrun devices\nexit 0\n")?;
    reply.check_code(0)?;
    reply.check_contains("shell-2")?;
    reply.check_contains("1af4:1043  078000")?;
    if socket.exists() { Err("the socket is still there".into()) } else { Ok(()) }
}

fn a_console_replaces_no_file(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let file = scratch.0.join("f");
    paths::write(&file, b"a file")?;
    let run =
        |path: &Path| world.tern(&["run", "--script", "-", "--console", &path.display().to_string()], b"");
    let reply = run(&file)?;
    reply.check_refusal(&[1])?;
    reply.check_error("is there, and is no socket")?;
    let reply = run(Path::new("/nosuch/socket"))?;
    reply.check_refusal(&[1])?;
    reply.check_error("in no directory")?;
    if fs::read(&file)? == b"a file" { Ok(()) } else { Err("the file has changed".into()) }
}
