//! Encoders of text: BERT and what is made of its parts, as embedders, rerankers, classifiers and with their first head.

use types::{ActivationKind, DType};

use super::decoder::{NormConfig, NormKind, NormPlacement, RotaryConfig};
use super::family::{activation_named, rotary};
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

/// How scores depend on the distance of two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistancesConfig {
    /// A score of each head for every range of distances: so many ranges.
    Buckets(u64),
    /// Embeddings of distances that queries and keys are multiplied with.
    Embedded {
        /// Distances to either side.
        span: u64,
        /// Whether the embeddings are normed.
        normed: bool,
        /// Whether the projections of queries and keys serve distances too.
        shared: bool,
        /// Whether distances are multiplied with queries, and with keys.
        with: [bool; 2],
        /// Taps of the convolution beside the first layer; zero without one.
        kernel: u64,
    },
}

/// What a classifier pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pools {
    First,
    /// The mean of all positions.
    Mean,
    /// The mean of the scores of all positions.
    Scores,
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
    /// Projections to queries, keys and values.
    pub(crate) inputs: [&'static str; 3],
    /// Which heads have a pooler.
    pub(crate) pooled: Pooled,
    /// Whether the sum of embeddings is normed.
    pub(crate) embedding_norm: bool,
    /// Norms in front of attention and of the feed-forward and behind all layers, where a family has them instead of those behind
    /// the sums: the first is in the module of attention, the last in that of the encoder unless it begins with a dot.
    pub(crate) norms_before: Option<[&'static str; 3]>,
    /// The projection of embeddings to the width of the hidden states, and whether it has a bias.
    pub(crate) projection: (&'static str, bool),
    /// Fields with the widths of embeddings and of what stands in front of the scores of tokens.
    widths: [&'static str; 2],
    /// The module of the head over tokens, where it is neither BERT's nor RoBERTa's; empty where only a bias stands behind the table.
    pub(crate) tokens_module: Option<&'static str>,
    /// Tables that are added to the embedding of a token: name, the field with the rows, how often it is read, and the flag
    /// without which there is none.
    tables: &'static [(&'static str, &'static str, u64, Option<&'static str>)],
    /// Families whose scores depend on distances.
    distances: Distances,
    /// The field that says how many sets of weights the layers share.
    sets: Option<&'static str>,
    /// Which families rotate queries and keys.
    rotates: Rotates,
    /// Layers whose modules are flatter than those of BERT.
    pub(crate) flat: Option<&'static FlatLayerNames>,
}

/// What layers are called that hold attention, a feed-forward and the norms of both.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FlatLayerNames {
    /// The module around all layers, where there is one, and the list of them.
    pub(crate) around: &'static str,
    pub(crate) list: &'static str,
    pub(crate) attention: &'static str,
    /// Projections to queries, keys and values, or the one to all three; and that of what comes out.
    pub(crate) inputs: &'static [&'static str],
    pub(crate) output: &'static str,
    /// Norms of attention and of the feed-forward, and whether they stand in front.
    pub(crate) norms: [&'static str; 2],
    pub(crate) norms_before: bool,
    /// Class and kind of all norms.
    pub(crate) norm: (&'static str, NormKind),
    pub(crate) feed_forward: &'static str,
    pub(crate) inner: InnerNames,
    pub(crate) down: &'static str,
    /// Biases of attention, into the feed-forward and out of it.
    pub(crate) biases: [bool; 3],
}

/// Projections into a feed-forward.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InnerNames {
    Plain(&'static str),
    /// Gate and up.
    Gated([&'static str; 2]),
    /// One for both.
    Fused(&'static str),
}

/// Which encoders rotate queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rotates {
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
enum Distances {
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
            inputs: ["query", "key", "value"],
            pooled: Pooled::Alone,
            embedding_norm: true,
            norms_before: None,
            projection: ("embeddings_project", true),
            widths: ["embedding_size"; 2],
            tokens_module: None,
            tables: &[],
            distances: Distances::Nothing,
            sets: None,
            rotates: Rotates::Never,
            flat: None,
        }
    };
}

pub(crate) static BERT: EncoderFamily = encoder_family!("Bert", "bert", "bert", 0, EncoderVariant::Bert);
pub(crate) static ROBERTA: EncoderFamily = encoder_family!("Roberta", "roberta", "roberta", 2, EncoderVariant::Roberta);
pub(crate) static CAMEMBERT: EncoderFamily =
    encoder_family!("Camembert", "camembert", "roberta", 2, EncoderVariant::Roberta);
pub(crate) static DATA2VEC: EncoderFamily = EncoderFamily {
    home: "transformers.models.data2vec.modeling_data2vec_text",
    ..encoder_family!("Data2VecText", "data2vec", "data2vec_text", 2, EncoderVariant::Roberta)
};
pub(crate) static XLM_ROBERTA: EncoderFamily =
    encoder_family!("XLMRoberta", "xlm_roberta", "roberta", 2, EncoderVariant::Roberta);

pub(crate) static DISTILBERT: EncoderFamily = EncoderFamily {
    embeddings: "Embeddings",
    encoder: "Transformer",
    layer: "TransformerBlock",
    attention: ["DistilBertSelfAttention"; 3],
    output: "FFN",
    flat: Some(&FlatLayerNames {
        around: "transformer",
        list: "layer",
        attention: "attention",
        inputs: &["q_lin", "k_lin", "v_lin"],
        output: "out_lin",
        norms: ["sa_layer_norm", "output_layer_norm"],
        norms_before: false,
        norm: ("LayerNorm", NormKind::Layer),
        feed_forward: "ffn",
        inner: InnerNames::Plain("lin1"),
        down: "lin2",
        biases: [true; 3],
    }),
    ..encoder_family!("DistilBert", "distilbert", "distilbert", 0, EncoderVariant::Distil)
};

pub(crate) static ERNIE: EncoderFamily = EncoderFamily {
    tables: &[("task_type_embeddings", "task_type_vocab_size", 1, Some("use_task_id"))],
    ..encoder_family!("Ernie", "ernie", "ernie", 0, EncoderVariant::Bert)
};
pub(crate) static MEGATRON: EncoderFamily = EncoderFamily {
    embedding_norm: false,
    norms_before: Some(["ln", "ln", "ln"]),
    ..encoder_family!("MegatronBert", "megatron_bert", "bert", 0, EncoderVariant::Bert)
};
pub(crate) static BIG_BIRD: EncoderFamily = EncoderFamily {
    pooler: "Linear",
    pooled: Pooled::Always,
    ..encoder_family!("BigBird", "big_bird", "bert", 0, EncoderVariant::Bert)
};
pub(crate) static LAYOUTLM: EncoderFamily = EncoderFamily {
    pooled: Pooled::Always,
    tables: &[
        ("x_position_embeddings", "max_2d_position_embeddings", 2, None),
        ("y_position_embeddings", "max_2d_position_embeddings", 2, None),
        ("h_position_embeddings", "max_2d_position_embeddings", 1, None),
        ("w_position_embeddings", "max_2d_position_embeddings", 1, None),
    ],
    ..encoder_family!("LayoutLM", "layoutlm", "layoutlm", 0, EncoderVariant::Bert)
};
pub(crate) static ROBERTA_PRE: EncoderFamily = EncoderFamily {
    norms_before: Some(["LayerNorm", "intermediate.LayerNorm", ".LayerNorm"]),
    ..encoder_family!("RobertaPreLayerNorm", "roberta_prelayernorm", "roberta_prelayernorm", 2, EncoderVariant::Roberta)
};
pub(crate) static XLM_ROBERTA_XL: EncoderFamily = EncoderFamily {
    embedding_norm: false,
    norms_before: Some(["self_attn_layer_norm", "LayerNorm", "LayerNorm"]),
    ..encoder_family!("XLMRobertaXL", "xlm_roberta_xl", "roberta", 2, EncoderVariant::Roberta)
};
pub(crate) static MPNET: EncoderFamily = EncoderFamily {
    attention: ["MPNetAttention", "MPNetSelfAttention", "MPNetAttention"],
    inputs: ["q", "k", "v"],
    distances: Distances::Buckets,
    ..encoder_family!("MPNet", "mpnet", "mpnet", 2, EncoderVariant::Roberta)
};
pub(crate) static ELECTRA: EncoderFamily = EncoderFamily {
    pooled: Pooled::Never,
    tokens_module: Some("generator_predictions"),
    heads: ["ElectraClassificationHead", "ElectraGeneratorPredictions"],
    ..encoder_family!("Electra", "electra", "electra", 0, EncoderVariant::Roberta)
};
pub(crate) static REMBERT: EncoderFamily = EncoderFamily {
    projection: ("embedding_hidden_mapping_in", true),
    widths: ["input_embedding_size", "output_embedding_size"],
    tokens_module: Some("cls.predictions"),
    heads: ["RemBertClassificationHead", "RemBertLMPredictionHead"],
    ..encoder_family!("RemBert", "rembert", "rembert", 0, EncoderVariant::Bert)
};
pub(crate) static ALBERT: EncoderFamily = EncoderFamily {
    encoder: "AlbertTransformer",
    projection: ("embedding_hidden_mapping_in", true),
    tokens_module: Some("predictions"),
    heads: ["AlbertClassificationHead", "AlbertMLMHead"],
    pooler: "Linear",
    sets: Some("num_hidden_groups"),
    ..encoder_family!("Albert", "albert", "albert", 0, EncoderVariant::Bert)
};
pub(crate) static BERT_GENERATION: EncoderFamily = EncoderFamily {
    classes: [
        "BertGenerationEncoder",
        "BertGenerationDecoder",
        "BertGenerationForSequenceClassification",
        "BertGenerationForTokenClassification",
    ],
    pooled: Pooled::Never,
    tokens_module: Some(""),
    heads: ["BertGenerationHead", "BertGenerationOnlyLMHead"],
    ..encoder_family!("BertGeneration", "bert_generation", "bert", 0, EncoderVariant::Bert)
};
pub(crate) static DEBERTA_V2: EncoderFamily = EncoderFamily {
    pooled: Pooled::Never,
    attention: ["DebertaV2Attention", "DisentangledSelfAttention", "DebertaV2SelfOutput"],
    inputs: ["query_proj", "key_proj", "value_proj"],
    pooler: "ContextPooler",
    projection: ("embed_proj", false),
    distances: Distances::Embedded,
    ..encoder_family!("DebertaV2", "deberta_v2", "deberta", 0, EncoderVariant::Bert)
};

const ROTATED: FlatLayerNames = FlatLayerNames {
    around: "",
    list: "layers",
    attention: "self_attn",
    inputs: &["q_proj", "k_proj", "v_proj"],
    output: "o_proj",
    norms: ["post_attention_layernorm", "post_mlp_layernorm"],
    norms_before: false,
    norm: ("LayerNorm", NormKind::Layer),
    feed_forward: "mlp",
    inner: InnerNames::Gated(["gate_proj", "up_proj"]),
    down: "down_proj",
    biases: [true; 3],
};
/// Of a family with `ROTATED` layers.
macro_rules! rotated {
    ($prefix:literal, $package:literal, $module:literal, $variant:expr) => {
        EncoderFamily {
            attention: [concat!($prefix, "Attention"); 3],
            output: concat!($prefix, "MLP"),
            pooled: Pooled::Never,
            rotates: Rotates::Always,
            ..encoder_family!($prefix, $package, $module, 0, $variant)
        }
    };
}

pub(crate) static JINA: EncoderFamily = EncoderFamily {
    pooled: Pooled::Alone,
    flat: Some(&FlatLayerNames { inner: InnerNames::Plain("fc1"), down: "fc2", ..ROTATED }),
    ..rotated!("JinaEmbeddingsV3", "jina_embeddings_v3", "roberta", EncoderVariant::Roberta)
};
pub(crate) static NOMIC: EncoderFamily = EncoderFamily {
    flat: Some(&FlatLayerNames { biases: [false; 3], ..ROTATED }),
    ..rotated!("NomicBert", "nomic_bert", "nomic_bert", EncoderVariant::Bert)
};
pub(crate) static GTE: EncoderFamily = EncoderFamily {
    tokens_module: Some("lm_head"),
    heads: ["GteClassificationHead", "GteLMHead"],
    flat: Some(&FlatLayerNames { biases: [true, false, true], ..ROTATED }),
    ..rotated!("Gte", "gte", "gte", EncoderVariant::Bert)
};
/// GTE as it is published beside its weights.
pub(crate) static NEW: EncoderFamily = EncoderFamily {
    home: "modeling",
    tokens_module: Some("lm_head"),
    heads: ["NewClassificationHead", "NewLMPredictionHead"],
    output: "NewGatedMLP",
    flat: Some(&FlatLayerNames {
        around: "encoder",
        list: "layer",
        attention: "attention",
        inputs: &["qkv_proj"],
        norms: ["attn_ln", "mlp_ln"],
        inner: InnerNames::Fused("up_gate_proj"),
        biases: [true, false, true],
        ..ROTATED
    }),
    ..rotated!("New", "new", "new", EncoderVariant::Bert)
};
pub(crate) static ESM: EncoderFamily = EncoderFamily {
    embedding_norm: false,
    norms_before: Some(["LayerNorm", "LayerNorm", "emb_layer_norm_after"]),
    rotates: Rotates::Stated,
    ..encoder_family!("Esm", "esm", "esm", 2, EncoderVariant::Roberta)
};
/// Llama's layers without a mask.
pub(crate) static EUROBERT: EncoderFamily = EncoderFamily {
    embeddings: "",
    embedding_norm: false,
    norms_before: Some(["", "", ".norm"]),
    flat: Some(&FlatLayerNames {
        norms: ["input_layernorm", "post_attention_layernorm"],
        norms_before: true,
        norm: ("EuroBertRMSNorm", NormKind::Rms),
        biases: [false; 3],
        ..ROTATED
    }),
    ..rotated!("EuroBert", "eurobert", "model", EncoderVariant::Llama)
};

/// Every family of encoders, by `model_type`.
pub(crate) static FAMILIES: &[(&str, &EncoderFamily)] = &[
    ("bert", &BERT),
    ("distilbert", &DISTILBERT),
    ("roberta", &ROBERTA),
    ("xlm-roberta", &XLM_ROBERTA),
    ("camembert", &CAMEMBERT),
    ("data2vec-text", &DATA2VEC),
    ("ernie", &ERNIE),
    ("megatron-bert", &MEGATRON),
    ("big_bird", &BIG_BIRD),
    ("layoutlm", &LAYOUTLM),
    ("roberta-prelayernorm", &ROBERTA_PRE),
    ("xlm-roberta-xl", &XLM_ROBERTA_XL),
    ("mpnet", &MPNET),
    ("electra", &ELECTRA),
    ("rembert", &REMBERT),
    ("albert", &ALBERT),
    ("bert-generation", &BERT_GENERATION),
    ("deberta-v2", &DEBERTA_V2),
    ("jina_embeddings_v3", &JINA),
    ("nomic_bert", &NOMIC),
    ("gte", &GTE),
    ("new", &NEW),
    ("esm", &ESM),
    ("eurobert", &EUROBERT),
];

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
        if matches!(family.tokens_module, Some("")) && !matches!(head, EncoderHead::Pooled | EncoderHead::Tokens) {
            return Err(fields.wrong("architectures", "another head", "the encoder or its scores of tokens"));
        }
        let (width, heads) = (fields.size_or("hidden_size", 768)?, fields.size_or("num_attention_heads", 12)?);
        let layers = fields.size_or("num_hidden_layers", 12)?;
        fields.at_most("num_hidden_layers", layers, super::fields::MOST_LAYERS)?;
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
                return Err(fields.wrong(name, true, "false, as in all that was published of this family"));
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
                None | Some("") => width,
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

impl EncoderFamily {
    /// What the core of attention computes.
    pub(crate) fn core(&self) -> &'static str {
        match self.distances {
            Distances::Nothing => "y = softmax(q k^T / sqrt(d)) v, over all positions",
            Distances::Buckets => "y = softmax(q k^T / sqrt(d) + bias of the distance) v, over all positions",
            Distances::Embedded => {
                "y = softmax((q k^T + q r^T + k r^T) / sqrt(n d)) v, over all positions, with r from embeddings of distances and n \
                 terms; the file says which"
            }
        }
    }

    /// Whether queries and keys are rotated; what a published file may state and is not modelled is refused.
    fn rotates(&self, fields: &Fields<'_>) -> Result<bool, ConfigProblem> {
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

    fn pools(&self, fields: &Fields<'_>) -> Result<Pools, ConfigProblem> {
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
    fn segments(&self, fields: &Fields<'_>) -> Result<u64, ConfigProblem> {
        match self.module {
            "mpnet" | "esm" => Ok(0),
            "gte" | "new" => fields.count_or("type_vocab_size", 1),
            "bert" if self.tokens_module == Some("") => Ok(0),
            "deberta" => fields.count_or("type_vocab_size", 0),
            _ => fields.size_or("type_vocab_size", 2),
        }
    }

    fn tables(&self, fields: &Fields<'_>) -> Result<Vec<(&'static str, u64, u64)>, ConfigProblem> {
        let mut found = Vec::new();
        for (name, rows, reads, flag) in self.tables {
            if flag.is_none_or(|flag| fields.flag_or(flag, false).unwrap_or(true)) {
                found.push((*name, fields.size(rows)?, *reads));
            }
        }
        Ok(found)
    }

    fn distances(&self, fields: &Fields<'_>) -> Result<Option<DistancesConfig>, ConfigProblem> {
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
    fn longest(&self, fields: &Fields<'_>) -> Result<Option<u64>, ConfigProblem> {
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
