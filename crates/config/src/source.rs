//! Where a value was written: a text with a name, and ranges in it.
//!
//! Responsible for line and column numbers and for the excerpt with a caret that errors show. What the text means is the
//! reader's business.

use std::fmt;
use std::sync::Arc;

/// A text that configuration was read from.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// What wrote it.
    pub kind: SourceKind,
    /// The whole text.
    pub text: String,
}

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// A file, named as the user would look for it.
    File(String),
    /// One override.
    Override(OverrideSource),
}

/// Who asked for an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideSource {
    /// The user, in the override's own notation.
    Typed,
    /// The user, with this flag.
    Flag(&'static str),
    /// The verb, to suit what the user asked for.
    Verb,
}

impl OverrideSource {
    /// Whether the user asked for it, in whichever form.
    pub fn is_user(self) -> bool {
        self != Self::Verb
    }
}

impl Source {
    /// A file's text under its display name.
    pub(crate) fn file(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { kind: SourceKind::File(name.into()), text: text.into() })
    }

    /// One override.
    pub(crate) fn overriding(text: impl Into<String>, source: OverrideSource) -> Arc<Self> {
        Arc::new(Self { kind: SourceKind::Override(source), text: text.into() })
    }
}

/// A range of bytes in a source.
#[derive(Clone, PartialEq, Eq)]
pub struct Span {
    source: Arc<Source>,
    start: u32,
    end: u32,
}

impl Span {
    /// A range of a source, kept inside the text and on character boundaries.
    pub(crate) fn new(source: &Arc<Source>, start: usize, end: usize) -> Self {
        let start = source.text.floor_char_boundary(start);
        let end = source.text.floor_char_boundary(end).max(start);
        Self { source: Arc::clone(source), start: narrow(start), end: narrow(end) }
    }

    /// The whole text.
    pub(crate) fn whole(source: &Arc<Source>) -> Self {
        Self::new(source, 0, source.text.len())
    }

    /// A range within this range, given by offsets from its start.
    pub(crate) fn part(&self, start: usize, end: usize) -> Self {
        let base = self.start as usize;
        Self::new(&self.source, base + start, (base + end).min(self.end as usize))
    }

    /// From the start of one range to the end of another of the same source.
    pub(crate) fn between(first: &Span, last: &Span) -> Self {
        Self::new(&first.source, first.start as usize, last.end as usize)
    }

    /// What follows the range in the text.
    pub(crate) fn rest(&self) -> Self {
        Self::new(&self.source, self.end as usize, self.source.text.len())
    }

    /// Whether the user wrote it in or through an override.
    pub(crate) fn is_from_user(&self) -> bool {
        matches!(self.source.kind, SourceKind::Override(source) if source.is_user())
    }

    /// What this is a range of.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The text in the range.
    pub fn text(&self) -> &str {
        &self.source.text[self.start as usize..self.end as usize]
    }

    /// Line, counted from 1.
    pub fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// Column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.before()[self.line_start()..].chars().count() + 1
    }

    /// The lines that show a reader the place: its name, the line and a caret under the range.
    pub fn excerpt(&self) -> String {
        let line_start = self.line_start();
        let line = self.source.text[line_start..].lines().next().unwrap_or_default();
        let indent: String = self.source.text[line_start..self.start as usize]
            .chars()
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        // A range over several lines is marked to the end of its first line.
        let length = self.text().lines().next().unwrap_or_default().trim_end().chars().count().max(1);
        let carets = "^".repeat(length);
        match self.source.kind {
            SourceKind::File(_) => {
                let number = self.line().to_string();
                let margin = " ".repeat(number.len());
                format!("{margin}--> {self}\n{margin} |\n{number} | {line}\n{margin} | {indent}{carets}")
            }
            SourceKind::Override(_) => format!(" --> {self}\n  |\n  | {line}\n  | {indent}{carets}"),
        }
    }

    fn before(&self) -> &str {
        &self.source.text[..self.start as usize]
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }
}

/// `file:line:column`, or where on the command line.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source.kind {
            SourceKind::File(name) => write!(f, "{name}:{}:{}", self.line(), self.column()),
            SourceKind::Override(OverrideSource::Typed) => write!(f, "command line"),
            SourceKind::Override(OverrideSource::Flag(flag)) => write!(f, "command line, {flag}"),
            SourceKind::Override(OverrideSource::Verb) => write!(f, "set by llm-perf"),
        }
    }
}

/// The text around a range is long and the same for many ranges; the place says enough.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({self} {:?})", self.text())
    }
}

/// Texts are read whole and refused when longer (`Groups::load`), so the range always fits.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let source = Source::file("a.yaml", "one: 1\nzwölf: 12\n");
        let span = Span::new(&source, 15, 17);
        assert_eq!((span.line(), span.column(), span.text()), (2, 8, "12"));
        assert_eq!(span.to_string(), "a.yaml:2:8");
    }

    #[test]
    fn the_excerpt_points_at_the_range() {
        let source = Source::file("a.yaml", "one: 1\nzwölf: 12\n");
        insta::assert_snapshot!(Span::new(&source, 15, 17).excerpt(), @r"
         --> a.yaml:2:8
          |
        2 | zwölf: 12
          |        ^^
        ");
    }

    #[test]
    fn a_range_over_lines_is_marked_on_its_first() {
        let source = Source::file("a.yaml", "a:\n  b: 1\n  c: 2\n");
        insta::assert_snapshot!(Span::new(&source, 5, 17).excerpt(), @r"
         --> a.yaml:2:3
          |
        2 |   b: 1
          |   ^^^^
        ");
    }

    #[test]
    fn a_range_past_the_end_is_kept_inside() {
        let source = Source::overriding("a=ü", OverrideSource::Typed);
        assert_eq!(Span::new(&source, 3, 99).text(), "ü");
        assert_eq!(Span::new(&source, 99, 200).text(), "");
    }
}
