//! Decode waits for memory while the arithmetic units idle: each weight is read for one token and used once.

use types::{Base, Facts, Finding, Severity, Stage, StepLabel, StepSummary};

use super::{Found, Run};
use crate::statistics::{median, share};

/// Bandwidth use below which memory is not what decode waits for.
const LEAST_MBU: f64 = 0.3;
/// How many times as busy memory must be as arithmetic; below it batching runs into the other limit soon.
const LEAST_RATIO: f64 = 4.0;

/// The rule's name.
pub(super) const RULE: &str = "memory-bound-decode";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let used = run.used.get(&Stage::Decode)?;
    let mbu = used.mbu().filter(|mbu| *mbu >= LEAST_MBU)?;
    let mfu = used.mfu()?;
    let ratio = share(mbu, mfu).filter(|ratio| *ratio >= LEAST_RATIO)?;
    // A server decides anew in every step how many sequences decode.
    let sequences = run.steps.map(|steps| steps.list.iter()).into_iter().flatten().filter_map(decoding);
    let sequences = median(&sequences.collect::<Vec<_>>()).map(|count| count.round() as u64);
    let batch = run.subject.settings.as_ref().map_or(1, |settings| settings.batch);
    let intensity = used.work.flops_matrix / used.work.bytes;
    let facts = Facts::new()
        .with_share("mbu", mbu, Base::PeakBandwidth)
        .with_share("mfu", mfu, Base::PeakCompute)
        .with("intensity", intensity)
        .with("ratio", ratio)
        .with_known("sequences", sequences)
        .with_known("batch", sequences.is_none().then_some(batch));
    Some(Found::plain(Finding::new(RULE, Severity::Info, Some(Stage::Decode), facts)))
}

/// Sequences of a decode step, where its engine says.
fn decoding(step: &StepSummary) -> Option<f64> {
    let batch = step.batch.filter(|_| step.label == Some(StepLabel::Decode))?;
    Some(batch.generation.sequences as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, page, peak, timed, work};

    fn run(flops: u64, bytes: u64) -> Vec<Finding> {
        let samples = vec![timed(Stage::Decode, "a", 0, 1_000)];
        let work = vec![work("a", Stage::Decode, flops, bytes)];
        let inputs = vec![page("a", 10, 5)];
        let records = Case { samples, work, inputs, peak: Some(peak(1e9, 1e9)), ..case() };
        fired(&records, RULE)
    }

    #[test]
    fn busy_memory_and_idle_arithmetic_fire() {
        let found = run(100, 800);
        assert_eq!(found.len(), 1);
        let facts = &found[0].quantities;
        assert_eq!((facts.share("mbu"), facts.share("mfu"), facts.count("batch")), (Some(0.8), Some(0.1), Some(1)));
        assert!((facts.number("ratio").unwrap() - 8.0).abs() < 1e-9);
        assert_eq!((found[0].saving.saves_ns, found[0].saving.saves_share), (None, None));
    }

    #[test]
    fn idle_memory_or_busy_arithmetic_do_not_fire() {
        assert_eq!(run(10, 290), []);
        assert_eq!(run(210, 800), []);
    }

    #[test]
    fn more_traffic_than_memory_can_carry_is_no_evidence() {
        assert_eq!(run(10, 1_100), []);
    }
}
