//! Encoders of text: BERT, DistilBERT, RoBERTa and XLM-RoBERTa, as embedders, rerankers, classifiers and with their first head.

use types::{ActivationKind, DType};

use super::family::activation_named;
use super::fields::{ConfigProblem, Fields};
use super::quantisation::Quantisation;

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
    /// Rows of the table of positions.
    pub positions: u64,
    /// Kinds of segments; none where segments are not told apart.
    pub segments: u64,
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

/// What encoders of one family are called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncoderFamily {
    /// Package that defines its classes.
    pub(crate) home: &'static str,
    /// Classes: encoder, for tokens, for classes, for classes of tokens.
    pub(crate) classes: [&'static str; 4],
    pub(crate) embeddings: &'static str,
    pub(crate) encoder: &'static str,
    pub(crate) layer: &'static str,
    /// Attention, its core, its output.
    pub(crate) attention: [&'static str; 3],
    pub(crate) intermediate: &'static str,
    pub(crate) output: &'static str,
    pub(crate) pooler: &'static str,
    /// Heads of RoBERTa: over classes, over tokens.
    pub(crate) heads: [&'static str; 2],
    /// Module of the encoder where a head stands beside it.
    pub(crate) module: &'static str,
    /// Row of the first position.
    pub(crate) first_position: u64,
    /// How it differs from BERT.
    pub(crate) variant: EncoderVariant,
}

/// Encoders that differ in more than names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncoderVariant {
    Bert,
    /// Heads pool in the classifier itself.
    Roberta,
    /// No segments, no pooler, and flatter modules.
    Distil,
}

macro_rules! encoder_family {
    ($prefix:literal, $package:literal, $module:literal, $first:literal, $variant:expr) => {
        EncoderFamily {
            home: concat!("transformers.models.", $package, ".modeling_", $package),
            classes: [
                concat!($prefix, "Model"),
                concat!($prefix, "ForMaskedLM"),
                concat!($prefix, "ForSequenceClassification"),
                concat!($prefix, "ForTokenClassification"),
            ],
            embeddings: concat!($prefix, "Embeddings"),
            encoder: concat!($prefix, "Encoder"),
            layer: concat!($prefix, "Layer"),
            attention: [
                concat!($prefix, "Attention"),
                concat!($prefix, "SelfAttention"),
                concat!($prefix, "SelfOutput"),
            ],
            intermediate: concat!($prefix, "Intermediate"),
            output: concat!($prefix, "Output"),
            pooler: concat!($prefix, "Pooler"),
            heads: [concat!($prefix, "ClassificationHead"), concat!($prefix, "LMHead")],
            module: $module,
            first_position: $first,
            variant: $variant,
        }
    };
}

pub(crate) const BERT: EncoderFamily = encoder_family!("Bert", "bert", "bert", 0, EncoderVariant::Bert);
pub(crate) const ROBERTA: EncoderFamily = encoder_family!("Roberta", "roberta", "roberta", 2, EncoderVariant::Roberta);
pub(crate) const CAMEMBERT: EncoderFamily =
    encoder_family!("Camembert", "camembert", "roberta", 2, EncoderVariant::Roberta);
pub(crate) const DATA2VEC: EncoderFamily = EncoderFamily {
    home: "transformers.models.data2vec.modeling_data2vec_text",
    ..encoder_family!("Data2VecText", "data2vec", "data2vec_text", 2, EncoderVariant::Roberta)
};
pub(crate) const XLM_ROBERTA: EncoderFamily =
    encoder_family!("XLMRoberta", "xlm_roberta", "roberta", 2, EncoderVariant::Roberta);

pub(crate) const DISTILBERT: EncoderFamily = EncoderFamily {
    embeddings: "Embeddings",
    encoder: "Transformer",
    layer: "TransformerBlock",
    attention: ["DistilBertSelfAttention"; 3],
    output: "FFN",
    ..encoder_family!("DistilBert", "distilbert", "distilbert", 0, EncoderVariant::Distil)
};

/// Every family of encoders.
pub(crate) const FAMILIES: [&EncoderFamily; 6] = [&BERT, &DISTILBERT, &ROBERTA, &CAMEMBERT, &DATA2VEC, &XLM_ROBERTA];

/// Most labels that are taken seriously.
const MOST_LABELS: u64 = 1 << 20;

impl EncoderConfig {
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
        let (width, heads) = (fields.size_or("hidden_size", 768)?, fields.size_or("num_attention_heads", 12)?);
        let layers = fields.size_or("num_hidden_layers", 12)?;
        fields.at_most("num_hidden_layers", layers, super::fields::MOST_LAYERS)?;
        fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
        let name = fields.spelling(&["hidden_act", "activation"]).unwrap_or("hidden_act");
        let activation = fields.optional_text(name)?.unwrap_or_else(|| "gelu".to_owned());
        let known = activation_named(&activation);
        let distil = family.variant == EncoderVariant::Distil;
        let inner = if distil { "hidden_dim" } else { "intermediate_size" };
        Ok(Self {
            family,
            head,
            vocabulary: fields.size_or("vocab_size", 30522)?,
            width,
            layers,
            heads,
            inner: fields.size_or(inner, 3072)?,
            activation: known.ok_or_else(|| fields.wrong(name, activation, "gelu, relu or silu"))?,
            positions: fields.size_or("max_position_embeddings", 512)?,
            segments: if distil { 0 } else { fields.size_or("type_vocab_size", 2)? },
            epsilon: fields.number_or("layer_norm_eps", 1e-12)?,
            tied_embeddings: fields.ties(true)?,
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
