//! Inline text: plain words, code, strong words and links.
//!
//! Sentences are written in a small notation, `code` and **strong**, the same in templates and in pages. It is read once, where a
//! block is made; renderers print spans and parse nothing. Whatever comes from a run goes through [`prose`], [`code`] or [`link`],
//! which keep it from being taken for notation.

use super::table::printable;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Words.
    Plain(String),
    /// A name, a command, a key.
    Code(String),
    /// What matters most.
    Strong(Vec<Span>),
    /// A place to go to.
    Link {
        /// Its words.
        text: String,
        /// Where it leads.
        target: String,
    },
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<Span>);

/// Stand-ins for the notation's own characters inside of what comes from a run, and the brackets of a link. They are private
/// characters that [`prose`] lets no text have.
const BACKTICK: char = '\u{f700}';
const ASTERISK: char = '\u{f701}';
const LINK: char = '\u{f702}';
const TARGET: char = '\u{f703}';
const END: char = '\u{f704}';

impl Text {
    /// Reads the notation.
    pub(crate) fn new(notation: &str) -> Self {
        Self(spans(notation))
    }

    /// The words alone.
    pub(crate) fn plain(&self) -> String {
        plain(&self.0, "")
    }

    /// The words, names between backticks.
    pub(crate) fn terminal(&self) -> String {
        plain(&self.0, "`")
    }
}

fn plain(spans: &[Span], fence: &str) -> String {
    let words = |span: &Span| match span {
        Span::Plain(text) | Span::Link { text, .. } => text.clone(),
        Span::Code(text) => format!("{fence}{text}{fence}"),
        Span::Strong(inside) => plain(inside, fence),
    };
    spans.iter().map(words).collect()
}

fn spans(notation: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut rest = notation;
    while let Some(at) = rest.find(['`', '*', LINK]) {
        let (before, from) = rest.split_at(at);
        let (span, after) = match (from.chars().next(), from.strip_prefix("**")) {
            (Some('`'), _) => match from[1..].split_once('`') {
                Some((name, after)) => (Span::Code(restored(name)), after),
                None => break,
            },
            (Some(LINK), _) => {
                let Some((link, after)) = from[LINK.len_utf8()..].split_once(END) else { break };
                let (text, target) = link.split_once(TARGET).unwrap_or((link, ""));
                (Span::Link { text: restored(text), target: restored(target) }, after)
            }
            (_, Some(strong)) if !strong.starts_with(' ') => match strong.split_once("**") {
                Some((inside, after)) => (Span::Strong(spans(inside)), after),
                None => break,
            },
            // A single asterisk multiplies.
            _ => {
                let end = at + from.len() - from.trim_start_matches('*').len();
                push_plain(&mut found, &rest[..end]);
                rest = &rest[end..];
                continue;
            }
        };
        push_plain(&mut found, before);
        found.push(span);
        rest = after;
    }
    push_plain(&mut found, rest);
    found
}

fn push_plain(spans: &mut Vec<Span>, text: &str) {
    match spans.last_mut() {
        _ if text.is_empty() => {}
        Some(Span::Plain(before)) => *before += &restored(text),
        _ => spans.push(Span::Plain(restored(text))),
    }
}

/// The text without stand-ins.
fn restored(text: &str) -> String {
    text.replace(BACKTICK, "`").replace(ASTERISK, "*")
}

/// Words that come from a run, kept from being notation.
pub(crate) fn prose(text: &str) -> String {
    let kept = |c: char| match c {
        BACKTICK..=END => None,
        '`' => Some(BACKTICK),
        '*' => Some(ASTERISK),
        c => Some(c),
    };
    printable(text).chars().filter_map(kept).collect()
}

/// A name that comes from a run.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", prose(text))
}

/// Names, one after the other.
pub(crate) fn codes(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| code(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// A sentence of a document, in which backticks set names apart. Other notation in it is of a run.
pub(crate) fn sentence(text: &str) -> String {
    printable(text).split('`').map(prose).collect::<Vec<_>>().join("`")
}

/// A link to a page beside this one, or below it.
pub(crate) fn link(text: &str, target: &str) -> String {
    format!("{LINK}{}{TARGET}{}{END}", prose(text), prose(target))
}

/// The sentence with a capital first, unless it starts with a name.
pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_becomes_spans_and_what_comes_from_a_run_stays_as_it_is() {
        let text = Text::new(&format!("**So `a`** is {} * 2, {}.", prose("`*b*`"), link("c", "d.md")));
        let strong = Span::Strong(vec![Span::Plain("So ".to_owned()), Span::Code("a".to_owned())]);
        let link = Span::Link { text: "c".to_owned(), target: "d.md".to_owned() };
        let middle = Span::Plain(" is `*b*` * 2, ".to_owned());
        assert_eq!(text.0, [strong, middle, link, Span::Plain(".".to_owned())]);
        assert_eq!(text.plain(), "So a is `*b*` * 2, c.");
        assert_eq!(Text::new("run `x` again").terminal(), "run `x` again");
    }

    #[test]
    fn what_is_left_open_is_text() {
        for open in ["a ` b", "a ** b", "**a", "2 * 3 ** 4"] {
            assert_eq!(Text::new(open).plain(), open);
        }
    }
}
