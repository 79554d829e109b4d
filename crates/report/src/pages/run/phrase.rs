//! Words and figures that more than one page of a run needs.

use super::serving;
use types::view::RunView;
use types::{Environment, Metrics, RunKindName, SetAside, Stage, StageSummary, TraceFacts};

use crate::render::text::{code, prose, sentence};
use crate::words::number::{count, percent};

/// The model, or that it is unknown.
pub(crate) fn model(metrics: &Metrics) -> &str {
    metrics.run.model.as_deref().unwrap_or(if is_program(metrics) { "an unnamed program" } else { "an unnamed model" })
}

/// Whether nothing in a trace shows a model.
fn is_program(metrics: &Metrics) -> bool {
    let kind = metrics.conditions.trace.as_ref().and_then(|trace| trace.kind.as_ref());
    kind.is_some_and(|kind| kind.kind == RunKindName::Program)
}

/// The device of the run, by the name its driver reports.
pub(crate) fn device(metrics: &Metrics) -> String {
    let id = metrics.run.device.as_ref();
    let listed = metrics.devices.iter().find(|device| Some(&device.id) == id);
    match (listed, id) {
        (Some(device), _) => device.name.clone(),
        (None, Some(id)) => id.to_string(),
        (None, None) => "an unnamed device".to_owned(),
    }
}

/// Where a run that another tool made was read from; absent for a run of our own, even where a pass of it was profiled.
pub(crate) fn imported_facts(metrics: &Metrics) -> Option<&TraceFacts> {
    metrics.conditions.trace.as_ref().filter(|facts| facts.traced_pass.is_none() && !facts.recorded_here)
}

/// What was run how often: `2 inputs x 3 repeats x 1 epoch`.
pub(crate) fn extent(metrics: &Metrics) -> String {
    if let Some(facts) = imported_facts(metrics) {
        return format!("by another tool, read from {}", count(facts.sources.len() as u64, "file"));
    }
    if let Some(serving) = &metrics.served.serving {
        return serving::extent(&serving.load);
    }
    if metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_none()) {
        // Only the program knows which instance belongs to which input.
        let top = metrics.times.stages.iter().filter(|stage| stage.parent.is_none());
        let each: Vec<_> = top.map(|stage| format!("{} {}", stage.name, count(stage.instances, "time"))).collect();
        return if each.is_empty() { "no stage".to_owned() } else { format!("{}, as recorded", each.join(", ")) };
    }
    let mut parts = vec![count(metrics.conditions.inputs.len() as u64, "input")];
    if let Some(settings) = &metrics.conditions.settings {
        parts.push(count(settings.repeats.into(), "repeat"));
        parts.push(count(settings.epochs.into(), "epoch"));
    }
    parts.join(" x ")
}

/// What is left out of a run, in words.
pub fn set_aside(aside: &SetAside) -> String {
    let SetAside { wall_ns, launches, device_ns } = aside;
    format!("{wall_ns} of loading and warm-up: {} with {device_ns} of device time", count(*launches, "launch"))
}

/// One stage of the run.
pub(crate) fn stage(metrics: &Metrics, name: Stage) -> Option<&StageSummary> {
    metrics.times.stages.iter().find(|stage| stage.name == name)
}

/// MFU of prefill and decode, as far as they ran.
pub(crate) fn mfu(metrics: &Metrics) -> Option<String> {
    let of = |name: Stage| Some(format!("{name} {}", percent(stage(metrics, name)?.mfu)));
    let stages: Vec<_> = [Stage::Prefill, Stage::Decode].into_iter().filter_map(of).collect();
    (!stages.is_empty()).then(|| stages.join(", "))
}

/// Why the utilisation of the device is unknown, and what would tell it.
pub(crate) fn no_utilisation(run: &RunView<'_>) -> String {
    let text = match (run.utilisation_missing, &run.metrics.run.model) {
        (Some(counter), _) => format!("MFU and MBU are unknown. {}.", sentence(counter.remedy.trim_end_matches('.'))),
        (None, None) => "MFU and MBU are unknown: no model is named, so its work cannot be modelled.".to_owned(),
        (None, Some(_)) if run.metrics.devices.iter().all(|device| device.hardware.is_none()) => {
            "The peak rates of this device are unknown, so its utilisation is unknown too.".to_owned()
        }
        (None, Some(_)) => {
            "MFU and MBU are unknown: nothing recorded says what the device processed, by stage or by step.".to_owned()
        }
    };
    let rates = imported_facts(run.metrics).is_some() && has_rates(run.metrics);
    text + if rates {
        " Rates of single operators are modelled from their recorded shapes: see `operators.md`."
    } else {
        ""
    }
}

/// Whether work could be computed from the shapes of any operator.
pub(super) fn has_rates(metrics: &Metrics) -> bool {
    metrics.breakdown.operator_groups.by_shape.iter().any(|group| group.flops_per_second.is_some())
}

