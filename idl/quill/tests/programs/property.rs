//! Both sides of `property.idl`: values that bring their types along, without a kernel between them.

mod chance;
mod property;

use property::Property::*;
use property::quill::{any, any_kind};
use stub::{DONE, Failure, Inbox, LONG_DONE, List, MALFORMED, Part, Text, Uid, WIRE, Words};

#[derive(Default)]
struct Keeper {
    kept: Vec<any>,
    pairs: Option<Pairs>,
    pair: Option<Pair>,
    noted: u32,
    calls: u32,
}

fn weight(value: &any) -> u32 {
    let text = value.string().map_or(0, str::len) as u32;
    let truth = value.boolean().map_or(0, u32::from);
    10_000 * value.kind() as u32 + 3 * text + truth + value.octet().map_or(0, u32::from)
}

impl Chest::Server for Keeper {
    fn put(&mut self, r#where: i32, value: &any) -> Result<u32, Failure> {
        self.calls += 1;
        self.kept.resize(4, any::null());
        self.kept[r#where as usize & 3] = value.clone();
        Ok(weight(value).wrapping_add(self.noted))
    }
    fn get<'a>(&'a mut self, r#where: i32) -> Result<&'a any, Failure> {
        self.calls += 1;
        self.kept.resize(4, any::null());
        Ok(&self.kept[r#where as usize & 3])
    }
    fn pair(&mut self, given: &Pair, twice: bool) -> Result<u32, Failure> {
        self.calls += 1;
        Ok((weight(&given.value) + given.name.len() as u32) * (1 + u32::from(twice)))
    }
    fn hint(&mut self, value: &any) -> Result<(), Failure> {
        self.calls += 1;
        self.noted = weight(value);
        Ok(())
    }
    fn drop(&mut self, value: &any) -> Result<(), Chest::DropError> {
        self.calls += 1;
        match value.kind() {
            any_kind::tk_null => Ok(()),
            _ => Err(Chest::DropError::Unknown(Unknown { what: value.clone() })),
        }
    }
    fn swap<'a>(&'a mut self, value: &any, other: &Pair) -> Result<(&'a Pair, &'a any), Failure> {
        self.calls += 1;
        self.kept = vec![other.value.clone()];
        Ok((self.pair.insert(Pair { value: value.clone(), ..other.clone() }), &self.kept[0]))
    }
    fn all<'a>(&'a mut self, some: &[any]) -> Result<&'a [Pair], Failure> {
        self.calls += 1;
        let pairs = some.iter().take(3).map(|value| Pair { name: text("x"), value: value.clone() });
        let pairs = pairs.collect::<Vec<_>>();
        Ok(self.pairs.insert(List::new(&pairs).unwrap()))
    }
}

type Table = Chest::Table<Keeper>;

fn text<const N: usize>(text: &str) -> Text<N> {
    Text::new(text).unwrap()
}

fn some_values() -> Vec<any> {
    let string = |length: usize| any::from_string(&"é".repeat(length)).unwrap();
    let mut all = vec![any::null(), any::from_boolean(true), any::from_char(255), any::from_octet(7)];
    all.extend([any::from_short(-5), any::from_ushort(65535), any::from_long(i32::MIN), any::from_ulong(u32::MAX)]);
    all.extend([any::from_longlong(-1), any::from_ulonglong(u64::MAX), any::from_float(-0.0), any::from_double(1.5)]);
    all.extend([any::from_wchar('\u{10ffff}'), string(0), string(1), string(7), string(255)]);
    all
}

/// Who asks for another type gets nothing.
fn questions() {
    let value = any::from_long(-7);
    assert_eq!((value.long(), value.ulong(), value.short(), value.string()), (Some(-7), None, None, None));
    assert_eq!(any::from_wchar('ß').wchar(), Some('ß'));
    assert_eq!(any::from_double(0.1).double(), Some(0.1));
    assert_eq!(any::from_float(0.5).float(), Some(0.5));
    assert_eq!(any::from_string("text").unwrap().string(), Some("text"));
    assert_eq!(any::from_string(&"x".repeat(256)), None);
    assert_eq!(any::from_boolean(false).boolean(), Some(false));
    assert_eq!(any::null().kind(), any_kind::tk_null);
}

fn calls() {
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Chest::Room::new()));
    WIRE.set(Some(Box::new(move |label, words, part| {
        stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref())
    })));
    Inbox::open(&mut *Box::new(Chest::Replies::new()), |inbox| {
        let chest = Chest::Client { server: Uid(3) };
        let values = some_values();
        for (i, value) in values.iter().enumerate() {
            chest.hint(value).unwrap();
            assert_eq!(chest.put(i as i32, value), Ok(2 * weight(value)));
            assert_eq!(chest.get(inbox, i as i32).as_ref(), Ok(value));
            let other = Pair { name: text("twenty characters..."), value: values[values.len() - 1 - i].clone() };
            assert_eq!(chest.pair(&other, true), Ok(2 * (weight(&other.value) + 20)));
            let (back, here) = chest.swap(inbox, value, &other).unwrap();
            assert_eq!((&back.value, &here, &*back.name), (value, &other.value, &*other.name));
            match chest.drop(inbox, value) {
                Ok(()) => assert_eq!(i, 0),
                Err(Chest::DropError::Unknown(unknown)) => assert_eq!(unknown.what, *value),
                other => panic!("{other:?}"),
            }
        }
        let few: Vec<any> = values[3..7].to_vec();
        let pairs = chest.all(inbox, &few).unwrap();
        assert!(pairs.iter().map(|pair| &pair.value).eq(&few[..3]));
    })
    .unwrap();
}

