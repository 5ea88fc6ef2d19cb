//! Both sides of `ledger.idl`: flat unions over registers and memory, without a kernel between them.

mod chance;
mod ledger;

use ledger::Ledger::*;
use stub::{DONE, Failure, Inbox, LONG_DONE, Part, Uid, WIRE, Words};

#[derive(Default)]
struct Keeper {
    amounts: Vec<Amount>,
    noted: i16,
    calls: u32,
}

impl Book::Server for Keeper {
    fn add(&mut self, _: Sort, given: &Amount, tag: &Small) -> Result<(Amount, Small), Book::AddError> {
        self.calls += 1;
        if given.whole() == -1 {
            return Err(Book::AddError::Bad(Bad { found: given.clone(), line: tag.number() }));
        }
        Ok((given.clone(), Small::from_number(tag.number() ^ 0x55)))
    }
    fn mirror<'a>(&'a mut self, some: &[Amount]) -> Result<&'a [Amount], Failure> {
        self.calls += 1;
        self.amounts = some.iter().rev().cloned().collect();
        Ok(&self.amounts)
    }
    fn weigh(&mut self, some: &[Small], one: &Small) -> Result<u32, Failure> {
        self.calls += 1;
        let sum: u32 = some.iter().map(|small| u32::from(small.bytes()[0])).sum();
        Ok(sum + u32::from(one.bytes()[1]) + self.noted as u32)
    }
    fn put(&mut self, what: &Entry) -> Result<Entry, Failure> {
        self.calls += 1;
        Ok(Entry { line: what.line.wrapping_add(1), ..what.clone() })
    }
    fn turn(&mut self, leaf: &Page) -> Result<Page, Failure> {
        self.calls += 1;
        let mut cells = leaf.cells();
        cells.reverse();
        Ok(Page::from_cells(cells))
    }
    fn hint(&mut self, tag: &Small) -> Result<(), Failure> {
        self.calls += 1;
        self.noted = tag.number();
        Ok(())
    }
}

type Table = Book::Table<Keeper>;

/// Each member is the first bytes of the union, whichever made it.
fn members() {
    let amount = Amount::from_real(1.5);
    assert_eq!((amount.real(), amount.whole()), (1.5, 0x3ff8 << 48));
    assert_eq!(amount.quad(), [0, 0x3ff8_0000, 0]);
    assert_eq!(amount.bytes(), [0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0]);
    let amount = Amount::from_at(Point { x: -2, y: 7 });
    assert_eq!((amount.whole(), amount.bits[1]), (0x7_ffff_fffe, 0));
    assert_eq!(Amount::from_bytes([0xff; 11]).at(), Point { x: -1, y: -1 });
    assert_eq!(Small::from_bytes([0x34, 0x12]).number(), 0x1234);
    assert_eq!(Page::from_first(Amount::from_quad([1, 2, 3])).cells()[..8], [1, 0, 2, 0, 3, 0, 0, 0]);
    assert_eq!((size_of::<Amount>(), size_of::<Small>(), size_of::<Page>()), (16, 2, 120));
}

fn calls() {
    let mut random = chance::chance();
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Book::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *Box::new(Book::Replies::new()), |inbox| {
        let book = Book::Client { server: Uid(3) };
        for number in 0..100 {
            let (given, tag) = (Amount { bits: [random(), random()] }, Small::from_number(number));
            let (back, changed) = book.add(Sort::REAL, &given, &tag).unwrap();
            assert_eq!((back, changed), (given.clone(), Small::from_number(number ^ 0x55)));
            let entry = Entry { tag, line: 65535, amount: given };
            assert_eq!(book.put(&entry).unwrap(), Entry { line: 0, ..entry });
            let leaf = Page::from_cells(std::array::from_fn(|_| random() as u16));
            let mut cells = book.turn(inbox, &leaf).unwrap().cells();
            cells.reverse();
            assert_eq!(cells, leaf.cells());
        }
        let minus = Amount::from_whole(-1);
        let Err(Book::AddError::Bad(bad)) = book.add(Sort::WHOLE, &minus, &Small::from_number(9)) else { panic!() };
        assert_eq!((bad.found, bad.line), (minus, 9));
        book.hint(&Small::from_number(1000)).unwrap();
        for count in 0..=20 {
            let some: Vec<Amount> = (0..count).map(|i| Amount::from_whole(i * 3)).collect();
            let back: Vec<i64> = book.mirror(inbox, &some).unwrap().iter().rev().map(Amount::whole).collect();
            assert!(back.iter().copied().eq((0..count).map(|i| i * 3)));
            let tags: Vec<Small> = (0..15 * count).map(|i| Small::from_number(i as i16)).collect();
            let sum: i64 = (0..15 * count).map(|i| i % 256).sum();
            assert_eq!(book.weigh(&tags, &Small::from_number(0x700)), Ok(sum as u32 + 1007));
        }
        assert_eq!(book.mirror(inbox, &vec![Amount::from_whole(0); 21]), Err(Failure::TooLong));
    })
    .unwrap();
}

/// Any bytes are a flat union; what is beside them is checked as ever.
fn damaged_messages() {
    let mut random = chance::chance();
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Book::Room::new()));
    for _ in 0..200_000 {
        let label = random() as u32 & 0xe000_0000;
        let mut words: Words = std::array::from_fn(|_| [random(), random() % 4, 0][(random() % 3) as usize]);
        let count = random() % 30;
        let part = Part { words: (0..count).map(|_| random()).collect(), strings: Vec::new() };
        let part = (random() % 2 == 0).then_some(part);
        words[2] = [words[2], count / 2, 4 * count][(random() % 3) as usize];
        let before = keeper.calls;
        let (rax, ..) = stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref());
        let taken = keeper.calls > before;
        match label >> 29 {
            // A name that is none is refused, and nothing else of it can be wrong.
            0 if part.is_none() => assert_eq!(taken, (words[3] as u32) < 3, "{words:?}"),
            6 | 5 if part.is_none() => assert!(taken),
            1 if part.is_some() => assert_eq!(taken, count == 15, "{words:?}"),
            _ => assert!(taken || rax >> 32 >= u64::from(stub::MALFORMED)),
        }
    }
    WIRE.set(Some(Box::new(move |_, _, _| {
        let part = Part { words: (0..random() % 20).map(|_| random()).collect(), strings: Vec::new() };
        let long = random() % 2 == 0;
        let rax = if long { u64::from(u32::MAX) << 32 | u64::from(LONG_DONE as u32) } else { DONE };
        (rax, std::array::from_fn(|_| random() % 12), long.then_some(part))
    })));
    let mut taken = 0;
    Inbox::open(&mut *Box::new(Book::Replies::new()), |inbox| {
        let book = Book::Client { server: Uid(3) };
        for _ in 0..50_000 {
            taken += book.turn(inbox, &Page::from_cells([0; 60])).is_ok() as u32;
            taken += book.mirror(inbox, &[]).is_ok() as u32;
            taken += book.put(&Entry { tag: Small::from_number(1), line: 1, amount: Amount::from_whole(1) }).is_ok() as u32;
        }
    })
    .unwrap();
    assert!(taken > 1000, "{taken}");
}

fn main() {
    members();
    calls();
    damaged_messages();
}
