//! Interface files of other projects, which are not part of this one: verdicts against `EXPECT.tsv`, where
//! `../shared/idl-corpus` lies beside the repository, or where `QUILL_CORPUS` says.

mod workshop;

use std::io::Write;
use std::path::{Path, PathBuf};

use quill::diag::Diagnostic;
use quill::driver;
use quill::emit::rust::Purpose;
use quill::kernel::{ALL, KernelPart, L4V4, Linux, TernDoor, TernIpc};
use quill::model::Model;
use quill::parts;
use quill::session::Options;
use workshop::{Workshop, compilers};

/// The directory of the corpus, and its rows: path and verdict.
fn corpus() -> Option<(PathBuf, Vec<(String, String)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    let dir =
        std::env::var_os("QUILL_CORPUS").map_or_else(|| root.join("../shared/idl-corpus"), PathBuf::from);
    let Ok(table) = std::fs::read_to_string(dir.join("EXPECT.tsv")) else {
        // Past the test runner, which keeps what passing tests print to itself.
        let warning =
            format!("\n*** SKIPPED: {} IS ABSENT, so nothing of it is checked ***\n\n", dir.display());
        std::io::stderr().write_all(warning.as_bytes()).unwrap();
        return None;
    };
    let rows = table.lines().filter(|l| !l.starts_with('#')).filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?.to_owned(), cells.next()?.to_owned()))
    });
    Some((dir, rows.collect()))
}

fn options(dir: &Path, file: &str) -> Options {
    let dirs: &[&str] = match file {
        f if f.starts_with("corba/omniorb") => &["corba/omniorb", "corba/omniorb/COS"],
        f if f.starts_with("dce/freedce") => &["dce/freedce/include", "dce/freedce"],
        f if f.starts_with("dce/wine") => &["dce/wine"],
        _ => &[],
    };
    Options { include_dirs: dirs.iter().map(|d| dir.join(d)).collect(), ..Options::default() }
}

