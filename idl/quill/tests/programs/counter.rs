//! Both sides of `counter.idl`: `serve PATH`, for two clients one after the other, and `call PATH`, which is both of them.

mod connect;
mod stubs {
    include!("counter.rs");
}

use std::collections::BTreeMap;
use std::os::unix::net::{UnixListener, UnixStream};

use stubs::Counter;
use stubs::rt::{Failure, NO_CONTEXT};

#[derive(Default)]
struct State {
    counters: BTreeMap<u64, i32>,
    marks: i32,
    last: u64,
}

impl Counter::Server for State {
    fn open(&mut self, first: i32) -> Result<u64, Failure> {
        if first < 0 {
            return Err(Failure::Refused(77));
        }
        self.last += 1;
        self.counters.insert(self.last, first);
        Ok(self.last)
    }
    fn next(&mut self, c: u64) -> Result<i32, Failure> {
        let Some(value) = self.counters.get_mut(&c) else { return Ok(-1) };
        *value += 1;
        Ok(*value - 1)
    }
    fn close(&mut self, c: u64) -> Result<u64, Failure> {
        self.counter_t_rundown(c);
        Ok(0)
    }
    fn exchange(&mut self, c: u64) -> Result<(u64, u64), Failure> {
        let new = self.open(100)?;
        if c != 0 {
            self.counter_t_rundown(c);
        }
        self.marks += 1;
        Ok((new, 5))
    }
    fn erase(&mut self, m: u64) -> Result<i32, Failure> {
        Ok(m as i32)
    }
    fn live(&mut self) -> Result<(i32, i32), Failure> {
        Ok((self.counters.len() as i32, self.marks))
    }
    fn counter_t_rundown(&mut self, handle: u64) {
        assert!(self.counters.remove(&handle).is_some());
    }
    fn mark_t_rundown(&mut self, handle: u64) {
        assert_eq!(handle, 5);
        self.marks -= 1;
    }
}

fn serve(path: &str) {
    let (listener, mut state) = (UnixListener::bind(path).unwrap(), State::default());
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        Counter::serve(&mut state, &mut stream).unwrap();
        assert!(state.counters.is_empty() && state.marks == 0);
    }
}

fn connect(path: &str) -> Counter::Client<UnixStream> {
    Counter::Client { transport: connect::connect(path) }
}

fn is_refused<T>(result: Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Refused(NO_CONTEXT)))
}

fn call(path: &str) {
    let mut client = connect(path);
    let (one, two) = (client.open(10).unwrap(), client.open(20).unwrap());
    assert!(one != 0 && two != 0 && one != two);
    assert!(matches!(client.open(-1), Err(Failure::Refused(77))));
    assert_eq!((client.next(one).unwrap(), client.next(two).unwrap(), client.next(0).unwrap()), (10, 20, -1));
    assert!(is_refused(client.next(9)) && is_refused(client.erase(one)));
    assert_eq!(client.close(one).unwrap(), 0);
    assert!(is_refused(client.next(one)) && is_refused(client.close(one)));
    let (new, mark) = client.exchange(two).unwrap();
    assert!(new != two && is_refused(client.next(two)));
    assert_eq!((client.next(new).unwrap(), client.erase(mark).unwrap()), (100, 5));
    for _ in 0..9 {
        client.open(1).unwrap();
    }
    assert_eq!(client.live().unwrap(), (10, 1));
    drop(client);
    // Nothing is left of the first, whose handles are nobody's.
    let mut client = connect(path);
    assert_eq!(client.live().unwrap(), (0, 0));
    assert!(is_refused(client.next(new)));
    let handle = client.open(3).unwrap();
    assert_eq!(client.next(handle).unwrap(), 3);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &*arguments[1] {
        "serve" => serve(&arguments[2]),
        _ => call(&arguments[2]),
    }
}
