//! Inputs made to use up time or memory, one for each corner of the grammars and of the preprocessor.
//!
//! The promise is that one megabyte of anything ends within two seconds of an optimised quill, and within 256 MB. Each
//! input is given to the command under limits of the system on processor time and address space, so that neither a
//! slow machine nor other tests beside this one decide about the result. Tests are built with little optimisation, so
//! the limit on time is five times the promise. `./tern test --full` uses a megabyte each; otherwise it is an eighth.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Processor time in seconds.
const SECONDS: u32 = 10;
/// Address space in KiB.
const MEMORY_KIB: u32 = 256 << 10;

/// Makes an input of about the given size.
struct Maker(usize);

impl Maker {
    fn repeat(&self, start: &str, piece: &str, end: &str) -> String {
        let count = self.0.saturating_sub(start.len() + end.len()) / piece.len();
        format!("{start}{}{end}", piece.repeat(count))
    }

    /// Pieces with a running number: every `#` in `piece` is the number, every `@` the one after it.
    fn count(&self, start: &str, piece: &str, end: &str) -> String {
        let mut text = start.to_owned();
        for i in 0usize.. {
            if text.len() + end.len() + piece.len() + 16 > self.0 {
                break;
            }
            text += &piece.replace('#', &i.to_string()).replace('@', &(i + 1).to_string());
        }
        text + end
    }

    /// Sixty declarations, each twice the size of the one before.
    fn doubling(&self, piece: &str) -> String {
        let mut text = String::from("struct s0{long a;};");
        for i in 0..60 {
            text += &piece.replace('#', &i.to_string()).replace('@', &(i + 1).to_string());
        }
        text + "interface I{void f(in s60 x);};"
    }
}

/// Names and texts of all inputs.
fn inputs(size: usize) -> Vec<(&'static str, String)> {
    let m = Maker(size);
    let r = |start: &str, piece: &str, end: &str| m.repeat(start, piece, end);
    let c = |start: &str, piece: &str, end: &str| m.count(start, piece, end);
    let mut all = vec![
        // Characters.
        ("zeros", r("", "\0", "")),
        ("semicolons", r("", ";", "")),
        ("long name", r("typedef long ", "a", ";")),
        ("long string", r("const string s=\"", "a", "\";")),
        ("open comment", r("/*", "x", "")),
        ("comments", r("", "/**/", "")),
        ("quotes", r("", "\"", "")),
        ("splices", r("", "\\\n", "")),
        ("exponents", r("const long x=", "1e+", "")),
        ("high characters", r("", "é", "")),
        // The preprocessor.
        ("hashes", r("", "#\n", "")),
        ("macro chain", c("", "#define a# a@\n", "a0\n").replace("#define", "\n#define")),
        (
            "string of an argument",
            r(&format!("#define s(x) {}\ns(", "#x ".repeat(size / 52)), "abcdefg ", ")"),
        ),
        ("strings of quotes", r("#define s(x) #x\n", "s(\"\\\\\\\\\")", "")),
        ("pasting", r("#define p ", "a##", "a\np\n")),
        ("pasting calls", format!("#define c(a,b) a##b\n{}x{}", "c(".repeat(60), ",y)".repeat(60))),
        ("calls in calls", format!("#define f(x) x x\n{}y{}", "f(".repeat(60), ")".repeat(60))),
        ("open calls", r("#define f(x) x\n", "f(", "")),
        ("names of functions", r("#define f(x) x\n", "f ", "")),
        ("include of itself", "#include \"t.idl\"\n#include \"t.idl\"\n".into()),
        ("include after a comment", r("/*", "x", "*/\n#include \"t.idl\"\n")),
        ("guarded includes", guarded_includes(size, "#else\n#if 0\n", "abc def ghi\n", "#endif\n#endif\n")),
        ("guarded comments", guarded_includes(size, "#endif\n/*", "x", "*/")),
        ("missing includes", r("", "#include \"none.idl\"\n", "")),
        ("imports of itself", r("", "import \"t.idl\";", "")),
        ("conditionals", r("", "#if 1\n", "")),
        ("branches not taken", r("#if 0\n", "#elif 0\n", "#endif\n")),
        ("condition in parentheses", r("#if ", "(", "")),
        ("condition of signs", r("#if ", "!", "")),
        ("condition of choices", r("#if ", "1?", "")),
        ("pragmas", r("", "#pragma x y\n", "")),
        ("definitions anew", c("", "\n#define a #", "").replace("a #", "a 1 #")),
        // OMG IDL.
        ("errors", r("", "struct s { blah x; };", "")),
        ("unknown names", c("", "typedef name# t#;", "")),
        ("modules", r("", "module a{", "")),
        ("long paths", long_paths(size)),
        ("sequences", r("typedef ", "sequence<", "")),
        ("maps", r("typedef ", "map<long,", "")),
        ("parentheses", r("const long x=", "(", "")),
        ("sum", r("const long x=1", "+1", ";")),
        ("signs", r("const long x=", "-", "")),
        ("strings", r("const string x=", "\"a\"", ";")),
        (
            "string constants",
            c(&format!("const string s=\"{}\";", "a".repeat(size / 17)), "const string t#=s;", ""),
        ),
        ("typedefs", c("typedef long t0;", "typedef t# t@;", "")),
        ("structs in structs", c("struct s0{long a;};", "struct s@{s# a;};", "")),
        ("structs open", r("", "struct a{", "")),
        ("extended structs", c("struct s0{long x;};", "struct s@:s#{long x#;};", "")),
        ("bases", c("interface i0{};", "interface i@:i#{void f#();};", "")),
        (
            "diamonds",
            c("interface i0{void f();};interface j0:i0{};", "interface i@:i#,j#{};interface j@:i#,j#{};", ""),
        ),
        ("names of an enum", c("enum e{z", ",a#", "};")),
        ("parameters", c("interface I{void f(in long a", ",in long a#", ");};")),
        ("exceptions", r("exception E{};interface I{void f() raises(E", ",E", ");};")),
        ("labels", c("union u switch(long){", "case #:", "long x;};")),
        ("branches", c("union u switch(long){", "case #:long x#;", "};")),
        ("dimensions", r("typedef long a", "[1]", ";")),
        ("annotations", r("", "@a(1)", "struct s{long x;};")),
        ("qualifiers", r("typedef ", "a::", " b;")),
        ("doubling structs", m.doubling("struct s@{s# a;s# b;};")),
        ("doubling sequences", m.doubling("struct s@{sequence<s#> a;sequence<s#> b;};")),
        ("doubling unions", m.doubling("union s@ switch(long){case 0:s# a;case 1:s# b;};")),
        ("multiplied arrays", m.doubling("typedef s# s@[4000000000];")),
        // DCE and MS IDL.
        ("attributes", r("", "[a,", "")),
        ("unknown attributes", c("[", "sise_#,", "]interface i{}")),
        ("many attributes", r("interface i{void f([", "in,", "in]long x);}")),
        ("pointers", r("typedef int ", "*", "")),
        ("functions", r("typedef int ", "(*", "")),
        ("functions of functions", r("typedef int f(", "int(*", "")),
        ("open arrays", r("typedef int a", "[]", ";")),
        ("sized fields", c("struct s{", "[size_is(n)]long*a#;", "long n;};")),
        ("sized parameters", c("interface i{void f([in]long n", ",[in,size_is(n)]long*a#", ");}")),
        ("size of many parts", r("interface i{void f([in,size_is(n", ",n", ")]long*a,[in]long n);}")),
        ("stand-ins", c("[object]interface i{void q();", "[call_as(q)]void f#();", "}")),
        ("conversions", r("const long x=", "(long)", "")),
        ("open conversion", r("const long x=(long", " long", "")),
        ("named conversions", r("typedef long T;const long x=", "(T)-", "1;")),
        ("choices", r("const long x=", "1?2:", "3;")),
        ("angles", r("typedef ", "A<", "")),
        ("label attributes", r("typedef[switch_type(long)]union{[case(1", ",1", ")]long x;}u;")),
        ("libraries", r("", "library a{", "")),
        ("fields of structs", c("typedef struct{long a;}t0;", "typedef struct{t# a,b;}t@;", "")),
    ];
    all.push(("doubling macros", doubling_macros()));
    all.push(("parameters of a macro", macro_parameters(size)));
    all.push(("unknown bases", unknown_bases(size)));
    all.push(("labels of an enum", enum_labels(size)));
    all
}

