//! Does the processor run at a steady clock?

use types::Verdict;

use super::{CheckOutcome, Probe};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    match probe.capture.environment.cpu.governor.as_deref() {
        Some("performance") => CheckOutcome::ok("performance"),
        Some(governor) => CheckOutcome::bad(
            Verdict::Warning,
            format!("{governor}: the CPU clock varies with load, so short timings are noisy"),
            "run `sudo cpupower frequency-set --governor performance`",
        ),
        None => CheckOutcome::skipped("not reported, as is usual in a VM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn anything_but_performance_varies() {
        let verdict = |governor: Option<&str>| {
            let mut probe = sample::processor_only();
            probe.capture.environment.cpu.governor = governor.map(str::to_owned);
            examine(&probe).verdict
        };
        assert_eq!(verdict(Some("performance")), Verdict::Ok);
        assert_eq!(verdict(Some("powersave")), Verdict::Warning);
        assert_eq!(verdict(Some("performance, powersave")), Verdict::Warning);
        assert_eq!(verdict(None), Verdict::Skipped);
    }
}
