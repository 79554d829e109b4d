//! Can short times be measured? Every operator of a run is timed with two readings of the clock.

use types::{Nanos, Verdict};

use super::{CheckOutcome, Probe};

/// What a reading may cost. An operator of a small model takes tens of microseconds; two readings must stay far below.
const AFFORDABLE: Nanos = Nanos::new(500);

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let clock = &probe.clock;
    let source = clock.source.as_deref().unwrap_or("unknown source");
    let found = format!("{source}, {} per read", clock.cost);
    if clock.cost > AFFORDABLE {
        return CheckOutcome::bad(
            Verdict::Warning,
            found,
            "timings of short operators include this cost; use a faster clock source, such as tsc (`cat \
             /sys/devices/system/clocksource/clocksource0/available_clocksource` lists them)",
        );
    }
    CheckOutcome::ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn a_slow_clock_is_a_warning() {
        let mut probe = sample::processor_only();
        assert_eq!(examine(&probe), CheckOutcome::ok("tsc, 25.0 ns per read"));
        probe.clock.cost = Nanos::new(1400);
        assert_eq!(examine(&probe).verdict, Verdict::Warning);
    }
}
