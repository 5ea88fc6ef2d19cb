//! Type codes of the types of a file, packed: the bytes of a `TypeCode` as they stand in an `any`.
//!
//! Names are those that a file gives, and ids are made of them: `IDL:M/Pair:1.0`. Where CORBA has no kind, there is the nearest one:
//!
//! | in the file | its code |
//! |---|---|
//! | `bitmask`, `bitset` | `tk_alias` of the number that travels |
//! | `int8` | `tk_alias` of `tk_octet`, called `int8` |
//! | `@flat union` | `tk_alias` of a `tk_array` of `tk_octet`, its bytes |
//! | a value that may be absent | `tk_value_box` without a name; one that others may share is called `shared` |
//! | a type within itself | `tk_recursive` |

use super::KINDS;
use crate::model::{Branch, ExceptionId, Field, Model, Type, TypeId};
use crate::sizes::Sizes;

/// Bytes of a type code. A program that wants to see the type has room for it in memory, and each type has its code in the stubs.
pub const BYTES_MAX: usize = 8 << 10;

/// Types within types: readers go 64 steps deep, and a type within a list of members takes two.
const DEPTH_MAX: usize = 30;

/// The type code of a type, up to a multiple of 8; none of one that is too long or too deep, or that has no values.
pub fn packed(model: &Model, id: TypeId) -> Option<Vec<u8>> {
    let mut code = Code::new(model);
    code.named(id, 0)?;
    code.finish()
}

/// The type code of an exception.
pub fn packed_exception(model: &Model, id: ExceptionId) -> Option<Vec<u8>> {
    let (mut code, exception) = (Code::new(model), &model.exceptions[id.0 as usize]);
    code.record("tk_except", &exception.name, &exception.fields, 0)?;
    code.finish()
}

/// A type code that is being written.
struct Code<'m> {
    model: &'m Model,
    bytes: Vec<u8>,
    /// Structs and unions around the present place.
    around: Vec<TypeId>,
}

