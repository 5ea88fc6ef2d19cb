//! A client and a server of `bank.idl` in one process, over a socket; then the server alone against damaged requests.

mod chance;
mod connect;
mod stubs {
    include!("bank.rs");
}

use std::os::unix::net::UnixStream;

use connect::connect;
use stubs::Bank::*;
use stubs::rt::{self, Failure};

/// Answers with what it was given, so that the client can tell whether everything arrived.
#[derive(Default)]
struct Echo {
    owner: String,
    pings: Vec<(i32, String)>,
}

impl Checking::Server for Echo {
    fn balance(&mut self) -> Result<f64, Failure> {
        Ok(12.5)
    }
    fn owner(&mut self) -> Result<String, Failure> {
        Ok(self.owner.clone())
    }
    fn set_owner_(&mut self, value: &str) -> Result<(), Failure> {
        self.owner = value.into();
        Ok(())
    }
    fn deposit(&mut self, amount: f64) -> Result<(), Checking::DepositError> {
        match amount {
            a if a < 0.0 => Err(Overdrawn { by: -a, why: "nothing left".into() }.into_error()),
            0.0 => Err(Checking::DepositError::Unknown(Unknown {})),
            _ => Ok(()),
        }
    }
    fn ping(&mut self, label: i32, body: &str) -> Result<(), Failure> {
        self.pings.push((label, body.into()));
        Ok(())
    }
    fn find(
        &mut self,
        name: &str,
        server: Kind,
        from: &Customer,
    ) -> Result<(Customer, Customer, Vec<Customer>, Vec<u8>), Failure> {
        let mut found = from.clone();
        found.name = name.into();
        found.kind = server;
        Ok((found.clone(), from.clone(), vec![found, from.clone()], name.as_bytes().to_vec()))
    }
    fn turn(
        &mut self,
        e: &Entry,
        c: &Choice,
        wood: &[Tree],
        p: &[Point],
    ) -> Result<(Entry, Choice, Vec<Tree>, Vec<Point>), Failure> {
        Ok((e.clone(), c.clone(), wood.to_vec(), p.to_vec()))
    }
    fn many(
        &mut self,
        a: bool,
        b: u8,
        c: char,
        d: u8,
        e: i16,
        f: u16,
        g: i32,
        h: u32,
        i: i64,
        j: u64,
        k: f32,
        l: f64,
        r#match: Flags,
    ) -> Result<(char, i32), Failure> {
        let whole = [b.into(), d.into(), e.into(), f.into(), g.into(), h.into(), i, j as i64];
        let rest = [k as i64, l as i64, r#match.0.into(), a.into()];
        let sum = whole.into_iter().chain(rest).fold(0i64, i64::wrapping_add);
        Ok((c, sum as i32))
    }
    fn set_owner(&mut self, self_: i32) -> Result<i32, Failure> {
        Ok(-self_)
    }
}

trait IntoError {
    fn into_error(self) -> Checking::DepositError;
}

impl IntoError for Overdrawn {
    fn into_error(self) -> Checking::DepositError {
        Checking::DepositError::Overdrawn(self)
    }
}

fn customer(name: &str) -> Customer {
    Customer {
        name: name.into(),
        kind: Kind::Loan,
        numbers: vec![1, -2, 3],
        r#where: Point { a: 7, b: 0.5, c: [1, 2, -3] },
        active: true,
        flags: Flags(3),
    }
}

/// Serves a connection to its end; returns what came to the oneway method.
fn serve(mut stream: UnixStream) -> Vec<(i32, String)> {
    let mut echo = Echo::default();
    rt::serve(&mut stream, |label, body| Checking::dispatch(&mut echo, label, body)).unwrap();
    echo.pings
}

fn calls() {
    let (near, far) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || serve(far));
    call(near);
    assert_eq!(server.join().unwrap(), vec![(5, "knock".to_owned())]);
}

