//! Machine at the other end of the emulated card's wire: the network server's own stack, on the host, and a wire as bad as somebody wants it.
//!
//! **The machine has no clock.** The guest tells it the time (`net-test clock`), and it says that back when it has done all that it could do at this moment. So
//! both have one clock, which is the guest's, and no test depends on how fast the host is.
//!
//! It takes bytes at [`TAKES`], gives them at [`GIVES`], and calls the guest at [`CALLED`] when it is told to, for an echo. All bytes that it takes are compared
//! with those that `nc` sends. At [`HOLDS`] it has connections of which nothing is said until it is told to, and at [`ECHOES`] it sends datagrams back. Who connects to
//! [`PAGES`] gets a page.
//!
//! On the same wire there is another machine with servers of addresses and names and a router ([`lan`]), if a trial has one. It answers at once, and needs no time.

use lan::Lan;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tcpip::sockets::Limits;
use tcpip::{Fallback, Id, Kind, Refusal, Stack, State, readiness};
use xtask::Context;
use xtask::machine::Machine;

/// Address of the machine, and of the guest.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// See [`ADDRESS`].
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// Address of the machine in its own network, whatever servers there are.
pub const LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x00ff, 0xfe00, 0x0101);

/// Port at which it hears the time.
pub const CLOCK: u16 = 123;
/// Ports at which it takes bytes and gives them, and the guest's that it calls.
pub const TAKES: u16 = 9;
/// See [`TAKES`].
pub const GIVES: u16 = 19;
/// See [`TAKES`].
pub const CALLED: u16 = 7;

/// Ports at which it holds connections, and sends datagrams back.
pub const HOLDS: u16 = 29;
/// See [`HOLDS`].
pub const ECHOES: u16 = 13;

/// Port at which it serves a page, and the page.
pub const PAGES: u16 = 80;
/// See [`PAGES`].
pub const PAGE: &str = "a page of the other machine\n";

/// Its hardware address.
const HARDWARE: [u8; 6] = [2, 0, 0, 0, 1, 1];

/// Pause before it calls again where nobody has listened, in microseconds.
const AGAIN_US: u64 = 1_000_000;

/// Longest time in which a stack gets the address that nobody else gives it, in microseconds; and a step on the way there.
const SETTLED_US: u64 = 20_000_000;
/// See [`SETTLED_US`].
const STEP_US: u64 = 10_000;

/// Bytes of the pieces in which `nc` sends.
const PIECE: usize = 4096;

/// The byte at a place of what `nc` sends, and of what this machine does.
fn byte(at: usize) -> u8 {
    b'a' + (at % PIECE % 26) as u8
}

/// Fate of segments of TCP: one in so many; 0 is none. Other frames arrive as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Badness {
    /// Is lost.
    pub losses: u64,
    /// Has a bit changed above IP.
    pub damages: u64,
    /// Comes twice.
    pub doubles: u64,
    /// Comes after the clock's next word.
    pub delays: u64,
}

/// Deeds of the machine so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Time that it was told, in nanoseconds of the guest.
    pub now_ns: u64,
    /// Segments of TCP that were on the wire, both ways.
    pub segments: u64,
    /// Segments of them that were lost or damaged.
    pub lost: u64,
    /// Bytes that it has taken, and those that it has given, of connections that are over.
    pub taken: u64,
    /// See [`Tally::taken`].
    pub given: u64,
    /// Bytes that have come back.
    pub echoed: u64,
    /// Connections that are over, and those of them that broke off before all bytes had gone.
    pub over: u64,
    /// See [`Tally::over`].
    pub broken: u64,
    /// Datagrams that it has sent back.
    pub datagrams: u64,
    /// Connections that it holds, and resets that have come from the guest for such.
    pub held: u64,
    /// See [`Tally::held`].
    pub resets: u64,
    /// It says something to those whom it holds.
    speaks: bool,
    /// Calls that it still has to make.
    calls: u64,
    /// First thing that went wrong.
    pub wrong: Option<String>,
}

