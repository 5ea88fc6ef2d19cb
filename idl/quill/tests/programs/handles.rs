//! Clients that ask the program whom to call: by automatic binding, and by handles of the file's own types.

mod stubs {
    include!("handles_stubs.rs");
}

use std::cell::RefCell;
use std::collections::VecDeque;

use stub::{Callee, DONE, Failure, WORDS, Words};
use stubs::I::{Binding, Bound};
use stubs::{box_t, store_t};

/// A server that says who it is, beside what it is given first; one of them is not there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct To(u64);

const NOBODY: To = To(9);

impl Callee for To {
    fn call<const IN: usize, const TAKES: bool>(self, _: u32, words: Words) -> (u64, Words) {
        said(format!("call {}", self.0));
        let mut back = [0; WORDS];
        back[0] = words[0] + 1000 * self.0;
        if self == NOBODY { (u64::from(u32::MAX) & 0x7fff_ffff, back) } else { (DONE, back) }
    }
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, _: Words) -> (u64, Words) {
        self.call::<IN, TAKES>(label, [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }
    fn send(self, _: u32, _: Words) -> Result<(), Failure> {
        unreachable!("nothing is oneway")
    }
    fn send_long(self, _: u32, _: Words) -> Result<(), Failure> {
        unreachable!("nothing is oneway")
    }
}

thread_local! {
    /// Record of what has happened.
    static SAID: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

fn said(what: String) {
    SAID.with_borrow_mut(|said| said.push_back(what));
}

/// That this has happened since it was last asked.
fn happened(all: &[&str]) {
    let said: Vec<String> = SAID.with_borrow_mut(|said| said.drain(..).collect());
    assert_eq!(said, all);
}

struct Finds;

impl Binding for Finds {
    type Server = To;
    fn server(&self) -> Result<To, Failure> {
        said("server".into());
        Ok(To(5))
    }
    fn bind_store_t(&self, store: &store_t) -> Result<To, Failure> {
        said(format!("bind store {}", store.number));
        if store.number < 0 { Err(Failure::Refused(3)) } else { Ok(To(store.number as u64)) }
    }
    fn unbind_store_t(&self, store: &store_t, server: To) {
        said(format!("unbind store {} {}", store.number, server.0));
    }
    fn bind_box_t(&self, number: box_t) -> Result<To, Failure> {
        said(format!("bind box {number}"));
        Ok(To(number as u64))
    }
    fn unbind_box_t(&self, number: box_t, server: To) {
        said(format!("unbind box {number} {}", server.0));
    }
    fn bind_name_t(&self, name: &str) -> Result<To, Failure> {
        said(format!("bind name {name}"));
        Ok(To(name.len() as u64))
    }
    fn bind_optional_name_t(&self, _: &Option<stub::String>) -> Result<To, Failure> {
        Ok(To(6))
    }
    fn bind_optional_store_t(&self, store: &Option<stub::Box<store_t>>) -> Result<To, Failure> {
        Ok(To(if store.is_some() { 7 } else { 8 }))
    }
}

fn main() {
    let client = Bound(Finds);
    let store = |number| store_t { number, shelf: 0 };
    assert!(client.who(&store(2)).is_ok());
    happened(&["bind store 2", "call 2", "unbind store 2 2"]);
    assert_eq!(client.who(&store(-1)), Err(Failure::Refused(3)));
    happened(&["bind store -1"]);
    // Somebody who is not there, of whom the program hears, too.
    assert!(client.who(&store(9)).is_err());
    happened(&["bind store 9", "call 9", "unbind store 9 9"]);
    assert!(client.add(3, 0).is_ok());
    happened(&["bind box 3", "call 3", "unbind box 3 3"]);
    assert!(client.swap(4, 1).is_ok());
    happened(&["bind box 4", "call 4", "unbind box 4 4"]);
    assert!(client.free(1, 2).is_ok());
    happened(&["server", "call 5"]);
    assert!(client.spell("four", 1).is_ok());
    happened(&["bind name four", "call 4"]);
    assert!(client.nothing(&None).is_ok());
    happened(&["call 8"]);
}
