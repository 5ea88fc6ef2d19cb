//! Values of a file's types in an `any`: functions that write one into a room behind its type code, and read it there.
//!
//! The bytes are the same over each kernel part, so they are written and read by functions of their own: those that
//! Tern's stubs have for values that go piece by piece, in texts of the runtime and in what [`pieces`] makes, under
//! names with `packed` in them.

use super::tree::{Expr, Item, Stmt, Ty, call, name, text};
use super::{Emitter, pieces, word};
use crate::any;
use crate::model::{Direction, Type, TypeId};
use crate::type_code;

/// Texts that write and read values piece by piece, wherever these lie.
const TEXTS: [&str; 5] = [
    include_str!("stream_places.h"),
    include_str!("stream.h"),
    include_str!("stream_texts.h"),
    include_str!("places_shared.h"),
    include_str!("stream_shared.h"),
];

/// Names in these texts, and in what is made of a file, that stay as they are.
const KEPT: [&str; 11] = [
    "QUILL_OK",
    "QUILL_MALFORMED",
    "QUILL_TOO_LONG",
    "quill_status",
    "quill_is_scalar",
    "quill_characters",
    "quill_characters_and",
    "quill_text",
    "quill_text_of",
    "quill_any",
    "quill_packed",
];

/// How further ones begin.
const KEPT_BEGINNINGS: [&str; 4] = ["quill_any_", "quill_fixed_", "quill_packed_", "QUILL_PACKED_"];

/// Text in front of everything in a header of a file with an `any`.
pub fn runtime() -> String {
    let packed = TEXTS.map(packed).concat();
    [include_str!("any.h"), &packed, include_str!("any_packed.h")].concat()
}

/// A text of C in which names of the runtime are those for packed values.
fn packed(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(is_part) {
        let (before, from) = rest.split_at(begin);
        let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        let is_kept = KEPT.contains(&word) || KEPT_BEGINNINGS.iter().any(|own| word.starts_with(own));
        let renamed = ["quill_", "QUILL_"].iter().find_map(|own| Some((own, word.strip_prefix(own)?)));
        out.push_str(before);
        match renamed.filter(|_| !is_kept) {
            Some((&"quill_", rest)) => out.extend(["quill_packed_", rest]),
            Some((_, rest)) => out.extend(["QUILL_PACKED_", rest]),
            None => out.push_str(word),
        }
        rest = after;
    }
    out + rest
}

/// A function for a type or an exception.
struct Held<'a> {
    /// How functions for it begin.
    name: String,
    /// The type code.
    code: &'a [u8],
    /// The parameter with a value, and that with the place of one.
    parameters: [Ty; 2],
    /// Parts of a value: their types, and how to get there from the parameters.
    parts: Vec<(TypeId, [Expr; 2])>,
    /// It is no type of the file's own, so each header has it.
    everywhere: bool,
}

/// All functions for values of types of the file in an `any`.
pub fn functions(e: &Emitter) -> Vec<Item> {
    let mut items = vec![Item::Text(packed(&text(&pieces::functions(e, |id| e.can_be_packed(id)))))];
    let code = e.model.type_code.map(|(_, code)| code).filter(|code| e.travels[code.0 as usize]);
    items.extend(code.map(|code| Item::Text(questions(e, code))));
    let mut all = Vec::new();
    for (id, code) in &e.codes.types {
        let name = e.names.types.get(id).filter(|_| e.is_held_by_any(*id));
        all.extend(name.map(|name| Held {
            name: name.clone(),
            code,
            parameters: [Direction::In, Direction::Out].map(|direction| e.parameter(*id, direction)),
            parts: vec![(*id, [Direction::In, Direction::Out].map(|way| e.value("_value", *id, way)))],
            everywhere: is_everywhere(e, *id),
        }));
    }
    for (id, code) in &e.codes.exceptions {
        let exception = &e.model.exceptions[id.0 as usize];
        if !exception.fields.iter().all(|field| e.is_held_by_any(field.ty)) {
            continue;
        }
        let ty = Ty::named(e.exception(*id));
        let part = |field: &crate::model::Field| {
            let place = name("_value").deref().field(word(&field.name));
            (field.ty, [place.clone(), place])
        };
        all.push(Held {
            name: e.exception(*id).to_owned(),
            code,
            parameters: [ty.clone().to().constant(), ty.to()],
            parts: exception.fields.iter().map(part).collect(),
            everywhere: false,
        });
    }
    for held in all {
        let made = held.items(e, code);
        match held.everywhere {
            true => items.push(Item::Once(format!("QUILL_ANY_OF_{}", held.name), made)),
            false => items.extend(made),
        }
    }
    items
}

