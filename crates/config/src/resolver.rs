//! What interpolations stand for.
//!
//! Responsible for replacing every `${...}` of a merged tree. References are read from the tree as merged, never from a
//! half-resolved one, so the order of keys does not matter. The environment is not read: a configuration means the same
//! on every machine, and secrets cannot leak into a run folder.

use jiff::Zoned;

use super::error::ConfigError;
use super::interpolation::{Piece, split};
use super::node::{Entry, Map, Node, Value, join, segments};
use super::source::Span;
use super::suggestion::{self, did_you_mean};

/// A chain of references longer than this is a mistake.
const LONGEST_CHAIN: usize = 64;

/// References followed in one composition; texts that double with every reference end here and not with the memory.
const MOST_REFERENCES: usize = 10_000;

/// Resolves every interpolation of a tree.
pub(crate) fn resolve(root: &Node, now: &Zoned) -> Result<Node, ConfigError> {
    Resolver { root, now, chain: Vec::new(), followed: 0 }.node(root, "")
}

struct Resolver<'a> {
    root: &'a Node,
    now: &'a Zoned,
    /// Keys being resolved, outermost first.
    chain: Vec<String>,
    followed: usize,
}

impl Resolver<'_> {
    fn node(&mut self, node: &Node, key: &str) -> Result<Node, ConfigError> {
        let value = match &node.value {
            Value::Text(text) if text.contains("${") => return self.text(text, node, key),
            Value::List(list) => {
                let each = list.iter().enumerate().map(|(at, node)| self.node(node, &join(key, &at.to_string())));
                Value::List(each.collect::<Result<_, _>>()?)
            }
            Value::Map(map) => {
                let each = map.0.iter().map(|entry| {
                    let node = self.node(&entry.node, &join(key, &entry.key))?;
                    Ok(Entry { node, ..entry.clone() })
                });
                Value::Map(Map(each.collect::<Result<_, ConfigError>>()?))
            }
            other => other.clone(),
        };
        Ok(Node { value, span: node.span.clone() })
    }

    fn text(&mut self, text: &str, node: &Node, key: &str) -> Result<Node, ConfigError> {
        if let Some(at) = self.chain.iter().position(|seen| seen == key) {
            let chain = self.chain[at..].iter().cloned().chain([key.to_owned()]).collect();
            return Err(ConfigError::InterpolationCycle { at: node.span.clone(), chain });
        }
        if self.chain.len() >= LONGEST_CHAIN {
            let (at, what) = (node.span.clone(), "interpolations");
            return Err(ConfigError::TooDeep { at, what, deepest: LONGEST_CHAIN });
        }
        let pieces = split(text).map_err(|problem| self.syntax(node, problem))?;
        self.chain.push(key.to_owned());
        let resolved = match pieces.as_slice() {
            // A text that is one reference takes the value with its type.
            [Piece::Reference(inner)] => {
                let reference = self.concatenated(inner, node, key)?;
                let mut found = self.reference(&reference, node, key)?;
                if !matches!(found.value, Value::Map(_) | Value::List(_)) {
                    found.span = node.span.clone();
                }
                found
            }
            pieces => Node { value: Value::Text(self.concatenated(pieces, node, key)?), span: node.span.clone() },
        };
        self.chain.pop();
        Ok(resolved)
    }

    fn concatenated(&mut self, pieces: &[Piece], node: &Node, key: &str) -> Result<String, ConfigError> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Reference(inner) => {
                    let reference = self.concatenated(inner, node, key)?;
                    match self.reference(&reference, node, key)?.value {
                        Value::Text(part) => text.push_str(&part),
                        Value::Int(number) => text.push_str(&number.to_string()),
                        Value::Float(number) => text.push_str(&format!("{number:?}")),
                        Value::Bool(truth) => text.push_str(&truth.to_string()),
                        other => {
                            let (at, got) = (place(node, &reference), other.kind());
                            return Err(ConfigError::InterpolationType { at, reference, got });
                        }
                    }
                }
            }
        }
        Ok(text)
    }

    /// What one reference, with the references inside it replaced, stands for.
    fn reference(&mut self, reference: &str, node: &Node, key: &str) -> Result<Node, ConfigError> {
        self.followed += 1;
        if self.followed > MOST_REFERENCES {
            return Err(self.syntax(node, format!("more than {MOST_REFERENCES} references to follow")));
        }
        if let Some((function, argument)) = reference.split_once(':') {
            return match function {
                "now" => self.now(argument, reference, node),
                "oc.env" | "env" => {
                    let problem =
                        "environment variables are not read, so that a configuration means the same everywhere";
                    Err(self.syntax(node, format!("{problem}; pass the value as an override")))
                }
                _ => Err(self.syntax(node, format!("unknown function `{function}`; only `now` is supported"))),
            };
        }
        let target = absolute(reference, key)
            .ok_or_else(|| self.syntax(node, format!("`${{{reference}}}` goes up more levels than `{key}` has")))?;
        let mut at = self.root;
        let mut path = String::new();
        let mut rest = segments(&target);
        while let Some(segment) = rest.next() {
            if matches!(&at.value, Value::Text(text) if text.contains("${")) {
                let resolved = self.node(at, &path)?;
                let found = std::iter::once(segment).chain(rest).try_fold(&resolved, Node::child).cloned();
                return found.ok_or_else(|| self.missing(reference, &target, node));
            }
            at = at.child(segment).ok_or_else(|| self.missing(reference, &target, node))?;
            path = join(&path, segment);
        }
        self.node(at, &path)
    }

    fn now(&self, format: &str, reference: &str, node: &Node) -> Result<Node, ConfigError> {
        match jiff::fmt::strtime::format(format, self.now) {
            Ok(text) => Ok(Node { value: Value::Text(text), span: node.span.clone() }),
            Err(error) => Err(ConfigError::InterpolationSyntax {
                at: place(node, reference),
                problem: format!("invalid date format `{format}`: {error}"),
            }),
        }
    }

    fn missing(&self, reference: &str, target: &str, node: &Node) -> ConfigError {
        let hints = did_you_mean(&suggestion::keys(self.root, target)).into_iter().collect();
        ConfigError::MissingInterpolation { at: place(node, reference), reference: reference.to_owned(), hints }
    }

    fn syntax(&self, node: &Node, problem: String) -> ConfigError {
        ConfigError::InterpolationSyntax { at: node.span.clone(), problem }
    }
}

/// The key a reference at `key` names: `.sibling` and `..uncle` start from where they stand, all others from the root.
fn absolute(reference: &str, key: &str) -> Option<String> {
    let name = reference.trim_start_matches('.');
    let up = reference.len() - name.len();
    if up == 0 {
        return Some(name.to_owned());
    }
    let path: Vec<&str> = segments(key).collect();
    let above = path.len().checked_sub(up)?;
    Some(join(&path[..above].join("."), name))
}

/// The place of a reference inside the text it stands in, as far as the text is written as it reads.
fn place(node: &Node, reference: &str) -> Span {
    let written = format!("${{{reference}}}");
    match node.span.text().find(&written) {
        Some(at) => node.span.part(at, at + written.len()),
        None => node.span.clone(),
    }
}
