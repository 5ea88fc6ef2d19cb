//! Messages of servers that lease addresses (DHCP), before the stack gets them.
//!
//! `smoltcp` 0.14 looks at the number of a message, and at little else. A lease of no time is over when it begins, and one that is to be renewed at once is asked for as
//! fast as the server answers; a server whose datagrams come from no address ends the program when the lease is renewed; and of the address it only matters that it is
//! not one of a few that no machine has. So a message that is for this machine is judged here, and one that is refused says why.

use crate::frames;
use alloc::fmt;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddr};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, IpProtocol,
    Ipv4Packet, UdpPacket,
};

/// Ports of servers and of clients.
const SERVER_PORT: u16 = 67;
/// See [`SERVER_PORT`].
const CLIENT_PORT: u16 = 68;

/// Seconds of a lease, at least, and before it is renewed. Each renewal is two packets.
const TIME_MIN: u32 = 10;
/// See [`TIME_MIN`].
const RENEWAL_MIN: u32 = 5;

/// Bits of a network's prefix, at least: networks that are larger have been given to nobody.
const PREFIX_MIN: u32 = 8;

/// Time between two questions who has an address: a server that refuses what it offers would be asked as fast as it answers. The stack asks again later by itself.
const PAUSE: Duration = Duration::from_secs(5);

/// Time between two complaints.
const SILENCE: Duration = Duration::from_secs(10);

/// Reason why a server's message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no message.
    Garbled,
    /// It does not say which server it is from, or that is no address of a machine.
    Unnamed,
    /// It is from another server than the one that was asked.
    Foreign,
    /// No machine can have the address.
    Address,
    /// There is no such network, or none is named.
    Mask,
    /// It has no time, or too little.
    Time,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Fault::Garbled => "the message makes no sense",
            Fault::Unnamed => "no server is named",
            Fault::Foreign => "another server was asked",
            Fault::Address => "no machine can have that address",
            Fault::Mask => "there is no such network",
            Fault::Time => "it has too little time",
        })
    }
}

/// A message that was refused: the server that it says it is from, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Address that the message came from.
    pub server: Ipv4Addr,
    /// Reason.
    pub fault: Fault,
}

/// Question that was asked last.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u32,
    hardware: [u8; 6],
    /// Server that it was for; any, if it was for all.
    server: Option<Ipv4Addr>,
}

/// Exchange with servers.
#[derive(Debug)]
pub(crate) struct Leases {
    now: Instant,
    asked: Option<Asked>,
    /// Server that has said yes.
    leased_by: Option<Ipv4Addr>,
    /// When it may be asked who has an address.
    asks_at: Instant,
    complaint: Option<Complaint>,
    /// When there may be another complaint.
    complains_at: Instant,
}

/// Message in a frame from a port to a port, and the addresses that it comes from and goes to.
fn message(frame: &[u8], from: u16, to: u16) -> Option<([Ipv4Addr; 2], &[u8])> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let packet = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    if packet.next_header() != IpProtocol::Udp {
        return None;
    }
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    let is_one = datagram.src_port() == from && datagram.dst_port() == to;
    is_one.then(|| ([packet.src_addr(), packet.dst_addr()], datagram.payload()))
}

/// Whether a machine can have an address, as far as that can be said without its network.
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    (1..224).contains(&first) && first != 127
}

/// Bits of the prefix that a mask means.
fn prefix_of(mask: Ipv4Addr) -> Option<u32> {
    let (ones, zeroes) = (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros());
    (ones + zeroes == u32::BITS && ones >= PREFIX_MIN).then_some(ones)
}

/// Looks for what is wrong with a lease, or with an offer of one.
fn judge(said: &DhcpRepr) -> Result<(), Fault> {
    let is_offer = said.message_type == DhcpMessageType::Offer;
    if !is_host(said.your_ip) {
        return Err(Fault::Address);
    }
    match said.subnet_mask {
        // It is asked for what is offered, and that has to have one.
        None if is_offer => {}
        None => return Err(Fault::Mask),
        Some(mask) => {
            let len = prefix_of(mask).ok_or(Fault::Mask)?;
            let host = said.your_ip.to_bits() & !mask.to_bits();
            // The first address is the network's, the last one is for all. Networks of two have neither.
            if len < 31 && (host == 0 || host == !mask.to_bits()) {
                return Err(Fault::Address);
            }
        }
    }
    let is_long = |time: Option<u32>| time.is_none_or(|time| time >= RENEWAL_MIN);
    let lasts = said.lease_duration.is_some_and(|time| time >= TIME_MIN);
    if lasts && is_long(said.renew_duration) && is_long(said.rebind_duration) {
        Ok(())
    } else {
        Err(Fault::Time)
    }
}

