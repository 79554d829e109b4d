//! The table of architectures: the names each goes by, and how its configuration is read.

use std::sync::LazyLock;

use super::decoder::DecoderHead;
use super::encoder_decoder::EncoderDecoderFamily;
use super::family::described::{self, Described};
use super::fields::Fields;
use super::{
    ConfigProblem, ModelConfig, decoder, deepseek_ocr, encoder, encoder_decoder, family, missing, modern_encoder,
    read_named, shallow_resnet, t5, vision,
};

/// One architecture: the names it goes by and how its configuration is read.
#[derive(Clone, Copy)]
pub(super) struct Architecture {
    /// Entry of `architectures`.
    pub(super) name: &'static str,
    /// `model_type`.
    pub(super) model_type: &'static str,
    read: Reader,
}

/// How a configuration is read.
#[derive(Clone, Copy)]
enum Reader {
    By(ReadConfig),
    Described(&'static Described),
    Paired(&'static EncoderDecoderFamily),
    Encoding(&'static encoder::EncoderFamily),
}

/// Every architecture: those with readers of their own, then those that are rows of data.
pub(super) fn architectures() -> &'static [Architecture] {
    static ALL: LazyLock<Vec<Architecture>> = LazyLock::new(|| {
        let described = described::rows().map(|row| Architecture {
            name: row.family.names.causal,
            model_type: row.model_type,
            read: Reader::Described(row),
        });
        let paired = encoder_decoder::FAMILIES.iter().map(|family| Architecture {
            name: family.conditional,
            model_type: family.kind,
            read: Reader::Paired(family),
        });
        let encoders = encoder::FAMILIES.iter().flat_map(|(model_type, family)| {
            let named = |name| Architecture { name, model_type, read: Reader::Encoding(family) };
            family.classes.into_iter().map(named)
        });
        ARCHITECTURES.iter().copied().chain(encoders).chain(paired).chain(described).collect()
    });
    &ALL
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        name: "DeepseekOCRForCausalLM",
        model_type: "deepseek_vl_v2",
        read: Reader::By(|fields| {
            deepseek_ocr::DeepseekOcrConfig::read(fields).map(|config| ModelConfig::DeepseekOcr(Box::new(config)))
        }),
    },
    decoder("LlamaForCausalLM", "llama", |fields| boxed(family::llama::read(fields))),
    decoder("MistralForCausalLM", "mistral", |fields| boxed(family::mistral::read(fields))),
    decoder("Qwen2ForCausalLM", "qwen2", |fields| boxed(family::qwen::read_qwen2(fields))),
    decoder("Qwen3ForCausalLM", "qwen3", |fields| boxed(family::qwen::read_qwen3(fields))),
    decoder("MixtralForCausalLM", "mixtral", |fields| boxed(family::mixtral::read(fields))),
    decoder("Qwen2MoeForCausalLM", "qwen2_moe", |fields| boxed(family::qwen_moe::read_qwen2(fields))),
    decoder("Qwen3MoeForCausalLM", "qwen3_moe", |fields| boxed(family::qwen_moe::read_qwen3(fields))),
    decoder("DeepseekV2ForCausalLM", "deepseek_v2", |fields| boxed(family::deepseek::read_v2(fields))),
    decoder("DeepseekV3ForCausalLM", "deepseek_v3", |fields| boxed(family::deepseek::read_v3(fields))),
    decoder("DeepseekV32ForCausalLM", "deepseek_v32", |fields| boxed(family::deepseek::read_v32(fields))),
    decoder("DeepseekV4ForCausalLM", "deepseek_v4", |fields| boxed(family::deepseek_v4::read(fields))),
    decoder("Glm4MoeLiteForCausalLM", "glm4_moe_lite", |fields| boxed(family::deepseek::read_glm_lite(fields))),
    decoder("YoutuForCausalLM", "youtu", |fields| boxed(family::deepseek::read_youtu(fields))),
    decoder("MiniCPM3ForCausalLM", "minicpm3", |fields| boxed(family::deepseek::read_minicpm3(fields))),
    decoder("Mistral4ForCausalLM", "mistral4", |fields| boxed(family::deepseek::read_mistral4(fields))),
    decoder("KimiLinearForCausalLM", "kimi_linear", |fields| boxed(family::kimi::read_kimi(fields))),
    decoder("BailingHybridForCausalLM", "bailing_hybrid", |fields| boxed(family::kimi::read_ling(fields))),
    decoder("LongcatFlashForCausalLM", "longcat_flash", |fields| boxed(family::kimi::read_longcat(fields))),
    decoder("DeciLMForCausalLM", "nemotron-nas", |fields| boxed(family::deci::read(fields))),
    decoder("MambaForCausalLM", "mamba", |fields| boxed(family::state_space::read_mamba(fields, false))),
    decoder("FalconMambaForCausalLM", "falcon_mamba", |fields| boxed(family::state_space::read_mamba(fields, true))),
    decoder("GlmMoeDsaForCausalLM", "glm_moe_dsa", |fields| boxed(family::deepseek::read_glm(fields))),
    decoder("Phi3ForCausalLM", "phi3", |fields| boxed(family::phi::read(fields))),
    decoder("Gemma2ForCausalLM", "gemma2", |fields| boxed(family::gemma::read_gemma2(fields))),
    decoder("Gemma3ForCausalLM", "gemma3_text", |fields| boxed(family::gemma::read_gemma3(fields))),
    decoder("GptOssForCausalLM", "gpt_oss", |fields| boxed(family::gpt_oss::read(fields))),
    decoder("SeedOssForCausalLM", "seed_oss", |fields| boxed(family::seed_oss::read(fields))),
    decoder("Olmo3ForCausalLM", "olmo3", |fields| boxed(family::dense::read_olmo3(fields))),
    decoder("Exaone4ForCausalLM", "exaone4", |fields| boxed(family::dense::read_exaone4(fields))),
    decoder("SmolLM3ForCausalLM", "smollm3", |fields| boxed(family::dense::read_smollm3(fields))),
    decoder("CohereForCausalLM", "cohere", |fields| boxed(family::dense::read_cohere(fields))),
    decoder("Cohere2ForCausalLM", "cohere2", |fields| boxed(family::dense::read_cohere2(fields))),
    decoder("Ernie4_5ForCausalLM", "ernie4_5", |fields| boxed(family::dense::read_ernie(fields))),
    decoder("GlmForCausalLM", "glm", |fields| boxed(family::dense::read_glm(fields))),
    decoder("Glm4ForCausalLM", "glm4", |fields| boxed(family::dense::read_glm4(fields))),
    decoder("MinistralForCausalLM", "ministral", |fields| boxed(family::dense::read_ministral(fields))),
    decoder("Ministral3ForCausalLM", "ministral3", |fields| boxed(family::dense::read_ministral3(fields))),
    decoder("CwmForCausalLM", "cwm", |fields| boxed(family::dense::read_cwm(fields))),
    decoder("OlmoeForCausalLM", "olmoe", |fields| boxed(family::sparse::read_olmoe(fields))),
    decoder("Glm4MoeForCausalLM", "glm4_moe", |fields| boxed(family::sparse::read_glm4(fields))),
    decoder("Dots1ForCausalLM", "dots1", |fields| boxed(family::sparse::read_dots1(fields))),
    decoder("MiniMaxM2ForCausalLM", "minimax_m2", |fields| boxed(family::sparse::read_minimax(fields))),
    decoder("PhimoeForCausalLM", "phimoe", |fields| boxed(family::sparse::read_phi(fields))),
    decoder("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", |fields| boxed(family::sparse::read_ernie(fields))),
    decoder("GraniteMoeForCausalLM", "granitemoe", |fields| boxed(family::sparse::read_granite(fields))),
    decoder("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", |fields| boxed(family::sparse::read_hunyuan(fields))),
    decoder("MiMoV2FlashForCausalLM", "mimo_v2_flash", |fields| boxed(family::sparse::read_mimo(fields))),
    decoder("GPTNeoXForCausalLM", "gpt_neox", |fields| boxed(family::classic::read_neox(fields))),
    decoder("FalconForCausalLM", "falcon", |fields| boxed(family::classic::read_falcon(fields))),
    decoder("Qwen3NextForCausalLM", "qwen3_next", |fields| boxed(family::qwen_next::read_next(fields))),
    decoder("Qwen3_5ForCausalLM", "qwen3_5_text", |fields| boxed(family::qwen_next::read_dense(fields))),
    decoder("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", |fields| boxed(family::qwen_next::read_sparse(fields))),
    decoder("OlmoHybridForCausalLM", "olmo_hybrid", |fields| boxed(family::qwen_next::read_olmo(fields))),
    decoder("Llama4ForCausalLM", "llama4_text", |fields| boxed(family::llama4::read(fields))),
    decoder("Gemma3nForCausalLM", "gemma3n_text", |fields| boxed(family::gemma3n::read(fields))),
    decoder("Gemma4ForCausalLM", "gemma4_text", |fields| boxed(family::gemma4::read(fields))),
    decoder("Gemma4UnifiedForCausalLM", "gemma4_unified_text", |fields| boxed(family::gemma4::read_unified(fields))),
    decoder("NemotronHForCausalLM", "nemotron_h", |fields| boxed(family::state_space::read_nemotron(fields))),
    decoder("Mamba2ForCausalLM", "mamba2", |fields| boxed(family::state_space::read_mamba2(fields))),
    decoder("GraniteMoeHybridForCausalLM", "granitemoehybrid", |fields| {
        boxed(family::state_space::read_granite(fields))
    }),
    decoder("BambaForCausalLM", "bamba", |fields| boxed(family::state_space::read_bamba(fields))),
    decoder("Zamba2ForCausalLM", "zamba2", |fields| boxed(family::state_space::read_zamba2(fields))),
    decoder("FalconH1ForCausalLM", "falcon_h1", |fields| boxed(family::mixer::read_falcon_h1(fields))),
    decoder("MllamaForCausalLM", "mllama_text_model", |fields| boxed(family::mixer::read_mllama(fields))),
    decoder("Lfm2ForCausalLM", "lfm2", |fields| boxed(family::mixer::read_lfm2(fields))),
    decoder("Lfm2MoeForCausalLM", "lfm2_moe", |fields| boxed(family::mixer::read_lfm2_moe(fields))),
    decoder("Lfm3ForCausalLM", "lfm3", |fields| boxed(family::mixer::read_lfm3(fields))),
    decoder("JambaForCausalLM", "jamba", |fields| boxed(family::state_space::read_jamba(fields))),
    decoder("Qwen2VLForConditionalGeneration", "qwen2_vl", |fields| seeing(family::qwen_vl::read_2(fields))),
    decoder("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", |fields| seeing(family::qwen_vl::read_2_5(fields))),
    decoder("Qwen3VLForConditionalGeneration", "qwen3_vl", |fields| seeing(family::qwen_vl::read_3(fields))),
    decoder("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", |fields| seeing(family::qwen_vl::read_3_moe(fields))),
    decoder("Qwen3_5ForConditionalGeneration", "qwen3_5", |fields| seeing(family::qwen_vl::read_3_5(fields))),
    decoder("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", |fields| {
        seeing(family::qwen_vl::read_3_5_moe(fields))
    }),
    decoder("LlavaForConditionalGeneration", "llava", |fields| seeing(family::llava::read(fields))),
    encoder("ModernBertModel", "modernbert", modern),
    encoder("ModernBertForMaskedLM", "modernbert", modern),
    encoder("ModernBertForSequenceClassification", "modernbert", modern),
    encoder("ModernBertForTokenClassification", "modernbert", modern),
    encoder("T5ForConditionalGeneration", "t5", |fields| both(fields, &t5::T5)),
    encoder("MT5ForConditionalGeneration", "mt5", |fields| both(fields, &t5::MT5)),
    encoder("UMT5ForConditionalGeneration", "umt5", |fields| both(fields, &t5::UMT5)),
    Architecture {
        name: "ShallowResNet",
        model_type: "shallow_resnet",
        read: Reader::By(|fields| shallow_resnet::ShallowResnetConfig::read(fields).map(ModelConfig::ShallowResnet)),
    },
];

pub(super) type ReadConfig = fn(&Fields<'_>) -> Result<ModelConfig, ConfigProblem>;

const fn decoder(name: &'static str, model_type: &'static str, read: ReadConfig) -> Architecture {
    Architecture { name, model_type, read: Reader::By(read) }
}

const fn encoder(name: &'static str, model_type: &'static str, read: ReadConfig) -> Architecture {
    Architecture { name, model_type, read: Reader::By(read) }
}

fn encoding(fields: &Fields<'_>, family: &'static encoder::EncoderFamily) -> Result<ModelConfig, ConfigProblem> {
    encoder::EncoderConfig::read(fields, family).map(|config| ModelConfig::Encoder(Box::new(config)))
}

fn modern(fields: &Fields<'_>) -> Result<ModelConfig, ConfigProblem> {
    modern_encoder::ModernEncoderConfig::read(fields).map(|config| ModelConfig::ModernEncoder(Box::new(config)))
}

fn both(fields: &Fields<'_>, family: &'static t5::T5Family) -> Result<ModelConfig, ConfigProblem> {
    t5::T5Config::read(fields, family).map(|config| ModelConfig::T5(Box::new(config)))
}

fn boxed(config: Result<decoder::DecoderConfig, ConfigProblem>) -> Result<ModelConfig, ConfigProblem> {
    config.map(|config| ModelConfig::Decoder(Box::new(config)))
}

fn seeing(config: Result<vision::VisionLanguageConfig, ConfigProblem>) -> Result<ModelConfig, ConfigProblem> {
    config.map(|config| ModelConfig::VisionLanguage(Box::new(config)))
}

/// The decoder of a model whose other parts are not known, or the problem of the whole where that is not known either.
pub(super) fn text_only(fields: &Fields<'_>, problem: ConfigProblem) -> Result<ModelConfig, ConfigProblem> {
    let Some((place, text)) = language_part(fields)? else { return Err(problem) };
    if !text.kind().is_some_and(|kind| architectures().iter().any(|known| known.is_family(kind))) {
        return Err(problem);
    }
    let ModelConfig::Decoder(mut decoder) = read_named(&text, "")? else { return Err(problem) };
    decoder.tied_embeddings = text.tied(&[fields, &place], decoder.tied_embeddings)?;
    for around in [fields, &place] {
        decoder.dtype = around.dtype()?.unwrap_or(decoder.dtype);
    }
    let whole = fields.text_list("architectures")?.into_iter().next();
    decoder.part_of = match whole {
        None => fields.optional_text("model_type")?,
        whole => whole,
    };
    for around in [fields, &place] {
        for field in around.names().filter(|name| name.ends_with("_config")) {
            if let Some(part) = around.optional_object(field).ok().flatten()
                && is_left_out(field, &part)
                && !decoder.left_out.iter().any(|known| known.field == field)
            {
                decoder.left_out.push(decoder::LeftOut { field: field.to_owned(), parameters: estimated(&part) });
            }
        }
    }
    Ok(ModelConfig::Decoder(decoder))
}

/// Names of the widths of a part, and of its layers.
const WIDTHS: &[&str] = &["hidden_size", "embed_dim", "d_model", "width"];
const LAYERS: &[&str] = &["num_hidden_layers", "depth", "layers", "encoder_layers"];

/// Whether a field describes a part of a model beside its decoder: what is of a class, or has a size or parts of its own.
fn is_left_out(field: &str, part: &Fields<'_>) -> bool {
    const DECODERS: &[&str] = &["text_config", "llm_config", "language_config", "thinker_config"];
    let has_parts = || part.names().any(|name| name.ends_with("_config"));
    let is_tower = ["vision", "audio"].iter().any(|start| field.starts_with(start));
    let is_part =
        is_tower || part.kind().is_some() || part.spelling(WIDTHS).or(part.spelling(LAYERS)).is_some() || has_parts();
    is_part && !DECODERS.contains(&field)
}

/// What layers of a transformer of these sizes have: four matrices of attention and two or three of the feed-forward. Absent
/// where a size is, or is no number.
fn estimated(part: &Fields<'_>) -> Option<u64> {
    let size = |names: &[&str]| part.optional_size_of(names).ok().flatten();
    let (width, layers) = (size(WIDTHS)?, size(LAYERS)?);
    let inner = size(&["intermediate_size", "encoder_ffn_dim"]).unwrap_or(4 * width);
    let each = width.saturating_mul(4 * width + 2 * inner);
    Some(each.saturating_mul(layers.min(super::fields::MOST_LAYERS)))
}

/// The fields of the decoder in a file of several parts, behind those around them.
fn language_part<'a>(fields: &Fields<'a>) -> Result<Option<(Fields<'a>, Fields<'a>)>, ConfigProblem> {
    // A model that speaks has one that thinks in it.
    let thinker = fields.optional_object("thinker_config")?;
    for place in [Some(fields), thinker.as_ref()].into_iter().flatten() {
        for name in ["text_config", "llm_config", "language_config"] {
            if let Some(text) = place.optional_object(name)? {
                return Ok(Some((place.clone(), text)));
            }
        }
    }
    Ok(None)
}

/// Names of the architectures that can be read.
pub fn supported() -> impl Iterator<Item = &'static str> {
    architectures().iter().map(|architecture| architecture.name)
}

