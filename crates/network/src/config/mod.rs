//! Readers of Hugging Face `config.json` files, one file per architecture, and the table that names them.

mod attention;
pub mod decoder;
pub mod deepseek_ocr;
pub mod encoder;
pub(crate) mod family;
mod feed_forward;
mod fields;
mod missing;
mod names;
mod python_json;
pub mod quantisation;
pub mod shallow_resnet;
pub mod vision;

use serde_json::Value;
use types::DType;

pub(crate) use family::Names;
use fields::Fields;
pub use fields::{ConfigError, ConfigProblem};
pub use python_json::without_infinities;

/// Sizes of any network this crate knows.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelConfig {
    /// SAM and CLIP in front of a DeepSeek-V2 decoder.
    DeepseekOcr(Box<deepseek_ocr::DeepseekOcrConfig>),
    /// A decoder of any family.
    Decoder(Box<decoder::DecoderConfig>),
    /// A vision encoder in front of a decoder.
    VisionLanguage(Box<vision::VisionLanguageConfig>),
    /// An encoder of text.
    Encoder(Box<encoder::EncoderConfig>),
    /// A small convolutional network.
    ShallowResnet(shallow_resnet::ShallowResnetConfig),
}

/// One architecture: the names it goes by and how its configuration is read.
struct Architecture {
    /// Entry of `architectures`.
    name: &'static str,
    /// `model_type`.
    model_type: &'static str,
    read: ReadConfig,
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        name: "DeepseekOCRForCausalLM",
        model_type: "deepseek_vl_v2",
        read: |fields| {
            deepseek_ocr::DeepseekOcrConfig::read(fields).map(|config| ModelConfig::DeepseekOcr(Box::new(config)))
        },
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
    decoder("GlmMoeDsaForCausalLM", "glm_moe_dsa", |fields| boxed(family::deepseek::read_glm(fields))),
    decoder("Phi3ForCausalLM", "phi3", |fields| boxed(family::phi::read(fields))),
    decoder("Gemma2ForCausalLM", "gemma2", |fields| boxed(family::gemma::read_gemma2(fields))),
    decoder("Gemma3ForCausalLM", "gemma3_text", |fields| boxed(family::gemma::read_gemma3(fields))),
    decoder("GptOssForCausalLM", "gpt_oss", |fields| boxed(family::gpt_oss::read(fields))),
    decoder("SeedOssForCausalLM", "seed_oss", |fields| boxed(family::seed_oss::read(fields))),
    decoder("GraniteForCausalLM", "granite", |fields| boxed(family::dense::read_granite(fields))),
    decoder("Olmo2ForCausalLM", "olmo2", |fields| boxed(family::dense::read_olmo2(fields))),
    decoder("Olmo3ForCausalLM", "olmo3", |fields| boxed(family::dense::read_olmo3(fields))),
    decoder("Exaone4ForCausalLM", "exaone4", |fields| boxed(family::dense::read_exaone4(fields))),
    decoder("SmolLM3ForCausalLM", "smollm3", |fields| boxed(family::dense::read_smollm3(fields))),
    decoder("CohereForCausalLM", "cohere", |fields| boxed(family::dense::read_cohere(fields))),
    decoder("Cohere2ForCausalLM", "cohere2", |fields| boxed(family::dense::read_cohere2(fields))),
    decoder("Ernie4_5ForCausalLM", "ernie4_5", |fields| boxed(family::dense::read_ernie(fields))),
    decoder("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", |fields| boxed(family::dense::read_hunyuan(fields))),
    decoder("GlmForCausalLM", "glm", |fields| boxed(family::dense::read_glm(fields))),
    decoder("Glm4ForCausalLM", "glm4", |fields| boxed(family::dense::read_glm4(fields))),
    decoder("MinistralForCausalLM", "ministral", |fields| boxed(family::dense::read_ministral(fields))),
    decoder("Ministral3ForCausalLM", "ministral3", |fields| boxed(family::dense::read_ministral3(fields))),
    decoder("ArceeForCausalLM", "arcee", |fields| boxed(family::dense::read_arcee(fields))),
    decoder("NemotronForCausalLM", "nemotron", |fields| boxed(family::dense::read_nemotron(fields))),
    decoder("GemmaForCausalLM", "gemma", |fields| boxed(family::dense::read_gemma(fields))),
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
    decoder("Starcoder2ForCausalLM", "starcoder2", |fields| boxed(family::classic::read_starcoder2(fields))),
    decoder("GPTNeoXForCausalLM", "gpt_neox", |fields| boxed(family::classic::read_neox(fields))),
    decoder("FalconForCausalLM", "falcon", |fields| boxed(family::classic::read_falcon(fields))),
    decoder("GPT2LMHeadModel", "gpt2", |fields| boxed(family::classic::read_gpt2(fields))),
    decoder("OPTForCausalLM", "opt", |fields| boxed(family::classic::read_opt(fields))),
    decoder("Qwen3NextForCausalLM", "qwen3_next", |fields| boxed(family::qwen_next::read_next(fields))),
    decoder("Qwen3_5ForCausalLM", "qwen3_5_text", |fields| boxed(family::qwen_next::read_dense(fields))),
    decoder("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", |fields| boxed(family::qwen_next::read_sparse(fields))),
    decoder("Llama4ForCausalLM", "llama4_text", |fields| boxed(family::llama4::read(fields))),
    decoder("Gemma3nForCausalLM", "gemma3n_text", |fields| boxed(family::gemma3n::read(fields))),
    decoder("Gemma4ForCausalLM", "gemma4_text", |fields| boxed(family::gemma4::read(fields))),
    decoder("NemotronHForCausalLM", "nemotron_h", |fields| boxed(family::state_space::read_nemotron(fields))),
    decoder("Mamba2ForCausalLM", "mamba2", |fields| boxed(family::state_space::read_mamba2(fields))),
    decoder("GraniteMoeHybridForCausalLM", "granitemoehybrid", |fields| {
        boxed(family::state_space::read_granite(fields))
    }),
    decoder("BambaForCausalLM", "bamba", |fields| boxed(family::state_space::read_bamba(fields))),
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
    encoder("BertModel", "bert", |fields| encoding(fields, &encoder::BERT)),
    encoder("BertForMaskedLM", "bert", |fields| encoding(fields, &encoder::BERT)),
    encoder("BertForSequenceClassification", "bert", |fields| encoding(fields, &encoder::BERT)),
    encoder("BertForTokenClassification", "bert", |fields| encoding(fields, &encoder::BERT)),
    encoder("RobertaModel", "roberta", |fields| encoding(fields, &encoder::ROBERTA)),
    encoder("RobertaForMaskedLM", "roberta", |fields| encoding(fields, &encoder::ROBERTA)),
    encoder("RobertaForSequenceClassification", "roberta", |fields| encoding(fields, &encoder::ROBERTA)),
    encoder("RobertaForTokenClassification", "roberta", |fields| encoding(fields, &encoder::ROBERTA)),
    encoder("XLMRobertaModel", "xlm-roberta", |fields| encoding(fields, &encoder::XLM_ROBERTA)),
    encoder("XLMRobertaForMaskedLM", "xlm-roberta", |fields| encoding(fields, &encoder::XLM_ROBERTA)),
    encoder("XLMRobertaForSequenceClassification", "xlm-roberta", |fields| encoding(fields, &encoder::XLM_ROBERTA)),
    encoder("XLMRobertaForTokenClassification", "xlm-roberta", |fields| encoding(fields, &encoder::XLM_ROBERTA)),
    Architecture {
        name: "ShallowResNet",
        model_type: "shallow_resnet",
        read: |fields| shallow_resnet::ShallowResnetConfig::read(fields).map(ModelConfig::ShallowResnet),
    },
];

