//! Its claims are in `bodies/replays.rs`.
#![no_main]

#[path = "../bodies/replays.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
