//! The beginning of any file: its format is told or it is not, also through gzip and zstd, and what was told stays so when
//! all of the file is seen.
#![no_main]

use ingest::detect::{Detection, detect, identify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let identity = identify(bytes);
    assert_ne!(detect(bytes, true), Detection::NeedMore);
    if identity.compression.is_none() {
        let whole = detect(bytes, true);
        assert_eq!(identity.format.map_or(Detection::Unknown, Detection::Known), whole);
    }
});
