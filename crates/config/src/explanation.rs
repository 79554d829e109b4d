//! Where every value of a configuration came from.

use serde::Serialize;

use super::node::{Node, to_yaml};
use super::source::{SourceKind, Span};

/// One leaf of the tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Its dotted key.
    pub key: String,
    /// Its value.
    pub value: Node,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The interpolation it was written as in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "lowercase")]
pub enum Origin {
    /// A line of a file.
    File {
        /// The file's name.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// An override on the command line.
    Override {
        /// The whole override.
        text: String,
    },
}

impl Origin {
    fn of(span: &Span) -> Self {
        match &span.source().kind {
            SourceKind::File(file) => Self::File { file: file.clone(), line: span.line() },
            SourceKind::Override(_) => Self::Override { text: span.source().text.clone() },
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Override { text } => write!(f, "override '{text}'"),
        }
    }
}

impl Explanation {
    /// `key: value` on one line, as YAML writes it.
    pub fn setting(&self) -> String {
        format!("{}: {}", self.key, to_yaml(&self.value).trim_end())
    }
}

/// Explains every leaf, in order.
pub(crate) fn explain(root: &Node) -> Vec<Explanation> {
    let leaves = root.leaves().into_iter();
    leaves
        .map(|(key, node)| {
            let origin = Origin::of(&node.span);
            // An override shows itself; of a file only the line is known.
            let is_file = matches!(origin, Origin::File { .. });
            let written = Some(node.span.text()).filter(|text| is_file && text.contains("${")).map(String::from);
            Explanation { key, value: node.clone(), origin, written }
        })
        .collect()
}
