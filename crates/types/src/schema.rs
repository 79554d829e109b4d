//! Names and versions of the JSON documents the tool writes.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// `llm-perf/<name>/<version>`. The version changes when a reader of the old one would misread the new one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchemaName {
    name: Cow<'static, str>,
    version: u32,
}

/// Why a `schema` field is not one of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a schema name; one looks like `llm-perf/metrics/1`")]
pub struct SchemaNameError(pub String);

/// A JSON document with a `schema` field of its own.
pub trait Document: Serialize + de::DeserializeOwned {
    /// Its name and version.
    const SCHEMA: SchemaName;

    /// Reads one.
    fn from_json(json: &[u8]) -> serde_json::Result<Self>;

    /// Writes it, indented.
    fn write_json(&self, out: &mut dyn Write) -> serde_json::Result<()>;
}

/// The `schema` field of document `D`: writes its name, and reads nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaTag<D>(PhantomData<fn() -> D>);

impl SchemaName {
    /// A name of the tool's own.
    pub const fn new(name: &'static str, version: u32) -> Self {
        Self { name: Cow::Borrowed(name), version }
    }

    /// The part between the slashes, such as `metrics`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    pub const fn version(&self) -> u32 {
        self.version
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "llm-perf/{}/{}", self.name, self.version)
    }
}

impl FromStr for SchemaName {
    type Err = SchemaNameError;

    fn from_str(text: &str) -> Result<Self, SchemaNameError> {
        let malformed = || SchemaNameError(text.to_owned());
        let (name, version) =
            text.strip_prefix("llm-perf/").and_then(|rest| rest.split_once('/')).ok_or_else(malformed)?;
        let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let version = version.parse().ok().filter(|version| named && *version > 0).ok_or_else(malformed)?;
        Ok(Self { name: Cow::Owned(name.to_owned()), version })
    }
}

impl<D> SchemaTag<D> {
    /// The tag; it carries no data of its own.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<D> Default for SchemaTag<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Document> fmt::Debug for SchemaTag<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", D::SCHEMA)
    }
}

impl<D: Document> Serialize for SchemaTag<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&D::SCHEMA)
    }
}

impl<'de, D: Document> Deserialize<'de> for SchemaTag<D> {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        let text = String::deserialize(deserializer)?;
        let found: SchemaName = text.parse().map_err(de::Error::custom)?;
        if found == D::SCHEMA {
            return Ok(Self::new());
        }
        let newer = found.name == D::SCHEMA.name && found.version > D::SCHEMA.version;
        let hint = if newer { "; it was written by a newer llm-perf" } else { "" };
        Err(de::Error::custom(format_args!("schema is {found}, this reads {}{hint}", D::SCHEMA)))
    }
}

#[cfg(test)]
impl<D: Document> schemars::JsonSchema for SchemaTag<D> {
    fn schema_name() -> Cow<'static, str> {
        format!("SchemaTag_{}", D::SCHEMA.name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "const": D::SCHEMA.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HardwareListing;

    #[test]
    fn a_name_reads_back_as_it_was_written() {
        let name = SchemaName::new("metrics", 1);
        assert_eq!(name.to_string().parse(), Ok(name));
    }

    #[test]
    fn what_is_no_schema_name_is_refused() {
        for text in ["", "metrics/1", "llm-perf/metrics", "llm-perf//1", "llm-perf/metrics/0", "llm-perf/metrics/one"] {
            assert_eq!(text.parse::<SchemaName>(), Err(SchemaNameError(text.to_owned())));
        }
    }

    #[test]
    fn a_document_of_a_newer_version_is_refused_by_name() {
        let text = r#"{"schema": "llm-perf/hardware/2", "devices": []}"#;
        let error = serde_json::from_str::<HardwareListing>(text).unwrap_err().to_string();
        assert!(error.contains("llm-perf/hardware/2") && error.contains("newer llm-perf"), "{error}");
    }
}