/// The machine, as a trial has it. It ends with the emulator.
#[derive(Debug)]
pub struct Peer {
    socket: PathBuf,
    tally: Arc<Mutex<Tally>>,
    servers: Arc<Mutex<Servers>>,
}

/// Machine with servers, on the same wire.
#[derive(Debug, Default)]
struct Servers {
    lan: Option<Lan>,
    /// Frames that it sends without being asked, with the next ones of the guest's.
    unasked: Vec<Vec<u8>>,
}

impl Peer {
    /// Waits for an emulator at a socket that is made there. Each connection is as long as `bytes` says.
    pub fn listen(socket: &Path, badness: Badness, bytes: usize) -> xtask::Result<Peer> {
        Peer::with(socket, badness, bytes, Servers::default())
    }

    /// Does that beside a machine with servers.
    pub fn listen_beside(socket: &Path, lan: Lan) -> xtask::Result<Peer> {
        Peer::with(socket, Badness::default(), 0, Servers { lan: Some(lan), unasked: Vec::new() })
    }

    fn with(socket: &Path, badness: Badness, bytes: usize, servers: Servers) -> xtask::Result<Peer> {
        let servers = Arc::new(Mutex::new(servers));
        let others = servers.clone();
        let listener = UnixListener::bind(socket).context(|| format!("listen at {}", socket.display()))?;
        let tally = Arc::new(Mutex::new(Tally::default()));
        let own = tally.clone();
        thread::spawn(move || {
            let outcome = listener
                .accept()
                .map_err(|error| error.to_string())
                .and_then(|(stream, _)| Host::new(stream, badness, bytes, own.clone(), others))
                .and_then(Host::run);
            if let Err(why) = outcome {
                of(&own).wrong.get_or_insert(why);
            }
        });
        Ok(Peer { socket: socket.into(), tally, servers })
    }

    /// Does something with the machine with servers.
    pub fn lan<T>(&self, act: impl FnOnce(&mut Lan) -> T) -> T {
        act(of(&self.servers).lan.get_or_insert_default())
    }

    /// Lets its router advertise itself to all.
    pub fn advertise(&self) {
        self.say(self.lan(|lan| lan.router.advertisement()));
    }

    /// Sends a frame that nobody has asked for.
    pub fn say(&self, frame: Vec<u8>) {
        of(&self.servers).unasked.push(frame);
    }

    /// Plugs the other end of the wire in.
    pub fn plug_in(&self, machine: &mut Machine) {
        let path = self.socket.display().to_string().replace(',', ",,");
        let wire = format!("stream,id=net,server=off,addr.type=unix,addr.path={path}");
        let card = machine.virtio("virtio-net-pci,netdev=net");
        machine.extra.extend(["-netdev".into(), wire, "-device".into(), card]);
    }

    /// Asks for one more call.
    pub fn call(&self) {
        of(&self.tally).calls += 1;
    }

    /// Lets it say something by all connections that it holds.
    pub fn speak(&self) {
        of(&self.tally).speaks = true;
    }

    /// Deeds so far.
    pub fn tally(&self) -> Tally {
        of(&self.tally).clone()
    }
}

fn of<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wire. What becomes of a frame depends on how many there were before, and on nothing else.
struct Wire {
    badness: Badness,
    random: u64,
    /// Frames that are late: for the machine, and for the guest.
    late: [Vec<Vec<u8>>; 2],
}

/// Direction of a frame, and place in [`Wire::late`].
#[derive(Clone, Copy)]
enum Way {
    Here,
    ToGuest,
}

impl Wire {
    fn is_chosen(&mut self, one_in: u64) -> bool {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        one_in > 0 && (self.random >> 33).is_multiple_of(one_in)
    }

