//! Numbers that look random and can be had again from the seed that a failing test prints.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough to spread test cases.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs for seed 0 of the reference implementation (Vigna, splitmix64.c).
        let mut random = Random::new(0);
        assert_eq!(random.number(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.number(), 0x6e78_9e6a_a1b9_65f4);
    }
}
