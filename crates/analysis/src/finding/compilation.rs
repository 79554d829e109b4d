//! The device is idle while the host compiles, captures a graph, loads modules or launches for the first time.

use types::IdleCause;

use super::idle::{IdleRule, Promise};
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "compilation";

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::Compiling, least_share: 0.05, promise: Promise::Nothing };

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    IDLE.check(run, |_| Vec::new())
}
