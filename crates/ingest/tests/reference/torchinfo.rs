//! A snapshot of TorchInfo.

use llm_perf_ingest::torchinfo;
use testkit::need::reference;

pub(crate) fn a_third_party_snapshot_lists_twenty_nine_classes() {
    let text = std::fs::read_to_string(reference("third-party/torchinfo/torchinfo-unique-layers.json")).unwrap();
    let snapshot = torchinfo::read("torchinfo-unique-layers.json", &text).unwrap();
    assert_eq!(snapshot.snapshot_id, "2025-11-18T05:05:40Z");
    assert_eq!(snapshot.operators.len(), 29);
    assert_eq!(snapshot.operators.iter().filter(|operator| operator.is_pytorch_builtin).count(), 8);
    assert!(snapshot.operators.iter().any(|operator| operator.class_name == "LlamaFlashAttention2"));
}
