//! Instructions of stubs over the length of their lists, for each operation that has any. All figures are those of `quill cost`
//! ([`instructions`]); [`picture`] draws them.

use super::{Formula, InterfaceLayout, Leaf, Message, Method, Sides, instructions};
use crate::diag;
use crate::kernel::KernelPart;
use crate::model::{Model, Type};

mod picture;

/// Greatest length of a picture, where the lists' bounds allow it.
pub const LENGTH_MAX: u64 = 4096;

/// Bytes from which on predictions hold for a list.
const BYTES_MIN: u64 = 8;

/// Multiples of so many bytes are those that each loop meets with whole rounds, so formulas are straight between them.
const STRAIGHT_BYTES: u64 = 64;

/// Layouts of a file's interfaces over a kernel part.
pub struct Part<'a> {
    /// The kernel part.
    pub kernel: &'a dyn KernelPart,
    /// The layouts over it.
    pub layouts: Vec<InterfaceLayout>,
}

/// An operation, and its stubs' instructions over the length of its lists.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Name of the interface and of the operation, with `::` between them.
    pub operation: String,
    /// Lists that travel with it, in either direction.
    pub lists: Vec<List>,
    /// Its stubs, those with the same figures over several kernel parts once.
    pub lines: Vec<Line>,
}

/// A list or text of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The parameter, and the fields below it, with dots between them.
    pub path: String,
    /// Bytes of an element, or of a character in ASCII.
    pub element: u64,
    /// Most elements or characters.
    pub bound: Option<u64>,
    /// Whether it is a text.
    pub is_text: bool,
}

/// A stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Number of the side and language: clients in C, servers in C, clients in Rust, servers in Rust.
    pub side: usize,
    /// Names of the kernel parts over which it has these figures.
    pub kernels: Vec<&'static str>,
    /// Its instructions.
    pub formula: Formula,
}

/// Names of [`Line::side`].
pub const SIDES: [&str; 4] = ["client in C", "server in C", "client in Rust", "server in Rust"];

/// Reason for which there is no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No operation of the file can be drawn.
    File(String),
    /// The operation that was asked for cannot be drawn, or does not exist.
    Operation(String),
}

/// A picture, and what is to be said of operations that are not in it.
pub struct Picture {
    /// The SVG.
    pub svg: String,
    /// A line for each operation that has lists and is left out.
    pub left_out: Vec<String>,
}