/// Nested stages further to the right.
pub(crate) fn indented(stage: Stage) -> String {
    "  ".repeat(std::iter::successors(stage.parent(), |stage| stage.parent()).count()) + stage.name()
}

/// `a > b` for a stage nested in another, for Markdown, which drops leading spaces.
pub(crate) fn nested(stage: Stage) -> String {
    stage.parent().map_or(stage.to_string(), |parent| format!("{parent} > {stage}"))
}

/// The machine and its software, line by line. What is not known is left out.
pub(crate) fn environment(metrics: &Metrics, environment: &Environment) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(facts) = imported_facts(metrics) {
        return traced(metrics, facts, &environment.tool_version);
    }
    let mut subject = format!("{} on the {} engine", code(model(metrics)), prose(&metrics.run.engine));
    if let Some(weights) = &metrics.run.weights {
        subject += &format!(", weights: {}", prose(weights));
    }
    // A command names neither a model nor a device.
    if metrics.conditions.command.is_none() {
        lines.push(subject);
        lines.push(format!("device: {}", prose(&device(metrics))));
    }
    let cpu = &environment.cpu;
    let threads = cpu.threads_available.or(cpu.threads).map(|threads| count(threads.into(), "thread"));
    let facts = [cpu.model.as_deref().map(prose), Some(prose(&cpu.architecture)), threads];
    lines.push(format!("CPU: {}", facts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    for gpu in &environment.gpus {
        let name = gpu.name.as_deref().map_or("unnamed".to_owned(), prose);
        let memory = gpu.memory_bytes.map(|memory| format!(", {memory}")).unwrap_or_default();
        lines.push(format!("GPU {}: {name}{memory}", gpu.index));
    }
    lines.extend(environment.memory.total_bytes.map(|memory| format!("memory: {memory}")));
    lines.extend(environment.operating_system.name.as_deref().map(|name| format!("operating system: {}", prose(name))));
    lines.extend(environment.tools.driver.as_deref().map(|driver| format!("driver: {}", prose(driver))));
    let frameworks = &environment.frameworks;
    if let Some(torch) = frameworks.torch.as_deref().filter(|_| metrics.run.engine == "torch") {
        let cuda = frameworks.torch_cuda.as_deref().map(|cuda| format!(", CUDA {}", prose(cuda))).unwrap_or_default();
        let library = frameworks.transformers.as_deref().map(|library| format!(", transformers {}", prose(library)));
        lines.push(format!("PyTorch {}{cuda}{}", prose(torch), library.unwrap_or_default()));
    }
    lines.push(format!("llm-perf {}", prose(&environment.tool_version)));
    if let Some(git) = &environment.git {
        let changed = if git.dirty == Some(true) { ", with uncommitted changes" } else { "" };
        lines.push(format!("source tree: {}{changed}", code(&git.revision)));
    }
    lines
}

/// What the files of an imported run say of the machine it ran on: its devices and the tools. This machine is another.
fn traced(metrics: &Metrics, facts: &TraceFacts, tool_version: &str) -> Vec<String> {
    let mut lines =
        vec![metrics.run.model.as_deref().map_or("imported".to_owned(), |name| format!("{}, imported", code(name)))];
    for device in &metrics.devices {
        let memory = device.memory_bytes.map(|memory| format!(", {memory}")).unwrap_or_default();
        lines.push(format!("{}: {}{memory}", device.id, prose(&device.name)));
    }
    let mut tools: Vec<_> = facts.sources.iter().filter_map(|source| source.tool.as_deref()).map(prose).collect();
    tools.dedup();
    lines.extend((!tools.is_empty()).then(|| format!("recorded with {}", tools.join(", "))));
    lines.push(format!("llm-perf {}", prose(tool_version)));
    lines
}

/// What the profiler cost, in a sentence.
pub(crate) fn overhead(metrics: &Metrics) -> String {
    let overhead = &metrics.times.overhead;
    let (Some(share), Some(with), Some(without)) = (overhead.share, overhead.profiled_ns, overhead.baseline_ns) else {
        return "The profiler's overhead is unknown.".to_owned();
    };
    let (size, word) = (percent(Some(share.abs())), if share < 0.0 { "shorter" } else { "longer" });
    let what = if metrics.conditions.command.is_some() { "the command" } else { "the same inputs" };
    format!("With the profiler, {what} took {size} {word} ({with} instead of {without}).")
}

/// What the breakdown of a run is of where plain runs were timed too: the pass that was profiled, and how much longer that took.
pub(crate) fn profiled_pass(metrics: &Metrics) -> Option<String> {
    if imported_facts(metrics).is_some() {
        return None;
    }
    Some(match metrics.times.overhead.share {
        Some(share) => format!("in the profiled pass, which took {:.2} times as long as a plain run", 1.0 + share),
        None => "in the profiled pass".to_owned(),
    })
}
