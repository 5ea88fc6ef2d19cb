//! The command's exit codes: 0 accepted, 1 the input is at fault, 2 the usage or the file system is.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn quill(arguments: &[&str], input: Option<&[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quill"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that does not read its input may close it first.
    let _ = stdin.write_all(input.unwrap_or(b""));
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn check(arguments: &[&str], input: Option<&[u8]>, code: i32, message: &str) {
    let out = quill(arguments, input);
    let text = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(code), "{arguments:?}\n{text}");
    assert!(text.contains(message), "{arguments:?}: no {message:?} in\n{text}");
}

/// A directory that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("quill-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn standard_input() {
    check(&["-"], Some(b"struct S { long a; };"), 0, "");
    check(&["-"], Some(b"struct S { lnog a; };"), 1, "did you mean `long`?");
    check(&["-"], Some(b""), 0, "");
    check(&["-"], Some(b"\xEF\xBB\xBFstruct S {\r\n long a;\r\n};\r\n"), 0, "");
    check(&["-"], Some(b"struct S { long a\0; };"), 1, "the character `\\u{0}`");
    check(&["-"], Some(b"// caf\xE9\nstruct S { long a; };"), 0, "");
}

#[test]
fn the_file_system() {
    let scratch = Scratch::new("files");
    let dir = scratch.0.to_str().unwrap();
    check(&["/nonexistent/x.idl"], None, 2, "cannot read `/nonexistent/x.idl`");
    check(&[dir], None, 2, "it is a directory");
    let cycle = scratch.file("cycle.idl", b"#include \"cycle.idl\"\n");
    check(&[&cycle], None, 1, "the file includes itself");
    let user = scratch.file("user.idl", b"#include \"basis.idl\"\ntypedef T U;\n");
    check(&[&user], None, 1, "the file `basis.idl` is not found");
    scratch.file("basic.idl", b"");
    check(&[&user], None, 1, "did you mean `basic.idl`?");
    std::fs::create_dir(scratch.0.join("inc")).unwrap();
    scratch.file("inc/basis.idl", b"typedef long T;\n");
    check(&["-I", &format!("{dir}/inc"), &user], None, 0, "");
    check(&["-I", &format!("{dir}/inc"), "--emit", "deps", &user], None, 0, "inc/basis.idl");
}

#[test]
fn bad_input() {
    let scratch = Scratch::new("bad");
    let dir = scratch.0.to_str().unwrap();
    // What is not an interface file at all.
    check(&["/dev/null"], None, 0, "");
    check(&["/dev/zero"], None, 2, "it is larger than");
    check(&[dir], None, 2, "it is a directory");
    check(&[&format!("{dir}/none.idl")], None, 2, "cannot read");
    // A directory, a device and a missing file where another file is named.
    let user = scratch.file("user.idl", format!("#include \"{dir}\"\ntypedef long t;\n").as_bytes());
    check(&[&user], None, 1, "is not found");
    let user = scratch.file("import.idl", b"import \"none.idl\"; typedef long t;");
    check(&[&user], None, 1, "`none.idl` is not found");
    check(&["--acf", &format!("{dir}/none.acf"), &user], None, 1, "attribute file");
    let large = scratch.file("large.idl", &vec![b' '; 33 << 20]);
    check(&[&large], None, 2, "it is larger than");
    // Two files that include each other, and two that import each other.
    let first = scratch.file("first.idl", b"#include \"second.idl\"\n");
    scratch.file("second.idl", b"#include \"first.idl\"\n");
    check(&[&first], None, 1, "the file includes itself");
    let first = scratch.file("one.idl", b"import \"two.idl\"; typedef a b;");
    scratch.file("two.idl", b"import \"one.idl\"; typedef long a;");
    check(&[&first], None, 0, "");
    // Encodings and line ends.
    check(&["-"], Some(b"\xFF\xFEs\0t\0r\0u\0c\0t\0 \0S\0{\0l\0o\0n\0g\0 \0a\0;\0}\0;\0"), 0, "");
    check(&["-"], Some(b"struct S {\r long a;\r};\r"), 0, "");
    check(&["-"], Some(b"struct S\xC3\x28 { long a; };"), 1, "error[E0011]");
    check(&["-"], Some(b"struct S { long a; }; /* "), 1, "this comment never ends");
    // Words that nothing follows.
    check(&["-I"], None, 2, "-I");
    check(&["a.idl", "b.idl"], None, 2, "b.idl");
    check(&["--emit", "java", "-"], Some(b""), 2, "java");
    check(&["-D", "1x", "-"], Some(b"typedef long t;"), 1, "`#define` needs a name");
}

