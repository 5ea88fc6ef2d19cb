//! The command `set`: the environment of what the shell starts.

use crate::shell::{STATUS_USAGE, Shell};
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::pipe;
use rt::println;

/// Variables, in the order in which they were set.
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// The shell's own. A person's programs find besides that there is a terminal.
    pub fn inherit(is_interactive: bool) -> Environment {
        let mut environment = Environment(rt::environment::variables());
        // The shell's own pipes are for nobody else.
        environment.set(pipe::OUTPUT, "");
        environment.set(pipe::INPUT, "");
        if is_interactive && rt::environment::variable("TERM").is_none() {
            environment.set("TERM", "ansi");
        }
        environment
    }

    /// Text for a program that is started with these arguments.
    pub fn behind(&self, arguments: &str) -> String {
        let mut text = String::from(arguments);
        // Without any variable the text still says so, or it would get those with which the shell began.
        if self.0.is_empty() && !rt::environment::variables().is_empty() {
            text.push('\0');
        }
        for (name, value) in &self.0 {
            text.extend(["\0", name, "=", value]);
        }
        text
    }

    /// A variable has this value from now on; without one it is gone.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|pair| pair.0 != name);
        if !value.is_empty() {
            self.0.push((name.into(), value.into()));
        }
    }
}

/// The command `set`.
pub fn set(shell: &mut Shell, words: &[&str]) -> i32 {
    let mut pairs = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => pairs.push((name, value)),
            _ => {
                println!("usage: set [NAME=VALUE...]");
                return STATUS_USAGE;
            }
        }
    }
    for (name, value) in &pairs {
        shell.environment.set(name, value);
    }
    if pairs.is_empty() {
        shell.environment.0.iter().for_each(|(name, value)| println!("{name}={value}"));
    }
    0
}
