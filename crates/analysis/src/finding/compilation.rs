//! The device is idle while the host compiles, captures a graph, loads modules or launches for the first time.

use types::{IdleCause, RunKindName};

use super::idle::{IdleRule, Promise};
use super::{Found, Run};
use crate::device::{DeviceRecords, StageWork};
use crate::scope::Scope;

/// The rule's name.
pub(super) const RULE: &str = "compilation";

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::Compiling, unrecorded: None, promise: Promise::Nothing };

pub(super) fn check(run: &Run<'_>, _: &DeviceRecords, scope: Scope, work: &StageWork) -> Option<Found> {
    // A capture is recorded to be read beside its replay, and is no cost of it.
    IDLE.check(run, scope, work).filter(|_| run.kind() != Some(RunKindName::GraphCapture))
}
