//! Lines of `/proc/net/tcp` and its like, as Linux prints them.
//!
//! Nothing is known here of what is on the way, of timers and of windows: these fields are those of a socket at which nothing happens, and addresses of memory are zeros, as Linux shows
//! them to whoever may not know them.

use super::{Family, Inet, Protocol, Stage};
use crate::socket::SHUT_WRITE;
use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Characters of a line of streams, and of one of datagrams, which spaces fill up. Lines of IPv6 are as long as they are.
const WIDTHS: [usize; 2] = [149, 127];

/// Numbers of states.
mod state {
    pub const ESTABLISHED: u32 = 1;
    pub const SYN_SENT: u32 = 2;
    pub const FIN_WAIT2: u32 = 5;
    pub const CLOSE: u32 = 7;
    pub const CLOSE_WAIT: u32 = 8;
    pub const LISTEN: u32 = 10;
}

/// The first line of a table.
pub fn head(protocol: Protocol, family: Family) -> String {
    let ends = match family {
        Family::Four => "local_address rem_address   ",
        Family::Six => "local_address                         remote_address                        ",
    };
    let is_stream = protocol == Protocol::Tcp;
    // Numbers of datagrams have one place more, which this line follows for IPv4 alone.
    let space = if is_stream || family == Family::Six { "" } else { " " };
    let more = if is_stream { "" } else { " ref pointer drops" };
    let line =
        format!("{space}  sl  {ends}st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode{more}");
    filled(is_stream, family, &line)
}

/// A whole line.
fn filled(is_stream: bool, family: Family, line: &str) -> String {
    let width = match family {
        Family::Four => WIDTHS[usize::from(!is_stream)],
        Family::Six => 0,
    };
    format!("{line:width$}\n")
}

/// An end in hexadecimal: words of the address as they are in memory, and the port.
fn end(family: Family, at: Option<SocketAddr>) -> String {
    let at = at.unwrap_or(SocketAddr::new(family.any(), 0));
    let port = at.port();
    match (family, at.ip()) {
        (Family::Four, IpAddr::V4(address)) => {
            format!("{:08X}:{port:04X}", u32::from_le_bytes(address.octets()))
        }
        // Sockets of IPv4 have no other addresses but the one that means all.
        (Family::Four, IpAddr::V6(_)) => format!("00000000:{port:04X}"),
        (Family::Six, IpAddr::V4(address)) => six(address.to_ipv6_mapped(), port),
        (Family::Six, IpAddr::V6(address)) => six(address, port),
    }
}

fn six(address: Ipv6Addr, port: u16) -> String {
    let octets = address.octets();
    let words = octets.chunks_exact(4).filter_map(|word| word.first_chunk::<4>().copied());
    let words: String = words.map(|word| format!("{:08X}", u32::from_le_bytes(word))).collect();
    format!("{words}:{port:04X}")
}

impl Inet {
    /// Number of its state. None: it is in no table, since it has no address yet, or its connection is over.
    fn shown_state(&self) -> Option<u32> {
        if !self.is_stream() {
            self.local.get()?;
            return Some(if self.peer.get().is_some() { state::ESTABLISHED } else { state::CLOSE });
        }
        match self.stage.get() {
            Stage::Fresh => None,
            Stage::Connecting(_) => Some(state::SYN_SENT),
            Stage::Listening => Some(state::LISTEN),
            Stage::Connected if self.is_broken.get() => None,
            Stage::Connected => match [self.is_end.get(), self.is_shut(SHUT_WRITE)] {
                [false, false] => Some(state::ESTABLISHED),
                [false, true] => Some(state::FIN_WAIT2),
                [true, false] => Some(state::CLOSE_WAIT),
                [true, true] => None,
            },
        }
    }

    /// Bytes that are here and that its program has not received.
    fn queued(&self) -> usize {
        let ahead = self.ahead.borrow();
        ahead.bytes.len() + ahead.datagram.as_ref().map_or(0, |datagram| datagram.bytes.len())
    }

    /// Its line at a place of its table. None: it is not in it.
    pub fn line(&self, place: usize) -> Option<String> {
        let state = self.shown_state()?;
        let [local, peer] = [&self.local, &self.peer].map(|at| end(self.family, at.get()));
        let (queued, Inet { owner, number, .. }) = (self.queued(), self);
        let line = format!(
            "{local} {peer} {state:02X} {:08X}:{queued:08X} 00:00000000 00000000 {owner:5} {:8} {number}",
            0, 0
        );
        let line = if self.is_stream() {
            let rest = match state {
                state::LISTEN => "100 0 0 10 0",
                state::SYN_SENT => "100 0 0 10 -1",
                _ => "20 4 30 10 -1",
            };
            format!("{place:4}: {line} 1 {:016x} {rest}", 0)
        } else {
            format!("{place:5}: {line} 2 {:016x} 0", 0)
        };
        Some(filled(self.is_stream(), self.family, &line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Protocol, end, head};

    #[test]
    fn heads_are_as_long_as_lines() {
        let four = head(Protocol::Tcp, Family::Four);
        let expected = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!((four.trim_end(), four.len()), (expected, 150));
        let four = head(Protocol::Udp, Family::Four);
        let expected = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref \
                        pointer drops";
        assert_eq!((four.trim_end(), four.len()), (expected, 128));
        let six = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when \
                   retrnsmt   uid  timeout inode";
        assert_eq!(head(Protocol::Tcp, Family::Six), [six, "\n"].concat());
        assert_eq!(head(Protocol::Udp, Family::Six), [six, " ref pointer drops\n"].concat());
    }

    #[test]
    fn addresses_are_words_of_memory() {
        for (family, at, expected) in [
            (Family::Four, "127.0.0.1:631", "0100007F:0277"),
            (Family::Six, "[::1]:65535", "00000000000000000000000001000000:FFFF"),
            (Family::Six, "[2001:db8::12]:1", "B80D0120000000000000000012000000:0001"),
            (Family::Six, "10.0.2.15:22", "0000000000000000FFFF00000F02000A:0016"),
        ] {
            assert_eq!(end(family, Some(at.parse().unwrap())), expected, "{at}");
        }
        assert_eq!(end(Family::Four, None), "00000000:0000");
        assert_eq!(end(Family::Six, None), "00000000000000000000000000000000:0000");
    }
}
