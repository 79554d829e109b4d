//! Have this processor's rates been measured, for the number of threads in use?

use types::Verdict;

use super::{CheckOutcome, Probe, listed};
use crate::calibrate;

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    const MEASURE: &str = "run `llm-perf doctor --calibrate` (about a second)";
    let threads = probe.threads;
    match &probe.calibration {
        Ok(Some(calibration)) => {
            let rates: Vec<String> =
                calibration.matrix.iter().map(|rate| format!("{} {}", rate.dtype, rate.flops)).collect();
            let copy = calibration.bytes_per_second;
            let found = format!("measured with {threads} threads: {}; copy {copy}", listed(&rates));
            match calibrate::warning(calibration) {
                None => CheckOutcome::ok(found),
                Some(reason) => CheckOutcome::bad(
                    Verdict::Warning,
                    format!("{found}; {reason}"),
                    "stop other jobs and run `llm-perf doctor --calibrate`",
                ),
            }
        }
        Ok(None) => CheckOutcome::bad(Verdict::Missing, format!("not measured with {threads} threads"), MEASURE),
        Err(problem) => {
            let step = problem.hint.clone().unwrap_or_else(|| MEASURE.to_owned());
            CheckOutcome::bad(Verdict::Missing, problem.reason.clone(), step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::probe::CalibrationProblem;
    use crate::doctor::sample;

    #[test]
    fn measured_rates_are_shown_and_missing_ones_can_be_measured() {
        let mut probe = sample::h200();
        let found = "measured with 2 threads: fp32 101 GFLOP/s and fp16 88.0 GFLOP/s; copy 21.4 GB/s";
        assert_eq!(examine(&probe), CheckOutcome::ok(found));
        let mut unsteady = sample::calibration();
        unsteady.copy_samples_ns = vec![types::Nanos::new(100), types::Nanos::new(900)];
        probe.calibration = Ok(Some(unsteady));
        assert_eq!(examine(&probe).verdict, Verdict::Warning);
        probe.calibration = Ok(None);
        assert_eq!(examine(&probe).verdict, Verdict::Missing);
        probe.calibration =
            Err(CalibrationProblem { reason: "there is no folder".into(), hint: Some("set LLM_PERF_DATA_DIR".into()) });
        let outcome = examine(&probe);
        assert_eq!(
            (outcome.found.as_str(), outcome.next_step.as_deref()),
            ("there is no folder", Some("set LLM_PERF_DATA_DIR"))
        );
    }
}
