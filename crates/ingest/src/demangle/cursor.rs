//! Where a reader of a mangled name stands, and what it may refer back to.

/// No readable name is longer; one that is repeats itself without end.
pub(super) const LONGEST: usize = 1 << 15;
/// Most text that is made for each byte of a name, and for any name. Names of CUTLASS make about a hundred.
const MOST_MADE: (usize, usize) = (1024, 1 << 12);
/// Deepest nesting.
const DEEPEST: u32 = 200;
/// Most parts to refer back to.
const MOST_PARTS: usize = 4096;

/// A position in a mangled name.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// What may be referred to by number, in order of appearance.
    parts: Vec<String>,
    /// All text that may still be made: a short name that refers to itself must not ask for endless work and memory.
    room: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(mangled: &'a str) -> Self {
        let (each, any) = MOST_MADE;
        let room = mangled.len().saturating_mul(each).saturating_add(any).min(64 * LONGEST);
        Self { rest: mangled.as_bytes(), parts: Vec::new(), room, depth: 0 }
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
        if part.len() > LONGEST || self.parts.len() >= MOST_PARTS {
            return None;
        }
        self.room = self.room.checked_sub(part.len())?;
        self.parts.push(part.to_owned());
        Some(())
    }

    /// A part that was remembered, counted from one.
    pub(super) fn part(&mut self, number: usize) -> Option<String> {
        let part = self.parts.get(number.checked_sub(1)?)?;
        self.room = self.room.checked_sub(part.len())?;
        Some(part.clone())
    }

    /// Reads something nested, unless that is too deep.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth <= DEEPEST { read(self) } else { None };
        self.depth -= 1;
        result
    }
}
