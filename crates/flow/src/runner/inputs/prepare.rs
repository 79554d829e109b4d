//! From an input to what the network takes. All of it is done before the first stage.

use engine::image;
use engine::{ImageBatch, PageImages, PromptData, Tokenizer, prompt};
use types::{InputFacts, PageKind, Random, UserError};

use super::{Content, Input};
use crate::runner::error::wrong_feed;
use crate::runner::settings::{InferSettings, MOST_TOKENS, TEXT_MARK};

/// One input, prepared.
pub(crate) struct PreparedInput {
    pub(crate) facts: InputFacts,
    pub(crate) kind: PageKind,
    /// Sides of the global view and of a tile, as they were cut; absent without a page.
    pub(crate) sides: Option<[u64; 2]>,
    pub(crate) fed: ModelInput,
}

/// What the network takes.
pub(crate) enum ModelInput {
    /// Tokens, with the pictures among them.
    Prompt(PromptData),
    /// Pictures and nothing else.
    Pictures(ImageBatch),
}

/// Prepares one input. An error is about this input alone.
pub(crate) fn prepare(
    input: &mut Input,
    infer: &InferSettings,
    tokenizer: Option<&Tokenizer>,
    vocabulary: u64,
) -> Result<PreparedInput, UserError> {
    let text_only = |ids: Vec<i64>| PromptData { image_mask: vec![false; ids.len()], ids, images: None, source: None };
    let batch = infer.batch().into();
    match (&mut input.content, infer, tokenizer) {
        (Content::Image { file, .. }, InferSettings::Pages(settings, _), Some(tokenizer)) => {
            let page = image::prepare(&image::decode(&input.name, file)?, &settings.image());
            let tile = page.tiles.as_ref().map_or(settings.image_size, |tiles| tiles.side as u64);
            let sides = [page.global.side as u64, tile];
            let prompt = prompt::build(tokenizer, &settings.prompt, Some(page))?;
            Ok(PreparedInput { sides: Some(sides), ..PreparedInput::prompt(input, batch, prompt) })
        }
        (Content::Text { text, tokens }, InferSettings::Prompts(settings, _), Some(tokenizer)) => {
            let whole = settings.prompt.replacen(TEXT_MARK, text, 1);
            let mut ids = Vec::from_iter(tokenizer.bos());
            ids.extend(tokenizer.encode(&whole)?);
            let count = ids.len() as u64;
            *tokens = Some(count);
            if count > MOST_TOKENS {
                let name = &input.name;
                return Err(UserError::failed(format!("{name} has {count} tokens; the limit is {MOST_TOKENS}")));
            }
            Ok(PreparedInput::prompt(input, batch, text_only(ids)))
        }
        (Content::Tokens { count, seed }, InferSettings::Prompts(..), Some(tokenizer)) => {
            let mut random = Random::new(*seed);
            let drawn = std::iter::repeat_with(|| (random.number() % vocabulary.max(1)) as i64);
            let ids = tokenizer.bos().into_iter().chain(drawn).take(*count as usize).collect();
            Ok(PreparedInput { kind: PageKind::Synthetic, ..PreparedInput::prompt(input, batch, text_only(ids)) })
        }
        (Content::Pictures { count, side, seed }, ..) => {
            let (count, side) = (*count as usize, *side as usize);
            let mut random = Random::new(*seed);
            let pixels = (0..count * 3 * side * side).map(|_| random.around_zero()).collect();
            let facts = InputFacts {
                name: input.name.clone(),
                width: Some(side as u64),
                height: Some(side as u64),
                crop_grid: None,
                batch: count as u64,
                prompt_tokens: 0,
                image_tokens: 0,
                generated_tokens: 0,
            };
            let fed = ModelInput::Pictures(ImageBatch { count, side, pixels });
            Ok(PreparedInput { facts, kind: PageKind::Synthetic, sides: None, fed })
        }
        // Inputs are found for the settings they are prepared with, and only networks without tokens lack a tokenizer.
        _ => Err(wrong_feed(&input.name)),
    }
}

impl PreparedInput {
    fn prompt(input: &Input, batch: u64, prompt: PromptData) -> Self {
        let page = match &input.content {
            Content::Image { page, .. } => *page,
            _ => None,
        };
        let facts = InputFacts {
            name: input.name.clone(),
            width: page.map(|page| page.width.into()),
            height: page.map(|page| page.height.into()),
            crop_grid: prompt.images.as_ref().map(|page: &PageImages| page.crop_grid),
            batch,
            prompt_tokens: prompt.ids.len() as u64,
            image_tokens: prompt.image_mask.iter().filter(|masked| **masked).count() as u64,
            generated_tokens: 0,
        };
        let kind = page_kind(input.category.as_deref());
        Self { facts, kind, sides: None, fed: ModelInput::Prompt(prompt) }
    }
}

/// What kind of page the dataset's manifest says it is.
fn page_kind(category: Option<&str>) -> PageKind {
    match category {
        Some("text-heavy") => PageKind::TextHeavy,
        Some("mixed-layout") => PageKind::MixedLayout,
        Some("image-rich") => PageKind::ImageRich,
        _ => PageKind::Unknown,
    }
}
