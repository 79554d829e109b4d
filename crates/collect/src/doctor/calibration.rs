//! Have this processor's rates been measured, for the number of threads in use?

use types::Verdict;

use super::{Outcome, Probe, listed};

pub(super) fn examine(probe: &Probe) -> Outcome {
    const MEASURE: &str = "`llm-perf doctor --calibrate` measures them in about a second";
    let threads = probe.threads;
    match &probe.calibration {
        Ok(Some(calibration)) => {
            let rates: Vec<String> =
                calibration.matrix.iter().map(|rate| format!("{} {}", rate.dtype, rate.flops)).collect();
            let copy = calibration.bytes_per_second;
            Outcome::ok(format!("measured with {threads} threads: {}; copy {copy}", listed(&rates)))
        }
        Ok(None) => Outcome::bad(Verdict::Missing, format!("not measured yet with {threads} threads"), MEASURE),
        Err(reason) => Outcome::bad(Verdict::Missing, reason.clone(), format!("{MEASURE} and replaces them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::probe::samples;

    #[test]
    fn measured_rates_are_shown_and_missing_ones_can_be_measured() {
        let mut probe = samples::h200();
        let found = "measured with 2 threads: fp32 101 GFLOP/s and fp16 88.0 GFLOP/s; copy 21.4 GB/s";
        assert_eq!(examine(&probe), Outcome::ok(found));
        probe.calibration = Ok(None);
        assert_eq!(examine(&probe).verdict, Verdict::Missing);
        probe.calibration = Err("cannot read x.json".into());
        assert_eq!(examine(&probe).found, "cannot read x.json");
    }
}
