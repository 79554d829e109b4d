//! Lost time: what a stage took beyond the least its work needs, divided among causes that do not overlap.
//!
//! Two sources fill the books. On our own engine operators run one after the other, so the time of each beyond its least
//! is lost to that operator, and what is between operators to nobody ([`profile`]). In a trace of a device the wall time is
//! divided among pieces of device work first; waiting is lost to what the host did meanwhile, running to
//! the family of the kernel ([`device`]). Findings then claim from the books; see [`Ledger`].

mod device;
mod ledger;
mod profile;

pub(crate) use device::books as device_books;
pub(crate) use ledger::{Ledger, StageLoss};
pub(crate) use profile::books as profile_books;

use crate::kernel::Family;
use types::{Facts, IdleCause, Remark};

/// Where lost time went.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    /// The device waited for the host.
    Waiting(IdleCause),
    /// The device had finished, the host went on.
    AfterLast,
    /// The device ran work of other stages, or of none.
    OtherWork,
    /// Kernels of a family ran longer than their work needs.
    Kernels(Family),
    /// An operator of our own engine ran longer than its work needs.
    Operator(String),
    /// Between operators of our own engine.
    BetweenOperators,
    /// Work that need not have been done.
    AvoidableWork,
}

impl Cause {
    /// What `report::words` calls it.
    pub(crate) fn remark(&self) -> Remark {
        let facts = Facts::new();
        let (id, facts) = match self {
            Self::Waiting(cause) => return Remark::new(&format!("cause.idle.{}", cause.name()), facts),
            Self::AfterLast => ("cause.after-last", facts),
            Self::OtherWork => ("cause.other-work", facts),
            Self::Kernels(family) => ("cause.kernels", facts.with("family", family.name())),
            Self::Operator(name) => ("cause.operator", facts.with("operator", name)),
            Self::BetweenOperators => ("cause.between-operators", facts),
            Self::AvoidableWork => ("cause.avoidable-work", facts),
        };
        Remark::new(id, facts)
    }
}
