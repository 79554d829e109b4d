//! Decoders that differ from Llama by switches: a row of data for each, and one reader for all.
//!
//! Biases and norms, where they stand, how positions are told apart, whether the feed-forward is gated or a mixture: a row
//! says what its published class does. A family that needs a part of its own has a reader of its own.

mod base;
mod rows;

pub(in crate::config) use rows::rows;

use types::{ActivationKind, RotaryLayout};

use super::Family;
use super::mixture::{mixture, shared};
use super::sizes::{Sizes, activation_of};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GateConfig, GatedConfig, GroupedConfig, HeadNorms,
    MixtureConfig, NormKind, NormPlacement, OutputGate, PlainConfig, PositionsConfig, SharedConfig,
};
use crate::config::fields::Fields;

/// A family as switches.
#[derive(Debug)]
pub(in crate::config) struct Described {
    /// `model_type` of its files.
    pub(in crate::config) model_type: &'static str,
    /// Names of its classes and modules.
    pub(in crate::config) family: Family,
    norm: NormKind,
    placement: NormPlacement,
    /// A flag that puts attention and feed-forward side by side.
    parallel_if: Option<&'static str>,
    /// Biases of the projections into attention, out of it, and of the feed-forward.
    biases: [Switch; 3],
    head_bias: bool,
    fused: Option<FusedOrder>,
    /// How queries and keys are normed, and whether.
    head_norms: (HeadNorms, Switch),
    positions: Positions,
    /// A flag that leaves one head of keys and values for all queries; set unless the file says otherwise.
    one_key_head_if: Option<&'static str>,
    gate: Option<OutputGate>,
    feed_forward: FeedForward,
    /// The nonlinearity, where the file names none.
    activation: ActivationKind,
    experts: Option<Experts>,
    /// Which layers see a window, where the file lists none.
    windows: Windows,
    /// What is left, for families with factors of their own.
    more: fn(&Fields<'_>, DecoderConfig) -> Result<DecoderConfig, ConfigProblem>,
}

/// Whether a part is there.
#[derive(Clone, Copy, Debug)]
enum Switch {
    Never,
    Always,
    /// If that flag is set, which has this default.
    If(&'static str, bool),
}

/// How positions are told apart.
#[derive(Clone, Copy, Debug)]
enum Positions {
    /// That part of each head is rotated, or as many elements as `rotary_dim` says.
    Rotary(f64, RotaryLayout),
    /// A table, behind so many rows that no position uses.
    Learned(u64),
    /// A bias on scores, or fixed waves: nothing that is kept.
    Computed,
}

/// The dense feed-forward.
#[derive(Clone, Copy, Debug)]
enum FeedForward {
    Gated,
    /// Gated, one projection for gate and up.
    Fused,
    Plain,
}

/// Where experts stand, and how they are chosen.
#[derive(Clone, Copy, Debug)]
struct Experts {
    /// Fields that say how many there are; how wide one is; how many every token passes through.
    count: &'static [&'static str],
    inner: &'static [&'static str],
    shared: &'static [&'static str],
    /// The field that says how wide those are together, where one does.
    shared_inner: &'static [&'static str],
    gate: GateConfig,
    /// Whether scores of the chosen ones sum to one, where the file does not say.
    normalised: bool,
    /// Dense layers at the front: the fields that say how many, and the default.
    dense: (&'static [&'static str], u64),
    /// Dense layers that `mlp_only_layers` lists, and those where the file lists none.
    dense_listed: Option<&'static [u64]>,
}

/// Which layers see a window.
#[derive(Clone, Copy, Debug)]
enum Windows {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Those that `layer_types` names.
    Listed,
    /// All but every so many, which have no rotary positions where the flag is set.
    AllBut { every: &'static str, default: u64, bare: bool },
}

impl Switch {
    fn is_on(self, fields: &Fields<'_>) -> Result<bool, ConfigProblem> {
        match self {
            Self::Never => Ok(false),
            Self::Always => Ok(true),
            Self::If(name, default) => fields.flag_or(name, default),
        }
    }
}

/// Reads a file of a family.
pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let attention = row.attention(fields, &sizes)?;
    let feed_forward = row.dense(fields, &sizes)?;
    let (mixes, experts) = match row.experts {
        None => (vec![false; sizes.layers as usize], feed_forward),
        Some(experts) => experts.read(fields, &sizes)?,
    };
    let (sliding, window) = row.windows(fields, &sizes)?;
    let bare = matches!(row.windows, Windows::AllBut { bare: true, .. });
    let mut decoder = sizes.decoder(&row.family, |index| {
        // Without windows every layer has positions.
        let rotary = attention.rotary.filter(|_| !bare || window.is_none() || sliding[index]);
        let attention = GroupedConfig { rotary, ..attention }.with_window(window.filter(|_| sliding[index]));
        (AttentionConfig::Grouped(attention), if mixes[index] { experts } else { feed_forward })
    });
    decoder.norm.kind = row.norm;
    decoder.norm.placement = row.placement;
    if row.parallel_if.map_or(Ok(false), |flag| fields.flag_or(flag, false))? {
        decoder.norm.placement = NormPlacement::Parallel { both: false };
    }
    decoder.head_bias = row.head_bias;
    decoder.logit_softcap = fields.optional_number("final_logit_softcapping")?;
    if let Positions::Learned(first) = row.positions {
        decoder.positions = Some(PositionsConfig { rows: fields.size("max_position_embeddings")? + first, first });
    }
    (row.more)(fields, decoder)
}

