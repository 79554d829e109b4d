//! A prediction beside the run that measured the same workload.

use types::{AnalyticReport, Metrics, Stage, WorkloadProfile};

use crate::statistics::describe;

/// The report with what the run measured of its workload; as it was where the run has no such input.
pub fn beside_run(mut report: AnalyticReport, metrics: &Metrics) -> AnalyticReport {
    let Some(measured) = measured_total(metrics, &report.workload) else { return report };
    report.profile_run_id = Some(metrics.run.id.clone());
    report.measured_total_time_ms = Some(measured);
    report.forecast_vs_measured_ratio =
        report.forecast_total.forecast_ns.map(|forecast| forecast.get() as f64 / 1e6 / measured);
    match report.predicted_total_time_ms / measured {
        ratio if ratio <= 1.0 => report.predicted_vs_measured_ratio = Some(ratio),
        ratio => report.notes.push(format!(
            "the roofline time is {ratio:.2} times the measured time, which cannot be: what ran is not what is modelled here"
        )),
    }
    report
}

/// Milliseconds of prefill and decode of the input that is this workload (as many tokens, steps and sequences), by medians.
pub fn measured_total(metrics: &Metrics, workload: &WorkloadProfile) -> Option<f64> {
    total(metrics, [workload.seq_len, workload.decode_steps, workload.batch])
}

fn total(metrics: &Metrics, [seq_len, decode_steps, batch]: [u64; 3]) -> Option<f64> {
    let input = metrics.conditions.inputs.iter().find(|input| {
        (input.prompt_tokens, input.generated_tokens.saturating_sub(1), input.batch) == (seq_len, decode_steps, batch)
    })?;
    let median = |stage: Stage| {
        let samples = metrics.times.samples.iter().filter(|sample| {
            sample.stage == stage && !sample.warmup && sample.input.as_deref().is_none_or(|name| name == input.name)
        });
        let times: Vec<f64> = samples.map(|sample| sample.wall_ns.get() as f64 / 1e6).collect();
        describe(&times).map(|statistics| statistics.median)
    };
    let decode = if decode_steps == 0 { 0.0 } else { median(Stage::Decode)? };
    Some(median(Stage::Prefill)? + decode).filter(|measured| *measured > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, PlainRuns};
    use crate::sample::{page, timed};
    use crate::subject::Subject;

    #[test]
    fn the_time_is_median_prefill_and_decode_of_the_input_that_is_the_workload() {
        let samples = [(Stage::Prefill, 3_000_000), (Stage::Prefill, 9_000_000), (Stage::Prefill, 2_000_000)];
        let mut samples: Vec<_> = samples.map(|(stage, time)| timed(stage, "a", 0, time)).to_vec();
        samples.extend([timed(Stage::Decode, "a", 0, 1_000_000), timed(Stage::Prefill, "b", 0, 50_000_000)]);
        let subject = Subject { inputs: vec![page("b", 100, 1), page("a", 512, 9)], ..Subject::default() };
        let plain = PlainRuns { samples, ..PlainRuns::default() };
        let metrics = crate::metrics(&subject, &Evidence { plain: Some(plain), ..Evidence::default() });
        assert_eq!(total(&metrics, [512, 8, 1]), Some(4.0));
        assert_eq!(total(&metrics, [100, 0, 1]), Some(50.0));
        assert_eq!(total(&metrics, [512, 7, 1]), None, "another number of steps");
        assert_eq!(total(&metrics, [512, 8, 2]), None, "another batch");
    }
}
