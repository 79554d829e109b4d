//! More work than the device can do in the time: one of three numbers is wrong, and the finding says which ones they are.
//!
//! The model lies between its stages, so it exceeds a peak only where a stage does.

use types::{Base, BytesPerSecond, Facts, Finding, FlopsPerSecond, PeakUsed, Severity, Stage};

use super::{Found, Run};
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
        let share = used.flops_share.filter(|share| *share > 1.0)?;
        let rate = FlopsPerSecond::new(used.work.flops_matrix.as_f64() / (used.time / 1e9));
        let facts = of_stage(*stage, used).with_share("mfu", share, Base::PeakCompute);
        Some((*stage, facts.with("work", used.work.flops_matrix).with("rate", rate)))
    };
    let peak = Facts::new()
        .with_if("compute", true)
        .with("peak", peak.flops)
        .with("dtype", peak.dtype.to_string())
        .with("source", &peak.source);
    finding(run.used.iter().filter_map(above).collect(), Severity::Error, peak)
}

/// Only good to know: caches explain it, and nothing else rests on the figure.
fn traffic(run: &Run<'_>, peak: &PeakUsed) -> Option<Found> {
    let above = |(stage, used): (&Stage, &Utilisation)| {
        let share = used.bytes_share.filter(|share| *share > 1.0)?;
        let rate = BytesPerSecond::new(used.work.bytes.as_f64() / (used.time / 1e9));
        let facts = of_stage(*stage, used).with_share("mbu", share, Base::PeakBandwidth);
        Some((*stage, facts.with("moved", used.work.bytes).with("rate", rate)))
    };
    let peak = Facts::new().with_if("traffic", true).with("peak", peak.bytes_per_second).with("source", &peak.source);
    finding(run.used.iter().filter_map(above).collect(), Severity::Info, peak)
}

fn of_stage(stage: Stage, used: &Utilisation) -> Facts {
    Facts::new().with("where", Base::Stage(stage)).with("time", rounded(used.time))
}

fn finding(found: Vec<(Stage, Facts)>, severity: Severity, peak: Facts) -> Option<Found> {
    let stage = match found.as_slice() {
        [] => return None,
        [(stage, _)] => Some(*stage),
        _ => None,
    };
    let stages: Vec<_> = found.into_iter().map(|(_, facts)| facts).collect();
    Some(Found::plain(Finding::new(RULE, severity, stage, peak.with("stages", stages))))
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
        let expected = Facts::new()
            .with("where", Base::Stage(Stage::Prefill))
            .with("time", types::Nanos::new(1_000))
            .with_share("mfu", 1.01, Base::PeakCompute)
            .with("work", types::Flops::new(1_010))
            .with("rate", FlopsPerSecond::new(1.01e9));
        assert_eq!((found[0].quantities.rows("stages"), found[0].saving.saves_ns), (&[expected][..], None));
        assert!(found[0].quantities.has("compute"));
    }

    #[test]
    fn traffic_past_the_peak_is_explained_by_caches() {
        let found = run(1, 2_000);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Info));
        assert_eq!(found[0].quantities.rows("stages")[0].share("mbu"), Some(2.0));
        assert!(found[0].quantities.has("traffic"));
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
        assert_eq!((found.len(), found[0].stage, found[0].quantities.rows("stages").len()), (1, None, 2));
    }
}
