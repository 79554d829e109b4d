//! A decoder as data: which parts each layer is made of, and their sizes.
//!
//! Readers of families fill this; `model::decoder` builds it. A family is a choice of parts, never a network of its own.

use types::{ActivationKind, AttentionDetail, DType, RotaryForm};

use super::names::Family;
use super::quantisation::Quantisation;
use crate::Routing;

/// A whole decoder.
#[derive(Clone, Debug)]
pub struct DecoderConfig {
    /// Names of its classes and modules.
    pub(crate) family: &'static Family,
    /// Tokens it knows.
    pub vocabulary: u64,
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
    /// Whether the head has a bias.
    pub head_bias: bool,
    /// Whether the head shares the token embedding's table.
    pub tied_embeddings: bool,
    /// Logits `l` become `limit * tanh(l / limit)`.
    pub logit_softcap: Option<f64>,
    /// Element type of the published weights.
    pub dtype: DType,
    /// How the checkpoint is quantised, where it is.
    pub quantisation: Option<Quantisation>,
    /// The model it is the decoder of, where the other parts are not known.
    pub part_of: Option<String>,
}

/// Learned positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionsConfig {
    /// Rows of the table.
    pub rows: u64,
    /// Row of the first position.
    pub first: u64,
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
    /// In front: attention and feed-forward are given the same input, and both outputs are added to it.
    Parallel {
        /// Whether the feed-forward has a norm of its own.
        both: bool,
    },
}

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttentionConfig {
    /// Heads that share keys and values in groups.
    Grouped(GroupedConfig),
    /// Keys and values made from one small vector a position.
    Latent(LatentConfig),
    /// A state of fixed size.
    Delta(DeltaConfig),
    /// A state of fixed size, of a state-space model.
    StateSpace(StateSpaceConfig),
    /// None: the layer is a feed-forward alone.
    Absent,
}

/// A state-space layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSpaceConfig {
    /// Width inside.
    pub inner: u64,
    /// Elements of the state for each element inside.
    pub state: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// Biases of the projections into it and out of it.
    pub bias: bool,
    /// Bias of the convolution.
    pub conv_bias: bool,
    /// Which decays it has.
    pub kind: StateSpaceKind,
}

/// Generations of state-space layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSpaceKind {
    /// Mamba-2: one decay a head.
    Heads {
        /// Heads.
        heads: u64,
        /// Groups of heads that share inputs and outputs of the state.
        groups: u64,
        /// Positions processed at a time.
        chunk: u64,
        /// Whether what comes out is normed behind the gate.
        normed: bool,
    },
    /// Mamba: decays of each channel, from steps of a low rank.
    Channels {
        /// The rank.
        rank: u64,
    },
}

impl StateSpaceConfig {
    /// Channels of the convolution.
    pub(crate) fn channels(&self) -> u64 {
        match self.kind {
            StateSpaceKind::Heads { groups, .. } => self.inner + 2 * groups * self.state,
            StateSpaceKind::Channels { .. } => self.inner,
        }
    }
}

/// Gated delta-net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaConfig {
    /// Heads of queries and keys.
    pub key_heads: u64,
    /// Heads of values, of gates and of the state.
    pub value_heads: u64,
    /// Width of a query or key.
    pub key_width: u64,
    /// Width of a value.
    pub value_width: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// How its inputs are projected.
    pub projections: DeltaProjections,
}

/// Projections in front of a gated delta-net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaProjections {
    /// One for queries, keys, values and gates, one for steps and decays.
    Two,
    /// One each for queries, keys and values together, gates, steps and decays.
    Four,
}

/// Heads that share keys and values in groups; as many groups as heads is plain attention, one group multi-query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedConfig {
    /// Query heads.
    pub heads: u64,
    /// Key-value heads.
    pub key_value_heads: u64,
    /// Width of a head.
    pub head_width: u64,
    /// Biases of the projections to queries, keys and values.
    pub input_bias: bool,
    /// Bias of the output projection.
    pub output_bias: bool,
    /// Whether one projection makes queries, keys and values, and in which order.
    pub fused: Option<FusedOrder>,
    /// How queries and keys are normed, where they are.
    pub head_norms: Option<HeadNorms>,
    /// Rotary positions; absent in layers without positions.
    pub rotary: Option<RotaryConfig>,
    /// Whether the query projection makes a gate too, whose sigmoid weighs the output.
    pub gated: bool,
    /// Factor on the scores.
    pub scale: f64,
    /// Window, softcap, sinks.
    pub detail: AttentionDetail,
}

/// How queries and keys are normed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// Each head on its own, before the rotation.
    EachHead,
    /// Each head on its own, behind the rotation.
    EachHeadTurned,
    /// All heads together.
    AllHeads,
}

/// The order of what one projection makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedOrder {
    /// Heads of queries, then of keys, then of values.
    Blocks,
    /// For each key-value head its queries, its key and its value.
    Groups,
}

