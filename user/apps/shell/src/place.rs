//! The working directory: `cd` and `pwd`.

use crate::files;
use crate::shell::{STATUS_USAGE, Shell};
use alloc::string::String;
use alloc::vec::Vec;
use rt::println;

/// Name of the variable that tells programs of it.
const VARIABLE: &str = "PWD";

/// The working directory: a path from the root, without a slash at its end but for the root itself.
pub struct Place(String);

impl Place {
    /// The root.
    pub fn root() -> Place {
        Place("/".into())
    }

    /// A path from the root, of one that may begin here. What `..` means is the file system's business.
    pub fn path_of(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.into()
        } else {
            alloc::format!("{}/{path}", self.0.trim_end_matches('/'))
        }
    }

    /// Another place, by the names of the path alone: behind a symbolic link, `..` leads to where the link is.
    fn beside(&self, path: &str) -> Place {
        let path = self.path_of(path);
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        Place(alloc::format!("/{}", names.join("/")))
    }
}

/// The command `cd`.
pub fn change(shell: &mut Shell, words: &[&str]) -> i32 {
    let path = match words {
        [] => "/",
        [path] => path,
        _ => {
            println!("usage: cd [PATH]");
            return STATUS_USAGE;
        }
    };
    let place = shell.place.beside(path);
    let status = files::check_directory("cd", path, &place.0);
    if status == 0 {
        shell.environment.set(VARIABLE, &place.0);
        shell.place = place;
    }
    status
}

/// The command `pwd`.
pub fn tell(shell: &mut Shell, words: &[&str]) -> i32 {
    if !words.is_empty() {
        println!("usage: pwd");
        return STATUS_USAGE;
    }
    println!("{}", shell.place.0);
    0
}
