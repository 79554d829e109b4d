//! The `infer` part of a configuration: what a network is fed, and how the tokens it generates are chosen.

use engine::SamplingSettings;
use engine::image::ImageSettings;
use network::Model;
use network::config::ModelConfig;
use serde::Deserialize;
use types::{LogitsKind, UserError};

use super::error::wrong_setting;
use crate::pipeline::model::LoadedModel;

/// Stands for the text of an input in a prompt.
pub(crate) const TEXT_MARK: &str = "<text>";

/// Most tokens of a prompt without pictures. Beyond, one prompt takes hours and gigabytes on a processor.
pub(crate) const MOST_TOKENS: u64 = 16_384;

/// What a network is fed; decides which form the `infer` part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Page images inside a prompt.
    Pages,
    /// Prompts without pictures.
    Prompts,
    /// Pictures and nothing else.
    Pictures,
}

/// The `infer` part, in the form that suits the network.
#[derive(Clone, Debug, PartialEq)]
pub enum InferSettings {
    /// For networks that read pages.
    Pages(PageSettings, DecodingSettings),
    /// For networks that read text.
    Prompts(PromptSettings, DecodingSettings),
    /// For networks that classify pictures.
    Pictures(PictureSettings),
}

/// How a page becomes a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PageSettings {
    /// Side of the global view.
    pub base_size: u64,
    /// Side of a tile.
    pub image_size: u64,
    /// Whether large pages are cut into tiles.
    pub crop_mode: bool,
    /// Fewest tiles of a page.
    pub min_tiles: u64,
    /// Most tiles of a page.
    pub max_tiles: u64,
    /// What the model is asked; `<image>` stands for the page.
    pub prompt: String,
}

/// How a text becomes a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PromptSettings {
    /// What the model is asked; `<text>` stands for the text of an input. Without it, this is the only input.
    pub prompt: String,
    /// A prompt of that many random tokens instead of text.
    pub seq_len: Option<u64>,
    /// Seed of random tokens.
    pub seed: u64,
}

/// Random pictures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PictureSettings {
    /// Pictures at a time.
    pub batch: u32,
    /// Side of a picture.
    pub image_size: u64,
    /// Forward passes in one run.
    pub iterations: u32,
    /// Seed of the pictures.
    pub seed: u64,
}

/// How a prompt becomes text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DecodingSettings {
    /// Sequences at a time, all with the same prompt.
    pub batch: u32,
    /// Positions whose logits prefill computes.
    pub logits: LogitsKind,
    /// Tokens generated at most.
    pub max_new_tokens: u64,
    /// Zero takes the most likely token each time.
    pub temperature: f64,
    /// Share of probability kept when sampling.
    pub top_p: f64,
    /// No run of this many tokens comes twice; zero switches it off.
    pub no_repeat_ngram_size: u64,
    /// How attention is computed; the engine has one way of its own.
    pub attention: String,
}

impl Feed {
    /// What this model is fed.
    pub fn of(model: &LoadedModel) -> Self {
        match (model.network.takes_images(), model.network.takes_tokens()) {
            (true, _) => Self::Pages,
            (false, true) => Self::Prompts,
            (false, false) => Self::Pictures,
        }
    }

    /// What it is fed, for reports.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Prompts => "text",
            Self::Pictures => "random images",
        }
    }
}

impl InferSettings {
    /// What a network with these settings is fed.
    pub fn feed(&self) -> Feed {
        match self {
            Self::Pages(..) => Feed::Pages,
            Self::Prompts(..) => Feed::Prompts,
            Self::Pictures(_) => Feed::Pictures,
        }
    }

    /// How tokens are chosen, for networks that generate.
    pub(crate) fn decoding(&self) -> Option<&DecodingSettings> {
        match self {
            Self::Pages(_, decoding) | Self::Prompts(_, decoding) => Some(decoding),
            Self::Pictures(_) => None,
        }
    }

    /// Forward passes that one repeat stands for; each is timed by itself.
    pub(crate) fn passes(&self) -> u32 {
        match self {
            Self::Pages(..) | Self::Prompts(..) => 1,
            Self::Pictures(pictures) => pictures.iterations,
        }
    }

    /// Inputs at once.
    pub(crate) fn batch(&self) -> u32 {
        match self {
            Self::Pages(_, decoding) | Self::Prompts(_, decoding) => decoding.batch,
            Self::Pictures(pictures) => pictures.batch,
        }
    }

