//! What the configuration classes of transformers take where a file does not say, and the other names they give fields:
//! `class_defaults.json`, which `tools/class_defaults.py` writes and checks, and `remote_classes.json` for classes published
//! beside their weights.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

static CLASSES: LazyLock<BTreeMap<String, ClassDefaults>> = LazyLock::new(|| {
    let tables = [include_str!("class_defaults.json"), include_str!("remote_classes.json")];
    let tables = tables.map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
    let classes = tables.iter().filter_map(|table| table.get("classes")?.as_object());
    classes.flatten().map(|(kind, row)| (kind.clone(), ClassDefaults::of_row(row))).collect()
});

/// One class.
#[derive(Debug, Default)]
pub(super) struct ClassDefaults {
    /// What it takes; `null` where it computes a value or does without one.
    values: Map<String, Value>,
    /// Names that mean the same: the common one and the class's own.
    names: Vec<(String, String)>,
    /// `model_type` of its parts.
    parts: BTreeMap<String, String>,
}

impl ClassDefaults {
    /// The class of a `model_type`.
    pub(super) fn of(kind: &str) -> Option<&'static Self> {
        CLASSES.get(kind)
    }

    fn of_row(row: &Value) -> Self {
        let object = |name: &str| row.get(name).and_then(Value::as_object);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            values: object("values").cloned().unwrap_or_default(),
            names: object("names").into_iter().flatten().map(|(name, own)| (name.clone(), text(own))).collect(),
            parts: object("parts").into_iter().flatten().map(|(name, kind)| (name.clone(), text(kind))).collect(),
        }
    }

    /// `model_type` of a part, unless the file names another.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str)
    }

    /// Every name of a field, `name` first.
    pub(super) fn names_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = self.names.iter().filter_map(move |(common, own)| match name {
            name if name == common => Some(own.as_str()),
            name if name == own => Some(common.as_str()),
            _ => None,
        });
        std::iter::once(name).chain(same)
    }

    /// What it takes for a field.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.names_of(name).find_map(|name| self.values.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_class_is_of_a_class_that_is_known() {
        let parts = |kind: &str| ClassDefaults::of(kind).unwrap().parts.clone();
        assert_eq!(parts("llava").get("text_config").map(String::as_str), Some("llama"));
        for (kind, class) in CLASSES.iter() {
            for (name, part) in &class.parts {
                assert!(CLASSES.contains_key(part), "{kind}: {name} is `{part}`");
            }
        }
    }

    #[test]
    fn both_tables_are_read_and_every_other_name_is_one() {
        assert!(CLASSES.len() > 400, "{}", CLASSES.len());
        assert!(CLASSES.contains_key("chatglm"));
        for (kind, class) in CLASSES.iter() {
            assert!(class.names.iter().all(|(name, own)| !name.is_empty() && !own.is_empty()), "{kind}");
        }
    }
}
