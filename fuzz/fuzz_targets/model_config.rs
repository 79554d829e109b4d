//! Its claims are in `bodies/model_config.rs`.
#![no_main]

#[path = "../bodies/model_config.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|text: &str| {
    body::check(text);
});
