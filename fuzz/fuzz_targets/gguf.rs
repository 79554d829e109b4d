//! Its claims are in `bodies/gguf.rs`.
#![no_main]

#[path = "../bodies/gguf.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
