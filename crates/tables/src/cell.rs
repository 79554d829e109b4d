//! One value of a row on its way into a table.

use types::Nanos;

/// A value; the column it is for decides how it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Not known.
    Null,
    /// A number or a time.
    Integer(i64),
    /// A text.
    Text(&'a str),
    /// Yes or no.
    Flag(bool),
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(i64::from(number))
    }
}

impl From<u64> for Cell<'_> {
    /// What does not fit is not known.
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Null, Self::Integer)
    }
}

impl From<Nanos> for Cell<'_> {
    fn from(time: Nanos) -> Self {
        Self::Integer(time.get())
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
