//! Words and figures that more than one page of a run needs.

use types::{Environment, Finding, Metrics, Nanos, SetAside, Severity, Stage, StageSummary, TraceFacts};

use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, milliseconds, percent, share};

/// A measured time, or a dash.
pub(crate) fn time(time: Option<Nanos>) -> String {
    time.map_or(UNKNOWN.to_owned(), |time| time.to_string())
}

/// Anything that may be unknown, or a dash.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| value.to_string())
}

/// The model, or that it is unknown.
pub(crate) fn model(metrics: &Metrics) -> &str {
    metrics.run.model.as_deref().unwrap_or("an unnamed model")
}

/// The device of the run, by the name its driver reports.
pub(crate) fn device(metrics: &Metrics) -> String {
    let id = metrics.run.device.as_ref();
    let found = metrics.devices.iter().find(|device| Some(&device.id) == id);
    match (found, id) {
        (Some(device), _) => device.name.clone(),
        (None, Some(id)) => id.to_string(),
        (None, None) => "an unnamed device".to_owned(),
    }
}

/// Where a run that another tool made was read from; absent for a run of our own, even where a pass of it was recorded.
pub(crate) fn imported_facts(metrics: &Metrics) -> Option<&TraceFacts> {
    metrics.conditions.trace.as_ref().filter(|facts| facts.traced_pass.is_none() && !facts.recorded_here)
}

