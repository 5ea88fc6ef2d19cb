//! The command `quill`.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use quill::driver::{self, Compiled};
use quill::kernel::{KernelPart, Linux, TernDoor, TernIpc};
use quill::output;
use quill::parts;
use quill::session::{Dialect, Options};
use tools::print;

mod plot;
mod selftest;
mod tools;

/// Compiles interface files: CORBA IDL, DCE IDL, MS IDL.
#[derive(Parser, Debug)]
#[command(
    name = "quill",
    version,
    about,
    after_help = "Besides: `quill explain CODE` explains a message; `quill layout FILE` and `quill cost FILE` are short for \
                  --emit; `quill cost --plot FILE.svg FILE` draws costs; `quill test FILE` tests the stubs; `quill lsp` is a language server for editors; `quill man` prints the manual page; `quill completions SHELL` prints what a shell needs, `quill support SYSTEM` what CMake, Meson or pkg-config do.\n\n\
                  Exit codes: 0 accepted, 1 the input is at fault, 2 the command line or the file system is."
)]
struct Arguments {
    /// Adds a directory to search for included and imported files
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Defines a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The dialect; guessed from the file if not given
    #[arg(long, value_enum)]
    dialect: Option<DialectName>,
    /// The attribute file; FILE.acf beside FILE.idl if not given
    #[arg(long, value_name = "FILE")]
    acf: Option<PathBuf>,
    /// What to write; nothing but messages if not given
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Carrier of the messages; `linux` if not given, and for --plot `tern-ipc` and `tern-door`
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Where to write code: DIR/FILE.rs or DIR/FILE.h; standard output if not given
    #[arg(short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    /// Writes which files were read there, as a rule for make
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// With `cost`: draws there, as SVG, how many instructions stubs take over the length of lists and texts
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// With --plot: draws this operation only, NAME or INTERFACE::NAME; each that has a list or text if not given
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// The file, or `-` for standard input
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DialectName {
    /// OMG IDL
    Corba,
    /// DCE and MS IDL
    Dce,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Emit {
    /// The checked model
    Ast,
    /// The files that were read, as a rule for make
    Deps,
    /// C: a header with types, clients, servers
    C,
    /// Rust: types, clients, servers
    Rust,
    /// Where every value of every message lies
    Layout,
    /// What every message costs
    Cost,
}

/// The input is at fault.
const INPUT: u8 = 1;
/// The command line or the file system is.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    match words.get(1).and_then(|w| w.to_str()) {
        Some("test") => return selftest::run(words),
        Some("explain") => return tools::explain(words.get(2).and_then(|w| w.to_str())),
        Some("lsp") => return tools::language_server(&words[2..]),
        Some("man") if words.len() == 2 => return tools::manual(Arguments::command()),
        Some("completions") => {
            return tools::completions(words.get(2).and_then(|w| w.to_str()), Arguments::command());
        }
        Some("support") => return tools::support(words.get(2).and_then(|w| w.to_str())),
        Some(what @ ("layout" | "cost")) => words[1] = format!("--emit={what}").into(),
        _ => {}
    }
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    run(&arguments)
}

