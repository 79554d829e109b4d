//! Results are copied to the host while the device does nothing else.

use types::timeline::CopyDirection;

use super::copies::CopyRule;
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "device-to-host-copies";

const COPIES: CopyRule = CopyRule {
    name: RULE,
    direction: CopyDirection::DeviceToHost,
    what: "copies to the host",
    advice: "Fetch less: reduce, choose or convert on the device, and fetch every few steps. What must move: pinned memory, \
             `non_blocking`, a stream of its own, while the next step runs. The estimate assumes that all of it can be hidden.",
};

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    COPIES.check(run).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use types::{Bytes, CopyTime, DeviceTime, Nanos};

    use super::*;
    use crate::finding::{host_to_device_copies, on_devices};

    fn time(kind: &str, exposed: i64) -> DeviceTime {
        let copy = CopyTime {
            kind: kind.to_owned(),
            calls: 8,
            ns: Nanos::new(900),
            exposed_ns: Nanos::new(exposed),
            bytes: Some(Bytes::new(9_000)),
        };
        DeviceTime { copies_exposed_ns: Nanos::new(exposed), copies: vec![copy], ..crate::sample::device_time(1_000) }
    }

    #[test]
    fn results_that_the_device_waits_for_fire_in_their_own_direction_only() {
        let found = on_devices(&[time("DtoH", 880)], RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(880))));
        assert!(found[0].evidence[0].starts_with("copies to the host run "), "{:?}", found[0].evidence);
        assert_eq!(on_devices(&[time("DtoH", 880)], host_to_device_copies::RULE), []);
        assert_eq!(on_devices(&[time("HtoD", 880)], RULE), []);
    }

    #[test]
    fn copies_beside_kernels_do_not_fire() {
        assert_eq!(on_devices(&[time("DtoH", 90)], RULE), []);
    }
}
