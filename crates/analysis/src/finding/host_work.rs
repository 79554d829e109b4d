//! The device is idle while the host does something else and makes no call for it.

use types::{Facts, IdleCause};

use super::idle::{IdleRule, Promise};
use super::{Found, Run};
use crate::scope::Scope;

/// The rule's name.
pub(super) const RULE: &str = "host-work";

/// Places named.
const PLACES: usize = 3;

const IDLE: IdleRule =
    IdleRule { name: RULE, cause: IdleCause::HostWork, least_share: 0.1, promise: Promise::WhatComesBack };

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    IDLE.check(run, |scope| places(run, scope))
}

/// Where the host was. Places are known of a device's whole time, so that they are evidence for the whole of it alone.
fn places(run: &Run<'_>, scope: Scope) -> Vec<Facts> {
    let [time] = run.device_time else { return Vec::new() };
    let idle = time.idle.iter().filter(|idle| scope == Scope::Run && idle.cause == IdleCause::HostWork);
    let places = idle.flat_map(|idle| &idle.inside).take(PLACES);
    places.map(|place| Facts::new().with("name", &place.name).with("time", place.ns)).collect()
}
