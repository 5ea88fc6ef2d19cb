use std::path::Path;

use crate::driver::compile_text;
use crate::parts;
use crate::session::{Dialect, Options};

/// Compiles and compares `CODE@line` of every message, warnings with a `w` before.
fn check(text: &str, expected: &[&str]) {
    let options = Options { dialect: Some(Dialect::Corba), ..Options::default() };
    let out = compile_text(Path::new("t.idl"), text.as_bytes(), options);
    let found: Vec<String> = out
        .session
        .diags
        .list()
        .iter()
        .map(|d| {
            let mark = if d.severity == crate::diag::Severity::Warning { "w" } else { "" };
            let line = out.session.map.place(out.session.map.call_site(d.span)).map_or(0, |p| p.line);
            format!("{mark}{}@{line}", d.code.name())
        })
        .collect();
    assert_eq!(found, expected, "{text}\n{}", out.messages());
}

#[test]
fn names() {
    check("struct S { long a; }; typedef S T; const long X = 1;", &[]);
    check("struct S { Strange a; };\nstruct T { Strange a; };", &["E0201@1"]);
    check("typedef long A;\ntypedef short A;", &["E0202@2"]);
    check("typedef long A;\ntypedef short a;", &["E0203@2"]);
    check("typedef long Apple;\ntypedef apple B;", &["E0204@2"]);
    check("module M {\ntypedef long m; };", &["E0205@2"]);
    check("typedef long Foo; interface I {\nvoid f(in Foo foo); };", &["E0206@2"]);
    check("typedef long Foo; interface I { Foo x();\nvoid foo(); };", &["E0206@2"]);
    check("typedef long Foo; struct S { Foo foo; };", &[]);
    check("typedef long L; const L::x y = 1;", &["E0207@1"]);
    check("module A { typedef long T; }; module A { typedef T U; }; typedef A::U V;", &[]);
    check("module A { typedef long T; }; typedef A::X V;", &["E0201@1"]);
    check("typedef long mylong; interface I { const long MYLONG = 1;\nstruct S { mylong x; }; };", &[]);
    check("exception E {}; \nstruct S { E e; };", &["E0209@2"]);
    check("struct S { long _struct; long _in; };", &[]);
    check("struct S { long in; };", &["E0102@1"]);
    check("typedef Object Factory;", &["wE0102@1"]);
    check("enum E { A, B }; enum F { C,\nA };", &["E0202@2"]);
    check("enum E { A, B }; const E X = A; const E Y = E::B;", &[]);
}

#[test]
fn forward_declarations() {
    check("struct S; typedef sequence<S> Ss; struct S { Ss children; };", &[]);
    check("struct S { S inner; };", &["E0210@1"]);
    check("struct S { sequence<S> list; };", &[]);
    check("struct S;\nstruct T { S inner; }; struct S { long a; };", &["E0210@2"]);
    check("struct S;\ntypedef sequence<S> Ss;", &["E0211@1"]);
    check("union U; union U switch(long) { case 1: long a; };", &[]);
    check("struct U;\nunion U switch(long) { case 1: long a; };", &["E0202@2", "E0211@1"]);
    check("interface I;\ninterface I { I next(); };", &[]);
    check("interface I;", &["E0211@1"]);
    check("interface I; typedef sequence<I> Is;", &["wE0211@1"]);
}

