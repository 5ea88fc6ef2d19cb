//! The command `quill`.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use quill::driver::{self, Compiled};
use quill::session::{Dialect, Options};

mod selftest;

/// Compiles interface files: CORBA IDL, DCE IDL, MS IDL.
#[derive(Parser, Debug)]
#[command(
    name = "quill",
    version,
    about,
    after_help = "`quill explain CODE` explains a message; `quill layout FILE` and `quill cost FILE` are short for --emit; `quill test FILE` tests the stubs."
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
    /// What carries the messages
    #[arg(long, value_name = "NAME", default_value = "linux")]
    kernel: String,
    /// Where to write code: DIR/FILE.rs or DIR/FILE.h; standard output if not given
    #[arg(short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
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
        Some("explain") => return explain(words.get(2).map(|w| w.to_string_lossy().into_owned())),
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

fn explain(code: Option<String>) -> ExitCode {
    let Some(code) = code else {
        for code in quill::codes::Code::ALL {
            let first = code.explanation().lines().next().unwrap_or("");
            if writeln!(std::io::stdout(), "{}  {first}", code.name()).is_err() {
                return ExitCode::from(USAGE);
            }
        }
        return ExitCode::SUCCESS;
    };
    match quill::codes::find(&code) {
        Some(code) => print(&format!("{}: {}\n", code.name(), code.explanation())),
        None => {
            let names = quill::codes::Code::ALL.iter().map(|c| c.name());
            let near = quill::diag::nearest(&code.to_uppercase(), names);
            let hint = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            eprintln!("error: there is no code `{code}`{hint}");
            ExitCode::from(USAGE)
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(USAGE),
    }
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
    if arguments.acf.is_some() && options.dialect == Some(Dialect::Corba) {
        eprintln!("error: --acf does not go with --dialect corba: attribute files belong to DCE IDL");
        return ExitCode::from(USAGE);
    }
    let Some(kernel) = quill::kernel::find(&arguments.kernel) else {
        let names: Vec<&str> = quill::kernel::ALL.iter().map(|k| k.name()).collect();
        eprintln!("error: there is no kernel part `{}`; there are {}", arguments.kernel, names.join(" and "));
        return ExitCode::from(USAGE);
    };
    if matches!(arguments.emit, Some(Emit::Rust)) && kernel.rust().is_none() {
        eprintln!("error: there is no Rust output for `{}`; it has layouts and costs", kernel.name());
        return ExitCode::from(USAGE);
    }
    if matches!(arguments.emit, Some(Emit::C)) && kernel.c().is_none() {
        eprintln!("error: there is no C output for `{}`; it has layouts and costs", kernel.name());
        return ExitCode::from(USAGE);
    }
    let mut compiled = match read_and_compile(&arguments.file, options) {
        Ok(compiled) => compiled,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(USAGE);
        }
    };
    let layouts = match arguments.emit {
        Some(Emit::Layout | Emit::Cost | Emit::Rust | Emit::C) if compiled.accepted() => {
            compiled.layout(kernel)
        }
        _ => Vec::new(),
    };
    let code = match arguments.emit {
        Some(Emit::Rust) if compiled.accepted() => compiled.rust(&layouts, kernel),
        Some(Emit::C) if compiled.accepted() => compiled.c(&layouts, kernel),
        _ => String::new(),
    };
    eprint!("{}", compiled.messages());
    if !compiled.accepted() {
        return ExitCode::from(INPUT);
    }
    match arguments.emit {
        None => ExitCode::SUCCESS,
        Some(Emit::Ast) => print(&format!("{:#?}\n", compiled.model)),
        Some(Emit::Deps) => {
            let files: String = compiled.files().iter().map(|f| format!(" {}", f.display())).collect();
            print(&format!("{}:{files}\n", arguments.file.display()))
        }
        Some(Emit::Rust) => write(arguments, "rs", &code),
        Some(Emit::C) => write(arguments, "h", &code),
        Some(Emit::Layout) => print(&quill::layout::text(&compiled.model, &layouts, kernel)),
        Some(Emit::Cost) => print(&quill::layout::cost_text(&compiled.model, &layouts, kernel)),
    }
}

/// Writes code where the user wants it: first beside its place, then over it, so that nothing half-written stays.
fn write(arguments: &Arguments, extension: &str, text: &str) -> ExitCode {
    let Some(dir) = &arguments.output else { return print(text) };
    let stem =
        arguments.file.file_stem().filter(|s| *s != "-").map_or("stdin".into(), |s| s.to_string_lossy());
    let path = dir.join(format!("{stem}.{extension}"));
    let unfinished = dir.join(format!(".{stem}.{extension}.unfinished"));
    let result = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &path));
    if let Err(error) = result {
        let _ = std::fs::remove_file(&unfinished);
        eprintln!("error: cannot write `{}`: {error}", path.display());
        return ExitCode::from(USAGE);
    }
    ExitCode::SUCCESS
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
