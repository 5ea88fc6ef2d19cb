//! Either language through every stage of the interface compiler, stubs included: no panic, whatever the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quill::session::Dialect;

fuzz_target!(|input: &[u8]| {
    if let [first, text @ ..] = input {
        let dialect = if first & 1 == 0 { Dialect::Corba } else { Dialect::Dce };
        quill::driver::exercise(text, dialect);
    }
});
