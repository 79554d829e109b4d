//! Readers of Hugging Face `config.json` files, one file per architecture.

mod architecture;
mod attention;
mod class_defaults;
pub mod decoder;
pub mod deepseek_ocr;
pub mod encoder;
pub mod encoder_decoder;
pub(crate) mod family;
mod feed_forward;
mod fields;
mod missing;
pub mod modern_encoder;
mod names;
mod python_json;
pub mod quantisation;
pub mod shallow_resnet;
pub mod t5;
mod table;
pub mod vision;

use std::collections::BTreeMap;

use serde_json::Value;
use types::DType;

use architecture::{Architecture, architectures, text_only};
pub use architecture::{families, supported};
pub(crate) use family::Names;
use fields::Fields;
pub use fields::{ConfigError, ConfigProblem};
pub use python_json::without_infinities;
pub(crate) use table::Row;

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
    /// An encoder of text with rotary positions.
    ModernEncoder(Box<modern_encoder::ModernEncoderConfig>),
    /// An encoder of text and a decoder.
    T5(Box<t5::T5Config>),
    /// An encoder of sound and a decoder.
    EncoderDecoder(Box<encoder_decoder::EncoderDecoderConfig>),
    /// A small convolutional network.
    ShallowResnet(shallow_resnet::ShallowResnetConfig),
}

/// Every table of families, with the part of `classes.txt` that defines their classes.
pub(crate) fn tables() -> Vec<(Vec<&'static Row>, &'static str)> {
    let (flat, plain): (Vec<&Row>, Vec<&Row>) = encoder::ROWS.iter().partition(|row| row.get("flat.list") != Some(""));
    vec![
        (family::described::ROWS.iter().collect(), "decoder"),
        (vision::ROWS.iter().collect(), "seeing"),
        (plain, "encoder"),
        (flat, "flat-encoder"),
        (t5::ROWS.iter().collect(), "t5"),
        (encoder_decoder::ROWS.iter().collect(), "encoder-decoder"),
    ]
}

/// Reads a part of a file by its own `model_type`, or that of `default` where it has none.
fn read_named(fields: &Fields<'_>, default: &str) -> Result<ModelConfig, ConfigProblem> {
    let kind = fields.kind().unwrap_or(default);
    let found = architectures().iter().find(|known| known.is_family(kind));
    let architecture = found.ok_or_else(|| {
        let like = types::nearest(kind, families()).map(|known| format!("; the nearest is `{known}`"));
        let expected = format!("a supported family{}", like.unwrap_or_default());
        fields.wrong("model_type", format!("\"{kind}\""), expected)
    })?;
    architecture.read(&fields.clone().of_class(architecture.model_type))
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
            found: format!("{}, with {experts} experts in total over all layers", decoder.layers.len()),
            expected: format!("at most {MOST_EXPERTS} experts"),
        }),
        _ => Ok(()),
    }
}

/// A configuration, and what its file leaves to the published class.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFile {
    /// The configuration.
    pub config: ModelConfig,
    /// Sizes that the file does not state and the class has: their paths and values.
    pub assumed: BTreeMap<String, String>,
}

impl ConfigFile {
    /// Reads the text of a `config.json`; `file` is what errors call it.
    pub fn from_json(file: &str, text: &str) -> Result<Self, ConfigError> {
        let fail = |problem| ConfigError { file: file.to_owned(), problem };
        if text.trim().is_empty() {
            return Err(fail(ConfigProblem::Empty));
        }
        let value: Value = serde_json::from_str(&without_infinities(text)).map_err(|error| {
            fail(ConfigProblem::Syntax { line: error.line(), column: error.column(), message: plain(&error) })
        })?;
        let object = value.as_object().ok_or_else(|| fail(ConfigProblem::NotAnObject))?;
        Self::read(Fields::new(object)).map_err(fail)
    }

