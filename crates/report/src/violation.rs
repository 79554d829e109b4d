//! From what the schema validator found to what a reader can act on.
//!
//! A validator says of an optional or enumerated field that none of several schemas fits. A reader wants to know what is
//! wrong inside the one that was meant, or which values there are.

use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;
use types::Violation;

/// A value longer than this is described by its kind instead of being repeated.
const SHOWN_VALUE: usize = 80;

/// Everything that is wrong, in document order: what the schema's validator found, and what was `broken` beside it.
pub(crate) fn violations<'a>(
    document: &Value,
    errors: impl Iterator<Item = ValidationError<'a>>,
    broken: Vec<Violation>,
) -> Vec<Violation> {
    let mut found = broken;
    errors.for_each(|error| explain(&error, &mut found));
    found.sort_by_cached_key(|violation| position(document, &violation.pointer));
    found
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn explain(error: &ValidationError<'_>, found: &mut Vec<Violation>) {
    if let Some(alternatives) = alternatives(error) {
        let mut meant = alternatives.iter().filter(|alternative| !refuses_kind(alternative, error));
        if let (Some(only), None) = (meant.next(), meant.next()) {
            return only.iter().for_each(|error| explain(error, found));
        }
    }
    let mut choices = Vec::new();
    collect_choices(error, &mut choices);
    let shown = show(error.instance());
    let message = match choices.split_last() {
        Some((last, [])) => format!("{shown} is not {last}"),
        Some((last, others)) => format!("{shown} is not one of {} or {last}", others.join(", ")),
        None => error.masked_with(shown).to_string(),
    };
    found.push(Violation { pointer: error.instance_path().to_string(), message });
}

fn alternatives<'e>(error: &'e ValidationError<'_>) -> Option<&'e [Vec<ValidationError<'static>>]> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => Some(context),
        _ => None,
    }
}

/// Whether the alternative is for another kind of value altogether, such as `null` for a field that may be absent.
fn refuses_kind(alternative: &[ValidationError<'static>], error: &ValidationError<'_>) -> bool {
    alternative.iter().any(|inner| {
        matches!(inner.kind(), ValidationErrorKind::Type { .. }) && inner.instance_path() == error.instance_path()
    })
}

fn collect_choices(error: &ValidationError<'_>, choices: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => choices.push(expected_value.to_string()),
        ValidationErrorKind::Enum { options } => {
            choices.extend(options.as_array().into_iter().flatten().map(Value::to_string));
        }
        _ => {
            alternatives(error).into_iter().flatten().flatten().for_each(|inner| collect_choices(inner, choices));
        }
    }
}

fn show(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= SHOWN_VALUE { text } else { kind_of(value).to_owned() }
}

/// Where a pointer leads, as the place of each of its parts among its siblings.
fn position(document: &Value, pointer: &str) -> Vec<usize> {
    let mut value = document;
    let mut places = Vec::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let (place, inner) = match value {
            Value::Object(members) => match members.iter().enumerate().find(|(_, (key, _))| **key == part) {
                Some((place, (_, inner))) => (place, inner),
                None => break,
            },
            Value::Array(items) => match part.parse().ok().and_then(|place: usize| Some((place, items.get(place)?))) {
                Some(found) => found,
                None => break,
            },
            _ => break,
        };
        places.push(place);
        value = inner;
    }
    places
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value, document: &Value) -> Vec<(String, String)> {
        let validator = jsonschema::draft202012::new(schema).unwrap();
        let violations = violations(document, validator.iter_errors(document), Vec::new());
        violations.into_iter().map(|violation| (violation.pointer, violation.message)).collect()
    }

    fn one(pointer: &str, message: &str) -> Vec<(String, String)> {
        vec![(pointer.to_owned(), message.to_owned())]
    }

    #[test]
    fn what_is_wrong_inside_an_optional_field_is_reported_where_it_is() {
        let schema = json!({"properties": {"overhead": {"anyOf": [
            {"type": "object", "properties": {"share": {"type": "number"}}},
            {"type": "null"},
        ]}}});
        let document = json!({"overhead": {"share": "10%"}});
        assert_eq!(found(&schema, &document), one("/overhead/share", r#""10%" is not of type "number""#));
    }

    #[test]
    fn a_value_that_is_none_of_several_is_shown_all_of_them() {
        let states = json!({"oneOf": [{"type": "string", "const": "on"}, {"type": "string", "enum": ["off", "auto"]}]});
        let schema = json!({"properties": {"state": {"anyOf": [states, {"type": "null"}]}}});
        let expected = |shown: &str| one("/state", &format!(r#"{shown} is not one of "on", "off" or "auto""#));
        assert_eq!(found(&schema, &json!({"state": "of"})), expected("\"of\""));
        assert_eq!(found(&schema, &json!({"state": 7})), expected("7"));
    }

    #[test]
    fn a_long_value_is_not_repeated() {
        let schema = json!({"properties": {"stages": {"type": "object"}}});
        let document = json!({"stages": vec!["x"; 40]});
        assert_eq!(found(&schema, &document), one("/stages", r#"an array is not of type "object""#));
    }

    #[test]
    fn violations_come_in_document_order_and_numbers_count() {
        let schema = json!({"additionalProperties": {"items": {"type": "string"}}});
        let mut items = vec![json!("x"); 12];
        items[2] = json!(1);
        items[11] = json!(1);
        let document = json!({"z": items, "a/b": [null]});
        let pointers: Vec<String> = found(&schema, &document).into_iter().map(|(pointer, _)| pointer).collect();
        assert_eq!(pointers, ["/z/2", "/z/11", "/a~1b/0"]);
    }
}
