//! How parameters are stored: which are quantised, and what their scales take.
//!
//! A checkpoint says so itself (`quantization_config`), matrix by matrix. A workload that sets `quantisation.weights`
//! overrides it. Quantised then are the matrices of decoder layers: attention projections, feed-forward blocks and experts. Norms, biases,
//! embeddings, the head, routers and all vision modules stay in the workload's element type, as in the
//! published quantised checkpoints (AWQ, GPTQ, FP8), because they are few or sensitive.

use network::{Blueprint, Param, Scale, Span, WeightFormat};
use types::{Bytes, DType, Quantisation, Shape};

/// Bits of a scale: 16, as AWQ, GPTQ and per-channel INT8 store them.
const SCALE_BITS: u64 = 16;

/// Modules inside a layer that stay as they are: they decide where tokens go.
const ROUTERS: [&str; 3] = ["gate", "router", "shared_expert_gate"];

/// How one tensor is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Storage {
    /// Element type in memory.
    pub(crate) dtype: DType,
    /// Bytes of all scales, and the elements they are for; absent without scales.
    pub(crate) scales: Option<(u64, u64)>,
    /// Element type activations are turned into for a GEMM with it; absent: it is turned back instead.
    pub(crate) activations: Option<DType>,
}

impl Storage {
    /// Without scales.
    pub(crate) fn plain(dtype: DType) -> Self {
        Self { dtype, scales: None, activations: None }
    }

    /// In a format of the checkpoint or of the workload.
    fn formatted(format: &WeightFormat, shape: Shape) -> Self {
        let scales = (format.scale_bytes(shape).get(), shape.elements());
        Self { dtype: format.dtype, scales: Some(scales), activations: format.activations }
    }

    /// Bytes of the scales of so many elements.
    pub(crate) fn scale_bytes(&self, elements: u64) -> Bytes {
        self.scales.map_or(Bytes::ZERO, |(bytes, all)| {
            let bytes = u128::from(bytes) * u128::from(elements);
            Bytes::new(u64::try_from(bytes / u128::from(all.max(1))).unwrap_or(u64::MAX))
        })
    }

    /// Bytes of so many elements with their scales.
    pub(crate) fn bytes(&self, elements: u64) -> Bytes {
        self.dtype.bytes_for(elements) + self.scale_bytes(elements)
    }

    pub(crate) fn is_quantised(&self) -> bool {
        self.scales.is_some()
    }
}

/// How `param` is stored where everything else is in `dtype`: as the workload says, or else as the checkpoint does.
pub(crate) fn storage(blueprint: &Blueprint, param: Param, dtype: DType, quantisation: &Quantisation) -> Storage {
    let entry = blueprint.param(param);
    let own = entry.dtype.unwrap_or(dtype);
    let Some(weights) = quantisation.weights else {
        return entry.format.as_ref().map_or(Storage::plain(own), |format| Storage::formatted(format, entry.shape));
    };
    if entry.dtype.is_some() || !is_quantised(blueprint, param) {
        return Storage::plain(own);
    }
    if weights.bits() >= SCALE_BITS {
        return Storage::plain(weights);
    }
    let row = row_length(entry.shape);
    let inputs = Some(quantisation.group.map_or(row, |group| group.min(row)));
    let span = Span::Block { outputs: Some(1), inputs };
    let zero_point = if quantisation.zero_points { weights.bits() } else { 0 };
    let scales = vec![Scale { span, bits: SCALE_BITS + zero_point }];
    let format = WeightFormat { dtype: weights, scales, activations: quantisation.activations };
    Storage::formatted(&format, entry.shape)
}

/// Inputs of one output: the last dimension of `[O, I]`, the middle one of stacked `[E, I, O]`.
fn row_length(shape: Shape) -> u64 {
    match *shape.dims() {
        [_, inputs, _] => inputs,
        _ => shape.last(),
    }
}