type ReadConfig = fn(&Fields<'_>) -> Result<ModelConfig, ConfigProblem>;

const fn decoder(name: &'static str, model_type: &'static str, read: ReadConfig) -> Architecture {
    Architecture { name, model_type, read }
}

const fn encoder(name: &'static str, model_type: &'static str, read: ReadConfig) -> Architecture {
    Architecture { name, model_type, read }
}

fn encoding(fields: &Fields<'_>, family: &'static encoder::EncoderFamily) -> Result<ModelConfig, ConfigProblem> {
    encoder::EncoderConfig::read(fields, family).map(|config| ModelConfig::Encoder(Box::new(config)))
}

fn boxed(config: Result<decoder::DecoderConfig, ConfigProblem>) -> Result<ModelConfig, ConfigProblem> {
    config.map(|config| ModelConfig::Decoder(Box::new(config)))
}

fn seeing(config: Result<vision::VisionLanguageConfig, ConfigProblem>) -> Result<ModelConfig, ConfigProblem> {
    config.map(|config| ModelConfig::VisionLanguage(Box::new(config)))
}

/// The decoder of a model whose other parts are not known, or the problem of the whole where that is not known either.
fn text_only(fields: &Fields<'_>, problem: ConfigProblem) -> Result<ModelConfig, ConfigProblem> {
    let Some(text) = fields.optional_object("text_config")? else { return Err(problem) };
    let kind = text.optional_text("model_type")?;
    if !kind.is_some_and(|kind| ARCHITECTURES.iter().any(|known| known.is_family(&kind))) {
        return Err(problem);
    }
    let ModelConfig::Decoder(mut decoder) = read_named(&text, "")? else { return Err(problem) };
    decoder.tied_embeddings = fields.flag_or("tie_word_embeddings", decoder.tied_embeddings)?;
    decoder.dtype = fields.dtype()?.unwrap_or(decoder.dtype);
    let whole = fields.text_list("architectures")?.into_iter().next();
    decoder.part_of = match whole {
        None => fields.optional_text("model_type")?,
        whole => whole,
    };
    Ok(ModelConfig::Decoder(decoder))
}

/// Names of the architectures that can be read.
pub fn supported() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|architecture| architecture.name)
}

