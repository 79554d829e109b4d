//! What a row of `families.txt` says beside names: the switches of its decoder, and what each word of them means.

use types::ActivationKind;

use super::more::More;
use crate::config::ConfigProblem;
use crate::config::decoder::{Correction, FusedOrder, HeadNorms, NormKind, NormPlacement, OutputGate, ScoreKind};
use crate::config::family::activation_named;
use crate::config::fields::Fields;
use crate::config::table::{FromText, columns, words};

columns! {
    /// What the decoder of a family has.
    Switches in "with." {
        norm: NormKind,
        placement: NormPlacement,
        /// A flag with its default that puts attention and feed-forward side by side, and where norms stand then.
        parallel_if: Option<(&'static str, bool)>,
        parallel: NormPlacement,
        /// Biases of the projections into attention, out of it, and of the feed-forward.
        biases: [Switch; 3],
        head_bias: Switch,
        /// Whether the head shares the table of embeddings, where neither file nor class says.
        ties: bool,
        fused: Option<FusedOrder>,
        /// How queries and keys are normed, and whether.
        head_norms: (HeadNorms, Switch),
        attention: Attention,
        /// Heads and width of what chooses positions, where something does, and whether it rotates neighbours together.
        indexer: Option<[u64; 2]>,
        indexer_pairs: Switch,
        positions: Positions,
        /// The part of each head that is rotated, unless the file says otherwise, and whether neighbours are rotated together.
        rotated: f64,
        pairs: bool,
        /// Base of the angles, where the file states none.
        theta: f64,
        /// Whether angles differ between layers with a window and without.
        angles: Angles,
        /// A flag that leaves one head of keys and values for all queries; set unless the file says otherwise.
        one_key_head_if: Option<&'static str>,
        gate: Option<OutputGate>,
        sinks: bool,
        /// Whether the file states what scores are scaled by, and a cap of them.
        query_scalar: bool,
        softcap: bool,
        /// Whether embeddings are scaled by the root of their width.
        scaled_embeddings: Switch,
        feed_forward: FeedForward,
        /// Whether its inner width is four times that of the model where the file states none.
        four: bool,
        /// The nonlinearity, where the file names none.
        activation: ActivationKind,
        windows: Windows,
        /// Whether windows are used.
        windows_if: Switch,
        /// Of how many layers one sees everything: a field, and the default.
        every: (Option<&'static str>, u64),
        /// Layers that have no rotary positions.
        bare: Bare,
        /// What is left, for families with factors of their own.
        more: More,
    }
}

columns! {
    /// Where experts stand, and how they are chosen.
    Experts in "experts." {
        /// Fields that say how many there are, none where there are none; how wide one is; how many every token passes through.
        count: &'static [&'static str],
        inner: &'static [&'static str],
        shared: &'static [&'static str],
        /// As many as those where the file does not say.
        unsaid: u64,
        /// The field that says how wide those are together, where one does, and whether each token weighs them.
        shared_inner: Option<&'static str>,
        weighed: bool,
        storage: Stored,
        scores: ScoreKind,
        single_precision: bool,
        gate_bias: bool,
        correction: Option<Correction>,
        groups: Groups,
        /// Whether scores of the chosen ones sum to one.
        normalised: Switch,
        /// Dense layers at the front: the field that says how many, and the default; the last layer with experts.
        dense: (Option<&'static str>, u64),
        last: Option<&'static str>,
        /// A list of flags, one for each layer.
        flags: Option<&'static str>,
        /// Of how many layers one mixes.
        every: Option<&'static str>,
        /// Whether `mlp_only_layers` lists dense layers, and those where the file lists none.
        listed: bool,
        unlisted: &'static [u64],
    }
}

/// Whether a part is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Switch {
    Never,
    Always,
    /// If that flag is set, which has this default.
    If(&'static str, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    Grouped,
    Latent,
}

/// How positions are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// A part of each head is rotated, or as many elements as `rotary_dim` says.
    Rotary,
    /// A table, behind so many rows that no position uses.
    Learned(u64),
    /// A bias on scores, or fixed waves: nothing that is kept.
    Computed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Angles {
    Same,
    /// Where `rope_parameters` has a part for either kind.
    Stated,
    /// The same, and `rope_local_base_freq` of older files.
    Local,
}

