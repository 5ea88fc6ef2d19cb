//! Somebody in a task of his own stands before an object of another task, whose answers are in memory: he has a client of its door and
//! what was made from the interface, hears of every call, and may let it fail. Before him stands another one like him. Who calls notices nothing, until the
//! object's task ends in the middle of a call; and then hears of that.
//!
//! The program starts itself for each of the three: `stub-test gallery LEVEL 0`, where level 0 has the object.

use crate::found::Gallery::{Artist, Guide, Hall, Missing, Record};
use crate::watched::line;
use crate::{begin, end, hand_out, handed_out};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Write};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use rt::api::{Name, names, process};
use rt::door::{self, Door, Reference};
use rt::println;
use rt::sync::Mutex;
use stub::{Argument, Called, Failure, Inbox, Text, View, Watch};
use sys::{TaskId, clock};

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = watched();
    println!(
        "SELFTEST watches in other tasks, before answers in memory: {}",
        if outcome.is_ok() { "ok" } else { "FAILED" }
    );
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Who serves has room for what is asked here. To be said before the program has its first object.
pub fn make_room() -> sys::Result<()> {
    door::make_room::<Hall::Object<Own>>()?;
    door::make_room::<Record::Object<Heard>>()
}

/// The object.
struct Own {
    sum: AtomicI32,
    hints: AtomicU32,
    artist: Artist,
    names: Vec<Text<120>>,
    picture: Vec<u8>,
    grid: [[i32; 10]; 5],
}

const PICTURE: usize = 70_000;

