//! Connections of one question and one answer, as a machine without memory has them: what it says follows from the segment that has come, whose numbers tell where both sides are.

use crate::frames::packet;
use core::net::IpAddr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{EthernetAddress, IpProtocol, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

/// First number of the machine's bytes.
const FIRST: TcpSeqNumber = TcpSeqNumber(7000);

/// Bytes of a segment, at most.
const PIECE: usize = 1000;

/// Ends of a connection, and what has come by it.
#[derive(Debug)]
pub struct Segment<'a> {
    /// Hardware address of the other machine.
    pub hardware: [u8; 6],
    /// Addresses: of the other machine, and of this one.
    pub ends: (IpAddr, IpAddr),
    /// The segment.
    pub packet: TcpPacket<&'a [u8]>,
}

impl Segment<'_> {
    fn said(&self, control: TcpControl, seq_number: TcpSeqNumber, payload: &[u8]) -> Vec<u8> {
        let len = self.packet.payload().len() + usize::from(self.packet.syn() || self.packet.fin());
        let said = TcpRepr {
            src_port: self.packet.dst_port(),
            dst_port: self.packet.src_port(),
            control,
            seq_number,
            ack_number: Some(self.packet.seq_number() + len),
            window_len: 8192,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload,
        };
        let (to, from) = self.ends;
        packet(self.hardware, (from, to), IpProtocol::Tcp, said.buffer_len(), |bytes| {
            let mut segment = TcpPacket::new_unchecked(bytes);
            said.emit(&mut segment, &from.into(), &to.into(), &ChecksumCapabilities::default());
        })
    }

    /// Answers to a segment: nobody listens.
    pub fn refused(&self) -> Vec<Vec<u8>> {
        let is_first = self.packet.syn() && !self.packet.ack();
        is_first.then(|| self.said(TcpControl::Rst, TcpSeqNumber(0), &[])).into_iter().collect()
    }

    /// Answers to a segment: a connection is made, bytes are answered by those that `answer` gives, after which nothing comes if `ends`, and an end is taken.
    pub fn answered(&self, ends: bool, answer: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
        let (packet, next) = (&self.packet, self.packet.ack_number());
        if packet.rst() {
            return Vec::new();
        }
        if packet.syn() {
            return vec![self.said(TcpControl::Syn, FIRST, &[])];
        }
        if packet.fin() {
            return vec![self.said(TcpControl::Fin, next, &[])];
        }
        if packet.payload().is_empty() {
            return Vec::new();
        }
        let bytes = answer(packet.payload());
        let mut frames = Vec::new();
        for (place, piece) in bytes.chunks(PIECE).enumerate() {
            frames.push(self.said(TcpControl::None, next + place * PIECE, piece));
        }
        frames.push(self.said(
            if ends { TcpControl::Fin } else { TcpControl::None },
            next + bytes.len(),
            &[],
        ));
        frames
    }
}

/// Segment of a packet between two addresses, from the machine with this hardware address.
pub fn segment<'a>(from: EthernetAddress, ends: (IpAddr, IpAddr), bytes: &'a [u8]) -> Option<Segment<'a>> {
    let packet = TcpPacket::new_checked(bytes).ok()?;
    Some(Segment { hardware: from.0, ends, packet })
}
