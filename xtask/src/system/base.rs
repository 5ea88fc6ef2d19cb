//! Descriptions that begin with others: reads a description with all its bases, and makes one of them.
//!
//! An entry of a description changes that of its base which has the same name, key by key, where it stands; entries of other names come behind.

use super::Mistake;
use super::file::{Entry, File, Task, line_of, parse};
use std::ops::Range;
use toml::Spanned;

/// Source and text of the description of a name.
pub type Fetch<'a> = dyn Fn(&str) -> Result<(String, String), String> + 'a;

/// Texts of a description and its bases. Lines are counted through all of them, from those of the description itself on.
#[derive(Debug, Default)]
pub struct Sources {
    /// All texts, one behind the other.
    pub text: String,
    /// Name and first line of each.
    parts: Vec<(String, u32)>,
    /// Line in which the description names its base.
    base_line: u32,
}

impl Sources {
    /// Name of the description, as messages have it.
    pub fn name(&self) -> &str {
        self.parts.first().map_or("", |(source, _)| source)
    }

    /// Adds a text. Says where it begins.
    fn add(&mut self, source: &str, text: &str) -> usize {
        let at = self.text.len();
        self.parts.push((source.into(), line_of(&self.text, at..at)));
        self.text.push_str(text);
        self.text.push('\n');
        at
    }

    /// The source that a line is one of, and the number that it has there.
    pub fn place(&self, line: u32) -> (&str, u32) {
        let part = self.parts.iter().rev().find(|(_, first)| *first <= line);
        part.map_or((self.name(), line), |(source, first)| (source, line - first + 1))
    }

    /// A line as it is told to who is at another one.
    pub fn told(&self, line: u32, from: u32) -> String {
        let (source, number) = self.place(line);
        if source == self.place(from).0 {
            format!("line {number}")
        } else {
            format!("{source}, line {number}")
        }
    }

    /// The line of the description itself that leads to a line: that one, or where it names its base.
    pub fn own_line(&self, line: u32) -> u32 {
        if self.place(line).0 == self.name() { line } else { self.base_line }
    }
}

/// Reads a description that is called `source`, and its bases.
pub fn read(source: &str, text: &str, fetch: &Fetch) -> (Sources, Result<File, Mistake>) {
    let mut sources = Sources::default();
    let file = read_all(&mut sources, source, text, fetch);
    (sources, file)
}

fn read_all(sources: &mut Sources, source: &str, text: &str, fetch: &Fetch) -> Result<File, Mistake> {
    let mut file = read_one(sources, source, text)?;
    let mut changes = Vec::new();
    while let Some(base) = file.base.take() {
        let line = line_of(&sources.text, base.span());
        if changes.is_empty() {
            sources.base_line = line;
        }
        let wrong = |reason| Mistake { line, reason };
        let (source, text) = fetch(base.get_ref()).map_err(|why| wrong(format!("base: {why}")))?;
        if sources.parts.iter().any(|(known, _)| *known == source) {
            let way = sources.parts.iter().map(|(source, _)| source.as_str()).chain([source.as_str()]);
            let way: Vec<&str> = way.collect();
            return Err(wrong(format!("descriptions that begin with each other: {}", way.join(", "))));
        }
        changes.push(file);
        file = read_one(sources, &source, &text)?;
    }
    if let Some(name) = file.without.first() {
        let line = line_of(&sources.text, name.span());
        return Err(Mistake { line, reason: "without is for descriptions that have a base".into() });
    }
    changes.into_iter().rev().try_fold(file, |base, change| over(sources, change, base))
}

/// Reads one text. The spans of its entries are those of all texts.
fn read_one(sources: &mut Sources, source: &str, text: &str) -> Result<File, Mistake> {
    let at = sources.add(source, text);
    let before = line_of(&sources.text, at..at) - 1;
    let file = parse(text).map_err(|it| Mistake { line: it.line + before, ..it })?;
    fn moved<T>(all: Vec<Spanned<T>>, by: usize) -> Vec<Spanned<T>> {
        all.into_iter().map(|one| shifted(one, by)).collect()
    }
    Ok(File {
        base: file.base.map(|base| shifted(base, at)),
        without: moved(file.without, at),
        usual: file.usual.map(|usual| shifted(usual, at)),
        program: moved(file.program, at),
        module: moved(file.module, at),
        task: moved(file.task, at),
    })
}