/// Requests of a client, and something of them changed. A change of a value alone is refused by the value's kind.
fn damaged_messages() {
    let mut random = chance::chance();
    let (mut keeper, mut room) = (Keeper::default(), Box::new(Chest::Room::new()));
    let requests = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let tap = requests.clone();
    WIRE.set(Some(Box::new(move |label, words, part| {
        tap.borrow_mut().push((label, words, part));
        (u64::from(MALFORMED) << 32 | u64::from(DONE as u32), [0; 11], None)
    })));
    Inbox::open(&mut *Box::new(Chest::Replies::new()), |inbox| {
        let chest = Chest::Client { server: Uid(3) };
        for value in some_values() {
            let _ = chest.put(1, &value).is_ok();
            let _ = chest.pair(&Pair { name: text("x"), value: value.clone() }, false).is_ok();
            let _ = chest.all(inbox, &[any::from_long(4), value.clone()]).is_ok();
            chest.hint(&value).unwrap();
            let _ = chest.swap(inbox, &value, &Pair { name: text("x"), value: any::from_boolean(true) }).is_ok();
        }
    })
    .unwrap();
    let (mut refused, mut taken) = (0, 0);
    let known = requests.borrow().len();
    for run in 0..200_000 {
        let (label, mut words, part): (u32, Words, Option<Part>) = requests.borrow()[run % known].clone();
        let mut part = part.unwrap();
        match random() % 4 {
            0 if !part.words.is_empty() => {
                let at = random() as usize % part.words.len();
                part.words[at] ^= 1 << (random() % 64);
            }
            1 => words[3 + random() as usize % 4] ^= 1 << (random() % 5),
            _ => words[2 + random() as usize % 5] = [random(), random() % 16][(random() % 2) as usize],
        }
        let before = keeper.calls;
        let (rax, reply, _) =
            stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, Some(&part));
        if (rax >> 32) as u32 == MALFORMED && keeper.calls == before {
            refused += 1;
            assert!(reply == [0; 11]);
        } else {
            taken += 1;
        }
    }
    assert!(refused > 50_000 && taken > 5_000, "{refused} {taken}");
    // Bits for each kind: only those that it has are taken.
    let place = |path: &str| match path {
        "bits" => 2,
        _ => 6,
    };
    for (kind, width) in [0, 1, 8, 8, 16, 16, 32, 32, 64, 64, 32, 64, 21, 0].into_iter().enumerate() {
        for bit in 0..64 {
            let (label, mut words, part) = requests.borrow()[0].clone();
            words[place("bits")] = 1 << bit;
            words[place("kind")] = kind as u64;
            let before = keeper.calls;
            stub::answer::<Table>(&mut keeper, &mut room, &Table::PLACES, label, words, part.as_ref());
            let scalar = kind != 12 || char::from_u32(1 << bit.min(31)).is_some();
            assert_eq!(keeper.calls > before, bit < width && scalar, "kind {kind}, bit {bit}");
        }
    }
}

/// A server may answer with anything: a client has an error, or a value that is what it says.
fn nonsense() {
    let mut random = chance::chance();
    WIRE.set(Some(Box::new(move |_, _, _| {
        let count = random() % 4;
        let words = (0..count).map(|_| 0x6161_6161_6161_6161).collect();
        let strings = (0..random() % 3).map(|_| vec![b'a'; random() as usize % 60]).collect();
        let label = [u32::MAX, u32::MAX, u32::MAX, 1, random() as u32][(random() % 5) as usize];
        let mut registers: Words = std::array::from_fn(|_| [random() % 16, random()][(random() % 2) as usize]);
        registers[4] = 8 * count + random() % 4;
        (u64::from(label) << 32 | u64::from(LONG_DONE as u32), registers, Some(Part { words, strings }))
    })));
    let chest = Chest::Client { server: Uid(3) };
    let mut taken = 0;
    Inbox::open(&mut *Box::new(Chest::Replies::new()), |inbox| {
        for _ in 0..200_000 {
            let value = match chest.get(inbox, 0) {
                Ok(value) => value,
                Err(_) => continue,
            };
            taken += 1;
            let boolean = value.kind() == any_kind::tk_boolean;
            let wchar = value.kind() == any_kind::tk_wchar;
            assert!(boolean == value.boolean().is_some() && wchar == value.wchar().is_some());
        }
    })
    .unwrap();
    assert!(taken > 100, "{taken}");
}

fn main() {
    questions();
    calls();
    damaged_messages();
    nonsense();
}
