//! Values that must not be passed on, and what stands in for them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use collect::run::sha256;
use regex::{Captures, Regex};

/// From this length on a value is replaced inside of words too; a shorter one might be a part of another word.
const LONG: usize = 12;

/// Digits of a hash: enough that two values of a run are never taken for one.
const DIGITS: usize = 16;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Path,
    Input,
    Text,
    Host,
    User,
    Value,
    Word,
    Device,
    Address,
}

/// A value that is replaced wherever it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) value: String,
    pub(super) kind: Kind,
}

/// Replaces values by what stands in for them, and counts.
pub(super) struct Scrubber {
    salt: [u8; 32],
    terms: Vec<Term>,
    finder: Option<AhoCorasick>,
    replaced: RefCell<BTreeMap<&'static str, u64>>,
}

/// Folders that are taken for a path even without another one beneath.
const ROOTS: &str = "home|root|tmp|usr|opt|var|mnt|data|datasets|work|workspace|scratch|etc|proc|dev|srv|media|nfs|Users|private|Volumes|fsx|lustre";

static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?P<before>^|[\s"'`=(\[,;:|<>@])(?P<path>~?/(?:(?:[\w.+@%~=-]+/)+[\w.+@%~=-]*|(?:{ROOTS})\b)|~/[\w.+@%~=-]+)"#
    ))
    .ok()
});
static DEVICE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F/-]{4,}").ok());
static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\b[\w.+-]+@[\w-]+\.[\w.-]*\w|\b(?:10\.\d{1,3}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b",
    )
    .ok()
});

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Input => "input",
            Self::Text => "text",
            Self::Host => "host",
            Self::User => "user",
            Self::Value => "value",
            Self::Word => "word",
            Self::Device => "device",
            Self::Address => "address",
        }
    }
}

impl Scrubber {
    /// One that replaces these values, and paths, addresses and keys wherever they stand.
    pub(super) fn new(salt: [u8; 32], mut terms: Vec<Term>) -> Self {
        terms.retain(|term| !term.value.is_empty());
        terms.sort();
        terms.dedup_by(|a, b| a.value == b.value);
        let values = terms.iter().map(|term| term.value.as_str());
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values).ok();
        Self { salt, finder: finder.filter(|_| !terms.is_empty()), terms, replaced: RefCell::default() }
    }

    /// How often a value of each kind was replaced.
    pub(super) fn replaced(&self) -> BTreeMap<String, u64> {
        self.replaced.borrow().iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
    }

    /// What stands in for a value: the same for the same value.
    pub(super) fn stand_in(&self, kind: Kind, value: &str) -> String {
        *self.replaced.borrow_mut().entry(kind.name()).or_default() += 1;
        let salted = [&self.salt[..], value.as_bytes()].concat();
        let mut hash = sha256(&salted);
        hash.truncate(DIGITS);
        format!("redacted-{}-{hash}", kind.name())
    }

    /// A text without any of the values.
    pub(super) fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if is_path(text) {
            return self.stand_in(Kind::Path, text).into();
        }
        let mut text = self.without_terms(text);
        for (pattern, kind) in [(&*DEVICE, Kind::Device), (&*ADDRESS, Kind::Address)] {
            self.replace(&mut text, pattern, &|found| self.stand_in(kind, &found[0]));
        }
        self.replace(&mut text, &PATH, &|found| {
            format!("{}{}", &found["before"], self.stand_in(Kind::Path, &found["path"]))
        });
        match collect::without_tokens(&text) {
            Cow::Owned(other) => other.into(),
            Cow::Borrowed(_) => text,
        }
    }

    fn replace(&self, text: &mut Cow<'_, str>, pattern: &Option<Regex>, with: &dyn Fn(&Captures<'_>) -> String) {
        if let Some(pattern) = pattern.as_ref().filter(|pattern| pattern.is_match(text)) {
            *text = pattern.replace_all(text, with).into_owned().into();
        }
    }

    fn without_terms<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = &self.finder else { return text.into() };
        let mut scrubbed = String::new();
        let (mut copied, mut from) = (0, 0);
        while let Some(found) = finder.find(Input::new(text).span(from..text.len())) {
            let term = &self.terms[found.pattern().as_usize()];
            if term.value.len() < LONG && !stands_alone(text, found.start(), found.end()) {
                from = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            scrubbed.push_str(&text[copied..found.start()]);
            scrubbed.push_str(&self.stand_in(term.kind, &term.value));
            (copied, from) = (found.end(), found.end());
        }
        if copied == 0 {
            return text.into();
        }
        scrubbed.push_str(&text[copied..]);
        scrubbed.into()
    }
}

