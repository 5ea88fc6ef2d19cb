use std::path::Path;

use crate::driver::{compile_loaded, compile_text};
use crate::session::{Dialect, Options, Session};

fn codes(out: &crate::driver::Compiled) -> Vec<String> {
    let show = |d: &crate::diag::Diagnostic| {
        let mark = if d.severity == crate::diag::Severity::Warning { "w" } else { "" };
        let line = out.session.map.place(out.session.map.call_site(d.span)).map_or(0, |p| p.line);
        format!("{mark}{}@{line}", d.code.name())
    };
    out.session.diags.list().iter().map(show).collect()
}

/// Compiles and compares `CODE@line` of every message, warnings with a `w` before.
fn check(text: &str, expected: &[&str]) {
    let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
    let out = compile_text(Path::new("t.idl"), text.as_bytes(), options);
    assert_eq!(codes(&out), expected, "{text}\n{}", out.messages());
}

fn check_files(files: &[(&str, &str)], expected: &[&str]) {
    let mut s = Session::new(Options { dialect: Some(Dialect::Dce), ..Options::default() });
    for (name, text) in files {
        s.virtual_files.insert((*name).into(), text.as_bytes().to_vec());
    }
    let file = s.load(Path::new(files[0].0), None).unwrap();
    let out = compile_loaded(s, file);
    assert_eq!(codes(&out), expected, "{files:?}\n{}", out.messages());
}

const UUID: &str = "uuid(01234567-89ab-cdef-0123-456789abcdef)";

#[test]
fn declarations() {
    check("typedef long a, *b, c[4], d[], e[*], f[0..*], (*g)(int x);", &[]);
    check(
        "typedef unsigned long int a; typedef unsigned b; typedef long long c; typedef const char *d;",
        &[],
    );
    check("typedef struct tag { long a; struct tag *next; } tag, *ptag;", &[]);
    check(
        "typedef int (__stdcall f)(); typedef int (g)(long a); typedef int (__stdcall *h)(); typedef int i();",
        &[],
    );
    check("typedef struct tag { long a; tag inner; } tag;", &["E0210@1"]);
    check("typedef enum { A, B = 4, C = B + 1, } e; const long X = C << 2;", &[]);
    check("typedef long a;\ntypedef short a;", &["E0202@2"]);
    // What was announced as a tag comes as a name.
    check("typedef enum e e; typedef enum e e; typedef e *p; typedef enum { A } e; const long X = A;", &[]);
    check("typedef enum e e;\ntypedef enum { A } e;\ntypedef enum { B } e;", &["E0202@3"]);
    check("typedef struct s s; typedef struct s s; struct s { long a; }; typedef struct s s;", &[]);
    check("typedef struct s s;\ntypedef long s;", &["E0202@2"]);
    check("typedef long a; typedef long a;", &[]);
    check("struct s { long a; };\nstruct s { long b; };", &["E0202@2"]);
    check("typedef nothing a;", &["E0201@1"]);
    check("typedef lnog a;", &["E0201@1"]);
    check("typedef long a[-1];", &["E0304@1"]);
    check("const long X = \"a\";", &["E0301@1"]);
    check("const long X = Y;", &["E0201@1"]);
    check("const long X = 1 / 0;", &["E0303@1"]);
    check("const wchar_t *S = L\"a\"; const char C = 'x';", &[]);
    check("struct s { long a : 3; long : 2; };", &[]);
    check("typedef long *const;", &["E0101@1"]);
    check("struct s { long; };", &["E0101@1"]);
    check("struct s { t[2]; };", &["E0101@1"]);
    check("enum interface { A };", &["E0102@1"]);
    check("typedef long void;", &["E0102@1"]);
    check("cpp_quote(x)", &["E0502@1"]);
    check("cpp_quote()", &["E0502@1"]);
    check("const long X = (long long\nx;", &["E0101@1"]);
    check("const unsigned long X = ((unsigned long)-1), Y;", &["E0101@1"]);
    check("typedef unsigned long T; const T X = (T)-1; const T Y = ((T)~0); const T Z = (X) - 1;", &[]);
    check("typedef long T; const T X = (T)+1 * 2; typedef long a[(X) - 1];", &[]);
    check("const hyper X = 0x100000000i64;", &[]);
    check("cpp_quote(\"x\") import \"none.idl\"; typedef unknown a;", &["E0002@1"]);
}

