//! A whole workload, metered: one prefill, and every decode step.

use network::{Images, Model, Prompt};
use types::{Bytes, Cost, DType, LogitsKind, Seconds, Spec, Workload};

use crate::affine::AffineCost;
use crate::error::MeterError;
use crate::memory::Footprint;
use crate::meter::{Meter, MeterSettings};
use crate::pass::{OpRecord, Pass};
use crate::roofline::Roofline;
use crate::sharing::Sharing;
use crate::times::Times;

/// One operation of the decode loop.
#[derive(Clone, Debug)]
pub struct DecodeOp {
    /// As it is at the first step.
    pub record: OpRecord,
    /// What it costs at every step.
    pub cost: AffineCost,
}

/// The decode loop.
#[derive(Clone, Debug)]
pub struct DecodePass {
    /// Forward passes.
    pub steps: u64,
    /// Keys the first step attends to, its own included.
    pub first_length: u64,
    /// Operations of one step.
    pub ops: Vec<DecodeOp>,
    /// The first step, with its calls and memory.
    pub first: Pass,
    /// Most activation bytes live at once in the last step.
    pub peak_activations: Bytes,
}

/// What a workload costs.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The prefill pass.
    pub prefill: Pass,
    /// The decode loop; absent for networks that do not generate and workloads of one token.
    pub decode: Option<DecodePass>,
    /// Parameters.
    pub parameters: u64,
    /// Memory, on the device that holds most.
    pub footprint: Footprint,
}

/// Meters `workload` on `model`. Where devices share it, every number is that of one device.
pub fn predict(model: &Model, workload: &Workload) -> Result<Prediction, MeterError> {
    let sharing = Sharing::new(model, workload)?;
    let prefill = prefill(model, workload, Meter::new(model.blueprint(), settings(model, workload, 0), &sharing))?;
    let decode = match model.cache() {
        Some(_) if workload.decode_steps > 0 => Some(decode(model, workload, &sharing)?),
        _ => None,
    };
    let counted = |pass: &'static str, cost: Cost, peak: Bytes| {
        let too_large = cost.bytes.total().is_saturated() || peak.is_saturated();
        if too_large { Err(MeterError::TooLarge { pass }) } else { Ok(()) }
    };
    counted("prefill", prefill.total(), prefill.peak_activations)?;
    let mut activations = prefill.peak_activations;
    if let Some(decode) = &decode {
        counted("decode", decode.total(), decode.peak_activations)?;
        activations = activations.max(decode.peak_activations);
    }
    let footprint = Footprint::new(model, workload, &sharing, activations);
    Ok(Prediction { prefill, decode, parameters: model.blueprint().parameters_under(""), footprint })
}

impl DecodeOp {
    /// Roofline time of all steps together; absent for matrix work in an element type the roofline was not made for.
    pub fn roofline_time(&self, steps: u64, roofline: &Roofline<'_>) -> Option<Seconds> {
        let dtype = self.record.price.matrix_dtype;
        roofline.time(&self.cost.first, dtype)?;
        Some(Times::of_steps(&self.cost, steps, dtype, roofline).total)
    }
}

impl DecodePass {
    /// Cost of the whole loop.
    pub fn total(&self) -> Cost {
        self.ops.iter().map(|op| op.cost.total(self.steps)).sum()
    }
}

impl Pass {
    /// Cost of the whole pass.
    pub fn total(&self) -> Cost {
        self.ops.iter().map(|op| op.cost).sum()
    }
}

