//! What the command that starts a server says.

use std::ffi::OsString;
use std::path::PathBuf;

/// What follows a flag, in either of its forms.
pub(crate) fn value_of(words: &[OsString], flag: &str) -> Option<OsString> {
    let place = words.iter().position(|word| word == flag);
    let joined = || words.iter().find_map(|word| word.to_str()?.strip_prefix(flag)?.strip_prefix('=').map(Into::into));
    place.and_then(|place| words.get(place + 1).cloned()).or_else(joined)
}

/// The model that a command serves, where it is a folder or file of this machine.
pub fn local_model(words: &[OsString]) -> Option<PathBuf> {
    let flags = ["--model", "--model-path", "--config-path"];
    let named = flags.iter().find_map(|flag| value_of(words, flag));
    let after = |verb: &str| words.iter().position(|word| word == verb).and_then(|place| words.get(place + 1).cloned());
    let model = PathBuf::from(named.or_else(|| after("serve"))?);
    model.join("config.json").is_file().then_some(model)
}
