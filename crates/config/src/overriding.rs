//! One override, split into its parts.
//!
//! Responsible for the grammar alone:
//!
//! ```text
//! override = ["+" | "++"] name ["@" package] "=" value
//!          | "~" name ["@" package]
//! ```
//!
//! Whether a name is a group or a key depends on which groups exist, and is decided where the override is applied. The
//! value is YAML and is read there too.

use std::fmt;
use std::sync::Arc;

use super::defaults;
use super::error::ConfigError;
use super::node::{Node, Value};
use super::reader::{check_names, read_part};
use super::source::{OverrideSource, Source, SourceKind, Span};

/// What an override does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// `key=value`: change what exists.
    Change,
    /// `+key=value`: add what does not exist.
    Add,
    /// `++key=value`: change or add.
    Put,
    /// `~key`: take away what exists.
    Remove,
}

/// One override, split.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// What to do.
    pub(crate) action: Action,
    /// The group or the dotted key.
    pub(crate) name: Span,
    /// Where a group is mounted.
    pub(crate) package: Option<Span>,
    /// What follows `=`; none when removing.
    pub(crate) value: Option<Span>,
}

impl Action {
    fn prefix(self) -> &'static str {
        match self {
            Action::Change => "",
            Action::Add => "+",
            Action::Put => "++",
            Action::Remove => "~",
        }
    }
}

impl Override {
    /// Makes one from parts that need no check.
    pub(crate) fn new(
        action: Action,
        name: &str,
        package: Option<&str>,
        value: Option<&str>,
        source: OverrideSource,
    ) -> Self {
        let mut text = format!("{}{name}", action.prefix());
        let name_at = (action.prefix().len(), text.len());
        let mut put = |sign: char, part: &str| {
            text.push(sign);
            let start = text.len();
            text.push_str(part);
            (start, text.len())
        };
        let package_at = package.map(|package| put('@', package));
        let value_at = value.map(|value| put('=', value));
        let source = Source::overriding(text, source);
        let span = |(start, end)| Span::new(&source, start, end);
        Self { action, name: span(name_at), package: package_at.map(span), value: value_at.map(span) }
    }

    /// Splits one text.
    pub(crate) fn parse(text: &str, source: OverrideSource) -> Result<Self, ConfigError> {
        let source = Source::overriding(text, source);
        let wrong = |start: usize, end: usize, problem| {
            Err(ConfigError::OverrideSyntax { at: Span::new(&source, start, end), problem })
        };
        let action = [Action::Put, Action::Add, Action::Remove]
            .into_iter()
            .find(|action| text.starts_with(action.prefix()))
            .unwrap_or(Action::Change);
        let start = action.prefix().len();
        let equals = text.find('=');
        let value = match (action, equals) {
            (Action::Remove, Some(at)) => return wrong(at, text.len(), "a removal takes no value"),
            (Action::Remove, None) => None,
            (_, Some(at)) => Some(Span::new(&source, at + 1, text.len())),
            (_, None) => return wrong(0, text.len(), "missing `=`"),
        };
        let end = equals.unwrap_or(text.len());
        let at = text[start..end].find('@').map(|at| start + at);
        let name = Span::new(&source, start, at.unwrap_or(end));
        let package = at.map(|at| Span::new(&source, at + 1, end));
        if name.text().split(['.', '/']).any(str::is_empty) {
            return wrong(start, at.unwrap_or(end), "the name before `=` has an empty part");
        }
        if package.as_ref().is_some_and(|package| package.text().split('.').any(str::is_empty)) {
            return wrong(at.unwrap_or(start), end, "the package after `@` has an empty part");
        }
        let left = &text[start..end];
        if let Some(blank) = left.find(|character: char| character.is_whitespace() || character.is_control()) {
            return wrong(start + blank, start + blank + 1, "the name before `=` contains a space");
        }
        if let Some(second) = at.and_then(|at| text[at + 1..end].find(['@', '/']).map(|second| at + 1 + second)) {
            return wrong(second, second + 1, "the package after `@` must be a dotted key");
        }
        Ok(Self { action, name, package, value })
    }

