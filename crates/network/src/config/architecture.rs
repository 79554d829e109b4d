//! The table of architectures: the names each goes by, and how its configuration is read.

use std::sync::LazyLock;

use super::decoder::{DecoderHead, DeltaProjections, SelectionNorms};
use super::encoder_decoder::EncoderDecoderFamily;
use super::family::described::{self, Described};
use super::fields::Fields;
use super::{
    ConfigProblem, ModelConfig, decoder, deepseek_ocr, encoder, family, missing, modern_encoder, read_named,
    shallow_resnet, t5, vision,
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
    Decoder(&'static Described),
    Paired(&'static EncoderDecoderFamily),
    Encoding(&'static encoder::EncoderFamily),
    T5(&'static t5::T5Family),
}

/// Every architecture: those with readers of their own, then those that are rows of tables.
pub(super) fn architectures() -> &'static [Architecture] {
    static ALL: LazyLock<Vec<Architecture>> = LazyLock::new(|| {
        let decoders = described::rows().iter().filter(|row| row.reader != "nothing").map(|row| Architecture {
            name: row.family.names.causal,
            model_type: row.kind,
            read: Reader::Decoder(row),
        });
        let paired = EncoderDecoderFamily::all().iter().map(|family| Architecture {
            name: family.conditional,
            model_type: family.kind,
            read: Reader::Paired(family),
        });
        let encoders = encoder::EncoderFamily::all().iter().flat_map(|family| {
            let named = |name| Architecture { name, model_type: family.kind, read: Reader::Encoding(family) };
            family.classes.into_iter().map(named)
        });
        let t5 = t5::T5Family::all().iter().map(|family| Architecture {
            name: family.conditional,
            model_type: family.kind,
            read: Reader::T5(family),
        });
        ARCHITECTURES.iter().copied().chain(decoders).chain(encoders).chain(t5).chain(paired).collect()
    });
    &ALL
}

const ARCHITECTURES: &[Architecture] = &[
    by("DeepseekOCRForCausalLM", "deepseek_vl_v2", |fields| {
        deepseek_ocr::DeepseekOcrConfig::read(fields).map(|config| ModelConfig::DeepseekOcr(Box::new(config)))
    }),
    by("Qwen2VLForConditionalGeneration", "qwen2_vl", |fields| seeing(family::qwen_vl::read_2(fields))),
    by("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", |fields| seeing(family::qwen_vl::read_2_5(fields))),
    by("Qwen3VLForConditionalGeneration", "qwen3_vl", |fields| {
        seeing(family::qwen_vl::read_3(fields, ["qwen3_vl", "qwen3_vl_text"], &[8, 16, 24]))
    }),
    by("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", |fields| {
        seeing(family::qwen_vl::read_3(fields, ["qwen3_vl_moe", "qwen3_vl_moe_text"], &[8, 16, 24]))
    }),
    by("Qwen3_5ForConditionalGeneration", "qwen3_5", |fields| {
        seeing(family::qwen_vl::read_3(fields, ["qwen3_5", "qwen3_5_text"], &[]))
    }),
    by("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", |fields| {
        seeing(family::qwen_vl::read_3(fields, ["qwen3_5_moe", "qwen3_5_moe_text"], &[]))
    }),
    by("LlavaForConditionalGeneration", "llava", |fields| seeing(family::llava::read(fields))),
    by("ModernBertModel", "modernbert", modern),
    by("ModernBertForMaskedLM", "modernbert", modern),
    by("ModernBertForSequenceClassification", "modernbert", modern),
    by("ModernBertForTokenClassification", "modernbert", modern),
    by("ShallowResNet", "shallow_resnet", |fields| {
        shallow_resnet::ShallowResnetConfig::read(fields).map(ModelConfig::ShallowResnet)
    }),
];

/// Readers of families of decoders that are more than switches, as rows name them.
const READERS: &[(&str, ReadDecoder)] = &[
    ("bailing_hybrid", family::kimi::read_ling),
    ("bamba", family::state_space::read_bamba),
    ("deci", family::deci::read),
    ("deepseek_v4", family::deepseek_v4::read),
    ("falcon", family::falcon::read),
    ("falcon_h1", family::mixer::read_falcon_h1),
    ("falcon_mamba", |fields, row| family::state_space::read_mamba(fields, row, SelectionNorms::Bare)),
    ("gemma3n", family::gemma3n::read),
    ("gemma4", family::gemma4::read),
    ("gemma4_unified", family::gemma4::read_unified),
    ("granitemoehybrid", family::state_space::read_granite),
    ("jamba", family::state_space::read_jamba),
    ("kimi_linear", family::kimi::read_kimi),
    ("lfm2", family::mixer::read_lfm2),
    ("lfm2_moe", family::mixer::read_lfm2_moe),
    ("lfm3", family::mixer::read_lfm3),
    ("llama4", family::llama4::read),
    ("longcat_flash", family::kimi::read_longcat),
    ("mamba", |fields, row| family::state_space::read_mamba(fields, row, SelectionNorms::Absent)),
    ("mamba2", family::state_space::read_mamba2),
    ("mimo", family::mimo::read),
    ("mllama", family::mixer::read_mllama),
    ("nemotron_h", family::state_space::read_nemotron),
    ("olmo_hybrid", family::qwen_next::read_olmo),
    ("qwen3_5", |fields, row| family::qwen_next::read(fields, row, DeltaProjections::Four)),
    ("qwen3_next", |fields, row| family::qwen_next::read(fields, row, DeltaProjections::Two)),
    ("zamba2", family::state_space::read_zamba2),
];

type ReadDecoder = fn(&Fields<'_>, &'static Described) -> Result<decoder::DecoderConfig, ConfigProblem>;

/// Reads a decoder by the reader that its row names.
pub(super) fn read_decoder(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<decoder::DecoderConfig, ConfigProblem> {
    match READERS.iter().find(|(name, _)| *name == row.reader) {
        Some((_, read)) => read(fields, row),
        None => row.read(fields),
    }
}

pub(super) type ReadConfig = fn(&Fields<'_>) -> Result<ModelConfig, ConfigProblem>;

const fn by(name: &'static str, model_type: &'static str, read: ReadConfig) -> Architecture {
    Architecture { name, model_type, read: Reader::By(read) }
}

fn modern(fields: &Fields<'_>) -> Result<ModelConfig, ConfigProblem> {
    modern_encoder::ModernEncoderConfig::read(fields).map(|config| ModelConfig::ModernEncoder(Box::new(config)))
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
            Reader::Decoder(row) => read_decoder(fields, row).map(|config| ModelConfig::Decoder(Box::new(config))),
            Reader::Encoding(family) => {
                encoder::EncoderConfig::read(fields, family).map(|config| ModelConfig::Encoder(Box::new(config)))
            }
            Reader::T5(family) => t5::T5Config::read(fields, family).map(|config| ModelConfig::T5(Box::new(config))),
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
    let alike = supported().filter(|name| name.len().abs_diff(asked.len()) <= MOST);
    alike.min_by_key(distance).filter(|name| distance(name) <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_that_a_row_names_is_there() {
        for row in described::rows() {
            let own = READERS.iter().any(|(name, _)| *name == row.reader);
            assert!(own || ["switches", "nothing"].contains(&row.reader), "{}: {}", row.kind, row.reader);
        }
    }
}