/// Families that can be read, by `model_type`.
pub fn families() -> impl Iterator<Item = &'static str> {
    let is_first = |at: usize, kind: &str| ARCHITECTURES[..at].iter().all(|earlier| earlier.model_type != kind);
    let rows = ARCHITECTURES.iter().enumerate();
    rows.filter(move |(at, row)| is_first(*at, row.model_type)).map(|(_, row)| row.model_type)
}

/// Reads a part of a file by its own `model_type`, or that of `default` where it has none.
fn read_named(fields: &Fields<'_>, default: &str) -> Result<ModelConfig, ConfigProblem> {
    let kind = fields.optional_text("model_type")?.unwrap_or_else(|| default.to_owned());
    let found = ARCHITECTURES.iter().find(|known| known.is_family(&kind));
    let known = || ARCHITECTURES.iter().map(|known| known.model_type);
    let architecture = found.ok_or_else(|| {
        fields.wrong("model_type", format!("\"{kind}\""), {
            format!("a supported family; the nearest is `{}`", nearest(&kind, known()))
        })
    })?;
    (architecture.read)(fields)
}

/// Most experts of all layers together: a network is built expert by expert. Four times those of Kimi-K2.
const MOST_EXPERTS: u64 = 100_000;

/// That layers and experts, each of a size that some network has, do not make a network of a size that none has.
fn bounded(decoder: &decoder::DecoderConfig) -> Result<(), ConfigProblem> {
    let experts = decoder.layers.iter().map(|layer| match layer.feed_forward {
        decoder::FeedForwardConfig::Mixture(mixture) => mixture.routing.experts,
        decoder::FeedForwardConfig::Beside(beside) => beside.mixture.routing.experts,
        _ => 0,
    });
    match experts.fold(0, u64::saturating_add) {
        experts if experts > MOST_EXPERTS => Err(ConfigProblem::Invalid {
            field: "num_hidden_layers".to_owned(),
            found: format!("{}, with {experts} experts in all layers together", decoder.layers.len()),
            expected: format!("at most {MOST_EXPERTS} experts"),
        }),
        _ => Ok(()),
    }
}

impl ModelConfig {
    /// Reads the text of a `config.json`; `file` is what errors call it.
    pub fn from_json(file: &str, text: &str) -> Result<Self, ConfigError> {
        let fail = |problem| ConfigError { file: file.to_owned(), problem };
        let value: Value = serde_json::from_str(&without_infinities(text)).map_err(|error| {
            fail(ConfigProblem::Syntax { line: error.line(), column: error.column(), message: plain(&error) })
        })?;
        let object = value.as_object().ok_or_else(|| fail(ConfigProblem::NotAnObject))?;
        let fields = Fields::new(object);
        let mut config = match Architecture::of(&fields) {
            Ok(architecture) => (architecture.read)(&fields).map_err(fail)?,
            Err(problem) => text_only(&fields, problem).map_err(fail)?,
        };
        let dtype = config.dtype();
        if let Some(decoder) = config.decoder_mut() {
            bounded(decoder).map_err(fail)?;
            decoder.quantisation = quantisation::Quantisation::read(&fields, dtype).map_err(fail)?;
        }
        Ok(config)
    }