    fn read(fields: Fields<'_>) -> Result<Self, ConfigProblem> {
        let (fields, mut config) = match Architecture::of(&fields) {
            Ok(architecture) => {
                let fields = fields.of_class(architecture.model_type);
                fields.states_a_width()?;
                let read = match architecture.read(&fields) {
                    // Pixtral is LLaVA's class with an encoder of its own.
                    Err(problem) if family::llava::has_unknown_tower(&fields) => text_only(&fields, problem)?,
                    read => read?,
                };
                (fields, read)
            }
            Err(problem @ ConfigProblem::Missing { .. }) => return Err(problem),
            Err(problem) => {
                let read = text_only(&fields, problem)?;
                (fields, read)
            }
        };
        let dtype = config.dtype();
        if let ModelConfig::Decoder(decoder) = &mut config
            && decoder.part_of.is_none()
        {
            decoder.head = architecture::decoder_head(&fields, decoder.class())?;
        }
        if let ModelConfig::VisionLanguage(seeing) = &config
            && architecture::decoder_head(&fields, seeing.family.causal)? != decoder::DecoderHead::Tokens
        {
            let found = format!("{:?}", fields.text_list("architectures")?);
            let expected = format!("`{}`: other heads behind images are not modelled", seeing.family.causal);
            return Err(fields.wrong("architectures", found, expected));
        }
        if let Some(decoder) = config.decoder_mut() {
            bounded(decoder)?;
            decoder.quantisation = quantisation::Quantisation::read(&fields, dtype)?;
        } else if let ModelConfig::Encoder(encoder) = &mut config {
            encoder.quantisation = quantisation::Quantisation::read(&fields, dtype)?;
        } else {
            t5::unquantised(&fields)?;
        }
        Ok(Self { config, assumed: fields.assumed() })
    }
}

impl ModelConfig {
    /// Reads the text of a `config.json`; `file` is what errors call it.
    pub fn from_json(file: &str, text: &str) -> Result<Self, ConfigError> {
        ConfigFile::from_json(file, text).map(|file| file.config)
    }

    /// The same, kept as a checkpoint says.
    pub fn stored_as(mut self, quantisation: quantisation::Quantisation) -> Self {
        if let Some(decoder) = self.decoder_mut() {
            decoder.quantisation = Some(quantisation);
        }
        self
    }

    fn decoder_mut(&mut self) -> Option<&mut decoder::DecoderConfig> {
        match self {
            Self::DeepseekOcr(config) => Some(&mut config.language),
            Self::Decoder(config) => Some(config),
            Self::VisionLanguage(config) => Some(&mut config.language),
            _ => None,
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
                class: config.family.causal,
                vision_backbone: Some(config.family.tower),
                ..Facts::of(&config.language)
            },
            Self::Encoder(config) => Facts {
                class: config.class(),
                width: config.width,
                intermediate: Some(config.inner),
                layers: config.layers,
                heads: Some(config.heads),
                ..Facts::default()
            },
            Self::ModernEncoder(config) => Facts {
                class: config.class(),
                width: config.width,
                intermediate: Some(config.inner),
                layers: config.windows.len() as u64,
                heads: Some(config.heads),
                ..Facts::default()
            },
            Self::T5(config) => Facts {
                class: config.class(),
                width: config.width,
                intermediate: Some(config.inner),
                layers: config.encoder_layers + config.decoder_layers,
                heads: Some(config.heads),
                ..Facts::default()
            },
            Self::EncoderDecoder(config) => Facts {
                class: config.class(),
                width: config.width,
                intermediate: Some(config.decoder.inner),
                layers: config.encoder.layers + config.decoder.layers,
                heads: Some(config.decoder.heads),
                ..Facts::default()
            },
            Self::ShallowResnet(config) => {
                Facts { class: "ShallowResNet", width: config.channels, layers: config.blocks, ..Facts::default() }
            }
        }
    }

    /// The decoder, where there is one.
    pub fn decoder(&self) -> Option<&decoder::DecoderConfig> {
        match self {
            Self::DeepseekOcr(config) => Some(&config.language),
            Self::Decoder(config) => Some(config),
            Self::VisionLanguage(config) => Some(&config.language),
            _ => None,
        }
    }

    /// How its checkpoint is quantised, where it is.
    pub fn quantisation(&self) -> Option<&quantisation::Quantisation> {
        match self {
            Self::Encoder(config) => config.quantisation.as_ref(),
            _ => self.decoder()?.quantisation.as_ref(),
        }
    }

    /// `model_type` of its family.
    pub fn family(&self) -> &'static str {
        let class = self.facts().class;
        architectures().iter().find(|known| known.name == class).map_or("", |known| known.model_type)
    }

    /// Tokens it knows; absent for networks that take none.
    pub fn vocabulary(&self) -> Option<u64> {
        match self {
            Self::DeepseekOcr(_) | Self::Decoder(_) | Self::VisionLanguage(_) => Some(self.decoder()?.vocabulary),
            Self::Encoder(config) => Some(config.vocabulary),
            Self::ModernEncoder(config) => Some(config.vocabulary),
            Self::T5(config) => Some(config.vocabulary),
            Self::EncoderDecoder(config) => Some(config.vocabulary()),
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
            Self::ModernEncoder(config) => config.dtype,
            Self::T5(config) => config.dtype,
            Self::EncoderDecoder(config) => config.dtype,
            Self::ShallowResnet(config) => config.dtype,
        }
    }
}

