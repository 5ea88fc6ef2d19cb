//! A server of addresses (DHCP).

use crate::ADDRESS;
use crate::frames::{Datagram, datagram};
use core::net::{IpAddr, Ipv4Addr};
use smoltcp::wire::{DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress};

/// Port of the server.
pub const PORT: u16 = 67;

/// Port of its clients.
const CLIENT_PORT: u16 = 68;

/// Numbers of options: time of the lease, kind of the message.
const TIME: u8 = 51;
/// See [`TIME`].
const KIND: u8 = 53;

/// Options that say after how many seconds a lease is renewed, here and at all servers.
const AT_ONCE: [DhcpOption; 2] =
    [DhcpOption { kind: 58, data: &[0; 4] }, DhcpOption { kind: 59, data: &[0, 0, 0, 1] }];

/// First byte of options in a message.
const OPTIONS: usize = 240;

/// Server that is not there.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 66);

/// Manner of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// It answers nobody.
    #[default]
    Silent,
    /// It leases, as it should.
    Honest,
    /// It offers, and then says no to who asks for what it has offered.
    Refuses,
    /// Leases have no time.
    NoTime,
    /// Leases are to be renewed at once, and again at once.
    AtOnce,
    /// It leases the address that is for all of the network.
    ForAll,
    /// It leases the address that is for all of every network.
    Everybody,
    /// Messages say that they come from no address.
    FromNowhere,
    /// Another server says yes to what this one has offered.
    Foreign,
    /// Another server says no to what this one has offered, before this one says yes.
    ForeignRefusal,
    /// No server is named.
    Unnamed,
    /// Lengths of options lead out of the message.
    LongOptions,
    /// Options are shorter than what they are for.
    ShortOptions,
    /// The mask has a hole.
    Hole,
    /// The mask makes all addresses those of this network.
    NoMask,
    /// The message ends before its options.
    Cut,
    /// It leases the address again that a client has found to be somebody else's.
    Stubborn,
}

impl Manner {
    /// Manners that give nobody an address.
    pub const HOSTILE: [Manner; 13] = [
        Manner::Refuses,
        Manner::NoTime,
        Manner::AtOnce,
        Manner::ForAll,
        Manner::Everybody,
        Manner::FromNowhere,
        Manner::Foreign,
        Manner::Unnamed,
        Manner::LongOptions,
        Manner::ShortOptions,
        Manner::Hole,
        Manner::NoMask,
        Manner::Cut,
    ];
}

/// Messages that have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions who has an address.
    pub discovers: u64,
    /// Requests for one that was offered.
    pub requests: u64,
    /// Requests for one that is leased, to this server and to all.
    pub renewals: u64,
    /// See [`Counts::renewals`].
    pub rebinds: u64,
    /// Words of clients that somebody else has an address.
    pub declines: u64,
}

/// The server.
#[derive(Clone, Debug)]
pub struct Leases {
    /// Manner.
    pub manner: Manner,
    /// Address that it leases, to whoever asks.
    pub address: Ipv4Addr,
    /// Time of a lease, in seconds.
    pub seconds: u32,
    /// Messages that have come.
    pub counts: Counts,
}

impl Default for Leases {
    fn default() -> Leases {
        let address = Ipv4Addr::new(10, 1, 0, 15);
        Leases { manner: Manner::default(), address, seconds: 3600, counts: Counts::default() }
    }
}

