//! What can be wrong around a network: with pictures, tokenizers, prompts, sampling settings, and logits to choose by.

use std::path::PathBuf;

use types::Failure;

/// An error of preparing a prompt or choosing a token, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A picture file without content.
    #[error("{name} is empty")]
    EmptyPicture {
        /// The file.
        name: String,
    },
    /// A file that is no picture, whatever its name says.
    #[error("{name} is not a picture: it begins with {beginning}")]
    NotAPicture {
        /// The file.
        name: String,
        /// Its first bytes, printable ones as text.
        beginning: String,
    },
    /// A picture in a format that is not read.
    #[error("{name} is a {format} picture; only PNG and JPEG are read")]
    UnreadFormat {
        /// The file.
        name: String,
        /// Its format.
        format: String,
    },
    /// A picture file that ends too early.
    #[error("{name} is cut off: a {format} picture that ends after {bytes} bytes, before its end mark")]
    TruncatedPicture {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// Bytes there are.
        bytes: usize,
    },
    /// A picture file whose content does not decode.
    #[error("{name} is a damaged {format} picture: {reason}")]
    DamagedPicture {
        /// The file.
        name: String,
        /// Its format.
        format: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// A picture larger than is decoded.
    #[error(
        "{name} has {width} x {height} pixels; at most {most_side} along a side and {most_bytes} bytes decoded are read"
    )]
    PictureTooLarge {
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
    /// A tokenizer without a token for pictures.
    #[error("{tokenizer} has no token <image>, so pages cannot be read with it")]
    NoImageToken {
        /// The tokenizer.
        tokenizer: String,
    },
    /// A page, and a prompt that does not say where it belongs.
    #[error("the prompt {prompt:?} has no <image>, so the page has no place in it")]
    PageWithoutMark {
        /// The prompt.
        prompt: String,
    },
    /// A prompt for a page, and no page.
    #[error("the prompt {prompt:?} asks for a page, and there is none")]
    MarkWithoutPage {
        /// The prompt.
        prompt: String,
    },
    /// A prompt for several pages.
    #[error("the prompt {prompt:?} has <image> {marks} times; one page is read at a time")]
    SeveralMarks {
        /// The prompt.
        prompt: String,
        /// How often.
        marks: usize,
    },
    /// A sampling setting that makes no sense.
    #[error("{setting} is {value}, and must be {range}")]
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
    #[error("no token is left to choose at position {position}: all are ruled out or impossible")]
    NothingLeft {
        /// Tokens before it.
        position: usize,
    },
}

impl Failure for InputError {
    fn hint(&self) -> Option<String> {
        let step = match self {
            Self::EmptyPicture { .. } | Self::TruncatedPicture { .. } | Self::DamagedPicture { .. } => {
                "copy the file again from where it came from, or leave it out of the inputs"
            }
            Self::NotAPicture { .. } => "leave the file out of the inputs",
            Self::UnreadFormat { .. } => "convert it to PNG or JPEG",
            Self::PictureTooLarge { .. } => "scale the picture down; the network sees it scaled to a few tiles anyway",
            Self::VocabularyTooSmall { .. } => "use a model with a larger vocabulary",
            Self::NotATokenizer { .. } | Self::NoImageToken { .. } | Self::TokenizerFailed { .. } => {
                "use the tokenizer.json that belongs to the model"
            }
            Self::PageWithoutMark { .. } => "put <image> into the prompt where the page belongs",
            Self::MarkWithoutPage { .. } => "give a page, or take <image> out of the prompt",
            Self::SeveralMarks { .. } => "leave one <image> in the prompt",
            Self::NotANumber { .. } => "the weights are damaged, or too large for the element type; try float32",
            Self::NothingLeft { .. } => "raise no_repeat_ngram_size, or set it to 0",
            Self::Unreadable { .. } | Self::NotAConfiguration { .. } | Self::SettingOutOfRange { .. } => return None,
        };
        Some(step.to_owned())
    }
}