fn run(arguments: &Arguments) -> ExitCode {
    let options = Options {
        include_dirs: arguments.include.clone(),
        defines: arguments.define.clone(),
        dialect: arguments.dialect.map(|d| match d {
            DialectName::Corba => Dialect::Corba,
            DialectName::Dce => Dialect::Dce,
        }),
        acf: arguments.acf.clone(),
    };
    let name = arguments.kernel.as_deref().unwrap_or(Linux.name());
    let Some(kernel) = quill::kernel::find(name) else {
        let names: Vec<&str> = quill::kernel::ALL.iter().map(|k| k.name()).collect();
        eprintln!("error: there is no kernel part `{name}`; there are: {}", names.join(", "));
        return ExitCode::from(USAGE);
    };
    if let Some(why) = contradiction(arguments, kernel) {
        eprintln!("error: {why}");
        return ExitCode::from(USAGE);
    }
    let mut compiled = match read_and_compile(&arguments.file, options) {
        Ok(compiled) => compiled,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(USAGE);
        }
    };
    if let Some(path) = &arguments.plot {
        let of_tern: [&dyn KernelPart; 2] = [&TernIpc, &TernDoor];
        let kernels = if arguments.kernel.is_some() { &[kernel][..] } else { &of_tern };
        return plot::run(&mut compiled, kernels, arguments.operation.as_deref(), path);
    }
    let layouts = match arguments.emit {
        Some(Emit::Layout | Emit::Cost | Emit::Rust | Emit::C) if compiled.accepted() => {
            compiled.layout(kernel)
        }
        _ => Vec::new(),
    };
    let code = match arguments.emit {
        Some(Emit::Rust) if compiled.accepted() => compiled.rust(kernel),
        Some(Emit::C) if compiled.accepted() => compiled.c(kernel),
        _ => String::new(),
    };
    eprint!("{}", compiled.messages());
    if !compiled.accepted() {
        return ExitCode::from(INPUT);
    }
    if let Some(depfile) = &arguments.depfile {
        let rule = output::rule(&target(arguments), &compiled.files());
        if let Err(error) = output::write_whole(depfile, &rule) {
            eprintln!("error: cannot write `{}`: {}", depfile.display(), output::why(depfile, &error));
            return ExitCode::from(USAGE);
        }
    }
    match arguments.emit {
        None => ExitCode::SUCCESS,
        Some(Emit::Ast) => print(&format!("{:#?}\n", compiled.model)),
        Some(Emit::Deps) => print(&output::rule(&target(arguments), &compiled.files())),
        Some(Emit::Rust | Emit::C) => write(arguments, &code),
        Some(Emit::Layout) => print(&quill::layout::text(&compiled.model, &layouts, kernel)),
        Some(Emit::Cost) => print(&quill::layout::costs_text(&compiled.model, &layouts, kernel)),
    }
}

/// Why arguments do not go together, if they do not.
fn contradiction(arguments: &Arguments, kernel: &dyn KernelPart) -> Option<String> {
    if arguments.plot.is_some() && !matches!(arguments.emit, Some(Emit::Cost)) {
        return Some("--plot draws what `quill cost` predicts: `quill cost --plot FILE.svg FILE`".into());
    }
    if arguments.plot.is_some() && arguments.depfile.is_some() {
        return Some("--depfile is about code, and --plot writes none".into());
    }
    if arguments.operation.is_some() && arguments.plot.is_none() {
        return Some("--operation says what --plot draws".into());
    }
    let missing = match arguments.emit {
        Some(Emit::Rust) if parts::rust(kernel).is_none() => "Rust",
        Some(Emit::C) if parts::c(kernel).is_none() => "C",
        Some(Emit::Rust | Emit::C) => return None,
        _ => {
            let why = "-o says where code goes, which only --emit=rust and --emit=c write";
            return arguments.output.is_some().then(|| why.into());
        }
    };
    Some(format!("there is no {missing} output for `{}`; it has layouts and costs", kernel.name()))
}

/// Writes code where the user wants it.
fn write(arguments: &Arguments, text: &str) -> ExitCode {
    if arguments.output.is_none() {
        return print(text);
    }
    let path = target(arguments);
    if let Err(error) = output::write_whole(&path, text) {
        eprintln!("error: cannot write `{}`: {}", path.display(), output::why(&path, &error));
        return ExitCode::from(USAGE);
    }
    ExitCode::SUCCESS
}

/// What a rule for make is about: the file that is written, or the input when none is.
fn target(arguments: &Arguments) -> PathBuf {
    let extension = match arguments.emit {
        Some(Emit::Rust) => "rs",
        Some(Emit::C) => "h",
        _ => return arguments.file.clone(),
    };
    let Some(dir) = &arguments.output else { return arguments.file.clone() };
    let stem = arguments.file.file_stem().filter(|s| *s != "-");
    dir.join(stem.unwrap_or("stdin".as_ref())).with_added_extension(extension)
}

fn read_and_compile(path: &Path, options: Options) -> Result<Compiled, String> {
    if path == Path::new("-") {
        let mut text = Vec::new();
        let limit = quill::limits::SOURCE_BYTES_MAX as u64 + 1;
        std::io::stdin()
            .take(limit)
            .read_to_end(&mut text)
            .map_err(|e| format!("cannot read standard input: {e}"))?;
        return Ok(driver::compile_text(Path::new("<stdin>"), &text, options));
    }
    driver::compile(path, options).map_err(|e| e.0)
}