    fn decoder_mut(&mut self) -> Option<&mut decoder::DecoderConfig> {
        match self {
            Self::DeepseekOcr(config) => Some(&mut config.language),
            Self::Decoder(config) => Some(config),
            Self::VisionLanguage(config) => Some(&mut config.language),
            Self::Encoder(_) | Self::ShallowResnet(_) => None,
        }
    }

    /// What a report says of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::DeepseekOcr(config) => {
                Facts { vision_backbone: Some("sam_vit_b + clip_vit_l"), ..Facts::of(&config.language) }
            }
            Self::Decoder(config) => Facts::of(config),
            Self::VisionLanguage(config) => Facts {
                class: config.names.causal,
                vision_backbone: Some(config.names.tower),
                ..Facts::of(&config.language)
            },
            Self::Encoder(config) => Facts {
                class: config.class(),
                width: config.width,
                intermediate: Some(config.inner),
                layers: config.layers,
                heads: Some(config.heads),
                vision_backbone: None,
                mixes_experts: false,
            },
            Self::ShallowResnet(config) => Facts {
                class: "ShallowResNet",
                width: config.channels,
                intermediate: None,
                layers: config.blocks,
                heads: None,
                vision_backbone: None,
                mixes_experts: false,
            },
        }
    }

    /// The decoder, where there is one.
    pub fn decoder(&self) -> Option<&decoder::DecoderConfig> {
        match self {
            Self::DeepseekOcr(config) => Some(&config.language),
            Self::Decoder(config) => Some(config),
            Self::VisionLanguage(config) => Some(&config.language),
            Self::Encoder(_) | Self::ShallowResnet(_) => None,
        }
    }

    /// How its checkpoint is quantised, where it is.
    pub fn quantisation(&self) -> Option<&quantisation::Quantisation> {
        self.decoder()?.quantisation.as_ref()
    }

    /// `model_type` of its family.
    pub fn family(&self) -> &'static str {
        let class = self.facts().class;
        ARCHITECTURES.iter().find(|known| known.name == class).map_or("", |known| known.model_type)
    }

    /// Tokens it knows; absent for networks that take none.
    pub fn vocabulary(&self) -> Option<u64> {
        match self {
            Self::DeepseekOcr(config) => Some(config.language.vocabulary),
            Self::Decoder(config) => Some(config.vocabulary),
            Self::VisionLanguage(config) => Some(config.language.vocabulary),
            Self::Encoder(config) => Some(config.vocabulary),
            Self::ShallowResnet(_) => None,
        }
    }

    /// Element type its weights are published in.
    pub fn dtype(&self) -> DType {
        match self {
            Self::DeepseekOcr(config) => config.dtype,
            Self::Decoder(config) => config.dtype,
            Self::VisionLanguage(config) => config.dtype,
            Self::Encoder(config) => config.dtype,
            Self::ShallowResnet(config) => config.dtype,
        }
    }
}

/// What a report says of a model apart from its modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Class of the published model.
    pub class: &'static str,
    /// Width of the hidden states.
    pub width: u64,
    /// Inner width of a dense feed-forward.
    pub intermediate: Option<u64>,
    /// Decoder layers, or blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: Option<u64>,
    /// Vision encoder.
    pub vision_backbone: Option<&'static str>,
    /// Whether layers mix experts.
    pub mixes_experts: bool,
}

impl Facts {
    fn of(config: &decoder::DecoderConfig) -> Self {
        Self {
            class: config.class(),
            width: config.width,
            intermediate: config.intermediate,
            layers: config.layers.len() as u64,
            heads: Some(config.heads),
            vision_backbone: None,
            mixes_experts: config.mixes_experts(),
        }
    }
}

impl Architecture {
    /// Whether files of that `model_type` are read so. Kimi-K2 has a name of its own and DeepSeek-V3's fields.
    fn is_family(&self, kind: &str) -> bool {
        self.model_type == kind || (kind == "kimi_k2" && self.model_type == "deepseek_v3")
    }

