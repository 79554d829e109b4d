//! Its claims are in `bodies/config.rs`.
#![no_main]

#[path = "../bodies/config.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| {
    body::check(text);
});
