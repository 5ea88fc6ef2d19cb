//! Both sides of `freight.idl` over Tern, without a kernel between them.

mod freight;
mod freight_values;

use freight::Freight::*;
use freight::quill::any;
use freight_values::{KINDS, bytes_of_all, nearly_right, no_values, some_any, too_deep, type_of};
use stub::{Failure, Inbox, List, Text, Uid, WIRE};

fn label(text: &str) -> Label {
    Text::new(text).unwrap()
}

fn numbers(all: &[i32]) -> Numbers {
    List::new(all).unwrap()
}

#[derive(Default)]
struct Keeper {
    kept: Option<any>,
    pile: Option<Pile>,
}

impl Harbour::Server for Keeper {
    fn weigh(&mut self, value: &any) -> Result<u32, Failure> {
        Ok(type_of(value).0)
    }
    fn turn<'a>(&'a mut self, value: &any) -> Result<&'a any, Failure> {
        Ok(self.kept.insert(type_of(value).1))
    }
    fn search(&mut self, value: &any) -> Result<(), Harbour::SearchError> {
        Err(Harbour::SearchError::Found(Found { what: value.clone() }))
    }
    fn sorted<'a>(&'a mut self, some: &[any]) -> Result<&'a [any], Failure> {
        Ok(self.pile.insert(List::new(some).unwrap()))
    }
}

type Table = Harbour::Table<Keeper>;

fn main() {
    bytes_of_all();
    nearly_right();
    no_values();
    too_deep();
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Harbour::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *Box::new(Harbour::Replies::new()), |inbox| {
        let harbour = Harbour::Client { server: Uid(3) };
        for which in 0..KINDS {
            let value = some_any(which);
            assert_eq!(harbour.weigh(&value), Ok(which));
            assert_eq!(harbour.turn(inbox, &value).as_ref(), Ok(&value));
            match harbour.search(inbox, &value) {
                Err(Harbour::SearchError::Found(found)) => assert_eq!(found.what, value),
                other => panic!("{other:?}"),
            }
            let pile: Vec<any> = (0..3).map(|more| some_any((which + more) % KINDS)).collect();
            assert_eq!(harbour.sorted(inbox, &pile).as_deref(), Ok(&pile[..]));
        }
    })
    .unwrap();
}
