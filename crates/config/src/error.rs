//! Everything that can be wrong with a configuration, each with the place and the way out.

use std::path::PathBuf;

use thiserror::Error;
use types::{Exit, Failure};

use super::source::{SourceKind, Span};

/// Why a configuration cannot be composed or read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what each variant is, and the fields are the values in them")]
pub enum ConfigError {
    // The files.
    #[error("cannot use the configuration folder {}: {problem}", path.display())]
    Folder { path: PathBuf, problem: String },
    #[error("cannot read {}: {problem}", path.display())]
    Unreadable { path: PathBuf, problem: String },

    // The text of one file or override.
    #[error("not valid YAML: {problem}")]
    Syntax { at: Span, problem: String },
    #[error("{what} is not supported in configuration")]
    Unsupported { at: Span, what: &'static str },
    #[error("the key `{key}` is given twice")]
    DuplicateKey { at: Span, key: String, first: Span },
    #[error("invalid key `{key}`: a key must not be empty or contain `.`, `/`, `@`, `=` or spaces")]
    KeyName { at: Span, key: String },
    #[error("the number `{text}` {problem}")]
    Number { at: Span, text: String, problem: &'static str },
    #[error("{what} are nested more than {deepest} deep")]
    TooDeep { at: Span, what: &'static str, deepest: usize },
    #[error("a configuration file must contain keys and values, not {got}")]
    NotAMap { at: Span, got: &'static str },
    #[error("invalid override: {problem}")]
    OverrideSyntax { at: Span, problem: &'static str },
    #[error("`#` starts a comment in YAML, so the rest would be lost")]
    OverrideComment { at: Span },

    // Groups and defaults.
    #[error("unknown group `{group}`")]
    UnknownGroup { at: Span, group: String, hints: Vec<String> },
    #[error("the group `{group}` has no option `{option}`")]
    UnknownOption { at: Span, group: String, option: String, hints: Vec<String> },
    #[error("{problem}")]
    NotMounted { at: Span, problem: String, hints: Vec<String> },
    #[error("the group `{group}` is mounted at {}", list(packages))]
    AmbiguousGroup { at: Span, group: String, packages: Vec<String> },
    #[error("two groups are mounted at `{package}`")]
    MountedTwice { at: Span, package: String, first: Span },
    #[error("{problem}")]
    Defaults { at: Span, problem: String },
    #[error("the defaults form a cycle: {}", chain.join(" -> "))]
    DefaultsCycle { at: Span, chain: Vec<String> },

    // Keys and values.
    #[error("unknown key `{key}`")]
    UnknownKey { at: Span, key: String, hints: Vec<String> },
    #[error("`{key}` must be {expected}, not {got}")]
    WrongType { at: Span, key: String, expected: &'static str, got: &'static str, first: Span, hint: Option<String> },
    #[error("index {index} is out of range: `{key}` has {length} elements")]
    IndexOutOfRange { at: Span, key: String, index: usize, length: usize },

    // Interpolation.
    #[error("invalid interpolation: {problem}")]
    InterpolationSyntax { at: Span, problem: String },
    #[error("the interpolation `${{{reference}}}` refers to a key that does not exist")]
    MissingInterpolation { at: Span, reference: String, hints: Vec<String> },
    #[error("the interpolation forms a cycle: {}", chain.join(" -> "))]
    InterpolationCycle { at: Span, chain: Vec<String> },
    #[error("the interpolation `${{{reference}}}` is {got}, which cannot be part of a string")]
    InterpolationType { at: Span, reference: String, got: &'static str },

    // Typed reading.
    #[error("the configuration has no `{key}`")]
    Missing { key: String },
    #[error("`{key}`: {problem}")]
    Invalid { at: Span, key: String, problem: String },
}

impl ConfigError {
    /// Where it went wrong.
    pub fn span(&self) -> Option<&Span> {
        match self {
            Self::Folder { .. } | Self::Unreadable { .. } | Self::Missing { .. } => None,
            Self::Syntax { at, .. }
            | Self::Unsupported { at, .. }
            | Self::DuplicateKey { at, .. }
            | Self::KeyName { at, .. }
            | Self::Number { at, .. }
            | Self::TooDeep { at, .. }
            | Self::NotAMap { at, .. }
            | Self::OverrideSyntax { at, .. }
            | Self::OverrideComment { at }
            | Self::UnknownGroup { at, .. }
            | Self::UnknownOption { at, .. }
            | Self::NotMounted { at, .. }
            | Self::AmbiguousGroup { at, .. }
            | Self::MountedTwice { at, .. }
            | Self::Defaults { at, .. }
            | Self::DefaultsCycle { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::WrongType { at, .. }
            | Self::IndexOutOfRange { at, .. }
            | Self::InterpolationSyntax { at, .. }
            | Self::MissingInterpolation { at, .. }
            | Self::InterpolationCycle { at, .. }
            | Self::InterpolationType { at, .. }
            | Self::Invalid { at, .. } => Some(at),
        }
    }
}

impl Failure for ConfigError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn excerpt(&self) -> Option<String> {
        self.span().map(Span::excerpt)
    }

    fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![hint.to_owned()];
        match self {
            Self::Folder { .. } => one("--config-dir takes a folder laid out like the built-in one: GROUP/OPTION.yaml"),
            Self::Syntax { at, .. } if matches!(at.source().kind, SourceKind::Override(_)) => {
                one("values are parsed as YAML; quote a string for YAML too: \"key='value'\"")
            }
            Self::Unsupported { what, .. } if matches!(*what, "an anchor" | "an alias" | "a merge key") => {
                one("to use a value twice, write ${the.other.key}")
            }
            Self::DuplicateKey { first, .. } => vec![format!("first given at {first}")],
            Self::Number { .. } => one("quote it to make it a string"),
            Self::OverrideSyntax { .. } => {
                one("write key=value, group=option, group@package=option, +new.key=value, ++key=value or ~key")
            }
            Self::OverrideComment { .. } => one("quote the value for YAML too: \"key='value'\""),
            Self::UnknownGroup { hints, .. }
            | Self::UnknownOption { hints, .. }
            | Self::NotMounted { hints, .. }
            | Self::UnknownKey { hints, .. }
            | Self::MissingInterpolation { hints, .. } => hints.clone(),
            Self::AmbiguousGroup { group, packages, .. } => {
                vec![format!(
                    "choose one: {}",
                    alternatives(packages.iter().map(|package| format!("{group}@{package}=OPTION")))
                )]
            }
            Self::MountedTwice { first, package, .. } => {
                vec![format!("the first is at {first}; to replace it, write GROUP@{package}=OPTION")]
            }
            Self::WrongType { first, hint, expected, got, .. } => {
                let list = (*expected == "a list" && *got != "a map").then(|| "write a list as [a, b]".to_owned());
                hint.iter()
                    .cloned()
                    .chain(list)
                    .chain([format!("its type comes from {first}; null is also accepted")])
                    .collect()
            }
            Self::IndexOutOfRange { key, length, .. } => {
                vec![format!("indices start at 0; to add an element, write +{key}.{length}=VALUE")]
            }
            Self::InterpolationSyntax { .. } => {
                one("write ${key}, ${.sibling}, ${now:%Y%m%d-%H%M%S}, or \\${ for a literal ${")
            }
            Self::Missing { key } => {
                vec![format!("an override or a file in --config-dir removed it; add it with +{key}=VALUE")]
            }
            _ => Vec::new(),
        }
    }
}

/// `a`, `b` and `c`.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// a, b or c.
pub(crate) fn alternatives(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!(list::<&str>(&[]), "");
        assert_eq!(list(&["a"]), "`a`");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(alternatives(["a", "b", "c"].map(String::from).into_iter()), "a, b or c");
    }
}
