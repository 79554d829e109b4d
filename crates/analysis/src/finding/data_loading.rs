//! The device is idle while the host waits for its data loader.

use types::IdleCause;

use super::idle::{IdleRule, Promise};
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "data-loading";

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::DataLoading, unrecorded: None, promise: Promise::WhatComesBack };

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    IDLE.check(run, |_| Vec::new())
}
