//! Whether two sides differ at all: the rank-sum test of Wilcoxon (1945), input by input.
//!
//! Within each input all samples are ranked and those of the second side summed. If nothing changed, every way of dealing
//! the samples to the sides was as likely, so the chance of a sum at least this far out is found by counting the ways. Only
//! the order of samples matters: an interrupted run counts as slow, however slow it was.

use super::distribution::normal_below;
use super::strata::Stratum;

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Chance of rank sums at least this far out, on either end, where nothing changed.
    pub p_value: f64,
    /// The smallest such chance that this many samples can give.
    pub smallest_p_value: f64,
}

/// Additions up to which ways are counted; beyond, the normal approximation is as good and much quicker.
const MOST_ADDITIONS: f64 = 5e6;

/// The test; absent where no input has samples on both sides.
pub fn rank_test(strata: &[Stratum]) -> Option<RankTest> {
    let ranked: Vec<Ranking> = strata.iter().filter_map(Ranking::new).collect();
    if ranked.is_empty() {
        return None;
    }
    let p_value = if additions(&ranked) <= MOST_ADDITIONS { counted(&ranked) } else { approximated(&ranked) };
    let ways: f64 = ranked.iter().map(Ranking::ways).product();
    Some(RankTest { p_value: p_value.min(1.0), smallest_p_value: (2.0 / ways).min(1.0) })
}

/// Samples of one input as twice their ranks, which are whole numbers also where samples are equal and share a rank.
struct Ranking {
    ranks: Vec<usize>,
    /// How many of them are the second side's.
    with: usize,
    /// Their sum.
    sum: usize,
}

impl Ranking {
    fn new(stratum: &Stratum) -> Option<Self> {
        let finite = |side: &[f64], with: bool| -> Vec<(f64, bool)> {
            side.iter().copied().filter(|one| one.is_finite()).map(|one| (one, with)).collect()
        };
        let (base, with) = (finite(&stratum.base, false), finite(&stratum.with, true));
        if base.is_empty() || with.is_empty() {
            return None;
        }
        let count = with.len();
        let mut samples = [base, with].concat();
        samples.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut ranks = Vec::with_capacity(samples.len());
        for equal in samples.chunk_by(|one, other| one.0 == other.0) {
            // Ranks first to last, so twice their mean is first + last.
            let (first, last) = (ranks.len() + 1, ranks.len() + equal.len());
            ranks.extend(std::iter::repeat_n(first + last, equal.len()));
        }
        let sum = samples.iter().zip(&ranks).filter(|((_, with), _)| *with).map(|(_, rank)| rank).sum();
        Some(Self { ranks, with: count, sum })
    }

    /// Ways of dealing the samples to the sides.
    fn ways(&self) -> f64 {
        let (count, with) = (self.ranks.len(), self.with);
        (0..with.min(count - with)).map(|step| (count - step) as f64 / (step + 1) as f64).product()
    }

    fn most(&self) -> usize {
        self.ranks.iter().rev().take(self.with).sum()
    }

    /// Share of all ways that give each sum, from zero on.
    fn distribution(&self) -> Vec<f64> {
        let most = self.most();
        let mut ways = vec![vec![0.0; most + 1]; self.with + 1];
        ways[0][0] = 1.0;
        for (seen, rank) in self.ranks.iter().enumerate() {
            for taken in (1..=self.with.min(seen + 1)).rev() {
                let (before, after) = ways.split_at_mut(taken);
                let (from, to) = (&before[taken - 1], &mut after[0]);
                for sum in *rank..=most {
                    to[sum] += from[sum - rank];
                }
            }
        }
        let all = self.ways();
        ways.pop().unwrap_or_default().into_iter().map(|ways| ways / all).collect()
    }
}

fn additions(ranked: &[Ranking]) -> f64 {
    let mut range = 1.0;
    ranked.iter().fold(0.0, |sum, one| {
        let most = one.most() as f64;
        let joined = range * most;
        range += most;
        sum + (one.ranks.len() * one.with) as f64 * most + joined
    })
}

fn counted(ranked: &[Ranking]) -> f64 {
    let mut joint = vec![1.0];
    for one in ranked {
        let alone = one.distribution();
        let mut joined = vec![0.0; joint.len() + alone.len() - 1];
        for (before, share) in joint.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for (sum, chance) in alone.iter().enumerate() {
                joined[before + sum] += share * chance;
            }
        }
        joint = joined;
    }
    let sum: usize = ranked.iter().map(|one| one.sum).sum();
    let below: f64 = joint.iter().take(sum + 1).sum();
    let above: f64 = joint.iter().skip(sum).sum();
    2.0 * below.min(above)
}