/// Refusals say why, and how it could be said otherwise.
#[test]
fn refusals_give_reasons() {
    let scratch = Scratch::new("reasons");
    let dir = scratch.0.to_str().unwrap();
    let file = scratch.file("i.idl", b"interface I { long f(in string s); };");
    let missing = format!("there is no directory `{dir}/none`");
    check(&["test", "-o", &format!("{dir}/none"), &file], None, 2, &missing);
    check(&["--emit", "c", "-o", &format!("{dir}/none"), &file], None, 2, &missing);
    let misspelt = scratch.file("misspelt.idl", b"typedef sequance<octet> Bytes;");
    check(&[&misspelt], None, 1, "did you mean `sequence`?");
    let text = b"[pyhelper(\"x\")] interface i { void f([in, unique] uint8 *p); }";
    let samba = scratch.file("samba.idl", text);
    check(&["--emit", "rust", &samba], None, 1, "nothing says what travels for `uint8 *`");
}

#[cfg(unix)]
#[test]
fn one_file_by_two_ways_is_read_once() {
    let scratch = Scratch::new("twice");
    scratch.file("types.idl", b"interface Types { typedef long t; };");
    scratch.file("one.idl", b"import \"types.idl\"; typedef t u;");
    let dots = format!("{}/../{}", scratch.0.display(), scratch.0.file_name().unwrap().display());
    let main = scratch.file("main.idl", b"import \"one.idl\"; import \"deep/types.idl\"; typedef u v;");
    std::fs::create_dir(scratch.0.join("deep")).unwrap();
    std::os::unix::fs::symlink("../types.idl", scratch.0.join("deep/types.idl")).unwrap();
    check(&["--dialect", "dce", &main], None, 0, "");
    check(&["--dialect", "dce", "-I", &dots, &format!("{dots}/main.idl")], None, 0, "");
}

#[test]
fn unreadable_files() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("unreadable");
    let secret = scratch.file("secret.idl", b"typedef long t;");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&secret).is_ok() {
        println!("this user can read everything: nothing to check");
        return;
    }
    let user = scratch.file("user.idl", b"#include \"secret.idl\"\n");
    check(&[&secret], None, 2, "cannot read");
    check(&[&user], None, 1, "error[E0003]");
}

#[test]
fn depfiles() {
    let scratch = Scratch::new("depfiles");
    let dir = scratch.0.to_str().unwrap();
    let file = scratch.file("i.idl", b"#include \"b.idl\"\ninterface I { T f(); };");
    scratch.file("b.idl", b"typedef long T;\n");
    let depfile = format!("{dir}/i.d");
    check(&["--emit", "rust", "-o", dir, "--depfile", &depfile, &file], None, 0, "");
    let rule = std::fs::read_to_string(&depfile).unwrap();
    assert_eq!(rule, format!("{dir}/i.rs: {file} {dir}/b.idl\n\n{dir}/b.idl:\n"));
    check(&["--depfile", &format!("{dir}/none/i.d"), &file], None, 2, "cannot write");
    check(&["--emit", "deps", &file], None, 0, &format!("{file}: {file} {dir}/b.idl"));
}

#[test]
fn tools_around() {
    check(&["man"], None, 0, ".TH quill 1");
    check(&["completions", "bash"], None, 0, "complete -F _quill");
    check(&["completions", "zsh"], None, 0, "#compdef quill");
    check(&["completions", "cmd"], None, 2, "bash, elvish, fish, powershell or zsh");
    check(&["completions"], None, 2, "takes");
    check(&["support", "cmake"], None, 0, "function(quill_stubs target)");
    check(&["support", "meson"], None, 0, "quill_c = generator(");
    check(&["support", "pkg-config"], None, 0, "Name: quill");
    check(&["support", "make"], None, 2, "cmake, meson or pkg-config");
}

#[test]
fn output_is_whole_or_absent() {
    let scratch = Scratch::new("whole");
    let dir = scratch.0.to_str().unwrap();
    let file = scratch.file("i.idl", b"interface I { long f(); };");
    std::fs::create_dir(scratch.0.join("i.rs")).unwrap();
    check(&["--emit", "rust", "-o", dir, &file], None, 2, "cannot write");
    std::fs::remove_dir(scratch.0.join("i.rs")).unwrap();
    scratch.file("i.rs", b"what was there before");
    let broken = scratch.file("i.idl", b"interface I { lnog f(); };");
    check(&["--emit", "rust", "-o", dir, &broken], None, 1, "did you mean `long`?");
    for emit in [&[][..], &["--emit", "layout"], &["--emit", "deps"]] {
        check(&[emit, &["-o", dir, &file]].concat(), None, 2, "-o says where code goes");
    }
    assert_eq!(std::fs::read(scratch.0.join("i.rs")).unwrap(), b"what was there before");
    let names = std::fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<_> = names.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["i.idl", "i.rs"]);
}

