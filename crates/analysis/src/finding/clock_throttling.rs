//! Equal matrix kernels get slower while the run goes on: the device lowers its clocks.

use types::{Finding, Severity, Stage};

use super::{Claim, Found, Run, percent};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::timings::rounded;

/// Slowdown from the first quarter of the launches to the last above which clocks are the likely cause.
const LEAST_SLOWDOWN: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "clock-throttling";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.device.and_then(|device| found(device.special.slowdown?)).into_iter().collect()
}

fn found((slowdown, time): (f64, types::Nanos)) -> Option<Found> {
    if slowdown < LEAST_SLOWDOWN {
        return None;
    }
    // Slower and slower, so on average half of it.
    let saves = rounded(time.get() as f64 * (1.0 - 1.0 / (1.0 + slowdown / 2.0)));
    let finding = Finding {
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: Some(Stage::Decode),
        evidence: vec![
            format!("equal matrix kernels of decode take {} longer in the last quarter than in the first", percent(slowdown)),
            format!("they run {time} in all, and their work does not grow with the text"),
        ],
        saves_ns: Some(saves),
        saves_share: None,
        advice: "Look at clocks, power and temperature during the run (`nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`); fix the clocks \
                 for measurements, or let the device cool down between them."
            .to_owned(),
    };
    Some(Found { finding, claim: Claim::Lost(vec![Cause::Kernels(Family::Gemm), Cause::Kernels(Family::Gemv)]) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Nanos;

    use super::*;
    use crate::device::sample::group;
    use crate::device::{DeviceRecords, Special, StageWork};
    use crate::finding::fired_on_device;

    fn device(slowdown: f64) -> DeviceRecords {
        let decode = StageWork { wall: Nanos::new(10_000), least: Some([Nanos::ZERO; 2]), ..StageWork::default() };
        DeviceRecords {
            stages: BTreeMap::from([(Stage::Decode, decode)]),
            groups: vec![group(Stage::Decode, "gemm", Family::Gemm, 1_100)],
            special: Special { slowdown: Some((slowdown, Nanos::new(1_100))), ..Special::default() },
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn kernels_that_get_slower_fire_with_half_of_the_slowdown() {
        let found = fired_on_device(&device(0.2), RULE);
        assert_eq!((found.len(), found[0].saves_ns), (1, Some(Nanos::new(100))));
    }

    #[test]
    fn a_steady_pace_does_not_fire() {
        assert_eq!(fired_on_device(&device(0.09), RULE), []);
    }
}
