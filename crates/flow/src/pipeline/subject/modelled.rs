//! A prediction, operation by operation, as the analysis lays it beside a trace.

use analysis::alignment::{ModelledOperator, ModelledRun};
use meter::{DecodePass, OpRecord, Prediction, Roofline};
use network::Model;
use types::{Cost, Nanos, Role, Seconds, Stage};

/// Everything `prediction` says the model does, with the roofline time on a device whose peaks are known.
pub(crate) fn run(model: &Model, prediction: &Prediction, roofline: Option<&Roofline<'_>>) -> ModelledRun {
    let blueprint = model.blueprint();
    let operator = |record: &OpRecord, stage: Stage, cost: Cost, least: Option<Seconds>| {
        let entry = blueprint.module(record.module);
        let weight = record.inputs.iter().find(|spec| spec.role == Role::Weight);
        ModelledOperator {
            module: entry.path.clone(),
            class: entry.class.to_owned(),
            stage,
            op: record.op,
            weight: weight.map(|spec| spec.shape.dims().to_vec()),
            spread: record.spread.is_some(),
            cost,
            roofline: least.map(|time| Nanos::new((time.get() * 1e9).round() as i64)),
        }
    };
    let prefill = prediction.prefill.ops.iter().map(|record| {
        let stage = blueprint.stage_of(record.module).unwrap_or(Stage::Prefill);
        let time = roofline.and_then(|roofline| roofline.time(&record.cost, record.price.matrix_dtype));
        operator(record, stage, record.cost, time.map(|time| time.total()))
    });
    let decode = |decode: &DecodePass| -> Vec<ModelledOperator> {
        let steps = decode.steps;
        let of_steps = decode.ops.iter().map(|op| {
            let least = roofline.and_then(|roofline| op.roofline_time(steps, roofline));
            operator(&op.record, Stage::Decode, op.cost.total(steps), least)
        });
        of_steps.collect()
    };
    ModelledRun {
        prefill: prefill.collect(),
        decode: prediction.decode.as_ref().map(decode).unwrap_or_default(),
        classes: blueprint.modules().map(|(_, entry)| (entry.path.clone(), entry.class.to_owned())).collect(),
    }
}
