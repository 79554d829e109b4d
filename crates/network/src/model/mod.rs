//! The networks, one file each, and the table that names them.

mod clip;
pub mod decoder;
mod decoder_layer;
pub mod deepseek_ocr;
pub mod encoder;
mod encoder_attention;
pub mod encoder_decoder;
mod encoder_head;
mod flat_layer;
pub mod modern_encoder;
mod patch_tower;
mod sam;
pub mod shallow_resnet;
mod square_tower;
pub mod t5;
pub mod vision_language;

use types::{DType, ImageWorkload, Shape, Spec, Stage};

use crate::config::ModelConfig;
use crate::{Backend, Blueprint, NetworkError};

/// Any network this crate knows.
#[derive(Debug)]
pub enum Model {
    /// SAM and CLIP in front of a DeepSeek-V2 decoder.
    DeepseekOcr(Box<deepseek_ocr::DeepseekOcr>),
    /// A decoder.
    Language(Box<decoder::LanguageModel>),
    /// A vision encoder in front of a decoder.
    VisionLanguage(Box<vision_language::VisionLanguage>),
    /// An encoder of text.
    Encoder(Box<encoder::Encoder>),
    /// An encoder of text with rotary positions.
    ModernEncoder(Box<modern_encoder::ModernEncoder>),
    /// T5: an encoder of text and a decoder.
    T5(Box<t5::T5>),
    /// An encoder of text or of sound and a decoder.
    EncoderDecoder(Box<encoder_decoder::EncoderDecoder>),
    /// A small convolutional network for trying out tools.
    ShallowResnet(Box<shallow_resnet::ShallowResnet>),
}

/// What one forward pass is given.
#[derive(Clone, Debug)]
pub struct Prompt<T> {
    /// Token ids `[B, S]`; the image `[B, 3, Y, X]` for a network that takes nothing else.
    pub input: T,
    /// Position of the first token.
    pub offset: u64,
    /// Images, at prefill of a vision-language network.
    pub images: Option<Images<T>>,
    /// What an encoder is given, or what cross-attention sees of a picture, at prefill of a network with either.
    pub source: Option<T>,
    /// Whether logits are wanted for the last position only.
    pub last_logits_only: bool,
}

/// The images of a prompt.
#[derive(Clone, Debug)]
pub struct Images<T> {
    /// Global views `[P, 3, base, base]`, or patches `[P, N, features]`.
    pub global: T,
    /// Tiles `[P * w * h, 3, tile, tile]`; absent without tiles.
    pub tiles: Option<T>,
    /// Tiles across and down.
    pub crop_grid: [u64; 2],
    /// Pixels across and down of each image, for networks that take patches.
    pub pixels: Option<[u64; 2]>,
    /// Which positions of the prompt are image tokens, `[B, S]`.
    pub mask: T,
}

/// What every network does, whichever it is.
macro_rules! whichever {
    ($self:ident, $model:ident => $does:expr) => {
        match $self {
            Self::DeepseekOcr($model) => $does,
            Self::Language($model) => $does,
            Self::VisionLanguage($model) => $does,
            Self::Encoder($model) => $does,
            Self::ModernEncoder($model) => $does,
            Self::T5($model) => $does,
            Self::EncoderDecoder($model) => $does,
            Self::ShallowResnet($model) => $does,
        }
    };
}

impl Model {
    /// The network a configuration describes.
    pub fn new(config: &ModelConfig) -> Self {
        match config {
            ModelConfig::DeepseekOcr(config) => Self::DeepseekOcr(Box::new(deepseek_ocr::DeepseekOcr::new(config))),
            ModelConfig::Decoder(config) => Self::Language(Box::new(decoder::LanguageModel::new(config))),
            ModelConfig::VisionLanguage(config) => {
                Self::VisionLanguage(Box::new(vision_language::VisionLanguage::new(config)))
            }
            ModelConfig::Encoder(config) => Self::Encoder(Box::new(encoder::Encoder::new(config))),
            ModelConfig::ModernEncoder(config) => {
                Self::ModernEncoder(Box::new(modern_encoder::ModernEncoder::new(config)))
            }
            ModelConfig::T5(config) => Self::T5(Box::new(t5::T5::new(config))),
            ModelConfig::EncoderDecoder(config) => {
                Self::EncoderDecoder(Box::new(encoder_decoder::EncoderDecoder::new(config)))
            }
            ModelConfig::ShallowResnet(config) => {
                Self::ShallowResnet(Box::new(shallow_resnet::ShallowResnet::new(config)))
            }
        }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        whichever!(self, model => model.blueprint())
    }

