//! Filters: by examples, and by random texts in random pieces, against what the standard library makes of the whole text.

use crate::*;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut next = self.0;
        next = (next ^ next >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next = (next ^ next >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((next ^ next >> 31) % end as u64) as usize
    }

    fn is(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A text with few letters, so that much of it is there twice.
    fn text(&mut self) -> Vec<u8> {
        let len = self.below(60);
        (0..len).map(|_| *b"\n\n\n ab-0129.\xe4".get(self.below(13)).unwrap_or(&b'\n')).collect()
    }

    /// A text in pieces, some of which are empty.
    fn pieces<'a>(&mut self, mut text: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !text.is_empty() {
            let (piece, rest) = text.split_at(self.below(text.len() + 1));
            pieces.push(piece);
            text = rest;
        }
        pieces
    }
}

/// Runs a filter over files, each in pieces. Of several, the names are a, b, c.
fn filtered(filter: &mut impl Filter, files: &[Vec<&[u8]>]) -> Result<Vec<u8>, Fault> {
    let mut printed = Vec::new();
    let mut out = |bytes: &[u8]| printed.extend_from_slice(bytes);
    for (file, name) in files.iter().zip(["a", "b", "c"]) {
        filter.begin((files.len() > 1).then_some(name), &mut out);
        for piece in file {
            if filter.take(piece, &mut out)?.is_break() {
                break;
            }
        }
        filter.end(&mut out)?;
    }
    filter.finish(&mut out)?;
    Ok(printed)
}

fn check(filter: &mut impl Filter, files: &[&str], expected: &str) {
    let files: Vec<Vec<&[u8]>> = files.iter().map(|file| vec![file.as_bytes()]).collect();
    let printed = filtered(filter, &files).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}

fn lines_of(text: &[u8]) -> Vec<&[u8]> {
    let all = text.split_inclusive(|&byte| byte == b'\n');
    all.map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect()
}

fn joined<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| [line, b"\n"].concat()).collect()
}

/// Compares what filters print of random texts in random pieces with what they should. `make` gives a filter, and what is expected of a text.
fn compare<F: Filter>(make: impl Fn(&mut Random, &[u8]) -> (F, Vec<u8>)) {
    for seed in 0..5_000 {
        let mut random = Random(seed);
        let text = random.text();
        let (mut filter, expected) = make(&mut random, &text);
        let printed = filtered(&mut filter, &[random.pieces(&text)]).unwrap();
        let [printed, expected] =
            [printed, expected].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(printed, expected, "seed {seed}");
    }
}

/// Words that are typed, taken apart: flags, the value, the rest.
fn taken(typed: &str) -> Option<(String, Option<String>, Vec<String>)> {
    let typed: Vec<String> = typed.split_whitespace().map(String::from).collect();
    let words = words(&typed, "abc", Some('n'))?;
    let flags = "abc".chars().filter(|&flag| words.has(flag)).collect();
    Some((flags, words.value.map(String::from), words.rest.to_vec()))
}

#[test]
fn words_are_taken_apart() {
    for (typed, flags, value, rest) in [
        ("", "", None, ""),
        ("x -a", "", None, "x -a"),
        ("-a -c x", "ac", None, "x"),
        ("-ca x", "ac", None, "x"),
        ("-n 5 x", "", Some("5"), "x"),
        ("-n5 x", "", Some("5"), "x"),
        ("-an -5 -b", "ab", Some("-5"), ""),
        ("-nä", "", Some("ä"), ""),
        ("-a -- -b", "a", None, "-b"),
        ("-a - -b", "a", None, "- -b"),
    ] {
        let rest = rest.split_whitespace().map(String::from).collect();
        assert_eq!(taken(typed), Some((flags.into(), value.map(String::from), rest)), "{typed}");
    }
    for wrong in ["-x", "-ax", "-n", "-an", "--a", "-ä", "-a-"] {
        assert_eq!(taken(wrong), None, "{wrong}");
    }
}

fn grep(pattern: &str, choice: Choice) -> Grep {
    Grep::new(pattern, choice).unwrap_or_else(|reason| panic!("{pattern}: {reason}"))
}

