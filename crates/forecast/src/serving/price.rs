//! What a step takes on the device and on the host, from its composition.

use std::collections::HashMap;

use meter::{Pass, RaggedMeter};
use network::Model;
use types::{DType, DeviceCalibration, Hardware, Workload};

use super::engine::{Engine, HostCosts, captured_size};
use super::kernels::{AttentionKind, StepKernels, step_kernels};
use super::residual::{MeasuredStep, Residuals};
use super::scheduler::Part;
use crate::collective::collective;
use crate::launch::Launches;
use crate::times::{Operation, Times};
use crate::{Family, ForecastError, OpShape};

/// Small kernels before and behind the layers of a step: inputs are prepared, a token is chosen and handed on. Counted in a trace
/// of vLLM 0.24, whose steps launch 45 beside those of their layers.
const AROUND: f64 = 45.0;

/// Bytes of a logit while a token is chosen from it: read once in half and three times in single precision, written twice.
const LOGIT_BYTES: f64 = 22.0;

/// Attention of engines over a paged cache in a graph, as a multiple of the library call that is calibrated, and what it adds:
/// kernels of a fixed number of parts and the one that joins them. FlashAttention 3 as vLLM 0.24 calls it, against cuDNN: 1.1 to 1.4
/// times and 3 to 6 microseconds for 1 to 88 sequences of 300 to 1,250 tokens.
const PAGED: [f64; 2] = [1.33, 4.5];

/// Share of the shorter of the two that sequences which decode add to the attention of prompts in the same kernel.
const BESIDE: f64 = 0.5;

/// Tokens between the sizes at which steps without a graph are priced, as a share of their size.
const GRID: u64 = 16;

/// Tokens for which a matrix library changes to another kernel, up to so many: then its largest tiles fill the device.
const TILES: u64 = 64;
const MOST_TILES: u64 = 1_280;

/// How a step is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// One graph with everything.
    Graph,
    /// Graphs between attention calls.
    Pieces,
    /// Kernels one by one.
    Kernels,
}

/// What a step takes, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTime {
    /// Matrices and everything else that does not look at the context.
    pub dense: f64,
    /// Attention.
    pub attention: f64,
    /// What devices send to each other.
    pub sent: f64,
    /// Matrices that the matrix unit limits, which a device at its power limit slows down.
    pub compute: f64,
    /// The part of it behind the layers, which nothing can run beside.
    pub tail: f64,
    /// The host before the device can start.
    pub before: f64,
    /// The host from then until all is launched.
    pub launch: f64,
    /// The host behind the results.
    pub after: f64,
    /// By how much the device's work differs from step to step: a standard deviation in logarithms.
    pub deviation: f64,
}

/// Prices of the steps of one model on one device, or on several that share it.
pub struct StepPrices<'a> {
    engine: Engine,
    times: Times<'a>,
    meter: RaggedMeter<'a>,
    model: &'a Model,
    /// Kernels of a step that decodes, and of one with prompts; they differ where attention has a form for each.
    kinds: [Vec<AttentionKind>; 2],
    head: Option<(DType, [u64; 2])>,
    /// Slowness of the host against the one that the engine was measured on.
    pub(crate) host: f64,
    /// Whether the host's speed was measured.
    pub host_is_measured: bool,
    layers: f64,
    dense: HashMap<(bool, u64), Dense>,
    /// Matrices of a layer, for those that are used for the first time.
    matrices: u64,
    /// Whether matrices are stored in fewer bits than the arithmetic has.
    pub unpacks: bool,
    /// What measured steps say of their prices.
    residuals: Residuals,
}

impl StepTime {
    /// All of the device's time.
    pub fn device(&self) -> f64 {
        self.dense + self.attention + self.sent
    }
}

/// Time of everything but attention and the head, with half the width of its interval.
#[derive(Clone, Copy, Debug, Default)]
struct Dense {
    time: f64,
    /// What devices send to each other meanwhile.
    sent: f64,
    width: f64,
    calibrated: f64,
    compute: f64,
}

