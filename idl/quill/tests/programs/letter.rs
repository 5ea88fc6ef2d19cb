//! Both sides of `letter.idl`: messages with a part in memory, without a kernel between them.

mod chance;
mod letter;

use letter::Mail::*;
use stub::{Failure, List, MALFORMED, NO_METHOD, Part, Text, Uid, WIRE, Words};

#[derive(Default)]
struct Desk {
    dropped: Vec<String>,
    calls: usize,
}

type Done<T> = Result<T, Failure>;

impl Box::Server for Desk {
    fn caller(&mut self, _: Uid) {
        self.calls += 1;
    }
    fn post(&mut self, text: &str) -> Done<u32> {
        Ok(text.bytes().map(u32::from).sum())
    }
    fn note(&mut self, text: &str, times: i32) -> Done<u32> {
        Ok((text.chars().count() as u32).wrapping_mul(times as u32))
    }
    fn weigh(&mut self, all: &[i32]) -> Done<i32> {
        Ok(all.iter().fold(0, |sum, &value| sum.wrapping_add(value)))
    }
    fn sum(&mut self, all: &[i64], factor: i16) -> Done<(i64, i16)> {
        let sum = all.iter().fold(0i64, |sum, &value| sum.wrapping_add(value));
        Ok((sum.wrapping_mul(factor.into()), factor.wrapping_neg()))
    }
    fn stick(&mut self, all: &[Stamp]) -> Done<i32> {
        let value = |s: &Stamp| s.value.wrapping_add(s.year.into()).wrapping_sub(s.country.into());
        Ok(all.iter().map(value).fold(0, i32::wrapping_add))
    }
    fn total(&mut self, all: &[[i32; 10]; 4]) -> Done<i32> {
        Ok(all.iter().flatten().fold(0, |sum, &value| sum.wrapping_add(value)))
    }
    fn pack(&mut self, title: &str, content: &[u8], how: Kind, urgent: bool) -> Result<u32, Box::PackError> {
        if how == Kind::Note {
            return Err(Box::PackError::Refused(Refused { why: title.len() as i32 }));
        }
        Ok(content.iter().map(|&byte| u32::from(byte)).sum::<u32>() + u32::from(urgent))
    }
    fn deliver(&mut self, to: &Address, code: &str) -> Done<u32> {
        Ok(to.street.len() as u32 * 100 + to.code.len() as u32 * 10 + code.len() as u32 + u32::from(to.home))
    }
    fn many(
        &mut self,
        a1: i64,
        a2: i64,
        a3: i64,
        a4: i64,
        a5: i64,
        a6: i64,
        a7: i64,
        a8: i64,
        a9: i64,
        a10: i64,
        a11: i64,
        a12: i64,
        last: bool,
    ) -> Done<i64> {
        let all = [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, last.into()];
        Ok(all.iter().zip(1..).map(|(value, i)| value.wrapping_mul(i)).fold(0, i64::wrapping_add))
    }
    fn mixed(
        &mut self,
        b1: i64,
        b2: i64,
        b3: i64,
        b4: i64,
        b5: i64,
        b6: i64,
        b7: i64,
        b8: i64,
        b9: i64,
        text: &str,
        all: &[Stamp],
    ) -> Done<i64> {
        let numbers = [b1, b2, b3, b4, b5, b6, b7, b8, b9, b9, text.len() as i64, all.len() as i64];
        Ok(numbers.into_iter().fold(0, i64::wrapping_add))
    }
    fn drop(&mut self, text: &str) -> Done<()> {
        self.dropped.push(text.to_owned());
        Ok(())
    }
    fn knock(&mut self) -> Done<()> {
        Ok(())
    }
}

type Table = Box::Table<Desk>;

fn room() -> std::boxed::Box<Box::Room> {
    std::boxed::Box::new(Box::Room::new())
}

