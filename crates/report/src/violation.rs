//! Where a document departs from its schema, said so that a reader can act on it.
//!
//! Of an optional or enumerated field, JSON Schema says that none of several schemas fits. A reader wants to know what is wrong inside
//! the one that was meant, or which values there are. The checker knows the keywords that our own schemas use; a general one brings
//! thirty crates.

use std::collections::HashSet;

use serde_json::{Map, Value};
use types::Violation;

/// A value longer than this is described by its kind instead of being repeated.
const SHOWN_VALUE: usize = 80;

/// Keywords that describe and do not restrict. Formats are those of Rust's numbers, whose limits schemas state as well.
#[cfg(test)]
const DESCRIBING: [&str; 8] = ["$schema", "$id", "$defs", "title", "description", "default", "format", "deprecated"];

/// Everything that is wrong, in document order: what the schema refuses, and what was `broken` beside it.
pub(crate) fn violations(schema: &Value, document: &Value, broken: Vec<Violation>) -> Vec<Violation> {
    let refusals = Checker { root: schema }.refusals(schema, document, "");
    let mut found = broken;
    refusals.iter().for_each(|refusal| refusal.explain(&mut found));
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

/// A value that a schema refuses.
struct Refusal<'a> {
    pointer: String,
    value: &'a Value,
    reason: Reason<'a>,
}

enum Reason<'a> {
    /// Not of the types.
    Type(Vec<&'a str>),
    /// Not one of the values.
    Values(Vec<&'a Value>),
    /// None of the alternatives, each with its refusals.
    Alternatives(Vec<Vec<Refusal<'a>>>),
    /// Anything else.
    Other(String),
}

impl<'a> Refusal<'a> {
    fn explain(&self, found: &mut Vec<Violation>) {
        if let Reason::Alternatives(alternatives) = &self.reason {
            // An alternative for another kind of value altogether, such as `null` for a field that may be absent, was not meant.
            let other_kind =
                |inner: &Refusal<'_>| matches!(inner.reason, Reason::Type(_)) && inner.pointer == self.pointer;
            let mut meant = alternatives.iter().filter(|refusals| !refusals.iter().any(other_kind));
            if let (Some(only), None) = (meant.next(), meant.next()) {
                return only.iter().for_each(|refusal| refusal.explain(found));
            }
        }
        let mut choices = Vec::new();
        self.collect_choices(&mut choices);
        let shown = show(self.value);
        let message = match (choices.split_last(), &self.reason) {
            (Some((last, [])), _) => format!("{shown} is not {last}"),
            (Some((last, others)), _) => format!("{shown} is not one of {} or {last}", others.join(", ")),
            (None, Reason::Type(types)) => match &types[..] {
                [one] => format!("{shown} is not of type \"{one}\""),
                several => format!("{shown} is not of types \"{}\"", several.join("\", \"")),
            },
            (None, Reason::Other(why)) => why.clone(),
            (None, Reason::Values(_) | Reason::Alternatives(_)) => format!("{shown} is none of what is allowed here"),
        };
        found.push(Violation { pointer: self.pointer.clone(), message });
    }

    fn collect_choices(&self, choices: &mut Vec<String>) {
        match &self.reason {
            Reason::Values(values) => choices.extend(values.iter().map(|value| value.to_string())),
            Reason::Alternatives(inner) => inner.iter().flatten().for_each(|refusal| refusal.collect_choices(choices)),
            Reason::Type(_) | Reason::Other(_) => {}
        }
    }
}

struct Checker<'a> {
    root: &'a Value,
}

impl<'a> Checker<'a> {
    fn refusals(&self, schema: &'a Value, value: &'a Value, pointer: &str) -> Vec<Refusal<'a>> {
        let Value::Object(schema) = schema else {
            let reason = Reason::Other(format!("{} is not expected here", show(value)));
            let refused = schema == &Value::Bool(false);
            return refused.then(|| Refusal { pointer: pointer.to_owned(), value, reason }).into_iter().collect();
        };
        let mut found = Vec::new();
        for (keyword, rule) in schema {
            let reason = match keyword.as_str() {
                "$ref" => {
                    found.extend(self.refusals(self.definition(rule), value, pointer));
                    None
                }
                "anyOf" | "oneOf" => self.none_of(rule, value, pointer),
                _ => refusal(keyword, rule, value),
            };
            found.extend(reason.map(|reason| Refusal { pointer: pointer.to_owned(), value, reason }));
        }
        match value {
            Value::Object(members) => self.members(schema, members, pointer, &mut found),
            Value::Array(items) => {
                let Some(each) = schema.get("items") else { return found };
                for (place, item) in items.iter().enumerate() {
                    found.extend(self.refusals(each, item, &format!("{pointer}/{place}")));
                }
            }
            _ => {}
        }
        found
    }

    fn members(
        &self,
        schema: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
        pointer: &str,
        found: &mut Vec<Refusal<'a>>,
    ) {
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if key.as_str().is_some_and(|key| !members.contains_key(key)) {
                let reason = Reason::Other(format!("{key} is a required property"));
                found.push(Refusal { pointer: pointer.to_owned(), value: key, reason });
            }
        }
        for (key, value) in members {
            let known = schema.get("properties").and_then(|known| known.get(key));
            if let Some(rule) = known.or_else(|| schema.get("additionalProperties")) {
                let key = key.replace('~', "~0").replace('/', "~1");
                found.extend(self.refusals(rule, value, &format!("{pointer}/{key}")));
            }
        }
    }

    /// What a reference within the schema, such as `#/$defs/Stage`, names.
    fn definition(&self, reference: &Value) -> &'a Value {
        let place = reference.as_str().and_then(|place| place.strip_prefix('#'));
        place.and_then(|place| self.root.pointer(place)).unwrap_or(&Value::Bool(true))
    }

    fn none_of(&self, alternatives: &'a Value, value: &'a Value, pointer: &str) -> Option<Reason<'a>> {
        let refusals: Vec<_> = alternatives.as_array()?.iter().map(|one| self.refusals(one, value, pointer)).collect();
        (!refusals.iter().any(Vec::is_empty)).then_some(Reason::Alternatives(refusals))
    }
}

