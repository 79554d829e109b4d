//! Sizes of DeepSeek-OCR.

use types::DType;

use super::ConfigProblem;
use super::fields::Fields;

/// The whole model.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepseekOcrConfig {
    /// The SAM encoder.
    pub sam: SamConfig,
    /// The CLIP encoder.
    pub clip: ClipConfig,
    /// Features the projector takes.
    pub projector_inputs: u64,
    /// The decoder.
    pub language: LanguageConfig,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Sizes of the SAM encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamConfig {
    /// Side of the pictures its position table was made for.
    pub image_size: u64,
    /// Side of a patch.
    pub patch_size: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward, as a multiple of the width.
    pub mlp_ratio: u64,
    /// Side of an attention window.
    pub window_size: u64,
    /// Blocks that attend to the whole picture.
    pub global_attn_indexes: Vec<u64>,
    /// Channels behind the neck.
    pub out_channels: u64,
    /// Channels behind each downsampling convolution.
    pub downsample_channels: [u64; 2],
}

/// Sizes of the CLIP encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipConfig {
    /// Width of the hidden states.
    pub width: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Side of the pictures its position table was made for.
    pub image_size: u64,
    /// Side of a patch of those.
    pub patch_size: u64,
    /// Inner width of the feed-forward.
    pub feed_forward: u64,
}

/// Sizes of the decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageConfig {
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Layers.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Key-value heads.
    pub key_value_heads: u64,
    /// Inner width of a dense layer.
    pub intermediate: u64,
    /// Inner width of one expert.
    pub expert_intermediate: u64,
    /// Routed experts.
    pub experts: u64,
    /// Experts each token goes to.
    pub experts_per_token: u64,
    /// Experts every token goes through.
    pub shared_experts: u64,
    /// First layer that mixes experts.
    pub first_mixture_layer: u64,
    /// Whether chosen scores are scaled to sum to one.
    pub normalise_scores: bool,
    /// Factor on the routed output.
    pub routed_scale: f64,
    /// Added to the mean square in norms.
    pub epsilon: f64,
    /// Base of the rotary angles.
    pub theta: f64,
}

impl DeepseekOcrConfig {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let language_fields = fields.object("language_config")?;
        let language = LanguageConfig::read(&language_fields)?;
        let widths = fields.object("vision_config")?.object("width")?;
        let sam = SamConfig::read(&widths.object("sam_vit_b")?)?;
        let clip = ClipConfig::read(&widths.object("clip-l-14-224")?)?;
        let projector = fields.object("projector_config")?;
        if let Some(kind) = projector.optional_text("projector_type")?.filter(|kind| kind != "linear") {
            return Err(projector.wrong("projector_type", format!("\"{kind}\""), "\"linear\""));
        }
        let projector_inputs = projector.size("input_dim")?;
        let features = clip.width + sam.downsample_channels[1];
        if projector_inputs != features {
            let expected = format!("{features}, the widths of CLIP and of SAM's last convolution together");
            return Err(projector.wrong("input_dim", projector_inputs, expected));
        }
        if clip.width != sam.downsample_channels[1] {
            let expected = format!("{}, the channels of SAM's last convolution", sam.downsample_channels[1]);
            return Err(widths.object("clip-l-14-224")?.wrong("width", clip.width, expected));
        }
        let outputs = projector.size("n_embed")?;
        if outputs != language.width {
            let expected = format!("{}, the hidden size of the decoder", language.width);
            return Err(projector.wrong("n_embed", outputs, expected));
        }
        // What Hugging Face takes where a configuration does not say.
        let dtype = fields.dtype()?.or(language_fields.dtype()?).unwrap_or(DType::Fp32);
        Ok(Self { sam, clip, projector_inputs, language, dtype })
    }
}

impl SamConfig {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let downsample = fields.counts("downsample_channels")?;
        let downsample_channels = <[u64; 2]>::try_from(downsample.as_slice())
            .ok()
            .filter(|channels| channels.iter().all(|count| *count > 0))
            .ok_or_else(|| {
                fields.wrong("downsample_channels", format!("{downsample:?}"), "two positive channel counts")
            })?;
        // What the published code fixes and the published config therefore leaves out.
        let config = Self {
            image_size: fields.size_or("image_size", 1024)?,
            patch_size: fields.size_or("patch_size", 16)?,
            width: fields.size("width")?,
            layers: fields.size("layers")?,
            heads: fields.size("heads")?,
            mlp_ratio: fields.size_or("mlp_ratio", 4)?,
            window_size: fields.size_or("window_size", 14)?,
            global_attn_indexes: fields.counts("global_attn_indexes")?,
            out_channels: fields.size_or("out_chans", 256)?,
            downsample_channels,
        };
        fields.divides(("width", config.width), ("heads", config.heads))?;
        fields.divides(("image_size", config.image_size), ("patch_size", config.patch_size))?;
        if config.patch_size != 16 {
            return Err(fields.wrong("patch_size", config.patch_size, "16, which the token layout rests on"));
        }
        Ok(config)
    }
}

impl ClipConfig {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let width = fields.size("width")?;
        let config = Self {
            width,
            layers: fields.size("layers")?,
            heads: fields.size("heads")?,
            image_size: fields.size_or("image_size", 224)?,
            patch_size: fields.size_or("patch_size", 14)?,
            feed_forward: fields.size_or("ffn_hidden_size", 4 * width)?,
        };
        fields.divides(("width", config.width), ("heads", config.heads))?;
        fields.divides(("image_size", config.image_size), ("patch_size", config.patch_size))?;
        Ok(config)
    }
}

impl LanguageConfig {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        if fields.flag_or("use_mla", false)? {
            return Err(fields.wrong("use_mla", true, "false: latent attention is not part of DeepSeek-OCR"));
        }
        let heads = fields.size("num_attention_heads")?;
        let config = Self {
            vocabulary: fields.size("vocab_size")?,
            width: fields.size("hidden_size")?,
            layers: fields.size("num_hidden_layers")?,
            heads,
            key_value_heads: fields.size_or("num_key_value_heads", heads)?,
            intermediate: fields.size("intermediate_size")?,
            expert_intermediate: fields.size("moe_intermediate_size")?,
            experts: fields.size("n_routed_experts")?,
            experts_per_token: fields.size("num_experts_per_tok")?,
            shared_experts: fields.count_or("n_shared_experts", 0)?,
            first_mixture_layer: fields.count_or("first_k_dense_replace", 0)?,
            normalise_scores: fields.flag_or("norm_topk_prob", false)?,
            routed_scale: fields.number_or("routed_scaling_factor", 1.0)?,
            epsilon: fields.number_or("rms_norm_eps", 1e-6)?,
            theta: fields.number_or("rope_theta", 10_000.0)?,
        };
        fields.divides(("hidden_size", config.width), ("num_attention_heads", heads))?;
        fields.divides(("num_attention_heads", heads), ("num_key_value_heads", config.key_value_heads))?;
        if config.experts_per_token > config.experts {
            let expected = format!("at most `n_routed_experts` ({})", config.experts);
            return Err(fields.wrong("num_experts_per_tok", config.experts_per_token, expected));
        }
        Ok(config)
    }
}
