//! Amounts that are counted: bytes and floating-point operations.

use std::fmt;
use std::ops::Mul;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;
use crate::sums::additive;

use super::with_decimal_prefix;

/// A number of bytes.
///
/// Sums and products stop at the largest 64-bit number instead of wrapping; [`Bytes::is_saturated`] tells, and whoever
/// sums modelled traffic must ask before printing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A number of floating-point operations; one multiply-add is two.
///
/// 128 bits, because a 400-billion-parameter model over a large batch of long prompts passes the 1.8e19 of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Flops(u128);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// That many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count for arithmetic that is not exact by nature, such as rates and shares.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Whether a sum or product grew past what can be counted.
    pub const fn is_saturated(self) -> bool {
        self.0 == u64::MAX
    }

    /// The difference, or `None` where it would be negative.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl Flops {
    /// No operations.
    pub const ZERO: Self = Self(0);

    /// That many operations.
    pub const fn new(flops: u128) -> Self {
        Self(flops)
    }

    /// The count.
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The count for arithmetic that is not exact by nature, such as rates and shares.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

macro_rules! amount {
    ($name:ident, $inner:ty, $unit:literal) => {
        additive!($name: one + other = Self(one.0.saturating_add(other.0)));

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(<$inner>::from(times)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                with_decimal_prefix(f, self.0 as f64, $unit)
            }
        }
    };
}

amount!(Bytes, u64, "B");
amount!(Flops, u128, "FLOP");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_print_with_three_digits_and_a_prefix() {
        assert_eq!(Bytes::new(0).to_string(), "0 B");
        assert_eq!(Bytes::new(61_440).to_string(), "61.4 kB");
        assert_eq!(Bytes::new(999_600).to_string(), "1.00 MB");
        assert_eq!(Flops::new(1_473_000_000_000).to_string(), "1.47 TFLOP");
    }

    #[test]
    fn flops_past_64_bits_keep_every_digit() {
        let large = Flops::new(u128::from(u64::MAX)) * 3;
        let text = serde_json::to_string(&large).unwrap();
        assert_eq!(text, "55340232221128654845");
        assert_eq!(serde_json::from_str::<Flops>(&text).unwrap(), large);
    }

    #[test]
    fn too_many_bytes_saturate_and_say_so() {
        let most = Bytes::new(u64::MAX - 1);
        assert!(!most.is_saturated());
        assert!((most + Bytes::new(5)).is_saturated());
        assert!((most * 2).is_saturated());
    }

    #[test]
    fn bytes_never_go_below_zero() {
        assert_eq!(Bytes::new(1).checked_sub(Bytes::new(2)), None);
        assert_eq!(Bytes::new(3).checked_sub(Bytes::new(2)), Some(Bytes::new(1)));
    }
}
