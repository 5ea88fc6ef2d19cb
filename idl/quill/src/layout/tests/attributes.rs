//! Attributes and dialects, and messages: bounds, sizes and hints, which change them, and all that does not.

use super::*;

/// The layout of a text in either language, without the names of its interfaces.
pub(super) fn text_of(source: &str, dialect: Dialect, kernel: &dyn KernelPart) -> String {
    let options = Options { dialect: Some(dialect), ..Options::default() };
    let out = compile_text(Path::new("t.idl"), source.as_bytes(), options);
    assert!(out.accepted(), "{}", out.messages());
    text(&out.model, &layout(&out.model, kernel).unwrap(), kernel)
}

/// Two texts in CORBA's language with the same layout over all kernels.
pub(super) fn same(one: &str, other: &str) {
    for kernel in kernel::ALL {
        assert_eq!(
            text_of(one, Dialect::Corba, kernel),
            text_of(other, Dialect::Corba, kernel),
            "{}",
            kernel.name()
        );
    }
}

#[test]
pub(super) fn a_largest_size_is_a_bound() {
    same(
        "interface I { void f(@max_size(8) in string s, @max_size(3) inout string t); };",
        "interface I { void f(in string<8> s, inout string<3> t); };",
    );
    let registers = |source: &str| {
        let (_, layouts) = lay_out(source, &TernIpc);
        layouts.unwrap()[0].methods[0].request.registers
    };
    // The count, and as many registers as four numbers need.
    assert_eq!(
        registers("typedef sequence<long long> L; interface I { void f(@max_size(4) in L all); };"),
        5
    );
    same("interface I { void f(@max_size(8) in string<5> s); };", "interface I { void f(in string<5> s); };");
}

#[test]
pub(super) fn irrelevant_bits_do_not_travel() {
    same(
        "interface I { long f(@relevant_bits(10) in long a, @relevant_bits(7) in unsigned long b); };",
        "interface I { long f(in short a, in uint8 b); };",
    );
    let registers = |source: &str| {
        let (_, layouts) = lay_out(source, &L4V4);
        layouts.unwrap()[0].methods[0].request.registers
    };
    let plain = "interface I { void f(in long a, in long b, in long c, in long d); };";
    assert_eq!(registers(plain), 4);
    assert_eq!(registers(&plain.replace("in long", "@relevant_bits(8) in long")), 1);
}

/// Two long lists are strings, which the kernel copies from where they lie; those that are short most of the time are cheaper
/// to copy into the words of the message.
#[test]
pub(super) fn a_typical_size_decides_where_a_list_travels() {
    let source = |typical: &str| {
        format!(
            "typedef sequence<long long, 40> L; interface I {{ void f({typical} in L a, {typical} in L b); }};"
        )
    };
    let words = |typical: &str| {
        let (_, layouts) = lay_out(&source(typical), &TernIpc);
        let request = layouts.unwrap()[0].methods[0].request.clone();
        (request.memory_bytes, request.strings().count())
    };
    assert_eq!(words(""), (0, 2));
    assert_eq!(words("@typ_size(20)"), (0, 2));
    assert_eq!(words("@typ_size(4)"), (640, 0));
}

#[test]
pub(super) fn attributes_that_stubs_cannot_follow_are_refused_by_name() {
    for name in ["flat", "fpage", "map", "grant"] {
        let (_, layouts) = lay_out(&format!("interface I {{ void f(@{name} in long a); }};"), &TernIpc);
        let refused = layouts.unwrap_err();
        assert!(refused[0].message.contains(&format!("the attribute `{name}`")), "{}", refused[0].message);
        let dce = format!("interface I {{ void f([in, {name}] long a); }}");
        let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
        let out = compile_text(Path::new("t.idl"), dce.as_bytes(), options);
        assert!(out.accepted(), "{}", out.messages());
        assert!(layout(&out.model, &Linux).is_err());
    }
}