    /// The same with another number of inputs at once.
    pub(crate) fn in_batch(&self, count: u32) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Self::Pages(_, decoding) | Self::Prompts(_, decoding) => decoding.batch = count,
            Self::Pictures(pictures) => pictures.batch = count,
        }
        changed
    }

    /// The same with the logits of the last position only; absent where no logits are chosen from.
    pub(crate) fn with_last_logits(&self) -> Option<Self> {
        let mut changed = self.clone();
        match &mut changed {
            Self::Pages(_, decoding) | Self::Prompts(_, decoding) => decoding.logits = LogitsKind::Last,
            Self::Pictures(_) => return None,
        }
        Some(changed)
    }

    /// Whether prefill computes the logits of the last position only.
    pub(crate) fn last_logits_only(&self) -> bool {
        self.decoding().is_some_and(|decoding| decoding.logits == LogitsKind::Last)
    }

    /// A network that takes images of any size is modelled at the size it is fed.
    pub(crate) fn fit(&self, model: &mut LoadedModel) {
        if let (ModelConfig::ShallowResnet(config), Self::Pictures(pictures)) = (&mut model.config, self) {
            config.image_size = pictures.image_size;
            model.network = Model::new(&model.config);
        }
    }

    pub(crate) fn check(&self) -> Result<(), UserError> {
        match self {
            Self::Pages(page, decoding) => page.check().and_then(|()| decoding.check()),
            Self::Prompts(prompt, decoding) => prompt.check().and_then(|()| decoding.check()),
            Self::Pictures(pictures) => pictures.check(),
        }
    }

    /// The native engine computes attention in one way.
    pub(crate) fn check_attention(&self) -> Result<(), UserError> {
        let Some(decoding) = self.decoding() else { return Ok(()) };
        let expected = "`eager`: the engine has one attention implementation";
        within("infer.attention", format!("`{}`", decoding.attention), decoding.attention == "eager", expected)
    }
}

impl PageSettings {
    fn check(&self) -> Result<(), UserError> {
        for (key, size) in [("infer.base_size", self.base_size), ("infer.image_size", self.image_size)] {
            within(key, size, size.is_multiple_of(16) && (16..=4096).contains(&size), "a multiple of 16, up to 4096")?;
        }
        Ok(())
    }

    /// How pages are cut.
    pub(crate) fn image(&self) -> ImageSettings {
        ImageSettings {
            base_size: self.base_size,
            image_size: self.image_size,
            crop_mode: self.crop_mode,
            min_tiles: self.min_tiles,
            max_tiles: self.max_tiles,
        }
    }
}

impl PromptSettings {
    fn check(&self) -> Result<(), UserError> {
        if let Some(length) = self.seq_len {
            within("infer.seq_len", length, (1..=MOST_TOKENS).contains(&length), "1 to 16,384, or null")?;
        }
        within("infer.prompt", "empty", !self.prompt.is_empty(), "a string; `<text>` stands for the text of the input")
    }
}

impl PictureSettings {
    fn check(&self) -> Result<(), UserError> {
        within("infer.batch", self.batch, (1..=1024).contains(&self.batch), "1 to 1024")?;
        within("infer.image_size", self.image_size, (1..=4096).contains(&self.image_size), "1 to 4096")?;
        within("infer.iterations", self.iterations, (1..=10_000).contains(&self.iterations), "1 to 10,000")
    }
}

impl DecodingSettings {
    fn check(&self) -> Result<(), UserError> {
        within("infer.batch", self.batch, (1..=1024).contains(&self.batch), "1 to 1024")?;
        let most = self.max_new_tokens;
        within("infer.max_new_tokens", most, (1..=100_000).contains(&most), "1 to 100,000")
    }

    /// How tokens are chosen.
    pub(crate) fn sampling(&self) -> SamplingSettings {
        SamplingSettings {
            temperature: self.temperature,
            top_p: self.top_p,
            no_repeat_ngram_size: usize::try_from(self.no_repeat_ngram_size).unwrap_or(usize::MAX),
            seed: 0,
        }
    }
}

fn within(key: &'static str, found: impl ToString, holds: bool, expected: &'static str) -> Result<(), UserError> {
    if holds { Ok(()) } else { Err(wrong_setting(key, expected, &found.to_string())) }
}
