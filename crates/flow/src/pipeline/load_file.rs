//! Loads and prompts of files.

use std::path::Path;

use load::Prompts;
use load::replay::{self, Replay};
use types::UserError;

use crate::pipeline::requests::bytes;

pub use load::replay::Replay as LoadFile;

/// The start of a file, by which its format is told.
fn first(bytes: &[u8]) -> u8 {
    bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace()).unwrap_or(b' ')
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
        b'[' => replay::sharegpt(&contents, most),
        b'{' => replay::jsonl(&contents, most),
        _ => replay::lines(&contents, most),
    };
    read.map_err(about(path))
}
