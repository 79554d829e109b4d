//! Output is there and reaches its client late.

use types::{Finding, Severity};

use super::{Found, Run};
use crate::pressure::{WayBack, latency_facts};

/// Share of the requests' latency that it must take.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "late-output";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let pressure = run.pressure?;
    let WayBack { time, shortest, longest } = pressure.back;
    let facts = latency_facts(time, pressure.latency, LEAST_SHARE)?
        .with("shortest", shortest)
        .with("longest", longest)
        .with("all", pressure.requests);
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::finding::under;
    use crate::pressure::Pressure;

    #[test]
    fn output_that_takes_long_to_arrive_is_named() {
        let back = WayBack { time: Nanos::new(80), shortest: Nanos::new(1), longest: Nanos::new(30) };
        let pressure = Pressure { latency: Nanos::new(1_000), requests: 4, back, ..Pressure::default() };
        let found = under(pressure.clone(), RULE).unwrap();
        assert_eq!((found.quantities.share("latency_share"), found.quantities.count("all")), (Some(0.08), Some(4)));
        let prompt = WayBack { time: Nanos::new(10), ..back };
        assert!(under(Pressure { back: prompt, ..pressure }, RULE).is_none());
    }
}
