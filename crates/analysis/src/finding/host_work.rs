//! The device is idle while the host makes no call for it: it does something else, or nothing recorded says what it does.

use types::IdleCause;

use super::idle::{IdleRule, Promise};
use super::{Found, Run};
use crate::device::{DeviceRecords, StageWork};
use crate::scope::Scope;

/// The rule's name.
pub(super) const RULE: &str = "host-work";

const IDLE: IdleRule = IdleRule {
    name: RULE,
    cause: IdleCause::HostWork,
    unrecorded: Some(IdleCause::HostUnknown),
    promise: Promise::WhatComesBack,
};

pub(super) fn check(run: &Run<'_>, _: &DeviceRecords, scope: Scope, work: &StageWork) -> Option<Found> {
    IDLE.check(run, scope, work)
}