impl<'m> Code<'m> {
    fn new(model: &'m Model) -> Code<'m> {
        Code { model, bytes: Vec::new(), around: Vec::new() }
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        self.align(8);
        (self.bytes.len() <= BYTES_MAX).then_some(self.bytes)
    }

    fn align(&mut self, align: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
    }

    fn number<const N: usize>(&mut self, bytes: [u8; N]) {
        self.align(N);
        self.bytes.extend(bytes);
    }

    fn count(&mut self, count: usize) -> Option<()> {
        self.number(u32::try_from(count).ok()?.to_le_bytes());
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.count(text.len())?;
        self.bytes.extend(text.bytes());
        self.bytes.push(0);
        Some(())
    }

    fn kind(&mut self, kind: &str) -> Option<()> {
        self.count(KINDS.iter().position(|known| *known == kind)?)
    }

    /// The kind, and what each kind with a name begins with.
    fn head(&mut self, kind: &str, path: &str) -> Option<()> {
        self.kind(kind)?;
        self.text(&id_of(path))?;
        self.text(path.rsplit("::").next().unwrap_or(path))
    }

    /// A type within a type: a value that may be absent, and is there.
    fn within(&mut self, id: TypeId, depth: usize) -> Option<()> {
        self.bytes.push(1);
        self.named(id, depth + 1)
    }

    fn plain_within(&mut self, kind: &str) -> Option<()> {
        self.bytes.push(1);
        self.kind(kind)
    }

    fn record(&mut self, kind: &str, path: &str, fields: &[Field], depth: usize) -> Option<()> {
        self.head(kind, path)?;
        self.count(fields.len())?;
        fields.iter().try_for_each(|field| {
            self.text(&field.name)?;
            self.within(field.ty, depth)
        })
    }

    /// Discriminator, the place of the default, and a case for each label.
    fn choice(&mut self, path: &str, switch: TypeId, branches: &[Branch], depth: usize) -> Option<()> {
        self.head("tk_union", path)?;
        self.within(switch, depth)?;
        let labels = |branch: &Branch| branch.labels.len() + usize::from(branch.is_default);
        let place = branches.iter().position(|branch| branch.is_default).map(|of| {
            let before: usize = branches[..of].iter().map(labels).sum();
            before + branches[of].labels.len()
        });
        self.count(place.map_or(u32::MAX as usize, |place| place))?;
        self.count(branches.iter().map(labels).sum())?;
        for branch in branches {
            let rest = branch.is_default.then_some(0);
            for label in branch.labels.iter().copied().chain(rest) {
                self.text(&branch.field.name)?;
                self.number((label as i64).to_le_bytes());
                self.within(branch.field.ty, depth)?;
            }
        }
        Some(())
    }

    /// So many types of one kind within each other, outside in.
    fn array(&mut self, of: TypeId, dims: &[u64], depth: usize) -> Option<()> {
        let Some((&first, rest)) = dims.split_first() else { return self.named(of, depth) };
        self.kind("tk_array")?;
        self.bytes.push(1);
        self.array(of, rest, depth + 1)?;
        self.count(first.try_into().ok()?)
    }

    fn bytes_of(&mut self, count: u64) -> Option<()> {
        self.bytes.push(1);
        self.kind("tk_array")?;
        self.plain_within("tk_octet")?;
        self.count(count.try_into().ok()?)
    }

    /// A type as its name says it.
    fn named(&mut self, id: TypeId, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX || self.bytes.len() > BYTES_MAX {
            return None;
        }
        let model = self.model;
        if model.any == Some(id) {
            return self.kind("tk_any");
        }
        if model.type_code.is_some_and(|(_, code)| code == id) {
            return self.kind("tk_TypeCode");
        }
        match model.ty(id) {
            Type::Alias(path, to) => {
                self.head("tk_alias", path)?;
                self.within(*to, depth)
            }
            Type::Struct(path, fields) => {
                self.declared(id, path, |code| code.record("tk_struct", path, fields, depth))
            }
            Type::Union { name: path, switch, branches } => {
                self.declared(id, path, |code| code.choice(path, *switch, branches, depth))
            }
            Type::Enum(path, members) => {
                self.head("tk_enum", path)?;
                self.count(members.len())?;
                members.iter().try_for_each(|member| self.text(&member.0))
            }
            Type::Bitmask(path, bits, _) => {
                self.head("tk_alias", path)?;
                self.plain_within(whole(*bits, false)?)
            }
            Type::Flat(path, _) => {
                self.head("tk_alias", path)?;
                self.bytes_of(Sizes::new(model).fixed(id)?.size)
            }
            Type::Sequence(of, bound) => {
                self.kind("tk_sequence")?;
                self.within(*of, depth)?;
                self.count(bound.unwrap_or(0).try_into().ok()?)
            }
            Type::Array(of, dims) => self.array(*of, dims, depth),
            Type::Optional(of) | Type::Shared(of) => {
                self.kind("tk_value_box")?;
                self.text("")?;
                self.text(if matches!(model.ty(id), Type::Shared(_)) { "shared" } else { "" })?;
                self.within(*of, depth)
            }
            ty => self.simple(ty),
        }
    }

    /// A struct or union, or the name of one that the present place is in.
    fn declared(
        &mut self,
        id: TypeId,
        path: &str,
        write: impl FnOnce(&mut Code<'m>) -> Option<()>,
    ) -> Option<()> {
        if self.around.contains(&id) {
            self.kind("tk_recursive")?;
            return self.text(&id_of(path));
        }
        self.around.push(id);
        write(self)?;
        self.around.pop();
        Some(())
    }

    /// A type that consists of nothing else.
    fn simple(&mut self, ty: &Type) -> Option<()> {
        match ty {
            Type::Bool => self.kind("tk_boolean"),
            Type::Octet => self.kind("tk_octet"),
            Type::Char => self.kind("tk_char"),
            Type::WideChar => self.kind("tk_wchar"),
            Type::Int { bits: 8, signed: true } => {
                self.kind("tk_alias")?;
                self.text("")?;
                self.text("int8")?;
                self.plain_within("tk_octet")
            }
            Type::Int { bits, signed } => self.kind(whole(*bits, *signed)?),
            Type::Float(32) => self.kind("tk_float"),
            Type::Float(64) => self.kind("tk_double"),
            Type::Str { wide, bound, .. } => {
                self.kind(if *wide { "tk_wstring" } else { "tk_string" })?;
                self.count(bound.unwrap_or(0).try_into().ok()?)
            }
            Type::Fixed(_, digits, scale) => {
                self.kind("tk_fixed")?;
                self.number(u16::try_from(*digits).ok()?.to_le_bytes());
                self.number(u16::try_from(*scale).ok()?.to_le_bytes());
                Some(())
            }
            Type::Object(to) => {
                let path = to.map(|to| &*self.model.interfaces[to.0 as usize].name);
                self.head("tk_objref", path.unwrap_or("Object"))
            }
            _ => None,
        }
    }
}

/// The id of something with a name, as CORBA makes one where nothing else is said.
fn id_of(path: &str) -> String {
    format!("IDL:{}:1.0", path.replace("::", "/"))
}

fn whole(bits: u8, signed: bool) -> Option<&'static str> {
    Some(match (bits, signed) {
        (8, false) => "tk_octet",
        (16, true) => "tk_short",
        (16, false) => "tk_ushort",
        (32, true) => "tk_long",
        (32, false) => "tk_ulong",
        (64, true) => "tk_longlong",
        (64, false) => "tk_ulonglong",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::any::Codes;
    use crate::driver::compile_text;
    use crate::session::Options;

    /// The names of types of a file that have a type code, and these.
    fn codes(idl: &str) -> Vec<(String, Vec<u8>)> {
        let text = format!("{idl} interface Last {{ void f(in any a); }};");
        let out = compile_text(Path::new("t.idl"), text.as_bytes(), Options::default());
        assert!(out.accepted(), "{}", out.messages());
        let codes = Codes::of(&out.model);
        let all = codes.types.into_iter();
        all.map(|(id, code)| (out.model.ty(id).name().unwrap_or_default().to_owned(), code)).collect()
    }

    fn has(all: &[(String, Vec<u8>)], name: &str) -> bool {
        all.iter().any(|(known, _)| known == name)
    }

    #[test]
    fn a_type_code_is_written_as_a_value_of_its_union() {
        let all = codes("module M { typedef sequence<short, 3> L; };");
        let (_, code) = all.iter().find(|(name, _)| name == "M::L").unwrap();
        let id = b"IDL:M/L:1.0\0";
        let mut expected = vec![21, 0, 0, 0, 11, 0, 0, 0];
        expected.extend(id);
        // Its name, and that there is something behind it; then a sequence of something, and how long it is.
        expected.extend([1, 0, 0, 0, b'L', 0, 1, 0, 19, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        expected.resize(expected.len().next_multiple_of(8), 0);
        assert_eq!(*code, expected);
        assert!(has(&all, "quill::any"));
    }

    #[test]
    fn types_that_are_too_deep_or_too_long_have_none() {
        let deep: String = (1..40).map(|n| format!("typedef sequence<T{}> T{n};", n - 1)).collect();
        let all = codes(&format!("typedef long T0; {deep}"));
        assert!(has(&all, "T0") && has(&all, "T14") && !has(&all, "T39"));
        let members: Vec<String> = (0..1000).map(|n| format!("MEMBER_{n}")).collect();
        let all = codes(&format!("enum Long {{ {} }}; enum Short {{ A }};", members.join(", ")));
        assert!(has(&all, "Short") && !has(&all, "Long"));
        // Each contains the one before twice, so the last would be a thousand times as long as the first.
        let wide: String = (1..12).map(|n| format!("struct W{n} {{ W{0} a; W{0} b; }};", n - 1)).collect();
        let all = codes(&format!("struct W0 {{ long a; }}; {wide}"));
        assert!(has(&all, "W1") && !has(&all, "W11"));
    }

    #[test]
    fn a_file_without_an_any_has_none() {
        let text = b"struct S { long a; }; interface I { void f(in S s); };";
        let out = compile_text(Path::new("t.idl"), text, Options::default());
        assert!(Codes::of(&out.model).types.is_empty());
    }
}
