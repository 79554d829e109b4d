//! What requests ask. Writing it as JSON is left to `body`, reading it from files to `replay`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use types::Random;

use crate::{Lengths, LoadError};

/// Tokens of one block of a prompt that is given by hashes, as in Mooncake's traces
/// (<https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release>).
pub const BLOCK: usize = 512;

/// What the requests of a load ask.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompts {
    /// Random token ids.
    Random {
        /// Tokens of the prompt.
        input: Lengths,
        /// Tokens of the output.
        output: Lengths,
    },
    /// One after the other, from the start again after the last.
    Listed(Vec<Ask>),
}

/// What one request asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The prompt.
    pub prompt: Prompt,
    /// The most tokens of output; exactly so many where the server ignores the end of the sequence.
    pub max_tokens: u32,
}

/// One prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// So many random token ids, different for every request.
    Random(u32),
    /// Blocks of 512 token ids; a hash gives the same block in every request, so that the server finds its prefix again.
    Blocks {
        /// The hash of each block.
        hashes: Vec<u64>,
        /// Tokens of the prompt; those after the last block are random.
        length: u32,
    },
    /// Text to continue, through `/v1/completions`.
    Text(String),
    /// A message of the user, through `/v1/chat/completions`.
    Chat {
        /// Its text.
        text: String,
        /// Its images.
        images: Vec<Image>,
    },
}

/// An image as the URL that a chat message holds. Copies share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Arc<str>);

impl Image {
    /// An image from the bytes of its file: PNG, JPEG or WebP.
    pub fn new(bytes: &[u8]) -> Result<Self, LoadError> {
        let kind = match bytes {
            [0x89, b'P', b'N', b'G', ..] => "png",
            [0xff, 0xd8, 0xff, ..] => "jpeg",
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
            _ => return Err(LoadError::Image { start: bytes.iter().copied().take(4).collect() }),
        };
        Ok(Self(format!("data:image/{kind};base64,{}", BASE64_STANDARD.encode(bytes)).into()))
    }

    /// The URL.
    pub(crate) fn url(&self) -> &str {
        &self.0
    }
}

impl Prompts {
    /// Whether every request can be made.
    pub fn check(&self, vocabulary: &Range<u32>) -> Result<(), LoadError> {
        let draws_tokens = match self {
            Self::Random { input, output } => {
                input.check("the input length")?;
                output.check("the output length")?;
                true
            }
            Self::Listed(asks) if asks.is_empty() => return Err(LoadError::Empty { format: "list of prompts" }),
            Self::Listed(asks) => {
                asks.iter().try_for_each(Ask::check)?;
                asks.iter().any(|ask| matches!(ask.prompt, Prompt::Random(_) | Prompt::Blocks { .. }))
            }
        };
        if draws_tokens && vocabulary.is_empty() {
            let got = format!("{vocabulary:?}");
            return Err(LoadError::Setting { name: "the vocabulary", expected: "a range of token ids", got });
        }
        Ok(())
    }

    /// What one request asks.
    pub fn ask(&self, index: usize, seed: u64) -> Cow<'_, Ask> {
        match self {
            Self::Random { input, output } => {
                let mut random = Random::scattered(key(seed, 0, index as u64));
                let prompt = Prompt::Random(input.draw(index, &mut random));
                Cow::Owned(Ask { prompt, max_tokens: output.draw(index, &mut random) })
            }
            Self::Listed(asks) => Cow::Borrowed(&asks[index % asks.len()]),
        }
    }
}

impl Ask {
    /// Whether it can be sent.
    fn check(&self) -> Result<(), LoadError> {
        if let Prompt::Random(length) | Prompt::Blocks { length, .. } = self.prompt {
            Lengths::Fixed(length).check("the input length")?;
        }
        Lengths::Fixed(self.max_tokens).check("the output length")
    }
}

