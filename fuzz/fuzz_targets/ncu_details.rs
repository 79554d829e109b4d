//! Its claims are in `bodies/ncu_details.rs`.
#![no_main]

#[path = "../bodies/ncu_details.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
