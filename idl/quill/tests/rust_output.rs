//! Rust output compiles without a warning, and calls made with it arrive. The programs are in `programs/`.

mod workshop;

use quill::driver;
use quill::kernel::{KernelPart, Linux, TernDoor, TernDoorPlain, TernIpc};
use quill::session::Options;
use workshop::{Workshop, accepted};

#[test]
fn calls_arrive_and_damaged_requests_do_not() {
    let shop = Workshop::new("rust-bank");
    shop.emit("bank.idl", &Linux);
    shop.bring("bank.rs", "main.rs");
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

/// Builds and runs `main.rs` with stubs for Tern. The crate that they share is replaced by one that needs no kernel.
fn run_on_host(shop: &Workshop) {
    shop.bring("stub_on_host.rs", "stub.rs");
    for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
        shop.bring(&format!("../../../../user/lib/stub/src/{part}"), part);
    }
    shop.rustc(&["--crate-type", "rlib", "--crate-name", "stub", "stub.rs"]);
    shop.rustc(&["--extern", "stub=libstub.rlib", "main.rs"]);
    shop.run("main");
}

/// Stubs for Tern over registers, and with a part in memory.
#[test]
fn messages_of_tern_arrive_and_damaged_ones_do_not() {
    for name in ["parcel", "letter", "archive", "catalog", "ledger", "property"] {
        let shop = Workshop::new(&format!("rust-{name}"));
        shop.emit(&format!("{name}.idl"), &TernIpc);
        shop.bring(&format!("{name}.rs"), "main.rs");
        run_on_host(&shop);
    }
}

/// Values that pointers share, over words.
#[test]
fn what_pointers_share_arrives_once_over_tern() {
    let shop = Workshop::new("rust-cabinet");
    shop.emit("cabinet.idl", &TernIpc);
    shop.bring("cabinet_in_words.rs", "main.rs");
    run_on_host(&shop);
}

/// An any with a value of each type of a file, over words.
#[test]
fn values_of_each_type_arrive_in_an_any_over_tern() {
    let shop = Workshop::new("rust-freight");
    shop.emit("freight.idl", &TernIpc);
    shop.bring("freight_in_words.rs", "main.rs");
    ["freight_values.rs", "freight_values.h"].iter().for_each(|file| shop.bring(file, file));
    run_on_host(&shop);
}

/// An any with a value of each type of a file: a client in each language with a server in each.
#[test]
fn both_languages_have_the_same_values_in_an_any() {
    let shop = Workshop::new("c-freight");
    shop.emit("freight.idl", &Linux);
    shop.emit_c("freight.idl", &Linux);
    ["freight.c", "freight_values.h", "freight_values.rs"].iter().for_each(|file| shop.bring(file, file));
    shop.bring("freight.rs", "main.rs");
    shop.rustc(&["main.rs"]);
    shop.run("main");
    shop.tool(
        "gcc",
        &["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-DON_SOCKETS", "-o", "freight", "freight.c"],
    );
    for (server, client) in [("freight", "main"), ("main", "freight"), ("freight", "freight")] {
        shop.together([server, "serve", "socket"], [client, "call", "socket"]);
    }
}

/// The kernel marks a request by whether its sender waits, and those to which nothing comes back have senders who do not.
#[test]
fn oneway_requests_reach_servers_that_look_for_themselves() {
    let program = r#"
        mod notes;
        use notes::I::{Server, dispatch};
        use stub::{Failure, Kind, MALFORMED, Message, Uid};
        struct Own(Vec<i32>);
        impl Server for Own {
            fn hint(&mut self, a: i32) -> Result<(), Failure> {
                self.0.push(a);
                Ok(())
            }
            fn next(&mut self, a: i32) -> Result<i32, Failure> {
                self.0.push(-a);
                Ok(a + 1)
            }
        }
        fn main() {
            let (mut own, hint, next) = (Own(Vec::new()), 0, 1 << 31);
            let mut tell = |kind, label, a| {
                let message = Message { kind, label, sender: Uid(7), words: [a, 0, 0, 0, 0, 0, 0, 0] };
                (dispatch(&mut own, &message).map(|reply| (reply.label, reply.words[0])), own.0.clone())
            };
            assert_eq!(tell(Kind::Reply, hint, 5), (None, vec![5]));
            assert_eq!(tell(Kind::Request, next, 6), (Some((u32::MAX, 7)), vec![5, -6]));
            // Who waits for nothing is told so, and who does not wait is not told.
            assert_eq!(tell(Kind::Request, hint, 7), (Some((MALFORMED, 0)), vec![5, -6]));
            assert_eq!(tell(Kind::Reply, next, 8), (None, vec![5, -6]));
            assert_eq!(tell(Kind::Fault, hint, 9), (None, vec![5, -6]));
        }
    "#;
    let shop = Workshop::new("rust-oneway");
    let idl = "interface I { oneway void hint(in long a); long next(in long a); };";
    let mut out = driver::compile_text("notes.idl".as_ref(), idl.as_bytes(), Options::default());
    let text = out.rust(&TernIpc);
    assert!(out.accepted(), "{}", out.messages());
    std::fs::write(shop.path("notes.rs"), text).unwrap();
    std::fs::write(shop.path("main.rs"), program).unwrap();
    run_on_host(&shop);
}

