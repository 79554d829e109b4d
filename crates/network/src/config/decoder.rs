//! A decoder as data: which parts each layer is made of, and their sizes.
//!
//! Readers of families fill this; `model::decoder` builds it. A family is a choice of parts, never a network of its own.

use types::{ActivationKind, DType};

pub use super::attention::{
    AttentionConfig, BlockIndexerConfig, CompressedConfig, Compression, DeltaConfig, DeltaProjections,
    EntryIndexerConfig, FusedOrder, GroupedConfig, HeadNorms, HybridConfig, IndexerConfig, LatentConfig, OutputGate,
    RotaryConfig, SelectionNorms, ShortConvConfig, StateSpaceConfig, StateSpaceKind, Values,
};
pub use super::feed_forward::{
    BesideConfig, Correction, ExpertStorage, FeedForwardConfig, GateConfig, GatedConfig, GroupLimit, MixtureConfig,
    PlainConfig, ScoreKind, SharedConfig,
};
use super::names::Family;
use super::quantisation::Quantisation;

/// A whole decoder.
#[derive(Clone, Debug)]
pub struct DecoderConfig {
    /// Names of its classes and modules.
    pub(crate) family: &'static Family,
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Rows of the table of embeddings behind those, for tokens that it reads and never writes.
    pub further_tokens: u64,
    /// Positions behind which published code does what is not built here, which changes logits and no cost.
    pub exact_positions: Option<u64>,
    /// Width of the hidden states.
    pub width: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of a dense layer, where the configuration states one.
    pub intermediate: Option<u64>,
    /// Its layers.
    pub layers: Vec<LayerConfig>,
    /// Its norms.
    pub norm: NormConfig,
    /// Factor on token embeddings.
    pub embedding_scale: Option<f64>,
    /// Learned positions that are added to token embeddings.
    pub positions: Option<PositionsConfig>,
    /// Factor on what attention and feed-forward give, before it is added.
    pub residual_scale: Option<f64>,
    /// Factor on logits.
    pub logit_scale: Option<f64>,
    /// What stands behind the last norm.
    pub head: DecoderHead,
    /// Whether the head has a bias.
    pub head_bias: bool,
    /// Whether the head shares the token embedding's table.
    pub tied_embeddings: bool,
    /// Logits `l` become `limit * tanh(l / limit)`.
    pub logit_softcap: Option<f64>,
    /// Whether a learned factor weighs what each layer gives.
    pub layer_scalar: bool,
    /// Embeddings of tokens for each layer.
    pub per_layer: Option<PerLayerConfig>,
    /// Blocks that layers share, where there are any.
    pub shared: Option<SharedBlocksConfig>,
    /// Streams of hidden states, where there are several.
    pub streams: Option<StreamsConfig>,
    /// Streams that every part of a layer collapses and mixes, where there are several.
    pub hyper: Option<HyperConfig>,
    /// Element type of the published weights.
    pub dtype: DType,
    /// How the checkpoint is quantised, where it is.
    pub quantisation: Option<Quantisation>,
    /// The model it is the decoder of, where the other parts are not known.
    pub part_of: Option<String>,
    /// The parts that are left out: their fields, and their parameters as far as those can be estimated.
    pub left_out: Vec<LeftOut>,
}

/// What stands behind the last norm of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecoderHead {
    /// Scores of all tokens.
    Tokens,
    /// A classifier or reward model.
    Scores {
        /// Scores of a position.
        count: u64,
        /// Whether the projection to them has a bias.
        bias: bool,
    },
    /// Nothing: an embedder.
    Absent,
}

/// A part of a model that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Field of the file that describes it.
    pub field: String,
    /// What its layers have, by their sizes; absent where those are unknown.
    pub parameters: Option<u64>,
}

/// Learned positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionsConfig {
    /// Rows of the table.
    pub rows: u64,
    /// Row of the first position.
    pub first: u64,
}

/// Embeddings that each layer has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerLayerConfig {
    /// Their width.
    pub width: u64,
    /// Tokens they know.
    pub vocabulary: u64,
}

/// Blocks of attention and a feed-forward in front of layers, whose weights several layers share in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedBlocksConfig {
    /// Which layers have one in front.
    pub layers: Vec<bool>,
    /// What they are made of.
    pub block: SharedBlockConfig,
}

/// One of those blocks. It is given hidden states and the embeddings beside them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedBlockConfig {
    /// Sets of weights.
    pub blocks: u64,
    /// Its attention.
    pub attention: GroupedConfig,
    /// Inner width of its feed-forward.
    pub inner: u64,
    /// The nonlinearity of that.
    pub activation: ActivationKind,
    /// Whether the feed-forward has biases.
    pub bias: bool,
    /// Rank of the adapters that each layer has of its own.
    pub rank: u64,
    /// Whether attention has adapters too.
    pub adapts_attention: bool,
}

