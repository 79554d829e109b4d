//! The device is idle while the host compiles, captures a graph, loads modules or launches for the first time.

use types::{IdleCause, RunKindName};

use super::idle::{IdleRule, Promise, places};
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "compilation";

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::Compiling, unrecorded: None, promise: Promise::Nothing };

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    // A capture is recorded to be read beside its replay, and is no cost of it.
    if run.kind() == Some(RunKindName::GraphCapture) {
        Vec::new()
    } else {
        IDLE.check(run, |scope| places(run, scope, &[IdleCause::Compiling]))
    }
}
