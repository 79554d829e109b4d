//! The overrides of one composition, in order, and who asked for each.
//!
//! Responsible for turning values into overrides and for questions about which keys they touch, so that nobody above
//! this crate reads or writes the text of one. What an override does to a tree is decided where it is applied.

use serde_json::Value;

use super::error::ConfigError;
use super::overriding::{Action, Override};
use super::source::OverrideSource;

/// Overrides in the order in which they apply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides(Vec<Override>);

impl Overrides {
    /// Those that the user typed, each in the notation `key=value`, `group@package=option`, `+key=value` or `~key`.
    pub fn typed<T: AsRef<str>>(texts: &[T]) -> Result<Self, ConfigError> {
        texts
            .iter()
            .map(|text| Override::parse(text.as_ref(), OverrideSource::Typed))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Changes the value at a key.
    pub fn set(&mut self, key: &str, value: impl Into<Value>, source: OverrideSource) {
        self.0.push(Override::new(Action::Change, key, None, Some(&yaml(&value.into())), source));
    }

    /// Changes the value at a key to what a text says as YAML.
    pub fn set_yaml(&mut self, key: &str, text: &str, source: OverrideSource) -> Result<(), ConfigError> {
        self.0.push(Override::parse(&format!("{key}={text}"), source)?);
        Ok(())
    }

    /// Chooses an option of a group, wherever the group is mounted.
    pub fn choose(&mut self, group: &str, option: &str, source: OverrideSource) {
        self.0.push(Override::new(Action::Change, group, None, Some(option), source));
    }

    /// Mounts an option of a group at a key, in the place of what is mounted there.
    pub fn mount(&mut self, group: &str, package: &str, option: &str, source: OverrideSource) {
        self.0.push(Override::new(Action::Change, group, Some(package), Some(option), source));
    }

    /// Applies these after the ones there are.
    pub fn append(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// In order.
    pub fn iter(&self) -> std::slice::Iter<'_, Override> {
        self.0.iter()
    }

    /// Whether one of them changes the value at a key, or something above or below it.
    pub fn touches(&self, key: &str) -> bool {
        self.0.iter().any(|one| one.touches(key))
    }

    /// The last one that changes the value at a key.
    pub fn last(&self, key: &str) -> Option<&Override> {
        self.0.iter().rev().find(|one| one.touches(key))
    }

    /// Only those that touch one of the keys.
    pub fn only(&self, keys: &[&str]) -> Self {
        self.filtered(|one| keys.iter().any(|key| one.touches(key)))
    }

    /// Only those that touch none of the keys.
    pub fn without(&self, keys: &[&str]) -> Self {
        self.filtered(|one| !keys.iter().any(|key| one.touches(key)))
    }

    fn filtered(&self, keep: impl Fn(&Override) -> bool) -> Self {
        Self(self.0.iter().filter(|one| keep(one)).cloned().collect())
    }
}

/// A value on one line.
fn yaml(value: &Value) -> String {
    match value {
        // JSON's own escapes are the only way to keep a line break on one line.
        Value::String(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', "''")),
        Value::Array(list) => format!("[{}]", list.iter().map(yaml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node;

    fn value(value: Value) -> node::Value {
        let mut overrides = Overrides::default();
        overrides.set("a", value, OverrideSource::Verb);
        overrides.iter().next().unwrap().node().unwrap().unwrap().value
    }

    #[test]
    fn every_text_arrives_as_it_is() {
        for text in ["plain", "it's", "12", "null", "a # b", "[x, y]", "", " padded ", "two\nlines\t'", "\"q\"", "a: b"]
        {
            assert_eq!(value(json!(text)), node::Value::Text(text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn other_values_keep_their_type() {
        assert_eq!(value(json!(null)), node::Value::Null);
        assert_eq!(value(json!(true)), node::Value::Bool(true));
        assert_eq!(value(json!(12)), node::Value::Int(12));
        let node::Value::List(list) = value(json!(["a,b", "it's"])) else { panic!("a list") };
        let texts: Vec<_> = list.into_iter().map(|node| node.value).collect();
        assert_eq!(texts, [node::Value::Text("a,b".into()), node::Value::Text("it's".into())]);
    }

    #[test]
    fn what_is_touched_goes_by_whole_names() {
        let typed = |text: &str| Overrides::typed(&[text]).unwrap();
        assert!(typed("workload.batch=2").touches("workload"));
        assert!(typed("workload={batch: 2}").touches("workload.batch"));
        assert!(typed("~dataset.file_list").touches("dataset"));
        assert!(!typed("workloads.batch=2").touches("workload"));
        assert!(!typed("runner.run.mode=light").touches("run"));
        assert!(typed("dataset/sampling=sampling.smoke").touches("dataset"));
        assert!(typed("model/llm/infer@infer=x").touches("infer.seq_len"));
        assert!(!typed("model/llm/infer@infer=x").touches("model"));
        assert!(typed("profiling/ncu@pipeline.ncu=ncu.light").touches("pipeline"));
    }

    #[test]
    fn lists_are_taken_apart_by_key_and_keep_their_order() {
        let mut all = Overrides::default();
        all.mount("model/llm", "model", "alt", OverrideSource::Verb);
        all.append(&Overrides::typed(&["run.id=x", "model.name=y", "run.id=z"]).unwrap());
        let texts = |overrides: Overrides| overrides.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(all.only(&["model"])), ["model/llm@model=alt", "model.name=y"]);
        assert_eq!(texts(all.without(&["model"])), ["run.id=x", "run.id=z"]);
        assert_eq!(all.last("run.id").unwrap().to_string(), "run.id=z");
        assert_eq!(all.last("model").unwrap().source(), OverrideSource::Typed);
        assert!(all.last("device").is_none());
    }
}
