//! What remedies saved: both sides of every try, as they ran in turns.
//!
//! A saving is `1 - tried / baseline` of the medians, with a bootstrap interval of their ratio. It is of a whole request, and
//! for runs that generate also of the time to the first token and per token. A batch answers more sequences in a longer
//! request, so that its gain is in the throughput.

use std::collections::BTreeMap;

use types::{Finding, Nanos, RateChange, Remedies, Stage, TimeChange, Trials, TriedSaving, Try, TryStatus, TryTurn};

use crate::evidence::TryRuns;
use crate::statistics::{Stratum, log_ratio, log_ratio_interval, median};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Every try with its figures; predicted savings come by rule, or by the name of remedies together.
pub(crate) fn trials(runs: &[TryRuns], predicted: &BTreeMap<String, f64>) -> Trials {
    Trials::checked(runs.iter().map(|one| tried(one, predicted)).collect())
}

/// What the findings of each rule save together: those of different stages save different time.
pub(crate) fn predictions(findings: &[Finding]) -> BTreeMap<String, f64> {
    let mut predicted = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.saving.assumes.is_some()) {
        if let Some(share) = finding.saving.saves_share {
            *predicted.entry(finding.rule.clone()).or_default() += share;
        }
    }
    predicted
}

/// Lets findings tell what came of trying their remedy: the one of those with their rule that saved most, as a share of the
/// finding's stage or of the run.
pub(crate) fn tell(findings: &mut [Finding], trials: &Trials, time: impl Fn(Option<Stage>) -> Option<Nanos>) {
    for finding in findings.iter_mut().filter(|finding| finding.saving.assumes.is_some()) {
        let of_rule = trials.tries.iter().filter(|one| one.status == TryStatus::Tried);
        let of_rule = of_rule.filter(|one| one.remedy.single().and_then(|one| one.rule()) == Some(&finding.rule));
        let saved = of_rule.filter_map(|one| Some((one, part(one, finding.stage)?)));
        let best = saved.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0));
        let Some((one, (share, low, high))) = best else { continue };
        let Some(whole) = time(finding.stage) else { continue };
        let of_whole = |share: f64| Nanos::new((share * whole.get() as f64).round() as i64);
        finding.saving.tried = Some(TriedSaving {
            remedy: one.remedy.to_string(),
            saved_ns: of_whole(share),
            saved_low_ns: low.map(of_whole),
            saved_high_ns: high.map(of_whole),
        });
    }
}

/// Share of a stage that a try saved, with its interval; of a request without a stage.
fn part(one: &Try, stage: Option<Stage>) -> Option<(f64, Option<f64>, Option<f64>)> {
    let of = |change: Option<TimeChange>| change.map(|change| (change.saves_share, change.low, change.high));
    match stage.map(Stage::top) {
        None => Some((one.saves_share?, one.low, one.high)),
        Some(Stage::Decode) => of(one.per_token),
        Some(_) => of(one.first_token),
    }
}

fn tried(runs: &TryRuns, predicted: &BTreeMap<String, f64>) -> Try {
    let turns = &runs.turns;
    let request = change(turns, |turn| Some(turn.wall_ns.get() as f64));
    let generates = turns.iter().any(|turn| turn.decode_ns.is_some());
    Try {
        remedy: runs.remedies.clone(),
        status: runs.status,
        reason: runs.reason.clone(),
        baseline_ns: request.map(|change| change.baseline_ns),
        tried_ns: request.map(|change| change.tried_ns),
        saves_share: request.map(|change| change.saves_share),
        low: request.and_then(|change| change.low),
        high: request.and_then(|change| change.high),
        predicted_saves_share: prediction(&runs.remedies, predicted),
        first_token: change(turns, |turn| Some(turn.prefill_ns.get() as f64)).filter(|_| generates),
        per_token: change(turns, per_token),
        throughput: request.and_then(|request| throughput(turns, request)),
        output: runs.output,
        baseline_peak_memory_bytes: runs.baseline_peak_memory,
        peak_memory_bytes: runs.peak_memory,
        compile_ns: runs.compile,
        adopt: runs.remedies.adopt(),
        notes: runs.notes.clone(),
        turns: runs.turns.clone(),
    }
}

/// Remedies together have a prediction of their own: savings do not add up.
fn prediction(remedies: &Remedies, predicted: &BTreeMap<String, f64>) -> Option<f64> {
    let together = predicted.get(&remedies.to_string());
    together.or_else(|| predicted.get(remedies.single()?.rule()?)).copied()
}

/// Time of one decode step: the first token is prefill's.
fn per_token(turn: &TryTurn) -> Option<f64> {
    let steps = turn.tokens.checked_sub(1).filter(|steps| *steps > 0)?;
    Some(turn.decode_ns?.get() as f64 / steps as f64)
}

fn side(turns: &[TryTurn], baseline: bool, time: impl Fn(&TryTurn) -> Option<f64>) -> Vec<f64> {
    turns.iter().filter(|turn| turn.baseline == baseline).filter_map(time).collect()
}

fn change(turns: &[TryTurn], time: impl Fn(&TryTurn) -> Option<f64>) -> Option<TimeChange> {
    let strata = [Stratum { base: side(turns, true, &time), with: side(turns, false, &time) }];
    let saves = |log: f64| 1.0 - log.exp();
    let interval = log_ratio_interval(&strata, CONFIDENCE);
    Some(TimeChange {
        baseline_ns: whole(median(&strata[0].base)?),
        tried_ns: whole(median(&strata[0].with)?),
        saves_share: saves(log_ratio(&strata)?),
        low: interval.map(|interval| saves(interval.high)),
        high: interval.map(|interval| saves(interval.low)),
    })
}