/// Draws the operations that have lists, or the one of that name: `NAME`, or with the names around it before.
pub fn plot(model: &Model, parts: &[Part], wanted: Option<&str>) -> Result<Picture, Missing> {
    let (mut plots, mut left_out, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (number, layout) in parts.first().map_or(&[][..], |part| &part.layouts).iter().enumerate() {
        let interface = &model.interfaces[layout.interface.0 as usize].name;
        for (method_number, method) in layout.methods.iter().enumerate() {
            let name = format!("{interface}::{}", method.name);
            let is_wanted = wanted.is_none_or(|wanted| is_called(&name, wanted));
            if is_wanted && has_lists(method) {
                match Plot::new(model, parts, name.clone(), [number, method_number]) {
                    Ok(plot) => plots.push(plot),
                    Err(why) => left_out.push(format!("`{name}` is not predicted: {why}")),
                }
            }
            names.push((name, is_wanted));
        }
    }
    if plots.is_empty() {
        return Err(missing(wanted, &names, &left_out));
    }
    Ok(Picture { svg: picture::svg(&plots), left_out })
}

/// Whether a name is the whole of another one, or its end behind `::`.
fn is_called(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

/// Says why nothing is drawn.
fn missing(wanted: Option<&str>, names: &[(String, bool)], left_out: &[String]) -> Missing {
    let Some(wanted) = wanted else {
        return Missing::File(match left_out {
            [] => "no operation has a list or a text whose length could be drawn".into(),
            reasons => format!("no operation with a list or a text can be drawn\n{}", reasons.join("\n")),
        });
    };
    if !left_out.is_empty() {
        return Missing::Operation(left_out.join("\n"));
    }
    if names.iter().any(|(_, is_wanted)| *is_wanted) {
        return Missing::Operation(format!("`{wanted}` has no list or text whose length could be drawn"));
    }
    let short = |name: &'_ String| name.rsplit("::").next().map(String::from);
    let all: Vec<String> =
        names.iter().flat_map(|(name, _)| [Some(name.clone()), short(name)]).flatten().collect();
    let near = diag::nearest(wanted, all.iter().map(String::as_str));
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Missing::Operation(format!("there is no operation `{wanted}`{hint}"))
}

/// Whether something of variable length travels with a method when all is well.
fn has_lists(method: &Method) -> bool {
    let in_registers =
        |message: &Message| message.slots.iter().any(|slot| matches!(slot.leaf, Leaf::Elements(..)));
    [&method.request, &method.reply].iter().any(|message| !message.chunks.is_empty() || in_registers(message))
}

impl Plot {
    /// Fails with the first kernel part's reason if no part has a prediction.
    fn new(
        model: &Model,
        parts: &[Part],
        operation: String,
        [layout, method]: [usize; 2],
    ) -> Result<Plot, String> {
        let mut plot = Plot { operation, lists: Vec::new(), lines: Vec::new() };
        let mut reason = None;
        for Part { kernel, layouts } in parts {
            let method = &layouts[layout].methods[method];
            match instructions(model, method, *kernel) {
                Ok(predicted) => {
                    [&method.request, &method.reply]
                        .iter()
                        .for_each(|message| plot.add_lists(model, message));
                    let sides = [Some(predicted.c), predicted.rust].into_iter().enumerate();
                    for (language, Sides { client, server }) in sides.filter_map(|(i, of)| Some((i, of?))) {
                        plot.add_line(2 * language, kernel.name(), client);
                        plot.add_line(2 * language + 1, kernel.name(), server);
                    }
                }
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        plot.lines.sort_by_key(|line| line.side);
        if plot.lines.is_empty() { Err(reason.unwrap_or_default()) } else { Ok(plot) }
    }

    fn add_lists(&mut self, model: &Model, message: &Message) {
        for chunk in &message.chunks {
            let bound = match *model.ty(model.resolved(chunk.ty)) {
                Type::Str { bound, .. } => (bound, true),
                _ => (chunk.bound, false),
            };
            let element = chunk.element.map_or(1, |element| element.size);
            let list = List { path: chunk.path.join("."), element, bound: bound.0, is_text: bound.1 };
            if !self.lists.iter().any(|known| known.path == list.path) {
                self.lists.push(list);
            }
        }
    }

    fn add_line(&mut self, side: usize, kernel: &'static str, formula: Formula) {
        match self.lines.iter_mut().find(|line| line.side == side && line.formula == formula) {
            Some(line) => line.kernels.push(kernel),
            None => self.lines.push(Line { side, kernels: vec![kernel], formula }),
        }
    }

    /// Least length at which each list has as many bytes as a prediction wants.
    pub fn first(&self) -> u64 {
        self.lists.iter().map(|list| BYTES_MIN.div_ceil(list.element.max(1))).max().unwrap_or(0)
    }

    /// Greatest length: that of the list which may be longest, and not more than [`LENGTH_MAX`].
    pub fn last(&self) -> u64 {
        let most = self.lists.iter().map(|list| list.bound.unwrap_or(LENGTH_MAX)).max();
        most.unwrap_or(0).clamp(self.first(), LENGTH_MAX)
    }

    /// Instructions of a stub when each list has that length, or its greatest one if that is less.
    pub fn at(&self, line: &Line, length: u64) -> u32 {
        let bytes = |list: &List| length.min(list.bound.unwrap_or(length)).saturating_mul(list.element);
        line.formula.at(|path| self.lists.iter().find(|list| list.path == path).map_or(0, bytes))
    }

    /// Corners of a stub's line: lengths, and the instructions there.
    pub fn corners(&self, line: &Line) -> Vec<(u64, u32)> {
        let mut corners: Vec<(u64, u32)> = Vec::new();
        for next in self.lengths().into_iter().map(|length| (length, self.at(line, length))) {
            if let [.., before, last] = corners[..]
                && rises_alike(before, last, next)
            {
                corners.pop();
            }
            corners.push(next);
        }
        corners
    }

    /// Lengths between which lines are drawn straight, from the first to the last. In a short picture they are near enough to each other to show what comes of words beside
    /// whole rounds.
    fn lengths(&self) -> Vec<u64> {
        let step = if self.last() <= 8 * STRAIGHT_BYTES { BYTES_MIN } else { STRAIGHT_BYTES };
        let mut all: Vec<u64> = (0..=self.last()).step_by(step as usize).collect();
        all.extend(self.lists.iter().filter_map(|list| list.bound));
        all.extend([self.first(), self.last()]);
        all.retain(|length| (self.first()..=self.last()).contains(length));
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Whether three points lie on one line. Lengths are small, and so are products of them.
fn rises_alike(one: (u64, u32), two: (u64, u32), three: (u64, u32)) -> bool {
    let rise = |from: (u64, u32), to: (u64, u32)| i128::from(to.1) - i128::from(from.1);
    rise(one, two) * i128::from(three.0 - two.0) == rise(two, three) * i128::from(two.0 - one.0)
}
