//! Code for kernel parts: the emitter that each of them has, by language.
//!
//! It stands above [`kernel`](crate::kernel), which says what messages can hold, and above [`emit`](crate::emit), which asks the layout where values lie. Neither
//! of them knows of it. A part that is missing here has layouts and costs all the same.

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::emit::{c, rust};
use crate::kernel::KernelPart;
use crate::model::Model;
use crate::source::Span;

/// Code in Rust, if there is any.
pub fn rust(kernel: &dyn KernelPart) -> Option<&'static dyn rust::Part> {
    match kernel.name() {
        "linux" => Some(&rust::linux::Linux),
        "tern-ipc" => Some(&rust::tern::Tern(&rust::tern::ipc::Ipc)),
        // Programs are the same over both, and so is what is written of a layout.
        "tern-door" | "tern-door-plain" => Some(&rust::tern::Tern(&rust::tern::door::Door)),
        _ => None,
    }
}

/// Code in C, if there is any.
pub fn c(kernel: &dyn KernelPart) -> Option<&'static dyn c::Part> {
    match kernel.name() {
        "linux" => Some(&c::linux::Linux),
        "tern-ipc" => Some(&c::tern_ipc::Tern(&c::tern_ipc::ipc::Ipc)),
        "tern-door" => Some(&c::tern_ipc::Tern(&c::tern_ipc::door::Door)),
        "l4-v4" => Some(&c::l4_v4::L4V4),
        _ => None,
    }
}

/// The Rust text for a model; what Rust cannot hold is the error.
pub fn emit_rust(
    model: &Model,
    kernel: &dyn KernelPart,
    purpose: rust::Purpose,
) -> Result<String, Vec<Diagnostic>> {
    let part = rust(kernel).ok_or_else(|| missing(kernel, "Rust"))?;
    rust::emit(model, kernel, part, purpose)
}

/// The C text for a model; what C cannot hold is the error.
pub fn emit_c(model: &Model, kernel: &dyn KernelPart) -> Result<String, Vec<Diagnostic>> {
    let part = c(kernel).ok_or_else(|| missing(kernel, "C"))?;
    c::emit(model, kernel, part)
}

fn missing(kernel: &dyn KernelPart, language: &str) -> Vec<Diagnostic> {
    let message = format!("the kernel part `{}` has no {language}", kernel.name());
    vec![Diagnostic::error(Code::Unsupported, Span::default(), message)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ALL;

    /// Each kernel part has code in some language, and the languages are those that the guide tells.
    #[test]
    fn kernel_parts_have_code() {
        let languages = ALL.map(|kernel| (kernel.name(), rust(kernel).is_some(), c(kernel).is_some()));
        let expected = [
            ("linux", true, true),
            ("tern-ipc", true, true),
            ("tern-door", true, true),
            ("tern-door-plain", true, false),
            ("l4-v4", false, true),
        ];
        assert_eq!(languages, expected);
    }
}
