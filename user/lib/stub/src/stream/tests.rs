//! Tests of values that are written and read piece by piece.

use super::*;

type Names = List<Text<8>, 3>;

fn names(all: &[&str]) -> Names {
    let mut left = all.iter();
    let fill = || left.next().and_then(|name| Text::new(name)).ok_or(Malformed);
    List::try_fill(all.len(), fill).unwrap()
}

#[test]
fn values_come_back_and_nothing_shows() {
    let mut words = [u64::MAX; 8];
    let mut out = Out::new(&mut words);
    true.put(&mut out);
    names(&["one", "", "née"]).put(&mut out);
    out.align(8);
    (-7i16).put(&mut out);
    assert_eq!(out.finish(), Some(6));
    assert_eq!(words[..2], [0x3_0000_0001, 0x0065_6e6f_0000_0003]);
    let mut from = In::new(&words[..6]);
    assert_eq!(bool::get(&mut from), Ok(true));
    assert_eq!(Names::get(&mut from), Ok(names(&["one", "", "née"])));
    from.align(8).unwrap();
    assert_eq!(i16::get(&mut from), Ok(-7));
    assert_eq!(from.finish(), Ok(()));
}

#[test]
fn what_does_not_fit_is_not_written() {
    for room in 0..5 {
        let mut words = [0; 8];
        let mut out = Out::new(&mut words[..room]);
        names(&["one", "two", "three"]).put(&mut out);
        assert_eq!(out.finish(), (room == 4).then_some(4), "{room}");
        assert_eq!(words[room..], [0; 8][room..]);
    }
}

#[test]
fn what_lies_elsewhere_comes_back() {
    type Tree = Vec<Option<Box<Vec<String>>>>;
    let tree: Tree = Vec::from([None, Some(Box::new(Vec::from(["one".into(), String::new()]))), None]);
    let mut words = [u64::MAX; 8];
    let mut out = Out::new(&mut words);
    tree.put(&mut out);
    let end = out.finish().unwrap();
    let mut from = In::new(&words[..end]);
    assert_eq!(Tree::get(&mut from), Ok(tree));
    assert_eq!(from.finish(), Ok(()));
    for cut in 0..end {
        assert_eq!(Tree::get(&mut In::new(&words[..cut])), Err(Malformed), "{cut}");
    }
    let claims = |words: &[u64]| Tree::get(&mut In::new(words)).err();
    assert_eq!(claims(&[u32::MAX.into()]), Some(Malformed), "elements that are not there");
    assert_eq!(claims(&[2 << 32 | 1]), Some(Malformed), "neither there nor absent");
}

/// A value that others may share, and a list of such.
type Pair = (Option<Shared<String>>, Vec<Option<Shared<u8>>>);

fn write_pair(pair: &Pair, words: &mut [u64]) -> Option<usize> {
    let mut out = Out::new(words);
    pair.0.put(&mut out);
    pair.1.put(&mut out);
    out.finish()
}

fn read_pair(words: &[u64]) -> Result<Pair, Malformed> {
    let mut from = In::new(words);
    let pair = (Option::get(&mut from)?, Vec::get(&mut from)?);
    from.finish().map(|()| pair)
}

#[test]
fn what_is_shared_is_there_once() {
    let (one, other) = (Some(Shared::new(7)), Some(Shared::new(7)));
    let pair: Pair = (Some(Shared::new("x".into())), Vec::from([one.clone(), None, other, one]));
    let mut words = [u64::MAX; 8];
    let end = write_pair(&pair, &mut words).unwrap();
    assert_eq!(end, 4);
    let got = read_pair(&words[..end]).unwrap();
    assert_eq!(got, pair);
    let same = |a: usize, b: usize| match (&got.1[a], &got.1[b]) {
        (Some(a), Some(b)) => Shared::ptr_eq(a, b),
        _ => false,
    };
    assert!(same(0, 3) && !same(0, 2));
    for number in [0u64, 3, u32::MAX.into()] {
        let mut bad = words;
        // It is all that the last word has: the text is 0, and there are three.
        bad[end - 1] = number;
        assert_eq!(read_pair(&bad[..end]), Err(Malformed), "{number}");
    }
}

