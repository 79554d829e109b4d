//! What the two sides do not share, and what that means for a comparison.

use std::collections::{BTreeMap, BTreeSet};

use types::{Difference, Environment, Facts, GpuInfo, InputFacts, Metrics, Remark, RunState, ServedLoad, Severity};

use super::pairing::Pairing;
use super::{RunRecords, Sides};

/// One thing that is compared: its name, how much it matters, and what a run has.
struct Aspect {
    name: &'static str,
    severity: Severity,
    of: fn(&RunRecords) -> Option<String>,
}

const fn aspect(name: &'static str, severity: Severity, of: fn(&RunRecords) -> Option<String>) -> Aspect {
    Aspect { name, severity, of }
}

/// How many tokens of some kind an input has.
type TokenCount = fn(&InputFacts) -> u64;

/// Every aspect. What a run does not say makes no difference.
const ASPECTS: &[Aspect] = &[
    aspect("model", Severity::Error, |run| run.metrics.run.model.clone()),
    aspect("batch size", Severity::Error, |run| Some(run.metrics.conditions.settings.as_ref()?.batch.to_string())),
    aspect("command", Severity::Warning, |run| Some(run.metrics.conditions.command.as_ref()?.command.clone())),
    aspect("engine", Severity::Warning, |run| Some(run.metrics.run.engine.clone())),
    aspect("profiler", Severity::Warning, profiler),
    aspect("profiler during the load", Severity::Warning, |run| {
        let serving = run.metrics.served.serving.as_ref()?;
        let is_plain = serving.recorded.is_some() || run.metrics.conditions.trace.is_none();
        Some(if is_plain { "not attached" } else { "attached" }.to_owned())
    }),
    aspect("weights", Severity::Warning, |run| run.metrics.run.weights.clone()),
    aspect("device", Severity::Warning, |run| device(&run.metrics)),
    aspect("element type", Severity::Warning, |run| Some(run.metrics.utilisation.peak.as_ref()?.dtype.to_string())),
    aspect("warm-up rounds", Severity::Warning, |run| {
        Some(run.metrics.conditions.settings.as_ref()?.warmup_rounds.to_string())
    }),
    aspect("repeats", Severity::Info, |run| Some(run.metrics.conditions.settings.as_ref()?.repeats.to_string())),
    aspect("epochs", Severity::Info, |run| Some(run.metrics.conditions.settings.as_ref()?.epochs.to_string())),
    aspect("CPU model", Severity::Warning, |run| environment(run, |all| all.cpu.model.clone())),
    aspect("threads", Severity::Warning, |run| {
        environment(run, |all| all.cpu.threads_available.or(all.cpu.threads).map(|threads| threads.to_string()))
    }),
    aspect("frequency governor", Severity::Warning, |run| environment(run, |all| all.cpu.governor.clone())),
    aspect("maximum CPU clock", Severity::Warning, |run| environment(run, |all| megahertz(all.cpu.clock_max_mhz))),
    aspect("maximum GPU clock", Severity::Warning, |run| gpus(run, |gpu| megahertz(gpu.sm_clock_max_mhz))),
    aspect("maximum GPU memory clock", Severity::Warning, |run| gpus(run, |gpu| megahertz(gpu.memory_clock_max_mhz))),
    aspect("GPU power limit", Severity::Warning, |run| gpus(run, |gpu| Some(format!("{} W", gpu.power_limit_watts?)))),
    aspect("GPU clock throttling", Severity::Warning, |run| gpus(run, throttled)),
    aspect("GPU instances (MIG)", Severity::Warning, |run| gpus(run, |gpu| Some(on_or_off(gpu.mig_enabled?)))),
    aspect("GPU memory correction (ECC)", Severity::Warning, |run| gpus(run, |gpu| Some(on_or_off(gpu.ecc_enabled?)))),
    aspect("driver", Severity::Warning, |run| environment(run, |all| all.tools.driver.clone())),
    aspect("CUDA toolkit", Severity::Warning, |run| {
        environment(run, |all| all.tools.cuda_toolkit.as_ref()?.version.clone())
    }),
    aspect("PyTorch", Severity::Warning, |run| environment(run, |all| all.frameworks.torch.clone())),
    aspect("transformers", Severity::Warning, |run| environment(run, |all| all.frameworks.transformers.clone())),
    aspect("llm-perf", Severity::Warning, |run| environment(run, |all| Some(all.tool_version.clone()))),
    aspect("llm-perf features", Severity::Warning, |run| environment(run, |all| Some(all.tool_features.join(", ")))),
    aspect("variables", Severity::Warning, |run| environment(run, variables)),
    aspect("operating system", Severity::Info, |run| environment(run, |all| all.operating_system.name.clone())),
    aspect("kernel", Severity::Info, |run| environment(run, |all| all.operating_system.kernel.clone())),
    aspect("container", Severity::Info, |run| environment(run, |all| all.operating_system.container.clone())),
    aspect("source tree", Severity::Info, |run| environment(run, revision)),
];

