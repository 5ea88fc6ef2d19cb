//! What stands in a guide: its fenced blocks, what each of them is, and how they are compared with files and with what is printed.

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A file to create.
    Create(String),
    /// Changes of a file.
    Change(String),
    /// Commands for the host.
    Run,
    /// Commands for the host, of which the last one fails.
    Fails,
    /// Lines for the shell of the machine.
    Typed,
    /// Commands for the host, while the machine runs.
    Meanwhile,
    /// What comes out.
    Prints,
    /// Lines of a file.
    From(String),
    /// Not to be looked at.
    Sketch,
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The line of the guide in which it begins.
    pub line: usize,
    /// What it is, or why nobody knows.
    pub step: Result<Step, String>,
    /// What stands in it.
    pub text: String,
}

/// The fenced blocks of a guide.
pub fn read(guide: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in guide.lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(words), false) => {
                blocks.push(Block { line: number + 1, step: step(words), text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => {
                if let Some(block) = blocks.last_mut() {
                    block.text += line;
                    block.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    blocks
}

/// What the words behind a fence say: a language, and a mark.
fn step(words: &str) -> Result<Step, String> {
    let mark = words.split_whitespace().nth(1).ok_or("the block does not say what it is")?;
    let (kind, path) = mark.split_once('=').unwrap_or((mark, ""));
    match (kind, path) {
        ("run", "") => Ok(Step::Run),
        ("fails", "") => Ok(Step::Fails),
        ("typed", "") => Ok(Step::Typed),
        ("meanwhile", "") => Ok(Step::Meanwhile),
        ("prints", "") => Ok(Step::Prints),
        ("sketch", "") => Ok(Step::Sketch),
        ("file", _) if !path.is_empty() => Ok(Step::Create(path.into())),
        ("change", _) if !path.is_empty() => Ok(Step::Change(path.into())),
        ("from", _) if !path.is_empty() => Ok(Step::From(path.into())),
        _ => Err(format!("nobody knows what '{mark}' means")),
    }
}

/// A file with changes: `-` is what goes, `+` what comes, everything else stays and says where. `...` is between two places.
pub fn change(file: &str, changes: &str) -> Result<String, String> {
    let mut lines: Vec<&str> = file.lines().collect();
    for place in changes.split("\n...\n") {
        let marked =
            || place.lines().map(|line| (line.chars().next().unwrap_or(' '), line.get(1..).unwrap_or("")));
        let of = |left_out: char| -> Vec<&str> {
            marked().filter(|(mark, _)| *mark != left_out).map(|(_, line)| line).collect()
        };
        if let Some((mark, _)) = marked().find(|(mark, _)| !" +-".contains(*mark)) {
            return Err(format!("a change's line begins with '{mark}'"));
        }
        let (old, new) = (of('+'), of('-'));
        let mut found =
            (0..=lines.len().saturating_sub(old.len())).filter(|at| lines[*at..].starts_with(&old));
        match (found.next(), found.next()) {
            (Some(at), None) => drop(lines.splice(at..at + old.len(), new)),
            (None, _) => return Err(format!("these lines are not in the file:\n{}", old.join("\n"))),
            (Some(_), Some(_)) => {
                return Err(format!("these lines are in the file twice:\n{}", old.join("\n")));
            }
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Whether something printed has these lines, in this order.
pub fn prints(said: &str, expected: &str) -> Result<(), String> {
    let mut lines = said.lines();
    for wanted in expected.lines().filter(|line| !line.trim().is_empty()) {
        if !lines.any(|line| is_like(line.trim_end(), wanted.trim_end())) {
            return Err(format!("expected the line '{wanted}' in\n{said}"));
        }
    }
    Ok(())
}

/// Whether a line is what is wanted, in which `…` stands for anything.
fn is_like(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Whether a file has these lines in this order, whatever stands around them; `...` is what is left out.
pub fn is_excerpt(file: &str, shown: &str) -> Result<(), String> {
    let mut lines = file.lines().map(str::trim);
    for wanted in shown.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "...") {
        let is_there = |line: &str| match wanted.split_once(" ... ") {
            Some((begin, end)) => line.starts_with(begin) && (line.ends_with(end) || line.ends_with('{')),
            None => line == wanted,
        };
        if !lines.any(is_there) {
            return Err(format!("the file does not go on with '{wanted}'"));
        }
    }
    Ok(())
}

/// A trial of the harness itself: what the functions of this file take for equal, and what not.
pub fn check() -> Result<(), String> {
    let blocks =
        read("text\n```sh run\nls\n```\n```rust file=a/b.rs\nx\n\ny\n```\n```\n```\n```c odd\n```\n");
    let steps: Vec<_> = blocks.iter().map(|block| (block.line, block.step.clone().ok())).collect();
    let expected = [(2, Some(Step::Run)), (5, Some(Step::Create("a/b.rs".into()))), (10, None), (12, None)];
    let same = |what: &str, is: bool| if is { Ok(()) } else { Err(format!("{what} is wrong")) };
    same("the list of blocks", steps == expected && blocks[1].text == "x\n\ny\n")?;
    let file = "a\nb\nc\nb\nd\n";
    same("a change", change(file, " a\n-b\n+B\n c\n...\n d\n+e\n") == Ok("a\nB\nc\nb\nd\ne\n".into()))?;
    same("a change at no place", change(file, " a\n+x\n c\n").is_err())?;
    same("a change at two places", change(file, " b\n+x\n").is_err())?;
    same("output in order", prints("one\ntwo 22 x\nthree\n", "one\ntwo … x\n").is_ok())?;
    same("output out of order", prints("one\ntwo\n", "two\none\n").is_err())?;
    same("a longer line", prints("sum 21\n", "sum 2\n").is_err())?;
    same("an excerpt", is_excerpt("fn a() {\n    b();\n    c();\n}\n", "fn a() {\n...\nc();\n").is_ok())?;
    same("a line that is not there", is_excerpt("a\nb\n", "a\nc\n").is_err())
}
