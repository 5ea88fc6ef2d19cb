//! C output compiles without a warning at every level of optimisation, and speaks with Rust. The programs are in
//! `programs/`. A compiler that the host does not have is left out, with a message.

mod workshop;

use quill::kernel::Linux;
use workshop::{Workshop, compilers};

/// Options, each set of which must give a program that works.
const LEVELS: [&[&str]; 5] = [&["-O0"], &["-O2"], &["-O3"], &["-Os"], &["-O2", "-flto"]];

const STRICT: [&str; 7] =
    ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror", "-D_GNU_SOURCE"];

#[test]
fn both_languages_understand_each_other() {
    let shop = Workshop::new("c-bank");
    shop.emit("bank.idl", &Linux);
    shop.emit_c("bank.idl", &Linux);
    shop.bring("bank.rs", "main.rs");
    shop.bring("bank.c", "bank.c");
    shop.rustc(&["main.rs"]);
    for compiler in compilers() {
        for level in LEVELS {
            let arguments = [&STRICT[..], level, &["-o", "bank", "bank.c"]].concat();
            shop.tool(&compiler, &arguments);
            shop.together(["bank", "serve", "socket"], ["bank", "call", "socket"]);
            shop.together(["bank", "serve", "socket"], ["main", "call", "socket"]);
            shop.together(["main", "serve", "socket"], ["bank", "call", "socket"]);
        }
    }
}

#[test]
fn damaged_requests_are_refused() {
    let shop = Workshop::new("c-damage");
    shop.emit_c("bank.idl", &Linux);
    shop.bring("bank.c", "bank.c");
    for compiler in compilers() {
        let checks = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        // A compiler may come without its sanitizers.
        let sanitized = shop.try_tool(&compiler, &[&STRICT[..], &checks, &["-o", "bank", "bank.c"]].concat());
        if let Err(why) = sanitized {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "bank", "bank.c"]].concat());
        }
        shop.run("bank");
    }
}

#[test]
fn names_that_clash_are_kept_apart() {
    let shop = Workshop::new("c-names");
    for file in ["names.idl", "parcel.idl"] {
        shop.emit_c(file, &Linux);
        let header = file.replace(".idl", ".h");
        std::fs::write(shop.path("names.c"), format!("#include \"{header}\"\n#include \"{header}\"\n"))
            .unwrap();
        for compiler in compilers() {
            shop.tool(&compiler, &[&STRICT[..], &["-c", "names.c"]].concat());
        }
    }
}
