//! What stands out about the stages of a run.

use types::view::{LossBasis, Resource, StageView, Takeaway};
use types::{Metrics, Stage};

use super::time_share;

/// How many times as busy one resource must be as the other for a stage to be called bound by it.
const CLEARLY: f64 = 2.0;
/// Share of its peak that a resource must reach to bound anything: a stage that waits is bound by what it waits for.
const MUCH: f64 = 0.3;

/// One takeaway for each stage at the top, and for vision; its encoders are named with it.
pub(super) fn takeaways<'a>(metrics: &'a Metrics, stages: &[StageView<'_>]) -> Vec<Takeaway<'a>> {
    stages.iter().filter_map(|stage| takeaway(metrics, stage)).collect()
}

fn takeaway<'a>(metrics: &'a Metrics, view: &StageView<'_>) -> Option<Takeaway<'a>> {
    let stage = view.stage;
    let (mut parent, mut longest_part) = (None, None);
    match stage.name {
        Stage::Prefill | Stage::Decode => {}
        Stage::Vision => {
            let wall = stage.wall_ns?;
            let prefill = metrics.times.stages.iter().find(|other| other.name == Stage::Prefill)?;
            parent = Some((Stage::Prefill, time_share(wall, prefill.wall_ns?)));
            let parts = metrics.times.stages.iter().filter(|other| other.parent == Some(Stage::Vision));
            if let Some(longest) = parts.max_by_key(|other| other.wall_ns) {
                longest_part = Some((longest.name, time_share(longest.wall_ns?, wall)));
            }
        }
        Stage::Sam | Stage::Clip | Stage::Projector => return None,
    }
    let utilisation = stage.mfu.zip(stage.mbu);
    let is_clear = |one: f64, other: f64| one >= MUCH && one > other * CLEARLY;
    let bound = utilisation.and_then(|(mfu, mbu)| {
        if is_clear(mbu, mfu) { Some(Resource::Memory) } else { is_clear(mfu, mbu).then_some(Resource::Compute) }
    });
    // Where device work was traced, the books are of that one pass, however often the stage was measured without a profiler.
    let traced = view.profiled_ns.filter(|_| !metrics.breakdown.device_time.is_empty());
    let (whole, loss_basis) = match traced {
        Some(traced) => (Some(traced), LossBasis::ProfiledPass),
        None => (stage.wall_ns, LossBasis::Measured),
    };
    let losses = metrics.conclusions.lost_time.iter().filter(|row| row.stage == Some(stage.name));
    let largest_loss = losses
        .max_by_key(|row| row.lost_ns)
        .map(|row| (&*row.cause, whole.and_then(|whole| time_share(row.lost_ns, whole))));
    let (run_share, repeat_cv) = (view.run_share, view.repeat_cv);
    Some(Takeaway {
        stage: stage.name,
        run_share,
        parent,
        longest_part,
        utilisation,
        bound,
        largest_loss,
        loss_basis,
        repeat_cv,
    })
}
