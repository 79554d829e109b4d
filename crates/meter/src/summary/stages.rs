//! Costs and roofline times by stage.

use std::collections::BTreeMap;

use network::Model;
use types::{Bytes, Cost, ForecastTime, Stage, StageCost};

use super::timed_ops::{TimedOp, TimedOps};
use crate::{Prediction, Times};

/// Prefill without the vision stages; not a stage of its own, but a figure people ask for.
const PREFILL_TEXT: &str = "prefill_text";

/// Every stage the model goes through, by name.
pub(super) fn stages(model: &Model, prediction: &Prediction, timed: &TimedOps) -> BTreeMap<String, StageCost> {
    let blueprint = model.blueprint();
    let vision = |op: &TimedOp| blueprint.stage_of(op.module).filter(|stage| *stage != Stage::Prefill);
    let mut stages = BTreeMap::new();
    let mut add = |name: &str, ops: &mut dyn Iterator<Item = &TimedOp>, waits: (Times, Bytes), passes: u64| {
        stages.insert(name.to_owned(), stage(ops, waits, passes));
    };
    // Vision runs whole on every device and waits for none.
    let (waits, none) = (timed.prefill_waits, <(Times, Bytes)>::default());
    add(Stage::Prefill.name(), &mut timed.prefill.iter(), waits, 1);
    add(PREFILL_TEXT, &mut timed.prefill.iter().filter(|op| vision(op).is_none()), waits, 1);
    add(Stage::Vision.name(), &mut timed.prefill.iter().filter(|op| vision(op).is_some()), none, 1);
    for part in model.vision_stages() {
        add(part.name(), &mut timed.prefill.iter().filter(|op| vision(op) == Some(*part)), none, 1);
    }
    let steps = prediction.decode.as_ref().map_or(0, |decode| decode.steps);
    add(Stage::Decode.name(), &mut timed.decode.iter(), timed.decode_waits, steps);
    stages
}

/// Prefill and decode together; nested stages are never added.
pub(super) fn total_ms(stages: &BTreeMap<String, StageCost>) -> f64 {
    [Stage::Prefill, Stage::Decode].iter().filter_map(|stage| stages.get(stage.name())).map(|stage| stage.time_ms).sum()
}

fn stage(ops: &mut dyn Iterator<Item = &TimedOp>, (waits, sent): (Times, Bytes), passes: u64) -> StageCost {
    let (mut cost, mut time, mut operations) = (Cost::ZERO, waits, 0);
    for op in ops {
        cost += op.cost;
        time += op.time;
        operations += op.count;
    }
    StageCost {
        flops_matrix: cost.flops_matrix,
        flops_vector: cost.flops_vector,
        bytes: cost.bytes,
        operations,
        time_ms: time.total.as_millis(),
        compute_bound_ms: time.compute_bound.as_millis(),
        memory_bound_ms: time.memory_bound.as_millis(),
        communication_ms: time.communication.as_millis(),
        sent_bytes: sent,
        bound: time.bound().name().to_owned(),
        passes,
        forecast: ForecastTime::default(),
    }
}
