//! Frames on their way. The stack has one interface; what it sends to itself comes back here, and only the rest goes to the card.
//!
//! **Nothing of 127.0.0.0/8 or ::1 leaves the machine or comes into it**, nor of addresses of IPv6 that stand for those of IPv4, whatever the stack thinks: [`is_martian`] is asked both ways. And nothing
//! comes from the card that says it is from an address of this machine, or has one: the stack would believe it, and send there what is for itself.

use crate::claims::{self, Claims};
use crate::ends::Ends;
use crate::frames::{self, v4_at, v6_at};
use crate::held::{Held, Passage};
use crate::leases::Leases;
use crate::names::Names;
use crate::neighbours::{Neighbours, told};
use crate::offload;
use crate::refusals::Refusals;
use crate::secrets::begins;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::{NonZeroU16, NonZeroUsize};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpEndpoint, IpListenEndpoint, NdiscRepr};

/// Bytes of a frame, at most: the header of Ethernet and 1,500 bytes.
pub const FRAME_MAX: usize = 1514;

/// Hardware address while there has been no card: one that nobody else has, by its second bit.
pub const NO_CARD: [u8; 6] = [2, 0, 0, 0, 0, 0];

/// Bytes of Ethernet's header.
pub(crate) const HEADER: usize = 14;

/// Frames in each queue, at most. What comes when a queue is full is lost, as on any network.
const QUEUE_MAX: usize = 64;

/// Frames that wait for a card, at most: more than one turn makes of all that it takes. A card that receives and does not send costs no more memory.
const OUTGOING_MAX: usize = 1024;

/// Frames that are received in one turn of the stack, at most, so that a turn ends.
const TURN_MAX: usize = 128;

/// Kinds of frames.
pub(crate) const ARP: [u8; 2] = [0x08, 0x06];
/// See [`ARP`].
pub(crate) const IPV4: [u8; 2] = [0x08, 0x00];
/// See [`ARP`].
pub(crate) const IPV6: [u8; 2] = [0x86, 0xdd];

/// Number of ICMP for IPv6, and of its messages about neighbours that name an address.
pub(crate) const ICMPV6: u8 = 58;
/// See [`ICMPV6`].
pub(crate) const NEIGHBOURS: [u8; 2] = [135, 136];

/// Address of all routers of a network, and their hardware address for that.
const ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// See [`ROUTERS`].
const ROUTERS_HARDWARE: EthernetAddress = EthernetAddress([0x33, 0x33, 0, 0, 0, 2]);

const LOCALHOST_V6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// First bytes of addresses of IPv6 that stand for those of IPv4. Programs write one as the other; whoever sends a packet with one means to be taken for somebody else.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Says whether a frame names an address that is on no wire, as far as a frame of its kind can: one of the loopback network, or one of IPv6 that stands for one of IPv4.
pub fn is_martian(frame: &[u8]) -> bool {
    let Some(kind) = frame.get(12..HEADER) else { return false };
    let is_v4 = |at: usize| frame.get(HEADER + at) == Some(&127);
    let is_v6 = |at: usize| {
        let address = frame.get(HEADER + at..HEADER + at + 16);
        address.is_some_and(|address| address == LOCALHOST_V6 || address.starts_with(&MAPPED))
    };
    if kind == ARP {
        // Addresses of the sender and of whom it asks for.
        is_v4(14) || is_v4(24)
    } else if kind == IPV4 {
        is_v4(12) || is_v4(16)
    } else if kind == IPV6 {
        let is_about_neighbour = frame.get(HEADER + 6) == Some(&ICMPV6)
            && frame.get(HEADER + 40).is_some_and(|message| NEIGHBOURS.contains(message));
        is_v6(8) || is_v6(24) || is_about_neighbour && is_v6(48)
    } else {
        false
    }
}

/// Address that a frame comes from, or says that its sender has.
fn claimed(frame: &[u8]) -> [Option<IpAddr>; 2] {
    let Some(kind) = frame.get(12..HEADER) else { return [None; 2] };
    if kind == ARP {
        [v4_at(frame, HEADER + 14), None]
    } else if kind == IPV4 {
        [v4_at(frame, HEADER + 12), None]
    } else if kind == IPV6 {
        let is_advert =
            frame.get(HEADER + 6) == Some(&ICMPV6) && frame.get(HEADER + 40) == Some(&NEIGHBOURS[1]);
        [v6_at(frame, HEADER + 8), v6_at(frame, HEADER + 48).filter(|_| is_advert)]
    } else {
        [None; 2]
    }
}

