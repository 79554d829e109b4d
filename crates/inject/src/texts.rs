//! Texts that were written, so that each is written once.

/// Places of the table; a power of two.
const PLACES: usize = 1 << 16;

/// Texts by their hash. Starts as zeroes.
pub(crate) struct Texts {
    /// Hash, never zero where a place is taken.
    hashes: [u64; PLACES],
    numbers: [u32; PLACES],
    taken: usize,
    next: u32,
}

impl Texts {
    /// The number of a text, and whether it is new and has to be written.
    ///
    /// Two texts with one hash of 64 bits would be taken for the same; among tens of thousands that is one in a thousand
    /// million. A table that is full gives a new number every time: larger files, and nothing lost.
    pub(crate) fn number(&mut self, text: &[u8]) -> (u32, bool) {
        let hash = hash(text) | 1;
        let mut place = (hash >> 1) as usize % PLACES;
        while let (Some(slot), Some(number)) = (self.hashes.get_mut(place), self.numbers.get_mut(place)) {
            if *slot == hash {
                return (*number, false);
            }
            if *slot == 0 {
                let new = self.next;
                self.next = self.next.wrapping_add(1);
                if self.taken < PLACES / 2 {
                    (*slot, *number) = (hash, new);
                    self.taken += 1;
                }
                return (new, true);
            }
            place = (place + 1) % PLACES;
        }
        (0, true)
    }
}

/// A hash over eight bytes at a time: names of kernels are hundreds of bytes long and there is one per kernel.
fn hash(text: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = text.as_chunks::<8>();
    let sum = words.iter().fold(text.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
    let sum = mix(mix(sum, last), 0x51);
    sum ^ (sum >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number_and_is_new_once() {
        let mut texts: Box<Texts> = Box::new(Texts { hashes: [0; PLACES], numbers: [0; PLACES], taken: 0, next: 0 });
        let names: Vec<_> = (0..20_000).map(|number| format!("kernel_{number}_with_a_longer_name")).collect();
        let first: Vec<_> = names.iter().map(|name| texts.number(name.as_bytes())).collect();
        assert!(first.iter().enumerate().all(|(place, found)| *found == (place as u32, true)));
        let again = names.iter().map(|name| texts.number(name.as_bytes()));
        assert!(again.enumerate().all(|(place, found)| found == (place as u32, false)));
        assert_eq!(texts.number(b""), (20_000, true));
        assert_eq!(texts.number(b""), (20_000, false));
    }
}