/// A picture's byte.
fn dot(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

impl Own {
    fn new() -> Option<Own> {
        Some(Own {
            sum: AtomicI32::new(0),
            hints: AtomicU32::new(0),
            artist: Artist { name: Text::new("Käthe")?, code: stub::List::new(b"K20")?, born: 1867 },
            names: ["one", "", "a third one"].into_iter().map(Text::new).collect::<Option<_>>()?,
            picture: (0..PICTURE).map(dot).collect(),
            grid: core::array::from_fn(|row| core::array::from_fn(|column| (10 * row + column) as i32)),
        })
    }
}

struct Leads(u32);

impl Guide::Server for Leads {
    fn floor(&self) -> Result<u32, Failure> {
        Ok(self.0)
    }
}

fn missing(why: &str, number: i32) -> Missing {
    Missing { why: Text::new(why).unwrap_or(stub::Blank::BLANK), number }
}

impl Hall::Server for Own {
    fn title(&self, number: u32) -> Result<&str, Hall::TitleError> {
        match number {
            0 => Ok(""),
            1 => Ok("A short title"),
            2 => Ok(
                "Ein längerer Titel, der in keinem Register Platz hätte, und in zweien auch nicht, und in dreien kaum",
            ),
            _ => Err(Hall::TitleError::Missing(missing("there is no such picture", number as i32))),
        }
    }
    fn picture(&self, bytes: u32) -> Result<&[u8], Failure> {
        self.picture.get(..bytes as usize).ok_or(Failure::Refused(5))
    }
    fn both(&self, asked: &str, number: i32) -> Result<(i32, &str, &[u8]), Failure> {
        Ok((number + asked.len() as i32, "both of them", &self.picture[..1000 + asked.len()]))
    }
    fn by(&self, title: &str) -> Result<(&Artist, &str), Failure> {
        Ok((&self.artist, if title.len() > 3 { "another title" } else { "" }))
    }
    fn names(&self, first: &str) -> Result<&[Text<120>], Failure> {
        Ok(if first == "all" { &self.names } else { &self.names[1..] })
    }
    fn grid(&self, factor: i32) -> Result<&[[i32; 10]; 5], Failure> {
        if factor == 1 { Ok(&self.grid) } else { Err(Failure::Refused(6)) }
    }
    fn asked(&self, it: Reference<Guide::Client<View>>) -> Result<&str, Failure> {
        Ok(if it.floor()? > 3 { "upstairs" } else { "down" })
    }
    fn sent(&self, floor: u32) -> Result<Reference<Guide::Client<View>>, Hall::SentError> {
        match floor {
            0..10 => Ok(door::serve(Guide::Object(Leads(floor))).map_err(Failure::Kernel)?.into()),
            _ => Err(Hall::SentError::Missing(missing("so high is no house", floor as i32))),
        }
    }
    fn add(&self, more: i32) -> Result<i32, Failure> {
        Ok(self.sum.fetch_add(more, Ordering::Relaxed) + more)
    }
    fn hint(&self, text: &str) -> Result<(), Failure> {
        self.hints.fetch_add(text.len() as u32, Ordering::Relaxed);
        Ok(())
    }
    fn leave(&self) -> Result<&str, Failure> {
        rt::exit(0)
    }
}

/// Writes down what is called and how that ended, and lets what it is told to fail.
struct Recorder {
    lines: Mutex<Vec<&'static str>>,
    /// The method that fails.
    broken: Mutex<String>,
}

/// Letters of a line.
const LINE: usize = 150;

impl Watch for Recorder {
    /// When it began, and how it was called.
    type Note = (u64, String);

    fn begins(&self, called: Called, arguments: &[Argument]) -> Result<(u64, String), Failure> {
        if *self.broken.lock() == called.method {
            return Err(Failure::Refused(7));
        }
        Ok((clock(), line(called, arguments)))
    }

    fn ended(&self, _: Called, (since, mut line): (u64, String), result: Result<&[Argument], &dyn Debug>) {
        let _ = write!(line, " -> {result:?}");
        if clock() < since {
            line = String::from("time runs backwards");
        }
        let line = line.chars().take(LINE).collect::<String>();
        self.lines.lock().push(Box::leak(line.into_boxed_str()));
    }
}

/// What the recorder has heard, for who asks.
struct Heard(&'static Recorder);

impl Record::Server for Heard {
    fn line(&self, number: u32) -> Result<&str, Record::LineError> {
        let line = self.0.lines.lock().get(number as usize).copied();
        line.ok_or_else(|| Record::LineError::Missing(missing("it was not called so often", number as i32)))
    }
    fn refuse(&self, method: &str) -> Result<(), Failure> {
        *self.0.broken.lock() = String::from(method);
        Ok(())
    }
}

fn name_of(level: usize) -> Option<Name> {
    Name::new(&format!("gallery-{level}"))
}

/// What the two other tasks do: level 0 has the object, and all others stand before the one below. Hands out the doors of the hall and of
/// what was heard.
pub fn serve(level: usize) -> i32 {
    let Some(doors) = doors(level) else { return 1 };
    let Some(name) = name_of(level) else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    hand_out(&doors)
}

fn doors(level: usize) -> Option<[Door; 2]> {
    make_room().ok()?;
    let recorder: &Recorder =
        Box::leak(Box::new(Recorder { lines: Mutex::new(Vec::new()), broken: Mutex::new(String::new()) }));
    let heard = door::serve(Record::Object(Heard(recorder))).ok()?;
    if level == 0 {
        return Some([door::serve(Hall::Object(Own::new()?)).ok()?, heard]);
    }
    let below = names::resolve(rt::home(), &name_of(level - 1)?).ok()?;
    let server = Hall::Client { server: &*Box::leak(Box::new(handed_out(below, 0).ok()?)) };
    // That is all there is to it.
    let between = Hall::Object(Hall::Watched { server, watch: recorder });
    Some([door::serve(between).ok()?, heard])
}

/// A task of the three, and its doors.
struct Stage {
    task: TaskId,
    hall: &'static Door,
    heard: &'static Door,
}

impl Stage {
    fn start(level: usize) -> Result<Stage, String> {
        let name = name_of(level).ok_or("no name")?;
        let (task, directory) = begin("gallery", level, 0, &name).map_err(failed)?;
        let door =
            |number| handed_out(directory, number).map(|door| &*Box::leak(Box::new(door))).map_err(failed);
        Ok(Stage { task, hall: door(0)?, heard: door(1)? })
    }
}

fn failed(error: impl Debug) -> String {
    format!("{error:?}")
}

fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?} instead of {expected:?}")) }
}

/// Memory for answers, for so long.
macro_rules! with_inbox {
    ($interface:ident, $with:expr) => {{
        let mut memory = alloc::vec![0; size_of::<$interface::Replies>().div_ceil(size_of::<u128>())];
        let room = $interface::Replies::in_place(&mut memory).ok_or("no room")?;
        let outcome: Result<_, String> = Inbox::open(room, $with).map_err(failed)?;
        outcome
    }};
}

