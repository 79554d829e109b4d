//! ModernBERT: an encoder of text with rotary positions, gated feed-forwards, and windows in most layers.

use types::{ActivationKind, DType, RotaryForm};

use super::decoder::{NormConfig, NormKind, NormPlacement, RotaryConfig};
use super::encoder::{EncoderHead, class_of, labels};
use super::family::activation_named;
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};

/// Sizes of such an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct ModernEncoderConfig {
    /// What stands behind the encoder.
    pub head: EncoderHead,
    /// Whether a classifier takes the mean of all positions instead of the first one.
    pub pools_mean: bool,
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
    /// Its nonlinearity, and that of the head.
    pub activations: [ActivationKind; 2],
    /// Layers: the keys each position sees at most, half of them on each side; all where absent.
    pub windows: Vec<Option<u64>>,
    /// Positions of layers that see all keys, and of those that see a window.
    pub rotary: [RotaryConfig; 2],
    /// Its norms.
    pub norm: NormConfig,
    /// Biases of attention, of the feed-forward, of the head and of the scores of tokens.
    pub biases: [bool; 4],
    /// Whether the head over tokens shares the table of embeddings.
    pub tied_embeddings: bool,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Classes: encoder, for tokens, for classes, for classes of tokens.
pub(crate) const CLASSES: [&str; 4] = [
    "ModernBertModel",
    "ModernBertForMaskedLM",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
];

impl ModernEncoderConfig {
    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        let [encoder, tokens, classes, token_classes] = CLASSES;
        match self.head {
            EncoderHead::Pooled => encoder,
            EncoderHead::Tokens => tokens,
            EncoderHead::Classes(_) => classes,
            EncoderHead::TokenClasses(_) => token_classes,
        }
    }

    /// Reads one, whose class the file names.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let class = class_of(fields)?;
        let head = match class.and_then(|class| CLASSES.iter().position(|known| *known == class)) {
            None | Some(0) => EncoderHead::Pooled,
            Some(1) => EncoderHead::Tokens,
            Some(2) => EncoderHead::Classes(labels(fields)?),
            Some(_) => EncoderHead::TokenClasses(labels(fields)?),
        };
        let (width, heads) = (fields.size_or("hidden_size", 768)?, fields.size_or("num_attention_heads", 12)?);
        fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
        let layers = fields.at_most("num_hidden_layers", fields.size_or("num_hidden_layers", 22)?, MOST_LAYERS)?;
        let activation = |name: &str| {
            let text = fields.optional_text(name)?.unwrap_or_else(|| "gelu".to_owned());
            activation_named(&text).ok_or_else(|| fields.wrong(name, &text, "gelu, relu or silu"))
        };
        let pooling = fields.optional_text("classifier_pooling")?.unwrap_or_else(|| "cls".to_owned());
        if !["cls", "mean"].contains(&pooling.as_str()) {
            return Err(fields.wrong("classifier_pooling", pooling, "`cls` or `mean`"));
        }
        let theta = |kind: &str, older: &str, default: f64| -> Result<RotaryConfig, ConfigProblem> {
            let stated = match fields.optional_object("rope_parameters")? {
                None => None,
                Some(both) => both.optional_object(kind)?,
            };
            let older = fields.number_or(older, default)?;
            let theta = stated.map_or(Ok(older), |stated| stated.number_or("rope_theta", older))?;
            Ok(RotaryConfig { theta, width: width / heads, form: RotaryForm::default() })
        };
        Ok(Self {
            head,
            pools_mean: pooling == "mean",
            vocabulary: fields.size_or("vocab_size", 50368)?,
            width,
            heads,
            inner: fields.size_or("intermediate_size", 1152)?,
            activations: [activation("hidden_activation")?, activation("classifier_activation")?],
            windows: windows(fields, layers)?,
            rotary: [
                theta("full_attention", "global_rope_theta", 160_000.0)?,
                theta("sliding_attention", "local_rope_theta", 10_000.0)?,
            ],
            norm: NormConfig {
                epsilon: fields.number_or("norm_eps", 1e-5)?,
                kind: if fields.flag_or("norm_bias", false)? { NormKind::Layer } else { NormKind::LayerWithoutBias },
                placement: NormPlacement::Before,
            },
            biases: [
                fields.flag_or("attention_bias", false)?,
                fields.flag_or("mlp_bias", false)?,
                head != EncoderHead::Pooled && fields.flag_or("classifier_bias", false)?,
                head == EncoderHead::Tokens && fields.flag_or("decoder_bias", true)?,
            ],
            tied_embeddings: head == EncoderHead::Tokens && fields.ties(true)?,
            dtype: fields.dtype_or(DType::Fp32)?,
        })
    }
}

/// Windows of the layers: by `layer_types`, or all but every third one where that is absent.
fn windows(fields: &Fields<'_>, layers: u64) -> Result<Vec<Option<u64>>, ConfigProblem> {
    // As many positions on each side as half of the window, and the position itself.
    let window = fields.size_or("local_attention", 128)? / 2 * 2 + 1;
    let types = fields.text_list("layer_types")?;
    if types.is_empty() {
        let every = fields.size_or("global_attn_every_n_layers", 3)?;
        return Ok((0..layers).map(|index| (!index.is_multiple_of(every)).then_some(window)).collect());
    }
    if types.len() as u64 != layers {
        let expected = format!("{layers} entries, one for each layer");
        return Err(fields.wrong("layer_types", format!("a list of {}", types.len()), expected));
    }
    let kind = |text: &String| match text.as_str() {
        "sliding_attention" => Ok(Some(window)),
        "full_attention" => Ok(None),
        other => Err(fields.wrong("layer_types", format!("\"{other}\""), "`full_attention` or `sliding_attention`")),
    };
    types.iter().map(kind).collect()
}
