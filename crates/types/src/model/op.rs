//! Operations as data: what a network asks a backend to do, and the shapes it does it on.
//!
//! Which output shape follows from which inputs is `network`'s business, and what an operation costs is `meter`'s.

use std::fmt;

use crate::{Bytes, DType, RotaryForm};

/// What a tensor is; decides which part of the traffic reading it counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A value computed on the way.
    Activation,
    /// A parameter.
    Weight,
    /// Keys and values of earlier positions.
    Cache,
}

/// Sizes of a tensor's dimensions; at most [`Shape::MAX_RANK`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u64; Self::MAX_RANK],
    rank: u8,
}

/// Shape, element type and role of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Sizes.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// What it is.
    pub role: Role,
}

/// Elementwise nonlinearities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationKind {
    /// Gaussian error linear unit, by the error function.
    Gelu,
    /// The same by its approximation with `tanh`.
    GeluTanh,
    /// `x * sigmoid(1.702 x)`.
    QuickGelu,
    /// `x * sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0)^2`.
    SquaredRelu,
    /// `p x^2 + x / 2` where `x > 0`, else `n (exp(x) - 1 - x) + x / 2`, of learned `p` and `n`, whose logarithms are its other inputs.
    Xielu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
}

/// What attention does in addition to scaled GEMMs and softmax.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttentionDetail {
    /// Keys a query sees at most, its own included; all where absent.
    pub window: Option<u64>,
    /// Set where positions are cut into chunks of that many keys, and a query sees those of its own chunk only: positions in
    /// front of the first query.
    pub chunked: Option<u64>,
    /// Scores `s` become `limit * tanh(s / limit)`.
    pub softcap: Option<f64>,
    /// The last input is a `sink [H]`: a score of each head that takes part in the softmax and has no value.
    pub sinks: bool,
    /// Who chooses the keys that a query sees; the window is how many at most.
    pub chosen: Chosen,
}

/// Who chooses the keys that a query sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chosen {
    /// Nobody: it sees those before it.
    #[default]
    Nobody,
    /// The last input, `[B, S, keep]`; what is below zero is no key.
    Here,
    /// Another layer, whose choice is not known here.
    Elsewhere,
}

/// How a tensor is resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterpolationKind {
    /// Bicubic with antialiasing over `[1, H, W, C]`.
    Bicubic,
    /// Bilinear over `[1, H, W, C]`, corners on corners.
    Bilinear,
    /// Linear over the first dimension of `[L, C]`.
    Linear,
}

