//! The device is idle while the host makes no call for it: it does something else, or nothing recorded says what it does.

use types::{Facts, IdleCause};

use super::idle::{IdleRule, Promise};
use super::{Found, Run};
use crate::scope::Scope;

/// The rule's name.
pub(super) const RULE: &str = "host-work";

/// Places named.
const PLACES: usize = 3;

const IDLE: IdleRule = IdleRule {
    name: RULE,
    cause: IdleCause::HostWork,
    unrecorded: Some(IdleCause::HostUnknown),
    promise: Promise::WhatComesBack,
};

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    IDLE.check(run, |scope| places(run, scope))
}

/// Where the host was. Places are known of a device's whole time, so that they are evidence for the whole of it alone.
fn places(run: &Run<'_>, scope: Scope) -> Vec<Facts> {
    let [time] = run.device_time else { return Vec::new() };
    let is_told = |cause: IdleCause| matches!(cause, IdleCause::HostWork | IdleCause::HostUnknown);
    let idle = time.idle.iter().filter(|idle| scope == Scope::Run && is_told(idle.cause));
    let mut places: Vec<_> = idle.flat_map(|idle| &idle.inside).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.ns));
    let places = places.into_iter().take(PLACES);
    places.map(|place| Facts::new().with("name", &place.name).with("time", place.ns)).collect()
}
