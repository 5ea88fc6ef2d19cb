//! The suite `peers` of the verb `bench`: stubs of the host beside those of omniORB, Cap'n Proto and gRPC, and beside no stubs at all, on the same kind of socket.
//!
//! It is the only suite with times, so there is no table of it, and no test compares it: what means something is the ratio
//! of two peers in one run. Each library is left out, with a message, where it is not installed.

use crate::cli::BenchOptions;
use crate::{Context, Error, Result, build, paths};
use quill::build::Build;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite's name.
pub const SUITE: &str = "peers";

/// How often each peer runs, in turns. The median counts.
const ROUNDS: usize = 3;

/// Seconds that a peer may take.
const PATIENCE_S: &str = "300";

/// Somebody's stubs.
struct Peer {
    /// In tables.
    name: &'static str,
    /// Debian's packages for it.
    packages: &'static str,
    /// Programs without which it cannot be built.
    needs: &'static [&'static str],
    /// Builds the program in a directory.
    build: fn(&Path, &Path) -> Result<()>,
}

/// Of them, the first is what the others are compared with.
const PEERS: [Peer; 5] = [
    Peer { name: "quill", packages: "gcc", needs: &["gcc"], build: build_quill },
    Peer { name: "socket", packages: "gcc", needs: &["gcc"], build: build_socket },
    Peer {
        name: "omniorb",
        packages: "omniidl libomniorb4-dev g++",
        needs: &["omniidl", "g++"],
        build: build_omniorb,
    },
    Peer {
        name: "capnp",
        packages: "capnproto libcapnp-dev g++",
        needs: &["capnp", "g++"],
        build: build_capnp,
    },
    Peer {
        name: "grpc",
        packages: "protobuf-compiler protobuf-compiler-grpc libgrpc++-dev pkg-config g++",
        needs: &["protoc", "grpc_cpp_plugin", "pkg-config", "g++"],
        build: build_grpc,
    },
];

/// Times of a peer: nanoseconds of each method, by round.
type Times = Vec<(String, [u64; ROUNDS])>;

/// Measures and prints.
pub fn perform(options: &BenchOptions) -> Result<u8> {
    if options.bless {
        return Err(Error::usage(
            "the suite peers has times, which belong to a host: there is no table to renew",
        ));
    }
    let directory = paths::target().join("peers");
    fs::create_dir_all(&directory).context(|| format!("create {}", directory.display()))?;
    let sources = paths::root().join("bench/peers");
    let mut present = Vec::new();
    for peer in &PEERS {
        if let Some(missing) = peer.needs.iter().find(|need| paths::find_program(need).is_none()) {
            eprintln!("tern: {} is left out: there is no {missing} (packages {})", peer.name, peer.packages);
            continue;
        }
        match (peer.build)(&sources, &directory) {
            Ok(()) => present.push(peer),
            Err(error) => eprintln!("tern: {} is left out: {error} (packages {})", peer.name, peer.packages),
        }
    }
    let mut times: HashMap<&str, Times> = HashMap::new();
    for round in 0..ROUNDS {
        for peer in &present {
            run(&directory, peer.name, round, times.entry(peer.name).or_default())?;
        }
    }
    let rows = rows(&present, &times)?;
    if options.json {
        println!("{}", json!({ "suite": SUITE, "rows": rows }));
    } else {
        print!("{}", for_people(&present, &rows));
    }
    Ok(0)
}

