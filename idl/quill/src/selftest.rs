//! `quill test FILE`: makes a client and a server of every interface of a file, and lets them test each other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use quill::driver;
use quill::kernel::{KernelPart, L4V4, Linux};
use quill::output;
use quill::session::Options;

use crate::{INPUT, USAGE};

/// Tests the stubs of an interface file: random values in every direction, exceptions, sizes, leaks, and messages that
/// are cut or damaged.
#[derive(Parser, Debug)]
#[command(name = "quill test", version)]
struct Arguments {
    /// Adds a directory to search for included and imported files
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Defines a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Carrier of the messages; `linux` and `l4-v4` run here, those over Tern are written
    #[arg(long, value_name = "NAME", default_value = "linux")]
    kernel: String,
    /// How often each method is called
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    rounds: u64,
    /// Where the random values begin
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Writes the program to DIR/FILE.rs, or FILE.c, and does not run it
    #[arg(short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    /// The file
    file: PathBuf,
}

/// What runs the test on the host.
const MAIN: &str = "
fn main() {
    let number = |at: usize| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(1);
    let good = match std::env::args().nth(3) {
        None => quill_selftest::all(number(1), number(2)),
        Some(program) => quill_selftest::all_between(number(1), number(2), &program),
    };
    std::process::exit(i32::from(!good));
}
";

/// Runs the command; `words` begin with the program and `test`.
pub fn run(mut words: Vec<OsString>) -> ExitCode {
    words.remove(1);
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    test(&arguments).unwrap_or_else(|(code, why)| {
        eprint!("{why}");
        ExitCode::from(code)
    })
}

fn usage(why: impl std::fmt::Display) -> (u8, String) {
    (USAGE, format!("error: {why}\n"))
}

/// The end of a run that could not write a file.
fn unwritten(path: &Path, error: &std::io::Error) -> (u8, String) {
    usage(format_args!("cannot write `{}`: {}", path.display(), output::why(path, error)))
}