/// One operation. Shape letters: `B` batch, `S` query positions, `T` key positions, `H` heads, `G` key-value heads,
/// `D` head width, `I` input and `O` output features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `x [.., I]`, `weight [O, I]`, optional `bias [O]` to `[.., O]`.
    Linear,
    /// `a [.., M, K]`, `b [.., N, K]` to `[.., M, N]`: the second operand is used transposed.
    MatMulTransposed,
    /// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
    Conv2d {
        /// Step between outputs.
        stride: u64,
        /// Zeros added on every side.
        padding: u64,
    },
    /// `x [N, C, X]`, `weight [O, C, k]`, optional `bias [O]`.
    Conv1d {
        /// Step between outputs.
        stride: u64,
        /// Zeros added on both sides.
        padding: u64,
    },
    /// Over the last dimension: `x`, `weight`, `bias`.
    LayerNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// Over the channels of `[N, C, Y, X]`: `x`, `weight`, `bias`.
    ChannelNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// With fixed statistics over `[N, C, Y, X]`: `x`, `weight`, `bias`, `mean`, `variance`.
    BatchNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// Over the last dimension: `x`, `weight`.
    RmsNorm {
        /// Added to the mean square.
        epsilon: f64,
        /// Whether the factor is one more than the weight.
        unit_offset: bool,
    },
    /// `q [B, H, S, D]`, `k [B, G, T, D]`, `v [B, G, T, V]`, optional `bias [B, H, S, T]`, `sink [H]` or
    /// chosen keys `[B, S, keep]` to `[B, H, S, V]`.
    Attention {
        /// Whether a position sees only itself and earlier ones; the last query is aligned with the last key.
        causal: bool,
        /// Factor on the scores.
        scale: f64,
        /// Whether the published model asks for a fused kernel here whatever kind the user chose.
        fused: bool,
        /// What else it does.
        detail: AttentionDetail,
    },
    /// `q [B, H, S, L]` and its rotated part `[B, H, S, R]`, latent vectors `[B, 1, T, L]` and rotated keys
    /// `[B, 1, T, R]` to `[B, H, S, L]`: latent vectors are keys and values of every head at once.
    LatentAttention {
        /// Whether a position sees only itself and earlier ones.
        causal: bool,
        /// Factor on the scores.
        scale: f64,
    },
    /// `q [B, H, S, D]`, `k [B, 1, T, D]`, `weights [B, S, H]` to the positions that sparse attention sees, `[B, S, keep]`,
    /// the last query being at the last key. A query with fewer keys has `-1` in the other places.
    IndexPositions {
        /// Positions of a query.
        keep: u64,
    },
    /// Linear attention by the gated delta rule: `q` and `k [B, S, G, K]`, `v [B, S, H, V]`, steps and decays `[B, S, H]`,
    /// bias and rate of the decay `[H]`, or decays of each channel `[B, S, H, K]` with their bias `[H * K]`, to `[B, S, H, V]`. The state belongs to the backend.
    GatedDelta {
        /// Positions processed at a time.
        chunk: u64,
    },
    /// A state-space layer, Mamba-2: `x [B, S, H, P]`, inputs and outputs of the state `[B, S, G, N]`, steps `[B, S, H]`, and
    /// bias of the steps, rate of the decay and skip `[H]` to `[B, S, H, P]`. The state belongs to the backend.
    StateSpace {
        /// Positions processed at a time.
        chunk: u64,
    },
    /// A state-space layer, Mamba: `x` and steps `[B, S, C]`, inputs and outputs of the state `[B, S, N]`, rate of the decay
    /// `[C, N]` and skip `[C]` to `[B, S, C]`. The state belongs to the backend.
    SelectiveScan,
    /// One entry of a cache for every few positions: values and gates `[B, S, W]`, biases `[every, W]` and the weight of a norm
    /// `[width]` to the part of an entry that each position is, `[B, 1, S, width / every]`. What is open belongs to the backend.
    CompressPositions {
        /// Positions of an entry.
        every: u64,
        /// Width of an entry.
        width: u64,
    },
    /// `q [B, H, S, D]` over entries of all positions `[B, 1, T, D / every]`, beside attention over the positions nearby.
    AttendEntries {
        /// Positions of an entry.
        every: u64,
        /// Entries a query sees at most.
        keep: Option<u64>,
    },
    /// `q [B, H, S, D]`, entries `[B, 1, T, D / every]` and `weights [B, S, H]` to the entries that each query sees.
    IndexEntries {
        /// Positions of an entry.
        every: u64,
    },
    /// Streams `[B, S, N, O]` and weights of them `[B, S, ..]` to `[B, S, O]`.
    CollapseStreams,
    /// Streams `[B, S, N, O]`, weights of them `[B, S, ..]` and `x [B, S, O]` to streams.
    MixStreams {
        /// Steps that make the weights between streams doubly stochastic.
        iterations: u64,
    },
    /// `x [B, S, C]`, `weight [C, 1, k]`, optional `bias [C]`: each channel on its own over the positions before it.
    CausalConv,
    /// `ids [..]`, `table [V, O]` to `[.., O]`.
    Embedding,
    /// Rotates pairs of `x [B, H, S, D]` by angles that grow with the position.
    Rotary {
        /// Base of the angles.
        theta: f64,
        /// Position of the first query.
        offset: u64,
        /// Which elements are rotated, and how angles are stretched.
        form: RotaryForm,
    },
    /// A nonlinearity.
    Activation(ActivationKind),
    /// Elementwise sum, broadcasting.
    Add,
    /// Elementwise product, broadcasting.
    Multiply,
    /// Product with a constant.
    Scale {
        /// The constant.
        factor: f64,
    },
    /// `limit * tanh(x / limit)`.
    Softcap {
        /// What no value passes.
        limit: f64,
    },
    /// Gate and up values alternating in `[.., 2 I]` to `[.., I]`: `(up + 1) * gate * sigmoid(alpha * gate)`, with
    /// `gate` at most `limit` and `up` within it on both sides.
    ClampedGate {
        /// Bound on both.
        limit: f64,
        /// Factor inside the sigmoid.
        alpha: f64,
    },
    /// Sets the scores `[T, E]` of all but the best groups of experts out of reach.
    LimitGroups {
        /// Groups of experts, one behind the other.
        groups: u64,
        /// Groups that stay.
        keep: u64,
        /// A group is as good as the sum of this many of its best scores.
        best: u64,
    },
    /// Over the last dimension.
    Softmax,
    /// Indices of the `k` largest of the last dimension.
    TopK {
        /// How many.
        k: u64,
    },
    /// The same elements under another shape; no data moves.
    Reshape(Shape),
    /// Dimensions in another order; no data moves.
    Permute(Shape),
    /// Part of one dimension; no data moves.
    Slice {
        /// Which dimension.
        dim: u64,
        /// First index.
        start: u64,
        /// How many.
        length: u64,
    },
    /// Repeats dimensions of size one; no data moves.
    Expand(Shape),
    /// Lays a permuted or sliced tensor out anew.
    Copy,
    /// Joins tensors along a dimension; sizes of one are repeated in the others.
    Concat {
        /// Which dimension.
        dim: u64,
    },
    /// Adds zeros behind one dimension.
    Pad {
        /// Which dimension.
        dim: u64,
        /// How many.
        after: u64,
    },
    /// Resamples to the given sizes; see [`InterpolationKind`] for the layout.
    Interpolate {
        /// How.
        kind: InterpolationKind,
        /// Sizes of the resampled dimensions.
        size: [u64; 2],
    },
    /// Rows of a relative-position `table [L, D]` for every query and key: `[queries, keys, D]`.
    RelativePositions {
        /// Query positions.
        queries: u64,
        /// Key positions.
        keys: u64,
    },
    /// Scores of a `table [L, H]` for every query and key by how far they are apart, the last query being at the last key:
    /// `[1, H, queries, keys]`. Near distances have a row each, those further away share rows.
    DistanceBias {
        /// Query positions.
        queries: u64,
        /// Key positions.
        keys: u64,
        /// From which distance on all share the last row.
        furthest: u64,
        /// Whether keys behind the query have rows of their own; otherwise they are never seen.
        both_ways: bool,
    },
    /// Mean over `Y` and `X` of `[N, C, Y, X]`.
    GlobalAveragePool,
    /// Changes the element type.
    Cast(DType),
    /// Puts `rows [N, O]` where `mask [B, S]` is true in `base [B, S, O]`.
    ReplaceRows,
    /// Adds `rows [N, O]` where `mask [B, S]` is true in `base [B, S, O]`.
    AddRows,
    /// Copies each row of `x [T, O]` once for each of its `k` experts: `[T * k, O]`.
    Dispatch {
        /// Experts a token goes to.
        per_token: u64,
    },
    /// Weighted sum of the expert outputs `[T * k, O]` with `scores` and `indices [T, k]`: `[T, O]`.
    Combine {
        /// Experts a token went to.
        per_token: u64,
    },
    /// Writes `k` and `v` behind what the cache holds.
    CacheAppend,
}