/// Families that can be read, by `model_type`.
pub fn families() -> impl Iterator<Item = &'static str> {
    let is_first = |at: usize, kind: &str| architectures()[..at].iter().all(|earlier| earlier.model_type != kind);
    let rows = architectures().iter().enumerate();
    rows.filter(move |(at, row)| is_first(*at, row.model_type)).map(|(_, row)| row.model_type)
}

/// Decoders that have a name of their own, and the parts and fields of another family.
const OTHER_NAMES: [(&str, &str); 17] = [
    ("kimi_k2", "deepseek_v3"),
    ("glm4v_text", "glm4"),
    ("glm4v_moe_text", "glm4_moe"),
    ("qwen2_5_omni_text", "qwen2"),
    ("qwen3_omni_moe_text", "qwen3_moe"),
    ("qwen2_vl_text", "qwen2"),
    ("qwen2_5_vl_text", "qwen2"),
    ("qwen3_vl_text", "qwen3"),
    ("qwen3_vl_moe_text", "qwen3_moe"),
    ("paddleocr_vl_text", "ernie4_5"),
    ("granite4_vision_text", "granite"),
    ("granite_docling_text", "granite"),
    ("emu3_text_model", "llama"),
    ("iquestcoder", "llama"),
    ("hunyuan_vl_text", "hunyuan_v1_dense"),
    ("glm_ocr_text", "glm4"),
    ("gpt-sw3", "gpt2"),
];