#[test]
fn interfaces() {
    check("interface A { void f(); }; interface B : A { void g(); };", &[]);
    check("interface A { void f(); };\ninterface B : A { void f(); };", &["E0405@2"]);
    check("interface A { void f(); }; interface B { void F(); };\ninterface C : A, B {};", &["E0405@2"]);
    check("interface R { void f(); }; interface A : R {}; interface B : R {}; interface C : A, B {};", &[]);
    check("struct S { long a; };\ninterface I : S {};", &["E0403@2"]);
    check("interface A {}; interface B : A,\nA {};", &["E0403@2"]);
    check("interface A : A {};", &["E0403@1"]);
    check("interface B; interface A :\nB {}; interface B : A {};", &["E0210@2"]);
    check("local interface L {};\ninterface I : L {};", &["E0403@2"]);
    check(
        "interface A { typedef long T; }; interface B { typedef short T; };\ninterface C : A, B { void f(in T t1); };",
        &["E0208@2"],
    );
    check(
        "interface A { typedef long T; }; interface B { typedef short T; };\ninterface C : A, B { void f(in A::T x); };",
        &[],
    );
    check("interface I { attribute long a;\nvoid A(); };", &["E0203@2"]);
    check(
        "exception E { long a; }; interface I { void f() raises (E); attribute long x getraises (E); };",
        &[],
    );
    check("struct S { long a; }; interface I {\nvoid f() raises (S); };", &["E0406@2"]);
    check("interface I { oneway void f(in long x); };", &[]);
    check("interface I { oneway long f(\nout long x); };", &["E0407@2", "E0407@1"]);
    check("interface I {\nvoid f(long x); };", &["E0104@2"]);
    check("interface I {\nvoid f(in sequence<long> x); };", &["E0404@2"]);
    check("interface I { void f(in long a,\nin long a); };", &["E0202@2"]);
    check("abstract interface I;\ninterface I {};", &["E0408@2"]);
}

#[test]
fn constants() {
    check("const long X = 2147483647; const long Y = -2147483648;", &[]);
    check("const long X = 2147483648;", &["E0302@1"]);
    check("const unsigned short X = -1;", &["E0302@1"]);
    check("const unsigned long long X = 18446744073709551615;", &[]);
    check("const unsigned long long X = 18446744073709551616;", &["E0302@1"]);
    check("const unsigned long X = ~0; const octet Y = ~1; const long Z = ~214;", &[]);
    check("const double X = 14;", &["E0301@1"]);
    check("const double X = 14.0 / 2; const float F = .5e1;", &[]);
    check("const short X = \"a\";", &["E0301@1"]);
    check("const long X = 1 / 0;", &["E0303@1"]);
    check("const long X = 1 << 64;", &["E0303@1"]);
    check(
        "const string S = \"a\" \"b\"; const wstring W = L\"x\"; const string<1> T = \"ab\";",
        &["E0302@1"],
    );
    check("const fixed F = 1.5d * 2d;", &[]);
    check("const boolean B = TRUE; const char C = '\\x41';", &[]);
    check("const char C = 'ab';", &["E0103@1"]);
    check("const long X = 08;", &["E0103@1"]);
    check("const long A = B;\nconst long C = B;", &["E0201@1"]);
    check("typedef string S[0];", &["E0304@1"]);
    check("typedef sequence<long, -1> S;", &["E0304@1"]);
    check("typedef fixed<2,3> F;", &["E0302@1"]);
    check("typedef sequence<sequence<long, (8 >> 1)>> S;", &[]);
}

#[test]
fn unions() {
    check("union U switch (long) { case 1: case 2: long a; default: short b; };", &[]);
    check("union U switch (long) { case 1: long a;\ncase 1: short b; };", &["E0402@2"]);
    check("union U switch (long) { default: long a;\ndefault: short b; };", &["E0402@2"]);
    check("@flat union U { long a; short b; };", &[]);
    check("union U; @flat union U { long a; }; typedef sequence<U> L;", &[]);
    check("union U { long a;\nshort b; };", &["E0401@1"]);
    check("union U { case 1: long a; };", &["E0101@1"]);
    check("@flat union U switch (long) { case 1: long a; };", &["wE0501@1"]);
    check("union U switch (float) { case 1: long a; };", &["E0401@1"]);
    check("union U switch (boolean) { case TRUE: long a; case 2: long b; };", &["E0301@1"]);
    check(
        "enum E { A, B }; union U switch (E) { case A: long a; case B: long b;\ndefault: long c; };",
        &["wE0402@2"],
    );
    check("enum E { A, B }; union U switch (E) { case C: long a; };", &["E0201@1"]);
    check("union U switch (short) { case 40000: long a; };", &["E0302@1"]);
}

