//! Two sides, each one run or several of the same thing: can they be compared, what changed, how sure is that.
//!
//! In come [`Sides`], out goes a [`Comparison`]. `pairing` finds the inputs that all runs have; `comparability` comes next,
//! because a change between runs that did different work says nothing. `requests`, `stages`, `steps` and `parts` (device time,
//! operators, kernels, modules) then make a `row` for each thing with its evidence, and verdicts once all rows of a table are known; `gate` judges the
//! stages. Reading run folders is left to `flow`, wording to `report`; the statistics are those of [`crate::statistics`].

mod comparability;
mod gate;
mod pairing;
mod parts;
mod requests;
mod row;
mod samples;
mod stages;
mod steps;
mod tried;

use std::collections::BTreeMap;

use types::{
    Change, ComparedRun, Comparison, Environment, Facts, ForecastChange, ForecastRange, ForecastTime, InputSet,
    Metrics, Remark, Replication, RunState, SchemaTag, Severity,
};

pub use tried::try_sides;

use crate::disturbed;
use pairing::Pairing;
use parts::Part;

/// How sure intervals are.
const CONFIDENCE: f64 = 0.95;
/// Chance of at least one wrong verdict in a table in which nothing changed.
const SIGNIFICANCE: f64 = 0.05;

/// What one run left behind, as far as it was found.
#[derive(Clone, Debug)]
pub struct RunRecords {
    /// Where it was read from.
    pub path: String,
    /// How it stands; absent when only its metrics are known.
    pub state: Option<RunState>,
    /// Why it is partial or failed.
    pub reasons: Vec<String>,
    /// Everything it measured.
    pub metrics: Metrics,
    /// The machine; absent when not known.
    pub environment: Option<Environment>,
    /// What it ran on; absent when not known.
    pub inputs: Option<InputSet>,
    /// What its analytic model forecasts of each stage; empty without one.
    pub forecasts: BTreeMap<String, ForecastTime>,
}

/// Two sides with at least one run each.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The first side.
    pub base: &'a [RunRecords],
    /// The second side.
    pub with: &'a [RunRecords],
}

impl<'a> Sides<'a> {
    fn runs(&self) -> impl Iterator<Item = &'a RunRecords> + Clone + use<'a> {
        self.base.iter().chain(self.with)
    }

    /// Whether the sides are one and the same run.
    fn is_same(&self) -> bool {
        matches!((self.base, self.with), ([base], [with]) if base.metrics == with.metrics)
    }

    fn replication(&self) -> Replication {
        if self.base.len() + self.with.len() > 2 { Replication::Runs } else { Replication::Repeats }
    }
}

/// Most a side may be slower, or take more memory, as a share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateLimits {
    /// Of everything that is timed without a profiler; absent where only what is named is judged.
    pub all: Option<f64>,
    /// Of single rows, by their names: a latency, a stage, a kind of step, `command`, `cpu` or `memory`.
    pub named: BTreeMap<String, f64>,
}

impl From<f64> for GateLimits {
    /// One limit for everything.
    fn from(limit: f64) -> Self {
        Self { all: Some(limit), named: BTreeMap::new() }
    }
}

/// Everything two sides tell; `fail_over` is the gate.
pub fn compare(sides: Sides<'_>, fail_over: Option<GateLimits>) -> Comparison {
    let pairing = Pairing::new(sides);
    let differences = comparability::differences(sides, &pairing);
    let is_same = sides.is_same();
    let same = |changes: Vec<Change>| if is_same { row::unchanged(changes) } else { changes };
    let stages = same(stages::changes(sides, &pairing));
    let commands = same(samples::commands(sides));
    let memory = same(samples::memory(sides));
    let (requests, request_parts) = (same(requests::latencies(sides)), same(requests::parts(sides)));
    let steps = same(steps::changes(sides));
    let part = |part: Part| same(parts::changes(sides, &pairing, part));
    let device_time = part(Part::DeviceTime);
    let (operators, kernels, modules) = (part(Part::Operators), part(Part::Kernels), part(Part::Modules));
    let tables = gate::Tables {
        requests: &requests,
        stages: &stages,
        commands: &commands,
        memory: &memory,
        steps: &steps,
        device: &device_time,
    };
    let gate = fail_over.map(|limits| gate::judge(limits, &tables, &differences, sides));
    Comparison {
        schema: SchemaTag::new(),
        base: sides.base.iter().map(compared).collect(),
        with: sides.with.iter().map(compared).collect(),
        replication: sides.replication(),
        significance: SIGNIFICANCE,
        common_inputs: pairing.names_inputs().then(|| pairing.common().len() as u64),
        gate,
        notes: notes(sides),
        differences,
        requests,
        request_parts,
        stages,
        commands,
        memory,
        steps,
        device_time,
        operators,
        kernels,
        modules,
        forecasts: forecasts(sides),
    }
}