/// A hint: what cannot follow it says so, and goes on.
#[test]
pub(super) fn cache_hints_are_noted_where_nothing_follows_them() {
    let source = "interface I { void f(@caches(0) in string s, in long n); };";
    for kernel in kernel::ALL {
        let mut out = compile_text(Path::new("t.idl"), source.as_bytes(), Options::default());
        let layouts = out.layout(kernel);
        assert!(out.accepted() && !layouts.is_empty(), "{}", out.messages());
        let noted = out.messages().contains("`caches` of `s` has no effect");
        assert_eq!(noted, kernel.name() != "l4-v4", "{}", out.messages());
        let plain = text_of(&source.replace("@caches(0) ", ""), Dialect::Corba, kernel);
        assert_eq!(text(&out.model, &layouts, kernel), plain);
    }
}

#[test]
pub(super) fn sizes_are_checked() {
    for (param, expected) in [
        ("@max_size(0) in string s", "from 1 to"),
        ("@max_size(4) in long s", "strings and sequences"),
        ("@typ_size(4) in long s", "strings and sequences"),
        ("@relevant_bits(65) in long s", "from 1 to 64"),
        ("@relevant_bits(4) in double s", "whole numbers"),
        ("@caches(9) in string s", "from 0 to 8"),
        ("@typ_size in string s", "needs a value"),
    ] {
        let source = format!("interface I {{ void f({param}); }};");
        let out = compile_text(Path::new("t.idl"), source.as_bytes(), Options::default());
        assert!(!out.accepted() && out.messages().contains(expected), "{param}: {}", out.messages());
    }
}

/// What C passes by pointer, and what it does not pass at all, travels like CORBA's values.
#[test]
pub(super) fn both_languages_have_the_same_messages() {
    for kernel in kernel::ALL {
        assert_eq!(
            text_of(
                "interface I { long f([in] handle_t h, [in] long a, [in, out] short *b, [out] hyper *c,
                               [in, string] char *s, [in, string, max_size(7)] char *t, [in, string] char u[9]);
                               void g([in, ref] long *a, [in, relevant_bits(12), typ_size(1 + 1)] long b); }"
                    .replace(", typ_size(1 + 1)", "")
                    .as_str(),
                Dialect::Dce,
                kernel
            ),
            text_of(
                "interface I { long f(in long a, inout short b, out long long c, in string s, in string<7> t,
                                      in string<8> u);
                               void g(in long a, in short b); };",
                Dialect::Corba,
                kernel
            ),
        );
    }
}

/// An attribute file says how one side's programs see an interface. Nothing of it may reach the other side.
#[test]
pub(super) fn an_attribute_file_changes_nothing_that_travels() {
    let idl = "[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {
        typedef struct { long a; short b; } pair;
        void f([in] handle_t h, [in] pair *p, [out] long *x, [in, string] char *s);
        long g([in, out] long *x); }"
        .replace("[in] pair *p", "[in, ref] pair *p");
    let acf = "[explicit_handle, nocode] interface I {
        typedef [heap, out_of_line] pair;
        [comm_status, fault_status] g();
        [enable_allocate] f([comm_status] status, [heap] p, [byte_count(x)] s); }";
    let compile = |with: bool| {
        let mut session = Session::new(Options { dialect: Some(Dialect::Dce), ..Options::default() });
        session.virtual_files.insert("i.idl".into(), idl.clone().into_bytes());
        if with {
            session.virtual_files.insert("i.acf".into(), acf.as_bytes().to_vec());
        }
        let file = session.load(Path::new("i.idl"), None).unwrap();
        let mut out = compile_loaded(session, file);
        assert!(out.accepted(), "{}", out.messages());
        kernel::ALL.map(|kernel| {
            let layouts = out.layout(kernel);
            assert!(!layouts.is_empty(), "{}", out.messages());
            text(&out.model, &layouts, kernel)
        })
    };
    assert_eq!(compile(true), compile(false));
}

