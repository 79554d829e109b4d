//! What each position of a layer does on its own, as data.

use types::ActivationKind;

use crate::Routing;

/// Feed-forward of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedForwardConfig {
    /// The same weights for every token.
    Gated(GatedConfig),
    /// The same, without a gate.
    Plain(PlainConfig),
    /// Experts.
    Mixture(MixtureConfig),
    /// Both, side by side.
    Beside(BesideConfig),
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
    /// Experts that hand on what they are given: they are chosen and compute nothing.
    pub idle: u64,
    /// How they are chosen.
    pub gate: GateConfig,
    /// Experts that every token also passes through.
    pub shared: Option<SharedConfig>,
}

/// A dense feed-forward and a mixture that are given the same and whose outputs are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BesideConfig {
    /// The dense one.
    pub dense: GatedConfig,
    /// The mixture.
    pub mixture: MixtureConfig,
}

/// How a checkpoint keeps experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertStorage {
    /// Each a module of its own.
    Listed,
    /// One tensor for all, gate values in front of up values.
    Halves,
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
    /// Each on its own, as the root of `ln(1 + exp(x))`.
    SqrtSoftplus,
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
