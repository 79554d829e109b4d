//! Stages: wall time without a profiler, from raw samples.

use types::{Base, Change, Count, Facts, Measured, Remark, Replication, Stage, StageSummary};

use super::pairing::Pairing;
use super::row::{Evidence, Row, geometric_mean, judged, log_ratio, time};
use super::{CONFIDENCE, RunRecords, SIGNIFICANCE, Sides};
use crate::disturbed;
use crate::statistics::{
    self, Stratum, log_ratio_interval, median, outliers, rank_test, relative_spread, share, student_test, warm_up,
};

/// Every stage that a run has, parents before children.
pub(super) fn changes(sides: Sides<'_>, pairing: &Pairing) -> Vec<Change> {
    let present = |stage: &Stage| sides.runs().any(|run| has(run, *stage));
    let stages: Vec<Stage> = Stage::ALL.into_iter().filter(present).collect();
    judged(stages.iter().map(|stage| row(sides, pairing, *stage, stages.len())).collect())
}

fn has(run: &RunRecords, stage: Stage) -> bool {
    summary(run, stage).is_some()
        || run.metrics.times.samples.iter().any(|sample| sample.stage == stage && !sample.warmup)
}

fn row(sides: Sides<'_>, pairing: &Pairing, stage: Stage, family: usize) -> Row {
    let name = stage.to_string();
    let missing = |runs: &[RunRecords]| runs.iter().any(|run| !has(run, stage));
    if missing(sides.base) || missing(sides.with) {
        let alone = |runs: &[RunRecords]| Measured {
            time_ns: time(geometric_mean(&all_of(runs, pairing, stage))),
            ..count(runs, pairing, stage)
        };
        let reason = match (missing(sides.base), missing(sides.with)) {
            (true, false) => Remark::new("untested.only-second", Facts::new()),
            (false, _) => Remark::new("untested.only-first", Facts::new()),
            (true, true) => Remark::new("untested.some-runs", Facts::new()),
        };
        return Row {
            name,
            base: alone(sides.base),
            with: alone(sides.with),
            evidence: Evidence::untested(reason),
            ..Row::default()
        };
    }
    let row = match (sides.replication(), sides.base, sides.with) {
        (Replication::Repeats, [base], [with]) => match pairing.strata(base, with, stage) {
            strata if strata.is_empty() => without_samples(base, with, stage),
            strata => tested(&strata, sides, family),
        },
        _ => runs(sides, pairing, stage),
    };
    Row { name, ..row }
}

/// How many times the difference between the halves of one run a change must be, where these differ more than by chance:
/// noise that lasts as long as a run makes two runs differ as much as two halves.
pub(super) const BEYOND_HALVES: f64 = 2.0;

/// One run against one, by the repeats of each input, of `family` rows in a table.
pub(super) fn tested(strata: &[Stratum], sides: Sides<'_>, family: usize) -> Row {
    let side = |side: fn(&Stratum) -> &Vec<f64>| measured(strata.iter().map(side));
    let row = Row {
        base: side(|stratum| &stratum.base),
        with: side(|stratum| &stratum.with),
        log_ratio: statistics::log_ratio(strata),
        ..Row::default()
    };
    let interval = log_ratio_interval(strata, CONFIDENCE);
    let evidence = match (interval, rank_test(strata)) {
        (None, _) | (_, None) => Evidence::untested(Remark::new("untested.one-sample", Facts::new())),
        (Some(interval), Some(test)) if test.smallest_p_value * family as f64 > SIGNIFICANCE => {
            Evidence::Untested { interval: Some(interval), reason: too_few(strata, family) }
        }
        (Some(interval), Some(test)) => {
            let doubtful = || alike(strata, row.log_ratio).or_else(|| mixed(strata));
            let doubt = || (test.p_value <= SIGNIFICANCE).then(doubtful).flatten();
            match unsteady(strata, sides, row.log_ratio).or_else(doubt) {
                Some(reason) => Evidence::Untested { interval: Some(interval), reason },
                None => Evidence::Tested { interval, p_value: test.p_value },
            }
        }
    };
    Row { evidence, ..row }
}