#[test]
fn patterns_are_found() {
    for (pattern, has) in [
        ("b", "ab"),
        ("^a.*c$", "a and c"),
        ("(one|two)+", "onetwo"),
        ("[^a-c]", "abcd"),
        (r"\bword\b", "a word."),
        (r"\$5", "$5"),
        ("x{3}", "xxx"),
        ("ä", "ähnlich"),
        ("", "anything"),
        ("^$", ""),
    ] {
        let text = format!("{has}\n");
        check(&mut grep(pattern, Choice::default()), &[&text], &text);
    }
    for (pattern, has_not) in [("^b", "ab"), ("A", "a"), ("a.c", "ac"), (r"\bord", "word"), ("a\nb", "ab")] {
        let mut filter = grep(pattern, Choice::default());
        check(&mut filter, &[&format!("{has_not}\n")], "");
        assert!(!filter.has_found(), "{pattern}");
    }
    check(&mut grep(".*[", Choice { is_text: true, ..Choice::default() }), &["x\n.*[x\n"], ".*[x\n");
    check(&mut grep("aB", Choice { ignores_case: true, ..Choice::default() }), &["Ab\nax\n"], "Ab\n");
}

#[test]
fn chosen_lines_are_shown_as_wanted() {
    let files = ["one\ntwo\nthree", "", "two"];
    let plain = Choice::default();
    check(&mut grep("o", plain), &files[..1], "one\ntwo\n");
    check(&mut grep("o", plain), &files, "a:one\na:two\nc:two\n");
    check(&mut grep("e", Choice { numbers: true, ..plain }), &files[..1], "1:one\n3:three\n");
    check(&mut grep("o", Choice { numbers: true, inverts: true, ..plain }), &files, "a:3:three\n");
    check(&mut grep("o", Choice { counts: true, ..plain }), &files, "a:2\nb:0\nc:1\n");
    check(&mut grep("o", Choice { counts: true, inverts: true, ..plain }), &files[..1], "1\n");
    // One of an earlier file counts.
    let mut filter = grep("three", plain);
    check(&mut filter, &files, "a:three\n");
    assert!(filter.has_found());
}

