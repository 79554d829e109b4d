//! What one operation costs: one file per formula, one line per operation in the table below.
//!
//! Conventions. One multiply-add is two FLOPs. A transcendental function counts as one. Traffic is what a perfect kernel
//! must move: each input read once, each output written once, unless a formula says otherwise. `b` is bits per element.
//! Views move nothing and cost nothing.

mod activation;
mod attention;
mod cache;
mod compressed;
mod conv1d;
mod conv2d;
mod distance_bias;
mod elementwise;
mod embedding;
mod indexer;
mod interpolate;
mod latent_attention;
mod layout;
mod linear;
mod linear_attention;
mod matmul;
mod norm;
mod pool;
mod relative_positions;
mod rotary;
mod routing;
#[cfg(test)]
mod sample;
mod selective_scan;
mod softmax;
mod state_space;
mod streams;

use types::{AttentionKind, Cost, DType, Op, Role, Spec};

use crate::Category;
use crate::term::{Quantity, Symbols, Term, total};

/// The price of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Its summands.
    pub terms: Vec<Term>,
    /// Kind of operator.
    pub category: Category,
    /// Element type of matrix work, which selects the matrix peak.
    pub matrix_dtype: DType,
}

/// How an operation's price is derived, for its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// What the operation computes, in symbols.
    pub definition: &'static str,
    /// Why the formulas are what they are.
    pub text: &'static str,
    /// Where that can be looked up.
    pub source: &'static str,
}

/// What one operation is given and gives.
pub(crate) struct Call<'a> {
    pub(crate) inputs: &'a [Spec],
    pub(crate) output: Spec,
    pub(crate) attention: AttentionKind,
}

impl Price {
    /// Operations and traffic.
    pub fn cost(&self) -> Cost {
        total(&self.terms)
    }

