//! Its claims are in `bodies/documents.rs`.
#![no_main]

#[path = "../bodies/documents.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