impl<'a> StepPrices<'a> {
    /// Of `model`, stored and shared as `workload` says, in `engine`; `None` for a model that generates no tokens from a cache.
    pub fn new(
        model: &'a Model,
        workload: &Workload,
        engine: Engine,
        hardware: &'a Hardware,
        calibration: Option<&'a DeviceCalibration>,
    ) -> Result<Option<Self>, ForecastError> {
        let Some(meter) = RaggedMeter::new(model, workload, 2, None)? else { return Ok(None) };
        let measured = calibration.and_then(|stored| stored.launch);
        let launch = Launches::new(measured, hardware).cost;
        let mut prices = Self {
            engine,
            times: Times::new(hardware, calibration)?,
            meter,
            model,
            kinds: [Vec::new(), Vec::new()],
            head: None,
            host: launch.eager_us / HostCosts::LAUNCH_US,
            host_is_measured: measured.is_some(),
            layers: 0.0,
            dense: HashMap::new(),
            matrices: 0,
            unpacks: false,
            residuals: Residuals::default(),
        };
        for decodes in [true, false] {
            let StepKernels { attention, head, dense, .. } = prices.kernels(decodes, 2)?.0;
            prices.layers = attention.iter().map(|kind| kind.layers).sum::<f64>().max(1.0);
            prices.kinds[usize::from(!decodes)] = attention;
            prices.head = head;
            let is_matrix = |family: Family| matches!(family, Family::Gemm | Family::GroupedGemm);
            let matrices = dense.iter().filter(|kernel| is_matrix(kernel.shape.family)).count();
            prices.matrices = (matrices as f64 / prices.layers).round() as u64;
        }
        Ok(Some(prices))
    }

    /// How many times as long matrices take as in a burst, where such a share of the time went to them.
    pub(crate) fn slowdown(&self, share: f64) -> f64 {
        self.times.slowdown(share)
    }

    /// What measured steps say of their prices.
    pub fn residuals(&mut self, steps: &[MeasuredStep]) -> Result<Residuals, ForecastError> {
        let of = |step: &MeasuredStep| self.time(&step.parts).map(|time| time.device());
        let forecast: Vec<f64> = steps.iter().map(of).collect::<Result<_, _>>()?;
        Ok(Residuals::of(steps.iter().zip(forecast)))
    }

    /// Corrects prices by what measured steps say of them.
    pub fn correct(&mut self, residuals: Residuals) {
        self.residuals = residuals;
    }

    /// Half the width of the interval of typical steps, and their calibrated share, of the whole.
    pub fn certainty(&mut self) -> Result<[f64; 2], ForecastError> {
        let (mut sums, sizes) = ([0.0; 3], [(true, 8), (false, 1024)]);
        for (decodes, tokens) in sizes {
            let Dense { time, sent, width, calibrated, .. } = self.dense(decodes, tokens)?;
            for (sum, part) in sums.iter_mut().zip([1.0, width / time, calibrated / (time + sent)]) {
                *sum += part;
            }
        }
        Ok([sums[1] / sums[0], sums[2] / sums[0]])
    }

    /// What a step takes.
    pub fn time(&mut self, parts: &[Part]) -> Result<StepTime, ForecastError> {
        let sequences = parts.len() as u64;
        let tokens: u64 = parts.iter().map(|part| part.tokens).sum();
        let decodes = tokens == sequences;
        let launch = self.launch(decodes, tokens);
        let padded = match launch {
            Launch::Kernels => tokens,
            Launch::Graph => captured_size(tokens, self.engine.captured).unwrap_or(tokens),
            Launch::Pieces => captured_size(tokens, self.engine.pieces_captured).unwrap_or(tokens),
        };
        let tail = self.around(sequences)?;
        let [dense, compute, sent] = self.between(decodes, padded)?;
        let dense = dense + tail;
        let attention = self.attention(parts)?;
        let HostCosts { step, sequence, piece, layer, .. } = self.engine.host;
        let whole = (step + sequence * sequences as f64) * self.host;
        // A graph is launched last, kernels as they are found.
        let (before, launch) = match launch {
            Launch::Graph => (0.75 * whole, 0.0),
            Launch::Pieces => (0.45 * whole, 0.3 * whole + piece * self.layers * self.host),
            Launch::Kernels => (0.45 * whole, 0.3 * whole + layer * self.layers * self.host),
        };
        let [factor, deviation] = self.residuals.applying(parts);
        let all = [dense, attention, compute, tail, sent].map(|time| time * factor);
        let [dense, attention, compute, tail, sent] = all;
        Ok(StepTime { dense, attention, compute, tail, sent, before, launch, after: 0.25 * whole, deviation })
    }

    /// Matrix kernels that the host finds for a step without a graph: a library has one for every few tiles of rows.
    pub(crate) fn tiles(&self, parts: &[Part]) -> impl Iterator<Item = (u64, u64)> + use<> {
        let tokens: u64 = parts.iter().map(|part| part.tokens).sum();
        let is_launched = self.launch(tokens == parts.len() as u64, tokens) == Launch::Kernels;
        let matrices = if is_launched { self.matrices } else { 0 };
        (0..matrices).map(move |matrix| (matrix, (tokens + 16 * matrix).min(MOST_TILES) / TILES))
    }

