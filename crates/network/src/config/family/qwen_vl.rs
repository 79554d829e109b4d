//! Qwen2-VL, Qwen2.5-VL and Qwen3-VL: Qwen's decoders behind an encoder for images of any size.

use types::{ActivationKind, DType, RotaryLayout};

use super::described::{read_as, row};
use super::qwen_next;
use super::sizes::activation_named;
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, DeltaProjections};
use crate::config::fields::Fields;
use crate::config::vision::{PatchTowerConfig, SeeingFamily, VisionConfig, VisionLanguageConfig};

/// Fewest and most pixels an image is resized to, by the `preprocessor_config.json` published with Qwen2-VL and 2.5.
const PIXELS: [u64; 2] = [3136, 12_845_056];

/// The same for Qwen3-VL.
const PIXELS_3: [u64; 2] = [65_536, 16_777_216];

pub(in crate::config) fn read_2(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let (family, vision) = (SeeingFamily::named("qwen2_vl")?, fields.object("vision_config")?);
    let width = vision.size_or("embed_dim", 1280)?;
    let tower = PatchTowerConfig {
        inner: width * vision.at_most("mlp_ratio", vision.size_or("mlp_ratio", 4)?, 1 << 10)?,
        activation: activation(&vision, ActivationKind::QuickGelu)?,
        output: vision.size_or("hidden_size", 3584)?,
        ..tower(&vision, family, width, [32, 14])?
    };
    whole(fields, family, tower, |text| read_as(text, "qwen2_vl_text"))
}

pub(in crate::config) fn read_2_5(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let (family, vision) = (SeeingFamily::named("qwen2_5_vl")?, fields.object("vision_config")?);
    let width = vision.size_or("hidden_size", 3584)?;
    let whole_blocks = if vision.states("fullatt_block_indexes") {
        vision.counts("fullatt_block_indexes")?
    } else {
        vec![7, 15, 23, 31]
    };
    let tower = PatchTowerConfig {
        inner: vision.size_or("intermediate_size", 3420)?,
        activation: activation(&vision, ActivationKind::Silu)?,
        gated: true,
        output: vision.size_or("out_hidden_size", 3584)?,
        window: Some((vision.size_or("window_size", 112)?, whole_blocks)),
        ..tower(&vision, family, width, [32, 14])?
    };
    whole(fields, family, tower, |text| read_as(text, "qwen2_5_vl_text"))
}

/// Qwen3-VL and its successors, with the row of their decoder. `deep`: blocks whose output goes to the first decoder layers too,
/// where the file does not say.
pub(in crate::config) fn read_3(
    fields: &Fields<'_>,
    [kind, text]: [&str; 2],
    deep: &[u64],
) -> Result<VisionLanguageConfig, ConfigProblem> {
    let (family, vision) = (SeeingFamily::named(kind)?, fields.object("vision_config")?);
    let width = vision.size_or("hidden_size", 1152)?;
    let deepstack = vision.optional_counts("deepstack_visual_indexes")?.unwrap_or_else(|| deep.to_vec());
    let tower = PatchTowerConfig {
        inner: vision.size_or("intermediate_size", 4304)?,
        activation: activation(&vision, ActivationKind::GeluTanh)?,
        patch_bias: true,
        output: vision.size_or("out_hidden_size", 3584)?,
        positions: Some(vision.size_or("num_position_embeddings", 2304)?),
        deepstack,
        pixels: PIXELS_3,
        ..tower(&vision, family, width, [27, 16])?
    };
    let row = row(text)?;
    whole(fields, family, tower, |text| match row.reader {
        "qwen3_5" => qwen_next::read(text, row, DeltaProjections::Four),
        _ => row.read(text),
    })
}

/// `defaults`: blocks, and side of a patch.
fn tower(
    vision: &Fields<'_>,
    family: &'static SeeingFamily,
    width: u64,
    defaults: [u64; 2],
) -> Result<PatchTowerConfig, ConfigProblem> {
    let heads = vision.size_or("num_heads", 16)?;
    let bounded = |name: &str, default: u64, most: u64| vision.at_most(name, vision.size_or(name, default)?, most);
    vision.divides(("hidden_size", width), ("num_heads", heads))?;
    Ok(PatchTowerConfig {
        names: &family.patches,
        width,
        layers: bounded("depth", defaults[0], 10_000)?,
        heads,
        inner: width,
        activation: ActivationKind::Gelu,
        gated: false,
        patch: bounded("patch_size", defaults[1], 1 << 12)?,
        frames: bounded("temporal_patch_size", 2, 1 << 6)?,
        channels: bounded("in_channels", 3, 1 << 10)?,
        patch_bias: false,
        merge: bounded("spatial_merge_size", 2, 1 << 6)?,
        output: width,
        positions: None,
        window: None,
        deepstack: Vec::new(),
        pixels: PIXELS,
    })
}

fn activation(vision: &Fields<'_>, default: ActivationKind) -> Result<ActivationKind, ConfigProblem> {
    match vision.optional_text("hidden_act")? {
        None => Ok(default),
        Some(text) => activation_named(&text).ok_or_else(|| {
            vision.wrong("hidden_act", format!("\"{text}\""), "quick_gelu, gelu, gelu_pytorch_tanh or silu")
        }),
    }
}

/// The decoder's fields stand in `text_config`, or at the top of older files.
fn whole(
    fields: &Fields<'_>,
    family: &'static SeeingFamily,
    tower: PatchTowerConfig,
    read: impl Fn(&Fields<'_>) -> Result<DecoderConfig, ConfigProblem>,
) -> Result<VisionLanguageConfig, ConfigProblem> {
    let text = fields.optional_object("text_config")?.unwrap_or_else(|| fields.as_part("text_config"));
    let mut language = read(&text)?;
    language.tied_embeddings = text.tied(&[fields], language.tied_embeddings)?;
    for layer in &mut language.layers {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention
            && let Some(rotary) = &mut attention.rotary
        {
            rotary.form.layout = RotaryLayout::Sections;
        }
    }
    if tower.output != language.width {
        let expected = format!("{}, the hidden size of the decoder", language.width);
        return Err(fields.object("vision_config")?.wrong("out_hidden_size", tower.output, expected));
    }
    let dtype = fields.dtype()?.or(text.dtype()?).unwrap_or(DType::Bf16);
    Ok(VisionLanguageConfig { family, vision: VisionConfig::Patches(tower), language, dtype })
}
