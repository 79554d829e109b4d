//! Text to token ids and back.
//!
//! Where an image stands in the text, and the token that starts it, is left to `prompt`.

use std::path::Path;

use network::config::without_infinities;
use serde_json::Value;
use types::UserError;

/// What marks an image in a text, and the name of its token.
pub const IMAGE_MARK: &str = "<image>";

/// Ids of the tokens with a meaning of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Starts every prompt; none for models that have no such token.
    pub bos: Option<i64>,
    /// End a text; the published configurations name one or several.
    pub eos: Vec<i64>,
}

/// A tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    kind: Kind,
    name: String,
    special: SpecialIds,
    image: Option<i64>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// A token for each byte; `usable` ids from `FIRST_BYTE` on.
    Bytes { usable: i64 },
    /// A published `tokenizer.json`.
    File(Box<tokenizers::Tokenizer>),
}

/// Ids of the byte tokenizer: BOS, EOS, one left free for padding, then the bytes; the last id of the vocabulary is the
/// image token.
const BOS: i64 = 0;
const EOS: i64 = 1;
const FIRST_BYTE: i64 = 3;
const BYTES: i64 = 256;

/// Where configurations of models with several parts keep the ids of the language part.
const LANGUAGE_PARTS: [&str; 2] = ["language_config", "text_config"];

/// Most bytes of a tokenizer; the largest published ones have a thirtieth of it. What is named may be a device without an end.
const LARGEST_FILE: u64 = 1 << 30;

const OWN: &str = "use the tokenizer.json that belongs to the model";

fn read(path: &Path) -> Result<Vec<u8>, UserError> {
    crate::file::read(path, LARGEST_FILE).map_err(UserError::io("read", path))
}

impl SpecialIds {
    /// The ids that a model's `config.json` names. One that is absent or null stays unknown.
    pub fn from_config(path: &Path) -> Result<Self, UserError> {
        let bytes = read(path)?;
        let wrong =
            |reason: String| UserError::failed(format!("{} is not a model configuration: {reason}", path.display()));
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let config: Value =
            serde_json::from_str(&without_infinities(&text)).map_err(|error| wrong(error.to_string()))?;
        let named = |key: &str| {
            let parts = LANGUAGE_PARTS.iter().filter_map(|part| config.get(part));
            std::iter::once(&config).chain(parts).filter_map(|part| part.get(key)).find(|value| !value.is_null())
        };
        let ids = |key: &str| -> Result<Vec<i64>, UserError> {
            let values = match named(key) {
                None => &[][..],
                Some(Value::Array(values)) => values,
                Some(value) => std::slice::from_ref(value),
            };
            let id = |value: &Value| value.as_i64().ok_or_else(|| wrong(format!("{key} is {value}, not a token id")));
            values.iter().map(id).collect()
        };
        Ok(Self { bos: ids("bos_token_id")?.first().copied(), eos: ids("eos_token_id")? })
    }
}

impl Tokenizer {
    /// The tokenizer of a published model: `tokenizer.json` and `config.json` of a folder.
    pub fn from_folder(folder: &Path) -> Result<Self, UserError> {
        let special = SpecialIds::from_config(&folder.join("config.json"))?;
        Self::from_file(&folder.join("tokenizer.json"), special)
    }

