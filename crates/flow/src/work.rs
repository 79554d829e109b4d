//! Modelled work, stage by stage.

use std::collections::BTreeMap;

use meter::Prediction;
use network::Model;
use types::{Bytes, Cost, Flops, Stage, Work};

/// Work of every stage; a stage's includes that of the stages nested in it.
pub(crate) fn per_stage(model: &Model, prediction: &Prediction) -> BTreeMap<Stage, Work> {
    let mut stages: BTreeMap<Stage, Work> = BTreeMap::new();
    let mut add = |stage: Stage, cost: &Cost| {
        let work = stages.entry(stage).or_insert(Work { flops_matrix: Flops::ZERO, bytes: Bytes::ZERO });
        work.flops_matrix += cost.flops_matrix;
        work.bytes += cost.bytes.total();
    };
    for op in &prediction.prefill.ops {
        let mut stage = Some(model.blueprint().stage_of(op.module).unwrap_or(Stage::Prefill));
        while let Some(inner) = stage {
            add(inner, &op.cost);
            stage = inner.parent();
        }
    }
    if let Some(decode) = &prediction.decode {
        add(Stage::Decode, &decode.total());
    }
    stages
}
