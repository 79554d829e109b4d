//! Two sides measured on the same inputs: how much longer the second takes, and how sure that is.
//!
//! Everything is computed input by input, so that inputs of different sizes do not count as noise.

use types::Random;

use super::distribution::{normal_below, student_quantile};
use super::{median, percentile, sorted};

/// Times of one input on both sides, in any unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stratum {
    /// The first side.
    pub base: Vec<f64>,
    /// The second side.
    pub with: Vec<f64>,
}

/// A range of logarithms of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Pairs of resamples drawn; each gives two ratios.
const PAIRS: usize = 1_000;
/// Any number would do; this one is in the documentation, so that others can draw the same.
const SEED: u64 = 20_251_115;

/// The logarithm of the ratio of the second side's time to the first's, each side being the sum over inputs of the median
/// of that input's samples. Absent where a side has no positive time.
pub fn log_ratio(strata: &[Stratum]) -> Option<f64> {
    let total =
        |side: fn(&Stratum) -> &Vec<f64>| strata.iter().map(|stratum| median(side(stratum))).sum::<Option<f64>>();
    ratio(total(|stratum| &stratum.base)?, total(|stratum| &stratum.with)?)
}

/// A bootstrap confidence interval of [`log_ratio`]: expanded percentile (Hesterberg, 2015).
///
/// Samples of each input and side are drawn anew, with replacement; where some input has a single sample on a side, inputs
/// are drawn instead, both sides of one together. The interval reaches from one percentile of the ratios so found to the
/// other. Few samples make a bootstrap too narrow, as a standard deviation over `n` in place of `n - 1` and a normal
/// quantile in place of Student's are; the percentiles are moved out by just that:
/// `P(Z <= -sqrt(n / f) * t(f))` with `n` things drawn and `f` degrees of freedom.
///
/// BCa was not taken: its acceleration comes from leaving out one sample at a time, which for a median gives two or three
/// different values and so nothing to rely on.
///
/// Absent where there is nothing to draw from: one sample of one input.
pub fn log_ratio_interval(strata: &[Stratum], confidence: f64) -> Option<LogInterval> {
    interval(strata, confidence, PAIRS)
}

fn interval(strata: &[Stratum], confidence: f64, pairs: usize) -> Option<LogInterval> {
    log_ratio(strata)?;
    let within = strata.iter().all(|stratum| stratum.base.len() > 1 && stratum.with.len() > 1);
    let (drawn, freedom) = if within {
        let drawn: usize = strata.iter().map(|stratum| stratum.base.len() + stratum.with.len()).sum();
        (drawn, drawn - 2 * strata.len())
    } else {
        (strata.len(), strata.len() - 1)
    };
    if freedom == 0 {
        return None;
    }
    let ratios = if within { redrawn_samples(strata, pairs) } else { redrawn_inputs(strata, pairs)? };
    let tail = expanded_tail(drawn, freedom, confidence);
    Some(LogInterval { low: percentile(&ratios, tail)?, high: percentile(&ratios, 1.0 - tail)? })
}

/// The percentile, as a share, that an expanded percentile interval starts at, with that many things drawn and degrees of freedom.
pub(crate) fn expanded_tail(drawn: usize, freedom: usize, confidence: f64) -> f64 {
    let (drawn, freedom) = (drawn as f64, freedom as f64);
    normal_below(-(drawn / freedom).sqrt() * student_quantile(1.0 - confidence, freedom))
}

/// Ratios of resampled sides. Two streams of random numbers are drawn and each side gets either once, so that exchanging
/// the sides exchanges the ends of the interval exactly.
fn redrawn_samples(strata: &[Stratum], pairs: usize) -> Vec<f64> {
    let mut seeds = Random::new(SEED);
    let mut drawn = Vec::new();
    let base: Vec<_> = strata.iter().map(|stratum| sorted(&stratum.base)).collect();
    let with: Vec<_> = strata.iter().map(|stratum| sorted(&stratum.with)).collect();
    let mut total = |side: &[Vec<f64>], mut stream: Random| -> f64 {
        side.iter().map(|samples| redrawn_median(samples, &mut stream, &mut drawn)).sum()
    };
    let mut ratios = Vec::with_capacity(2 * pairs);
    for _ in 0..pairs {
        let streams = [Random::new(seeds.number()), Random::new(seeds.number())];
        let [one_base, other_base] = streams.clone().map(|stream| total(&base, stream));
        let [one_with, other_with] = streams.map(|stream| total(&with, stream));
        ratios.extend([ratio(one_base, other_with), ratio(other_base, one_with)].into_iter().flatten());
    }
    ratios
}

/// The median of as many draws from sorted samples as there are. Places are counted and not sorted, which is quicker.
fn redrawn_median(sorted: &[f64], random: &mut Random, drawn: &mut Vec<usize>) -> f64 {
    let count = sorted.len();
    drawn.clear();
    drawn.resize(count, 0);
    for _ in 0..count {
        drawn[random.below(count)] += 1;
    }
    let mut seen = 0;
    let mut lower = None;
    for (sample, times) in sorted.iter().zip(drawn.iter()) {
        seen += times;
        if seen >= count.div_ceil(2) {
            lower = lower.or(Some(*sample));
        }
        if seen > count / 2 {
            return lower.map_or(*sample, |lower| lower / 2.0 + sample / 2.0);
        }
    }
    f64::NAN
}