    /// One forward pass: logits.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        whichever!(self, model => model.forward(b, prompt))
    }

    /// The cache, for networks that generate.
    pub fn cache(&self) -> Option<&CacheLayout> {
        match self {
            Self::DeepseekOcr(model) => Some(model.cache()),
            Self::Language(model) => Some(model.cache()),
            Self::VisionLanguage(model) => Some(model.cache()),
            Self::T5(model) => Some(model.cache()),
            Self::EncoderDecoder(model) => Some(model.cache()),
            _ => None,
        }
    }

    /// Positions that caches hold behind the prefill of a prompt of so many tokens. Where there is an encoder, the prompt is
    /// its, and the decoder has started from one token.
    pub fn prefilled(&self, prompt: u64) -> Positions {
        if self.has_encoder() { Positions { own: 1, source: prompt } } else { Positions { own: prompt, source: 0 } }
    }

    /// Whether a decoder attends to what an encoder makes of the prompt.
    pub fn has_encoder(&self) -> bool {
        matches!(self, Self::T5(_) | Self::EncoderDecoder(_))
    }

    /// What its encoder is given for a prompt of `positions`, the activations being `dtype`; absent without an encoder.
    pub fn source(&self, batch: u64, positions: u64, dtype: DType) -> Option<Spec> {
        match self {
            Self::T5(_) => Some(Spec::activation([batch, positions], DType::Int64)),
            Self::EncoderDecoder(model) => Some(match model.config().frequencies {
                None => Spec::activation([batch, positions], DType::Int64),
                Some(frequencies) => Spec::activation([batch, frequencies, 2 * positions], dtype),
            }),
            _ => None,
        }
    }

    /// The length of every prompt, where there is only one.
    pub fn prompt_length(&self) -> Option<u64> {
        match self {
            Self::EncoderDecoder(model) if model.hears() => Some(model.config().source_positions),
            _ => None,
        }
    }

    /// Most tokens of the decoder, where a table of positions bounds them and nothing goes on behind it.
    pub fn most_tokens(&self) -> Option<u64> {
        match self {
            Self::EncoderDecoder(model) => model.most_tokens(),
            _ => None,
        }
    }

    /// Most tokens whose logits are those of the published model, where there is a bound.
    pub fn exact_tokens(&self) -> Option<u64> {
        match self {
            Self::Language(model) => model.exact_positions(),
            _ => self.most_tokens(),
        }
    }

    /// The token a decoder starts from, where its prompt is an encoder's.
    pub fn start_token(&self) -> Option<u64> {
        match self {
            Self::T5(model) => Some(model.start_token()),
            Self::EncoderDecoder(model) => Some(model.config().start_token),
            _ => None,
        }
    }

    /// Whether its prompts are tokens; a network that takes nothing but an image has no prompt to size.
    pub fn takes_tokens(&self) -> bool {
        !matches!(self, Self::ShallowResnet(_))
    }

    /// Whether its prompts contain images.
    pub fn takes_images(&self) -> bool {
        matches!(self, Self::DeepseekOcr(_) | Self::VisionLanguage(_))
    }

    /// Whether a prompt without an image is none for it.
    pub fn needs_images(&self) -> bool {
        matches!(self, Self::DeepseekOcr(_))
    }

    /// What an image of `[width, height]` becomes, for networks that resize images of any shape by a rule of their
    /// own; absent for networks whose views are given.
    pub fn resized(&self, pixels: [u64; 2]) -> Option<ImageWorkload> {
        match self {
            Self::VisionLanguage(model) => Some(model.resized(pixels)),
            _ => None,
        }
    }

    /// The shape in which it takes `pages` such images.
    pub fn image_shape(&self, image: &ImageWorkload, pages: u64) -> Shape {
        match self {
            Self::VisionLanguage(model) => model.image_shape(image, pages),
            _ => [pages, 3, image.base_size, image.base_size].into(),
        }
    }

    /// Tokens that an image takes in the prompt, by the network's own rule; `None` for networks without images.
    pub fn image_tokens(&self, base_size: u64, image_size: u64, crop_grid: [u64; 2]) -> Option<u64> {
        match self {
            Self::DeepseekOcr(_) => Some(deepseek_ocr::image_tokens(base_size, image_size, crop_grid)),
            _ => None,
        }
    }

    /// Checks that the network can take such images.
    pub fn check_image(&self, image: &ImageWorkload) -> Result<(), NetworkError> {
        match self {
            Self::DeepseekOcr(model) => model.check_image(image),
            _ => Ok(()),
        }
    }

    /// Stages of this network other than prefill and decode.
    pub fn vision_stages(&self) -> &'static [Stage] {
        match self {
            Self::DeepseekOcr(_) => &[Stage::Sam, Stage::Clip, Stage::Projector],
            Self::VisionLanguage(_) => &[Stage::Projector],
            _ => &[],
        }
    }
}

