//! The same kernels on different ranks.

use std::collections::BTreeMap;

use types::{Nanos, SlowKernel};

use super::facts::{KernelFact, RankFacts};
use crate::statistics::median;

/// With fewer ranks, who is the odd one cannot be told.
const FEWEST_RANKS: usize = 3;
/// Launches whose median means something.
const FEWEST_CALLS: u64 = 5;
/// One kernel counts as slow beyond this.
const SLOW: f64 = 1.2;
/// And if it costs this share of the span.
const WORTH: f64 = 0.005;
/// Kernels named.
const NAMED: usize = 20;

/// How fast a rank runs kernels that others run too.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Time against the usual, over all kernels, by their time.
    pub(super) factor: f64,
    /// Share of that time in kernels that are slower than usual by 2% or more.
    pub(super) slower_share: f64,
    /// Time above the usual.
    pub(super) extra: Nanos,
    /// Kernels, each with its usual median.
    kernels: Vec<(usize, Nanos)>,
}

/// Per rank; absent where too few ranks run the same kernels.
pub(super) fn paces(ranks: &[RankFacts]) -> Vec<Option<Pace>> {
    let mut medians: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let counted =
        |kernel: &&KernelFact| !kernel.communicates && kernel.calls >= FEWEST_CALLS && kernel.median > Nanos::ZERO;
    for rank in ranks {
        for kernel in rank.kernels.iter().filter(counted) {
            medians.entry(&kernel.name).or_default().push(kernel.median.get() as f64);
        }
    }
    let usual: BTreeMap<&str, f64> = medians
        .into_iter()
        .filter(|(_, found)| found.len() >= FEWEST_RANKS)
        .filter_map(|(name, found)| Some((name, median(&found)?)))
        .collect();
    let pace = |rank: &RankFacts| {
        let (mut weight, mut logs, mut slower, mut extra) = (0.0, 0.0, 0.0, 0.0);
        let mut kernels = Vec::new();
        for (place, kernel) in rank.kernels.iter().enumerate().filter(|(_, kernel)| counted(kernel)) {
            let Some(usual) = usual.get(kernel.name.as_str()) else { continue };
            let (time, factor) = (kernel.total.get() as f64, kernel.median.get() as f64 / usual);
            weight += time;
            logs += time * factor.ln();
            slower += if factor >= 1.02 { time } else { 0.0 };
            extra += time * (1.0 - 1.0 / factor);
            kernels.push((place, Nanos::new(usual.round() as i64)));
        }
        (weight > 0.0).then(|| Pace {
            factor: (logs / weight).exp(),
            slower_share: slower / weight,
            extra: Nanos::new(extra.round() as i64),
            kernels,
        })
    };
    ranks.iter().map(pace).collect()
}

/// Kernels that one rank runs slower than the others, what costs most first.
pub(super) fn slow_kernels(ranks: &[RankFacts], paces: &[Option<Pace>]) -> Vec<SlowKernel> {
    let mut slow = Vec::new();
    for (rank, pace) in ranks.iter().zip(paces) {
        for (place, usual) in pace.iter().flat_map(|pace| &pace.kernels) {
            let kernel = &rank.kernels[*place];
            let factor = kernel.median.get() as f64 / usual.get().max(1) as f64;
            let extra = kernel.total.get() as f64 * (1.0 - 1.0 / factor);
            if factor >= SLOW && extra >= WORTH * rank.span.get() as f64 {
                slow.push(SlowKernel {
                    rank: rank.rank,
                    name: kernel.short_name.clone(),
                    calls: kernel.calls,
                    median_ns: kernel.median,
                    usual_ns: *usual,
                    extra_ns: Nanos::new(extra.round() as i64),
                });
            }
        }
    }
    slow.sort_by_key(|kernel| std::cmp::Reverse(kernel.extra_ns));
    slow.truncate(NAMED);
    slow
}
