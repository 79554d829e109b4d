//! Where a number comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a printed quantity was obtained. Every number the tool prints has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Read off a clock while the work ran.
    Measured,
    /// Read off a hardware or software counter.
    Counted,
    /// Derived from the model's configuration by a formula.
    Modelled,
    /// Taken as given, because nothing here can establish it.
    Assumed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Counted => "counted",
            Self::Modelled => "modelled",
            Self::Assumed => "assumed",
        })
    }
}
