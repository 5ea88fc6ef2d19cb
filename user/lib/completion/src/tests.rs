//! Completion: by examples, and by random names.

use crate::{Found, NAMES_MAX, Place, Word, word};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn found(begin: &str, place: Place, names: &[&str]) -> Found {
    let mut found = Found::new(&Word { place, begin });
    for name in names {
        let bare = name.trim_end_matches('/');
        assert!(found.offer(bare.as_bytes(), bare != *name));
    }
    found
}

#[test]
fn the_word_says_where_its_names_are() {
    use Place::{Command, Directory, File, Program, Task};
    for (before, place, begin) in [
        ("", Command, ""),
        ("  he", Command, "he"),
        ("help he", Command, "he"),
        ("run ", Program, ""),
        ("run hello x", File(""), "x"),
        ("time time run h", Program, "h"),
        ("ls | gr", Command, "gr"),
        ("kill ra", Task, "ra"),
        ("cat /etc/mo", File("/etc/"), "mo"),
        ("cat a/b/", File("a/b/"), ""),
        ("cd ../", Directory("../"), ""),
        ("cd x", Directory(""), "x"),
        ("cd x > y", File(""), "y"),
        ("ls > ", File(""), ""),
        ("ps >> /a/ü", File("/a/"), "ü"),
        ("grep x < d", File(""), "d"),
        ("cat\u{3000}x", File(""), "x"),
    ] {
        assert_eq!(word(before), Some(Word { place, begin }), "{before:?}");
    }
    for none in ["# x", "ls # x", "#", "run x & y", "echo #x"] {
        assert_eq!(word(none), None, "{none:?}");
    }
}

#[test]
fn a_word_goes_on_as_far_as_is_known() {
    let names = ["head", "help", "hello-c", "hello-rust", "etc/"];
    for (begin, added) in
        [("", ""), ("h", "e"), ("hel", ""), ("hello", "-"), ("hello-r", "ust "), ("e", "tc/"), ("x", "")]
    {
        assert_eq!(found(begin, Place::Command, &names).addition(), added, "{begin:?}");
    }
    assert_eq!(found("hello-c", Place::Command, &names).addition(), " ");
    assert_eq!(found("h", Place::File(""), &["hä", "hé"]).addition(), "");
    assert_eq!(found("etc", Place::File(""), &names).only(), Some("etc"));
    assert_eq!(found("he", Place::File(""), &names).only(), None);
}

#[test]
fn names_that_cannot_be_typed_are_left_out() {
    let mut found = Found::new(&Word { place: Place::File(""), begin: "" });
    for name in
        [&b"."[..], b"..", b".hidden", b"a b", b"\xff", b"tab\t", b"#x", b">", b"|", b"&", b"", b"\x1b[A"]
    {
        assert!(found.offer(name, false));
    }
    assert_eq!((found.addition(), found.rows(80).len()), (String::new(), 0));
    // Behind a slash they are no words of their own.
    assert_eq!(self::found("", Place::File("a/"), &["#x"]).addition(), "#x ");
    assert_eq!(self::found(".", Place::File(""), &[".hidden"]).addition(), "hidden ");
}

#[test]
fn rows_are_read_downwards() {
    let names = ["a", "b", "c", "dir/", "e"];
    let list = |columns| found("", Place::File(""), &names).rows(columns);
    assert_eq!(list(10), ["a     dir/", "b     e", "c"]);
    assert_eq!(list(16), ["a     c     e", "b     dir/"]);
    assert_eq!(list(80), ["a     b     c     dir/  e"]);
    assert_eq!(list(1), ["a", "b", "c", "dir/", "e"]);
}

#[test]
fn too_many_names_are_not_completed() {
    let mut found = Found::new(&Word { place: Place::File(""), begin: "n" });
    for number in 0..NAMES_MAX {
        assert!(found.offer(format!("name-{number:04}").as_bytes(), false));
    }
    // One that is there already takes no room.
    assert!(found.offer(b"name-0000", false));
    assert_eq!(found.addition(), "ame-0");
    assert!(found.rows(80).last().is_some_and(|row| row == "... and 800 more"));
    assert!(!found.offer(b"name-more", false));
    assert_eq!((found.addition(), found.only()), (String::new(), None));
    assert!(found.rows(80).last().is_some_and(|row| row == "... and more"));
    let mut cut = self::found("o", Place::File(""), &["one"]);
    cut.cut();
    assert_eq!((cut.addition(), cut.only()), (String::new(), None));
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn text(&mut self, alphabet: &str, len_max: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let len = self.below(len_max + 1);
        (0..len).map(|_| letters[self.below(letters.len())]).collect()
    }
}

/// For random names, the word goes on as all of them do and no further; what is listed is each of them once, within the width.
#[test]
fn random_names_are_completed() {
    let mut numbers = Numbers(19);
    for round in 0..5_000 {
        let mut names: Vec<String> = (0..numbers.below(12)).map(|_| numbers.text("abä.-", 6)).collect();
        let begin = numbers.text("abä", 2);
        let mut found = Found::new(&Word { place: Place::File("x/"), begin: &begin });
        names.iter().for_each(|name| assert!(found.offer(name.as_bytes(), false)));
        names.sort();
        names.dedup();
        names.retain(|name| name.starts_with(&begin) && !name.starts_with('.') && !name.is_empty());
        let (added, columns) = (found.addition(), 1 + numbers.below(60));
        let whole = begin.clone() + &added;
        match names.as_slice() {
            [] => assert_eq!(added, "", "round {round}"),
            [name] => assert_eq!(whole, name.to_string() + " ", "round {round}"),
            several => {
                assert!(several.iter().all(|name| name.starts_with(&whole)), "round {round}");
                let next = |name: &String| name[whole.len()..].chars().next();
                let differs = several.iter().any(|name| next(name) != next(&several[0]));
                assert!(differs || next(&several[0]).is_none(), "round {round}: {several:?} {whole:?}");
            }
        }
        let rows = found.rows(columns);
        let mut listed: Vec<&str> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
        listed.sort_unstable();
        assert_eq!(listed, names, "round {round}");
        let fits = |row: &String| row.chars().count() <= columns || row.split_whitespace().count() == 1;
        assert!(rows.iter().all(fits), "round {round}: {rows:?} on {columns}");
    }
}

/// Whatever is typed, a word that is found is the end of it.
#[test]
fn random_lines_have_a_word_or_none() {
    let mut numbers = Numbers(7);
    for _ in 0..20_000 {
        let line = numbers.text("ab /|<>&#ä \u{3000}cdrunhelp", 20);
        let Some(Word { place, begin }) = word(&line) else { continue };
        let end = match place {
            Place::File(path) | Place::Directory(path) => path.to_string() + begin,
            _ => begin.to_string(),
        };
        assert!(line.ends_with(&end) && !end.contains(char::is_whitespace), "{line:?}");
    }
}
