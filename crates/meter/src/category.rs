//! Kinds of operators, for breakdowns.

types::named! {
    /// A kind of operator, with its stable name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Category {
        /// GEMMs with a weight.
        Linear = "linear",
        /// Convolutions.
        Convolution = "convolution",
        /// Attention matmuls, softmax included.
        Attention = "attention",
        /// Matmuls that build position biases.
        PositionBias = "position_bias",
        /// Norms.
        Normalisation = "normalisation",
        /// Nonlinearities.
        Activation = "activation",
        /// Additions and multiplications.
        Elementwise = "elementwise",
        /// Table lookups.
        Embedding = "embedding",
        /// Rotary positions.
        Rotary = "rotary",
        /// Choosing experts, dispatching tokens and combining the outputs.
        Routing = "routing",
        /// Copies, concatenations, padding, casts.
        Layout = "layout",
        /// Resampling of position tables.
        Interpolation = "interpolation",
        /// Writes to the key-value cache.
        Cache = "cache",
        /// Pooling.
        Pooling = "pooling",
    }
}

impl Category {
    /// Name for people, and what belongs to it.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Linear => ("Linear layers", "GEMMs with a weight matrix, biases included."),
            Self::Convolution => ("Convolutions", "Convolutions over images and sequences, biases included."),
            Self::Attention => ("Attention", "Scores, softmax and weighted sum of one attention call."),
            Self::PositionBias => {
                ("Relative-position bias", "Gathering relative-position rows and multiplying queries by them.")
            }
            Self::Normalisation => ("Normalisation", "Layer, channel, batch and root-mean-square norms."),
            Self::Activation => ("Activations", "Elementwise nonlinearities."),
            Self::Elementwise => ("Elementwise", "Residual additions and gating multiplications."),
            Self::Embedding => ("Embeddings", "Token lookups, and inserting image features among the tokens."),
            Self::Rotary => ("Rotary positions", "Rotating queries and keys by position."),
            Self::Routing => ("Expert routing", "Expert scores, top-k choice, dispatch and weighted sum."),
            Self::Layout => ("Layout", "Copies that change layout, shape or element type."),
            Self::Interpolation => ("Interpolation", "Resampling position tables to another size."),
            Self::Cache => ("Key-value cache", "Appending keys and values to the cache."),
            Self::Pooling => ("Pooling", "Averages over an image."),
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
