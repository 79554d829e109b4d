//! A JSON value that knows its place in the document, so that what is wrong with it can be said with a pointer.

use serde_json::Value;

use crate::IngestError;

/// One value, the file it is in and its JSON pointer.
#[derive(Clone)]
pub(crate) struct JsonNode<'a> {
    file: &'a str,
    pointer: String,
    value: &'a Value,
}

/// Parses the text of `file`, which holds `expected`.
pub(crate) fn parse(file: &str, text: &str, expected: &'static str) -> Result<Value, IngestError> {
    if text.trim().is_empty() {
        return Err(IngestError::Empty { file: file.to_owned(), expected });
    }
    serde_json::from_str(text)
        .map_err(|error| IngestError::NotJson { file: file.to_owned(), reason: error.to_string() })
}

impl<'a> JsonNode<'a> {
    /// The whole document.
    pub(crate) fn document(file: &'a str, value: &'a Value) -> Self {
        Self { file, pointer: String::new(), value }
    }

    /// Field `name` of an object, which must be there.
    pub(crate) fn field(&self, name: &str, expected: &'static str) -> Result<Self, IngestError> {
        let object = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let pointer = format!("{}/{}", self.pointer, name.replace('~', "~0").replace('/', "~1"));
        match object.get(name) {
            Some(value) => Ok(Self { file: self.file, pointer, value }),
            None => Err(IngestError::Missing { file: self.file.to_owned(), pointer, expected }),
        }
    }

    /// The elements of a list.
    pub(crate) fn list(&self) -> Result<Vec<Self>, IngestError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let element = |(index, value)| Self { file: self.file, pointer: format!("{}/{index}", self.pointer), value };
        Ok(list.iter().enumerate().map(element).collect())
    }

    /// The text.
    pub(crate) fn text(&self) -> Result<String, IngestError> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong("a string"))
    }

    /// The whole number.
    pub(crate) fn count(&self) -> Result<u64, IngestError> {
        self.value.as_u64().ok_or_else(|| self.wrong("a non-negative integer"))
    }

    /// The truth value.
    pub(crate) fn truth(&self) -> Result<bool, IngestError> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// An error about the contents of this value.
    pub(crate) fn inconsistent(&self, reason: String) -> IngestError {
        IngestError::Inconsistent { file: self.file.to_owned(), pointer: self.pointer.clone(), reason }
    }

    /// Its JSON pointer.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    fn wrong(&self, expected: &'static str) -> IngestError {
        let found = match self.value {
            Value::Null => "null".to_owned(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(_) => "a string".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        IngestError::WrongKind { file: self.file.to_owned(), pointer: self.pointer.clone(), expected, found }
    }
}