/// Everything the runs do not share, the gravest first.
pub(super) fn differences(sides: Sides<'_>, pairing: &Pairing) -> Vec<Difference> {
    let mut found = Vec::new();
    found.extend(states(sides));
    found.extend(inputs(sides, pairing));
    found.extend(tokens(sides, pairing));
    found.extend(loads(sides));
    found.extend(ASPECTS.iter().filter_map(|aspect| different(sides, aspect)));
    found.sort_by_key(|difference| std::cmp::Reverse(difference.severity));
    found
}

/// The sides did different work, so that times do not compare.
fn other_work() -> Remark {
    Remark::new("difference.work", Facts::new())
}

/// The same work under other conditions, from which a change may come.
fn conditions() -> Remark {
    Remark::new("difference.conditions", Facts::new())
}

fn different(sides: Sides<'_>, aspect: &Aspect) -> Option<Difference> {
    let values = |runs: &[RunRecords]| runs.iter().filter_map(aspect.of).collect::<BTreeSet<_>>();
    let (base, with) = (values(sides.base), values(sides.with));
    let all: BTreeSet<_> = base.union(&with).collect();
    if all.len() < 2 {
        return None;
    }
    let meaning = match aspect.severity {
        Severity::Error => other_work(),
        Severity::Warning => conditions(),
        Severity::Info => Remark::new("difference.info", Facts::new()),
    };
    Some(Difference {
        aspect: aspect.name.to_owned(),
        base: base.into_iter().collect(),
        with: with.into_iter().collect(),
        severity: aspect.severity,
        meaning,
    })
}

/// Runs that are not complete, on either side.
fn states(sides: Sides<'_>) -> Option<Difference> {
    let incomplete = |run: &&RunRecords| run.state.is_some_and(|state| state != RunState::Complete);
    let word = |run: &RunRecords| {
        let state = match run.state {
            None | Some(RunState::Complete) => "complete",
            Some(RunState::Partial) => "partial",
            Some(RunState::Failed) => "failed",
            Some(RunState::Running) => "still running",
            Some(RunState::Interrupted) => "interrupted",
            Some(RunState::Unreadable) => "unreadable",
        };
        let reasons = run.reasons.join("; ");
        if reasons.is_empty() { format!("{}: {state}", run.path) } else { format!("{}: {state}, {reasons}", run.path) }
    };
    let words = |runs: &[RunRecords]| runs.iter().filter(incomplete).map(word).collect::<Vec<_>>();
    let (base, with) = (words(sides.base), words(sides.with));
    if base.is_empty() && with.is_empty() {
        return None;
    }
    let only_partial = sides.runs().filter(incomplete).all(|run| run.state == Some(RunState::Partial));
    let (severity, meaning) = if only_partial {
        (Severity::Warning, Remark::new("difference.partial", Facts::new()))
    } else {
        (Severity::Error, Remark::new("difference.failed", Facts::new()))
    };
    Some(Difference { aspect: "status".to_owned(), base, with, severity, meaning })
}