/// Counted texts in the other dialect, and with what has an effect in C.
#[test]
pub(super) fn counted_texts_travel_like_others() {
    let idl = "module M { typedef string<12> Tag; struct S { Tag tag; long n; }; exception E { Tag why; };
        interface I { string f(in string s, inout Tag t, in S all, out string<300> x) raises (E); }; };";
    let acf = "[counted] interface M::I { typedef [counted] Tag; [counted] f([counted] s, [terminated] x); }";
    for kernel in [&TernIpc as &dyn KernelPart, &Linux] {
        let compile = |acf: &str| {
            let mut session = Session::new(Options::default());
            session.virtual_files.insert("i.idl".into(), idl.into());
            session.virtual_files.insert("i.acf".into(), acf.into());
            let file = session.load(Path::new("i.idl"), None).unwrap();
            let mut out = compile_loaded(session, file);
            let layouts = out.layout(kernel);
            let (layout, c) = (text(&out.model, &layouts, kernel), out.c(kernel));
            let rust = out.rust(kernel);
            assert!(out.accepted(), "{}", out.messages());
            (layout, c, rust)
        };
        let (with, without) = (compile(acf), compile(""));
        assert_eq!(with.0, without.0);
        assert_ne!(with.1, without.1, "C sees no difference");
        assert_eq!(with.2, without.2, "Rust has counted texts in any case");
    }
}

#[test]
pub(super) fn local_interfaces_have_no_messages() {
    let source = "typedef sequence<string> S; local interface I { void f(in S all, inout Object o); };
                  interface J { void g(in long a); };";
    let (model, layouts) = lay_out(source, &TernIpc);
    let found = text(&model, &layouts.unwrap(), &TernIpc);
    assert!(found.starts_with("interface I, local: called without a message\ninterface J over"), "{found}");
}

/// A word of a request says whether there is an offer of pages in the place of a list, where a kernel part has such a thing and where it may be
/// worth while. Other messages are as they were.
#[test]
pub(super) fn a_word_says_that_pages_are_offered() {
    let interface = |bound: u64, rest: &str| {
        format!(
            "typedef sequence<octet, {bound}> D; interface G {{}};
             interface I {{ long f(@copy_on_write in D data{rest}); }};"
        )
    };
    let long = interface(65536, "");
    for kernel in [&TernIpc as &dyn KernelPart, &TernDoor] {
        let found = text_of(&long, Dialect::Corba, kernel);
        assert!(found.contains("w2[0..8]     data                     offer of D"), "{found}");
        assert!(found.contains("string 0     data"), "{found}");
    }
    let plain = |source: &str| source.replace("@copy_on_write ", "");
    for kernel in [&Linux as &dyn KernelPart, &L4V4] {
        assert_eq!(text_of(&long, Dialect::Corba, kernel), text_of(&plain(&long), Dialect::Corba, kernel));
    }
    // No longer than a page; with a reference, so that the request cannot be made twice; and one to which nothing comes back.
    let oneway = interface(65536, "").replace("long f", "oneway void f");
    for source in [interface(4096, ""), interface(65536, ", in G other"), oneway] {
        let door: &dyn KernelPart = &TernDoor;
        assert_eq!(text_of(&source, Dialect::Corba, door), text_of(&plain(&source), Dialect::Corba, door));
    }
    let two = interface(65536, ", @copy_on_write in D other, in long number");
    let found = text_of(&two, Dialect::Corba, &TernDoor);
    assert_eq!(found.matches("offer of D").count(), 2, "{found}");
}

#[test]
pub(super) fn what_cannot_be_offered_is_refused_by_name() {
    for parameter in ["in string s", "in L s", "out O s", "in long s"] {
        let source = format!(
            "typedef sequence<long> L; typedef sequence<octet, 8192> O;
             interface I {{ void f(@copy_on_write {parameter}); }};"
        );
        let (_, layouts) = lay_out(&source, &TernDoor);
        let messages = format!("{:?}", layouts.expect_err(parameter));
        assert!(messages.contains("`s` has the attribute `copy_on_write`"), "{messages}");
    }
}

