//! A TorchInfo snapshot: any text is read or refused, and what is read says what the text says.

/// What must hold for any input; whether it was read.
pub(crate) fn check(text: &str) -> bool {
    let Ok(snapshot) = ingest::torchinfo::read("snapshot.json", text) else { return false };
    for operator in &snapshot.operators {
        assert!(!operator.class_name.trim().is_empty());
        assert_ne!(operator.is_custom, operator.is_pytorch_builtin);
    }
    true
}
