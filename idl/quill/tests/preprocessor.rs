//! quill's own preprocessor against the C compiler's: `cc -E` of a text and quill of the same text leave the same tokens. Left
//! out where the host has no C compiler, with a message. They differ in one thing: quill passes over `#line`, since its messages
//! name the files that it has read.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use quill::pp::preprocess;
use quill::session::{Options, Session};

/// What the C compiler makes of a text; `None` if it refuses it, or is not there.
fn by_compiler(text: &str) -> Option<String> {
    let arguments = ["-E", "-P", "-undef", "-x", "c", "-D__QUILL__", "-"];
    let mut command = Command::new("cc");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let out = child.wait_with_output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The spellings of all tokens, and whether there was no error.
fn tokens(text: &str) -> (Vec<String>, bool) {
    let mut session = Session::new(Options::default());
    session.virtual_files.insert("t.idl".into(), text.as_bytes().to_vec());
    let file = session.load(Path::new("t.idl"), None).unwrap();
    let out = preprocess(&mut session, file);
    let spelled = out.tokens[..out.tokens.len() - 1].iter().map(|t| session.names.text(t.text).to_owned());
    (spelled.collect(), session.diags.list().is_empty())
}

/// Compares one text. Whether the compiler took it.
fn agree(text: &str) -> bool {
    let Some(expected) = by_compiler(text) else { return false };
    let (found, accepted) = tokens(text);
    assert!(accepted, "only quill refuses:\n{text}");
    assert_eq!(found, tokens(&expected).0, "{text}\n--- cc -E\n{expected}");
    true
}

fn has_compiler() -> bool {
    let found = by_compiler("a").is_some();
    if !found {
        println!("there is no `cc` here: nothing to compare with");
    }
    found
}

#[test]
fn texts_that_were_written() {
    if !has_compiler() {
        return;
    }
    for text in [
        "#define A 1\nA B\n",
        "#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)\n",
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n\
         #define m(a) a(w)\n#define w 0,1\n#define t(a) a\nf(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\n\
         g(x+(3,4)-w) | h 5) & m(f)^m(m);\n",
        "#define str(s) # s\n#define xstr(s) str(s)\n#define V 2\n#define V2 4\n#define glue(a, b) a ## b\n\
         #define xglue(a, b) glue(a, b)\nxstr(strncmp(\"abc\\0d\", \"abc\", '\\4') == 0) xglue(V, V) str( a  b )\n",
        "#define t(x,y,z) x ## y ## z\nt(1,2,3) t(,4,5) t(6,,7) t(8,9,) t(10,,) t(,11,) t(,,12) t(,,)\n",
        "#define show(...) puts(#__VA_ARGS__)\nshow(The first, second, and third items.)\n",
        "#define EMPTY\n#define LP (\n#define F(x) x\nF EMPTY (1) F LP 2 )\n",
        "#if defined(A) || 1 - 2 < 0 && ~0 == -1\none\n#elif 1\ntwo\n#else\nthree\n#endif\n",
        "#define A 10\n#if A / 3 * 3 + A % 3 == A && (A << 2) == 40 && -1 > 0u\nyes\n#endif\n",
        "a /* comment */ b // another\nc \\\nd\n",
        "#define f(x) #x #x\nf(\"a\\\"b\" '\"' L\"w\")\n",
        "__LINE__\n\n__LINE__ /*\n*/ __LINE__\n",
    ] {
        assert!(agree(text), "cc refuses:\n{text}");
    }
}

/// Random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const PLAIN: [&str; 6] = ["OBJ", "a", "b", "7", "+", "\"s\""];
const MACROS: [&str; 6] = ["M0", "M1", "M2", "F0", "F1", "F2"];

/// Some tokens: plain ones, macros, calls.
fn words(r: &mut Random, parameters: &[&str], depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..r.below(4) {
        match r.below(8) {
            0 if !parameters.is_empty() => text += &format!("#{} ", r.pick(parameters)),
            1 if parameters.len() > 1 => text += "x ## y ",
            2 | 3 if !parameters.is_empty() => text += &format!("{} ", r.pick(parameters)),
            4 if depth < 2 => {
                let (one, other) = (words(r, parameters, depth + 1), words(r, parameters, depth + 1));
                text += &format!("{}({one}, ({other})) ", r.pick(&MACROS[3..]));
            }
            5 => text += &format!("{} ", r.pick(&MACROS)),
            _ => text += &format!("{} ", r.pick(&PLAIN)),
        }
    }
    text
}

#[test]
fn texts_that_were_made_up() {
    if !has_compiler() {
        return;
    }
    let mut r = Random(7);
    let mut taken = 0;
    for _ in 0..200 {
        let mut text = String::new();
        for name in &MACROS[..3] {
            text += &format!("#define {name} {}\n", words(&mut r, &[], 0));
        }
        for name in &MACROS[3..] {
            text += &format!("#define {name}(x, y) {}\n", words(&mut r, &["x", "y"], 0));
        }
        for _ in 0..4 {
            text += &format!("{}\n", words(&mut r, &[], 0));
        }
        taken += usize::from(agree(&text));
    }
    println!("{taken} of 200 texts were taken by both");
    assert!(taken > 50);
}