/// Whoever knows a base of an interface finds its methods: under their numbers if it is the first, or all of them further on.
#[test]
pub(super) fn interfaces_are_found_as_each_of_their_bases() {
    let source = "interface A { void a1(); void a2(); };
        interface B : A { void b1(); };
        interface C { void c1(); void c2(); void c3(); };
        interface D : B, C { void d1(); };
        interface E : C, D {};
        interface F {};";
    let (model, layouts) = lay_out(source, &TernDoor);
    let layouts = layouts.unwrap();
    let show = |layout: &InterfaceLayout| {
        let views = layout.views.iter().map(|view| {
            let name = &model.interfaces[view.interface.0 as usize].name;
            format!("{name}@{}: {:?}", view.first, view.methods)
        });
        views.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(show(&layouts[1]), "B@0: [0, 1, 2], A@0: [0, 1]");
    // c1, c2 and c3 are 3, 4 and 5, and again 8, 9 and 10.
    assert_eq!(show(&layouts[3]), "D@0: [0, 1, 2, 3, 4, 5, 6], C@8: [3, 4, 5], B@0: [0, 1, 2], A@0: [0, 1]");
    assert_eq!(
        (layouts[3].method_at(5), layouts[3].method_at(10), layouts[3].method_at(7)),
        (Some(5), Some(5), None)
    );
    assert_eq!((layouts[3].numbers_end(), layouts[5].numbers_end()), (11, 0));
    let e = show(&layouts[4]);
    assert!(e.starts_with("E@0: [0, 1, 2, 3, 4, 5, 6], ") && e.contains("C@0: [0, 1, 2]"), "{e}");
    for layout in &layouts {
        for view in &layout.views {
            let alignment = (view.methods.len() as u32).next_power_of_two();
            assert_eq!(view.first % alignment, 0);
            for (i, &method) in view.methods.iter().enumerate() {
                assert_eq!(layout.method_at(view.first | i as u32), Some(method));
            }
        }
    }
}

/// A client and a server agree on a pipe as on a list, bounded or not, and on no callback.
#[test]
pub(super) fn pipes_are_lists_and_callbacks_are_refused() {
    let dce = |operations: &str| {
        format!(
            "[uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I {{ typedef pipe long p; {operations} }}"
        )
    };
    let layouts = |operations: &str, kernel: &dyn KernelPart| {
        let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
        let out = compile_text(Path::new("t.idl"), dce(operations).as_bytes(), options);
        (layout(&out.model, kernel), out.messages())
    };
    for kernel in kernel::ALL {
        let (pipes, messages) = layouts("void f([in, max_size(9)] p a, [out] p *b);", kernel);
        let messages = format!("{}: {messages}", kernel.name());
        assert_eq!(pipes.expect(&messages)[0].methods.len(), 1);
        let (refused, _) = layouts("void f(); [callback] void g([in] long a);", kernel);
        let refused = refused.unwrap_err();
        assert_eq!(refused.len(), 1);
        assert!(
            refused[0].message.contains("`g` cannot be translated: a callback"),
            "{}",
            refused[0].message
        );
    }
}

/// Fixed-point numbers are whole numbers of 64 bits, as far as these have room for all digits.
#[test]
pub(super) fn fixed_point_numbers_have_eight_bytes() {
    let source = |ty: &str| format!("typedef {ty} A; interface I {{ A f(in A one, in octet two); }};");
    for kernel in kernel::ALL {
        let places = |ty: &str| text_of(&source(ty), Dialect::Corba, kernel);
        assert_eq!(places("fixed<18, 2>"), places("long long"));
        let (_, layouts) = lay_out(&source("fixed<19, 2>"), kernel);
        assert!(layouts.unwrap_err()[0].message.contains("more than the 18 digits"));
    }
}
