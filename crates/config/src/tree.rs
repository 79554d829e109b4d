//! Putting values together: one tree over another, and overrides over the result.
//!
//! One rule holds for files and overrides alike: a value keeps its type. `null` takes and gives way to anything, a whole
//! number may stand where a fraction is expected, a text takes any scalar as it is written, and one text where a list is
//! expected is a list of one. Maps merge, lists and scalars replace.

use super::error::ConfigError;
use super::node::{Entry, Map, Node, Value, index, join, segments};
use super::overriding::{Action, Override};
use super::plan::{Plan, Step};
use super::source::{Source, Span};
use super::suggestion::{self, did_you_mean};

/// Merges the files of a plan in order.
pub(crate) fn merge(plan: &Plan) -> Result<Node, ConfigError> {
    let nowhere = Span::whole(&Source::file("configuration", ""));
    let mut root = Node { value: Value::Map(Map::default()), span: nowhere };
    for Step { document, package } in &plan.steps {
        if document.keys.value.is_null() {
            continue;
        }
        let mut node = document.keys.clone();
        for segment in segments(package).collect::<Vec<_>>().into_iter().rev() {
            let span = node.span.clone();
            let entry = Entry { key: segment.to_owned(), key_span: span.clone(), node };
            node = Node { value: Value::Map(Map(vec![entry])), span };
        }
        put(&mut root, node, "", Keys::Any)?;
    }
    Ok(root)
}

/// Applies one override of a value.
pub(crate) fn apply(root: &mut Node, one: &Override) -> Result<(), ConfigError> {
    let key = one.name.text();
    let (parent_key, last) = key.rsplit_once('.').unwrap_or(("", key));
    match one.node()? {
        None => remove(root, one, parent_key, last),
        Some(node) => match one.action {
            Action::Add | Action::Put if root.at(key).is_none() => add(root, one, node),
            action => {
                let keys = if action == Action::Change { Keys::Existing } else { Keys::Any };
                match find(root, key) {
                    Some(existing) => put(existing, node, key, keys),
                    None => Err(unknown(root, one)),
                }
            }
        },
    }
}

/// Whether a merged map may bring keys that are not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Any,
    Existing,
}

pub(crate) fn find<'a>(root: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    segments(key).try_fold(root, Node::child_mut)
}

/// Puts one value over another.
fn put(existing: &mut Node, new: Node, key: &str, keys: Keys) -> Result<(), ConfigError> {
    match (&mut existing.value, new.value) {
        (Value::Map(map), Value::Map(changes)) => {
            for entry in changes.0 {
                let child_key = join(key, &entry.key);
                match map.get_mut(&entry.key) {
                    Some(child) => put(child, entry.node, &child_key, keys)?,
                    None if keys == Keys::Any => map.0.push(entry),
                    None => {
                        let names: Vec<&str> = map.0.iter().map(|entry| entry.key.as_str()).collect();
                        let near = types::nearest(&entry.key, names).map(|name| join(key, name));
                        let hints = did_you_mean(near.as_slice()).into_iter().collect();
                        return Err(ConfigError::UnknownKey { at: entry.key_span, key: child_key, hints });
                    }
                }
            }
            Ok(())
        }
        (_, value) => {
            existing.value = converted(existing, value, &new.span, key)?;
            existing.span = new.span;
            Ok(())
        }
    }
}

/// The new value in the type of the old one.
fn converted(existing: &Node, new: Value, at: &Span, key: &str) -> Result<Value, ConfigError> {
    match (&existing.value, new) {
        (_, Value::Null) => Ok(Value::Null),
        (Value::Null, new) => Ok(new),
        // Whatever an interpolation will turn into is not known yet.
        (Value::Text(old), new) if old.contains("${") => Ok(new),
        (_, Value::Text(new)) if new.contains("${") => Ok(Value::Text(new)),
        (Value::Text(_), Value::Bool(_) | Value::Int(_) | Value::Float(_)) => Ok(Value::Text(at.text().to_owned())),
        (Value::Float(_), Value::Int(new)) => Ok(Value::Float(new as f64)),
        (Value::List(_), new @ Value::Text(_)) => Ok(Value::List(vec![Node { value: new, span: at.clone() }])),
        (old, new) if std::mem::discriminant(old) == std::mem::discriminant(&new) => Ok(new),
        (old, new) => Err(ConfigError::WrongType {
            at: at.clone(),
            key: key.to_owned(),
            expected: old.kind(),
            got: new.kind(),
            first: existing.span.clone(),
            hint: None,
        }),
    }
}

