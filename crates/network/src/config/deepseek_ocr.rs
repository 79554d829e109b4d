//! Sizes of DeepSeek-OCR.

use types::DType;

use super::decoder::DecoderConfig;
use super::fields::Fields;
use super::{ConfigProblem, family};

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
    pub language: DecoderConfig,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Sizes of the SAM encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamConfig {
    /// Side of the images its position table was made for.
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
    /// Blocks that attend to the whole image.
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
    /// Side of the images its position table was made for.
    pub image_size: u64,
    /// Side of a patch of those.
    pub patch_size: u64,
    /// Inner width of the feed-forward.
    pub feed_forward: u64,
}

impl DeepseekOcrConfig {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let language_fields = fields.object("language_config")?;
        let language = family::described::read_as(&language_fields, "deepseek_ocr")?;
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
        let dtype = fields.dtype()?.or(language_fields.dtype()?).unwrap_or(DType::Bf16);
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
            layers: fields.layers("layers")?,
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
            return Err(fields.wrong("patch_size", config.patch_size, "16, which the token layout requires"));
        }
        Ok(config)
    }
}

impl ClipConfig {
    fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let width = fields.size("width")?;
        let config = Self {
            width,
            layers: fields.layers("layers")?,
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