/// Mean and variance of the sum (Lehmann, Nonparametrics, 1.2 and 1.4), in doubled ranks, with half a step towards the
/// mean because sums come in steps.
fn approximated(ranked: &[Ranking]) -> f64 {
    let (mut off, mut variance) = (0.0, 0.0);
    for one in ranked {
        let (count, with) = (one.ranks.len() as f64, one.with as f64);
        off += one.sum as f64 - with * (count + 1.0);
        let squares: f64 = one.ranks.iter().map(|rank| (*rank as f64 - (count + 1.0)).powi(2)).sum();
        variance += with * (count - with) * squares / (count * (count - 1.0));
    }
    if variance == 0.0 {
        return 1.0;
    }
    2.0 * normal_below(-(off.abs() - 1.0).max(0.0) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stratum(base: &[f64], with: &[f64]) -> Stratum {
        Stratum { base: base.to_vec(), with: with.to_vec() }
    }

    #[test]
    fn a_case_worked_by_hand() {
        // Ranks 1 2 3 and 4 5 6: of C(6,3) = 20 ways one has a sum of 15 or more, one of 6 or less.
        let found = rank_test(&[stratum(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0])]).unwrap();
        assert!((found.p_value - 0.1).abs() < 1e-12 && (found.smallest_p_value - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_published_table_is_met() {
        // Mann and Whitney (1947), n = m = 5: U <= 2 has the one-sided chance 0.016 (4 of 252 ways).
        let found = rank_test(&[stratum(&[1.0, 2.0, 3.0, 5.0, 6.0], &[4.0, 7.0, 8.0, 9.0, 10.0])]).unwrap();
        assert!((found.p_value - 8.0 / 252.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn single_pairs_are_the_sign_test() {
        let pairs: Vec<_> = (1..=8).map(|size| stratum(&[f64::from(size)], &[f64::from(size) * 1.01])).collect();
        let found = rank_test(&pairs).unwrap();
        assert!((found.p_value - 2.0 / 256.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn equal_samples_say_nothing() {
        assert_eq!(rank_test(&[stratum(&[5.0; 4], &[5.0; 6])]).unwrap().p_value, 1.0);
        assert_eq!(rank_test(&[stratum(&[], &[5.0])]), None);
        assert_eq!(rank_test(&[stratum(&[f64::NAN], &[5.0])]), None);
    }

    #[test]
    fn the_approximation_is_near_what_counting_finds() {
        let side = |shift: usize| (0..12).map(|i| ((i * 7 + shift) % 24) as f64).collect::<Vec<_>>();
        let strata = [stratum(&side(0), &side(3)), stratum(&side(1), &side(5)), stratum(&[1.0, 1.0], &[1.0, 2.0])];
        let ranked: Vec<_> = strata.iter().filter_map(Ranking::new).collect();
        let (exact, near) = (counted(&ranked), approximated(&ranked));
        assert!((exact - near).abs() < 0.01, "{exact} {near}");
    }

    #[test]
    fn large_runs_are_not_counted_forever() {
        let many = stratum(
            &(0..2_000).map(f64::from).collect::<Vec<_>>(),
            &(0..2_000).map(|i| f64::from(i) + 200.0).collect::<Vec<_>>(),
        );
        let found = rank_test(&[many]).unwrap();
        assert!(found.p_value < 1e-6 && found.smallest_p_value == 0.0, "{found:?}");
    }

    proptest! {
        #[test]
        fn the_sides_are_treated_alike(
            strata in proptest::collection::vec(
                (proptest::collection::vec(0u8..9, 1..6), proptest::collection::vec(0u8..9, 1..6)), 1..4),
        ) {
            let times = |side: &[u8]| side.iter().map(|one| f64::from(*one)).collect::<Vec<_>>();
            let one: Vec<_> = strata.iter().map(|(a, b)| stratum(&times(a), &times(b))).collect();
            let other: Vec<_> = strata.iter().map(|(a, b)| stratum(&times(b), &times(a))).collect();
            let (one, other) = (rank_test(&one).unwrap(), rank_test(&other).unwrap());
            prop_assert!((one.p_value - other.p_value).abs() < 1e-9, "{one:?} {other:?}");
            prop_assert!(one.p_value >= one.smallest_p_value - 1e-12 && one.p_value <= 1.0);
        }
    }
}