fn shifted<T>(part: Spanned<T>, by: usize) -> Spanned<T> {
    let Range { start, end } = part.span();
    Spanned::new(start + by..end + by, part.into_inner())
}

/// A description over its base.
fn over(sources: &Sources, file: File, base: File) -> Result<File, Mistake> {
    for name in &file.without {
        let is_name = |entry: &str| entry == name.get_ref();
        let has = base.program.iter().chain(&base.module).any(|entry| is_name(&entry.get_ref().name))
            || base.task.iter().any(|task| is_name(&task.get_ref().name));
        if !has {
            let reason = format!("without {:?}, of which the base has no entry", name.get_ref());
            return Err(Mistake { line: line_of(&sources.text, name.span()), reason });
        }
    }
    let is_left_out = |name: &str| file.without.iter().any(|out| out.get_ref() == name);
    Ok(File {
        base: None,
        without: Vec::new(),
        usual: file.usual.or(base.usual),
        program: merged(file.program, base.program, is_left_out),
        module: merged(file.module, base.module, is_left_out),
        task: merged(file.task, base.task, is_left_out),
    })
}

/// Entry that can stand over another one.
trait Change {
    fn name(&self) -> &str;

    /// This one, with all that it does not say as the other one says it.
    fn over(self, base: &Self) -> Self;
}

/// Entries over those of a base.
fn merged<T: Change>(
    changes: Vec<Spanned<T>>,
    base: Vec<Spanned<T>>,
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<Spanned<T>> {
    let mut all: Vec<_> = base.into_iter().filter(|entry| !is_left_out(entry.get_ref().name())).collect();
    // A second entry that changes the same one is an entry of its own, which is found to be one too many.
    let mut is_changed = vec![false; all.len()];
    for change in changes {
        let is_its = |at: &usize| !is_changed[*at] && all[*at].get_ref().name() == change.get_ref().name();
        match (0..is_changed.len()).find(is_its) {
            Some(at) => {
                is_changed[at] = true;
                all[at] = Spanned::new(change.span(), change.into_inner().over(all[at].get_ref()));
            }
            None => all.push(change),
        }
    }
    all
}

impl Change for Entry {
    fn name(&self) -> &str {
        &self.name
    }

    fn over(self, base: &Entry) -> Entry {
        let base = base.clone();
        Entry {
            name: self.name,
            file: self.file.or(base.file),
            arguments: self.arguments.or(base.arguments),
            serves: self.serves.or(base.serves),
            clients: self.clients.or(base.clients),
            otherwise: self.otherwise.or(base.otherwise),
            instead: self.instead.or(base.instead),
            priority: self.priority.or(base.priority),
            priority_max: self.priority_max.or(base.priority_max),
            kernel_share: self.kernel_share.or(base.kernel_share),
            memory: self.memory.or(base.memory),
            restarts: self.restarts.or(base.restarts),
            uses: self.uses.or(base.uses),
            colours: self.colours.or(base.colours),
            contiguous: self.contiguous.or(base.contiguous),
            ports: self.ports.or(base.ports),
            interrupts: self.interrupts.or(base.interrupts),
            devices: self.devices.or(base.devices),
            bus: self.bus.or(base.bus),
            archive: self.archive.or(base.archive),
            operator: self.operator.or(base.operator),
            mount: self.mount.or(base.mount),
            sandbox: self.sandbox.or(base.sandbox),
        }
    }
}

impl Change for Task {
    fn name(&self) -> &str {
        &self.name
    }

    /// All that a task has is its modules.
    fn over(self, _: &Task) -> Task {
        self
    }
}