fn doubling_macros() -> String {
    let mut text = String::from("#define a0 x x\n");
    for i in 1..60 {
        writeln!(text, "#define a{i} a{0} a{0}", i - 1).unwrap();
    }
    text + "a59\n"
}

/// A macro with as many parameters as fit, each used once.
fn macro_parameters(size: usize) -> String {
    let count = size / 18;
    let names: Vec<String> = (0..count).map(|i| format!("a{i}")).collect();
    format!("#define f({}) {}\nf({})\n", names.join(","), names.join(" "), ",".repeat(count - 1))
}

/// A file that includes itself from many lines, and has much to skip each time.
fn guarded_includes(size: usize, between: &str, piece: &str, end: &str) -> String {
    let start = format!("#ifndef X\n#define X\n{}{between}", "#include \"t.idl\"\n".repeat(4100));
    Maker(size.max(200 << 10)).repeat(&start, piece, end)
}

/// Modules with long names around many interfaces.
fn long_paths(size: usize) -> String {
    let start: String = (0..39).map(|i| format!("module m{i}{}{{", "x".repeat(100))).collect();
    Maker(size).count(&start, "interface a#{};", &"};".repeat(39))
}

/// An interface with thousands of bases that nobody declares.
fn unknown_bases(size: usize) -> String {
    Maker(size).count("interface z:i", ",i#", "{};") + "interface i0{};"
}

/// A union with a label for each name of a large enum.
fn enum_labels(size: usize) -> String {
    let names = Maker(size / 3).count("enum e{z", ",a#", "};");
    Maker(size).count(&(names + "union u switch(e){"), "case a#:", "long x;};")
}

/// Runs quill under the limits; the exit code, `None` when a limit ended it, and what it said.
fn quill(dir: &Path, dialect: &str) -> (Option<i32>, String) {
    let limits = format!("ulimit -v {MEMORY_KIB} && ulimit -t {SECONDS} && exec \"$0\" \"$@\"");
    let out = Command::new("sh")
        .args(["-c", &limits, env!("CARGO_BIN_EXE_quill"), "--dialect", dialect, "--emit", "layout", "t.idl"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .output()
        .unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).chars().take(2_000).collect())
}

#[test]
fn hostile_files_end_within_limits() {
    let full = std::env::var("TERN_FULL").is_ok_and(|v| v == "1");
    let size = if full { 1 << 20 } else { 1 << 17 };
    let dir = std::env::temp_dir().join(format!("quill-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut failed = Vec::new();
    let inputs = inputs(size);
    for (name, text) in &inputs {
        std::fs::write(dir.join("t.idl"), text).unwrap();
        for dialect in ["corba", "dce"] {
            let (code, messages) = quill(&dir, dialect);
            if !matches!(code, Some(0 | 1)) {
                failed.push(format!("{name}, {dialect}: {code:?}\n{messages}"));
            }
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
    println!("{} inputs of {} KiB in two dialects", inputs.len(), size >> 10);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
