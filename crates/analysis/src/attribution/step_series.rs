//! Decode step by step: how long each takes, how they spread, and whether they grow.

use types::Nanos;

use super::step::StepInstance;
use crate::statistics::{median, percentile, share};

/// Fewer steps than this have no drift: each half needs two.
const FEWEST_FOR_DRIFT: usize = 4;

/// Decode steps of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSeries {
    /// Time of each step on the host, in the order they ran.
    pub times: Vec<Nanos>,
    /// Half of the steps take no longer.
    pub p50: Nanos,
    /// 95% of the steps take no longer.
    pub p95: Nanos,
    /// 99% of the steps take no longer.
    pub p99: Nanos,
    /// Median of the later half beyond that of the earlier half, as a share of the median of all: what a growing cache
    /// or a throttling clock adds. Absent below four steps.
    pub drift: Option<f64>,
    /// Kernels, copies and memsets per step.
    pub launches_per_token: f64,
    /// Kernels per step.
    pub kernels_per_token: f64,
    /// Work time on the device per step.
    pub work_per_token: Nanos,
}

/// Decode steps as a series; absent where there is none.
pub fn step_series(steps: &[StepInstance]) -> Option<StepSeries> {
    let times: Vec<Nanos> = steps.iter().map(|step| step.host.length()).collect();
    let samples: Vec<f64> = times.iter().map(|time| time.get() as f64).collect();
    let at = |share: f64| percentile(&samples, share).map(|time| Nanos::new(time.round() as i64));
    let per_step = |sum: u64| sum as f64 / steps.len() as f64;
    let work_ns: Nanos = steps.iter().map(|step| step.work_ns).sum();
    Some(StepSeries {
        p50: at(0.5)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        drift: drift(&samples),
        launches_per_token: per_step(steps.iter().map(|step| step.work).sum()),
        kernels_per_token: per_step(steps.iter().map(|step| step.kernels).sum()),
        work_per_token: Nanos::new(work_ns.get() / steps.len() as i64),
        times,
    })
}

fn drift(samples: &[f64]) -> Option<f64> {
    if samples.len() < FEWEST_FOR_DRIFT {
        return None;
    }
    let (earlier, later) = samples.split_at(samples.len() / 2);
    let growth = median(later)? - median(earlier)?;
    let all = median(samples)?;
    // `share` wants a part of a whole; growth may be negative.
    share(growth.abs(), all).map(|size| size.copysign(growth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_growth_from_one_half_to_the_other() {
        // Medians 11 and 13, of all 12: 2 / 12.
        assert_eq!(drift(&[10.0, 11.0, 12.0, 12.0, 13.0, 14.0]), Some(2.0 / 12.0));
        assert_eq!(drift(&[4.0, 4.0, 2.0, 2.0]), Some(-2.0 / 3.0));
        assert_eq!(drift(&[1.0, 2.0, 3.0]), None);
    }
}
