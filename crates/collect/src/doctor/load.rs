//! Is the processor free?

use types::Verdict;

use super::{CheckOutcome, Probe};

/// Share of the threads that may be busy with other things before measurements suffer.
const BUSY_SHARE: f64 = 0.5;

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let threads = probe.capture.environment.cpu.threads_available;
    let Some((load, threads)) = probe.load_average.zip(threads) else {
        return CheckOutcome::skipped("not reported");
    };
    let found = format!("load average {load:.1} on {threads} threads (1 min)");
    if load > BUSY_SHARE * f64::from(threads) {
        return CheckOutcome::bad(Verdict::Warning, found, "timings will be noisy; stop other jobs (`top` lists them)");
    }
    CheckOutcome::ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn half_of_the_threads_may_be_busy() {
        let verdict = |load: Option<f64>| examine(&Probe { load_average: load, ..sample::processor_only() }).verdict;
        assert_eq!(verdict(Some(1.0)), Verdict::Ok);
        assert_eq!(verdict(Some(1.1)), Verdict::Warning);
        assert_eq!(verdict(None), Verdict::Skipped);
    }
}
