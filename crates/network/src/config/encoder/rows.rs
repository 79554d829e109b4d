//! The families, one by one: BERT's names, and what each has otherwise.

use super::family::{Distances, EncoderFamily, EncoderVariant, FlatLayerNames, InnerNames, Pooled, Rotates};
use crate::config::decoder::NormKind;

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
