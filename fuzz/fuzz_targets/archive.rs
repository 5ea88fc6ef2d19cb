//! The walk over a boot archive, whatever the bytes: no panic, and no file outside of the archive.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let range = bytes.as_ptr_range();
    for file in abi::archive::files(bytes).flatten() {
        let data = file.data.as_ptr_range();
        assert!(range.start <= data.start && data.end <= range.end);
    }
});