/// Calls every method of a server that answers as [`Echo`] does.
fn call(stream: UnixStream) {
    let mut client = Checking::Client { transport: stream };
    assert_eq!(client.balance().unwrap(), 12.5);
    client.set_owner_("Ada Lovelace, née Byron").unwrap();
    assert_eq!(client.owner().unwrap(), "Ada Lovelace, née Byron");
    client.deposit(1.0).unwrap();
    match client.deposit(-3.0) {
        Err(Checking::DepositError::Overdrawn(e)) => {
            assert_eq!((e.by, e.why.as_str()), (3.0, "nothing left"))
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(client.deposit(0.0), Err(Checking::DepositError::Unknown(_))));
    client.ping(5, "knock").unwrap();
    let from = customer("x");
    let (found, same, all, bytes) = client.find("y", Kind::Savings, &from).unwrap();
    assert_eq!((found.name.as_str(), found.kind, &same), ("y", Kind::Savings, &from));
    assert_eq!((all, bytes), (vec![found, from], b"y".to_vec()));
    let tree = Tree {
        value: 1,
        children: vec![Tree { value: 2, children: vec![] }, Tree { value: 3, children: vec![] }],
    };
    let points = vec![Point { a: 1, b: 2.0, c: [3, 4, 5] }, Point { a: 6, b: -7.0, c: [8, 9, 10] }];
    let entries =
        [Entry::amount(4), Entry::text(Kind::Savings, "s".into()), Entry::text(Kind::Loan, String::new())];
    let choices = [Choice::points(points.clone()), Choice::w('ß'), Choice::other(77, true)];
    for (e, c) in entries.iter().zip(&choices) {
        let result = client.turn(e, c, std::slice::from_ref(&tree), &points).unwrap();
        assert_eq!(result, (e.clone(), c.clone(), vec![tree.clone()], points.clone()));
    }
    let many = client.many(true, 2, 'z', 4, -5, 6, -7, 8, -9, 10, 11.0, -12.0, Flags::joint).unwrap();
    assert_eq!(many, ('z', 1 + 2 + 4 - 5 + 6 - 7 + 8 - 9 + 10 + 11 - 12 + 2));
    assert_eq!(client.set_owner(3).unwrap(), -3);
    // What its type forbids does not leave the client.
    assert!(matches!(client.find("longer than eight", Kind::Loan, &customer("x")), Err(Failure::TooLong)));
    let mut greedy = customer("x");
    greedy.numbers = vec![0; 5];
    assert!(matches!(client.find("y", Kind::Loan, &greedy), Err(Failure::TooLong)));
}

/// Keeps what a client sends, instead of sending it.
#[derive(Default)]
struct Tap(Vec<(u32, Vec<u8>)>);

impl rt::Transport for &mut Tap {
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), Failure> {
        self.0.push((label, body.to_vec()));
        Err(Failure::Refused(0))
    }
    fn send(&mut self, label: u32, body: &[u8]) -> Result<(), Failure> {
        self.0.push((label, body.to_vec()));
        Ok(())
    }
}

fn damaged_requests() {
    let mut tap = Tap::default();
    let mut client = Checking::Client { transport: &mut tap };
    let deep =
        (0..20).fold(Tree { value: 0, children: vec![] }, |t, value| Tree { value, children: vec![t] });
    let _ = client.find("y", Kind::Savings, &customer("abc"));
    let _ = client.turn(&Entry::amount(4), &Choice::w('w'), &[deep], &[]);
    let _ = client.many(true, 2, 'z', 4, -5, 6, -7, 8, -9, 10, 11.0, -12.0, Flags(1));
    let _ = client.set_owner_("abc");
    let _ = client.ping(1, "abc");
    let mut chance = chance::chance();
    let mut random = move |n: usize| (chance() % n.max(1) as u64) as usize;
    let (mut refused, mut taken) = (0, 0);
    let mut echo = Echo::default();
    for run in 0..60_000 {
        let (label, mut body) = tap.0[run % tap.0.len()].clone();
        for _ in 0..1 + random(3) {
            match random(4) {
                0 => body.truncate(random(body.len() + 1)),
                1 => body.extend(std::iter::repeat_n(random(256) as u8, random(20))),
                2 if body.len() >= 4 => {
                    let at = random(body.len() - 3);
                    body[at..at + 4].copy_from_slice(&[0xff; 4]);
                }
                _ if !body.is_empty() => {
                    let at = random(body.len());
                    body[at] = random(256) as u8;
                }
                _ => {}
            }
        }
        match Checking::dispatch(&mut echo, label, &body) {
            Some((rt::MALFORMED, _)) => refused += 1,
            _ => taken += 1,
        }
    }
    assert!(refused > 10_000 && taken > 100, "{refused} refused, {taken} taken");
    assert_eq!(Checking::dispatch(&mut echo, 999, &[]), Some((rt::NO_METHOD, vec![])));
    // Deeper than any value may be.
    let mut body = 1u32.to_le_bytes().to_vec();
    body.extend((0..100_000).flat_map(|_| [1, 0, 0, 0, 1, 0, 0, 0]));
    let mut input = rt::In::new(&body);
    assert!(<Vec<Tree> as rt::Wire>::get(&mut input).is_err());
    println!("{refused} refused, {taken} taken");
}

/// Without arguments both sides of everything; with `serve PATH` or `call PATH` one side, for a program in another
/// language on the other.
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1..) {
        Some([role, path]) if role == "serve" => {
            let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
            assert_eq!(serve(listener.accept().unwrap().0), vec![(5, "knock".to_owned())]);
        }
        Some([role, path]) if role == "call" => call(connect(path)),
        _ => {
            calls();
            damaged_requests();
        }
    }
}
