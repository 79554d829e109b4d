//! Rounds: a step of the target model together with the steps of its draft.

use types::timeline::{ThreadId, Timeline};
use types::{Stage, StepLabel};

use super::step::{EngineStep, by_thread};
use crate::time::Span;

/// One run of a stage: a step, from the first of its drafts to the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) stage: Stage,
    /// On the host.
    pub(super) host: Span,
    pub(super) thread: ThreadId,
    /// Whether a step of the target is in it; the recording may hold its drafts alone.
    pub(super) has_target: bool,
}

/// Rounds of all steps that are in a stage, in order of their start.
pub(super) fn rounds(timeline: &Timeline, steps: &[EngineStep]) -> Vec<Round> {
    let mut rounds = Vec::new();
    for lane in by_thread(timeline, steps) {
        // The round that is open, and whether all of it waits for a step of the target.
        let mut open: Option<(Round, bool)> = None;
        for step in lane.into_iter().map(|place| &steps[place]) {
            let is_draft = step.label == Some(StepLabel::Draft);
            let follows = is_draft && !step.leads();
            let joins = |(round, waits): &(Round, bool)| {
                Some(round.stage) == step.stage && if follows { round.has_target } else { *waits }
            };
            if let Some((round, _)) = open.filter(joins) {
                let has_target = round.has_target || !is_draft;
                open = Some((Round { host: round.host.hull(step.host), has_target, ..round }, step.leads()));
                continue;
            }
            let start = |stage| Round { stage, host: step.host, thread: step.thread, has_target: !is_draft };
            let next = step.stage.map(|stage| (start(stage), step.leads()));
            rounds.extend(std::mem::replace(&mut open, next).map(|(round, _)| round));
        }
        rounds.extend(open.map(|(round, _)| round));
    }
    rounds.sort_by_key(|round| round.host.start);
    rounds
}

#[cfg(test)]
mod tests {
    use types::timeline::{HostThread, TraceFormat};
    use types::{Clock, ClockId, ClockKind, Nanos};

    use super::*;

    /// Steps of ten nanoseconds: label, stage, and where each starts.
    fn found(steps: &[(StepLabel, Stage, &str, i64)]) -> Vec<(Stage, i64, i64, bool)> {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.threads.push(HostThread { process: None, rank: None, thread: None });
        let step = |(label, stage, name, start): &(StepLabel, Stage, &str, i64)| EngineStep {
            name: (*name).to_owned(),
            label: Some(*label),
            stage: Some(*stage),
            batch: None,
            host: Span::new(Nanos::new(*start), Nanos::new(start + 10)),
            thread: ThreadId(0),
        };
        let steps: Vec<_> = steps.iter().map(step).collect();
        let row = |round: &Round| (round.stage, round.host.start.get(), round.host.end.get(), round.has_target);
        rounds(&timeline, &steps).iter().map(row).collect()
    }

    #[test]
    fn drafts_before_and_behind_a_step_are_one_round_with_it() {
        use StepLabel::{Decode, Draft, Prefill, Verify};
        let prefill = |label, start| (label, Stage::Prefill, "step[EXTEND bs=1 toks=8]", start);
        assert_eq!(
            found(&[prefill(Prefill, 0), prefill(Draft, 20), prefill(Prefill, 40), prefill(Prefill, 60)]),
            [(Stage::Prefill, 0, 30, true), (Stage::Prefill, 40, 50, true), (Stage::Prefill, 60, 70, true)]
        );
        let decode = |label, name, start| (label, Stage::Decode, name, start);
        let steps = [
            decode(Draft, "step[DRAFT_EXTEND_V2 bs=1]", 0),
            decode(Draft, "step[DECODE bs=1]", 20),
            decode(Draft, "step[DECODE bs=1]", 40),
            decode(Verify, "step[TARGET_VERIFY bs=1]", 60),
            decode(Draft, "step[DRAFT_EXTEND_V2 bs=1]", 80),
            decode(Draft, "step[DECODE bs=1]", 100),
        ];
        assert_eq!(
            found(&steps),
            [(Stage::Decode, 0, 10, false), (Stage::Decode, 20, 90, true), (Stage::Decode, 100, 110, false)]
        );
        let steps = [decode(Decode, "step[DECODE bs=1]", 0), decode(Decode, "step[DECODE bs=1]", 20)];
        assert_eq!(found(&steps), [(Stage::Decode, 0, 10, true), (Stage::Decode, 20, 30, true)]);
    }
}
