//! Its claims are in `bodies/tables.rs`.
#![no_main]

#[path = "../bodies/tables.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
