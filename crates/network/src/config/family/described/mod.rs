//! Decoders that differ from Llama by switches: a row of `families.txt` for each, and one reader for all.
//!
//! Biases and norms, where they stand, how positions are told apart, whether the feed-forward is gated or a mixture: a row
//! says what its published class does. A family that needs a part of its own has a reader of its own.

mod more;
mod switches;

use std::sync::LazyLock;

pub(super) use more::scaled;
use switches::{Angles, Attention, Bare, Experts, FeedForward, Groups, Positions, Stored, Switches, Windows};
use types::RotaryLayout;

use super::deepseek::{groups, latent, method_groups, with_indexer};
use super::sizes::{Sizes, activation_of, angles};
use super::{Family, mixture, shared};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, ExpertStorage, FeedForwardConfig, GateConfig, GatedConfig, GroupedConfig,
    MixtureConfig, PlainConfig, PositionsConfig, RotaryConfig, SharedConfig,
};
use crate::config::fields::Fields;
use crate::config::table::{Columns, Row};

/// A family as a row.
#[derive(Debug)]
pub(in crate::config) struct Described {
    /// `model_type` of its files.
    pub(in crate::config) kind: &'static str,
    /// Names of its classes and modules.
    pub(in crate::config) family: Family,
    /// What reads it: `switches`, or a reader of its own; `nothing` where the row is only names.
    pub(in crate::config) reader: &'static str,
    has: Switches,
    experts: Option<Experts>,
}

/// The table.
pub(in crate::config) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Row::all(include_str!("../families.txt")));

/// Every family of decoders.
pub(in crate::config) fn rows() -> &'static [Described] {
    static ALL: LazyLock<Vec<Described>> = LazyLock::new(|| ROWS.iter().filter_map(Described::of).collect());
    &ALL
}

/// The row of a `model_type`, or of another name that only rows go by.
pub(in crate::config) fn row(kind: &str) -> Result<&'static Described, ConfigProblem> {
    let unknown = || ConfigProblem::UnknownArchitecture { asked: kind.to_owned(), nearest: None, missing: Vec::new() };
    rows().iter().find(|row| row.kind == kind).ok_or_else(unknown)
}

/// Reads a file whose family has a row of switches under this name.
pub(in crate::config) fn read_as(fields: &Fields<'_>, kind: &str) -> Result<DecoderConfig, ConfigProblem> {
    row(kind)?.read(fields)
}

impl Described {
    fn of(row: &Row) -> Option<Self> {
        let experts = Experts::of(row)?;
        Some(Self {
            kind: row.kind,
            family: Family::of(row)?,
            reader: row.get("reader")?,
            has: Switches::of(row)?,
            experts: (!experts.count.is_empty()).then_some(experts),
        })
    }

    /// Reads a file by its switches.
    pub(in crate::config) fn read(&'static self, fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
        let has = &self.has;
        let sizes = self.sizes(fields)?;
        let attention = self.attention(fields, &sizes)?;
        let (sliding, window) = self.windows(fields, &sizes)?;
        let rotary = self.rotary(fields, &sizes, &sliding, window)?;
        let latent = if has.attention == Attention::Latent { Some(latent(fields, &sizes)?) } else { None };
        let feed_forwards = self.feed_forwards(fields, &sizes)?;
        let decoder = sizes.decoder(&self.family, |index| {
            let window = window.filter(|_| sliding[index]);
            let grouped = GroupedConfig { rotary: rotary[index], ..attention }.with_window(window);
            (latent.map_or(AttentionConfig::Grouped(grouped), AttentionConfig::Latent), feed_forwards[index])
        });
        self.finished(fields, decoder)
    }