    /// The tokenizer of a `tokenizer.json`, which does not say itself which of its tokens are BOS and EOS.
    pub fn from_file(path: &Path, special: SpecialIds) -> Result<Self, UserError> {
        let bytes = read(path)?;
        let inner = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| UserError::failed(format!("{} is not a tokenizer: {error}", path.display())).hint(OWN))?;
        let image = inner.token_to_id(IMAGE_MARK).map(i64::from);
        Ok(Self { kind: Kind::File(Box::new(inner)), name: path.display().to_string(), special, image })
    }

    /// A token for each byte, for models with synthetic weights: it needs no file and gives every text a length that
    /// is easy to predict. Reversible from 260 ids on; below, several bytes share an id.
    pub fn bytes(vocabulary: u64) -> Result<Self, UserError> {
        let ids = i64::try_from(vocabulary).unwrap_or(i64::MAX);
        let usable = ids - FIRST_BYTE - 1;
        if usable < 1 {
            let least = FIRST_BYTE + 2;
            return Err(UserError::failed(format!(
                "a vocabulary of {vocabulary} is too small for the byte tokenizer, which needs {least} ids"
            ))
            .hint("use a model with a larger vocabulary"));
        }
        Ok(Self {
            kind: Kind::Bytes { usable: usable.min(BYTES) },
            name: "the byte tokenizer".into(),
            special: SpecialIds { bos: Some(BOS), eos: vec![EOS] },
            image: Some(ids - 1),
        })
    }

    /// What messages and reports call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The BOS token, which starts every prompt.
    pub fn bos(&self) -> Option<i64> {
        self.special.bos
    }

    /// Whether generation stops at this token.
    pub fn is_end(&self, id: i64) -> bool {
        self.special.eos.contains(&id)
    }

    /// The token that stands for a part of an image.
    pub fn image(&self) -> Option<i64> {
        self.image
    }

    /// Ids of a text, without BOS and EOS.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, UserError> {
        match &self.kind {
            Kind::Bytes { usable } => Ok(text.bytes().map(|byte| FIRST_BYTE + i64::from(byte) % usable).collect()),
            Kind::File(inner) => {
                let encoding = inner.encode_fast(text, false).map_err(|error| self.failed(error))?;
                Ok(encoding.get_ids().iter().map(|id| i64::from(*id)).collect())
            }
        }
    }

    /// Text of ids, without special tokens. What stands for no text is shown as the replacement character.
    pub fn decode(&self, ids: &[i64]) -> Result<String, UserError> {
        match &self.kind {
            Kind::Bytes { .. } => {
                let is_special = |id: i64| (0..FIRST_BYTE).contains(&id) || self.image == Some(id);
                // 0xff starts no character in UTF-8.
                let byte = |id: i64| u8::try_from(id - FIRST_BYTE).unwrap_or(0xff);
                let bytes: Vec<u8> = ids.iter().copied().filter(|id| !is_special(*id)).map(byte).collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Kind::File(inner) => {
                // A model may have more outputs than its tokenizer has tokens.
                let known: Vec<Option<u32>> = ids
                    .iter()
                    .map(|id| u32::try_from(*id).ok().filter(|id| inner.id_to_token(*id).is_some()))
                    .collect();
                let parts: Result<Vec<String>, UserError> = known
                    .split(Option::is_none)
                    .map(|part| part.iter().flatten().copied().collect::<Vec<u32>>())
                    .map(|part| inner.decode(&part, true).map_err(|error| self.failed(error)))
                    .collect();
                Ok(parts?.join("\u{fffd}"))
            }
        }
    }

    fn failed(&self, error: tokenizers::Error) -> UserError {
        UserError::failed(format!("{} failed: {error}", self.name)).hint(OWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_follow_the_special_ids() {
        let tokenizer = Tokenizer::bytes(512).unwrap();
        assert_eq!(tokenizer.encode("Az").unwrap(), [3 + 65, 3 + 122]);
        assert_eq!((tokenizer.bos(), tokenizer.image()), (Some(0), Some(511)));
        assert!(tokenizer.is_end(1) && !tokenizer.is_end(0));
    }

    #[test]
    fn special_and_unknown_ids_are_told_apart() {
        let tokenizer = Tokenizer::bytes(512).unwrap();
        assert_eq!(tokenizer.decode(&[0, 3 + 72, 511, 3 + 105, 1]).unwrap(), "Hi");
        assert_eq!(tokenizer.decode(&[3 + 72, 400, -7]).unwrap(), "H\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_small_vocabulary_stays_within_its_ids() {
        let tokenizer = Tokenizer::bytes(5).unwrap();
        assert_eq!(tokenizer.encode("any text").unwrap(), [3; 8]);
        assert_eq!(tokenizer.image(), Some(4));
        let error = Tokenizer::bytes(4).unwrap_err();
        assert_eq!(error.to_string(), "a vocabulary of 4 is too small for the byte tokenizer, which needs 5 ids");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text: String, vocabulary in 260_u64..200_000) {
            let tokenizer = Tokenizer::bytes(vocabulary).unwrap();
            let ids = tokenizer.encode(&text).unwrap();
            prop_assert_eq!(ids.len(), text.len());
            prop_assert!(ids.iter().all(|id| (3..vocabulary as i64 - 1).contains(id)));
            prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }
    }
}
