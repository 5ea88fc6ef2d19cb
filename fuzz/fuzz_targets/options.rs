//! The boot command line, whatever the text: no panic, and every word is either understood or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if kernel::options::parse(text).is_ok() {
        assert!(text.split_ascii_whitespace().all(|word| word.contains('=')));
    }
});
