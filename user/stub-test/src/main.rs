//! Tests generated stubs on the real kernel: for each interface a server in a thread of its own, and a client that knows
//! what the server must answer.
//!
//! Prints a line for each interface: `SELFTEST name … ok`. The clients and servers are quill's (`quill test`).

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::println;

#[allow(missing_docs)]
mod archive {
    include!(concat!(env!("OUT_DIR"), "/archive.rs"));
}
#[allow(missing_docs)]
mod bench {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}
#[allow(missing_docs)]
mod letter {
    include!(concat!(env!("OUT_DIR"), "/letter.rs"));
}
#[allow(missing_docs)]
mod parcel {
    include!(concat!(env!("OUT_DIR"), "/parcel.rs"));
}

/// Where the random values begin, and how often each method is called.
const SEED: u64 = 1;
const ROUNDS: u64 = 100;

rt::entry!(main);

/// Tests the interfaces of one file; says how many failed. A macro, because each file has types of its own.
macro_rules! file {
    ($file:ident, $priority:ident) => {{
        let mut failed = 0;
        for (name, serve, test) in $file::quill_selftest::ALL {
            let nonsense = $file::quill_selftest::nonsense;
            let servers = (
                rt::thread::spawn($priority, move || -> () { serve(SEED) }),
                rt::thread::spawn($priority, move || -> () { nonsense(SEED) }),
            );
            let (Ok(server), Ok(other)) = servers else {
                println!("SELFTEST {name}: no server");
                failed += 1;
                continue;
            };
            let report = test(server.uid(), other.uid(), SEED, ROUNDS);
            // They serve until the program ends.
            server.detach();
            other.detach();
            let verdict = if report.wrong == 0 { "ok" } else { "FAILED" };
            println!(
                "SELFTEST {name}: {} calls, {} exceptions, {} nonsense, {} damaged messages, {} refused: {verdict}",
                report.calls, report.exceptions, report.nonsense, report.damaged, report.refused
            );
            if let Some((method, call)) = report.first_wrong {
                println!("  {} wrong, first {method}, call {call}", report.wrong);
                failed += 1;
            }
        }
        failed
    }};
}

fn main() -> i32 {
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let failed: i32 =
        file!(archive, priority) + file!(bench, priority) + file!(letter, priority) + file!(parcel, priority);
    println!("SELFTEST-END failed={failed}");
    failed
}
