//! Energy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

use super::with_decimal_prefix;

/// Energy in joules.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Joules(f64);

impl Joules {
    /// From the millijoules that GPUs count.
    pub fn from_millijoules(millijoules: u64) -> Self {
        Self(millijoules as f64 / 1e3)
    }

    /// An equal part of it for each of `count`; `None` for none.
    pub fn per(self, count: u64) -> Option<Self> {
        (count > 0).then(|| Self(self.0 / count as f64))
    }
}

impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 < 1.0 {
            true => with_decimal_prefix(f, self.0 * 1e3, "mJ"),
            false => with_decimal_prefix(f, self.0, "J"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_of_a_token_and_of_a_load_are_readable() {
        let load = Joules::from_millijoules(76_500_000);
        assert_eq!(load.to_string(), "76.5 kJ");
        assert_eq!(load.per(1_000_000).unwrap().to_string(), "76.5 mJ");
        assert_eq!(load.per(0), None);
    }
}