impl Prompt {
    /// The token ids of a prompt that consists of them.
    pub(crate) fn tokens(&self, vocabulary: &Range<u32>, index: usize, seed: u64) -> Option<Vec<u32>> {
        let own = Random::scattered(key(seed, 1, index as u64));
        match self {
            Self::Random(length) => Some(draw(own, vocabulary).take(*length as usize).collect()),
            Self::Blocks { hashes, length } => {
                let block = |hash: &u64| draw(Random::scattered(key(seed, 2, *hash)), vocabulary).take(BLOCK);
                let tokens = hashes.iter().flat_map(block).chain(draw(own, vocabulary));
                Some(tokens.take(*length as usize).collect())
            }
            Self::Text(_) | Self::Chat { .. } => None,
        }
    }
}

/// Token ids without end.
fn draw(mut random: Random, vocabulary: &Range<u32>) -> impl Iterator<Item = u32> {
    let (first, size) = (vocabulary.start, vocabulary.len());
    std::iter::repeat_with(move || first + random.below(size) as u32)
}

/// A seed of its own for every use and every number.
fn key(seed: u64, purpose: u64, number: u64) -> u64 {
    Random::scattered(seed ^ purpose.rotate_left(62)).number() ^ number
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: Range<u32> = 100..1000;

    #[test]
    fn random_prompts_have_their_lengths_and_differ() {
        let prompts = Prompts::Random { input: Lengths::Uniform(5, 50), output: Lengths::Fixed(7) };
        let tokens = |index| prompts.ask(index, 3).prompt.tokens(&VOCABULARY, index, 3).unwrap();
        assert_eq!(tokens(0), tokens(0));
        assert_ne!(tokens(0), tokens(1));
        for index in 0..100 {
            assert!((5..=50).contains(&tokens(index).len()));
            assert!(tokens(index).iter().all(|token| VOCABULARY.contains(token)));
            assert_eq!(prompts.ask(index, 3).max_tokens, 7);
        }
    }

    #[test]
    fn equal_hashes_are_equal_blocks() {
        let blocks = |hashes: &[u64], length| Prompt::Blocks { hashes: hashes.to_vec(), length };
        let first = blocks(&[4, 9], 1000).tokens(&VOCABULARY, 0, 5).unwrap();
        let second = blocks(&[4, 8], 600).tokens(&VOCABULARY, 1, 5).unwrap();
        assert_eq!((first.len(), second.len()), (1000, 600));
        assert_eq!(first[..BLOCK], second[..BLOCK]);
        assert_ne!(first[BLOCK..600], second[BLOCK..]);
        // Without enough hashes the rest belongs to the request alone.
        let third = blocks(&[4], 600).tokens(&VOCABULARY, 2, 5).unwrap();
        assert_eq!(third[..BLOCK], first[..BLOCK]);
        assert_ne!(third[BLOCK..], second[BLOCK..]);
    }

    #[test]
    fn an_image_becomes_a_data_url() {
        let image = Image::new(&[0x89, b'P', b'N', b'G', 13, 10]).unwrap();
        assert_eq!(image.url(), "data:image/png;base64,iVBORw0K");
        assert!(Image::new(&[0xff, 0xd8, 0xff, 0xe0]).unwrap().url().starts_with("data:image/jpeg;base64,"));
        let error = Image::new(b"GIF89a").unwrap_err().to_string();
        assert_eq!(error, "the image is neither PNG, JPEG nor WebP; it starts with [47, 49, 46, 38]");
    }

    #[test]
    fn prompts_that_cannot_be_made_are_rejected() {
        let random = Prompts::Random { input: Lengths::Fixed(1), output: Lengths::Fixed(1) };
        let error = random.check(&(0..0)).unwrap_err().to_string();
        assert_eq!(error, "the vocabulary must be a range of token ids, not 0..0");
        assert!(Prompts::Listed(Vec::new()).check(&VOCABULARY).is_err());
        let text = Ask { prompt: Prompt::Text("a".to_owned()), max_tokens: 1 };
        assert!(Prompts::Listed(vec![text.clone()]).check(&(0..0)).is_ok());
        assert!(Prompts::Listed(vec![Ask { max_tokens: 0, ..text }]).check(&VOCABULARY).is_err());
    }
}
