//! Addresses, messages and options of sockets as text.

use super::flags;
use super::memory::{Memory, list};
use super::structures::parts;
use super::{TEXT_MAX, print_address, print_flags, print_one, print_quoted};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use linux_raw_sys::net::*;

/// Bytes of an address of sockets, at most.
const ADDRESS_MAX: usize = 128;

/// Bytes of an address in front of its path.
const PATH_AT: usize = 2;

/// Control messages of a message that are shown.
const CONTROLS_MAX: usize = 8;

/// Bytes of the head of a control message.
const CONTROL_HEAD: u64 = 16;

/// An address of so many bytes.
pub(super) fn address(memory: &mut dyn Memory, at: u64, len: u64) -> Option<String> {
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(ADDRESS_MAX);
    if at == 0 || len < PATH_AT {
        return None;
    }
    let bytes = memory.some(at, len).filter(|bytes| bytes.len() == len)?;
    let family = u32::from(u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]));
    let mut text = String::from("{sa_family=");
    print_one(&flags::FAMILIES, family.into(), &mut text);
    let rest = bytes.get(PATH_AT..).unwrap_or_default();
    match family {
        AF_UNIX => print_path(rest, &mut text),
        AF_INET => text += &inet(rest).unwrap_or_default(),
        AF_INET6 => text += &inet6(rest).unwrap_or_default(),
        AF_NETLINK => text += &netlink(rest).unwrap_or_default(),
        _ if rest.is_empty() => {}
        _ => {
            text.push_str(", sa_data=");
            print_quoted(rest, &mut text);
        }
    }
    text.push('}');
    Some(text)
}

/// A path, or an abstract name.
fn print_path(path: &[u8], text: &mut String) {
    match path {
        [] => {}
        [0, name @ ..] => {
            text.push_str(", sun_path=@");
            print_quoted(name, text);
        }
        _ => {
            text.push_str(", sun_path=");
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            print_quoted(path.get(..end).unwrap_or(path), text);
        }
    }
}

