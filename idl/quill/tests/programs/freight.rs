//! Both sides of `freight.idl` over sockets: an any with a value of each type of the file.

mod connect;
mod freight;
mod freight_values;

use std::os::unix::net::{UnixListener, UnixStream};

use connect::connect;
use freight::Freight::*;
use freight::quill::any;
use freight::rt::{self, Failure};
use freight_values::{KINDS, bytes_of_all, nearly_right, no_values, some_any, too_deep, type_of};

fn label(text: &str) -> Label {
    text.into()
}

fn numbers(all: &[i32]) -> Numbers {
    all.into()
}

/// It makes each any again before it gives it back.
struct Keeper;

impl Harbour::Server for Keeper {
    fn weigh(&mut self, value: &any) -> Result<u32, Failure> {
        Ok(type_of(value).0)
    }
    fn turn(&mut self, value: &any) -> Result<any, Failure> {
        Ok(type_of(value).1)
    }
    fn search(&mut self, value: &any) -> Result<(), Harbour::SearchError> {
        Err(Harbour::SearchError::Found(Found { what: value.clone() }))
    }
    fn sorted(&mut self, some: &[any]) -> Result<Pile, Failure> {
        Ok(some.into())
    }
}

fn serve(mut stream: UnixStream) {
    rt::serve(&mut stream, |label, body| Harbour::dispatch(&mut Keeper, label, body)).unwrap();
}

fn call(stream: UnixStream) {
    let mut harbour = Harbour::Client { transport: stream };
    for which in 0..KINDS {
        let value = some_any(which);
        assert_eq!(harbour.weigh(&value).unwrap(), which);
        assert_eq!(harbour.turn(&value).unwrap(), value);
        match harbour.search(&value) {
            Err(Harbour::SearchError::Found(found)) => assert_eq!(found.what, value),
            other => panic!("{other:?}"),
        }
        let pile: Vec<any> = (0..3).map(|more| some_any((which + more) % KINDS)).collect();
        assert_eq!(harbour.sorted(&pile).unwrap(), pile);
    }
    assert_eq!(harbour.weigh(&any::from_long(3)).unwrap(), KINDS);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1..) {
        Some([role, path]) if role == "serve" => serve(UnixListener::bind(path).unwrap().accept().unwrap().0),
        Some([role, path]) if role == "call" => call(connect(path)),
        _ => {
            bytes_of_all();
            nearly_right();
            no_values();
            too_deep();
            let (one, other) = UnixStream::pair().unwrap();
            let server = std::thread::spawn(move || serve(other));
            call(one);
            server.join().unwrap();
            // Of more characters than its type allows nobody makes one, and an any within it has to be sound, too.
            assert_eq!(Label_to_any(&"x".repeat(21)), None);
            assert!(Label_to_any(&"é".repeat(20)).is_some());
            assert_eq!(Numbers_to_any(&vec![1; 201]), None);
        }
    }
}
