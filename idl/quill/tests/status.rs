//! Clients in C are told in DCE's way how a call failed, and find their server in its ways, whatever carries the messages.

mod workshop;

use std::path::Path;

use quill::driver::{self, Compiled};
use quill::kernel::{KernelPart, L4V4, Linux, TernDoor, TernIpc};
use quill::session::Options;
use workshop::{Workshop, compilers};

const IDL: &str = "[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {
    error_status_t add([in] long a, [in] long b);
    void look([in] long a, [out] long *found, [out, comm_status] error_status_t *ended);
    long plain([in] long a);
}";

const ACF: &str = "interface I {
    [comm_status, fault_status] add();
    plain([comm_status] how, [fault_status] why);
}";

fn compiled(shop: &Workshop, idl: &str, acf: &str) -> Compiled {
    let file = shop.path("status.idl");
    std::fs::write(&file, idl).unwrap();
    std::fs::write(shop.path("status.acf"), acf).unwrap();
    driver::compile(Path::new(&file), Options::default()).unwrap()
}

#[test]
fn failures_are_told_where_somebody_looks() {
    let shop = Workshop::new("status");
    shop.bring("status.c", "status.c");
    let mut out = compiled(&shop, IDL, ACF);
    std::fs::write(shop.path("status.h"), out.c(&Linux)).unwrap();
    assert!(out.accepted() && !out.messages().contains("warning"), "{}", out.messages());
    for compiler in compilers() {
        let options =
            ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-O2", "-o", "status", "status.c"];
        shop.tool(&compiler, &options);
        shop.run("status");
    }
}

const BOUND: &str = "[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {
    long who();
    error_status_t add([in] long where, [in] long b);
    long at([in] handle_t h, [in] long a);
    long beside([in] long a);
}";

/// Attribute files by which functions have no first parameter, and what a program says of it.
fn bindings() -> [(String, &'static str); 2] {
    [("implicit_handle(handle_t where)", "-DNAMED"), ("auto_handle", "-DASKED")].map(|(how, define)| {
        (
            format!(
                "[{how}] interface I {{ [comm_status, fault_status] add(); [explicit_handle] beside(); }}"
            ),
            define,
        )
    })
}

#[test]
fn servers_are_found_where_the_attribute_file_says() {
    let shop = Workshop::new("bound");
    shop.bring("bound.c", "bound.c");
    for (acf, define) in bindings() {
        let mut out = compiled(&shop, BOUND, &acf);
        std::fs::write(shop.path("status.h"), out.c(&Linux)).unwrap();
        assert!(out.accepted() && !out.messages().contains("warning"), "{}", out.messages());
        std::fs::write(shop.path("l4.c"), out.c_selftest()).unwrap();
        for compiler in compilers() {
            let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-O2", define];
            shop.tool(&compiler, &[&strict[..], &["-o", "bound", "bound.c"]].concat());
            shop.run("bound");
        }
        let alone =
            ["-std=gnu11", "-O1", "-w", "-ffreestanding", "-nostdlib", "-static", "-fno-pie", "-o", "l4"];
        let numbers = ["-DQUILL_INTERFACE=0", "-DQUILL_ROUNDS=20u", "-DQUILL_SEED=1", "l4.c"];
        shop.tool("gcc", &[&alone[..], &numbers].concat());
        shop.run("l4");
    }
}

const OWN: &str = "[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {
    typedef [handle] struct { long number; short shelf; } store_t;
    typedef [handle, string] char *name_t;
    typedef [handle] long box_t;
    long who([in] store_t *store);
    error_status_t add([in] box_t b, [in] long store_t_bind);
    void swap([in, out] box_t *_server, [in] long a);
    long spell([in] name_t name, [in] short more);
    long at([in] handle_t h, [in] store_t *a);
    long beside([in] store_t *a);
    long free([in] long a, [in] box_t b);
    long none([in, unique] name_t name, [in] short more);
    long nothing([in, unique] store_t *store);
}";

/// Two operations are told otherwise whom to call: one by its file, one by an attribute file; and one has its handle in the second place.
const OWN_ACF: &str =
    "[auto_handle] interface I { [comm_status, fault_status] add(); [explicit_handle] beside(); }";

/// The functions of the program are called around each call, once; if they find nobody, nobody is called; and a text or struct may be absent.
#[test]
fn handles_of_own_types_find_their_servers() {
    let shop = Workshop::new("handles");
    shop.bring("handles.c", "handles.c");
    let mut out = compiled(&shop, OWN, OWN_ACF);
    std::fs::write(shop.path("status.h"), out.c(&Linux)).unwrap();
    assert!(out.accepted() && !out.messages().contains("warning"), "{}", out.messages());
    // The self-test makes no values that may be absent.
    let present: String = OWN.lines().filter(|line| !line.contains("unique")).collect();
    std::fs::write(shop.path("l4.c"), compiled(&shop, &present, OWN_ACF).c_selftest()).unwrap();
    for compiler in compilers() {
        let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-D_GNU_SOURCE", "-O2"];
        shop.tool(&compiler, &[&strict[..], &["-o", "handles", "handles.c"]].concat());
        shop.run("handles");
    }
    let alone = ["-std=gnu11", "-O1", "-w", "-ffreestanding", "-nostdlib", "-static", "-fno-pie", "-o", "l4"];
    let numbers = ["-DQUILL_INTERFACE=0", "-DQUILL_ROUNDS=20u", "-DQUILL_SEED=1", "l4.c"];
    shop.tool("gcc", &[&alone[..], &numbers].concat());
    shop.run("l4");
}

