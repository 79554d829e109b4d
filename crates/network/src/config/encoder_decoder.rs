//! An encoder of text or of thirty seconds of sound, and a decoder that attends to it: BART and what is named after it, and
//! Whisper. A family is a row of data.

use types::{ActivationKind, DType};

use super::family::activation_named;
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};
use super::t5::unquantised;

/// Sizes of an encoder and a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderDecoderConfig {
    /// Names of its classes, and which parts it has.
    pub(crate) family: &'static EncoderDecoderFamily,
    /// Tokens the encoder reads, and tokens the decoder knows.
    pub(crate) vocabularies: [u64; 2],
    /// Whether one table serves the encoder and the decoder.
    pub(crate) shared_table: bool,
    /// Width of the hidden states.
    pub width: u64,
    /// Frequencies of a frame of sound; absent where the encoder reads text.
    pub frequencies: Option<u64>,
    /// Positions of the encoder: of sound each of two frames, of text the most there may be.
    pub source_positions: u64,
    /// Positions of the decoder at most.
    pub positions: u64,
    /// The encoder's layers.
    pub encoder: StackConfig,
    /// The decoder's layers.
    pub decoder: StackConfig,
    /// Nonlinearity of the feed-forwards.
    pub activation: ActivationKind,
    /// Factor on embeddings.
    pub(crate) embedding_scale: Option<f64>,
    /// Whether scores of tokens stand behind the decoder.
    pub(crate) has_head: bool,
    /// Whether the head shares the table of embeddings.
    pub tied_embeddings: bool,
    /// The decoder's first token.
    pub start_token: u64,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Layers of one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackConfig {
    /// How many.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
}

/// What models of one family are called, and which parts they have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncoderDecoderFamily {
    /// `model_type` of its files.
    pub(crate) kind: &'static str,
    /// Package that defines its classes.
    pub(crate) home: &'static str,
    /// The whole with its head, and without.
    pub(crate) conditional: &'static str,
    pub(crate) model: &'static str,
    /// Encoder and decoder, and a layer of each.
    pub(crate) stacks: [&'static str; 2],
    pub(crate) layers: [&'static str; 2],
    pub(crate) attention: &'static str,
    pub(crate) positions_class: &'static str,
    pub(crate) head: &'static str,
    /// Whether the encoder reads sound.
    pub(crate) of_sound: bool,
    /// Whether norms stand in front of the parts of a layer, instead of behind the sums.
    pub(crate) norm_before: bool,
    /// A norm behind the embeddings, and one behind all layers.
    pub(crate) embedding_norm: bool,
    pub(crate) final_norm: bool,
    pub(crate) positions: TablePositions,
    pub(crate) key_bias: bool,
    /// Which tables of embeddings there are.
    tables: Tables,
}

/// How positions are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TablePositions {
    /// A table, behind so many rows that no position uses.
    Table(u64),
    /// Waves that are computed.
    Computed,
}

/// Tables of embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tables {
    /// One for both.
    One,
    /// One for both, unless the file says otherwise.
    OneUnless(&'static str),
    /// One for each.
    Two,
}

macro_rules! family {
    ($kind:literal, $package:literal, $prefix:literal) => {
        EncoderDecoderFamily {
            kind: $kind,
            home: concat!("transformers.models.", $package, ".modeling_", $package),
            conditional: concat!($prefix, "ForConditionalGeneration"),
            model: concat!($prefix, "Model"),
            stacks: [concat!($prefix, "Encoder"), concat!($prefix, "Decoder")],
            layers: [concat!($prefix, "EncoderLayer"), concat!($prefix, "DecoderLayer")],
            attention: concat!($prefix, "Attention"),
            positions_class: concat!($prefix, "LearnedPositionalEmbedding"),
            head: "lm_head",
            of_sound: false,
            norm_before: false,
            embedding_norm: true,
            final_norm: false,
            positions: TablePositions::Table(2),
            key_bias: true,
            tables: Tables::One,
        }
    };
}

/// Every family.
pub(crate) static FAMILIES: &[EncoderDecoderFamily] = &[
    EncoderDecoderFamily {
        positions_class: "WhisperPositionalEmbedding",
        head: "proj_out",
        of_sound: true,
        norm_before: true,
        embedding_norm: false,
        final_norm: true,
        positions: TablePositions::Table(0),
        key_bias: false,
        ..family!("whisper", "whisper", "Whisper")
    },
    family!("bart", "bart", "Bart"),
    EncoderDecoderFamily { norm_before: true, final_norm: true, ..family!("mbart", "mbart", "MBart") },
    family!("plbart", "plbart", "PLBart"),
    family!("mvp", "mvp", "Mvp"),
    EncoderDecoderFamily {
        positions_class: "PegasusSinusoidalPositionalEmbedding",
        norm_before: true,
        embedding_norm: false,
        final_norm: true,
        positions: TablePositions::Table(0),
        ..family!("pegasus", "pegasus", "Pegasus")
    },
    EncoderDecoderFamily {
        conditional: "MarianMTModel",
        positions_class: "MarianSinusoidalPositionalEmbedding",
        embedding_norm: false,
        positions: TablePositions::Table(0),
        tables: Tables::OneUnless("share_encoder_decoder_embeddings"),
        ..family!("marian", "marian", "Marian")
    },
    EncoderDecoderFamily {
        norm_before: true,
        embedding_norm: false,
        final_norm: true,
        positions: TablePositions::Computed,
        ..family!("m2m_100", "m2m_100", "M2M100")
    },
    EncoderDecoderFamily {
        norm_before: true,
        embedding_norm: false,
        final_norm: true,
        positions: TablePositions::Table(0),
        ..family!("blenderbot", "blenderbot", "Blenderbot")
    },
    EncoderDecoderFamily {
        positions: TablePositions::Table(0),
        ..family!("blenderbot-small", "blenderbot_small", "BlenderbotSmall")
    },
    EncoderDecoderFamily {
        model: "FSMTModel",
        layers: ["EncoderLayer", "DecoderLayer"],
        attention: "Attention",
        positions_class: "SinusoidalPositionalEmbedding",
        head: "output_projection",
        embedding_norm: false,
        tables: Tables::Two,
        ..family!("fsmt", "fsmt", "FSMT")
    },
];