#[test]
fn no_more_is_shared_than_a_table_holds() {
    for count in [SHARED_MAX - 1, SHARED_MAX] {
        let list = (0..count).map(|_| Some(Shared::new(7))).collect();
        let mut words = [0; 64];
        let end = write_pair(&(Some(Shared::new(String::new())), list), &mut words);
        assert_eq!(end.is_some(), count < SHARED_MAX);
        if let Some(end) = end {
            assert!(read_pair(&words[..end]).is_ok());
        }
    }
    // Beginnings of values that are there, one more than a table holds.
    let mut bytes = [1u8; 8 * 24];
    bytes[..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SHARED_MAX as u8, 0, 0, 0]);
    let words: [u64; 24] =
        core::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap()));
    assert_eq!(read_pair(&words[..2 + SHARED_MAX / 4]), Err(Malformed));
}

/// Places of references that somebody has.
type Places = std::rc::Rc<std::cell::RefCell<Vec<u64>>>;

std::thread_local! {
    static HELD: Places = Places::default();
}

fn held() -> Vec<u64> {
    HELD.with(|held| held.borrow().clone())
}

/// A reference that is known by its place; 0 is none. It is given back when it is dropped.
#[derive(Debug, PartialEq)]
struct Token(u64);

impl Drop for Token {
    fn drop(&mut self) {
        HELD.with(|held| held.borrow_mut().retain(|place| *place != self.0));
    }
}

impl Wire for Token {
    fn put(&self, out: &mut Out) {
        out.hand((self.0 != 0).then_some(|granted| (Fpage(self.0), u64::from(granted))));
    }
    fn get(from: &mut In) -> Result<Token, Malformed> {
        Ok(Token(from.handed()?.map_or(0, |[place, _]| place)))
    }
}

impl Blank for Token {
    const BLANK: Token = Token(0);
}

impl Gives for Token {
    fn give(&mut self) {
        core::mem::forget(core::mem::replace(self, Token(0)));
    }
}

/// References that have come; a place of 0 stands for one that was said to come and did not.
struct Come<'a>(&'a [u64]);

impl Arrived for Come<'_> {
    fn next(&mut self) -> Option<[u64; 2]> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        HELD.with(|held| held.borrow_mut().push(*first));
        (*first != 0).then_some([*first, 0])
    }
    fn is_left(&self) -> bool {
        !self.0.is_empty()
    }
}

/// All the kinds of what references are parts of.
type Parts = (List<Token, 3>, Vec<Option<Box<Token>>>);

fn write_parts(parts: &Parts, most: usize, words: &mut [u64]) -> Option<(usize, Vec<u64>)> {
    let mut handing = Handing::new(most, true);
    let mut out = Out::handing(words, &mut handing);
    parts.0.put(&mut out);
    parts.1.put(&mut out);
    let used = out.finish()?;
    let mut items = [0; 2 * HANDED_MAX];
    handing.describe(&mut items);
    let places = items.chunks_exact(2).take(handing.count() as usize);
    Some((used, places.map(|item| item[0] * item[1]).collect()))
}

fn read_parts(words: &[u64], come: &[u64]) -> Result<Parts, Malformed> {
    let mut come = Come(come);
    let mut from = In::new(words).with(&mut come);
    let parts = (List::get(&mut from)?, Vec::get(&mut from)?);
    from.finish().map(|()| parts)
}

