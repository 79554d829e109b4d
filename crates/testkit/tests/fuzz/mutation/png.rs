//! Changes of a PNG picture: chunks swapped, doubled, removed and changed behind their checksums.

use super::bytes;
use crate::random::Random;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A picture after one to four changes.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut chunks = chunks(seed).expect("a seed is a PNG picture");
    for _ in 0..=random.below(4) {
        let (at, other) = (random.below(chunks.len()), random.below(chunks.len()));
        match random.below(8) {
            0 => chunks.swap(at, other),
            1 if chunks.len() > 1 => drop(chunks.remove(at)),
            2 => chunks.insert(other, chunks[at].clone()),
            _ => {
                // Behind the four letters of its kind.
                let chunk = &mut chunks[at];
                let place = 4 + random.below(chunk.len().saturating_sub(4));
                if let Some(byte) = chunk.get_mut(place) {
                    *byte = if random.once_in(2) { *byte ^ 1 << random.below(8) } else { random.below(20) as u8 };
                }
            }
        }
    }
    let mut picture = SIGNATURE.to_vec();
    for chunk in &chunks {
        picture.extend_from_slice(&(chunk.len() as u32 - 4).to_be_bytes());
        picture.extend_from_slice(chunk);
        let mut sum = flate2::Crc::new();
        sum.update(chunk);
        picture.extend_from_slice(&sum.sum().to_be_bytes());
    }
    if random.once_in(8) { bytes::mutated(random, &picture) } else { picture }
}

/// Kind and content of each chunk, at least one.
pub(super) fn chunks(picture: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = picture.strip_prefix(SIGNATURE)?;
    let mut chunks = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize + 4;
        chunks.push(after.get(..length)?.to_vec());
        rest = after.get(length + 4..)?;
    }
    (!chunks.is_empty()).then_some(chunks)
}
