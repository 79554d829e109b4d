//! What changes over a run: memory of each device, and the time of each step.

use types::view::RunView;
use types::{Bytes, Nanos, StepLabel};

use super::plot::{Axis, Line, Scale, lines};
use super::rows::nanoseconds;

/// Devices drawn.
const DEVICES: usize = 16;

/// Memory of each device over the trace. Empty where no allocator reported any.
pub(super) fn memory_charts(run: &RunView<'_>) -> Vec<(String, String)> {
    let draw = |memory: &types::DeviceMemory| {
        let line = |name: &str, class, value: &dyn Fn(&types::MemoryPoint) -> Option<Bytes>| Line {
            name: name.to_owned(),
            class,
            points: (memory.timeline.iter())
                .filter_map(|point| Some((point.at_ns.get() as f64, value(point)?.get() as f64)))
                .collect(),
        };
        let drawn = [
            line("held by tensors", "l-0", &|point| Some(point.allocated_bytes)),
            line("reserved by the framework", "l-1", &|point| point.reserved_bytes),
        ];
        let rank = memory.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
        let across =
            |first, last| Axis::new("time since the start of the trace", Scale::between(first, last), nanoseconds);
        let drawn = lines("memory over the trace", &drawn, across, ("memory", bytes), true)?;
        Some((format!("{rank}{}", memory.device), drawn))
    };
    run.metrics.breakdown.device_memory.iter().take(DEVICES).filter_map(draw).collect()
}

/// Wall and device time of each step, in the order in which they ran: of decode steps, a token each.
pub(super) fn step_chart(run: &RunView<'_>) -> Option<String> {
    let steps = run.metrics.times.steps.as_ref()?;
    let is_decode = |step: &&types::StepSummary| matches!(step.label, Some(StepLabel::Decode | StepLabel::Verify));
    // A prefill among them would press all others flat.
    let decoding = steps.list.iter().filter(is_decode).count();
    let shown: Vec<_> =
        if decoding > 1 { steps.list.iter().filter(is_decode).collect() } else { steps.list.iter().collect() };
    let line = |name: &str, class, value: fn(&types::StepSummary) -> Nanos| Line {
        name: name.to_owned(),
        class,
        points: shown.iter().enumerate().map(|(at, step)| (at as f64 + 1.0, value(step).get() as f64)).collect(),
    };
    let mut drawn = vec![line("wall", "l-0", |step| step.wall_ns)];
    // A run on a processor has no device beside it.
    if !run.device_time.is_empty() {
        drawn.push(line("device", "l-1", |step| step.device_ns));
    }
    let what = if decoding > 1 { "decode step" } else { "step" };
    lines("time of each step", &drawn, |_, last| Axis::counted(what, last), ("time of a step", nanoseconds), false)
}

fn bytes(value: f64) -> String {
    Bytes::new(value as u64).to_string()
}
