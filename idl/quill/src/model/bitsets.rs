//! Bitsets: bitmasks of which each member is a field, with as many bits as the field has.

use super::{Model, Type, TypeId};

impl Model {
    /// Completes a bitset of so many bits. It travels as the shortest number that has them; bits of no field are 0.
    pub fn define_bitset(&mut self, id: TypeId, name: String, bits: u64, fields: Vec<(String, i128)>) {
        let width = match bits {
            ..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => 64,
        };
        self.define(id, Type::Bitmask(name, width, fields));
        self.bitsets.insert(id, bits);
    }

    /// Bits and fields of a bitset, if this is one.
    pub fn bitset(&self, id: TypeId) -> Option<(u64, Vec<(String, i128)>)> {
        let bits = *self.bitsets.get(&id)?;
        let Type::Bitmask(_, _, fields) = self.ty(id) else { return None };
        Some((bits, fields.clone()))
    }

    /// Whether a type is a bitset, rather than a bitmask whose members are single bits.
    pub fn is_bitset(&self, id: TypeId) -> bool {
        self.bitsets.contains_key(&id)
    }
}
