//! Requests wait for the host of their server between two steps, and the device for both.

use types::{DeviceTime, Finding, IdleCause, Nanos, Severity};

use super::idle::some;
use super::{Found, Run};
use crate::pressure::{Between, latency_facts};

/// Share of the requests' latency that it must take.
const LEAST_SHARE: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "idle-between-steps";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let pressure = run.pressure?;
    let Between { time, pauses, median, longest } = pressure.between;
    let unseen_of = |device: &DeviceTime| -> Nanos {
        device.idle.iter().filter(|idle| idle.cause == IdleCause::HostUnknown).map(|idle| idle.ns).sum()
    };
    let unseen = run.device_time.iter().map(unseen_of).max().unwrap_or_default();
    let facts = latency_facts(time, pressure.latency, LEAST_SHARE)?
        .with("pauses", pauses)
        .with_known("median", median)
        .with("longest", longest)
        .with_known("unseen", some(unseen));
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::under;
    use crate::pressure::Pressure;

    #[test]
    fn a_host_that_requests_wait_for_is_named() {
        let between = Between { time: Nanos::new(495), pauses: 3, median: Some(Nanos::new(4)), longest: Nanos::new(9) };
        let pressure = Pressure { latency: Nanos::new(1_000), requests: 4, between, ..Pressure::default() };
        let found = under(pressure.clone(), RULE).unwrap();
        assert_eq!((found.quantities.share("latency_share"), found.quantities.count("pauses")), (Some(0.495), Some(3)));
        assert!(!found.quantities.has("unseen") && found.saving.saves_ns.is_none());
        let quick = Between { time: Nanos::new(26), ..between };
        assert!(under(Pressure { between: quick, ..pressure }, RULE).is_none());
    }
}
