//! Its claims are in `bodies/import.rs`.
#![no_main]

#[path = "../bodies/import.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
