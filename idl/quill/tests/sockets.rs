//! Stubs over sockets ask the system once for each message, and the heap as often as `quill cost` predicts; clients and servers in C bring memory of their own.

mod workshop;

use std::fmt::Write;
use std::path::Path;

use quill::driver;
use quill::kernel::{KernelPart, Linux, TernIpc};
use quill::layout::{Asked, Heap, costs_text};
use quill::session::Options;
use workshop::{Workshop, compilers};

/// Interface of `programs/receives.c` and `programs/receives.rs`.
const DESK: &str = "typedef sequence<octet> Bytes;
typedef sequence<string> Names;
interface Desk {
  long add(in long a, in long b);
  string echo(in string s);
  Bytes turn(in Bytes b);
  Names both(in Names n);
  oneway void note(in long a);
  void spent(out long s, out long r, out long p);
};
";

fn compiled(idl: &str) -> driver::Compiled {
    driver::compile_text(Path::new("desk.idl"), idl.as_bytes(), Options::default())
}

/// Predictions for the methods of an interface, by their names.
fn predicted(idl: &str) -> Vec<(String, Result<Asked, String>)> {
    let mut out = compiled(idl);
    let layouts = out.layout(&Linux);
    assert!(out.accepted(), "{}", out.messages());
    let heap = Heap::new(&out.model);
    let methods = layouts.iter().flat_map(|layout| &layout.methods);
    methods.map(|method| (method.name.clone(), heap.asked(method))).collect()
}

/// Pieces of the heap that are predicted for the calls of these programs, whose list of names has three: by method, those in C and those in Rust.
fn pieces() -> Vec<(String, [u32; 2], [u32; 2])> {
    let all = predicted(DESK).into_iter().map(|(method, asked)| {
        let Asked { c, rust } = asked.unwrap();
        let elements = |list: &str| if matches!(list, "n" | "_result") { 3 } else { 0 };
        (method, c.map(|pieces| pieces.at(elements)), rust.map(|pieces| pieces.at(elements)))
    });
    all.collect()
}

#[test]
fn calls_in_c_ask_as_often_as_predicted() {
    let shop = Workshop::new("sockets-c");
    shop.emit_c_of("desk.idl", DESK, &Linux);
    shop.bring("receives.c", "receives.c");
    let defines: Vec<String> = pieces()
        .into_iter()
        .flat_map(|(method, [client, server], _)| {
            let name = method.to_uppercase();
            [format!("-DPIECES_{name}_CLIENT={client}"), format!("-DPIECES_{name}_SERVER={server}")]
        })
        .collect();
    let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
    let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-D_GNU_SOURCE"];
    let program = ["-o", "receives", "receives.c"];
    for compiler in compilers() {
        for level in ["-O0", "-O2", "-O3"] {
            shop.tool(&compiler, &[&strict[..], &defines, &[level], &program].concat());
            shop.run("receives");
        }
        // A compiler may come without its sanitizers.
        let watched = ["-g1", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        match shop.try_tool(&compiler, &[&strict[..], &defines, &watched, &program].concat()) {
            Ok(()) => shop.run("receives"),
            Err(why) => println!("{compiler} has no sanitizers: {why}"),
        }
    }
}

#[test]
fn calls_in_rust_ask_as_often_as_predicted() {
    let shop = Workshop::new("sockets-rust");
    shop.emit_rust_of("desk.idl", DESK, &Linux);
    shop.bring("receives.rs", "main.rs");
    let mut expected = String::new();
    for (method, _, [client, server]) in pieces() {
        let _ = writeln!(expected, "#[allow(dead_code)]");
        let _ = writeln!(expected, "pub const {}: [i32; 2] = [{client}, {server}];", method.to_uppercase());
    }
    std::fs::write(shop.path("expected.rs"), expected).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

/// Texts and lists are a piece each, and so are those in each element of a list; in Rust, an array arrives in a list.
#[test]
fn pieces_follow_from_types() {
    let types = "typedef sequence<octet> Bytes; typedef sequence<long> Longs; typedef sequence<string> Names;
         struct Pair { string name; Longs numbers; long grid[2][3]; }; typedef sequence<Pair, 9> Pairs;
         typedef sequence<Names> Deep; struct Tree; typedef sequence<Tree> Trees; struct Tree { long value; Trees children; };
         union Choice switch (long) { case 0: string s; };";
    let shown = |method: &str| {
        let all = predicted(&format!("{types} interface I {{ void f({method}); }};"));
        all.into_iter().next().unwrap().1.map(|Asked { c, rust }| [c[1].to_string(), rust[1].to_string()])
    };
    for (method, c, rust) in [
        ("in long x", "0", "2"),
        ("in Pair p", "2", "7"),
        ("in Pairs all", "1 + 2 all", "3 + 5 all"),
        ("in string s, in Bytes b", "2", "4"),
    ] {
        assert_eq!(shown(method).unwrap(), [c, rust], "{method}");
    }
    for method in ["in Tree t", "in Choice c", "in Deep s"] {
        let why = shown(method).unwrap_err();
        assert!(why.contains("lists within lists"), "{method}: {why}");
    }
}

/// The first code block of that language in the guide, behind some words.
fn block<'a>(guide: &'a str, behind: &str, language: &str) -> &'a str {
    let rest = guide.split_once(behind).unwrap_or_else(|| panic!("the guide has no {behind:?}")).1;
    let rest = rest.split_once(&format!("```{language}\n")).unwrap().1;
    rest.split_once("```").unwrap().0
}

/// The guide's first program runs, and so does its server of several clients.
#[test]
fn programs_of_the_guide_run() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/idl-stubs.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let shop = Workshop::new("sockets-guide");
    shop.emit_rust_of("bank.idl", block(&guide, "## A server and a client", "idl"), &Linux);
    let program = block(&guide, "writes `src/bank.rs`", "rust");
    std::fs::write(shop.path("main.rs"), program).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");

    let (server, _) = program.split_once("fn main()").unwrap();
    let several = block(&guide, "### Several clients", "rust");
    let main = r#"
        fn main() {
            let path = std::env::temp_dir().join(format!("quill-several-{}", std::process::id()));
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            std::thread::spawn(move || serve_all(&listener));
            let connect = || Account::Client { transport: std::os::unix::net::UnixStream::connect(&path).unwrap() };
            let mut clients = [connect(), connect(), connect()];
            clients.iter_mut().for_each(|client| client.draw(1.0).unwrap());
            std::thread::scope(|scope| {
                clients.iter_mut().for_each(|client| drop(scope.spawn(move || client.draw(2.0).unwrap())));
            });
            assert_eq!(clients[0].balance().unwrap(), 1.0);
            assert!(matches!(clients[1].draw(3.0), Err(Account::DrawError::Overdrawn(Overdrawn { by })) if by == 2.0));
            std::fs::remove_file(path).unwrap();
        }
    "#;
    std::fs::write(shop.path("main.rs"), format!("{server}{several}{main}")).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

/// The guide shows what `quill cost` says, and other kernel parts have no heap to tell of.
#[test]
fn the_guide_shows_the_table() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/idl-stubs.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let said = |kernel: &dyn KernelPart| {
        let mut out = compiled(DESK);
        let layouts = out.layout(kernel);
        costs_text(&out.model, &layouts, kernel)
    };
    let text = said(&Linux);
    let table = text.split("pieces of the heap").nth(1).unwrap();
    for line in table.lines().skip(1) {
        assert!(guide.contains(line.trim_end()), "the guide does not show {line:?}");
    }
    assert!(!said(&TernIpc).contains("pieces of the heap"));
}
