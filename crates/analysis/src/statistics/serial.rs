//! Repeats that follow each other are alike: a machine that is slow now is slow in a moment too. Such repeats say less than as many
//! independent ones, and a test that takes them for independent finds changes where there are none.

use super::median;
use super::strata::Stratum;

/// Fewest repeats that show whether neighbours are alike.
const FEWEST: usize = 4;
/// Correlations below this come of chance in as few repeats as there usually are.
const LEAST: f64 = 0.3;
/// However alike they seem, repeats are not taken to say less than this correlation makes them.
const MOST: f64 = 0.9;
/// Two-sided 5% point of the normal distribution.
const NORMAL: f64 = 1.96;
/// Standard deviation over the median deviation of normal samples.
const OF_DEVIATION: f64 = 1.4826;

/// What repeats whose neighbours are alike can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SerialLimit {
    /// Correlation of neighbours.
    pub correlation: f64,
    /// The smallest change, as the logarithm of a ratio, that is no chance at 5%.
    pub log_ratio: f64,
}

/// The limit of one run against one; absent where nothing shows that neighbours are alike.
///
/// A mean of samples with the correlation `r` from one to the next varies `(1 + r) / (1 - r)` times as much as one of independent
/// samples. The error of a median is larger than that of a mean, so that the limit errs towards a verdict.
pub fn serial_limit(strata: &[Stratum]) -> Option<SerialLimit> {
    let correlation = correlation(strata);
    if correlation < LEAST {
        return None;
    }
    let count =
        |side: fn(&Stratum) -> &Vec<f64>| strata.iter().map(|stratum| side(stratum).len()).sum::<usize>() as f64;
    let shares = 1.0 / count(|stratum| &stratum.base) + 1.0 / count(|stratum| &stratum.with);
    let deviation = OF_DEVIATION * median(&deviations(strata))?;
    let inflated = (shares * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    Some(SerialLimit { correlation, log_ratio: NORMAL * deviation * inflated })
}

/// How far samples are from the median of their input and side, as logarithms.
fn deviations(strata: &[Stratum]) -> Vec<f64> {
    let of_side = |side: &Vec<f64>| {
        let logs: Vec<f64> = side.iter().filter(|sample| **sample > 0.0).map(|sample| sample.ln()).collect();
        let middle = median(&logs).unwrap_or(0.0);
        logs.into_iter().map(move |log| (log - middle).abs())
    };
    strata.iter().flat_map(|stratum| [&stratum.base, &stratum.with]).flat_map(of_side).collect()
}

/// Correlation of the ranks of neighbours, of all sides and inputs together; never negative.
///
/// A short series hides some of it: what `n` repeats show is smaller by about `(1 + 3 r) / n` (Kendall, 1954).
fn correlation(strata: &[Stratum]) -> f64 {
    let series = strata.iter().flat_map(|stratum| [&stratum.base, &stratum.with]).filter(|side| side.len() >= FEWEST);
    let (mut beside, mut all, mut count, mut samples) = (0.0, 0.0, 0.0, 0.0);
    for side in series {
        let ranks = centred_ranks(side);
        beside += ranks.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        all += ranks.iter().map(|rank| rank * rank).sum::<f64>();
        count += 1.0;
        samples += side.len() as f64;
    }
    if all == 0.0 {
        return 0.0;
    }
    let seen = beside / all;
    (seen + (1.0 + 3.0 * seen) * count / samples).clamp(0.0, MOST)
}

/// Ranks less their mean, in the order of the samples; equal samples share one.
fn centred_ranks(samples: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|one, other| samples[*one].total_cmp(&samples[*other]));
    let mut ranks = vec![0.0; samples.len()];
    let mut below = 0;
    for equal in order.chunk_by(|one, other| samples[*one] == samples[*other]) {
        for place in equal {
            ranks[*place] = below as f64 + (equal.len() as f64 - samples.len() as f64) / 2.0;
        }
        below += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use types::Random;

    use super::super::{log_ratio, rank_test};
    use super::*;

    /// Times with 2% noise in which each sample keeps this share of the one before it.
    fn noise(random: &mut Random, count: usize, kept: f64) -> Vec<f64> {
        let mut now = random.normal();
        let fresh = (1.0 - kept * kept).sqrt();
        let mut next = || {
            now = kept * now + fresh * random.normal();
            100.0 * (0.02 * now).exp()
        };
        (0..count).map(|_| next()).collect()
    }

    /// How often nothing is taken for a change at 5%, by ranks alone and within the limit too.
    fn wrong(kept: f64, count: usize) -> [f64; 2] {
        const TIMES: usize = 500;
        let mut random = Random::new(11);
        let mut found = [0.0; 2];
        for _ in 0..TIMES {
            let strata = [Stratum { base: noise(&mut random, count, kept), with: noise(&mut random, count, kept) }];
            let changed = rank_test(&strata).unwrap().p_value <= 0.05;
            let within = serial_limit(&strata).is_some_and(|limit| log_ratio(&strata).unwrap().abs() < limit.log_ratio);
            found[0] += f64::from(changed) / TIMES as f64;
            found[1] += f64::from(changed && !within) / TIMES as f64;
        }
        found
    }

    #[test]
    fn repeats_that_are_alike_show_less() {
        let [ranks, limited] = wrong(0.0, 10);
        assert!((0.02..0.07).contains(&ranks) && limited <= ranks, "{ranks} {limited}");
        let [ranks, limited] = wrong(0.3, 10);
        assert!(ranks > 0.07 && limited < 0.9 * ranks, "{ranks} {limited}");
        let [ranks, limited] = wrong(0.6, 10);
        assert!(ranks > 0.2 && limited < 0.75 * ranks, "{ranks} {limited}");
    }

    #[test]
    fn the_limit_follows_the_noise_and_needs_neighbours_that_are_alike() {
        let of = |base: &[f64], with: &[f64]| serial_limit(&[Stratum { base: base.to_vec(), with: with.to_vec() }]);
        assert_eq!(of(&[1.0, 2.0, 1.0], &[2.0, 1.0, 2.0]), None, "too few to tell");
        assert_eq!(of(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0], &[2.0; 6]), None, "neighbours differ");
        let drift = [100.0, 100.3, 100.1, 100.2, 100.4, 104.0, 104.3, 104.1, 104.2, 104.4];
        let limit = of(&drift, &drift).unwrap();
        assert!(limit.correlation > 0.7 && (0.05..0.2).contains(&limit.log_ratio), "{limit:?}");
    }
}
