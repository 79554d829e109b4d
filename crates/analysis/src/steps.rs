//! Steps of a trace: what repeats, before anything is called prefill or decode.
//!
//! Annotations of a serving engine say most, then the steps of the profiler, then decode steps that ranges or tokens show, then
//! ranges that the program counts, then kernels that choose a token, then kernels that repeat in exactly the same order. Work belongs to the step that it was launched in, on whichever thread of the process:
//! autograd launches from a thread of its own.

use types::timeline::{NameId, Range, ThreadId, Timeline, WorkKind};
use types::{Nanos, QualityCounter, Severity, StepBasis, StepBatch, StepLabel, StepSummary, Steps};

use crate::attribution::engine;
use crate::attribution::{Attribution, Backlog, behind_others, is_sampling, trace_end};
use crate::counted_ranges::counted;
use crate::evidence::PlacedTimeline;
use crate::padding::processed;
use crate::repetition::{self, Repetition};
use crate::statistics::describe;
use crate::time::{Span, Spans};

/// A pass has at least this many kernels; choosing a token may itself take several.
const FEWEST_KERNELS: usize = 8;
/// Fewer passes than this show no repetition.
const FEWEST_PASSES: usize = 3;
/// Words in names of kernels that a layer never launches: optimizers and losses.
const ONCE_IN_A_STEP: [&str; 8] =
    ["multi_tensor_apply", "adam", "sgd_", "optimizer", "nll_loss", "cross_entropy", "loss_", "_loss"];

/// One step on the host.
struct Mark {
    name: String,
    label: Option<StepLabel>,
    batch: Option<StepBatch>,
    process: Option<u32>,
    host: Span,
}

/// A step as the host sees it.
pub(crate) struct HostStep {
    pub(crate) name: String,
    pub(crate) process: Option<u32>,
    pub(crate) host: Span,
}

/// The host's part of every step, in order.
pub(crate) fn host_steps(timeline: &Timeline, attribution: &Attribution) -> Vec<HostStep> {
    let Some((_, mut marks)) = marks(timeline, attribution) else { return Vec::new() };
    marks.sort_by_key(|mark| mark.host.start);
    marks.into_iter().map(|Mark { name, process, host, .. }| HostStep { name, process, host }).collect()
}

