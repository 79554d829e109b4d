//! How far two sides reach into each other. A machine that is fast for a second and slow for the next makes two runs of the same
//! program differ; what gives it away is that one side has repeats like the other's.

use super::median;
use super::strata::Stratum;

/// The share of repeats of one side that lie at the other side's median or beyond it, input by input; of both sides the larger.
/// Absent where there is nothing to compare.
pub fn overlap(strata: &[Stratum]) -> Option<f64> {
    let (mut beyond, mut counts) = ([0usize; 2], [0usize; 2]);
    for stratum in strata {
        let (Some(base), Some(with)) = (median(&stratum.base), median(&stratum.with)) else { continue };
        let reaches = |sample: f64, own: f64, other: f64| if own < other { sample >= other } else { sample <= other };
        beyond[0] += stratum.base.iter().filter(|sample| reaches(**sample, base, with)).count();
        beyond[1] += stratum.with.iter().filter(|sample| reaches(**sample, with, base)).count();
        counts[0] += stratum.base.len();
        counts[1] += stratum.with.len();
    }
    let shares = beyond.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    shares.map(|(beyond, count)| beyond as f64 / count as f64).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use types::Random;

    use super::super::rank_test;
    use super::*;

    fn of(base: &[f64], with: &[f64]) -> Option<f64> {
        overlap(&[Stratum { base: base.to_vec(), with: with.to_vec() }])
    }

    #[test]
    fn sides_apart_do_not_reach_into_each_other() {
        assert_eq!(of(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]), Some(0.0));
        assert_eq!(of(&[1.0, 1.1, 2.3], &[2.0, 2.1, 2.2]), Some(1.0 / 3.0));
        assert_eq!(of(&[2.0, 2.1, 2.2], &[1.0, 1.1, 2.3]), Some(1.0 / 3.0), "either side, whichever is slower");
        assert_eq!(of(&[1.0, 1.1, 1.2], &[1.0, 1.1, 1.2]), Some(2.0 / 3.0), "a run and itself");
        assert_eq!(overlap(&[]), None);
    }

    /// Repeats on a machine that runs at one of two speeds, as far apart as a virtual machine with neighbours made them, and changes
    /// over after eight in the mean.
    fn two_speeds(random: &mut Random, slow: &mut bool, count: usize) -> Vec<f64> {
        let one = |_| {
            *slow ^= random.below(8) == 0;
            (if *slow { 138.0 } else { 95.0 }) * (0.04 * random.normal()).exp()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_machine_of_two_speeds_shows_itself() {
        const TIMES: usize = 500;
        for (count, most) in [(10, 0.08), (20, 0.06)] {
            let (mut random, mut slow, mut found) = (Random::new(5), false, [0.0; 2]);
            for _ in 0..TIMES {
                let mut side = || two_speeds(&mut random, &mut slow, count);
                let strata = [Stratum { base: side(), with: side() }];
                let changed = rank_test(&strata).unwrap().p_value <= 0.05;
                found[0] += f64::from(changed) / TIMES as f64;
                found[1] += f64::from(changed && overlap(&strata).unwrap() <= 0.05) / TIMES as f64;
            }
            assert!(found[0] > 0.2 && found[1] < most, "{count} repeats: {found:?}");
        }
    }
}
