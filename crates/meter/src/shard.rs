//! Which parameters devices share, and which sizes can be shared at all.
//!
//! Matrices that lead into a block are cut by outputs, those that lead out by inputs, so that a block needs one sum at its
//! end (Shoeybi et al. 2019, Megatron-LM, section 3). Embeddings and head are cut by vocabulary. Norms, routers, low-rank
//! projections of latent attention and everything that reads images are whole on every device.

use network::{Blueprint, Model, Module, Param, Repetition};
use types::{Bytes, DType, Parallel, Quantisation, Workload};

use crate::layout::Layout;
use crate::storage::storage;

/// Names of matrices cut by outputs.
const INTO: &str = "q_proj k_proj v_proj qkv_proj q_b_proj kv_b_proj gate_proj up_proj gate_up_proj \
                    w1 w3 fc1 c_fc c_attn query_key_value dense_h_to_4h";

/// Matrices cut by inputs.
const OUT_OF: [&str; 8] = ["o_proj", "down_proj", "w2", "fc2", "c_proj", "out_proj", "dense", "dense_4h_to_h"];

/// Tables and heads cut by vocabulary.
const VOCABULARY: [&str; 6] = ["embed_tokens", "lm_head", "wte", "embed_in", "word_embeddings", "embeddings"];

/// Keys and values of fewer heads than devices are kept by several.
const KEYS_AND_VALUES: [&str; 2] = ["k_proj", "v_proj"];

/// A size that devices cannot share evenly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("workload.parallel.{key} is {found}; this model expects {expected}")]
pub struct UnevenSplit {
    /// Which setting: `tensor`, `expert` or `pipeline`.
    pub key: &'static str,
    /// What it is.
    pub found: u64,
    /// What it should be.
    pub expected: String,
}

/// How `param` lies on the devices of one pipeline stage.
pub(crate) fn layout(blueprint: &Blueprint, param: Param, parallel: &Parallel) -> Layout {
    if parallel.is_single() {
        return Layout::WHOLE;
    }
    let entry = blueprint.param(param);
    let module = blueprint.module(entry.module);
    let own = entry.path.rsplit('.').next().unwrap_or_default();
    let is_bias = own.ends_with("bias");
    let in_layer = blueprint.decoder_layer(entry.module).is_some();
    if !in_layer {
        let shared = VOCABULARY.contains(&module.name.as_str()) && blueprint.stage_of(entry.module).is_none();
        return if shared { Layout::cut(0, parallel.tensor) } else { Layout::WHOLE };
    }
    let mixes = [".linear_attn.", ".conv."].iter().any(|name| entry.path.contains(name));
    if mixes || in_state_space(blueprint, entry.module) {
        return Layout::WHOLE;
    }
    if own == "sinks" {
        return Layout::cut(0, parallel.tensor);
    }
    // Experts that are one tensor each name it themselves: `[E, I, O]` and `[E, O]`, one expert at a time.
    let stacked = (own.trim_end_matches("_bias"), entry.shape.rank() + usize::from(is_bias) == 3);
    let (name, is_stacked) = if stacked.1 { (stacked.0, true) } else { (module.name.as_str(), false) };
    let ways = match is_stacked || in_expert(blueprint, entry.module) {
        true => within_expert(parallel),
        false if KEYS_AND_VALUES.contains(&name) => key_value_ways(blueprint, entry.module, parallel.tensor),
        false => parallel.tensor,
    };
    let last = entry.shape.rank().saturating_sub(1);
    match (INTO.split(' ').any(|into| into == name), OUT_OF.contains(&name), is_stacked) {
        (true, _, true) => Layout::cut(last, ways),
        (true, _, false) => Layout::cut(0, ways),
        (_, true, true) if !is_bias => Layout::cut(1, ways),
        (_, true, false) if !is_bias => Layout::cut(1, ways),
        _ => Layout::WHOLE,
    }
}

