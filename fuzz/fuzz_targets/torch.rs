//! Its claims are in `bodies/torch.rs`.
#![no_main]

#[path = "../bodies/torch.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::check(bytes);
});
