//! What rules about launches share: the facts of a part of the run, and whether CUDA graphs launch it already.

use types::{Base, EstimatedSaving, Facts, Finding, IdleCause, Nanos, RunKindName, StepBasis};

use super::idle::{some, waiting};
use super::{Claim, Found, Run, recomputed_tokens};
use crate::device::StageWork;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// Share of the work in CUDA graphs from which no further graph helps.
const IN_GRAPHS: f64 = 0.5;

/// Parts of the run that lose at least such a share of their time to launch gaps. What is launched into a capture is on its way into
/// a graph, and what a server launches between its steps is no step that could be captured.
pub(super) fn launching<'a>(run: &Run<'a>, least: f64) -> impl Iterator<Item = (Scope, &'a StageWork, Nanos, f64)> {
    let is_between = move |scope: &Scope| *scope == Scope::Rest && run.kind() == Some(RunKindName::Serving);
    let parts =
        waiting(run, IdleCause::Launching, least).filter(move |_| run.kind() != Some(RunKindName::GraphCapture));
    parts.filter(move |(scope, _, waiting, _)| !is_between(scope) && !run.is_little(*waiting))
}

/// A finding about launches: what it saves is bounded by the time lost to them. A graph of what is launched once saves nothing, and
/// passes over ever more tokens have no graph in common.
pub(super) fn lost_to_launches(finding: Finding, saves: Nanos, change: Change) -> Found {
    if finding.quantities.has(SINGLE) || finding.quantities.has(GROWS) {
        return Found::plain(finding);
    }
    let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::Launching)]);
    Found::new(finding.saving(EstimatedSaving::at_most(saves)), claim).replayed(change)
}

/// The fact that hardly anything is launched again.
const SINGLE: &str = "single";
/// The fact that every pass has other shapes than the one before.
const GROWS: &str = "grows";
/// Launches of one kernel from which it is launched again.
const AGAIN: u64 = 3;

/// Whether most launches of a part of the run are of kernels, copies and memsets that it launches again.
fn recurs(run: &Run<'_>, scope: Scope) -> bool {
    let calls = |which: &dyn Fn(u64) -> bool| -> u64 {
        let groups = run.device.iter().flat_map(|device| &device.groups).filter(|group| group.scope == scope);
        groups.map(|group| group.calls).filter(|calls| which(*calls)).sum()
    };
    2 * calls(&|calls| calls >= AGAIN) >= calls(&|_| true)
}

/// Whether most of the work is in graphs already.
pub(super) fn is_in_graphs(work: &StageWork) -> bool {
    work.graph_share() >= IN_GRAPHS
}

/// Launched in one go, pieces of work still follow each other no closer than they ever did in this run.
pub(super) fn without_launches(work: &StageWork, waiting: Nanos) -> Nanos {
    let remaining = work.shortest_wait.unwrap_or_default().get().saturating_mul(work.launches as i64);
    (waiting - Nanos::new(remaining)).max(Nanos::ZERO)
}

/// What is known of the launches of a part of the run.
pub(super) fn facts(run: &Run<'_>, stage: Scope, work: &StageWork, waiting: Nanos, part: f64) -> Option<Facts> {
    let busy = share(work.busy().get() as f64, work.wall.get() as f64)?;
    // Kernels that repeat leave out what differs, so that the run is more than these steps.
    let is_repetition = run.steps.is_some_and(|steps| steps.basis == StepBasis::Repetition);
    let (unit, count) = match work.steps {
        Some(steps) => ("step", steps),
        None if stage == Scope::Run && steps_of(run) > 1 && !is_repetition => ("step", steps_of(run)),
        None if stage.stage().is_none() => ("", 1),
        None => ("pass", work.instances),
    };
    let interval = share(work.wall.get() as f64, work.launches as f64).map(rounded);
    let grows = recomputed_tokens::passes(run).is_some();
    let of_token = |time: Nanos| Some(rounded(share(time.get() as f64, work.steps? as f64)?));
    let roofline = work.least().and_then(of_token);
    let facts = Facts::new()
        .with("where", stage.base())
        .with("idle", waiting)
        .with_share("idle_share", part, stage.base())
        .with("wall", work.wall)
        .with_share("busy_share", busy, stage.base())
        .with_known("launches", share(work.launches as f64, count as f64).filter(|_| interval.is_some()))
        .with_known("unit", Some(unit).filter(|unit| !unit.is_empty()))
        .with_known("interval", interval)
        .with_if("several_devices", run.device_time.len() > 1)
        .with_known("token", of_token(work.wall).filter(|_| roofline.is_some()))
        .with_known("token_roofline", roofline)
        .with_if(
            "serving",
            matches!(run.kind(), Some(RunKindName::Serving | RunKindName::Generation | RunKindName::Inference)),
        )
        .with_if("server", run.kind() == Some(RunKindName::Serving))
        .with_if("hip", run.is_hip())
        .with_if("run_graphs", run.launches_graphs())
        .with_if("training", run.kind() == Some(RunKindName::Training))
        .with_if("repeats", repeats(run, stage, work) && !grows)
        .with_if(GROWS, grows)
        .with_if(SINGLE, !repeats(run, stage, work) && !recurs(run, stage));
    let graphs = work.graphs;
    if graphs.launches == 0 {
        return Some(facts);
    }
    let facts = facts
        .with("graphs", graphs.launches)
        .with_share("graph_share", work.graph_share(), Base::Itself)
        .with("eager", work.launches - graphs.launches);
    let facts = facts.with_known("inside_graphs", some(graphs.waits.launching));
    Some(facts.with_known("before_graphs", some(graphs.waits.before_first)))
}

/// Steps that the trace shows.
fn steps_of(run: &Run<'_>) -> u64 {
    run.steps.map_or(0, |steps| steps.list.len() as u64)
}

/// Only what repeats can be captured once and launched again.
fn repeats(run: &Run<'_>, scope: Scope, work: &StageWork) -> bool {
    match scope {
        Scope::Run => steps_of(run) > 1,
        Scope::Rest => false,
        Scope::Stage(_) => work.steps.map_or(work.instances, |steps| steps) > 1,
    }
}