/// Steps of the first timeline that has any: ranks of one run have the same.
pub(crate) fn steps(timelines: &[PlacedTimeline<'_>]) -> Option<Steps> {
    let placed = timelines.iter().find_map(|placed| placed_steps(placed.timeline, placed.attribution))?;
    let list: Vec<_> = placed.list.into_iter().map(|(_, step)| step).collect();
    let milliseconds =
        |of: fn(&StepSummary) -> Nanos| describe(&list.iter().map(|step| of(step).as_millis()).collect::<Vec<_>>());
    Some(Steps {
        basis: placed.basis,
        wall_ms: milliseconds(|step| step.wall_ns),
        device_ms: milliseconds(|step| step.device_ns),
        list,
    })
}

/// Steps of a timeline, and which work belongs to which.
#[derive(Clone, Debug)]
pub struct PlacedSteps {
    /// What marks them.
    pub basis: StepBasis,
    /// In order, each with its wall time on the clock of the timeline.
    pub list: Vec<(Span, StepSummary)>,
    /// Per step: while the host prepares and launches it.
    pub host: Vec<Span>,
    /// Per step: from the start of its first work to the end of its last; `None` without work.
    pub device: Vec<Option<Span>>,
    /// Per work: its step.
    pub of_work: Vec<Option<u32>>,
}

/// Steps of one timeline; `None` where nothing marks any.
pub fn placed_steps(timeline: &Timeline, attribution: &Attribution) -> Option<PlacedSteps> {
    let (basis, mut marks) = marks(timeline, attribution)?;
    marks.sort_by_key(|mark| mark.host.start);
    let behind = match basis {
        StepBasis::EngineAnnotations => behind_others(timeline, &attribution.launch),
        _ => Spans::default(),
    };
    let mut works: Vec<Vec<Span>> = vec![Vec::new(); marks.len()];
    let mut kernels = vec![0u64; marks.len()];
    let mut of_work = vec![None; timeline.work.len()];
    for (row, (work, call)) in timeline.work.iter().zip(&attribution.launch).enumerate() {
        let Some(call) = call.map(|call| &timeline.calls[call as usize]) else { continue };
        let process = timeline.threads[call.thread.0 as usize].process;
        let before = marks.partition_point(|mark| mark.host.start <= call.start);
        // Processes of several ranks interleave, each with steps of its own.
        let around = marks[..before].iter().rposition(|mark| mark.process == process);
        let Some(place) = around.filter(|place| marks[*place].host.contains(call.start)) else { continue };
        if !attribution.is_aside(row) {
            works[place].push(Span::new(work.start, work.end()));
            kernels[place] += u64::from(work.kind == WorkKind::Kernel);
            of_work[row] = u32::try_from(place).ok();
        }
    }
    let backlog = Backlog::new(timeline, &attribution.launch);
    let mut until = Nanos::new(i64::MIN);
    let hull = |works: &Vec<Span>| works.iter().copied().reduce(Span::hull);
    let device = works.iter().map(hull).collect();
    let host = marks.iter().map(|mark| mark.host).collect();
    let mut list = Vec::new();
    for ((mark, works), kernels) in marks.into_iter().zip(works).zip(kernels) {
        let last = works.iter().map(|work| work.end).max().unwrap_or(mark.host.end);
        let begin = mark.host.start.max(until);
        let begin = backlog.until(hull(&works)).map_or(begin, |end| begin.max(end));
        let wall = Span::new(begin, mark.host.end.max(last).max(begin));
        until = wall.end;
        let summary = StepSummary {
            name: mark.name,
            label: mark.label,
            start_ns: Some(mark.host.start),
            device_start_ns: works.iter().map(|work| work.start).min(),
            device_end_ns: works.iter().map(|work| work.end).max(),
            host_ns: mark.host.length(),
            wall_ns: wall.length() - behind.total_within(wall),
            device_ns: Spans::union(works).total(),
            kernels,
            batch: mark.batch,
            processed_tokens: None,
            work: None,
        };
        list.push((wall, summary));
    }
    if basis == StepBasis::EngineAnnotations {
        let tokens: Vec<_> = list.iter().map(|(_, step)| step.batch.and_then(|batch| batch.tokens)).collect();
        let processed = processed(timeline, &of_work, &tokens);
        list.iter_mut().zip(processed).for_each(|((_, step), tokens)| step.processed_tokens = tokens);
    }
    Some(PlacedSteps { basis, list, host, device, of_work })
}

/// The strongest marks there are. Where only launches of graphs were timed, those that have one: nothing says when the others ended.
fn marks(timeline: &Timeline, attribution: &Attribution) -> Option<(StepBasis, Vec<Mark>)> {
    let (basis, mut marks) = all_marks(timeline, attribution)?;
    if timeline.graphs_only {
        let timed = attribution.launch.iter().flatten().map(|call| &timeline.calls[*call as usize]);
        let mut timed: Vec<_> =
            timed.map(|call| (timeline.threads[call.thread.0 as usize].process, call.start)).collect();
        timed.sort_unstable();
        marks.retain(|mark| {
            let next = timed.partition_point(|(process, start)| (*process, *start) < (mark.process, mark.host.start));
            timed.get(next).is_some_and(|(process, start)| *process == mark.process && mark.host.contains(*start))
        });
    }
    (!marks.is_empty()).then_some((basis, marks))
}

/// Steps that are left out because no launch in them was timed, of so many.
pub(crate) fn untimed(timeline: &Timeline, attribution: &Attribution) -> Option<QualityCounter> {
    let count = |found: Option<(StepBasis, Vec<Mark>)>| found.map_or(0, |(_, marks)| marks.len() as u64);
    let annotated = engine::annotated(timeline, trace_end(timeline)).len() as u64;
    let all = if annotated > 0 { annotated } else { count(all_marks(timeline, attribution)) };
    let left_out = all - count(marks(timeline, attribution));
    QualityCounter::some("steps_untimed", Severity::Warning, left_out).map(|counter| counter.of(all))
}

fn all_marks(timeline: &Timeline, attribution: &Attribution) -> Option<(StepBasis, Vec<Mark>)> {
    let process = |thread: u32| timeline.threads.get(thread as usize).and_then(|thread| thread.process);
    let last = trace_end(timeline);
    let annotated: Vec<_> = engine::steps(timeline, &attribution.launch, last)
        .into_iter()
        .map(|step| Mark {
            process: process(step.thread.0),
            name: step.name,
            label: step.label,
            batch: step.batch,
            host: step.host,
        })
        .collect();
    if !annotated.is_empty() {
        return Some((StepBasis::EngineAnnotations, annotated));
    }
    let unlabelled = |name, thread: ThreadId, host| Mark {
        name: timeline.name(name).to_owned(),
        label: None,
        batch: None,
        process: process(thread.0),
        host,
    };
    let marked =
        |range: &Range| unlabelled(range.name, range.thread, Span::new(range.start, range.end.unwrap_or(last)));
    let is_profiled = |name: NameId| timeline.name(name).starts_with("ProfilerStep#");
    // Older profilers write their steps among the operators.
    let operators = timeline.operators.iter().filter(|operator| is_profiled(operator.name));
    let profiled: Vec<_> = timeline
        .ranges
        .iter()
        .filter(|range| is_profiled(range.name))
        .map(marked)
        .chain(operators.map(|row| unlabelled(row.name, row.thread, Span::new(row.start, row.end()))))
        .collect();
    if profiled.len() > 1 || (profiled.len() == 1 && attribution.steps.is_empty()) {
        return Some((StepBasis::ProfilerSteps, profiled));
    }
    let decoded: Vec<_> = attribution
        .steps
        .iter()
        .map(|step| {
            let run = step.instance.map(|instance| attribution.stages[instance as usize].thread.0);
            let name = format!("decode step {}", step.number);
            Mark { name, label: None, batch: None, process: run.and_then(process), host: step.host }
        })
        .collect();
    if !decoded.is_empty() {
        return Some((StepBasis::DecodeSteps, decoded));
    }
    let counted = counted(timeline, &attribution.launch, last);
    if !counted.is_empty() {
        let marks = counted.into_iter().map(|place| marked(&timeline.ranges[place]));
        return Some((StepBasis::CountedRanges, marks.collect()));
    }
    let passes = passes(timeline, attribution);
    if passes.len() >= FEWEST_PASSES {
        return Some((StepBasis::TokenChoices, passes));
    }
    Some((StepBasis::Repetition, repeated(timeline, attribution)?))
}

/// Kernels of the busiest stream that repeat in exactly the same order and are most of the work.
fn repeated(timeline: &Timeline, attribution: &Attribution) -> Option<Vec<Mark>> {
    let mut queues = vec![Nanos::ZERO; timeline.queues.len()];
    let is_kernel = |row: &usize| timeline.work[*row].kind == WorkKind::Kernel && !attribution.is_aside(*row);
    let all: Vec<usize> = (0..timeline.work.len()).filter(is_kernel).collect();
    for row in &all {
        queues[timeline.work[*row].queue.0 as usize] += timeline.work[*row].duration;
    }
    let total: Nanos = queues.iter().copied().sum();
    let (queue, _) = queues.iter().enumerate().max_by_key(|(_, time)| **time)?;
    let mut rows: Vec<usize> = all.into_iter().filter(|row| timeline.work[*row].queue.0 as usize == queue).collect();
    rows.sort_by_key(|row| timeline.work[*row].start);
    let names: Vec<usize> = rows.iter().map(|row| timeline.work[*row].name.index()).collect();
    let covers = |found: Repetition| {
        let time: Nanos = rows[found.start..found.end()].iter().map(|row| timeline.work[*row].duration).sum();
        time.get() * 2 >= total.get()
    };
    let marks: Vec<bool> = timeline
        .names
        .iter()
        .map(|(_, name)| {
            let name = name.to_lowercase();
            ONCE_IN_A_STEP.iter().any(|word| name.contains(word))
        })
        .collect();
    let found = repetition::steps(&names, covers, |name| marks[name])?;
    let call = |place: usize| attribution.launch[rows[place]].map(|call| &timeline.calls[call as usize]);
    let firsts = (0..found.times).map(|step| call(found.start + step * found.length)).collect::<Option<Vec<_>>>()?;
    let last = call(found.end() - 1)?;
    let ends = firsts.iter().skip(1).map(|call| call.start).chain([last.start + Nanos::new(1)]);
    let process = |thread: u32| timeline.threads.get(thread as usize).and_then(|thread| thread.process);
    let mark = |(place, (first, end)): (usize, (&&types::timeline::HostCall, Nanos))| {
        (first.start < end).then(|| Mark {
            name: format!("repetition {place}"),
            label: None,
            batch: None,
            process: process(first.thread.0),
            host: Span::new(first.start, end),
        })
    };
    firsts.iter().zip(ends).enumerate().map(mark).collect()
}

/// Launches between two choices of a token.
fn passes(timeline: &Timeline, attribution: &Attribution) -> Vec<Mark> {
    let chooses: Vec<bool> = timeline.names.iter().map(|(_, name)| is_sampling(name)).collect();
    if !chooses.contains(&true) {
        return Vec::new();
    }
    let launched = timeline.work.iter().zip(&attribution.launch).filter_map(|(work, call)| {
        let call = &timeline.calls[(*call)? as usize];
        (work.kind == WorkKind::Kernel).then_some((call.start, call.thread.0, chooses[work.name.index()]))
    });
    let mut launched: Vec<_> = launched.collect();
    launched.sort_unstable();
    let (mut passes, mut from, mut count) = (Vec::new(), None, 0);
    let mut rows = launched.into_iter().peekable();
    while let Some((start, thread, is_choice)) = rows.next() {
        let begin = *from.get_or_insert(start);
        count += 1;
        let ends = is_choice && count >= FEWEST_KERNELS && rows.peek().is_none_or(|(.., next)| !next);
        if ends {
            let end = rows.peek().map_or(start + Nanos::new(1), |(next, ..)| *next);
            // What follows may be the first work of a request that came later.
            let lull = attribution.without_requests.as_ref().map(|without| without.within(Span::new(start, end)));
            let end = lull.and_then(|lull| lull.as_slice().first().map(|lull| lull.start)).unwrap_or(end);
            let process = timeline.threads.get(thread as usize).and_then(|thread| thread.process);
            passes.push(Mark {
                name: format!("pass {}", passes.len()),
                label: None,
                batch: None,
                process,
                host: Span::new(begin, end),
            });
            (from, count) = (None, 0);
        }
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, range, timeline};

    #[test]
    fn steps_without_a_timed_graph_are_left_out_where_only_graphs_are_known() {
        let graph = |at: i64| Launch { kind: WorkKind::Graph, ..Launch::new(at + 10, at + 50, 100) };
        let mut timeline = timeline(1_000, &[graph(0), graph(200), graph(400)]);
        timeline.ranges.clear();
        (0..4).for_each(|place| range(&mut timeline, &format!("round {place}"), 200 * place, 200 * place + 199));
        let found = |timeline: &Timeline| {
            let attribution = attribute(timeline, &AttributionSettings::default());
            let untimed = untimed(timeline, &attribution).map(|counter| counter.value);
            (placed_steps(timeline, &attribution).unwrap().list.len(), untimed)
        };
        assert_eq!(found(&timeline), (4, None));
        timeline.graphs_only = true;
        assert_eq!(found(&timeline), (3, Some(1)));
    }
}
