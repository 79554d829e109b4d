//! An encoder of text or of thirty seconds of sound, and a decoder that attends to it: BART and what is named after it, and
//! Whisper. A family is a row of data.

use std::sync::LazyLock;

use types::{ActivationKind, DType};

use super::family::activation_named;
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};
use super::t5::unquantised;
use super::table::{Columns, FromText, Row, columns, words};

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

columns! {
    /// What models of one family are called, and which parts they have.
    #[derive(PartialEq, Eq)]
    EncoderDecoderFamily in "" {
        /// The whole with its head, and without.
        conditional: &'static str,
        model: &'static str,
        /// Encoder and decoder, and a layer of each.
        stacks: [&'static str; 2],
        layers: [&'static str; 2],
        attention: &'static str,
        positions_class: &'static str,
        head: &'static str,
        /// Whether the encoder reads sound.
        of_sound: bool,
        /// Whether norms stand in front of the parts of a layer, instead of behind the sums.
        norm_before: bool,
        /// A norm behind the embeddings, and one behind all layers.
        embedding_norm: bool,
        final_norm: bool,
        positions: TablePositions,
        key_bias: bool,
        /// Which tables of embeddings there are.
        tables: Tables,
    } also {
        /// `model_type` of its files.
        kind: &'static str = Row::kind,
    }
}

words! {
    TablePositions: "table" => Self::Table(0), "table+2" => Self::Table(2), "computed" => Self::Computed;
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
pub(crate) enum Tables {
    /// One for both.
    One,
    /// One for both, unless the file says otherwise.
    OneUnless(&'static str),
    /// One for each.
    Two,
}

impl FromText for Tables {
    fn of(text: &'static str) -> Option<Self> {
        Some(match text {
            "one" => Self::One,
            "two" => Self::Two,
            flag => Self::OneUnless(flag),
        })
    }
}

/// Every family.
pub(super) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Row::all(include_str!("encoder_decoder.txt")));

impl EncoderDecoderFamily {
    pub(super) fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<EncoderDecoderFamily>> =
            LazyLock::new(|| ROWS.iter().filter_map(EncoderDecoderFamily::of).collect());
        &ALL
    }

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
    use super::*;
    use crate::Model;
    use crate::config::ModelConfig;

    fn parameters(text: &str) -> Result<u64, String> {
        let config = ModelConfig::from_json("config.json", text).map_err(|error| error.to_string())?;
        Ok(Model::new(&config).blueprint().parameters_under(""))
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let known = [EncoderDecoderFamily::KEYS, &["home", "package"]];
        for row in ROWS.iter() {
            assert_eq!(row.unknown(&known), [""; 0], "{}", row.kind);
            assert!(EncoderDecoderFamily::of(row).is_some(), "{}", row.kind);
        }
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
