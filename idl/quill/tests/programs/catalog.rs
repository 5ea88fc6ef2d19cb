//! Both sides of `catalog.idl`: what is read piece by piece, without a kernel between them.

mod catalog;
mod chance;

use catalog::Catalog::*;
use stub::{DONE, Failure, Inbox, LONG_DONE, List, MALFORMED, Part, Text, Uid, WIRE, Words};

#[derive(Default)]
struct Clerk {
    names: Option<Names>,
    folders: Option<Folders>,
    first: Option<Entry>,
    mark: Option<Mark>,
    label: String,
    calls: u32,
}

impl Index::Server for Clerk {
    fn turn<'a>(&'a mut self, start: &[Text<80>], times: i32) -> Result<&'a [Text<80>], Failure> {
        self.calls += 1;
        let mut names = start.to_vec();
        names.rotate_left(times as usize % start.len().max(1));
        Ok(self.names.insert(List::new(&names).unwrap()))
    }
    fn arrange<'a>(
        &'a mut self,
        all: &[Folder],
        stamp: &[u8],
    ) -> Result<(&'a [Folder], &'a Entry, &'a str), Index::ArrangeError> {
        self.calls += 1;
        let Some(first) = all.first() else {
            let what = Entry::text(3, Text::new("keine Mappe für nichts").unwrap());
            let r#where = [Text::new("here").unwrap(), Text::new("").unwrap()];
            return Err(Index::ArrangeError::Lost(Lost { what, r#where, how: -1 }));
        };
        let mut sorted = all.to_vec();
        sorted.reverse();
        self.label = format!("{} bytes", stamp.len());
        let first = self.first.insert(Entry::whole(first.clone()));
        Ok((self.folders.insert(List::new(&sorted).unwrap()), first, &self.label))
    }
    fn swap<'a>(
        &'a mut self,
        one: &Mark,
        other: &Entry,
        number: i64,
    ) -> Result<(&'a Entry, &'a Mark), Failure> {
        self.calls += 1;
        let other = if number == 0 { other.clone() } else { Entry::number(number) };
        Ok((self.first.insert(other), self.mark.insert(one.clone())))
    }
    fn forget(&mut self, all: &[Text<80>]) -> Result<(), Failure> {
        self.calls += 1;
        self.label = all.iter().map(|name| &**name).collect();
        Ok(())
    }
    fn count(&mut self, what: &Entry, rows: &[Text<80>; 2]) -> Result<i32, Failure> {
        self.calls += 1;
        let rows: usize = rows.iter().map(|row| row.chars().count()).sum();
        Ok(rows as i32 + matches!(what, Entry::rest(77, [1, 2, 3])) as i32)
    }
}

type Table = Index::Table<Clerk>;

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).unwrap()
}

fn names(count: usize) -> Vec<Text<80>> {
    (0..count).map(|i| text(&"née, größer als acht"[..[0, 1, 3, 12][i % 4]])).collect()
}

fn folder(pages: i32) -> Folder {
    let page = |page: i32| List::new(&[page, 1, 2, 3, 4][..page as usize]).unwrap();
    let pages: Vec<Page> = (0..pages).map(page).collect();
    Folder { title: text("Mappe"), pages: List::new(&pages).unwrap(), how: Kind::Letter }
}