#[test]
fn references_go_beside_the_words_in_order() {
    let list = List::of([Token(4), Token(0), Token(6)]).unwrap();
    let mut parts: Parts = (list, Vec::from([None, Some(Box::new(Token(7))), Some(Box::new(Token(0)))]));
    let mut words = [u64::MAX; 8];
    let (used, places) = write_parts(&parts, 3, &mut words).unwrap();
    assert_eq!(places, [4, 6, 7], "with what is to be granted beside them");
    let got = read_parts(&words[..used], &places).unwrap();
    assert_eq!((got == parts, held()), (true, Vec::from([4, 6, 7])));
    drop(got);
    assert!(held().is_empty());
    // One more than may be handed over is as if it did not fit.
    assert_eq!(write_parts(&parts, 2, &mut words), None);
    parts.0.give();
    parts.1.give();
    assert_eq!(write_parts(&parts, 0, &mut words).unwrap().1, []);
}

/// Lengths that lie, references that were not given and such as nobody asks for: all that has been taken goes again.
#[test]
fn claims_about_references_are_refused_and_nothing_is_kept() {
    let mut words = [0; 8];
    let list = List::of([Token(1), Token(2)]).unwrap();
    let (used, _) = write_parts(&(list, Vec::from([Some(Box::new(Token(3)))])), 3, &mut words).unwrap();
    let refused = |words: &[u64], come: &[u64]| {
        assert_eq!(read_parts(words, come).err(), Some(Malformed), "{words:x?} {come:?}");
        // One that has not come has a place all the same.
        assert!(held().iter().all(|place| *place == 0), "{:?}", held());
    };
    for come in [&[][..], &[4], &[4, 5], &[4, 5, 6, 7], &[4, 0, 6], &[0, 0, 0]] {
        refused(&words[..used], come);
    }
    for cut in 0..used {
        refused(&words[..cut], &[4, 5, 6]);
    }
    for at in 0..8 * used {
        for value in [0x02, 0x7f, 0xff] {
            let mut bad = words;
            bytes_mut(&mut bad)[at] = value;
            drop(read_parts(&bad[..used], &[4, 5, 6]));
            assert!(held().is_empty(), "byte {at}");
        }
    }
    // Nobody is given references where there can be none.
    assert_eq!(List::<Token, 3>::get(&mut In::new(&[1 | 1 << 32])).err(), Some(Malformed));
}

/// A list of lists without an end.
#[derive(Debug, PartialEq)]
struct Deep(Option<Box<Deep>>);

impl Wire for Deep {
    fn put(&self, out: &mut Out) {
        self.0.put(out);
    }
    fn get(from: &mut In) -> Result<Deep, Malformed> {
        Option::get(from).map(Deep)
    }
}

#[test]
fn nothing_nests_deeper_than_it_may() {
    let deep = |levels: usize| {
        let mut bytes = [0u8; 128];
        bytes[..levels].fill(1);
        let words: [u64; 16] =
            core::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap()));
        Deep::get(&mut In::new(&words)).map(drop)
    };
    assert_eq!(deep(DEPTH_MAX), Ok(()));
    assert_eq!(deep(DEPTH_MAX + 1), Err(Malformed));
}

#[test]
fn claims_are_refused() {
    let get = |words: &[u64]| {
        let mut from = In::new(words);
        let got = Names::get(&mut from)?;
        from.finish().map(|()| got)
    };
    assert_eq!(get(&[0]), Ok(names(&[])));
    assert_eq!(get(&[0, 0]), Err(Malformed), "a word more");
    assert_eq!(get(&[4, 0, 0, 0, 0, 0, 0]), Err(Malformed), "too many elements");
    assert_eq!(get(&[2, 0]), Err(Malformed), "an element that is not there");
    assert_eq!(get(&[9 << 32 | 1, 0, 0]), Err(Malformed), "a text that is too long");
    assert_eq!(get(&[u64::MAX - 1, 0, 0]), Err(Malformed), "a length without end");
    assert_eq!(get(&[1 << 32 | 1, 0xff]), Err(Malformed), "a text that is none");
    assert_eq!(get(&[1 << 32 | 1, 0x101]), Err(Malformed), "no zero");
}
