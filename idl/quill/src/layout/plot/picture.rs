//! Plots as SVG: a panel for each operation, one below the other. A viewer that prefers dark pages shows light lines on a dark ground. Bytes are the same on every
//! host: no date, no name of a file.

use std::fmt::Write;

use super::{Line, Plot, SIDES};

/// Width of the picture, and height of a panel's plot, in pixels.
const WIDTH: f64 = 900.0;
const PLOT_HEIGHT: f64 = 280.0;

/// Left and right end of a plot; where the legend begins.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 560.0;
const LEGEND: f64 = 580.0;

/// Room above a plot for its title, and below it for its axis.
const ABOVE: f64 = 62.0;
const BELOW: f64 = 58.0;

/// Room for the picture's title, and for the lines at its end.
const HEAD: f64 = 44.0;
const FOOT: f64 = 52.0;

/// Height of an entry of the legend, of two lines.
const ENTRY: f64 = 42.0;

/// Characters of a formula that have room in the legend.
const FORMULA_MAX: usize = 44;

/// Most steps of an axis.
const STEPS_MAX: u64 = 6;

/// Dashes of lines: of the first kernel part or of all, of the second, of the third.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 4\""];

/// Colours on light and on dark ground.
const STYLE: &str = "<style>\n\
    text { font-family: sans-serif; font-size: 13px; fill: #1f2328 }\n\
    .ground { fill: #ffffff } .grid { stroke: #d0d7de } .axis { stroke: #1f2328 } .small { font-size: 12px }\n\
    .title { font-size: 16px; font-weight: bold } .name { font-weight: bold }\n\
    polyline { fill: none; stroke-width: 2 }\n\
    .s0 { stroke: #0060b0 } .s1 { stroke: #00704a } .s2 { stroke: #9a5b00 } .s3 { stroke: #b30000 }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #e6edf3 } .ground { fill: #0d1117 } .grid { stroke: #30363d } .axis { stroke: #e6edf3 }\n\
    .s0 { stroke: #6cb4ff } .s1 { stroke: #4fd1a5 } .s2 { stroke: #ffb454 } .s3 { stroke: #ff7b72 }\n\
    }\n</style>\n";

/// Panels of the plots, below a title.
pub(super) fn svg(plots: &[Plot]) -> String {
    let panel = |plot: &Plot| ABOVE + BELOW + PLOT_HEIGHT.max(ENTRY * plot.lines.len() as f64);
    let height = HEAD + FOOT + plots.iter().map(panel).sum::<f64>();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
         {STYLE}<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    text(
        &mut out,
        "title",
        (LEFT, 30.0),
        "start",
        "Instructions of stubs over the length n of lists and texts",
    );
    let mut top = HEAD;
    for plot in plots {
        let _ = writeln!(out, "<g id=\"{}\">", escaped(&plot.operation));
        Panel::new(plot, top + ABOVE).draw(&mut out);
        out += "</g>\n";
        top += panel(plot);
    }
    let notes = [
        "Predicted as by `quill cost`, for the way to success, with texts in ASCII. A list with a lower bound than n has that length.",
        "Lines begin at eight bytes: shorter lists have code of their own, which nobody has counted. Corners are at multiples of 64, or of 8 up to 512.",
    ];
    for (number, note) in notes.iter().enumerate() {
        text(&mut out, "small", (LEFT, top + 18.0 + 18.0 * number as f64), "start", note);
    }
    out + "</svg>\n"
}

/// A plot with its scales.
struct Panel<'a> {
    plot: &'a Plot,
    /// Upper end of the plot.
    top: f64,
    /// Instructions between two lines of the grid, and at the upper end.
    step: u64,
    most: u64,
}