/// Runs a peer once and notes its times.
fn run(directory: &Path, name: &str, round: usize, times: &mut Times) -> Result<()> {
    let socket = directory.join(format!("{}.socket", std::process::id()));
    let mut command = Command::new("timeout");
    command.arg(PATIENCE_S).arg(directory.join(name));
    if ["grpc", "omniorb"].contains(&name) {
        command.arg(&socket);
    }
    let output = command.output();
    let _ = fs::remove_file(&socket);
    let output = output.context(|| format!("run {name}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::new(format!("{name} failed ({}): {}", output.status, why.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in text.lines() {
        let parsed = line.split_once(' ').and_then(|(method, ns)| Some((method, ns.parse().ok()?)));
        let (method, ns) = parsed.ok_or_else(|| Error::new(format!("{name} printed: {line}")))?;
        match times.iter_mut().find(|(known, _)| known == method) {
            Some((_, rounds)) => rounds[round] = ns,
            None => times.push((method.into(), [ns; ROUNDS])),
        }
    }
    Ok(())
}

/// A row for each method: nanoseconds of the first peer, and how many times as long the others take.
fn rows(present: &[&Peer], times: &HashMap<&str, Times>) -> Result<Vec<Value>> {
    let [first, others @ ..] = present else { return Ok(Vec::new()) };
    let of = |peer: &Peer, method: &str| -> Result<[u64; ROUNDS]> {
        let found = times[peer.name].iter().find(|(known, _)| known == method);
        let found = found.ok_or_else(|| Error::new(format!("{} did not measure {method}", peer.name)))?;
        Ok(found.1)
    };
    let methods = times[first.name].iter().map(|(method, _)| method);
    methods
        .map(|method| {
            let own = of(first, method)?;
            let mut row = Map::new();
            row.insert("name".into(), format!("peers.{method}").into());
            row.insert(format!("{}_ns", first.name), median(own.map(|ns| ns as f64)).into());
            for peer in others {
                let theirs = of(peer, method)?;
                let ratios = std::array::from_fn(|round| theirs[round] as f64 / own[round].max(1) as f64);
                row.insert(peer.name.into(), ((median(ratios) * 100.0).round() / 100.0).into());
            }
            Ok(Value::Object(row))
        })
        .collect()
}

fn median(mut values: [f64; ROUNDS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[ROUNDS / 2]
}

fn for_people(present: &[&Peer], rows: &[Value]) -> String {
    let mut text = String::new();
    let [first, others @ ..] = present else { return text };
    let _ = write!(text, "{:<20} {:>12}", "call and return", format!("{} ns", first.name));
    for peer in others {
        let _ = write!(text, " {:>12}", format!("{} takes", peer.name));
    }
    text.push('\n');
    for row in rows {
        let name = row["name"].as_str().unwrap_or_default();
        let ns = row[&format!("{}_ns", first.name)].as_f64().unwrap_or_default();
        let _ = write!(text, "{name:<20} {ns:>12.0}");
        for peer in others {
            let ratio = row[peer.name].as_f64().unwrap_or_default();
            let _ = write!(text, " {:>12}", format!("{ratio:.1} x"));
        }
        text.push('\n');
    }
    text.push_str("Times of this host, at this moment: compare the columns, and nothing with another run.\n");
    text
}

fn build_quill(sources: &Path, directory: &Path) -> Result<()> {
    Build::new().c_in(sources.join("calls.idl"), directory).map_err(Error::new)?;
    let mut compiler = compiler("gcc", "-std=gnu11", sources, directory);
    compiler.arg("-o").arg(directory.join("quill")).arg(sources.join("peer_quill.c"));
    build::run_builder(&mut compiler, "its program")
}

fn build_socket(sources: &Path, directory: &Path) -> Result<()> {
    let mut compiler = compiler("gcc", "-std=gnu11", sources, directory);
    compiler.arg("-o").arg(directory.join("socket")).arg(sources.join("peer_socket.c"));
    build::run_builder(&mut compiler, "its program")
}

fn build_omniorb(sources: &Path, directory: &Path) -> Result<()> {
    // A directory of its own, where no header of another peer is called like its own.
    let made = directory.join("of-omniorb");
    fs::create_dir_all(&made).context(|| format!("create {}", made.display()))?;
    let mut schema = Command::new("omniidl");
    schema.arg("-bcxx").arg(format!("-C{}", made.display())).arg(sources.join("calls.idl"));
    build::run_builder(&mut schema, "its interface")?;
    let mut compiler = compiler("g++", "-std=c++17", sources, &made);
    compiler.arg("-o").arg(directory.join("omniorb"));
    compiler.arg(sources.join("peer_omniorb.cc")).arg(made.join("callsSK.cc"));
    compiler.args(["-lomniORB4", "-lomnithread", "-pthread"]);
    build::run_builder(&mut compiler, "its program")
}

fn build_capnp(sources: &Path, directory: &Path) -> Result<()> {
    let mut schema = Command::new("capnp");
    schema.arg("compile").arg(format!("-oc++:{}", directory.display()));
    schema.arg(format!("--src-prefix={}", sources.display())).arg(sources.join("calls.capnp"));
    build::run_builder(&mut schema, "its schema")?;
    let mut compiler = compiler("g++", "-std=c++17", sources, directory);
    compiler.arg("-o").arg(directory.join("capnp"));
    compiler.arg(sources.join("peer_capnp.cc")).arg(directory.join("calls.capnp.c++"));
    compiler.args(["-lcapnp-rpc", "-lcapnp", "-lkj-async", "-lkj", "-pthread"]);
    build::run_builder(&mut compiler, "its program")
}

fn build_grpc(sources: &Path, directory: &Path) -> Result<()> {
    let plugin = paths::find_program("grpc_cpp_plugin").unwrap_or_else(|| PathBuf::from("grpc_cpp_plugin"));
    let mut schema = Command::new("protoc");
    schema.arg(format!("-I{}", sources.display()));
    schema.arg(format!("--cpp_out={}", directory.display()));
    schema.arg(format!("--grpc_out={}", directory.display()));
    schema.arg(format!("--plugin=protoc-gen-grpc={}", plugin.display())).arg(sources.join("calls.proto"));
    build::run_builder(&mut schema, "its schema")?;
    let libraries = Command::new("pkg-config").args(["--cflags", "--libs", "grpc++", "protobuf"]).output();
    let libraries = libraries.context(|| "run pkg-config".into())?;
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let mut compiler = compiler("g++", "-std=c++17", sources, directory);
    compiler.arg("-o").arg(directory.join("grpc")).arg(sources.join("peer_grpc.cc"));
    compiler.args(["calls.pb.cc", "calls.grpc.pb.cc"].map(|file| directory.join(file)));
    compiler.args(libraries.split_whitespace());
    build::run_builder(&mut compiler, "its program")
}

fn compiler(name: &str, language: &str, sources: &Path, directory: &Path) -> Command {
    let mut compiler = Command::new(name);
    compiler.args([language, "-O2", "-Wall", "-Wextra", "-I"]).arg(directory).arg("-I").arg(sources);
    compiler
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_compared_round_by_round() {
        let times = |ns: [u64; ROUNDS]| vec![("tiny".to_owned(), ns)];
        let all = HashMap::from([("quill", times([100, 200, 100])), ("capnp", times([300, 600, 500]))]);
        let named = |name: &str| PEERS.iter().find(|peer| peer.name == name).expect("it is a peer");
        let present = [named("quill"), named("capnp")];
        let rows = rows(&present, &all).expect("both measured it");
        assert_eq!(rows[0]["quill_ns"], 100.0);
        assert_eq!(rows[0]["capnp"], 3.0);
        assert!(for_people(&present, &rows).contains("3.0 x"));
    }
}
