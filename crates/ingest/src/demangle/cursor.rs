//! Where a reader of a mangled name stands, and what it may refer back to.

/// No readable name is longer; one that is repeats itself without end.
const LONGEST: usize = 1 << 15;
/// Deepest nesting.
const DEEPEST: u32 = 200;
/// Most parts to refer back to.
const MOST_PARTS: usize = 4096;

/// A position in a mangled name.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// What may be referred to by number, in order of appearance.
    parts: Vec<String>,
    /// All text that was made, so that a short name cannot ask for endless work.
    made: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(mangled: &'a str) -> Self {
        Self { rest: mangled.as_bytes(), parts: Vec::new(), made: 0, depth: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Whether the text comes next.
    pub(super) fn is_at(&self, text: &str) -> bool {
        self.rest.starts_with(text.as_bytes())
    }

    /// Whether the text comes next, in which case it is passed.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// That many bytes, as text.
    pub(super) fn text(&mut self, count: usize) -> Option<&'a str> {
        let (text, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    /// A number in decimal; `None` where there is none.
    pub(super) fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.text(digits)?.parse().ok()
    }

    /// A count that starts at one: nothing before `_` is the first, `0_` the second.
    pub(super) fn sequence(&mut self, radix: u32) -> Option<usize> {
        if self.take("_") {
            return Some(1);
        }
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).count();
        let text = self.text(digits)?;
        let number = usize::from_str_radix(text, radix).ok()?.checked_add(2)?;
        self.take("_").then_some(number)
    }

    /// Remembers a part that may be referred to.
    pub(super) fn remember(&mut self, part: &str) -> Option<()> {
        self.made = self.made.checked_add(part.len())?;
        if part.len() > LONGEST || self.parts.len() >= MOST_PARTS || self.made > 64 * LONGEST {
            return None;
        }
        self.parts.push(part.to_owned());
        Some(())
    }

    /// A part that was remembered, counted from one.
    pub(super) fn part(&self, number: usize) -> Option<String> {
        self.parts.get(number.checked_sub(1)?).cloned()
    }

    /// Reads something nested, unless that is too deep.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth <= DEEPEST { read(self) } else { None };
        self.depth -= 1;
        result
    }
}
