//! Remarks: which sentence is to be said, and the facts in it. `report::words` has the sentences.

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Facts;

/// Something to say. In a document it is the sentence alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remark {
    /// Which sentence, such as `run-kind.training`; empty where it was read from a document.
    pub id: String,
    /// The quantities and names in it.
    pub facts: Facts,
    /// The sentence; empty until `report::words` has said it.
    pub text: String,
}

impl Remark {
    /// The sentence of this id, still to be said.
    pub fn new(id: &str, facts: Facts) -> Self {
        Self { id: id.to_owned(), facts, text: String::new() }
    }

    /// A sentence that is said already: one of a document, or of another program.
    pub fn said(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl<T: Into<String>> From<T> for Remark {
    fn from(text: T) -> Self {
        Self::said(text)
    }
}

/// The sentence.
impl std::ops::Deref for Remark {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// The sentence, or its id before it is said.
impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.text.is_empty() { &self.id } else { &self.text })
    }
}

/// A sentence nobody has said fails tests; a user's run keeps its document, with the id in the sentence's place.
impl Serialize for Remark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_unsaid = self.text.is_empty() && !self.id.is_empty();
        if is_unsaid && cfg!(debug_assertions) {
            Err(S::Error::custom(format!("the remark `{}` has no words", self.id)))
        } else {
            serializer.serialize_str(if is_unsaid { &self.id } else { &self.text })
        }
    }
}

impl<'de> Deserialize<'de> for Remark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::said)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Remark {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Remark".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_its_sentence_in_a_document_and_nothing_before_it_is_said() {
        let mut remark = Remark::new("run-kind.training", Facts::new());
        assert_eq!(serde_json::to_string(&remark).is_err(), cfg!(debug_assertions));
        remark.text = "the trace has a backward pass".to_owned();
        let text = serde_json::to_string(&remark).unwrap();
        assert_eq!(serde_json::from_str::<Remark>(&text).unwrap(), Remark::said("the trace has a backward pass"));
    }
}