impl Described {
    fn sizes(&self, fields: &Fields<'_>) -> Result<Sizes, ConfigProblem> {
        let width = fields.size("hidden_size")?;
        let four = width.saturating_mul(4);
        let inner = match fields.optional_size_of(&["intermediate_size", "n_inner", "ffn_dim"])? {
            Some(inner) => inner,
            None if self.experts.is_some() => fields.size_or("moe_intermediate_size", four)?,
            None => four,
        };
        let mut sizes = Sizes::read_inner(fields, 10_000.0, inner)?;
        sizes.activation = activation_of(fields)?.unwrap_or(self.activation);
        sizes.mlp_bias = self.biases[2].is_on(fields)?;
        if let Some(flag) = self.one_key_head_if
            && fields.flag_or(flag, true)?
        {
            sizes.key_value_heads = 1;
        }
        if let Positions::Rotary(part, layout) = self.positions {
            sizes = sizes.partial(fields, part)?;
            if let Some(width) = fields.optional_size("rotary_dim")? {
                sizes.rotary.width = fields.at_most("rotary_dim", width, sizes.head_width)?;
            }
            sizes.rotary.form.layout = layout;
        }
        Ok(sizes)
    }

    fn attention(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<GroupedConfig, ConfigProblem> {
        let attention = sizes.grouped();
        Ok(GroupedConfig {
            input_bias: self.biases[0].is_on(fields)?,
            output_bias: self.biases[1].is_on(fields)?,
            fused: self.fused,
            head_norms: self.head_norms.1.is_on(fields)?.then_some(self.head_norms.0),
            gate: self.gate,
            rotary: attention.rotary.filter(|_| matches!(self.positions, Positions::Rotary(..))),
            ..attention
        })
    }

    fn dense(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<FeedForwardConfig, ConfigProblem> {
        Ok(match self.feed_forward {
            FeedForward::Gated => sizes.gated(),
            FeedForward::Fused => {
                FeedForwardConfig::Gated(GatedConfig { fused: true, ..sizes.gated_of(sizes.intermediate) })
            }
            FeedForward::Plain => FeedForwardConfig::Plain(PlainConfig {
                inner: sizes.intermediate,
                activation: sizes.activation,
                bias: self.biases[2].is_on(fields)?,
            }),
        })
    }

    fn windows(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<(Vec<bool>, Option<u64>), ConfigProblem> {
        let window = match self.windows {
            Windows::None => None,
            _ => fields.size_or_none("sliding_window")?,
        };
        let sliding = match self.windows {
            Windows::None => vec![false; sizes.layers as usize],
            Windows::All => sizes.sliding_through(fields, window, |_| true)?,
            Windows::Listed => sizes.sliding_through(fields, window, |_| false)?,
            Windows::AllBut { every, default, .. } => {
                let every = if fields.is_text(every) { default } else { fields.size_or(every, default)? };
                sizes.sliding_through(fields, window, |index| !(index + 1).is_multiple_of(every))?
            }
        };
        Ok((sliding, window))
    }
}

impl Experts {
    /// Which layers have experts, and those.
    fn read(self, fields: &Fields<'_>, sizes: &Sizes) -> Result<(Vec<bool>, FeedForwardConfig), ConfigProblem> {
        let inner = fields.first_size_of(self.inner)?;
        let count = (self.count[0], fields.size_of(self.count)?);
        let stated = |names: &[&str], default: u64| {
            let name = names.iter().find(|name| fields.states(name)).or(names.first());
            name.map_or(Ok(default), |name| fields.count_or(name, default))
        };
        let always = match self.shared_inner.first() {
            None => shared(stated(self.shared, u64::from(!self.shared.is_empty()))?, inner),
            Some(name) => {
                let inner = fields.count_or(name, 0)?;
                (inner > 0).then_some(SharedConfig { count: None, inner, gated: false })
            }
        };
        let mut mixture = MixtureConfig { gate: self.gate, shared: always, ..mixture(fields, sizes, count, inner)? };
        mixture.routing.normalise = fields.flag_or("norm_topk_prob", self.normalised)?;
        for name in [
            "routed_scaling_factor",
            "route_scale",
            "router_scaling_factor",
            "moe_routed_scaling_factor",
            "moe_router_scaling_factor",
        ] {
            mixture.routing.scale *= fields.number_or(name, 1.0)?;
        }
        let first = stated(self.dense.0, self.dense.1)?;
        let listed = match self.dense_listed {
            None => Vec::new(),
            Some(default) => fields.optional_counts("mlp_only_layers")?.unwrap_or_else(|| default.to_vec()),
        };
        let every = if self.dense_listed.is_some() { fields.size_or("decoder_sparse_step", 1)? } else { 1 };
        let mixes = sizes.listed(fields, "mlp_layer_types", ["dense", "sparse"], |index| {
            index >= first && !listed.contains(&index) && (index + 1).is_multiple_of(every)
        })?;
        Ok((mixes, FeedForwardConfig::Mixture(mixture)))
    }
}
