//! Pages of documents as prompts.

use load::{Ask, Image, Prompt, Prompts};
use types::UserError;

use crate::runner::inputs::built_in_pages;

/// The pages that ship with the program as images, each with what DeepSeek-OCR is asked.
pub fn pages(most: u32) -> Result<Prompts, UserError> {
    let ask = |bytes: &[u8]| {
        let prompt = Prompt::Chat { text: "Free OCR.".to_owned(), images: vec![Image::new(bytes)?] };
        Ok(Ask { prompt, max_tokens: most })
    };
    let asks = built_in_pages().map(ask).collect::<Result<Vec<_>, load::LoadError>>()?;
    Ok(Prompts::Listed(asks))
}
