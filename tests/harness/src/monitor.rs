//! The emulator's command line, by which a trial stops a machine, looks at it, and takes devices away.

use crate::world::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::Context;
use xtask::machine::Machine;

/// Gives a machine a command line, at a socket in a scratch folder.
pub fn plug_in(machine: &mut Machine, scratch: &Scratch) -> PathBuf {
    let socket = scratch.0.join("monitor");
    let path = socket.display().to_string().replace(',', ",,");
    let chardev = format!("socket,id=monitor,path={path},server=on,wait=off");
    machine.extra.extend(["-chardev".into(), chardev, "-mon".into(), "chardev=monitor".into()]);
    socket
}

/// The emulator's own command line.
#[derive(Debug)]
pub struct Monitor(BufReader<UnixStream>);

impl Monitor {
    /// Connects to a machine that was [plugged in](plug_in) there and has started.
    pub fn connect(socket: &Path) -> xtask::Result<Monitor> {
        let stream = UnixStream::connect(socket).context(|| "connect to the monitor".into())?;
        let limit = stream.set_read_timeout(Some(Duration::from_secs(60)));
        limit.context(|| "limit the monitor's patience".into())?;
        let mut monitor = Monitor(BufReader::new(stream));
        monitor.answer()?;
        Ok(monitor)
    }

    /// Gives a command, and waits for what it says.
    pub fn ask(&mut self, command: &str) -> xtask::Result<String> {
        let line = format!("{command}\n");
        self.0.get_mut().write_all(line.as_bytes()).context(|| "write to the monitor".into())?;
        self.answer()
    }

    /// Everything up to the next prompt.
    fn answer(&mut self) -> xtask::Result<String> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"(qemu) ") {
            let read = self.0.read_until(b' ', &mut bytes).context(|| "read from the monitor".into())?;
            if read == 0 {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
    }
}
