//! Both sides of `archive.idl`: replies with a part in memory, without a kernel between them.

mod archive;
mod chance;

use archive::Archive::*;
use stub::{DONE, Failure, Inbox, LONG_DONE, List, Part, Text, Uid, WIRE, Words};

/// What a server sends lies in it, or in the stub.
#[derive(Default)]
struct Keeper {
    text: String,
    body: Vec<u8>,
    numbers: Vec<i64>,
    stamps: Vec<Stamp>,
    grid: [[i32; 10]; 4],
    owner: Option<Owner>,
}

impl Shelf::Server for Keeper {
    fn title<'a>(&'a mut self, number: i32) -> Result<&'a str, Shelf::TitleError> {
        match number {
            -1 => Err(Shelf::TitleError::Closed(Closed { until: 99 })),
            -2 => {
                let place = "née ".repeat(800);
                Err(Shelf::TitleError::Moved(Moved { r#where: place }))
            }
            -3 => Err(Failure::Refused(0xfffe_0001).into()),
            _ => {
                self.text = "abcdefgß".chars().cycle().take(number as usize).collect();
                Ok(&self.text)
            }
        }
    }
    fn fetch<'a>(&'a mut self, name: &str) -> Result<(&'a str, &'a [u8], Kind), Shelf::FetchError> {
        if name.is_empty() {
            let (why, proof) = (Text::new("kein Name für nichts").unwrap(), List::new(&[7; 99]).unwrap());
            return Err(Shelf::FetchError::Missing(Missing { why, proof, ever: true }));
        }
        self.text = format!("<{name}>");
        self.body = name.bytes().cycle().take(1000 * name.len()).collect();
        Ok((&self.text, &self.body, Kind::Package))
    }
    fn squares<'a>(&'a mut self, roots: &[i64], factor: i16) -> Result<(&'a [i64], i16), Failure> {
        self.numbers = roots.iter().map(|root| root * root * i64::from(factor)).collect();
        Ok((&self.numbers, -factor))
    }
    fn sheet<'a>(&'a mut self, count: u16) -> Result<&'a [Stamp], Failure> {
        self.stamps = (0..count).map(|i| Stamp { value: i.into(), year: 1998, country: 49 }).collect();
        Ok(&self.stamps)
    }
    fn grid<'a>(&'a mut self, factor: i32) -> Result<&'a [[i32; 10]; 4], Failure> {
        self.grid = std::array::from_fn(|i| std::array::from_fn(|j| factor * (10 * i + j) as i32));
        Ok(&self.grid)
    }
    fn find<'a>(&'a mut self, name: &str) -> Result<(&'a Owner, &'a str), Failure> {
        self.text = name.to_uppercase();
        let short: String = name.chars().take(40).collect();
        let (name, code) = (Text::new(&short).unwrap(), List::new(&[1, 2, 3]).unwrap());
        let owner = self.owner.insert(Owner { name, code, known: true });
        Ok((owner, &self.text))
    }
    fn nickname<'a>(&'a mut self, polite: bool) -> Result<&'a str, Failure> {
        Ok(if polite { "Sehr geehrte Frau Müller" } else { "a nickname that has far more than thirty letters" })
    }
    #[rustfmt::skip]
    fn spread(&mut self, first: i64)
        -> Result<(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, bool), Failure>
    {
        let b = |i: i64| first + i;
        Ok((b(1), b(2), b(3), b(4), b(5), b(6), b(7), b(8), b(9), b(10), b(11), b(12), b(13), true))
    }
    #[rustfmt::skip]
    fn wide(&mut self, first: i64)
        -> Result<(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64), Failure>
    {
        let b = |i: i64| first + i;
        Ok((b(1), b(2), b(3), b(4), b(5), b(6), b(7), b(8), b(9), b(10), b(11)))
    }
    fn knock(&mut self) -> Result<(), Shelf::KnockError> {
        Err(Shelf::KnockError::Moved(Moved { r#where: "there".into() }))
    }
}

type Table = Shelf::Table<Keeper>;

fn replies() -> Box<Shelf::Replies> {
    Box::new(Shelf::Replies::new())
}

fn calls() {
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Shelf::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *replies(), good_calls).unwrap();
}

fn good_calls(inbox: &mut Inbox<Shelf::Replies>) {
    let shelf = Shelf::Client { server: Uid(3) };
    for number in (0..50).chain([4000]) {
        let expected: String = "abcdefgß".chars().cycle().take(number as usize).collect();
        match shelf.title(inbox, number) {
            Ok(text) => assert_eq!(text, expected),
            // What is too long for its type never leaves the server.
            Err(Shelf::TitleError::Failure(failure)) => {
                assert!(number == 4000 && failure == Failure::Refused(stub::MALFORMED))
            }
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    assert!(matches!(shelf.title(inbox, -1), Err(Shelf::TitleError::Closed(Closed { until: 99 }))));
    match shelf.title(inbox, -2) {
        Err(Shelf::TitleError::Moved(Moved { r#where })) => assert_eq!(&*r#where, "née ".repeat(800)),
        other => panic!("{other:?}"),
    }
    let refused = shelf.title(inbox, -3);
    assert!(matches!(refused, Err(Shelf::TitleError::Failure(Failure::Refused(0xfffe_0001)))));
    let (title, content, how) = shelf.fetch(inbox, "Grüße").unwrap();
    assert!(title == "<Grüße>" && content.len() == 7000 && how == Kind::Package);
    assert!(content.iter().zip("Grüße".bytes().cycle()).all(|(a, b)| *a == b));
    let Err(Shelf::FetchError::Missing(missing)) = shelf.fetch(inbox, "") else { panic!() };
    assert!(&*missing.why == "kein Name für nichts" && *missing.proof == [7; 99] && missing.ever);
    let roots: Vec<i64> = (0..500).collect();
    let (squares, factor) = shelf.squares(inbox, &roots, 2).unwrap();
    assert!(squares.iter().zip(&roots).all(|(a, b)| *a == 2 * b * b) && squares.len() == 500 && factor == -2);
    assert_eq!(shelf.squares(inbox, &[], 2), Ok((&[][..], -2)));
    assert_eq!(shelf.sheet(inbox, 100).unwrap()[99], Stamp { value: 99, year: 1998, country: 49 });
    assert!(shelf.sheet(inbox, 101).is_err());
    assert_eq!(shelf.grid(inbox, 3).unwrap()[3][9], 117);
    let (owner, name) = shelf.find(inbox, "née").unwrap();
    assert!(&*owner.name == "née" && *owner.code == [1, 2, 3] && owner.known && name == "NÉE");
    assert_eq!(shelf.nickname(inbox, true), Ok("Sehr geehrte Frau Müller"));
    assert_eq!(shelf.nickname(inbox, false), Err(Failure::Refused(stub::MALFORMED)));
    let (b1, .., b6, b7, b8, b9, b10, b11, b12, b13, last) = shelf.spread(inbox, 5).unwrap();
    assert!([b1, b6, b7, b8, b9, b10, b11, b12, b13] == [6, 11, 12, 13, 14, 15, 16, 17, 18] && last);
    assert_eq!(shelf.wide(5).unwrap(), (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    let Err(Shelf::KnockError::Moved(moved)) = shelf.knock(inbox) else { panic!() };
    assert_eq!(&*moved.r#where, "there");
    // Where another inbox is open, nothing is taken for the reply.
    let mut other = replies();
    let elsewhere = Inbox::open(&mut *other, |_| shelf.grid(inbox, 3).map(drop));
    assert_eq!(elsewhere, Ok(Err(Failure::OtherInbox)));
    assert_eq!(shelf.grid(inbox, 1).unwrap()[0][1], 1);
}

/// A server may answer with anything: a client has an error or values of the right types.
fn nonsense() {
    let mut random = chance::chance();
    WIRE.set(Some(Box::new(move |_, _, _| {
        let part = (random() % 4 > 0).then(|| Part {
            words: (0..[random() % 40, 0, 6, 20][(random() % 4) as usize])
                .map(|_| random() & 0x7f7f_7f7f_7f7f_7f01)
                .collect(),
            strings: (0..[0, 0, 0, 1, 2, 3][(random() % 6) as usize])
                .map(|_| (0..random() % 60).map(|_| random() as u8 & 0x7f).collect())
                .collect(),
        });
        let likely = part.as_ref().map_or(0, |part| 8 * part.words.len() as u64);
        let words: Words = std::array::from_fn(|_| match random() % 6 {
            0 => random(),
            1 => random() % 4,
            2 => random() % 64,
            3 => likely / 4,
            4 => likely / [1, 2, 8][(random() % 3) as usize] + random() % 9,
            _ => 0,
        });
        let label = [u32::MAX, u32::MAX, u32::MAX, 1, 2, random() as u32][(random() % 6) as usize];
        let eax = if part.is_some() { LONG_DONE } else { DONE } as u32;
        (u64::from(label) << 32 | u64::from(eax), words, part)
    })));
    let shelf = Shelf::Client { server: Uid(3) };
    let mut taken = [0; 9];
    Inbox::open(&mut *replies(), |inbox| {
        for _ in 0..50_000 {
            taken[0] += shelf.title(inbox, 1).map_or(0, |text| 1 + text.chars().count() / 5000);
            taken[1] += shelf.fetch(inbox, "x").map_or(0, |(text, list, _)| 1 + (text.len() + list.len()) / 100_000);
            taken[2] += shelf.squares(inbox, &[], 1).map_or(0, |(list, _)| 1 + list.len() / 501);
            taken[3] += shelf.sheet(inbox, 1).map_or(0, |list| 1 + list.len() / 101);
            taken[4] += shelf.grid(inbox, 1).map_or(0, |_| 1);
            taken[5] += shelf.find(inbox, "x").map_or(0, |(owner, _)| 1 + owner.name.chars().count() / 41);
            taken[6] += shelf.nickname(inbox, true).map_or(0, |text| 1 + text.chars().count() / 31);
            taken[7] += shelf.spread(inbox, 1).map_or(0, |_| 1);
            taken[8] += shelf.wide(1).map_or(0, |_| 1);
        }
    })
    .unwrap();
    assert!(taken.iter().all(|&taken| taken > 5), "{taken:?}");
}

fn main() {
    calls();
    nonsense();
}