/// Frames between the stack and the card.
#[derive(Debug, Default)]
pub struct Wire {
    /// Hardware address of this machine.
    own: [u8; 6],
    is_up: bool,
    /// Addresses of this machine.
    addresses: Vec<IpAddr>,
    /// Addresses and ports at which somebody listens.
    listened: Vec<IpListenEndpoint>,
    incoming: VecDeque<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
    looped: VecDeque<Vec<u8>>,
    /// Frames that begin connections where somebody listens, and the ends of these.
    begun: Vec<(Vec<u8>, [IpEndpoint; 2])>,
    /// Those of them that the stack is to get after all.
    returned: VecDeque<Vec<u8>>,
    /// Ends of streams that are under way.
    pub(crate) ends: Ends,
    /// Datagrams that may be for several sockets.
    pub(crate) held: Held,
    /// Datagrams that were refused, or dropped since nobody answers where they were to go.
    pub(crate) refusals: Refusals,
    /// Neighbours that are asked for, and those that do not answer.
    pub(crate) neighbours: Neighbours,
    /// Exchange with servers that lease addresses.
    pub(crate) leases: Leases,
    /// Addresses that this machine wants.
    pub(crate) claims: Claims,
    /// Questions for names that are under way.
    pub(crate) names: Names,
    /// Frames that may still be received in this turn.
    budget: usize,
    /// Frames that were received from the card and sent to it, and those that were lost for lack of room.
    pub counts: Counts,
}

/// Numbers of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// From the card.
    pub received: u64,
    /// To the card.
    pub sent: u64,
    /// Lost, or refused.
    pub dropped: u64,
}

impl Wire {
    /// Begins a turn.
    pub fn begin(&mut self, now: Instant) {
        self.budget = TURN_MAX;
        self.ends.look_after(now);
        self.neighbours.begin(now);
    }

    /// Says where somebody listens. Segments that begin connections there are held back.
    pub fn set_listened(&mut self, listened: Vec<IpListenEndpoint>) {
        self.listened = listened;
    }

    /// Sets the hardware address, and whether there is a card. What was on its way to it waits until the card comes back, unless it is another.
    pub fn set(&mut self, own: [u8; 6], is_up: bool) {
        if self.own != own {
            self.outgoing.clear();
            self.leases = Leases::default();
            self.claims = Claims::default();
        }
        (self.own, self.is_up) = (own, is_up);
        self.incoming.clear();
    }

