//! Results are copied to the host while the device does nothing else.

use types::timeline::CopyDirection;

use super::copies::CopyRule;
use super::{Found, Run};

/// The rule's name.
pub(super) const RULE: &str = "device-to-host-copies";

const COPIES: CopyRule = CopyRule { name: RULE, direction: CopyDirection::DeviceToHost };

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    COPIES.check(run)
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
        let facts = &found[0].quantities;
        assert_eq!((facts.time("exposed"), facts.share("exposed_share")), (Some(Nanos::new(880)), Some(0.88)));
        assert_eq!((facts.rows("devices")[0].count("copies"), facts.has("mostly")), (Some(8), true));
        assert_eq!(on_devices(&[time("DtoH", 880)], host_to_device_copies::RULE), []);
        assert_eq!(on_devices(&[time("HtoD", 880)], RULE), []);
    }

    #[test]
    fn copies_beside_kernels_do_not_fire() {
        assert_eq!(on_devices(&[time("DtoH", 40)], RULE), []);
    }
}
