//! What a run measured several times and that belongs to no stage: its commands, and the memory it took.

use std::collections::BTreeSet;

use types::{Bytes, Change, CommandFacts, CommandRun, Facts, Measured, Remark, Replication};

use super::row::{Evidence, Row, geometric_mean, judged, log_ratio, time};
use super::stages::tested;
use super::{CONFIDENCE, RunRecords, Sides};
use crate::statistics::{LogInterval, Stratum, median, relative_spread, student_test};

/// Wall and processor time of commands.
pub(super) fn commands(sides: Sides<'_>) -> Vec<Change> {
    let of = |name: String, of: fn(&CommandRun) -> f64| (name, of);
    let rows: Vec<_> = commands_of(sides)
        .into_iter()
        .flat_map(|command| {
            let named = |what: &str| command.as_ref().map_or_else(|| what.to_owned(), |text| format!("{what}: {text}"));
            let wall = of(named("command"), |run| run.wall_ns.get() as f64);
            let cpu = of(named("cpu"), |run| (run.user_ns + run.system_ns).get() as f64);
            [wall, cpu].map(|(name, of)| (name, command.clone(), of))
        })
        .collect();
    let family = rows.len();
    let row = |(name, command, of): (String, Option<String>, fn(&CommandRun) -> f64)| {
        let values = |run: &RunRecords| -> Vec<f64> { counted(run, command.as_deref()).map(of).collect() };
        Row { name, ..sampled(sides, &values, family) }
    };
    judged(rows.into_iter().map(row).collect())
}

/// Memory of commands, and of the device as a framework counts it.
pub(super) fn memory(sides: Sides<'_>) -> Vec<Change> {
    let mut rows = Vec::new();
    let commands = commands_of(sides);
    for command in &commands {
        let bytes = |run: &CommandRun| run.peak_memory_bytes.map(Bytes::as_f64);
        let values = |run: &RunRecords| -> Vec<f64> { counted(run, command.as_deref()).filter_map(bytes).collect() };
        let name = command.as_ref().map_or_else(|| "memory".to_owned(), |text| format!("memory: {text}"));
        rows.push(Row { name, ..sampled(sides, &values, commands.len()) });
    }
    type Count = fn(&types::PeakMemory) -> Option<Bytes>;
    let counts: [(&str, Count); 2] =
        [("memory: allocated", |memory| memory.allocated_bytes), ("memory: reserved", |memory| memory.reserved_bytes)];
    for (name, of) in counts {
        let value = |run: &RunRecords| run.metrics.conditions.memory.as_ref().and_then(of).map(Bytes::as_f64);
        rows.push(Row { name: name.to_owned(), ..once(sides, value) });
    }
    rows.retain(|row| row.base.samples + row.with.samples > 0);
    let in_bytes =
        |side: &mut Measured| side.bytes = side.time_ns.take().map(|value| Bytes::new(value.get().unsigned_abs()));
    let mut changes = judged(rows);
    for change in &mut changes {
        in_bytes(&mut change.base);
        in_bytes(&mut change.with);
    }
    changes
}

/// The commands to compare: by their texts where a run has several, else the only one, whatever it is.
fn commands_of(sides: Sides<'_>) -> Vec<Option<String>> {
    let several = sides.runs().any(|run| !run.metrics.conditions.commands_beside.is_empty());
    let texts: BTreeSet<Option<String>> =
        sides.runs().flat_map(facts).map(|facts| several.then(|| facts.command.clone())).collect();
    texts.into_iter().collect()
}

fn facts(run: &RunRecords) -> impl Iterator<Item = &CommandFacts> {
    run.metrics.conditions.command.iter().chain(&run.metrics.conditions.commands_beside)
}

fn counted<'a>(run: &'a RunRecords, command: Option<&'a str>) -> impl Iterator<Item = &'a CommandRun> {
    let of_command = facts(run).filter(move |facts| command.is_none_or(|text| facts.command == text));
    of_command.flat_map(|facts| &facts.runs).filter(|run| run.counts())
}

/// A row of what each run measured several times.
fn sampled(sides: Sides<'_>, values: &dyn Fn(&RunRecords) -> Vec<f64>, family: usize) -> Row {
    let all = |runs: &[RunRecords]| -> Vec<Vec<f64>> { runs.iter().map(values).collect() };
    let (base, with) = (all(sides.base), all(sides.with));
    let lacks = |side: &[Vec<f64>]| side.iter().any(Vec::is_empty);
    let reason = match (lacks(&base), lacks(&with)) {
        (true, false) => Some(Remark::new("untested.only-second", Facts::new())),
        (false, true) => Some(Remark::new("untested.only-first", Facts::new())),
        (true, true) => Some(Remark::new("untested.all-failed", Facts::new())),
        (false, false) => None,
    };
    let medians = |side: &[Vec<f64>]| -> Vec<f64> { side.iter().filter_map(|values| median(values)).collect() };
    let samples = [&base, &with].map(|side| side.iter().map(Vec::len).sum::<usize>() as u64);
    if let Some(reason) = reason {
        let row = several(&medians(&base), &medians(&with), samples);
        return Row { log_ratio: None, evidence: Evidence::untested(reason), ..row };
    }
    match (sides.replication(), &base[..], &with[..]) {
        (Replication::Repeats, [base], [with]) => {
            tested(&[Stratum { base: base.clone(), with: with.clone() }], sides, family)
        }
        _ => several(&medians(&base), &medians(&with), samples),
    }
}

pub(super) fn several(base: &[f64], with: &[f64], samples: [u64; 2]) -> Row {
    let side = |values: &[f64], samples| Measured {
        time_ns: time(geometric_mean(values)),
        spread: relative_spread(values),
        samples,
        ..Measured::default()
    };
    let evidence = student_test(base, with, CONFIDENCE)
        .map_or_else(|| Evidence::untested(Remark::new("untested.equal-runs", Facts::new())), Evidence::from);
    Row {
        base: side(base, samples[0]),
        with: side(with, samples[1]),
        log_ratio: log_ratio(geometric_mean(base), geometric_mean(with)),
        evidence,
        ..Row::default()
    }
}

/// A row of what each run counted once. A count has no noise within a run: another count is another use of memory.
fn once(sides: Sides<'_>, value: impl Fn(&RunRecords) -> Option<f64>) -> Row {
    let all = |runs: &[RunRecords]| -> Vec<f64> { runs.iter().filter_map(&value).collect() };
    let (base, with) = (all(sides.base), all(sides.with));
    let row = several(&base, &with, [base.len() as u64, with.len() as u64]);
    match (sides.replication(), row.log_ratio) {
        (Replication::Repeats, Some(ratio)) => {
            let interval = LogInterval { low: ratio, high: ratio };
            let p_value = if ratio == 0.0 { 1.0 } else { 0.0 };
            Row { evidence: Evidence::Tested { interval, p_value }, ..row }
        }
        _ => row,
    }
}
