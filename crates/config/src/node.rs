//! A configuration tree in which every value knows where it was written.
//!
//! Responsible for the shape of the tree, for walking it by key and for writing it out. Reading text into it, merging
//! and resolving are other files.

use serde::Serialize;
use serde::ser::Serializer;

use super::source::Span;

/// A value and the place it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written.
    pub span: Span,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Unknown, or not set.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent; always finite.
    Float(f64),
    /// A text.
    Text(String),
    /// Values by position.
    List(Vec<Node>),
    /// Values by name, in the order written.
    Map(Map),
}

/// Values by name, in the order written. Configuration maps are small: a scan beats a hash.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Map(pub Vec<Entry>);

/// One name and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// Where the name was written.
    pub key_span: Span,
    /// What it names.
    pub node: Node,
}

impl Map {
    /// The value of that name.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }
}

impl Node {
    /// The child of that name, or at that position.
    pub fn child(&self, segment: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(map) => map.get(segment),
            Value::List(list) => list.get(index(segment)?),
            _ => None,
        }
    }

    pub(crate) fn child_mut(&mut self, segment: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(map) => map.get_mut(segment),
            Value::List(list) => list.get_mut(index(segment)?),
            _ => None,
        }
    }

    /// The value at a dotted key; the empty key is this node.
    pub fn at(&self, key: &str) -> Option<&Node> {
        segments(key).try_fold(self, Node::child)
    }

    /// Where the value at a dotted key was written, or its name; for a key that is not there, the closest above it.
    pub(crate) fn nearest_span(&self, key: &str, of_name: bool) -> Span {
        let mut at = self;
        let mut span = self.span.clone();
        for segment in segments(key) {
            let Some(child) = at.child(segment) else { break };
            let name = match &at.value {
                Value::Map(map) => map.0.iter().find(|entry| entry.key == segment).map(|entry| &entry.key_span),
                _ => None,
            };
            span = name.filter(|_| of_name).unwrap_or(&child.span).clone();
            at = child;
        }
        span
    }

    /// Every leaf (scalars, empty lists and empty maps) with its dotted key, in order.
    pub fn leaves(&self) -> Vec<(String, &Node)> {
        let mut found = Vec::new();
        self.visit(&mut String::new(), &mut |key, node| {
            if node.is_leaf() {
                found.push((key.to_owned(), node));
            }
        });
        found
    }

    /// Whether the user set this value, or one below it.
    pub(crate) fn is_from_user(&self) -> bool {
        self.span.is_from_user() || self.leaves().iter().any(|(_, leaf)| leaf.span.is_from_user())
    }

    /// Calls `see` with the dotted key of every node below this one, parents first.
    pub(crate) fn visit<'a>(&'a self, key: &mut String, see: &mut impl FnMut(&str, &'a Node)) {
        let mut enter = |segment: &str, child: &'a Node, key: &mut String| {
            let length = key.len();
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(segment);
            see(key, child);
            child.visit(key, see);
            key.truncate(length);
        };
        match &self.value {
            Value::Map(map) => map.0.iter().for_each(|entry| enter(&entry.key, &entry.node, key)),
            Value::List(list) => list.iter().enumerate().for_each(|(at, node)| enter(&at.to_string(), node, key)),
            _ => {}
        }
    }

    fn is_leaf(&self) -> bool {
        match &self.value {
            Value::Map(map) => map.0.is_empty(),
            Value::List(list) => list.is_empty(),
            _ => true,
        }
    }
}

