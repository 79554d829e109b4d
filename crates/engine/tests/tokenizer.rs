//! Published tokenizer files: read, used, and refused with their name.

use std::path::{Path, PathBuf};

use llm_perf_engine::{SpecialIds, Tokenizer};

/// A byte-pair tokenizer as small as can be, with the parts of the published one: a splitting pattern that looks ahead,
/// bytes as characters (`Ġ` is a space, `Ċ` a newline), merges, and a token for images.
const SMALL: &str = r#"{
  "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
  "added_tokens": [
    {"id": 0, "content": "<begin>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 8, "content": "<image>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
  ],
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\s?\\p{L}+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
  ]},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {
    "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": false, "byte_fallback": false,
    "vocab": {"<begin>": 0, "<end>": 1, "H": 2, "i": 3, "Ġ": 4, "Hi": 5, "ĠHi": 6, "Ċ": 7},
    "merges": ["H i", "Ġ Hi"]
  }
}"#;

fn folder(tokenizer: &str, config: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

fn small(config: &str) -> Tokenizer {
    let (_kept, path) = folder(SMALL, config);
    Tokenizer::from_folder(&path).unwrap()
}

#[test]
fn a_published_tokenizer_encodes_and_decodes() {
    let tokenizer = small(r#"{"bos_token_id": 0, "eos_token_id": 1}"#);
    let ids = tokenizer.encode("Hi Hi\n").unwrap();
    assert_eq!(ids, [5, 6, 7]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "Hi Hi\n");
    assert_eq!((tokenizer.bos(), tokenizer.image()), (Some(0), Some(8)));
    assert!(tokenizer.is_end(1) && !tokenizer.is_end(5));
}

#[test]
fn special_tokens_are_not_shown_and_unknown_ids_are() {
    let tokenizer = small(r#"{"bos_token_id": 0, "eos_token_id": 1}"#);
    assert_eq!(tokenizer.decode(&[0, 5, 8, 6, 1]).unwrap(), "Hi Hi");
    assert_eq!(tokenizer.decode(&[5, 99, 6, -1]).unwrap(), "Hi\u{fffd} Hi\u{fffd}");
}

#[test]
fn ids_are_found_in_every_shape_of_configuration() {
    let several = small(r#"{"text_config": {"bos_token_id": 2, "eos_token_id": [3, 4]}, "bos_token_id": null}"#);
    assert_eq!(several.bos(), Some(2));
    assert!(several.is_end(3) && several.is_end(4) && !several.is_end(1));
    let none = small("{}");
    assert_eq!(none.bos(), None);
    assert!(!none.is_end(1));
}

#[test]
fn errors_name_the_file() {
    let gone = Tokenizer::from_file(Path::new("gone/tokenizer.json"), SpecialIds::default()).unwrap_err();
    assert!(gone.to_string().starts_with("cannot read gone/tokenizer.json: "), "{gone}");

    let (_kept, path) = folder("{\"model\": 1}", "{}");
    let wrong = Tokenizer::from_folder(&path).unwrap_err().to_string();
    assert!(wrong.contains("tokenizer.json is not a tokenizer: "), "{wrong}");

    for (config, message) in [
        ("{", "config.json is not a model configuration: EOF while parsing"),
        (
            r#"{"eos_token_id": "two"}"#,
            r#"config.json is not a model configuration: eos_token_id is "two", not a token id"#,
        ),
    ] {
        let (_kept, path) = folder(SMALL, config);
        let error = Tokenizer::from_folder(&path).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
