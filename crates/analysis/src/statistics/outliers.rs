//! Samples that stand apart from the others, and slow ones at the start. Both are flagged, never removed.

use super::{describe, median};

/// Modified z-score above which a sample is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER_SCORE: f64 = 3.5;
/// The normal distribution's median absolute deviation, as a share of its standard deviation.
const NORMAL_MAD: f64 = 0.674_5;
/// Spread below which scores are not taken seriously, as a share of the median: clocks and schedulers are not finer.
const LEAST_SPREAD: f64 = 0.001;
/// Fewest samples whose spread says anything.
const FEWEST: usize = 5;

/// For each sample, whether it is an outlier: `0.6745 * |x - median| / MAD > 3.5`. Below five finite samples none is.
pub fn outliers(samples: &[f64]) -> Vec<bool> {
    let scale = Scale::of(samples);
    samples.iter().map(|sample| scale.is_some_and(|scale| scale.score(*sample).abs() > OUTLIER_SCORE)).collect()
}

/// How many samples at the start are warm-up: one after the other, up to half, as long as each is slower than all that
/// follow it by more than an outlier's score. At least five must follow.
pub fn warm_up(samples: &[f64]) -> usize {
    let is_slow = |place: &usize| {
        let rest = Scale::of(&samples[place + 1..]);
        rest.is_some_and(|rest| rest.score(samples[*place]) > OUTLIER_SCORE)
    };
    (0..samples.len() / 2).take_while(is_slow).count()
}

/// Centre and robust spread of samples.
#[derive(Clone, Copy)]
struct Scale {
    median: f64,
    spread: f64,
}

impl Scale {
    fn of(samples: &[f64]) -> Option<Self> {
        let statistics = describe(samples).filter(|statistics| statistics.n >= FEWEST as u64)?;
        let spread = (statistics.mad? / NORMAL_MAD).max(LEAST_SPREAD * statistics.median.abs());
        (spread > 0.0).then_some(Self { median: median(samples)?, spread })
    }

    fn score(self, sample: f64) -> f64 {
        (sample - self.median) / self.spread
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use types::Random;

    #[test]
    fn a_case_worked_by_hand() {
        // Median 100, deviations 0 1 1 2 2 30, MAD 1.5: the last scores 0.6745 * 30 / 1.5 = 13.5, the next 0.9.
        let found = outliers(&[100.0, 99.0, 101.0, 102.0, 98.0, 130.0]);
        assert_eq!(found, [false, false, false, false, false, true]);
    }

    #[test]
    fn four_samples_are_too_few_to_tell() {
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 9.0]), [false; 4]);
        assert_eq!(warm_up(&[9.0, 1.0, 1.0, 1.0, 1.0]), 0);
    }

    #[test]
    fn equal_samples_do_not_make_a_tiny_difference_an_outlier() {
        assert_eq!(outliers(&[1e6, 1e6, 1e6, 1e6, 1e6 + 1.0]), [false; 5]);
        assert!(outliers(&[1e6, 1e6, 1e6, 1e6, 1.1e6])[4]);
    }

    #[test]
    fn slow_samples_count_as_warm_up_only_at_the_start() {
        assert_eq!(warm_up(&[150.0, 120.0, 100.0, 101.0, 99.0, 100.0, 101.0]), 2);
        assert_eq!(warm_up(&[100.0, 101.0, 99.0, 150.0, 100.0, 101.0, 99.0]), 0);
        assert_eq!(warm_up(&[70.0, 100.0, 101.0, 99.0, 100.0, 101.0]), 0);
        assert_eq!(warm_up(&[]), 0);
    }

    #[test]
    fn ten_normal_samples_rarely_look_warmed_up_or_hold_an_outlier() {
        let mut random = Random::new(20);
        let (mut warm, mut apart) = (0, 0);
        for _ in 0..2_000 {
            let samples: Vec<f64> = (0..10).map(|_| 100.0 + 2.0 * random.normal()).collect();
            warm += usize::from(warm_up(&samples) > 0);
            apart += outliers(&samples).iter().filter(|one| **one).count();
        }
        // Of 2,000 series and 20,000 samples. The rates are in docs/concepts/statistics.md.
        assert!(warm <= 60, "{warm} {apart}");
        assert!(apart <= 400, "{apart}");
    }

    proptest! {
        #[test]
        fn flags_do_not_depend_on_the_unit(samples in proptest::collection::vec(1.0..1e3f64, 0..20), exponent in -8i32..20) {
            let scaled: Vec<f64> = samples.iter().map(|one| one * 2f64.powi(exponent)).collect();
            prop_assert_eq!(outliers(&samples), outliers(&scaled));
            prop_assert_eq!(warm_up(&samples), warm_up(&scaled));
        }

        #[test]
        fn fewer_than_half_are_outliers(samples in proptest::collection::vec(proptest::num::f64::ANY, 0..20)) {
            let found = outliers(&samples);
            prop_assert_eq!(found.len(), samples.len());
            let finite = samples.iter().filter(|one| one.is_finite()).count();
            let apart = found.iter().zip(&samples).filter(|(apart, one)| **apart && one.is_finite()).count();
            prop_assert!(2 * apart <= finite);
            prop_assert!(warm_up(&samples) <= samples.len() / 2);
        }
    }
}