/// Types of the file whose values can be in an `any`, and the functions that put them there.
pub fn makers(e: &Emitter) -> impl Iterator<Item = (TypeId, String)> {
    let own =
        e.codes.types.iter().map(|(id, _)| *id).filter(|&id| e.is_held_by_any(id) && !is_everywhere(e, id));
    own.filter_map(|id| Some((id, e.beside(e.names.types.get(&id)?, "to_any"))))
}

/// Whether a type is there without a file that declares it.
fn is_everywhere(e: &Emitter, id: TypeId) -> bool {
    let is_code = e.model.type_code.is_some_and(|(_, code)| code == id);
    is_code
        || e.model.is_any(id) && !matches!(e.model.ty(id), Type::Alias(..))
        || matches!(e.model.ty(id), Type::Fixed(..))
}

/// The function that says what type the value of an `any` has.
fn questions(e: &Emitter, code: TypeId) -> String {
    let ty = e.ty(code).base;
    let rows = any::KINDS.iter().map(|(kind, _)| any::basic_code(kind)[0].to_string());
    let rows: Vec<String> = rows.collect();
    let (name, rows) = (e.mangled(code), rows.join(", "));
    format!(
        "\n#ifndef QUILL_ANY_TYPE_CODE\n#define QUILL_ANY_TYPE_CODE\n\
         /* The type that has that code; false if none has, or if the room is too small for what it consists of. */\n\
         static inline bool quill_packed_type_code(const void *code, size_t length, void *room, size_t bytes, {ty} *type)\n\
         {{\n    quill_packed_in in = quill_packed_begin_in(code, length, room, bytes);\n\n    \
         quill_packed_get_{name}(&in, type);\n    return quill_packed_ends(&in);\n}}\n\n\
         /* The type of its value. Lists and what else it consists of lie in the room, texts in the any. */\n\
         static inline bool quill_any_type_code(const quill_any *any, void *room, size_t bytes, {ty} *type)\n\
         {{\n    static const uint8_t codes[] = {{ {rows} }};\n    \
         uint8_t basic[8] = {{ any->kind < sizeof codes ? codes[any->kind] : 0 }};\n    \
         size_t length = quill_any_code_bytes(any);\n\n    \
         if (any->kind == quill_tk_described)\n        \
         return length > 0 && quill_packed_type_code(any->content._buffer, length, room, bytes, type);\n    \
         return quill_any_is_sound(any) && quill_packed_type_code(basic, sizeof basic, room, bytes, type);\n}}\n\
         #endif\n"
    )
}

impl Held<'_> {
    /// The functions, and the constant that they share.
    fn items(&self, e: &Emitter, code: Option<TypeId>) -> Vec<Item> {
        let bytes = self.named(e, "type_code_bytes");
        let lines: Vec<String> =
            self.code.chunks(64).map(|line| format!("    \"{}\"", escaped(line))).collect();
        let constant =
            format!("static const char {bytes}[] __attribute__((unused)) =\n{};\n", lines.join("\n"));
        let mut items = vec![Item::Text(constant), self.maker(e, &bytes), self.asker(e, &bytes)];
        // Of an any, it is the type of what that one holds.
        if let Some(code) = code.filter(|_| self.name != "quill_any") {
            let parameters = vec![room(), length(), (e.ty(code).to(), "_type".into())];
            let arguments = [name(&bytes), self.length(), name("_room"), name("_bytes"), name("_type")];
            let body = vec![Stmt::Return(Some(call("quill_packed_type_code", arguments)))];
            items.push(Item::Function(Ty::named("bool"), self.named(e, "type_code"), parameters, body));
        }
        items
    }

    /// The name of something for it.
    fn named(&self, e: &Emitter, what: &str) -> String {
        match self.everywhere {
            true => format!("{}_{what}", self.name),
            false => e.beside(&self.name, what),
        }
    }

    fn length(&self) -> Expr {
        Expr::Int(self.code.len() as i128)
    }

    /// Statements that give a message a table of values that others may share, if there can be some.
    fn shared(&self, e: &Emitter, message: &str) -> Vec<Stmt> {
        if !self.parts.iter().any(|(id, _)| e.shares(*id)) {
            return Vec::new();
        }
        let begun = call("quill_packed_begin_shared", [name("_shared").address()]);
        vec![
            Stmt::Announce(Ty::named("quill_packed_shared"), "_shared".into()),
            Stmt::Set(name(message).deref().field("shared"), begun),
        ]
    }

    fn maker(&self, e: &Emitter, code: &str) -> Item {
        let parameters = vec![
            (self.parameters[0].clone(), "_value".to_owned()),
            room(),
            length(),
            (Ty::named("quill_any").to(), "_any".to_owned()),
        ];
        let begun = call("quill_packed_begin_out", [name("_room"), name("_bytes")]);
        let mut body = begin("out", begun);
        body.extend(self.shared(e, "_out"));
        body.push(Stmt::Do(call("quill_packed_put", [name("_out"), name(code), self.length()])));
        for (id, [value, _]) in &self.parts {
            body.extend(pieces::put(e, *id, value.clone(), 0));
        }
        let arguments = [name("_out"), self.length(), name("_any")];
        if self.parts.is_empty() {
            body.push(Stmt::Do(name("_value").cast(Ty::named("void"))));
        }
        body.push(Stmt::Return(Some(call("quill_packed_describe", arguments))));
        self.function(e, "to_any", parameters, body)
    }

    fn asker(&self, e: &Emitter, code: &str) -> Item {
        let parameters = vec![
            (Ty::named("quill_any").to().constant(), "_any".to_owned()),
            room(),
            length(),
            (self.parameters[1].clone(), "_value".to_owned()),
        ];
        let arguments = ["_any", code, "_room", "_bytes"].map(name);
        let [any, code, room, bytes] = arguments;
        let begun = call("quill_packed_begin_any", [any, code, self.length(), room, bytes]);
        let mut body = begin("in", begun);
        body.extend(self.shared(e, "_in"));
        for (id, [_, place]) in &self.parts {
            body.push(clear(e, *id, place.clone()));
            body.extend(pieces::get(e, *id, place.clone(), 0));
        }
        if self.parts.is_empty() {
            body.push(Stmt::Set(name("_value").deref().field("_nothing"), Expr::Int(0)));
        }
        body.push(Stmt::Return(Some(call("quill_packed_ends", [name("_in")]))));
        self.function(e, "from_any", parameters, body)
    }

    /// A function whose statements are for packed values.
    fn function(&self, e: &Emitter, what: &str, parameters: Vec<(Ty, String)>, body: Vec<Stmt>) -> Item {
        let function = Item::Function(Ty::named("bool"), self.named(e, what), parameters, body);
        Item::Text(packed(&text(&[function])))
    }
}