impl Leases {
    /// Answers to a message of a client.
    pub(crate) fn answer(&mut self, client: EthernetAddress, asked: &Datagram) -> Vec<Vec<u8>> {
        let Ok(packet) = DhcpPacket::new_checked(asked.payload) else { return Vec::new() };
        let Ok(message) = DhcpRepr::parse(&packet) else { return Vec::new() };
        let kind = match message.message_type {
            DhcpMessageType::Discover => {
                self.counts.discovers += 1;
                DhcpMessageType::Offer
            }
            DhcpMessageType::Request => {
                self.count_request(&message, asked.to.ip());
                self.decided(&message)
            }
            DhcpMessageType::Decline => {
                self.decline(&message);
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        if self.manner == Manner::Silent {
            return Vec::new();
        }
        let mut answers = Vec::new();
        if self.manner == Manner::ForeignRefusal && kind == DhcpMessageType::Ack {
            answers.extend(self.said(client, &message, DhcpMessageType::Nak, NOBODY));
        }
        let is_foreign = self.manner == Manner::Foreign && kind != DhcpMessageType::Offer;
        answers.extend(self.said(client, &message, kind, if is_foreign { NOBODY } else { ADDRESS }));
        answers
    }

    /// A client has found that somebody else has the address: the next one is leased, by who listens.
    fn decline(&mut self, message: &DhcpRepr) {
        self.counts.declines += 1;
        let is_meant =
            message.server_identifier == Some(ADDRESS) && message.requested_ip == Some(self.given());
        if is_meant && self.manner == Manner::Honest {
            self.address = Ipv4Addr::from_bits(self.address.to_bits() + 1);
        }
    }

    fn count_request(&mut self, message: &DhcpRepr, to: IpAddr) {
        let counts = &mut self.counts;
        *match (message.client_ip.is_unspecified(), to == Ipv4Addr::BROADCAST) {
            (true, _) => &mut counts.requests,
            (false, false) => &mut counts.renewals,
            (false, true) => &mut counts.rebinds,
        } += 1;
    }

    /// Answer to a request: yes, if it is for the address that is leased.
    fn decided(&self, message: &DhcpRepr) -> DhcpMessageType {
        let own = Some(message.client_ip).filter(|address| !address.is_unspecified());
        let is_leased = own.or(message.requested_ip) == Some(self.given());
        if is_leased && self.manner != Manner::Refuses { DhcpMessageType::Ack } else { DhcpMessageType::Nak }
    }

    /// Address that it leases in this manner.
    fn given(&self) -> Ipv4Addr {
        let [a, b, c, _] = self.address.octets();
        match self.manner {
            Manner::ForAll => Ipv4Addr::new(a, b, c, 255),
            Manner::Everybody => Ipv4Addr::BROADCAST,
            _ => self.address,
        }
    }

    /// A message to a client.
    fn said(
        &self,
        client: EthernetAddress,
        asked: &DhcpRepr,
        kind: DhcpMessageType,
        server: Ipv4Addr,
    ) -> Option<Vec<u8>> {
        let gives = kind != DhcpMessageType::Nak;
        let mask = match self.manner {
            Manner::Hole => Ipv4Addr::new(255, 0, 255, 0),
            Manner::NoMask => Ipv4Addr::UNSPECIFIED,
            _ => Ipv4Addr::new(255, 255, 255, 0),
        };
        let said = DhcpRepr {
            message_type: kind,
            your_ip: if gives { self.given() } else { Ipv4Addr::UNSPECIFIED },
            server_ip: server,
            router: gives.then_some(ADDRESS),
            subnet_mask: gives.then_some(mask),
            server_identifier: (self.manner != Manner::Unnamed).then_some(server),
            lease_duration: gives.then_some(if self.manner == Manner::NoTime { 0 } else { self.seconds }),
            additional_options: if self.manner == Manner::AtOnce { &AT_ONCE } else { &[] },
            dns_servers: gives.then(|| [ADDRESS].into_iter().collect()),
            requested_ip: None,
            client_identifier: None,
            parameter_request_list: None,
            max_size: None,
            ..*asked
        };
        let mut bytes = vec![0; said.buffer_len() + 24];
        said.emit(&mut DhcpPacket::new_unchecked(&mut bytes)).ok()?;
        match self.manner {
            Manner::LongOptions => set_option_len(&mut bytes, KIND, 250),
            Manner::ShortOptions => set_option_len(&mut bytes, TIME, 2),
            Manner::Cut => bytes.truncate(OPTIONS - 1),
            _ => {}
        }
        let from = if self.manner == Manner::FromNowhere { Ipv4Addr::UNSPECIFIED } else { server };
        let to = if gives { said.your_ip } else { Ipv4Addr::BROADCAST };
        Some(datagram(client.0, (from, PORT).into(), (to, CLIENT_PORT).into(), &bytes))
    }
}

/// Says that an option has so many bytes. Those of the option itself stay.
fn set_option_len(message: &mut [u8], option: u8, len: u8) {
    let mut at = OPTIONS;
    while let Some(&[kind, own, ..]) = message.get(at..) {
        if kind == option {
            message[at + 1] = len;
            return;
        }
        at += 2 + usize::from(own);
    }
}
