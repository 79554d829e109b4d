//! What rules about launches share: the facts of a part of the run, and whether CUDA graphs launch it already.

use types::{Base, Facts, Nanos, RunKindName};

use super::idle::some;
use super::{Run, recomputed_tokens};
use crate::device::StageWork;
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// Share of the work in CUDA graphs from which no further graph helps.
const IN_GRAPHS: f64 = 0.5;

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
    let (unit, count) = match work.steps {
        Some(steps) => ("step", steps),
        None if stage == Scope::Run && steps_of(run) > 1 => ("step", steps_of(run)),
        None if stage.stage().is_none() => ("", 1),
        None => ("pass", work.instances),
    };
    let interval = share(work.wall.get() as f64, work.launches as f64).map(rounded);
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
        .with_if("repeats", repeats(run, stage, work) && recomputed_tokens::passes(run).is_none());
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