/// Multi-head latent attention: the cache holds one latent vector and one rotated key a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentConfig {
    /// Heads.
    pub heads: u64,
    /// Width queries are squeezed to; absent where they are projected directly.
    pub query_rank: Option<u64>,
    /// Width of the latent vector keys and values are made from.
    pub latent: u64,
    /// Width of the part of a query or key that is not rotated.
    pub plain_width: u64,
    /// Width of the part that is.
    pub rotary_width: u64,
    /// Width of a value.
    pub value_width: u64,
    /// Biases of the first projections and of the output.
    pub bias: bool,
    /// Rotary positions.
    pub rotary: RotaryConfig,
    /// Factor on the scores.
    pub scale: f64,
    /// Positions a query sees at most, where an indexer chooses them.
    pub keep: Option<u64>,
    /// The indexer; absent where an earlier layer's choice is used.
    pub indexer: Option<IndexerConfig>,
}

/// What chooses the positions of sparse attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexerConfig {
    /// Its heads.
    pub heads: u64,
    /// Width of its queries and keys.
    pub width: u64,
    /// Whether neighbours are rotated together, not halves.
    pub interleaved: bool,
}

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryConfig {
    /// Base of the angles.
    pub theta: f64,
    /// Width that is rotated; the rest of a head passes.
    pub width: u64,
    /// Which elements, and how angles are stretched.
    pub form: RotaryForm,
}

/// Feed-forward of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedForwardConfig {
    /// The same weights for every token.
    Gated(GatedConfig),
    /// The same, without a gate.
    Plain(PlainConfig),
    /// Experts.
    Mixture(MixtureConfig),
    /// None: the layer is attention alone.
    Absent,
}

/// `down(activation(gate(x)) * up(x))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatedConfig {
    /// Inner width.
    pub inner: u64,
    /// The nonlinearity.
    pub activation: ActivationKind,
    /// Whether its projections have biases.
    pub bias: bool,
    /// Whether one projection makes gate and up.
    pub fused: bool,
}

/// `second(activation(first(x)))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainConfig {
    /// Inner width.
    pub inner: u64,
    /// The nonlinearity.
    pub activation: ActivationKind,
    /// Whether its projections have biases.
    pub bias: bool,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixtureConfig {
    /// One expert.
    pub expert: GatedConfig,
    /// Whether experts have a gate; without one they are `down(activation(up(x)))`.
    pub gated: bool,
    /// Width that experts work in, where tokens are projected to it and back.
    pub latent: Option<u64>,
    /// How the checkpoint keeps experts.
    pub storage: ExpertStorage,
    /// How many, and how many each token goes to.
    pub routing: Routing,
    /// How they are chosen.
    pub gate: GateConfig,
    /// Experts that every token also passes through.
    pub shared: Option<SharedConfig>,
}

/// How a checkpoint keeps experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertStorage {
    /// Each a module of its own.
    Listed,
    /// One tensor for all, with biases, gate and up values alternating and clamped.
    Stacked {
        /// Bound on gate and up.
        limit: f64,
        /// Factor inside the sigmoid.
        alpha: f64,
    },
}

/// How experts are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateConfig {
    /// What makes scores of logits.
    pub scores: ScoreKind,
    /// Whether logits are computed in single precision whatever the rest is in.
    pub single_precision: bool,
    /// Whether the projection has a bias.
    pub bias: bool,
    /// Whether a learned correction is added for the choice, not for the weight.
    pub correction: Option<Correction>,
    /// Experts come from the best groups only.
    pub groups: Option<GroupLimit>,
}

/// A correction of the choice of experts, as published models keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Beside the parameters.
    Buffer,
    /// As one of them.
    Parameter,
}

/// What makes scores of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreKind {
    /// Over all experts.
    Softmax,
    /// Each on its own.
    Sigmoid,
}

/// The choice of groups of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// Groups.
    pub groups: u64,
    /// Groups a token may choose from.
    pub keep: u64,
    /// A group is as good as the sum of this many of its best scores.
    pub best: u64,
}

/// Experts every token passes through: one block of their joint width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedConfig {
    /// How many they are, where the configuration counts them.
    pub count: Option<u64>,
    /// Their joint inner width.
    pub inner: u64,
    /// Whether a learned factor of each token weighs them.
    pub gated: bool,
}

impl DecoderConfig {
    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        self.family.names.causal
    }

    /// Parameters of the experts that a token does not go to, in all layers.
    pub fn idle_parameters(&self) -> u64 {
        let idle = |layer: &LayerConfig| match layer.feed_forward {
            FeedForwardConfig::Gated(_) | FeedForwardConfig::Plain(_) | FeedForwardConfig::Absent => 0,
            FeedForwardConfig::Mixture(mixture) => {
                let (width, inner) = (mixture.latent.unwrap_or(self.width), mixture.expert.inner);
                let matrices = ((if mixture.gated { 3 } else { 2 }) * width).saturating_mul(inner);
                let biased = mixture.expert.bias || mixture.storage != ExpertStorage::Listed;
                let each = matrices.saturating_add(if biased { 2 * inner + width } else { 0 });
                (mixture.routing.experts - mixture.routing.per_token).saturating_mul(each)
            }
        };
        self.layers.iter().map(idle).fold(0, u64::saturating_add)
    }

    /// Whether any layer mixes experts.
    pub fn mixes_experts(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer.feed_forward, FeedForwardConfig::Mixture(_)))
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
            && (self.positions, self.residual_scale, self.logit_scale, self.head_bias)
                == (other.positions, other.residual_scale, other.logit_scale, other.head_bias)
    }
}
