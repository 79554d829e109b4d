//! Batches of decoding sequences that a serving engine pads to the size of a captured graph.

use std::collections::BTreeMap;

use types::{Base, EstimatedSaving, Facts, Finding, Severity, Stage, StepLabel, StepSummary};

use super::{Claim, Found, Run};
use crate::replay::{Change, Chosen};
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Share of the device's time in decode steps that smaller graphs could save at most.
const LEAST_SHARE: f64 = 0.05;
/// The same from which it is a warning.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "padded-batches";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    found(&run.steps?.list)
}

/// A decode step: its sequences' tokens, those its kernels process, and its time.
struct Sized {
    tokens: u64,
    size: u64,
    time: f64,
}

fn found(steps: &[StepSummary]) -> Option<Found> {
    let decode = steps.iter().filter(|step| step.label == Some(StepLabel::Decode));
    let sized = decode.filter_map(|step| {
        let (tokens, size) = (step.batch?.tokens?, step.processed_tokens?);
        Some(Sized { tokens, size, time: step.device_ns.get() as f64 })
    });
    let sized: Vec<Sized> = sized.collect();
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    sized.iter().for_each(|step| sizes.entry(step.size).or_default().push(step.time));
    let usual: BTreeMap<u64, f64> = sizes.iter().filter_map(|(size, times)| Some((*size, median(times)?))).collect();
    // No batch takes less time than a smaller one; without one, than what is left if all work were that of tokens.
    let least = |step: &Sized| {
        let smaller = usual.range(..step.size).next_back().map(|(_, time)| *time);
        let (tokens, size) = (step.tokens as f64, step.size as f64);
        smaller.unwrap_or(step.time * tokens / size).min(step.time)
    };
    let padded: Vec<&Sized> = sized.iter().filter(|step| step.size > step.tokens).collect();
    let time: f64 = sized.iter().map(|step| step.time).sum();
    let at_most: f64 = padded.iter().map(|step| step.time - least(step)).sum();
    let part = share(at_most, time).filter(|part| *part >= LEAST_SHARE)?;
    // The batch whose padding takes most.
    let mut batches: BTreeMap<(u64, u64), (u64, f64)> = BTreeMap::new();
    for step in &padded {
        let batch = batches.entry((step.tokens, step.size)).or_default();
        *batch = (batch.0 + 1, batch.1 + step.time - least(step));
    }
    let ((tokens, size), (times, _)) = batches.into_iter().max_by(|one, other| one.1.1.total_cmp(&other.1.1))?;
    let smaller = usual.range(..size).next_back().map(|(size, time)| (*size, rounded(*time)));
    let facts = Facts::new()
        .with("steps", padded.len())
        .with("all", sized.len())
        .with("tokens", tokens)
        .with("size", size)
        .with("times", times)
        .with_known("step_time", usual.get(&size).copied().map(rounded))
        .with_known("smaller", smaller.map(|(size, _)| size))
        .with_known("smaller_time", smaller.map(|(_, time)| time))
        .with_share("part", part, Base::Itself);
    let saving = EstimatedSaving::at_most(rounded(at_most));
    let severity = if part < MUCH { Severity::Info } else { Severity::Warning };
    let finding = Finding::new(RULE, severity, Some(Stage::Decode), facts).saving(saving);
    let change = Change::Share(Chosen::All, 1.0 - part);
    Some(Found::new(finding, Claim::Work(Vec::new())).replayed(change))
}

#[cfg(test)]
mod tests {
    use types::{Nanos, StepBatch, StepGroup};

    use super::*;

    fn step((tokens, size, time): &(u64, Option<u64>, i64)) -> StepSummary {
        let generation = StepGroup { sequences: *tokens, ..StepGroup::default() };
        StepSummary {
            label: Some(StepLabel::Decode),
            device_ns: Nanos::new(*time),
            batch: Some(StepBatch { tokens: Some(*tokens), generation, ..StepBatch::default() }),
            processed_tokens: *size,
            ..StepSummary::default()
        }
    }

    fn quantities(steps: &[(u64, Option<u64>, i64)]) -> Option<(Option<u64>, Option<u64>, Option<Nanos>)> {
        let found = found(&steps.iter().map(step).collect::<Vec<_>>())?;
        let of = |name| found.finding.quantities.count(name);
        Some((of("tokens"), of("size"), found.finding.saving.saves_ns))
    }

    #[test]
    fn padding_costs_at_most_the_time_above_a_smaller_batch() {
        let steps = [(32, Some(32), 1_000), (33, Some(256), 1_500), (33, Some(256), 1_500), (40, Some(256), 1_500)];
        assert_eq!(quantities(&steps), Some((Some(33), Some(256), Some(Nanos::new(1_500)))));
        // Without a smaller one, at most what is not the batch's own.
        assert_eq!(quantities(&[(30, Some(40), 1_000)]), Some((Some(30), Some(40), Some(Nanos::new(250)))));
    }

    #[test]
    fn nothing_is_said_of_padding_that_costs_nothing_or_is_not_known() {
        assert_eq!(quantities(&[(8, Some(8), 1_000), (15, Some(16), 1_010)]), None);
        assert_eq!(quantities(&[(33, None, 1_500), (32, None, 1_000)]), None);
        assert_eq!(quantities(&[(33, Some(33), 1_500), (32, Some(32), 1_000)]), None);
    }
}