/// The dense feed-forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedForward {
    Gated,
    /// Gated, one projection for gate and up.
    Fused,
    Plain,
}

/// Which layers see a window, where the file has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Windows {
    Nowhere,
    /// In all layers, whatever the file lists.
    Everywhere,
    /// In those that `layer_types` names, or else in all, in none, in all but one of every few, in those from `max_window_layers`
    /// on, or in every other one of those before.
    All,
    Listed,
    AllBut,
    From,
    EvenBefore,
}

/// Which layers have no rotary positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bare {
    Nowhere,
    /// Those that see everything, where others see a window.
    Seeing,
    /// Those that `no_rope_layers` lists with a zero, or every fourth.
    Listed,
}

/// How experts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Listed,
    /// With one projection for gate and up.
    Fused,
    /// In one tensor, with a clamped gate.
    Stacked,
}

/// From which groups experts come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    None,
    /// The best, for each of which its two best experts speak.
    Two,
    /// The same, where there are several.
    Several,
    /// The best by their best expert, where `topk_method` says so.
    Method,
}

words! {
    Attention: "grouped" => Self::Grouped, "latent" => Self::Latent;
    Positions: "rotary" => Self::Rotary, "learned" => Self::Learned(0), "learned+2" => Self::Learned(2), "computed" => Self::Computed;
    Angles: "same" => Self::Same, "stated" => Self::Stated, "local" => Self::Local;
    FeedForward: "gated" => Self::Gated, "fused" => Self::Fused, "plain" => Self::Plain;
    Windows: "nowhere" => Self::Nowhere, "everywhere" => Self::Everywhere, "all" => Self::All, "listed" => Self::Listed,
        "all-but" => Self::AllBut, "from" => Self::From, "even-before" => Self::EvenBefore;
    Bare: "nowhere" => Self::Nowhere, "seeing" => Self::Seeing, "listed" => Self::Listed;
    Stored: "listed" => Self::Listed, "fused" => Self::Fused, "stacked" => Self::Stacked;
    Groups: "none" => Self::None, "two" => Self::Two, "several" => Self::Several, "method" => Self::Method;
    NormKind: "rms" => Self::Rms, "rms+1" => Self::RmsUnitOffset, "layer" => Self::Layer,
        "layer-without-bias" => Self::LayerWithoutBias, "bare-rms" => Self::BareRms, "bare-layer" => Self::BareLayer;
    NormPlacement: "before" => Self::Before, "around" => Self::Around, "after" => Self::After,
        "after-softmax" => Self::AfterSoftmax, "after-experts" => Self::AfterExperts, "inside" => Self::Inside, "parallel" => Self::Parallel { both: false },
        "parallel-both" => Self::Parallel { both: true };
    FusedOrder: "blocks" => Self::Blocks, "groups" => Self::Groups;
    HeadNorms: "each" => Self::EachHead, "each-turned" => Self::EachHeadTurned, "all" => Self::AllHeads, "bare" => Self::Bare;
    OutputGate: "elements" => Self::Elements, "heads" => Self::Heads;
    ScoreKind: "softmax" => Self::Softmax, "sigmoid" => Self::Sigmoid;
    Correction: "buffer" => Self::Buffer, "parameter" => Self::Parameter;
}

impl FromText for ActivationKind {
    fn of(text: &'static str) -> Option<Self> {
        activation_named(text)
    }
}

impl FromText for Switch {
    fn of(text: &'static str) -> Option<Self> {
        Some(match (text, text.split_once('=')) {
            ("never", _) => Self::Never,
            ("always", _) => Self::Always,
            (_, Some((flag, default))) => Self::If(flag, bool::of(default)?),
            (flag, None) => Self::If(flag, false),
        })
    }
}

impl Switch {
    pub(super) fn is_on(self, fields: &Fields<'_>) -> Result<bool, ConfigProblem> {
        match self {
            Self::Never => Ok(false),
            Self::Always => Ok(true),
            Self::If(name, default) => fields.flag_or(name, default),
        }
    }
}
