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
fn output() {
    let scratch = Scratch::new("output");
    let dir = scratch.0.to_str().unwrap();
    let file = scratch.file("i.idl", b"interface I { long f(in string s); };");
    check(&["layout", &file], None, 0, "count of string");
    check(&["cost", &file], None, 0, "registers");
    check(&["layout", "--kernel", "tern-ipc", &file], None, 1, "more than that");
    check(&["layout", "--kernel", "minix", &file], None, 2, "there are linux and tern-ipc");
    check(&["--emit", "rust", "--kernel", "tern-ipc", &file], None, 1, "more than that");
    let short = scratch.file("s.idl", b"interface I { long f(in short s); };");
    check(&["--emit", "rust", "--kernel", "tern-ipc", &short], None, 0, "::stub::call");
    check(&["--emit", "c", &file], None, 0, "quill_status I_f(quill_client *_server, const char *s");
    check(&["--emit", "rust", &file], None, 0, "pub trait Server");
    check(&["--emit", "rust", "-o", dir, &file], None, 0, "");
    assert!(std::fs::read_to_string(scratch.0.join("i.rs")).unwrap().contains("pub trait Server"));
    check(&["--emit", "rust", "-o", &format!("{dir}/none"), &file], None, 2, "cannot write");
    let any = scratch.file("any.idl", b"interface I { void f(in any a); };");
    check(&["--emit", "rust", "-o", dir, &any], None, 1, "the type `any` is nothing that stubs can carry");
    assert!(!scratch.0.join("any.rs").exists());
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
    check(&["--version"], None, 0, "quill");
    check(&["--dialect", "corba", "--acf", "x.acf", "-"], None, 2, "--acf does not go with --dialect corba");
    check(&["explain", "E0101"], None, 0, "E0101: The text does not follow the grammar.");
    check(&["explain", "E0100"], None, 2, "did you mean");
    check(&["explain"], None, 0, "E0701");
    check(&["-D", "X=long", "-"], Some(b"typedef X Y;"), 0, "");
    check(&["--dialect", "dce", "-"], Some(b"typedef long *Y;"), 0, "");
    check(&["--dialect", "corba", "-"], Some(b"typedef long *Y;"), 1, "expected a name");
}