fn test(arguments: &Arguments) -> Result<ExitCode, (u8, String)> {
    let kernel = quill::kernel::find(&arguments.kernel)
        .ok_or_else(|| usage(format_args!("there is no kernel part `{}`", arguments.kernel)))?;
    let on_l4 = kernel.name() == L4V4.name();
    let runs_here = [Linux.name(), L4V4.name()].contains(&kernel.name());
    if !runs_here && arguments.output.is_none() {
        return Err(usage(format_args!(
            "`{}` does not run here; `-o DIR` writes the program",
            kernel.name()
        )));
    }
    let options = Options {
        include_dirs: arguments.include.clone(),
        defines: arguments.define.clone(),
        ..Options::default()
    };
    let mut compiled = driver::compile(&arguments.file, options).map_err(|e| usage(e.0))?;
    let layouts = if compiled.accepted() { compiled.layout(kernel) } else { Vec::new() };
    let mut text = match compiled.accepted() {
        true if on_l4 => compiled.c_selftest(),
        true => compiled.rust_selftest(kernel),
        false => String::new(),
    };
    eprint!("{}", compiled.messages());
    if !compiled.accepted() {
        return Err((INPUT, String::new()));
    }
    if layouts.is_empty() {
        println!("{}: no interface, nothing to test", arguments.file.display());
        return Ok(ExitCode::SUCCESS);
    }
    if kernel.name() == Linux.name() {
        text += MAIN;
    }
    let stem = arguments.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = format!("{stem}.{}", if on_l4 { "c" } else { "rs" });
    if let Some(dir) = &arguments.output {
        return write(dir.join(file), &text).map(|_| ExitCode::SUCCESS);
    }
    let dir = std::env::temp_dir().join(format!("quill-test-{stem}-{}", std::process::id()));
    std::fs::create_dir_all(&dir)
        .map_err(|e| usage(format_args!("cannot make the directory `{}`: {e}", dir.display())))?;
    let tested: Vec<usize> = (0..layouts.len()).filter(|&i| !layouts[i].methods.is_empty()).collect();
    let result = write(dir.join(file), &text).and_then(|path| match on_l4 {
        true => compile_and_run_on_l4(&path, &tested, arguments),
        false => compile_and_run(&path, &compiled, arguments),
    });
    let result = match result {
        Ok(good) if !on_l4 && quill::parts::c(kernel).is_some() => {
            compare_values(&dir, &mut compiled).map(|same| good && same)
        }
        result => result,
    };
    let result = result.map(|good| if good { ExitCode::SUCCESS } else { ExitCode::from(INPUT) });
    let _ = std::fs::remove_dir_all(&dir);
    result
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, (u8, String)> {
    match std::fs::write(&path, text) {
        Ok(()) => Ok(path),
        Err(e) => Err(unwritten(&path, &e)),
    }
}

/// Whether constants and the members of enums and bitmasks are the same in both languages. Without a C compiler nobody can say.
fn compare_values(dir: &Path, compiled: &mut driver::Compiled) -> Result<bool, (u8, String)> {
    let [rust, c] = compiled.values();
    // What C cannot hold has been tested in Rust.
    if !compiled.accepted() {
        return Ok(true);
    }
    let compiler = c_compiler();
    if Command::new(&compiler).arg("--version").output().is_err() {
        println!("values: not compared, there is no C compiler");
        return Ok(true);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = [
        said(dir, "values_in_rust.rs", &rust, &rustc, &["--edition", "2024", "-A", "warnings"])?,
        // Lines for headers of C may want others around them, and have no values that quill knows.
        said(dir, "values_in_c.c", &c, &compiler, &["-std=gnu11", "-w", "-DQUILL_NO_QUOTES"])?,
    ];
    let [rust, c] = &said;
    if rust == c {
        if rust.is_empty() {
            return Ok(true);
        }
        println!("values: {} are the same in Rust and in C", rust.lines().count());
        return Ok(true);
    }
    let differ = rust.lines().zip(c.lines()).filter(|(rust, c)| rust != c);
    differ.for_each(|(rust, c)| println!("values: FAILED: {rust} in Rust, {c} in C"));
    Ok(false)
}

/// What a program says that a compiler makes.
fn said(
    dir: &Path,
    name: &str,
    text: &str,
    compiler: &std::ffi::OsStr,
    options: &[&str],
) -> Result<String, (u8, String)> {
    let (source, program) = (dir.join(name), dir.join(name).with_extension("values"));
    std::fs::write(&source, text).map_err(|e| unwritten(&source, &e))?;
    let out = Command::new(compiler).args(options).arg("-o").arg(&program).arg(&source).output();
    let out = out.map_err(|e| usage(format_args!("{e}")))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        return Err((INPUT, format!("error: the stubs cannot be compiled\n{said}")));
    }
    let out = Command::new(&program).output().map_err(|e| usage(format_args!("{e}")))?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The C compiler.
fn c_compiler() -> OsString {
    std::env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Options with which each read and write of C is watched, and what is not given back is told at the end.
const WATCHED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Makes the program in C that stands between client and server; none, and says why, if there is none.
fn compile_relay(path: &Path, compiled: &driver::Compiled) -> Result<Option<PathBuf>, (u8, String)> {
    let text = match compiled.c_relay() {
        Ok(text) => text,
        Err(refused) => {
            let why = refused.first().map_or("", |first| &first.message);
            println!("through C: not tested, {why}");
            return Ok(None);
        }
    };
    let compiler = c_compiler();
    if Command::new(&compiler).arg("--version").output().is_err() {
        println!("through C: not tested, there is no C compiler");
        return Ok(None);
    }
    let (source, program) = (path.with_extension("relay.c"), path.with_extension("relay"));
    let compile = |text: &str, options: &[&str]| {
        std::fs::write(&source, text).map_err(|e| unwritten(&source, &e))?;
        let mut command = Command::new(&compiler);
        // Without optimisation a compiler is several times as fast, and leaves more accesses to be watched.
        command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O0", "-g1", "-w"]).args(options);
        command.arg("-o").arg(&program).arg(&source).output().map_err(|e| usage(format_args!("{e}")))
    };
    let can_watch = compile("int main(void) { return 0; }\n", &WATCHED)?.status.success();
    let out = compile(&text, if can_watch { &WATCHED } else { &[] })?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        return Err((INPUT, format!("error: the stubs in C cannot be compiled\n{said}")));
    }
    if !can_watch {
        println!("through C: memory is not watched, `{}` cannot do it here", compiler.display());
    }
    Ok(Some(program))
}

/// Tests Rust's stubs, and then C's between them. Whether all is well.
fn compile_and_run(
    path: &Path,
    compiled: &driver::Compiled,
    arguments: &Arguments,
) -> Result<bool, (u8, String)> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let program = path.with_extension("test");
    let mut compiler = Command::new(&rustc);
    compiler.args([
        "--edition",
        "2024",
        "-C",
        "opt-level=1",
        "-C",
        "debug-assertions=on",
        "--crate-name",
        "selftest",
    ]);
    let out = compiler
        .arg("-o")
        .arg(&program)
        .arg(path)
        .output()
        .map_err(|e| usage(format_args!("cannot run the Rust compiler `{}`: {e}", rustc.display())))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        return Err((INPUT, format!("error: the stubs cannot be compiled\n{said}")));
    }
    let numbers = [arguments.seed.to_string(), arguments.rounds.to_string()];
    let run = |between: Option<&Path>| {
        let status = Command::new(&program).args(&numbers).args(between).status();
        status.map(|status| status.success()).map_err(|e| usage(format_args!("{e}")))
    };
    let in_rust = run(None)?;
    match compile_relay(path, compiled)? {
        Some(relay) => run(Some(&relay)).map(|through_c| in_rust && through_c),
        None => Ok(in_rust),
    }
}

