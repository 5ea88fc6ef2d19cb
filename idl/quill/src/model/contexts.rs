//! Context handles: numbers that a server has chosen for one client, 0 for none.

use std::collections::BTreeSet;

use super::{Model, Operation, Type, TypeId};

impl Model {
    /// A new type for context handles.
    pub fn add_context(&mut self) -> TypeId {
        let context = self.add(Type::Int { bits: 64, signed: false });
        self.contexts.insert(context);
        context
    }

    /// The name of a type of context handles, if this is one.
    pub fn context(&self, id: TypeId) -> Option<&str> {
        self.contexts.contains(&self.resolved(id)).then(|| {
            let (mut ty, mut name) = (self.ty(id), "context");
            while let Type::Alias(alias, to) = ty {
                (ty, name) = (self.ty(*to), alias);
            }
            name
        })
    }

    /// Types of the context handles that operations open, close or use, each once, in the order of their names.
    pub fn contexts_of<'a>(
        &'a self,
        operations: impl IntoIterator<Item = &'a Operation>,
    ) -> BTreeSet<&'a str> {
        let types = operations.into_iter().flat_map(|o| o.params.iter().map(|p| p.ty).chain([o.result]));
        types.filter_map(|ty| self.context(ty)).collect()
    }
}
