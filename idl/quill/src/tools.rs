//! Rest of the command besides compiling: explanations of codes, the manual page, completions for shells, files for build systems, and the start of
//! the language server, which is a program of its own so that whoever compiles with quill needs nothing of it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, ValueEnum};

use crate::USAGE;

/// Prints the explanation of a code; of all codes the first line.
pub fn explain(code: Option<&str>) -> ExitCode {
    let Some(code) = code else {
        let first = |code: &quill::codes::Code| code.explanation().lines().next().unwrap_or("");
        let lines = quill::codes::Code::ALL.iter().map(|c| format!("{}  {}\n", c.name(), first(c)));
        return print(&lines.collect::<String>());
    };
    match quill::codes::find(code) {
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

/// Prints the manual page, for `man -l -`.
pub fn manual(command: Command) -> ExitCode {
    let mut page = Vec::new();
    match clap_mangen::Man::new(command).render(&mut page).and_then(|()| io::stdout().write_all(&page)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(USAGE),
    }
}

/// Prints what a shell needs to complete the command's options.
pub fn completions(shell: Option<&str>, mut command: Command) -> ExitCode {
    let Some(shell) = shell.and_then(|s| clap_complete::Shell::from_str(s, true).ok()) else {
        eprintln!("error: `quill completions` takes bash, elvish, fish, powershell or zsh");
        return ExitCode::from(USAGE);
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "quill", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints what a build system needs for stubs in C.
pub fn support(system: Option<&str>) -> ExitCode {
    match system {
        Some("cmake") => print(include_str!("support/QuillConfig.cmake")),
        Some("meson") => print(include_str!("support/meson.build")),
        Some("pkg-config") => {
            let own = std::env::current_exe().unwrap_or_else(|_| "quill".into());
            let text = include_str!("support/quill.pc").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
            // In such a file a space ends a word, a dollar begins a variable and a number sign a comment.
            let own = own.to_string_lossy().replace('$', "$$").replace('#', "\\#");
            print(&text.replace("@QUILL@", &own))
        }
        _ => {
            eprintln!("error: `quill support` takes cmake, meson or pkg-config");
            ExitCode::from(USAGE)
        }
    }
}

/// Becomes the language server: `quill-lsp` beside this program, or else in the search path.
pub fn language_server(arguments: &[OsString]) -> ExitCode {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|dir| dir.join("quill-lsp"));
    let program = beside.filter(|path| path.is_file()).unwrap_or("quill-lsp".into());
    // It returns only if it fails.
    let error = std::process::Command::new(&program).args(arguments).exec();
    eprintln!("error: cannot start `{}`: {error}", program.display());
    eprintln!(
        "help: `cargo build --release -p quill-lsp` builds it; it belongs beside `quill` or in the search path"
    );
    ExitCode::from(USAGE)
}

/// Writes to standard output; a reader that has gone away is no success.
pub fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(USAGE),
    }
}
