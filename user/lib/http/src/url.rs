//! Addresses of pages, for clients: `http://HOST[:PORT][/PATH][?QUERY]`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The port of who does not say another.
const PORT: u16 = 80;

/// An address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// A name or an address; that of IPv6 without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, as they stand there.
    target: String,
    /// Host and port, as they stand there.
    authority: String,
}

impl Url {
    /// Reads an address. `None` if it is none of this protocol.
    pub fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_once("://")?;
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !scheme.eq_ignore_ascii_case("http") || !is_clean(rest) {
            return None;
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|&port| port > 0)?,
            None if port.is_empty() => PORT,
            None => return None,
        };
        if host.is_empty() || host.contains(['@', '[', ']']) {
            return None;
        }
        let target = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Some(Url { host: host.into(), port, target, authority: authority.into() })
    }

    /// A request for what is there. The server closes the connection behind its answer.
    pub fn request(&self) -> Vec<u8> {
        let Url { target, authority, .. } = self;
        format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: Tern\r\nConnection: close\r\n\r\n")
            .into_bytes()
    }
}
