//! YAML text into a [`Node`] tree.
//!
//! Responsible for the part of YAML that configuration uses, YAML 1.2 core types: maps, lists, texts, numbers, `true`,
//! `false`, `null`. What would be ambiguous or surprising is refused by name: duplicate keys, anchors, tags, several
//! documents, numbers that are not finite or do not fit. `granit-parser` splits the text into events; it is the parser
//! inside `serde-saphyr`, used directly because only it tells where a value started and ended.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, StrInput};

use super::error::ConfigError;
use super::node::{Entry, Map, Node, Value};
use super::source::{Source, Span};

/// How deep maps and lists may nest; deeper text is a mistake or an attack on the stack.
const DEEPEST: usize = 64;

/// Reads one document. An empty text is `null`.
pub(crate) fn read(source: &Arc<Source>) -> Result<Node, ConfigError> {
    read_part(source, 0)
}

/// Reads the rest of a source from a byte offset, with positions in the whole source.
pub(crate) fn read_part(source: &Arc<Source>, offset: usize) -> Result<Node, ConfigError> {
    Reader { source, offset, events: Parser::new_from_str(&source.text[offset..]) }.document()
}

/// Checks that every key is one segment of a dotted key, or nothing could name it.
pub(crate) fn check_names(node: &Node) -> Result<(), ConfigError> {
    let mut children = Vec::new();
    match &node.value {
        Value::Map(map) => {
            for Entry { key, key_span, node } in &map.0 {
                let odd = |character: char| ".=@/".contains(character) || character.is_whitespace();
                if key.is_empty() || key.contains(odd) {
                    return Err(ConfigError::KeyName { at: key_span.clone(), key: key.clone() });
                }
                children.push(node);
            }
        }
        Value::List(list) => children.extend(list),
        _ => {}
    }
    children.into_iter().try_for_each(check_names)
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    /// Where in the source the text given to the parser starts.
    offset: usize,
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn document(mut self) -> Result<Node, ConfigError> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                _ if root.is_some() => return Err(unsupported(span, "a second document")),
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        let nothing = Node { value: Value::Null, span: Span::new(self.source, self.offset, self.offset) };
        Ok(root.unwrap_or(nothing))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, ConfigError> {
        if depth > DEEPEST {
            return Err(ConfigError::TooDeep { at: span, what: "maps and lists", deepest: DEEPEST });
        }
        match event {
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                Err(unsupported(span, "an anchor"))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => Err(unsupported(span, "a tag")),
            Event::Alias(_) => Err(unsupported(span, "an alias")),
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text, span),
            Event::Scalar(text, ..) => Ok(Node { value: Value::Text(text.into_owned()), span }),
            Event::SequenceStart(..) => self.list(span, depth),
            Event::MappingStart(..) => self.map(span, depth),
            other => Err(ConfigError::Syntax { at: span, problem: format!("expected a value, got {other:?}") }),
        }
    }

    fn list(&mut self, start: Span, depth: usize) -> Result<Node, ConfigError> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => {
                    return Ok(Node { value: Value::List(list), span: self.cover(&start, &end) });
                }
                (event, span) => list.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, start: Span, depth: usize) -> Result<Node, ConfigError> {
        let mut map = Map::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        loop {
            let (key, key_span) = match self.next()? {
                (Event::MappingEnd, end) => {
                    return Ok(Node { value: Value::Map(map), span: self.cover(&start, &end) });
                }
                (Event::Scalar(key, ScalarStyle::Plain, 0, None), span) if key == "<<" => {
                    return Err(unsupported(span, "a merge key"));
                }
                (Event::Scalar(key, _, 0, None), span) => (key.into_owned(), span),
                (Event::Scalar(..), span) => return Err(unsupported(span, "an anchor or a tag on a key")),
                (_, span) => return Err(unsupported(span, "a key that is not a string")),
            };
            if let Some(first) = places.insert(key.clone(), map.0.len()) {
                let first = map.0[first].key_span.clone();
                return Err(ConfigError::DuplicateKey { at: key_span, key, first });
            }
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            map.0.push(Entry { key, key_span, node });
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), ConfigError> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                let start = self.offset + span.start.byte_offset().unwrap_or_default();
                let end = self.offset + span.end.byte_offset().unwrap_or_default();
                Ok((event, Span::new(self.source, start, end)))
            }
            Some(Err(error)) => {
                let at = self.offset + error.marker().byte_offset().unwrap_or_default();
                let problem = error.kind().to_string();
                Err(ConfigError::Syntax { at: Span::new(self.source, at, at + 1), problem })
            }
            None => Ok((Event::StreamEnd, Span::whole(self.source))),
        }
    }

    /// From the start of one range to the end of another, without the blank lines that follow a block.
    fn cover(&self, start: &Span, end: &Span) -> Span {
        let whole = Span::between(start, end);
        let length = whole.text().trim_end().len();
        whole.part(0, length)
    }
}

