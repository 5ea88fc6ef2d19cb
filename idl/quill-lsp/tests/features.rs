//! Answers of the server about texts: messages, hovers, definitions, outlines.

mod client;

use client::{Client, Scratch, range, short};
use serde_json::{Value, json};

const A: &str = "file:///none/a.idl";
const NOTHING: [&str; 0] = [];

#[test]
fn messages_follow_the_text() {
    let mut client = Client::new(json!({}));
    let text = "interface I {\n  void f(in lnog x);\n};\n";
    client.open(A, text);
    let found = client.diagnostics(A, 1);
    assert_eq!(found.iter().map(short).collect::<Vec<_>>(), ["E0201 1:12-1:16"]);
    assert_eq!(found[0]["message"], "`lnog` is not declared\nhelp: did you mean `long`?");
    assert_eq!(found[0]["source"], "quill");
    client.change(A, 2, &text.replace("lnog", "long"));
    assert_eq!(client.diagnostics(A, 2), NOTHING);
    client.change(A, 3, "interface I { void f(in long x, in long x); };\n");
    let found = client.diagnostics(A, 3);
    assert_eq!(short(&found[0]), "E0202 0:40-0:41");
    let related = &found[0]["relatedInformation"][0];
    assert_eq!(range(&related["location"]["range"]), "0:29-0:30", "{related}");
    // One that is saved is looked at again; one that is closed has no messages.
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": A } }));
    assert_eq!(client.diagnostics(A, 3).len(), 1);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": A } }));
    client.refused("textDocument/x", Value::Null);
    assert_eq!(client.notes.last().unwrap().params["diagnostics"], json!([]));
    client.end();
}

#[test]
fn positions_count_units_of_utf_16() {
    let mut client = Client::new(json!({}));
    let text = "/* ä𝄞€ */ interface I { void f(in lnog x); };\nconst string S = \"𝄞𝄞\"; typedef nog T;\r\ntypedef T U;";
    assert_eq!(client.check(A, text), ["E0201 0:35-0:39", "E0201 1:33-1:36"]);
    assert_eq!(client.definition(A, [2, 8]), format!("{A} 1:37-1:38"));
    assert_eq!(client.check("untitled:One", "\u{feff}typedef nog T;"), ["E0201 0:8-0:11"]);
    client.end();
}

#[test]
fn other_files_are_open_or_on_disk() {
    let scratch = Scratch::new("files");
    let base = scratch.file("inc/base.idl", "typedef long T;\n");
    let main = scratch.uri("main.idl");
    let mut client = Client::new(json!({ "include": [scratch.0.join("inc")] }));
    let text = "#include <base.idl>\ntypedef T U;\ntypedef V W;\n";
    assert_eq!(client.check(&main, text), ["E0201 2:8-2:9"]);
    assert_eq!(client.definition(&main, [1, 8]), format!("{base} 0:13-0:14"));
    assert_eq!(client.definition(&main, [0, 12]), format!("{base} 0:0-0:0"));
    assert!(client.hover(&main, [0, 2]).contains("inc/base.idl"));
    // An open text is taken before the file, and whoever includes it is looked at again.
    client.open(&base, "typedef long T;\ntypedef long V;\n");
    assert_eq!(client.diagnostics(&main, 1), NOTHING);
    client.change(&base, 2, "typedef nog T;\ntypedef long V;\n");
    let found = client.diagnostics(&main, 1);
    assert_eq!(short(&found[0]), "E0201 0:9-0:19");
    assert!(found[0]["message"].as_str().unwrap().contains("base.idl`: `nog` is not declared"), "{found:?}");
    let related = &found[0]["relatedInformation"][0]["location"];
    assert_eq!((related["uri"].as_str(), range(&related["range"]).as_str()), (Some(&*base), "0:8-0:11"));
    client.diagnostics(&base, 2);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": base } }));
    assert_eq!(client.diagnostics(&main, 1).iter().map(short).collect::<Vec<_>>(), ["E0201 2:8-2:9"]);
    client.end();
}

#[test]
fn files_with_other_names_are_the_same() {
    let scratch = Scratch::new("names");
    let base = scratch.file("base.idl", "typedef long T;\n");
    let main = scratch.file("sub/main.idl", "");
    let mut client = Client::new(json!({}));
    client.open(&base, "typedef long V;\n");
    client.diagnostics(&base, 1);
    assert_eq!(client.check(&main, "#include \"../base.idl\"\ntypedef V W;\n"), NOTHING);
    assert_eq!(client.definition(&main, [1, 8]), format!("{base} 0:13-0:14"));
    client.end();
}

#[test]
fn attribute_files_have_messages_of_their_own() {
    let scratch = Scratch::new("acf");
    let idl = scratch.file("a.idl", "interface I { void f(in string s); };");
    let acf = scratch.file("a.acf", "interface I { f([counted] s); }");
    let mut client = Client::new(json!({ "dialect": "corba" }));
    client.open(&idl, "interface I { void f(in string s); };");
    assert_eq!(client.diagnostics(&idl, 1), NOTHING);
    client.open(&acf, "interface I { g([counted] s); }");
    assert_eq!(client.diagnostics(&acf, 1).iter().map(short).collect::<Vec<_>>(), ["E0505 0:14-0:15"]);
    assert_eq!(client.diagnostics(&idl, 1).len(), 1);
    client.end();
}