impl Default for Leases {
    fn default() -> Leases {
        let now = Instant::ZERO;
        Leases { now, asked: None, leased_by: None, asks_at: now, complaint: None, complains_at: now }
    }
}

impl Leases {
    /// Says what time it is.
    pub fn begin(&mut self, now: Instant) {
        self.now = now;
    }

    /// Looks at a frame of the stack's. False if it should not leave.
    pub fn sends(&mut self, frame: &[u8]) -> bool {
        let Some(([_, to], message)) = message(frame, CLIENT_PORT, SERVER_PORT) else { return true };
        let Ok(packet) = DhcpPacket::new_checked(message) else { return true };
        let Ok(said) = DhcpRepr::parse(&packet) else { return true };
        let asks_all = said.message_type == DhcpMessageType::Discover;
        if asks_all && self.now < self.asks_at {
            return false;
        }
        if asks_all {
            self.asks_at = self.now + PAUSE;
        }
        self.asked = Some(Asked {
            number: said.transaction_id,
            hardware: said.client_hardware_address.0,
            // A renewal names nobody, and goes to who has leased; near the end it goes to all.
            server: said.server_identifier.or(self.leased_by.filter(|_| !to.is_broadcast())),
        });
        true
    }

    /// Whether a frame of the card's should not reach the stack.
    pub fn refuses(&mut self, frame: &[u8]) -> bool {
        let Some(([from, _], message)) = message(frame, SERVER_PORT, CLIENT_PORT) else { return false };
        let Some(asked) = self.asked else { return true };
        let Ok(packet) = DhcpPacket::new_checked(message) else {
            // Too short to say whom it is for.
            self.complain(from, Fault::Garbled);
            return true;
        };
        if packet.transaction_id() != asked.number || packet.client_hardware_address().0 != asked.hardware {
            // Others may ask, too.
            return true;
        }
        let outcome = self.judged(from, &asked, &packet);
        if let Err(fault) = outcome {
            self.complain(from, fault);
        }
        outcome.is_err()
    }

    fn judged(&mut self, from: Ipv4Addr, asked: &Asked, packet: &DhcpPacket<&[u8]>) -> Result<(), Fault> {
        let said = DhcpRepr::parse(packet).map_err(|_| Fault::Garbled)?;
        // Renewals go to where the message comes from.
        let server = said.server_identifier.filter(|server| is_host(*server) && is_host(from));
        let server = server.ok_or(Fault::Unnamed)?;
        let decides = matches!(said.message_type, DhcpMessageType::Ack | DhcpMessageType::Nak);
        if decides && asked.server.is_some_and(|asked| asked != server) {
            return Err(Fault::Foreign);
        }
        match said.message_type {
            DhcpMessageType::Offer => judge(&said),
            DhcpMessageType::Ack => judge(&said).map(|()| self.leased_by = Some(server)),
            DhcpMessageType::Nak => Ok(()),
            // Servers send nothing else.
            _ => Err(Fault::Garbled),
        }
    }

    /// A message to a server that somebody else has the address that it has leased. Nobody is asked for another one for a while.
    pub fn declined(&mut self, own: EthernetAddress, address: Ipv4Addr, server: Ipv4Addr) -> Option<Vec<u8>> {
        self.asks_at = self.now + PAUSE;
        let nobody = Ipv4Addr::UNSPECIFIED;
        let said = DhcpRepr {
            message_type: DhcpMessageType::Decline,
            transaction_id: self.asked?.number,
            secs: 0,
            client_hardware_address: own,
            client_ip: nobody,
            your_ip: nobody,
            server_ip: nobody,
            router: None,
            subnet_mask: None,
            relay_agent_ip: nobody,
            broadcast: false,
            requested_ip: Some(address),
            client_identifier: Some(own),
            server_identifier: Some(server),
            parameter_request_list: None,
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        let mut bytes = vec![0; said.buffer_len()];
        said.emit(&mut DhcpPacket::new_unchecked(&mut bytes)).ok()?;
        let from = SocketAddr::from((nobody, CLIENT_PORT));
        let to = SocketAddr::from((Ipv4Addr::BROADCAST, SERVER_PORT));
        frames::datagram([own, EthernetAddress::BROADCAST], from, to, &bytes)
    }

    fn complain(&mut self, server: Ipv4Addr, fault: Fault) {
        if self.complains_at <= self.now {
            self.complains_at = self.now + SILENCE;
            self.complaint = Some(Complaint { server, fault });
        }
    }

    /// The next complaint.
    pub fn complaint(&mut self) -> Option<Complaint> {
        self.complaint.take()
    }
}