/// The prefill pass of `workload`, run on `meter`.
pub(crate) fn prefill(model: &Model, workload: &Workload, meter: Meter<'_>) -> Result<Pass, MeterError> {
    let (batch, length) = (shared_batch(workload), workload.seq_len);
    let is_encoded = model.has_encoder() && workload.image.is_none();
    let input = match model {
        Model::ShallowResnet(network) => {
            let [channels, side] = network.input();
            Spec::activation([batch, channels, side, side], workload.dtype)
        }
        _ => Spec::activation([batch, if is_encoded { 1 } else { length }], DType::Int64),
    };
    let source = is_encoded.then(|| model.source(batch, length, workload.dtype)).flatten();
    let images = workload.image.map(|image| {
        let pages = batch * workload.num_pages;
        let [wide, high] = image.crop_grid;
        let tiles = [pages * wide * high, 3, image.image_size, image.image_size];
        Images {
            global: meter.input(Spec::activation(model.image_shape(&image, pages), workload.dtype)),
            tiles: (wide * high > 1).then(|| meter.input(Spec::activation(tiles, workload.dtype))),
            crop_grid: image.crop_grid,
            pixels: image.pixels,
            mask: meter.input(Spec::activation([batch, length], DType::Bool)),
        }
    });
    let last_logits_only = model.takes_tokens() && !is_encoded && workload.logits == LogitsKind::Last;
    let source = source.map(|source| meter.input(source));
    let prompt = Prompt { input: meter.input(input), offset: 0, images, source, last_logits_only };
    run(meter, model, prompt, "prefill")
}

/// One decode step behind the positions that `meter` says are cached.
pub(crate) fn decode_step(model: &Model, workload: &Workload, meter: Meter<'_>) -> Result<Pass, MeterError> {
    let offset = meter.cached();
    let input = meter.input(Spec::activation([shared_batch(workload), 1], DType::Int64));
    run(meter, model, Prompt { input, offset, images: None, source: None, last_logits_only: false }, "decode")
}

pub(crate) fn decode(model: &Model, workload: &Workload, sharing: &Sharing) -> Result<DecodePass, MeterError> {
    let behind = model.prefilled(workload.seq_len).own;
    let step = |index: u64| {
        let meter = Meter::new(model.blueprint(), settings(model, workload, behind + index), sharing);
        decode_step(model, workload, meter)
    };
    // The steps whose costs tell those of all others. The second may lie past the last.
    let (first, second, last) = (step(0)?, step(1)?, step(workload.decode_steps.saturating_sub(1))?);
    let costs = |pass: &Pass| pass.ops.iter().map(|op| (op.op.name(), op.cost)).collect::<Vec<_>>();
    let costs = lines([costs(&first), costs(&second), costs(&last)], workload.decode_steps)?;
    let ops = first.ops.iter().zip(costs).map(|(record, cost)| DecodeOp { record: record.clone(), cost }).collect();
    let peak_activations = first.peak_activations.max(last.peak_activations);
    Ok(DecodePass { steps: workload.decode_steps, first_length: behind + 1, ops, first, peak_activations })
}

/// What each operation costs at every step, given its name and cost at the telling ones.
pub(crate) fn lines(telling: [Vec<(&'static str, Cost)>; 3], steps: u64) -> Result<Vec<AffineCost>, MeterError> {
    let [first, second, last] = telling;
    if first.len() != second.len() || first.len() != last.len() {
        let index = first.len().min(second.len()).min(last.len()).saturating_sub(1);
        return Err(MeterError::NotAffine { index, op: first.get(index).map_or("none", |(op, _)| *op) });
    }
    let steps = first.into_iter().zip(second).zip(last).enumerate().map(|(index, ((one, two), end))| {
        let cost = (one.0 == two.0 && one.0 == end.0).then(|| AffineCost::from_steps(one.1, two.1, end.1, steps));
        cost.flatten().ok_or(MeterError::NotAffine { index, op: one.0 })
    });
    steps.collect()
}

pub(crate) fn run(
    mut meter: Meter<'_>,
    model: &Model,
    prompt: Prompt<<Meter<'_> as network::Backend>::Tensor>,
    pass: &'static str,
) -> Result<Pass, MeterError> {
    let logits = model.forward(&mut meter, &prompt).map_err(|source| MeterError::Network { pass, source })?;
    meter.gather_logits(&logits);
    drop((prompt, logits));
    Ok(meter.finish())
}

/// Sequences that one group of devices processes.
fn shared_batch(workload: &Workload) -> u64 {
    workload.batch / workload.parallel.data()
}

/// How a pass of `workload` behind `cached` positions is metered.
pub(crate) fn settings(model: &Model, workload: &Workload, cached: u64) -> MeterSettings {
    let source = model.prefilled(workload.seq_len).source;
    MeterSettings { dtype: workload.dtype, attention: workload.attention, cached, source }
}