/// Whether `module` is a state-space layer or a part of one.
fn in_state_space(blueprint: &Blueprint, module: Module) -> bool {
    let parent = blueprint.module(module).parent;
    [Some(module), parent].into_iter().flatten().any(|module| setting(blueprint, module, "ssm_state_size").is_some())
}

/// Devices that share one expert's matrices.
pub(crate) fn within_expert(parallel: &Parallel) -> u64 {
    (parallel.tensor / parallel.expert.max(1)).max(1)
}

/// Whether `module` is inside one of several experts.
fn in_expert(blueprint: &Blueprint, module: Module) -> bool {
    let mut next = Some(module);
    while let Some(module) = next {
        let entry = blueprint.module(module);
        if entry.repetition == Some(Repetition::Parallel) {
            return true;
        }
        next = entry.parent;
    }
    false
}

/// Pieces that keys and values of a projection in attention are cut into.
fn key_value_ways(blueprint: &Blueprint, projection: Module, tensor: u64) -> u64 {
    let attention = blueprint.module(projection).parent;
    let heads = attention.and_then(|attention| setting(blueprint, attention, "num_key_value_heads"));
    heads.map_or(tensor, |heads| heads.min(tensor))
}

fn setting(blueprint: &Blueprint, module: Module, name: &str) -> Option<u64> {
    let settings = &blueprint.module(module).settings;
    settings.iter().find(|setting| setting.name == name).and_then(|setting| setting.value.parse().ok())
}

/// Pieces the cache of `layer` is cut into: key-value heads, or one where all heads share a latent vector.
pub(crate) fn cache_ways(blueprint: &Blueprint, parallel: &Parallel) -> u64 {
    let of_attention = blueprint.modules().filter(|(module, _)| blueprint.decoder_layer(*module).is_some());
    let heads = of_attention.filter_map(|(module, _)| {
        let latent = setting(blueprint, module, "kv_lora_rank").map(|_| 1);
        latent.or_else(|| setting(blueprint, module, "num_key_value_heads"))
    });
    heads.min().map_or(1, |heads| heads.min(parallel.tensor))
}

/// Layers of the decoder, in order.
pub(crate) fn layers(blueprint: &Blueprint) -> Vec<Module> {
    let modules = blueprint.modules().map(|(module, _)| module);
    modules.filter(|module| blueprint.decoder_layer(*module) == Some(*module)).collect()
}

/// The pipeline stage of `module`: that of its layer, the first before all layers and the last behind them.
pub(crate) fn pipeline_stage(blueprint: &Blueprint, layers: &[Module], module: Module, pipeline: u64) -> u64 {
    match blueprint.decoder_layer(module).and_then(|layer| layers.iter().position(|other| *other == layer)) {
        Some(index) => index as u64 * pipeline / layers.len().max(1) as u64,
        // Modules are built in the order they run, but for the head, which some networks build first.
        None if blueprint.module(module).name == "lm_head" => pipeline - 1,
        None if layers.last().is_some_and(|last| *last < module) => pipeline - 1,
        None => 0,
    }
}

/// Most bytes of parameters that one device holds.
pub(crate) fn weights(blueprint: &Blueprint, dtype: DType, quantisation: &Quantisation, parallel: &Parallel) -> Bytes {
    let layers = if parallel.pipeline > 1 { layers(blueprint) } else { Vec::new() };
    let mut stages = vec![0u128; usize::try_from(parallel.pipeline).unwrap_or(1).max(1)];
    for (param, entry) in blueprint.params() {
        let local = layout(blueprint, param, parallel).local(entry.shape).elements();
        let bytes = storage(blueprint, param, dtype, quantisation).bytes(local);
        let stage = match parallel.pipeline {
            1 => 0,
            pipeline => pipeline_stage(blueprint, &layers, entry.module, pipeline),
        };
        let devices = if is_dealt_out(blueprint, param) { u128::from(parallel.expert) } else { 1 };
        // Experts are counted once here and divided in the end, so that rounding does not add up.
        stages[stage as usize] += u128::from(bytes.get()) * u128::from(SHARES) / devices;
    }
    let most = stages.into_iter().max().unwrap_or_default().div_ceil(u128::from(SHARES));
    Bytes::new(u64::try_from(most).unwrap_or(u64::MAX))
}