#[test]
fn what_is_no_pattern_is_told() {
    for (wrong, reason) in [
        ("a(b", "unclosed group, at byte 2"),
        ("a)", "unopened group, at byte 2"),
        ("[a", "unclosed character class, at byte 1"),
        ("*", "repetition operator missing expression, at byte 1"),
        ("(a)\\1", "backreferences are not supported, at byte 4"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported, at byte 1"),
        ("x{1000}{1000}{1000}", "it needs more than 1024 KiB"),
        (r"(\b|x){1000}{1000}{1000}", "it needs more than 1024 KiB"),
        ("\\pL", "Unicode not allowed here, at byte 1"),
    ] {
        match Grep::new(wrong, Choice::default()) {
            Ok(_) => panic!("{wrong} is a pattern"),
            Err(told) => assert_eq!(told, reason, "{wrong}"),
        }
    }
    for wrong in [r"(?u)\b", "[a-b-c--[a]", "x{9999999999}", "x{2,1}", "(?P<a>x)(?P<a>y)"] {
        let told = Grep::new(wrong, Choice::default()).err().unwrap_or_default();
        assert!(!told.is_empty() && !told.contains('\n'), "{wrong}: {told}");
    }
    let deep = "(".repeat(1000) + &")".repeat(1000);
    let told = Grep::new(&deep, Choice::default()).err().unwrap();
    assert!(told.contains("nest"), "{told}");
}

/// A pattern that takes other programs for ever is done with a line in time: it fails by the time of the test alone.
#[test]
fn no_pattern_takes_for_ever() {
    let text = "a".repeat(20_000) + "\n";
    for pattern in ["(a*)*b", "(a|aa)+$b", "(a?){60}a{60}b", "(.*){40}c"] {
        check(&mut grep(pattern, Choice::default()), &[&text], "");
    }
    check(&mut grep("(){1000}{1000}{1000}{1000}", Choice::default()), &["a"], "a\n");
}

#[test]
fn grep_is_as_its_model() {
    compare(|random, text| {
        let choice = Choice {
            is_text: random.is(),
            ignores_case: random.is(),
            inverts: random.is(),
            numbers: random.is(),
            counts: random.below(4) == 0,
        };
        let wanted = ["", "A", "a-", "b"][random.below(4)].as_bytes();
        let has = |line: &[u8]| {
            let is_same = |part: &[u8]| match choice.ignores_case {
                true => part.eq_ignore_ascii_case(wanted),
                false => part == wanted,
            };
            wanted.is_empty() || line.windows(wanted.len()).any(is_same)
        };
        let numbered = (1..).zip(lines_of(text)).filter(|(_, line)| has(line) != choice.inverts);
        let number = |number: usize| if choice.numbers { format!("{number}:") } else { String::new() };
        let shown: Vec<Vec<u8>> = numbered.map(|(at, line)| [number(at).as_bytes(), line].concat()).collect();
        let expected = match choice.counts {
            true => format!("{}\n", shown.len()).into_bytes(),
            false => joined(shown.iter().map(|line| &line[..])),
        };
        (grep(core::str::from_utf8(wanted).unwrap(), choice), expected)
    });
}

#[test]
fn head_shows_the_first_lines() {
    check(&mut Head::new(2), &["1\n2\n3\n"], "1\n2\n");
    check(&mut Head::new(0), &["1\n"], "");
    check(&mut Head::new(9), &["1\n2"], "1\n2");
    let shown = "==> a <==\n1\n\n==> b <==\n\n==> c <==\n3";
    check(&mut Head::new(1), &["1\n2\n", "", "3"], shown);
}

#[test]
fn head_is_as_its_model() {
    compare(|random, text| {
        let count = random.below(6);
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        (Head::new(count as u64), lines.take(count).collect::<Vec<_>>().concat())
    });
}

/// No second line is waited for by somebody who wants the first.
#[test]
fn head_stops_as_soon_as_it_can() {
    let mut head = Head::new(1);
    let mut out = |_: &[u8]| {};
    head.begin(None, &mut out);
    assert!(head.take(b"a", &mut out).unwrap().is_continue());
    assert!(head.take(b"\n", &mut out).unwrap().is_break());
}

#[test]
fn wc_counts() {
    check(&mut Wc::new([false; 3]), &["one two\nthree\n"], "      2       3      14\n");
    check(&mut Wc::new([true, false, false]), &["one two\nthree"], "1\n");
    check(
        &mut Wc::new([false, true, true]),
        &["", " a\x0bb"],
        "      0       0 a\n      2       4 b\n      2       4 total\n",
    );
    compare(|random, text| {
        let chosen = [random.is(), random.is(), random.is()];
        let newlines = text.iter().filter(|&&byte| byte == b'\n').count();
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        let all = [newlines, words, text.len()];
        let shown: Vec<usize> =
            (0..3).filter(|&at| chosen[at] || !chosen.contains(&true)).map(|at| all[at]).collect();
        let expected = match shown[..] {
            [alone] => alone.to_string(),
            _ => shown.iter().map(|number| format!("{number:>7}")).collect::<Vec<_>>().join(" "),
        };
        (Wc::new(chosen), (expected + "\n").into_bytes())
    });
}

#[test]
fn uniq_is_as_its_model() {
    check(&mut Uniq::new(Kept::All, true), &["a\na\nb\na"], "      2 a\n      1 b\n      1 a\n");
    compare(|random, text| {
        let (kept, counts) = ([Kept::All, Kept::Repeated, Kept::Single][random.below(3)], random.is());
        let lines = lines_of(text);
        let runs = lines.chunk_by(|one, other| one == other).filter(|run| match kept {
            Kept::All => true,
            Kept::Repeated => run.len() > 1,
            Kept::Single => run.len() == 1,
        });
        let count = |len: usize| if counts { format!("{len:>7} ") } else { String::new() };
        let shown: Vec<Vec<u8>> = runs.map(|run| [count(run.len()).as_bytes(), run[0]].concat()).collect();
        (Uniq::new(kept, counts), joined(shown.iter().map(|line| &line[..])))
    });
}

#[test]
fn sort_is_as_its_model() {
    compare(|random, text| {
        let (is_reverse, is_unique) = (random.is(), random.is());
        let mut lines = lines_of(text);
        lines.sort();
        if is_reverse {
            lines.reverse();
        }
        if is_unique {
            lines.dedup();
        }
        (Sort::new(Order { is_numeric: false, is_reverse, is_unique }), joined(lines))
    });
}

/// Numbers are made first, and the lines of them, so that the model does not read any.
#[test]
fn numbers_are_sorted_as_their_model() {
    for seed in 0..2_000 {
        let mut random = Random(seed);
        // In tenths.
        let mut numbers: Vec<(i64, String)> = Vec::new();
        for _ in 0..random.below(12) {
            let tenths = random.below(400) as i64 - 200;
            let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.abs());
            let zeros = "0".repeat(random.below(3));
            let blanks = " ".repeat(random.below(3));
            let whole = if size < 10 && random.is() { String::new() } else { (size / 10).to_string() };
            let part =
                if size % 10 == 0 && random.is() { String::new() } else { format!(".{}{zeros}", size % 10) };
            let behind = ["", "x", " 7", ".5", "-"][if part.is_empty() { 0 } else { random.below(5) }];
            numbers.push((tenths, format!("{blanks}{sign}{zeros}{whole}{part}{behind}")));
        }
        let (is_reverse, is_unique) = (random.is(), random.is());
        let text = joined(numbers.iter().map(|(_, line)| line.as_bytes()));
        let mut sort = Sort::new(Order { is_numeric: true, is_reverse, is_unique });
        let printed = filtered(&mut sort, &[random.pieces(&text)]).unwrap();
        if is_unique {
            numbers.sort_by_key(|(number, _)| if is_reverse { -number } else { *number });
            numbers.dedup_by_key(|(number, _)| *number);
        } else {
            numbers.sort();
            if is_reverse {
                numbers.reverse();
            }
        }
        let expected = joined(numbers.iter().map(|(_, line)| line.as_bytes()));
        assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&expected), "seed {seed}");
    }
    let long = format!("1{}\n-1{}\n9\nnone\n", "0".repeat(100), "0".repeat(100));
    let sorted = format!("-1{}\nnone\n9\n1{}\n", "0".repeat(100), "0".repeat(100));
    check(&mut Sort::new(Order { is_numeric: true, ..Order::default() }), &[&long], &sorted);
}

