//! Constants of a file as macros of C.

use super::Emitter;
use super::tree::{self, Item};
use crate::model::{Type, TypeId, Value};

impl Emitter<'_> {
    /// A constant's value, if C has one.
    fn constant(&self, ty: TypeId, value: &Value) -> Option<String> {
        Some(match value {
            Value::Int(v) => match self.kind(ty) {
                Type::Int { bits: 64, signed: true } if u32::try_from(*v).is_ok_and(|v| v >> 31 != 0) => {
                    format!("{v}ll")
                }
                _ => tree::integer(*v),
            },
            Value::Float(v) if v.is_finite() => {
                format!("{v:e}{}", if matches!(self.kind(ty), Type::Float(32)) { "f" } else { "" })
            }
            Value::Bool(v) => v.to_string(),
            // Whether a `char` is signed is the processor's affair.
            Value::Char(c) if *c > 127 => format!("'\\{c:03o}'"),
            Value::Char(c) | Value::WideChar(c) => format!("{c}"),
            Value::Str(text) | Value::WideStr(text) => {
                let text: Option<String> = text.iter().map(|&c| char::from_u32(c)).collect();
                quoted(&text?)
            }
            Value::Enum(_, v) => tree::integer(*v),
            _ => return None,
        })
    }

    /// A macro for each constant that C can have.
    pub(super) fn constants(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for (constant, name) in self.model.consts.iter().zip(&self.names.constants) {
            if let Some(value) = self.constant(constant.ty, &constant.value) {
                items.push(Item::Define(name.clone(), value));
            }
        }
        items
    }
}

/// A string of C. Digits may follow an octal escape of three digits without becoming a part of it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'?' => out.push_str("\\?"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out + "\""
}
