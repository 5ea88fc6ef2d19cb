//! The guides, done word for word in a copy of the tree.
//!
//! A fenced block of `docs/guide` says behind its language what it is:
//!
//! | mark | what the reader does, and the test |
//! |---|---|
//! | `file=PATH` | creates a file, which was not there before |
//! | `change=PATH` | changes a file, as the block's lines with `-` and `+` say; those around them are found there once |
//! | `run` | runs commands in the checkout; none fails |
//! | `fails` | runs commands in the checkout, of which the last one fails |
//! | `typed` | types these lines at the shell of the machine that the last `./tern run` started |
//! | `meanwhile` | runs commands in the checkout before the machine ends, behind lines that were typed; again and again, until none fails |
//! | `prints` | sees these lines in this order, whole ones; `…` stands for anything |
//! | `from=PATH` | nothing: the block shows lines of a file, in this order; `...` stands for those left out |
//! | `sketch` | nothing: the block shows what something looks like, and is neither complete nor looked at |
//!
//! Port 8080 of the host stands for one that is free.
//!
//! A guide that has one mark has them all, and those of [`GUIDES`] have them. One that has something to do gets a copy of the tree with what is
//! built of it, so that only what the guide changes is built anew. Guides [without a machine](WITHOUT_MACHINE) are done by tests elsewhere.

use crate::copies::{copy_tree, in_copy};
use crate::world::{Reply, Scratch, Verdict, World};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use xtask::{Context, Error, Result, paths, peripherals};

mod blocks;

use blocks::{Block, Step, change, is_excerpt, prints, read};

/// Guides that are done.
const GUIDES: [&str; 8] =
    ["debugging", "drivers", "first-server", "getting-started", "idl-doors", "modules", "objects", "system"];

/// Guides that need neither a machine nor a copy of the tree; a test of the package that they are about does them: `idl/quill/tests/tutorial.rs`.
const WITHOUT_MACHINE: [&str; 1] = ["idl-tutorial"];

/// Port of the host in the guides.
const HOST_PORT: &str = "8080";

/// The trials of this module.
pub fn trials(world: &'static World) -> Result<Vec<Trial>> {
    let compared = |_: &World| Ok(blocks::check()?);
    let mut trials = vec![
        world.trial("guides", "guides::blocks_are_compared", compared),
        world.trial("guides", "guides::the_readme_is_done", the_readme_is_done),
    ];
    let folder = paths::root().join("docs/guide");
    for entry in fs::read_dir(&folder).context(|| format!("read {}", folder.display()))? {
        let path = entry.context(|| "read the guides".into())?.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let blocks = read(&fs::read_to_string(&path).context(|| format!("read {name}"))?);
        if WITHOUT_MACHINE.contains(&name.as_str()) {
            continue;
        }
        if GUIDES.contains(&name.as_str()) || blocks.iter().any(|block| block.step.is_ok()) {
            let title = format!("guides::{name}");
            trials.push(world.trial("guides", title, move |world| follow(world, &name, &blocks)));
        }
    }
    Ok(trials)
}

/// Title of the README's section that is done, by its guide.
const SECTION: &str = "A server on the network in ten minutes\n";

/// Blocks of the README's section on a server are blocks of its guide in the same order, so whoever does what the guide says has done them.
fn the_readme_is_done(_: &World) -> Verdict {
    let text = |path: &str| fs::read_to_string(paths::root().join(path)).context(|| format!("read {path}"));
    let (readme, guide) = (text("README.md")?, read(&text("docs/guide/network-server.md")?));
    let section = readme.split("\n## ").find(|section| section.starts_with(SECTION));
    let blocks = read(section.ok_or("the README has no section on a server")?);
    let mut left = guide.iter();
    for Block { line, step, text } in &blocks {
        if !left.any(|block| (&block.step, &block.text) == (step, text)) {
            return Err(format!("line {line} of the section: the block is not the guide's").into());
        }
    }
    if blocks.len() < 4 { Err("the section has fewer blocks than it should".into()) } else { Ok(()) }
}

/// Does what a guide says.
fn follow(world: &World, name: &str, blocks: &[Block]) -> Verdict {
    let mut reader = Reader {
        world,
        tree: None,
        said: String::new(),
        started: None,
        typed: String::new(),
        port: peripherals::free_port()?,
    };
    for (number, block) in blocks.iter().enumerate() {
        let next = blocks.get(number + 1).and_then(|next| next.step.as_ref().ok());
        let done = block.step.as_ref().map_err(|why| Failed::from(why.as_str()));
        done.and_then(|step| reader.perform(step, &block.text, next)).map_err(|why| {
            let why = why.message().unwrap_or("it failed");
            Failed::from(format!("docs/guide/{name}.md, line {}: {why}", block.line))
        })?;
    }
    Ok(())
}

