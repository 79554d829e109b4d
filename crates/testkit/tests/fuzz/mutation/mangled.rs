//! Changes of a mangled name by the words that it is made of: nested names, templates, references to what was named before.

use super::bytes;
use crate::random::Random;

/// <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>
const WORDS: [&str; 22] = [
    "N", "E", "I", "S_", "S0_", "SZ_", "St", "T_", "T0_", "P", "K", "R", "O", "F", "J", "Li4E", "XE", "Dp", "UlvE_",
    "A4_", "1a", "L_Z",
];

/// A name after one to eight changes; in one of eight cases its bytes are damaged as well.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut name = seed.to_vec();
    for _ in 0..=random.below(8) {
        // Behind the letters that say it is mangled.
        let at = (2 + random.below(name.len().saturating_sub(2))).min(name.len());
        let end = (at + 1 + random.below(40)).min(name.len());
        let times = if random.once_in(8) { 1 + random.below(300) } else { 1 };
        let piece = match random.below(3) {
            0 => name[at..end].to_vec(),
            _ => random.one_of(&WORDS).as_bytes().to_vec(),
        };
        let removed = if random.once_in(3) { at..end } else { at..at };
        name.splice(removed, piece.repeat(times));
    }
    name.truncate(1 << 16);
    if random.once_in(8) { bytes::mutated(random, &name) } else { name }
}
