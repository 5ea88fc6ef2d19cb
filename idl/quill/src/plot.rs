//! `quill cost --plot FILE.svg FILE`: a picture of how many instructions stubs take over the length of lists and texts.

use std::path::Path;
use std::process::ExitCode;

use quill::driver::Compiled;
use quill::kernel::KernelPart;
use quill::layout::{self, Missing, Part};
use quill::output;

use crate::{INPUT, USAGE};

/// Draws the operations of an accepted file, or one of them, over kernel parts; says of which nothing is drawn, and why.
pub fn run(
    compiled: &mut Compiled,
    kernels: &[&dyn KernelPart],
    operation: Option<&str>,
    path: &Path,
) -> ExitCode {
    let mut parts = Vec::new();
    for &kernel in kernels {
        if compiled.accepted() {
            parts.push(Part { kernel, layouts: compiled.layout(kernel) });
        }
    }
    eprint!("{}", compiled.messages());
    if !compiled.accepted() {
        return ExitCode::from(INPUT);
    }
    let picture = match layout::plot(&compiled.model, &parts, operation) {
        Ok(picture) => picture,
        Err(Missing::File(why)) => {
            eprintln!("error: {why}");
            return ExitCode::from(INPUT);
        }
        Err(Missing::Operation(why)) => {
            eprintln!("error: {why}");
            return ExitCode::from(USAGE);
        }
    };
    for line in &picture.left_out {
        eprintln!("note: {line}");
    }
    if let Err(error) = output::write_whole(path, &picture.svg) {
        eprintln!("error: cannot write `{}`: {}", path.display(), output::why(path, &error));
        return ExitCode::from(USAGE);
    }
    ExitCode::SUCCESS
}
