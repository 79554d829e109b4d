//! Its claims are in `bodies/nsys_stats.rs`.
#![no_main]

#[path = "../bodies/nsys_stats.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