/// Why repeats within a run do not tell how far runs differ, where they do not.
fn unsteady(strata: &[Stratum], sides: Sides<'_>, log_ratio: Option<f64>) -> Option<Remark> {
    if let Some(reason) = sides.runs().find_map(|run| disturbed::verdict(&run.metrics)) {
        return Some(Remark::new("untested.busy", Facts::new().with("reason", reason)));
    }
    // Both sides are looked at, and share the chance of an error.
    let halves = |side: fn(&Stratum) -> &Vec<f64>| {
        let strata: Vec<Stratum> = strata
            .iter()
            .map(side)
            .filter(|samples| samples.len() >= 4)
            .map(|samples| samples.split_at(samples.len() / 2))
            .map(|(base, with)| Stratum { base: base.to_vec(), with: with.to_vec() })
            .collect();
        let differ = rank_test(&strata).is_some_and(|test| test.p_value <= SIGNIFICANCE / 2.0);
        statistics::log_ratio(&strata).map(f64::abs).filter(|_| differ)
    };
    let halves = [halves(|stratum| &stratum.base), halves(|stratum| &stratum.with)];
    let apart = halves.into_iter().flatten().max_by(f64::total_cmp)?;
    let change = log_ratio?.abs();
    (change > 0.0 && change < BEYOND_HALVES * apart).then(|| {
        let facts = Facts::new().with_share("apart", apart.exp_m1(), Base::Itself);
        Remark::new("untested.halves-differ", facts)
    })
}

/// Why a change that ranks show may be chance after all: repeats that follow each other are alike.
fn alike(strata: &[Stratum], log_ratio: Option<f64>) -> Option<Remark> {
    let limit = statistics::serial_limit(strata)?;
    (log_ratio?.abs() < limit.log_ratio).then(|| {
        let facts = Facts::new().with("correlation", limit.correlation);
        Remark::new("untested.serial", facts.with_share("limit", limit.log_ratio.exp_m1(), Base::Itself))
    })
}

/// Repeats of one side that may lie where the other side's are before a change is in doubt.
const MIXED: f64 = 0.05;

/// Why a change that ranks show may be the machine's: one side has repeats like the other's.
fn mixed(strata: &[Stratum]) -> Option<Remark> {
    let share = statistics::overlap(strata).filter(|share| *share > MIXED)?;
    Some(Remark::new("untested.overlap", Facts::new().with_share("overlap", share, Base::Itself)))
}

/// Stages of an imported trace may have a time and no samples, and runs may have no input in common.
fn without_samples(base: &RunRecords, with: &RunRecords, stage: Stage) -> Row {
    let sampled =
        |run: &RunRecords| run.metrics.times.samples.iter().any(|sample| sample.stage == stage && !sample.warmup);
    let mean = |run: &RunRecords| summary(run, stage).and_then(per_instance);
    let (base_time, with_time) = (mean(base), mean(with));
    let alone = |run: &RunRecords, mean| Measured {
        time_ns: time(mean),
        samples: instances(run, stage),
        ..Measured::default()
    };
    let row = Row { base: alone(base, base_time), with: alone(with, with_time), ..Row::default() };
    if sampled(base) && sampled(with) {
        return Row { evidence: Evidence::untested(Remark::new("untested.no-common-input", Facts::new())), ..row };
    }
    let evidence = Evidence::untested(Remark::new("untested.one-pass", Facts::new()));
    Row { log_ratio: log_ratio(base_time, with_time), evidence, ..row }
}

/// Several runs, each a single number: its time over all common inputs.
fn runs(sides: Sides<'_>, pairing: &Pairing, stage: Stage) -> Row {
    let times = all_of_common(sides, pairing, stage);
    let Some(times) = times else {
        let evidence = Evidence::untested(Remark::new("untested.no-common-input", Facts::new()));
        return Row {
            base: count(sides.base, pairing, stage),
            with: count(sides.with, pairing, stage),
            evidence,
            ..Row::default()
        };
    };
    let (base, with) = times.split_at(sides.base.len());
    let side = |runs: &[RunRecords], times: &[f64]| Measured {
        time_ns: time(geometric_mean(times)),
        spread: relative_spread(times),
        ..count(runs, pairing, stage)
    };
    let evidence = student_test(base, with, CONFIDENCE)
        .map_or_else(|| Evidence::untested(Remark::new("untested.equal-runs", Facts::new())), Evidence::from);
    Row {
        base: side(sides.base, base),
        with: side(sides.with, with),
        log_ratio: log_ratio(geometric_mean(base), geometric_mean(with)),
        evidence,
        ..Row::default()
    }
}