/// Whether `param` is a matrix of a decoder layer that is worth quantising.
pub(crate) fn is_quantised(blueprint: &Blueprint, param: Param) -> bool {
    let entry = blueprint.param(param);
    let module = blueprint.module(entry.module);
    entry.shape.rank() >= 2
        && !entry.path.ends_with("bias")
        && !ROUTERS.contains(&module.name.as_str())
        && blueprint.decoder_layer(entry.module).is_some()
}

#[cfg(test)]
mod tests {
    use network::{Model, Preset};

    use super::*;

    fn model(name: &str) -> Model {
        Model::new(&Preset::find(name).unwrap().config().unwrap())
    }

    fn weights(name: &str, quantisation: &Quantisation) -> u64 {
        let model = model(name);
        let blueprint = model.blueprint();
        let bytes = blueprint
            .params()
            .map(|(param, entry)| storage(blueprint, param, DType::Bf16, quantisation).bytes(entry.shape.elements()));
        bytes.sum::<Bytes>().get()
    }

    const INT4: Quantisation =
        Quantisation { weights: Some(DType::Int4), group: Some(128), zero_points: true, activations: None, kv: None };

    #[test]
    fn a_group_of_four_bit_weights_worked_by_hand() {
        // 256 weights in groups of 128: 128 B, two scales of 2 B and two zero points of half a byte.
        let span = Span::Block { outputs: Some(1), inputs: Some(128) };
        let scales = vec![Scale { span, bits: 16 + 4 }];
        let format = WeightFormat { dtype: DType::Int4, scales, activations: None };
        let stored = Storage::formatted(&format, [1, 256].into());
        assert_eq!(stored.bytes(256), Bytes::new(128 + 2 * 2 + 1));
        // Half of five bytes, rounded down as the formula on the page does.
        assert_eq!(stored.bytes(128), Bytes::new(64 + 2));
    }

    #[test]
    fn llama_3_8b_in_four_bits_worked_by_hand() {
        // Layers have 6,979,321,856 weights in matrices: half a byte each, and 2.5 B for every 128. Embeddings and head,
        // 2 * 525,336,576, and 266,240 norm weights stay in 16 bits: 5.73 GB.
        let by_hand = 6_979_321_856 / 2 + 6_979_321_856 / 128 * 5 / 2 + 2 * (2 * 525_336_576 + 266_240);
        assert_eq!(weights("llama-3-8b", &INT4), by_hand);
        assert!((by_hand as f64 / 1e9 - 5.73).abs() < 0.01, "{by_hand}");
    }

    #[test]
    fn half_the_bits_are_half_the_bytes_of_what_is_quantised() {
        let plain = |dtype| Quantisation { weights: Some(dtype), ..Quantisation::default() };
        let kept = weights("llama-3-8b", &plain(DType::Int8)) - 6_979_321_856;
        // One scale a row: what is left beside the weights is what stays, and the scales, for both widths.
        assert_eq!(weights("llama-3-8b", &plain(DType::Int4)) - 6_979_321_856 / 2, kept);
    }

    #[test]
    fn nothing_changes_without_quantisation() {
        assert_eq!(weights("deepseek-ocr", &Quantisation::default()), 2 * 3_336_106_240);
    }

    #[test]
    fn routers_norms_embeddings_and_vision_stay() {
        let model = model("deepseek-ocr");
        let blueprint = model.blueprint();
        let quantised = |path: &str| {
            let (param, _) = blueprint.params().find(|(_, entry)| entry.path == path).unwrap();
            is_quantised(blueprint, param)
        };
        for path in ["model.layers.3.mlp.experts.5.down_proj.weight", "model.layers.0.self_attn.q_proj.weight"] {
            assert!(quantised(path), "{path}");
        }
        for path in [
            "model.layers.3.mlp.gate.weight",
            "model.layers.3.input_layernorm.weight",
            "model.embed_tokens.weight",
            "lm_head.weight",
            "model.sam_model.blocks.0.attn.qkv.weight",
        ] {
            assert!(!quantised(path), "{path}");
        }
    }
}