/// Fixed-point numbers in registers, and in a list that is read piece by piece.
#[test]
fn fixed_point_numbers_have_no_further_digits_over_tern() {
    let program = r#"
        mod till;
        use stub::{Failure, Kind, MALFORMED, Message, Uid};
        use till::I::{Server, dispatch};
        use till::quill::fixed_4_2;
        struct Own;
        impl Server for Own {
            fn twice(&mut self, a: fixed_4_2) -> Result<fixed_4_2, Failure> {
                fixed_4_2::new(2 * a.units()).ok_or(Failure::Refused(5))
            }
        }
        fn main() {
            let ask = |units: i64| {
                let words = [units as u64, 0, 0, 0, 0, 0, 0, 0];
                let message = Message { kind: Kind::Request, label: 0, sender: Uid(7), words };
                let reply = dispatch(&mut Own, &message).unwrap();
                (reply.label, reply.words[0] as i64)
            };
            assert_eq!(ask(-1250), (u32::MAX, -2500));
            assert_eq!(ask(9999).0, 5);
            assert_eq!([10_000, -10_000, i64::MIN].map(|units| ask(units).0), [MALFORMED; 3]);
        }
    "#;
    let shop = Workshop::new("rust-fixed");
    let idl = "typedef fixed<4, 2> A; typedef sequence<A, 200> L;
        interface I { A twice(in A it); }; interface J { A last(in L all); };";
    shop.emit_rust_of("till.idl", idl, &TernIpc);
    std::fs::write(shop.path("main.rs"), program).unwrap();
    run_on_host(&shop);
}

/// An object has the messages of a thread's server, but for pages that it is given; and a reference is handed over beside the words of a
/// message.
#[test]
fn what_objects_do_not_take() {
    let compile = |idl: &str| driver::compile_text("o.idl".as_ref(), idl.as_bytes(), Options::default());
    let many = (0..17).map(|number| format!("in Object o{number}")).collect::<Vec<_>>().join(", ");
    let many = format!("interface I {{ void f({many}); }};");
    for (idl, what) in [
        ("interface I { void f(in fpage p); };", "go there by ipc"),
        ("interface I { void f(inout fpage p); };", "go there by ipc"),
        ("interface I { fpage f(out fpage p); };", "or one flexpage"),
        ("interface I { fpage f(out Object o); };", "or one flexpage"),
        (
            "exception E { Object o; }; interface I { fpage f() raises (E); };",
            "references to objects, or one flexpage",
        ),
        (
            "exception E { fpage p; }; interface I { void f() raises (E); };",
            "is a flexpage, and no exception",
        ),
        (&many, "at most 16 references to objects, and there may be 17 in `o0`, `o1`"),
        (
            "typedef sequence<Object, 9> L; interface I { void f(in L a, out L b, out L c); };",
            "at most 16 references to objects, and there may be 18 in `b`, `c`",
        ),
        (
            "struct S { Object o[20]; }; interface I { void f(in S it); };",
            "at most 16 references to objects, and there may be 20 in `it`",
        ),
        (
            "valuetype V { public Object o; }; interface I { void f(in V it); };",
            "`it` has a part that several pointers may share, with a reference",
        ),
    ] {
        let mut out = compile(idl);
        let _ = out.rust(&TernDoor);
        assert!(out.messages().contains(what), "{idl}: {}", out.messages());
    }
    let has_no_end = "typedef sequence<Object> L; interface I { void f(in L a, out L b); };";
    let mut out = compile(has_no_end);
    let _ = out.rust(&TernDoor);
    assert!(out.accepted(), "{}", out.messages());
    for name in ["archive", "catalog", "ledger", "letter", "property"] {
        let mut out = driver::compile(&accepted(&format!("{name}.idl")), Options::default()).unwrap();
        let layouts = [&TernIpc as &dyn KernelPart, &TernDoor].map(|kernel| out.layout(kernel));
        assert!(layouts[0].iter().map(|of| &of.methods).eq(layouts[1].iter().map(|of| &of.methods)));
        assert!(out.rust(&TernDoor).contains("impl<S: ::stub::Callee> Client<S>"));
    }
}

/// How many references a message hands over at most is a number of the layout and of the crate that stubs share.
#[test]
fn layout_and_stubs_agree_on_how_many_references_there_may_be() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let most = |file: &str| {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let number = text.split("const HANDED_MAX: usize = ").nth(1).unwrap();
        number.split(';').next().unwrap().to_owned()
    };
    assert_eq!(most("user/lib/stub/src/stream.rs"), most("idl/quill/src/layout/places.rs"));
}

