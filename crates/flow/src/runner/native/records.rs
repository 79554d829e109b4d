//! What was measured and what was modelled, side by side, as the analysis takes them.

use std::collections::BTreeMap;

use analysis::{InputWork, PricedOperator};
use engine::{OpTrace, Trace};
use meter::price::price;
use meter::{Roofline, predict};
use network::Model;
use types::{
    AttentionKind, ClockId, DType, Facts, ImageWorkload, InferenceDisturbance, InputFacts, LogitsKind, Nanos,
    OperatorRecord, Parallel, QualityCounter, Quantisation, RoutingCounts, RoutingKind, Sample, Severity, Stage,
    UserError, Workload,
};

use super::COMPUTED;
use crate::pipeline::subject::work;
use crate::runner::inputs::prepare::PreparedInput;

/// Every operation of a traced inference, priced.
pub(crate) fn operators(
    model: &Model,
    roofline: Option<&Roofline<'_>>,
    prefill: &Trace,
    decode: &Trace,
) -> Vec<PricedOperator> {
    let blueprint = model.blueprint();
    let priced = |op: &OpTrace, stage: Stage| {
        let price = price(op.op, &op.inputs, op.output, AttentionKind::Eager);
        let cost = price.cost();
        let entry = blueprint.module(op.module);
        let time = roofline.and_then(|roofline| roofline.time(&cost, price.matrix_dtype));
        PricedOperator {
            record: OperatorRecord {
                name: op.op.name().to_owned(),
                module: Some(entry.path.clone()),
                stage: Some(stage),
                shapes: op.inputs.iter().map(|spec| spec.shape.dims().to_vec()).collect(),
                dtype: Some(op.output.dtype),
                clock: ClockId(0),
                start_ns: op.start,
                duration_ns: op.duration,
                bytes_allocated: Some(op.allocated),
            },
            class: entry.class.to_owned(),
            cost,
            roofline_ns: time.map(|time| Nanos::new((time.total().get() * 1e9).round() as i64)),
        }
    };
    let during_prefill = |op: &OpTrace| priced(op, blueprint.stage_of(op.module).unwrap_or(Stage::Prefill));
    let during_decode = |op: &OpTrace| priced(op, Stage::Decode);
    prefill.ops.iter().map(during_prefill).chain(decode.ops.iter().map(during_decode)).collect()
}

/// Classes of all modules, by path.
pub(crate) fn classes(model: &Model) -> BTreeMap<String, String> {
    model.blueprint().modules().map(|(_, entry)| (entry.path.clone(), entry.class.to_owned())).collect()
}

/// The workload one input was, and its modelled work by stage. Weights are read in the type they are kept in, all else in
/// that of the arithmetic.
pub(crate) fn work(
    model: &Model,
    input: &PreparedInput,
    kept: DType,
    last_logits_only: bool,
) -> Result<(Workload, Vec<InputWork>), UserError> {
    let facts = &input.facts;
    let workload = workload_of(facts, input, COMPUTED, last_logits_only);
    let mut costs = work::costs(model, &predict(model, &workload)?);
    if kept != COMPUTED {
        let of_weights = work::costs(model, &predict(model, &Workload { dtype: kept, ..workload.clone() })?);
        for (stage, cost) in &mut costs {
            cost.bytes.weights = of_weights.get(stage).map_or(cost.bytes.weights, |other| other.bytes.weights);
        }
    }
    let entry = |(stage, cost)| InputWork { input: facts.name.clone(), stage, work: work::work(&cost) };
    Ok((workload, costs.into_iter().map(entry).collect()))
}