/// Streams of hidden states of which each layer computes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// How many.
    pub count: u64,
    /// Which one is computed.
    pub active: u64,
    /// Rank of the residual beside attention.
    pub rank: u64,
}

/// Hyper-connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyperConfig {
    /// Streams.
    pub streams: u64,
    /// Steps that make the weights between streams doubly stochastic.
    pub iterations: u64,
}

/// One layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerConfig {
    /// How positions exchange what they know.
    pub attention: AttentionConfig,
    /// What each position does on its own.
    pub feed_forward: FeedForwardConfig,
}

/// Norms of a decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormConfig {
    /// Added to the mean square or the variance.
    pub epsilon: f64,
    /// What is normed.
    pub kind: NormKind,
    /// Where norms stand in a layer.
    pub placement: NormPlacement,
}

/// What a norm divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// The root of the mean square.
    Rms,
    /// The same, with factors that are one more than the weight.
    RmsUnitOffset,
    /// The deviation from the mean, with weight and bias.
    Layer,
    /// The same without a bias.
    LayerWithoutBias,
    /// The root of the mean square, without a weight.
    BareRms,
    /// The deviation from the mean, without a weight or a bias.
    BareLayer,
}

/// Where norms stand in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlacement {
    /// In front of attention and of the feed-forward.
    Before,
    /// In front of both and behind both, before the outputs are added.
    Around,
    /// Behind both, before the outputs are added.
    After,
    /// Behind both in layers whose attention has a softmax, in front of both in those of linear attention.
    AfterSoftmax,
    /// In front of both, and behind experts.
    AfterExperts,
    /// In front of both, and in front of the last projection of each.
    Inside,
    /// In front: attention and feed-forward are given the same input, and both outputs are added to it.
    Parallel {
        /// Whether the feed-forward has a norm of its own.
        both: bool,
    },
}

impl DecoderConfig {
    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        self.family.names.causal
    }

    /// Parameters of the table of embeddings.
    pub fn table(&self) -> u64 {
        (self.vocabulary + self.further_tokens).saturating_mul(self.width)
    }

    /// Parameters of the experts that a token does not go to, in all layers.
    pub fn idle_parameters(&self) -> u64 {
        let idle = |layer: &LayerConfig| match layer.feed_forward {
            FeedForwardConfig::Gated(_) | FeedForwardConfig::Plain(_) | FeedForwardConfig::Absent => 0,
            FeedForwardConfig::Mixture(mixture) | FeedForwardConfig::Beside(BesideConfig { mixture, .. }) => {
                let (width, inner) = (mixture.latent.unwrap_or(self.width), mixture.expert.inner);
                let matrices = ((if mixture.gated { 3 } else { 2 }) * width).saturating_mul(inner);
                let biased = mixture.expert.bias || matches!(mixture.storage, ExpertStorage::Stacked { .. });
                let each = matrices.saturating_add(if biased { 2 * inner + width } else { 0 });
                (mixture.routing.experts - mixture.routing.per_token).saturating_mul(each)
            }
        };
        self.layers.iter().map(idle).fold(0, u64::saturating_add)
    }

    /// Whether any layer mixes experts.
    pub fn mixes_experts(&self) -> bool {
        let mixes = |part| matches!(part, FeedForwardConfig::Mixture(_) | FeedForwardConfig::Beside(_));
        self.layers.iter().any(|layer| mixes(layer.feed_forward))
    }
}

impl PartialEq for DecoderConfig {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.family, other.family)
            && (self.vocabulary, self.width, self.heads, self.intermediate)
                == (other.vocabulary, other.width, other.heads, other.intermediate)
            && (&self.layers, self.norm, self.dtype) == (&other.layers, other.norm, other.dtype)
            && (self.embedding_scale, self.tied_embeddings, self.logit_softcap)
                == (other.embedding_scale, other.tied_embeddings, other.logit_softcap)
            && self.further_tokens == other.further_tokens
            && (self.exact_positions, self.head) == (other.exact_positions, other.head)
            && (self.positions, self.residual_scale, self.logit_scale, self.head_bias)
                == (other.positions, other.residual_scale, other.logit_scale, other.head_bias)
            && self.shared == other.shared
            && (self.layer_scalar, self.per_layer, self.streams, self.hyper)
                == (other.layer_scalar, other.per_layer, other.streams, other.hyper)
    }
}