/// Files are sorted as one, and the last line of one is not joined to the first of the next.
#[test]
fn files_are_read_as_one() {
    check(&mut Sort::new(Order::default()), &["c\na", "", "b\n"], "a\nb\nc\n");
    check(&mut Uniq::new(Kept::All, false), &["a\nb", "b\nc"], "a\nb\nc\n");
}

/// There is a limit to what is kept, and nothing else has one.
/// A filter, and the files it reads, in pieces.
type Run<'a> = dyn FnMut(&[Vec<&[u8]>]) -> Result<Vec<u8>, Fault> + 'a;

#[test]
fn what_is_too_much_is_refused() {
    let piece = vec![b'a'; 64 << 10];
    let fits = LINE_MAX / piece.len();
    let long = |count: usize, end: &'static [u8]| {
        let mut pieces: Vec<&[u8]> = vec![b"first\n"];
        pieces.extend((0..count).map(|_| &piece[..]));
        pieces.push(end);
        pieces
    };
    let fault = |filter: &mut Run, count, end| filter(&[long(count, end)]).map(|printed| printed.len());
    let len = LINE_MAX + b"first\n\n".len();
    let mut uniq = |files: &[Vec<&[u8]>]| filtered(&mut Uniq::new(Kept::All, false), files);
    assert_eq!(fault(&mut uniq, fits, b""), Ok(len));
    assert_eq!(fault(&mut uniq, fits, b"\n"), Ok(len));
    assert_eq!(fault(&mut uniq, fits, b"b"), Err(Fault::Long(2)));
    let mut found = |files: &[Vec<&[u8]>]| filtered(&mut grep("a$", Choice::default()), files);
    assert_eq!(fault(&mut found, fits, b"\n"), Ok(LINE_MAX + 1));
    assert_eq!(fault(&mut found, fits, b"b"), Err(Fault::Long(2)));
    let mut head = |files: &[Vec<&[u8]>]| filtered(&mut Head::new(2), files);
    assert_eq!(fault(&mut head, 2 * fits, b""), Ok(2 * LINE_MAX + 6));
    let mut wc = |files: &[Vec<&[u8]>]| filtered(&mut Wc::new([false, false, true]), files);
    assert_eq!(fault(&mut wc, 2 * fits, b""), Ok("2097158\n".len()));

    let lines = joined(vec![&piece[..]; 1]);
    let full = SORT_MAX / (piece.len() + 8);
    let sort = |count: usize| filtered(&mut Sort::new(Order::default()), &[vec![&lines[..]; count]]);
    assert_eq!(sort(full).map(|printed| printed.len()), Ok(full * lines.len()));
    assert_eq!(sort(full + 1), Err(Fault::Much));
    let newlines = vec![b'\n'; SORT_MAX / 8];
    let empty =
        |more: &'static [u8]| filtered(&mut Sort::new(Order::default()), &[vec![&newlines[..], more]]);
    assert!(empty(b"").is_ok());
    assert_eq!(empty(b"\n"), Err(Fault::Much));
    assert_eq!(Fault::Long(7).to_string(), "line 7 has more than 1024 KiB");
    assert_eq!(Fault::Much.to_string(), "more than 16384 KiB to sort");
}
