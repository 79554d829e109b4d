//! A whole workload, metered: one prefill, and every decode step.

use network::{Images, Model, NetworkError, Prompt};
use types::{Bytes, Cost, DType, LogitsKind, Seconds, Spec, Workload};

use crate::affine::AffineCost;
use crate::meter::{Meter, MeterSettings, OpRecord, Pass};
use crate::roofline::Roofline;

/// Why a workload could not be metered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// The network refused.
    #[error("cannot meter the {pass} pass: {source}")]
    Network {
        /// Which pass.
        pass: &'static str,
        /// What the network says.
        source: NetworkError,
    },
    /// More traffic or memory than 64 bits count.
    #[error("the {pass} pass moves or holds more than 18 exabytes; choose a smaller batch or a shorter prompt")]
    TooLarge {
        /// Which pass.
        pass: &'static str,
    },
    /// Two decode steps did different operations, or one got cheaper with more to read.
    #[error("decode steps are not alike at operation {index} ({op}); their costs cannot be summed")]
    NotAffine {
        /// Which operation.
        index: usize,
        /// Its name.
        op: &'static str,
    },
}

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
    /// Bytes of all parameters.
    pub weights: Bytes,
    /// Parameters.
    pub parameters: u64,
    /// Cache bytes of one position of one sequence; absent for networks without a cache.
    pub kv_per_token: Option<Bytes>,
    /// Cache bytes at the end, all sequences together.
    pub kv_at_end: Bytes,
}

/// Meters `workload` on `model`.
pub fn predict(model: &Model, workload: &Workload) -> Result<Prediction, MeterError> {
    let prefill = prefill(model, workload)?;
    let decode = match model.cache() {
        Some(_) if workload.decode_steps > 0 => Some(decode(model, workload)?),
        _ => None,
    };
    let bytes = |shape: types::Shape, dtype: Option<DType>| dtype.unwrap_or(workload.dtype).bytes_for(shape.elements());
    let params = || model.blueprint().params().map(|(_, entry)| entry);
    let kv_per_token = model.cache().map(|cache| workload.dtype.bytes_for(cache.elements_per_token()));
    let positions = workload.seq_len + workload.decode_steps;
    let counted = |pass: &'static str, cost: Cost, peak: Bytes| {
        let too_large = cost.bytes.total().is_saturated() || peak.is_saturated();
        if too_large { Err(MeterError::TooLarge { pass }) } else { Ok(()) }
    };
    counted("prefill", prefill.total(), prefill.peak_activations)?;
    if let Some(decode) = &decode {
        counted("decode", decode.total(), decode.peak_activations)?;
    }
    Ok(Prediction {
        prefill,
        decode,
        weights: params().map(|entry| bytes(entry.shape, entry.dtype)).sum(),
        parameters: params().map(|entry| entry.shape.elements()).sum(),
        kv_per_token,
        kv_at_end: kv_per_token.unwrap_or_default() * positions * workload.batch,
    })
}

impl DecodeOp {
    /// Least time of all steps together; absent for matrix work in an element type the roofline was not made for.
    pub fn least(&self, steps: u64, roofline: &Roofline<'_>) -> Option<Seconds> {
        let dtype = self.record.price.matrix_dtype;
        let once = |cost: &Cost| roofline.time(cost, dtype).map(|time| time.total());
        if self.cost.is_constant() {
            return once(&self.cost.first).map(|time| time * steps as f64);
        }
        (0..steps).map(|step| once(&self.cost.at(step))).sum()
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

fn prefill(model: &Model, workload: &Workload) -> Result<Pass, MeterError> {
    let meter = Meter::new(model.blueprint(), settings(workload, 0));
    let prompt = match (model, &workload.image) {
        (Model::ShallowResnet(network), _) => {
            let [channels, side] = network.input();
            let picture = Spec::activation([workload.batch, channels, side, side], workload.dtype);
            Prompt { input: meter.input(picture), offset: 0, images: None, last_logits_only: false }
        }
        (_, image) => {
            let (batch, length) = (workload.batch, workload.seq_len);
            let images = image.map(|image| {
                let pages = batch * workload.num_pages;
                let pictures =
                    |count: u64, side: u64| meter.input(Spec::activation([count, 3, side, side], workload.dtype));
                let [wide, high] = image.crop_grid;
                Images {
                    global: pictures(pages, image.base_size),
                    tiles: (wide * high > 1).then(|| pictures(pages * wide * high, image.image_size)),
                    crop_grid: image.crop_grid,
                    mask: meter.input(Spec::activation([batch, length], DType::Bool)),
                }
            });
            Prompt {
                input: meter.input(Spec::activation([batch, length], DType::Int64)),
                offset: 0,
                images,
                last_logits_only: workload.logits == LogitsKind::Last,
            }
        }
    };
    run(meter, model, prompt, "prefill")
}

fn decode(model: &Model, workload: &Workload) -> Result<DecodePass, MeterError> {
    let step = |index: u64| {
        let cached = workload.seq_len + index;
        let meter = Meter::new(model.blueprint(), settings(workload, cached));
        let input = meter.input(Spec::activation([workload.batch, 1], DType::Int64));
        run(meter, model, Prompt { input, offset: cached, images: None, last_logits_only: false }, "decode")
    };
    let (first, second) = (step(0)?, step(1)?);
    let last = if workload.decode_steps > 2 { step(workload.decode_steps - 1)?.peak_activations } else { Bytes::ZERO };
    let alike = |index: usize| MeterError::NotAffine { index, op: first.ops[index].op.name() };
    if first.ops.len() != second.ops.len() {
        return Err(alike(first.ops.len().min(second.ops.len()).saturating_sub(1)));
    }
    let ops = first.ops.iter().zip(&second.ops).enumerate().map(|(index, (one, two))| {
        let cost = (one.op.name() == two.op.name()).then(|| AffineCost::from_steps(one.cost, two.cost)).flatten();
        cost.map(|cost| DecodeOp { record: one.clone(), cost }).ok_or_else(|| alike(index))
    });
    let ops = ops.collect::<Result<_, _>>()?;
    let peak_activations = first.peak_activations.max(second.peak_activations).max(last);
    Ok(DecodePass { steps: workload.decode_steps, first_length: workload.seq_len + 1, ops, first, peak_activations })
}

fn run(
    mut meter: Meter<'_>,
    model: &Model,
    prompt: Prompt<<Meter<'_> as network::Backend>::Tensor>,
    pass: &'static str,
) -> Result<Pass, MeterError> {
    model.forward(&mut meter, &prompt).map_err(|source| MeterError::Network { pass, source })?;
    drop(prompt);
    Ok(meter.finish())
}

fn settings(workload: &Workload, cached: u64) -> MeterSettings {
    MeterSettings { dtype: workload.dtype, attention: workload.attention, cached }
}