/// What makes a program that needs no library. Floating-point numbers are no longer in registers than in memory.
const ALONE: [&str; 8] =
    ["-std=gnu11", "-O2", "-ffreestanding", "-nostdlib", "-static", "-fno-pie", "-msse2", "-mfpmath=sse"];

/// A program for each interface, with a kernel of its own: for 64 bits, and for 32 where compiler and host can.
fn compile_and_run_on_l4(
    path: &Path,
    interfaces: &[usize],
    arguments: &Arguments,
) -> Result<bool, (u8, String)> {
    let compiler = c_compiler();
    let (program, empty) = (path.with_extension("test"), path.with_extension("empty.c"));
    let compile = |width: &str, source: &Path, defines: &[String]| {
        let mut command = Command::new(&compiler);
        command.args(ALONE).arg(width).args(defines).arg("-o").arg(&program).arg(source);
        command
            .output()
            .map_err(|e| usage(format_args!("cannot run the C compiler `{}`: {e}", compiler.display())))
    };
    std::fs::write(&empty, "void _start(void) { __builtin_trap(); }\n").map_err(|e| unwritten(&empty, &e))?;
    let mut good = true;
    for width in ["-m64", "-m32"] {
        // Nobody says why a program that does nothing ends; but it can be started.
        if !compile(width, &empty, &[])?.status.success() || Command::new(&program).output().is_err() {
            println!("{width} is left out: this host makes or runs no such programs");
            continue;
        }
        for interface in interfaces {
            let defines = [
                format!("-DQUILL_INTERFACE={interface}"),
                format!("-DQUILL_ROUNDS={}u", arguments.rounds),
                format!("-DQUILL_SEED={}", arguments.seed),
            ];
            let out = compile(width, path, &defines)?;
            if !out.status.success() {
                let said = String::from_utf8_lossy(&out.stderr).into_owned();
                return Err((INPUT, format!("error: the stubs cannot be compiled\n{said}")));
            }
            let out = Command::new(&program).output().map_err(|e| usage(format_args!("{e}")))?;
            print!("{width} {}", String::from_utf8_lossy(&out.stderr));
            good &= out.status.success();
        }
    }
    Ok(good)
}