impl Panel<'_> {
    fn new(plot: &Plot, top: f64) -> Panel<'_> {
        let ends = plot.lines.iter().flat_map(|line| plot.corners(line));
        let most = ends.map(|(_, instructions)| u64::from(instructions)).max().unwrap_or(0).max(1);
        let step = step(most);
        Panel { plot, top, step, most: most.next_multiple_of(step) }
    }

    /// Place of a length and a number of instructions.
    fn at(&self, length: u64, instructions: u64) -> (f64, f64) {
        let right = length as f64 / self.plot.last().max(1) as f64;
        let up = instructions as f64 / self.most as f64;
        (LEFT + right * (RIGHT - LEFT), self.top + PLOT_HEIGHT * (1.0 - up))
    }

    fn draw(&self, out: &mut String) {
        let title = (LEFT, self.top - 34.0);
        text(out, "name", title, "start", &self.plot.operation);
        text(out, "small", (LEFT, self.top - 12.0), "start", "instructions of a stub in a call");
        for instructions in (0..=self.most).step_by(self.step as usize) {
            let (x, y) = self.at(0, instructions);
            let class = if instructions == 0 { "axis" } else { "grid" };
            let _ = writeln!(out, "<path class=\"{class}\" d=\"M{x:.2} {y:.2}H{RIGHT}\"/>");
            text(out, "small", (x - 8.0, y + 4.0), "end", &thousands(instructions));
        }
        let (x, y) = self.at(0, 0);
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{x:.2} {y:.2}V{:.2}\"/>", self.top);
        for length in (0..=self.plot.last()).step_by(step(self.plot.last().max(1)) as usize) {
            let (x, y) = self.at(length, 0);
            let _ = writeln!(out, "<path class=\"axis\" d=\"M{x:.2} {y:.2}v5\"/>");
            text(out, "small", (x, y + 20.0), "middle", &thousands(length));
        }
        text(out, "small", ((LEFT + RIGHT) / 2.0, y + 40.0), "middle", &axis(self.plot));
        self.plot.lines.iter().for_each(|line| self.line(out, line));
        self.plot.lines.iter().enumerate().for_each(|(number, line)| self.entry(out, number, line));
    }

    fn line(&self, out: &mut String, line: &Line) {
        let points = self.plot.corners(line).into_iter().map(|(length, instructions)| {
            let (x, y) = self.at(length, instructions.into());
            format!("{x:.2},{y:.2}")
        });
        let points: Vec<String> = points.collect();
        let dashes = self.dashes(line);
        let _ = write!(out, "<polyline class=\"s{}\"{dashes} points=\"{}\">", line.side, points.join(" "));
        let ends = [self.plot.first(), self.plot.last()];
        let [first, last] = ends.map(|length| format!("{} at {length}", self.plot.at(line, length)));
        let words = format!("{}: {}; {first}, {last}", self.name(line), line.formula);
        let _ = writeln!(out, "<title>{}</title></polyline>", escaped(&words));
    }

    /// Name of a line, with the kernel part if the other one has other figures.
    fn name(&self, line: &Line) -> String {
        let name = SIDES[line.side];
        let alone = self.plot.lines.iter().filter(|other| other.side == line.side).count() == 1;
        if alone { name.into() } else { format!("{name}, {}", line.kernels.join(" and ")) }
    }

    fn dashes(&self, line: &Line) -> &'static str {
        let of_side = self.plot.lines.iter().filter(|other| other.side == line.side);
        let number = of_side.take_while(|other| *other != line).count();
        DASHES[number.min(DASHES.len() - 1)]
    }

    /// An entry of the legend: a piece of the line, its name, its formula, and its figure at the end.
    fn entry(&self, out: &mut String, number: usize, line: &Line) {
        let y = self.top + 8.0 + ENTRY * number as f64;
        let dashes = self.dashes(line);
        let (begin, end) = (LEGEND, LEGEND + 30.0);
        let _ = writeln!(
            out,
            "<polyline class=\"s{}\"{dashes} points=\"{begin:.2},{y:.2} {end:.2},{y:.2}\"/>",
            line.side
        );
        text(out, "name", (end + 8.0, y + 4.0), "start", &self.name(line));
        let mut formula = line.formula.to_string();
        if formula.chars().count() > FORMULA_MAX {
            formula = formula.chars().take(FORMULA_MAX - 2).chain(" …".chars()).collect();
        }
        let last = self.plot.last();
        let figure = thousands(self.plot.at(line, last).into());
        let words = match line.formula.loops.is_empty() {
            true => formula,
            false => format!("{formula}; {figure} at {}", thousands(last)),
        };
        text(out, "small", (end + 8.0, y + 20.0), "start", &words);
    }
}

/// Name of the axis to the right.
fn axis(plot: &Plot) -> String {
    let texts = plot.lists.iter().filter(|list| list.is_text).count();
    let what = match (texts, plot.lists.len()) {
        (0, _) => "elements",
        (texts, all) if texts == all => "characters",
        _ => "characters or elements",
    };
    let names: Vec<&str> = plot.lists.iter().map(|list| list.path.as_str()).collect();
    match &names[..] {
        [name] => format!("n: {what} of {name}"),
        few if few.len() <= 4 => format!("n: {what} of each of {}", names.join(", ")),
        _ => format!("n: {what} of each of {} lists", names.len()),
    }
}

/// Step of an axis that ends with a number: 1, 2 or 5, and zeros.
fn step(most: u64) -> u64 {
    let powers = (0..).map(|zeros| 10_u64.saturating_pow(zeros));
    let steps = powers.flat_map(|power| [1, 2, 5].map(|digit: u64| digit.saturating_mul(power)));
    steps.into_iter().find(|step| most.div_ceil(*step) <= STEPS_MAX).unwrap_or(1)
}

/// A number with a comma before each three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let comma = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    let written = digits.chars().enumerate();
    written.flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit])).collect()
}

fn text(out: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// Words as they stand in XML.
fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_few_steps() {
        assert_eq!([1, 6, 7, 30, 31, 3000, 3001, 4096].map(step), [1, 1, 2, 5, 10, 500, 1000, 1000]);
        assert!(step(u64::MAX) > 0);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1000, 12_345_678].map(thousands), ["0", "999", "1,000", "12,345,678"]);
    }
}
