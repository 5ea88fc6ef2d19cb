//! The boot options that are meant for `root`. The kernel has refused all that nobody knows.

use alloc::string::String;

/// The first program, unless `init=` names another.
const DEFAULT: &str = "shell";

/// Programs to start.
#[derive(Debug)]
pub struct Options {
    /// Program of `init=`.
    pub init: String,
    /// Its arguments: `args=` with commas for spaces, then `seed=` as it is.
    pub arguments: String,
    /// Variables of `env=` for everything that `root` starts by itself, with commas between them, as
    /// [`rt::environment`] has them.
    pub environment: String,
}

impl Options {
    /// Reads the boot command line.
    pub fn parse(line: &str) -> Options {
        let mut options =
            Options { init: String::from(DEFAULT), arguments: String::new(), environment: String::new() };
        let mut seed = None;
        for word in line.split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("init", name)) if !name.is_empty() => options.init = String::from(name),
                Some(("args", text)) => options.arguments = text.replace(',', " "),
                Some(("env", text)) => options.environment = text.replace(',', "\0"),
                Some(("seed", _)) => seed = Some(word),
                _ => {}
            }
        }
        if let Some(word) = seed {
            if !options.arguments.is_empty() {
                options.arguments.push(' ');
            }
            options.arguments.push_str(word);
        }
        options
    }
}
