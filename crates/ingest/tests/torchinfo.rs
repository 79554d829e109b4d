//! Snapshots of TorchInfo, good and bad.

use llm_perf_ingest::{IngestError, torchinfo};
use proptest::prelude::*;
use types::Failure;

const OURS: &str = include_str!("fixtures/torchinfo-unique-layers.json");

const SMALL: &str = r#"{"generated_at": "2025-01-01T00:00:00Z", "num_unique_layers": 2,
 "layers": [
  {"class_name": "Net", "class_name_qualified": "net.Net", "is_torch_builtin": false, "children": ["torch.nn.Linear"]},
  {"class_name": "Linear", "class_name_qualified": "torch.nn.Linear", "is_torch_builtin": true, "children": []}
 ]}"#;

fn message(text: &str) -> String {
    match torchinfo::read("layers.json", text) {
        Ok(snapshot) => format!("read {} classes\n", snapshot.operators.len()),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn our_snapshot_of_deepseek_ocr_lists_thirty_classes() {
    let snapshot = torchinfo::read("torchinfo-unique-layers.json", OURS).unwrap();
    assert_eq!(snapshot.snapshot_id, "2026-11-15T00:00:00Z");
    assert_eq!(snapshot.operators.len(), 30);
    let gate = snapshot.operators.iter().find(|operator| operator.class_name == "MoEGate").unwrap();
    assert_eq!(gate.class_name_qualified, "modeling_deepseekv2.MoEGate");
    assert!(gate.is_custom && !gate.is_pytorch_builtin && gate.default_category_id.is_empty());
    let root = &snapshot.operators[0];
    assert_eq!(root.children_classes, ["modeling_deepseekocr.DeepseekOCRModel", "torch.nn.modules.linear.Linear"]);
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused_and_never_panics() {
    assert_eq!(torchinfo::read("layers.json", SMALL).unwrap().operators.len(), 2);
    for end in 0..SMALL.len() {
        let error = torchinfo::read("layers.json", &SMALL[..end]).unwrap_err();
        assert!(matches!(error, IngestError::NotJson { .. } | IngestError::Empty { .. }), "{end}: {error}");
    }
    let whole = OURS.trim_end();
    for end in (0..whole.len()).step_by(97) {
        assert!(torchinfo::read("layers.json", &whole[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn every_field_that_is_read_is_required_and_typed() {
    let without = |field: &str| SMALL.replacen(&format!("\"{field}\""), &format!("\"not_{field}\""), 1);
    let with = |from: &str, to: &str| SMALL.replacen(from, to, 1);
    let texts = [
        without("generated_at"),
        without("num_unique_layers"),
        without("layers"),
        without("class_name"),
        without("class_name_qualified"),
        without("is_torch_builtin"),
        without("children"),
        with("\"2025-01-01T00:00:00Z\"", "7"),
        with(": 2,", ": -2,"),
        with(": 2,", ": 2.5,"),
        with("false", "\"no\""),
        with("[\"torch.nn.Linear\"]", "[\"torch.nn.Linear\", null]"),
        with("[\"torch.nn.Linear\"]", "{}"),
        with("{\"class_name\": \"Net\"", "{\"class_name\": null"),
        with("{\"class_name\": \"Linear\"", "7, {\"class_name\": \"Linear\"").replace(": 2,", ": 3,"),
    ];
    insta::assert_snapshot!(texts.iter().map(|text| message(text)).collect::<String>(), @"
    layers.json: `/generated_at` is missing (when the snapshot was made)
    layers.json: `/num_unique_layers` is missing (the number of classes)
    layers.json: `/layers` is missing (the list of classes)
    layers.json: `/layers/0/class_name` is missing (the name of a class)
    layers.json: `/layers/0/class_name_qualified` is missing (the name of a class)
    layers.json: `/layers/0/is_torch_builtin` is missing (whether the class is part of PyTorch)
    layers.json: `/layers/0/children` is missing (the classes of its parts)
    layers.json: `/generated_at` is 7, expected a string
    layers.json: `/num_unique_layers` is -2, expected a non-negative integer
    layers.json: `/num_unique_layers` is 2.5, expected a non-negative integer
    layers.json: `/layers/0/is_torch_builtin` is a string, expected true or false
    layers.json: `/layers/0/children/1` is null, expected a string
    layers.json: `/layers/0/children` is an object, expected a list
    layers.json: `/layers/0/class_name` is null, expected a string
    layers.json: `/layers/1` is 7, expected an object
    ");
}

#[test]
fn contents_that_contradict_themselves_are_refused() {
    let texts = [
        SMALL.replace("\"num_unique_layers\": 2", "\"num_unique_layers\": 3"),
        SMALL.replace("\"net.Net\"", "\"torch.nn.Linear\""),
        SMALL.replace("\"class_name\": \"Net\"", "\"class_name\": \" \""),
    ];
    insta::assert_snapshot!(texts.iter().map(|text| message(text)).collect::<String>(), @"
    layers.json: `/num_unique_layers`: says 3 classes, `/layers` has 2
    layers.json: `/layers/1`: lists `torch.nn.Linear` a second time, first at `/layers/0`
    layers.json: `/layers/0/class_name`: a class has no name
    ");
}

#[test]
fn what_is_no_snapshot_says_what_it_is() {
    let deep = "[".repeat(100_000);
    let texts = [
        "",
        " \n",
        "null",
        "[]",
        "[1]",
        "{}",
        "\"layers\"",
        "7",
        "layers",
        "{\"schema\": \"llm-perf/metrics/1\"}",
        "{\"layers\": {}}",
        &deep,
    ];
    let mut found: String = texts.map(message).concat();
    found.push_str(&message(&format!("{SMALL}\n{SMALL}")));
    found.push_str(&message(&format!("\u{feff}{SMALL}")));
    insta::assert_snapshot!(found, @"
    layers.json is empty, expected a JSON object with `layers`, as TorchInfo snapshots have
    layers.json is empty, expected a JSON object with `layers`, as TorchInfo snapshots have
    layers.json: the document is null, expected an object
    layers.json: the document is a list, expected an object
    layers.json: the document is a list, expected an object
    layers.json: `/layers` is missing (the list of classes)
    layers.json: the document is a string, expected an object
    layers.json: the document is 7, expected an object
    layers.json: not JSON: expected value at line 1 column 1
    layers.json: `/layers` is missing (the list of classes)
    layers.json: `/layers` is an object, expected a list
    layers.json: not JSON: recursion limit exceeded at line 1 column 128
    layers.json: not JSON: trailing characters at line 6 column 1
    layers.json: not JSON: expected value at line 1 column 1
    ");
}

#[test]
fn every_error_has_a_hint_and_names_the_file() {
    for text in ["", "{", "[]", &SMALL.replace(": 2", ": 3")] {
        let error = torchinfo::read("some/layers.json", text).unwrap_err();
        assert!(error.to_string().contains("some/layers.json"), "{error}");
        assert!(error.hint().is_some());
    }
}

proptest! {
    #[test]
    fn a_snapshot_with_changed_bytes_never_panics(changes in prop::collection::vec((0..SMALL.len(), any::<u8>()), 1..8)) {
        let mut bytes = SMALL.as_bytes().to_vec();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        let _ = torchinfo::read("layers.json", &String::from_utf8_lossy(&bytes));
    }
}