/// In Rust a client asks what the program brings for it, before a call and behind it.
#[test]
fn clients_in_rust_ask_whom_to_call() {
    let shop = Workshop::new("handles-rust");
    let mut out = compiled(&shop, OWN, OWN_ACF);
    std::fs::write(shop.path("handles_stubs.rs"), out.rust(&TernIpc)).unwrap();
    assert!(out.accepted(), "{}", out.messages());
    shop.bring("handles.rs", "main.rs");
    shop.bring("stub_on_host.rs", "stub.rs");
    for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
        shop.bring(&format!("../../../../user/lib/stub/src/{part}"), part);
    }
    shop.rustc(&["--crate-type", "rlib", "--crate-name", "stub", "stub.rs"]);
    shop.rustc(&["--extern", "stub=libstub.rlib", "main.rs"]);
    shop.run("main");
    // Through doors it is the same, and where calls say themselves whom they are for there is none of it.
    let asks =
        |text: &str| text.contains("pub trait Binding") && text.contains("pub struct Bound<B>(pub B);");
    assert!(asks(&compiled(&shop, OWN, OWN_ACF).rust(&TernDoor)));
    assert!(!asks(&compiled(&shop, IDL, "").rust(&TernDoor)));
}

#[test]
fn a_handle_that_is_a_value_is_never_absent() {
    let shop = Workshop::new("handles-refused");
    let of = |ty: &str, param: &str| {
        let idl = format!("interface I {{ typedef [handle] {ty} box_t; void f([in{param}] box_t *b); }}");
        compiled(&shop, &format!("[uuid(01234567-89ab-cdef-0123-456789abcdef)] {idl}"), "").messages()
    };
    let why = "`b` says which server is called, and is no text or struct that may be absent";
    assert!(
        [", unique", ", ptr"].iter().all(|absent| of("long", absent).contains(why)),
        "{}",
        of("long", ", ptr")
    );
    for (ty, param) in [("long", ""), ("long", ", ref"), ("struct { long a; }", ", unique")] {
        assert!(!of(ty, param).contains("error"), "{}", of(ty, param));
    }
}

/// The messages are the same, and so are Rust's stubs, whose results say how a call failed.
#[test]
fn nothing_of_it_travels() {
    let shop = Workshop::new("status-layout");
    let layout = |acf: &str| {
        let mut out = compiled(&shop, IDL, acf);
        let layouts = out.layout(&TernIpc);
        (quill::layout::text(&out.model, &layouts, &TernIpc), out.rust(&Linux))
    };
    assert_eq!(layout(ACF), layout(""));
    assert_eq!(layout("[auto_handle] interface I {}"), layout(""));
}

#[test]
fn all_kernels_have_them_without_a_warning() {
    let shop = Workshop::new("status-kernels");
    shop.bring_tern();
    std::fs::write(shop.path("all.c"), "#include \"status.h\"\n").unwrap();
    for kernel in [&TernIpc as &dyn KernelPart, &TernDoor, &L4V4] {
        let mut out = compiled(&shop, IDL, ACF);
        let text = out.c(kernel);
        assert!(out.accepted(), "{}: {}", kernel.name(), out.messages());
        assert!(
            text.contains("QUILL_IS_COMM(_status)") && text.contains("I_plain_told"),
            "{}",
            kernel.name()
        );
        let bound = bindings().map(|(acf, _)| compiled(&shop, BOUND, &acf).c(kernel));
        let own =
            compiled(&shop, &OWN.replace("[handle, string] char *", "[handle] short "), OWN_ACF).c(kernel);
        assert!(own.contains("box_t_unbind(") && own.contains("I_swap_bound"), "{}", kernel.name());
        for text in bound.into_iter().chain([own, text]) {
            std::fs::write(shop.path("status.h"), text).unwrap();
            for compiler in compilers() {
                let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding"];
                shop.tool(&compiler, &[&strict[..], &["-I.", "-fsyntax-only", "all.c"]].concat());
            }
        }
    }
}

#[test]
fn places_that_are_none_are_refused() {
    let shop = Workshop::new("status-refused");
    for (acf, why) in [
        ("interface I { plain([comm_status] a); }", "how `plain` fails needs a place"),
        ("interface I { [comm_status] look(); }", "how `look` fails needs a place"),
        ("interface I { [comm_status] gone(); }", "no operation `gone`"),
        ("[auto_handle, implicit_handle(handle_t h)] interface I { }", "`I` is bound in two ways"),
        ("[implicit_handle(long h)] interface I { }", "`implicit_handle` is understood and has no effect"),
    ] {
        let out = compiled(&shop, IDL, acf);
        assert!(out.messages().contains(why), "{acf}: {}", out.messages());
    }
    for (idl, why) in [
        ("interface I { void f([in, comm_status] long a); }", "`comm_status` needs a place"),
        ("interface I { [fault_status] void f([in] long a); }", "`fault_status` needs a place"),
        ("interface I { [fault_status] hyper f([in] long a); }", "`fault_status` needs a place"),
    ] {
        let idl = format!("[uuid(01234567-89ab-cdef-0123-456789abcdef)] {idl}");
        let out = compiled(&shop, &idl, "");
        assert!(out.messages().contains(why), "{idl}: {}", out.messages());
    }
}
