//! The guide `docs/guide/idl-tutorial.md` is done word for word, as the guides that boot machines are (`tests/harness/src/guides.rs`), but on the host alone: a shell is given block
//! after block in an empty directory, in which `tern` leads to this tree.
//!
//! Three things are other than a reader has them, so that nothing is compiled that is there already, and none of it is downloaded:
//!
//! - `cargo install` is done, with `--debug` and the directory in which this test was built. There cargo finds all that it would compile, and puts that `quill` into a directory of the
//!   test, by which the rest is done. So the command, its options and its package are looked at; that quill can be built for release, others look at.
//! - `tern/idl/quill-build` in a manifest becomes that directory's whole path, beside the tree's own `Cargo.lock`, and the result has the place of the example of `quill-build`. So quill is
//!   compiled once for this test and for that of the example, and for all that come after.
//! - Nobody waits between two commands, so what is printed may come a little later.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "the harness does more with blocks")]
#[path = "../../../tests/harness/src/guides/blocks.rs"]
mod blocks;

use blocks::{Step, change, prints, read};

/// Longest that a block takes, also where somebody else compiles.
const BLOCK: Duration = Duration::from_secs(900);

/// Longest that something is printed behind the command that began it.
const LATE: Duration = Duration::from_secs(30);

/// Words before the first block. A reader has a `cargo install` that compiles.
const BEFORE: &str = r#"
cargo() {
    case $1 in
        install) shift; command cargo install --debug --target-dir "$BUILT" "$@" ;;
        *) command cargo "$@" ;;
    esac
}
"#;

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Somebody who follows the guide, at a shell.
struct Reader {
    dir: PathBuf,
    shell: Child,
    input: ChildStdin,
    /// Exit codes of blocks.
    codes: Receiver<String>,
    /// Bytes that had been printed before the last block of commands.
    before: usize,
}

impl Reader {
    fn new() -> Reader {
        let dir = std::env::temp_dir().join(format!("quill-tutorial-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(tree(), dir.join("tern")).unwrap();
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("/bin/bash");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(&dir).process_group(0);
        command.env("BUILT", target.parent().unwrap()).env("CARGO_INSTALL_ROOT", dir.join("installed"));
        command.env("PATH", format!("{}:{path}", dir.join("installed/bin").display()));
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_BUILD_JOBS", "1");
        command.env("CARGO_TARGET_DIR", target.join("quill-build-example/target"));
        // Whatever the tree's own build has set is none of its business.
        for name in ["CARGO_BUILD_TARGET", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CC", "RUSTC"] {
            command.env_remove(name);
        }
        let mut shell = command.spawn().unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let (sender, codes) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let mut reader = Reader { dir, shell, input, codes, before: 0 };
        assert_eq!(reader.commands(BEFORE), "0");
        reader
    }

    /// Has the shell do a block; gives back its exit code, which is empty if the shell has ended.
    fn commands(&mut self, text: &str) -> String {
        let block = self.dir.join("block");
        std::fs::write(&block, text).unwrap();
        self.before = self.all().len();
        let line = "{ . \"$DIR/block\"; } >> \"$DIR/said\" 2>&1 < /dev/null; echo $?\n";
        let line = line.replace("$DIR", &self.dir.display().to_string());
        self.input.write_all(line.as_bytes()).unwrap();
        self.codes.recv_timeout(BLOCK).unwrap_or_default()
    }

    fn all(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("said")).unwrap_or_default()).into_owned()
    }

    /// Text that was printed since the last block of commands began.
    fn said(&self) -> String {
        self.all().split_off(self.before)
    }

    fn perform(&mut self, step: &Step, text: &str) -> Result<(), String> {
        match step {
            Step::Create(path) => self.create(path, text),
            Step::Change(path) => {
                let path = self.dir.join(path);
                let changed = change(&std::fs::read_to_string(&path).unwrap(), text)?;
                std::fs::write(path, changed).map_err(|e| e.to_string())
            }
            Step::Run => match self.commands(&format!("set -e\n{text}\nset +e\n")).as_str() {
                "0" if self.said().contains("warning: ") => Err(format!("warned:\n{}", self.said())),
                "0" => Ok(()),
                _ => Err(format!("failed:\n{}", self.said())),
            },
            Step::Fails => {
                let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text));
                match self.commands(&format!("set -e\n{before}\nset +e\n{last}\n")).as_str() {
                    "" | "0" => Err(format!("did not fail, or not in the end:\n{}", self.said())),
                    _ => Ok(()),
                }
            }
            Step::Prints => {
                let end = Instant::now() + LATE;
                loop {
                    let result = prints(&self.said(), text);
                    if result.is_ok() || Instant::now() > end {
                        return result;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            other => Err(format!("nobody does {other:?} without a machine")),
        }
    }

    fn create(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.dir.join(path);
        if path.exists() {
            return Err("the file is there already".into());
        }
        let parent = path.parent().unwrap();
        std::fs::create_dir_all(parent).unwrap();
        let mut text = text.to_owned();
        if path.ends_with("Cargo.toml") {
            let there = "\"../../tern/";
            assert!(text.contains(there), "the manifest names this tree");
            text = text.replace(there, &format!("\"{}/", tree().display()));
            // The versions that this tree has, which are there without a network.
            std::fs::copy(tree().join("Cargo.lock"), parent.join("Cargo.lock")).unwrap();
        }
        std::fs::write(path, text).map_err(|e| e.to_string())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // All processes of the shell, which are a group.
        let kill = format!("kill -KILL -- -{}", self.shell.id());
        let _ = Command::new("/bin/bash").args(["-c", &kill]).stderr(Stdio::null()).status();
        let _ = self.shell.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn the_tutorial_is_done_word_for_word() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("there is no gcc here");
        return;
    }
    let guide = std::fs::read_to_string(tree().join("docs/guide/idl-tutorial.md")).unwrap();
    let blocks = read(&guide);
    assert!(blocks.len() > 20, "{} blocks", blocks.len());
    let mut reader = Reader::new();
    for block in &blocks {
        let begin = Instant::now();
        let done = block.step.clone().and_then(|step| reader.perform(&step, &block.text));
        println!("line {}: {:.1} s", block.line, begin.elapsed().as_secs_f32());
        done.unwrap_or_else(|why| panic!("docs/guide/idl-tutorial.md, line {}: {why}", block.line));
    }
    assert!(!reader.dir.join("jobs").exists(), "nothing is left behind");
}
