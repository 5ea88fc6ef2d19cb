//! IOMMUs, and the functions that each of them stands before. Intel VT-d specification 4.1, chapter 8.

use crate::{HEADER_BYTES, number};
use alloc::vec::Vec;

/// Name of the table.
pub const NAME: [u8; 4] = *b"DMAR";

/// Bytes before the first structure; of a unit's structure before its first scope; of a scope before its first step.
const FIRST: usize = HEADER_BYTES + 12;
/// See [`FIRST`].
const FIRST_SCOPE: usize = 16;
/// See [`FIRST`].
const FIRST_STEP: usize = 6;

/// Kind of the structure that is a unit.
const UNIT: u64 = 0;
/// Flag of a unit that stands before all functions that no other does.
const COVERS_REST: u8 = 1;

/// Kinds of scopes.
const ENDPOINT: u8 = 1;
/// See [`ENDPOINT`].
const BRIDGE: u8 = 2;

/// Units that are kept, at most, scopes of each, and steps to one.
pub const UNITS_MAX: usize = 16;
/// See [`UNITS_MAX`].
const SCOPES_MAX: usize = 64;
/// See [`UNITS_MAX`].
const STEPS_MAX: usize = 8;

/// Log2 of the bytes of a unit's registers. A unit says itself which of them have a meaning.
pub const REGISTERS_LOG2: u32 = 12;

/// No physical address is as large.
const ADDRESS_END: u64 = 1 << 46;

/// An IOMMU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Physical address of its registers.
    pub registers: u64,
    covers_rest: bool,
    scopes: Vec<Scope>,
}

/// A function, or all that is behind a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Scope {
    is_bridge: bool,
    /// Bus of the first step.
    bus: u8,
    /// Device and function of each bridge on the way, and of the function itself.
    steps: Vec<(u8, u8)>,
}

/// Buses as bridges know them.
pub trait Bridges {
    /// The first and the last bus behind a bridge. `None` if there is none at this bus, device and function.
    fn behind(&mut self, bus: u8, device: u8, function: u8) -> Option<(u8, u8)>;
}

/// Units of the first segment.
pub fn units(table: &[u8]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut rest = table.get(FIRST..).unwrap_or_default();
    while units.len() < UNITS_MAX {
        let len = number(rest, 2, 2) as usize;
        // One that is too short, or longer than the table, ends it.
        let Some(structure) = rest.get(..len).filter(|structure| structure.len() >= 4) else { break };
        rest = &rest[len..];
        if number(structure, 0, 2) == UNIT {
            units.extend(unit(structure));
        }
    }
    units
}

fn unit(structure: &[u8]) -> Option<Unit> {
    let scopes = structure.get(FIRST_SCOPE..)?;
    let registers = number(structure, 8, 8);
    let is_sound = registers != 0 && registers < ADDRESS_END && registers.is_multiple_of(1 << REGISTERS_LOG2);
    let is_first_segment = number(structure, 6, 2) == 0;
    let covers_rest = structure[4] & COVERS_REST != 0;
    (is_sound && is_first_segment).then(|| Unit { registers, covers_rest, scopes: self::scopes(scopes) })
}

fn scopes(mut rest: &[u8]) -> Vec<Scope> {
    let mut scopes = Vec::new();
    while scopes.len() < SCOPES_MAX
        && let [kind, len, _, _, _, bus, ..] = *rest
    {
        let Some(scope) = rest.get(..len.into()) else { break };
        let Some(steps) = scope.get(FIRST_STEP..) else { break };
        rest = &rest[usize::from(len)..];
        let steps: Vec<(u8, u8)> = steps
            .as_chunks()
            .0
            .iter()
            .take(STEPS_MAX)
            .map(|&[device, function]| (device, function))
            .collect();
        if matches!(kind, ENDPOINT | BRIDGE) && !steps.is_empty() {
            scopes.push(Scope { is_bridge: kind == BRIDGE, bus, steps });
        }
    }
    scopes
}

impl Scope {
    /// Whether a function is in it.
    fn has(&self, bridges: &mut impl Bridges, bus: u8, device: u8, function: u8) -> bool {
        let Some((&(last_device, last_function), way)) = self.steps.split_last() else { return false };
        let mut at = self.bus;
        for &(device, function) in way {
            let Some((first, _)) = bridges.behind(at, device, function) else { return false };
            at = first;
        }
        let is_itself = (at, last_device, last_function) == (bus, device, function);
        let behind = if self.is_bridge { bridges.behind(at, last_device, last_function) } else { None };
        is_itself || behind.is_some_and(|(first, last)| (first..=last).contains(&bus))
    }
}

/// The unit that stands before a function: one that names it, or else the one before the rest.
pub fn unit_of(
    units: &[Unit],
    bridges: &mut impl Bridges,
    (bus, device, function): (u8, u8, u8),
) -> Option<usize> {
    let named = units
        .iter()
        .position(|unit| unit.scopes.iter().any(|scope| scope.has(bridges, bus, device, function)));
    named.or_else(|| units.iter().position(|unit| unit.covers_rest))
}