    /// With the norms, factors and positions of the family, and what else it has.
    pub(super) fn finished(
        &self,
        fields: &Fields<'_>,
        mut decoder: DecoderConfig,
    ) -> Result<DecoderConfig, ConfigProblem> {
        let has = &self.has;
        decoder.norm.kind = has.norm;
        decoder.norm.placement = has.placement;
        if let Some((flag, default)) = has.parallel_if
            && fields.flag_or(flag, default)?
        {
            decoder.norm.placement = has.parallel;
        }
        decoder.head_bias = has.head_bias.is_on(fields)?;
        decoder.logit_softcap = fields.optional_number("final_logit_softcapping")?;
        decoder.embedding_scale = has.scaled_embeddings.is_on(fields)?.then(|| (decoder.width as f64).sqrt());
        if let Positions::Learned(first) = has.positions {
            decoder.positions = Some(PositionsConfig { rows: fields.size("max_position_embeddings")? + first, first });
        }
        if let Some(sizes) = has.indexer {
            decoder = with_indexer(fields, decoder, sizes, has.indexer_pairs.is_on(fields)?)?;
        }
        (has.more.0)(fields, decoder)
    }

    /// Its sizes, with what the class takes where the file says nothing.
    pub(super) fn sizes(&self, fields: &Fields<'_>) -> Result<Sizes, ConfigProblem> {
        let has = &self.has;
        let inner = match fields.optional_size_of(&["intermediate_size", "n_inner", "ffn_dim"])? {
            Some(inner) => inner,
            // Without dense layers nothing else says how wide a feed-forward is.
            None if self.experts.is_some_and(|experts| experts.dense == (None, 0)) => {
                fields.size("moe_intermediate_size")?
            }
            None if has.four => fields.size("hidden_size")?.saturating_mul(4),
            None => fields.size("intermediate_size")?,
        };
        let mut sizes = Sizes::read_inner(fields, fields.number_or("rotary_emb_base", has.theta)?, inner)?;
        sizes.activation = activation_of(fields)?.unwrap_or(has.activation);
        sizes.tied_embeddings = fields.ties(has.ties)?;
        sizes.mlp_bias = has.biases[2].is_on(fields)?;
        if let Some(flag) = has.one_key_head_if
            && fields.flag_or(flag, true)?
        {
            sizes.key_value_heads = 1;
        }
        if has.positions == Positions::Rotary {
            sizes = sizes.partial(fields, fields.number_or("rotary_pct", has.rotated)?)?;
            if let Some(width) = fields.optional_size("rotary_dim")? {
                sizes.rotary.width = fields.at_most("rotary_dim", width, sizes.head_width)?;
            }
            sizes.rotary.form.layout = self.layout();
        }
        Ok(sizes)
    }

    fn layout(&self) -> RotaryLayout {
        if self.has.pairs { RotaryLayout::Interleaved } else { RotaryLayout::Halves }
    }