    /// Sets the addresses of this machine.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.addresses = addresses;
    }

    fn claims_own(&self, frame: &[u8]) -> bool {
        claimed(frame).into_iter().flatten().any(|address| self.addresses.contains(&address))
    }

    /// Whether there is something that the stack has not seen.
    pub fn has_more(&self) -> bool {
        let has_frames = !self.looped.is_empty() || !self.incoming.is_empty() || !self.returned.is_empty();
        has_frames || self.refusals.has_some() || self.neighbours.has_untold()
    }

    /// Says whether the stack may send something.
    pub(crate) fn takes_more(&self) -> bool {
        let has_room = !self.is_up || self.outgoing.len() < QUEUE_MAX;
        has_room && self.looped.len() < QUEUE_MAX
    }

    /// Whether the card has so much to send that it takes nothing more.
    pub fn is_choked(&self) -> bool {
        self.outgoing.len() >= QUEUE_MAX
    }

    /// Tells the stack that it has an address itself, as if it had asked: it asks for one neighbour in a second, so asking for itself would make others wait.
    pub fn introduce(&mut self, address: IpAddr) {
        let own = EthernetAddress(self.own);
        self.looped.push_back(told(own, own, address));
    }

    /// Asks all routers to advertise themselves, from this address; from none, if it is none.
    pub fn solicit(&mut self, from: Ipv6Addr) {
        let own = EthernetAddress(self.own);
        let lladdr = (!from.is_unspecified()).then(|| own.into());
        let asked = frames::message(NdiscRepr::RouterSolicit { lladdr });
        self.leave(frames::about_network([own, ROUTERS_HARDWARE], from, ROUTERS, &asked));
    }

    /// Asks for neighbours, as far as that is due.
    pub fn ask(&mut self) {
        for question in self.neighbours.turn() {
            self.put_question(question);
        }
    }

    /// Sends a question for a neighbour, if there has ever been a card.
    fn put_question(&mut self, question: Vec<u8>) {
        if self.own != NO_CARD && !is_martian(&question) {
            self.leave(question);
        }
    }

    /// Asks for addresses before they are used, as far as that is due.
    pub fn claim(&mut self, now: Instant) {
        for question in self.claims.turn(now, EthernetAddress(self.own)) {
            self.leave(question);
        }
    }

    /// Tells a server that the address that it has leased is somebody's.
    pub fn decline(&mut self, address: Ipv4Addr, server: Ipv4Addr) {
        if let Some(frame) = self.leases.declined(EthernetAddress(self.own), address, server) {
            self.leave(frame);
        }
    }

    /// Takes a frame from the card. Says whether the stack gets it.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        let is_whole = (HEADER..=FRAME_MAX).contains(&frame.len());
        let own = EthernetAddress(self.own);
        if is_whole
            && self.is_up
            && let Some(asked) = self.claims.hears(frame, own)
        {
            self.leave(claims::answer(own, &asked));
        }
        let is_wanted = is_whole && !is_martian(frame) && !self.claims_own(frame);
        let is_taken = is_wanted
            && self.is_up
            && self.incoming.len() < QUEUE_MAX
            && offload::is_sound(frame)
            && !self.leases.refuses(frame);
        if is_taken && self.names.refuses(frame) {
            self.counts.received += 1;
            return false;
        }
        if is_taken {
            self.counts.received += 1;
            if self.neighbours.awaits() {
                claimed(frame).into_iter().flatten().for_each(|address| self.neighbours.heard(address));
            }
            if let Some(told) = self.neighbours.hears(frame, own, &self.addresses) {
                self.hand_in(told);
            }
            self.incoming.push_back(frame.into());
        } else {
            self.counts.dropped += 1;
        }
        is_taken
    }

    /// Whether there is room for another frame from the card.
    pub fn has_room(&self) -> bool {
        self.incoming.len() < QUEUE_MAX
    }

    /// The next frame for the card.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        if self.is_up { self.outgoing.pop_front() } else { None }
    }

    /// Whether somebody listens there.
    fn listens(&self, at: IpEndpoint) -> bool {
        let has = |own: &IpListenEndpoint| own.port == at.port && own.addr.is_none_or(|addr| addr == at.addr);
        self.listened.iter().any(has)
    }

    /// Sends a frame of the stack's to where it belongs. A segment that the card is to cut has pieces of this size, and a datagram to a group goes as it says.
    fn send(&mut self, mut frame: Vec<u8>, size: Option<NonZeroU16>, passage: Option<Passage>) {
        let Some(&[first, ..]) = frame.first_chunk::<6>() else { return };
        let is_for_many = first & 1 != 0;
        if is_for_many && !self.neighbours.passes(&frame) {
            return;
        }
        let note = if is_for_many { Passage::take_note(&mut frame, &self.addresses) } else { None };
        let passage = passage.or(note);
        if let Some(passage) = passage {
            frames::set_hops(&mut frame, passage.hops);
        }
        self.ends.sent(&frame);
        if Neighbours::is_for_nobody(&frame) && frame[..6] != self.own {
            return self.lose(&frame);
        }
        let stays = (frame[..6] == self.own || is_for_many) && passage.is_none_or(|passage| passage.loops);
        let goes = frame[..6] != self.own && passage.is_none_or(|passage| passage.hops > 0);
        let leaves = self.own != NO_CARD && goes && !is_martian(&frame);
        match (leaves, stays) {
            (true, true) => {
                self.loop_back(frame.clone());
                self.leave(frame);
            }
            (true, false) => match size {
                Some(size) => offload::cut(frame, size, |piece| self.leave(piece)),
                None => self.leave(frame),
            },
            (false, true) => self.loop_back(frame),
            (false, false) => {}
        }
    }

    /// Drops a frame for a neighbour that does not answer. It is asked for again, and who has sent the frame may be told.
    fn lose(&mut self, frame: &[u8]) {
        self.counts.dropped += 1;
        self.refusals.lose(frame);
        if let Some(question) = self.neighbours.again(frame) {
            self.put_question(question);
        }
    }

    /// Sends a frame to the card.
    fn leave(&mut self, mut frame: Vec<u8>) {
        let has_room = self.outgoing.len() < if self.is_up { OUTGOING_MAX } else { QUEUE_MAX };
        if has_room && frame.len() <= FRAME_MAX && self.leases.sends(&frame) {
            offload::fill(&mut frame);
            self.names.sent(&frame);
            self.counts.sent += 1;
            self.outgoing.push_back(frame);
        } else {
            self.counts.dropped += 1;
        }
    }

    /// Hardware address of this machine.
    pub fn own(&self) -> [u8; 6] {
        self.own
    }

    /// Frames that begin connections where somebody listens.
    pub(crate) fn take_begun(&mut self) -> Vec<(Vec<u8>, [IpEndpoint; 2])> {
        core::mem::take(&mut self.begun)
    }

    /// Gives the stack one of these.
    pub(crate) fn give_back(&mut self, frame: Vec<u8>) {
        self.returned.push_back(frame);
    }

    /// Holds back a frame that begins a connection where somebody listens. If it is none, the stack is to get it.
    fn hold(&mut self, frame: Vec<u8>) -> Option<Vec<u8>> {
        if self.listened.is_empty() {
            return Some(frame);
        }
        match begins(&frame).filter(|[_, to]| self.listens(*to)) {
            Some(ends) => {
                self.begun.push((frame, ends));
                None
            }
            None => Some(frame),
        }
    }

    /// Gives the stack a frame that nobody has sent.
    pub fn hand_in(&mut self, frame: Vec<u8>) {
        self.looped.push_back(frame);
    }

    /// Sends a frame to the stack itself.
    fn loop_back(&mut self, frame: Vec<u8>) {
        if self.looped.len() < QUEUE_MAX {
            self.looped.push_back(frame);
        } else {
            self.counts.dropped += 1;
        }
    }
}

