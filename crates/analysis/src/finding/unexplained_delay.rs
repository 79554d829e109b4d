//! The device is idle although its next work had been launched, for longer than it needs to go on: nothing recorded says why.

use types::{DeviceTime, Facts, Finding, IdleCause, IdlePlace, Severity};

use super::idle::{idle, waiting};
use super::{Found, Run};
use crate::scope::Scope;

/// Share of a part of the run from which the delay is told.
const LEAST_SHARE: f64 = 0.05;
/// Share from which it is worth a warning.
const MUCH: f64 = 0.1;
/// Kernels named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "unexplained-delay";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let found = waiting(run, IdleCause::Queued, LEAST_SHARE).filter(|(.., waiting, _)| !run.is_little(*waiting));
    let found = found.map(|(scope, _, waiting, part)| {
        let severity = if part >= MUCH { Severity::Warning } else { Severity::Info };
        let rows = if scope == Scope::Run { behind(run.device_time) } else { Vec::new() };
        let facts = idle(scope, waiting, part).with_known("places", Some(rows).filter(|rows| !rows.is_empty()));
        Found::plain(Finding::new(RULE, severity, scope.stage(), facts))
    });
    found.collect()
}

/// What started late. It is known of a device's whole time, so that it is evidence for the whole of it alone.
fn behind(devices: &[DeviceTime]) -> Vec<Facts> {
    let [time] = devices else { return Vec::new() };
    let late = time.idle.iter().filter(|idle| idle.cause == IdleCause::Queued).flat_map(|idle| &idle.inside);
    let row = |place: &IdlePlace| Some(Facts::new().with("name", place.next()?).with("time", place.ns));
    late.take(NAMED).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{fired_on_device, waiting_device};

    #[test]
    fn a_delay_that_nothing_explains_is_told_without_a_promise() {
        let found = fired_on_device(&waiting_device(3_000, IdleCause::Queued), RULE).remove(0);
        assert_eq!((found.severity, found.saving.saves_ns), (Severity::Warning, None));
        assert_eq!(found.quantities.share("idle_share"), Some(0.3));
        assert_eq!(fired_on_device(&waiting_device(900, IdleCause::Queued), RULE)[0].severity, Severity::Info);
    }

    #[test]
    fn gaps_between_kernels_and_short_delays_are_none() {
        assert_eq!(fired_on_device(&waiting_device(3_000, IdleCause::BetweenKernels), RULE), []);
        assert_eq!(fired_on_device(&waiting_device(490, IdleCause::Queued), RULE), []);
    }
}