fn redrawn_inputs(strata: &[Stratum], pairs: usize) -> Option<Vec<f64>> {
    let medians = |stratum: &Stratum| Some((median(&stratum.base)?, median(&stratum.with)?));
    let medians: Vec<(f64, f64)> = strata.iter().map(medians).collect::<Option<_>>()?;
    let mut random = Random::new(SEED);
    let one = |_| {
        let add = |sum: (f64, f64), one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1);
        let (base, with) = medians.iter().map(|_| medians[random.below(medians.len())]).fold((0.0, 0.0), add);
        ratio(base, with)
    };
    Some((0..2 * pairs).filter_map(one).collect())
}

fn ratio(base: f64, with: f64) -> Option<f64> {
    let log = (with / base).ln();
    (base > 0.0 && with > 0.0 && log.is_finite()).then_some(log)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn simulated(random: &mut Random, count: usize, centre: f64, noise: f64) -> Vec<f64> {
        (0..count).map(|_| centre * (1.0 + noise * random.normal())).collect()
    }

    #[test]
    fn the_ratio_is_of_summed_medians() {
        let strata = [
            Stratum { base: vec![9.0, 10.0, 50.0], with: vec![11.0] },
            Stratum { base: vec![90.0], with: vec![88.0, 99.0, 110.0] },
        ];
        // (11 + 99) / (10 + 90).
        assert!((log_ratio(&strata).unwrap() - 1.1f64.ln()).abs() < 1e-12);
        assert_eq!(log_ratio(&[]), None);
        assert_eq!(log_ratio(&[Stratum { base: vec![0.0], with: vec![1.0] }]), None);
    }

    #[test]
    fn a_redrawn_median_is_the_median_of_what_was_drawn() {
        for samples in [vec![1.0, 2.0, 3.0, 4.0], vec![1.0, 2.0, 4.0, 8.0, 16.0], vec![7.0], vec![1.0, 9.0]] {
            let mut drawn = Vec::new();
            for seed in 0..50 {
                let found = redrawn_median(&samples, &mut Random::new(seed), &mut drawn);
                let mut random = Random::new(seed);
                let expected: Vec<f64> = samples.iter().map(|_| samples[random.below(samples.len())]).collect();
                assert_eq!(Some(found), median(&expected), "{expected:?}");
            }
        }
    }

    #[test]
    fn one_sample_of_one_input_has_no_interval() {
        let one = Stratum { base: vec![10.0], with: vec![11.0, 12.0] };
        assert_eq!(log_ratio_interval(std::slice::from_ref(&one), 0.95), None);
        assert!(log_ratio_interval(&[one.clone(), one], 0.95).is_some());
    }

    #[test]
    fn inputs_of_different_sizes_do_not_widen_the_interval() {
        let mut random = Random::new(3);
        let alone =
            [Stratum { base: simulated(&mut random, 10, 100.0, 0.01), with: simulated(&mut random, 10, 100.0, 0.01) }];
        let mut both = alone.to_vec();
        let small = |side: &[f64]| side.iter().map(|time| time / 50.0).collect::<Vec<_>>();
        both.push(Stratum { base: small(&alone[0].base), with: small(&alone[0].with) });
        let width = |strata: &[Stratum]| {
            let found = log_ratio_interval(strata, 0.95).unwrap();
            found.high - found.low
        };
        assert!(width(&both) <= width(&alone) * 1.05);
    }

    /// Share of intervals that hold the truth, in simulated comparisons; with fewer draws than usual, to take seconds.
    fn coverage(repeats: usize, inputs: usize) -> f64 {
        const SIMULATED: usize = 250;
        let mut random = Random::new(11);
        let truth = 1.05f64.ln();
        let holds = (0..SIMULATED).filter(|_| {
            let stratum = |input| Stratum {
                base: simulated(&mut random, repeats, 100.0 * (1 + input) as f64, 0.02),
                with: simulated(&mut random, repeats, 105.0 * (1 + input) as f64, 0.02),
            };
            let strata: Vec<_> = (0..inputs).map(stratum).collect();
            let found = interval(&strata, 0.95, 300).unwrap();
            (found.low..=found.high).contains(&truth)
        });
        holds.count() as f64 / SIMULATED as f64
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        for (repeats, inputs) in [(3, 2), (5, 1), (10, 1), (10, 3), (1, 12)] {
            let found = coverage(repeats, inputs);
            assert!(found >= 0.92, "{repeats} repeats of {inputs} inputs: {found}");
        }
    }

    fn any_strata() -> impl Strategy<Value = Vec<Stratum>> {
        let side = || proptest::collection::vec(1.0..1e9f64, 1..6);
        let stratum = (side(), side()).prop_map(|(base, with)| Stratum { base, with });
        proptest::collection::vec(stratum, 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn exchanging_the_sides_turns_the_interval_around(strata in any_strata()) {
            let turned: Vec<_> = strata.iter().map(|one| Stratum { base: one.with.clone(), with: one.base.clone() }).collect();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            prop_assert!(near(log_ratio(&strata).unwrap(), -log_ratio(&turned).unwrap()));
            match (log_ratio_interval(&strata, 0.95), log_ratio_interval(&turned, 0.95)) {
                (Some(one), Some(other)) => prop_assert!(near(one.low, -other.high) && near(one.high, -other.low)),
                (one, other) => prop_assert_eq!(one, other),
            }
        }

        #[test]
        fn the_same_samples_give_the_same_interval_in_any_unit(strata in any_strata(), exponent in -6i32..6) {
            let scale = |side: &[f64]| side.iter().map(|one| one * 2f64.powi(exponent)).collect::<Vec<_>>();
            let scaled: Vec<_> = strata.iter().map(|one| Stratum { base: scale(&one.base), with: scale(&one.with) }).collect();
            prop_assert_eq!(log_ratio_interval(&strata, 0.95), log_ratio_interval(&scaled, 0.95));
        }
    }
}
