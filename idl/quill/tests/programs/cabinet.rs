//! Both sides of `cabinet.idl` over sockets: `serve PATH` and `call PATH`.

mod stubs {
    include!("cabinet.rs");
}

use std::collections::HashSet;
use std::os::unix::net::{UnixListener, UnixStream};

use stubs::rt::{self, Failure, MALFORMED, Shared};
use stubs::*;

type Paper = Option<Shared<paper>>;

/// Where a value lies that is shared.
fn at<T>(value: &Option<Shared<T>>) -> Option<usize> {
    value.as_ref().map(|value| Shared::as_ptr(value).addr())
}

struct Clerk;

impl Cabinet::Server for Clerk {
    fn count(&mut self, one: &Paper, two: &Paper) -> Result<(i32, i32), Failure> {
        let (mut papers, mut titles) = (HashSet::new(), HashSet::new());
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
        Ok((papers.len() as i32, titles.len() as i32))
    }
    fn open(&mut self, one: &Paper) -> Result<(Paper, Paper), Failure> {
        Ok((one.clone(), one.as_ref().and_then(|paper| paper.next.clone())))
    }
    fn sheets(&mut self, n: i32, all: &[sheet], more: &Option<Shared<i32>>) -> Result<i32, Failure> {
        assert_eq!(all.len(), n as usize);
        let lists: HashSet<usize> = all.iter().filter_map(|sheet| at(&sheet.values)).collect();
        Ok(lists.len() as i32 + more.as_ref().map_or(0, |more| **more))
    }
}

fn calls(client: &mut Cabinet::Client<UnixStream>) {
    let title = |text: &str| Some(Shared::new(text.to_owned()));
    let (shared, own) = (title("both"), title("both"));
    let paper = |number, title: &Option<Shared<String>>, next: &Paper, same: &Paper| {
        Some(Shared::new(paper { number, title: title.clone(), next: next.clone(), same: same.clone() }))
    };
    let last = paper(3, &shared, &None, &None);
    let middle = paper(2, &shared, &last, &last);
    let first = paper(1, &own, &middle, &middle);
    let other = paper(4, &shared, &middle, &None);
    assert_eq!(client.count(&first, &other).unwrap(), (4, 2));
    assert_eq!(client.count(&first, &first).unwrap(), (3, 2));
    assert_eq!(client.count(&None, &last).unwrap(), (1, 1));
    let (all, second) = client.open(&first).unwrap();
    assert_eq!((&all, &second), (&first, &middle));
    let (all, second) = (all.unwrap(), second);
    assert!(at(&all.next) == at(&second) && at(&all.same) == at(&second));
    let second = second.unwrap();
    assert!(at(&second.next) == at(&second.same) && second.title == all.title && at(&second.title) != at(&all.title));
    assert_eq!(at(&second.next.as_ref().unwrap().title), at(&second.title));
    assert!(matches!(client.open(&None).unwrap(), (None, None)));
    let list = Some(Shared::new(vec![7, 8, 9]));
    let values = |list: &Option<Shared<Vec<i32>>>| sheet { n: 3, values: list.clone() };
    let mut all = vec![values(&list), values(&list), values(&Some(Shared::new(vec![7, 8, 9]))), values(&None)];
    assert_eq!(client.sheets(4, &all, &Some(Shared::new(100))).unwrap(), 102);
    all[0].n = 2;
    assert!(matches!(client.sheets(4, &all, &None), Err(Failure::TooLong)));
    // Chains as deep as one may go, and one more.
    let chain = |length| (0..length).fold(None, |chain, number| paper(number, &None, &chain, &chain));
    assert_eq!(client.count(&chain(64), &None).unwrap(), (64, 0));
    assert!(matches!(client.count(&chain(65), &None), Err(Failure::Refused(MALFORMED))));
    let many = |length| vec![sheet { n: length, values: Some(Shared::new(vec![0; length as usize])) }; 20_000];
    assert_eq!(client.sheets(20_000, &many(10), &None).unwrap(), 1);
    let each: Vec<sheet> = (0..20_000).map(|n| sheet { n: 1, values: Some(Shared::new(vec![n])) }).collect();
    assert_eq!(client.sheets(20_000, &each, &None).unwrap(), 20_000);
    // Looked at once for each of them.
    assert!(matches!(client.sheets(20_000, &many(40_000), &None), Err(Failure::Refused(MALFORMED))));
}

/// Numbers of values that are not there, of another type, or not there yet.
fn bad_numbers() {
    let answer = |body: &[u8]| Cabinet::dispatch(&mut Clerk, 0, body).map(|(label, _)| label);
    // number, no title, no next, no other; then, behind zeros, the second list.
    let papers = |first: &[u8], second: &[u8]| {
        let mut body = first.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend(second);
        answer(&body)
    };
    let paper = [1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0];
    assert_eq!(papers(&paper, &[2, 0, 0, 0, 0, 0, 0, 0]), Some(0), "the first once more");
    assert_eq!(papers(&paper, &[2, 0, 0, 0, 1, 0, 0, 0]), Some(MALFORMED), "none with that number");
    assert_eq!(papers(&paper, &[2, 0, 0, 0, 255, 255, 255, 255]), Some(MALFORMED), "a number without end");
    assert_eq!(papers(&paper, &[3, 0, 0, 0, 0, 0, 0, 0]), Some(MALFORMED), "neither there nor absent");
    let itself = [1, 0, 0, 0, 5, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(papers(&itself, &[0]), Some(MALFORMED), "one that contains itself");
    let title = [1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'x', 0, 0];
    assert_eq!(papers(&title, &[2, 0, 0, 0, 0, 0, 0, 0]), Some(0), "the paper");
    assert_eq!(papers(&title, &[2, 0, 0, 0, 1, 0, 0, 0]), Some(MALFORMED), "its title");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = &arguments[2];
    if arguments[1] == "serve" {
        bad_numbers();
        let (mut stream, _) = UnixListener::bind(path).unwrap().accept().unwrap();
        rt::serve(&mut stream, |label, body| Cabinet::dispatch(&mut Clerk, label, body)).unwrap();
        return;
    }
    let connect = |_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        UnixStream::connect(path).ok()
    };
    let transport = (0..1000).find_map(connect).expect("somebody serves");
    calls(&mut Cabinet::Client { transport });
}
