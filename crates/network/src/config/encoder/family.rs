//! Families of encoders: what their classes and modules are called, and how they differ from BERT.

use std::sync::LazyLock;

use super::parts::{DistancesConfig, Pools};
use crate::config::decoder::NormKind;
use crate::config::fields::{ConfigProblem, Fields};
use crate::config::table::{Columns, FromText, Row, columns, words};

columns! {
    /// What encoders of one family are called.
    #[derive(PartialEq, Eq)]
    EncoderFamily in "" {
        /// Classes: encoder, for tokens, for classes, for classes of tokens.
        classes: [&'static str; 4],
        embeddings: &'static str,
        encoder: &'static str,
        layer: &'static str,
        /// Attention, its core, its output.
        attention: [&'static str; 3],
        intermediate: &'static str,
        output: &'static str,
        pooler: &'static str,
        /// Heads of RoBERTa: over classes, over tokens.
        heads: [&'static str; 2],
        /// Module of the encoder where a head stands beside it.
        module: &'static str,
        /// Row of the first position.
        first_position: u64,
        /// How it differs from BERT.
        variant: EncoderVariant,
        /// Projections to queries, keys and values.
        inputs: [&'static str; 3],
        /// Which heads have a pooler.
        pooled: Pooled,
        /// Whether the sum of embeddings is normed.
        embedding_norm: bool,
        /// Norms in front of attention and of the feed-forward and behind all layers, where a family has them instead of those behind
        /// the sums: the first is in the module of attention, the last in that of the encoder unless it begins with a dot.
        norms_before: Option<[&'static str; 3]>,
        /// The projection of embeddings to the width of the hidden states, and whether it has a bias.
        projection: (&'static str, bool),
        /// Fields with the widths of embeddings and of what stands in front of the scores of tokens.
        widths: [&'static str; 2],
        /// The module of the head over tokens, where it is neither BERT's nor RoBERTa's; `table` where only a bias stands behind the table.
        tokens_module: Option<&'static str>,
        /// Tables that are added to the embedding of a token.
        tables: &'static [MoreTable],
        /// Families whose scores depend on distances.
        distances: Distances,
        /// The field that says how many sets of weights the layers share.
        sets: Option<&'static str>,
        /// Which families rotate queries and keys.
        rotates: Rotates,
    } also {
        /// `model_type` of its files.
        kind: &'static str = Row::kind,
        /// Package that defines its classes.
        home: &'static str = Row::home,
        /// Layers whose modules are flatter than those of BERT.
        flat: Option<FlatLayerNames> = flat,
    }
}

columns! {
    /// What layers are called that hold attention, a feed-forward and the norms of both.
    #[derive(PartialEq, Eq)]
    FlatLayerNames in "flat." {
        /// The module around all layers, where there is one, and the list of them.
        around: &'static str,
        list: &'static str,
        attention: &'static str,
        /// Projections to queries, keys and values, or the one to all three; and that of what comes out.
        inputs: &'static [&'static str],
        output: &'static str,
        /// Norms of attention and of the feed-forward, and whether they stand in front.
        norms: [&'static str; 2],
        norms_before: bool,
        /// Class and kind of all norms.
        norm: (&'static str, NormKind),
        feed_forward: &'static str,
        inner: InnerNames,
        down: &'static str,
        /// Biases of attention, into the feed-forward and out of it.
        biases: [bool; 3],
    }
}

/// The names of flat layers, where a family has those.
fn flat(row: &Row) -> Option<Option<FlatLayerNames>> {
    if row.get("flat.list") == Some("") { Some(None) } else { FlatLayerNames::of(row).map(Some) }
}

/// A table that is added to the embedding of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MoreTable {
    name: &'static str,
    /// The field with its rows.
    rows: &'static str,
    /// How often it is read.
    reads: u64,
    /// The flag without which there is none.
    flag: Option<&'static str>,
}

impl FromText for MoreTable {
    fn of(text: &'static str) -> Option<Self> {
        let [name, rows, reads, flag] = text.split(':').collect::<Vec<_>>().try_into().ok()?;
        Some(Self { name, rows, reads: u64::of(reads)?, flag: FromText::of(flag)? })
    }
}

impl FromText for InnerNames {
    fn of(text: &'static str) -> Option<Self> {
        Some(match text.split(' ').collect::<Vec<_>>()[..] {
            ["plain", name] => Self::Plain(name),
            ["gated", gate, up] => Self::Gated([gate, up]),
            ["fused", name] => Self::Fused(name),
            _ => return None,
        })
    }
}

words! {
    Rotates: "never" => Self::Never, "always" => Self::Always, "stated" => Self::Stated;
    Pooled: "never" => Self::Never, "alone" => Self::Alone, "always" => Self::Always;
    Distances: "nothing" => Self::Nothing, "buckets" => Self::Buckets, "embedded" => Self::Embedded;
    EncoderVariant: "bert" => Self::Bert, "roberta" => Self::Roberta, "distil" => Self::Distil, "llama" => Self::Llama;
}

/// Every family.
pub(in crate::config) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Row::all(include_str!("families.txt")));

/// Projections into a feed-forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InnerNames {
    Plain(&'static str),
    /// Gate and up.
    Gated([&'static str; 2]),
    /// One for both.
    Fused(&'static str),
}

/// Which encoders rotate queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotates {
    Never,
    Always,
    /// Those whose `position_embedding_type` is `rotary`.
    Stated,
}

/// Whether a pooler stands behind an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pooled {
    /// In front of scores of the whole text alone.
    Never,
    /// Where no head stands behind it too.
    Alone,
    /// Whatever head stands behind it.
    Always,
}

/// What makes scores depend on distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distances {
    Nothing,
    Buckets,
    Embedded,
}

/// Encoders that differ in more than names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncoderVariant {
    Bert,
    /// Heads pool in the classifier itself.
    Roberta,
    /// No segments, no pooler, and flatter modules.
    Distil,
    /// Heads of single projections, and classifiers that score every position.
    Llama,
}

impl EncoderFamily {
    /// Every family.
    pub(crate) fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<EncoderFamily>> =
            LazyLock::new(|| ROWS.iter().filter_map(EncoderFamily::of).collect());
        &ALL
    }

    /// Whether queries and keys are rotated; what a published file may state and is not modelled is refused.
    pub(super) fn rotates(&self, fields: &Fields<'_>) -> Result<bool, ConfigProblem> {
        if self.rotates == Rotates::Never {
            return Ok(false);
        }
        const OTHER_LAYERS: &[&str] =
            &["prenorm", "parallel_block", "moe_every_n_layers", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"];
        if let Some(name) = fields.stated().find(|name| OTHER_LAYERS.contains(name)) {
            return Err(fields.wrong(name, "set", "false or absent: such layers of this family are not modelled"));
        }
        let kind = fields.optional_text("position_embedding_type")?;
        if self.rotates == Rotates::Stated {
            return Ok(kind.as_deref() == Some("rotary"));
        }
        // Files beside other code say how they differ.
        if let Some(kind) = kind.filter(|kind| self.home == "modeling" && kind != "rope") {
            return Err(fields.wrong("position_embedding_type", format!("\"{kind}\""), "`rope`"));
        }
        if let Some(norm) = fields.optional_text("layer_norm_type")?.filter(|norm| norm != "layer_norm") {
            return Err(fields.wrong("layer_norm_type", format!("\"{norm}\""), "`layer_norm`"));
        }
        let rotated = fields.number_or("rotary_emb_fraction", 1.0)?;
        if rotated != 1.0 {
            return Err(fields.wrong("rotary_emb_fraction", rotated, "1: parts of heads are not modelled"));
        }
        if !fields.flag_or("pack_qkv", true)? {
            return Err(fields.wrong("pack_qkv", false, "true: queries, keys and values from one matrix"));
        }
        Ok(true)
    }

    pub(super) fn pools(&self, fields: &Fields<'_>) -> Result<Pools, ConfigProblem> {
        if self.variant != EncoderVariant::Llama {
            return Ok(Pools::First);
        }
        match fields.optional_text("classifier_pooling")?.as_deref() {
            None | Some("late") => Ok(Pools::Scores),
            Some("mean") => Ok(Pools::Mean),
            Some("bos") => Ok(Pools::First),
            Some(other) => Err(fields.wrong("classifier_pooling", format!("\"{other}\""), "`late`, `mean` or `bos`")),
        }
    }

    /// Kinds of segments.
    pub(super) fn segments(&self, fields: &Fields<'_>) -> Result<u64, ConfigProblem> {
        match self.module {
            "mpnet" | "esm" => Ok(0),
            "gte" | "new" => fields.count_or("type_vocab_size", 1),
            "bert" if self.tokens_module == Some("table") => Ok(0),
            "deberta" => fields.count_or("type_vocab_size", 0),
            _ => fields.size_or("type_vocab_size", 2),
        }
    }

    pub(super) fn tables(&self, fields: &Fields<'_>) -> Result<Vec<(&'static str, u64, u64)>, ConfigProblem> {
        let mut found = Vec::new();
        for table in self.tables {
            if table.flag.map_or(Ok(true), |flag| fields.flag_or(flag, false))? {
                found.push((table.name, fields.size(table.rows)?, table.reads));
            }
        }
        Ok(found)
    }

    pub(super) fn distances(&self, fields: &Fields<'_>) -> Result<Option<DistancesConfig>, ConfigProblem> {
        match self.distances {
            Distances::Nothing => Ok(None),
            Distances::Buckets => Ok(Some(DistancesConfig::Buckets(fields.size("relative_attention_num_buckets")?))),
            Distances::Embedded if !fields.flag_or("relative_attention", false)? => Ok(None),
            Distances::Embedded => {
                let positive = |name: &str| {
                    fields.integer_or(name, -1).map(|found| u64::try_from(found).ok().filter(|found| *found > 0))
                };
                let span = match (positive("position_buckets")?, positive("max_relative_positions")?) {
                    (Some(span), _) | (None, Some(span)) => span,
                    (None, None) => fields.size_or("max_position_embeddings", 512)?,
                };
                let kinds = if fields.is_text("pos_att_type") {
                    let text = fields.optional_text("pos_att_type")?.unwrap_or_default();
                    text.split('|').map(|kind| kind.trim().to_lowercase()).collect()
                } else {
                    fields.text_list("pos_att_type")?
                };
                let norms = fields.optional_text("norm_rel_ebd")?.unwrap_or_default();
                for (name, default) in [
                    ("position_buckets", "none"),
                    ("norm_rel_ebd", "none"),
                    ("share_att_key", "false"),
                    ("conv_kernel_size", "0"),
                    ("pos_att_type", "none"),
                ] {
                    fields.left_open(name, default);
                }
                Ok(Some(DistancesConfig::Embedded {
                    span: fields.at_most("max_relative_positions", span, 1 << 20)?,
                    normed: norms.split('|').any(|norm| norm.trim() == "layer_norm"),
                    shared: fields.flag_or("share_att_key", false)?,
                    with: ["c2p", "p2c"].map(|kind| kinds.iter().any(|known| known == kind)),
                    kernel: fields.at_most("conv_kernel_size", fields.count_or("conv_kernel_size", 0)?, 1 << 10)?,
                }))
            }
        }
    }

    /// BigBird attends to blocks of texts that are longer than this, whose cost is not modelled.
    pub(super) fn longest(&self, fields: &Fields<'_>) -> Result<Option<u64>, ConfigProblem> {
        if self.module != "bert" || self.pooler != "Linear" {
            return Ok(None);
        }
        let kind = fields.optional_text("attention_type")?.unwrap_or_else(|| "block_sparse".to_owned());
        if kind == "original_full" {
            return Ok(None);
        }
        let blocks = 5 + 2 * fields.size_or("num_random_blocks", 3)?;
        Ok(Some(blocks.saturating_mul(fields.size_or("block_size", 64)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let known = [EncoderFamily::KEYS, FlatLayerNames::KEYS, &["home", "package"]];
        for row in ROWS.iter() {
            assert_eq!(row.unknown(&known), [""; 0], "{}", row.kind);
            assert!(EncoderFamily::of(row).is_some(), "{}", row.kind);
        }
    }
}
