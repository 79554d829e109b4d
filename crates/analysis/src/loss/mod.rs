//! Lost time: what a stage took beyond the least its work needs, divided among causes that do not overlap.
//!
//! Two sources fill the books. On our own engine operators run one after the other, so the time of each beyond its least
//! is lost to that operator, and what is between operators to nobody ([`profile`]). In a trace of a device the wall time is
//! divided among pieces of device work first; waiting is lost to what the host did meanwhile, running to
//! the family of the kernel ([`device`]). Findings then claim from the books; see [`Ledger`].

mod device;
mod ledger;
mod profile;

use std::fmt;

pub(crate) use device::books as device_books;
pub(crate) use ledger::{Ledger, StageLoss};
pub(crate) use profile::books as profile_books;

use crate::kernel::Family;
use types::IdleCause;

/// Where lost time went.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    /// The device waited for the host.
    Waiting(IdleCause),
    /// The device had finished, the host went on.
    AfterLast,
    /// Kernels of a family ran longer than their work needs.
    Kernels(Family),
    /// An operator of our own engine ran longer than its work needs.
    Operator(String),
    /// Between operators of our own engine.
    BetweenOperators,
    /// Work that need not have been done.
    AvoidableWork,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(cause) => write!(f, "idle: {}", cause.phrase()),
            Self::AfterLast => f.write_str("host, after the last kernel"),
            Self::Kernels(family) => write!(f, "kernels: {}", family.name()),
            Self::Operator(name) => write!(f, "operator: {name}"),
            Self::BetweenOperators => f.write_str("between operators"),
            Self::AvoidableWork => f.write_str("work that could be avoided"),
        }
    }
}
