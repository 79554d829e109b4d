//! Pseudo-random numbers that are the same for the same seed on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014; <https://prng.di.unimi.it/splitmix64.c>): one addition and a mix per number, and
/// every seed is a good one.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to this seed.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence that starts far from those of neighbouring seeds, for one sequence per chunk of a larger seed.
    #[inline]
    pub const fn scattered(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Any 64 bits.
    #[inline]
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `count`, which is not zero. The high half of the product, whose bias is below `count / 2^64`.
    #[inline]
    pub const fn below(&mut self, count: usize) -> usize {
        ((self.number() as u128 * count as u128) >> 64) as usize
    }

    /// From 0 to below 1, with the 53 bits a double-precision number holds.
    #[inline]
    pub const fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A draw from the standard normal distribution (Box and Muller, 1958), for simulations.
    pub fn normal(&mut self) -> f64 {
        let mut uniform = || ((self.number() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), uniform());
        radius * (std::f64::consts::TAU * angle).cos()
    }

    /// From -1 to below 1, with the 24 bits a single-precision number holds.
    #[inline]
    pub const fn around_zero(&mut self) -> f32 {
        (self.number() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// The output function.
#[inline]
const fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of the reference implementation for the seeds 1234567 and 0.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.number(), random.number(), random.number()], expected);
        let mut random = Random::new(0);
        assert_eq!([random.number(), random.number()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 6];
        (0..6_000).for_each(|_| seen[random.below(6)] += 1);
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
    }

    #[test]
    fn numbers_around_zero_stay_within_one() {
        let mut random = Random::new(3);
        let drawn: Vec<f32> = (0..1000).map(|_| random.around_zero()).collect();
        assert!(drawn.iter().all(|number| (-1.0..1.0).contains(number)));
        assert!(drawn.iter().any(|number| *number < -0.9) && drawn.iter().any(|number| *number > 0.9));
        assert!((0..1000).map(|_| random.unit()).all(|number| (0.0..1.0).contains(&number)));
    }
}