impl Architecture {
    /// Reads a file.
    pub(super) fn read(&self, fields: &Fields<'_>) -> Result<ModelConfig, ConfigProblem> {
        // Sizes of single layers, which any class of transformers takes and only Gemma 4's publishes.
        if !self.model_type.starts_with("gemma4")
            && let Some(listed) = fields.optional_object("per_layer_config")?
            && listed.names().next().is_some()
        {
            let expected = "absent or empty: sizes of single layers are not modelled for this family";
            return Err(fields.wrong("per_layer_config", "stated", expected));
        }
        match self.read {
            Reader::By(read) => read(fields),
            Reader::Described(row) => boxed(described::read(fields, row)),
            Reader::Encoding(family) => encoding(fields, family),
            Reader::Paired(family) => family.read(fields).map(|config| ModelConfig::EncoderDecoder(Box::new(config))),
        }
    }

    /// Whether files of that `model_type` are read so.
    pub(super) fn is_family(&self, kind: &str) -> bool {
        self.model_type == kind || OTHER_NAMES.contains(&(kind, self.model_type))
    }

    /// By `architectures`, which names one class; by `model_type`, which names a family, only where that is absent.
    pub(super) fn of(fields: &Fields<'_>) -> Result<&'static Self, ConfigProblem> {
        let named = fields.text_list("architectures")?;
        let model_type = fields.optional_text("model_type")?;
        if named.is_empty() && model_type.is_none() {
            return Err(ConfigProblem::Missing { field: "architectures".into(), expected: "a list of one class name" });
        }
        let is_family = |known: &Self| model_type.as_deref().is_some_and(|kind| known.is_family(kind));
        let exact =
            |known: &&Self| named.iter().any(|name| name == known.name) || (named.is_empty() && is_family(known));
        // Another spelling, another head, or a class that is another family's under a name of its own.
        let has_parts = language_part(fields)?.is_some();
        let spelt = |known: &&Self| {
            let same = |name: &String| stem(name) == stem(known.name);
            let renamed =
                || OTHER_NAMES.iter().any(|(kind, _)| model_type.as_deref() == Some(kind)) && is_family(known);
            !has_parts && (named.iter().any(same) || renamed())
        };
        let found = architectures().iter().find(exact).or_else(|| architectures().iter().find(spelt));
        found.ok_or_else(|| {
            let class = named.into_iter().next();
            let asked = class.clone().or(model_type).unwrap_or_default();
            let nearest = misspelt(&asked)
                .or_else(|| missing::alike(fields).map(class_of))
                .or_else(|| types::nearest(&stem(&asked), families()).map(class_of));
            ConfigProblem::UnknownArchitecture {
                asked,
                nearest,
                missing: missing::parts(fields, nearest.is_some_and(|name| name.ends_with("ForConditionalGeneration"))),
            }
        })
    }
}

/// Ends of class names: the heads that a model is published with.
const HEADS: [&str; 9] = [
    "ForCausalLM",
    "LMHeadModel",
    "WithLMHeadModel",
    "ForConditionalGeneration",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForRewardModel",
    "Model",
];

/// A class name without its head, however it is spelt.
fn stem(class: &str) -> String {
    let bare = HEADS.iter().filter_map(|head| class.strip_suffix(head)).min_by_key(|bare| bare.len());
    bare.unwrap_or(class).chars().filter(|letter| *letter != '_').collect::<String>().to_lowercase()
}

/// The head that the class a file names has on a decoder, which was read as the class `read`.
pub(super) fn decoder_head(fields: &Fields<'_>, read: &str) -> Result<DecoderHead, ConfigProblem> {
    let class = fields.text_list("architectures")?.into_iter().next().unwrap_or_default();
    let scores = |bias: bool| encoder::labels(fields).map(|count| DecoderHead::Scores { count, bias });
    match class.as_str() {
        class if class.ends_with("ForSequenceClassification") => scores(false),
        class if class.ends_with("ForTokenClassification") => scores(true),
        "InternLM2ForRewardModel" => Ok(DecoderHead::Scores { count: 1, bias: false }),
        class if class.ends_with("RewardModel") => {
            let expected = "a class whose head is known: `...ForSequenceClassification` or `InternLM2ForRewardModel`";
            Err(fields.wrong("architectures", format!("[\"{class}\"]"), expected))
        }
        class if class.ends_with("Model") && !class.ends_with("LMHeadModel") && class != read => {
            Ok(DecoderHead::Absent)
        }
        _ => Ok(DecoderHead::Tokens),
    }
}

/// The class of a family.
fn class_of(kind: &str) -> &'static str {
    architectures().iter().find(|known| known.model_type == kind).map_or("", |known| known.name)
}

/// The known class that differs from `asked` in a letter or two.
fn misspelt(asked: &str) -> Option<&'static str> {
    const MOST: usize = 2;
    let distance = |name: &&str| strsim::levenshtein(asked, name);
    supported().min_by_key(distance).filter(|name| distance(name) <= MOST)
}
