//! Files that the shell itself writes: those of `>` behind its own commands. Commands on files are programs: `user/apps/tools`.

use crate::shell::Shell;
use files::wire::BYTES_MAX;
use files::{Directory, File};
use rt::api::Result;
use rt::println;
use vfs::How;

/// Status of a command, of which is said why it failed, and with which path.
fn told(command: &str, path: &str, outcome: Result<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            println!("{command}: {path}: {failure}");
            1
        }
    }
}

/// Writes a command's output to a file: in the place of what it has, or behind that.
pub fn write(shell: &Shell, command: &str, typed: &str, text: &[u8], is_more: bool) -> i32 {
    let path = shell.place.path_of(typed);
    let outcome = Directory::root().and_then(|root| {
        let file: File = root.open(path, How { create: true, truncate: !is_more, ..How::default() })?;
        text.chunks(BYTES_MAX).try_for_each(|piece| file.append(piece).map(drop))?;
        file.sync()
    });
    told(command, typed, outcome)
}

/// Whether there is a directory at a path, for a command that got it as it was typed.
pub fn check_directory(command: &str, typed: &str, path: &str) -> i32 {
    told(command, typed, Directory::root().and_then(|root| root.enter(path)).map(drop))
}
