//! GGUF files of llama.cpp: what the header says of a model, and how each tensor is stored. Weights are not read.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

mod source;
mod tensor_type;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use crate::IngestError;
use source::Source;
pub use tensor_type::TensorType;
pub use value::GgufValue;

/// The first bytes of every such file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// Versions with this layout; the first one counted in 32 bits.
const VERSIONS: [u32; 2] = [2, 3];

/// Most values and tensors that are taken seriously; real files have some hundred of the one and thousands of the other.
const MOST_VALUES: u64 = 1 << 16;
const MOST_TENSORS: u64 = 1 << 18;

/// Longest name: what the format allows for a key.
const LONGEST_NAME: u64 = (1 << 16) - 1;

/// Most dimensions of a tensor.
const MOST_DIMENSIONS: u32 = 4;

/// What the header of a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufHeader {
    /// Values by key.
    pub values: BTreeMap<String, GgufValue>,
    /// Tensors in the order of the file.
    pub tensors: Vec<GgufTensor>,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Sizes, the fastest first.
    pub dimensions: Vec<u64>,
    /// How it is stored.
    pub kind: &'static TensorType,
    /// Elements.
    pub elements: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Whether a file that starts so is one.
pub fn is_gguf(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Reads the header of a file of `size` bytes; `file` is what errors call it.
pub fn read(bytes: impl Read, size: u64, file: &str) -> Result<GgufHeader, IngestError> {
    let mut source = Source::new(bytes, size, file);
    let magic: [u8; 4] = source.array("the first bytes")?;
    if !is_gguf(&magic) {
        let found = format!("the first bytes are {magic:02x?}");
        return Err(IngestError::WrongFormat { file: file.to_owned(), expected: "a GGUF file", found });
    }
    let version = source.u32("the version")?;
    if !VERSIONS.contains(&version) {
        return Err(unknown_version(file, version));
    }
    let tensors = count(&mut source, "the number of tensors", MOST_TENSORS)?;
    let values = count(&mut source, "the number of metadata values", MOST_VALUES)?;
    let values = read_values(&mut source, values)?;
    let tensors = read_tensors(&mut source, tensors)?;
    Ok(GgufHeader { values, tensors })
}

fn unknown_version(file: &str, version: u32) -> IngestError {
    let (reason, fix) = match version {
        version if VERSIONS.contains(&version.swap_bytes()) => (
            "the file is big-endian; only little-endian files are supported".to_owned(),
            "convert it with gguf-py's `gguf-convert-endian`",
        ),
        1 => (
            "version 1; only versions 2 and 3 are supported".to_owned(),
            "convert the model again with a current llama.cpp",
        ),
        version => (
            format!("version {version}; only versions 2 and 3 are supported"),
            "check that the file is complete, or update llm-perf",
        ),
    };
    IngestError::Refused { file: file.to_owned(), place: "byte 4, the version".to_owned(), reason, fix }
}

fn count<R: Read>(source: &mut Source<'_, R>, what: &str, most: u64) -> Result<u64, IngestError> {
    let count = source.u64(what)?;
    match count {
        count if count > most => Err(source.damaged(what, format!("{count}; the limit is {most}"))),
        count => Ok(count),
    }
}

fn read_values<R: Read>(source: &mut Source<'_, R>, count: u64) -> Result<BTreeMap<String, GgufValue>, IngestError> {
    let mut values = BTreeMap::new();
    for index in 0..count {
        let key = source.name(LONGEST_NAME, &format!("the key of metadata value {index}"))?;
        let what = format!("the value of `{}`", shown(&key));
        let value = value::read(source, &what)?;
        if values.contains_key(&key) {
            return Err(source.damaged(&what, "duplicate key"));
        }
        values.insert(key, value);
    }
    Ok(values)
}

fn read_tensors<R: Read>(source: &mut Source<'_, R>, count: u64) -> Result<Vec<GgufTensor>, IngestError> {
    let mut tensors = Vec::new();
    let mut names = BTreeSet::new();
    for index in 0..count {
        let name = source.name(LONGEST_NAME, &format!("the name of tensor {index}"))?;
        let what = format!("tensor `{}`", shown(&name));
        let rank = source.u32(&what)?;
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            let reason = format!("{rank} dimensions; expected 1 to {MOST_DIMENSIONS}");
            return Err(source.damaged(&what, reason));
        }
        let dimensions = (0..rank).map(|_| source.u64(&what)).collect::<Result<Vec<_>, _>>()?;
        let id = source.u32(&what)?;
        let kind = TensorType::of_id(id).ok_or_else(|| IngestError::Refused {
            file: source.file().to_owned(),
            place: format!("byte {}, {what}", source.at()),
            reason: format!("unknown type {id}; expected one of {}", TensorType::names()),
            fix: "update llm-perf, or quantise the model to a supported type",
        })?;
        let _offset = source.u64(&what)?;
        let elements = dimensions.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let sizes =
            elements.filter(|elements| *elements > 0).and_then(|elements| Some((elements, kind.bytes_of(elements)?)));
        let Some((elements, bytes)) = sizes else {
            return Err(source.damaged(&what, format!("invalid sizes {dimensions:?}")));
        };
        if !dimensions[0].is_multiple_of(kind.block) {
            let reason = format!("rows of {} elements; {} has blocks of {}", dimensions[0], kind.name, kind.block);
            return Err(source.damaged(&what, reason));
        }
        if !names.insert(name.clone()) {
            return Err(source.damaged(&what, "duplicate name"));
        }
        tensors.push(GgufTensor { name, dimensions, kind, elements, bytes });
    }
    Ok(tensors)
}

/// A name short enough for a message, without what commands a terminal.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

impl GgufHeader {
    /// The number under `key`.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key).and_then(GgufValue::as_u64)
    }

    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some(GgufValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&GgufTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

#[cfg(test)]
mod tests;