#[test]
fn interfaces() {
    let wrap =
        |body: &str| format!("[{UUID}, version(1.0), pointer_default(unique)] interface i {{\n{body}\n}}");
    check(&wrap("void f([in] handle_t h, [in, size_is(n)] long *p, [in] long n);"), &[]);
    check(&wrap("void f([in, size_is(m)] long *p, [in] long n);"), &["E0503@2"]);
    let objects = |body: &str| format!("[{UUID}, object] interface i {{\n{body}\n}}");
    check(&objects("long f([in, size_is(m)] long *p);\nlong g([out] long x);"), &["wE0503@2", "wE0504@3"]);
    check(&wrap("void f([in, size_is((n) - 1), length_is((short)n)] long *p, [in] long n);"), &[]);
    check(&wrap("void f([in, size_is(, (error_status_t)*n)] long **p, [in] long *n);"), &[]);
    check(&wrap("void f([in, size_is(, n), length_is(n, n + 1)] long **p, [in] long n);"), &[]);
    check(&wrap("void f([out] long x);"), &["E0504@2"]);
    check(&wrap("void f([out] long *x, [out] long y[3]);"), &[]);
    check(&wrap("void f([in, ref, unique] long *x);"), &["E0502@2"]);
    check(&wrap("void f([in, string] char *s, [in, string] wchar_t *w);"), &[]);
    check(&wrap("void f([in, string] long *s);"), &["E0502@2"]);
    check(&wrap("void f([in] long a, [in] long a);"), &["E0202@2"]);
    check(&wrap("void f([in] void a);"), &["E0209@2"]);
    check(&wrap("void f([in, unique] long a);"), &["E0502@2"]);
    check(&wrap("typedef [ptr] long *p; void f([in, ref] p a, [in, ref] struct s *b);"), &[]);
    check(&wrap("long const(long a);"), &["E0101@2"]);
    check("[pointer_default(unique unique)] interface i { }", &["E0502@1"]);
    check(&wrap("void f([in] long a);\nvoid f([in] short a);"), &["E0202@3"]);
    check(&wrap("[propget] void f([out] long *a);\n[propput] void f([in] short a);"), &[]);
    check(&wrap("typedef pipe long p; typedef [context_handle] void *c; void f([in] p x, [in] c y);"), &[]);
    let pipe = |body: &str| wrap(&format!("typedef pipe long p;\n{body}"));
    check(
        &pipe("void f([in] p a, [in] p *b, [out] p *c, [in, out, ref] p *d, [in, max_size(9)] p *e);"),
        &[],
    );
    check(&pipe("typedef struct { p a;\np *b; } s;"), &["E0502@3", "E0502@4"]);
    check(&pipe("p f();"), &["E0502@3"]);
    check(
        &pipe("void f([in, unique] p *a);\nvoid g([in] p a[3]);\nvoid h([in] p **a);"),
        &["E0502@3", "E0502@4", "E0502@5"],
    );
    check(&pipe("void f([in] long n, [in, size_is(n)] p *a);"), &["E0502@3"]);
    check(
        &pipe("typedef pipe p q;\ntypedef pipe void r;\nstruct s;\ntypedef pipe struct s t;"),
        &["E0502@3", "E0209@4", "E0210@6"],
    );
    check(&wrap("[callback] void f([in] long a);"), &[]);
    check(&wrap("void f([in, sise_is(n)] long *p, [in] long n);"), &["wE0501@2"]);
    check(&wrap("struct s { [in] long a; };"), &["E0502@2"]);
    check("[uuid(123-4)] interface i { void f(); }", &["E0502@1"]);
    // A number, as L4's own compilers have it.
    check("[uuid(123)] interface i { void f(); }", &[]);
    check("[uuid(\"01234567-89ab-cdef-0123-456789abcdef\")] interface i { void f(); }", &[]);
    check("[version(x.y.z!)] interface i { }", &["E0502@1"]);
    check(&format!("[{UUID}] interface i : nowhere {{ }}"), &["E0201@1"]);
    check(
        &format!("interface j; [{UUID}, object] interface i : j {{ HRESULT f([in] interface j *x); }}"),
        &[],
    );
    check(
        &format!("[{UUID}] library L {{ interface i; [{UUID}] coclass c {{ [default] interface i; }} }}"),
        &[],
    );
    check(&format!("[{UUID}] coclass c {{ interface i; }}"), &["wE0201@1"]);
    let library = |imported: &str| {
        format!("[{UUID}] library L {{ {imported} [{UUID}, odl] interface i : j {{ k f(); }}; }}")
    };
    check(&library("importlib(\"x.tlb\");"), &["wE0201@1", "wE0201@1"]);
    check(&library(""), &["E0201@1", "E0201@1"]);
    check("delegate d; interface i { void f([in] d *x); }", &[]);
    check(
        &format!(
            "[{UUID}] dispinterface d {{ properties: methods: [id(1)] void f(); [id(2)] void f(long x); }}"
        ),
        &[],
    );
}