    /// Who asked for it.
    pub fn source(&self) -> OverrideSource {
        match self.name.source().kind {
            SourceKind::Override(source) => source,
            SourceKind::File(_) => OverrideSource::Verb,
        }
    }

    /// The text after `=`, without quotes around it.
    pub fn value_text(&self) -> Option<&str> {
        self.value.as_ref().map(|value| unquote(value.text()))
    }

    /// Whether it changes the value at a key, or something above or below it.
    pub fn touches(&self, key: &str) -> bool {
        let path = self.path();
        path.is_empty() || path == key || below(&path, key) || below(key, &path)
    }

    /// What it changes below a key; absent where that is none of its business.
    pub fn key_below(&self, key: &str) -> Option<String> {
        let path = self.path();
        if path == key { Some(String::new()) } else { path.strip_prefix(key)?.strip_prefix('.').map(str::to_owned) }
    }

    /// Whether it mounts a group at exactly this key, in so many words.
    pub fn mounts_at(&self, key: &str) -> bool {
        self.package.is_some() && self.path() == key
    }

    /// Whether all it changes is below a key.
    pub fn is_below(&self, key: &str) -> bool {
        below(&self.path(), key)
    }

    /// Whether it takes something away.
    pub(crate) fn removes(&self) -> bool {
        self.action == Action::Remove
    }

    /// Whether it may choose an option of that group: the name alone does not tell a group from a key.
    pub(crate) fn names_group(&self, group: &str) -> bool {
        self.name.text() == group
    }

    /// The key it changes: where a group is mounted, as far as the override says.
    pub(crate) fn path(&self) -> String {
        match &self.package {
            Some(package) if package.text() == defaults::GLOBAL => String::new(),
            Some(package) => package.text().to_owned(),
            None => defaults::package_of(self.name.text()),
        }
    }

    fn text(&self) -> &Arc<Source> {
        self.name.source()
    }

    /// The value, read as YAML. Nothing after `=` is the empty text.
    pub(crate) fn node(&self) -> Result<Option<Node>, ConfigError> {
        let Some(span) = &self.value else { return Ok(None) };
        if span.text().is_empty() {
            return Ok(Some(Node { value: Value::Text(String::new()), span: span.clone() }));
        }
        let node = read_part(self.text(), self.text().text.len() - span.text().len())?;
        check_names(&node)?;
        // A comment would swallow part of what the user typed without a word.
        let is_block = span.text().contains('\n');
        let rest = node.span.rest();
        if !is_block && let Some(comment) = rest.text().find('#') {
            return Err(ConfigError::OverrideComment { at: rest.part(comment, rest.text().len()) });
        }
        Ok(Some(node))
    }
}

/// Whether one dotted key lies below another.
fn below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// An option's name as typed, without the quotes a cautious user puts around it.
pub(crate) fn unquote(text: &str) -> &str {
    ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(text)
}

