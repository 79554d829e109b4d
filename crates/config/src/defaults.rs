//! The defaults list of one file: which other files it is put together from, and in which order.
//!
//! ```yaml
//! defaults:
//!   - workload: dsocr-standard-v1          # option of a group, mounted at the group's name
//!   - profiling/ncu@pipeline.ncu: default  # mounted at another key
//!   - optional site: local                 # skipped when there is no such option
//!   - common                               # a file of the same group, put in at the same place
//!   - _self_                               # this file's own keys
//! ```
//!
//! Groups and packages are relative to the file's own; `/group` and `@_global_.key` are absolute. Without `_self_` the
//! file's own keys come last and win, as in Hydra since 1.1.

use super::error::ConfigError;
use super::node::{Node, Value, join};
use super::source::Span;

/// The key that holds the list.
pub(crate) const KEY: &str = "defaults";

/// The package that stands for the root.
pub(crate) const GLOBAL: &str = "_global_";

const OWN: &str = "_self_";

/// One element of a defaults list, with absolute names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// The file's own keys.
    Own,
    /// A file that is always part of this one.
    Include {
        /// Path without `.yaml`.
        path: String,
        /// The key it is put at.
        package: String,
        /// Where the list says so.
        at: Span,
    },
    /// A choice that an override can change.
    Mount {
        /// The group chosen from.
        group: String,
        /// The key the option is put at.
        package: String,
        /// The option, or none yet.
        option: Option<String>,
        /// Whether the option may be absent.
        optional: bool,
        /// Where the group is named.
        group_at: Span,
        /// Where the option is named.
        option_at: Span,
    },
}

/// Reads the list of a file of `group` that is put at `package`.
pub(crate) fn read(list: Option<&Node>, group: &str, package: &str) -> Result<Vec<Item>, ConfigError> {
    let mut items = Vec::new();
    match list.map(|node| (&node.value, node)) {
        None | Some((Value::Null, _)) => {}
        Some((Value::List(nodes), _)) => {
            for node in nodes {
                let item = item(node, group, package)?;
                if item == Item::Own && items.contains(&Item::Own) {
                    return Err(problem(&node.span, "`_self_` appears twice in the defaults"));
                }
                items.push(item);
            }
        }
        Some((other, node)) => {
            return Err(problem(&node.span, &format!("`defaults` must be a list, not {}", other.kind())));
        }
    }
    if !items.contains(&Item::Own) {
        items.push(Item::Own);
    }
    Ok(items)
}

fn item(node: &Node, group: &str, package: &str) -> Result<Item, ConfigError> {
    match &node.value {
        Value::Text(name) if name == OWN => Ok(Item::Own),
        Value::Text(name) => {
            let (path, at) = split_package(name);
            let (folder, option) = path.rsplit_once('/').unwrap_or(("", path));
            // `/option` is an option of no group: a file at the top.
            let folder = if path.starts_with('/') && folder.is_empty() { "/" } else { folder };
            let path = under(&absolute(group, folder), option);
            Ok(Item::Include { path, package: mount(package, folder, at), at: node.span.clone() })
        }
        Value::Map(map) => {
            let [entry] = map.0.as_slice() else {
                return Err(problem(&node.span, "an entry of the defaults must name exactly one group"));
            };
            let (optional, name) = match entry.key.strip_prefix("optional ") {
                Some(name) => (true, name),
                None => (false, entry.key.as_str()),
            };
            let (folder, at) = split_package(name);
            let option = match &entry.node.value {
                Value::Null => None,
                Value::Text(option) => Some(option.clone()),
                // An option may be named like a number: `- model: 7`.
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some(entry.node.span.text().to_owned()),
                other => {
                    let text = format!("the option of a group must be a name, not {}", other.kind());
                    return Err(problem(&entry.node.span, &text));
                }
            };
            Ok(Item::Mount {
                group: absolute(group, folder),
                package: mount(package, folder, at),
                option,
                optional,
                group_at: entry.key_span.clone(),
                option_at: entry.node.span.clone(),
            })
        }
        other => {
            let text =
                format!("an entry of the defaults must be `group: option`, a file or `_self_`, not {}", other.kind());
            Err(problem(&node.span, &text))
        }
    }
}

fn split_package(name: &str) -> (&str, Option<&str>) {
    name.split_once('@').map_or((name, None), |(name, package)| (name, Some(package)))
}

/// A group named in a file of another group.
fn absolute(group: &str, name: &str) -> String {
    name.strip_prefix('/').map_or_else(|| under(group, name), String::from)
}

fn under(group: &str, name: &str) -> String {
    if group.is_empty() || name.is_empty() { format!("{group}{name}") } else { format!("{group}/{name}") }
}

/// The key a group is put at, by a file that is itself put at `package`.
fn mount(package: &str, folder: &str, at: Option<&str>) -> String {
    match at {
        None if folder.starts_with('/') => package_of(folder.trim_start_matches('/')),
        None => join(package, &package_of(folder)),
        Some(GLOBAL) => String::new(),
        Some(at) => at.strip_prefix("_global_.").map_or_else(|| join(package, at), String::from),
    }
}

/// The key a group is put at when nothing else is said.
pub(crate) fn package_of(group: &str) -> String {
    group.replace('/', ".")
}

fn problem(at: &Span, text: &str) -> ConfigError {
    ConfigError::Defaults { at: at.clone(), problem: text.to_owned() }
}