/// What each visitor does, whatever stands between it and the object: by that alone it could not tell.
fn visit(hall: &'static Door, sum: &mut i32) -> Result<(), String> {
    let hall = Hall::Client { server: hall };
    with_inbox!(Hall, |inbox| {
        same("no title", hall.title(inbox, 0).map_err(failed), Ok(""))?;
        same("a title", hall.title(inbox, 1).map_err(failed), Ok("A short title"))?;
        same("a long title", hall.title(inbox, 2).map_err(failed)?.chars().count(), 100)?;
        match hall.title(inbox, 3) {
            Err(Hall::TitleError::Missing(why)) => same("why", why, missing("there is no such picture", 3))?,
            other => return Err(failed(other)),
        }
        for bytes in [0, 1, 9, 4096, 4097, PICTURE] {
            let picture = hall.picture(inbox, bytes as u32).map_err(failed)?;
            same("bytes", picture.len(), bytes)?;
            same("dots", picture.iter().zip(0..).all(|(&byte, at)| byte == dot(at)), true)?;
        }
        same("no picture", hall.picture(inbox, 1 << 20), Err(Failure::Refused(5)))?;
        let (number, told, shown) = hall.both(inbox, "four", 3).map_err(failed)?;
        same("both", (number, told, shown.len(), shown[1003]), (7, "both of them", 1004, dot(1003)))?;
        let (artist, title) = hall.by(inbox, "The title").map_err(failed)?;
        same("by", (&*artist.name, &*artist.code, artist.born), ("Käthe", &b"K20"[..], 1867))?;
        same("title", title, "another title")?;
        let names: Vec<String> =
            hall.names(inbox, "all").map_err(failed)?.iter().map(|name| String::from(&**name)).collect();
        same("names", names, ["one", "", "a third one"].map(String::from).to_vec())?;
        let grid = hall.grid(inbox, 1).map_err(failed)?;
        same("grid", (grid[0][0], grid[4][9]), (0, 49))?;
        same("no grid", hall.grid(inbox, 2).err(), Some(Failure::Refused(6)))?;
        *sum += 3;
        same("sum", hall.add(3), Ok(*sum))?;
        same("hint", hall.hint("a hint"), Ok(()))?;
        let guide = hall.sent(inbox, 4).map_err(failed)?;
        same("floor", guide.floor(), Ok(4))?;
        same("asked", hall.asked(inbox, &guide), Ok("upstairs"))?;
        match hall.sent(inbox, 10) {
            Err(Hall::SentError::Missing(why)) => same("why", why, missing("so high is no house", 10)),
            other => Err(failed(other)),
        }
    })
}

/// What a watch has heard of a visit.
const HEARD: [&str; 22] = [
    "title number=0 -> Ok([(\"result\", \"\")])",
    "title number=1 -> Ok([(\"result\", \"A short title\")])",
    "title number=2 -> Ok([(\"result\", \"Ein längerer Titel",
    "title number=3 -> Err(Missing(Missing { why: \"there is no such picture\", number: 3 }))",
    "picture bytes=0 -> Ok([(\"result\", [])])",
    "picture bytes=1 -> Ok([(\"result\", [0])])",
    "picture bytes=9 -> Ok([(\"result\", [0, 7, 14",
    "picture bytes=4096 -> Ok([(\"result\", [0, 7, 14",
    "picture bytes=4097 -> Ok([(\"result\", [0, 7, 14",
    "picture bytes=70000 -> Ok([(\"result\", [0, 7, 14",
    "picture bytes=1048576 -> Err(Refused(5))",
    "both asked=\"four\" number=3 -> Ok([(\"number\", 7), (\"told\", \"both of them\"), (\"shown\", [0, 7",
    "by title=\"The title\" -> Ok([(\"result\", Artist { name: \"Käthe\", code: [75, 50, 48], born: 1867 })",
    "names first=\"all\" -> Ok([(\"result\", [\"one\", \"\", \"a third one\"])])",
    "grid factor=1 -> Ok([(\"result\", [[0, 1, 2",
    "grid factor=2 -> Err(Refused(6))",
    "add more=3 -> Ok([(\"result\", ",
    "hint text=\"a hint\" -> Ok([])",
    "sent floor=4 -> Ok([(\"result\", object ",
    "asked it=object ",
    "sent floor=10 -> Err(Missing(Missing { why: \"so high is no house\", number: 10 }))",
    "leave -> Err(",
];

