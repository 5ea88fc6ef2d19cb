//! Unions with labels at the edges of every type that can choose a branch: what C writes, C and Rust read as the branch that was meant.

mod workshop;

use std::fmt::Write;
use std::process::Command;

use quill::kernel::{Linux, TernIpc};
use workshop::{Workshop, compilers};

/// Types of discriminators, and labels of each: in the interface file, and in C if it has another name for it.
const TYPES: [(&str, &[(&str, &str)]); 14] = [
    ("char", &[("'\\0'", "0"), ("'a'", ""), ("'\\177'", "127"), ("'\\200'", "128"), ("'\\377'", "255")]),
    ("wchar", &[("L'a'", "97"), ("L'\\u0080'", "128"), ("L'\\ud7ff'", "0xd7ff"), ("L'\\uffff'", "0xffff")]),
    ("octet", &[("0", ""), ("127", ""), ("128", ""), ("255", "")]),
    ("boolean", &[("FALSE", "false"), ("TRUE", "true")]),
    ("int8", &[("-128", ""), ("-1", ""), ("0", ""), ("127", "")]),
    ("uint8", &[("0", ""), ("128", ""), ("255", "")]),
    ("short", &[("-32768", ""), ("-1", ""), ("0", ""), ("32767", "")]),
    ("unsigned short", &[("0", ""), ("32768", ""), ("65535", "")]),
    ("long", &[("-2147483648", "INT32_MIN"), ("-1", ""), ("2147483647", "")]),
    ("unsigned long", &[("0", ""), ("2147483648", "0x80000000u"), ("4294967295", "UINT32_MAX")]),
    ("long long", &[("-9223372036854775808", "INT64_MIN"), ("-1", ""), ("9223372036854775807", "INT64_MAX")]),
    (
        "unsigned long long",
        &[("0", ""), ("9223372036854775808", "(UINT64_MAX / 2 + 1)"), ("18446744073709551615", "UINT64_MAX")],
    ),
    ("Signed", &[("lowest", ""), ("nothing", ""), ("highest", "")]),
    ("Mask", &[("bottom", ""), ("top", "")]),
];

const DECLARED: &str = "enum Signed { @value(-2147483648) lowest, @value(0) nothing, @value(2147483647) highest };\n\
     @bit_bound(64) bitmask Mask { bottom, @position(63) top };\n";

/// Two unions for each type: with a branch for each label, and with a default for all but the first.
fn idl() -> String {
    let mut text = String::from(DECLARED);
    for (number, (ty, labels)) in TYPES.iter().enumerate() {
        let cases = labels.iter().enumerate().map(|(n, (label, _))| format!(" case {label}: long b{n};"));
        writeln!(text, "union Each{number} switch ({ty}) {{{} }};", cases.collect::<String>()).unwrap();
        let first = labels[0].0;
        writeln!(text, "union Rest{number} switch ({ty}) {{ case {first}: long b0; default: short b1; }};")
            .unwrap();
        writeln!(text, "interface Takes{number} {{ Each{number} f(in Rest{number} p); }};").unwrap();
    }
    text
}

/// A program that writes each union with each label, reads it again, and prints its bytes.
fn c_program() -> String {
    let mut text = String::from(
        "#include <stdio.h>\n#include \"labels.h\"\n#include \"labels_check.h\"\nint main(void)\n{\n",
    );
    for (number, (_, labels)) in TYPES.iter().enumerate() {
        for (n, (label, in_c)) in labels.iter().enumerate() {
            let label = if in_c.is_empty() { label } else { in_c };
            writeln!(text, "    TRY(Each{number}, {label}, b{n}, {});", 1000 + n).unwrap();
            writeln!(text, "    TRY(Rest{number}, {label}, b{}, {});", n.min(1), 1000 + n).unwrap();
        }
    }
    text + "    return 0;\n}\n"
}

const CHECK: &str = r#"
#define TRY(type, label, branch, number)                                                       \
    do {                                                                                       \
        type value, read;                                                                      \
        memset(&value, 0, sizeof value);                                                       \
        memset(&read, 0, sizeof read);                                                         \
        value._d = (__typeof__(value._d))(label);                                              \
        value._u.branch = number;                                                              \
        quill_out out = { 0 };                                              \
        quill_put_##type(&out, &value);                                                        \
        quill_in in = quill_begin_in(out.bytes + QUILL_HEADER, out.length, NULL);             \
        quill_get_##type(&in, &read);                                                          \
        printf("%s %s ", #type, #branch);                                                      \
        for (size_t i = 0; i < out.length; i++)                                                \
            printf("%02x", out.bytes[QUILL_HEADER + i]);                                       \
        printf("\n");                                                                          \
        if (out.status != QUILL_OK || in.failed || in.at != in.length || read._d != value._d   \
            || read._u.branch != number) {                                                     \
            fprintf(stderr, "%s with the label %s does not come back\n", #type, #label);       \
            return 1;                                                                          \
        }                                                                                      \
        quill_discard(&out);                                                                   \
    } while (0)
"#;

/// Reads those lines, and the values in them.
fn rust_program() -> String {
    let mut text = String::from(
        r#"
mod labels;
use labels::rt::{In, Out, Wire};

fn read<T: Wire + std::fmt::Debug>(bytes: &[u8]) -> String {
    let mut from = In::new(bytes);
    let value = T::get(&mut from).expect("it is a value");
    from.finish().expect("nothing is left");
    let mut out = Out::default();
    value.put(&mut out);
    assert_eq!(out.finish().expect("it fits"), bytes);
    format!("{value:?}")
}

fn main() {
    for line in std::fs::read_to_string("lines").expect("C wrote it").lines() {
        let [ty, branch, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let byte = |at| u8::from_str_radix(&bytes[at..at + 2], 16).expect("it is a number");
        let bytes: Vec<u8> = (0..bytes.len()).step_by(2).map(byte).collect();
        let found = match ty {
"#,
    );
    for number in 0..TYPES.len() {
        for ty in ["Each", "Rest"] {
            writeln!(text, "            \"{ty}{number}\" => read::<labels::{ty}{number}>(&bytes),").unwrap();
        }
    }
    text + r#"            _ => panic!("{line}"),
        };
        assert!(found.starts_with(&format!("{branch}(")), "{line}: {found}");
    }
}
"#
}

#[test]
fn labels_at_the_edges_choose_their_branches() {
    let shop = Workshop::new("labels");
    let idl = idl();
    std::fs::write(shop.path("labels.c"), c_program()).unwrap();
    std::fs::write(shop.path("labels_check.h"), CHECK).unwrap();
    std::fs::write(shop.path("main.rs"), rust_program()).unwrap();
    shop.emit_rust_of("labels.idl", &idl, &Linux);
    shop.rustc(&["main.rs"]);
    let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"];
    shop.bring_tern();
    shop.emit_c_of("on_tern.idl", &idl, &TernIpc);
    shop.emit_c_of("labels.idl", &idl, &Linux);
    for compiler in compilers() {
        for sign in ["-fsigned-char", "-funsigned-char"] {
            let header = ["-fsyntax-only", "-I.", "-include", "on_tern.h", "-xc", "/dev/null", sign];
            shop.tool(&compiler, &[&strict[..], &header].concat());
            shop.tool(&compiler, &[&strict[..], &["-o", "labels_in_c", "labels.c", sign]].concat());
            let out = Command::new(shop.path("labels_in_c")).output().unwrap();
            let wrong = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{compiler} {sign}: {wrong}");
            std::fs::write(shop.path("lines"), &out.stdout).unwrap();
            shop.run("main");
        }
    }
}
