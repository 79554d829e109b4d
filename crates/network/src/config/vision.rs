//! Vision encoders in front of a decoder, as data.

use std::sync::LazyLock;

use types::{ActivationKind, DType};

use super::ConfigProblem;
use super::decoder::DecoderConfig;
use super::table::{Columns, Row, columns, words};

/// A vision-language model: an encoder, a projection to the decoder's width, a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionLanguageConfig {
    /// Names of its own modules and classes.
    pub(crate) family: &'static SeeingFamily,
    /// The encoder and its projection.
    pub vision: VisionConfig,
    /// The decoder.
    pub language: DecoderConfig,
    /// Element type of the published weights.
    pub dtype: DType,
}

columns! {
    /// Names of the modules around encoder and decoder, and of their classes.
    #[derive(PartialEq, Eq)]
    SeeingFamily in "" {
        /// Class of the whole.
        causal: &'static str,
        /// Class of the encoder's outermost module, and what reports call it.
        tower: &'static str,
        /// Class of what holds encoder and decoder, where there is such a module.
        model: &'static str,
        layout: ModuleLayout,
    } also {
        kind: &'static str = Row::kind,
        /// Those of an encoder of patches.
        patches: PatchTowerNames = PatchTowerNames::of,
    }
}

columns! {
    /// What the classes of a patch tower are called.
    #[derive(PartialEq, Eq)]
    PatchTowerNames in "patch." {
        /// The projection of patches itself.
        embedding: &'static str,
        block: &'static str,
        attention: &'static str,
        norm: &'static str,
        mlp: &'static str,
        /// Modules of the feed-forward, where it is not gated.
        mlp_modules: [&'static str; 2],
        merger: &'static str,
        /// Whether the merger's parts are its own modules, not those of a sequence.
        flat_merger: bool,
    }
}

words! {
    ModuleLayout: "side-by-side" => Self::SideBySide, "in-one-model" => Self::InOneModel,
        "whole-decoder" => Self::WholeDecoder;
}

/// Every family of vision-language models.
pub(super) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Row::all(include_str!("seeing.txt")));

impl SeeingFamily {
    /// The family that goes by this name in the table.
    pub(crate) fn named(kind: &str) -> Result<&'static Self, ConfigProblem> {
        let unknown =
            || ConfigProblem::UnknownArchitecture { asked: kind.to_owned(), nearest: None, missing: Vec::new() };
        static ALL: LazyLock<Vec<SeeingFamily>> = LazyLock::new(|| ROWS.iter().filter_map(SeeingFamily::of).collect());
        ALL.iter().find(|family| family.kind == kind).ok_or_else(unknown)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for row in ROWS.iter() {
            assert_eq!(row.unknown(&[SeeingFamily::KEYS, PatchTowerNames::KEYS, &["home", "package"]]), [""; 0]);
            assert!(SeeingFamily::of(row).is_some(), "{}", row.kind);
        }
    }
}