    /// Frames that arrive now when one is sent.
    fn pass(&mut self, way: Way, mut frame: Vec<u8>, tally: &mut Tally) -> Vec<Vec<u8>> {
        let is_segment = frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&6) && frame.len() > 54;
        if !is_segment {
            return vec![frame];
        }
        tally.segments += 1;
        let Badness { losses, damages, doubles, delays } = self.badness;
        if self.is_chosen(losses) {
            tally.lost += 1;
            return Vec::new();
        }
        if self.is_chosen(damages) {
            tally.lost += 1;
            let at = 34 + (self.random >> 40) as usize % (frame.len() - 34);
            frame[at] ^= 1 << (self.random >> 37 & 7);
        }
        if self.is_chosen(delays) {
            self.late[way as usize].push(frame);
            return Vec::new();
        }
        if self.is_chosen(doubles) { vec![frame.clone(), frame] } else { vec![frame] }
    }
}

/// A connection of the machine.
enum Talk {
    /// It takes bytes; so many have come.
    Takes(usize),
    /// It gives bytes; so many were written.
    Gives(usize),
    /// It has its bytes sent back: so many were written, and so many have come back.
    Echoes(usize, usize),
    /// It is held, and something was said.
    Holds(bool),
    /// It gets a page, or has got it.
    Pages(bool),
}

/// State of a connection after some work.
enum Step {
    GoesOn,
    Over,
    /// Nobody listens.
    Refused,
}

struct Host {
    stream: UnixStream,
    /// Bytes that have come from the emulator, and are no whole frame yet.
    received: VecDeque<u8>,
    wire: Wire,
    stack: Stack,
    now_us: u64,
    /// Time of the machine when the guest's begins.
    begun_us: u64,
    clock: Id,
    echo: Id,
    listeners: [Id; 4],
    talks: Vec<(Id, Talk)>,
    /// When it may call.
    calls_at_us: u64,
    bytes: usize,
    tally: Arc<Mutex<Tally>>,
    servers: Arc<Mutex<Servers>>,
}

impl Host {
    fn new(
        stream: UnixStream,
        badness: Badness,
        bytes: usize,
        tally: Arc<Mutex<Tally>>,
        servers: Arc<Mutex<Servers>>,
    ) -> Result<Host, String> {
        let fallback = Fallback { address: (ADDRESS, 24), router: None };
        let mut stack = Stack::new(0, [1; 32], Limits::default(), Some(fallback));
        stack.set_link(Some(HARDWARE));
        let mut now_us = 0;
        // Nobody gives it an address, and it does not wait for that.
        while now_us < SETTLED_US && (now_us == 0 || !stack.is_settled()) {
            now_us += STEP_US;
            stack.turn(now_us);
            while stack.pop().is_some() {}
        }
        let refused = |refusal: Refusal| format!("the machine at the other end: {refusal:?}");
        // All of its addresses: some guests know none of IPv4.
        let at = |port| SocketAddr::from(([0, 0, 0, 0], port));
        let clock = stack.open(0, Kind::Udp).map_err(refused)?;
        stack.bind(clock, at(CLOCK)).map_err(refused)?;
        let echo = stack.open(0, Kind::Udp).map_err(refused)?;
        stack.bind(echo, at(ECHOES)).map_err(refused)?;
        let mut listen = |port| stack.listen(0, at(port), 4).map_err(refused);
        let listeners = [listen(TAKES)?, listen(GIVES)?, listen(HOLDS)?, listen(PAGES)?];
        Ok(Host {
            stream,
            received: VecDeque::new(),
            wire: Wire { badness, random: 1, late: Default::default() },
            stack,
            now_us,
            begun_us: now_us,
            clock,
            echo,
            listeners,
            talks: Vec::new(),
            calls_at_us: 0,
            bytes,
            tally,
            servers,
        })
    }

    /// Works until the emulator ends.
    fn run(mut self) -> Result<(), String> {
        let mut chunk = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(len) => self.received.extend(&chunk[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(format!("read from the wire: {error}")),
            }
            while let Some(frame) = self.next_frame() {
                self.receive(frame)?;
            }
        }
    }

