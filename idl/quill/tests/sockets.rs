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

/// Most instructions that client and server of a call may take beyond what sends and receives, in C and in Rust: a text of 100 bytes, a list of 1,000 bytes, a
/// list of three short texts. Some of them are the C library's, whose copies take a few more where the processor has no AVX-512: with it, `add` is 150 in Rust, too.
const INSTRUCTIONS: [(&str, [u32; 2], [u32; 2]); 4] = [
    ("add", [150, 300], [175, 1000]),
    ("echo", [450, 600], [500, 1600]),
    ("turn", [1050, 1250], [1850, 2050]),
    ("both", [2100, 2200], [1400, 3400]),
];

/// Figures that a program made of `count_calls.c` and another one prints: for each method its name, client and server.
fn counted(shop: &Workshop, program: &str) -> Option<Vec<(String, [u32; 2])>> {
    let out = std::process::Command::new(shop.path(program)).output().unwrap();
    if !out.status.success() {
        // Where nobody may step another program.
        println!("not counted: {}", String::from_utf8_lossy(&out.stderr));
        return None;
    }
    let text = String::from_utf8(out.stdout).unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[0].to_owned(), [words[1].parse().unwrap(), words[2].parse().unwrap()])
    };
    Some(text.lines().map(row).collect())
}

/// Clients and servers are stepped, and take no more instructions than the guide says.
#[test]
fn calls_take_few_instructions() {
    let shop = Workshop::new("sockets-instructions");
    shop.emit_c_of("desk.idl", DESK, &Linux);
    shop.emit_rust_of("desk.idl", DESK, &Linux);
    shop.bring("counted_calls.c", "counted_calls.c");
    shop.bring("count_calls.c", "count_calls.c");
    shop.bring("counted_calls.rs", "counted_calls.rs");
    let in_c = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror"];
    shop.tool("gcc", &[&in_c[..], &["-o", "in-c", "count_calls.c", "counted_calls.c"]].concat());
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let library =
        ["--edition", "2024", "-D", "warnings", "-O", "-C", "panic=abort", "--crate-type", "staticlib"];
    shop.tool(&rustc, &[&library[..], &["-o", "libcalls.a", "counted_calls.rs"]].concat());
    shop.tool(
        "gcc",
        &[&in_c[..], &["-o", "in-rust", "count_calls.c", "libcalls.a", "-lm", "-lpthread", "-ldl"]].concat(),
    );
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/idl-stubs.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for (program, in_rust) in [("in-c", false), ("in-rust", true)] {
        let Some(found) = counted(&shop, program) else { return };
        assert_eq!(found.len(), INSTRUCTIONS.len());
        for ((method, counted), (name, c, rust)) in found.iter().zip(INSTRUCTIONS) {
            println!("{program} {method}: client {}, server {}", counted[0], counted[1]);
            let most = if in_rust { rust } else { c };
            assert!(
                method == name && counted.iter().zip(most).all(|(found, most)| *found <= most),
                "{method}: {counted:?}"
            );
            let row = format!("| `{name}` | {} | {} | {} | {} |", c[0], c[1], rust[0], rust[1]);
            assert!(guide.contains(&row), "the guide does not show {row:?}");
        }
    }
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
        ("in long x", "0", "1"),
        ("in Pair p", "2", "6"),
        ("in Pairs all", "1 + 2 all", "2 + 5 all"),
        ("in string s, in Bytes b", "2", "3"),
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

    let tasks = block(&guide, "### Tasks instead of threads", "rust");
    let runtime = block(&guide, "`tasks` is what a runtime brings", "rust");
    std::fs::write(shop.path("main.rs"), format!("{server}{tasks}{runtime}{IN_TASKS}")).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

/// Clients of a server with tasks: several at once, one whose request comes byte by byte, one that sends many at once and one that lies.
const IN_TASKS: &str = r#"
    fn main() {
        let path = std::env::temp_dir().join(format!("quill-tasks-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            tasks::spawn(serve_in_tasks(listener));
            tasks::run();
        });
        let stream = || UnixStream::connect(&path).unwrap();
        let mut slow = stream();
        let mut request = Vec::new();
        rt::write_message(&mut request, 0, &[]).unwrap();
        slow.write_all(&request[..3]).unwrap();
        let mut liar = stream();
        liar.write_all(&[0, 0, 0, 0, 255, 255, 255, 255]).unwrap();
        assert_eq!(liar.read(&mut [0; 8]).unwrap(), 0);
        let mut clients = [(); 3].map(|()| Account::Client { transport: stream() });
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| (0..20).for_each(|_| client.draw(0.125).unwrap()));
            }
        });
        assert_eq!(clients[0].balance().unwrap(), 2.5);
        assert!(matches!(clients[1].draw(3.0), Err(Account::DrawError::Overdrawn(Overdrawn { by })) if by == 0.5));
        slow.write_all(&request[3..]).unwrap();
        for _ in 0..300 {
            slow.write_all(&request).unwrap();
        }
        for _ in 0..301 {
            let (label, body) = rt::read_message(&mut slow).unwrap().unwrap();
            assert_eq!((label, body), (0, 2.5f64.to_le_bytes().to_vec()));
        }
        std::fs::remove_file(path).unwrap();
    }
"#;

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