/// Why a rule that looks at the value alone refuses it.
fn refusal<'a>(keyword: &str, rule: &'a Value, value: &Value) -> Option<Reason<'a>> {
    let numbers = || value.as_f64().zip(rule.as_f64());
    let items = || value.as_array().map(Vec::len).zip(rule.as_u64());
    let shown = || show(value);
    match keyword {
        "type" => {
            let types: Vec<&str> = match rule {
                Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            return (!types.iter().any(|name| is_of(name, value))).then_some(Reason::Type(types));
        }
        "const" => return (rule != value).then(|| Reason::Values(vec![rule])),
        "enum" => {
            let values = rule.as_array()?;
            return (!values.contains(value)).then(|| Reason::Values(values.iter().collect()));
        }
        "minimum" => numbers()
            .filter(|(value, least)| value < least)
            .map(|_| format!("{} is less than the minimum of {rule}", shown())),
        "maximum" => numbers()
            .filter(|(value, most)| value > most)
            .map(|_| format!("{} is greater than the maximum of {rule}", shown())),
        "minItems" => items()
            .filter(|(count, least)| (*count as u64) < *least)
            .map(|_| format!("{} has fewer than {rule} items", shown())),
        "maxItems" => items()
            .filter(|(count, most)| *count as u64 > *most)
            .map(|_| format!("{} has more than {rule} items", shown())),
        "uniqueItems" => {
            let items = value.as_array()?;
            let mut seen = HashSet::new();
            let twice = items.iter().any(|item| !seen.insert(item.to_string()));
            (rule == &Value::Bool(true) && twice).then(|| format!("{} has non-unique elements", shown()))
        }
        "pattern" => {
            let fits = regex::Regex::new(rule.as_str()?).ok()?.is_match(value.as_str()?);
            (!fits).then(|| format!("{} does not match {rule}", shown()))
        }
        _ => None,
    }
    .map(Reason::Other)
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
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
        let violations = violations(schema, document, Vec::new());
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

    /// Every keyword of a schema and of those in it, with its rule.
    fn keywords<'a>(schema: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
        for (keyword, rule) in schema.as_object().into_iter().flatten() {
            found.push((keyword, rule));
            match (keyword.as_str(), rule) {
                ("properties" | "$defs", Value::Object(inner)) => inner.values().for_each(|one| keywords(one, found)),
                ("anyOf" | "oneOf", Value::Array(inner)) => inner.iter().for_each(|one| keywords(one, found)),
                ("items" | "additionalProperties", inner) => keywords(inner, found),
                _ => {}
            }
        }
    }

    #[test]
    fn no_keyword_of_our_schemas_is_passed_over() {
        let checked = [
            "$ref",
            "additionalProperties",
            "anyOf",
            "const",
            "enum",
            "items",
            "maxItems",
            "maximum",
            "minItems",
            "minimum",
            "oneOf",
            "pattern",
            "properties",
            "required",
            "type",
            "uniqueItems",
        ];
        for kind in types::documents::ALL {
            let schema = kind.schema();
            let mut found = Vec::new();
            keywords(&schema, &mut found);
            for (keyword, rule) in found {
                let name = &kind.name;
                assert!(checked.contains(&keyword) || DESCRIBING.contains(&keyword), "{name}: {keyword}");
                match (keyword, rule.as_str()) {
                    ("$ref", place) => {
                        let place = place.and_then(|place| place.strip_prefix('#')).unwrap();
                        assert!(schema.pointer(place).is_some(), "{name}: {place}");
                    }
                    ("pattern", pattern) => assert!(regex::Regex::new(pattern.unwrap()).is_ok(), "{name}: {rule}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn every_rule_refuses_what_breaks_it() {
        let cases = [
            (json!({"minimum": 0}), json!(-1), "-1 is less than the minimum of 0"),
            (json!({"maximum": 1}), json!(1.5), "1.5 is greater than the maximum of 1"),
            (json!({"minItems": 2}), json!([1]), "[1] has fewer than 2 items"),
            (json!({"maxItems": 1}), json!([1, 2]), "[1,2] has more than 1 items"),
            (json!({"uniqueItems": true}), json!([1, 1]), "[1,1] has non-unique elements"),
            (json!({"pattern": "^a$"}), json!("b"), "\"b\" does not match \"^a$\""),
            (json!({"const": 1}), json!(2), "2 is not 1"),
            (json!({"type": "integer"}), json!(1.5), "1.5 is not of type \"integer\""),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}), json!(1), "1 is not of type \"null\""),
            (json!(false), json!(1), "1 is not expected here"),
        ];
        for (schema, document, message) in cases {
            assert_eq!(found(&schema, &document), one("", message));
        }
        assert_eq!(
            found(&json!({"additionalProperties": false}), &json!({"a": 1})),
            one("/a", "1 is not expected here")
        );
        for (schema, document) in [(json!({"type": "integer"}), json!(2.0)), (json!(true), json!(1))] {
            assert_eq!(found(&schema, &document), Vec::new());
        }
    }
}