#[test]
fn unions() {
    check("typedef union switch (long t) u { case 1: long a; case 2, 3: short b; default: ; } x;", &[]);
    check("typedef union switch (long t) { case 1: long a;\ncase 1: short b; } x;", &["E0402@2"]);
    check(
        "struct s { long t; [switch_is(t)] union { [case(1)] long a; [case(2, 3)] char b; [default] ; } u; };",
        &[],
    );
    check(
        "typedef [flat] union { long a; short b; } u; struct s { [flat] union { long a; byte b[4]; } v; };",
        &[],
    );
    check("typedef [flat] union switch (long t) { case 1: long a; } u;", &["wE0501@1"]);
    check("typedef [flat] struct { long a; } s; struct t {\n[flat] s a; };", &["wE0501@1", "wE0501@2"]);
    check("struct s { long t; [switch_is(x)] union { [case(1)] long a; } u; };", &["E0503@1"]);
    check(
        "typedef [switch_type(short)] union { [case(1)] long a; [default] long b;\n[default] long c; } u;",
        &["E0402@2"],
    );
}

#[test]
fn enumerators_of_namespaces_belong_to_their_enum() {
    check(
        "namespace A { namespace B { enum e { None, Both = None + 1, }; enum f { None }; struct Both { long None; }; } }",
        &[],
    );
    check("namespace A {\nenum e { X,\nX }; }", &["E0202@3"]);
    check("enum e { X };\nnamespace A { enum f { X }; }\nconst long c = X; enum g { X };", &["E0202@3"]);
    check("namespace A { enum e { X }; }\nconst long c = X;", &["E0201@2"]);
}

#[test]
fn imports() {
    check_files(&[("m.idl", "import \"a.idl\"; typedef t u;"), ("a.idl", "typedef long t;")], &[]);
    check_files(
        &[("m.idl", "import \"a.idl\"; typedef t u;"), ("a.idl", "import \"m.idl\"; typedef long t;")],
        &[],
    );
    // Macros of an imported file stay there.
    check_files(&[("m.idl", "import \"a.idl\"; typedef T u;"), ("a.idl", "#define T long\n")], &["E0201@1"]);
    let header = "#ifndef X\n#define X\ntypedef struct { int a; } t;\nstatic inline int f(int x) { return x; }\n\
                  extern \"C\" {\nint g(void);\ntypedef int (__attribute__((x)) weird)(int);\n}\n#error no\n#endif\n";
    check_files(&[("m.idl", "import \"a.h\"; typedef t u; typedef weird *w;"), ("a.h", header)], &[]);
    let header = "#define interface struct\n#define KIND interface\ninterface i { int x; };\n";
    let interface = format!(
        "#include \"a.h\"\n[object, {UUID}] interface i {{ long f(); }}; [object, {UUID}] KIND j : i {{}};"
    );
    check_files(&[("m.idl", &interface), ("a.h", header)], &[]);
    // C's own headers are known; what another header misses is not the interface's fault.
    check_files(&[("m.idl", "#include <stdint.h>\ntypedef uint8_t t;")], &[]);
    let header = "#include <none.h>\n#ifdef __midl\ntypedef int t;\n#endif\n";
    check_files(&[("m.idl", "#include \"a.h\"\ntypedef t u;"), ("a.h", header)], &["wE0002@1"]);
    check_files(&[("m.idl", "#include <none.h>\ntypedef long t;")], &["E0002@1"]);
}

#[test]
fn attribute_files() {
    let idl = format!("[{UUID}] interface i {{ typedef long t; void f([in] long a); }}");
    let with = |acf: &str, expected: &[&str]| check_files(&[("m.idl", &idl), ("m.acf", acf)], expected);
    with(
        "[explicit_handle] interface i { include \"x.h\"; typedef [in_line] t; [code] f([comm_status] st, a); }",
        &["wE0501@1", "wE0501@1", "wE0501@1"],
    );
    with("interface i { f([countd]\na); }", &["E0501@1"]);
    with("interface i {\nf([counted] a); }", &["E0502@2"]);
    with("interface i { typedef [counted]\nt; }", &["E0502@1"]);
    with("interface j {\n[counted] f(); }", &["E0505@2"]);
    with("interface i {\ng(); }", &["E0505@2"]);
    with("interface i { f(\nb); }", &["E0505@2"]);
    with("interface i { typedef [heap]\nq; }", &["E0505@2", "wE0501@1"]);
    with("interface i { f( }", &["E0101@1"]);
}

