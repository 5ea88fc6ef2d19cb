//! The program in C that says which values a file's names have; see [`crate::emit::values`].

use std::fmt::Write;

use super::names::Names;
use super::{Emitter, Part, linux};
use crate::emit::values::{self, Place};
use crate::model::Model;

const BEGIN: &str = r#"
#include <stdio.h>

static void show(const char *name, const void *value, size_t bytes)
{
    printf("%s 0x", name);
    while (bytes-- > 0)
        printf("%02x", ((const unsigned char *)value)[bytes]);
    printf("\n");
}

int main(void)
{
"#;

/// What stands behind the header of a file.
pub fn program(model: &Model) -> String {
    let (names, renamed) = Names::choose(model, linux::Linux.runtime());
    let emitter = Emitter::new(&renamed, names, &linux::Linux);
    let mut text = String::from(BEGIN);
    for named in values::all(model) {
        let name = match named.place {
            Place::Constant(number) => &emitter.names.constants[number],
            Place::Member(id, number) => &emitter.names.members[&id][number],
        };
        let path = named.path;
        let _ = match named.ty {
            Some(ty) => {
                let declared = emitter.ty(ty).declare("value");
                writeln!(text, "    {{ {declared} = {name}; show(\"{path}\", &value, sizeof value); }}")
            }
            None => writeln!(text, "    printf(\"{path} %s\\n\", {name});"),
        };
    }
    text + "    return 0;\n}\n"
}
