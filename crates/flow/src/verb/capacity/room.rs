//! What a server has room for: its engine's limits, and the KV blocks that weights leave.

use forecast::serving::{Backend, Engine, Rules};
use meter::Estimator;
use types::{Bytes, Hardware, Origin, UserError, Workload};

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
        // The largest step holds most activations.
        let largest = Workload {
            text_tokens: max_num_batched_tokens,
            seq_len: max_num_batched_tokens,
            max_new_tokens: 2,
            decode_steps: 1,
            ..workload.clone()
        };
        let footprint = *Estimator::new(&model.network, &largest)?.estimate(&largest)?.footprint();
        let per_token = footprint.kv_per_token.filter(|bytes| *bytes > Bytes::ZERO);
        let per_token = per_token.ok_or_else(|| not_served(model))?;
        let usable = Bytes::new((hardware.memory_bytes.as_f64() * self.engine.memory_share) as u64);
        let taken = footprint.weights + footprint.activations + RESERVE;
        let per_block = per_token * block_size;
        let fitting = usable.checked_sub(taken).unwrap_or_default().get() / per_block.get().max(1);
        if fitting == 0 {
            return Err(does_not_fit(model, workload, hardware, self.engine, [footprint.weights, taken, usable]));
        }
        let most =
            hardware.memory_bytes.checked_sub(footprint.weights).unwrap_or_default().get() / per_block.get().max(1);
        if let Some(given) = self.kv_blocks.filter(|given| *given > most) {
            let (asked, size) = (per_block * given, hardware.memory_bytes);
            return Err(UserError::usage(format!("{given} KV blocks of {block_size} tokens take {asked}"))
                .because(format!("{} has {size}, of which weights take {}", hardware.id, footprint.weights))
                .hint(format!("at most {most} blocks fit beside the weights; without --kv-blocks it is {fitting}")));
        }
        let kv_blocks = self.kv_blocks.unwrap_or(fitting);
        let kv_origin = if self.kv_blocks.is_some() { Origin::Assumed } else { Origin::Modelled };
        let mixing = self.engine.mixing;
        let rules = Rules { mixing, max_num_seqs, max_num_batched_tokens, kv_blocks, block_size, piece };
        Ok(Room { rules, weights: footprint.weights, kv: per_block * kv_blocks, kv_origin, per_token })
    }
}

/// A model without a cache of keys and values that a server could keep.
pub(super) fn not_served(model: &LoadedModel) -> UserError {
    UserError::usage(format!("{} is not simulated in a server: it does not generate tokens from text alone", model.id))
        .hint("`llm-perf analyze` models single requests of it")
}

fn does_not_fit(
    model: &LoadedModel,
    workload: &Workload,
    hardware: &Hardware,
    engine: Engine,
    [weights, taken, usable]: [Bytes; 3],
) -> UserError {
    let tensor = workload.parallel.tensor;
    let device = if tensor > 1 { format!("each of {tensor} {}", hardware.id) } else { hardware.id.clone() };
    let more = tensor * (taken.as_f64() / usable.as_f64().max(1.0)).ceil().max(2.0) as u64;
    let more = more.next_power_of_two();
    let share = (engine.memory_share * 100.0).round();
    UserError::usage(format!("{} does not fit {device}", model.id))
        .because(format!(
            "it takes {taken} ({weights} of weights), which leaves no KV cache of the {usable} that {} may use ({share}% of the \
             memory)",
            engine.name
        ))
        .hint(format!("spread it over more devices: workload.parallel.tensor={more}"))
        .hint("or store it in fewer bits: workload.quantisation.weights=fp8")
}
