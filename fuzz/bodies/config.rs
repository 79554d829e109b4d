//! The program's own configuration. The first line holds overrides, separated by tabs; the rest is a YAML file. Both are
//! read or refused, and a configuration that is read is read again from what it is written as.

use std::sync::LazyLock;

use config::{Composer, Config, Overrides};

static COMPOSER: LazyLock<Composer> = LazyLock::new(|| Composer::new(None).expect("the built-in files"));

/// What must hold for any input; whether it was read.
pub(crate) fn check(text: &str) -> bool {
    let (first, file) = text.split_once('\n').unwrap_or((text, ""));
    let overrides: Vec<&str> = first.split('\t').filter(|one| !one.is_empty()).collect();
    let overrides = match Overrides::typed(&overrides) {
        Ok(overrides) => overrides,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let built_in = COMPOSER.compose(&overrides);
    let resolved = Config::from_resolved("config.yaml", file, &overrides);
    let mut was_read = false;
    for outcome in [built_in, resolved] {
        match outcome {
            Ok(config) => {
                let written = config.to_yaml();
                let again = Config::from_resolved("again.yaml", &written, &Overrides::default());
                let again = again.expect("what was written can be read");
                assert_eq!(again.to_yaml(), written);
                was_read = true;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    was_read
}