impl Shape {
    /// The most dimensions any network here needs.
    pub const MAX_RANK: usize = 6;

    /// A shape of these sizes, or `None` when there are too many.
    pub fn try_new(dims: &[u64]) -> Option<Self> {
        let rank = u8::try_from(dims.len()).ok().filter(|rank| usize::from(*rank) <= Self::MAX_RANK)?;
        let mut shape = Self { dims: [0; Self::MAX_RANK], rank };
        shape.dims[..dims.len()].copy_from_slice(dims);
        Some(shape)
    }

    /// The sizes.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Number of elements; stops at the largest 64-bit number.
    pub fn elements(&self) -> u64 {
        self.dims().iter().fold(1, |product, size| u64::saturating_mul(product, *size))
    }

    /// Size of the last dimension; one for a scalar.
    pub fn last(&self) -> u64 {
        self.dims().last().copied().unwrap_or(1)
    }
}

impl<const N: usize> From<[u64; N]> for Shape {
    /// Of a literal shape; more than six dimensions do not compile.
    fn from(dims: [u64; N]) -> Self {
        const { assert!(N <= Self::MAX_RANK, "a shape has at most six dimensions") };
        let mut shape = Self { dims: [0; Self::MAX_RANK], rank: N as u8 };
        shape.dims[..N].copy_from_slice(&dims);
        shape
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, size) in self.dims().iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{size}")?;
        }
        f.write_str("]")
    }
}