/// Traits of servers and objects in the output for a kernel, with the modules around them; none if there is no output.
fn traits(file: &str, kernel: &dyn KernelPart) -> Option<Vec<String>> {
    fn collect(items: &[syn::Item], from: &str, all: &mut Vec<String>) {
        for item in items {
            match item {
                syn::Item::Mod(module) => {
                    let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                    collect(inner, &format!("{from}::{}", module.ident), all);
                }
                syn::Item::Trait(found) => all.push(format!("{from}: {}", quote::quote! { #found })),
                _ => {}
            }
        }
    }
    let mut out = driver::compile(&accepted(file), Options::default()).unwrap();
    let text = out.rust(kernel);
    let parsed = out.accepted().then(|| syn::parse_file(&text).unwrap())?;
    let mut all = Vec::new();
    collect(&parsed.items, "", &mut all);
    Some(all)
}

/// A server is the same program, whether its stubs are optimised or not.
#[test]
fn plain_stubs_have_the_same_servers() {
    let mut compared = 0;
    for name in ["atlas", "bank", "cabinet", "catalog", "ledger", "parcel", "property", "warehouse"] {
        let file = format!("{name}.idl");
        let (Some(usual), Some(plain)) = (traits(&file, &TernDoor), traits(&file, &TernDoorPlain)) else {
            continue;
        };
        assert_eq!(usual, plain, "{file}");
        compared += usual.len();
    }
    assert!(compared > 8, "{compared}");
    // Whatever is copied lies on a stack.
    let mut out = driver::compile(&accepted("archive.idl"), Options::default()).unwrap();
    let _ = out.rust(&TernDoorPlain);
    assert!(out.messages().contains("more than 32768 bytes to be copied"), "{}", out.messages());
}

/// Without a message: what a method is given is what its caller has, at the same address.
#[test]
fn local_interfaces_are_called_directly() {
    let idl =
        "typedef sequence<long, 3> L; local interface I { long f(in L all, in string s, inout long n); };";
    let program = r#"
        mod local;
        use local::I::{Client, Server};
        struct Own(*const i32);
        impl Server for Own {
            fn f(&mut self, l: &[i32], s: &str, n: i32) -> Result<(i32, i32), local::rt::Failure> {
                assert_eq!((l.as_ptr(), s.len()), (self.0, 4));
                Ok((l.len() as i32, n + 1))
            }
        }
        fn main() {
            let list = [7; 77]; // too many, but nobody looks
            let mut own = Own(list.as_ptr());
            assert_eq!(Client { server: &mut own }.f(&list, "text", 5).unwrap(), (77, 6));
        }
    "#;
    let shop = Workshop::new("rust-local");
    let mut out = driver::compile_text("local.idl".as_ref(), idl.as_bytes(), Options::default());
    let text = out.rust(&Linux);
    assert!(out.accepted(), "{}", out.messages());
    std::fs::write(shop.path("local.rs"), text).unwrap();
    std::fs::write(shop.path("main.rs"), program).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

#[test]
fn names_that_clash_are_kept_apart() {
    let shop = Workshop::new("rust-names");
    shop.emit("names.idl", &Linux);
    shop.rustc(&["--crate-type", "lib", "--emit", "metadata", "names.rs"]);
}

#[test]
fn layouts() {
    let kernels: [&dyn KernelPart; 3] = [&Linux, &TernIpc, &TernDoor];
    for (file, kernels) in [
        ("bank.idl", &kernels[..1]),
        ("parcel.idl", &kernels[..2]),
        ("letter.idl", &kernels[1..2]),
        ("archive.idl", &kernels[1..2]),
        ("catalog.idl", &kernels[1..2]),
        ("depot.idl", &kernels[1..2]),
        ("ledger.idl", &kernels[..2]),
        ("property.idl", &kernels[..2]),
        ("freight.idl", &kernels[..2]),
        ("cabinet.idl", &kernels[..2]),
        ("atlas.idl", &kernels[2..]),
        ("fleet.idl", &kernels[2..]),
        ("film.idl", &kernels[1..]),
    ] {
        let mut out = driver::compile(&accepted(file), Options::default()).unwrap();
        let mut text = String::new();
        for &kernel in kernels {
            let layouts = out.layout(kernel);
            assert!(out.accepted(), "{}", out.messages());
            text += &quill::layout::text(&out.model, &layouts, kernel);
            text += &quill::layout::cost_text(&out.model, &layouts, kernel);
        }
        let golden = accepted(file).with_extension("layout.txt");
        if std::env::var_os("QUILL_BLESS").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(text, expected, "QUILL_BLESS=1 writes it anew");
    }
}
