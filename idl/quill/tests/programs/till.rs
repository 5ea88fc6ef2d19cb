//! A client and a server of `till.idl`, whose amounts are fixed-point numbers: `serve PATH` or `call PATH`.

mod stubs {
    include!("till.rs");
}

use std::os::unix::net::{UnixListener, UnixStream};

use stubs::Till::*;
use stubs::quill::{fixed_5_3, fixed_9_2, fixed_18_0};
use stubs::rt::{self, Failure, MALFORMED, Transport};

fn amount(units: i64) -> fixed_9_2 {
    fixed_9_2::new(units).unwrap()
}

struct Cashier;

impl Desk::Server for Cashier {
    fn sum(&mut self, all: &[Line]) -> Result<(fixed_9_2, fixed_18_0), Failure> {
        let units = all.iter().map(|line| line.price.units()).sum();
        let sum = fixed_9_2::new(units).ok_or(Failure::Refused(7))?;
        Ok((sum, fixed_18_0::new(all.len() as i64).unwrap()))
    }
    fn pay(&mut self, given: &Paid, due: fixed_9_2) -> Result<fixed_9_2, Desk::PayError> {
        match given {
            Paid::cash(cash) if *cash < due => {
                Err(Desk::PayError::Owing(Owing { by: amount(due.units() - cash.units()) }))
            }
            Paid::cash(cash) => Ok(amount(due.units() - cash.units())),
            Paid::card(_) | Paid::none(_) => Ok(amount(0)),
        }
    }
    fn dearest(&mut self, all: &[fixed_9_2]) -> Result<fixed_9_2, Failure> {
        all.iter().max().copied().ok_or(Failure::Refused(8))
    }
}

fn call(stream: UnixStream) {
    assert_eq!([fixed_9_2::new(fixed_9_2::MOST + 1), fixed_9_2::new(i64::MIN)], [None; 2]);
    let shown = [amount(-5), amount(1250), amount(-fixed_9_2::MOST)].map(|amount| amount.to_string());
    assert_eq!(shown, ["-0.05", "12.50", "-9999999.99"]);
    assert_eq!((fixed_9_2::ONE, fixed_18_0::ONE, fixed_18_0::MOST), (100, 1, 999_999_999_999_999_999));
    assert_eq!(fixed_18_0::new(-3).unwrap().to_string(), "-3");

    let mut desk = Desk::Client { transport: stream };
    let line = |units| Line { what: "tea".into(), price: amount(units), weight: fixed_5_3::new(-99_999).unwrap() };
    let (sum, lines) = desk.sum(&[line(1), line(-300)]).unwrap();
    assert_eq!((sum.units(), lines.units()), (-299, 2));
    assert!(matches!(desk.sum(&[line(fixed_9_2::MOST), line(1)]), Err(Failure::Refused(7))));
    assert_eq!(desk.pay(&Paid::cash(amount(50)), amount(20)).unwrap(), amount(-30));
    let short = desk.pay(&Paid::cash(amount(50)), amount(70));
    assert!(matches!(short, Err(Desk::PayError::Owing(Owing { by })) if by == amount(20)));
    assert_eq!(desk.pay(&Paid::card([1; 4]), amount(70)).unwrap(), amount(0));
    let prices: Vec<fixed_9_2> = (0..500).map(|units| amount(units * 7 % 500)).collect();
    assert_eq!(desk.dearest(&prices).unwrap(), amount(499));
    // Digits that the type does not have, in a list of one.
    for units in [fixed_9_2::MOST + 1, -fixed_9_2::MOST - 1, i64::MIN] {
        let body: Vec<u8> = [1u64.to_le_bytes(), units.to_le_bytes()].concat();
        assert_eq!(desk.transport.call(2, &body).unwrap().0, MALFORMED, "{units}");
    }
    let body: Vec<u8> = [1u64.to_le_bytes(), (-fixed_9_2::MOST).to_le_bytes()].concat();
    assert_eq!(desk.transport.call(2, &body).unwrap().0, 0);
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
    let listener = UnixListener::bind(path).unwrap();
    let mut stream = listener.accept().unwrap().0;
    rt::serve(&mut stream, |label, body| Desk::dispatch(&mut Cashier, label, body)).unwrap();
}
