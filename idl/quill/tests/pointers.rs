//! DCE's pointers, arrays and pipes, references to objects, and fixed-point numbers over sockets: both languages understand each other, and whatever lies in a
//! message is found out. The programs are in `programs/`.

mod workshop;

use quill::driver;
use quill::kernel::Linux;
use quill::session::{Dialect, Options};
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
        let checks = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
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

#[test]
fn what_pointers_share_arrives_once() {
    let shop = workshop("cabinet", "calls");
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "cabinet", "cabinet.c"]].concat());
        for server in ["cabinet", "main"] {
            for client in ["cabinet", "main"] {
                shop.together([server, "serve", "socket"], [client, "call", "socket"]);
            }
        }
        let checks = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let output = ["-o", "cabinet", "cabinet.c"];
        match shop.try_tool(&compiler, &[&STRICT[..], &checks, &output].concat()) {
            Ok(()) => shop.together(["cabinet", "serve", "socket"], ["cabinet", "call", "socket"]),
            Err(why) => println!("{compiler} has no sanitizers: {why}"),
        }
        shop.run("cabinet");
    }
}

#[test]
fn values_and_descriptions_arrive() {
    let shop = workshop("museum", "calls");
    for compiler in compilers() {
        let checks = ["-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let output = ["-o", "museum", "museum.c"];
        if let Err(why) = shop.try_tool(&compiler, &[&STRICT[..], &checks, &output].concat()) {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2"], &output].concat());
        }
        for server in ["museum", "main"] {
            for client in ["museum", "main"] {
                shop.together([server, "serve", "socket"], [client, "call", "socket"]);
            }
        }
    }
}

/// Servers and clients of an interface in both languages, each with each.
fn each_with_each(name: &str) {
    let shop = workshop(name, "calls");
    for compiler in compilers() {
        let checks = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let source = format!("{name}.c");
        let output = ["-o", name, &source];
        if let Err(why) = shop.try_tool(&compiler, &[&STRICT[..], &checks, &output].concat()) {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2"], &output].concat());
        }
        for server in [name, "main"] {
            for client in [name, "main"] {
                shop.together([server, "serve", "socket"], [client, "call", "socket"]);
            }
        }
    }
}

#[test]
fn pipes_arrive_as_lists() {
    each_with_each("ferry");
}

#[test]
fn fixed_point_numbers_arrive() {
    each_with_each("till");
}

/// A client cannot use what it has not opened, and its server hears of what it leaves open.
#[test]
fn context_handles_end_with_their_clients() {
    let shop = workshop("counter", "calls");
    for compiler in compilers() {
        let checks = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let output = ["-o", "counter", "counter.c"];
        if let Err(why) = shop.try_tool(&compiler, &[&STRICT[..], &checks, &output].concat()) {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2"], &output].concat());
        }
        for server in ["counter", "main"] {
            for client in ["counter", "main"] {
                shop.together([server, "serve", "socket"], [client, "call", "socket"]);
            }
        }
    }
}

/// A value of two bytes in a message that takes 8,000 in memory.
const GREAT: &str = "union Great switch (boolean) { case TRUE: double all[1000]; case FALSE: octet none; };
    typedef sequence<Great> Greats;
    interface Store { void keep(in Greats values); };";

#[test]
fn short_messages_do_not_take_great_memory() {
    let shop = Workshop::new("budget");
    shop.emit_rust_of("budget_stubs.idl", GREAT, &Linux);
    shop.emit_c_of("budget_stubs.idl", GREAT, &Linux);
    shop.bring("budget.rs", "budget.rs");
    shop.bring("budget.c", "budget.c");
    shop.tool("rustc", &["--edition", "2024", "-A", "warnings", "-o", "in_rust", "budget.rs"]);
    shop.run("in_rust");
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "in_c", "budget.c"]].concat());
        shop.run("in_c");
    }
}

/// Readers of both kernels and languages stop at one depth, so what one can send the others can read.
#[test]
fn all_runtimes_read_as_deep() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let depth = |file: &str, before: &str| {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let digits = text.split(before).nth(1).unwrap_or_else(|| panic!("{file} has no {before:?}"));
        digits.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u32>().unwrap()
    };
    let in_rust = "const DEPTH_MAX: usize = ";
    let all = [
        depth("idl/quill/src/emit/c/stream.h", "#define QUILL_DEPTH_MAX "),
        depth("idl/quill/src/emit/rust/linux/runtime.rs", in_rust),
        depth("user/lib/stub/src/stream.rs", in_rust),
    ];
    assert_eq!(all, [64; 3]);
    // And who carries messages in so little memory has tables of one size.
    let shared = [
        depth("idl/quill/src/emit/c/places_shared.h", "#define QUILL_SHARED_MAX "),
        depth("user/lib/stub/src/stream.rs", "const SHARED_MAX: usize = "),
    ];
    assert_eq!(shared, [64; 2]);
}

/// A refusal says which part of a type cannot travel, why, and how it could, in both languages alike.
#[test]
fn a_union_of_which_nothing_says_what_it_holds_is_refused_with_what_helps() {
    let text = b"[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {
        typedef union choice { short one; long other; } choice;
        typedef struct trigger { short kind; choice what; } trigger;
        void whole([in] trigger *it);
        void bare([in] choice *it);
    }";
    let helps = "nothing says which member the union `choice` holds: its members want labels (`case`), and its place `switch_is`; or say `[flat]`, and its bytes travel";
    let options = || Options { dialect: Some(Dialect::Dce), ..Options::default() };
    let compiled = || driver::compile_text(std::path::Path::new("t.idl"), text, options());
    let (mut rust, mut c) = (compiled(), compiled());
    rust.rust(&Linux);
    c.c(&Linux);
    for messages in [rust.messages(), c.messages()] {
        let whole = format!("`whole` cannot be translated: `trigger` has a part that cannot travel: {helps}");
        let bare = format!("`bare` cannot be translated: {helps}");
        assert!(messages.contains(&whole) && messages.contains(&bare), "{messages}");
    }
    let flat = String::from_utf8_lossy(text).replace("typedef union", "typedef [flat] union");
    let mut flat = driver::compile_text(std::path::Path::new("t.idl"), flat.as_bytes(), options());
    flat.rust(&Linux);
    flat.c(&Linux);
    assert!(flat.accepted(), "{}", flat.messages());
}