    /// By `architectures`, which names one class; by `model_type`, which names a family, only where that is absent.
    fn of(fields: &Fields<'_>) -> Result<&'static Self, ConfigProblem> {
        let named = fields.text_list("architectures")?;
        let model_type = fields.optional_text("model_type")?;
        if named.is_empty() && model_type.is_none() {
            return Err(ConfigProblem::Missing { field: "architectures".into(), expected: "a list of one class name" });
        }
        let found = ARCHITECTURES.iter().find(|known| {
            named.iter().any(|name| name == known.name)
                || (named.is_empty() && model_type.as_deref().is_some_and(|kind| known.is_family(kind)))
        });
        found.ok_or_else(|| {
            let class = named.into_iter().next();
            let class_of =
                |kind: &str| ARCHITECTURES.iter().find(|known| known.model_type == kind).map_or("", |known| known.name);
            // A misspelt name is the name; any other is known by what the model is built of.
            let spelt = match (&class, &model_type) {
                (Some(class), _) => nearest(class, supported()),
                (None, kind) => class_of(nearest(kind.as_deref().unwrap_or_default(), families())),
            };
            let is_misspelt = class.as_deref().is_some_and(|class| strsim::levenshtein(class, spelt) <= 2);
            let nearest = missing::alike(fields).filter(|_| !is_misspelt).map_or(spelt, class_of);
            ConfigProblem::UnknownArchitecture {
                asked: class.or(model_type).unwrap_or_default(),
                nearest: nearest.to_owned(),
                missing: missing::parts(fields, nearest.ends_with("ForConditionalGeneration")),
                known: families().collect::<Vec<_>>().join(", "),
            }
        })
    }
}

/// The known name most like `asked`.
fn nearest<'a>(asked: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known
        .max_by(|a, b| {
            let likeness = |name: &str| strsim::jaro_winkler(&asked.to_lowercase(), &name.to_lowercase());
            likeness(a).total_cmp(&likeness(b))
        })
        .unwrap_or_default()
}

/// The parser's message without the position, which is told apart.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        ModelConfig::from_json("config.json", text).unwrap_err().to_string()
    }

    #[test]
    fn truncated_json_names_file_line_and_column() {
        assert_eq!(problem("{\n \"a\": 1,"), "config.json:2:8: not valid JSON: EOF while parsing a value");
    }

    #[test]
    fn an_unknown_architecture_names_the_nearest_known_one() {
        let text = problem(r#"{"architectures": ["LamaForCausalLM"]}"#);
        assert!(text.contains("`LamaForCausalLM`") && text.contains("nearest is `LlamaForCausalLM`"), "{text}");
    }

    #[test]
    fn an_unknown_family_says_what_it_has_that_no_family_here_has() {
        let mpt = problem(r#"{"model_type": "mpt", "is_encoder_decoder": true, "alibi": false}"#);
        assert!(mpt.contains("`mpt`") && mpt.contains("a text encoder (`is_encoder_decoder`)"), "{mpt}");
        assert!(!mpt.contains("alibi"), "{mpt}");
        let next = problem(r#"{"model_type": "zamba2", "mamba_d_state": 4, "cross_attention_layers": [1]}"#);
        assert!(next.contains("nearest is `Bamba") && next.contains("cross-attention layers (`cross_att"), "{next}");
        let plain = problem(r#"{"model_type": "qwen9"}"#);
        assert!(plain.contains("it would need a reader of its fields"), "{plain}");
    }

    #[test]
    fn the_class_name_wins_over_the_family() {
        let text = problem(r#"{"architectures": ["QwenVL"], "model_type": "llama"}"#);
        assert!(text.contains("`QwenVL`"), "{text}");
    }

    #[test]
    fn sizes_that_would_fill_the_memory_are_refused_alone_and_multiplied() {
        let blocks = problem(
            r#"{"architectures": ["ShallowResNet"], "channels": 8, "blocks": 1000000000, "num_classes": 2, "image_size": 8}"#,
        );
        assert!(blocks.contains("`blocks` is 1000000000; expected at most 10000"), "{blocks}");
        let mixture = r#"{"architectures": ["MixtralForCausalLM"], "hidden_size": 64, "intermediate_size": 64,
            "num_hidden_layers": 200, "num_attention_heads": 4, "vocab_size": 100, "num_local_experts": 9984,
            "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "hidden_act": "silu"}"#;
        let experts = problem(mixture);
        assert!(experts.contains("1996800 experts") && experts.contains("at most 100000"), "{experts}");
        assert!(ModelConfig::from_json("config.json", &mixture.replace("9984", "384")).is_ok());
    }

    #[test]
    fn a_list_is_no_configuration() {
        assert_eq!(problem("[]"), "config.json: expected a JSON object at the top level");
    }
}
