//! How seeds are changed: one file for each shape of file, so that what is changed still looks like one and gets past the first check.

pub(crate) mod bytes;
pub(crate) mod json;
pub(crate) mod mangled;
pub(crate) mod parquet;
pub(crate) mod png;
pub(crate) mod rows;
pub(crate) mod safetensors;
pub(crate) mod sqlite;
pub(crate) mod wire;

use crate::random::Random;

/// An input of any kind, changed as what it seems to be.
pub(crate) fn of_any(random: &mut Random, input: &[u8]) -> Vec<u8> {
    if random.once_in(8) {
        return bytes::mutated(random, input);
    }
    let document = |text: &[u8]| serde_json::from_slice(text).ok();
    match input {
        [b'\x89', b'P', b'N', b'G', ..] => png::chunks(input).map(|_| png::mutated(random, input)),
        [b'_', b'Z', ..] => Some(mangled::mutated(random, input)),
        [b'P', b'A', b'R', b'1', ..] => Some(parquet::mutated(random, input)),
        _ if input.starts_with(b"SQLite") && input.len() > 1024 => Some(sqlite::mutated(random, input)),
        _ if ::wire::open(input).is_ok() => Some(wire::mutated(random, input)),
        _ if safetensors::parts(input).is_some() => Some(safetensors::mutated(random, input)),
        _ => match (document(input), input.split_first().and_then(|(_, rest)| document(rest))) {
            (Some(document), _) if random.once_in(2) => Some(json::refilled(random, &document)),
            (Some(document), _) => Some(json::mutated(random, &document)),
            // Behind a byte that says how it is read.
            (None, Some(document)) => Some([&input[..1], &json::mutated(random, &document)].concat()),
            (None, None) => std::str::from_utf8(input).is_ok().then(|| rows::mutated(random, input)),
        },
    }
    .unwrap_or_else(|| bytes::mutated(random, input))
}
