//! Loads and prompts of files.

use std::io::Read;
use std::path::Path;

use load::replay::{self, Endpoint, Replay};
use load::{Ask, Image, Prompt, Prompts};
use types::UserError;

use crate::runner::inputs::built_in_pages;

pub use load::replay::Replay as LoadFile;

/// The start of a file, by which its format is told.
fn first(bytes: &[u8]) -> u8 {
    bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace()).unwrap_or(b' ')
}

fn bytes(path: &Path) -> Result<Vec<u8>, UserError> {
    let mut contents = Vec::new();
    let read = collect::document::open(path).and_then(|mut file| file.read_to_end(&mut contents));
    read.map_err(UserError::io("read", path))?;
    Ok(contents)
}

fn about(path: &Path) -> impl Fn(load::LoadError) -> UserError {
    let name = path.display().to_string();
    move |error| {
        let error = UserError::from(error);
        UserError { message: format!("{name}: {}", error.message), ..error }
    }
}

/// A load to repeat: Mooncake's JSON Lines, or a table.
pub fn replay(path: &Path) -> Result<Replay, UserError> {
    let contents = bytes(path)?;
    let read = if first(&contents) == b'{' { replay::mooncake(&contents) } else { replay::csv(&contents) };
    read.map_err(about(path))
}

/// Prompts of a file: ShareGPT's JSON, JSON Lines, or one per line.
pub fn prompts(path: &Path, most: u32) -> Result<Prompts, UserError> {
    let contents = bytes(path)?;
    let read = match first(&contents) {
        b'[' => replay::sharegpt(&contents, Endpoint::Chat, most),
        b'{' => replay::jsonl(&contents, Endpoint::Completions, most),
        _ => replay::lines(&contents, Endpoint::Completions, most),
    };
    read.map_err(about(path))
}

/// The pages that ship with the program as images, each with what DeepSeek-OCR is asked.
pub fn pages(most: u32) -> Result<Prompts, UserError> {
    let ask = |bytes: &[u8]| {
        let prompt = Prompt::Chat { text: "Free OCR.".to_owned(), images: vec![Image::new(bytes)?] };
        Ok(Ask { prompt, max_tokens: most })
    };
    let asks = built_in_pages().map(ask).collect::<Result<Vec<_>, load::LoadError>>()?;
    Ok(Prompts::Listed(asks))
}