/// A frame that is received.
#[derive(Debug)]
pub struct Received(Vec<u8>);

impl Received {
    pub(crate) fn new(frame: Vec<u8>) -> Received {
        Received(frame)
    }
}

/// A place for a frame that is sent.
#[derive(Debug)]
pub struct Sent<'a> {
    wire: &'a mut Wire,
    /// Bytes of a piece, if it is a segment that the card is to cut.
    size: Option<NonZeroU16>,
    /// How it goes, if it is a datagram to a group.
    passage: Option<Passage>,
}

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut frame = vec![0; len];
        let result = fill(&mut frame);
        self.wire.send(frame, self.size, self.passage);
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.size = meta.segmentation_offload_size;
        self.passage = Passage::of(meta.id);
    }
}

/// Capabilities of the device: work that the stack may leave to it.
pub(crate) fn capabilities() -> DeviceCapabilities {
    let mut capabilities = DeviceCapabilities::default();
    capabilities.medium = Medium::Ethernet;
    capabilities.max_transmission_unit = FRAME_MAX;
    capabilities.checksum.tcp = Checksum::None;
    capabilities.checksum.udp = Checksum::None;
    // The crate knows that for IPv4 alone.
    capabilities.segmentation.tcpv4 = NonZeroUsize::new(offload::WHOLE_MAX);
    capabilities
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        let frame = loop {
            self.budget = self.budget.checked_sub(1)?;
            if let Some(frame) = self.returned.pop_front() {
                break frame;
            }
            let frame = self.looped.pop_front().or_else(|| self.incoming.pop_front())?;
            self.refusals.hear(&frame);
            if !self.ends.refuses(&frame)
                && let Some(frame) = self.hold(frame)
                && let Some(frame) = self.held.hold(frame)
            {
                break frame;
            }
        };
        Some((Received(frame), Sent { wire: self, size: None, passage: None }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        // Answers to a frame are sent all the same; so there may be a few more.
        self.takes_more().then_some(Sent { wire: self, size: None, passage: None })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities()
    }
}