    /// The kernels that choose tokens, which are launched behind those of the layers: others for every few sequences.
    pub(crate) fn rows(&self, parts: &[Part]) -> (u64, u64) {
        (u64::MAX, (parts.len() as u64).div_ceil(self.engine.host.rows))
    }

    fn launch(&self, decodes: bool, tokens: u64) -> Launch {
        match (decodes, self.engine) {
            (true, Engine { captured, .. }) if tokens <= captured => Launch::Graph,
            (_, Engine { pieces_captured, .. }) if tokens <= pieces_captured => Launch::Pieces,
            _ => Launch::Kernels,
        }
    }

    /// Kernels of a step of so many tokens, and what devices send to each other meanwhile, in microseconds.
    fn kernels(&self, decodes: bool, tokens: u64) -> Result<(StepKernels, f64), ForecastError> {
        let pass: Pass = match decodes {
            true => self.meter.pass([tokens, 1], 64, true)?,
            false => self.meter.pass([1, tokens], 0, true)?,
        };
        let sent = |message| collective(message, self.times.hardware).microseconds * message.count as f64;
        Ok((step_kernels(&pass, self.model.blueprint())?, pass.messages.iter().map(sent).sum()))
    }

    fn dense(&mut self, decodes: bool, tokens: u64) -> Result<Dense, ForecastError> {
        if let Some(known) = self.dense.get(&(decodes, tokens)) {
            return Ok(*known);
        }
        let (kernels, sent) = self.kernels(decodes, tokens)?;
        // In their order, so that sums are the same in every run.
        let (mut counts, mut compute) = (Vec::<(Operation, crate::Estimate, f64)>::new(), 0.0);
        self.unpacks |= !kernels.stored.is_empty();
        for (at, kernel) in kernels.dense.iter().enumerate() {
            let (estimate, key) = match kernels.stored.get(&at) {
                Some(share) => self.packed(&kernel.shape, *share)?,
                None => self.times.of(&kernel.shape)?,
            };
            if kernel.shape.is_compute_bound(self.times.hardware)? {
                compute += estimate.microseconds * kernel.count;
            }
            match counts.iter_mut().find(|(known, ..)| *known == key) {
                Some((.., count)) => *count += kernel.count,
                None => counts.push((key, estimate, kernel.count)),
            }
        }
        let mut sum = Dense { sent, ..Dense::default() };
        let mut together = 0.0;
        for (_, estimate, count) in &counts {
            let (time, width) = (estimate.microseconds * count, (estimate.high - estimate.low) / 2.0 * count);
            sum.time += time;
            sum.width += width * width;
            together += width;
            sum.calibrated += if estimate.basis == crate::Basis::Assumed { 0.0 } else { time };
        }
        sum.width = sum.width.sqrt().max(crate::pass::SHARED_ERROR * together);
        sum.compute = compute;
        self.dense.insert((decodes, tokens), sum);
        Ok(sum)
    }

    /// A matrix that is stored in fewer bits and unpacked in the kernel that multiplies: as long as one of so many bytes, unless
    /// the matrix unit limits it.
    fn packed(&self, shape: &OpShape, share: f64) -> Result<(crate::Estimate, Operation), ForecastError> {
        let whole = self.times.of(shape)?;
        let work = shape.work(self.times.hardware)?;
        let mut narrow = shape.clone();
        if let Some(n) = narrow.sizes.get_mut(1) {
            *n = (*n * share).ceil().max(1.0);
        }
        let narrow = self.times.of(&narrow)?;
        Ok(if work.compute_us > narrow.0.microseconds { whole } else { narrow })
    }

    /// Between the sizes that are priced.
    fn between(&mut self, decodes: bool, tokens: u64) -> Result<[f64; 3], ForecastError> {
        let step = (tokens.next_power_of_two() / 2 / GRID).max(8);
        let of = |Dense { time, compute, sent, .. }: Dense| [time, compute, sent];
        if tokens <= 512 || tokens.is_multiple_of(step) {
            return Ok(of(self.dense(decodes, tokens)?));
        }
        let (below, share) = (tokens / step * step, (tokens % step) as f64 / step as f64);
        let (low, high) = (of(self.dense(decodes, below)?), of(self.dense(decodes, below + step)?));
        Ok([0, 1, 2].map(|at| low[at] * (1.0 - share) + high[at] * share))
    }