fn calls() {
    let (mut desk, mut room) = (Desk::default(), room());
    WIRE.set(Some(std::boxed::Box::new(move |label, words, part| {
        let answered = stub::answer::<Table>(&mut desk, &mut room, &Table::PLACES, label, words, part.as_ref());
        // Nobody waits for the answer to a oneway request, but a test may look.
        if desk.dropped.last().is_some_and(|text| text == "the end") {
            assert_eq!(desk.dropped.len(), 2);
        }
        answered
    })));
    let mail = Box::Client { server: Uid(3) };
    let alphabet: String = ('a'..='z').cycle().take(4096).collect();
    for len in (0..40).chain([4088, 4089, 4095, 4096]) {
        let text = &alphabet[..len];
        assert_eq!(mail.post(text), Ok(text.bytes().map(u32::from).sum()), "{len}");
        let numbers: Vec<i32> = (0..len.min(1024) as i32).map(|i| i * 1001 - 7).collect();
        assert_eq!(mail.weigh(&numbers), Ok(numbers.iter().sum()));
    }
    assert_eq!(mail.post("née, größer als sieben"), Ok("née, größer als sieben".bytes().map(u32::from).sum()));
    assert_eq!(mail.post(&(alphabet + "x")), Err(Failure::TooLong));
    assert_eq!(mail.weigh(&[0; 1025]), Err(Failure::TooLong));
    assert_eq!(mail.note("zwölf Zeichen", 3), Ok(39));
    assert_eq!(mail.note(&"ß".repeat(30), 1), Ok(30));
    assert_eq!(mail.note(&"ß".repeat(31), 1), Err(Failure::TooLong));
    assert_eq!(mail.sum(&[5; 500], 3), Ok((7500, -3)));
    assert_eq!(mail.sum(&[], 3), Ok((0, -3)));
    let stamps = vec![Stamp { value: 80, year: 1998, country: 49 }; 100];
    assert_eq!(mail.stick(&stamps), Ok(100 * (80 + 1998 - 49)));
    assert_eq!(mail.total(&std::array::from_fn(|i| [i as i32; 10])), Ok(60));
    assert_eq!(mail.pack("title", &[3; 70_000], Kind::Letter, true).unwrap(), 210_001);
    assert!(matches!(mail.pack("née", &[], Kind::Note, true), Err(Box::PackError::Refused(Refused { why: 4 }))));
    assert!(matches!(
        mail.pack("", &[3; 70_001], Kind::Letter, true),
        Err(Box::PackError::Failure(Failure::TooLong))
    ));
    let to = Address {
        street: Text::new("Straße").unwrap(),
        code: List::new(&[1, 2, 3]).unwrap(),
        home: true,
    };
    assert_eq!(mail.deliver(&to, "€"), Ok(734));
    assert_eq!(mail.many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, true), Ok(663));
    assert_eq!(mail.mixed(1, 2, 3, 4, 5, 6, 7, 8, 9, "1234567890", &stamps), Ok(164));
    mail.drop("oneway").unwrap();
    mail.drop("the end").unwrap();
    mail.knock().unwrap();
}

fn damaged_messages() {
    let mut random = chance::chance();
    let (mut refused, mut taken, mut unknown) = (0, 0, 0);
    let (mut desk, mut room) = (Desk::default(), room());
    for _ in 0..200_000 {
        let label = (random() as u32) & 0xf000_0000;
        let part = (random() % 4 > 0).then(|| Part {
            words: (0..random() % 60).map(|_| random() & 0x7f7f_7f7f_7f7f_7f7f).collect(),
            strings: (0..[0, 0, 0, 1, 2, 3][(random() % 6) as usize])
                .map(|_| (0..random() % 60).map(|_| random() as u8 & 0x7f).collect())
                .collect(),
        });
        let likely = part.as_ref().map_or(0, |part| 8 * part.words.len() as u64);
        let words: Words = std::array::from_fn(|_| match random() % 6 {
            0 => random(),
            1 => random() % 4,
            2 => random() % 64,
            3 => likely / 4,
            4 => likely + random() % 9,
            _ => 0,
        });
        let before = desk.calls;
        let (rax, reply, _) = stub::answer::<Table>(&mut desk, &mut room, &Table::PLACES, label, words, part.as_ref());
        match (rax >> 32) as u32 {
            MALFORMED => refused += 1,
            NO_METHOD => unknown += 1,
            _ => taken += 1,
        }
        if [MALFORMED, NO_METHOD].contains(&((rax >> 32) as u32)) {
            assert!(desk.calls == before && reply == [0; 11]);
        }
    }
    assert!(refused > 10_000 && taken > 2_000 && unknown > 10_000, "{refused} {taken} {unknown}");
}

fn main() {
    calls();
    damaged_messages();
}
