//! Bitsets: numbers, of which each field is some bits. They are bitmasks whose members stand for as many bits as a field has.

use super::*;

impl Checker<'_> {
    /// A bitset, which has at most 64 bits, those of its base included.
    pub(super) fn bitset(
        &mut self,
        name: Ident,
        base: Option<&ScopedName>,
        fields: &[(Expr, Vec<Ident>)],
    ) -> TypeId {
        let (mut bits, mut members) = base.map_or_else(Default::default, |base| self.base_bits(base));
        let id = self.model.add(Type::Bitmask(self.path(name), 64, Vec::new()));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        self.within(scope, |c| {
            for (width, names) in fields {
                let own = c.positive(width, "the width of a bit field").unwrap_or(1);
                if own > 64 {
                    c.error(Code::Range, width.span, format!("a bit field has 1 to 64 bits, not {own}"));
                }
                let own = own.min(64);
                for &name in names {
                    let mask = ((1i128 << own) - 1) << bits.min(64);
                    if c.declare(name, Entry::Instance) {
                        members.push((c.text(name.name).to_owned(), mask & i128::from(u64::MAX)));
                    }
                    bits += own;
                }
                // One without a name is a gap.
                if names.is_empty() {
                    bits += own;
                }
            }
        });
        if bits > 64 {
            let message = format!("the bitset `{}` has {bits} bits, and can have 64", self.text(name.name));
            self.error(Code::Range, name.span, message);
        }
        let path = self.path(name);
        self.model.define_bitset(id, path, bits, members);
        self.name_type(id, name.span);
        id
    }

    /// How many bits the base of a bitset has, and its fields.
    fn base_bits(&mut self, base: &ScopedName) -> (u64, Vec<(String, i128)>) {
        let found = match self.resolve(base) {
            Entry::Type(id, _) => self.model.bitset(self.model.resolved(id)),
            Entry::Poison => Some(Default::default()),
            _ => None,
        };
        found.unwrap_or_else(|| {
            let message = format!("`{}` is no bitset that can be extended here", self.text(last(base).name));
            self.error(Code::BadBase, base.span, message);
            Default::default()
        })
    }
}
