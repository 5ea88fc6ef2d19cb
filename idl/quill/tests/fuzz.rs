//! Any input ends, quickly and without a panic: files of the golden tests, mutated by a fixed sequence, and inputs that
//! are made to use up time or memory.

use std::path::Path;
use std::time::{Duration, Instant};

use quill::driver;
use quill::kernel::Linux;
use quill::session::{Dialect, Options};

/// A small generator of numbers; the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Pieces that make a parser think.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ">>",
    ";",
    ",",
    ":",
    "::",
    "=",
    "*",
    "@",
    "#",
    "\n#define A A A\n",
    "A",
    "\n#if 0\n",
    "\n#endif\n",
    "/*",
    "*/",
    "\"",
    "'",
    "\\",
    "\n",
    "module",
    "interface I",
    "struct S",
    "union U switch(",
    "enum E",
    "typedef",
    "sequence<",
    "string<",
    "const long X = ",
    "1 << 70",
    "case 1:",
    "default:",
    "in ",
    "out ",
    "oneway",
    "attribute",
    "raises(",
    "valuetype V",
    "exception X",
    "long",
    "unsigned",
    "fixed<",
    "0x",
    "99999999999999999999",
    "-",
    "~",
    "import \"t.idl\";",
    "#include \"t.idl\"\n",
    "cpp_quote(\"",
    "[uuid(1)]",
    "[size_is(a)]",
    "coclass",
    "library L {",
    "pipe",
    "..",
    "\0",
    "\u{e9}",
    "_",
    "map<",
    "bitmask",
    "bitset",
    "@annotation",
    "declare",
    "SAFEARRAY(",
    "interface I;",
];

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut text = seed.to_vec();
    for _ in 0..1 + random.below(8) {
        let at = random.below(text.len() + 1);
        match random.below(5) {
            0 if at < text.len() => text[at] = random.next() as u8,
            1 => {
                let end = (at + random.below(40)).min(text.len());
                text.drain(at..end);
            }
            2 => {
                let from = random.below(text.len() + 1);
                let end = (from + random.below(60)).min(text.len());
                let copy = text[from..end].to_vec();
                text.splice(at..at, copy);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())].bytes();
                text.splice(at..at, piece);
            }
        }
    }
    text
}

const GOOD_CORBA: &str = "module M { interface I; enum E { A, B = 1 }; struct S { long a; sequence<S> b; string<4> c[3]; };\n\
    union U switch (E) { case A: S s; default: any x; }; exception X { wstring w; };\n\
    const long N = (1 << 4) | ~3; typedef sequence<sequence<octet, N>> O; valuetype V : truncatable W { public long z; };\n\
    interface I : J, K { readonly attribute O o; oneway void f(in S s); E g(inout U u, out I i) raises (X); }; };\n";

const GOOD_DCE: &str = "import \"t.idl\"; cpp_quote(\"x\") [uuid(01234567-89ab-cdef-0123-456789abcdef), version(1.2)]\n\
    interface i : j { typedef [ptr, string] char *s; const long N = sizeof(long) ? 3 : 4;\n\
    typedef struct t { long n; [size_is(n), length_is(*n)] struct t **next; union switch (short k) u { case 1: s x; default: ; } v; } t;\n\
    typedef enum { A = 1, B } e; [idempotent] long f([in, out] t *x, [in] handle_t h, [out] e y[4], void (*cb)(int)); }\n";

