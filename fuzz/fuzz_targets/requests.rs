//! Its claims are in `bodies/requests.rs`.
#![no_main]

#[path = "../bodies/requests.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