#[test]
fn samba() {
    check(
        "[pyhelper(\"x\")] interface i { declare [v1_enum] enum a; declare bitmap b; void f([in] a x); }",
        &[],
    );
    check(
        "[pyhelper(\"x\")] interface i { typedef bitmap { A = 1 } b; WERROR f([in] unknown_to_us *x); }",
        &["wE0201@1"],
    );
    check(
        "[uuid(\"01234567-89ab-cdef-0123-456789abcdef\")] interface i { typedef [public,gensize] struct { uint32 n; \
           [subcontext(4),size_is(n*2)] uint8 data[n]; [value(ndr_size(r))] uint32 z; } s; }",
        &["wE0501@1"],
    );
    check(
        "[uuid(\"01234567-89ab-cdef-0123-456789abcdef\")] interface i { typedef union { [case(1)] uint32 *x; [case(2)] uint32 *x; } u; }",
        &[],
    );
    check(
        "[pyhelper(\"x\")] interface i { typedef union { [case(1)] uint32 x;\n[case(2)] uint16 x; } u; }",
        &["E0202@2"],
    );
    check(
        "[pyhelper(\"x\")] interface i { typedef [bitmap8bit] bitmap { A = 0x80, B = ~1,\nC = 0x100 } b; }",
        &["E0302@2"],
    );
}

#[test]
fn constants_said_again() {
    check("const long A = 1; const long A = 1;", &[]);
    check("const long A = 1;\nconst long A = 2;", &["E0202@2"]);
    check("const long A = 1;\nconst short A = 1;", &["E0202@2"]);
    check("typedef enum { A = 0xffffffff } e; typedef enum { B = -1, C = 0xffffffff } f;", &[]);
    check("typedef enum { A =\n0x100000000 } e;", &["E0302@1"]);
}

/// Each value that does not fit keeps its lowest bits, as in C, and is told; the numbers beside each edge of each type say so.
#[test]
fn constants_that_do_not_fit_are_told() {
    for (ty, low, high) in [
        ("boolean", 0, 1),
        ("byte", 0, 255),
        ("char", -128, 255),
        ("unsigned char", 0, 255),
        ("small", -128, 127),
        ("short", -32768, 32767),
        ("unsigned short", 0, 65535),
        ("long", -2147483648, 2147483647),
        ("unsigned long", 0, 4294967295),
        ("hyper", i64::MIN.into(), i64::MAX.into()),
        ("unsigned hyper", 0i128, u64::MAX.into()),
    ] {
        let text = |value: i128| format!("const {ty} X = {value};");
        for (value, fits) in [(low, true), (high, true), (low - 1, false), (high + 1, false)] {
            // There is no literal for some of these.
            if value.unsigned_abs() > u64::MAX.into() {
                continue;
            }
            check(&text(value), if fits { &[] } else { &["wE0302@1"] });
        }
    }
    // Whoever converts by name means it.
    check("const unsigned long X = (unsigned long)-1; const unsigned short Y = ((unsigned short)~0);", &[]);
}

#[test]
fn attributes_that_contradict_themselves() {
    let field = |attributes: &str, ty: &str| format!("struct s {{ long n;\n[{attributes}] {ty}; }};");
    let parameter = |attributes: &str, ty: &str| {
        format!("[{UUID}] interface I {{\nvoid f([in] long n, [in, {attributes}] {ty}); }}")
    };
    for make in [&field as &dyn Fn(&str, &str) -> String, &parameter] {
        check(&make("range(1, 10)", "long a"), &[]);
        check(&make("range(3, 3)", "long a"), &[]);
        check(&make("range(10, 1)", "long a"), &["E0302@2"]);
        check(&make("range(1)", "long a"), &["E0502@2"]);
        check(&make("range", "long a"), &["E0502@2"]);
        check(&make("size_is(n)", "long *a"), &[]);
        check(&make("size_is(n), length_is(n)", "long *a"), &[]);
        check(&make("size_is(1 / 0)", "long *a"), &["E0303@2"]);
        check(&make("size_is(n / 0)", "long *a"), &["E0303@2"]);
        check(&make("size_is(-1)", "long *a"), &["E0302@2"]);
        check(&make("size_is(n), max_is(n)", "long *a"), &["E0502@2"]);
        check(&make("length_is(n), last_is(n)", "long *a"), &["E0502@2"]);
    }
    check("[uuid(zzz)] interface I { void f(); }", &["wE0502@1"]);
    check("[uuid(zzz-1)] interface I { void f(); }", &["E0502@1"]);
}