#[test]
fn newer_idl() {
    check("@final struct S { @key int32 a; @optional string b; };", &[]);
    check("struct A { long x; }; struct B : A { long y; };", &[]);
    check("struct A { long x; }; struct B : A {\nlong x; };", &["E0202@2"]);
    check("@bit_bound(8) bitmask B { @position(3) X, Y }; union U switch (B) { case X: long a; };", &[]);
    check("bitset B { bitfield<3> x; bitfield<10, short> y; };", &[]);
    check("bitset B { bitfield<64> x; };\nbitset C { bitfield<65> y; };", &["E0302@2"]);
    check("bitset B { bitfield<60> x; };\nbitset C : B { bitfield<5> y; };", &["E0302@2"]);
    check("struct S { long a; };\nbitset C : S { bitfield<5> y; };", &["E0403@2"]);
    check("bitset B { bitfield<3> x; };\nunion U switch (B) { case 1: long a; };", &["E0401@2"]);
    check("bitset B { bitfield<3> x; };\nconst B C = 1;", &["E0301@2"]);
    check("@bit_bound(33)\nenum E { A };", &["E0302@1"]);
    check("@bit_bound(-1) enum E { A };\n@bit_bound(0) bitmask B { C };", &["E0302@1", "E0302@2"]);
    check("@bit_bound(8) @bit_bound(16)\nbitmask B { C };", &["E0202@1"]);
    check("enum E { @value(5) A, @value(5)\nB };", &["E0302@2"]);
    check("@bit_bound(8) enum E { @value(127) A,\nB };", &["E0302@2"]);
    check("typedef @bit_bound(8) bitmask B { @position(7) C } D; const B E = C;", &[]);
    check("valuetype V { typedef long T; public T x; };", &[]);
    check("struct S { long a @key [3]; }; typedef long @key T[2];", &[]);
    check("struct S; typedef map<long, S> M; struct S { long a; M m; @external S next; };", &[]);
    check("interface I { void factory(in long factory); };", &["wE0102@1", "wE0102@1"]);
    check("typedef map<string, long, 10> M; typedef map<long, sequence<long>> N;", &[]);
    check("struct S { long map; long port; long component; };", &[]);
    check("@annotation A { long value default 3; }; @A(value = 4) struct S { long a; };", &[]);
    check("valuetype V { public long a; private short b; factory make(in long x); };", &[]);
    check("component C { provides I p; }; interface I {};", &["E0201@1"]);
}

