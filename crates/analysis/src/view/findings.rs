//! Findings with what acting on them saves, and of what.

use types::view::{FindingView, Saving, SavingBasis};
use types::{Finding, Metrics, Nanos, ReplayBasis, Stage};

use super::time_share;

/// Findings shown by their saving.
const SAVINGS: usize = 3;

/// Every finding.
pub(super) fn findings(metrics: &Metrics) -> Vec<FindingView<'_>> {
    metrics
        .conclusions
        .findings
        .iter()
        .map(|finding| FindingView { finding, saving: saving(metrics, finding) })
        .collect()
}

/// The findings that would save most.
pub(super) fn largest_savings(metrics: &Metrics) -> Vec<FindingView<'_>> {
    let mut largest = findings(metrics);
    largest.retain(|view| view.saving.is_some_and(|saving| saving.saves_ns > Nanos::ZERO));
    largest.sort_by_key(|view| std::cmp::Reverse(view.finding.saving.saves_ns));
    largest.truncate(SAVINGS);
    largest
}

fn saving(metrics: &Metrics, finding: &Finding) -> Option<Saving> {
    let (saves_ns, share) = (finding.saving.saves_ns?, finding.saving.saves_share);
    let replay = metrics.conclusions.replay.as_ref().filter(|_| finding.saving.saves_low_ns.is_some());
    if let Some(replay) = replay.filter(|replay| replay.basis == Some(ReplayBasis::PlainRun)) {
        let basis = SavingBasis::PlainRun;
        return Some(Saving { saves_ns, share, stage: None, basis, whole_ns: replay.basis_ns, per_input_ns: None });
    }
    if let Some(pass) = metrics.conditions.trace.as_ref().and_then(|facts| facts.traced_pass.as_ref()) {
        let wall = [Stage::Prefill, Stage::Decode].iter().filter_map(|stage| pass.stages.get(stage)).copied().sum();
        let basis = SavingBasis::ProfiledPass;
        let whole = Saving { saves_ns, share, stage: None, basis, whole_ns: Some(wall), per_input_ns: None };
        return Some(of_stage(whole, finding.stage, |stage| pass.stages.get(&stage).copied()));
    }
    // The ledger of a trace covers its stages; nothing could save what lies outside of them, such as loading.
    let marked = metrics.conditions.trace.as_ref().and_then(|facts| facts.stages.as_ref());
    let marked = marked.is_some_and(|basis| !basis.inferred) && !metrics.times.stages.is_empty();
    let (basis, whole_ns) = match metrics.conditions.trace {
        // Without marked stages the books are of the devices' time, stages or not.
        Some(_) if !marked => {
            let spans: Nanos = metrics.breakdown.device_time.iter().map(|time| time.span_ns).sum();
            let whole = replay.and_then(|replay| replay.basis_ns).unwrap_or(spans);
            let devices = SavingBasis::Devices(metrics.breakdown.device_time.len());
            (if whole == spans { devices } else { SavingBasis::Run }, Some(whole))
        }
        Some(_) => {
            let top = metrics.times.stages.iter().filter(|stage| stage.parent.is_none());
            (SavingBasis::Stages, Some(top.filter_map(|stage| stage.wall_ns).sum()))
        }
        None => (SavingBasis::Run, metrics.times.totals.wall_ns),
    };
    let of_devices = !marked && metrics.conditions.trace.is_some();
    let stage = |name: Stage| metrics.times.stages.iter().find(|stage| stage.name == name);
    let inputs = stage(Stage::Prefill).or_else(|| stage(Stage::Decode)).map(|stage| stage.instances);
    let inputs = inputs.filter(|inputs| *inputs > 1 && !of_devices).and_then(|inputs| i64::try_from(inputs).ok());
    let per_input_ns = inputs.map(|inputs| Nanos::new(saves_ns.get() / inputs));
    let whole = Saving { saves_ns, share, stage: None, basis, whole_ns, per_input_ns };
    let wall = |name: Stage| stage(name).and_then(|stage| stage.wall_ns).filter(|_| !of_devices);
    Some(of_stage(whole, finding.stage, wall))
}

/// The saving as a share of the finding's own stage, where that holds it.
fn of_stage(saving: Saving, stage: Option<Stage>, wall: impl Fn(Stage) -> Option<Nanos>) -> Saving {
    let whole = stage.and_then(wall).filter(|wall| *wall >= saving.saves_ns && *wall > Nanos::ZERO);
    let share = whole.and_then(|wall| time_share(saving.saves_ns, wall));
    match share {
        Some(_) => Saving { stage, whole_ns: whole, share, ..saving },
        None => saving,
    }
}