impl Value {
    /// What kind of value this is, in words for a message.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

/// The segments of a dotted key; none for the empty key.
pub(crate) fn segments(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(|segment| !segment.is_empty())
}

/// Two dotted keys, one under the other.
pub(crate) fn join(parent: &str, child: &str) -> String {
    if parent.is_empty() || child.is_empty() { format!("{parent}{child}") } else { format!("{parent}.{child}") }
}

/// A segment as a list position: digits only, so that a key such as `+1` stays a name.
pub(crate) fn index(segment: &str) -> Option<usize> {
    segment.bytes().all(|byte| byte.is_ascii_digit()).then(|| segment.parse().ok())?
}

/// The tree as YAML: lists of scalars on one line, everything else in blocks, texts never folded.
pub fn to_yaml(node: &Node) -> String {
    let mut options = serde_saphyr::SerializerOptions::default();
    options.compact_list_indent = false;
    options.prefer_block_scalars = false;
    let mut text = String::new();
    // Writing into memory cannot fail, and a tree holds nothing that YAML cannot say.
    let written = serde_saphyr::to_fmt_writer_with_options(&mut text, &Yaml(node), options);
    debug_assert!(written.is_ok(), "{written:?}");
    text
}

/// A node in the YAML layout.
struct Yaml<'a>(&'a Node);

impl Serialize for Yaml<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.value {
            Value::List(list) if list.iter().all(Node::is_leaf) => serde_saphyr::FlowSeq(list).serialize(serializer),
            Value::List(list) => serializer.collect_seq(list.iter().map(Yaml)),
            Value::Map(map) => serializer.collect_map(map.0.iter().map(|entry| (&entry.key, Yaml(&entry.node)))),
            _ => self.0.serialize(serializer),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(list) => serializer.collect_seq(list),
            Value::Map(map) => serializer.collect_map(map.0.iter().map(|entry| (&entry.key, &entry.node))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reader::read;
    use crate::source::Source;

    fn tree(text: &str) -> Node {
        read(&Source::file("a.yaml", text)).expect("valid YAML")
    }

    #[test]
    fn keys_walk_maps_and_lists() {
        let root = tree("a: {b: [1, {c: x}]}");
        assert_eq!(root.at("a.b.0").map(|node| &node.value), Some(&Value::Int(1)));
        assert_eq!(root.at("a.b.1.c").map(|node| &node.value), Some(&Value::Text("x".into())));
        assert_eq!(root.at("a.b.2"), None);
        assert_eq!(root.at("a.b.x"), None);
        assert_eq!(root.at("").map(|node| &node.value), Some(&root.value));
    }

    #[test]
    fn leaves_come_in_the_order_written_and_include_empty_ones() {
        let root = tree("b: 1\na: {d: [], c: [x, {}]}");
        let keys: Vec<String> = root.leaves().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["b", "a.d", "a.c.0", "a.c.1"]);
    }

    /// A tree of every kind of value, all written at one place.
    fn any_node() -> impl Strategy<Value = Node> {
        let node = |value| Node { value, span: Span::whole(&Source::file("any", "")) };
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Float),
            "(?s).{0,12}".prop_map(Value::Text),
            "[-a1:,\\[\\]{}&*!|>'\"%@#?~. \n\t]{0,8}".prop_map(Value::Text),
            "(yes|no|on|~|null|1e3|0x1|\\.5|2024-01-01|1:30|=|<<)".prop_map(Value::Text),
        ];
        leaf.prop_map(node).prop_recursive(4, 24, 4, move |inner| {
            let entry = ("[a-z]{1,3}|yes|null|12", inner.clone()).prop_map(|(key, node)| {
                let key_span = node.span.clone();
                Entry { key, key_span, node }
            });
            let map = proptest::collection::vec(entry, 0..4).prop_map(|mut entries| {
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                entries.dedup_by(|a, b| a.key == b.key);
                Value::Map(Map(entries))
            });
            let list = proptest::collection::vec(inner, 0..4).prop_map(Value::List);
            prop_oneof![map, list].prop_map(node)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_as_yaml_reads_back_the_same(node in any_node()) {
            let text = to_yaml(&node);
            let read = read(&Source::file("any", text.clone())).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(serde_json::to_value(&read).expect("JSON"), serde_json::to_value(&node).expect("JSON"), "{}", text);
        }
    }
}
