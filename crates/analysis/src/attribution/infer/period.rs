//! Forward passes from the kernels alone: each ends with the kernel that chooses a token, and decode steps are alike.

use types::Nanos;
use types::timeline::{ThreadId, Timeline};

use super::forward::{Forward, Forwards, Kind, is_sampling};
use super::sequence::Sequence;
use super::similarity::alike;
use crate::time::Span;

/// A pass has at least this many kernels; choosing a token may itself take several.
const FEWEST_KERNELS: usize = 8;
/// Steps of decode share at least this much: kernels of attention may change as the cache grows, the others do not.
const ALIKE: f64 = 0.7;
/// Passes after the first that are no decode step. One in four is a new request now and then; more is a mix.
const MOST_UNLIKE: f64 = 0.25;

/// Kernels between two choices of a token.
struct Segment {
    span: Span,
    /// Names, sorted.
    names: Vec<u32>,
    /// Time on the device.
    time: Nanos,
}

/// Forward passes, or why the kernels do not tell them.
pub(super) fn find(timeline: &Timeline, sequence: &Sequence) -> Result<Forwards, String> {
    let segments = segments(timeline, sequence);
    if segments.len() < 3 {
        let choices = segments.len();
        return Err(format!(
            "no repetition to tell decode from prefill by: {choices} forward passes end with a kernel that chooses a token"
        ));
    }
    let typical = typical(&segments[1..]);
    let is_step = |segment: &Segment| alike(&segment.names, &typical.names) >= ALIKE;
    let unlike = segments[1..].iter().filter(|segment| !is_step(segment)).count();
    let others = segments.len() - 1;
    if unlike as f64 > MOST_UNLIKE * others as f64 {
        return Err(format!(
            "no single period: {unlike} of {others} forward passes are unlike the others, as in a serving engine's mixed \
             batches of prefill and decode"
        ));
    }
    let forwards: Vec<Forward> = segments
        .iter()
        .filter_map(|segment| match is_step(segment) {
            true => Some(Forward { kind: Kind::Decode, span: segment.span }),
            // Less than a step is a part of one that the trace has cut.
            false if segment.time <= typical.time => None,
            false => Some(Forward { kind: Kind::Prefill, span: segment.span }),
        })
        .collect();
    let steps = forwards.iter().filter(|forward| forward.kind == Kind::Decode).count();
    let evidence = format!(
        "a kernel chooses a token {} times; of the passes between, {steps} are alike with about {} kernels each (decode) \
         and {} longer (prefill)",
        segments.len(),
        typical.names.len(),
        forwards.len() - steps
    );
    Ok(Forwards { forwards, thread: busiest_thread(timeline), evidence })
}

/// The pass most others are like. Looking at a few, spread over all sizes, is enough: steps are the most by far.
fn typical(segments: &[Segment]) -> &Segment {
    const CANDIDATES: usize = 5;
    let mut by_size: Vec<&Segment> = segments.iter().collect();
    by_size.sort_by_key(|segment| segment.names.len());
    let candidate = |number: usize| by_size[number * (by_size.len() - 1) / (CANDIDATES - 1)];
    let followers = |one: &&Segment| segments.iter().filter(|other| alike(&one.names, &other.names) >= ALIKE).count();
    (0..CANDIDATES).map(candidate).max_by_key(followers).unwrap_or(&segments[0])
}

/// The sequence cut after each kernel that chooses a token. What follows the last one is in no segment.
fn segments(timeline: &Timeline, sequence: &Sequence) -> Vec<Segment> {
    let sampling: Vec<bool> = timeline.names.iter().map(|(_, name)| is_sampling(name)).collect();
    let mut cuts: Vec<usize> = Vec::new();
    for place in (0..sequence.names.len()).filter(|place| sampling[sequence.names[*place] as usize]) {
        match cuts.last_mut() {
            // One choice in several kernels is one choice.
            Some(last) if place + 1 - *last < FEWEST_KERNELS => *last = place + 1,
            _ => cuts.push(place + 1),
        }
    }
    let mut from = 0;
    let segment = |cut: usize| {
        let mut names = sequence.names[from..cut].to_vec();
        names.sort_unstable();
        let end = sequence.moments.get(cut).copied().unwrap_or(sequence.moments[cut - 1] + Nanos::new(1));
        let segment = Segment {
            span: Span::new(sequence.moments[from], end),
            names,
            time: sequence.times[from..cut].iter().copied().sum(),
        };
        from = cut;
        segment
    };
    cuts.into_iter().map(segment).collect()
}

/// The thread whose calls launched most of the work, for sources whose operators do not say.
fn busiest_thread(timeline: &Timeline) -> ThreadId {
    let mut counts = vec![0u64; timeline.threads.len()];
    for call in timeline.calls.iter().filter(|call| call.correlation.is_some()) {
        counts[call.thread.0 as usize] += 1;
    }
    ThreadId((0..counts.len()).max_by_key(|thread| counts[*thread]).unwrap_or(0) as u32)
}