/// A plain scalar by the YAML 1.2 core schema.
fn plain(text: &str, span: Span) -> Result<Node, ConfigError> {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Ok(value)) => value,
            Some(Err(problem)) => return Err(ConfigError::Number { at: span, text: text.to_owned(), problem }),
            None => Value::Text(text.to_owned()),
        },
    };
    Ok(Node { value, span })
}

/// A number, what is wrong with it, or nothing when the text is not a number at all.
fn number(text: &str) -> Option<Result<Value, &'static str>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Err("is not a finite number"));
    }
    let whole =
        |digits: &str, radix| i64::from_str_radix(digits, radix).map(Value::Int).map_err(|_| "does not fit in 64 bits");
    let all = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| all(digits, 16)) {
        return Some(whole(digits, 16));
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| all(digits, 8)) {
        return Some(whole(digits, 8));
    }
    if all(unsigned, 10) {
        return Some(whole(text, 10));
    }
    // Rust reads `inf`, `nan` and `infinity` as numbers, YAML does not: a digit must come first, or a point and a digit.
    if !unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    Some(if value.is_finite() { Ok(Value::Float(value)) } else { Err("is not a finite number") })
}

fn unsupported(at: Span, what: &'static str) -> ConfigError {
    ConfigError::Unsupported { at, what }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Value {
        read(&Source::file("a.yaml", text)).expect("valid YAML").value
    }

    fn problem(text: &str) -> String {
        read(&Source::file("a.yaml", text)).expect_err("invalid").to_string()
    }

    #[test]
    fn scalars_follow_the_yaml_1_2_core_schema() {
        for (text, expected) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("yes", Value::Text("yes".into())),
            ("12", Value::Int(12)),
            ("-012", Value::Int(-12)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("0x", Value::Text("0x".into())),
            ("1.5", Value::Float(1.5)),
            ("1e3", Value::Float(1000.0)),
            (".5", Value::Float(0.5)),
            ("1.", Value::Float(1.0)),
            ("nan", Value::Text("nan".into())),
            ("inf", Value::Text("inf".into())),
            ("1_000", Value::Text("1_000".into())),
            ("'12'", Value::Text("12".into())),
            ("\"a\\nb\"", Value::Text("a\nb".into())),
            ("20250101-120000", Value::Text("20250101-120000".into())),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_kept_are_refused() {
        assert_eq!(problem("a: .inf"), "the number `.inf` is not a finite number");
        assert_eq!(problem("a: 1e999"), "the number `1e999` is not a finite number");
        assert_eq!(problem("a: 99999999999999999999"), "the number `99999999999999999999` does not fit in 64 bits");
    }

    #[test]
    fn values_know_where_they_were_written() {
        let source = Source::file("a.yaml", "# comment\na:\n  b: [1, 22]\n\nc: x\n");
        let root = read(&source).expect("valid YAML");
        assert_eq!(root.at("a.b.1").map(|node| node.span.to_string()), Some("a.yaml:3:10".into()));
        assert_eq!(root.at("a.b").map(|node| node.span.text()), Some("[1, 22]"));
        assert_eq!(root.at("c").map(|node| node.span.text()), Some("x"));
    }

    #[test]
    fn part_of_a_source_keeps_positions_in_the_whole() {
        let source = Source::overriding("a.b=[1, 22]", crate::OverrideSource::Typed);
        let root = read_part(&source, 4).expect("valid YAML");
        assert_eq!(root.at("1").map(|node| (node.span.column(), node.span.text())), Some((9, "22")));
    }

    #[test]
    fn nesting_is_limited() {
        assert_eq!(problem(&("[".repeat(80) + &"]".repeat(80))), "maps and lists are nested more than 64 deep");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,80}") {
            let _ = read(&Source::file("a.yaml", text));
        }

        #[test]
        fn no_text_with_yaml_characters_makes_the_reader_panic(text in "[-a1:,\\[\\]{}&*!|>'\"%@#?~. \n]{0,60}") {
            let _ = read(&Source::file("a.yaml", text));
        }
    }
}
