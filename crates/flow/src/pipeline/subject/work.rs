//! Modelled work, stage by stage.

use std::collections::BTreeMap;

use meter::Prediction;
use network::Model;
use types::{Cost, Stage, Work};

/// Work of every stage; a stage's includes that of the stages nested in it.
pub(crate) fn per_stage(model: &Model, prediction: &Prediction) -> BTreeMap<Stage, Work> {
    costs(model, prediction).into_iter().map(|(stage, cost)| (stage, work(&cost))).collect()
}

/// The same with every part of the cost.
pub(crate) fn costs(model: &Model, prediction: &Prediction) -> BTreeMap<Stage, Cost> {
    let mut stages: BTreeMap<Stage, Cost> = BTreeMap::new();
    for op in &prediction.prefill.ops {
        let innermost = model.blueprint().stage_of(op.module).unwrap_or(Stage::Prefill);
        for stage in std::iter::successors(Some(innermost), |stage| stage.parent()) {
            *stages.entry(stage).or_default() += op.cost;
        }
    }
    if let Some(decode) = &prediction.decode {
        *stages.entry(Stage::Decode).or_default() += decode.total();
    }
    stages
}

/// What of a cost utilisation counts.
pub(crate) fn work(cost: &Cost) -> Work {
    Work { flops_matrix: cost.flops_matrix, bytes: cost.bytes.total() }
}