fn inet(rest: &[u8]) -> Option<String> {
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    let [a, b, c, d] = *rest.get(2..)?.first_chunk()?;
    Some(format!(", sin_port=htons({port}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")"))
}

fn inet6(rest: &[u8]) -> Option<String> {
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    let flow = u32::from_be_bytes(*rest.get(2..)?.first_chunk()?);
    let address: [u8; 16] = *rest.get(6..)?.first_chunk()?;
    let scope = u32::from_le_bytes(*rest.get(22..)?.first_chunk()?);
    let address = core::net::Ipv6Addr::from(address);
    Some(format!(
        ", sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), inet_pton(AF_INET6, \"{address}\", \
         &sin6_addr), sin6_scope_id={scope}"
    ))
}

fn netlink(rest: &[u8]) -> Option<String> {
    let port = u32::from_le_bytes(*rest.get(2..)?.first_chunk()?);
    let groups = u32::from_le_bytes(*rest.get(6..)?.first_chunk()?);
    Some(format!(", nl_pid={}, nl_groups={groups:08x}", port as i32))
}

/// `struct msghdr`, of which so many bytes have arrived, or all that it says are sent.
pub(super) fn message(memory: &mut dyn Memory, at: u64, arrived: Option<u64>) -> Option<String> {
    let [name, name_len, vec, count, control, control_len, flags] = memory.words(at)?;
    let mut text = String::from("{msg_name=");
    match address(memory, name, name_len & 0xffff_ffff) {
        Some(address) => text += &address,
        None => print_address(name, &mut text),
    }
    text += &format!(", msg_namelen={}, msg_iov=", name_len as u32);
    match parts(memory, vec, count, arrived) {
        Some(parts) => text += &parts,
        None => print_address(vec, &mut text),
    }
    text += &format!(", msg_iovlen={count}");
    if control != 0 && control_len >= CONTROL_HEAD {
        text.push_str(", msg_control=");
        match controls(memory, control, control_len) {
            Some(controls) => text += &controls,
            None => print_address(control, &mut text),
        }
    }
    text += &format!(", msg_controllen={control_len}, msg_flags=");
    let flags = if arrived.is_some() { flags & 0xffff_ffff } else { 0 };
    print_flags(&flags::MESSAGE, flags, &mut text);
    text.push('}');
    Some(text)
}

/// Control messages: descriptors, and who sends.
fn controls(memory: &mut dyn Memory, at: u64, len: u64) -> Option<String> {
    let (mut items, mut done) = (Vec::new(), 0);
    while items.len() < CONTROLS_MAX && len - done >= CONTROL_HEAD {
        let here = at.wrapping_add(done);
        let [item_len] = memory.words(here)?;
        let [level, kind] = memory.numbers(here.wrapping_add(8))?;
        if item_len < CONTROL_HEAD || item_len > len - done {
            break;
        }
        let data =
            memory.some(here.wrapping_add(CONTROL_HEAD), (item_len - CONTROL_HEAD).min(128) as usize)?;
        let numbers: Vec<i32> =
            data.chunks_exact(4).filter_map(|four| Some(i32::from_le_bytes(*four.first_chunk()?))).collect();
        let mut text = format!("{{cmsg_len={item_len}, cmsg_level=");
        print_one(&flags::LEVELS, level.into(), &mut text);
        text.push_str(", cmsg_type=");
        print_one(&flags::CONTROLS, kind.into(), &mut text);
        text.push_str(", cmsg_data=");
        match (kind, numbers.as_slice()) {
            (SCM_CREDENTIALS, [pid, owner, group]) => {
                text += &format!("{{pid={pid}, uid={owner}, gid={group}}}");
            }
            _ => text += &format!("{numbers:?}"),
        }
        text.push('}');
        items.push(Some(text));
        done = done.saturating_add(item_len.saturating_add(7) / 8 * 8).min(len);
    }
    list(items.into_iter(), false)
}

/// Value of an option, of so many bytes.
pub(super) fn option(
    memory: &mut dyn Memory,
    [level, option]: [u64; 2],
    at: u64,
    len: u64,
) -> Option<String> {
    let is_socket = level as u32 == SOL_SOCKET;
    match (option as u32, len) {
        (SO_PEERCRED, 12) if is_socket => {
            let [pid, owner, group] = memory.numbers(at)?.map(|number: u32| number as i32);
            Some(format!("{{pid={pid}, uid={owner}, gid={group}}}"))
        }
        (SO_LINGER, 8) if is_socket => {
            let [on, seconds] = memory.numbers(at)?;
            Some(format!("{{l_onoff={on}, l_linger={seconds}}}"))
        }
        (_, 4) => memory.numbers(at).map(|[value]: [u32; 1]| format!("[{}]", value as i32)),
        _ => {
            let shown = usize::try_from(len).unwrap_or(usize::MAX).min(TEXT_MAX);
            let bytes = memory.some(at, shown)?;
            let mut text = String::new();
            print_quoted(&bytes, &mut text);
            Some(text)
        }
    }
}

/// Kind of a socket, with flags.
pub(super) fn print_kind(value: u64, line: &mut String) {
    super::print_behind(&flags::SOCKET_KINDS, 0xf, &flags::SOCKET, value, line);
}

/// Protocol of a socket: those of networks and of netlink have names.
pub(super) fn print_protocol(family: u64, value: u64, line: &mut String) {
    match family as u32 {
        AF_INET | AF_INET6 => print_one(&flags::PROTOCOLS, value & 0xffff_ffff, line),
        AF_NETLINK => print_one(&flags::NETLINK_PROTOCOLS, value & 0xffff_ffff, line),
        _ => line.push_str(&format!("{}", value as i32)),
    }
}

/// Name of an option, which depends on its level.
pub(super) fn print_option(level: u64, value: u64, line: &mut String) {
    match level as u32 {
        SOL_SOCKET => print_one(&flags::SOCKET_OPTIONS, value & 0xffff_ffff, line),
        6 => print_one(&flags::TCP_OPTIONS, value & 0xffff_ffff, line),
        SOL_NETLINK => print_one(&flags::NETLINK_OPTIONS, value & 0xffff_ffff, line),
        _ => line.push_str(&format!("{:#x}", value as u32)),
    }
}
