use super::*;
use crate::session::Options;

/// Preprocesses `files[0]` and compares the tokens, and the codes of the messages.
fn check_files(files: &[(&str, &str)], expected: &str, codes: &[&str]) {
    let mut s = Session::new(Options { include_dirs: vec!["inc".into()], ..Options::default() });
    for (name, text) in files {
        s.virtual_files.insert((*name).into(), text.as_bytes().to_vec());
    }
    let file = s.load(Path::new(files[0].0), None).unwrap();
    let out = preprocess(&mut s, file);
    let words: Vec<&str> = out.tokens[..out.tokens.len() - 1].iter().map(|t| s.names.text(t.text)).collect();
    assert_eq!(words.join(" "), expected, "{files:?}");
    let found: Vec<&str> = s.diags.list().iter().map(|d| d.code.name()).collect();
    assert_eq!(found, codes, "{files:?}");
}

fn check(text: &str, expected: &str) {
    check_files(&[("main.idl", text)], expected, &[]);
}

#[test]
fn macros() {
    check("#define A 1\nA B", "1 B");
    check("#define F(x, y) y x\nF(a b, (c, d)) F", "( c , d ) a b F");
    check("#define F(x) <x>\nF\n(1)\n", "< 1 >");
    check("#define A A B\nA", "A B");
    check("#define A B\n#define B A\nA", "A");
    check("#define F(x) x\nF(F(F(1)))", "1");
    check("#define CAT(a, b) a##b\nCAT(x, 1) CAT(, y) CAT(z,)", "x1 y z");
    check("#define S(x) #x\nS( a  \"b\\n\" )", "\"a \\\"b\\\\n\\\"\"");
    check("#define V(a, ...) f(a, __VA_ARGS__)\nV(1, 2, 3)", "f ( 1 , 2 , 3 )");
    check("#define A 1\n#undef A\nA", "A");
    check("#define F() x\nF() F( )", "x x");
    check("__LINE__\n__LINE__", "1 2");
    check("#define EMPTY\nEMPTY a EMPTY", "a");
    // The C standard leaves open whether this is 2*9*g or 2*f(9); GCC says this.
    check("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g");
}

#[test]
fn conditionals() {
    check("#if 0\na 'don't\n#else\nb\n#endif", "b");
    check("#ifdef X\na\n#elif 1\nb\n#else\nc\n#endif", "b");
    check("#define X\n#if defined X && !defined(Y)\na\n#endif", "a");
    check("#if 1\n#if 0\na\n#elif 1\nb\n#endif\n#elif 1\nc\n#endif", "b");
    check("#if (1 + 2 * 3 == 7) && 0x10 == 16 ? 1 : 0\na\n#endif", "a");
    check("#if __has_include(<x.h>)\na\n#endif\nb", "b");
    check("#if 0\n#error no\n#bogus\n#endif", "");
    check("#if -1 > 0u && 0xffffffffffffffff > 1 && -1 / 2u > 1 && -1 < 0\na\n#endif", "a");
    check("#if (1 ? -1 : 0u) > 0 && (~0u >> 63) == 1 && (-8 >> 1) == -4\na\n#endif", "a");
    check_files(&[("m", "#if 1\na")], "a", &["E0005"]);
    check_files(&[("m", "#else\na\n#endif")], "a", &["E0005", "E0005"]);
    check_files(&[("m", "#if 1 +\n#endif")], "", &["E0006"]);
    check_files(&[("m", "#error stop\na")], "a", &["E0007"]);
    check_files(&[("m", "#defin A\n")], "", &["E0004"]);
}

#[test]
fn includes() {
    check_files(&[("d/m", "#include \"a\"\nc"), ("d/a", "a\n")], "a c", &[]);
    check_files(&[("d/m", "#include <a>\n"), ("d/a", "beside"), ("inc/a", "listed")], "listed", &[]);
    check_files(&[("d/m", "#include \"a\"\n"), ("d/a", "beside"), ("inc/a", "listed")], "beside", &[]);
    check_files(&[("m", "#define A \"a\"\n#include A\n"), ("a", "x")], "x", &[]);
    check_files(&[("m", "#include \"a\"\n#include \"a\"\n"), ("a", "#pragma once\nx\n")], "x", &[]);
    check_files(&[("m", "#define A \"a\"\n#include \\\n  \\\n A\n"), ("a", "x")], "x", &[]);
    check_files(&[("m", "#include \\\n \"a\" \\\n\n"), ("a", "x")], "x", &[]);
    check_files(&[("m", "#include \"none\"\nx")], "x", &["E0002"]);
    // Blanks that are none in a program, on both sides of a joint.
    check_files(&[("m", "#include\u{85}\u{85}\\\n\u{85}l")], "", &["E0004"]);
    check_files(&[("m", "#include \"a\" // why\n#include \"a\" /* why */\n"), ("a", "x")], "x x", &[]);
    check_files(&[("m", "#include \"m\"\n")], "", &["E0001"]);
}

#[test]
fn errors_in_calls() {
    check_files(&[("m", "#define F(a) a\nF(1, 2) x")], "x", &["E0008"]);
    check_files(&[("m", "#define F(a) a\nF(1")], "", &["E0008"]);
    check_files(&[("m", "\"abc\nx")], "x", &["E0010"]);
    check_files(&[("m", "#define A 1\n#define A 2\nA")], "2", &["E0009"]);
}

#[test]
fn pragmas_stand_beside_the_tokens() {
    let mut s = Session::default();
    let file = s.load_bytes(Path::new("m"), b"a\n#pragma prefix \"x\"\nb", None).unwrap();
    let out = preprocess(&mut s, file);
    assert_eq!(out.pragmas.len(), 1);
    assert_eq!(out.pragmas[0].before, 1);
    assert_eq!(out.pragmas[0].tokens.len(), 2);
}

#[test]
fn a_name_from_a_macro_points_at_its_use() {
    let mut s = Session::default();
    let file = s.load_bytes(Path::new("m"), b"#define A b\n  A", None).unwrap();
    let out = preprocess(&mut s, file);
    let site = s.map.call_site(out.tokens[0].span);
    let place = s.map.place(site).unwrap();
    assert_eq!((place.line, place.column), (2, 3));
}
