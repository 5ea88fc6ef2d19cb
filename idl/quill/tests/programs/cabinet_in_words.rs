//! Both sides of `cabinet.idl` over Tern's ipc, without a kernel between them: what is shared is shared on the other side, too.

mod cabinet;
mod chance;

use cabinet::Cabinet;
use cabinet::{paper, sheet};
use stub::{DONE, Failure, Inbox, MALFORMED, Part, Shared, Uid, WIRE};

type Paper = Option<Shared<paper>>;

/// Where a value lies that is shared.
fn at<T>(value: &Option<Shared<T>>) -> Option<usize> {
    value.as_ref().map(|value| Shared::as_ptr(value).addr())
}

#[derive(Default)]
struct Clerk {
    all: Paper,
    second: Paper,
    calls: u32,
}

impl Cabinet::Server for Clerk {
    fn count(&mut self, one: &Paper, two: &Paper) -> Result<(i32, i32), Failure> {
        self.calls += 1;
        let (mut papers, mut titles) = (Vec::new(), Vec::new());
        for list in [one, two] {
            let mut next = list;
            while let Some(paper) = next {
                for one in [next, &paper.same] {
                    papers.extend(at(one));
                    titles.extend(one.as_ref().and_then(|paper| at(&paper.title)));
                }
                next = &paper.next;
            }
        }
        for all in [&mut papers, &mut titles] {
            all.sort();
            all.dedup();
        }
        Ok((papers.len() as i32, titles.len() as i32))
    }
    fn open<'a>(&'a mut self, one: &Paper) -> Result<(&'a Paper, &'a Paper), Failure> {
        self.calls += 1;
        (self.all, self.second) = (one.clone(), one.as_ref().and_then(|paper| paper.next.clone()));
        Ok((&self.all, &self.second))
    }
    fn sheets(&mut self, n: i32, all: &[sheet], more: &Option<Shared<i32>>) -> Result<i32, Failure> {
        self.calls += 1;
        assert_eq!(all.len(), n as usize);
        let mut lists: Vec<usize> = all.iter().filter_map(|sheet| at(&sheet.values)).collect();
        lists.sort();
        lists.dedup();
        Ok(lists.len() as i32 + more.as_ref().map_or(0, |more| **more))
    }
}

type Table = Cabinet::Table<Clerk>;

fn make(number: i32, title: &Option<Shared<String>>, next: &Paper, same: &Paper) -> Paper {
    Some(Shared::new(paper { number, title: title.clone(), next: next.clone(), same: same.clone() }))
}

/// A list of three, in which the last two are there twice.
fn list() -> Paper {
    let (shared, own) = (Some(Shared::new("both".into())), Some(Shared::new("both".into())));
    let last = make(3, &shared, &None, &None);
    let middle = make(2, &shared, &last, &last);
    make(1, &own, &middle, &middle)
}

fn calls(inbox: &mut Inbox<Cabinet::Replies>) {
    let cabinet = Cabinet::Client { server: Uid(3) };
    let first = list();
    assert_eq!(cabinet.count(&first, &first), Ok((3, 2)));
    assert_eq!(cabinet.count(&first, &list()), Ok((6, 4)));
    let (all, second) = cabinet.open(inbox, &first).unwrap();
    assert_eq!((&all, &second), (&first, &first.as_ref().unwrap().next));
    let all = all.unwrap();
    assert!(at(&all.next) == at(&second) && at(&all.same) == at(&second));
    assert_eq!(cabinet.open(inbox, &None).unwrap(), (None, None));
    let values = |values: &Option<Shared<Vec<i32>>>| sheet { n: 2, values: values.clone() };
    let list = Some(Shared::new(vec![1, 2]));
    let few = [values(&list), values(&None), values(&list), values(&Some(Shared::new(vec![1, 2])))];
    assert_eq!(cabinet.sheets(4, &few, &Some(Shared::new(100))), Ok(102));
    // The most that there may be, and one more.
    let many = |count: i32| (0..count).map(|n| values(&Some(Shared::new(vec![n, n])))).collect::<Vec<_>>();
    assert_eq!(cabinet.sheets(64, &many(64), &None), Ok(64));
    assert_eq!(cabinet.sheets(65, &many(65), &None), Err(Failure::TooLong));
    let chain = |length| (0..length).fold(None, |chain, number| make(number, &None, &chain, &chain));
    assert_eq!(cabinet.count(&chain(64), &None), Ok((64, 0)));
    assert!(cabinet.count(&chain(65), &None).is_err());
}

/// Words that are nearly right: a request of a client, and one of them changed.
fn damaged_messages() {
    let mut random = chance::chance();
    let (mut clerk, mut room) = (Clerk::default(), Box::new(Cabinet::Room::new()));
    let requests = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let tap = requests.clone();
    WIRE.set(Some(Box::new(move |label, words, part| {
        tap.borrow_mut().push((label, words, part));
        (u64::from(MALFORMED) << 32 | u64::from(DONE as u32), [0; 11], None)
    })));
    let _ = Cabinet::Client { server: Uid(3) }.count(&list(), &list());
    let (label, words, part) = requests.borrow()[0].clone();
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..100_000 {
        let mut part: Part = part.clone().unwrap();
        let at = random() as usize % part.words.len();
        part.words[at] ^= [3, 1 << (random() % 8)][(random() % 2) as usize] << (8 * (random() % 8));
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
    assert!(refused > 20_000 && taken > 10_000, "{refused} {taken}");
}

fn main() {
    let (mut clerk, mut room) = (Clerk::default(), Box::new(Cabinet::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut clerk, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *Box::new(Cabinet::Replies::new()), calls).unwrap();
    damaged_messages();
}
