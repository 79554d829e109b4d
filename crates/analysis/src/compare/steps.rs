//! Steps of traces, where nothing says which stage they are: each step of a run is one sample of its kind.

use std::collections::BTreeSet;

use types::{Change, Facts, Measured, Remark, Replication, StepSummary};

use super::row::{Evidence, Row, geometric_mean, judged, log_ratio, time};
use super::{CONFIDENCE, RunRecords, Sides};
use crate::statistics::{median, relative_spread, student_test};

/// A row for each kind of step: as its engine labels it, or `step`.
pub(super) fn changes(sides: Sides<'_>) -> Vec<Change> {
    let kinds: BTreeSet<&'static str> = sides.runs().flat_map(steps).map(kind).collect();
    judged(kinds.into_iter().map(|name| row(sides, name)).collect())
}

fn steps(run: &RunRecords) -> &[StepSummary] {
    run.metrics.times.steps.as_ref().map(|steps| steps.list.as_slice()).unwrap_or_default()
}

fn kind(step: &StepSummary) -> &'static str {
    step.label.map_or("step", types::StepLabel::name)
}

fn row(sides: Sides<'_>, name: &'static str) -> Row {
    let (base, with) = (times(sides, sides.base, name), times(sides, sides.with, name));
    let row = Row { name: name.to_owned(), base: measured(&base), with: measured(&with), ..Row::default() };
    let batches = |runs: &[RunRecords]| -> BTreeSet<Option<u64>> {
        let of_kind = runs.iter().flat_map(steps).filter(|step| kind(step) == name);
        of_kind.map(|step| step.batch.and_then(|batch| batch.tokens)).collect()
    };
    let reason = match (base.is_empty(), with.is_empty()) {
        (true, _) => Some(Remark::new("untested.steps-only-second", Facts::new())),
        (_, true) => Some(Remark::new("untested.steps-only-first", Facts::new())),
        _ if batches(sides.base) != batches(sides.with) => Some(Remark::new("untested.other-batches", Facts::new())),
        _ => None,
    };
    if let Some(reason) = reason {
        return Row { evidence: Evidence::untested(reason), ..row };
    }
    let log_ratio = log_ratio(geometric_mean(&base), geometric_mean(&with));
    let evidence = student_test(&base, &with, CONFIDENCE)
        .map_or_else(|| Evidence::untested(Remark::new("untested.few-steps", Facts::new())), Evidence::from);
    Row { log_ratio, evidence, ..row }
}

/// What is repeated: the steps of one run per side, else the runs, each by its median step.
fn times(sides: Sides<'_>, runs: &[RunRecords], name: &str) -> Vec<f64> {
    let of_run = |run: &RunRecords| -> Vec<f64> {
        let of_kind = steps(run).iter().filter(|step| kind(step) == name);
        of_kind.map(|step| step.wall_ns.get() as f64).collect()
    };
    match sides.replication() {
        Replication::Repeats => runs.iter().flat_map(of_run).collect(),
        Replication::Runs => runs.iter().filter_map(|run| median(&of_run(run))).collect(),
    }
}

fn measured(times: &[f64]) -> Measured {
    Measured {
        time_ns: time(geometric_mean(times)),
        samples: times.len() as u64,
        spread: relative_spread(times),
        ..Measured::default()
    }
}
