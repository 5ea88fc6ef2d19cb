//! OMG IDL through every stage of the interface compiler: no panic, whatever the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quill::session::Dialect;

fuzz_target!(|text: &[u8]| {
    quill::driver::exercise(text, Dialect::Corba);
});
