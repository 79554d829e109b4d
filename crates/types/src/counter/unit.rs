//! Units of counters after reading.

use std::fmt;
use std::sync::Arc;

/// The base unit a counter's numbers are in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CounterUnit {
    /// No unit: a ratio, an attribute, or a count the tool does not name.
    Plain,
    /// Hundredths. Stays as the tool has it: 100 is the whole.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Cycles in a second.
    Hertz,
    /// Any other, in the tool's words with prefixes taken out: `inst`, `byte/block`, `cycle`.
    Other(Arc<str>),
}

impl fmt::Display for CounterUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "",
            Self::Percent => "%",
            Self::Bytes => "byte",
            Self::BytesPerSecond => "byte/s",
            Self::Nanoseconds => "ns",
            Self::Hertz => "hz",
            Self::Other(unit) => unit,
        })
    }
}
