//! Pictures of costs, `quill cost --plot`: the golden one, the one in the book, their figures against those of `quill cost`, and what is said where there is none.

mod workshop;

use std::path::Path;
use std::process::{Command, Output};

use workshop::Workshop;

/// A directory for pictures, and for files of which they are made.
struct Scratch(Workshop);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(Workshop::new(&format!("plot-{name}")))
    }

    fn path(&self, file: &str) -> String {
        self.0.path(file).to_str().unwrap().into()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The picture that is made with these words.
    fn plot(&self, words: &[&str]) -> String {
        let path = self.path("plot.svg");
        let out = quill(&[&["cost", "--plot", &path], words].concat());
        assert_eq!(out.status.code(), Some(0), "{}", said(&out));
        std::fs::read_to_string(path).unwrap()
    }
}

fn quill(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quill")).args(words).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

fn in_tree(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    path.canonicalize().unwrap_or(path).to_str().unwrap().into()
}

/// Compares a picture with a committed one, or writes it with `QUILL_BLESS`.
fn is_committed(picture: &str, path: &str) {
    let path = in_tree(path);
    if std::env::var_os("QUILL_BLESS").is_some() {
        std::fs::write(&path, picture).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(picture, committed, "{path}: QUILL_BLESS=1 writes it anew");
}

#[test]
fn pictures_are_the_committed_ones() {
    let scratch = Scratch::new("golden");
    let mail = scratch.plot(&[&in_tree("idl/golden/accepted/mail.idl")]);
    assert_eq!(mail, scratch.plot(&[&in_tree("idl/golden/accepted/mail.idl")]), "made twice");
    is_committed(&mail, "idl/golden/accepted/mail.plot.svg");
    is_committed(&scratch.plot(&[&in_tree("idl/interfaces/bench.idl")]), "docs/guide/idl-cost.svg");
}

/// A line of a picture, read from it.
#[derive(Debug)]
struct Line {
    operation: String,
    /// Such as `server in C, tern-ipc`.
    name: String,
    formula: String,
    /// Lengths and instructions at its ends, as its title has them.
    ends: [(f64, f64); 2],
    /// Lengths and instructions of its corners, as they are drawn.
    corners: Vec<(f64, f64)>,
    /// Lengths and instructions in a hundredth of a pixel, by which a corner can be off.
    grain: (f64, f64),
}

/// Text between two others.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    text.split_once(begin)?.1.split_once(end).map(|(inner, _)| inner)
}

/// Pixels and numbers of the two outermost labels of an axis.
fn scale(panel: &str, anchor: &str, pixel: &str) -> [(f64, f64); 2] {
    let labels = panel.lines().filter(|line| line.contains(&format!("text-anchor=\"{anchor}\"")));
    let numbers = labels.filter_map(|line| {
        let number = between(line, "\">", "</text>")?.replace(',', "").parse().ok()?;
        Some((between(line, pixel, "\"")?.parse().unwrap(), number))
    });
    let numbers: Vec<(f64, f64)> = numbers.collect();
    // A label stands beside what it names.
    let beside = if anchor == "end" { -4.0 } else { 0.0 };
    [numbers[0], numbers[numbers.len() - 1]].map(|(pixel, number)| (pixel + beside, number))
}

/// Number that a pixel stands for.
fn number([(first, low), (last, high)]: [(f64, f64); 2], pixel: f64) -> f64 {
    low + (pixel - first) / (last - first) * (high - low)
}

fn lines(picture: &str) -> Vec<Line> {
    let mut all = Vec::new();
    for panel in picture.split("<g id=\"").skip(1) {
        let (right, up) = (scale(panel, "middle", " x=\""), scale(panel, "end", " y=\""));
        for line in panel.lines().filter(|line| line.contains("<title>")) {
            let title = between(line, "<title>", "</title>").unwrap();
            let (name, rest) = title.split_once(": ").unwrap();
            let (formula, ends) = rest.split_once("; ").unwrap();
            let end = |text: &str| {
                let (instructions, length) = text.split_once(" at ").unwrap();
                (length.parse().unwrap(), instructions.parse().unwrap())
            };
            let (first, last) = ends.split_once(", ").unwrap();
            let points = between(line, "points=\"", "\"").unwrap().split(' ');
            let point = |point: &str| {
                let (x, y) = point.split_once(',').unwrap();
                (number(right, x.parse().unwrap()), number(up, y.parse().unwrap()))
            };
            all.push(Line {
                operation: panel.split_once('"').unwrap().0.into(),
                name: name.into(),
                formula: formula.into(),
                ends: [end(first), end(last)],
                corners: points.map(point).collect(),
                grain: (number(right, 0.01) - number(right, 0.0), number(up, 0.0) - number(up, 0.01)),
            });
        }
    }
    all
}

/// Value of a formula such as `36 + 9/16 s` at a length that is a multiple of 64, if no list is shorter.
fn value(formula: &str, length: f64) -> f64 {
    let mut parts = formula.split(" + ");
    let fixed: f64 = parts.next().unwrap().parse().unwrap();
    let rounds = parts.map(|part| {
        let (round, bytes) = part.split_once(' ').unwrap().0.split_once('/').unwrap();
        round.parse::<f64>().unwrap() * length / bytes.parse::<f64>().unwrap()
    });
    fixed + rounds.sum::<f64>()
}

/// Rows of `quill cost` with predictions: an operation's name, and the formulas of its four stubs.
fn rows(kernel: &str, file: &str) -> Vec<(String, Vec<String>)> {
    let out = quill(&["cost", "--kernel", kernel, file]);
    let (mut all, mut interface) = (Vec::new(), None);
    for line in said(&out).lines() {
        if let Some(rest) = line.strip_prefix("instructions of ") {
            interface = Some(rest.split(' ').next().unwrap().to_owned());
        } else if !line.starts_with("  ") {
            interface = None;
        }
        let Some(interface) = &interface else { continue };
        // A formula is a number, and terms behind `+` that are two words each.
        let mut words = line.split_whitespace().peekable();
        let (name, mut formulas) = (words.next().unwrap_or_default(), Vec::new());
        while let Some(fixed) = words.next().filter(|word| word.parse::<u32>().is_ok()) {
            let mut formula = fixed.to_owned();
            while words.next_if_eq(&"+").is_some() {
                formula += &format!(" + {} {}", words.next().unwrap(), words.next().unwrap());
            }
            formulas.push(formula);
        }
        if formulas.len() == 4 {
            all.push((format!("{interface}::{name}"), formulas));
        }
    }
    all
}

/// Each line has the formula that `quill cost` prints, its ends have the formula's figures, and its corners lie where the axes say.
#[test]
fn figures_are_those_of_quill_cost() {
    let scratch = Scratch::new("figures");
    let sides = ["client in C", "server in C", "client in Rust", "server in Rust"];
    for file in
        ["idl/interfaces/bench.idl", "idl/golden/accepted/mail.idl", "idl/golden/accepted/property.idl"]
    {
        let file = in_tree(file);
        let drawn = lines(&scratch.plot(&[&file]));
        let mut seen = std::collections::BTreeSet::new();
        for kernel in ["tern-ipc", "tern-door"] {
            for (operation, formulas) in rows(kernel, &file) {
                for (side, formula) in sides.iter().zip(formulas) {
                    let names = [side.to_string(), format!("{side}, {kernel}")];
                    let is_it = |line: &Line| line.operation == operation && names.contains(&line.name);
                    // Operations without lists are not drawn.
                    let Some(number) = drawn.iter().position(is_it) else { continue };
                    assert_eq!(drawn[number].formula, formula, "{operation}, {side}, {kernel}");
                    seen.insert(number);
                }
            }
        }
        assert!(seen.len() >= 8 && seen.len() == drawn.len(), "{file}: {} of {}", seen.len(), drawn.len());
        for line in &drawn {
            let [first, last] = line.ends;
            for (end, corner) in [(first, line.corners[0]), (last, line.corners[line.corners.len() - 1])] {
                let off = ((end.0 - corner.0).abs(), (end.1 - corner.1).abs());
                assert!(off.0 <= line.grain.0 && off.1 <= line.grain.1, "{line:?}");
            }
            if file.ends_with("bench.idl") {
                assert_eq!(last, (4096.0, value(&line.formula, 4096.0)), "{line:?}");
            }
        }
    }
}

/// A list with a lower bound than another one has its bound, and the axis ends with the greatest.
#[test]
fn bounds_end_lines() {
    let scratch = Scratch::new("bounds");
    let file = scratch.file("b.idl", "interface I { void f(in string<100> a, in string<1000> b); };");
    for line in lines(&scratch.plot(&["--kernel", "tern-ipc", &file])) {
        assert_eq!([line.ends[0].0, line.ends[1].0], [8.0, 1000.0]);
        // With a corner where the shorter one ends.
        let has_kink = line.corners.iter().any(|corner| (corner.0 - 100.0).abs() < 1.0);
        assert_eq!(has_kink, line.formula.contains('+'), "{line:?}");
    }
    let file = scratch.file("l.idl", "typedef sequence<double> D; interface I { void f(in D some); };");
    let picture = scratch.plot(&["--kernel", "tern-ipc", &file]);
    assert!(picture.contains("n: elements of some"), "{picture}");
    assert!(lines(&picture).iter().all(|line| line.ends[0].0 == 1.0 && line.corners.len() == 2));
}

/// Tags of a picture are closed in the order in which they are opened, and words have none.
#[test]
fn pictures_are_well_formed() {
    let scratch = Scratch::new("formed");
    let picture = scratch.plot(&[&in_tree("idl/golden/accepted/property.idl")]);
    let mut open = Vec::new();
    for tag in picture.split('<').skip(1) {
        let (tag, words) = tag.split_once('>').unwrap();
        assert!(!words.contains('>'), "{words}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty() && !picture.contains("NaN") && !picture.contains("inf"), "{open:?}");
}

#[test]
fn reasons_are_given() {
    let scratch = Scratch::new("reasons");
    let bench = in_tree("idl/interfaces/bench.idl");
    let plot = scratch.path("no.svg");
    let check = |words: &[&str], code: i32, wanted: &str| {
        let out = quill(&[&["cost", "--plot", &plot], words].concat());
        assert_eq!(out.status.code(), Some(code), "{words:?}: {}", said(&out));
        assert!(said(&out).contains(wanted), "{words:?}: no {wanted:?} in {}", said(&out));
        assert!(!Path::new(&plot).exists(), "{words:?}");
    };
    let numbers = scratch.file("n.idl", "interface I { void f(in long a); };");
    check(&[&numbers], 1, "error: no operation has a list or a text");
    let types = scratch.file("t.idl", "struct S { string s; };");
    check(&[&types], 1, "error: no operation has a list or a text");
    let pieces = scratch.file("p.idl", "typedef sequence<string> S; interface I { void f(in S all); };");
    check(&[&pieces], 1, "`I::f` is not predicted: `all` is read piece by piece");
    check(&["--operation", "f", &pieces], 2, "error: `I::f` is not predicted: `all` is read");
    check(&["--kernel", "linux", &bench], 1, "not predicted: stubs over `linux`");
    check(&["--operation", "tiny", &bench], 2, "error: `tiny` has no list or text");
    check(
        &["--operation", "lenght", &bench],
        2,
        "error: there is no operation `lenght`; did you mean `length`?",
    );
    check(&["--operation", "Calls::lenth", &bench], 2, "error: there is no operation `Calls::lenth`");
    check(&[&scratch.file("w.idl", "interface I { void f(in strnig s); };")], 1, "did you mean `string`?");
    check(&[&scratch.path("none.idl")], 2, "cannot read");
    check(&["--depfile", &scratch.path("d"), &bench], 2, "--depfile is about code");
    let out = quill(&["--plot", &plot, &bench]);
    assert!(out.status.code() == Some(2) && said(&out).contains("quill cost --plot"), "{}", said(&out));
    let out = quill(&["cost", "--operation", "str", &bench]);
    assert!(out.status.code() == Some(2) && said(&out).contains("--operation says"), "{}", said(&out));
    let missing = scratch.path("none/x.svg");
    for (path, why) in [(&missing, "there is no directory"), (&scratch.path(""), "cannot write")] {
        let out = quill(&["cost", "--plot", path, &bench]);
        assert!(out.status.code() == Some(2) && said(&out).contains(why), "{}", said(&out));
    }
}

/// An operation is named by its own name, or with those of its interface and modules before it; the others that have lists are left out.
#[test]
fn one_operation_can_be_drawn() {
    let scratch = Scratch::new("one");
    let bench = in_tree("idl/interfaces/bench.idl");
    for name in ["str", "Calls::str", "Bench::Calls::str"] {
        let picture = scratch.plot(&["--operation", name, &bench]);
        assert_eq!(picture.matches("<g id=").count(), 1);
        assert!(picture.contains("<g id=\"Bench::Calls::str\">"));
    }
    let mail = in_tree("idl/golden/accepted/mail.idl");
    let out = quill(&["cost", "--plot", &scratch.path("x.svg"), &mail]);
    assert!(said(&out).contains("note: `Mail::Desk::product` is not predicted: "), "{}", said(&out));
}