/// Adds a value that is not there, and the maps above it that are not there either.
fn add(root: &mut Node, one: &Override, node: Node) -> Result<(), ConfigError> {
    let key = one.name.text();
    let path: Vec<&str> = segments(key).collect();
    let mut at = root;
    for (depth, segment) in path.iter().enumerate() {
        let above = path[..depth].join(".");
        if at.value.is_null() {
            at.value = Value::Map(Map::default());
            at.span = one.name.clone();
        }
        let last = depth + 1 == path.len();
        match &mut at.value {
            Value::Map(map) => {
                if map.get(segment).is_none() {
                    let fresh = Node { value: Value::Map(Map::default()), span: one.name.clone() };
                    let node = if last { node.clone() } else { fresh };
                    map.0.push(Entry { key: (*segment).to_owned(), key_span: one.name.clone(), node });
                }
            }
            Value::List(list) => match index(segment) {
                Some(index) if index < list.len() => {}
                Some(index) if index == list.len() && last => list.push(node.clone()),
                Some(index) => return Err(out_of_range(one, above, index, list.len())),
                None => return Err(not_a_map(at, one, above)),
            },
            _ => return Err(not_a_map(at, one, above)),
        }
        match at.child_mut(segment) {
            Some(child) => at = child,
            None => return Ok(()),
        }
    }
    Ok(())
}

fn remove(root: &mut Node, one: &Override, parent: &str, last: &str) -> Result<(), ConfigError> {
    let missing = unknown(root, one);
    match find(root, parent).map(|parent| &mut parent.value) {
        Some(Value::Map(map)) => match map.0.iter().position(|entry| entry.key == last) {
            Some(at) => drop(map.0.remove(at)),
            None => return Err(missing),
        },
        Some(Value::List(list)) => match index(last) {
            Some(index) if index < list.len() => drop(list.remove(index)),
            _ => return Err(missing),
        },
        _ => return Err(missing),
    }
    Ok(())
}

/// Why a key is not there: a position past the end of a list, or a name that is not known.
fn unknown(root: &Node, one: &Override) -> ConfigError {
    let key = one.name.text();
    let mut at = root;
    let mut above = String::new();
    let mut offset = 0;
    for segment in segments(key) {
        if let (Value::List(list), Some(index)) = (&at.value, index(segment))
            && index >= list.len()
        {
            return out_of_range(one, above, index, list.len());
        }
        match at.child(segment) {
            Some(child) => at = child,
            None => break,
        }
        above = join(&above, segment);
        offset += segment.len() + 1;
    }
    let mut hints: Vec<String> = did_you_mean(&suggestion::keys(root, key)).into_iter().collect();
    if one.action == Action::Change && matches!(at.value, Value::Map(_) | Value::Null) {
        hints.push(format!("to add a key, write +{one}"));
    }
    let wrong = segments(&key[offset.min(key.len())..]).next().map_or(key.len(), str::len);
    ConfigError::UnknownKey { at: one.name.part(offset, offset + wrong), key: key.to_owned(), hints }
}

fn out_of_range(one: &Override, key: String, index: usize, length: usize) -> ConfigError {
    let start = if key.is_empty() { 0 } else { key.len() + 1 };
    let at = one.name.part(start, start + index.to_string().len());
    ConfigError::IndexOutOfRange { at, key, index, length }
}

fn not_a_map(at: &Node, one: &Override, key: String) -> ConfigError {
    let expected = at.value.kind();
    let first = at.span.clone();
    ConfigError::WrongType { at: one.name.clone(), key, expected, got: "a map", first, hint: None }
}
