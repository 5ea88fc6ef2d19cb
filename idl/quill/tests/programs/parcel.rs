//! Both sides of `parcel.idl` over registers, without a kernel between them.

mod chance;
mod parcel;

use parcel::Post::*;
use stub::{Failure, List, MALFORMED, NO_METHOD, Text, Uid, WIRE, Words};

#[derive(Default)]
struct Desk {
    tariff: i64,
    shouts: Vec<(i32, Flags)>,
    caller: Option<Uid>,
    calls: usize,
}

type Done<T> = Result<T, Failure>;

impl Office::Server for Desk {
    fn caller(&mut self, from: Uid) {
        self.caller = Some(from);
        self.calls += 1;
    }
    fn knock(&mut self) -> Done<()> {
        Ok(())
    }
    fn shout(&mut self, code: i32, how: Flags) -> Done<()> {
        self.shouts.push((code, how));
        Ok(())
    }
    fn tariff(&mut self) -> Done<i64> {
        Ok(self.tariff)
    }
    fn set_tariff(&mut self, value: i64) -> Done<()> {
        if value < 0 { Err(Failure::Refused(77)) } else { Ok(self.tariff = value) }
    }
    fn weigh(&mut self, w: &Weight, l: &Label, gently: bool) -> Result<(Weight, Label), Office::WeighError> {
        match w.grams {
            0 => Err(Office::WeighError::Refused(Refused {})),
            grams if grams < 0 => Err(Office::WeighError::Lost(Lost { r#where: l.clone(), since: 9 })),
            _ => Ok((w.clone(), Label { checked: gently, ..l.clone() })),
        }
    }
    fn wrap(&mut self, content: &[u8], fill: u8) -> Done<List<u8, 40>> {
        let mut all = content.to_vec();
        all.push(fill);
        List::new(&all).ok_or(Failure::TooLong)
    }
    fn name(&mut self, given: &str, initial: char) -> Done<Text<36>> {
        Text::new(&format!("{initial}{given}")).ok_or(Failure::TooLong)
    }
    fn codes(&mut self, c: &[u16; 6], s: Service) -> Done<([u16; 6], Service, Flags)> {
        let mut back = *c;
        back.reverse();
        Ok((back, s, Flags::insured))
    }
    fn keep(&mut self, n: &Note) -> Done<Note> {
        Ok(n.clone())
    }
    fn sum(
        &mut self,
        a: f32,
        b: f64,
        c: u64,
        d: u8,
        e: u16,
        f: i32,
        g: i32,
        h: i32,
        i: i32,
        j: i32,
        r#match: i16,
        r#type: bool,
    ) -> Done<f64> {
        let whole = [f, g, h, i, j, r#match.into(), d.into(), e.into(), r#type.into()];
        Ok(whole.into_iter().map(f64::from).sum::<f64>() + f64::from(a) + b + c as f64)
    }
}

type Table = Office::Table<Desk>;

fn answer(desk: &mut Desk, label: u32, words: Words) -> (u64, Words) {
    let (rax, words, _) = stub::answer::<Table>(desk, &mut stub::NoRoom, &Table::PLACES, label, words, None);
    (rax, words)
}

fn calls() {
    let mut desk = Desk::default();
    WIRE.set(Some(Box::new(move |label, words, _| {
        let (rax, reply) = answer(&mut desk, label, words);
        assert_eq!(desk.caller, Some(Uid(7)));
        (rax, reply, None)
    })));
    let office = Office::Client { server: Uid(3) };
    office.knock().unwrap();
    office.shout(-1, Flags::urgent).unwrap();
    office.set_tariff(1 << 40).unwrap();
    assert_eq!(office.tariff(), Ok(1 << 40));
    assert_eq!(office.set_tariff(-1), Err(Failure::Refused(77)));
    let label = Label { zone: 3, code: -4, checked: false };
    let weight = |grams| Weight { grams, scale: -2, reserved: 5 };
    let (same, checked) = office.weigh(&weight(8), &label, true).unwrap();
    assert_eq!((same, checked), (weight(8), Label { checked: true, ..label.clone() }));
    assert!(matches!(office.weigh(&weight(0), &label, true), Err(Office::WeighError::Refused(Refused {}))));
    match office.weigh(&weight(-1), &label, true) {
        Err(Office::WeighError::Lost(lost)) => assert_eq!((lost.r#where, lost.since), (label, 9)),
        other => panic!("{other:?}"),
    }
    assert_eq!(&*office.wrap(b"abc", b'!').unwrap(), b"abc!");
    assert_eq!(&*office.wrap(&[], 0).unwrap(), &[0]);
    assert_eq!(office.wrap(&[7; 41], 0).err(), Some(Failure::TooLong));
    assert_eq!(office.wrap(&[7; 40], 0).err(), Some(Failure::Refused(MALFORMED)));
    assert_eq!(&*office.name("née Byrn", 'ß').unwrap(), "ßnée Byrn");
    assert_eq!(office.name("ten letter", 'x').err(), Some(Failure::TooLong));
    // The server's own text is too long: nine characters, and the initial.
    assert_eq!(office.name("ninelette", 'x').err(), Some(Failure::Refused(MALFORMED)));
    let codes = office.codes(&[1, 2, 3, 4, 5, 6], Service::Registered).unwrap();
    assert_eq!(codes, ([6, 5, 4, 3, 2, 1], Service::Registered, Flags::insured));
    let note = Note { service: Service::Parcel, mark: List::new(&[9, 8]).unwrap() };
    assert_eq!(office.keep(&note), Ok(note));
    assert_eq!(office.sum(0.5, 1.5, 10, 1, 2, -3, 4, -5, 6, -7, 8, true), Ok(19.0));
    // A client of the base finds the same methods under the same labels.
    Base::Client { server: Uid(3) }.knock().unwrap();
}

fn damaged_messages() {
    let mut random = chance::chance();
    let (mut refused, mut taken, mut unknown) = (0, 0, 0);
    let mut desk = Desk::default();
    for _ in 0..300_000 {
        let label = (random() as u32) & 0xf000_0000;
        let words: Words = std::array::from_fn(|_| match random() % 4 {
            0 => random(),
            1 => random() % 4,
            2 => random() % 64,
            _ => 0,
        });
        let before = desk.calls;
        let (rax, reply) = answer(&mut desk, label, words);
        match (rax >> 32) as u32 {
            MALFORMED => refused += 1,
            NO_METHOD => unknown += 1,
            _ => taken += 1,
        }
        if (rax >> 32) as u32 == NO_METHOD {
            assert!(desk.calls == before && reply == [0; 11]);
        }
    }
    assert!(refused > 10_000 && taken > 10_000 && unknown > 10_000, "{refused} {taken} {unknown}");
    // The client checks as well.
    WIRE.set(Some(Box::new(move |_, _, _| (stub::DONE, [random(); 11], None))));
    let office = Office::Client { server: Uid(3) };
    let service = Service::Letter;
    let bad = (0..1000).filter(|_| office.codes(&[0; 6], service) == Err(Failure::Malformed)).count();
    assert!(bad > 900, "{bad}");
}

fn main() {
    calls();
    damaged_messages();
}
