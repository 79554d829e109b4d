//! Centre and spread of repeated measurements, and what they tell about a change. Samples come in, numbers go out: nothing
//! here knows where they come from, and nothing gives NaN; what is not defined is absent.
//!
//! This file describes one set of samples, and `outliers` flags some of them. Two sets are compared input by input
//! (`strata`, with an interval by resampling from `random`, `rank_test` for whether they differ, `serial` for how much repeats that
//! follow each other say, and `overlap` for how far sides reach into each other) or run by run
//! (`student_test`); both rest on `distribution`. `family` corrects for many tests at once. `clustered` describes values that are not
//! independent of each other.
//!
//! `docs/concepts/statistics.md` has every formula, with the reasons for choosing it.

mod clustered;
mod distribution;
mod family;
mod outliers;
mod overlap;
mod rank_test;
mod serial;
mod strata;
mod student_test;

use types::Statistics;

pub(crate) use clustered::ClusteredSample;
pub(crate) use distribution::{normal_beyond, student_quantile};
pub use family::holm;
pub use outliers::{outliers, warm_up};
pub use overlap::overlap;
pub use rank_test::{RankTest, rank_test};
pub use serial::{SerialLimit, serial_limit};
pub(crate) use strata::expanded_tail;
pub use strata::{LogInterval, Stratum, log_ratio, log_ratio_interval};
pub use student_test::{StudentTest, student_test};

/// Centre and spread of the finite samples; `None` when there is none.
pub fn describe(samples: &[f64]) -> Option<Statistics> {
    let sorted = sorted(samples);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let median = middle(&sorted)?;
    let mean = mean(&sorted)?;
    let deviations: Vec<f64> = sorted.iter().map(|sample| (sample - median).abs()).collect();
    let several = sorted.len() > 1;
    Some(Statistics {
        mean,
        std: standard_deviation(&sorted),
        median,
        mad: several.then(|| self::median(&deviations)).flatten(),
        min,
        max,
        n: sorted.len() as u64,
    })
}

/// The median of the finite samples; the mean of the two in the middle where their number is even.
pub fn median(samples: &[f64]) -> Option<f64> {
    middle(&sorted(samples))
}

/// The value below which `share` (0 to 1) of the finite samples lie, interpolated between neighbours.
pub fn percentile(samples: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(samples);
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    if place.is_nan() {
        return None;
    }
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let weight = place - below as f64;
    Some(sorted[below] * (1.0 - weight) + sorted[above] * weight)
}

/// The sample standard deviation as a share of the median; absent below two samples or where the median is not positive.
pub fn relative_spread(samples: &[f64]) -> Option<f64> {
    let statistics = describe(samples)?;
    share(statistics.std?, statistics.median)
}

/// `part` of a positive `whole`; absent where that is not a number.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    let share = part / whole;
    (whole > 0.0 && share.is_finite()).then_some(share)
}

/// The mean. Each sample is divided before it is added, so that large ones do not overflow.
pub(crate) fn mean(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    (!samples.is_empty()).then(|| samples.iter().map(|sample| sample / count).sum())
}

/// With `n - 1` below the line: the samples are a few of the runs there could be, not all of them.
pub(crate) fn standard_deviation(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let mean = mean(samples)?;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (samples.len() - 1) as f64;
    Some(variance.sqrt()).filter(|deviation| deviation.is_finite())
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[half]),
        _ => Some(sorted[half - 1] / 2.0 + sorted[half] / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_case_worked_by_hand() {
        // 2 4 4 4 5 5 7 9: mean 5, squares of the deviations 9+1+1+1+0+0+4+16 = 32, 32/7; deviations from 4.5:
        // 0.5 x5, 2.5 x2, 4.5, so their median is 0.5.
        let statistics = describe(&[9.0, 2.0, 4.0, 5.0, 4.0, 4.0, 5.0, 7.0]).unwrap();
        assert_eq!((statistics.mean, statistics.median, statistics.mad), (5.0, 4.5, Some(0.5)));
        assert!((statistics.std.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((statistics.min, statistics.max, statistics.n), (2.0, 9.0, 8));
    }

    #[test]
    fn one_sample_has_no_spread_and_none_has_nothing() {
        let statistics = describe(&[3.0]).unwrap();
        assert_eq!((statistics.std, statistics.mad, statistics.median), (None, None, 3.0));
        assert_eq!(describe(&[]), None);
        assert_eq!(describe(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(relative_spread(&[0.0, 0.0]), None);
    }

    #[test]
    fn percentiles_lie_between_neighbours() {
        let samples = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(percentile(&samples, 0.0), Some(10.0));
        assert_eq!(percentile(&samples, 1.0), Some(40.0));
        assert_eq!(percentile(&samples, 0.5), Some(25.0));
        assert_eq!(percentile(&samples, 0.9), Some(37.0));
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&samples, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn no_input_gives_nan(samples in proptest::collection::vec(proptest::num::f64::ANY, 0..20), share in proptest::num::f64::ANY) {
            if let Some(found) = describe(&samples) {
                let all = [Some(found.mean), found.std, Some(found.median), found.mad, Some(found.min), Some(found.max)];
                for value in all.into_iter().flatten() {
                    prop_assert!(!value.is_nan(), "{found:?}");
                }
            }
            prop_assert!(percentile(&samples, share).is_none_or(|value| !value.is_nan()));
            prop_assert!(relative_spread(&samples).is_none_or(f64::is_finite));
        }

        #[test]
        fn centre_and_spread_follow_shift_and_scale(samples in proptest::collection::vec(1.0..1e6f64, 2..20), factor in 0.5..8.0f64) {
            let (before, scaled) = (describe(&samples).unwrap(), samples.iter().map(|one| one * factor).collect::<Vec<_>>());
            let after = describe(&scaled).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
            prop_assert!(near(before.mean * factor, after.mean) && near(before.median * factor, after.median));
            prop_assert!(near(before.std.unwrap() * factor, after.std.unwrap()));
            prop_assert!(before.min <= before.median && before.median <= before.max);
            prop_assert!(before.mad.unwrap() <= before.max - before.min);
        }

        #[test]
        fn the_order_of_samples_does_not_matter(mut samples in proptest::collection::vec(1.0..1e6f64, 1..20)) {
            let before = describe(&samples).unwrap();
            samples.reverse();
            prop_assert_eq!(before, describe(&samples).unwrap());
        }
    }
}