/// Whether all of a text is the path of a file, spaces and all.
fn is_path(text: &str) -> bool {
    let beneath = text.strip_prefix('~').unwrap_or(text).strip_prefix('/');
    // A sentence may start with a path, and has more in it.
    let is_sentence = || [", ", ": ", "; ", "\n"].iter().any(|mark| text.contains(mark));
    beneath.is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_'))
            && !is_sentence()
            && (rest.contains('/') || !rest.contains(' '))
    })
}

/// Whether no letter, digit or underscore touches what stands between two places.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !text[..start].ends_with(is_word) && !text[end..].starts_with(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber(terms: &[(&str, Kind)]) -> Scrubber {
        let terms = terms.iter().map(|(value, kind)| Term { value: (*value).to_owned(), kind: *kind }).collect();
        Scrubber::new([7; 32], terms)
    }

    fn kinds(scrubber: &Scrubber, text: &str) -> String {
        let hash = Regex::new(r"redacted-(\w+)-[0-9a-f]{16}").unwrap();
        hash.replace_all(&scrubber.scrub(text), "<$1>").into_owned()
    }

    #[test]
    fn the_patterns_compile() {
        assert!(PATH.is_some() && DEVICE.is_some() && ADDRESS.is_some());
    }

    #[test]
    fn paths_go_wherever_they_stand() {
        let scrubber = scrubber(&[]);
        for (text, expected) in [
            ("/home/bob/My Scans/a.png", "<path>"),
            ("~/.pyenv/bin/python3", "<path>"),
            ("/.dockerenv is there, but /dev/vda is the disk", "/.dockerenv is there, but <path> is the disk"),
            ("python3 at ~/x/python3, from /usr/lib", "python3 at <path>, from <path>"),
            ("--config=/etc/x.yaml:/opt/y/z", "--config=<path>:<path>"),
            ("GPU-11111111-2222-3333-4444-555555555555 of me@example.org", "<device> of <address>"),
            ("10.1.2.3", "<address>"),
        ] {
            assert_eq!(kinds(&scrubber, text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_path_stays() {
        let scrubber = scrubber(&[]);
        for text in [
            "21.2 GFLOP/s (llm-perf doctor --calibrate)",
            "llm-perf/metrics/1",
            "https://resources.nvidia.com/en-us/h200",
            "4 * B * T / h and/or (a)/2",
            "void at::native::(anonymous namespace)::f<float, 4>",
            "ncu/regions/A+A1/report.md",
            "builtin:pages/letter.png",
            "/",
        ] {
            assert_eq!(scrubber.scrub(text), text);
        }
    }

    #[test]
    fn short_values_go_as_words_and_long_ones_anywhere() {
        let scrubber = scrubber(&[("vm", Kind::Host), ("invoice-2024.png", Kind::Input), ("invoice", Kind::Input)]);
        assert_eq!(
            kinds(&scrubber, "vm kvm vm_x on vm: xinvoice-2024.pngx invoice"),
            "<host> kvm vm_x on <host>: x<input>x <input>"
        );
    }

    #[test]
    fn equal_values_stay_equal_and_another_salt_gives_other_hashes() {
        let (one, other) = (Scrubber::new([1; 32], Vec::new()), Scrubber::new([2; 32], Vec::new()));
        assert_eq!(one.stand_in(Kind::Path, "/a/b"), one.stand_in(Kind::Path, "/a/b"));
        assert_ne!(one.stand_in(Kind::Path, "/a/b"), other.stand_in(Kind::Path, "/a/b"));
        assert_eq!(one.replaced(), [("path".to_owned(), 3)].into());
    }
}