/// Whether a watch has heard of the calls of a visit from this number on.
fn heard(stage: &Stage, from: usize, expected: &[&str]) -> Result<(), String> {
    let record = Record::Client { server: stage.heard };
    with_inbox!(Record, |inbox| {
        for (expected, number) in expected.iter().zip(from as u32..) {
            let line = record.line(inbox, number).map_err(failed)?;
            let found = line.strip_prefix("Gallery::Hall.").is_some_and(|line| line.starts_with(expected));
            same(line, found, true)?;
        }
        let end = from + expected.len();
        match record.line(inbox, end as u32) {
            Err(Record::LineError::Missing(Missing { number, .. })) => same("end", number as usize, end),
            other => Err(failed(other)),
        }
    })
}

/// How often a watch has heard of a call that ended.
fn count(stage: &Stage) -> Result<usize, String> {
    let record = Record::Client { server: stage.heard };
    with_inbox!(Record, |inbox| Ok((0..).take_while(|&number| record.line(inbox, number).is_ok()).count()))
}

/// Who visits at the same time, and how often each.
const VISITORS: usize = 4;
const VISITS: usize = 5;

fn watched() -> Result<(), String> {
    let [object, first, second] = [Stage::start(0)?, Stage::start(1)?, Stage::start(2)?];
    let of_visit = &HEARD[..HEARD.len() - 1];
    let mut sum = 0;
    for stage in [&object, &first, &second] {
        visit(stage.hall, &mut sum)?;
    }
    heard(&first, 0, &[of_visit, of_visit].concat())?;
    heard(&second, 0, of_visit)?;
    // Either lets a call fail, and who is behind it hears nothing of that.
    let refuse =
        |stage: &Stage, method| Record::Client { server: stage.heard }.refuse(method).map_err(failed);
    let hall = Hall::Client { server: second.hall };
    with_inbox!(Hall, |inbox| {
        for (stage, method) in [(&first, "picture"), (&second, "add"), (&second, "by")] {
            refuse(stage, method)?;
            let outcome = match method {
                "picture" => hall.picture(inbox, 5).err(),
                "add" => hall.add(1000).err(),
                _ => hall.by(inbox, "any").err(),
            };
            same(method, outcome, Some(Failure::Refused(7)))?;
            refuse(stage, "")?;
        }
        Ok(())
    })?;
    heard(&first, 2 * of_visit.len(), &[])?;
    heard(&second, of_visit.len(), &["picture bytes=5 -> Err(Refused(7))"])?;
    visit(second.hall, &mut sum)?;
    several(second.hall)?;
    // In the middle of a call there is no object any more; those in between live, and say so.
    let ([before, others], left) = ([count(&first)?, count(&second)?], &HEARD[HEARD.len() - 1..]);
    with_inbox!(Hall, |inbox| same("left", hall.leave(inbox).is_err(), true))?;
    heard(&first, before, left)?;
    heard(&second, others, left)?;
    same("nobody there", hall.add(1).is_err(), true)?;
    with_inbox!(Hall, |inbox| same("nothing there", hall.title(inbox, 1).is_err(), true))?;
    let ended = process::wait(rt::home(), object.task, u64::MAX);
    same("the object's end", matches!(ended, Ok(Some(_))), true)?;
    same("those in between live", (end(first.task), end(second.task)), (true, true))
}

/// Several visit at the same time, so that each thread of those in between has answers of its own.
fn several(hall: &'static Door) -> Result<(), String> {
    let visitor = |number: usize| {
        move || {
            let hall = Hall::Client { server: hall };
            with_inbox!(Hall, |inbox| {
                for visit in 0..VISITS {
                    let bytes = 1 + (number * VISITS + visit) * 3000;
                    let picture = hall.picture(inbox, bytes as u32).map_err(failed)?;
                    let is_right = picture.iter().zip(0..).all(|(&byte, at)| byte == dot(at));
                    same("a picture", (picture.len(), is_right), (bytes, true))?;
                    let asked = &"asked by somebody"[..number + visit];
                    let (number, told, shown) = hall.both(inbox, asked, 0).map_err(failed)?;
                    let expected = (asked.len() as i32, "both of them", 1000 + asked.len());
                    same("both", (number, told, shown.len()), expected)?;
                }
                Ok(())
            })
        }
    };
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let visitors: Vec<_> = (0..VISITORS).map(|number| rt::thread::spawn(priority, visitor(number))).collect();
    for visitor in visitors {
        visitor.map_err(failed)?.join().ok_or("a visitor is gone")??;
    }
    Ok(())
}