/// Somebody who follows a guide.
struct Reader<'w> {
    world: &'w World,
    /// The copy of the tree, once it is needed.
    tree: Option<Scratch>,
    /// What the last command, or the last machine, printed.
    said: String,
    /// The command that starts the machine at whose shell the next lines are typed.
    started: Option<String>,
    /// Lines that are typed before something is done meanwhile.
    typed: String,
    /// A port of the host that nobody has.
    port: u16,
}

impl Reader<'_> {
    fn perform(&mut self, step: &Step, text: &str, next: Option<&Step>) -> Verdict {
        match step {
            Step::Create(path) => {
                let path = self.path(path)?;
                if path.exists() {
                    return Err("the file is there already".into());
                }
                fs::create_dir_all(path.parent().unwrap_or(&path))?;
                Ok(fs::write(path, text)?)
            }
            Step::Change(path) => {
                let path = self.path(path)?;
                let changed = change(&fs::read_to_string(&path)?, text)?;
                Ok(fs::write(path, changed)?)
            }
            Step::Run => self.run(text, next == Some(&Step::Typed)),
            Step::Fails => self.fails(text),
            Step::Typed if next == Some(&Step::Meanwhile) => {
                self.typed = text.into();
                Ok(())
            }
            Step::Typed => self.type_in(text),
            Step::Meanwhile => self.meanwhile(text),
            Step::Prints => Ok(prints(&self.said, text)?),
            Step::From(path) => Ok(is_excerpt(&fs::read_to_string(paths::root().join(path))?, text)?),
            Step::Sketch => Ok(()),
        }
    }

    /// Commands, of which the last one may wait for somebody who types.
    fn run(&mut self, commands: &str, is_typed: bool) -> Verdict {
        let mut commands = commands.trim_end();
        self.started = None;
        if is_typed || commands.ends_with("./tern run") {
            let (before, last) = commands.rsplit_once('\n').unwrap_or(("", commands));
            self.started = Some(last.into());
            commands = before;
        }
        if !commands.trim().is_empty() {
            self.shell(commands, "")?;
        }
        if is_typed || self.started.is_none() { Ok(()) } else { self.type_in("") }
    }

    /// Lines at the shell of a machine, which then ends.
    fn type_in(&mut self, lines: &str) -> Verdict {
        let command = self.started.clone().ok_or("there is no machine whose shell could be typed at")?;
        self.shell(&command, &format!("{lines}exit 0\n"))
    }

    /// Lines at the shell of a machine, then commands of the host until all are done, or for some minutes; then the machine ends. What
    /// it has printed stands before what they have.
    fn meanwhile(&mut self, commands: &str) -> Verdict {
        let started = self.started.clone().ok_or("there is no machine that runs meanwhile")?;
        let tree = self.tree()?.to_path_buf();
        let commands = commands.replace(HOST_PORT, &self.port.to_string());
        let files = [("typed", self.typed.as_str()), ("meanwhile", &commands)];
        for (name, text) in files {
            fs::write(tree.join("target").join(name), text)?;
        }
        // Of a server that is killed a client may hear nothing at all.
        let host = "tries=0; until timeout 5 sh -e target/meanwhile > target/said 2>&1 || [ $tries -ge 2000 ]; \
            do tries=$((tries+1)); sleep 0.2; done";
        self.shell(
            &format!(
                "{{ cat target/typed; {host}; echo exit 0; }} | {}\ncat target/said",
                started.trim_end()
            ),
            "",
        )
    }

    /// Commands of which the last one fails.
    fn fails(&mut self, commands: &str) -> Verdict {
        match self.host(commands, "")?.code {
            0 => Err(format!("'{commands}' did not fail").into()),
            _ => Ok(()),
        }
    }

    /// Has a shell of the host do something in the copy.
    fn shell(&mut self, commands: &str, input: &str) -> Verdict {
        let reply = self.host(commands, input)?;
        match reply.code {
            0 if reply.err.contains("warning: ") => Err(reply.failed("a compiler has something to say")),
            0 => Ok(()),
            _ => Err(reply.failed(&format!("'{commands}' failed"))),
        }
    }

    /// Commands of the host in the copy, which may fail.
    fn host(&mut self, commands: &str, input: &str) -> Result<Reply> {
        let tree = self.tree()?.to_path_buf();
        let reply = in_copy(&tree, &commands.replace(HOST_PORT, &self.port.to_string()), input)?;
        self.said = format!("{}{}", reply.out, reply.err).replace('\r', "");
        Ok(reply)
    }

    fn path(&mut self, path: &str) -> Result<PathBuf> {
        Ok(self.tree()?.join(path))
    }

    fn tree(&mut self) -> Result<&Path> {
        if self.tree.is_none() {
            self.tree = Some(copy_tree(self.world)?);
        }
        self.tree.as_ref().map(|tree| tree.0.as_path()).ok_or_else(|| Error::new("there is no tree"))
    }
}
