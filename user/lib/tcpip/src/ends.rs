//! Ends of streams that are under way: segments with FIN that nobody has acknowledged yet.
//!
//! `smoltcp` 0.14 loses such an end when three acknowledgements come that do not acknowledge it. It takes them for a sign that bytes are lost, gives up the timer
//! by which the segment would be sent again, and then finds no bytes to send. So it does not get them: of acknowledgements of everything but the end
//! the first one passes, and the others say nothing new. The end is sent again when its time has come.

use crate::offload::Upper;
use alloc::collections::VecDeque;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpEndpoint, IpProtocol, TcpPacket, TcpSeqNumber};

/// Connections whose ends are under way, at most. The end of one that is too many has to arrive without help.
const ENDS_MAX: usize = 64;

/// How long an end is under way, at most: as long as the other side may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end of a stream.
#[derive(Debug)]
struct End {
    local: IpEndpoint,
    remote: IpEndpoint,
    /// Its number, behind all bytes, when it was sent.
    number: Option<TcpSeqNumber>,
    /// Whether the other side has said that it has all bytes.
    is_told: bool,
    until: Instant,
}

/// Ends of streams, from the oldest on.
#[derive(Debug, Default)]
pub(crate) struct Ends(VecDeque<End>);

/// A segment of TCP, and where it comes from and goes to.
fn segment(frame: &[u8]) -> Option<(IpEndpoint, IpEndpoint, TcpPacket<&[u8]>)> {
    let upper = Upper::of(frame).filter(|upper| upper.protocol == IpProtocol::Tcp)?;
    let segment = TcpPacket::new_checked(frame.get(upper.at)?).ok()?;
    let from = IpEndpoint::new(upper.from.into(), segment.src_port());
    Some((from, IpEndpoint::new(upper.to.into(), segment.dst_port()), segment))
}

impl Ends {
    /// The end of a stream from here to there is to be sent.
    pub fn add(&mut self, now: Instant, local: IpEndpoint, remote: IpEndpoint) {
        if self.0.iter().any(|end| end.local == local && end.remote == remote) {
            return;
        }
        if self.0.len() >= ENDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(End { local, remote, number: None, is_told: false, until: now + PATIENCE });
    }

    /// Forgets those that have had enough time.
    pub fn look_after(&mut self, now: Instant) {
        while self.0.front().is_some_and(|end| end.until <= now) {
            self.0.pop_front();
        }
    }

    /// Looks at a frame of the stack's.
    pub fn sent(&mut self, frame: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let Some((from, to, segment)) = segment(frame).filter(|(.., segment)| segment.fin()) else { return };
        if let Some(end) = self.0.iter_mut().find(|end| end.local == from && end.remote == to) {
            end.number = Some(segment.seq_number() + segment.payload().len());
        }
    }

    /// Whether a frame is an acknowledgement that the stack should not get.
    pub fn refuses(&mut self, frame: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Some((from, to, segment)) = segment(frame) else { return false };
        let Some(place) = self.0.iter().position(|end| end.local == to && end.remote == from) else {
            return false;
        };
        let end = &mut self.0[place];
        let Some(number) = end.number.filter(|_| segment.ack()) else { return false };
        if segment.ack_number() == number + 1 || segment.rst() {
            self.0.remove(place);
            return false;
        }
        let is_plain = segment.payload().is_empty() && !segment.fin() && !segment.syn();
        is_plain && segment.ack_number() == number && core::mem::replace(&mut end.is_told, true)
    }
}
