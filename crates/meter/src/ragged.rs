//! One step of a server: sequences of different lengths processed at once, some with their prompts and some with one token each.
//!
//! Whatever works on tokens one by one costs what a pass over as many tokens costs; weights are read once. Attention is the sum
//! over the sequences, each with its own context.

use std::collections::HashMap;

use network::{Model, Prompt};
use types::{Cost, DType, LogitsKind, Op, Seconds, Spec, Workload};

use crate::affine::difference;
use crate::error::MeterError;
use crate::meter::Meter;
use crate::pass::{OpRecord, Pass};
use crate::predict::{DecodePass, decode, run, settings};
use crate::roofline::Roofline;
use crate::sharing::Sharing;

/// A sequence of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RaggedSequence {
    /// Tokens of it that the step processes.
    pub tokens: u64,
    /// Tokens of it that were processed before.
    pub context: u64,
}

/// What a step costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaggedCost {
    /// Operations and bytes.
    pub cost: Cost,
    /// Its roofline time: operations one after the other, attention of all sequences as one; absent without a roofline.
    pub time: Option<Seconds>,
}

/// Costs of steps of one model.
pub struct RaggedMeter<'a> {
    model: &'a Model,
    workload: Workload,
    sharing: Sharing,
    roofline: Option<&'a Roofline<'a>>,
    /// One sequence that decodes, behind every context.
    decoding: DecodePass,
    /// Everything but attention, by sequences and by tokens of each.
    apart: HashMap<[u64; 2], RaggedCost>,
    /// Attention of prompts.
    prompts: HashMap<RaggedSequence, Cost>,
    /// What logits of one more position cost.
    head: Cost,
    dtype: Option<DType>,
}

impl<'a> RaggedMeter<'a> {
    /// Steps of `model`, stored and shared as `workload` says, with contexts of up to `longest` tokens. `None` for a model that
    /// generates no tokens from a cache.
    pub fn new(
        model: &'a Model,
        workload: &Workload,
        longest: u64,
        roofline: Option<&'a Roofline<'a>>,
    ) -> Result<Option<Self>, MeterError> {
        if model.cache().is_none() || model.has_encoder() || !model.takes_tokens() {
            return Ok(None);
        }
        let workload = Workload {
            batch: workload.parallel.data(),
            image: None,
            text_tokens: 1,
            seq_len: 1,
            max_new_tokens: longest.max(2),
            decode_steps: longest.max(1),
            logits: LogitsKind::Last,
            ..workload.clone()
        };
        let sharing = Sharing::new(model, &workload)?;
        let decoding = decode(model, &workload, &sharing)?;
        let attention = decoding.ops.iter().map(|op| &op.record).find(|record| is_attention(record));
        let dtype = attention.map(|record| record.price.matrix_dtype);
        let mut meter = Self {
            model,
            workload,
            sharing,
            roofline,
            decoding,
            apart: HashMap::new(),
            prompts: HashMap::new(),
            head: Cost::ZERO,
            dtype,
        };
        let [one, two] = [1, 2].map(|rows| meter.pass([1, 2], 0, rows == 1).map(|pass| pass.total()));
        meter.head = difference(one?, two?).unwrap_or_default();
        Ok(Some(meter))
    }

    /// The cost of a step of these sequences; nothing for none.
    pub fn step(&mut self, sequences: &[RaggedSequence]) -> Result<RaggedCost, MeterError> {
        let tokens: u64 = sequences.iter().map(|sequence| sequence.tokens).sum();
        let mut attention = Cost::ZERO;
        for sequence in sequences {
            attention += self.attention(*sequence)?;
        }
        let decodes = sequences.iter().all(|sequence| sequence.tokens == 1);
        let RaggedCost { mut cost, time } = match sequences.len() as u64 {
            0 => return Ok(RaggedCost { cost: Cost::ZERO, time: self.roofline.map(|_| Seconds::ZERO) }),
            count if decodes => self.apart([count, 1])?,
            _ => self.apart([1, tokens])?,
        };
        if !decodes {
            // Every sequence has logits of its last position.
            cost += self.head * (sequences.len() as u64 - 1);
        }
        let attended = self.roofline.zip(self.dtype).and_then(|(roofline, dtype)| roofline.time(&attention, dtype));
        let time = time.map(|time| time + attended.map_or(Seconds::ZERO, |time| time.total()));
        Ok(RaggedCost { cost: cost + attention, time })
    }

    /// What depends on the context of one sequence.
    fn attention(&mut self, sequence: RaggedSequence) -> Result<Cost, MeterError> {
        let behind = self.decoding.first_length - 1;
        if sequence.tokens == 1 && sequence.context >= behind {
            let step = sequence.context - behind;
            let of = |op: &crate::predict::DecodeOp| match is_attention(&op.record) {
                true => op.cost.at(step),
                false => op.cost.slope * step.min(op.cost.grows),
            };
            return Ok(self.decoding.ops.iter().map(of).sum());
        }
        if let Some(known) = self.prompts.get(&sequence) {
            return Ok(*known);
        }
        let pass = |context: u64| self.pass([1, sequence.tokens], context, true);
        let (with, without) = (pass(sequence.context)?, pass(0)?);
        let apart = |pass: &Pass| pass.ops.iter().filter(|op| !is_attention(op)).map(|op| op.cost).sum::<Cost>();
        let attention: Cost = with.ops.iter().filter(|op| is_attention(op)).map(|op| op.cost).sum();
        let cost = attention + difference(apart(&without), apart(&with)).unwrap_or_default();
        self.prompts.insert(sequence, cost);
        Ok(cost)
    }