    /// Logits, the choice of tokens and what prepares a step.
    fn around(&self, sequences: u64) -> Result<f64, ForecastError> {
        let Some((dtype, [vocabulary, width])) = self.head else { return Ok(0.0) };
        let time = |shape: OpShape| Ok::<f64, ForecastError>(self.times.of(&shape)?.0.microseconds);
        let logits = LOGIT_BYTES * (sequences * vocabulary) as f64;
        Ok(time(OpShape::gemm(dtype, [sequences, vocabulary, width]))?
            + AROUND * time(OpShape::moving(Family::Strided, dtype, 1.0))?
            + time(OpShape::elementwise(dtype, logits))?)
    }

    fn attention(&self, parts: &[Part]) -> Result<f64, ForecastError> {
        let prompts = parts.iter().any(|part| part.tokens > 1);
        let (mut count, mut context) = (0u64, 0u64);
        for part in parts.iter().filter(|part| part.tokens == 1) {
            count += 1;
            context += part.context + 1;
        }
        let (mut decoding, mut prompting) = (0.0, 0.0);
        for kind in &self.kinds[0] {
            decoding += kind.layers * self.decoding(kind, count, context)?;
        }
        if !prompts {
            return Ok(decoding);
        }
        for kind in &self.kinds[1] {
            for part in parts.iter().filter(|part| part.tokens > 1) {
                prompting += kind.layers * self.prompting(kind, part)?;
            }
        }
        Ok(prompting.max(decoding) + BESIDE * prompting.min(decoding))
    }

    /// What attention that decodes is timed as, with the factor and the microseconds that an engine's takes beside it: none where
    /// an engine's own was measured. Of shares of the peak rates, which stand in for either, no factor is known.
    fn paged(&self, dtype: DType) -> (Family, [f64; 2]) {
        let known = [Family::PagedAttention, Family::GenerationAttention];
        match known.into_iter().find(|family| self.times.knows(*family, dtype)) {
            Some(Family::PagedAttention) => (Family::PagedAttention, [1.0, 0.0]),
            Some(family) => (family, PAGED),
            None => (Family::GenerationAttention, [1.0, PAGED[1]]),
        }
    }

    /// Whether attention that decodes is a library's, of which an engine's is taken to be a multiple.
    pub fn takes_library_attention(&self) -> bool {
        self.kinds[0].iter().any(|kind| self.paged(kind.dtype).1 == PAGED)
    }

    /// Attention of one position of each of `count` sequences, which see `context` positions together.
    fn decoding(&self, kind: &AttentionKind, count: u64, context: u64) -> Result<f64, ForecastError> {
        if count == 0 {
            return Ok(0.0);
        }
        let mean = context as f64 / count as f64;
        let seen = if kind.window > 0 { mean.min(kind.window as f64) } else { mean };
        // Between lengths an eighth of an octave apart.
        let place = seen.max(1.0).log2() * 8.0;
        let (family, [factor, more]) = self.paged(kind.dtype);
        let at = |place: f64| {
            let sizes = [count as f64, (place / 8.0).exp2().round().max(1.0)];
            let shape = kind.shape(family, sizes);
            Ok::<f64, ForecastError>(self.times.of(&shape)?.0.microseconds)
        };
        let (low, high) = (at(place.floor())?, at(place.floor() + 1.0)?);
        let time = low + (high - low) * place.fract();
        Ok(factor * time + more)
    }

    fn prompting(&self, kind: &AttentionKind, part: &Part) -> Result<f64, ForecastError> {
        let (tokens, context) = (part.tokens as f64, part.context as f64);
        let all = tokens * (context + tokens / 2.0);
        let window = kind.window as f64;
        let pairs = if window > 0.0 { all.min(tokens * window) } else { all };
        // As long as a prompt of as many pairs, in sixteens.
        let length = ((2.0 * pairs).sqrt() / 16.0).ceil().max(1.0) * 16.0;
        Ok(self.times.of(&kind.shape(Family::ContextAttention, [1.0, length]))?.0.microseconds)
    }
}

impl AttentionKind {
    fn shape(&self, family: Family, [batch, length]: [f64; 2]) -> OpShape {
        let heads = [self.heads, self.kv_heads.min(self.heads), self.width, self.cache_bits].map(|size| size as f64);
        let sizes = vec![batch, length, heads[0], heads[1], heads[2], heads[3], 0.0];
        OpShape { family, dtype: self.dtype, sizes }
    }
}