impl EncoderDecoderFamily {
    /// Reads a model of it.
    pub(crate) fn read(&'static self, fields: &Fields<'_>) -> Result<EncoderDecoderConfig, ConfigProblem> {
        unquantised(fields)?;
        let has_head = head_of(fields, self)?;
        if fields.flag_or("use_prompt", false)? {
            return Err(fields.wrong("use_prompt", true, "false: learned prompts are not modelled"));
        }
        let width = fields.size("d_model")?;
        let stack = |layers, heads, inner| {
            let stack =
                StackConfig { layers: fields.size(layers)?, heads: fields.size(heads)?, inner: fields.size(inner)? };
            fields.at_most(layers, stack.layers, MOST_LAYERS)?;
            fields.divides(("d_model", width), (heads, stack.heads))?;
            Ok(stack)
        };
        let encoder = stack("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim")?;
        let decoder = stack("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim")?;
        let activation = fields.optional_text("activation_function")?.unwrap_or_else(|| "gelu".to_owned());
        let known = activation_named(&activation);
        let [source_positions, positions] = match self.of_sound {
            true => [fields.size("max_source_positions")?, fields.size("max_target_positions")?],
            false => [fields.size("max_position_embeddings")?; 2],
        };
        let (shared_table, vocabularies) = match self.tables {
            Tables::One => (true, [fields.size("vocab_size")?; 2]),
            Tables::OneUnless(flag) if fields.flag_or(flag, true)? => (true, [fields.size("vocab_size")?; 2]),
            Tables::OneUnless(_) => {
                let source = fields.size("vocab_size")?;
                (false, [source, fields.optional_size("decoder_vocab_size")?.unwrap_or(source)])
            }
            Tables::Two => (false, [fields.size("src_vocab_size")?, fields.size("tgt_vocab_size")?]),
        };
        let scaled = fields.flag_or("scale_embedding", false)?;
        Ok(EncoderDecoderConfig {
            family: self,
            vocabularies,
            shared_table,
            width,
            frequencies: self.of_sound.then(|| fields.size("num_mel_bins")).transpose()?,
            source_positions,
            positions,
            encoder,
            decoder,
            activation: known.ok_or_else(|| fields.wrong("activation_function", activation, "gelu, relu or silu"))?,
            embedding_scale: scaled.then(|| (width as f64).sqrt()),
            has_head,
            tied_embeddings: fields.ties(true)?,
            // Where the file leaves it to whoever generates, any token costs the same.
            start_token: fields.count_or("decoder_start_token_id", 0)?,
            dtype: fields.dtype_or(DType::Fp32)?,
        })
    }
}

/// Whether the class that a file names has scores of tokens behind its decoder; heads of other kinds run the decoder over the
/// whole text instead of from one token.
fn head_of(fields: &Fields<'_>, family: &EncoderDecoderFamily) -> Result<bool, ConfigProblem> {
    match fields.text_list("architectures")?.into_iter().next() {
        None => Ok(true),
        Some(class) if class == family.conditional => Ok(true),
        Some(class) if class == family.model => Ok(false),
        Some(class) => {
            let expected =
                format!("`{}` or `{}`: other heads of this family are not modelled", family.conditional, family.model);
            Err(fields.wrong("architectures", format!("[\"{class}\"]"), expected))
        }
    }
}

impl EncoderDecoderConfig {
    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        if self.has_head { self.family.conditional } else { self.family.model }
    }

    /// Tokens the decoder knows.
    pub fn vocabulary(&self) -> u64 {
        self.vocabularies[1]
    }
}

#[cfg(test)]
mod tests {
    use crate::Model;
    use crate::config::ModelConfig;

    fn parameters(text: &str) -> Result<u64, String> {
        let config = ModelConfig::from_json("config.json", text).map_err(|error| error.to_string())?;
        Ok(Model::new(&config).blueprint().parameters_under(""))
    }

    #[test]
    fn tables_that_are_not_shared_are_counted_each_in_its_own_vocabulary() {
        let marian = |shared: bool| {
            parameters(&format!(
                r#"{{"model_type": "marian", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 100,
                    "decoder_vocab_size": 90, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                    "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "share_encoder_decoder_embeddings": {shared}}}"#
            ))
            .unwrap()
        };
        assert_eq!(marian(false) - marian(true), 90 * 64);
    }

    #[test]
    fn a_head_that_runs_the_decoder_over_the_whole_text_is_refused_by_name() {
        let error =
            parameters(r#"{"architectures": ["BartForSequenceClassification"], "model_type": "bart", "d_model": 64}"#);
        assert!(error.as_ref().is_err_and(|text| text.contains("`BartForConditionalGeneration`")), "{error:?}");
    }
}