#[test]
fn verdicts() {
    let Some((dir, rows)) = corpus() else { return };
    let mut wrong = Vec::new();
    // By the first two parts of the path: rows, accepted, rejected.
    let mut table: Vec<(String, [usize; 3])> = Vec::new();
    for (file, verdict) in &rows {
        let out = driver::compile(&dir.join(file), options(&dir, file)).unwrap();
        let found = if out.accepted() { "accept" } else { "reject" };
        if found != verdict {
            wrong.push(format!("{file}: {verdict} expected\n{}", out.messages()));
        }
        let group: Vec<&str> = file.split('/').take(2).collect();
        let group = group.join("/");
        if table.last().is_none_or(|(g, _)| *g != group) {
            table.push((group, [0; 3]));
        }
        let counts = &mut table.last_mut().unwrap().1;
        counts[0] += 1;
        counts[if out.accepted() { 1 } else { 2 }] += 1;
    }
    println!("{:<20} {:>6} {:>9} {:>9}", "origin", "files", "accepted", "rejected");
    for (group, [files, accepted, rejected]) in &table {
        println!("{group:<20} {files:>6} {accepted:>9} {rejected:>9}");
    }
    println!("{:<20} {:>6} mismatches", "", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is made of a model without those operations that nothing can carry: most of these files were not written for quill. Types and
/// constants are all there.
fn made(
    model: &mut Model,
    emit: impl Fn(&Model) -> Result<String, Vec<Diagnostic>>,
) -> Result<String, Vec<Diagnostic>> {
    loop {
        let refused = match emit(model) {
            Ok(text) => return Ok(text),
            Err(refused) => refused,
        };
        let count = |model: &Model| model.interfaces.iter().map(|i| i.operations.len()).sum::<usize>();
        let before = count(model);
        for interface in &mut model.interfaces {
            interface.operations.retain(|o| refused.iter().all(|d| d.span != o.span));
        }
        if count(model) == before {
            return Err(refused);
        }
    }
}

/// Compiles what was made, and says what the compiler says. An object's entry is a macro, so one of each interface is made.
fn complaint(shop: &Workshop, name: &str, text: &str, tool: &str, options: &[&str]) -> Option<String> {
    std::fs::write(shop.path(name), text).unwrap();
    std::fs::write(shop.path("stubs.c"), format!("#include \"stubs.h\"\n{}", entries(text))).unwrap();
    shop.try_tool(tool, options).err()
}

/// Without lines that files have for headers of C: these want headers of Windows around them.
const NO_QUOTES: &str = "-DQUILL_NO_QUOTES";

/// Entries of objects with the interfaces of a header, if these are behind doors.
fn entries(header: &str) -> String {
    let interfaces = header.lines().filter_map(|line| {
        line.strip_prefix("#define ")?.split_once("_ENTRY(name, methods, unreferenced)").map(|(of, _)| of)
    });
    let entry = |of: &str| format!("{of}_ENTRY({of}_entry, *(const {of}_server *)quill_self, NULL)\n");
    interfaces.map(entry).collect()
}

#[test]
fn what_is_made_of_other_peoples_files_compiles_without_a_warning() {
    let Some((dir, rows)) = corpus() else { return };
    let shop = Workshop::new("corpus");
    let compilers = compilers();
    let in_rust =
        ["--edition", "2024", "-D", "warnings", "--crate-type", "rlib", "--emit", "metadata", "stubs.rs"];
    let in_c = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", NO_QUOTES, "-fsyntax-only"];
    let in_c = [&in_c[..], &["stubs.c"]].concat();
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, _) in rows.iter().filter(|(_, verdict)| verdict == "accept") {
        let mut out = driver::compile(&dir.join(file), options(&dir, file)).unwrap();
        let rust = made(&mut out.model, |model| parts::emit_rust(model, &Linux, Purpose::Stubs));
        let c = made(&mut out.model, |model| parts::emit_c(model, &Linux));
        let (rust, c) = match (rust, c) {
            (Ok(rust), Ok(c)) => (rust, c),
            (rust, c) => {
                let why = rust.err().into_iter().chain(c.err()).flatten().map(|d| d.message);
                wrong.push(format!("{file}: {}", why.collect::<Vec<_>>().join(", ")));
                continue;
            }
        };
        count += 1;
        let said = complaint(&shop, "stubs.rs", &rust, "rustc", &in_rust);
        let in_c = compilers.iter().filter_map(|compiler| complaint(&shop, "stubs.h", &c, compiler, &in_c));
        let said = said.into_iter().chain(in_c);
        wrong.extend(said.map(|why| format!("{file}: {why}")));
    }
    println!("{count} files in Rust and in C; {} complaints", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Options for stubs over Tern's doors, which are for Tern alone; none, where the compiler of this host makes no programs of Tern. Of the crate `rt` there is what
/// most of them want: memory for answers.
fn by_door(shop: &Workshop) -> Option<Vec<&'static str>> {
    let asked = ["--print", "target-libdir", "--target", "x86_64-unknown-none"];
    let out = std::process::Command::new("rustc").args(asked).output().unwrap();
    if !Path::new(String::from_utf8_lossy(&out.stdout).trim()).exists() {
        println!("no stubs in Rust by doors: there is no target for them");
        return None;
    }
    let target = [
        "--edition",
        "2024",
        "--target",
        "x86_64-unknown-none",
        "--emit",
        "metadata",
        "--crate-type",
        "rlib",
        "-L.",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let runtime = "#![no_std]\npub mod door { pub fn memory(_: &mut stub::door::Turn) -> Option<&dyn stub::hold::Memory> { None } }";
    // In a folder of its own, beside the crate of the host that has the same name.
    std::fs::create_dir_all(shop.path("door")).unwrap();
    std::fs::write(shop.path("rt.rs"), runtime).unwrap();
    for (name, at, needs) in [
        ("abi", root.join("abi/src/lib.rs"), None),
        ("sys", root.join("user/lib/sys/src/lib.rs"), Some("abi")),
        ("stub", root.join("user/lib/stub/src/lib.rs"), Some("sys")),
        ("rt", shop.path("rt.rs"), Some("stub")),
    ] {
        let library =
            ["--cap-lints=allow", "--out-dir", "door", "-Ldoor", "--crate-name", name, at.to_str().unwrap()];
        let needs = needs.map_or(vec![], |needed| vec!["--extern", needed]);
        shop.tool("rustc", &[&target[..], &library, &needs].concat());
    }
    // No stub of Tern has the standard library.
    std::fs::write(shop.path("door.rs"), "#![no_std]\npub mod stubs { include!(\"stubs.rs\"); }").unwrap();
    let crates = ["-Ldoor", "--extern", "stub=door/libstub.rmeta", "--extern", "rt=door/librt.rmeta"];
    let stubs = [&["-D", "warnings"][..], &crates, &["door.rs"]].concat();
    Some([&target[..], &stubs].concat())
}

/// Compiles what is made of whole files for Tern and for L4, in C, and in Rust where the crate that stubs share can be one of the host's, or has been made for Tern.
#[test]
fn what_is_made_for_kernels_compiles_without_a_warning() {
    let Some((dir, rows)) = corpus() else { return };
    let shop = Workshop::new("corpus-tern");
    shop.bring_tern();
    shop.bring("stub_on_host.rs", "stub.rs");
    for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
        shop.bring(&format!("../../../../user/lib/stub/src/{part}"), part);
    }
    shop.rustc(&["--crate-type", "rlib", "--emit", "metadata", "--crate-name", "stub", "stub.rs"]);
    let compilers = compilers();
    let door = by_door(&shop);
    let in_rust = ["--edition", "2024", "-D", "warnings", "--crate-type", "rlib", "--emit", "metadata"];
    let in_rust = [&in_rust[..], &["--extern", "stub=libstub.rmeta", "stubs.rs"]].concat();
    let in_c =
        ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I.", "-ffreestanding", NO_QUOTES, "-fsyntax-only"];
    let in_c = [&in_c[..], &["stubs.c"]].concat();
    let (mut count, mut left_out, mut wrong) = (0, 0, Vec::new());
    for (file, _) in rows.iter().filter(|(_, verdict)| verdict == "accept") {
        let out = driver::compile(&dir.join(file), options(&dir, file)).unwrap();
        if !has_operations(&out.model) {
            continue;
        }
        for kernel in [&TernIpc as &dyn KernelPart, &TernDoor, &L4V4] {
            for (language, made) in outputs(&out.model, kernel) {
                let Ok(text) = made else { continue };
                let said: Vec<String> = match (language, &door) {
                    ("c", _) => {
                        let of = |compiler: &String| complaint(&shop, "stubs.h", &text, compiler, &in_c);
                        compilers.iter().filter_map(of).collect()
                    }
                    (_, door) if kernel.name() == TernDoor.name() => {
                        // References and offers are the affair of more of that crate.
                        let wanted =
                            text.matches("::rt::").count() - text.matches("::rt::door::memory").count();
                        let Some(door) = door.as_ref().filter(|_| wanted == 0) else {
                            left_out += 1;
                            continue;
                        };
                        complaint(&shop, "stubs.rs", &text, "rustc", door).into_iter().collect()
                    }
                    _ => complaint(&shop, "stubs.rs", &text, "rustc", &in_rust).into_iter().collect(),
                };
                count += 1;
                wrong.extend(said.into_iter().map(|why| format!("{file} over {}: {why}", kernel.name())));
            }
        }
    }
    println!("{count} outputs for Tern and L4, {left_out} by doors left out; {} complaints", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a file says of an interface what its calls are, so that there is something to translate.
fn has_operations(model: &Model) -> bool {
    model.interfaces.iter().any(|i| i.defined && !i.imported && !i.local && !i.operations.is_empty())
}

/// All that a kernel part makes of a model, in each of its languages.
fn outputs(model: &Model, kernel: &dyn KernelPart) -> Vec<(&'static str, Result<String, Vec<Diagnostic>>)> {
    let mut all = Vec::new();
    if parts::rust(kernel).is_some() {
        all.push(("rust", parts::emit_rust(model, kernel, Purpose::Stubs)));
    }
    if parts::c(kernel).is_some() {
        all.push(("c", parts::emit_c(model, kernel)));
    }
    all
}

/// Of so many files one has its stubs tested in a plain test, since each is a program of its own; in a full one all have.
const ONE_IN: usize = 16;

/// Stubs of every file that has operations test each other over sockets: `quill test`.
#[test]
fn stubs_of_other_peoples_files_test_each_other() {
    let Some((dir, rows)) = corpus() else { return };
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let one_in = if is_full { 1 } else { ONE_IN };
    let calls = rows.iter().filter(|(file, verdict)| {
        verdict == "accept"
            && has_operations(&driver::compile(&dir.join(file), options(&dir, file)).unwrap().model)
    });
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, _) in calls.step_by(one_in) {
        let mut quill = std::process::Command::new(env!("CARGO_BIN_EXE_quill"));
        quill.args(["test", "--rounds", "10"]);
        for include in options(&dir, file).include_dirs {
            quill.arg("-I").arg(include);
        }
        let out = quill.arg(dir.join(file)).output().unwrap();
        count += 1;
        if !out.status.success() {
            let said = [out.stdout, out.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
            wrong.push(format!("{file}: {}", said.concat()));
        }
    }
    println!("{count} files tested; {} failed", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of one dialect, and of how many all that they declare is translated.
#[derive(Default)]
struct Complete {
    accepted: usize,
    calling: usize,
    /// By part and language: of all that are accepted, and of those that have operations.
    by_output: Vec<(String, [usize; 2])>,
}

impl Complete {
    fn add(&mut self, file: &str, model: &Model) {
        let calls = has_operations(model);
        self.accepted += 1;
        self.calling += usize::from(calls);
        let all = ALL.iter().flat_map(|kernel| {
            outputs(model, *kernel)
                .into_iter()
                .map(|(language, made)| (format!("{} {language}", kernel.name()), made))
        });
        for (index, (output, made)) in all.enumerate() {
            if self.by_output.len() <= index {
                self.by_output.push((output.clone(), [0; 2]));
            }
            match made {
                Ok(_) => {
                    self.by_output[index].1[0] += 1;
                    self.by_output[index].1[1] += usize::from(calls);
                }
                Err(why) => why.iter().for_each(|why| println!("{output}: {file}: {}", why.message)),
            }
        }
    }
}

/// How many of these files are translated whole, by part and language, as the committed table says.
#[test]
fn complete_stubs_are_as_many_as_the_table_says() {
    let Some((dir, rows)) = corpus() else { return };
    let mut table = String::from(
        "# files that are accepted and translated whole, and those of them that have operations\n",
    );
    for dialect in ["corba", "dce"] {
        let mut counts = Complete::default();
        for (file, _) in
            rows.iter().filter(|(file, verdict)| file.starts_with(dialect) && verdict == "accept")
        {
            let out = driver::compile(&dir.join(file), options(&dir, file)).unwrap();
            counts.add(file, &out.model);
        }
        table += &format!("{dialect}\taccepted\t{}\t{}\n", counts.accepted, counts.calling);
        for (output, [all, calling]) in counts.by_output {
            table += &format!("{dialect}\t{output}\t{all}\t{calling}\n");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/corpus.tsv");
    if std::env::var_os("QUILL_BLESS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(table, committed, "QUILL_BLESS=1 writes the table");
}
