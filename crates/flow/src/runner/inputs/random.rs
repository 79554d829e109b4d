//! Numbers that only look random: the same seed gives the same, on every machine.

/// A source of numbers, by the splitmix64 method.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From minus one to one, the end left out.
    pub(super) fn around_zero(&mut self) -> f32 {
        // The upper 24 bits are as many as a single-precision number holds.
        (self.next() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_method() {
        // First outputs of splitmix64 for the seed 1234567, as its reference implementation prints them.
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn numbers_around_zero_stay_within_one() {
        let mut random = Random::new(3);
        let drawn: Vec<f32> = (0..1000).map(|_| random.around_zero()).collect();
        assert!(drawn.iter().all(|number| (-1.0..1.0).contains(number)));
        assert!(drawn.iter().any(|number| *number < -0.9) && drawn.iter().any(|number| *number > 0.9));
    }
}
