//! Its claims are in `bodies/torchinfo.rs`.
#![no_main]

#[path = "../bodies/torchinfo.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| {
    body::check(text);
});