    /// Plain attention with the biases, norms and factors of the family.
    pub(super) fn attention(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<GroupedConfig, ConfigProblem> {
        let has = &self.has;
        let mut attention = GroupedConfig {
            input_bias: has.biases[0].is_on(fields)?,
            output_bias: has.biases[1].is_on(fields)?,
            fused: has.fused,
            head_norms: has.head_norms.1.is_on(fields)?.then_some(has.head_norms.0),
            gate: has.gate,
            ..sizes.grouped()
        };
        attention.detail.sinks = has.sinks;
        if has.query_scalar {
            attention.scale = 1.0 / fields.number_or("query_pre_attn_scalar", 256.0)?.sqrt();
        }
        if has.softcap {
            attention.detail.softcap = fields.optional_number("attn_logit_softcapping")?;
        }
        Ok(attention)
    }

    /// The feed-forward of each layer.
    pub(super) fn feed_forwards(
        &self,
        fields: &Fields<'_>,
        sizes: &Sizes,
    ) -> Result<Vec<FeedForwardConfig>, ConfigProblem> {
        let dense = self.dense(fields, sizes)?;
        let mixture = self.mixture(fields, sizes)?.map(FeedForwardConfig::Mixture);
        let mixes = match &self.experts {
            None => vec![false; sizes.layers as usize],
            Some(experts) => experts.mixes(fields, sizes)?,
        };
        Ok(mixes.into_iter().map(|mixes| mixture.filter(|_| mixes).unwrap_or(dense)).collect())
    }

    /// The experts, where there are any.
    pub(super) fn mixture(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<Option<MixtureConfig>, ConfigProblem> {
        self.experts.map(|experts| experts.read(fields, sizes)).transpose()
    }

    fn dense(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<FeedForwardConfig, ConfigProblem> {
        Ok(match self.has.feed_forward {
            FeedForward::Gated => sizes.gated(),
            FeedForward::Fused => {
                FeedForwardConfig::Gated(GatedConfig { fused: true, ..sizes.gated_of(sizes.intermediate) })
            }
            FeedForward::Plain => FeedForwardConfig::Plain(PlainConfig {
                inner: sizes.intermediate,
                activation: sizes.activation,
                bias: self.has.biases[2].is_on(fields)?,
            }),
        })
    }

    fn windows(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<(Vec<bool>, Option<u64>), ConfigProblem> {
        let kind = self.has.windows;
        if kind == Windows::Nowhere || !self.has.windows_if.is_on(fields)? {
            return Ok((vec![false; sizes.layers as usize], None));
        }
        let window = fields.size_or_none("sliding_window")?;
        let first = || fields.count_or("max_window_layers", 28);
        let sliding = match kind {
            Windows::Nowhere | Windows::Everywhere => vec![true; sizes.layers as usize],
            Windows::All => sizes.sliding_through(fields, window, |_| true)?,
            Windows::Listed => sizes.sliding_through(fields, window, |_| false)?,
            Windows::AllBut => {
                let every = self.every(fields)?;
                sizes.sliding_through(fields, window, |index| every > 0 && !(index + 1).is_multiple_of(every))?
            }
            Windows::From => {
                let first = first()?;
                sizes.sliding_through(fields, window, |index| index >= first)?
            }
            Windows::EvenBefore => {
                let last = first()?;
                sizes.sliding_through(fields, window, |index| index.is_multiple_of(2) && index < last)?
            }
        };
        Ok((sliding, window))
    }

    /// Of how many layers one sees everything. Some files write a pattern of letters in its place.
    fn every(&self, fields: &Fields<'_>) -> Result<u64, ConfigProblem> {
        match self.has.every {
            (Some(name), default) if !fields.is_text(name) => fields.count_or(name, default),
            (_, default) => Ok(default),
        }
    }

    /// Rotary positions of each layer.
    fn rotary(
        &self,
        fields: &Fields<'_>,
        sizes: &Sizes,
        sliding: &[bool],
        window: Option<u64>,
    ) -> Result<Vec<Option<RotaryConfig>>, ConfigProblem> {
        if self.has.positions != Positions::Rotary {
            return Ok(vec![None; sliding.len()]);
        }
        let turned = match self.has.bare {
            Bare::Nowhere => vec![true; sliding.len()],
            // Without windows every layer has positions.
            Bare::Seeing => sliding.iter().map(|sliding| *sliding || window.is_none()).collect(),
            Bare::Listed => sizes.turned(fields)?,
        };
        let [far, near] = match self.has.angles {
            Angles::Same => [sizes.rotary; 2],
            Angles::Stated => angles(fields, sizes, [self.has.theta; 2])?.unwrap_or([sizes.rotary; 2]),
            Angles::Local => match angles(fields, sizes, [self.has.theta, 10_000.0])? {
                Some(both) => both,
                None => [sizes.rotary, sizes.local(fields)?],
            },
        };
        let of = |(sliding, turned): (&bool, bool)| turned.then_some(if *sliding { near } else { far });
        Ok(sliding.iter().zip(turned).map(of).collect())
    }
}

impl Experts {
    fn read(self, fields: &Fields<'_>, sizes: &Sizes) -> Result<MixtureConfig, ConfigProblem> {
        let inner = fields.first_size_of(self.inner)?;
        let count = (self.count[0], fields.size_of(self.count)?);
        let shared_count = || {
            let name = self.shared.iter().find(|name| fields.states(name)).or(self.shared.first());
            name.map_or(Ok(0), |name| fields.count_or(name, self.unsaid))
        };
        let always = match self.shared_inner {
            None => shared(shared_count()?, inner),
            Some(name) => {
                let inner = fields.count_or(name, 0)?;
                (inner > 0).then_some(SharedConfig { count: None, inner, gated: self.weighed })
            }
        };
        let mut mixture = MixtureConfig {
            gate: self.gate(fields, count)?,
            shared: always,
            storage: self.storage(fields)?,
            ..mixture(fields, sizes, count, inner)?
        };
        mixture.expert.fused = self.storage == Stored::Fused;
        mixture.routing.normalise = self.normalised.is_on(fields)?;
        for name in [
            "routed_scaling_factor",
            "route_scale",
            "router_scaling_factor",
            "moe_routed_scaling_factor",
            "moe_router_scaling_factor",
        ] {
            mixture.routing.scale *= fields.number_or(name, 1.0)?;
        }
        Ok(mixture)
    }

    fn gate(&self, fields: &Fields<'_>, experts: (&str, u64)) -> Result<GateConfig, ConfigProblem> {
        Ok(GateConfig {
            scores: self.scores,
            single_precision: self.single_precision,
            bias: self.gate_bias,
            correction: self.correction,
            groups: match self.groups {
                Groups::None => None,
                Groups::Two => Some(groups(fields, 2, experts)?),
                Groups::Method => method_groups(fields, experts)?,
                Groups::Several => match fields.optional_size("n_group")? {
                    None | Some(1) => None,
                    Some(_) => Some(groups(fields, 2, experts)?),
                },
            },
        })
    }

    fn storage(&self, fields: &Fields<'_>) -> Result<ExpertStorage, ConfigProblem> {
        Ok(match self.storage {
            Stored::Listed | Stored::Fused => ExpertStorage::Listed,
            Stored::Stacked => ExpertStorage::Stacked {
                limit: fields.number_or("swiglu_limit", 7.0)?,
                alpha: fields.number_or("swiglu_alpha", 1.702)?,
            },
        })
    }

    /// Which layers have experts.
    fn mixes(&self, fields: &Fields<'_>, sizes: &Sizes) -> Result<Vec<bool>, ConfigProblem> {
        if let Some(name) = self.flags
            && let Some(listed) = sizes.flags(fields, name)?
        {
            return Ok(listed);
        }
        let first = self.dense.0.map_or(Ok(self.dense.1), |name| fields.count_or(name, self.dense.1))?;
        let last = self.last.map_or(Ok(-1), |name| fields.integer_or(name, -1))?;
        let listed = match self.listed {
            false => Vec::new(),
            true => fields.optional_counts("mlp_only_layers")?.unwrap_or_else(|| self.unlisted.to_vec()),
        };
        let every = self.every.map_or(Ok(1), |name| fields.size_or(name, 1))?;
        sizes.listed(fields, "mlp_layer_types", ["dense", "sparse"], |index| {
            let is_inside = index >= first && (last < 0 || index <= last.unsigned_abs());
            is_inside && !listed.contains(&index) && (index + 1).is_multiple_of(every)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::decoder::NormPlacement;

    #[test]
    fn every_line_of_the_table_is_read() {
        let known = [
            crate::config::names::Names::KEYS,
            Switches::KEYS,
            Experts::KEYS,
            &["package", "home", "computed", "reader"],
        ];
        for row in ROWS.iter() {
            assert_eq!(row.unknown(&known), [""; 0], "{}", row.kind);
            assert!(Described::of(row).is_some(), "a value of {} is missing or wrong", row.kind);
        }
        assert!(rows().len() > 120, "{}", rows().len());
        let is_parallel = |row: &Described| matches!(row.has.parallel, NormPlacement::Parallel { .. });
        assert!(rows().iter().all(is_parallel));
    }
}
