//! Its claims are in `bodies/picture.rs`.
#![no_main]

#[path = "../bodies/picture.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