fn room() -> (Ty, String) {
    (Ty::named("void *"), "_room".into())
}

fn length() -> (Ty, String) {
    (Ty::named("size_t"), "_bytes".into())
}

/// A message, and its address under the name that statements for values have for it.
fn begin(which: &str, begun: Expr) -> Vec<Stmt> {
    let ty = || Ty::named(format!("quill_packed_{which}"));
    let variable = format!("_packed_{which}");
    let address = name(&variable).address();
    vec![Stmt::Let(ty(), variable, Some(begun)), Stmt::Let(ty().to(), format!("_{which}"), Some(address))]
}

/// Zeros in a place that may not get a value.
fn clear(e: &Emitter, id: TypeId, place: Expr) -> Stmt {
    let ty = e.ty(id);
    let start = if ty.dims.is_empty() { place.address() } else { place };
    let size = name(format!("sizeof({})", ty.declare("")));
    Stmt::Do(call("__builtin_memset", [start, Expr::Int(0), size]))
}

/// Bytes within a literal of C: as numbers of three digits, but for letters.
fn escaped(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | b' ' | b'/' | b'.' | b':' => char::from(*byte).to_string(),
        byte => format!("\\{byte:03o}"),
    };
    bytes.iter().map(one).collect()
}

impl Emitter<'_> {
    /// Whether values of a type are nothing but their bytes, and have the same ones over each kernel part.
    fn can_be_packed(&self, id: TypeId) -> bool {
        let shares = self.shares[self.model.resolved(id).0 as usize];
        self.travels[id.0 as usize] && !self.refers(id) && (self.keeps_shared || !shares)
    }

    /// Whether values of a type can be in an `any`.
    fn is_held_by_any(&self, id: TypeId) -> bool {
        self.can_be_packed(id) && self.unfit(vec![id], false).is_none()
    }

    /// Macro that keeps a declaration apart from that of another header, for types that are there because of an `any`.
    pub(super) fn shared_guard(&self, id: TypeId) -> Option<String> {
        let path = self.model.ty(id).name()?;
        let (_, code) = self.model.type_code.filter(|_| self.model.has_any())?;
        let is_its = code == id || type_code::is_inner(path);
        is_its.then(|| format!("QUILL_TYPE_{}", self.ty(id).base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_runtime_are_packed_and_others_stay() {
        let text =
            "quill_put_u32(out); /* quill */ QUILL_OK quill_any_get x_quill_put QUILL_NUMBER(u8) _quill_in";
        let expected = "quill_packed_put_u32(out); /* quill */ QUILL_OK quill_any_get x_quill_put \
                        QUILL_PACKED_NUMBER(u8) _quill_in";
        assert_eq!(packed(text), expected);
        // Packed names stay as they are.
        assert_eq!(packed(&packed(text)), expected);
        assert_eq!(escaped(b"a\0\"\xff1"), "a\\000\\042\\377\\061");
    }
}
