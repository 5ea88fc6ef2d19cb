//! Connections that no client has: those at a listener that nobody has accepted, and those whose clients have gone.

use alloc::collections::VecDeque;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::IpListenEndpoint;

/// How long a connection that is begun keeps its place from others: longer than a segment is under way.
const BEGUN_PATIENCE: Duration = Duration::from_millis(500);

/// Connections without an owner, at most, and how long each has to end.
const ORPHANS_MAX: usize = 32;
/// See [`ORPHANS_MAX`].
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// Whether a port at an address is the same as another one. An address that is not said is all of them.
pub(crate) fn meets(one: IpListenEndpoint, other: IpListenEndpoint) -> bool {
    let is_apart = one.addr.zip(other.addr).is_some_and(|(one, other)| one != other);
    one.port == other.port && !is_apart
}

/// A place of a listener's queue.
pub(crate) struct Place {
    pub handle: SocketHandle,
    /// Since when its connection is begun, and not made.
    pub begun: Option<Instant>,
}

impl Place {
    /// Its socket.
    pub fn socket<'a>(&self, sockets: &'a SocketSet<'static>) -> &'a tcp::Socket<'static> {
        sockets.get(self.handle)
    }
}

/// Whether a listener has a place for another connection.
fn has_place(sockets: &SocketSet<'static>, queue: &[Place]) -> bool {
    queue.iter().any(|place| place.socket(sockets).state() == tcp::State::Listen)
}

/// Lets a listener's places that are free listen again. If there are none, the oldest connection that has been begun for long loses its place.
pub(crate) fn listen_again(
    now: Instant,
    sockets: &mut SocketSet<'static>,
    at: IpListenEndpoint,
    queue: &mut [Place],
) {
    for place in queue.iter_mut() {
        let socket = sockets.get_mut::<tcp::Socket>(place.handle);
        if !socket.is_open() {
            // It cannot fail: the port is one, and the socket is closed.
            let _ = socket.listen(at);
        }
        let is_begun = socket.state() == tcp::State::SynReceived;
        place.begun = is_begun.then(|| place.begun.unwrap_or(now));
    }
    if has_place(sockets, queue) {
        return;
    }
    let is_long = |place: &&mut Place| place.begun.is_some_and(|begun| begun + BEGUN_PATIENCE <= now);
    if let Some(place) = queue.iter_mut().filter(is_long).min_by_key(|place| place.begun) {
        let socket = sockets.get_mut::<tcp::Socket>(place.handle);
        socket.abort();
        let _ = socket.listen(at);
        place.begun = None;
    }
}

/// When a listener has something to do that frames do not bring.
pub(crate) fn listens_again_at(sockets: &SocketSet<'static>, queue: &[Place]) -> Option<Instant> {
    if has_place(sockets, queue) {
        return None;
    }
    queue.iter().filter_map(|place| place.begun).min().map(|begun| begun + BEGUN_PATIENCE)
}

/// A connection without an owner.
struct Orphan {
    handle: SocketHandle,
    /// Its last owner.
    owner: u64,
    until: Instant,
}

/// Connections without an owner, from the oldest on.
#[derive(Default)]
pub(crate) struct Orphans(VecDeque<Orphan>);

impl Orphans {
    /// A connection has no owner any more. What was written is still sent, for a while.
    pub fn add(&mut self, now: Instant, sockets: &mut SocketSet<'static>, owner: u64, handle: SocketHandle) {
        let socket = sockets.get_mut::<tcp::Socket>(handle);
        socket.close();
        if socket.state() == tcp::State::Closed {
            sockets.remove(handle);
            return;
        }
        self.0.push_back(Orphan { handle, owner, until: now + ORPHAN_PATIENCE });
        if self.0.len() > ORPHANS_MAX {
            let of = |owner| self.0.iter().filter(|orphan| orphan.owner == owner).count();
            let most = self.0.iter().map(|orphan| of(orphan.owner)).max();
            let oldest = self.0.iter().position(|orphan| Some(of(orphan.owner)) == most);
            if let Some(Orphan { handle, .. }) = oldest.and_then(|oldest| self.0.remove(oldest)) {
                sockets.remove(handle);
            }
        }
    }

    /// A connection that nobody has accepted, and nobody will: the other side hears so in the next turn.
    pub fn refuse(
        &mut self,
        now: Instant,
        sockets: &mut SocketSet<'static>,
        owner: u64,
        handle: SocketHandle,
    ) {
        sockets.get_mut::<tcp::Socket>(handle).abort();
        self.0.push_back(Orphan { handle, owner, until: now });
    }

    /// Lets go of those that have ended, or have had enough time.
    pub fn look_after(&mut self, now: Instant, sockets: &mut SocketSet<'static>) {
        self.0.retain(|orphan| {
            let socket = sockets.get_mut::<tcp::Socket>(orphan.handle);
            let is_over = matches!(socket.state(), tcp::State::Closed | tcp::State::TimeWait);
            if is_over || orphan.until <= now {
                sockets.remove(orphan.handle);
            }
            !is_over && orphan.until > now
        });
    }

    /// When the time of the next one is over.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|orphan| orphan.until).min()
    }

    /// Whether one has a port, at an address or at one of them at all. Those of `except` do not count.
    pub fn has(&self, sockets: &SocketSet<'static>, at: IpListenEndpoint, except: Option<u64>) -> bool {
        self.0.iter().filter(|orphan| Some(orphan.owner) != except).any(|orphan| {
            let local = sockets.get::<tcp::Socket>(orphan.handle).local_endpoint();
            local.is_some_and(|local| meets(local.into(), at))
        })
    }
}