const DESK: &str = "\
module Shop {
  struct Size { short width; short height; long grams; };
  typedef sequence<octet, 100> Bytes;
  enum Speed { Slow, Fast };
  const long LIMIT = 3 + 4;
  exception Closed { Speed when; };
  interface Base { typedef Size Kind; void knock(); };
  interface Desk : Base {
    readonly attribute long tariff, rate;
    Kind weigh(in Size s, in Bytes b) raises (Closed);
  };
};
";

#[test]
fn hovers() {
    let mut client = Client::new(json!({}));
    assert_eq!(client.check(A, DESK), NOTHING);
    let weigh = client.hover(A, [9, 10]);
    assert!(weigh.contains("// in Shop::Desk\nKind weigh(in Size s, in Bytes b) raises (Closed)"), "{weigh}");
    for part in [
        "interface Shop::Desk over tern-ipc",
        "request\n",
        "reply\n",
        "w0[0..",
        "registers",
        "exception Shop::Closed",
        "instructions of Shop::Desk over tern-ipc, predicted",
    ] {
        assert!(weigh.contains(part), "no {part:?} in {weigh}");
    }
    assert!(client.hover(A, [8, 28]).contains("_get_tariff"), "{}", client.hover(A, [8, 28]));
    assert!(client.hover(A, [6, 43]).contains("knock"));
    assert!(client.hover(A, [9, 19]).contains("8 bytes, aligned to 4"), "{}", client.hover(A, [9, 19]));
    assert!(client.hover(A, [9, 30]).contains("variable size, at most"), "{}", client.hover(A, [9, 30]));
    assert!(client.hover(A, [4, 14]).contains("long: 7"), "{}", client.hover(A, [4, 14]));
    assert!(client.hover(A, [3, 22]).contains("\n1\n"), "{}", client.hover(A, [3, 22]));
    assert!(client.hover(A, [7, 14]).contains("checks"), "{}", client.hover(A, [7, 14]));
    assert_eq!(client.hover(A, [0, 2]), "");
    // With errors the declaration remains.
    client.change(A, 2, &DESK.replace("in Bytes b", "in Byte b"));
    let weigh = client.hover(A, [9, 10]);
    assert!(weigh.contains("in Byte b") && weigh.contains("errors"), "{weigh}");
    client.end();
}

/// Layouts and costs are word for word those of `quill layout` and `quill cost`.
#[test]
fn costs_are_those_of_the_command() {
    for kernel in ["tern-ipc", "linux", "tern-door", "l4-v4"] {
        let mut client = Client::new(json!({ "kernel": kernel }));
        let text = "interface I { long f(in string<20> s, inout short n); };";
        assert_eq!(client.check(A, text), NOTHING);
        let mut compiled = quill::driver::compile_text(
            "a.idl".as_ref(),
            text.as_bytes(),
            quill::session::Options::default(),
        );
        let kernel = quill::kernel::find(kernel).unwrap();
        let layouts = compiled.layout(kernel);
        let hover = client.hover(A, [0, 19]);
        assert!(hover.contains(quill::layout::text(&compiled.model, &layouts, kernel).trim_end()), "{hover}");
        assert!(
            hover.contains(quill::layout::costs_text(&compiled.model, &layouts, kernel).trim_end()),
            "{hover}"
        );
        client.end();
    }
}

/// Messages that a kernel cannot carry are errors for those who asked for that kernel, and a remark for others.
#[test]
fn refusals_of_a_kernel() {
    let text = "interface I { void f(in fixed<20,1> x); void g(); };";
    let mut client = Client::new(json!({}));
    assert_eq!(client.check(A, text), NOTHING);
    let hover = client.hover(A, [0, 19]);
    assert!(hover.contains("Nothing over tern-ipc: `f` cannot be translated"), "{hover}");
    assert!(client.hover(A, [0, 45]).contains("other methods"), "{}", client.hover(A, [0, 45]));
    client.end();
    let mut client = Client::new(json!({ "kernel": "tern-ipc" }));
    assert_eq!(client.check(A, text), ["E0701 0:19-0:20"]);
    client.end();
}

