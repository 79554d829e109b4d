//! One line of a comparison while it is being made: evidence first, a verdict once all rows of its table are known.

use types::{Change, ChangeInterval, ChangeVerdict, DeviceId, Facts, Measured, Nanos, Remark, Stage};

use super::{CONFIDENCE, SIGNIFICANCE};
use crate::statistics::{LogInterval, StudentTest, holm};

/// What is known of one thing on both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) stage: Option<Stage>,
    pub(super) device: Option<DeviceId>,
    pub(super) base: Measured,
    pub(super) with: Measured,
    pub(super) log_ratio: Option<f64>,
    pub(super) evidence: Evidence,
}

/// How sure a row is.
#[derive(Clone, Debug)]
pub(super) enum Evidence {
    /// It was tested.
    Tested { interval: LogInterval, p_value: f64 },
    /// It could not be, for this reason.
    Untested { interval: Option<LogInterval>, reason: Remark },
}

impl Default for Evidence {
    fn default() -> Self {
        Self::untested(Remark::new("untested.nothing-measured", Facts::new()))
    }
}

impl Evidence {
    pub(super) fn untested(reason: Remark) -> Self {
        Self::Untested { interval: None, reason }
    }
}

impl From<StudentTest> for Evidence {
    fn from(test: StudentTest) -> Self {
        Self::Tested { interval: test.interval, p_value: test.p_value }
    }
}

/// The rows of one table with their verdicts, corrected for how many were tested.
pub(super) fn judged(rows: Vec<Row>) -> Vec<Change> {
    let p_value = |row: &Row| match row.evidence {
        Evidence::Tested { p_value, .. } => Some(p_value),
        Evidence::Untested { .. } => None,
    };
    let p_values: Vec<f64> = rows.iter().filter_map(p_value).collect();
    let mut adjusted = holm(&p_values).into_iter();
    let change = |row: Row| {
        let p_adjusted = p_value(&row).and_then(|_| adjusted.next());
        change(row, p_adjusted)
    };
    rows.into_iter().map(change).collect()
}

/// The rows of a run beside itself: nothing changed, and that is certain.
pub(super) fn unchanged(changes: Vec<Change>) -> Vec<Change> {
    let none = ChangeInterval { low: 0.0, high: 0.0, confidence: CONFIDENCE };
    let same = |change| Change {
        change: Some(0.0),
        interval: Some(none),
        p_value: Some(1.0),
        p_adjusted: Some(1.0),
        verdict: ChangeVerdict::NoEvidence,
        untested: None,
        ..change
    };
    changes.into_iter().map(same).collect()
}

fn change(row: Row, p_adjusted: Option<f64>) -> Change {
    let (interval, p_value, untested) = match row.evidence {
        Evidence::Tested { interval, p_value } => (Some(interval), Some(p_value), None),
        Evidence::Untested { interval, reason } => (interval, None, Some(reason)),
    };
    let verdict = match interval.filter(|_| p_adjusted.is_some_and(|chance| chance <= SIGNIFICANCE)) {
        Some(interval) if interval.low > 0.0 => ChangeVerdict::Slower,
        Some(interval) if interval.high < 0.0 => ChangeVerdict::Faster,
        _ => ChangeVerdict::NoEvidence,
    };
    let change_per_call = row.log_ratio.zip(calls(&row.base, &row.with)).map(|(times, calls)| (times - calls).exp_m1());
    Change {
        name: row.name,
        short_name: None,
        stage: row.stage,
        device: row.device,
        base: row.base,
        with: row.with,
        change: row.log_ratio.map(f64::exp_m1),
        change_per_call,
        interval: interval.map(|interval| ChangeInterval {
            low: interval.low.exp_m1(),
            high: interval.high.exp_m1(),
            confidence: CONFIDENCE,
        }),
        p_value,
        p_adjusted,
        verdict,
        untested,
    }
}

/// The logarithm of the ratio of calls; absent where a side does not count them.
fn calls(base: &Measured, with: &Measured) -> Option<f64> {
    let (base, with) = base.calls.zip(with.calls).filter(|(base, with)| *base > 0 && *with > 0)?;
    Some((with as f64 / base as f64).ln())
}

/// A computed time, rounded to what a clock could show; absent where it is none.
pub(super) fn time(nanoseconds: Option<f64>) -> Option<Nanos> {
    nanoseconds.filter(|time| time.is_finite()).map(crate::timings::rounded)
}

/// The logarithm of a ratio of two times; absent where one is not positive.
pub(super) fn log_ratio(base: Option<f64>, with: Option<f64>) -> Option<f64> {
    let (base, with) = base.zip(with).filter(|(base, with)| *base > 0.0 && *with > 0.0)?;
    Some((with / base).ln())
}

/// The mean on the scale on which runs are compared; absent where one time is not positive.
pub(super) fn geometric_mean(times: &[f64]) -> Option<f64> {
    let positive = !times.is_empty() && times.iter().all(|time| *time > 0.0);
    positive.then(|| (times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64).exp())
}