fn calls() {
    let (mut clerk, mut room) = (Clerk::default(), Box::new(Index::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut clerk, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *Box::new(Index::Replies::new()), good_calls).unwrap();
}

fn good_calls(inbox: &mut Inbox<Index::Replies>) {
    let index = Index::Client { server: Uid(3) };
    for count in 0..=30 {
        let all = names(count);
        let mut turned = all.clone();
        turned.rotate_left(3 % count.max(1));
        assert_eq!(*index.turn(inbox, &all, 3).unwrap(), turned[..], "{count}");
        index.forget(&all).unwrap();
    }
    assert_eq!(index.turn(inbox, &names(31), 3), Err(Failure::TooLong));
    assert_eq!(index.turn(inbox, &[text(&"x".repeat(21))], 3), Err(Failure::TooLong));
    let folders = [folder(0), folder(4), folder(1)];
    let (back, first, label) = index.arrange(inbox, &folders, &[7; 5000]).unwrap();
    assert!(*back == [folder(1), folder(4), folder(0)] && first == Entry::whole(folder(0)));
    assert_eq!(label, "5000 bytes");
    let Err(Index::ArrangeError::Lost(lost)) = index.arrange(inbox, &[], &[]) else { panic!() };
    assert!(lost.what == Entry::text(3, text("keine Mappe für nichts")) && lost.how == -1);
    assert_eq!(lost.r#where, [text("here"), text("")]);
    let marks = [Mark::all(List::new(&names(9)).unwrap()), Mark::sign(b'!'), Mark::none(Kind::Package)];
    let others = [Entry::number(-1), Entry::text(2, text("two")), Entry::whole(folder(3)), Entry::rest(9, [1, 2, 3])];
    for mark in &marks {
        for other in &others {
            assert_eq!(index.swap(inbox, mark, other, 0).unwrap(), (other.clone(), mark.clone()));
        }
    }
    assert_eq!(index.swap(inbox, &marks[1], &others[0], 8).unwrap().0, Entry::number(8));
    assert_eq!(index.count(&Entry::rest(77, [1, 2, 3]), &[text("née"), text("!")]), Ok(5));
}

/// Words that are nearly right: a request of a client, and one of them changed.
fn damaged_messages() {
    let mut random = chance::chance();
    let (mut clerk, mut room) = (Clerk::default(), Box::new(Index::Room::new()));
    let requests = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let tap = requests.clone();
    WIRE.set(Some(Box::new(move |label, words, part| {
        tap.borrow_mut().push((label, words, part));
        (u64::from(MALFORMED) << 32 | u64::from(DONE as u32), [0; 11], None)
    })));
    Inbox::open(&mut *Box::new(Index::Replies::new()), |inbox| {
        let index = Index::Client { server: Uid(3) };
        let _ = index.turn(inbox, &names(7), 3).is_ok();
        let _ = index.arrange(inbox, &[folder(3), folder(1)], &[7; 50]).is_ok();
        let _ = index.swap(inbox, &Mark::sign(b'x'), &Entry::text(2, text("two")), 0).is_ok();
        let _ = index.count(&Entry::number(5), &[text("née"), text("!")]).is_ok();
        let _ = index.forget(&names(3)).is_ok();
    })
    .unwrap();
    let (mut refused, mut taken) = (0, 0);
    for run in 0..200_000 {
        let (label, mut words, part) = requests.borrow()[run % 5].clone();
        let mut part: Part = part.unwrap();
        let at = random() as usize % part.words.len();
        match random() % 8 {
            0 => words[2] = random(),
            1 => part.words.truncate(at),
            2 => part.words.push(random() % 2),
            3 => part.strings.push(vec![1; random() as usize % 60]),
            _ => part.words[at] ^= 1 << (random() % 64),
        }
        let before = clerk.calls;
        let (rax, reply, _) =
            stub::answer::<Table>(&mut clerk, &mut room, &Table::PLACES, label, words, Some(&part));
        if (rax >> 32) as u32 == MALFORMED {
            refused += 1;
            assert!(clerk.calls == before && reply == [0; 11]);
        } else {
            taken += 1;
        }
    }
    assert!(refused > 50_000 && taken > 20_000, "{refused} {taken}");
}

/// A server may answer with anything: a client has an error or values of the right types.
fn nonsense() {
    let mut random = chance::chance();
    WIRE.set(Some(Box::new(move |_, _, _| {
        let count = 1 + random() % 40;
        let words = (0..count).map(|_| [0, 1, 1 << 32, random() & 0x7f7f_7f7f_7f7f_7f01][(random() % 4) as usize]);
        let words: Vec<u64> = words.collect();
        let strings = (0..random() % 2).map(|_| (0..random() % 60).map(|_| random() as u8 & 0x7f).collect()).collect();
        let label = [u32::MAX, u32::MAX, u32::MAX, 1, 2, random() as u32][(random() % 6) as usize];
        let registers: Words = std::array::from_fn(|_| random() % 4);
        (u64::from(label) << 32 | u64::from(LONG_DONE as u32), registers, Some(Part { words, strings }))
    })));
    let index = Index::Client { server: Uid(3) };
    let (mut taken, mut lost) = ([0; 2], 0);
    Inbox::open(&mut *Box::new(Index::Replies::new()), |inbox| {
        for _ in 0..100_000 {
            let turned = index.turn(inbox, &[], 0);
            taken[0] += turned.map_or(0, |names| 1 + names.iter().filter(|name| name.chars().count() > 20).count());
            taken[1] += index.swap(inbox, &Mark::sign(1), &Entry::number(1), 1).map_or(0, |_| 1);
            lost += matches!(index.arrange(inbox, &[], &[]), Err(Index::ArrangeError::Lost(_))) as u32;
        }
    })
    .unwrap();
    assert!(taken.iter().all(|&taken| taken > 5) && lost > 5, "{taken:?} {lost}");
}

fn main() {
    calls();
    damaged_messages();
    nonsense();
}
