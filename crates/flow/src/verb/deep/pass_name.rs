//! What the passes of a deep run are called, in the plan, in the manifest's steps and in the logs.

/// The plain program, before the timeline.
pub(super) const BASELINE: &str = "baseline";

/// The plain program once more, behind it.
pub(super) const BASELINE_AGAIN: &str = "baseline-again";

/// The timeline.
pub(super) const TIMELINE: &str = "timeline";

/// The same with Nsight Systems, beside our own collector.
pub(super) const TIMELINE_NSYS: &str = "timeline-nsys";

/// Operators, with torch.profiler.
pub(super) const OPERATORS: &str = "operators";
