//! The device is idle while the host compiles, captures a graph, loads modules or launches for the first time.

use types::IdleCause;

use super::idle::{IdleRule, Promise};
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "compilation";

const IDLE: IdleRule = IdleRule {
    name: RULE,
    cause: IdleCause::Compiling,
    least_share: 0.05,
    meanwhile: "while the host compiles, captures, loads or launches for the first time",
    promise: Promise::Nothing,
    advice: "This happens once: run the same shapes before the profiler starts, and read nothing else of this run as steady. \
             Where it comes back, shapes change (dynamic shapes, recompilation): fix or pad them.",
};

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    IDLE.check(run, |_| Vec::new())
}
