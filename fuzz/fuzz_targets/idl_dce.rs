//! DCE and MS IDL through its front end, from text to the checked model: no panic, whatever the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quill::session::Dialect;

fuzz_target!(|text: &[u8]| {
    quill::driver::exercise_front_end(text, Dialect::Dce);
});