/// Bytes of one parameter on one device, experts divided by the devices they are dealt out to.
pub(crate) fn param_bytes(blueprint: &Blueprint, param: Param, workload: &Workload) -> Bytes {
    let Workload { dtype, quantisation, parallel, .. } = workload;
    let entry = blueprint.param(param);
    let local = layout(blueprint, param, parallel).local(entry.shape).elements();
    let bytes = storage(blueprint, param, *dtype, quantisation).bytes(local);
    if is_dealt_out(blueprint, param) { Bytes::new(bytes.get() / parallel.expert) } else { bytes }
}

/// Whether `param` belongs to one of several experts, or to all of them at once.
fn is_dealt_out(blueprint: &Blueprint, param: Param) -> bool {
    let entry = blueprint.param(param);
    let stacked = entry.shape.rank() == 3 && blueprint.decoder_layer(entry.module).is_some();
    stacked || in_expert(blueprint, entry.module)
}

/// Fractions of a byte that are kept while experts are divided.
const SHARES: u64 = 1 << 20;

/// Whether the sizes of `model` can be shared as `workload` asks.
pub(crate) fn check(model: &Model, workload: &Workload) -> Result<(), UnevenSplit> {
    let parallel = &workload.parallel;
    let Parallel { tensor, expert, pipeline } = *parallel;
    let uneven = |key, found, expected: String| Err(UnevenSplit { key, found, expected });
    for (key, found) in [("tensor", tensor), ("expert", expert), ("pipeline", pipeline)] {
        if !(1..=65_536).contains(&found) {
            return uneven(key, found, "1 to 65536".to_owned());
        }
    }
    if parallel.is_single() {
        return Ok(());
    }
    let blueprint = model.blueprint();
    let layers = layers(blueprint);
    let alone = match (layers.is_empty() || model.cache().is_none(), model.has_encoder()) {
        (true, _) => Some("1, because this network has no decoder layers"),
        (_, true) => Some("1, because a model with an encoder and a decoder is modelled on one device"),
        _ => None,
    };
    if let Some(expected) = alone {
        let key = [("tensor", tensor), ("expert", expert), ("pipeline", pipeline)].into_iter().find(|(_, n)| *n > 1);
        let (key, found) = key.unwrap_or(("tensor", tensor));
        return uneven(key, found, expected.to_owned());
    }
    if !(layers.len() as u64).is_multiple_of(pipeline) {
        return uneven("pipeline", pipeline, format!("a divisor of the {} layers", layers.len()));
    }
    for (module, _) in blueprint.modules().filter(|(module, _)| blueprint.decoder_layer(*module).is_some()) {
        if let Some(heads) = setting(blueprint, module, "num_heads").filter(|heads| !heads.is_multiple_of(tensor)) {
            return uneven("tensor", tensor, format!("a divisor of the {heads} attention heads"));
        }
        if let Some(heads) = setting(blueprint, module, "num_key_value_heads")
            && !heads.is_multiple_of(tensor)
            && !tensor.is_multiple_of(heads)
        {
            return uneven("tensor", tensor, format!("a divisor or a multiple of the {heads} key-value heads"));
        }
    }
    if expert > 1 {
        let experts = blueprint.modules().filter(|(_, entry)| entry.repetition == Some(Repetition::Parallel));
        let listed =
            experts.map(|(list, _)| blueprint.modules().filter(|(_, entry)| entry.parent == Some(list)).count() as u64);
        let stacked = blueprint.modules().filter_map(|(module, _)| setting(blueprint, module, "num_experts"));
        let Some(experts) = listed.chain(stacked).filter(|count| *count > 0).min() else {
            return uneven("expert", expert, "1, because this network has no experts".to_owned());
        };
        if !experts.is_multiple_of(expert) {
            return uneven("expert", expert, format!("a divisor of the {experts} experts"));
        }
        if !expert.is_multiple_of(tensor) && !tensor.is_multiple_of(expert) {
            return uneven("expert", expert, format!("a divisor or a multiple of workload.parallel.tensor, {tensor}"));
        }
    }
    check_batch(workload)?;
    for (param, entry) in blueprint.params() {
        let layout = layout(blueprint, param, parallel);
        let is_vocabulary = VOCABULARY.contains(&blueprint.module(entry.module).name.as_str());
        let sizes = entry.shape.dims().iter().enumerate();
        // A vocabulary is padded until it divides, as Megatron and vLLM do.
        let bad = sizes.filter(|_| !is_vocabulary).find(|(dim, size)| !size.is_multiple_of(layout.ways(*dim)));
        if let Some((_, size)) = bad {
            return uneven("tensor", tensor, format!("a divisor of the {size} of {}", entry.path));
        }
    }
    Ok(())
}

