//! Readers of messages are fed messages that are nearly right, in C and in Rust: clients with replies, servers with requests. C is watched by sanitizers, and what
//! comes to new places of the code is changed further; Rust has its assertions. `QUILL_DECODER_RUNS` says how many messages there are in each language.

mod workshop;

use std::process::Command;

use quill::driver;
use quill::session::Options;
use workshop::{Workshop, accepted};

/// Files with texts, lists, unions, pointers, values that several others share, values of any type, and recursive types; and their interfaces.
const FILES: [(&str, &[&str]); 6] = [
    ("bank.idl", &["Bank::Account", "Bank::Checking"]),
    ("cabinet.idl", &["Cabinet"]),
    ("catalog.idl", &["Catalog::Index"]),
    ("freight.idl", &["Freight::Harbour"]),
    ("museum.idl", &["Museum::Rooms"]),
    ("warehouse.idl", &["Warehouse"]),
];

/// Messages in each language, if nobody says how many.
const RUNS: u64 = 20_000;

fn runs() -> u64 {
    let said = std::env::var("QUILL_DECODER_RUNS").ok();
    said.map_or(RUNS, |runs| runs.parse().expect("QUILL_DECODER_RUNS is a number"))
}

/// Makes the self-test of a file in Rust as the program `test`, and says where.
fn selftest(shop: &Workshop, file: &str) {
    let path = accepted(file);
    let made = Command::new(env!("CARGO_BIN_EXE_quill"))
        .args(["test", "-o"])
        .arg(shop.path(""))
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let source = file.replace(".idl", ".rs");
    let checked =
        ["--edition", "2024", "-C", "opt-level=2", "-C", "debug-assertions=on", "-C", "overflow-checks=on"];
    shop.tool(&rustc, &[&checked[..], &["--crate-name", "selftest", "-o", "test", &source]].concat());
}

fn run(shop: &Workshop, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(shop.path(program));
    // Claims of a message may not become memory: the largest piece that a reader takes at once is far below.
    command.env("ASAN_OPTIONS", "max_allocation_size_mb=256").args(arguments).current_dir(shop.path(""));
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {}: {text}", arguments.join(" "));
    text
}

#[test]
fn readers_in_c_stand_messages_that_are_nearly_right() {
    let each = runs() / FILES.iter().map(|(_, interfaces)| interfaces.len() as u64).sum::<u64>();
    for (file, interfaces) in FILES {
        let shop = Workshop::new(&format!("decoders-c-{file}"));
        let out = driver::compile(&accepted(file), Options::default()).unwrap();
        std::fs::write(shop.path("relay.c"), out.c_relay().unwrap()).unwrap();
        shop.bring("fuzz_decoders.c", "fuzz_decoders.c");
        let notes = shop.path("notes-");
        let record = format!("-DRECORD=\"{}\"", notes.display());
        let plain = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g1", "-w"];
        shop.tool("gcc", &[&plain[..], &[&record, "-o", "record", "fuzz_decoders.c"]].concat());
        selftest(&shop, file);
        run(&shop, "test", &["1", "6", shop.path("record").to_str().unwrap()]);
        let watched =
            ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fsanitize-coverage=trace-pc"];
        let program = ["-o", "fuzz", "fuzz_decoders.c"];
        if let Err(why) = shop.try_tool("gcc", &[&plain[..], &watched, &program].concat()) {
            println!("gcc has no sanitizers: {why}");
            shop.tool("gcc", &[&plain[..], &program].concat());
        }
        for interface in interfaces {
            let notes = format!("{}{interface}", notes.display());
            print!("{}", run(&shop, "fuzz", &[interface, &notes, &each.to_string(), "1"]));
        }
    }
}

/// Damaged messages that a self-test has told of.
fn damaged(text: &str) -> u64 {
    let of = |line: &str| line.split(" damaged messages").next()?.rsplit(' ').next()?.parse::<u64>().ok();
    text.lines().filter(|line| line.contains(" damaged messages")).filter_map(of).sum()
}

#[test]
fn readers_in_rust_stand_messages_that_are_nearly_right() {
    let each = runs() / FILES.len() as u64;
    for (file, _) in FILES {
        let shop = Workshop::new(&format!("decoders-rust-{file}"));
        selftest(&shop, file);
        let (mut count, mut seed) = (0, 1u64);
        while count < each {
            count += damaged(&run(&shop, "test", &[&seed.to_string(), "6"]));
            seed += 1;
        }
        println!("{file}: {count} damaged messages");
    }
}
