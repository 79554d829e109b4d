//! Its claims are in `bodies/names.rs`.
#![no_main]

#[path = "../bodies/names.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| {
    body::check(text);
});
