//! Its claims are in `bodies/detect.rs`.
#![no_main]

#[path = "../bodies/detect.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
