//! More work than the device can do in the time: one of three numbers is wrong, and the finding says which ones they are.

use types::{BytesPerSecond, Finding, FlopsPerSecond, PeakUsed, Severity, Stage};

use super::{Run, percent};
use crate::timings::rounded;
use crate::utilisation::Utilisation;

pub(super) fn check(run: &Run<'_>) -> Vec<Finding> {
    let Some(peak) = &run.records.peak else { return Vec::new() };
    let stages = run.used.iter().map(|(stage, used)| (Some(*stage), *used));
    let model = run.whole.map(|used| (None, used));
    stages
        .chain(model)
        .flat_map(|(stage, used)| [operations(stage, used, peak), traffic(stage, used, peak)])
        .flatten()
        .collect()
}

fn operations(stage: Option<Stage>, used: Utilisation, peak: &PeakUsed) -> Option<Finding> {
    let share = used.flops_share.filter(|share| *share > 1.0)?;
    let rate = used.work.flops_matrix.as_f64() / (used.time / 1e9);
    Some(Finding {
        rule: "utilisation-above-one".to_owned(),
        severity: Severity::Error,
        stage,
        evidence: vec![
            format!("MFU would be {}", percent(share)),
            format!("modelled work {} in {}", used.work.flops_matrix, rounded(used.time)),
            format!("that is {}", FlopsPerSecond::new(rate)),
            format!("peak {} in {} ({})", peak.flops, peak.dtype, peak.source),
        ],
        saves_ns: None,
        saves_share: None,
        advice: format!(
            "No device exceeds its peak, so the peak is too low, the work is not what ran, or the time misses a part. \
             First measure the peak again on a quiet machine (`llm-perf doctor --calibrate`) and check that the model \
             ran in {}.",
            peak.dtype
        ),
    })
}

fn traffic(stage: Option<Stage>, used: Utilisation, peak: &PeakUsed) -> Option<Finding> {
    let share = used.bytes_share.filter(|share| *share > 1.0)?;
    let rate = used.work.bytes.as_f64() / (used.time / 1e9);
    Some(Finding {
        rule: "utilisation-above-one".to_owned(),
        severity: Severity::Warning,
        stage,
        evidence: vec![
            format!("MBU would be {}", percent(share)),
            format!("modelled traffic {} in {}", used.work.bytes, rounded(used.time)),
            format!("that is {}", BytesPerSecond::new(rate)),
            format!("peak {} ({})", peak.bytes_per_second, peak.source),
        ],
        saves_ns: None,
        saves_share: None,
        advice:
            "The bytes cannot all have come from memory: weights or activations stayed in caches, or the bandwidth was \
                 measured too low. MBU says nothing here; a model larger than the caches makes it meaningful."
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProfileRecords;
    use crate::finding::fired;
    use crate::sample::{page, peak, records, timed, work};

    fn run(flops: u64, bytes: u64) -> Vec<Finding> {
        let samples = vec![timed(Stage::Prefill, "a", 0, 1_000)];
        let work = vec![work("a", Stage::Prefill, flops, bytes)];
        let inputs = vec![page("a", 1, 1)];
        fired(
            &ProfileRecords { samples, work, inputs, peak: Some(peak(1e9, 1e9)), ..records() },
            "utilisation-above-one",
        )
    }

    #[test]
    fn work_past_the_peak_fires_for_the_stage_and_the_model() {
        let found = run(1_010, 1);
        assert_eq!(found.iter().map(|one| one.stage).collect::<Vec<_>>(), [Some(Stage::Prefill), None]);
        assert_eq!((found[0].severity, found[0].evidence[0].as_str()), (Severity::Error, "MFU would be 101.0%"));
        assert_eq!(found[0].saves_ns, None);
    }

    #[test]
    fn traffic_past_the_peak_is_only_doubtful() {
        let found = run(1, 2_000);
        assert_eq!((found.len(), found[0].severity), (2, Severity::Warning));
        assert_eq!(found[0].evidence[0], "MBU would be 200.0%");
    }

    #[test]
    fn exactly_the_peak_does_not_fire() {
        assert_eq!(run(1_000, 1_000), []);
    }
}
