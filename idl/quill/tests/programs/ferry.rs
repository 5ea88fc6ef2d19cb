//! A client and a server of `ferry.idl`, whose parameters are pipes: `serve PATH` or `call PATH`.

mod stubs {
    include!("ferry.rs");
}

use std::os::unix::net::{UnixListener, UnixStream};

use stubs::ferry::{Client, Server, dispatch};
use stubs::item;
use stubs::rt::{self, Failure, MALFORMED, Transport};

struct Ferry;

impl Server for Ferry {
    fn load(&mut self, weights: &[i32], all: &[item]) -> Result<i64, Failure> {
        let weights = weights.iter().chain(all.iter().map(|one| &one.weight));
        Ok(weights.map(|&weight| i64::from(weight)).sum())
    }
    fn unload(&mut self, count: i32) -> Result<(Vec<i32>, Vec<String>), Failure> {
        Ok(((0..count).collect(), (0..count).map(|number| format!("item {number}")).collect()))
    }
    fn turn(&mut self, all: &[item]) -> Result<Vec<item>, Failure> {
        Ok(all.iter().rev().map(|one| item { fragile: !one.fragile, ..*one }).collect())
    }
    fn seal(&mut self, m: &[u8]) -> Result<i32, Failure> {
        Ok(m.iter().map(|&mark| i32::from(mark)).sum())
    }
}

fn call(stream: UnixStream) {
    let mut ferry = Client { transport: stream };
    let items = |count| (0..count).map(|weight| item { weight, fragile: weight % 3 == 0 }).collect::<Vec<_>>();
    assert_eq!(ferry.load(&[], &[]).unwrap(), 0);
    assert_eq!(ferry.load(&[5, -7], &items(4)).unwrap(), 4);
    // Far more than one chunk of any other carrier.
    assert_eq!(ferry.load(&vec![3; 1_000_000], &[]).unwrap(), 3_000_000);
    let (weights, names) = ferry.unload(3).unwrap();
    assert_eq!((&weights[..], names.len(), &names[2][..]), (&[0, 1, 2][..], 3, "item 2"));
    assert_eq!(ferry.unload(0).unwrap(), (vec![], vec![]));
    let turned = ferry.turn(&items(5)).unwrap();
    assert_eq!(turned[0], item { weight: 4, fragile: true });
    assert_eq!(turned[4], item { weight: 0, fragile: false });
    assert_eq!(ferry.seal(&[1; 100]).unwrap(), 100);
    // More than the interface or a message allows ends at the caller, and the way is as it was.
    assert!(matches!(ferry.seal(&[1; 101]), Err(Failure::TooLong)));
    assert!(matches!(ferry.load(&vec![0; 5 << 20], &[]), Err(Failure::TooLong)));
    // A pipe that says more than it brings, or more than it may.
    for count in [1u32, 101, u32::MAX] {
        let (label, _) = ferry.transport.call(3, &count.to_le_bytes()).unwrap();
        assert_eq!(label, MALFORMED, "{count}");
    }
    assert_eq!(ferry.seal(&[2]).unwrap(), 2);
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
    rt::serve(&mut stream, |label, body| dispatch(&mut Ferry, label, body)).unwrap();
}