/// Attributes that are understood and of which nothing comes are told once, with the reason.
#[test]
fn attributes_without_effect_are_told() {
    let parameter = |attributes: &str| {
        format!(
            "[{UUID}] interface I {{\nvoid f([in, {attributes}] long a);\nvoid g([in, {attributes}] long a); }}"
        )
    };
    for attribute in ["allocate(all_nodes)", "heap", "ignore", "byte_count(a)", "cs_stag", "represent_as(t)"]
    {
        check(&parameter(attribute), &["wE0501@2"]);
    }
    check(&format!("[{UUID}] interface I {{ [broadcast] void f([in] long a); }}"), &["wE0501@1"]);
    check("typedef long t;\ntypedef [represent_as(t)] long u;", &["wE0501@2"]);
    let told = compile_text(Path::new("t.idl"), parameter("heap").as_bytes(), Options::default()).messages();
    assert!(told.contains("`heap` has no effect: who brings memory is said by the program"), "{told}");
}

/// Values that lie in a message as Samba's attributes say are refused by name where stubs are asked for, and others are told.
#[test]
fn what_sambas_attributes_say_of_messages_is_refused() {
    let stub = |attributes: &str, place: &str| {
        let (field, param) = if place == "field" { (attributes, "") } else { ("", attributes) };
        let bracket = |text: &str| if text.is_empty() { String::new() } else { format!("[{text}]") };
        let text = format!(
            "[pyhelper(\"x\")] interface i {{ typedef struct {{ {} uint32 a; }} s; void f([in] s *b, [in{}] uint32 c); }}",
            bracket(field),
            if param.is_empty() { String::new() } else { format!(", {param}") }
        );
        // Pointers of this dialect are refused in any case.
        let text = text.replace("s *b", "s b");
        let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
        let mut out = compile_text(Path::new("t.idl"), text.as_bytes(), options);
        assert!(out.accepted(), "{}", out.messages());
        out.rust(&crate::kernel::Linux);
        (out.accepted(), out.messages())
    };
    for place in ["field", "parameter"] {
        for (refused, named) in [
            ("subcontext(4)", "subcontext"),
            ("relative", "relative"),
            ("relative_short", "relative"),
            ("compression(1, 2)", "compression"),
        ] {
            let (accepted, messages) = stub(refused, place);
            assert!(!accepted, "{refused} of a {place}");
            assert!(messages.contains(&format!("(`{named}`), ")), "{messages}");
        }
        let (accepted, messages) = stub("value(3)", place);
        assert!(accepted, "{messages}");
        assert!(
            messages.contains("`value` has no effect: the program gives this value like any other one"),
            "{messages}"
        );
        assert!(stub("", place).0);
    }
}

/// Text of `cpp_quote` is in headers of C, in the order of the file, and Rust says that it has none of it.
#[test]
fn quoted_text_is_in_headers_of_c() {
    let text = format!(
        "cpp_quote(\"#define LIMIT 3\")\n[{UUID}] interface I {{ void f([in] long a); cpp_quote(\"/* \\\"it\\\" */\") }}"
    );
    let compiled = || compile_text(Path::new("t.idl"), text.as_bytes(), Options::default());
    for kernel in crate::kernel::ALL {
        if crate::parts::c(kernel).is_some() {
            let mut out = compiled();
            let header = out.c(kernel);
            assert!(header.contains("\n#define LIMIT 3\n/* \"it\" */\n#endif\n"), "{header}");
            assert_eq!(codes(&out), [""; 0]);
        }
    }
    let mut out = compiled();
    assert!(!out.rust(&crate::kernel::Linux).contains("LIMIT"));
    assert_eq!(codes(&out), ["wE0501@1"]);
    // Text of a file that is imported is in that file's own header.
    let mut s = Session::new(Options { dialect: Some(Dialect::Dce), ..Options::default() });
    for (name, text) in [("t.idl", "import \"u.idl\";"), ("u.idl", "cpp_quote(\"#define OTHER\")")] {
        s.virtual_files.insert(name.into(), text.into());
    }
    let file = s.load(Path::new("t.idl"), None).unwrap();
    assert!(!compile_loaded(s, file).c(&crate::kernel::Linux).contains("OTHER"));
}
