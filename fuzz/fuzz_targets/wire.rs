//! Its claims are in `bodies/wire.rs`.
#![no_main]

#[path = "../bodies/wire.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
