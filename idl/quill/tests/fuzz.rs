//! Any input ends, quickly and without a panic: files of the golden tests, mutated by a fixed sequence, and inputs that
//! are made to use up time or memory.

use std::path::Path;
use std::time::{Duration, Instant};

use quill::driver;
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
    "fpage",
    "in fpage x",
    "@grant",
    "@id(7)",
    "declare",
    "SAFEARRAY(",
    "interface I;",
    "[prealloc] ",
    "[kernelmsg(idl4::pagefault)]",
    "[max_value(7)]",
    "[uuid(70000)]",
    "import <l4/types.h>",
    "threadid",
    "ref long",
    "typedef struct { ",
    "typedef union { int a; } ",
    "char **",
    "[out, length_is(n)]",
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
    for folder in ["../golden/diagnostics", "../golden/accepted", "tests/programs"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
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
                for kernel in quill::kernel::ALL {
                    out.layout(kernel);
                    emitted += usize::from(!out.rust(kernel).is_empty());
                    if quill::parts::c(kernel).is_some() {
                        emitted += usize::from(!out.c(kernel).is_empty());
                    }
                }
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
