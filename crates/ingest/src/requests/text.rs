//! The text of a file of requests: JSON values one after the other, as Python writes them.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Error};

use super::EXPECTED;
use crate::IngestError;

/// Numbers that Python's `json` writes and JSON does not have.
const LITERALS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// A text and the name of its file.
pub(super) struct RequestText<'a> {
    file: &'a str,
    bytes: Cow<'a, [u8]>,
}

impl<'a> RequestText<'a> {
    /// The text, which is not empty. What is not a number is `null` in it.
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Result<Self, IngestError> {
        if bytes.trim_ascii().is_empty() {
            return Err(IngestError::Empty { file: file.to_owned(), expected: EXPECTED });
        }
        Ok(Self { file, bytes: without_literals(bytes) })
    }

    /// Whether it starts with a list.
    pub(super) fn is_list(&self) -> bool {
        self.bytes.trim_ascii_start().starts_with(b"[")
    }

    /// The first value.
    pub(super) fn first<T: DeserializeOwned>(&self) -> Result<T, IngestError> {
        Ok(self.header()?.0)
    }

    /// Every value.
    pub(super) fn values<T: DeserializeOwned>(&self) -> Result<Vec<T>, IngestError> {
        self.values_of(&self.bytes)
    }

    /// The first value, and those that follow.
    pub(super) fn header_and_values<H, T>(&self) -> Result<(H, Vec<T>), IngestError>
    where
        H: DeserializeOwned,
        T: DeserializeOwned,
    {
        let (header, end) = self.header()?;
        Ok((header, self.values_of(&self.bytes[end..])?))
    }

    /// The first value and where it ends.
    fn header<T: DeserializeOwned>(&self) -> Result<(T, usize), IngestError> {
        let mut values = Deserializer::from_slice(&self.bytes).into_iter();
        let first = values.next().ok_or_else(|| self.empty())?;
        Ok((first.map_err(|error| self.broken(&error))?, values.byte_offset()))
    }

    fn values_of<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<Vec<T>, IngestError> {
        let values: Result<_, Error> = Deserializer::from_slice(bytes).into_iter().collect();
        values.map_err(|error| self.broken(&error))
    }

    /// The file has no value.
    pub(super) fn empty(&self) -> IngestError {
        IngestError::Empty { file: self.file.to_owned(), expected: EXPECTED }
    }

    fn broken(&self, error: &Error) -> IngestError {
        if !error.is_data() {
            return IngestError::NotJson { file: self.file.to_owned(), reason: error.to_string() };
        }
        let place = format!("line {}, column {}", error.line(), error.column());
        let mut reason = error.to_string();
        reason.truncate(reason.rfind(" at line ").unwrap_or(reason.len()));
        if reason.contains("null") && matches!(self.bytes, Cow::Owned(_)) {
            reason += " (NaN and Infinity are read as null)";
        }
        self.refused(place, reason, "check that the file has the expected format")
    }

    /// An error about something in the file.
    pub(super) fn refused(&self, place: String, reason: String, fix: &'static str) -> IngestError {
        IngestError::Refused { file: self.file.to_owned(), place, reason, fix }
    }

    /// An error about a time that is not one.
    pub(super) fn no_time(&self, request: usize) -> IngestError {
        let reason = "a time is not a number of nanoseconds that 64 bits hold".to_owned();
        self.refused(self::request(request), reason, "check that the file is as the load generator wrote it")
    }

    /// An error about a file of another kind.
    pub(super) fn wrong_format(&self, found: &str) -> IngestError {
        IngestError::WrongFormat { file: self.file.to_owned(), expected: EXPECTED, found: found.to_owned() }
    }

    /// An error about a version of llm-perf's own format.
    pub(super) fn newer(&self, found: &str) -> IngestError {
        IngestError::NewerVersion {
            file: self.file.to_owned(),
            format: "llm-perf/requests",
            found: found.to_owned(),
            known: "1",
        }
    }
}

/// The place of a request, counted from one.
pub(super) fn request(index: usize) -> String {
    format!("request {}", index + 1)
}

/// The text with `null` for what is not a number.
fn without_literals(bytes: &[u8]) -> Cow<'_, [u8]> {
    if LITERALS.iter().all(|literal| memmem::find(bytes, literal).is_none()) {
        return Cow::Borrowed(bytes);
    }
    let mut text = Vec::with_capacity(bytes.len());
    let (mut rest, mut in_text) = (bytes, false);
    while let Some(first) = rest.first() {
        let literal = LITERALS.iter().find(|literal| !in_text && rest.starts_with(literal));
        let length = match (literal, first) {
            (Some(literal), _) => literal.len(),
            (None, b'\\') if in_text => rest.len().min(2),
            (None, _) => 1,
        };
        in_text ^= *first == b'"';
        text.extend_from_slice(if literal.is_some() { b"null" } else { &rest[..length] });
        rest = &rest[length..];
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_python_are_null_outside_of_texts() {
        let text = br#"{"a": [NaN, -Infinity,Infinity, -1], "NaN": "Infinity \"NaN", "b\\": NaN}"#;
        let expected = br#"{"a": [null, null,null, -1], "NaN": "Infinity \"NaN", "b\\": null}"#;
        assert_eq!(without_literals(text).as_ref(), expected);
        assert_eq!(without_literals(b"\"NaN\\").as_ref(), b"\"NaN\\");
        assert!(matches!(without_literals(b"{}"), Cow::Borrowed(_)));
    }
}
