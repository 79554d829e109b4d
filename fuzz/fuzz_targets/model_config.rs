//! A Hugging Face `config.json`: any text is read or refused with the name of the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use network::config::ModelConfig;

fuzz_target!(|text: &str| match ModelConfig::from_json("config.json", text) {
    Ok(config) => assert!(!config.facts().class.is_empty()),
    Err(error) => assert!(error.to_string().starts_with("config.json")),
});
