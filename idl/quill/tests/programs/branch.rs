//! A client and a server of `branch.idl`, whose objects refer to one another: `serve PATH` or `call PATH`.

mod stubs {
    include!("branch.rs");
}

use std::os::unix::net::UnixStream;

use stubs::Branch::*;
use stubs::rt::{self, Failure, NO_OBJECT, Object, Objects};

/// An account, which a table has.
struct Holding(i32);

impl Account::Server for Holding {
    fn add(&mut self, amount: i32) -> Result<i32, Failure> {
        self.0 += amount;
        Ok(self.0)
    }
}

/// The office knows the table and what it has taken into it.
struct Desk {
    objects: Objects,
    open: Vec<(String, Object)>,
}

impl Office::Server for Desk {
    fn enter(&mut self, name: &str) -> Result<Object, Office::EnterError> {
        if let Some((_, by)) = self.open.iter().find(|(known, _)| known == name) {
            return Err(Office::EnterError::Taken(Taken { by: *by }));
        }
        let mut holding = Holding(0);
        let object =
            self.objects.export(move |label, body| Account::dispatch(&mut holding, label, body));
        self.open.push((name.into(), object));
        Ok(object)
    }
    fn all(&mut self) -> Result<Vec<Object>, Failure> {
        Ok(self.open.iter().map(|(_, object)| *object).collect())
    }
    fn first(&mut self, than: Object) -> Result<Entry, Failure> {
        let found = self.open.iter().find(|(_, object)| *object != than);
        let (name, held) = found.cloned().unwrap_or_default();
        Ok(Entry { name, held })
    }
    fn close(&mut self, which: Object) -> Result<(), Failure> {
        self.objects.withdraw(which);
        self.open.retain(|(_, object)| *object != which);
        Ok(())
    }
    fn ask(&mut self, _: Object, amount: i32) -> Result<i32, Failure> {
        Ok(amount)
    }
}

fn call(mut stream: UnixStream) {
    let mut office = Office::Client { transport: stream.try_clone().unwrap() };
    let one = office.enter("one").unwrap();
    let two = office.enter("two").unwrap();
    assert_ne!(one, two);
    assert!(matches!(office.enter("one"), Err(Office::EnterError::Taken(Taken { by })) if by == one));
    assert_eq!(office.all().unwrap(), [one, two]);
    assert_eq!(office.first(one).unwrap(), Entry { name: "two".into(), held: two });
    let mut account = Account::Client { transport: stream.try_clone().unwrap() };
    for (object, amount, total) in [(one, 5, 5), (two, 7, 7), (one, 5, 10)] {
        rt::select(&mut stream, object).unwrap();
        assert_eq!(account.add(amount).unwrap(), total);
    }
    // None is the one that the connection began with; who is none of the server's is refused, and nothing has changed.
    rt::select(&mut stream, Object(0)).unwrap();
    office.close(two).unwrap();
    for dangling in [two, Object(99), Object(u64::MAX)] {
        assert!(matches!(rt::select(&mut stream, dangling), Err(Failure::Refused(NO_OBJECT))), "{dangling:?}");
    }
    assert_eq!(office.all().unwrap(), [one]);
    rt::select(&mut stream, one).unwrap();
    assert_eq!(account.add(1).unwrap(), 11);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, path] = &arguments[..] else { panic!("`serve PATH` or `call PATH`") };
    if role == "call" {
        let connect = |_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            UnixStream::connect(path).ok()
        };
        return call((0..1000).find_map(connect).expect("somebody serves"));
    }
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    let objects = Objects::new();
    let mut desk = Desk { objects: objects.clone(), open: Vec::new() };
    let root = objects.export(move |label, body| Office::dispatch(&mut desk, label, body));
    objects.serve(&mut listener.accept().unwrap().0, root).unwrap();
}
