//! Its claims are in `bodies/ncu_raw.rs`.
#![no_main]

#[path = "../bodies/ncu_raw.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