/// What a report says of a model apart from its modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Class of the published model.
    pub class: &'static str,
    /// Width of the hidden states.
    pub width: u64,
    /// Inner width of a dense feed-forward.
    pub intermediate: Option<u64>,
    /// Layers of encoder and decoder, or blocks.
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
        assert_eq!(problem(" \n"), "config.json: the file is empty");
    }

    #[test]
    fn an_unknown_architecture_names_the_nearest_known_one() {
        let text = problem(r#"{"architectures": ["LamaForCausalLM"]}"#);
        assert!(text.contains("`LamaForCausalLM`") && text.contains("nearest is `LlamaForCausalLM`"), "{text}");
    }

    #[test]
    fn an_unknown_family_says_what_it_has_that_no_family_here_has() {
        let prophet = problem(r#"{"model_type": "prophetnet", "is_encoder_decoder": true, "alibi": false}"#);
        assert!(prophet.contains("`prophetnet`") && prophet.contains("a text encoder (`is_encod"), "{prophet}");
        assert!(!prophet.contains("alibi"), "{prophet}");
        let next = problem(r#"{"model_type": "samba", "mamba_d_state": 4, "cross_attention_layers": [1]}"#);
        assert!(next.contains("nearest is `Bamba") && next.contains("cross-attention layers (`cross_att"), "{next}");
        let plain = problem(r#"{"model_type": "qwen9"}"#);
        assert_eq!(plain, "config.json: architecture `qwen9` is not supported; the nearest is `Qwen2ForCausalLM`");
        let other = problem(r#"{"model_type": "nosuchthing"}"#);
        assert_eq!(other, "config.json: architecture `nosuchthing` is not supported");
    }

    #[test]
    fn the_decoder_of_a_model_whose_other_parts_are_unknown_is_found_wherever_it_is() {
        let text = |kind: &str| {
            format!(
                r#"{{"model_type": "{kind}", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "moe_intermediate_size": 32,
                    "num_experts": 4, "num_experts_per_tok": 2}}"#
            )
        };
        for (whole, class) in [
            (format!(r#"{{"model_type": "glm4v", "text_config": {}}}"#, text("glm4v_text")), "Glm4ForCausalLM"),
            (format!(r#"{{"model_type": "internvl_chat", "llm_config": {}}}"#, text("qwen2")), "Qwen2ForCausalLM"),
            (
                format!(
                    r#"{{"model_type": "llava", "vision_config": {{"model_type": "pixtral"}}, "text_config": {}}}"#,
                    text("mistral")
                ),
                "MistralForCausalLM",
            ),
            (
                format!(
                    r#"{{"model_type": "qwen3_omni_moe", "thinker_config": {{"text_config": {}}}}}"#,
                    text("qwen3_omni_moe_text")
                ),
                "Qwen3MoeForCausalLM",
            ),
        ] {
            let config = ModelConfig::from_json("config.json", &whole).unwrap();
            assert_eq!(config.facts().class, class);
            assert!(config.decoder().unwrap().part_of.is_some(), "{whole}");
        }
    }

    #[test]
    fn a_part_without_a_name_of_its_own_is_of_the_class_that_the_whole_has_there() {
        let text = r#""text_config": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100}"#;
        let vision = r#""vision_config": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
            "num_attention_heads": 2, "image_size": 28, "patch_size": 14}"#;
        let llava = file(&format!(r#"{{"model_type": "llava", {text}, {vision}}}"#));
        assert_eq!(llava.config.decoder().unwrap().class(), "LlamaForCausalLM");
        let gemma = file(&format!(r#"{{"model_type": "gemma3", {text}, {vision}}}"#));
        assert_eq!(gemma.config.decoder().unwrap().class(), "Gemma3ForCausalLM");
        // Older files of Qwen2.5-VL call the encoder by the name of the whole.
        let vision = r#""vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 32, "out_hidden_size": 64, "num_heads": 2}"#;
        let qwen = file(&format!(r#"{{"model_type": "qwen2_5_vl", {text}, {vision}}}"#));
        assert_eq!(qwen.assumed.get("vision_config.depth").map(String::as_str), Some("32"));
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
        assert!(blocks.contains("`blocks` is 1000000000; expected at most 1024"), "{blocks}");
        let mixture = r#"{"architectures": ["MixtralForCausalLM"], "hidden_size": 64, "intermediate_size": 64,
            "num_hidden_layers": 200, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "num_local_experts": 9984,
            "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "hidden_act": "silu"}"#;
        let experts = problem(mixture);
        assert!(experts.contains("1996800 experts") && experts.contains("at most 100000"), "{experts}");
        assert!(ModelConfig::from_json("config.json", &mixture.replace("9984", "384")).is_ok());
    }

    fn file(text: &str) -> ConfigFile {
        ConfigFile::from_json("config.json", text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_a_published_file_leaves_to_its_class_is_taken_from_there_and_told() {
        // The decoder of Gemma 3 4B as published, which states neither heads nor vocabulary.
        let gemma = file(
            r#"{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": {
                "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, "vision_config": {
                "hidden_size": 1152, "intermediate_size": 4304, "model_type": "siglip_vision_model",
                "num_attention_heads": 16, "num_hidden_layers": 27}}"#,
        );
        let decoder = gemma.config.decoder().unwrap();
        assert_eq!((decoder.heads, decoder.vocabulary, decoder.dtype), (8, 262_208, DType::Bf16));
        assert_eq!(crate::Model::new(&gemma.config).blueprint().parameters_under(""), 3_880_263_168);
        assert_eq!(gemma.assumed.get("text_config.num_key_value_heads").map(String::as_str), Some("4"));
        let left_out = decoder.left_out.first().unwrap();
        // 27 layers of 4 * 1152^2 + 2 * 1152 * 4304.
        assert_eq!((left_out.field.as_str(), left_out.parameters), ("vision_config", Some(411_070_464)));
    }

    #[test]
    fn a_class_alone_is_no_model_and_a_missing_width_is_named() {
        for kind in ["bert", "llama", "t5", "whisper", "phi"] {
            let text = problem(&format!(r#"{{"model_type": "{kind}"}}"#));
            assert!(text.contains("`hidden_size` is missing"), "{kind}: {text}");
        }
    }

    #[test]
    fn another_spelling_is_the_same_class_and_another_head_is_another_number_of_parameters() {
        let sized = |class: &str| {
            file(&format!(
                r#"{{"architectures": ["{class}"], "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96,
                    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
                    "tie_word_embeddings": false, "num_experts_per_tok": 2, "num_local_experts": 4, "num_labels": 1}}"#
            ))
        };
        let parameters = |class: &str| crate::Model::new(&sized(class).config).blueprint().parameters_under("");
        for (other, class) in
            [("PhiMoEForCausalLM", "PhimoeForCausalLM"), ("Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM")]
        {
            assert_eq!(sized(other).config.facts().class, class);
        }
        let whole = parameters("Qwen2ForCausalLM");
        assert_eq!(whole - parameters("Qwen2Model"), 6_400);
        assert_eq!(whole - parameters("Qwen2ForSequenceClassification"), 6_400 - 64);
    }

    #[test]
    fn tied_embeddings_of_a_thinker_are_its_own() {
        let text = |tied: bool| {
            format!(
                r#"{{"model_type": "qwen2_5_omni", "thinker_config": {{"tie_word_embeddings": {tied}, "text_config": {{
                    "model_type": "qwen2_5_omni_text", "hidden_size": 64, "intermediate_size": 96,
                    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}}}}}}"#
            )
        };
        for tied in [true, false] {
            assert_eq!(file(&text(tied)).config.decoder().unwrap().tied_embeddings, tied);
        }
    }

    #[test]
    fn a_quantised_encoder_is_stored_as_its_file_says() {
        let bert = r#"{"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "quantization_config":
            {"quant_method": "bitsandbytes", "load_in_8bit": true}}"#;
        assert!(file(bert).config.quantisation().is_some());
        // RoBERTa's class has another vocabulary than BERT's.
        let roberta = file(r#"{"model_type": "roberta", "hidden_size": 64, "num_attention_heads": 4}"#);
        assert_eq!(roberta.config.vocabulary(), Some(50_265));
    }

    #[test]
    fn remote_classes_have_the_parameters_that_are_published() {
        let glm = file(
            r#"{"architectures": ["ChatGLMModel"], "model_type": "chatglm", "add_bias_linear": false,
                "add_qkv_bias": true, "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128,
                "layernorm_epsilon": 1e-05, "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 28,
                "padded_vocab_size": 65024, "torch_dtype": "float16"}"#,
        );
        assert_eq!(crate::Model::new(&glm.config).blueprint().parameters_under(""), 6_243_584_000);
    }

    #[test]
    fn a_list_is_no_configuration() {
        assert_eq!(problem("[]"), "config.json: expected a JSON object at the top level");
    }
}