/// What was run how often: `2 inputs x 3 repeats x 1 epoch`.
pub(crate) fn extent(metrics: &Metrics) -> String {
    if let Some(facts) = imported_facts(metrics) {
        return format!("by another tool, read from {}", count(facts.sources.len() as u64, "file"));
    }
    if metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_none()) {
        // Which instance is of which input only its program knows.
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

/// What was set aside, in words.
pub fn set_aside(aside: &SetAside) -> String {
    let SetAside { wall_ns, launches, device_ns } = aside;
    format!("{wall_ns} of loading and warm-up: {} of device work in {device_ns}", count(*launches, "piece"))
}

/// One stage of the run.
pub(crate) fn stage(metrics: &Metrics, name: Stage) -> Option<&StageSummary> {
    metrics.times.stages.iter().find(|stage| stage.name == name)
}

/// Median time of a forward pass, for networks that generate no tokens; absent for the others, and where none ran.
pub(crate) fn forward_pass(metrics: &Metrics) -> Option<String> {
    let generates = metrics.conditions.inputs.iter().any(|input| input.generated_tokens > 0);
    let prefill = metrics.times.aggregates.stage_ms.get(&Stage::Prefill);
    prefill.filter(|_| !generates && !metrics.conditions.inputs.is_empty()).map(|found| milliseconds(found.median))
}

/// How much of the run a stage is.
pub(crate) fn share_of_run(metrics: &Metrics, stage: &StageSummary) -> Option<f64> {
    share(stage.wall_ns?.get() as f64, metrics.times.totals.wall_ns?.get() as f64)
}

/// How much of a time its devices worked; busy times of several devices are summed, so there are as many times.
pub(crate) fn busy_share(metrics: &Metrics, busy: Option<Nanos>, wall: Option<Nanos>) -> Option<f64> {
    let devices = metrics.devices.len().max(1) as f64;
    share(busy?.get() as f64, wall?.get() as f64 * devices)
}

/// Nested stages further to the right.
pub(crate) fn indented(stage: Stage) -> String {
    let mut depth = 0;
    let mut around = stage.parent();
    while let Some(parent) = around {
        depth += 1;
        around = parent.parent();
    }
    "  ".repeat(depth) + stage.name()
}

/// `a > b` for a stage nested in another, for Markdown, which drops leading spaces.
pub(crate) fn nested(stage: Stage) -> String {
    stage.parent().map_or(stage.to_string(), |parent| format!("{parent} > {stage}"))
}

/// What acting on a finding saves, in words; absent where the run does not tell.
pub(crate) fn saving(finding: &Finding, metrics: &Metrics) -> Option<String> {
    let saves = finding.saves_ns?;
    if let Some(pass) = metrics.conditions.trace.as_ref().and_then(|facts| facts.traced_pass.as_ref()) {
        let wall: Nanos =
            [Stage::Prefill, Stage::Decode].iter().filter_map(|stage| pass.stages.get(stage)).copied().sum();
        return Some(format!("{} of the recorded pass, {saves} of {wall}", percent(finding.saves_share)));
    }
    // Books of a trace are of its stages; what lies outside of them, such as loading, nothing could save.
    let (whole, wall) = match metrics.conditions.trace {
        Some(_) => {
            let top = metrics.times.stages.iter().filter(|stage| stage.parent.is_none());
            ("time in stages", Some(top.filter_map(|stage| stage.wall_ns).sum()))
        }
        None => ("run", metrics.times.totals.wall_ns),
    };
    let mut text = format!("{} of the {whole}, {saves}", percent(finding.saves_share));
    if let Some(wall) = wall {
        text += &format!(" of {wall}");
    }
    let runs = stage(metrics, Stage::Prefill).or_else(|| stage(metrics, Stage::Decode)).map(|stage| stage.instances);
    if let Some(runs) = runs.filter(|runs| *runs > 1).and_then(|runs| i64::try_from(runs).ok()) {
        text += &format!("; {} per input on average", Nanos::new(saves.get() / runs));
    }
    Some(text)
}

/// A finding's place: its stage, or the whole run.
pub(crate) fn place(finding: &Finding) -> String {
    finding.stage.map_or("whole run".to_owned(), |stage| stage.to_string())
}

/// The machine and its software, line by line. What is not known is left out.
pub(crate) fn environment(metrics: &Metrics, environment: &Environment) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(facts) = imported_facts(metrics) {
        return traced(metrics, facts, &environment.tool_version);
    }
    let mut ran = format!("{} on the {} engine", code(model(metrics)), prose(&metrics.run.engine));
    if let Some(weights) = &metrics.run.weights {
        ran += &format!(", weights: {}", prose(weights));
    }
    lines.push(ran);
    lines.push(format!("device: {}", prose(&device(metrics))));
    let cpu = &environment.cpu;
    let threads = cpu.threads_available.or(cpu.threads).map(|threads| count(threads.into(), "thread"));
    let facts = [cpu.model.as_deref().map(prose), Some(prose(&cpu.architecture)), threads];
    lines.push(format!("processor: {}", facts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
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
        let library = frameworks.transformers.as_deref().map(|found| format!(", transformers {}", prose(found)));
        lines.push(format!("PyTorch {}{cuda}{}", prose(torch), library.unwrap_or_default()));
    }
    lines.push(format!("llm-perf {}", prose(&environment.tool_version)));
    if let Some(git) = &environment.git {
        let changed = if git.dirty == Some(true) { ", with changes" } else { "" };
        lines.push(format!("source tree: {}{changed}", code(&git.revision)));
    }
    lines
}

/// What the files of an imported run say of the machine it ran on: its devices and the tools. This machine is another.
fn traced(metrics: &Metrics, facts: &TraceFacts, tool_version: &str) -> Vec<String> {
    let mut lines = vec![format!("{}, imported", code(model(metrics)))];
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

/// What the instruments cost, in a sentence.
pub(crate) fn overhead(metrics: &Metrics) -> String {
    let overhead = &metrics.times.overhead;
    let (Some(share), Some(with), Some(without)) = (overhead.share, overhead.profiled_ns, overhead.baseline_ns) else {
        return "What the instruments cost is not known.".to_owned();
    };
    let (size, word) = (percent(Some(share.abs())), if share < 0.0 { "shorter" } else { "longer" });
    let what = if metrics.conditions.command.is_some() { "the command" } else { "the same inputs" };
    format!("With instruments {what} took {size} {word} ({with} instead of {without}).")
}

/// How much something matters.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// Evidence, advice or a remedy: prose in which backticks set names apart.
pub(crate) fn sentence(text: &str) -> String {
    let part = |(index, part): (usize, &str)| if index % 2 == 1 { code(part) } else { prose(part) };
    text.split('`').enumerate().map(part).collect()
}