    /// Everything but attention.
    fn apart(&mut self, sizes: [u64; 2]) -> Result<RaggedCost, MeterError> {
        if let Some(known) = self.apart.get(&sizes) {
            return Ok(*known);
        }
        let pass = self.pass(sizes, 0, true)?;
        let others = || pass.ops.iter().filter(|op| !is_attention(op));
        let time = |op: &OpRecord| Some(self.roofline?.time(&op.cost, op.price.matrix_dtype)?.total());
        let found = RaggedCost { cost: others().map(|op| op.cost).sum(), time: others().map(time).sum() };
        self.apart.insert(sizes, found);
        Ok(found)
    }

    /// A pass over sequences of so many tokens each, behind a context, as one device does it.
    pub fn pass(
        &self,
        [sequences, tokens]: [u64; 2],
        context: u64,
        last_logits_only: bool,
    ) -> Result<Pass, MeterError> {
        let meter = Meter::new(self.model.blueprint(), settings(self.model, &self.workload, context), &self.sharing);
        let input = meter.input(Spec::activation([sequences, tokens], DType::Int64));
        run(meter, self.model, Prompt { input, offset: context, images: None, source: None, last_logits_only }, "step")
    }
}

/// Whether an operation looks at the context.
fn is_attention(record: &OpRecord) -> bool {
    use Op::{AttendEntries, Attention, IndexEntries, IndexPositions, LatentAttention};
    matches!(
        record.op,
        Attention { .. } | LatentAttention { .. } | IndexPositions { .. } | AttendEntries { .. } | IndexEntries { .. }
    )
}

#[cfg(test)]
mod tests {
    use network::Preset;
    use types::AttentionKind;

    use super::*;
    use crate::{WorkloadSettings, predict};

    fn with_meter(preset: &str, check: impl Fn(&Model, &Workload, RaggedMeter<'_>)) {
        let config = Preset::find(preset).unwrap().config().unwrap();
        let model = Model::new(&config);
        let mut workload = WorkloadSettings::of_text(512, 64).resolve(&model, config.dtype()).unwrap();
        workload.attention = AttentionKind::Flash;
        workload.logits = LogitsKind::Last;
        let meter = RaggedMeter::new(&model, &workload, 4096, None).unwrap().unwrap();
        check(&model, &workload, meter);
    }

    #[test]
    fn steps_of_one_kind_cost_what_the_passes_of_a_workload_cost() {
        for preset in ["llama-3-8b", "qwen3-30b-a3b", "deepseek-v3"] {
            with_meter(preset, |model, workload, mut meter| {
                let whole = predict(model, workload).unwrap();
                let prompt = meter.step(&[RaggedSequence { tokens: 512, context: 0 }]).unwrap();
                assert_eq!(prompt.cost, whole.prefill.total(), "{preset}");
                let decode = whole.decode.unwrap();
                let steps = (0..decode.steps)
                    .map(|step| meter.step(&[RaggedSequence { tokens: 1, context: 512 + step }]).unwrap().cost);
                assert_eq!(steps.sum::<Cost>(), decode.total(), "{preset}");
                let batch = Workload { batch: 8, ..workload.clone() };
                let eight = predict(model, &batch).unwrap().decode.unwrap();
                let step = meter.step(&[RaggedSequence { tokens: 1, context: 512 }; 8]).unwrap().cost;
                assert_eq!(step, eight.first.total(), "{preset}");
            });
        }
    }

    #[test]
    fn chunks_of_a_prompt_do_its_work_and_read_weights_again() {
        with_meter("llama-3-8b", |_, _, mut meter| {
            let whole = meter.step(&[RaggedSequence { tokens: 512, context: 0 }]).unwrap().cost;
            let chunk = |tokens, context| RaggedSequence { tokens, context };
            let [first, second] = [chunk(200, 0), chunk(312, 200)].map(|part| meter.step(&[part]).unwrap().cost);
            let head = meter.head.flops_matrix.get();
            assert_eq!((first + second).flops_matrix.get(), whole.flops_matrix.get() + head);
            assert!((first + second).bytes.weights > whole.bytes.weights);
            let mixed = meter.step(&[chunk(312, 200), chunk(1, 700), chunk(1, 90)]).unwrap().cost;
            let apart = [chunk(312, 200), chunk(1, 700), chunk(1, 90)].map(|part| meter.step(&[part]).unwrap().cost);
            assert_eq!(mixed.flops_matrix, apart.iter().map(|cost| cost.flops_matrix).sum());
            assert_eq!(mixed.bytes.kv_read, apart.iter().map(|cost| cost.bytes.kv_read).sum());
            assert!(mixed.bytes.weights < second.bytes.weights * 2);
        });
    }
}
