//! More work than the device can do in the time: one of three numbers is wrong, and the finding says which ones they are.
//!
//! The model lies between its stages, so it exceeds a peak only where a stage does.

use types::{BytesPerSecond, EstimatedSaving, Finding, FlopsPerSecond, PeakUsed, Severity, Stage};

use super::{Found, Run, percent};
use crate::timings::rounded;
use crate::utilisation::Utilisation;

/// The rule's name.
pub(super) const RULE: &str = "utilisation-above-one";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(peak) = &run.subject.peak else { return Vec::new() };
    [arithmetic(run, peak), traffic(run, peak)].into_iter().flatten().collect()
}

fn arithmetic(run: &Run<'_>, peak: &PeakUsed) -> Option<Found> {
    let above = |(stage, used): (&Stage, &Utilisation)| {
        let share = percent(used.flops_share.filter(|share| *share > 1.0)?);
        let rate = FlopsPerSecond::new(used.work.flops_matrix.as_f64() / (used.time / 1e9));
        let (work, time) = (used.work.flops_matrix, rounded(used.time));
        Some((*stage, format!("MFU of {stage} would be {share}: modelled work {work} in {time} is {rate}")))
    };
    let found: Vec<_> = run.used.iter().filter_map(above).collect();
    let advice = format!(
        "No device exceeds its peak, so the peak is too low, the work is not what ran, or the time misses a part. First \
         measure the peak again on a quiet machine (`llm-perf doctor --calibrate`) and check that the model ran in {}.",
        peak.dtype
    );
    let peak = format!("peak {} in {} ({})", peak.flops, peak.dtype, peak.source);
    finding(found, Severity::Error, peak, advice)
}

/// Only good to know: caches explain it, and nothing else rests on the figure.
fn traffic(run: &Run<'_>, peak: &PeakUsed) -> Option<Found> {
    let above = |(stage, used): (&Stage, &Utilisation)| {
        let share = percent(used.bytes_share.filter(|share| *share > 1.0)?);
        let rate = BytesPerSecond::new(used.work.bytes.as_f64() / (used.time / 1e9));
        let (bytes, time) = (used.work.bytes, rounded(used.time));
        Some((*stage, format!("MBU of {stage} would be {share}: modelled traffic {bytes} in {time} is {rate}")))
    };
    let found: Vec<_> = run.used.iter().filter_map(above).collect();
    let advice = "The bytes cannot all have come from memory: weights or activations stayed in caches, or the bandwidth was \
                  measured too low. MBU says nothing here; a model larger than the caches makes it meaningful.";
    let peak = format!("peak {} ({})", peak.bytes_per_second, peak.source);
    finding(found, Severity::Info, peak, advice.to_owned())
}

fn finding(found: Vec<(Stage, String)>, severity: Severity, peak: String, advice: String) -> Option<Found> {
    let stage = match found.as_slice() {
        [] => return None,
        [(stage, _)] => Some(*stage),
        _ => None,
    };
    let evidence = found.into_iter().map(|(_, line)| line).chain([peak]).collect();
    let rule = RULE.to_owned();
    Some(Found::plain(Finding {
        rule,
        severity,
        stage,
        evidence,
        quantities: Default::default(),
        saving: EstimatedSaving::default(),
        advice,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, page, peak, timed, work};

    fn run(flops: u64, bytes: u64) -> Vec<Finding> {
        let samples = vec![timed(Stage::Prefill, "a", 0, 1_000)];
        let work = vec![work("a", Stage::Prefill, flops, bytes)];
        let inputs = vec![page("a", 1, 1)];
        fired(&Case { samples, work, inputs, peak: Some(peak(1e9, 1e9)), ..case() }, RULE)
    }

    #[test]
    fn work_past_the_peak_cannot_be_true() {
        let found = run(1_010, 1);
        assert_eq!((found.len(), found[0].stage, found[0].severity), (1, Some(Stage::Prefill), Severity::Error));
        let expected = "MFU of prefill would be 101.0%: modelled work 1.01 kFLOP in 1.00 us is 1.01 GFLOP/s";
        assert_eq!((found[0].evidence[0].as_str(), found[0].saving.saves_ns), (expected, None));
    }

    #[test]
    fn traffic_past_the_peak_is_explained_by_caches() {
        let found = run(1, 2_000);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Info));
        assert!(found[0].evidence[0].starts_with("MBU of prefill would be 200.0%"), "{:?}", found[0].evidence);
    }

    #[test]
    fn exactly_the_peak_does_not_fire() {
        assert_eq!(run(1_000, 1_000), []);
    }

    #[test]
    fn several_stages_are_one_finding() {
        let samples = vec![timed(Stage::Prefill, "a", 0, 1_000), timed(Stage::Decode, "a", 0, 1_000)];
        let work = vec![work("a", Stage::Prefill, 2_000, 1), work("a", Stage::Decode, 3_000, 1)];
        let records = Case { samples, work, peak: Some(peak(1e9, 1e9)), ..case() };
        let found = fired(&records, RULE);
        assert_eq!((found.len(), found[0].stage, found[0].evidence.len()), (1, None, 3));
    }
}