fn inputs(sides: Sides<'_>, pairing: &Pairing) -> Option<Difference> {
    if pairing.is_whole() {
        return None;
    }
    let names = |runs: &[RunRecords]| -> Vec<String> {
        let own = |run: &RunRecords| -> Vec<String> {
            let samples = run.metrics.times.samples.iter().filter(|sample| !sample.warmup);
            let names = samples.map(|sample| sample.input.as_deref().unwrap_or_default());
            let apart = names.filter(|name| !pairing.common().contains(&pairing.identity(run, name)));
            apart.map(|name| if name.is_empty() { "(unnamed)".to_owned() } else { name.to_owned() }).collect()
        };
        runs.iter().flat_map(own).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (severity, meaning) = match pairing.common().len() {
        0 => (Severity::Error, Remark::new("difference.no-common-input", Facts::new())),
        count => (Severity::Warning, Remark::new("difference.inputs", Facts::new().with("inputs", count))),
    };
    let (base, with) = (names(sides.base), names(sides.with));
    Some(Difference { aspect: "inputs".to_owned(), base, with, severity, meaning })
}

/// Inputs that are the same and were still turned into other work: other tiles, another prompt, more tokens.
fn tokens(sides: Sides<'_>, pairing: &Pairing) -> Vec<Difference> {
    let facts = |runs: &[RunRecords], of: TokenCount| {
        let mut found: BTreeMap<String, (String, BTreeSet<u64>)> = BTreeMap::new();
        for run in runs {
            for input in &run.metrics.conditions.inputs {
                let entry =
                    found.entry(pairing.identity(run, &input.name)).or_insert((input.name.clone(), BTreeSet::new()));
                entry.1.insert(of(input));
            }
        }
        found
    };
    let mut differences = Vec::new();
    let aspects: [(&str, TokenCount); 2] =
        [("prompt tokens", |input| input.prompt_tokens), ("generated tokens", |input| input.generated_tokens)];
    for (name, of) in aspects {
        let (base, with) = (facts(sides.base, of), facts(sides.with, of));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (identity, (input, counts)) in &base {
            let Some((other, others)) = with.get(identity) else { continue };
            if counts.union(others).count() > 1 {
                left.push(format!("{input}: {}", listed(counts)));
                right.push(format!("{other}: {}", listed(others)));
            }
        }
        if !left.is_empty() {
            differences.push(Difference {
                aspect: name.to_owned(),
                base: left,
                with: right,
                severity: Severity::Error,
                meaning: other_work(),
            });
        }
    }
    differences
}

/// How far means of a load may be apart that is the same, as a share: prompts and outputs of random lengths never agree.
const SAME_LENGTH: f64 = 0.05;

/// The same of rates and of failures.
const SAME_RATE: f64 = 0.1;

/// A figure of a load.
type LoadFigure = fn(&ServedLoad) -> Option<f64>;

const LENGTHS: [(&str, LoadFigure); 2] = [
    ("prompt tokens per request", |load| per_completed(load, load.input_tokens)),
    ("output tokens per request", |load| per_completed(load, load.output_tokens)),
];

fn per_completed(load: &ServedLoad, tokens: u64) -> Option<f64> {
    (load.completed > 0).then(|| tokens as f64 / load.completed as f64)
}

fn failed(load: &ServedLoad) -> Option<f64> {
    (load.requests > 0).then(|| 100.0 * load.failed as f64 / load.requests as f64)
}

/// Loads on a server that ask other things of it.
fn loads(sides: Sides<'_>) -> Vec<Difference> {
    let of = |runs: &[RunRecords], figure: LoadFigure| -> Vec<f64> {
        runs.iter().filter_map(|run| figure(&run.metrics.served.serving.as_ref()?.load)).collect()
    };
    let differs = |figure: LoadFigure, most_apart: f64| {
        let all = [of(sides.base, figure), of(sides.with, figure)].concat();
        let (least, most) = (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(0.0, f64::max));
        most > 0.0 && (most - least) / most > most_apart
    };
    let difference = |aspect: &str, severity, figure: LoadFigure| {
        let words = |runs: &[RunRecords]| -> Vec<String> {
            let words: BTreeSet<String> = of(runs, figure).into_iter().map(|value| format!("{value:.1}")).collect();
            words.into_iter().collect()
        };
        let meaning = if severity == Severity::Error { other_work() } else { conditions() };
        Difference { aspect: aspect.to_owned(), base: words(sides.base), with: words(sides.with), severity, meaning }
    };
    let other_lengths = LENGTHS.into_iter().filter(|(_, figure)| differs(*figure, SAME_LENGTH));
    let mut found: Vec<_> = other_lengths.map(|(name, figure)| difference(name, Severity::Error, figure)).collect();
    // A client that keeps so many requests in flight sends them as fast as they are served, which is no other load.
    if differs(|load| load.max_concurrency.map(|count| count as f64), 0.0)
        && differs(|load| load.request_rate, SAME_RATE)
    {
        found.push(difference("requests sent per second", Severity::Warning, |load| load.request_rate));
    }
    if differs(failed, SAME_RATE) {
        found.push(difference("failed requests (%)", Severity::Warning, failed));
    }
    found
}

fn listed(counts: &BTreeSet<u64>) -> String {
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")
}

/// Whether stages were timed under a profiler: samples are of plain runs, and without them times are those of a trace.
fn profiler(run: &RunRecords) -> Option<String> {
    let times = &run.metrics.times;
    let attached = if times.samples.is_empty() { "attached" } else { "not attached" };
    (!times.samples.is_empty() || !times.stages.is_empty()).then(|| attached.to_owned())
}

/// The device by the name its driver reports: two of the same kind are the same condition.
fn device(metrics: &Metrics) -> Option<String> {
    let id = metrics.run.device.as_ref();
    let known = metrics.devices.iter().find(|device| Some(&device.id) == id).or(metrics.devices.first());
    known.map(|device| device.name.clone()).or_else(|| id.map(ToString::to_string))
}

fn environment(run: &RunRecords, of: impl Fn(&Environment) -> Option<String>) -> Option<String> {
    run.environment.as_ref().and_then(of)
}

fn gpus(run: &RunRecords, of: impl Fn(&GpuInfo) -> Option<String>) -> Option<String> {
    let gpus = &run.environment.as_ref()?.gpus;
    let values: Vec<String> = gpus.iter().filter_map(of).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn megahertz(clock: Option<u32>) -> Option<String> {
    clock.map(|clock| format!("{clock} MHz"))
}

fn throttled(gpu: &GpuInfo) -> Option<String> {
    let reasons = gpu.throttle_reasons.as_ref()?;
    Some(if reasons.is_empty() { "no".to_owned() } else { reasons.join(" and ") })
}

fn on_or_off(on: bool) -> String {
    if on { "on".to_owned() } else { "off".to_owned() }
}

fn variables(environment: &Environment) -> Option<String> {
    let set: Vec<String> = environment.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(if set.is_empty() { "none".to_owned() } else { set.join(" ") })
}

fn revision(environment: &Environment) -> Option<String> {
    let git = environment.git.as_ref()?;
    let changed = if git.dirty == Some(true) { ", with changes" } else { "" };
    Some(format!("{}{changed}", git.revision))
}
