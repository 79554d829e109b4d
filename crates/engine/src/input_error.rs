//! What can be wrong around a network: with images, tokenizers, prompts, sampling settings, and logits to choose by.

use std::path::PathBuf;

use types::Failure;

/// An error of preparing a prompt or choosing a token, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// An image file without content.
    #[error("{name} is empty")]
    EmptyImage {
        /// The file.
        name: String,
    },
    /// A file that is no image, whatever its name says.
    #[error("{name} is not an image: it starts with {beginning}")]
    NotAnImage {
        /// The file.
        name: String,
        /// Its first bytes, printable ones as text.
        beginning: String,
    },
    /// An image in a format that is not read.
    #[error("{name} is a {format} image; only PNG and JPEG are read")]
    UnreadFormat {
        /// The file.
        name: String,
        /// Its format.
        format: String,
    },
    /// An image file that ends too early.
    #[error("{name} is truncated: the {format} image ends after {bytes} bytes, before its end marker")]
    TruncatedImage {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// Bytes there are.
        bytes: usize,
    },
    /// An image file whose content does not decode.
    #[error("{name} is a damaged {format} image: {reason}")]
    DamagedImage {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// An image larger than is decoded.
    #[error("{name} has {width} x {height} pixels; the limits are {most_side} per side and {most_bytes} bytes decoded")]
    ImageTooLarge {
        /// The file.
        name: String,
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// Most pixels along a side.
        most_side: u32,
        /// Most bytes of decoded pixels.
        most_bytes: u64,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file is no tokenizer.
    #[error("{} is not a tokenizer: {reason}", path.display())]
    NotATokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is no configuration of a model.
    #[error("{} is not a model configuration: {reason}", path.display())]
    NotAConfiguration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tokenizer that failed on a text.
    #[error("{tokenizer} failed: {reason}")]
    TokenizerFailed {
        /// The tokenizer.
        tokenizer: String,
        /// What it says.
        reason: String,
    },
    /// A vocabulary that leaves no room for bytes.
    #[error("a vocabulary of {vocabulary} is too small for the byte tokenizer, which needs {least} ids")]
    VocabularyTooSmall {
        /// Ids there are.
        vocabulary: u64,
        /// Ids needed.
        least: u64,
    },
    /// A tokenizer without a token for images.
    #[error("{tokenizer} has no <image> token, so it cannot encode a page")]
    NoImageToken {
        /// The tokenizer.
        tokenizer: String,
    },
    /// A page, and a prompt that does not say where it belongs.
    #[error("the prompt {prompt:?} has no <image>, so there is no place for the page")]
    PageWithoutMark {
        /// The prompt.
        prompt: String,
    },
    /// A prompt for a page, and no page.
    #[error("the prompt {prompt:?} has <image>, but no page is given")]
    MarkWithoutPage {
        /// The prompt.
        prompt: String,
    },
    /// A prompt for several pages.
    #[error("the prompt {prompt:?} has <image> {marks} times; only one page is allowed")]
    SeveralMarks {
        /// The prompt.
        prompt: String,
        /// How often.
        marks: usize,
    },
    /// A sampling setting that makes no sense.
    #[error("{setting} is {value}; expected {range}")]
    SettingOutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A logit that nothing can be chosen by.
    #[error("the logit of token {token} at position {position} is {value}")]
    NotANumber {
        /// The token.
        token: usize,
        /// Its logit.
        value: f32,
        /// Tokens before it.
        position: usize,
    },
    /// Every token is ruled out.
    #[error("no token can be sampled at position {position}: all are excluded or have zero probability")]
    NothingLeft {
        /// Tokens before it.
        position: usize,
    },
}

impl Failure for InputError {
    fn hint(&self) -> Option<String> {
        let step = match self {
            Self::EmptyImage { .. } | Self::TruncatedImage { .. } | Self::DamagedImage { .. } => {
                "copy the file again from its source, or remove it from the inputs"
            }
            Self::NotAnImage { .. } => "remove the file from the inputs",
            Self::UnreadFormat { .. } => "convert it to PNG or JPEG",
            Self::ImageTooLarge { .. } => "scale the image down; the network sees only a few tiles of it",
            Self::VocabularyTooSmall { .. } => "use a model with a larger vocabulary",
            Self::NotATokenizer { .. } | Self::NoImageToken { .. } | Self::TokenizerFailed { .. } => {
                "use the tokenizer.json that belongs to the model"
            }
            Self::PageWithoutMark { .. } => "add <image> to the prompt where the page belongs",
            Self::MarkWithoutPage { .. } => "add a page, or remove <image> from the prompt",
            Self::SeveralMarks { .. } => "keep one <image> in the prompt",
            Self::NotANumber { .. } => "the weights are damaged, or too large for the element type; try float32",
            Self::NothingLeft { .. } => "raise no_repeat_ngram_size, or set it to 0",
            Self::Unreadable { .. } | Self::NotAConfiguration { .. } | Self::SettingOutOfRange { .. } => return None,
        };
        Some(step.to_owned())
    }
}
