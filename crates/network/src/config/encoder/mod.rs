//! Encoders of text: BERT and what is made of its parts, as embedders, rerankers, classifiers and with their first head.

mod family;
mod parts;

use types::{ActivationKind, DType};

use super::decoder::{NormConfig, NormKind, NormPlacement, RotaryConfig};
use super::family::{activation_named, rotary};
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};
use super::quantisation::Quantisation;

pub(super) use family::ROWS;
use family::{Distances, Rotates};
pub(crate) use family::{EncoderFamily, EncoderVariant, FlatLayerNames, InnerNames, Pooled};
pub(crate) use parts::{DistancesConfig, Pools};

/// Sizes of an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderConfig {
    /// Names of its classes and modules.
    pub(crate) family: &'static EncoderFamily,
    /// What stands behind the encoder.
    pub head: EncoderHead,
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Layers.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
    /// Its nonlinearity.
    pub activation: ActivationKind,
    /// Rows of the table of positions; none where there is no table.
    pub positions: u64,
    /// Kinds of segments; none where segments are not told apart.
    pub segments: u64,
    /// Heads of keys and values.
    pub(crate) key_value_heads: u64,
    /// Whether a classifier pools: its scores, or one or all positions in front of it.
    pub(crate) pools: Pools,
    /// Rotary positions, where queries and keys are rotated.
    pub(crate) rotary: Option<RotaryConfig>,
    /// Whether the sum of embeddings is normed.
    pub(crate) embedding_norm: bool,
    /// Width of the tables of embeddings, which are projected to that of the hidden states where it is another.
    pub embedding_width: u64,
    /// Width of what stands in front of the scores of tokens.
    pub(crate) head_width: u64,
    /// Tables that are added to the embedding of a token, and how often each is read.
    pub(crate) tables: Vec<(&'static str, u64, u64)>,
    /// How scores depend on the distance of two positions, where they do.
    pub(crate) distances: Option<DistancesConfig>,
    /// Layers whose weights serve all others too: as many as there are sets of weights.
    pub(crate) sets: u64,
    /// Longest text that is attended to as a whole, where longer ones are not modelled.
    pub(crate) longest: Option<u64>,
    /// Added to the variance in norms.
    pub epsilon: f64,
    /// Whether the head over tokens shares the table of embeddings.
    pub tied_embeddings: bool,
    /// Element type of the published weights.
    pub dtype: DType,
    /// How the checkpoint is quantised, where it is.
    pub quantisation: Option<Quantisation>,
}

/// What stands behind an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderHead {
    /// The pooled first position: an embedder.
    Pooled,
    /// As many scores of the whole text: a classifier or reranker.
    Classes(u64),
    /// As many scores of each token.
    TokenClasses(u64),
    /// Scores of all tokens at each position.
    Tokens,
}

/// Most labels that are taken seriously.
const MOST_LABELS: u64 = 1 << 20;