#[test]
fn mutated_files_end_without_a_panic() {
    let mut seeds: Vec<Vec<u8>> = vec![GOOD_CORBA.into(), GOOD_DCE.into()];
    for folder in ["diagnostics", "accepted"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(folder);
        let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.retain(|p| p.extension().is_some_and(|e| e == "idl"));
        seeds.extend(files.iter().map(|p| std::fs::read(p).unwrap()));
    }
    let runs = std::env::var("QUILL_FUZZ_RUNS").ok().and_then(|r| r.parse().ok()).unwrap_or(6_000);
    let seed =
        std::env::var("QUILL_FUZZ_SEED").ok().and_then(|r| r.parse().ok()).unwrap_or(0x9E37_79B9_7F4A_7C15);
    println!("{runs} runs from seed {seed}");
    let mut random = Random(seed);
    let mut longest = Duration::ZERO;
    let mut emitted = 0;
    for run in 0..runs {
        let start_state = random.0;
        let text = mutate(&seeds[run % seeds.len()], &mut random);
        for dialect in [Dialect::Corba, Dialect::Dce] {
            let options = Options { dialect: Some(dialect), ..Options::default() };
            let start = Instant::now();
            let mut out = driver::compile_text(Path::new("t.idl"), &text, options);
            if out.accepted() {
                let layouts = out.layout(&Linux);
                emitted += usize::from(!out.rust(&layouts).is_empty());
            }
            let messages = out.messages();
            let rejected = !out.accepted();
            assert_eq!(rejected, messages.contains("error["), "run {run}, state {start_state}");
            longest = longest.max(start.elapsed());
        }
    }
    println!("longest run: {longest:?}; {emitted} translated");
    assert!(longest < Duration::from_secs(2), "a run took {longest:?}");
}

#[test]
fn hostile_files_end_in_time() {
    const SIZE: usize = 1 << 20;
    let repeat = |start: &str, piece: &str| {
        let mut text = String::from(start);
        while text.len() < SIZE {
            text.push_str(piece);
        }
        text
    };
    let counted = |start: &str, piece: &dyn Fn(usize) -> String| {
        let mut text = String::from(start);
        for i in 1.. {
            text.push_str(&piece(i));
            if text.len() >= SIZE {
                break;
            }
        }
        text
    };
    let doubling = counted("#define a0 x x\n", &|i| {
        if i < 60 { format!("#define a{i} a{} a{0}\n", i - 1) } else { "a59\n".into() }
    });
    let cases = [
        ("parentheses", repeat("const long x = ", "(")),
        ("modules", repeat("", "module a{")),
        ("sequences", repeat("typedef ", "sequence<")),
        ("sum", repeat("const long x = 1", "+1")),
        ("signs", repeat("const long x = ", "-")),
        ("attributes", repeat("", "[a,")),
        ("pointers", repeat("typedef int ", "*")),
        ("functions", repeat("typedef int ", "(*")),
        ("doubling macros", doubling),
        ("nested calls", format!("#define f(x) x x\n{}y{}", "f(".repeat(60), ")".repeat(60))),
        ("self include", "#include \"t.idl\"\n#include \"t.idl\"\n".into()),
        ("condition", repeat("#if ", "!")),
        ("conditionals", repeat("", "#if 1\n")),
        ("typedefs", counted("typedef long t0;", &|i| format!("typedef t{} t{i};", i - 1))),
        ("bases", counted("interface i0{};", &|i| format!("interface i{i}:i{}{{void f{i}();}};", i - 1))),
        (
            "extended structs",
            counted("struct s0{long x;};", &|i| format!("struct s{i}:s{}{{long x{i};}};", i - 1)),
        ),
        ("enum", counted("enum e{z", &|i| format!(",a{i}"))),
        (
            "long constants",
            format!("const string s0=\"{}\";", "a".repeat(60_000)) + &repeat("", "const string t=s0;"),
        ),
        ("errors", repeat("", "struct s { blah x; };")),
        ("zeros", repeat("", "\0")),
        ("semicolons", repeat("", ";")),
    ];
    for (name, text) in cases {
        for dialect in [Dialect::Corba, Dialect::Dce] {
            let start = Instant::now();
            let options = Options { dialect: Some(dialect), ..Options::default() };
            driver::compile_text(Path::new("t.idl"), &text.as_bytes()[..text.len().min(SIZE)], options)
                .messages();
            let took = start.elapsed();
            // Generous, since other tests run beside this one: it must not grow beyond proportion.
            assert!(took < Duration::from_secs(8), "{name}, {dialect:?}: {took:?}");
        }
    }
}
