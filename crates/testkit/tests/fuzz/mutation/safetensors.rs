//! Changes of a safetensors file: its description changed as JSON, with the length in front of it that then fits.

use serde_json::Value;

use super::{bytes, json};
use crate::random::Random;

/// A file, or the JSON of an index, after some changes.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    if let Ok(index) = serde_json::from_slice::<Value>(seed) {
        return json::mutated(random, &index);
    }
    let (description, data) = parts(seed).expect("a seed has a description");
    let mut description = json::mutated(random, &description);
    // Padded with spaces, as writers do.
    description.resize(description.len().next_multiple_of(8), b' ');
    let mut file = (description.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(&description);
    file.extend_from_slice(if random.once_in(4) { &data[..random.below(data.len())] } else { data });
    if random.once_in(8) { bytes::mutated(random, &file) } else { file }
}

/// What is in a file, and its bytes.
pub(super) fn parts(file: &[u8]) -> Option<(Value, &[u8])> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let (description, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(description).ok()?, data))
}
