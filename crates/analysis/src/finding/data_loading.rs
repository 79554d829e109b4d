//! The device is idle while the host waits for its data loader.

use types::{IdleCause, IdleTime};

use super::idle::{IdleRule, Promise};
use super::{Found, Run};
use crate::device::{DeviceRecords, StageWork};
use crate::scope::Scope;

/// The rule's name.
pub(super) const RULE: &str = "data-loading";

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::DataLoading, unrecorded: None, promise: Promise::WhatComesBack };

/// The iterator of PyTorch's loader that has worker processes.
const WITH_WORKERS: &str = "_MultiProcessingDataLoaderIter";

pub(super) fn check(run: &Run<'_>, _: &DeviceRecords, scope: Scope, work: &StageWork) -> Option<Found> {
    let mut found = IDLE.check(run, scope, work)?;
    let loading = |idle: &&IdleTime| idle.cause == IdleCause::DataLoading;
    let mut places =
        run.device_time.iter().flat_map(|time| time.idle.iter().filter(loading)).flat_map(|idle| &idle.inside);
    let has_workers = places.any(|place| place.name.contains(WITH_WORKERS));
    found.finding.quantities = std::mem::take(&mut found.finding.quantities).with_if("workers", has_workers);
    Some(found)
}