#[test]
fn template_modules() {
    let list = "module L<typename T, const unsigned long N> { typedef sequence<T, N> List; struct Pair { T a; T b[N]; }; };";
    let with = |text: &str, expected: &[&str]| check(&format!("{list}\n{text}"), expected);
    with("module L<long, 5> A; module L<string<4>, (1 << 3)> B; typedef A::List C; typedef B::Pair D;", &[]);
    with(
        "module O { const short N = 3; struct Pair { octet o; }; module ::L<Pair, N> A; typedef A::Pair P; };",
        &[],
    );
    with("module L<sequence<sequence<long>>, 2> A; struct S { A::List a; L::List b; };", &["E0207@2"]);
    with("module L<long> A;", &["E0410@2"]);
    with("module L<5, 5> A;", &["E0410@2"]);
    with("module L<long, long> A;", &["E0410@2"]);
    with("module L<void, 1> A;", &["E0209@2"]);
    with("module L<long, -1> A;", &["E0302@2"]);
    with("module L<long, 0> A;", &["E0304@1", "E0304@1"]);
    with("module L<long, 1> A; module L<short, 1>\nA;", &["E0202@3"]);
    with("module L<long, 1> A; module A {\ntypedef long List; };", &["E0202@3"]);
    with("typedef long M; module M<long, 1> A; typedef A::List T;", &["E0409@2"]);
    with(
        "module K<typename T> { alias L<T, 7> Own; struct S { Own::Pair p; }; }; module K<char> C; typedef C::Own::List T;",
        &[],
    );
    with("alias L<long, 7> Own;", &["E0101@2"]);
    with("module K<typename T> { module J<typename U> { typedef U V; }; };", &["E0101@2"]);
    check("module M<typename T> { typedef T U; }; typedef M::U V;", &["E0207@1"]);
    check(
        "module M<typename T> { struct S { T a; }; module M<T> Inner; };\nmodule M<long> Made;",
        &["E0210@1"],
    );
    check("module M<typename T> { struct T { long a; }; };\nmodule M<long> Made;", &["E0202@1"]);
    check(
        "module M<interface B, exception E> { interface I : B { void f() raises (E); }; }; interface X {}; exception Y {}; module M<X, Y> N;",
        &[],
    );
    check(
        "module M<interface B> { interface I : B {}; }; struct X { long a; };\nmodule M<X> N;",
        &["E0410@2"],
    );
    check(
        "module M<struct S, enum E, union U> { struct T { S x; E y; U z; }; }; struct A { long f; }; enum B { C }; union D switch (long) { case 1: A g; }; module M<A, B, D> N;\nmodule M<B, A, D> O;",
        &["E0410@2", "E0410@2"],
    );
    check(
        "module M<typename T, sequence<T> S> { struct P { S s; }; }; typedef sequence<long> Longs; module M<long, Longs> A;\nmodule M<short, Longs> B;",
        &["E0410@2"],
    );
    check("enum E { X }; module M<const E V> { const E W = V; }; module M<X> A; const E B = A::W;", &[]);
    check("module M<bogus T> { typedef T U; };", &["E0101@1"]);
    check("module M<typename T { typedef T U; };", &["E0101@1"]);
    check("module M<typename T> { typedef T\n };", &["E0101@2"]);
    // What it is made of is around the template, what it is given is around the instance.
    check(
        "module A { typedef long X; module M<typename T> { struct S { X x; T t; }; }; }; module B { typedef string X; module A::M<X> N; };",
        &[],
    );
}

#[test]
fn template_modules_have_an_end() {
    // Each takes twice as much as the one before.
    let mut text = String::from("module M0<typename T> { struct S { T a; }; };\n");
    for i in 1..40 {
        text += &format!("module M{i}<typename T> {{ module M{0}<T> A{i}; module M{0}<T> B{i}; }};\n", i - 1);
    }
    text += "module M39<long> Made;";
    check(&text, &["E0001@2"]);
}

#[test]
fn what_every_orb_supplies() {
    check("#include <orb.idl>\nstruct S { CORBA::TypeCode t; CORBA::OctetSeq o; };", &[]);
    check("const CORBA::ServiceOption X = 1;", &[]);
    check("module CORBA { struct S { TypeCode t; }; };", &[]);
    check("typedef CORBA::Nothing N;", &["E0201@1"]);
    check("union U; struct S { @external U u_; }; union U switch (long) { case 1: S it; };", &[]);
}

#[test]
fn no_followers() {
    check("struct S { long x\nlong y; };\ntypedef S T;", &["E0101@1"]);
    check("struct S { long ; };\ntypedef S T;", &["E0101@1"]);
    check("struct { long a; } x;\ntypedef x T;", &["E0101@1"]);
    check("#include \"missing.idl\"\ntypedef M::X Y;", &["E0002@1"]);
    check("interface I { int f(in bool b);\nvoid g(in bool c); };", &["E0201@1", "E0201@1"]);
    check("typedef sequence<Nope> A; typedef A B; struct S { B b; };", &["E0201@1"]);
    check("}\nstruct S { long a; };", &["E0101@1"]);
    check("module M { struct S { long a; };", &["E0101@1"]);
}

#[test]
fn pragmas() {
    check("#pragma prefix \"x\"\n#pragma ID A \"IDL:A:1.0\"\n#pragma version A 1.2\ntypedef long A;", &[]);
    check("#pragma version A 1.2.1\ntypedef long A;", &["E0106@1"]);
    check("#pragma unheard of\ntypedef long A;", &[]);
}

