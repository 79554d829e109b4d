//! Loads read from files, one format each: bytes in, never a path.

mod mooncake;
mod sharegpt;
mod table;
mod text;

pub use mooncake::mooncake;
pub use sharegpt::sharegpt;
pub use table::csv;
pub use text::{jsonl, lines};

use types::Nanos;

use crate::{Arrivals, Ask, LONGEST, LoadError, Prompts};

/// A recorded load: when its requests came, and what they asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Since the first request.
    pub arrivals: Arrivals,
    /// One per arrival.
    pub prompts: Prompts,
    /// How many.
    pub requests: usize,
    /// The first that is due before the one above it in the file, counted from 1; absent where the file is in order.
    pub disordered: Option<usize>,
}

/// One line of a file, for errors.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// What the file is read as.
    format: &'static str,
    /// Counted from 1.
    line: usize,
}

impl Place {
    /// An error here.
    fn wrong(self, problem: impl Into<String>, fix: &'static str) -> LoadError {
        LoadError::Line { format: self.format, line: self.line, problem: problem.into(), fix }
    }

    /// A number of tokens.
    fn tokens(self, name: &str, value: f64) -> Result<u32, LoadError> {
        if value.fract() == 0.0 && (1.0..=f64::from(LONGEST)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.wrong(format!("`{name}` is {value}"), "use a whole number of tokens from 1 to 16777216"))
    }

    /// A time in units of so many nanoseconds.
    fn time(self, name: &str, value: f64, unit: f64) -> Result<Nanos, LoadError> {
        let nanoseconds = value * unit;
        if (0.0..9e18).contains(&nanoseconds) {
            return Ok(Nanos::new(nanoseconds as i64));
        }
        Err(self.wrong(format!("`{name}` is {value}"), "use times that are not negative and at most 292 years"))
    }
}

/// The lines of a file that are not blank, with their places.
fn places<'a>(format: &'static str, bytes: &'a [u8]) -> impl Iterator<Item = (Place, &'a [u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..).map(|(line, number)| (number, line.trim_ascii()));
    lines.filter(|(_, line)| !line.is_empty()).map(move |(line, text)| (Place { format, line }, text))
}

/// A load from its requests: sorted by time, from the first one on.
fn replay(format: &'static str, mut requests: Vec<(Nanos, Ask)>) -> Result<Replay, LoadError> {
    let disordered = requests.windows(2).position(|pair| pair[1].0 < pair[0].0).map(|place| place + 2);
    requests.sort_by_key(|(time, _)| *time);
    let Some(first) = requests.first().map(|(time, _)| *time) else { return Err(LoadError::Empty { format }) };
    let (times, asks): (Vec<_>, Vec<_>) = requests.into_iter().map(|(time, ask)| (time - first, ask)).unzip();
    Ok(Replay { requests: asks.len(), arrivals: Arrivals::At(times), prompts: Prompts::Listed(asks), disordered })
}

/// Prompts without times.
fn listed(format: &'static str, asks: Vec<Ask>) -> Result<Prompts, LoadError> {
    if asks.is_empty() { Err(LoadError::Empty { format }) } else { Ok(Prompts::Listed(asks)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_end_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\",:a-z0-9.e\n-]{0,200}") {
            for bytes in [&bytes, text.as_bytes()] {
                let _ = (mooncake(bytes), csv(bytes), jsonl(bytes, 1));
                let _ = (lines(bytes, 1), sharegpt(bytes, 1));
            }
        }
    }
}