/// Every request of a side generates as much, so that rates follow from the times.
fn throughput(turns: &[TryTurn], request: TimeChange) -> Option<RateChange> {
    let work = |baseline: bool| {
        let turn = turns.iter().find(|turn| turn.baseline == baseline)?;
        Some((turn.sequences * turn.tokens.max(1)) as f64)
    };
    let (before, after) = (work(true)?, work(false)?);
    let rate = |work: f64, time: Nanos| work * 1e9 / time.get() as f64;
    let ratio = |saves: f64| after / before / (1.0 - saves);
    Some(RateChange {
        baseline_per_second: rate(before, request.baseline_ns),
        tried_per_second: rate(after, request.tried_ns),
        ratio: ratio(request.saves_share),
        low: request.low.map(ratio),
        high: request.high.map(ratio),
    })
}

fn whole(time: f64) -> Nanos {
    Nanos::new(time.round() as i64)
}

#[cfg(test)]
mod tests {
    use types::{Remedy, TryStatus};

    use super::*;

    fn turn(baseline: bool, round: u32, [prefill, decode]: [i64; 2], sequences: u64) -> TryTurn {
        TryTurn {
            baseline,
            round,
            prefill_ns: Nanos::new(prefill),
            decode_ns: Some(Nanos::new(decode)),
            wall_ns: Nanos::new(prefill + decode),
            tokens: 5,
            sequences,
        }
    }

    fn runs(remedy: Remedy, base: [i64; 2], with: [i64; 2], sequences: u64) -> TryRuns {
        let rounds = (0..8).flat_map(|round| {
            let noise = i64::from(round) * 10;
            let noisy = |[prefill, decode]: [i64; 2]| [prefill + noise, decode + noise];
            [turn(true, round, noisy(base), 1), turn(false, round, noisy(with), sequences)]
        });
        TryRuns { turns: rounds.collect(), ..TryRuns::new(remedy.into(), TryStatus::Tried, None) }
    }

    #[test]
    fn a_case_worked_by_hand() {
        // Medians of eight rounds: noise 35, so 100_070 + 400_000 of the baseline and 100_070 + 100_000 with the remedy.
        let runs = runs(Remedy::CudaGraph, [100_000, 400_000], [100_000, 100_000], 1);
        let predicted = BTreeMap::from([("launch-bound".to_owned(), 0.55)]);
        let one = trials(&[runs], &predicted).tries.remove(0);
        assert_eq!((one.baseline_ns, one.tried_ns), (Some(Nanos::new(500_070)), Some(Nanos::new(200_070))));
        assert!((one.saves_share.unwrap() - (1.0 - 200_070.0 / 500_070.0)).abs() < 1e-12);
        assert!(one.low.unwrap() <= one.saves_share.unwrap() && one.saves_share.unwrap() <= one.high.unwrap());
        // Four steps of 400_035 / 4 and 100_035 / 4.
        let step = one.per_token.unwrap();
        assert_eq!((step.baseline_ns, step.tried_ns), (Nanos::new(100_009), Nanos::new(25_009)));
        assert!(one.first_token.unwrap().saves_share.abs() < 1e-12);
        assert_eq!(one.predicted_saves_share, Some(0.55));
        // Five tokens in 500_070 ns, and in 200_070 ns.
        let rates = one.throughput.unwrap();
        assert!((rates.baseline_per_second - 5e9 / 500_070.0).abs() < 1e-6, "{rates:?}");
        assert!((rates.ratio - 500_070.0 / 200_070.0).abs() < 1e-9, "{rates:?}");
        assert!(rates.low.unwrap() <= rates.ratio && rates.ratio <= rates.high.unwrap(), "{rates:?}");
    }

    #[test]
    fn a_batch_gains_throughput_and_costs_latency() {
        let one =
            trials(&[runs(Remedy::Batch(8), [10_000, 40_000], [20_000, 60_000], 8)], &BTreeMap::new()).tries.remove(0);
        assert!(one.saves_share.unwrap() < 0.0, "{:?}", one.saves_share);
        let ratio = one.throughput.unwrap().ratio;
        assert!((ratio - 8.0 * 50_070.0 / 80_070.0).abs() < 1e-9, "{ratio}");
        assert_eq!(one.predicted_saves_share, None);
    }

    #[test]
    fn remedies_together_take_no_single_prediction() {
        let predicted = BTreeMap::from([("launch-bound".to_owned(), 0.5), ("cuda-graph+bf16".to_owned(), 0.7)]);
        let of = |name: &str| prediction(&name.parse().unwrap(), &predicted);
        assert_eq!((of("cuda-graph"), of("cuda-graph+bf16"), of("compile+bf16")), (Some(0.5), Some(0.7), None));
    }

    #[test]
    fn one_side_alone_says_nothing() {
        let turns = vec![turn(true, 0, [1, 1], 1)];
        let runs = TryRuns { turns, ..TryRuns::new(Remedy::Compile.into(), TryStatus::Failed, Some("why".to_owned())) };
        let one = trials(&[runs], &BTreeMap::new()).tries.remove(0);
        assert_eq!((one.baseline_ns, one.saves_share, one.throughput), (None, None, None));
        assert_eq!(one.reason.as_deref(), Some("why"));
        // A single turn each has no interval.
        let turns = vec![turn(true, 0, [1, 1], 1), turn(false, 0, [1, 1], 1)];
        let runs = TryRuns { turns, ..TryRuns::new(Remedy::Compile.into(), TryStatus::Tried, None) };
        let one = trials(&[runs], &BTreeMap::new()).tries.remove(0);
        assert_eq!((one.saves_share, one.low), (Some(0.0), None));
    }
}
