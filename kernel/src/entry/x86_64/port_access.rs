//! Ports that a user's instruction tried to use.
//!
//! The processor says only that something was forbidden (exception 13 with error code 0); the instruction names the ports. Intel SDM
//! volume 2: IN, OUT, INS, OUTS.

use crate::kernel::Kernel;
use crate::mem::space;
use crate::object::ThreadRef;
use crate::processor::copy::read_words;
use abi::{Fpage, Rights};

/// Ports that the current thread's instruction uses and its task does not have, with the right that it needs. `None` if it is
/// no such instruction, or the task has them all.
pub fn denied(k: &Kernel, current: ThreadRef) -> Option<Fpage> {
    let (port, log2, rights) = decode(instruction(k, current)?, current.frame.rdx.get() as u16)?;
    let lacks = |port: u16| !space::holds_port(k, current.task(), port);
    let all = (0..1 << log2).map(|i| port.checked_add(i));
    let first = all.flatten().find(|&port| lacks(port))?;
    let ports = if port % (1 << log2) == 0 { Fpage::ports(port, log2) } else { Fpage::ports(first, 0) };
    Some(ports.with_rights(rights))
}

/// The first bytes of the instruction, as far as its page has them.
fn instruction(k: &Kernel, current: ThreadRef) -> Option<[u8; 8]> {
    let ip = current.frame.rip.get();
    let read = |address| read_words::<1>(k, current.task(), (current.task(), address)).map(|[word]| word);
    if ip > abi::USER_END - 8 {
        return None;
    }
    let word = read(ip).or_else(|_| read(ip & !7).map(|word| word >> (8 * (ip % 8)))).ok()?;
    Some(word.to_le_bytes())
}

/// Decodes an instruction: first port, log2 of their number, direction.
fn decode(bytes: [u8; 8], dx: u16) -> Option<(u16, u32, Rights)> {
    let is_prefix = |byte: u8| matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let length = bytes.iter().take_while(|&&byte| is_prefix(byte)).count();
    let (prefixes, rest) = bytes.split_at(length);
    let (&opcode, operands) = rest.split_first()?;
    let port = match opcode {
        0xe4..=0xe7 => *operands.first()? as u16,
        0xec..=0xef | 0x6c..=0x6f => dx,
        _ => return None,
    };
    let log2 = match opcode & 1 {
        0 => 0,
        _ if prefixes.contains(&0x66) => 1,
        _ => 2,
    };
    Some((port, log2, if opcode & 2 == 0 { Rights::R } else { Rights::W }))
}