#[test]
fn definitions() {
    let mut client = Client::new(json!({ "define": ["WIDE=long"] }));
    assert_eq!(client.check(A, DESK), NOTHING);
    let mut check = |at: [u32; 2], range: &str| {
        let found = client.definition(A, at);
        let wanted = if range.is_empty() { String::new() } else { format!("{A} {range}") };
        assert_eq!(found, wanted, "{at:?}");
    };
    check([9, 18], "1:9-1:13");
    check([9, 29], "2:31-2:36");
    check([9, 47], "5:12-5:18");
    check([7, 20], "6:12-6:16");
    // Inherited.
    check([9, 5], "6:32-6:36");
    // A keyword, and behind the text.
    check([0, 3], "");
    check([50, 3], "");
    client.change(A, 2, "#define N 4\n#define M N\ntypedef long T[M];\nmodule X { interface I; };\nmodule X { interface _I { const long c = 1; const long d = ::x::I::c; void f(in I i, in WIDE w); }; };\n");
    for (at, range) in [
        ([2, 15], "1:8-1:9"),
        ([4, 67], "4:37-4:38"),
        ([4, 64], "4:21-4:23"),
        ([4, 80], "4:21-4:23"),
        ([3, 22], "4:21-4:23"),
    ] {
        assert_eq!(client.definition(A, at), format!("{A} {range}"), "{at:?}");
    }
    assert_eq!(client.definition(A, [4, 88]), "");
    client.end();
}

#[test]
fn definitions_in_dce() {
    let scratch = Scratch::new("dce");
    let types = scratch
        .file("types.idl", "typedef struct _Pair { long a; long b; } Pair, *PPair;\nenum { RED, BLUE };\n");
    let main = scratch.uri("main.idl");
    let mut client = Client::new(json!({}));
    let text = "import \"types.idl\";\n[uuid(6d5140aa-77d1-4f34-9c6b-1d0e5d3f2a10), version(1.0)]\ninterface counter\n{\n  const long N = RED;\n  void add([in] handle_t h, [in] Pair p, [in, size_is(4)] long *v);\n}\n";
    assert_eq!(client.check(&main, text), NOTHING);
    assert_eq!(client.definition(&main, [0, 10]), format!("{types} 0:0-0:0"));
    assert_eq!(client.definition(&main, [5, 34]), format!("{types} 0:41-0:45"));
    assert_eq!(client.definition(&main, [4, 18]), format!("{types} 1:7-1:10"));
    let hover = client.hover(&main, [5, 34]);
    assert!(hover.contains("typedef struct _Pair") && hover.contains("8 bytes, aligned to 4"), "{hover}");
    let hover = client.hover(&main, [5, 8]);
    assert!(hover.contains("interface counter over tern-ipc") && hover.contains("elements"), "{hover}");
    client.end();
}

fn tree(symbols: &Value) -> String {
    let Some(symbols) = symbols.as_array() else { return String::new() };
    let one = |s: &Value| {
        let inner = tree(&s["children"]);
        let inner = if inner.is_empty() { inner } else { format!("({inner})") };
        format!("{}:{}{inner}", s["name"].as_str().unwrap(), s["kind"])
    };
    symbols.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn outlines() {
    let mut client = Client::new(json!({}));
    let mut check = |text: &str, wanted: &str| {
        client.open(A, text);
        let found = client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": A } }));
        assert_eq!(tree(&found), wanted, "{text}");
    };
    check(
        DESK,
        "Shop:2(Size:23(width:8 height:8 grams:8) Bytes:26 Speed:10(Slow:22 Fast:22) LIMIT:14 Closed:23(when:8) \
         Base:11(Kind:26 knock:6) Desk:11(tariff:7 rate:7 weigh:6))",
    );
    // Unfinished declarations do not hide finished ones.
    check("module M { interface I { void f(in long", "M:2(I:11)");
    check("module M { interface I { void f(); long g(", "M:2(I:11(f:6))");
    check(
        "struct S { long a, b[3]; sequence<sequence<long>> c; } ; typedef map<long, S> T, U[2];",
        "S:23(a:8 b:8 c:8) T:26 U:26",
    );
    check("union U switch (long) { case 1: case M::A: long x; default: S y; };", "U:23(x:8 y:8)");
    check(
        "typedef enum { a, b = 3 } E; typedef struct t { long x; } T, *P;",
        "a:22 b:22 E:26 t:23(x:8) T:26 P:26",
    );
    check(
        "local interface L { @x(1) void f(); }; interface G; native N; typedef @y long Z;",
        "L:11(f:6) N:26 Z:26",
    );
    check("valuetype V : W { public long m; factory make(in long a); };", "V:11(make:6)");
    check("@bit_bound(8) bitmask B { p, @position(3) q }; exception X { };", "B:10(p:22 q:22) X:23");
    let found = client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": A } }));
    assert_eq!(
        (range(&found[0]["range"]), range(&found[0]["selectionRange"])),
        ("0:0-0:45".into(), "0:22-0:23".into())
    );
    client.end();
}

/// Declarations of other files are none of the text's, however many there are.
#[test]
fn outlines_of_texts_that_include_much() {
    let mut client = Client::new(json!({}));
    let many: String = (0..25_000).map(|i| format!("typedef long T{i};\n")).collect();
    client.open("file:///none/many.idl", &many);
    client.open(A, "#include \"many.idl\"\nmodule M {\n#include \"many.idl\"\ntypedef T7 U; };");
    let found = client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": A } }));
    assert_eq!(tree(&found), "M:2(U:26)");
    client.open("file:///none/begin.idl", "module M {");
    client.open(A, "#include \"begin.idl\"\ntypedef long U; };");
    let found = client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": A } }));
    assert_eq!(tree(&found), "U:26");
    client.end();
}
