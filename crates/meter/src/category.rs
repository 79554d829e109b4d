//! Kinds of operators, for breakdowns.

use types::Op;

/// A kind of operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// GEMMs with a weight.
    Linear,
    /// Convolutions.
    Convolution,
    /// Attention matmuls, softmax included.
    Attention,
    /// Matmuls that build position biases.
    PositionBias,
    /// Norms.
    Normalisation,
    /// Nonlinearities.
    Activation,
    /// Additions and multiplications.
    Elementwise,
    /// Table lookups.
    Embedding,
    /// Rotary positions.
    Rotary,
    /// Choosing experts, dispatching tokens and combining the outputs.
    Routing,
    /// Copies, concatenations, padding, casts.
    Layout,
    /// Resampling of position tables.
    Interpolation,
    /// Writes to the key-value cache.
    Cache,
    /// Pooling.
    Pooling,
}

impl Category {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Linear,
        Self::Convolution,
        Self::Attention,
        Self::PositionBias,
        Self::Normalisation,
        Self::Activation,
        Self::Elementwise,
        Self::Embedding,
        Self::Rotary,
        Self::Routing,
        Self::Layout,
        Self::Interpolation,
        Self::Cache,
        Self::Pooling,
    ];

    /// The kind of an operation.
    pub const fn of(op: &Op) -> Self {
        match op {
            Op::Linear => Self::Linear,
            Op::MatMulTransposed | Op::RelativePositions { .. } | Op::DistanceBias { .. } => Self::PositionBias,
            Op::Conv1d { .. } | Op::Conv2d { .. } | Op::CausalConv => Self::Convolution,
            Op::LayerNorm { .. } | Op::ChannelNorm { .. } | Op::BatchNorm { .. } | Op::RmsNorm { .. } => {
                Self::Normalisation
            }
            Op::Attention { .. }
            | Op::LatentAttention { .. }
            | Op::GatedDelta { .. }
            | Op::StateSpace { .. }
            | Op::SelectiveScan
            | Op::CompressPositions { .. }
            | Op::AttendEntries { .. }
            | Op::IndexEntries { .. }
            | Op::IndexPositions { .. } => Self::Attention,
            Op::Embedding | Op::ReplaceRows => Self::Embedding,
            Op::Rotary { .. } => Self::Rotary,
            Op::Activation(_) | Op::ClampedGate { .. } => Self::Activation,
            Op::CollapseStreams | Op::MixStreams { .. } => Self::Elementwise,
            Op::Add | Op::AddRows | Op::Multiply | Op::Scale { .. } | Op::Softcap { .. } => Self::Elementwise,
            Op::Softmax | Op::TopK { .. } | Op::LimitGroups { .. } | Op::Dispatch { .. } | Op::Combine { .. } => {
                Self::Routing
            }
            Op::Reshape(_)
            | Op::Permute(_)
            | Op::Slice { .. }
            | Op::Expand(_)
            | Op::Copy
            | Op::Concat { .. }
            | Op::Pad { .. }
            | Op::Cast(_) => Self::Layout,
            Op::Interpolate { .. } => Self::Interpolation,
            Op::GlobalAveragePool => Self::Pooling,
            Op::CacheAppend => Self::Cache,
        }
    }

    /// Stable name.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Convolution => "convolution",
            Self::Attention => "attention",
            Self::PositionBias => "position_bias",
            Self::Normalisation => "normalisation",
            Self::Activation => "activation",
            Self::Elementwise => "elementwise",
            Self::Embedding => "embedding",
            Self::Rotary => "rotary",
            Self::Routing => "routing",
            Self::Layout => "layout",
            Self::Interpolation => "interpolation",
            Self::Cache => "cache",
            Self::Pooling => "pooling",
        }
    }

    /// Name for people.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Linear => "Linear layers",
            Self::Convolution => "Convolutions",
            Self::Attention => "Attention",
            Self::PositionBias => "Relative-position bias",
            Self::Normalisation => "Normalisation",
            Self::Activation => "Activations",
            Self::Elementwise => "Elementwise",
            Self::Embedding => "Embeddings",
            Self::Rotary => "Rotary positions",
            Self::Routing => "Expert routing",
            Self::Layout => "Layout",
            Self::Interpolation => "Interpolation",
            Self::Cache => "Key-value cache",
            Self::Pooling => "Pooling",
        }
    }

    /// What belongs to it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Linear => "GEMMs with a weight matrix, biases included.",
            Self::Convolution => "Convolutions over images and sequences, biases included.",
            Self::Attention => "Scores, softmax and weighted sum of one attention call.",
            Self::PositionBias => "Gathering relative-position rows and multiplying queries by them.",
            Self::Normalisation => "Layer, channel, batch and root-mean-square norms.",
            Self::Activation => "Elementwise nonlinearities.",
            Self::Elementwise => "Residual additions and gating multiplications.",
            Self::Embedding => "Token lookups, and inserting image features among the tokens.",
            Self::Rotary => "Rotating queries and keys by position.",
            Self::Routing => "Expert scores, top-k choice, dispatch and weighted sum.",
            Self::Layout => "Copies that change layout, shape or element type.",
            Self::Interpolation => "Resampling position tables to another size.",
            Self::Cache => "Appending keys and values to the cache.",
            Self::Pooling => "Averages over an image.",
        }
    }

    /// Module classes of the published models whose own work is of this kind.
    pub const fn match_classes(self) -> &'static [&'static str] {
        match self {
            Self::Linear => &["Linear", "MlpProjector", "DeepseekV2MLP", "MLPBlock", "NoTPFeedForward", "LlamaMLP"],
            Self::Convolution => &["Conv1d", "Conv2d", "PatchEmbed"],
            Self::Attention => &["Attention", "NoTPAttention", "LlamaAttention", "LlamaFlashAttention2"],
            Self::Normalisation => &["LayerNorm", "LayerNorm2d", "DeepseekV2RMSNorm", "LlamaRMSNorm", "BatchNorm2d"],
            Self::Activation => &["GELU", "SiLU", "ReLU"],
            Self::Embedding => &["Embedding", "CLIPVisionEmbeddings"],
            Self::Rotary => &["LlamaRotaryEmbedding"],
            Self::Routing => &["MoEGate", "DeepseekV2MoE"],
            Self::PositionBias
            | Self::Elementwise
            | Self::Layout
            | Self::Interpolation
            | Self::Cache
            | Self::Pooling => &[],
        }
    }
}