/// Annotations that would change what travels, contradict themselves, or are known to nobody.
#[test]
fn annotations_are_not_passed_over() {
    let member = |annotations: &str| format!("struct S {{ long a;\n{annotations} long b; }};");
    for fine in [
        "@id(1)",
        "@range(min=1, max=5)",
        "@min(3) @max(3)",
        "@range(1, 5)",
        "@key",
        "@Key",
        "@unit(\"m\")",
        "@optional(FALSE)",
    ] {
        check(&member(fine), &[]);
    }
    for wrong in [
        "@range(min=5, max=1)",
        "@min(5) @max(1)",
        "@max(1) @min(5)",
        "@max(2147483648)",
        "@min(-2147483649)",
    ] {
        check(&member(wrong), &["E0302@2"]);
    }
    check(&member("@min(TRUE)"), &["E0301@2"]);
    check(&member("@id(-1)"), &["E0502@2"]);
    check("struct S { @range(min=1.5, max=0.5) double a; };", &["E0302@1"]);
    check("struct S { @range(min='z', max='a') char a; };", &["E0302@1"]);
    check("typedef long A;\nstruct S { @range(min=5, max=1) A a; };", &["E0302@2"]);
    check("@range(min=5, max=1) typedef long A;", &["E0302@1"]);
    check("interface I {\nvoid f(@range(min=5, max=1) in long a); };", &["E0302@2"]);
    check("struct S { @id(1) long a;\n@id(1) long b; };", &["E0202@2"]);
    check("struct S { @id(1) long a,\nb; };", &["E0202@2"]);
    check("union U switch (long) { case 1: @id(1) long a;\ncase 2: @id(1) long b; };", &["E0202@2"]);
    check("exception E { @id(1) long a;\n@id(1) long b; };", &["E0202@2"]);
    // Whether or not it stands where quill has a use for annotations, and once for each name.
    check(
        "struct S { @nobodys(3) long a;\n@nobodys long b; @somebodys long c; };",
        &["wE0501@1", "wE0501@2"],
    );
    for place in [
        "@x struct S { long a; };",
        "enum E { @x A };",
        "union U switch (long) { @x case 1: long a; };",
        "interface I { void f(@x in long a); };",
        "interface I { @x void f(); };",
        "@x module M { const long A = 1; };",
        "bitset B { @x bitfield<3> a; };",
    ] {
        check(place, &["wE0501@1"]);
    }
    check("@annotation x { long value; };\n@x(1) struct S { long a; };", &[]);
    // Nobody sends a caller's context.
    check("interface I {\nvoid f(in long a) context(\"USER\", \"HOME\");\nvoid g(); };", &["wE0501@2"]);
}

/// Annotations that are understood and of which nothing comes are told once, with the reason.
#[test]
fn annotations_without_effect_are_told() {
    let member = |annotations: &str| format!("struct S {{\n{annotations} long a;\n{annotations} long b; }};");
    for annotation in ["@default(3)", "@try_construct(TRIM)", "@non_serialized", "@must_understand"] {
        check(&member(annotation), &["wE0501@2"]);
    }
    check("enum E { A,\n@default_literal B };", &["wE0501@2"]);
    check("@mutable struct S { sequence<@try_construct(TRIM) long> a; };", &["wE0501@1", "wE0501@1"]);
    check("@final struct S { @key long a; };", &[]);
    let options = Options { dialect: Some(Dialect::Corba), ..Options::default() };
    let out = compile_text(Path::new("t.idl"), member("@default(3)").as_bytes(), options);
    let reason = "`@default` has no effect: each value travels, so that none is left to its default";
    assert!(out.messages().contains(reason), "{}", out.messages());
}

