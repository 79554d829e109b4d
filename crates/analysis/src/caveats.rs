//! What a reader must know before the first number: what is missing, what disturbed the run, what its numbers rest on.

use types::timeline::OperatorKind;
use types::{Base, Caveat, CaveatKind, Conditions, DeviceTime, Facts, QualityCounter, Severity};

use crate::disturbed;
use crate::evidence::Evidence;
use crate::statistics::share;
use crate::subject::Subject;

/// Share of a device's span from which a late start misleads.
const MISLEADS: f64 = 0.05;

/// Every caveat of a run, the gravest first. Those of the subject are known before anything is measured.
pub(crate) fn caveats(
    subject: &Subject,
    evidence: &Evidence<'_>,
    conditions: &Conditions,
    quality: &[QualityCounter],
    device_time: &[DeviceTime],
) -> Vec<Caveat> {
    // The reasons of a partial run name what cannot be trusted.
    let first = partial(evidence).or_else(|| untrusted(quality));
    let graphs_only = evidence.has_graphs_only().then(|| Caveat::new(CaveatKind::GraphsOnly, Facts::new()));
    let profiler = profiler_attached(evidence, conditions).filter(|_| graphs_only.is_none());
    let own = [first, graphs_only, unrecorded_work(device_time), disturbance(conditions), profiler];
    let mut caveats: Vec<Caveat> = own.into_iter().flatten().chain(subject.caveats.iter().cloned()).collect();
    caveats.sort_by_key(|caveat| caveat.kind);
    caveats
}

/// Something that was asked for is missing.
fn partial(evidence: &Evidence<'_>) -> Option<Caveat> {
    let reasons: Vec<Facts> = evidence.missing.iter().map(|reason| Facts::new().with("reason", reason)).collect();
    (!reasons.is_empty()).then(|| Caveat::new(CaveatKind::Partial, Facts::new().with("reasons", reasons)))
}

/// Counters that say so of the numbers that depend on them.
fn untrusted(quality: &[QualityCounter]) -> Option<Caveat> {
    let errors = quality.iter().filter(|counter| counter.severity == Severity::Error);
    let rows: Vec<Facts> =
        errors.map(|counter| Facts::new().with("counter", &counter.counter).with("value", counter.value)).collect();
    (!rows.is_empty()).then(|| Caveat::new(CaveatKind::DataQuality, Facts::new().with("counters", rows)))
}

/// A device shows nothing at the start although it had work. The one with most of that.
fn unrecorded_work(device_time: &[DeviceTime]) -> Option<Caveat> {
    let device = device_time.iter().max_by_key(|device| device.late_start_ns)?;
    let part = share(device.late_start_ns.get() as f64, device.span_ns.get() as f64);
    let facts = Facts::new().with("device", device.device.as_str()).with("time", device.late_start_ns).with_share(
        "share",
        part.filter(|part| *part >= MISLEADS)?,
        Base::DeviceTime,
    );
    Some(Caveat::new(CaveatKind::UnrecordedWork, facts))
}

/// Other work on the machine took more of it than a median hides.
fn disturbance(conditions: &Conditions) -> Option<Caveat> {
    let [disturbed, all] = disturbed::share(conditions).filter(|share| disturbed::is_much(*share))?;
    let causes: Vec<Facts> =
        disturbed::causes(conditions).into_iter().map(|cause| Facts::new().with("cause", cause)).collect();
    let facts = Facts::new().with("disturbed", disturbed).with("measured", all).with("causes", causes);
    Some(Caveat::new(CaveatKind::Disturbed, facts))
}

/// Wall times that were taken with a profiler attached, because no plain run was timed.
fn profiler_attached(evidence: &Evidence<'_>, conditions: &Conditions) -> Option<Caveat> {
    let trace = conditions.trace.as_ref().filter(|_| evidence.plain.is_none())?;
    // What a command took is timed without a profiler.
    let timed = evidence.trace.as_ref().is_some_and(|trace| !trace.timelines.is_empty());
    (timed && conditions.command.is_none()).then(|| {
        let tool = trace.sources.iter().find_map(|source| source.tool.as_deref());
        let overhead = evidence.overhead.as_ref().and_then(|overhead| overhead.share);
        let timelines = evidence.trace.iter().flat_map(|trace| &trace.timelines);
        let mut operators = timelines.flat_map(|placed| &placed.timeline.operators);
        let stacks = operators.any(|operator| operator.kind == OperatorKind::Python);
        let facts = Facts::new().with_known("tool", tool).with_if("stacks", stacks).with_share(
            "overhead",
            overhead.filter(|share| *share > 0.0),
            types::Base::Itself,
        );
        Caveat::new(CaveatKind::ProfilerAttached, facts)
    })
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;

    #[test]
    fn a_device_that_starts_late_may_have_been_busy() {
        let device = |late: i64| DeviceTime { late_start_ns: Nanos::new(late), ..crate::sample::device_time(100) };
        let found = unrecorded_work(&[device(0), device(50)]).expect("a caveat");
        assert_eq!((found.kind, found.quantities.share("share")), (CaveatKind::UnrecordedWork, Some(0.5)));
        assert_eq!(unrecorded_work(&[device(0), device(4)]), None);
    }
}
