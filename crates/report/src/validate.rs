//! Whether a document is what its `schema` field says, in shape and in meaning.

use serde_json::Value;
use types::{SchemaName, Violation};

use crate::rule::broken;
use crate::violation::{kind_of, violations};
use crate::{ReportError, find_schema};

/// A document checked against its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// The schema it names.
    pub schema: SchemaName,
    /// Every place where it does not follow that schema or the rules that go with it, in document order.
    pub violations: Vec<Violation>,
}

/// Checks a document, JSON or YAML, against the schema it names. An error means that it could not be done.
pub fn validate(text: &[u8]) -> Result<Validation, ReportError> {
    let document = parse(text)?;
    let kind = find_schema(schema_field(&document)?)?;
    let schema = kind.schema();
    let violations = violations(&schema, &document, broken(kind.name.name(), &document));
    Ok(Validation { schema: kind.name.clone(), violations })
}

/// The document as a value. What is no JSON and begins with a key is YAML.
fn parse(text: &[u8]) -> Result<Value, ReportError> {
    let reason = match serde_json::from_slice(text) {
        Ok(document) => return Ok(document),
        Err(reason) => reason,
    };
    let text = std::str::from_utf8(text).unwrap_or_default();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    let is_yaml = first.is_some_and(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains(':'));
    if !is_yaml {
        return Err(ReportError::NotJson { reason });
    }
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_str_with_options(text, options).map_err(|reason| ReportError::NotYaml {
        reason: reason.to_string().lines().next().unwrap_or_default().to_owned(),
    })
}

fn schema_field(document: &Value) -> Result<&str, ReportError> {
    let object = document.as_object().ok_or_else(|| ReportError::NotAnObject { found: kind_of(document) })?;
    let field = object.get("schema").ok_or(ReportError::NoSchemaField)?;
    field.as_str().ok_or_else(|| ReportError::SchemaNotText { found: kind_of(field) })
}

#[cfg(test)]
mod tests {
    use types::documents::ALL;

    use super::*;

    const MANIFEST: &str = r#"{
        "schema": "llm-perf/manifest/1", "run_id": "20251115-120000", "status": "complete", "verb": "profile",
        "command": ["llm-perf"], "tool_version": "0.1.0", "started_at": "2025-11-15T12:00:00.000+00:00",
        "process": {"pid": 7}, "files": [{"path": "a", "bytes": 3, "sha256": "SHA"}]
    }"#;

    fn manifest(change: impl FnOnce(&mut Value)) -> String {
        let mut value: Value = serde_json::from_str(&MANIFEST.replace("SHA", &"0".repeat(64))).unwrap();
        change(&mut value);
        value.to_string()
    }

    fn found(text: &str) -> String {
        match validate(text.as_bytes()) {
            Ok(validation) => validation.violations.iter().map(|v| format!("{}: {}\n", v.pointer, v.message)).collect(),
            Err(error) => format!("{error}\n"),
        }
    }

    #[test]
    fn a_good_document_has_no_violation() {
        let validation = validate(manifest(|_| {}).as_bytes()).unwrap();
        assert_eq!(validation.schema.to_string(), "llm-perf/manifest/1");
        assert_eq!(validation.violations, []);
    }

    #[test]
    fn every_violation_is_reported_with_its_place() {
        let text = manifest(|value| {
            value["status"] = "finished".into();
            value["command"] = "llm-perf".into();
            value["process"]["pid"] = (-1).into();
            value["files"][0]["bytes"] = "3".into();
            value["files"][0]["sha256"] = "abc".into();
            value["files"][0]["path"].take();
            value["model"] = 7.into();
            value.as_object_mut().unwrap().shift_remove("verb");
        });
        insta::assert_snapshot!(found(&text), @r#"
        : "verb" is a required property
        /status: "finished" is not one of "running", "complete", "partial" or "failed"
        /command: "llm-perf" is not of type "array"
        /process/pid: -1 is less than the minimum of 0
        /files/0/path: null is not of type "string"
        /files/0/bytes: "3" is not of type "integer"
        /files/0/sha256: "abc" does not match "^[0-9a-f]{64}$"
        /model: 7 is not of types "string", "null"
        "#);
    }

    #[test]
    fn a_pointer_escapes_what_pointers_escape() {
        let text = r#"{"schema": "llm-perf/environment/1", "variables": {"a/b~c": 1}}"#;
        let violations = validate(text.as_bytes()).unwrap().violations;
        assert!(violations.iter().any(|violation| violation.pointer == "/variables/a~1b~0c"), "{violations:?}");
    }

    #[test]
    fn what_cannot_be_checked_says_why() {
        let texts = [
            "",
            "{\n  \"schema\": llm-perf\n}",
            "[1]",
            "null",
            "{}",
            r#"{"schema": 1}"#,
            r#"{"schema": "llm-perf/metric/1"}"#,
            r#"{"schema": "llm-perf/metrics/2"}"#,
            r#"{"schema": "https://json-schema.org/x"}"#,
            "{} {}",
        ];
        insta::assert_snapshot!(texts.map(found).concat(), @r#"
        not JSON: EOF while parsing a value at line 1 column 0
        not JSON: expected value at line 2 column 13
        the document is an array, not an object with a `schema` field
        the document is null, not an object with a `schema` field
        the document has no `schema` field
        the `schema` field is a number, not text such as "llm-perf/metrics/1"
        unknown schema `llm-perf/metric/1`
        the schema is llm-perf/metrics/2, this llm-perf knows llm-perf/metrics/1
        unknown schema `https://json-schema.org/x`
        not JSON: trailing characters at line 1 column 4
        "#);
    }

    #[test]
    fn the_same_document_as_yaml_is_checked_alike() {
        let yaml = |text: &str| crate::yaml(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
        assert_eq!(found(&yaml(&manifest(|_| {}))), "");
        let broken = manifest(|value| value["process"]["pid"] = (-1).into());
        assert_eq!(found(&yaml(&broken)), found(&broken));
        assert_eq!(found("schema: llm-perf/manifest/1\nrun_id: [\n").lines().count(), 1);
        assert!(found("schema: llm-perf/manifest/1\nrun_id: [\n").starts_with("not YAML: "));
        assert!(found("hello").starts_with("not JSON: "));
    }

    #[test]
    fn what_a_document_means_is_checked_beside_its_shape() {
        let text = manifest(|value| {
            let file = value["files"][0].clone();
            value["files"].as_array_mut().unwrap().push(file);
            value["model"] = 7.into();
        });
        insta::assert_snapshot!(found(&text), @r#"
        /files/1/path: "a" is that of /files/0 already; path must be unique
        /model: 7 is not of types "string", "null"
        "#);
    }

    #[test]
    fn text_that_is_not_utf8_is_not_json() {
        assert!(matches!(validate(b"{\"schema\": \"\xff\"}"), Err(ReportError::NotJson { .. })));
    }

    #[test]
    fn every_built_in_schema_is_a_schema_that_refuses_an_empty_document() {
        for kind in ALL {
            let text = format!(r#"{{"schema": "{}"}}"#, kind.name);
            let validation = validate(text.as_bytes()).unwrap();
            assert!(!validation.violations.is_empty(), "{} requires nothing", kind.name);
        }
    }
}