/// How many positions caches hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// Of the sequence itself.
    pub own: u64,
    /// Of the source that cross-attention sees.
    pub source: u64,
}

impl Positions {
    /// So many more of the sequence itself.
    pub fn and(self, more: u64) -> Self {
        Self { own: self.own.saturating_add(more), ..self }
    }
}

/// What the cache keeps, layer by layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    /// Decoder layers, in order; those that also see a source are two, one behind the other.
    pub layers: Vec<CacheLayer>,
    /// Element type, where the checkpoint sets one of its own.
    pub dtype: Option<DType>,
}

/// What a layer keeps between passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Keys and values of every position.
    Full,
    /// Keys and values of a window.
    Sliding,
    /// Keys and values of one chunk of positions.
    Chunked,
    /// Keys of a window, and compressed entries of all positions.
    Compressed,
    /// A latent vector of every position.
    Latent,
    /// The state of linear attention.
    Linear,
    /// The state of a state-space layer.
    StateSpace,
    /// Keys and values of every position, and the state of a state-space layer.
    Hybrid,
    /// The last few positions, in front of a convolution.
    Convolution,
    /// Keys and values of every position of the source.
    Cross,
    /// Nothing.
    Absent,
}

impl CacheKind {
    /// What reports call it; absent where there is nothing to report.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("full"),
            Self::Sliding => Some("sliding"),
            Self::Chunked => Some("chunked"),
            Self::Compressed => Some("compressed"),
            Self::Latent => Some("latent"),
            Self::Linear => Some("linear"),
            Self::StateSpace => Some("state-space"),
            Self::Hybrid => Some("hybrid"),
            Self::Convolution => Some("convolution"),
            Self::Cross => Some("cross"),
            Self::Absent => None,
        }
    }
}

/// What the cache keeps for one layer of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLayer {
    /// What it is made of.
    pub kind: CacheKind,
    /// Elements of one position: keys and values of all heads, or a latent vector and a rotated key.
    pub elements: u64,
    /// Positions it keeps at most; all where absent.
    pub window: Option<u64>,
    /// Elements of one position that no window bounds: its part of a compressed entry.
    pub entries: u64,
    /// Elements of one position of the source.
    pub source: u64,
    /// Elements it keeps whatever the length: in the cache's element type, and in single precision.
    pub state: [u64; 2],
}

impl CacheLayout {
    /// That of a decoder whose layers each keep `elements` of a position of their own, and as many of one of the source.
    pub(crate) fn of_both(layers: u64, elements: u64) -> Self {
        let own = CacheLayer { kind: CacheKind::Full, elements, window: None, entries: 0, source: 0, state: [0, 0] };
        let cross = CacheLayer { kind: CacheKind::Cross, elements: 0, source: elements, ..own };
        Self { layers: (0..layers).flat_map(|_| [own, cross]).collect(), dtype: None }
    }

    /// Elements one more position adds in all layers, as long as no window is full.
    pub fn elements_per_token(&self) -> u64 {
        self.layers.iter().map(|layer| layer.elements + layer.entries).sum()
    }

    /// Elements kept for a sequence of `positions`.
    pub fn elements(&self, positions: Positions) -> u64 {
        self.layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.elements_at(positions)))
    }
}

impl CacheLayer {
    /// Elements kept for a sequence of `positions`.
    pub fn elements_at(&self, Positions { own, source }: Positions) -> u64 {
        let near = self.elements.saturating_mul(self.window.map_or(own, |window| own.min(window)));
        let all = near.saturating_add(self.entries.saturating_mul(own));
        all.saturating_add(self.source.saturating_mul(source))
    }
}
