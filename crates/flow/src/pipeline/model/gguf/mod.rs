//! Models that a GGUF file describes: the sizes in its header as a configuration, and how each of its tensors is stored.

mod config;
mod tensors;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use collect::document;
use ingest::gguf::{GgufHeader, is_gguf};
use network::Model;
use network::config::ModelConfig;
use types::{Exit, UserError};

/// Most files of one model.
const MOST_PARTS: u64 = 1000;

/// A header of a model that is not known, or that contradicts itself.
fn wrong_model(file: &str, problem: &str, fix: &str) -> UserError {
    UserError::usage(format!("{file}: {problem}")).hint(fix)
}

/// Whether `file` starts as a GGUF file does. What can be read once only is none: it would lack its start afterwards.
pub(crate) fn is_file(file: &Path) -> bool {
    let mut start = Vec::new();
    let mut read = || File::open(file).and_then(|opened| opened.take(4).read_to_end(&mut start));
    file.is_file() && read().is_ok() && is_gguf(&start)
}

/// The model that `path` describes, with the other files of it where it is one of several.
pub(super) fn read(path: &Path) -> Result<ModelConfig, UserError> {
    let file = path.display().to_string();
    let mut header = header(path)?;
    for part in parts(path, &header)? {
        header.tensors.extend(self::header(&part)?.tensors);
    }
    let text = config::json(&header, &file)?;
    let config = ModelConfig::from_json(&file, &text).map_err(|error| {
        UserError::from(error).hint("the sizes come from the file's metadata; check that the file is complete")
    })?;
    let stored = tensors::stored(Model::new(&config).blueprint(), &header, &file)?;
    Ok(config.stored_as(stored))
}

fn header(path: &Path) -> Result<GgufHeader, UserError> {
    let unreadable = UserError::unreadable(path);
    let opened = document::open(path).map_err(&unreadable)?;
    let size = opened.metadata().map_err(unreadable)?.len();
    ingest::gguf::read(BufReader::new(opened), size, &path.display().to_string())
        .map_err(|error| UserError::from(error).exiting(Exit::Usage))
}

/// The files behind the first one, where `split.count` says that there are any: llama.cpp names them
/// `NAME-00001-of-00003.gguf` and so on, and only the first one has sizes.
fn parts(path: &Path, header: &GgufHeader) -> Result<Vec<PathBuf>, UserError> {
    let count = header.number("split.count").unwrap_or(1);
    if count <= 1 {
        return Ok(Vec::new());
    }
    let file = path.display().to_string();
    if header.number("split.no").unwrap_or(0) != 0 {
        let problem = format!("this is part {} of {count}", header.number("split.no").unwrap_or(0) + 1);
        return Err(wrong_model(&file, &problem, "pass the first part, which contains the sizes of the model"));
    }
    if count > MOST_PARTS {
        let problem = format!("`split.count` is {count}; expected at most {MOST_PARTS}");
        return Err(wrong_model(&file, &problem, "check that the file is complete"));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ending = format!("-{:05}-of-{count:05}.gguf", 1);
    let Some(stem) = name.strip_suffix(&ending) else {
        let problem = format!("`split.count` is {count}, but the file name does not end in `{ending}`");
        return Err(wrong_model(&file, &problem, "restore the file names that llama.cpp gave the parts"));
    };
    let part = |number: u64| path.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf"));
    let others: Vec<_> = (2..=count).map(part).collect();
    match others.iter().find(|other| !other.is_file()) {
        None => Ok(others),
        Some(absent) => {
            let problem = format!("the part {} is missing", absent.display());
            Err(wrong_model(&file, &problem, "put all parts of the model in one folder"))
        }
    }
}

#[cfg(test)]
mod tests;
