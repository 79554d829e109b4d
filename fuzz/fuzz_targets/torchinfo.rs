//! A TorchInfo snapshot: any text is read or refused, and what is read says what the text says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(snapshot) = ingest::torchinfo::read("snapshot.json", text) {
        for operator in &snapshot.operators {
            assert!(!operator.class_name.trim().is_empty());
            assert_ne!(operator.is_custom, operator.is_pytorch_builtin);
        }
    }
});