#[test]
fn output() {
    let scratch = Scratch::new("output");
    let dir = scratch.0.to_str().unwrap();
    let file = scratch.file("i.idl", b"interface I { long f(in string s); };");
    check(&["layout", &file], None, 0, "count of string");
    check(&["cost", &file], None, 0, "registers");
    check(&["layout", "--kernel", "tern-ipc", &file], None, 0, "last bytes of string");
    let pieces = b"typedef sequence<string> S; interface I { void f(in S all); };";
    let pieces = scratch.file("pieces.idl", pieces);
    check(&["layout", "--kernel", "tern-ipc", &pieces], None, 0, "stream");
    for language in ["rust", "c"] {
        check(&["--emit", language, "--kernel", "tern-ipc", &pieces], None, 0, "");
    }
    check(&["--emit", "c", "--kernel", "l4-v4", &pieces], None, 0, "quill_unbounded");
    let pages = scratch.file("pages.idl", b"interface I { void f(in fpage p); };");
    check(&["--emit", "c", "--kernel", "l4-v4", &pages], None, 1, "");
    check(
        &["layout", "--kernel", "minix", &file],
        None,
        2,
        "there are: linux, tern-ipc, tern-door, tern-door-plain, l4-v4",
    );
    let reply = scratch.file("reply.idl", b"interface I { string f(); };");
    for (language, inbox) in [("rust", "Inbox"), ("c", "I_replies")] {
        check(&["--emit", language, "--kernel", "tern-ipc", &reply], None, 0, inbox);
    }
    let short = scratch.file("s.idl", b"interface I { long f(in short s); };");
    check(&["--emit", "rust", "--kernel", "tern-ipc", &short], None, 0, "::stub::Callee::call");
    check(&["--emit", "c", &file], None, 0, "quill_status I_f(quill_client *_server, const char *s");
    check(&["--emit", "rust", &file], None, 0, "pub trait Server");
    check(&["--emit", "rust", "-o", dir, &file], None, 0, "");
    assert!(std::fs::read_to_string(scratch.0.join("i.rs")).unwrap().contains("pub trait Server"));
    check(&["--emit", "rust", "-o", &format!("{dir}/none"), &file], None, 2, "cannot write");
    let map = scratch.file("map.idl", b"typedef map<long, long> M; interface I { void f(in M a); };");
    check(&["--emit", "rust", "-o", dir, &map], None, 1, "is nothing that stubs can carry");
    assert!(!scratch.0.join("map.rs").exists());
    assert!(
        std::fs::read_dir(&scratch.0).unwrap().all(|e| !e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
}

#[test]
fn usage() {
    check(&[], None, 2, "Usage");
    check(&["--bogus", "x"], None, 2, "--bogus");
    check(&["--help"], None, 0, "quill explain CODE");
    check(&["--help"], None, 0, "quill lsp");
    check(&["--version"], None, 0, "quill");
    check(&["--dialect", "corba", "--acf", "x.acf", "-"], None, 1, "attribute file");
    check(&["explain", "E0101"], None, 0, "E0101: The text does not follow the grammar.");
    check(&["explain", "E0100"], None, 2, "did you mean");
    check(&["explain"], None, 0, "E0701");
    check(&["-D", "X=long", "-"], Some(b"typedef X Y;"), 0, "");
    check(&["--dialect", "dce", "-"], Some(b"typedef long *Y;"), 0, "");
    check(&["--dialect", "corba", "-"], Some(b"typedef long *Y;"), 1, "expected a name");
}

/// The language server is a program of its own, beside this one or in the search path.
#[test]
fn starts_the_language_server() {
    let scratch = Scratch::new("lsp");
    // Another process writes the programs: one that this process had open for writing could still be open in a child of another test.
    let make = |line: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", line, env!("CARGO_BIN_EXE_quill")]).current_dir(&scratch.0);
        assert!(shell.status().unwrap().success(), "{line}");
    };
    make(r#"cp "$0" quill"#);
    let check = |code: i32, wanted: &str| {
        let mut command = Command::new(scratch.0.join("quill"));
        let out = command.args(["lsp", "--stdio"]).env("PATH", &scratch.0).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(code), "{text}");
        assert!(text.contains(wanted), "{text}");
    };
    check(2, "error: cannot start `quill-lsp`");
    make(r#"printf '#!/bin/sh\necho "served $*"\nexit 7\n' > quill-lsp; chmod 755 quill-lsp"#);
    check(7, "served --stdio");
}
