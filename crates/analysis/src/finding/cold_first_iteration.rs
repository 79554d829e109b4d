//! The first decode step takes longer than the others: it loads, compiles or allocates.

use types::{Finding, Severity, Stage};

use super::{Claim, Found, Run};
use crate::device::DeviceRecords;
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Fewest steps that tell what is usual.
const FEWEST_STEPS: usize = 4;
/// How many times as long as the median of the others the first step must take.
const LEAST_RATIO: f64 = 1.5;

/// The rule's name.
pub(super) const RULE: &str = "cold-first-iteration";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.device.and_then(|device| found(run, device)).into_iter().collect()
}

fn found(run: &Run<'_>, device: &DeviceRecords) -> Option<Found> {
    let times: Vec<f64> = device.steps.iter().map(|time| time.get() as f64).collect();
    if times.len() < FEWEST_STEPS {
        return None;
    }
    let (first, others) = times.split_first()?;
    let usual = median(others)?;
    let ratio = share(*first, usual).filter(|ratio| *ratio >= LEAST_RATIO)?;
    let finding = Finding {
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: Some(Stage::Decode),
        evidence: vec![
            format!("the first step takes {}, {ratio:.1} times the median of the other {}", rounded(*first), others.len()),
            format!("that median is {}", rounded(usual)),
        ],
        saves_ns: Some(rounded(first - usual)),
        saves_share: None,
        advice: "Warm up before measuring, and before serving: one step with the shapes to come loads kernels, fills caches and \
                 compiles. Figures of this run contain it."
            .to_owned(),
    };
    Some(Found { finding, claim: Claim::Lost(run.lost.causes(Stage::Decode)) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Nanos;

    use super::*;
    use crate::device::StageWork;
    use crate::finding::fired_on_device;
    use types::IdleCause;

    fn device(first: i64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::NotRecorded, Nanos::new(2_000))]);
        let decode = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
        let steps = [first, 100, 110, 90].map(Nanos::new).to_vec();
        DeviceRecords { stages: BTreeMap::from([(Stage::Decode, decode)]), steps, ..DeviceRecords::default() }
    }

    #[test]
    fn a_slow_first_step_fires_with_what_it_takes_longer() {
        let found = fired_on_device(&device(400), RULE);
        assert_eq!((found.len(), found[0].saves_ns), (1, Some(Nanos::new(300))));
    }

    #[test]
    fn a_first_step_like_the_others_does_not_fire() {
        assert_eq!(fired_on_device(&device(140), RULE), []);
    }
}