/// Exactly the text it was parsed from.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.action.prefix(), self.name.text())?;
        if let Some(package) = &self.package {
            write!(f, "@{}", package.text())?;
        }
        if let Some(value) = &self.value {
            write!(f, "={}", value.text())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Override, ConfigError> {
        Override::parse(text, OverrideSource::Typed)
    }

    fn parts(text: &str) -> (Action, String, Option<String>, Option<String>) {
        let parsed = parse(text).expect("valid");
        let own = |span: &Span| span.text().to_owned();
        (parsed.action, own(&parsed.name), parsed.package.as_ref().map(own), parsed.value.as_ref().map(own))
    }

    fn value(text: &str) -> Value {
        parse(text).and_then(|parsed| parsed.node()).expect("valid").expect("a value").value
    }

    #[test]
    fn every_form_is_split_into_its_parts() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("a.b=1"), (Action::Change, "a.b".into(), None, some("1")));
        assert_eq!(parts("+a=x=y"), (Action::Add, "a".into(), None, some("x=y")));
        assert_eq!(parts("++a="), (Action::Put, "a".into(), None, some("")));
        assert_eq!(parts("~a.0"), (Action::Remove, "a.0".into(), None, None));
        assert_eq!(
            parts("model/dummy/arch@model=dummy.default"),
            (Action::Change, "model/dummy/arch".into(), some("model"), some("dummy.default"))
        );
        assert_eq!(parts("~g/h@a.b"), (Action::Remove, "g/h".into(), some("a.b"), None));
        assert_eq!(parts("mail=a@b"), (Action::Change, "mail".into(), None, some("a@b")));
    }

    #[test]
    fn values_are_yaml() {
        assert_eq!(value("a=12"), Value::Int(12));
        assert_eq!(value("a='12'"), Value::Text("12".into()));
        assert_eq!(value("a=null"), Value::Null);
        assert_eq!(value("a="), Value::Text(String::new()));
        assert_eq!(value("a=${b.c}"), Value::Text("${b.c}".into()));
        assert_eq!(value("a=a#b"), Value::Text("a#b".into()));
        assert_eq!(value("a='x # y'"), Value::Text("x # y".into()));
        assert!(matches!(value("a=[1,2]"), Value::List(list) if list.len() == 2));
        assert!(matches!(value("a={b: 1}"), Value::Map(map) if map.0.len() == 1));
    }

    #[test]
    fn wrong_forms_say_what_is_wrong() {
        let problem = |text: &str| {
            let error = parse(text).and_then(|parsed| parsed.node()).expect_err("invalid");
            let marked = error.span().map(|span| span.text().to_owned()).unwrap_or_default();
            format!("{error} [{marked}]")
        };
        insta::assert_snapshot!(["", "a", "=1", "+=1", "a..b=1", "a =1", "~a=1", "a@=1", "a@b@c=1", "a=x # y", "a=#f00"]
            .map(|text| format!("{text:<8} {}", problem(text)))
            .join("\n"), @r"
                     invalid override: missing `=` []
            a        invalid override: missing `=` [a]
            =1       invalid override: the name before `=` has an empty part []
            +=1      invalid override: the name before `=` has an empty part []
            a..b=1   invalid override: the name before `=` has an empty part [a..b]
            a =1     invalid override: the name before `=` contains a space [ ]
            ~a=1     invalid override: a removal takes no value [=1]
            a@=1     invalid override: the package after `@` has an empty part [@]
            a@b@c=1  invalid override: the package after `@` must be a dotted key [@]
            a=x # y  `#` starts a comment in YAML, so the rest would be lost [# y]
            a=#f00   `#` starts a comment in YAML, so the rest would be lost [#f00]
            ");
    }

    proptest! {
        #[test]
        fn printing_what_was_parsed_gives_the_text_back(text in "(?s).{0,40}") {
            if let Ok(parsed) = parse(&text) {
                prop_assert_eq!(parsed.to_string(), text);
                let _ = parsed.node();
            }
        }

        #[test]
        fn printing_gives_likely_overrides_back(
            text in "(\\+|\\+\\+|~)?[a-z0-9_]{1,4}([./][a-z0-9_]{1,4}){0,3}(@[a-z]{1,3}(\\.[a-z]{1,3})?)?(=[-a1,.\\[\\]{}:'\" #$~@=]{0,12})?"
        ) {
            match parse(&text) {
                Ok(parsed) => {
                    prop_assert_eq!(parsed.to_string(), text.clone());
                    let _ = parsed.node();
                }
                // The grammar of the generator is the grammar of overrides except for these two.
                Err(_) => prop_assert!(text.starts_with('~') == text.contains('='), "{text}"),
            }
        }
    }
}
