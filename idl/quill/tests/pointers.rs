//! DCE's pointers and arrays, and references to objects, over sockets: both languages understand each other, and whatever lies in a
//! message is found out. The programs are in `programs/`.

mod workshop;

use quill::kernel::Linux;
use workshop::{Workshop, compilers};

const STRICT: [&str; 5] = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"];

/// Both languages' stubs for an interface, and its programs.
fn workshop(name: &str, test: &str) -> Workshop {
    let shop = Workshop::new(&format!("{name}-{test}"));
    shop.emit(&format!("{name}.idl"), &Linux);
    shop.emit_c(&format!("{name}.idl"), &Linux);
    shop.bring(&format!("{name}.rs"), "main.rs");
    shop.bring(&format!("{name}.c"), &format!("{name}.c"));
    // The names in an interface file are not Rust's.
    shop.tool("rustc", &["--edition", "2024", "-A", "warnings", "main.rs"]);
    shop
}

#[test]
fn pointers_and_open_arrays_arrive() {
    let shop = workshop("warehouse", "calls");
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "warehouse", "warehouse.c"]].concat());
        shop.together(["warehouse", "serve", "socket"], ["warehouse", "call", "socket"]);
        shop.together(["warehouse", "serve", "socket"], ["main", "call", "socket"]);
    }
}

#[test]
fn sizes_that_lie_and_dangling_values_are_refused() {
    let shop = workshop("warehouse", "damage");
    for compiler in compilers() {
        let checks = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let output = ["-o", "warehouse", "warehouse.c"];
        if let Err(why) = shop.try_tool(&compiler, &[&STRICT[..], &checks, &output].concat()) {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2"], &output].concat());
        }
        shop.run("warehouse");
    }
}

#[test]
fn objects_refer_to_one_another() {
    let shop = workshop("branch", "calls");
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "branch", "branch.c"]].concat());
        for server in ["branch", "main"] {
            for client in ["branch", "main"] {
                shop.together([server, "serve", "socket"], [client, "call", "socket"]);
            }
        }
    }
}
