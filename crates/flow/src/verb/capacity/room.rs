//! What a server has room for: its engine's limits, and the KV blocks that weights leave.

use forecast::serving::{Backend, Engine, Rules};
use meter::Estimator;
use meter::hardware::Catalogue;
use types::{Bytes, DType, Hardware, Origin, Parallel, Quantisation, UserError, Workload};

use crate::pipeline::model::LoadedModel;

/// Memory that libraries and captured graphs take beside weights and activations; assumed. vLLM 0.24 logs 0.98 GiB for the graphs
/// of Llama-3-8B.
const RESERVE: Bytes = Bytes::new(1 << 30);

/// An engine and what a user sets of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineSettings {
    /// The engine.
    pub engine: Engine,
    /// Its attention kernels.
    pub backend: Backend,
    /// Most requests that run at once.
    pub max_num_seqs: Option<u64>,
    /// Most tokens of a step.
    pub max_num_batched_tokens: Option<u64>,
    /// Blocks of the KV cache.
    pub kv_blocks: Option<u64>,
    /// Tokens of a block.
    pub block_size: Option<u64>,
}

/// How a server is laid out in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) rules: Rules,
    pub(super) weights: Bytes,
    pub(super) kv: Bytes,
    pub(super) kv_origin: Origin,
    /// Bytes of keys and values of a token on that device.
    pub(super) per_token: Bytes,
}

/// What weights and activations leave of a device's memory.
#[derive(Clone, Copy)]
struct Space {
    weights: Bytes,
    /// Weights, activations of the largest step, libraries and graphs.
    taken: Bytes,
    per_token: Bytes,
}

impl Space {
    /// Blocks that fit what the engine may use of the memory.
    fn blocks(&self, engine: &Engine, block_size: u64, hardware: &Hardware) -> u64 {
        let left = usable(engine, hardware).checked_sub(self.taken).unwrap_or_default();
        left.get() / (self.per_token * block_size).get().max(1)
    }
}

fn usable(engine: &Engine, hardware: &Hardware) -> Bytes {
    Bytes::new((hardware.memory_bytes.as_f64() * engine.memory_share) as u64)
}

impl EngineSettings {
    /// The room on `hardware` for `model` as `workload` stores and shares it, where it fits.
    pub(super) fn room(
        &self,
        model: &LoadedModel,
        workload: &Workload,
        hardware: &Hardware,
        piece: u64,
    ) -> Result<Room, UserError> {
        let [sequences, tokens] = self.engine.limits(hardware);
        let max_num_seqs = self.max_num_seqs.unwrap_or(sequences).max(1);
        let max_num_batched_tokens = self.max_num_batched_tokens.unwrap_or(tokens).max(1);
        let block_size = self.block_size.unwrap_or(self.engine.block_size).max(1);
        let space = space(model, workload, max_num_batched_tokens)?;
        let fitting = space.blocks(&self.engine, block_size, hardware);
        if fitting == 0 {
            let fits = |workload: &Workload, hardware: &Hardware| {
                let other = self::space(model, workload, max_num_batched_tokens);
                other.is_ok_and(|other| other.blocks(&self.engine, block_size, hardware) > 0)
            };
            return Err(does_not_fit(model, workload, hardware, &self.engine, space, fits));
        }
        let Space { weights, per_token, .. } = space;
        let per_block = per_token * block_size;
        let most = hardware.memory_bytes.checked_sub(weights).unwrap_or_default().get() / per_block.get().max(1);
        if let Some(given) = self.kv_blocks.filter(|given| *given > most) {
            let (asked, size) = (per_block * given, hardware.memory_bytes);
            return Err(UserError::usage(format!("{given} KV blocks of {block_size} tokens take {asked}"))
                .because(format!("{} has {size}, of which weights take {weights}", hardware.id))
                .hint(format!("at most {most} blocks fit beside the weights; without --kv-blocks it is {fitting}")));
        }
        let kv_blocks = self.kv_blocks.unwrap_or(fitting);
        let kv_origin = if self.kv_blocks.is_some() { Origin::Assumed } else { Origin::Modelled };
        let mixing = self.engine.mixing;
        let rules = Rules { mixing, max_num_seqs, max_num_batched_tokens, kv_blocks, block_size, piece };
        Ok(Room { rules, weights, kv: per_block * kv_blocks, kv_origin, per_token })
    }
}

/// What `model` takes of each device; the largest step, of so many tokens, holds most activations.
fn space(model: &LoadedModel, workload: &Workload, tokens: u64) -> Result<Space, UserError> {
    let largest =
        Workload { text_tokens: tokens, seq_len: tokens, max_new_tokens: 2, decode_steps: 1, ..workload.clone() };
    let footprint = *Estimator::new(&model.network, &largest)?.estimate(&largest)?.footprint();
    let per_token = footprint.kv_per_token.filter(|bytes| *bytes > Bytes::ZERO).ok_or_else(|| not_served(model))?;
    let taken = footprint.weights + footprint.activations + RESERVE;
    Ok(Space { weights: footprint.weights, taken, per_token })
}

/// A model without a cache of keys and values that a server could keep.
pub(super) fn not_served(model: &LoadedModel) -> UserError {
    UserError::usage(format!("{} is not simulated in a server: it does not generate tokens from text alone", model.id))
        .hint("`llm-perf analyze` models single requests of it")
}

/// By how much it does not fit, and what would: only what `fits` says does is named.
fn does_not_fit(
    model: &LoadedModel,
    workload: &Workload,
    hardware: &Hardware,
    engine: &Engine,
    Space { weights, taken, .. }: Space,
    fits: impl Fn(&Workload, &Hardware) -> bool,
) -> UserError {
    let (tensor, id, usable) = (workload.parallel.tensor, &hardware.id, usable(engine, hardware));
    let device = if tensor > 1 { format!("each of {tensor} {id}") } else { id.clone() };
    let lacking = taken.checked_sub(usable).unwrap_or_default();
    let share = (engine.memory_share * 100.0).round();
    let mut error = UserError::usage(format!("{} does not fit {device}", model.id)).because(format!(
        "it takes {taken} ({weights} of weights) and {} may use {usable} ({share}% of the memory): it lacks {lacking}, and room for a \
         KV cache",
        engine.name
    ));
    let sharing = |tensor: &u64| {
        let parallel = Parallel { tensor: *tensor, ..workload.parallel };
        fits(&Workload { parallel, ..workload.clone() }, hardware)
    };
    if let Some(tensor) = (1..=6).map(|doubled| tensor << doubled).find(sharing) {
        error = error.hint(format!("it fits {tensor} of them: workload.parallel.tensor={tensor}"));
    }
    let storing = |weights: &DType| {
        let quantisation = Quantisation { weights: Some(*weights), ..workload.quantisation };
        fits(&Workload { quantisation, ..workload.clone() }, hardware)
    };
    if let Some(weights) = [DType::Fp8, DType::Int4].into_iter().find(storing) {
        error = error.hint(format!("it fits with its weights in {weights}: workload.quantisation.weights={weights}"));
    }
    let catalogue = Catalogue::built_in().ok();
    let larger = catalogue.iter().flat_map(Catalogue::devices).filter(|device| fits(workload, device));
    if let Some(larger) = larger.min_by_key(|device| device.memory_bytes) {
        error = error.hint(format!("the smallest device of the catalogue that it fits is {}", larger.id));
    }
    error
}
