//! Its claims are in `bodies/bundle.rs`.
#![no_main]

#[path = "../bodies/bundle.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
