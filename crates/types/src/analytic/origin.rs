//! Where a number comes from.

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

crate::named! {
    /// How a printed quantity was obtained. Every number the tool prints has one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Origin {
        /// Read off a clock while the work ran.
        Measured = "measured",
        /// Read off a hardware or software counter.
        Counted = "counted",
        /// Derived from the model's configuration by a formula.
        Modelled = "modelled",
        /// Taken as given, because nothing here can establish it.
        Assumed = "assumed",
    }
}
