//! The program's own configuration. The first line holds overrides, separated by tabs; the rest is a YAML file. Both are
//! read or refused, and a configuration that is read is read again from what it is written as.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use llm_perf::config::{Composer, Config};

static COMPOSER: LazyLock<Composer> = LazyLock::new(|| Composer::new(None).expect("the built-in files"));

fuzz_target!(|text: &str| {
    let (first, file) = text.split_once('\n').unwrap_or((text, ""));
    let overrides: Vec<String> = first.split('\t').filter(|one| !one.is_empty()).map(str::to_owned).collect();
    let built_in = COMPOSER.compose(&overrides);
    let resolved = Config::from_resolved("config.yaml", file, &overrides);
    for outcome in [built_in, resolved] {
        match outcome {
            Ok(config) => {
                let written = config.to_yaml();
                let again = Config::from_resolved("again.yaml", &written, &[]).expect("what was written can be read");
                assert_eq!(again.to_yaml(), written);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
