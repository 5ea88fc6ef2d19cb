//! Bitsets: how many bits they have.

use super::*;

impl Checker<'_> {
    /// A bitset, which has at most 64 bits, those of its base included.
    pub(super) fn bitset(
        &mut self,
        name: Ident,
        base: Option<&ScopedName>,
        fields: &[(Expr, Vec<Ident>)],
    ) -> TypeId {
        let mut bits = base.map_or(0, |base| self.base_bits(base));
        let id = self.model.add(Type::Foreign("the bitset", self.path(name)));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        self.within(scope, |c| {
            for (width, names) in fields {
                let own = c.positive(width, "the width of a bit field").unwrap_or(1);
                if own > 64 {
                    c.error(Code::Range, width.span, format!("a bit field has 1 to 64 bits, not {own}"));
                }
                // One without a name is a gap.
                bits += own.min(64) * names.len().max(1) as u64;
                for &name in names {
                    c.declare(name, Entry::Instance);
                }
            }
        });
        if bits > 64 {
            let message = format!("the bitset `{}` has {bits} bits, and can have 64", self.text(name.name));
            self.error(Code::Range, name.span, message);
        }
        self.bitsets.insert(id, bits);
        id
    }

    /// How many bits the base of a bitset has.
    fn base_bits(&mut self, base: &ScopedName) -> u64 {
        let bits = match self.resolve(base) {
            Entry::Type(id, _) => self.bitsets.get(&self.model.resolved(id)).copied(),
            Entry::Poison => Some(0),
            _ => None,
        };
        bits.unwrap_or_else(|| {
            let message = format!("`{}` is no bitset that can be extended here", self.text(last(base).name));
            self.error(Code::BadBase, base.span, message);
            0
        })
    }
}
