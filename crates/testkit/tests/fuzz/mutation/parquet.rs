//! Changes of a Parquet file where its structure is: the description at its end, and the headers of its pages.
//! <https://parquet.apache.org/docs/file-format/>

use super::bytes;
use crate::random::Random;

/// Length of the description and marker, at the end of a file.
const END: usize = 8;

/// A file after one to four changes that keep its length; in one of eight cases its bytes are damaged as well.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut file = seed.to_vec();
    let Some(body) = file.len().checked_sub(END).filter(|body| *body > 0) else { return bytes::mutated(random, seed) };
    let length = u32::from_le_bytes([file[body], file[body + 1], file[body + 2], file[body + 3]]) as usize;
    let start = body.saturating_sub(length);
    for _ in 0..=random.below(4) {
        let at = if random.once_in(4) { random.below(body) } else { start + random.below(body - start) };
        let strange = *random.one_of(&[0, 1, 2, 0x15, 0x19, 0x1c, 0x7f, 0x80, 0xfe, 0xff]);
        file[at.min(body)] = if random.once_in(2) { file[at.min(body)] ^ 1 << random.below(8) } else { strange };
    }
    if random.once_in(8) { bytes::mutated(random, &file) } else { file }
}
