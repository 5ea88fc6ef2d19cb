//! The rows of the suite `idl` that are counted on the host: stubs for L4's V4 API on x86 with 32 bits.
//!
//! `bench/l4v4` is a program that steps itself and counts the instructions of the stubs. It needs a C compiler that can
//! make 32-bit code, no library, and a host that runs it. The figures depend on the compiler, so the table says which one
//! it was made with; where there is another, or none, these rows are not compared.

use crate::{Context, Error, Result, paths};
use quill::build::Build;
use quill::kernel::L4V4;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const COMPILER: &str = "gcc";

/// Options with which stubs for this API have been compared elsewhere; and nothing that a distribution's compiler adds by itself.
const OPTIONS: [&str; 10] = [
    "-m32",
    "-O2",
    "-fomit-frame-pointer",
    "-DQUILL_OMIT_FRAME_POINTER",
    "-ffreestanding",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-std=gnu11",
    "-Werror",
];

/// In this order, since what is counted lies between the first and the last but one.
const SOURCES: [&str; 5] = ["begin.s", "stubs.c", "floor.s", "end.s", "machine.c"];

/// Figures, by the end of a row's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The compiler's name and version.
    pub compiler: String,
    /// Instructions.
    pub figures: HashMap<String, u64>,
}

/// Counts. The inner error says why this host cannot.
pub fn count() -> Result<std::result::Result<Counted, String>> {
    let directory = paths::target().join("l4v4");
    std::fs::create_dir_all(&directory).context(|| format!("create {}", directory.display()))?;
    let sources = paths::root().join("bench/l4v4");
    Build::new().kernel(&L4V4).c_in(sources.join("calls.idl"), &directory).map_err(Error::new)?;
    let Some(compiler) = version() else { return Ok(Err(format!("there is no {COMPILER}"))) };
    if let Err(why) = build(&sources, &directory)? {
        return Ok(Err(format!("{COMPILER} makes no 32-bit program here: {why}")));
    }
    let output = match Command::new(directory.join("l4v4")).output() {
        Ok(output) => output,
        Err(error) => return Ok(Err(format!("32-bit programs do not run here: {error}"))),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(Error::new(format!("bench/l4v4 failed ({}): {text}", output.status)));
    }
    Ok(Ok(Counted { compiler, figures: read(&text)? }))
}

fn version() -> Option<String> {
    let output = Command::new(COMPILER).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_string)
}

fn build(sources: &Path, directory: &Path) -> Result<std::result::Result<(), String>> {
    let mut objects = Vec::new();
    for source in SOURCES {
        let object = directory.join(source).with_extension("o");
        let mut compiler = Command::new(COMPILER);
        compiler.args(OPTIONS).arg("-I").arg(directory).arg("-c").arg("-o").arg(&object);
        if let Err(why) = run(compiler.arg(sources.join(source)))? {
            return Ok(Err(why));
        }
        objects.push(object);
    }
    let mut linker = Command::new(COMPILER);
    linker.args(["-m32", "-nostdlib", "-static", "-no-pie", "-o"]).arg(directory.join("l4v4"));
    run(linker.args(&objects))
}

fn run(command: &mut Command) -> Result<std::result::Result<(), String>> {
    let output = command.output().context(|| format!("run {COMPILER}"))?;
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(why) })
}

/// Reads lines of a name and a figure.
fn read(text: &str) -> Result<HashMap<String, u64>> {
    let line = |line: &str| {
        let (name, figure) = line.split_once(' ')?;
        Some((name.to_string(), figure.parse().ok()?))
    };
    let figures: Option<HashMap<String, u64>> = text.lines().map(line).collect();
    figures.ok_or_else(|| Error::new(format!("bench/l4v4 printed no table: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_name() {
        let figures = read("tiny.client 20\ntiny.server 12\n").unwrap();
        assert_eq!((figures["tiny.client"], figures["tiny.server"]), (20, 12));
        assert!(read("tiny.client\n").is_err());
        assert!(read("tiny.client many\n").is_err());
    }
}
