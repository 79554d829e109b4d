//! Vision encoders in front of a decoder, as data.

use types::{ActivationKind, DType};

use super::decoder::DecoderConfig;

/// A vision-language model: an encoder, a projection to the decoder's width, a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionLanguageConfig {
    /// Names of its own modules and classes.
    pub(crate) names: &'static VisionLanguageNames,
    /// The encoder and its projection.
    pub vision: VisionConfig,
    /// The decoder.
    pub language: DecoderConfig,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Names of the modules around encoder and decoder, and of their classes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VisionLanguageNames {
    /// Class of the whole.
    pub(crate) causal: &'static str,
    /// Package that defines it.
    pub(crate) home: &'static str,
    /// Class of the encoder's outermost module, and what reports call it.
    pub(crate) tower: &'static str,
    /// Class of what holds encoder and decoder, where there is such a module.
    pub(crate) model: &'static str,
    /// Where encoder, decoder and head are.
    pub(crate) layout: ModuleLayout,
}

/// Where encoder, decoder and head are in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleLayout {
    /// `visual`, `model`, `lm_head`.
    SideBySide,
    /// `model.visual`, `model.language_model`, `lm_head`.
    InOneModel,
    /// The encoder, and `language_model` with decoder and head of its own.
    WholeDecoder,
}

/// An encoder and its projection to the decoder's width.
#[derive(Clone, Debug, PartialEq)]
pub enum VisionConfig {
    /// Images of any size as a sequence of patches, four neighbours merged into one token.
    Patches(PatchTowerConfig),
    /// Images of one size, one token a patch.
    Square(SquareTowerConfig),
}

/// The encoder of Qwen2-VL, Qwen2.5-VL and Qwen3-VL.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchTowerConfig {
    /// Names of its classes.
    pub(crate) names: &'static PatchTowerNames,
    /// Width of the hidden states.
    pub width: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
    /// Its nonlinearity.
    pub activation: ActivationKind,
    /// Whether the feed-forward is gated and norms are root-mean-square.
    pub gated: bool,
    /// Side of a patch.
    pub patch: u64,
    /// Frames of a patch; an image is repeated to fill them.
    pub frames: u64,
    /// Channels of an image.
    pub channels: u64,
    /// Whether the patch projection has a bias.
    pub patch_bias: bool,
    /// Patches across and down that become one token.
    pub merge: u64,
    /// Width of what comes out.
    pub output: u64,
    /// Places of the learned position table; absent where positions are rotary only.
    pub positions: Option<u64>,
    /// Side of an attention window in pixels, and the blocks that see everything all the same.
    pub window: Option<(u64, Vec<u64>)>,
    /// Blocks whose output goes to the first decoder layers too.
    pub deepstack: Vec<u64>,
    /// Fewest and most pixels an image is resized to.
    pub pixels: [u64; 2],
}

/// What the classes of a patch tower are called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatchTowerNames {
    pub(crate) tower: &'static str,
    pub(crate) patch: &'static str,
    pub(crate) block: &'static str,
    pub(crate) attention: &'static str,
    pub(crate) norm: &'static str,
    pub(crate) mlp: &'static str,
    /// Modules of the feed-forward, where it is not gated.
    pub(crate) mlp_modules: [&'static str; 2],
    pub(crate) merger: &'static str,
    /// Whether the merger's parts are its own modules, not those of a sequence.
    pub(crate) flat_merger: bool,
}

/// A CLIP or SigLIP encoder with a projector of two layers.
#[derive(Clone, Debug, PartialEq)]
pub struct SquareTowerConfig {
    /// Which of the two.
    pub kind: SquareTowerKind,
    /// Width of the hidden states.
    pub width: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
    /// Its nonlinearity.
    pub activation: ActivationKind,
    /// Side of the images.
    pub image_size: u64,
    /// Side of a patch.
    pub patch: u64,
    /// Added to the variance in norms.
    pub epsilon: f64,
    /// Whether the class token is dropped before the projector.
    pub drop_class: bool,
    /// Nonlinearity of the projector.
    pub projector_activation: ActivationKind,
    /// Whether the projector has biases.
    pub projector_bias: bool,
}

/// Encoders for images of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SquareTowerKind {
    /// With a class token and a norm in front.
    Clip,
    /// Without either.
    Siglip,
}

impl VisionConfig {
    /// Pixels across and down that an image of `[width, height]` is resized to.
    pub fn resized(&self, [width, height]: [u64; 2]) -> [u64; 2] {
        match self {
            Self::Patches(tower) => tower.resized([width, height]),
            Self::Square(tower) => [tower.image_size; 2],
        }
    }

    /// Tokens that a resized image takes in the prompt.
    pub fn tokens(&self, [width, height]: [u64; 2]) -> u64 {
        match self {
            Self::Patches(tower) => (width / tower.patch / tower.merge) * (height / tower.patch / tower.merge),
            Self::Square(tower) => {
                let patches = (tower.image_size / tower.patch).pow(2);
                patches + u64::from(tower.kind == SquareTowerKind::Clip && !tower.drop_class)
            }
        }
    }
}

impl PatchTowerConfig {
    /// `smart_resize` of the published image processor: sides that divide into merged patches, about the same shape, and
    /// no fewer and no more pixels than its bounds.
    fn resized(&self, [width, height]: [u64; 2]) -> [u64; 2] {
        let factor = (self.patch * self.merge) as f64;
        let [fewest, most] = self.pixels.map(|pixels| pixels as f64);
        let sides = [width as f64, height as f64];
        let area = sides[0] * sides[1];
        // Halves go to the even neighbour, as Python rounds.
        let near = sides.map(|side| (side / factor).round_ties_even() * factor);
        let sides = if near[0] * near[1] > most {
            let shrink = (area / most).sqrt();
            sides.map(|side| ((side / shrink / factor).floor() * factor).max(factor))
        } else if near[0] * near[1] < fewest {
            let grow = (fewest / area).sqrt();
            sides.map(|side| (side * grow / factor).ceil() * factor)
        } else {
            near
        };
        sides.map(|side| side as u64)
    }
}