impl Spec {
    /// An activation.
    pub fn activation(shape: impl Into<Shape>, dtype: DType) -> Self {
        Self { shape: shape.into(), dtype, role: Role::Activation }
    }

    /// Bytes it takes when stored whole.
    pub fn bytes(&self) -> Bytes {
        self.dtype.bytes_for(self.shape.elements())
    }
}

impl Op {
    /// The name in operator tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::MatMulTransposed => "matmul",
            Self::Conv2d { .. } => "conv2d",
            Self::Conv1d { .. } => "conv1d",
            Self::LayerNorm { .. } => "layer_norm",
            Self::ChannelNorm { .. } => "channel_norm",
            Self::BatchNorm { .. } => "batch_norm",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Attention { .. } => "attention",
            Self::LatentAttention { .. } => "latent_attention",
            Self::IndexPositions { .. } => "index_positions",
            Self::GatedDelta { .. } => "gated_delta",
            Self::StateSpace { .. } => "state_space",
            Self::SelectiveScan => "selective_scan",
            Self::CompressPositions { .. } => "compress_positions",
            Self::AttendEntries { .. } => "attend_entries",
            Self::IndexEntries { .. } => "index_entries",
            Self::CollapseStreams => "collapse_streams",
            Self::MixStreams { .. } => "mix_streams",
            Self::CausalConv => "causal_conv",
            Self::Embedding => "embedding",
            Self::Rotary { .. } => "rotary",
            Self::Activation(ActivationKind::Gelu) => "gelu",
            Self::Activation(ActivationKind::GeluTanh) => "gelu_tanh",
            Self::Activation(ActivationKind::Sigmoid) => "sigmoid",
            Self::Activation(ActivationKind::QuickGelu) => "quick_gelu",
            Self::Activation(ActivationKind::Silu) => "silu",
            Self::Activation(ActivationKind::Relu) => "relu",
            Self::Activation(ActivationKind::SquaredRelu) => "squared_relu",
            Self::Activation(ActivationKind::Xielu) => "xielu",
            Self::Add => "add",
            Self::Multiply => "multiply",
            Self::Scale { .. } => "scale",
            Self::Softcap { .. } => "softcap",
            Self::ClampedGate { .. } => "clamped_gate",
            Self::LimitGroups { .. } => "limit_groups",
            Self::Softmax => "softmax",
            Self::TopK { .. } => "top_k",
            Self::Reshape(_) => "reshape",
            Self::Permute(_) => "permute",
            Self::Slice { .. } => "slice",
            Self::Expand(_) => "expand",
            Self::Copy => "copy",
            Self::Concat { .. } => "concat",
            Self::Pad { .. } => "pad",
            Self::Interpolate { .. } => "interpolate",
            Self::RelativePositions { .. } => "relative_positions",
            Self::DistanceBias { .. } => "distance_bias",
            Self::GlobalAveragePool => "global_average_pool",
            Self::Cast(_) => "cast",
            Self::ReplaceRows => "replace_rows",
            Self::AddRows => "add_rows",
            Self::Dispatch { .. } => "dispatch",
            Self::Combine { .. } => "combine",
            Self::CacheAppend => "cache_append",
        }
    }

    /// Whether the output is the input's data seen differently, so that nothing is computed and nothing moves.
    pub const fn is_view(&self) -> bool {
        matches!(self, Self::Reshape(_) | Self::Permute(_) | Self::Slice { .. } | Self::Expand(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_knows_its_elements_and_prints_as_a_list() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!((shape.elements(), shape.rank(), shape.last()), (24, 3, 4));
        assert_eq!(shape.to_string(), "[2, 3, 4]");
        assert_eq!(Shape::from([]).elements(), 1);
    }

    #[test]
    fn seven_dimensions_are_too_many() {
        assert_eq!(Shape::try_new(&[1; 7]), None);
        assert_eq!(Shape::try_new(&[1; 6]), Some(Shape::from([1; 6])));
    }
}