/// Whether the groups of devices that process parts of the batch can share it.
pub(crate) fn check_batch(workload: &Workload) -> Result<(), UnevenSplit> {
    let (data, batch) = (workload.parallel.data(), workload.batch);
    if batch.is_multiple_of(data) {
        return Ok(());
    }
    let expected = format!("a value whose {data} data-parallel groups divide workload.batch={batch} evenly");
    Err(UnevenSplit { key: "expert", found: workload.parallel.expert, expected })
}

#[cfg(test)]
mod tests {
    use network::Preset;

    use super::*;

    fn model(name: &str) -> Model {
        Model::new(&Preset::find(name).unwrap().config().unwrap())
    }

    fn bytes(model: &Model, tensor: u64, expert: u64, pipeline: u64) -> u64 {
        let parallel = Parallel { tensor, expert, pipeline };
        weights(model.blueprint(), DType::Bf16, &Quantisation::default(), &parallel).get()
    }

    #[test]
    fn llama_3_8b_on_two_devices_worked_by_hand() {
        // All but 266,240 norm weights are halved: (8,030,261,248 - 266,240) / 2 + 266,240 weights of two bytes.
        let llama = model("llama-3-8b");
        assert_eq!(bytes(&llama, 1, 1, 1), 2 * 8_030_261_248);
        assert_eq!(bytes(&llama, 2, 1, 1), 2 * ((8_030_261_248 - 266_240) / 2 + 266_240));
    }

    #[test]
    fn key_value_heads_that_are_too_few_are_kept_twice() {
        // Eight key-value heads on sixteen devices: keys and values of 32 layers, 2 * 1024 * 4096 weights, in eight.
        let llama = model("llama-3-8b");
        let keys_and_values = 32 * 2 * 1024 * 4096;
        let rest = 8_030_261_248 - 266_240 - keys_and_values;
        assert_eq!(bytes(&llama, 16, 1, 1), 2 * (rest / 16 + keys_and_values / 8 + 266_240));
    }

    #[test]
    fn experts_are_dealt_out_and_the_rest_is_kept() {
        // Eleven layers of 64 experts, three matrices of 896 x 1280 each.
        let ocr = model("deepseek-ocr");
        let experts: u64 = 11 * 64 * 3 * 896 * 1280;
        assert_eq!(bytes(&ocr, 1, 8, 1), 2 * (3_336_106_240 - experts + experts / 8));
    }

    #[test]
    fn a_pipeline_holds_its_layers_and_one_end() {
        let llama = model("llama-3-8b");
        let (table, layer) = (525_336_576, 218_112_000);
        // Two stages of 16 layers; the last holds the head and the norm behind all layers.
        assert_eq!(bytes(&llama, 1, 1, 2), 2 * (16 * layer + table + 4096));
    }
}
