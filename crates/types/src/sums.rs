//! Sums of quantities, and of structs field by field.

/// Implements `+=` and sums for a type, and `+` where an expression says how.
macro_rules! additive {
    ($Type:ident: $one:ident + $other:ident = $sum:expr) => {
        impl std::ops::Add for $Type {
            type Output = Self;

            fn add(self, $other: Self) -> Self {
                let $one = self;
                $sum
            }
        }

        additive!($Type);
    };
    ($Type:ident) => {
        impl std::ops::AddAssign for $Type {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::iter::Sum for $Type {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::default(), std::ops::Add::add)
            }
        }
    };
}

/// Implements `+` for structs whose every field has it.
macro_rules! fieldwise_add {
    ($($Struct:ident { $($field:ident),+ $(,)? })+) => {
        $(impl std::ops::Add for $Struct {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field),+ }
            }
        })+
    };
}

/// Implements `* u64` for structs whose every field has it.
macro_rules! fieldwise_multiply {
    ($($Struct:ident { $($field:ident),+ $(,)? })+) => {
        $(impl std::ops::Mul<u64> for $Struct {
            type Output = Self;

            fn mul(self, times: u64) -> Self {
                Self { $($field: self.$field * times),+ }
            }
        })+
    };
}

pub(crate) use {additive, fieldwise_add, fieldwise_multiply};
