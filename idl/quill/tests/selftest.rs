//! The self-test that quill generates: it passes for stubs as they are, and fails for stubs with a fault.

mod workshop;

use std::path::Path;
use std::process::Command;

use quill::driver;
use quill::kernel::{KernelPart, Linux, TernDoor, TernIpc};
use quill::session::Options;
use workshop::{Workshop, accepted};

fn quill_test(arguments: &[&str]) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_quill")).arg("test").args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (out.status.code(), text)
}

/// What has numbers of its own: values are made, travel, and are told from others.
#[test]
fn stubs_with_numbers_of_their_own_pass() {
    for dialect in ["dce", "pidl"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../golden/values/{dialect}.idl"));
        let file = file.to_str().unwrap();
        for arguments in [&["--rounds", "20", file][..], &["--kernel", "l4-v4", "--rounds", "20", file]] {
            let (code, text) = quill_test(arguments);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains("refused: ok"), "{text}");
            let compared = text.contains("are the same in Rust and in C");
            assert_eq!(compared, arguments.len() == 3, "{text}");
        }
    }
}

/// Lines that a file has for headers of C may want what is not there. They are no matter of its stubs, nor of its values.
#[test]
fn lines_for_headers_are_left_out() {
    let shop = Workshop::new("quotes");
    let file = shop.path("quotes.idl");
    let text = "cpp_quote(\"#include \\\"nowhere.h\\\"\")\n[uuid(6b29fc40-ca47-1067-b31d-00dd010662da)] interface i { const long C = 7; long f([in] long a); }\n";
    std::fs::write(&file, text).unwrap();
    let (code, text) = quill_test(&["--rounds", "5", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("values: 1 are the same in Rust and in C"), "{text}");
}

/// A size that is what is left behind other things has to be large before there is anything.
#[test]
fn sizes_that_begin_late_are_found() {
    let shop = Workshop::new("late-sizes");
    let file = shop.path("late.idl");
    let text = "typedef struct { unsigned long size; [size_is(size - 12)] byte data[]; } device;\n\
        [uuid(6b29fc40-ca47-1067-b31d-00dd010662db)] interface i { void f([in] device *d, [in] long n, [in, size_is(n - 40)] short *s); }\n";
    std::fs::write(&file, text).unwrap();
    let (code, text) = quill_test(&["--rounds", "20", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("refused: ok").count(), 2, "{text}");
}

/// A list whose length is computed has room for fewer elements than most such lists, and a text for fewer characters: values that
/// are sent keep the bound, and over Tern, where a list has room for as many as its bound says, they fit.
#[test]
fn sizes_of_lists_with_bounds_are_kept() {
    let shop = Workshop::new("bounded-sizes");
    let file = shop.path("rack.idl");
    let text = "[uuid(6b29fc40-ca47-1067-b31d-00dd010662dc), pointer_default(unique)] interface Rack {
        typedef struct { unsigned short used; [length_is(used)] short slots[8]; } shelf;
        typedef struct { long size; [length_is(size - 12)] short slots[8]; } device;
        void part([in] long n, [in, length_is(n - 9)] long window[16]);
        void back([in] long n, [out] long *m, [out, length_is(*m - 20)] long window[16]);
        void ask([in] long n, [out, length_is(n - 20)] long window[3]);
        void rows([in] long n, [in, size_is(n - 20, n - 20)] long **cells);
        void text([in] long room, [out, string, size_is(room)] char *text, [in, out] shelf *s);
        void all([in] device *d, [in, size_is(100)] short *many);
    }";
    std::fs::write(&file, text).unwrap();
    let (code, text) = quill_test(&["--rounds", "30", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("refused: ok").count(), 2, "{text}");
    for kernel in [&TernIpc as &dyn KernelPart, &TernDoor] {
        let mut out = driver::compile(&file, Options::default()).unwrap();
        let written = out.rust_selftest(kernel);
        for most in [3, 8, 16] {
            assert!(written.contains(&format!("(0..={most}).contains(")), "{}: {most}", kernel.name());
        }
    }
}

/// Stubs of a file with so many interfaces, in Rust and in C, pass.
fn pass(file: &str, interfaces: usize) {
    let (code, text) = quill_test(&["--rounds", "30", accepted(file).to_str().unwrap()]);
    println!("{text}");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("refused: ok").count(), 2 * interfaces, "{text}");
    assert_eq!(text.matches(" through C: ").count(), interfaces, "{text}");
}

/// A test for each file: they take long, and so they take all processors.
macro_rules! files_that_pass {
    ($($name:ident: $interfaces:literal,)*) => {
        mod stubs_pass {
            $(#[test]
            fn $name() {
                super::pass(concat!(stringify!($name), ".idl"), $interfaces);
            })*
        }
    };
}

files_that_pass! {
    bank: 2,
    branch: 2,
    cabinet: 1,
    counter: 1,
    ferry: 1,
    freight: 2,
    ledger: 1,
    museum: 1,
    names: 2,
    parcel: 2,
    property: 2,
    templates: 5,
    till: 1,
    warehouse: 1,
    weir: 1,
}

/// A type with a pointer to a function is one of local interfaces alone, and nobody makes a value of it.
#[test]
fn types_that_cannot_travel_are_no_values() {
    let shop = Workshop::new("selftest-local-types");
    let text = "[local] interface L {
        typedef void (*done_t)([in] long);
        typedef struct { long size; done_t done; } piece_t;
        typedef struct { long count; piece_t pieces[2]; } list_t;
        void use([in] list_t *it);
    }
    [uuid(01234567-89ab-cdef-0123-456789abcdef)] interface I { long add([in] long a, [in] long b); }";
    std::fs::write(shop.path("local.idl"), text).unwrap();
    let (code, text) = quill_test(&["--rounds", "5", shop.path("local.idl").to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("refused: ok").count(), 2, "{text}");
}

/// One change to the text of the stubs each.
const FAULTS: [(&str, &str, &str); 5] = [
    ("a wrong place", "_body.at(4)?;", "_body.at(5)?;"),
    ("a wrong value", "u8::from(*self).put(out);", "u8::from(!*self).put(out);"),
    ("a check that is gone", "if self.at == self.bytes.len() { Ok(()) } else { Err(Malformed) }", "Ok(())"),
    ("an exception under another label", "Some((1u32, bytes))", "Some((2u32, bytes))"),
    (
        "memory that is lost",
        "String::from_utf8(self.take(bytes)?.to_vec())",
        "String::from_utf8(std::mem::ManuallyDrop::new(self.take(bytes)?.to_vec()).to_vec())",
    ),
];

#[test]
fn faults_are_found() {
    let shop = Workshop::new("selftest-faults");
    let mut out = driver::compile(&accepted("bank.idl"), Options::default()).unwrap();
    let text = out.rust_selftest(&Linux)
        + "fn main() { std::process::exit(i32::from(!quill_selftest::all(1, 30))); }";
    for (what, old, new) in FAULTS {
        let faulty = text.replacen(old, new, usize::MAX);
        assert_ne!(faulty, text, "{what}: the stubs have no `{old}` any more");
        std::fs::write(shop.path("faulty.rs"), faulty).unwrap();
        shop.tool("rustc", &["--edition", "2024", "-A", "warnings", "faulty.rs"]);
        let run = Command::new(shop.path("faulty")).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(!run.status.success() && said.contains("FAILED"), "{what} is not found:\n{said}");
    }
}

/// One change to the text of the stubs in C each. Those that `need` it are found because the compiler has each read watched, and each leak told.
const FAULTS_IN_C: [(&str, bool, &str, &str); 5] = [
    (
        "a wrong value",
        false,
        "_value->active = quill_get_bool(_in);",
        "_value->active = !quill_get_bool(_in);",
    ),
    (
        "an exception without its value",
        false,
        "_raised->Overdrawn.by = quill_get_f64(_in);",
        "quill_get_f64(_in);",
    ),
    ("a check that is gone", false, "if (in->at != in->length)", "if (false)"),
    ("a read beyond the message", true, "if (in->failed || count > in->length - in->at)", "if (in->failed)"),
    ("memory that is lost", true, "        free(piece);", "        (void)piece;"),
];

#[test]
fn faults_in_c_are_found() {
    let shop = Workshop::new("selftest-faults-in-c");
    let mut out = driver::compile(&accepted("bank.idl"), Options::default()).unwrap();
    let text = out.rust_selftest(&Linux)
        + "fn main() { let relay = std::env::args().nth(1).unwrap_or_default();
           std::process::exit(i32::from(!quill_selftest::all_between(1, 10, &relay))); }";
    std::fs::write(shop.path("sides.rs"), text).unwrap();
    shop.tool("rustc", &["--edition", "2024", "-A", "warnings", "sides.rs"]);
    let text = out.c_relay().unwrap();
    let build = |text: &str, watched: bool| {
        std::fs::write(shop.path("relay.c"), text).unwrap();
        let plain = ["-std=gnu11", "-D_GNU_SOURCE", "-w", "-o", "relay", "relay.c"];
        let watch = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        shop.try_tool("cc", &[&plain[..], if watched { &watch } else { &[] }].concat())
    };
    let run = || {
        let run = Command::new(shop.path("sides")).arg(shop.path("relay")).output().unwrap();
        (run.status.success(), String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let can_watch = build(&text, true).is_ok();
    if !can_watch {
        build(&text, false).unwrap();
    }
    let (good, said) = run();
    assert!(good, "{said}");
    for (what, needs, old, new) in FAULTS_IN_C {
        let faulty = text.replacen(old, new, usize::MAX);
        assert_ne!(faulty, text, "{what}: the stubs have no `{old}` any more");
        if needs && !can_watch {
            println!("{what} is left out: cc watches no memory here");
            continue;
        }
        build(&faulty, can_watch).unwrap();
        let (good, said) = run();
        assert!(!good && said.contains("FAILED"), "{what} is not found:\n{said}");
    }
}

/// Over L4 each interface is a program with a kernel of its own, for both widths of the processor.
#[test]
fn stubs_over_l4_pass() {
    for (file, interfaces) in [
        ("mail.idl", 2),
        ("ledger.idl", 1),
        ("caption.idl", 1),
        ("ferry.idl", 1),
        ("property.idl", 1),
        ("freight.idl", 1),
    ] {
        let file = accepted(file);
        let arguments = ["--kernel", "l4-v4", "-D", "FEW", "--rounds", "20", file.to_str().unwrap()];
        let (code, text) = quill_test(&arguments);
        println!("{text}");
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.matches("-m64").count() > 0 && text.matches("refused: ok").count() >= interfaces,
            "{text}"
        );
    }
    let empty = Workshop::new("selftest-empty");
    std::fs::write(empty.path("none.idl"), "interface None { };").unwrap();
    let (code, text) = quill_test(&["--kernel", "l4-v4", empty.path("none.idl").to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
}

/// Lists of lists without bounds are as long as a message holds, and numbers of 64 bits are made with 32 where there is no library.
#[test]
fn long_lists_and_fixed_numbers_are_tested_over_l4() {
    let shop = Workshop::new("selftest-l4-lists");
    let text = "struct Part { string id; string kind; };
        typedef sequence<Part> Path;
        struct Entry { Path path; boolean is_last; fixed<17, 2> price; };
        typedef sequence<Entry> Entries;
        interface Names { boolean next(in unsigned long count, inout Path where, out Entries found); };";
    std::fs::write(shop.path("names.idl"), text).unwrap();
    let file = shop.path("names.idl");
    let (code, text) = quill_test(&["--kernel", "l4-v4", "--rounds", "30", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("-m64 Names: ") && !text.contains("FAILED"), "{text}");
}

#[test]
fn faults_over_l4_are_found() {
    let faults = [
        ("a wrong place", "where = QUILL_AT(int32_t, _utcb, 8)", "where = QUILL_AT(int32_t, _utcb, 12)"),
        (
            "a wrong value",
            "twice = QUILL_AT(uint8_t, _utcb, 12) != 0",
            "twice = QUILL_AT(uint8_t, _utcb, 12) == 0",
        ),
        (
            "a content that is lost",
            "_result->content._length = (uint32_t)_bytes_0",
            "_result->content._length = 0 * (uint32_t)_bytes_0",
        ),
    ];
    let shop = Workshop::new("selftest-l4-faults");
    let options = Options { defines: vec!["FEW".into()], ..Options::default() };
    let mut out = driver::compile(&accepted("property.idl"), options).unwrap();
    let text = out.c_selftest();
    for (what, old, new) in faults {
        let faulty = text.replacen(old, new, usize::MAX);
        assert!(faulty != text, "{what}: the stubs have no `{old}` any more");
        std::fs::write(shop.path("faulty.c"), faulty).unwrap();
        let alone = ["-std=gnu11", "-O2", "-w", "-ffreestanding", "-nostdlib", "-static", "-fno-pie"];
        let numbers =
            ["-DQUILL_INTERFACE=0", "-DQUILL_ROUNDS=20u", "-DQUILL_SEED=1", "-o", "faulty", "faulty.c"];
        shop.tool("cc", &[&alone[..], &numbers].concat());
        let run = Command::new(shop.path("faulty")).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(!run.status.success() && said.contains("FAILED"), "{what} is not found:\n{said}");
    }
}

/// Over Tern's ipc it can only be written here; the system's own tests run it.
#[test]
fn for_another_kernel_it_is_written() {
    let shop = Workshop::new("selftest-written");
    let file = accepted("parcel.idl");
    let dir = shop.path("").to_str().unwrap().to_owned();
    let (code, text) = quill_test(&["--kernel", "tern-ipc", file.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("does not run here"), "{text}");
    let (code, text) = quill_test(&["--kernel", "tern-ipc", "-o", &dir, file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    let mut out = driver::compile(&file, Options::default()).unwrap();
    let written = std::fs::read_to_string(shop.path("parcel.rs")).unwrap();
    assert_eq!(written, out.rust_selftest(&TernIpc));
}

#[test]
fn bad_input_is_told_apart() {
    let (code, text) = quill_test(&["/nonexistent.idl"]);
    assert_eq!(code, Some(2), "{text}");
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/diagnostics/corba.idl");
    let (code, text) = quill_test(&[broken.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("error[E"), "{text}");
}
