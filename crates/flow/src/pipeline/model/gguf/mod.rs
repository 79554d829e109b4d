//! Models that a GGUF file describes: the sizes in its header as a configuration, and how each of its tensors is stored.

mod config;
mod tensors;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use collect::document;
use ingest::IngestError;
use ingest::gguf::{GgufHeader, is_gguf};
use network::Model;
use network::config::{ConfigError, ModelConfig};
use types::Failure;

/// Most files of one model.
const MOST_PARTS: u64 = 1000;

/// Why a model could not be read from a GGUF file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// Its header is damaged or not known.
    #[error(transparent)]
    Header(#[from] IngestError),
    /// The header is of a model that is not known, or contradicts itself.
    #[error("{file}: {problem}")]
    Model {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        fix: &'static str,
    },
    /// Sizes that no network has.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl GgufError {
    fn model(file: &str, problem: impl Into<String>, fix: &'static str) -> Self {
        Self::Model { file: file.to_owned(), problem: problem.into(), fix }
    }

    /// What to do.
    pub(super) fn fix(&self) -> Option<String> {
        match self {
            Self::Header(error) => error.hint(),
            Self::Model { fix, .. } => Some((*fix).to_owned()),
            Self::Config(_) => {
                Some("the sizes come from the file's metadata; check that the file is complete".to_owned())
            }
            Self::Unreadable { .. } => None,
        }
    }
}

/// Whether `file` starts as a GGUF file does. What can be read once only is none: it would lack its start afterwards.
pub(crate) fn is_file(file: &Path) -> bool {
    let mut start = Vec::new();
    let mut read = || File::open(file).and_then(|opened| opened.take(4).read_to_end(&mut start));
    file.is_file() && read().is_ok() && is_gguf(&start)
}

/// The model that `path` describes, with the other files of it where it is one of several.
pub(super) fn read(path: &Path) -> Result<ModelConfig, GgufError> {
    let file = path.display().to_string();
    let mut header = header(path)?;
    for part in parts(path, &header)? {
        header.tensors.extend(self::header(&part)?.tensors);
    }
    let text = config::json(&header, &file)?;
    let config = ModelConfig::from_json(&file, &text)?;
    let stored = tensors::stored(Model::new(&config).blueprint(), &header, &file)?;
    Ok(config.stored_as(stored))
}

fn header(path: &Path) -> Result<GgufHeader, GgufError> {
    let unreadable = |reason| GgufError::Unreadable { path: path.to_owned(), reason };
    let opened = document::open(path).map_err(unreadable)?;
    let size = opened.metadata().map_err(unreadable)?.len();
    Ok(ingest::gguf::read(BufReader::new(opened), size, &path.display().to_string())?)
}

/// The files behind the first one, where `split.count` says that there are any: llama.cpp names them
/// `NAME-00001-of-00003.gguf` and so on, and only the first one has sizes.
fn parts(path: &Path, header: &GgufHeader) -> Result<Vec<PathBuf>, GgufError> {
    let count = header.number("split.count").unwrap_or(1);
    if count <= 1 {
        return Ok(Vec::new());
    }
    let file = path.display().to_string();
    if header.number("split.no").unwrap_or(0) != 0 {
        let problem = format!("this is part {} of {count}", header.number("split.no").unwrap_or(0) + 1);
        return Err(GgufError::model(&file, problem, "pass the first part, which contains the sizes of the model"));
    }
    if count > MOST_PARTS {
        let problem = format!("`split.count` is {count}; expected at most {MOST_PARTS}");
        return Err(GgufError::model(&file, problem, "check that the file is complete"));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ending = format!("-{:05}-of-{count:05}.gguf", 1);
    let Some(stem) = name.strip_suffix(&ending) else {
        let problem = format!("`split.count` is {count}, but the file name does not end in `{ending}`");
        return Err(GgufError::model(&file, problem, "restore the file names that llama.cpp gave the parts"));
    };
    let part = |number: u64| path.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf"));
    let others: Vec<_> = (2..=count).map(part).collect();
    match others.iter().find(|other| !other.is_file()) {
        None => Ok(others),
        Some(absent) => {
            let problem = format!("the part {} is missing", absent.display());
            Err(GgufError::model(&file, problem, "put all parts of the model in one folder"))
        }
    }
}

#[cfg(test)]
mod tests;