/// Messages about a file over each kernel part, in each of its languages; none where it is translated.
fn made(text: &str) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for kernel in crate::kernel::ALL {
        for in_rust in [true, false] {
            let has_code = if in_rust { parts::rust(kernel).is_some() } else { parts::c(kernel).is_some() };
            if !has_code {
                continue;
            }
            let options = Options { dialect: Some(Dialect::Corba), ..Options::default() };
            let mut out = compile_text(Path::new("t.idl"), text.as_bytes(), options);
            let _ = if in_rust { out.rust(kernel) } else { out.c(kernel) };
            all.push((!out.accepted()).then(|| out.messages()));
        }
    }
    all
}

/// Members that may be absent, values, boxes of values, and descriptions of types are carried by all kernel parts.
#[test]
fn what_may_be_absent_is_carried() {
    for text in [
        "struct S { @optional long a; @optional string<60> b; @optional sequence<S> c; }; interface I { void f(in S p); };",
        "union U switch (long) { case 1: @optional long a; }; interface I { void f(in U p); };",
        "exception S { @optional long a; }; interface I { void f() raises (S); };",
        "interface I { void f(@optional in long a, @optional out string b, @optional(FALSE) in long c); };",
        "valuetype V { public long a; private V next; void look(); factory make(in long a); }; interface I { V f(inout V it); };",
        "abstract valuetype A { void look(); }; valuetype B : A { public long a; }; valuetype C : truncatable B { public B other; };
         valuetype D {}; interface I { C f(in D one, in B two); };",
        "valuetype V; struct S { V it; }; valuetype V { public S inner; }; interface I { S f(in V it); };",
        "valuetype Text string; valuetype Number long; struct S { Text a; Number b; CORBA::StringValue c; };
         interface I { Text f(in Number n, in S it); };",
        "interface I { attribute CORBA::TypeCode code; CORBA::TCKind kind(in any a); };",
        "module CORBA { struct Member { TypeCode type; }; struct Record { long a; }; interface I { Member f(in Record r); }; };",
    ] {
        check(text, &[]);
        for refused in made(text) {
            assert_eq!(refused, None, "{text}");
        }
    }
}

/// A value without a form of its own is refused by name where somebody asks for stubs, and not before.
#[test]
fn values_without_a_form_are_refused_by_name() {
    for (text, why) in [
        ("abstract valuetype V { void look(); };", "the abstract value type `V`"),
        ("custom valuetype V { public long a; };", "the custom value type `V`"),
        (
            "custom valuetype W { public long a; }; valuetype V : W { public long b; };",
            "the custom value type `V`",
        ),
        ("valuetype V sequence<V>;", "the value type `V`"),
        ("valuetype V; typedef sequence<V> L; valuetype W L; valuetype V W;", "the value type `"),
        ("valuetype V { public ValueBase a; };", "`ValueBase`"),
    ] {
        let text = format!("{text} interface I {{ void f(in V it); }};");
        check(&text, &[]);
        for refused in made(&text) {
            let refused = refused.unwrap_or_default();
            assert!(refused.contains(why), "{text}\n{refused}");
        }
    }
}

/// A type stands in a message as it stands in a file.
#[test]
fn types_are_shown_as_they_are_written() {
    for ty in [
        "map<long, string>",
        "map<long, string<3>, 7>",
        "sequence<map<long, string>, 2>",
        "sequence<sequence<short, 3>>",
        "fixed<5, 2>",
        "wstring<4>",
        "ValueBase",
        "any",
        "Object",
        "unsigned long long",
        "long double",
    ] {
        for (text, shown) in
            [(ty.to_owned(), ty.to_owned()), (format!("sequence<{ty}, 2>"), format!("sequence<{ty}, 2>"))]
        {
            let file = format!("typedef {text} T; const T X = 1.5;");
            let out = compile_text(
                Path::new("t.idl"),
                file.as_bytes(),
                Options { dialect: Some(Dialect::Corba), ..Options::default() },
            );
            let model = &out.model;
            let alias =
                model.ids().find(|&id| matches!(model.ty(id), crate::model::Type::Alias(..))).unwrap();
            assert_eq!(model.show(model.resolved(alias)), shown);
        }
    }
}