    /// The next frame from the emulator, which puts the length before each, in four bytes of which the first is the highest.
    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let length: Vec<u8> = self.received.iter().copied().take(4).collect();
        let len = u32::from_be_bytes(length.try_into().ok()?) as usize;
        if self.received.len() < 4 + len {
            return None;
        }
        self.received.drain(..4);
        Some(self.received.drain(..len).collect())
    }

    fn receive(&mut self, frame: Vec<u8>) -> Result<(), String> {
        if is_reset(&frame) {
            of(&self.tally).resets += 1;
        }
        self.serve(&frame)?;
        for frame in self.wire.pass(Way::Here, frame, &mut of(&self.tally)) {
            self.stack.push(&frame);
        }
        self.work()?;
        let mut word = [0; 8];
        while let Ok((from, 8)) = self.stack.receive_from(self.clock, &mut word) {
            self.hear_time(u64::from_le_bytes(word));
            for frame in std::mem::take(&mut self.wire.late[Way::Here as usize]) {
                self.stack.push(&frame);
            }
            self.work()?;
            for frame in std::mem::take(&mut self.wire.late[Way::ToGuest as usize]) {
                self.send(&frame)?;
            }
            // The last of all that is sent: when the guest has it, it has everything.
            let _ = self.stack.send_to(self.clock, from, &word);
            self.work()?;
        }
        Ok(())
    }

    /// Sends what the machine with servers says to a frame, and what it says unasked. What is for all is for this machine, too.
    fn serve(&mut self, frame: &[u8]) -> Result<(), String> {
        let mut servers = of(&self.servers);
        let mut frames = std::mem::take(&mut servers.unasked);
        frames.extend(servers.lan.as_mut().into_iter().flat_map(|lan| lan.answer(frame)));
        drop(servers);
        for frame in frames {
            if frame.first().is_some_and(|first| first & 1 != 0) {
                self.stack.push(&frame);
            }
            self.send(&frame)?;
        }
        Ok(())
    }

    fn hear_time(&mut self, now_ns: u64) {
        let mut tally = of(&self.tally);
        tally.now_ns = tally.now_ns.max(now_ns);
        self.now_us = self.now_us.max(self.begun_us + now_ns / 1000);
    }

    /// Does all that can be done at this moment.
    fn work(&mut self) -> Result<(), String> {
        loop {
            self.stack.turn(self.now_us);
            self.talk();
            self.stack.turn(self.now_us);
            let mut has_sent = false;
            while let Some(frame) = self.stack.pop() {
                has_sent = true;
                let frames = self.wire.pass(Way::ToGuest, frame, &mut of(&self.tally));
                frames.iter().try_for_each(|frame| self.send(frame))?;
            }
            if !has_sent {
                return Ok(());
            }
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), String> {
        let all = [&(frame.len() as u32).to_be_bytes(), frame].concat();
        match self.stream.write_all(&all) {
            // The emulator has ended, which the next read will say.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            outcome => outcome.map_err(|error| format!("write to the wire: {error}")),
        }
    }

    /// Lets all connections go on, and begins new ones.
    fn talk(&mut self) {
        let mut datagram = [0; PIECE];
        while let Ok((from, len)) = self.stack.receive_from(self.echo, &mut datagram) {
            let is_sent = self.stack.send_to(self.echo, from, &datagram[..len]).is_ok();
            of(&self.tally).datagrams += u64::from(is_sent);
        }
        let begin = [Talk::Takes(0), Talk::Gives(0), Talk::Holds(false), Talk::Pages(false)];
        for (listener, talk) in self.listeners.into_iter().zip(begin) {
            if let Ok(id) = self.stack.accept(listener) {
                of(&self.tally).held += u64::from(matches!(talk, Talk::Holds(_)));
                self.talks.push((id, talk));
            }
        }
        let is_called = self.talks.iter().any(|(_, talk)| matches!(talk, Talk::Echoes(..)));
        if of(&self.tally).calls > 0 && !is_called && self.calls_at_us <= self.now_us {
            self.calls_at_us = self.now_us + AGAIN_US;
            if let Ok(id) = self.stack.open(0, Kind::Tcp) {
                match self.stack.connect(id, SocketAddr::from((GUEST, CALLED))) {
                    Ok(()) => self.talks.push((id, Talk::Echoes(0, 0))),
                    Err(_) => self.stack.close(id),
                }
            }
        }
        let mut talks = std::mem::take(&mut self.talks);
        talks.retain_mut(|(id, talk)| {
            let step = self.step(*id, talk);
            if let Step::GoesOn = step {
                return true;
            }
            self.stack.close(*id);
            if let Step::Over = step {
                self.count(talk);
            }
            false
        });
        self.talks.append(&mut talks);
    }

    /// Lets a connection go on as far as it can at this moment.
    fn step(&mut self, id: Id, talk: &mut Talk) -> Step {
        match self.stack.state(id) {
            Ok((State::Connecting, _)) => return Step::GoesOn,
            Ok((State::Closed, _)) | Err(Refusal::Silent) if matches!(talk, Talk::Echoes(0, 0)) => {
                return Step::Refused;
            }
            _ => {}
        }
        if let Talk::Holds(has_spoken) = talk
            && !*has_spoken
            && of(&self.tally).speaks
        {
            *has_spoken = self.stack.write(id, b"are you there").is_ok();
        }
        if let Talk::Gives(written) | Talk::Echoes(written, _) = talk {
            while *written < self.bytes {
                let piece: Vec<u8> = (*written..self.bytes.min(*written + PIECE)).map(byte).collect();
                match self.stack.write(id, &piece) {
                    Ok(len) => *written += len,
                    Err(_) => break,
                }
            }
            if *written == self.bytes {
                let _ = self.stack.shutdown(id);
            }
        }
        let mut bytes = [0; PIECE];
        loop {
            if let Talk::Pages(is_written @ false) = talk
                && self.stack.ready(id).is_ok_and(|ready| ready & readiness::READABLE != 0)
            {
                // Anything that was asked for.
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PAGE.len());
                *is_written = self.stack.write(id, format!("{head}{PAGE}").as_bytes()).is_ok();
                let _ = self.stack.shutdown(id);
            }
            let len = match self.stack.read(id, &mut bytes) {
                Ok(0) => return Step::Over,
                Ok(len) => len,
                Err(Refusal::Again) => return Step::GoesOn,
                Err(_) => return Step::Over,
            };
            let come = match talk {
                Talk::Takes(come) | Talk::Echoes(_, come) => come,
                Talk::Gives(_) | Talk::Holds(_) | Talk::Pages(_) => continue,
            };
            if bytes[..len].iter().enumerate().any(|(at, &has)| has != byte(*come + at)) {
                of(&self.tally).wrong.get_or_insert(format!("other bytes came, from {come} on"));
            }
            *come += len;
        }
    }

    /// Counts a connection that is over.
    fn count(&mut self, talk: &Talk) {
        let all = self.bytes;
        let mut tally = of(&self.tally);
        let come = match *talk {
            Talk::Takes(come) => {
                tally.taken += come as u64;
                come
            }
            Talk::Gives(written) => {
                tally.given += written as u64;
                written
            }
            Talk::Echoes(_, come) => {
                tally.echoed += come as u64;
                tally.calls = tally.calls.saturating_sub(1);
                come
            }
            Talk::Holds(_) | Talk::Pages(_) => return,
        };
        tally.over += 1;
        tally.broken += u64::from(come != all);
    }
}

/// Whether a frame is a reset of a connection that the machine holds.
fn is_reset(frame: &[u8]) -> bool {
    let is_segment = frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&6);
    // The header of IP has no options here: ports follow it, and the flags of TCP 13 bytes behind their first.
    is_segment
        && frame.get(36..38) == Some(&HOLDS.to_be_bytes())
        && frame.get(47).is_some_and(|flags| flags & 4 != 0)
}