/// The workload one input was.
pub(crate) fn workload_of(facts: &InputFacts, input: &PreparedInput, dtype: DType, last_logits_only: bool) -> Workload {
    let image = facts.crop_grid.zip(input.sides).map(|(crop_grid, [base_size, image_size])| ImageWorkload {
        base_size,
        image_size,
        crop_grid,
        image_tokens: facts.image_tokens,
        pixels: None,
    });
    Workload {
        profile_id: facts.name.clone(),
        description: format!("as measured on {}", facts.name),
        doc_kind: input.kind,
        num_pages: u64::from(facts.width.is_some()),
        batch: facts.batch,
        image,
        text_tokens: facts.prompt_tokens - facts.image_tokens,
        seq_len: facts.prompt_tokens,
        max_new_tokens: facts.generated_tokens,
        decode_steps: facts.generated_tokens.saturating_sub(1),
        dtype,
        // Utilisation counts attention in full whichever kernel ran, so that it compares across runs.
        attention: AttentionKind::Eager,
        logits: if last_logits_only { LogitsKind::Last } else { LogitsKind::All },
        routing: RoutingKind::Balanced,
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

/// Where experts were used, all inputs together, in the order of the network.
pub(crate) fn routing<'a>(counts: impl IntoIterator<Item = &'a RoutingCounts>) -> Vec<RoutingCounts> {
    let mut sums: Vec<RoutingCounts> = Vec::new();
    for one in counts {
        match sums.iter_mut().find(|sum| sum.path == one.path && sum.stage == one.stage) {
            None => sums.push(one.clone()),
            Some(sum) => {
                for (sum, tokens) in sum.tokens_per_expert.iter_mut().zip(&one.tokens_per_expert) {
                    *sum += tokens;
                }
            }
        }
    }
    sums
}

/// Time of the inferences that belongs to no stage, checked against a separate clock. Stages that do not add up to what a
/// user waits for would hide time.
pub(crate) fn outside_stages(samples: &[Sample], wall: Nanos) -> QualityCounter {
    let measured = samples.iter().filter(|sample| !sample.warmup && sample.stage.parent().is_none());
    let staged: Nanos = measured.map(|sample| sample.wall_ns).sum();
    let outside = (wall - staged).get().max(0);
    let share = if wall > Nanos::ZERO { outside as f64 / wall.get() as f64 } else { 0.0 };
    let severity = if share > STAGES_COVER { Severity::Warning } else { Severity::Info };
    let counter = QualityCounter::new("nanoseconds_outside_stages", severity, outside as u64);
    counter.share(Some(share.clamp(0.0, 1.0))).facts(Facts::new().with("outside", Nanos::new(outside)))
}

/// Measured inferences that something else on the machine disturbed; absent where none was.
pub(crate) fn disturbed(inferences: &[InferenceDisturbance]) -> Option<QualityCounter> {
    let measured: Vec<_> = inferences.iter().filter(|one| !one.warmup).map(|one| &one.disturbance).collect();
    let disturbed: Vec<_> = measured.iter().filter(|one| one.is_disturbed()).collect();
    let worst = disturbed.iter().min_by_key(|one| one.cpu_ns).filter(|_| !disturbed.is_empty())?;
    let counter = QualityCounter::new("disturbed_inferences", Severity::Warning, disturbed.len() as u64);
    Some(counter.of(measured.len() as u64).facts(Facts::new().with("causes", worst.causes.join("; "))))
}

/// How much of an inference may belong to no stage.
const STAGES_COVER: f64 = 0.01;

#[cfg(test)]
mod tests {
    use engine::PromptData;
    use network::Preset;
    use types::{InputFacts, PageKind};

    use super::*;
    use crate::runner::inputs::prepare::ModelInput;

    fn prompt(tokens: u64, generated: u64) -> PreparedInput {
        let facts = InputFacts {
            name: "a".to_owned(),
            width: None,
            height: None,
            crop_grid: None,
            batch: 1,
            prompt_tokens: tokens,
            image_tokens: 0,
            generated_tokens: generated,
        };
        let data = PromptData { ids: Vec::new(), image_mask: Vec::new(), images: None, source: None };
        PreparedInput { facts, kind: PageKind::Unknown, sides: None, fed: ModelInput::Prompt(data) }
    }

    #[test]
    fn weights_kept_in_half_the_bytes_move_half_of_them_and_nothing_else_changes() {
        let model = Model::new(&Preset::find("decoder-tiny").unwrap().config().unwrap());
        let (workload, single) = work(&model, &prompt(10, 5), DType::Fp32, true).unwrap();
        let (_, half) = work(&model, &prompt(10, 5), DType::Bf16, true).unwrap();
        let prediction = predict(&model, &workload).unwrap();
        let weights = [prediction.prefill.total(), prediction.decode.unwrap().total()].map(|cost| cost.bytes.weights);
        assert_eq!(single.iter().map(|one| one.stage).collect::<Vec<_>>(), [Stage::Prefill, Stage::Decode]);
        for ((single, half), weights) in single.iter().zip(&half).zip(weights) {
            assert_eq!(single.work.flops_matrix, half.work.flops_matrix);
            assert_eq!(single.work.bytes.get() - half.work.bytes.get(), weights.get() / 2);
        }
    }

    #[test]
    fn counts_of_several_inputs_add_up_module_by_module_and_stage_by_stage() {
        let counts = |path: &str, stage, tokens: [u64; 2]| RoutingCounts {
            path: path.to_owned(),
            stage,
            tokens_per_expert: tokens.to_vec(),
        };
        let all = [
            counts("layers.1", Stage::Prefill, [3, 1]),
            counts("layers.1", Stage::Decode, [1, 0]),
            counts("layers.1", Stage::Prefill, [0, 4]),
        ];
        let sums = [counts("layers.1", Stage::Prefill, [3, 5]), counts("layers.1", Stage::Decode, [1, 0])];
        assert_eq!(routing(&all), sums);
    }
}
