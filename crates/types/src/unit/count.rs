//! Counts over what a file says.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Mul};

/// A sum or product of numbers that a file holds and nobody has checked: sides of shapes, grids, calls.
///
/// It stops at the end of its range instead of wrapping around or ending the program. [`Count::exact`] tells where a number
/// has to be right, [`Count::get`] gives the nearest that 64 bits hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(u128);

impl Count {
    /// The count, or the largest 64-bit number where it is past that.
    pub fn get(self) -> u64 {
        u64::try_from(self.0).unwrap_or(u64::MAX)
    }

    /// The count; `None` past the range, where it is not known.
    pub fn exact(self) -> Option<u128> {
        (self.0 < u128::MAX).then_some(self.0)
    }
}

macro_rules! from_number {
    ($($number:ty),*) => {$(
        impl From<$number> for Count {
            fn from(number: $number) -> Self {
                Self(number.into())
            }
        }

        impl From<&$number> for Count {
            fn from(number: &$number) -> Self {
                Self((*number).into())
            }
        }
    )*};
}

from_number!(u32, u64, u128);

impl From<&Count> for Count {
    fn from(count: &Count) -> Self {
        *count
    }
}

impl<T: Into<Count>> Add<T> for Count {
    type Output = Self;
    fn add(self, other: T) -> Self {
        Self(self.0.saturating_add(other.into().0))
    }
}

impl<T: Into<Count>> AddAssign<T> for Count {
    fn add_assign(&mut self, other: T) {
        *self = *self + other;
    }
}

impl<T: Into<Count>> Mul<T> for Count {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        Self(self.0.saturating_mul(other.into().0))
    }
}

impl<T: Into<Count>> Sum<T> for Count {
    fn sum<I: Iterator<Item = T>>(numbers: I) -> Self {
        numbers.fold(Self(0), Add::add)
    }
}

impl<T: Into<Count>> Product<T> for Count {
    fn product<I: Iterator<Item = T>>(numbers: I) -> Self {
        numbers.fold(Self(1), Mul::mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_within_64_bits_are_exact() {
        assert_eq!([2u64, 3, 5].iter().product::<Count>().get(), 30);
        assert_eq!([2u64, 3, 5].into_iter().sum::<Count>().get(), 10);
        assert_eq!((Count::from(3u32) * 4u64 + 5u64).exact(), Some(17));
    }

    #[test]
    fn past_the_range_a_count_is_not_known_and_no_panic() {
        let sides = [u64::MAX; 3];
        assert_eq!(sides.iter().product::<Count>().exact(), None);
        assert_eq!(sides.iter().product::<Count>().get(), u64::MAX);
        assert_eq!(sides.iter().sum::<Count>().exact(), Some(3 * u128::from(u64::MAX)));
        assert_eq!(sides.iter().sum::<Count>().get(), u64::MAX);
    }
}
