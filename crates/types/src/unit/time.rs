//! Time, measured and modelled.

use std::fmt;
use std::ops::Sub;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;
use crate::sums::additive;

/// A measured time span, or a point in time on a named clock, in integer nanoseconds.
///
/// Integers, because a trace timestamp of 1.7e18 ns does not survive the 53 bits of a double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Nanos(i64);

/// A modelled or derived duration in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seconds(f64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// That many nanoseconds.
    pub const fn new(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// A span of the standard library, or `None` past 292 years.
    pub fn from_duration(span: std::time::Duration) -> Option<Self> {
        i64::try_from(span.as_nanos()).ok().map(Self)
    }

    /// The count.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The same span in milliseconds, for printing and statistics.
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The same span in seconds, for rates.
    pub fn as_seconds(self) -> Seconds {
        Seconds(self.0 as f64 / 1e9)
    }
}

impl Seconds {
    /// No time.
    pub const ZERO: Self = Self(0.0);

    /// That many seconds.
    pub const fn new(seconds: f64) -> Self {
        Self(seconds)
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The same span in milliseconds.
    pub fn as_millis(self) -> f64 {
        self.0 * 1e3
    }

    /// The longer of two spans.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

// Sums of a hostile trace's times stay at the end of the range instead of wrapping around or ending the program.
additive!(Nanos: one + other = Self(one.0.saturating_add(other.0)));
additive!(Seconds: one + other = Self(one.0 + other.0));

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Mul<f64> for Seconds {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_seconds().fmt(f)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scaled, unit) = match self.0.abs() {
            size if size == 0.0 || size >= 0.9995 => (self.0, "s"),
            size if size >= 0.9995e-3 => (self.0 * 1e3, "ms"),
            size if size >= 0.9995e-6 => (self.0 * 1e6, "us"),
            _ => (self.0 * 1e9, "ns"),
        };
        let decimals = match scaled.abs() {
            size if size == 0.0 || size >= 99.95 => 0,
            size if size >= 9.995 => 1,
            _ => 2,
        };
        write!(f, "{scaled:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_timestamp_in_nanoseconds_survives_json() {
        let now = Nanos::new(1_794_713_289_123_456_789);
        let text = serde_json::to_string(&now).unwrap();
        assert_eq!(serde_json::from_str::<Nanos>(&text).unwrap(), now);
    }

    #[test]
    fn times_print_in_the_unit_that_keeps_them_readable() {
        assert_eq!(Nanos::new(20_100_000).to_string(), "20.1 ms");
        assert_eq!(Nanos::new(999_900).to_string(), "1.00 ms");
        assert_eq!(Nanos::ZERO.to_string(), "0 s");
        assert_eq!(Seconds::new(0.000_000_000_25).to_string(), "0.25 ns");
    }

    #[test]
    fn sums_stay_at_the_end_of_the_range() {
        let most = Nanos::new(i64::MAX);
        assert_eq!(most + Nanos::new(1), most);
        assert_eq!(Nanos::new(i64::MIN) - Nanos::new(1), Nanos::new(i64::MIN));
        assert_eq!([most, most].into_iter().sum::<Nanos>(), most);
    }
}