/// The time of each run over the inputs all have; of one instance where runs have no samples.
fn all_of_common(sides: Sides<'_>, pairing: &Pairing, stage: Stage) -> Option<Vec<f64>> {
    let series = pairing.common_series(sides.runs(), stage);
    if series.iter().all(|run| !run.is_empty()) {
        return series.iter().map(|run| run.iter().map(|samples| median(samples)).sum()).collect();
    }
    if sides.runs().any(|run| !pairing.series(run, stage).is_empty()) {
        return None;
    }
    sides.runs().map(|run| per_instance(summary(run, stage)?)).collect()
}

/// The time of each run over all of its own inputs, for runs that are compared with nothing.
fn all_of(runs: &[RunRecords], pairing: &Pairing, stage: Stage) -> Vec<f64> {
    let of = |run: &RunRecords| {
        let series = pairing.series(run, stage);
        if series.is_empty() {
            return per_instance(summary(run, stage)?);
        }
        series.values().map(|samples| median(samples)).sum()
    };
    runs.iter().filter_map(of).collect()
}

fn measured<'a>(series: impl Iterator<Item = &'a Vec<f64>> + Clone) -> Measured {
    let medians: Option<f64> = series.clone().map(|samples| median(samples)).sum();
    let (mut squares, mut freedom) = (0.0, 0.0);
    for samples in series.clone() {
        let Some(spread) = relative_spread(samples) else { continue };
        squares += spread.powi(2) * (samples.len() - 1) as f64;
        freedom += (samples.len() - 1) as f64;
    }
    Measured { time_ns: time(medians), spread: share(squares, freedom).map(f64::sqrt), ..flagged(series) }
}

/// Samples and what stands out among them, without a time.
fn flagged<'a>(series: impl Iterator<Item = &'a Vec<f64>>) -> Measured {
    let mut measured = Measured::default();
    for samples in series {
        measured.samples += samples.len() as u64;
        measured.outliers += outliers(samples).into_iter().filter(|apart| *apart).count() as u64;
        measured.warm_up += warm_up(samples) as u64;
    }
    measured
}

fn count(runs: &[RunRecords], pairing: &Pairing, stage: Stage) -> Measured {
    let series: Vec<_> = runs.iter().flat_map(|run| pairing.series(run, stage).into_values()).collect();
    if series.is_empty() {
        return Measured {
            samples: runs.iter().map(|run| instances(run, stage)).sum::<Count>().get(),
            ..Measured::default()
        };
    }
    flagged(series.iter())
}

fn summary(run: &RunRecords, stage: Stage) -> Option<&StageSummary> {
    run.metrics.times.stages.iter().find(|summary| summary.name == stage)
}

fn instances(run: &RunRecords, stage: Stage) -> u64 {
    summary(run, stage).map_or(0, |summary| summary.instances)
}

fn per_instance(summary: &StageSummary) -> Option<f64> {
    share(summary.wall_ns?.get() as f64, summary.instances as f64)
}

/// How many repeats there are, and how many it would take.
fn too_few(strata: &[Stratum], family: usize) -> Remark {
    let fewest = |side: fn(&Stratum) -> usize| strata.iter().map(side).min().unwrap_or_default();
    let (base, with) = (fewest(|stratum| stratum.base.len()), fewest(|stratum| stratum.with.len()));
    let enough = (1..=64).find(|repeats| {
        let alike = Stratum { base: vec![0.0; *repeats], with: vec![1.0; *repeats] };
        rank_test(&vec![alike; strata.len()]).is_some_and(|test| test.smallest_p_value * family as f64 <= SIGNIFICANCE)
    });
    let facts = Facts::new().with("base", base).with("with", with).with("inputs", strata.len());
    Remark::new("untested.few-repeats", facts.with_known("needed", enough))
}