/// Forecasts of the stages that both sides have, from the first run of each that has any.
fn forecasts(sides: Sides<'_>) -> Vec<ForecastChange> {
    let of = |runs: &[RunRecords]| runs.iter().map(|run| run.forecasts.clone()).find(|one| !one.is_empty());
    let (Some(base), Some(with)) = (of(sides.base), of(sides.with)) else { return Vec::new() };
    let range = |time: ForecastTime| {
        let of = |time: Option<types::Nanos>| time.map(types::Nanos::as_millis);
        Some(ForecastRange {
            value: of(time.forecast_ns)?,
            low: of(time.forecast_low_ns)?,
            high: of(time.forecast_high_ns)?,
        })
    };
    let change = |(stage, time): (String, ForecastTime)| {
        let (base, with) = (range(time)?, range(*with.get(&stage)?)?);
        (base.value > 0.0).then(|| ForecastChange { change: with.value / base.value - 1.0, stage, base, with })
    };
    base.into_iter().filter_map(change).collect()
}

fn compared(run: &RunRecords) -> ComparedRun {
    ComparedRun {
        id: run.metrics.run.id.clone(),
        disturbed: disturbed::verdict(&run.metrics),
        path: run.path.clone(),
        state: run.state,
        reasons: run.reasons.clone(),
    }
}

/// That a run was disturbed, and by what; absent where it was not.
fn disturbed_run(run: &RunRecords) -> Option<Remark> {
    let reason = disturbed::verdict(&run.metrics)?;
    Some(Remark::new("compare.disturbed", Facts::new().with("run", &run.path).with("reason", reason)))
}

/// What a reader must know to read the numbers right.
fn notes(sides: Sides<'_>) -> Vec<Remark> {
    let mut notes = Vec::new();
    if sides.replication() == Replication::Repeats {
        notes.push(Remark::new("compare.one-run", Facts::new()));
    }
    if sides.base.iter().any(|one| sides.with.iter().any(|other| one.path == other.path)) {
        notes.push(Remark::new("compare.same-run", Facts::new()));
    }
    notes.extend(sides.runs().filter_map(disturbed_run));
    // Which runs lack something; none where no run does.
    let without = |known: fn(&RunRecords) -> bool| -> Option<Facts> {
        let missing = sides.runs().filter(|run| !known(run));
        let missing: Vec<Facts> = missing.map(|run| Facts::new().with("run", &run.path)).collect();
        let all = missing.len() == sides.runs().count();
        (!missing.is_empty()).then(|| Facts::new().with("runs", missing).with_if("all", all))
    };
    let environment = without(|run| run.environment.is_some());
    notes.extend(environment.map(|facts| Remark::new("compare.no-environment", facts)));
    let inputs = without(|run| run.inputs.is_some());
    notes.extend(inputs.map(|facts| Remark::new("compare.no-inputs", facts)));
    for run in sides.runs() {
        let errors = run.metrics.conclusions.quality.iter().filter(|counter| counter.severity == Severity::Error);
        notes.extend(errors.map(|counter| {
            let facts = Facts::new().with("run", &run.path).with("counter", &counter.counter);
            let facts = facts.with("value", counter.value).with("remedy", Remark::said(&counter.remedy));
            Remark::new("compare.counter", facts)
        }));
    }
    // A run that is on both sides has the same to say on each.
    let mut said: Vec<Remark> = Vec::new();
    for note in notes {
        if !said.contains(&note) {
            said.push(note);
        }
    }
    said
}

#[cfg(test)]
mod tests;
