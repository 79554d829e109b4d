//! Ranks of a distributed run side by side: what each took, and how far they are apart.

use types::{DeviceId, RankSkew, RankSummary, Sample, Stage};

use crate::statistics::describe;

/// What one rank's stages took.
pub(crate) fn summary(rank: u32, device: Option<DeviceId>, samples: &[Sample]) -> RankSummary {
    let times = |stage: Stage| {
        let measured = samples.iter().filter(|sample| !sample.warmup && sample.stage == stage);
        let times: Vec<f64> = measured.map(|sample| sample.wall_ns.get() as f64 / 1e6).collect();
        Some((stage, describe(&times)?))
    };
    RankSummary { rank, device, stage_ms: Stage::ALL.into_iter().filter_map(times).collect() }
}

/// How far the slowest is behind the fastest, stage by stage.
pub(crate) fn skew(ranks: &[RankSummary]) -> Vec<RankSkew> {
    let of_stage = |stage: Stage| {
        let medians = ranks.iter().filter_map(|rank| Some((rank.rank, rank.stage_ms.get(&stage)?.median)));
        let mut medians: Vec<(u32, f64)> = medians.filter(|(_, median)| *median > 0.0).collect();
        medians.sort_by(|one, two| one.1.total_cmp(&two.1));
        let (fastest, slowest) = (medians.first()?, medians.last().filter(|_| medians.len() > 1)?);
        Some(RankSkew { stage, slowest: slowest.0, fastest: fastest.0, share: slowest.1 / fastest.1 - 1.0 })
    };
    Stage::ALL.into_iter().filter_map(of_stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Nanos;

    fn sample(stage: Stage, milliseconds: i64, warmup: bool) -> Sample {
        let wall_ns = Nanos::new(milliseconds * 1_000_000);
        Sample { stage, input: None, epoch: 0, repeat: 0, rank: None, warmup, wall_ns }
    }

    #[test]
    fn the_slowest_rank_is_named_by_its_median_and_warm_up_does_not_count() {
        let slow = [sample(Stage::Prefill, 15, false), sample(Stage::Prefill, 900, true)];
        let ranks = [summary(0, None, &[sample(Stage::Prefill, 10, false)]), summary(1, None, &slow)];
        let found = skew(&ranks);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].slowest, found[0].fastest), (1, 0));
        assert!((found[0].share - 0.5).abs() < 1e-12);
    }

    #[test]
    fn one_rank_alone_has_no_skew() {
        assert_eq!(skew(&[summary(0, None, &[sample(Stage::Decode, 10, false)])]), []);
    }
}
