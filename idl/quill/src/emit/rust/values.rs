//! The program in Rust that says which values a file's names have; see [`crate::emit::values`].

use std::fmt::Write;

use super::{Emitter, linux, names};
use crate::emit::values::{self, Place};
use crate::model::{Model, Type};

/// What stands behind the stubs of a file.
pub fn program(model: &Model) -> String {
    let renamed = names::renamed(model);
    let emitter = Emitter::new(&renamed, &linux::Linux);
    let rt = &emitter.runtime_name;
    let mut text = format!(
        "fn show<T: {rt}::Wire>(name: &str, value: T) {{\n    let mut out = {rt}::Out::default();\n    value.put(&mut out);\n    \
         let bytes = out.finish().unwrap();\n    \
         println!(\"{{name}} 0x{{}}\", bytes.iter().rev().map(|b| format!(\"{{b:02x}}\")).collect::<String>());\n}}\n\
         fn main() {{\n"
    );
    for named in values::all(model) {
        let found = match named.place {
            Place::Constant(number) => emitter.path(&[], &renamed.consts[number].name).to_string(),
            Place::Member(id, number) => {
                let (Type::Enum(path, members) | Type::Bitmask(path, _, members)) = renamed.ty(id) else {
                    continue;
                };
                format!("{}::{}", emitter.path(&[], path), super::name(&members[number].0))
            }
        };
        let path = named.path;
        let _ = match named.ty {
            Some(_) => writeln!(text, "    show({path:?}, {found});"),
            None => writeln!(text, "    println!(\"{{}} {{}}\", {path:?}, {found});"),
        };
    }
    text + "}\n"
}