    /// Memory needed only while the operation runs.
    pub fn scratch(&self) -> u64 {
        let scratch = self.terms.iter().filter(|term| term.quantity == Quantity::Scratch);
        scratch.map(|term| u64::try_from(term.value).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    }
}

/// Prices `op`, which makes `output` of `inputs`.
pub fn price(op: Op, inputs: &[Spec], output: Spec, attention: AttentionKind) -> Price {
    let call = Call { inputs, output, attention };
    let terms = match op {
        Op::Linear => linear::terms(&call),
        Op::MatMulTransposed => matmul::terms(&call),
        Op::Conv2d { .. } => conv2d::terms(&call),
        Op::Conv1d { .. } => conv1d::terms(&call),
        Op::LayerNorm { .. } | Op::ChannelNorm { .. } => norm::layer_norm(&call),
        Op::BatchNorm { .. } => norm::batch_norm(&call),
        Op::RmsNorm { .. } => norm::rms_norm(&call),
        Op::Attention { causal, fused, detail, .. } => attention::terms(&call, causal, fused, detail),
        Op::LatentAttention { causal, .. } => latent_attention::terms(&call, causal),
        Op::IndexPositions { .. } => indexer::terms(&call),
        Op::GatedDelta { chunk } => linear_attention::gated_delta(&call, chunk),
        Op::StateSpace { chunk } => state_space::terms(&call, chunk),
        Op::SelectiveScan => selective_scan::terms(&call),
        Op::CompressPositions { .. } => compressed::compress(&call),
        Op::AttendEntries { every, keep } => compressed::attend(&call, every, keep),
        Op::IndexEntries { every } => compressed::index(&call, every),
        Op::CollapseStreams => streams::collapse(&call),
        Op::MixStreams { iterations } => streams::mix(&call, iterations),
        Op::CausalConv => linear_attention::causal_conv(&call),
        Op::Embedding => embedding::lookup(&call),
        Op::ReplaceRows => embedding::replace_rows(&call),
        Op::AddRows => embedding::add_rows(&call),
        Op::Rotary { .. } => rotary::terms(&call),
        Op::Activation(kind) => activation::terms(&call, kind),
        Op::Add | Op::Multiply => elementwise::terms(&call),
        Op::Scale { .. } => elementwise::scale(&call),
        Op::Softcap { .. } => elementwise::softcap(&call),
        Op::ClampedGate { .. } => activation::clamped_gate(&call),
        Op::Softmax => softmax::softmax(&call),
        Op::TopK { k } => softmax::top_k(&call, k),
        Op::LimitGroups { groups, keep, best } => softmax::limit_groups(&call, [groups, keep, best]),
        Op::Reshape(_) | Op::Permute(_) | Op::Slice { .. } | Op::Expand(_) => Vec::new(),
        Op::Copy | Op::Concat { .. } | Op::Pad { .. } | Op::Cast(_) => layout::terms(&call),
        Op::Interpolate { kind, .. } => interpolate::terms(&call, kind),
        Op::RelativePositions { .. } => relative_positions::terms(&call),
        Op::DistanceBias { .. } => distance_bias::terms(&call),
        Op::GlobalAveragePool => pool::terms(&call),
        Op::Dispatch { per_token } => routing::dispatch(&call, per_token),
        Op::Combine { per_token } => routing::combine(&call, per_token),
        Op::CacheAppend => cache::append(&call),
    };
    let multiplies_weight = op == Op::MatMulTransposed && inputs.iter().any(|input| input.role == Role::Weight);
    let category = if multiplies_weight { Category::Linear } else { kind(&op).0 };
    Price { terms, category, matrix_dtype: inputs.first().map_or(output.dtype, |x| x.dtype) }
}

/// The kind of `op`, and how its price is derived.
pub fn kind(op: &Op) -> (Category, Derivation) {
    use Category as Kind;
    match op {
        Op::Linear => (Kind::Linear, linear::DERIVATION),
        Op::MatMulTransposed => (Kind::PositionBias, matmul::DERIVATION),
        Op::Conv2d { .. } => (Kind::Convolution, conv2d::DERIVATION),
        Op::Conv1d { .. } => (Kind::Convolution, conv1d::DERIVATION),
        Op::LayerNorm { .. } | Op::ChannelNorm { .. } => (Kind::Normalisation, norm::LAYER_NORM),
        Op::BatchNorm { .. } => (Kind::Normalisation, norm::BATCH_NORM),
        Op::RmsNorm { .. } => (Kind::Normalisation, norm::RMS_NORM),
        Op::Attention { .. } => (Kind::Attention, attention::DERIVATION),
        Op::LatentAttention { .. } => (Kind::Attention, latent_attention::DERIVATION),
        Op::IndexPositions { .. } => (Kind::Attention, indexer::DERIVATION),
        Op::GatedDelta { .. } => (Kind::Attention, linear_attention::GATED_DELTA),
        Op::StateSpace { .. } => (Kind::Attention, state_space::DERIVATION),
        Op::SelectiveScan => (Kind::Attention, selective_scan::DERIVATION),
        Op::CompressPositions { .. } => (Kind::Attention, compressed::COMPRESS),
        Op::AttendEntries { .. } => (Kind::Attention, compressed::ATTEND),
        Op::IndexEntries { .. } => (Kind::Attention, compressed::INDEX),
        Op::CollapseStreams => (Kind::Elementwise, streams::COLLAPSE),
        Op::MixStreams { .. } => (Kind::Elementwise, streams::MIX),
        Op::CausalConv => (Kind::Convolution, linear_attention::CAUSAL_CONV),
        Op::Embedding => (Kind::Embedding, embedding::LOOKUP),
        Op::ReplaceRows => (Kind::Embedding, embedding::REPLACE_ROWS),
        Op::AddRows => (Kind::Elementwise, embedding::ADD_ROWS),
        Op::Rotary { .. } => (Kind::Rotary, rotary::DERIVATION),
        Op::Activation(_) => (Kind::Activation, activation::DERIVATION),
        Op::Add | Op::Multiply => (Kind::Elementwise, elementwise::DERIVATION),
        Op::Scale { .. } => (Kind::Elementwise, elementwise::SCALE),
        Op::Softcap { .. } => (Kind::Elementwise, elementwise::SOFTCAP),
        Op::ClampedGate { .. } => (Kind::Activation, activation::CLAMPED_GATE),
        Op::Softmax => (Kind::Routing, softmax::SOFTMAX),
        Op::TopK { .. } => (Kind::Routing, softmax::TOP_K),
        Op::LimitGroups { .. } => (Kind::Routing, softmax::LIMIT_GROUPS),
        Op::Reshape(_) | Op::Permute(_) | Op::Slice { .. } | Op::Expand(_) => (Kind::Layout, layout::VIEW),
        Op::Copy | Op::Concat { .. } | Op::Pad { .. } | Op::Cast(_) => (Kind::Layout, layout::COPY),
        Op::Interpolate { .. } => (Kind::Interpolation, interpolate::DERIVATION),
        Op::RelativePositions { .. } => (Kind::PositionBias, relative_positions::DERIVATION),
        Op::DistanceBias { .. } => (Kind::PositionBias, distance_bias::DERIVATION),
        Op::GlobalAveragePool => (Kind::Pooling, pool::DERIVATION),
        Op::Dispatch { .. } => (Kind::Routing, routing::DISPATCH),
        Op::Combine { .. } => (Kind::Routing, routing::COMBINE),
        Op::CacheAppend => (Kind::Cache, cache::APPEND),
    }
}

/// Reading all of `spec` once; its role says which part of the traffic that is.
pub(crate) fn read(spec: &Spec) -> Term {
    let quantity = match spec.role {
        Role::Activation => Quantity::ActivationsIn,
        Role::Weight => Quantity::Weights,
        Role::Cache => Quantity::KvRead,
    };
    moved(quantity, spec)
}

/// Writing all of `spec` once.
pub(crate) fn write(spec: &Spec) -> Term {
    moved(Quantity::ActivationsOut, spec)
}

fn moved(quantity: Quantity, spec: &Spec) -> Term {
    let (elements, bits) = (u128::from(spec.shape.elements()), u128::from(spec.dtype.bits()));
    // Half a byte left over takes a whole one; only four-bit types have any.
    let whole = (elements * bits).is_multiple_of(8);
    Term {
        quantity,
        formula: if whole { "N * b / 8" } else { "(N * b + 7) / 8" },
        symbols: Symbols::new([("N", elements), ("b", bits)]),
        value: (elements * bits).div_ceil(8),
    }
}

/// These FLOPs, and the traffic of an operation that reads every input once and writes its output once.
pub(crate) fn streamed(call: &Call<'_>, flops: impl IntoIterator<Item = Term>) -> Vec<Term> {
    flops.into_iter().chain(call.inputs.iter().map(read)).chain([write(&call.output)]).collect()
}

/// Dimension `index` of `spec`, for formulas.
pub(crate) fn dim(spec: &Spec, index: usize) -> u128 {
    spec.shape.dims().get(index).copied().unwrap_or(1).into()
}

/// Elements of `spec`, for formulas.
pub(crate) fn elements(spec: &Spec) -> u128 {
    spec.shape.elements().into()
}