impl EncoderConfig {
    /// Its norms.
    pub(crate) fn norm(&self) -> (&'static str, NormConfig) {
        let (class, kind) = self.family.flat.map_or(("LayerNorm", NormKind::Layer), |flat| flat.norm);
        (class, NormConfig { epsilon: self.epsilon, kind, placement: NormPlacement::Before })
    }

    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        let [encoder, tokens, classes, token_classes] = self.family.classes;
        match self.head {
            EncoderHead::Pooled => encoder,
            EncoderHead::Tokens => tokens,
            EncoderHead::Classes(_) => classes,
            EncoderHead::TokenClasses(_) => token_classes,
        }
    }

    /// Reads an encoder of `family`, whose class the file names.
    pub(crate) fn read(fields: &Fields<'_>, family: &'static EncoderFamily) -> Result<Self, ConfigProblem> {
        if fields.flag_or("is_decoder", false)? {
            return Err(fields.wrong("is_decoder", true, "false: an encoder sees every position"));
        }
        if let Some(count) = fields.optional_size("inner_group_num")?.filter(|count| *count != 1) {
            return Err(fields.wrong("inner_group_num", count, "1: one layer for each group of layers"));
        }
        let class = class_of(fields)?;
        let at = class.and_then(|class| match class.as_str() {
            // The head over tokens again, under the name it has where the layers see backwards only.
            class if class.ends_with("LMHeadModel") || class.ends_with("ForCausalLM") => Some(1),
            class => family.classes.iter().position(|known| *known == class),
        });
        let head = match at {
            None | Some(0) => EncoderHead::Pooled,
            Some(1) => EncoderHead::Tokens,
            Some(2) => EncoderHead::Classes(labels(fields)?),
            Some(_) => EncoderHead::TokenClasses(labels(fields)?),
        };
        if matches!(family.tokens_module, Some("table")) && !matches!(head, EncoderHead::Pooled | EncoderHead::Tokens) {
            return Err(fields.wrong("architectures", "another head", "the encoder or its scores of tokens"));
        }
        let (width, heads) = (fields.size_or("hidden_size", 768)?, fields.size_or("num_attention_heads", 12)?);
        let layers = fields.size_or("num_hidden_layers", 12)?;
        fields.at_most("num_hidden_layers", layers, MOST_LAYERS)?;
        fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
        let name = fields.spelling(&["hidden_act", "activation"]).unwrap_or("hidden_act");
        let activation = fields.optional_text(name)?.unwrap_or_else(|| "gelu".to_owned());
        // The gate is another field's or the class's business.
        let known = activation_named(if activation == "swiglu" { "silu" } else { &activation });
        let rotates = family.rotates(fields)?;
        if let Some(stated) = fields.optional_size("head_dim")?.filter(|stated| rotates && *stated != width / heads) {
            let expected = format!("`hidden_size` / `num_attention_heads` ({})", width / heads);
            return Err(fields.wrong("head_dim", stated, expected));
        }
        let llama = family.variant == EncoderVariant::Llama;
        let key_value_heads = if llama { fields.size_or("num_key_value_heads", heads)? } else { heads };
        fields.divides(("num_attention_heads", heads), ("num_key_value_heads", key_value_heads))?;
        for name in ["attention_bias", "mlp_bias", "tie_word_embeddings"] {
            if llama && fields.flag_or(name, false)? {
                return Err(fields.wrong(name, true, "false, as in every published config of this family"));
            }
        }
        let epsilon = if llama { "rms_norm_eps" } else { "layer_norm_eps" };
        let distil = family.variant == EncoderVariant::Distil;
        let inner = if distil { "hidden_dim" } else { "intermediate_size" };
        Ok(Self {
            family,
            head,
            vocabulary: fields.size("vocab_size")?,
            width,
            layers,
            heads,
            key_value_heads,
            pools: family.pools(fields)?,
            inner: fields.size_or(inner, 3072)?,
            rotary: rotates.then(|| rotary(fields, 10_000.0, width / heads)).transpose()?,
            embedding_norm: match family.rotates {
                Rotates::Stated => {
                    fields.flag_or("emb_layer_norm_before", fields.left_open("emb_layer_norm_before", false))?
                }
                _ => family.embedding_norm,
            },
            activation: known.ok_or_else(|| fields.wrong(name, activation, "gelu, relu or silu"))?,
            positions: match family.distances {
                _ if rotates => 0,
                Distances::Embedded if !fields.flag_or("position_biased_input", true)? => 0,
                _ => fields.size_or("max_position_embeddings", 512)?,
            },
            segments: if distil || llama { 0 } else { family.segments(fields)? },
            embedding_width: fields.optional_size(family.widths[0])?.unwrap_or(width),
            head_width: match family.tokens_module {
                None | Some("table") => width,
                Some(_) => fields.optional_size(family.widths[1])?.unwrap_or(width),
            },
            tables: family.tables(fields)?,
            distances: family.distances(fields)?,
            sets: family.sets.map_or(Ok(layers), |name| fields.size_or(name, 1))?.min(layers),
            longest: family.longest(fields)?,
            epsilon: fields.number_or(epsilon, 1e-12)?,
            tied_embeddings: head == EncoderHead::Tokens && fields.ties(true)?,
            dtype: fields.dtype_or(DType::Fp32)?,
            quantisation: None,
        })
    }
}

/// The class that a file names, if its head is known.
pub(super) fn class_of(fields: &Fields<'_>) -> Result<Option<String>, ConfigProblem> {
    let class = fields.text_list("architectures")?.into_iter().next();
    match class {
        Some(class) if class.ends_with("RewardModel") => {
            let known = "a class whose head is known, such as `...ForSequenceClassification`";
            Err(fields.wrong("architectures", format!("[\"{class}\"]"), known))
        }
        class => Ok(class),
    }
}

/// Labels of a classifier: as many as are named, or two.
pub(super) fn labels(fields: &Fields<'_>) -> Result<u64, ConfigProblem> {
    let named = fields.optional_object("id2label")?.map(|labels| labels.names().count() as u64);
    let count = match named.filter(|count| *count > 0) {
        Some(count) => count,
        None => fields.optional_size("num_labels")?.unwrap_or_else(|| {
            fields.assume("num_labels", &2);
            2
        }),
    };
    fields.at_most("num_labels", count, MOST_LABELS)
}
